"""A data set as a YAML file: where it is, how it is read, its tasks, its recipe and how a model is trained on it."""

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from rtbrain.config import Count, NotNegative, Positive, Share, load_yaml, parse
from rtbrain.errors import ConfigError, perhaps
from rtbrain.pipeline import Recipe
from rtbrain.training.trials import Value

_PACKAGE = Path(__file__).resolve().parents[1]
CONFIGS = _PACKAGE / "configs" if (_PACKAGE / "configs").is_dir() else _PACKAGE.parent / "configs"
"""Within the installed package, or beside it in the repository."""
OWN = "rtbrain.yaml"
"""The configuration that a data set may bring along, in its folder."""
LEAST_CONTEXT_S = 5.0
_NOT_IN_NAMES = '/\\:*?"<>|'


@dataclass(frozen=True)
class ClassRule:
    """One class of a task: the values of the task's field that belong to it, or a range of them."""

    name: str
    values: tuple[Value, ...] = ()
    above: float | None = None
    """Values greater than this (exclusive)."""
    upto: float | None = None
    """Values up to this (inclusive)."""

    @property
    def is_range(self) -> bool:
        """Whether it takes numbers by their size."""
        return self.above is not None or self.upto is not None

    @property
    def low(self) -> float:
        """What numbers of the range exceed."""
        return -math.inf if self.above is None else self.above

    @property
    def high(self) -> float:
        """What numbers of the range do not exceed."""
        return math.inf if self.upto is None else self.upto

    def holds(self, value: Value) -> bool:
        """Tell whether a value of the task's field belongs to the class."""
        return value in self.values or (self.is_range and not isinstance(value, str) and self.low < value <= self.high)


@dataclass(frozen=True)
class PaperSettings:
    """What the paper states for a task and we follow; its accuracies stand in `rtbrain.training.paper_figures`."""

    window: Count = 10
    loss: Literal["focal", "cross-entropy"] = "cross-entropy"
    alpha: tuple[Positive, ...] = ()
    """Weight of each class among the paper's own people; for the protocol `paper` alone."""
    batch: Count = 12

    @property
    def for_others(self) -> "PaperSettings":
        """Return what holds beyond the paper's own people: there, classes weigh by the data's own frequencies."""
        return replace(self, alpha=())


@dataclass(frozen=True)
class Task:
    """A question to the data: which field is the label, and which trials count."""

    label: str
    """Name of the trials' field."""
    classes: tuple[ClassRule, ...]
    where: dict[str, Value] = field(default_factory=dict)
    """Only trials whose fields have these values."""
    why: str = ""
    """Why the label is cut so, where the paper leaves it open."""
    paper: PaperSettings = field(default_factory=PaperSettings)


@dataclass(frozen=True)
class Crop:
    """The same seconds of every trial, so that length tells nothing."""

    seconds: Positive
    start_s: NotNegative = 0.0


@dataclass(frozen=True)
class Protocol:
    """How subjects are split."""

    split: Literal["leave-one-subject-out", "k-fold", "leave-one-stimulus-out"]
    folds: Count = 10
    """Number of folds of k-fold."""
    validation_share: Share = 0.2
    """Share of the training subjects that validate, never fewer than one per class."""
    seed: int = 0


@dataclass(frozen=True)
class Schedule:
    """Our own, shorter training schedule; the default."""

    epochs: Count = 60
    batch: Count = 12
    learning_rate: Positive = 1e-3
    patience: Count = 10
    context_s: Positive = 60.0
    """Longest stretch of EEG that an answer rests on; shorter where the trials are."""

    def __post_init__(self) -> None:
        """Refuse a context that holds next to no tokens."""
        if self.context_s < LEAST_CONTEXT_S:
            raise ConfigError(f"context_s {self.context_s:g} is too short; give {LEAST_CONTEXT_S:g} seconds or more")


