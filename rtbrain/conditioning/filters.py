"""The causal filter of a band: notch, band-pass and decimation in one run of second-order sections.

It starts in the steady state of the first *sample*, never of the first chunk. There is no resampling by odd ratios: a
rate that no whole factor brings into 200 to 320 Hz stays as it is, and all times of a recipe are in milliseconds.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from rtbrain.errors import RateError
from rtbrain.messages import Chunk, FloatArray, StreamInfo

TARGET_HZ = (200.0, 320.0)
IDEAL_HZ = 250.0


@dataclass(frozen=True)
class Band:
    """One frequency band of the recipe."""

    name: str = "broad"
    low_hz: float = 1.0
    high_hz: float = 40.0
    order: int = 2
    """Order of the Butterworth prototype; the band-pass has twice as many poles."""


@dataclass(frozen=True)
class NotchSettings:
    """Mains interference."""

    hz: float = 50.0
    width_hz: float = 2.0
    """Width of the notch at -3 dB."""


def decimation_factor(rate_hz: float) -> int:
    """Return the whole factor that brings a rate closest to 250 Hz within 200 to 320 Hz; 1 if there is none."""
    low, high = TARGET_HZ
    factors = [m for m in range(1, int(rate_hz // low) + 1) if low <= rate_hz / m <= high]
    return min(factors, key=lambda m: abs(rate_hz / m - IDEAL_HZ), default=1)


def design(band: Band, notch: NotchSettings | None, rate_hz: float) -> FloatArray:
    """Return the sections of a band's filter at the source's rate: notch, band-pass, low-pass against aliases."""
    if rate_hz < 2.5 * band.high_hz:
        raise RateError(
            f"a stream of {rate_hz:g} Hz cannot carry the recipe's band {band.name} "
            f"({band.low_hz:g} to {band.high_hz:g} Hz); at least {2.5 * band.high_hz:g} Hz are needed"
        )
    parts = [signal.butter(band.order, [band.low_hz, band.high_hz], "bandpass", fs=rate_hz, output="sos")]
    if notch is not None:
        if notch.hz >= rate_hz / 2:
            raise RateError(f"a notch at {notch.hz:g} Hz needs a rate above {2 * notch.hz:g} Hz, not {rate_hz:g} Hz")
        parts.insert(0, signal.tf2sos(*signal.iirnotch(notch.hz, notch.hz / notch.width_hz, fs=rate_hz)))
    factor = decimation_factor(rate_hz)
    if factor > 1:
        # -60 dB from the lowest frequency on that folds into the band; flat and quick below.
        parts.append(signal.cheby2(6, 60, rate_hz / factor - band.high_hz, fs=rate_hz, output="sos"))
    return np.concatenate(parts)


def group_delay_s(sos: FloatArray, at_hz: float, rate_hz: float) -> float:
    """Return a filter's group delay in seconds at one frequency."""
    step = 0.01
    _, response = signal.freqz_sos(sos, worN=np.array([at_hz - step, at_hz + step]), fs=rate_hz)
    return float(-np.angle(response[1] / response[0]) / (2 * np.pi * 2 * step))


class BandFilter:
    """As `sosfilt(x)[::factor]` of a recording whose first sample had lasted for ever, over chunks.

    The grid's own index decides which samples stay. Channels that come back after a fault start anew.
    """

    def __init__(self, band: Band, notch: NotchSettings | None = None) -> None:
        self.band, self.notch = band, notch

    def open(self, info: StreamInfo) -> StreamInfo:
        """Design the filter; its delay is declared at 10 Hz, or at the centre of a band without 10 Hz."""
        low, high = self.band.low_hz, self.band.high_hz
        self._sos = design(self.band, self.notch, info.rate_hz)
        self._factor = decimation_factor(info.rate_hz)
        self._steady = signal.sosfilt_zi(self._sos)[:, :, None]  # (sections, 2, 1) per unit of input
        self._zi: FloatArray | None = None
        at_hz = 10.0 if low < 10.0 < high else float(np.sqrt(low * high))
        info = info.delayed(filter_delay_s=group_delay_s(self._sos, at_hz, info.rate_hz))
        return replace(info, rate_hz=info.rate_hz / self._factor)

    def process(self, x: Chunk) -> Chunk:
        """Filter all samples and keep every `factor`-th."""
        if not len(x):
            return Chunk(x.data, -(-x.start // self._factor))
        if self._zi is None:
            self._zi = self._steady * x.data[0]
        elif x.fresh is not None:
            self._zi = np.where(x.fresh, self._steady * x.data[0], self._zi)
        y: NDArray[np.float64]
        y, self._zi = signal.sosfilt(self._sos, x.data, axis=0, zi=self._zi)
        first = -x.start % self._factor
        data = np.ascontiguousarray(y[first :: self._factor])
        return x.having(data, (x.start + first) // self._factor)

    def flush(self) -> list[Chunk]:
        """Nothing is held back: what has not come out yet is the filter's own decay."""
        return []


class WarmUp:
    """As `x[n:]`, over chunks: drops what the filters answer before they have settled."""

    def __init__(self, warmup_ms: float) -> None:
        self.warmup_ms = warmup_ms

    def open(self, info: StreamInfo) -> StreamInfo:
        """Count from here."""
        self._left = info.samples(self.warmup_ms)
        return info

    def process(self, x: Chunk) -> Chunk:
        """Drop the first samples."""
        if not self._left:
            return x
        dropped = min(self._left, len(x))
        self._left -= dropped
        return x.having(x.data[dropped:], x.start + dropped)

    def flush(self) -> list[Chunk]:
        """Nothing is held back."""
        return []
