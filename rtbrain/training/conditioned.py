"""The conditioned EEG itself, thinned out to the rate that networks on samples read."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtbrain.conditioning.filters import Band
from rtbrain.messages import Break, FloatArray, IntArray
from rtbrain.pipeline import Recipe, build, run
from rtbrain.sources.chunking import Source

RATE_HZ = 128.0
"""About so many samples a second are kept: every second or third one, as far as the band's upper edge allows."""
_SPARE = 3.0
"""Least rate in upper edges: what lies beyond the edge has to be weak where it would fold back into the band."""


@dataclass(frozen=True)
class Conditioned:
    """Samples after the warm-up; a channel that is missing or bad is 0."""

    data: NDArray[np.float32]  # (n, channels) microvolts
    second: FloatArray  # (n,) seconds after the warm-up
    piece: IntArray  # (n,) counts the stretches between breaks
    rate_hz: float

    def windows(self, n: int, seconds: float | None = None) -> NDArray[np.float32]:
        """Return (windows, channels, n) from the first seconds, one after the other, none across a break.

        Where not one fits, the last window is filled up with zeros, so that an early question has an answer.
        """
        end = len(self.data) if seconds is None else int(np.searchsorted(self.second, seconds))
        kept, last = list[int](), -n
        for start in self.starts(n, end).tolist():
            if start >= last + n:
                kept.append(start)
                last = start
        if not kept:
            padded = np.zeros((1, n, self.data.shape[1]), np.float32)
            padded[0, : min(n, end)] = self.data[: min(n, end)]
            return padded.transpose(0, 2, 1)
        return np.stack([self.data[start : start + n] for start in kept]).transpose(0, 2, 1)

    def starts(self, n: int, end: int | None = None) -> IntArray:
        """Return the rows at which a window of n samples can begin without a break in it."""
        end = len(self.data) if end is None else end
        first = np.arange(max(0, end - n + 1))
        found: IntArray = first[self.piece[first] == self.piece[first + n - 1]]
        return found


def conditioned(source: Source, recipe: Recipe) -> Conditioned:
    """Run a source through the chain of a recipe that names its channels, in one band that spans all of its bands."""
    low, high = min(band.low_hz for band in recipe.bands), max(band.high_hz for band in recipe.bands)
    if len(recipe.bands) > 1:
        recipe = replace(recipe, bands=(Band("whole", low, high),))
    chain = build(recipe, upto="samples")
    info = chain.open(source.info)
    at = [recipe.channels.names.index(name) for name in info.channels]
    every = max(1, min(round(info.rate_hz / RATE_HZ), int(info.rate_hz / (_SPARE * high))))
    data: list[NDArray[np.float32]] = []
    rows: list[IntArray] = []
    pieces: list[IntArray] = []
    piece = 0
    for item in run(chain, source.chunks()):
        if isinstance(item, Break):
            piece += 1
            continue
        row = item.start + np.arange(len(item))
        kept = row % every == 0
        values = np.zeros((int(kept.sum()), len(recipe.channels.names)), np.float32)
        good = np.ones(len(at)) if item.good is None else item.good.astype(float)
        values[:, at] = np.where(good > 0, item.data[kept], 0.0)
        data.append(values)
        rows.append(row[kept])
        pieces.append(np.full(len(values), piece))
    row = np.concatenate([*rows, np.empty(0, np.int64)])
    second = row / info.rate_hz - recipe.warmup_ms / 1000
    empty = np.empty((0, len(recipe.channels.names)), np.float32)
    return Conditioned(np.concatenate([*data, empty]), second, np.concatenate([*pieces, row[:0]]), info.rate_hz / every)