@dataclass(frozen=True)
class DatasetConfig:
    """Everything about a data set but its files."""

    name: str
    reader: Literal["neurolong", "nssi", "seed", "deap", "mdd", "bids", "files"]
    tasks: dict[str, Task]
    protocol: Protocol
    title: str = ""
    obtain: str = ""
    """Where the set is to be had."""
    layout: str = ""
    """The folders and files that are expected below the root."""
    root: str | None = None
    """Where the set is; in a YAML file, relative to that file."""
    options: dict[str, Any] = field(default_factory=dict)
    """What the reader itself needs to know; see the reader."""
    same_person: tuple[tuple[str, ...], ...] = ()
    """Groups of subjects that may be one person; kept on one side of every split."""
    crop: Crop | None = None
    n_states: Count = 4
    recipe: Recipe = field(default_factory=Recipe)
    training: Schedule = field(default_factory=Schedule)

    def task(self, name: str | None) -> tuple[str, Task]:
        """Return a task by name; the first one by default."""
        chosen = name or next(iter(self.tasks))
        if chosen not in self.tasks:
            raise ConfigError(
                f"{self.name} has no task {chosen!r}{perhaps(chosen, self.tasks)}; it has {', '.join(self.tasks)}"
            )
        return chosen, self.tasks[chosen]


def known_datasets() -> list[str]:
    """Return the names of the data sets whose configuration ships with rtbrain."""
    found = []
    for path in sorted(CONFIGS.glob("*.yaml")):
        if "reader" in load_yaml(path):
            found.append(path.stem)
    return found


def load_dataset_config(name_or_path: str) -> DatasetConfig:
    """Read a configuration by the name of a known data set or by the path of a YAML file."""
    path = Path(name_or_path)
    if path.is_dir() and not (CONFIGS / f"{name_or_path}.yaml").is_file():
        own = f"--dataset {path / OWN}" if (path / OWN).is_file() else f"--dataset NAME --root {path}"
        raise ConfigError(f"{path} is a folder; --dataset takes a name, or the path of a YAML file: give {own}")
    if path.suffix not in {".yaml", ".yml"}:
        path = CONFIGS / f"{name_or_path}.yaml"
        if not path.is_file():
            known = known_datasets()
            raise ConfigError(
                f"no data set is called {name_or_path!r}{perhaps(name_or_path, known)}; known are {', '.join(known)}, "
                "or give the path of a YAML file of yours"
            )
    config = parse(DatasetConfig, load_yaml(path), str(path))
    if not config.tasks:
        raise ConfigError(f"{path} names no task; add one to `tasks`")
    _check_name(config.name, f"{path}: name")
    for name, task in config.tasks.items():
        _check_name(name, f"{path}: task")
        _check_classes(task.classes, f"{path}: task {name}")
    if config.recipe.harmonise is not None and config.crop is None:
        raise ConfigError(
            f"{path}: a recipe that harmonises recordings needs a crop, for their length tells them apart too; add "
            "`crop: {start_s: ..., seconds: ...}` that fits the shortest one"
        )
    if config.root is not None:
        config = replace(config, root=str(path.parent / Path(config.root).expanduser()))
    return config


def better_fitting(config: DatasetConfig, root: Path) -> str:
    """Return where a set brings its own configuration, to end an error with; nothing where it has none or it is used.

    A simulated set has one, as it may be smaller than the shipped configuration asks for.
    """
    path = root / OWN
    try:
        if not path.is_file() or replace(load_dataset_config(str(path)), root=config.root) == config:
            return ""
    except ConfigError:  # it would not help
        return ""
    return f"; this folder has a configuration that fits it: --dataset {path}"


def _check_name(name: str, where: str) -> None:
    """Refuse a name that could not be part of a file's name: tables and caches are called by it."""
    if not name or name.startswith(".") or any(char in _NOT_IN_NAMES or not char.isprintable() for char in name):
        raise ConfigError(
            f"{where} {name!r} cannot be part of a file's name; begin it with no dot, and leave out {_NOT_IN_NAMES}"
        )


def _check_classes(classes: tuple[ClassRule, ...], where: str) -> None:
    names = [rule.name for rule in classes]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"{where} has the classes {names}; name two or more, each differently")
    for rule in classes:
        if not rule.values and rule.above is None and rule.upto is None:
            raise ConfigError(f"{where}: nothing belongs to class {rule.name!r}; give it `values`, `above` or `upto`")
    for one, other in combinations(classes, 2):
        if shared := _shared(one, other):
            raise ConfigError(f"{where}: {shared} would be both {one.name!r} and {other.name!r}; keep classes apart")


def _shared(one: ClassRule, other: ClassRule) -> str:
    """Return in words which values belong to both classes; nothing if none does."""
    for value in one.values:
        if other.holds(value):
            return repr(value)
    for value in other.values:
        if one.holds(value):
            return repr(value)
    if not (one.is_range and other.is_range):
        return ""
    low, high = (max(one.low, other.low), min(one.high, other.high))
    return f"a value above {low:g} and up to {high:g}" if low < high else ""
