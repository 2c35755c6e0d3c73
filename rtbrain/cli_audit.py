"""The command `rtbrain data audit`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_dataset import DATASET_HELP, ROOT
from rtbrain.errors import ConfigError

if TYPE_CHECKING:
    from rtbrain.training.nuisance import Audit


@click.command()
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
@click.option(
    "--png",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw spectra and accuracies; with several tasks, a file for each.",
)
def audit(dataset: str, root: Path | None, task: str | None, target: Path | None, png: Path | None) -> None:
    """Tell how much of the class is told by what is not brain.

    Classifiers see only length, layout, header, gain, band edges, mains, lines and amplifier floor, and are scored on
    people that they have not seen. The result is stored with the data set, to stand beside every accuracy on it.

    Example: rtbrain data audit --dataset mdd --root data/mdd --png audit.png
    """
    from rtbrain.console import progress_bar
    from rtbrain.training.dataset_config import load_dataset_config
    from rtbrain.training.datasets import find_root, load
    from rtbrain.training.nuisance import audit_task, save_audit

    to_screen = target is not None and str(target) == "-"
    for path in (None if to_screen else target, png):
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigError(f"the folder of {path} does not exist; make it, or name another file")
    config = load_dataset_config(dataset)
    names = [config.task(task)[0]] if task else list(config.tasks)
    found = load(config, root)
    audits = []
    for name in names:
        with progress_bar() as progress:
            done = audit_task(config, found, name, partial(progress, f"reading {config.name} {name}"))
        audits.append(done)
        stored = save_audit(done, find_root(config, root))
        if not to_screen:
            show_audit(done)
            click.echo(f"stored in {stored}")
        if png is not None:
            from rtbrain.training.nuisance.figure import draw_audit

            picture = png if len(names) == 1 else png.with_stem(f"{png.stem}-{name}")
            draw_audit(done, picture)
            click.echo(f"wrote {picture}", err=to_screen)
    if target is not None:
        _write_json(audits, target, to_screen)


def show_audit(done: Audit) -> None:
    """Print the table of scores and the verdict."""
    from rtbrain.console import console, table
    from rtbrain.training.nuisance import one_line, verdict

    rows = table("nuisance", "accuracy", "95 %", "balanced", "p", "", title=f"{done.dataset}, task {done.task}")
    for score in done.scores:
        low, high = score.accuracy_interval
        finding = score.finding if score in done.counted else "cut off by the crop"
        rows.add_row(
            score.group,
            f"{score.accuracy:.2f}",
            f"{low:.2f} to {high:.2f}",
            f"{score.balanced:.2f}",
            f"{score.p:.3f}",
            "" if finding == "none" else finding,
        )
    console.print(rows)
    if done.constant:
        console.print(f"the same in all recordings: {', '.join(done.constant)}")
    for reason in done.left_out:
        console.print(f"left out: {reason}", markup=False)
    console.print(verdict(done), markup=False)
    console.print(one_line(done), markup=False)


def _write_json(audits: list[Audit], target: Path, to_screen: bool) -> None:
    import json
    from dataclasses import asdict

    from rtbrain.training.nuisance import one_line, verdict
    from rtbrain.writing import replacing

    found = [
        asdict(done) | {"finding": done.finding, "verdict": verdict(done), "one_line": one_line(done)}
        for done in audits
    ]
    text = json.dumps(found, indent=1)
    if to_screen:
        click.echo(text)
        return
    with replacing(target) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    click.echo(f"wrote {target}")
