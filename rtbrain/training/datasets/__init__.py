"""The data sets: a reader for each on-disk layout, and from what they find the labelled trials of a task."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from rtbrain.errors import SourceError
from rtbrain.sources.chunking import Source
from rtbrain.sources.recording import excerpt
from rtbrain.training.dataset_config import OWN, ClassRule, Crop, DatasetConfig, Task, better_fitting
from rtbrain.training.datasets import bids, deap, files, mdd, neurolong, nssi, seed
from rtbrain.training.datasets.copies import without_copies
from rtbrain.training.trials import Found, Problem, Trial, Value

READERS: dict[str, Callable[[Path, DatasetConfig], Found]] = {
    "bids": bids.read,
    "deap": deap.read,
    "files": files.read,
    "mdd": mdd.read,
    "neurolong": neurolong.read,
    "nssi": nssi.read,
    "seed": seed.read,
}

ROOT_VARIABLE = "RTBRAIN_DATA"
SIMULATED = ("neurolong", "seed", "deap", "mdd", "nssi")
"""Sets whose layout `rtbrain simulate` can write."""


_SHOWN = 5
"""Problems of a set in which nothing can be used: they are mostly alike."""


def load(config: DatasetConfig, root: str | Path | None = None) -> Found:
    """Read a data set.

    Parameters
    ----------
    config : DatasetConfig
        What it is and how it is read.
    root : str or Path, optional
        Where it is; see `find_root`.

    Returns
    -------
    Found
        Its trials, still without classes (see `choose`), what could not be used, and who may be one person.

    Raises
    ------
    SourceError
        The data are not there, or nothing of them can be used, or their labels contradict each other.
    ConfigError
        The reader's options are wrong.
    """
    folder = find_root(config, root)
    found = READERS[config.reader](folder, config)
    decisive = {name for task in config.tasks.values() for name in (task.label, *task.where)}
    found = replace(found, same_person=config.same_person + found.same_person, root=folder)
    found = without_copies(found, decisive)
    if not found.trials:
        more = len(found.problems) - _SHOWN
        bad = "".join(f"\n  {problem}" for problem in found.problems[:_SHOWN])
        bad += f"\n  and {more} more" if more > 0 else ""
        why = f"nothing in it can be used:{bad}" if bad else "it holds no recording of this set"
        raise SourceError(f"{folder}: {why}{_help(config)}")
    return found


def find_root(config: DatasetConfig, root: str | Path | None = None) -> Path:
    """Return the folder of a data set: `root`, or by RTBRAIN_DATA, or the configuration's own, in this order.

    RTBRAIN_DATA may hold several sets, each in a folder with the set's name, or be the folder of this set alone.
    """
    variable = os.environ.get(ROOT_VARIABLE)
    if root is not None:
        folder, origin = Path(root), "--root"
    elif variable:
        folder, origin = Path(variable), ROOT_VARIABLE
        if (folder / config.name).is_dir():
            folder = folder / config.name
    elif config.root is not None:
        folder, origin = Path(config.root), "the configuration"
    else:
        raise SourceError(
            f"where is {config.title or config.name}? Give its folder by --root, or set {ROOT_VARIABLE}, "
            f"or `root:` in the configuration{_help(config)}"
        )
    if not folder.is_dir():
        remedy = "; correct `root:` there, or give --root" if origin == "the configuration" else ""
        raise SourceError(f"{folder} (from {origin}) is not a folder{remedy}{_help(config)}")
    return folder


def _help(config: DatasetConfig) -> str:
    said = []
    if obtain := config.obtain.strip():
        said.append(f"To be had from: {obtain}")
    if layout := config.layout.rstrip():
        said += ["Expected below the folder:", *(f"  {line}" for line in layout.splitlines())]
    if config.name in SIMULATED:
        folder = f"simulated/{config.name}"
        form = " --form small" if config.name == "neurolong" else ""
        made = f"rtbrain simulate --dataset {config.name}{form} --out {folder}"
        said.append(f"To try it without the data: {made}, then --dataset {folder}/{OWN}")
    return "".join(f"\n{line}" for line in said)


def task_trials(config: DatasetConfig, found: Found, task: str | None) -> tuple[str, Found]:
    """Return the name of a task, by default the first, and its trials; refuse a task that has none."""
    name, asked = config.task(task)
    chosen = choose(found, asked, config.crop)
    if not chosen.trials:
        fits = better_fitting(config, found.root) if found.root else ""
        raise SourceError(
            f"{config.name}: no trial has a class of task {name!r} and the crop's length, such as "
            f"{chosen.problems[-1]}{fits}"
        )
    return name, chosen


def choose(found: Found, task: Task, crop: Crop | None = None) -> Found:
    """Return the trials of a task with their classes, each cut to the same seconds.

    Parameters
    ----------
    found : Found
        What a reader found.
    task : Task
        Which trials count, and which class is which.
    crop : Crop, optional
        The seconds of every trial to keep.

    Returns
    -------
    Found
        Trials with a label. Those of other conditions are left out silently; those that belong to the task but
        have no class or are too short for the crop are left out and added to the problems.
    """
    counted = [trial for trial in found.trials if all(trial.fields.get(k) == v for k, v in task.where.items())]
    if not counted:
        asked = ", ".join(f"{name} = {value}" for name, value in task.where.items())
        raise SourceError(f"no trial has {asked}; {_values(found.trials, tuple(task.where))}")
    if not any(task.label in trial.fields for trial in counted):
        names = sorted({name for trial in counted for name in trial.fields})
        raise SourceError(
            f"no trial has the field {task.label!r} that the label is made of; fields: {', '.join(names)}"
        )
    trials, problems = [], list(found.problems)
    for trial in counted:
        reason = _unfit(trial, task, crop)
        if reason is not None:
            problems.append(Problem(trial.name, reason))
            continue
        label = class_of(trial.fields[task.label], task.classes)
        assert label is not None, "_unfit refuses trials without a class"
        trials.append((crop_trial(trial, crop) if crop else trial).labelled(label))
    return replace(found, trials=tuple(trials), problems=tuple(problems))


def class_of(value: Value, classes: tuple[ClassRule, ...]) -> int | None:
    """Return the index of the class that a value belongs to, or None."""
    return next((index for index, rule in enumerate(classes) if rule.holds(value)), None)


def crop_trial(trial: Trial, crop: Crop) -> Trial:
    """Return the trial with only the crop's seconds."""
    return replace(trial, length_s=crop.seconds, open=partial(_open_cropped, trial.open, crop))


def _open_cropped(whole: Callable[[], Source], crop: Crop) -> Source:
    return excerpt(whole(), crop.start_s, crop.seconds)


def _unfit(trial: Trial, task: Task, crop: Crop | None) -> str | None:
    if task.label not in trial.fields:
        return f"has no {task.label}; fill it in, or leave the trial out"
    value = trial.fields[task.label]
    if class_of(value, task.classes) is None:
        classes = ", ".join(rule.name for rule in task.classes)
        return f"{task.label} is {value!r}, which belongs to none of the classes {classes}; see the task's `classes`"
    if crop is not None and trial.length_s < crop.start_s + crop.seconds - 1e-6:
        return f"lasts {trial.length_s:.2f} s, the crop needs {crop.start_s + crop.seconds:g} s; shorten the crop"
    return None


def _values(trials: tuple[Trial, ...], names: tuple[str, ...]) -> str:
    found = []
    for name in names:
        values = sorted({str(trial.fields[name]) for trial in trials if name in trial.fields})
        found.append(f"{name} is {', '.join(values)}" if values else f"there is no field {name!r}")
    return "; ".join(found)
