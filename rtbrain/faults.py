"""What goes wrong with amplifiers and networks, from a script, so that a lab can rehearse it with a recording.

A script is a YAML file: lists of faults by kind, each with the time at which it begins, in seconds of signal after the
first sample that is sent. Example:

    loss: [{at_s: 10, for_s: 0.3}]
    dead: [{at_s: 20, for_s: 5, channels: [Cz]}]
    clock_step: [{at_s: 30, step_s: -60}]
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt

from rtbrain.config import NotNegative, Positive, Share, load_yaml, parse
from rtbrain.messages import BoolArray, FloatArray


@dataclass(frozen=True)
class Span:
    """When a fault is there."""

    at_s: NotNegative
    for_s: Positive | None = None
    """Left out: to the end."""

    @property
    def end_s(self) -> float:
        """When it is over."""
        return math.inf if self.for_s is None else self.at_s + self.for_s

    def rows(self, at_s: FloatArray) -> BoolArray:
        """Tell which rows it strikes."""
        return np.asarray((at_s >= self.at_s) & (at_s < self.end_s))


@dataclass(frozen=True)
class Loss(Span):
    """Samples are never sent."""

    share: Share = 1.0
    """Of the samples, at random."""


@dataclass(frozen=True)
class Duplicate(Span):
    """Samples are sent twice."""

    share: Share = 1.0


@dataclass(frozen=True)
class Jitter(Span):
    """Stamps stray."""

    ms: Positive = 3.0
    """Standard deviation."""


@dataclass(frozen=True)
class RateError(Span):
    """The device runs slower (or, below 0, faster) than it says."""

    percent: Annotated[float, Gt(-50)] = 0.1


@dataclass(frozen=True)
class Stop:
    """Something that ends again."""

    at_s: NotNegative
    for_s: Positive

    @property
    def end_s(self) -> float:
        """When it is over."""
        return self.at_s + self.for_s


@dataclass(frozen=True)
class ClockStep:
    """The device's clock is set."""

    at_s: NotNegative
    step_s: float


@dataclass(frozen=True)
class Electrodes(Span):
    """A fault of some channels."""

    channels: tuple[str, ...] = ()
    """By the recording's own names; all if left out."""


@dataclass(frozen=True)
class Pop(Electrodes):
    """An electrode jumps."""

    uv: float = 5000.0


@dataclass(frozen=True)
class NotFinite(Electrodes):
    """Values are no numbers."""

    value: Literal["nan", "inf"] = "nan"


@dataclass(frozen=True)
class Scale(Electrodes):
    """Values are in another unit than declared."""

    factor: float = 1e6


@dataclass(frozen=True)
class Disconnect(Stop):
    """The stream ends, and comes back, perhaps as another one."""

    source_id: str | None = None
    """The id with which it comes back, if it is a new one."""
    reverse_channels: bool = False
    """It comes back with its channels in the reverse order."""
    without: tuple[str, ...] = ()
    """It comes back without these channels."""
    rate_hz: Annotated[float, Ge(1)] | None = None
    """It comes back declaring another rate."""


@dataclass(frozen=True)
class Faults:
    """A script; see the module's text."""

    seed: int = 0
    loss: tuple[Loss, ...] = ()
    duplicate: tuple[Duplicate, ...] = ()
    jitter: tuple[Jitter, ...] = ()
    rate_error: tuple[RateError, ...] = ()
    burst: tuple[Stop, ...] = ()
    """Samples are held back and then sent all at once, with their true stamps."""
    stall: tuple[Stop, ...] = ()
    """The device pauses: the recording goes on later by so much."""
    clock_step: tuple[ClockStep, ...] = ()
    dead: tuple[Electrodes, ...] = ()
    """The channel keeps its value."""
    pop: tuple[Pop, ...] = ()
    not_finite: tuple[NotFinite, ...] = ()
    scale: tuple[Scale, ...] = ()
    disconnect: tuple[Disconnect, ...] = ()
    swapped_labels: tuple[tuple[str, str], ...] = ()
    """Pairs of channels whose labels are exchanged."""
    declared_unit: Literal["V", "mV", "uV", "nV"] | None = None
    """The unit that the stream claims."""


def load_faults(path: Path) -> Faults:
    """Read a script."""
    return parse(Faults, load_yaml(path), str(path))
