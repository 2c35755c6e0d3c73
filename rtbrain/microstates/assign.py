"""Labels by spatial correlation with the templates: at every sample, or at GFP peaks with borders in the middle."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rtbrain.config import NotNegative, Positive
from rtbrain.messages import UNLABELLED, BoolArray, Chunk, FloatArray, IntArray, Labels, StreamInfo, own_value
from rtbrain.microstates.gfp import PeakFinder, RunningLevel, global_field_power
from rtbrain.microstates.templates import Templates, referenced

BLOCK = 64
"""Rows of one product with the templates; see `measure`."""

CACHED = 16 * BLOCK
"""Rows that stay in the processor's cache between GFP and product: half a megabyte of 64 channels."""


@dataclass(frozen=True)
class AssignSettings:
    """How samples become states."""

    rule: Literal["peaks", "samples"] = "peaks"
    """peaks: label GFP peaks, borders half way between them; samples: label every sample."""
    min_peak_distance_ms: NotNegative = 10.0
    """Of two GFP peaks closer than this the earlier one stays."""
    max_peak_gap_ms: Positive = 250.0
    """Peaks farther apart than this have an unlabelled run between them; bounds the delay."""
    level_s: Positive = 30.0
    """Time constant of the running GFP level."""


def measure(data: FloatArray, maps: FloatArray, start: int, states: int, n_good: int) -> tuple[FloatArray, FloatArray]:
    """Return |data @ maps.T| (n, states) and the GFP (n,) of rows that begin at grid sample `start`.

    A product's last bits depend on its shape, and with them now and then a label. So rows are multiplied in blocks of
    one fixed shape whose borders lie on the grid: a row gets the same bits whatever chunk it came in. Maps come first
    and in eights because BLAS is twice as fast that way; `maps` is (states, channels), padded by `in_eights`, and only
    the first `states` of them are wanted. Both are taken of some blocks at a time, while the cache holds them.
    """
    n = len(data)
    along, gfp = np.empty((len(maps), n)), np.empty(n)
    for border in range(-(start % CACHED), n, CACHED):
        rows = slice(max(0, border), min(n, border + CACHED))
        gfp[rows] = global_field_power(data[rows], n_good)
        _multiply(data[rows], maps, start + rows.start, along[:, rows])
    return np.abs(along, out=along)[:states].T, gfp


def _multiply(data: FloatArray, maps: FloatArray, start: int, out: FloatArray) -> None:
    n = len(data)
    head = min(n, -start % BLOCK)
    tail = (n - head) % BLOCK
    if head:
        out[:, :head] = _padded(data[:head], maps, start % BLOCK)
    if n > head + tail:
        blocks = data[head : n - tail].reshape(-1, BLOCK, data.shape[1])
        places = out[:, head : n - tail].reshape(len(maps), -1, BLOCK)  # a view: products land where they belong
        np.matmul(maps, blocks.transpose(0, 2, 1), out=places.transpose(1, 0, 2))
    if tail:
        out[:, n - tail :] = _padded(data[n - tail :], maps, 0)


def _padded(rows: FloatArray, maps: FloatArray, at: int) -> FloatArray:
    block = np.zeros((BLOCK, rows.shape[1]))
    block[at : at + len(rows)] = rows
    product: FloatArray = np.matmul(maps, block.T)[:, at : at + len(rows)]
    return product


def in_eights(maps: FloatArray) -> FloatArray:
    """Return (states, channels) maps with rows of 0 added up to a multiple of 8."""
    return np.concatenate([maps, np.zeros((-len(maps) % 8, maps.shape[1]))])


