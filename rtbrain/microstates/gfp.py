"""Global field power, its running level, and a streaming finder of its peaks."""

import numpy as np
from scipy.signal import lfilter

from rtbrain.messages import FloatArray, IntArray

LONG = 200
"""From so many values on, lfilter is quicker than a loop."""


def global_field_power(data: FloatArray, n_good: int | None = None) -> FloatArray:
    """Return the spatial standard deviation of each row of average-referenced (n, channels) data.

    `n_good` counts the channels when some of them are bad, and hence 0. Each row is summed by itself in the same
    order, however many rows there are.
    """
    power = np.vecdot(data, data)
    gfp: FloatArray = np.sqrt(power / (n_good or data.shape[1]))
    return gfp


class RunningLevel:
    """As the mean of all values up to `time_constant` of them, from then on exponentially weighted, over chunks."""

    def __init__(self, time_constant: float) -> None:
        self._many = max(1, round(time_constant))
        self._share = 1.0 / self._many  # of a new value in the level
        self._keep = 1.0 - self._share
        self._seen = 0  # values so far, up to `_many`
        self._total = 0.0  # their sum
        self.value = 0.0
        """The level now; 0 before the first value."""

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the level after each value; `time_constant` is in values."""
        first = min(len(values), self._many - self._seen)
        if len(values) > LONG:
            if not first:
                return self._weighted(values)
            return np.concatenate([self._mean(values[:first]), self._weighted(values[first:])])
        # A live chunk has two or three values at this rate: a plain loop takes a tenth of an lfilter call.
        level = []
        for i, value in enumerate(values.tolist()):
            if i < first:
                self._seen += 1
                self._total += value
                self.value = self._total / self._seen
            else:
                self.value = self._keep * self.value + self._share * value
            level.append(self.value)
        return np.array(level)

    def _mean(self, values: FloatArray) -> FloatArray:
        if not len(values):
            return values
        sums = np.cumsum(np.append(self._total, values))[1:]
        level: FloatArray = sums / np.arange(self._seen + 1, self._seen + len(values) + 1)
        self._seen += len(values)
        self._total, self.value = float(sums[-1]), float(level[-1])
        return level

    def _weighted(self, values: FloatArray) -> FloatArray:
        if not len(values):
            return values
        level, _ = lfilter([self._share], [1.0, -self._keep], values, zi=[self._keep * self.value])
        self.value = float(level[-1])
        return np.asarray(level, np.float64)


class PeakFinder:
    """As all i with x[i - 1] < x[i] >= x[i + 1], thinned from the left, over chunks.

    Of two peaks closer than `min_distance` samples the earlier one stays. A peak is known one sample after it.
    """

    def __init__(self, min_distance: int, start: int) -> None:
        self._min_distance = min_distance
        self._next = start  # index of the next value
        self._tail = np.empty(0)  # the last two values
        self._newest = start - min_distance  # the last peak that was kept

    def __call__(self, values: FloatArray) -> IntArray:
        """Return the indices of the peaks that these values reveal."""
        x = np.concatenate([self._tail, values])
        first = self._next - len(self._tail)  # index of x[0]
        self._next += len(values)
        self._tail = x[-2:]
        inner = x[1:-1]
        found = np.flatnonzero((inner > x[:-2]) & (inner >= x[2:])) + (first + 1)
        if not len(found) or self._min_distance <= 1:
            return found
        kept = []
        for peak in found.tolist():
            if peak - self._newest >= self._min_distance:
                kept.append(peak)
                self._newest = peak
        return np.array(kept, np.int64)
