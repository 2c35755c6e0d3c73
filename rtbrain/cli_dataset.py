"""What the commands on data sets share: how a set and a task are named, and the trials that this gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rtbrain.training.dataset_config import DatasetConfig
    from rtbrain.training.trials import Trial

DATASET_HELP = "A known data set (neurolong, seed, deap, mdd, nssi), or a YAML file of yours."
ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path),
    help="Folder of the data set.  [default: by RTBRAIN_DATA, then the configuration]",
)
TASK = click.option("--task", help="Which of the data set's tasks.  [default: its first]")


def trials_of(dataset: str, root: Path | None, task: str | None) -> tuple[DatasetConfig, str, tuple[Trial, ...]]:
    """Return a data set's configuration, the task's name and its trials; say what of the set cannot be used."""
    from rtbrain.errors import SourceError
    from rtbrain.training.dataset_config import load_dataset_config
    from rtbrain.training.datasets import choose, load

    config = load_dataset_config(dataset)
    name, chosen = config.task(task)
    found = choose(load(config, root), chosen, config.crop)
    for problem in found.problems:
        click.echo(f"left out: {problem.where}: {problem.what}", err=True)
    if not found.trials:
        raise SourceError(f"{config.name}: no trial of task {name!r} can be used; see above, or `rtbrain data check`")
    return config, name, found.trials
