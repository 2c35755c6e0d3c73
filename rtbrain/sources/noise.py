"""1/f noise, block by block."""

from typing import Final

import numpy as np
from scipy.signal import lfilter

from rtbrain.messages import FloatArray

# Kellet's filter: white noise becomes 1/f within 0.5 dB from 0.1 % to 80 % of Nyquist. Poles, then numerator.
_B: Final = np.array([0.049922035, -0.095993537, 0.050612699, -0.004408786])
_A: Final = np.array([1.0, -2.494956002, 2.017265875, -0.522189400])
_RMS: Final = 0.0871  # of its output for white noise of RMS 1


class Pink:
    """As one pass of Kellet's filter over white noise, over blocks; `rms` is that of the output."""

    def __init__(self, n_rows: int, rms: float) -> None:
        self._b = _B * (rms / _RMS)
        self._state = np.zeros((n_rows, len(_A) - 1))

    def __call__(self, white: FloatArray) -> FloatArray:
        """Return the next block: 1/f noise (rows, samples) for white noise of RMS 1 of that shape."""
        noise, self._state = lfilter(self._b, _A, white, axis=1, zi=self._state)
        return np.asarray(noise)
