"""A recording's spectrum as the device left it: robust, without any filter of ours."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtbrain.conditioning.units import FACTORS
from rtbrain.errors import SourceError
from rtbrain.messages import FloatArray
from rtbrain.sources.chunking import Source

SEGMENT_S = 8.0
"""Length of a segment where recordings are long enough: 0.5 Hz is resolved, and a line is 0.5 Hz wide at its foot."""
LEAST_SEGMENTS = 4
TOP_HZ = 125.0
NYQUIST_SHARE = 0.96
"""Just below half the rate the anti-alias filter of any device is seen, and not more than that."""
_FLOOR = 1e-12


@dataclass(frozen=True)
class Spectrum:
    """Power density in dB over 1 uV^2 / Hz on a regular grid from 0 Hz on."""

    step_hz: float
    db: FloatArray  # (frequencies,)

    @property
    def hz(self) -> FloatArray:
        """Frequencies, (n,)."""
        return np.arange(len(self.db), dtype=np.float64) * self.step_hz

    def level(self, hz: float, half_width_hz: float = 0.0) -> float:
        """Return the median level around a frequency; NaN where the spectrum does not reach or resolve it."""
        return self.between(hz - half_width_hz, hz + half_width_hz)

    def between(self, low_hz: float, high_hz: float) -> float:
        """Return the median level of a band; NaN where the spectrum does not reach or resolve it."""
        first, last = round(low_hz / self.step_hz), round(high_hz / self.step_hz)
        # The lowest bins hold what the window lets through of offset and trend.
        if first < 2 or last >= len(self.db):
            return float("nan")
        return float(np.median(self.db[first : last + 1]))


def segment_s(shortest_s: float) -> float:
    """Return the segment length for recordings that last at least so long; one length for a whole set."""
    return min(SEGMENT_S, shortest_s / ((LEAST_SEGMENTS + 1) / 2))


def measure_spectrum(source: Source, seconds: float = SEGMENT_S) -> Spectrum:
    """Return the median over half-overlapping segments of the median over channels of their log power.

    A blink, a movement or one bad electrode does not move it. Segments are never laid across an interruption.
    Memory does not grow with the channels or the length but for one spectrum per segment.

    Raises
    ------
    SourceError
        No channel has a finite, varying signal over a whole segment.
    """
    rate_hz = source.info.rate_hz
    n = max(8, round(seconds * rate_hz))
    window = np.hanning(n + 1)[:n, None]
    scale = 2.0 / (rate_hz * float((window**2).sum())) * FACTORS.get(source.info.unit, 1.0) ** 2
    ramp = np.linspace(-1.0, 1.0, n)
    ramp /= np.sqrt((ramp**2).sum())
    top = int(min(TOP_HZ, NYQUIST_SHARE * rate_hz / 2) * n / rate_hz) + 1
    levels = []
    for block in _segments(source, n):
        x = block - block.mean(axis=0)
        usable = np.isfinite(x).all(axis=0) & (np.ptp(x, axis=0) > 0)
        if not usable.any():
            continue
        x = x[:, usable]
        x = x - ramp[:, None] * (ramp @ x)
        power = np.abs(np.fft.rfft(x * window, axis=0)[:top]) ** 2 * scale  # (frequencies, channels)
        levels.append(np.median(10 * np.log10(np.maximum(power, _FLOOR)), axis=1))
    if not levels:
        raise SourceError(
            f"no channel has a usable signal over {n / rate_hz:g} s without interruption, so there is no spectrum; "
            "leave the recording out, or look at it with `rtbrain inspect`"
        )
    return Spectrum(rate_hz / n, np.median(levels, axis=0))


def _segments(source: Source, n: int) -> Iterator[FloatArray]:
    """Yield half-overlapping segments (n, channels) of uninterrupted samples."""
    hop = n // 2
    held: list[FloatArray] = []
    rows, expected, step_s = 0, None, 1.0 / source.info.rate_hz
    for chunk in source.chunks(hop):
        if chunk.times is not None and len(chunk):
            jumps = np.diff(chunk.times, prepend=chunk.times[0] if expected is None else expected - step_s)
            expected = float(chunk.times[-1]) + step_s
            if (jumps > 1.5 * step_s).any():
                held, rows = [], 0
                continue
        held.append(chunk.data)
        rows += len(chunk)
        if rows >= n:
            joined = np.concatenate(held)
            yield joined[:n]
            held = [joined[hop:]]
            rows = len(held[0])
