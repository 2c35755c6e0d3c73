"""What `rtbrain data check` finds, as plain data."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rtbrain.training.length_leak import LengthOnly
from rtbrain.training.near_identical import Alike
from rtbrain.training.nuisance.audit import Audit
from rtbrain.training.trials import Problem


@dataclass(frozen=True)
class Spread:
    """Smallest, middle and largest of some numbers."""

    smallest: float
    median: float
    largest: float


@dataclass(frozen=True)
class ClassCount:
    """How much of a class there is."""

    trials: int
    persons: int
    too_short: int
    """Trials that the crop leaves out."""


@dataclass(frozen=True)
class FoldCount:
    """The trials on each side of a fold."""

    name: str
    train: int
    validation: int
    test: int
    test_persons: int
    test_classes: dict[str, int]


@dataclass(frozen=True)
class TaskCheck:
    """What a task finds in the set."""

    name: str
    split: str
    crop_s: float | None
    classes: dict[str, ClassCount] = field(default_factory=dict)
    """Empty where no trial can be used."""
    lengths_s: Spread | None = None
    """Before the crop."""
    majority: float | None = None
    """Accuracy of always answering the largest class."""
    length_before: LengthOnly | None = None
    length_after: LengthOnly | None = None
    folds: tuple[FoldCount, ...] = ()
    refused: str | None = None
    """Why there are no trials or no folds."""
    problems: tuple[Problem, ...] = ()
    """Trials that belong to the task and cannot be used."""
    errors: tuple[str, ...] = ()
    """Why nothing can be trained or evaluated on it as it is."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    audit: Audit | None = None
    """The nuisance audit; None where it was not asked for or could not run."""


@dataclass(frozen=True)
class DataCheck:
    """Everything that `rtbrain data check` tells."""

    dataset: str
    title: str
    root: Path
    subjects: int
    persons: int
    """Subjects who may be one person count once."""
    persons_of_class: dict[str, int]
    """For labels that belong to a person, not to a trial: persons of each class in the whole set, whatever the task."""
    trials: int
    recordings: int
    lengths_s: Spread
    rates_hz: dict[str, int]
    """Number of recordings by sampling rate."""
    n_channels: dict[str, int]
    """Number of recordings by channels in the file."""
    same_person: tuple[tuple[str, ...], ...]
    near_identical: tuple[Alike, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    tasks: tuple[TaskCheck, ...]
    missing: tuple[str, ...] = ()
    """Recordings that are not there, though files beside them are."""

    @property
    def errors(self) -> list[str]:
        """Everything that must be mended before the set can be used as it is configured."""
        return [*self.missing, *(f"task {task.name}: {text}" for task in self.tasks for text in task.errors)]

    @property
    def n_warnings(self) -> int:
        """Everything that should be looked at: files, trials and findings."""
        own = len(self.problems) + len(self.warnings)
        return own + sum(len(task.problems) + len(task.warnings) for task in self.tasks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "root": str(self.root), "errors": self.errors, "n_warnings": self.n_warnings}
