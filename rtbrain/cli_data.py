"""The commands `rtbrain data ...`."""

from __future__ import annotations

from pathlib import Path

import click

from rtbrain.cli_audit import audit
from rtbrain.cli_corpus import tokenize
from rtbrain.cli_dataset import DATASET, JSON, ROOT, TASKS, check_targets, to_screen, write_json
from rtbrain.cli_options import Group
from rtbrain.errors import SourceError


@click.group(cls=Group)
def data() -> None:
    """Look through data sets, find what else than brain tells their labels, and turn them into tokens."""


data.add_command(audit)
data.add_command(tokenize)


@data.command()
@DATASET
@ROOT
@TASKS
@JSON
@click.option("--audit/--no-audit", "nuisance", default=True, help="Run the nuisance audit, which reads every trial.")
def check(dataset: str, root: Path | None, task: str | None, target: Path | None, nuisance: bool) -> None:
    """Report what a data set holds, what of it cannot be used, and whether length or anything else leaks its labels.

    Ends with an error where recordings are missing, or a task cannot be trained or evaluated: a class without trials,
    none as long as the crop, more folds than people, a filter that the sampling rate cannot carry. Warnings alone are
    no error; a task of which the set holds nothing is one, as long as the set holds another.

    Example: rtbrain data check --dataset mdd --root data/mdd
    """
    from rtbrain.console import progress_bar
    from rtbrain.console_data import show_check
    from rtbrain.training.check import check_dataset
    from rtbrain.training.dataset_config import load_dataset_config

    check_targets(target)
    with progress_bar() as progress:
        found = check_dataset(load_dataset_config(dataset), root, task, nuisance, progress)
    if not to_screen(target):
        show_check(found)
    if target is not None:
        write_json(found.to_dict(), target)
    if found.errors:
        listed = "".join(f"\n  {text}" for text in found.errors)
        raise SourceError(f"{found.root}: cannot be used as it is, {len(found.errors)} error(s):{listed}")
