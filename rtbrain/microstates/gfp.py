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
    power = np.einsum("tc,tc->t", data, data)
    gfp: FloatArray = np.sqrt(power / (n_good or data.shape[1]))
    return gfp


class RunningLevel:
    """As the exponentially weighted mean of all values so far, over chunks (weights sum to 1 from the start)."""

    def __init__(self, time_constant: float) -> None:
        self._gain = 1.0 / max(1.0, time_constant)
        self._total = self._weight = 0.0  # weighted sum of the values, and the sum of their weights

    @property
    def value(self) -> float:
        """The level now; 0 before the first value."""
        return self._total / self._weight if self._weight else 0.0

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the level after each value; `time_constant` is in values."""
        gain, keep, total, weight = self._gain, 1.0 - self._gain, self._total, self._weight
        if len(values) > LONG:
            return self._of_many(values)
        # A live chunk has two or three values at this rate: a plain loop takes a tenth of an lfilter call.
        level = []
        for value in values.tolist():
            total = keep * total + gain * value
            weight = keep * weight + gain
            level.append(total / weight)
        self._total, self._weight = total, weight
        return np.array(level)

    def _of_many(self, values: FloatArray) -> FloatArray:
        """As above, by lfilter."""
        b, a = [self._gain], [1.0, self._gain - 1.0]
        both = np.ones((2, len(values)))
        both[0] = values
        sums, _ = lfilter(b, a, both, zi=-a[1] * np.array([[self._total], [self._weight]]))
        self._total, self._weight = sums[:, -1].tolist()
        level: FloatArray = sums[0] / sums[1]
        return level


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