def label(along: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the best correlated state of each row and its value; rows without any correlation stay unlabelled."""
    # Comparing whole columns, with small numbers for states, is many times as quick as argmax over each row.
    best = np.zeros(len(along))
    number = np.zeros(len(along), np.int16)  # of the state, from 1 on
    for i, column in enumerate(along.T, start=1):
        np.maximum(number, (column > best).view(np.int8) * np.int16(i), out=number)
        np.maximum(best, column, out=best)
    return number - np.int64(1), best


def spread(peaks: IntArray, states: IntArray, start: int, stop: int, max_gap: int) -> IntArray:
    """Return the labels of samples start..stop-1 from labelled peaks.

    Between peaks at most `max_gap` apart the border lies at the midpoint, rounded down, which still belongs to the
    earlier one. Elsewhere a peak reaches half of `max_gap` to each side, and the rest is unlabelled.
    """
    half = max_gap // 2
    left, right = peaks - half, peaks + half + 1  # each peak labels left..right-1
    near = np.flatnonzero(peaks[1:] - peaks[:-1] <= max_gap)
    middle = (peaks[near] + peaks[near + 1]) // 2 + 1
    right[near], left[near + 1] = middle, middle
    bounds = np.empty(2 * len(peaks) + 2, np.int64)  # unlabelled, peak, unlabelled, peak, ..., unlabelled
    bounds[0], bounds[1:-1:2], bounds[2:-1:2], bounds[-1] = start, left, right, stop
    bounds = np.minimum(np.maximum(bounds, start), stop)
    values = np.full(2 * len(peaks) + 1, UNLABELLED)
    values[1::2] = states
    return np.repeat(values, bounds[1:] - bounds[:-1])


class _Measure:
    """GFP along the templates, GFP, its level and quality of one chunk; shared by both rules."""

    def __init__(self, templates: Templates, band: int, settings: AssignSettings, min_coverage: float) -> None:
        self.settings = settings
        self._templates, self._band, self._min_coverage = templates, band, min_coverage

    def open(self, info: StreamInfo) -> None:
        self._maps = self._templates.on(info.channels)[self._band]
        self.n_states = len(self._maps)
        self._level = RunningLevel(self.settings.level_s * info.rate_hz)
        self._mask: bytes | None = None
        self._seen_by = self._scaled(self._maps, len(info.channels))  # the maps as the current mask sees them
        self._n_good, self._enough = len(info.channels), True

    def _scaled(self, maps: FloatArray, n_good: int) -> FloatArray:
        # A sample's GFP is its norm over the root of the number of channels: so scaled, products are GFP x correlation.
        return in_eights(maps / math.sqrt(max(1, n_good)))

    def _look(self, good: BoolArray | None) -> None:
        """Bring the maps to the channels that are good; all 0 where too few are left."""
        mask = None if good is None else good.tobytes()
        if mask == self._mask:
            return
        self._mask = mask
        self._n_good = self._maps.shape[1] if good is None else int(good.sum())
        self._enough = self._n_good >= max(3, self._min_coverage * len(self._templates.channels))
        maps = self._maps if good is None else referenced(self._maps, good)
        self._seen_by = self._scaled(maps if self._enough else np.zeros_like(maps), self._n_good)

    def __call__(self, x: Chunk) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return along (n, states), GFP, level and quality (n,)."""
        self._look(x.good)
        along, gfp = measure(x.data, self._seen_by, x.start, self.n_states, self._n_good)
        # What too few channels see is no field of the brain's: the level waits until there are enough again.
        level = self._level(gfp) if self._enough else np.full(len(x), self._level.value)
        return along, gfp, level, np.full(len(x), x.quality)


class LabelSamples:
    """As the best |correlation| of each sample, over chunks."""

    def __init__(self, templates: Templates, band: int, settings: AssignSettings, min_coverage: float) -> None:
        self._measure = _Measure(templates, band, settings, min_coverage)

    def open(self, info: StreamInfo) -> StreamInfo:
        """Bring the templates to the stream's channels."""
        self._measure.open(info)
        return info

    def process(self, x: Chunk) -> Labels:
        """Label every sample."""
        along, gfp, level, quality = self._measure(x)
        state, own = label(along)
        return Labels(x.start, state, own, along, gfp, level, quality)

    def flush(self) -> list[Labels]:
        """Nothing is held back."""
        return []


class LabelPeaks:
    """As `spread` over a whole recording's labelled GFP peaks, over chunks.

    Samples up to the newest peak are decided; after it they wait for the next peak, at most `max_peak_gap_ms`.
    """

    def __init__(self, templates: Templates, band: int, settings: AssignSettings, min_coverage: float) -> None:
        self.settings = settings
        self._measure = _Measure(templates, band, settings, min_coverage)

    def open(self, info: StreamInfo) -> StreamInfo:
        """Bring the templates to the stream's channels."""
        self._measure.open(info)
        self._max_gap = max(2, info.samples(self.settings.max_peak_gap_ms))
        self._min_distance = info.samples(self.settings.min_peak_distance_ms)
        self._finder: PeakFinder | None = None
        self._held = np.empty((0, self._measure.n_states + 3))  # along, GFP, level, quality of what is undecided
        self._start = 0  # index of the first held sample
        none = np.empty(0)
        self._nothing = Labels(0, np.empty(0, np.int64), none, np.empty((0, self._measure.n_states)), none, none, none)
        self._peak: tuple[int, int] | None = None  # the newest peak and its state, while it may still reach further
        return info.delayed(wait_samples=self._max_gap)

    def process(self, x: Chunk) -> Labels:
        """Label what is decided."""
        if self._finder is None:
            self._finder, self._start = PeakFinder(self._min_distance, x.start), x.start
        along, gfp, level, quality = self._measure(x)
        table = np.empty((len(x), self._measure.n_states + 3))
        table[:, :-3], table[:, -3], table[:, -2], table[:, -1] = along, gfp, level, quality
        self._held = np.concatenate([self._held, table]) if len(self._held) else table
        newest = self._start + len(self._held) - 1
        found = self._finder(gfp)
        peaks, states, stop = found, found, self._start
        if len(found):
            states = self._label_peaks(self._held[found - self._start, :-3])
            peaks, states = self._with_last(found, states)
            stop = int(found[-1]) + 1
            self._peak = stop - 1, int(states[-1])
        if self._peak is None or newest - self._peak[0] > self._max_gap:
            # No peak to come can be nearer than the newest sample, so this far nothing can be labelled any more.
            stop = max(stop, newest - self._max_gap // 2)
            if not len(found):
                peaks, states = self._with_last(found, found)
            self._peak = None
        return self._release(peaks, states, stop) if stop > self._start else self._nothing

    def flush(self) -> Labels:
        """Label the rest: it belongs to the last peak as far as that reaches."""
        none = np.empty(0, np.int64)
        return self._release(*self._with_last(none, none), self._start + len(self._held))

    def _with_last(self, peaks: IntArray, states: IntArray) -> tuple[IntArray, IntArray]:
        if self._peak is None:
            return peaks, states
        return np.concatenate([[self._peak[0]], peaks]), np.concatenate([[self._peak[1]], states])

    def _release(self, peaks: IntArray, states: IntArray, stop: int) -> Labels:
        start, self._start = self._start, stop
        table, self._held = self._held[: stop - start], self._held[stop - start :]
        state = spread(peaks, states, start, stop, self._max_gap)
        along = table[:, :-3]
        if not along[:, 0].all():  # a peak does not reach samples without enough good channels
            state = np.where(along.any(axis=1), state, UNLABELLED)
        return Labels(start, state, own_value(along, state), along, table[:, -3], table[:, -2], table[:, -1])

    def _label_peaks(self, along: FloatArray) -> IntArray:
        """As `label`, quicker for the one or two peaks of a live chunk."""
        return np.where(along.any(axis=1), along.argmax(axis=1), UNLABELLED)
