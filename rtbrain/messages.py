"""What flows between stages: stream descriptions, chunks of samples, breaks, labels and tokens.

All messages are frozen. A chunk is *homogeneous*: one mask of good channels and one `filled` flag hold for
all its rows, so stages never look at flags sample by sample; whoever changes a flag cuts the chunk there.
Rows lie on the stream's sample grid: row i of a chunk is grid sample `start + i`, (start + i) / rate_hz seconds
after the stream's first sample.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

UNLABELLED: Final = -1
"""State of a run in which no template could be assigned (no GFP peak near, or too few good channels)."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What a stage may rely on before the first sample."""

    rate_hz: float
    channels: tuple[str, ...]
    unit: str = "uV"
    """Unit of the data: one of units.FACTORS, or "unknown"."""
    wait_s: float = 0.0
    """Longest time that stages so far hold a sample back before they pass it on (look-ahead)."""
    filter_delay_s: float = 0.0
    """Sum of the filters' group delays at 10 Hz (or the band's centre): content lags, samples do not."""

    def samples(self, ms: float) -> int:
        """Round a time of the recipe to whole samples at this rate."""
        return round(ms * self.rate_hz / 1000)

    def delayed(self, wait_samples: int = 0, filter_delay_s: float = 0.0) -> "StreamInfo":
        """Return the description after a stage that adds these delays."""
        return replace(
            self,
            wait_s=self.wait_s + wait_samples / self.rate_hz,
            filter_delay_s=self.filter_delay_s + filter_delay_s,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive samples of all channels."""

    data: FloatArray  # (n, channels), C-contiguous
    start: int = 0
    times: FloatArray | None = None
    """(n,) the source's own time stamps in seconds; only up to the continuity stage."""
    good: BoolArray | None = None
    """(channels,) which channels may be used; None means all."""
    filled: bool = False
    """The rows were interpolated over a short gap."""
    fresh: BoolArray | None = None
    """(channels,) channels whose signal comes back with this chunk's first row: filters restart there."""

    def __len__(self) -> int:
        return len(self.data)

    def having(self, data: FloatArray, start: int) -> "Chunk":
        """Return other rows under this chunk's mask: what a stage from the filters on makes of it."""
        return Chunk(data, start, None, self.good, self.filled)

    @property
    def quality(self) -> float:
        """Share of usable channels; 0 where the samples were filled in."""
        if self.filled:
            return 0.0
        return 1.0 if self.good is None else float(self.good.mean())


@dataclass(frozen=True, slots=True)
class Break:
    """The sample grid is interrupted: stages flush and start anew."""

    kind: Literal["gap", "context"]
    """gap: the token context goes on with a mark; context: a new context begins."""
    at: int
    """Index of the first sample after the break on the source's grid (not the tokens', which is coarser)."""
    at_s: float
    """The same in seconds after the stream's first sample."""
    missing: int
    """Samples that the grid lost in between (0 for a clock step, whose length means nothing)."""
    reason: str


def own_value(along: FloatArray, state: IntArray) -> FloatArray:
    """Return each row's value (of n, states) for its own state; 0 where it is unlabelled."""
    own: FloatArray = np.where(state >= 0, along[np.arange(len(state)), np.maximum(state, 0)], 0.0)
    return own


@dataclass(frozen=True, slots=True)
class Labels:
    """Microstate labels of consecutive samples, with what tokens are described by; arrays are (n,) unless said."""

    start: int
    state: IntArray
    own: FloatArray  # GFP along the state's own template, microvolts: GFP x |spatial correlation|; 0 if unlabelled
    along: FloatArray  # (n, states) the same for every template
    gfp: FloatArray  # microvolts
    level: FloatArray  # running GFP level, microvolts
    quality: FloatArray  # share of good channels; 0 where filled

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True, slots=True)
class Token:
    """One run of a microstate."""

    state: int
    start: int
    duration: int
    gfp: float
    gfp_rel: float
    corr: float
    quality: float
    power: float
    explained: float
    band: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """Closed tokens in order, as columns of equal length; iterating gives `Token`s."""

    state: IntArray
    start: IntArray  # first sample on the grid of the tokenizer's rate
    duration: IntArray  # samples
    gfp: FloatArray  # mean GFP in microvolts
    gfp_rel: FloatArray  # log of mean GFP over the running level when the token closed
    corr: FloatArray  # mean |spatial correlation| with the state's template
    quality: FloatArray  # mean share of good channels, filled samples counting 0
    power: FloatArray  # mean GFP squared
    explained: FloatArray  # mean of (GFP x correlation) squared: over power, the global explained variance
    band: IntArray

    def __len__(self) -> int:
        return len(self.state)

    def __iter__(self) -> Iterator[Token]:
        for row in zip(*(column.tolist() for column in self.columns().values()), strict=True):
            yield Token(*row)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, in the order of Token's fields."""
        return {name: getattr(self, name) for name in Token.__dataclass_fields__}

    def take(self, rows: IntArray | BoolArray | slice) -> "Tokens":
        """Return the chosen rows."""
        return Tokens(**{name: column[rows] for name, column in self.columns().items()})

    @classmethod
    def concat(cls, parts: "list[Tokens]") -> "Tokens":
        """Join batches in their order."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return NO_TOKENS
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in Token.__dataclass_fields__}
        )


def _no_tokens() -> Tokens:
    ints, floats = np.empty(0, np.int64), np.empty(0)
    return Tokens(ints, ints, ints, floats, floats, floats, floats, floats, floats, ints)


NO_TOKENS: Final = _no_tokens()
