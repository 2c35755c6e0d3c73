"""What a simulated set consists of, before a sample of it is made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from rtbrain.messages import FloatArray
from rtbrain.simulation.seeding import generator
from rtbrain.training.trials import Value


@dataclass(frozen=True)
class Scale:
    """How much of a set to write."""

    subjects: int
    trials: int
    """Per person, where the layout leaves it free."""
    form: str
    """One of the layout's forms."""
    seed: int = 0
    seconds: int | None = None
    """Per trial; None where the layout's own lengths are to be used."""
    sessions: int = 1
    """Per person, where a set has several."""

    @property
    def trial_s(self) -> float:
        """Seconds per trial of a layout that leaves them free."""
        assert self.seconds is not None, "the layout has no lengths of its own"
        return float(self.seconds)

    def rng(self, subject: int) -> np.random.Generator:
        """Return the generator of a person's labels; it does not hang on how many people there are."""
        return generator(self.seed, "labels", subject)


@dataclass(frozen=True)
class Stretch:
    """Some seconds of a recording during which the label does not change."""

    seconds: float
    label: int | None = None
    """The class that acts on the EEG; None for rest."""
    trial: str | None = None
    """Name of the trial, as the set's reader gives it; None for what is no trial."""
    code: int | None = None
    """Trigger at its beginning."""
    fields: Mapping[str, Value] = field(default_factory=dict)
    """What the set's tables say of the trial."""


@dataclass(frozen=True)
class Take:
    """One continuous signal of one person."""

    subject: int
    """Counted from 0 over the set."""
    number: int
    """Which of the person's takes, counted from 0."""
    channels: tuple[str, ...]
    rate_hz: int
    stretches: tuple[Stretch, ...]
    seed: int = 0
    """Of what is stored beside the EEG."""
    planted: bool = False
    """Whether it gets the planted confound."""

    @property
    def seconds(self) -> float:
        """Length of the whole."""
        return sum(each.seconds for each in self.stretches)

    @property
    def n_samples(self) -> int:
        """Number of moments."""
        return round(self.seconds * self.rate_hz)

    @property
    def labels(self) -> set[int]:
        """Classes that occur in it."""
        return {each.label for each in self.stretches if each.label is not None}

    def beside(self) -> np.random.Generator:
        """Return the generator of signals that are not EEG."""
        return generator(self.seed, "beside", self.subject, self.number)

    def starts(self) -> Iterator[tuple[float, Stretch]]:
        """Give each stretch with the second at which it begins."""
        at = 0.0
        for each in self.stretches:
            yield at, each
            at += each.seconds


@dataclass(frozen=True)
class File:
    """One file of the set, with the takes in it."""

    path: str
    """Relative to the set's folder."""
    person: str
    """As the set's reader calls the subject."""
    takes: tuple[Take, ...]


Blocks = Callable[[Take], Iterator[FloatArray]]
"""Makes the samples of a take: consecutive (n, channels) arrays in microvolts."""


@dataclass(frozen=True)
class Layout:
    """How one of the sets is laid out on disk."""

    plan: Callable[[Scale], list[File]]
    """Decide on people, labels, files."""
    write: Callable[[Path, File, Blocks], None]
    """Write one file below the set's folder."""
    tables: Callable[[Path, Sequence[File], Scale], None]
    """Write what holds for the whole set: labels, people, descriptions."""
    subjects: int
    """By default."""
    labels: Literal["trial", "subject"]
    """Whether a label belongs to a trial or to a person."""
    n_classes: int
    """Classes that act on the EEG."""
    forms: tuple[str, ...] = ("original",)
    """The first is the default."""
    minutes: float | None = None
    """Per trial by default; None where the format fixes it."""
    trials: int | None = None
    """Per person by default; None where it is not to be chosen."""
    most_trials: int | None = None
    most_sessions: int = 1
    stored_bytes: float = 2.0
    """What a sample of an EEG channel takes on disk, at the most, with what is stored beside it."""


def halves(n_subjects: int) -> list[int]:
    """Return a class for each person, 0 for the first half and 1 for the other; the odd one is in the second."""
    return [int(subject >= n_subjects // 2) for subject in range(n_subjects)]
