"""What a data set is made of: trials with a subject, an interval of a recording and raw label fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rtbrain.sources.chunking import Source

Value = str | float
"""A raw field of a trial, as the data set states it: a rating, a group, a condition."""


@dataclass(frozen=True)
class Trial:
    """One labelled stretch of EEG."""

    subject: str
    """Unique within the data set; never on two sides of a split."""
    name: str
    """Unique within the data set, such as `sub-01_run-03` or `s05_trial-17`; the key of caches and tables."""
    files: tuple[Path, ...]
    """All files that the samples rest on, the one that holds them first; a header beside it may name it, so only
    the first one's content decides whether two trials are the same recording."""
    length_s: float
    open: Callable[[], Source] = field(repr=False, compare=False)
    """Opens the trial's samples, and only these."""
    fields: Mapping[str, Value] = field(default_factory=dict)
    """What labels and filters are made of."""
    stimulus: str | None = None
    """What was shown; for leave-one-stimulus-out."""
    facts: Mapping[str, Value] = field(default_factory=dict)
    """What is known and not brain: rate_hz, n_channels, header date, prefilter; for the nuisance audit."""
    label: int | None = None
    """Index of the class in the task; None before a task was chosen."""

    def labelled(self, label: int) -> "Trial":
        """Return the trial with its class."""
        return replace(self, label=label)


@dataclass(frozen=True)
class Problem:
    """A file or entry that could not be used."""

    where: str
    what: str
    """What is wrong, and what to do about it."""

    def __str__(self) -> str:
        return self.what if self.what.startswith(self.where) else f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Found:
    """What a reader found under a root folder."""

    trials: tuple[Trial, ...]
    problems: tuple[Problem, ...] = ()
    same_person: tuple[tuple[str, ...], ...] = ()
    """Groups of subjects that may be one person: declared, or with a recording in common anywhere in the set, used
    or not. Pass them on to every split: one task's trials alone may not show it."""
    root: Path | None = None
    """Where it was found."""
