"""What is true of a simulated set: the label of every trial, and how well labels can be told at best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rtbrain import __version__
from rtbrain.messages import FloatArray
from rtbrain.progress import Progress
from rtbrain.simulation.layouts.plan import File
from rtbrain.simulation.optimum import Optimum
from rtbrain.simulation.population import Design
from rtbrain.simulation.world import World
from rtbrain.simulation.writing_order import Order
from rtbrain.training.dataset_config import DatasetConfig, Task
from rtbrain.training.datasets import class_of
from rtbrain.training.trials import Value


def optima_of(
    world: World, config: DatasetConfig, files: Sequence[File], n_draws: int, progress: Progress
) -> dict[str, Optimum]:
    """Return how well each task can be solved at best, at the length of the crop and with the set's own labels."""
    assert config.crop is not None, "the five sets have a crop"
    seconds, n_labels = config.crop.seconds, world.design.n_classes
    trials = _labelled(files)
    found: dict[str, Optimum] = {}
    for name, task in config.tasks.items():
        progress("what is possible at best", len(found) / len(config.tasks))
        found[name] = world.bayes_optimal(seconds, mix_of(task, n_labels, trials), n_draws)
    return found


def lacking_classes(config: DatasetConfig, files: Sequence[File], n_labels: int) -> dict[str, list[str]]:
    """Return by task the classes that no trial is of, where there are any."""
    found = {}
    for name, task in config.tasks.items():
        counts = mix_of(task, n_labels, _labelled(files)).sum(axis=0)
        if lacking := [rule.name for rule, count in zip(task.classes, counts, strict=True) if not count]:
            found[name] = lacking
    return found


def _labelled(files: Sequence[File]) -> list[tuple[int | None, Mapping[str, Value]]]:
    """Return the label and the fields of every trial."""
    stretches = (each for file in files for take in file.takes for each in take.stretches)
    return [(each.label, each.fields) for each in stretches if each.trial is not None]


def mix_of(task: Task, n_labels: int, trials: Iterable[tuple[int | None, Mapping[str, Value]]]) -> FloatArray:
    """Count the trials of each label (rows) by their class in a task (columns); trials are labels and fields."""
    mix = np.zeros((n_labels, len(task.classes)))
    for label, fields in trials:
        if any(fields.get(name) != value for name, value in task.where.items()):
            continue
        chosen = class_of(fields[task.label], task.classes)
        assert label is not None, "every trial has a label"
        assert chosen is not None, "every trial has a class in every task of its set"
        mix[label, chosen] += 1
    return mix


def truth_of(order: Order, design: Design, files: Sequence[File], optima: dict[str, Optimum]) -> dict[str, Any]:
    """Return what is true of the set, for simulation.json."""
    trials = [
        {
            "trial": each.trial,
            "subject": file.person,
            "file": file.path,
            "start_s": at,
            "seconds": each.seconds,
            "label": each.label,
            "fields": dict(each.fields),
            "confound": order.plant if take.planted else None,
        }
        for file in files
        for take in file.takes
        for at, each in take.starts()
        if each.trial is not None
    ]
    return {
        "made_by": f"rtbrain {__version__}",
        "order": asdict(order),
        "design": asdict(design),
        "optimum": {name: asdict(each) for name, each in optima.items()},
        "trials": trials,
    }
