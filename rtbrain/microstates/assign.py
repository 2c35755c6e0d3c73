"""Labels by spatial correlation with the templates: at every sample, or at GFP peaks with borders in the middle."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rtbrain.messages import UNLABELLED, BoolArray, Chunk, FloatArray, IntArray, Labels, StreamInfo
from rtbrain.microstates.gfp import PeakFinder, RunningLevel, global_field_power
from rtbrain.microstates.templates import Templates, referenced


@dataclass(frozen=True)
class AssignSettings:
    """How samples become states."""

    rule: Literal["peaks", "samples"] = "peaks"
    """peaks: label GFP peaks, borders half way between them; samples: label every sample."""
    min_peak_distance_ms: float = 10.0
    """Of two GFP peaks closer than this the earlier one stays."""
    max_peak_gap_ms: float = 250.0
    """Peaks farther apart than this have an unlabelled run between them; bounds the delay."""
    level_s: float = 30.0
    """Time constant of the running GFP level."""


def correlate(data: FloatArray, maps: FloatArray, gfp: FloatArray, n_good: int) -> FloatArray:
    """Return |spatial correlation| (n, states) of average-referenced rows with unit-norm maps.

    einsum sums each row by itself in one order; `data @ maps.T` would change in its last bits with the number of rows,
    and with it now and then a label.
    """
    corr: FloatArray = np.abs(np.einsum("tc,kc->tk", data, maps))
    norm = np.maximum(gfp * math.sqrt(n_good), np.finfo(float).tiny)  # a row without field has products of 0
    corr /= norm[:, None]
    return corr


def label(corr: FloatArray) -> IntArray:
    """Return the best correlated state of each row; rows without any correlation stay unlabelled."""
    if not len(corr):
        return np.empty(0, np.int64)
    state: IntArray = corr.argmax(axis=1)
    dead = corr.max(axis=1) <= 0
    return np.where(dead, UNLABELLED, state) if dead.any() else state


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
    """Correlations, GFP, its level and quality of one chunk; shared by both rules."""

    def __init__(self, templates: Templates, band: int, settings: AssignSettings, min_coverage: float) -> None:
        self.settings = settings
        self._templates, self._band, self._min_coverage = templates, band, min_coverage

    def open(self, info: StreamInfo) -> None:
        self.maps = self._templates.on(info.channels)[self._band]
        self._level = RunningLevel(self.settings.level_s * info.rate_hz)
        self._masked: tuple[bytes, FloatArray, int] = (b"", self.maps, len(info.channels))

    def _for_mask(self, good: BoolArray) -> tuple[FloatArray, int]:
        """Return the maps as the good channels see them; all 0 where too few are left."""
        key = good.tobytes()
        if key != self._masked[0]:
            n_good = int(good.sum())
            enough = n_good >= max(3, self._min_coverage * len(self._templates.channels))
            maps = referenced(self.maps, good) if enough else np.zeros_like(self.maps)
            self._masked = key, maps, n_good
        return self._masked[1], self._masked[2]

    def __call__(self, x: Chunk) -> FloatArray:
        """Return (n, states + 3): correlations, then GFP, level and quality."""
        maps, n_good = (self.maps, x.data.shape[1]) if x.good is None else self._for_mask(x.good)
        gfp = global_field_power(x.data, n_good)
        n_states = len(maps)
        table = np.empty((len(x), n_states + 3))
        table[:, :n_states] = correlate(x.data, maps, gfp, n_good)
        table[:, n_states] = gfp
        table[:, n_states + 1] = self._level(gfp)
        table[:, n_states + 2] = x.quality
        return table


def _labels(table: FloatArray, state: IntArray, start: int) -> Labels:
    return Labels(start, state, table[:, :-3], table[:, -3], table[:, -2], table[:, -1])


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
        table = self._measure(x)
        return _labels(table, label(table[:, :-3]), x.start)

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
        self._held = np.empty((0, len(self._measure.maps) + 3))
        self._start = 0  # index of the first held sample
        self._peak: tuple[int, int] | None = None  # the newest peak and its state, while it may still reach further
        return info.delayed(wait_samples=self._max_gap)

    def process(self, x: Chunk) -> Labels:
        """Label what is decided."""
        if self._finder is None:
            self._finder, self._start = PeakFinder(self._min_distance, x.start), x.start
        table = self._measure(x)
        self._held = np.concatenate([self._held, table]) if len(self._held) else table
        newest = self._start + len(self._held) - 1
        found = self._finder(table[:, -3])
        if len(found):
            states = label(self._held[found - self._start, :-3])
            stop, peaks, states = int(found[-1]) + 1, *self._with_last(found, states)
            self._peak = (int(found[-1]), int(states[-1]))
        else:
            stop, (peaks, states) = self._start, self._with_last(found, found)
        if self._peak is None or newest - self._peak[0] > self._max_gap:
            # No peak to come can be nearer than the newest sample, so this far nothing can be labelled any more.
            stop = max(stop, newest - self._max_gap // 2)
            self._peak = None
        return self._release(peaks, states, stop)

    def flush(self) -> Labels:
        """Label the rest: it belongs to the last peak as far as that reaches."""
        none = np.empty(0, np.int64)
        return self._release(*self._with_last(none, none), self._start + len(self._held))

    def _with_last(self, peaks: IntArray, states: IntArray) -> tuple[IntArray, IntArray]:
        if self._peak is None:
            return peaks, states
        return np.concatenate([[self._peak[0]], peaks]), np.concatenate([[self._peak[1]], states])

    def _release(self, peaks: IntArray, states: IntArray, stop: int) -> Labels:
        if stop == self._start:
            return _labels(self._held[:0], np.empty(0, np.int64), stop)
        state = spread(peaks, states, self._start, stop, self._max_gap)
        n = stop - self._start
        table, self._held = self._held[:n], self._held[n:]
        labels = _labels(table, state, self._start)
        self._start = stop
        return labels
