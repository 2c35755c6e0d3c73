"""The commands `rtbrain data ...`."""

from __future__ import annotations

from pathlib import Path

import click

from rtbrain.cli_audit import audit
from rtbrain.cli_corpus import tokenize
from rtbrain.cli_dataset import DATASET_HELP, ROOT
from rtbrain.cli_options import Group
from rtbrain.errors import ConfigError


@click.group(cls=Group)
def data() -> None:
    """Look through data sets, find what else than brain tells their labels, and turn them into tokens."""


data.add_command(audit)
data.add_command(tokenize)


@data.command()
@click.option("--dataset", required=True, metavar="NAME|FILE", help=DATASET_HELP)
@ROOT
@click.option("--task", help="Which of the data set's tasks.  [default: all]")
@click.option(
    "--json",
    "target",
    metavar="FILE|-",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the result as JSON; `-` prints it instead of tables.",
)
@click.option("--audit/--no-audit", "nuisance", default=True, help="Run the nuisance audit, which reads every trial.")
def check(dataset: str, root: Path | None, task: str | None, target: Path | None, nuisance: bool) -> None:
    """Report what a data set holds, what of it cannot be used, and whether length or anything else leaks its labels.

    Ends with an error where the data are missing or nothing of them can be used; warnings alone are no error.

    Example: rtbrain data check --dataset mdd --root data/mdd
    """
    import json

    from rtbrain.console import console, progress_bar
    from rtbrain.console_data import show_check
    from rtbrain.training.check import check_dataset
    from rtbrain.training.dataset_config import load_dataset_config
    from rtbrain.writing import replacing

    to_screen = target is not None and str(target) == "-"
    if target is not None and not to_screen and not target.absolute().parent.is_dir():
        raise ConfigError(f"the folder of {target} does not exist; make it, or name another file")
    with progress_bar() as progress:
        found = check_dataset(load_dataset_config(dataset), root, task, nuisance, progress)
    text = json.dumps(found.to_dict(), indent=1, default=str)
    if to_screen:
        click.echo(text)
        return
    show_check(found)
    if target is not None:
        with replacing(target) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        console.print(f"wrote {target}", markup=False)
