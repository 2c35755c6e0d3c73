"""A causal canceller of a narrow line and its multiples that sit inside the EEG's own bands.

Harmonics of the mains that a recorder folds down to some 5 Hz, and their multiples, come and go with the place and the
day of a recording. A fixed notch does not meet them, for they drift, so they are looked for again and again in the past
samples. Where there is none the notches stay where they were: every recording has as many holes of the same width.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import signal

from rtbrain.conditioning.filters import MIN_BLOCK, block_response
from rtbrain.config import Count, Positive
from rtbrain.errors import ConfigError, RateError
from rtbrain.messages import BoolArray, Chunk, FloatArray, StreamInfo

NEIGHBOURS_HZ = 1.0
"""A line is compared with the spectrum up to so far on both sides."""

LOBE = 2
"""Bins on both sides of its own into which a Hann window spreads a line."""


@dataclass(frozen=True)
class LineSettings:
    """Where a line is looked for, and the notches that are put on it and its multiples."""

    low_hz: Positive = 3.9
    high_hz: Positive = 6.4
    start_hz: Positive = 5.4
    """Where the notches are until a line has been found."""
    contrast_db: Positive = 10.0
    """A line stands out of the spectrum beside it by more than this; the strongest one is taken."""
    every_s: Positive = 2.0
    """Time between two looks; rounded down to whole blocks of samples."""
    window_s: Positive = 8.0
    """What a look takes in: the newest so many seconds, rounded down to a multiple of the time between looks."""
    multiples: Count = 6
    """Notches are on 1 to so many times the line; from 3.9 Hz on, six are all that a line can have below 26 Hz."""
    width_hz: Positive = 0.6
    """Width of each notch at -3 dB."""
    cascade: Count = 2
    """Equal notches one after another, which make the hole as deep as a drifting line needs it."""

    def __post_init__(self) -> None:
        """Refuse what no line can be found with."""
        if not self.low_hz <= self.start_hz <= self.high_hz:
            raise ConfigError(
                f"lines: start_hz ({self.start_hz:g}) must be between low_hz ({self.low_hz:g}) and high_hz "
                f"({self.high_hz:g})"
            )
        if self.low_hz < 2 * NEIGHBOURS_HZ or self.window_s * NEIGHBOURS_HZ < 2 * LOBE:
            raise ConfigError(
                f"lines: low_hz must be at least {2 * NEIGHBOURS_HZ:g} Hz and window_s at least "
                f"{2 * LOBE / NEIGHBOURS_HZ:g} s to tell a line from its surroundings; "
                f"got {self.low_hz:g} Hz and {self.window_s:g} s"
            )
        if self.every_s > self.window_s:
            raise ConfigError(
                f"lines: every_s ({self.every_s:g}) must not be longer than window_s ({self.window_s:g}); "
                "what lies between two looks would never be seen"
            )


def notches(settings: LineSettings, line_hz: float, rate_hz: float) -> FloatArray:
    """Return the sections of the notches on a line and its multiples."""
    centres = line_hz * np.arange(1, settings.multiples + 1)
    sections = [np.concatenate(signal.iirnotch(hz, hz / settings.width_hz, fs=rate_hz)) for hz in centres]
    return np.array(sections * settings.cascade)


def find_line(data: FloatArray, settings: LineSettings, rate_hz: float) -> float | None:
    """Return the frequency of the strongest narrow line in (n, channels) data, None where nothing stands out enough.

    Every channel is scaled by its own background, so that a loud one does not decide alone.
    """
    step_hz = rate_hz / len(data)
    reach = round(NEIGHBOURS_HZ / step_hz)
    first, last = int(np.ceil(settings.low_hz / step_hz)), int(settings.high_hz / step_hz)
    bins = np.fft.rfft(data, axis=0)[first - reach - 1 : last + reach + 2]
    # A Hann window, put on as what it is in the spectrum: it mixes neighbouring bins.
    power = np.abs(bins[1:-1] - (bins[:-2] + bins[2:]) / 2) ** 2
    background = np.median(power, axis=0)
    if not (background > 0).any():
        return None
    pooled = (power[:, background > 0] / background[background > 0]).mean(axis=1)
    around = np.lib.stride_tricks.sliding_window_view(pooled, 2 * reach + 1)  # a row for each bin from first to last
    beside = np.delete(around, np.s_[reach - LOBE : reach + LOBE + 1], axis=1)
    peaks = (around[:, reach] > around[:, reach - 1]) & (around[:, reach] >= around[:, reach + 1])
    contrast = np.where(peaks, around[:, reach] / np.median(beside, axis=1), 0.0)
    best = int(np.argmax(contrast))
    if contrast[best] <= 10 ** (settings.contrast_db / 10):
        return None
    before, top, after = np.log(around[best, reach - 1 : reach + 2])
    line_hz = step_hz * (first + best + 0.5 * (before - after) / (before - 2 * top + after))
    return float(np.clip(line_hz, settings.low_hz, settings.high_hz))


def mean_delay_s(sos: FloatArray, low_hz: float, high_hz: float, rate_hz: float) -> float:
    """Return a filter's group delay between two frequencies, weighted by the power that it lets through.

    Beside a notch the delay at one frequency says little: it is long where hardly anything is left.
    """
    hz = np.linspace(low_hz, high_hz, 4096)
    _, response = signal.freqz_sos(sos, worN=hz, fs=rate_hz)
    turned = -np.angle(response[1:] * response[:-1].conj())
    weight = np.abs(response[1:] * response[:-1])
    return float((turned * weight).sum() / weight.sum() / (2 * np.pi * (hz[1] - hz[0])))


class LineCanceller:
    """As notches that have always been where the last look found the line, over chunks.

    Looks are due on a grid of samples counted from the stage's start. When the notches move, their state is worked out
    anew from the samples that the look took in, so that they neither ring nor have to settle. Blocks of samples are
    filtered by one product, as in BandFilter. Channels that come back after a fault start anew.
    """

    def __init__(self, settings: LineSettings) -> None:
        self.settings = settings
        self.line_hz: float = settings.start_hz
        """Where the notches are now."""
        self.found = 0
        """Looks that found a line, breaks and reopening notwithstanding."""
        self.looks = 0

    def open(self, info: StreamInfo) -> StreamInfo:
        """Put the notches on their first place; their delay is declared there, as a mean over their range."""
        settings, n_channels = self.settings, len(info.channels)
        highest_hz = settings.multiples * settings.high_hz
        if info.rate_hz <= 2 * highest_hz:
            raise RateError(
                f"notches on {settings.multiples} multiples of a line, up to {highest_hz:g} Hz, need a rate above "
                f"{2 * highest_hz:g} Hz, not {info.rate_hz:g} Hz"
            )
        self._rate_hz = info.rate_hz
        self._n_state = 2 * settings.multiples * settings.cascade
        self._step = MIN_BLOCK * max(1, int(settings.every_s * info.rate_hz / MIN_BLOCK))
        self._window = self._step * max(1, int(settings.window_s * info.rate_hz / self._step))
        self._past = np.zeros((self._window + self._step, n_channels))  # what the next look takes in, and what it drops
        self._offset = np.zeros(n_channels)  # each channel's first sample
        self._work = np.zeros((self._n_state + MIN_BLOCK, n_channels))  # the state, then the block's samples
        self._answer = np.empty((MIN_BLOCK + self._n_state, n_channels))  # the block's output, then the new state
        self._seen = 0
        self._clean_since = np.zeros(n_channels, np.int64)  # samples seen when each channel's last fault was over
        sos = self._place(settings.start_hz)
        return info.delayed(filter_delay_s=mean_delay_s(sos, settings.low_hz, highest_hz, info.rate_hz))

    def process(self, x: Chunk) -> Chunk:
        """Filter all samples; look for the line where a look is due."""
        if not len(x):
            return x
        if not self._seen or x.fresh is not None:
            self._start(x, np.ones(x.data.shape[1], bool) if x.fresh is None or not self._seen else x.fresh)
        if x.good is not None:
            self._clean_since[~x.good] = self._seen + len(x)
        n_state, work = self._n_state, self._work
        out = np.empty_like(x.data)
        row = 0
        while row < len(x):
            at = self._seen % MIN_BLOCK
            end = min(MIN_BLOCK, at + len(x) - row)
            np.subtract(x.data[row : row + end - at], self._offset, out=work[n_state + at : n_state + end])
            np.matmul(self._product, work, out=self._answer)
            np.add(self._answer[at:end], self._offset, out=out[row : row + end - at])
            row += end - at
            self._seen += end - at
            if end == MIN_BLOCK:
                self._close_block()
        return replace(x, data=out)

    def flush(self) -> list[Chunk]:
        """Nothing is held back."""
        return []

    def _close_block(self) -> None:
        """Go on to the next block: keep the samples, look for the line if it is time."""
        self._work[: self._n_state] = self._answer[MIN_BLOCK:]
        stop = self._window + (self._seen - 1) % self._step + 1
        self._past[stop - MIN_BLOCK : stop] = self._work[self._n_state :]
        if self._seen % self._step:
            return
        self._past[: self._window] = self._past[self._step :]
        clean = self._seen - self._clean_since >= self._window
        if not clean.any():
            return
        self.looks += 1
        past = self._past[: self._window]
        line_hz = find_line(past if clean.all() else past[:, clean], self.settings, self._rate_hz)
        if line_hz is not None:
            self.found += 1
            self._place(line_hz)
            self._settle(past)

    def _place(self, line_hz: float) -> FloatArray:
        self.line_hz = line_hz
        sos = notches(self.settings, line_hz, self._rate_hz)
        self._product = block_response(sos, MIN_BLOCK, 1)
        return sos

    def _settle(self, past: FloatArray) -> None:
        """Give the notches the state that they would have, had they been here during all of these samples."""
        work = self._work
        work[: self._n_state] = 0.0
        after = self._product[MIN_BLOCK:]
        for first in range(0, len(past), MIN_BLOCK):
            work[self._n_state :] = past[first : first + MIN_BLOCK]
            work[: self._n_state] = after @ work

    def _start(self, x: Chunk, channels: BoolArray) -> None:
        """Make it so that these channels' first sample had lasted for ever before."""
        at = self._n_state + self._seen % MIN_BLOCK
        self._offset = np.where(channels, x.data[0], self._offset)
        self._work[:at, channels] = 0.0
        self._past[:, channels] = 0.0
        self._clean_since[channels] = self._seen
