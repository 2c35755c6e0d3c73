"""The causal filter of a band: notch, edges, band-pass and decimation in one run of second-order sections.

It starts in the steady state of the first *sample*, never of the first chunk. There is no resampling by odd ratios: a
rate that no whole factor brings into 200 to 320 Hz stays as it is, and all times of a recipe are in milliseconds.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import signal

from rtbrain.config import Count, Positive
from rtbrain.errors import RateError
from rtbrain.messages import BoolArray, Chunk, FloatArray, StreamInfo

TARGET_HZ = (200.0, 320.0)
IDEAL_HZ = 250.0
MIN_BLOCK = 16
"""Samples that are filtered by one product; rounded up to a multiple of the decimation factor."""


@dataclass(frozen=True)
class Band:
    """One frequency band of the recipe."""

    name: str = "broad"
    low_hz: Positive = 1.0
    high_hz: Positive = 40.0
    order: Count = 2
    """Order of the Butterworth prototype; the band-pass has twice as many poles."""


@dataclass(frozen=True)
class NotchSettings:
    """Mains interference."""

    hz: Positive = 50.0
    width_hz: Positive = 2.0
    """Width of the notch at -3 dB."""


@dataclass(frozen=True)
class Edges:
    """A high-pass and a low-pass before all bands, inside the narrowest filter that any recording went through."""

    low_hz: Positive = 3.0
    low_order: Count = 6
    """Order of the Butterworth high-pass."""
    high_hz: Positive = 26.0
    high_order: Count = 8
    """Order of the Butterworth low-pass."""


def decimation_factor(rate_hz: float, highest_hz: float = 40.0) -> int:
    """Return the whole factor that brings a rate closest to 250 Hz within 200 to 320 Hz; 1 if there is none.

    The new rate is at least four times the highest band edge, so that the low-pass against aliases stays clear of it.
    """
    low, high = TARGET_HZ
    factors = [m for m in range(1, int(rate_hz // low) + 1) if max(low, 4 * highest_hz) <= rate_hz / m <= high]
    return min(factors, key=lambda m: abs(rate_hz / m - IDEAL_HZ), default=1)


def design(
    band: Band, notch: NotchSettings | None, rate_hz: float, factor: int = 1, edges: Edges | None = None
) -> FloatArray:
    """Return the sections of a band's filter at the source's rate: notch, edges, band, low-pass against aliases."""
    if rate_hz < 2.5 * band.high_hz:
        raise RateError(
            f"a stream of {rate_hz:g} Hz cannot carry the recipe's band {band.name} "
            f"({band.low_hz:g} to {band.high_hz:g} Hz); at least {2.5 * band.high_hz:g} Hz are needed"
        )
    parts = [signal.butter(band.order, [band.low_hz, band.high_hz], "bandpass", fs=rate_hz, output="sos")]
    if edges is not None:
        if edges.high_hz >= rate_hz / 2:
            raise RateError(
                f"a low-pass at {edges.high_hz:g} Hz needs a rate above {2 * edges.high_hz:g} Hz, not {rate_hz:g} Hz"
            )
        parts.insert(0, signal.butter(edges.high_order, edges.high_hz, "lowpass", fs=rate_hz, output="sos"))
        parts.insert(0, signal.butter(edges.low_order, edges.low_hz, "highpass", fs=rate_hz, output="sos"))
    if notch is not None:
        if notch.hz >= rate_hz / 2:
            raise RateError(f"a notch at {notch.hz:g} Hz needs a rate above {2 * notch.hz:g} Hz, not {rate_hz:g} Hz")
        parts.insert(0, signal.tf2sos(*signal.iirnotch(notch.hz, notch.hz / notch.width_hz, fs=rate_hz)))
    if factor > 1:
        # -60 dB from the lowest frequency on that folds into the band; flat and quick below.
        parts.append(signal.cheby2(6, 60, rate_hz / factor - band.high_hz, fs=rate_hz, output="sos"))
    return np.concatenate(parts)


def group_delay_s(sos: FloatArray, at_hz: float, rate_hz: float) -> float:
    """Return a filter's group delay in seconds at one frequency."""
    step = 0.01
    _, response = signal.freqz_sos(sos, worN=np.array([at_hz - step, at_hz + step]), fs=rate_hz)
    return float(-np.angle(response[1] / response[0]) / (2 * np.pi * 2 * step))


