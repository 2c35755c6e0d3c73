"""Runs of equal labels: the causal minimum duration, and merging into tokens."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rtbrain.messages import NO_TOKENS, FloatArray, IntArray, Labels, StreamInfo, Tokens, own_value

TINY: Final = float(np.finfo(float).tiny)
"""Stands for a GFP of 0, where the product with any template is 0 too."""


def run_starts(state: IntArray) -> IntArray:
    """Return where runs of equal values begin."""
    changes = np.flatnonzero(state[1:] != state[:-1]) + 1
    return np.concatenate([[0], changes])


class MinDuration:
    """As taking a change of state only once it has lasted `m` samples, dated back to its start, over chunks.

    Shorter runs belong to the state before them; the first run of a stream counts at once.
    """

    def __init__(self, min_duration_ms: float) -> None:
        self.min_duration_ms = min_duration_ms

    def open(self, info: StreamInfo) -> StreamInfo:
        """Turn the duration into samples."""
        self._m = max(1, info.samples(self.min_duration_ms))
        self._current: int | None = None
        self._held: Labels | None = None  # a run too short yet to count
        return info.delayed(wait_samples=self._m - 1)

    def process(self, x: Labels) -> Labels:
        """Rewrite the states that are decided."""
        if self._m == 1 or not len(x):
            return x
        if self._held is not None:
            x = _join(self._held, x)
        starts = run_starts(x.state)
        ends = np.append(starts[1:], len(x))
        values = x.state[starts]
        decided = len(x)
        for i, (value, start, end) in enumerate(zip(values.tolist(), starts.tolist(), ends.tolist(), strict=True)):
            if self._current is None or end - start >= self._m:
                self._current = value
            elif value != self._current and end == len(x):
                decided = start
                break
            values[i] = self._current
        state = np.repeat(values, ends - starts)
        self._held = _rows(x, slice(decided, None)) if decided < len(x) else None
        return _relabelled(_rows(x, slice(0, decided)), state[:decided])

    def flush(self) -> list[Labels]:
        """Give the unfinished run to the state before it."""
        if self._held is None or self._current is None:
            return []
        return [_relabelled(self._held, np.full(len(self._held), self._current))]


def _relabelled(x: Labels, state: IntArray) -> Labels:
    return replace(x, state=state, own=own_value(x.along, state))


def _columns(labels: Labels) -> tuple[NDArray[np.generic], ...]:
    return labels.state, labels.own, labels.along, labels.gfp, labels.level, labels.quality


def _join(a: Labels, b: Labels) -> Labels:
    return Labels(a.start, *(np.concatenate(pair) for pair in zip(_columns(a), _columns(b), strict=True)))


def _rows(x: Labels, rows: slice) -> Labels:
    # Copies, so that a held row does not keep a whole recording's table alive.
    return Labels(x.start + (rows.start or 0), *(column[rows].copy() for column in _columns(x)))  # type: ignore[arg-type]


def _summands(x: Labels) -> FloatArray:
    """Return what is averaged over a token's samples as rows: GFP, correlation, quality, power and explained power."""
    rows = np.empty((5, len(x)))
    rows[0], rows[2] = x.gfp, x.quality
    np.divide(x.own, np.maximum(x.gfp, TINY), out=rows[1])
    np.multiply(x.gfp, x.gfp, out=rows[3])
    np.multiply(x.own, x.own, out=rows[4])
    return rows


class MergeRuns:
    """As `itertools.groupby` on the labels with the mean of each attribute, over chunks."""

    def __init__(self, band: int) -> None:
        self.band = band
        self.until = 0
        """Labels before this sample are known: every token still to come ends here or later."""

    def open(self, info: StreamInfo) -> StreamInfo:
        """Start without an open run."""
        self.until = 0
        self._open: tuple[int, int, FloatArray, float] | None = None  # state, start, sums of attributes, level
        return info

    def process(self, x: Labels) -> Tokens:
        """Close the runs that a following label ends."""
        if not len(x):
            return NO_TOKENS
        self.until = x.start + len(x)
        starts = run_starts(x.state)
        # The open run joins the first one if the state is the same; else it comes before it, as a row of its own.
        extra = 0 if self._open is None or self._open[0] == x.state[0] else 1
        n_runs = len(starts) + extra
        state, begin, level = np.empty(n_runs, np.int64), np.empty(n_runs + 1, np.int64), np.empty(n_runs)
        state[extra:], begin[extra:-1] = x.state[starts], starts + x.start
        begin[-1] = self.until
        level[extra:] = x.level[begin[extra + 1 :] - (x.start + 1)]  # at each run's last sample
        sums = np.empty((5, n_runs))
        np.add.reduceat(_summands(x), starts, axis=1, out=sums[:, extra:])
        if self._open is not None:
            state[0], begin[0], so_far, level_then = self._open
            if extra:
                sums[:, 0], level[0] = so_far, level_then
            else:
                sums[:, 0] += so_far
        self._open = int(state[-1]), int(begin[-2]), sums[:, -1].copy(), float(level[-1])
        if n_runs == 1:
            return NO_TOKENS
        return self._tokens(state[:-1], begin[:-2], begin[1:-1] - begin[:-2], sums[:, :-1], level[:-1])

    def flush(self) -> Tokens:
        """Close the last run."""
        if self._open is None:
            return NO_TOKENS
        state, start, sums, level = self._open
        self._open = None
        return self._tokens(
            np.array([state]), np.array([start]), np.array([self.until - start]), sums[:, None], np.array([level])
        )

    def _tokens(
        self, state: IntArray, start: IntArray, duration: IntArray, sums: FloatArray, level: FloatArray
    ) -> Tokens:
        gfp, corr, quality, power, explained = sums / duration
        relative = np.log(np.divide(gfp, level, out=np.ones_like(gfp), where=(gfp > 0) & (level > 0)))
        band = np.full(len(state), self.band)
        return Tokens(state, start, duration, gfp, relative, corr, quality, power, explained, band)
