"""Sources over arrays in memory or in a file that is loaded as a whole, and sources with fewer channels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtbrain.errors import ChannelError, UnitError
from rtbrain.messages import Chunk, StreamInfo
from rtbrain.sources.recording import SeekableSource

BLOCK_S = 30.0
MICROVOLTS = (1.0, 200.0)
"""Median |x| of EEG in microvolts: files that store no unit are refused outside this range."""


@dataclass(frozen=True)
class ArraySource(SeekableSource):
    """Samples that a function loads, when they are first asked for, as (channels, n)."""

    load: Callable[[], NDArray[Any]] = field(repr=False)
    info: StreamInfo
    n_samples: int

    def rows(self, first: int, stop: int) -> Iterator[Chunk]:
        """Give samples `first` to `stop` in blocks."""
        data = self.load()  # (channels, n)
        rows = max(1, round(BLOCK_S * self.info.rate_hz))
        for start in range(first, stop, rows):
            end = min(start + rows, stop)
            block = np.ascontiguousarray(data[:, start:end].T, np.float64)  # (n, channels)
            yield Chunk(block, start - first, np.arange(start, end) / self.info.rate_hz)


@dataclass(frozen=True)
class Picked(SeekableSource):
    """Some channels of another source."""

    source: SeekableSource
    positions: tuple[int, ...]
    info: StreamInfo
    n_samples: int

    def rows(self, first: int, stop: int) -> Iterator[Chunk]:
        """Give samples `first` to `stop` of the channels."""
        for chunk in self.source.rows(first, stop):
            yield replace(chunk, data=np.take(chunk.data, self.positions, axis=1))


def pick(source: SeekableSource, names: Sequence[str]) -> SeekableSource:
    """Return a source with only these channels, in this order."""
    have = source.info.channels
    missing = [name for name in names if name not in have]
    if missing:
        raise ChannelError(f"channels {', '.join(missing)} are missing; there are {', '.join(have)}")
    if tuple(names) == have:
        return source
    positions = tuple(have.index(name) for name in names)
    return Picked(source, positions, replace(source.info, channels=tuple(names)), source.n_samples)


def check_microvolts(where: object, data: NDArray[Any]) -> None:
    """Refuse data of a file without a unit whose amplitude is not that of EEG in microvolts."""
    some = data[..., :: max(1, data.size // 100_000)]  # a median of all takes longer than reading them
    median, (low, high) = float(np.median(np.abs(some))), MICROVOLTS
    if not low <= median <= high:
        raise UnitError(
            f"{where}: median |x| is {median:.3g}, of EEG in microvolts it is {low:g} to {high:g}; "
            "the file states no unit: check how it was exported"
        )