def block_response(sos: FloatArray, size: int, factor: int) -> FloatArray:
    """Return the matrix that turns a state and `size` samples into every `factor`-th output, and the state after them.

    Its columns are the answers of `sosfilt` to one unit of each state variable and to a unit impulse at each sample.
    """
    n_state = 2 * len(sos)
    inputs = np.vstack([np.zeros((n_state, size)), np.eye(size)])  # (columns, time)
    states = np.zeros((len(sos), n_state + size, 2))
    for i in range(n_state):
        states[i // 2, i, i % 2] = 1.0
    outputs, after = signal.sosfilt(sos, inputs, zi=states)
    return np.ascontiguousarray(np.vstack([outputs[:, ::factor].T, after.transpose(0, 2, 1).reshape(n_state, -1)]))


class BandFilter:
    """As `sosfilt(x)[::factor]` of a recording whose first sample had lasted for ever, over chunks.

    The grid's own index decides which samples stay. Channels that come back after a fault start anew.

    A block of samples is filtered by one product: what comes out, and the state after it, is linear in the state before
    and the samples, and the matrix is `sosfilt`'s own answer to each unit of them. Blocks have one size and lie on the
    grid, so the bits do not depend on the chunks; samples still to come in a block have weight 0 in what is put out.
    This costs a tenth of a `sosfilt` call for a live chunk, and less than one for long chunks too.
    """

    def __init__(
        self,
        band: Band,
        notch: NotchSettings | None = None,
        highest_hz: float | None = None,
        edges: Edges | None = None,
    ) -> None:
        self.band, self.notch, self.edges = band, notch, edges
        self.highest_hz = highest_hz or band.high_hz
        """The highest edge of all bands of the recipe, which have to share one rate."""

    def open(self, info: StreamInfo) -> StreamInfo:
        """Design the filter; its delay is declared at 10 Hz, or at the centre of a band without 10 Hz."""
        low, high = self.band.low_hz, self.band.high_hz
        self._factor = decimation_factor(info.rate_hz, self.highest_hz)
        sos = design(self.band, self.notch, info.rate_hz, self._factor, self.edges)
        self._size = self._factor * -(-MIN_BLOCK // self._factor)
        self._product = block_response(sos, self._size, self._factor)
        self._n_state = 2 * len(sos)
        self._offset = np.zeros(len(info.channels))  # each channel's first sample
        self._work = np.zeros((self._n_state + self._size, len(info.channels)))  # the state, then the block's samples
        self._answer = np.empty((len(self._product), len(info.channels)))  # what stays of the block, then the new state
        self._started = False
        at_hz = 10.0 if low < 10.0 < high else float(np.sqrt(low * high))
        info = info.delayed(filter_delay_s=group_delay_s(sos, at_hz, info.rate_hz))
        return replace(info, rate_hz=info.rate_hz / self._factor)

    def process(self, x: Chunk) -> Chunk:
        """Filter all samples and keep every `factor`-th."""
        factor, size, work = self._factor, self._size, self._work
        first = -(-x.start // factor)  # index of the first sample that stays
        if not len(x):
            return x.having(x.data, first)
        if not self._started or x.fresh is not None:
            self._start(x, np.ones(x.data.shape[1], bool) if x.fresh is None or not self._started else x.fresh)
        out = np.empty((-(-(x.start + len(x)) // factor) - first, x.data.shape[1]))
        row = written = 0
        while row < len(x):
            at = (x.start + row) % size
            end = min(size, at + len(x) - row)
            np.subtract(x.data[row : row + end - at], self._offset, out=work[self._n_state + at : self._n_state + end])
            np.matmul(self._product, work, out=self._answer)
            kept = self._answer[-(-at // factor) : -(-end // factor)]
            out[written : written + len(kept)] = kept
            written += len(kept)
            row += end - at
            if end == size:
                work[: self._n_state] = self._answer[size // factor :]
        return x.having(out, first)

    def flush(self) -> list[Chunk]:
        """Nothing is held back: what has not come out yet is the filter's own decay."""
        return []

    def _start(self, x: Chunk, channels: BoolArray) -> None:
        """Make it so that these channels' first sample had lasted since before the block began."""
        # A band-pass answers a constant with nothing, so it can be left out: then the state before is 0, and an
        # amplifier's offset of many millivolts costs no precision.
        at = self._n_state + x.start % self._size
        self._offset = np.where(channels, x.data[0], self._offset)
        self._work[:at] = np.where(channels, 0.0, self._work[:at])
        self._started = True


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
