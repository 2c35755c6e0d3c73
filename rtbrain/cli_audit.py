"""The command `rtbrain data audit`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtbrain.cli_dataset import DATASET, JSON, ROOT, TASKS, check_targets, to_screen, write_json
from rtbrain.errors import ConfigError

if TYPE_CHECKING:
    from rtbrain.training.nuisance import Audit


@click.command()
@DATASET
@ROOT
@TASKS
@JSON
@click.option(
    "--png",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw spectra and accuracies; with several tasks, a file for each.",
)
def audit(dataset: str, root: Path | None, task: str | None, target: Path | None, png: Path | None) -> None:
    """Tell how much of the class is told by what is not brain.

    Classifiers see only length, layout, header, gain, band edges, mains, lines and amplifier floor, and are scored on
    people that they have not seen. The result is kept in your cache, to stand beside every accuracy on the set.

    Example: rtbrain data audit --dataset mdd --root data/mdd --png audit.png
    """
    from rtbrain.console import progress_bar
    from rtbrain.training.dataset_config import better_fitting, load_dataset_config
    from rtbrain.training.datasets import find_root, load
    from rtbrain.training.nuisance import audit_task, save_audit

    check_targets(target, png)
    config = load_dataset_config(dataset)
    names = [config.task(task)[0]] if task else list(config.tasks)
    folder = find_root(config, root)
    found = load(config, folder)
    audits = []
    for name in names:
        try:
            with progress_bar() as progress:
                done = audit_task(config, found, name, partial(progress, f"reading {config.name} {name}"))
        except ConfigError as error:  # they cannot be split
            raise ConfigError(f"{error}{better_fitting(config, folder)}") from error
        audits.append(done)
        stored = save_audit(done, folder)
        if not to_screen(target):
            show_audit(done)
            click.echo(f"stored in {stored}")
        if png is not None:
            from rtbrain.training.nuisance.figure import draw_audit

            picture = png if len(names) == 1 else png.with_stem(f"{png.stem}-{name}")
            draw_audit(done, picture)
            click.echo(f"wrote {picture}", err=to_screen(target))
    if target is not None:
        write_json([_plain(done) for done in audits], target)


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


def _plain(done: Audit) -> dict[str, Any]:
    from dataclasses import asdict

    from rtbrain.training.nuisance import one_line, verdict

    return asdict(done) | {"finding": done.finding, "verdict": verdict(done), "one_line": one_line(done)}
