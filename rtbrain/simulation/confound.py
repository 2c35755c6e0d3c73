"""Traces of the recording chain, which are no brain: an export filter, or aliased mains harmonics."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import signal

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray


@dataclass(frozen=True)
class Confound:
    """What a recording went through, or picked up, on its way to the file."""

    high_pass_hz: float | None = None
    """Corner of a Butterworth high-pass; None for no such filter."""
    low_pass_hz: float | None = None
    high_pass_order: int = 2
    low_pass_order: int = 9
    line_hz: float | None = None
    """Lowest of a row of lines at this frequency and its multiples; None for no lines."""
    n_lines: int = 4
    line_uv: float = 4.0
    """Mean amplitude of the lowest over channels; each further one has 0.7 of the one before."""

    def __post_init__(self) -> None:
        for name in ("high_pass_hz", "low_pass_hz", "line_hz", "high_pass_order", "low_pass_order", "n_lines"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value!r}; it must be above 0")
        if not self.line_uv >= 0:
            raise ConfigError(f"line_uv is {self.line_uv!r}; it cannot be negative")


NARROW: Final = Confound(high_pass_hz=1.8, low_pass_hz=34.0)
"""Close to the narrower of two export filters of a public set of depression: it takes about 24 dB at 0.5 Hz, 12 at 1
and 4 at 1.5, nothing from 2.5 to 30, and 4 dB at 35 Hz, 15 at 40 and 25 at 45. (The real one is steeper below 1 Hz:
short windows, with which it was measured first, hide that.)"""


def export_filter(confound: Confound, rate_hz: float) -> FloatArray | None:
    """Return the sections of the recording's filter; None if there is none."""
    for hz in (confound.high_pass_hz, confound.low_pass_hz):
        if hz is not None and hz >= rate_hz / 2:
            raise ConfigError(f"a filter at {hz:g} Hz needs a rate above {2 * hz:g} Hz, not {rate_hz:g} Hz")
    sections: list[FloatArray] = []
    if confound.high_pass_hz is not None:
        low_edge = signal.butter(confound.high_pass_order, confound.high_pass_hz, "highpass", fs=rate_hz, output="sos")
        sections.append(low_edge)
    if confound.low_pass_hz is not None:
        high_edge = signal.butter(confound.low_pass_order, confound.low_pass_hz, "lowpass", fs=rate_hz, output="sos")
        sections.append(high_edge)
    return np.concatenate(sections) if sections else None


class Recorder:
    """As filtering a whole recording and adding lines, over blocks."""

    def __init__(self, confound: Confound, rate_hz: float, n_channels: int, rng: np.random.Generator) -> None:
        self._sos = export_filter(confound, rate_hz)
        self._state: FloatArray | None = None
        self._rate_hz = rate_hz
        multiples = (confound.line_hz or 0.0) * np.arange(1, confound.n_lines + 1)
        self._lines_hz = multiples[(multiples > 0) & (multiples < rate_hz / 2)]
        heights = confound.line_uv * 0.7 ** np.arange(confound.n_lines)
        self._weights = heights[:, None] * rng.uniform(0.5, 1.5, (confound.n_lines, n_channels))
        self._phases = rng.uniform(0, 1, confound.n_lines)

    def __call__(self, data: FloatArray, start: int) -> FloatArray:
        """Return the next rows (n, channels) as recorded; `start` counts the rows before them."""
        if self._sos is not None:
            if self._state is None:
                # As if the first sample had lasted since long before: no step at the start.
                self._state = signal.sosfilt_zi(self._sos)[:, :, None] * data[0]
            data, self._state = signal.sosfilt(self._sos, data, axis=0, zi=self._state)
        rows = np.arange(start, start + len(data))
        for hz, phase, weights in zip(self._lines_hz, self._phases, self._weights, strict=False):
            turns = (rows * (hz / self._rate_hz) + phase) % 1.0
            data = data + np.sin(2 * np.pi * turns)[:, None] * weights
        return np.ascontiguousarray(data)
