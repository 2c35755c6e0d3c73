"""What the commands on data sets share: how a set and a task are named, and the trials that this gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_options import check_file

if TYPE_CHECKING:
    from rtbrain.training.dataset_config import DatasetConfig
    from rtbrain.training.trials import Trial

DATASET_HELP = "A known data set (neurolong, seed, deap, mdd, nssi, eegmat), or a YAML file of yours."
ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path),
    help="Folder of the data set.  [default: by RTBRAIN_DATA, then the configuration]",
)
TASK = click.option("--task", help="Which of the data set's tasks.  [default: its first]")
TASKS = click.option("--task", help="Which of the data set's tasks.  [default: all]")
DATASET = click.option("--dataset", required=True, metavar="NAME|FILE", help=DATASET_HELP)
JSON = click.option(
    "--json",
    "target",
    metavar="FILE|-",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the result as JSON; `-` prints it instead of tables.",
)


def to_screen(target: Path | None) -> bool:
    """Tell whether JSON is to be printed instead of tables."""
    return target is not None and str(target) == "-"


def check_targets(*targets: Path | None) -> None:
    """Refuse early files that could not be written at the end of a long computation."""
    for path in targets:
        if path is not None and not to_screen(path):
            check_file(path)


def write_json(values: object, target: Path) -> None:
    """Print values as JSON, or write them to a file and say so."""
    import json

    from rtbrain.writing import replacing

    text = json.dumps(values, indent=1, default=str)
    if to_screen(target):
        click.echo(text)
        return
    with replacing(target) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    click.echo(f"wrote {target}")


def trials_of(dataset: str, root: Path | None, task: str | None) -> tuple[DatasetConfig, str, tuple[Trial, ...]]:
    """Return a data set's configuration, the task's name and its trials; say what of the set cannot be used."""
    from rtbrain.training.check_errors import left_out
    from rtbrain.training.dataset_config import load_dataset_config
    from rtbrain.training.datasets import load, task_trials

    config = load_dataset_config(dataset)
    name, found = task_trials(config, load(config, root), task)
    for text in left_out(config, found):
        click.echo(f"left out: {text}", err=True)
    return config, name, found.trials
