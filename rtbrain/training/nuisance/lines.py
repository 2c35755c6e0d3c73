"""Narrow lines in a spectrum, the combs that they form, and mains harmonics folded back by sampling."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median_filter

from rtbrain.messages import FloatArray
from rtbrain.training.nuisance.spectrum import Spectrum

LINE_DB = 8.0
"""A line rises so far above the spectrum around it; in 60 s the peaks of noise stay below."""
BAND_HZ = (3.0, 48.0)
COARSEST_HZ = 0.25
_AROUND_HZ = 1.25
_FOOT_HZ = (0.375, 0.75)
_MAINS_HZ = (50.0, 60.0)
_MAINS_DRIFT_HZ = 0.5


@dataclass(frozen=True)
class Line:
    """A narrow peak."""

    hz: float
    db: float
    """Height above the spectrum around it."""


def line_contrast(spectrum: Spectrum) -> FloatArray:
    """Return how far each bin rises above the running median around it, in dB."""
    width = 2 * round(_AROUND_HZ / spectrum.step_hz) + 1
    contrast: FloatArray = spectrum.db - median_filter(spectrum.db, size=width, mode="nearest")
    return contrast


def find_lines(spectrum: Spectrum, band_hz: tuple[float, float] = BAND_HZ) -> tuple[Line, ...]:
    """Return the narrow lines of a band, lowest first.

    An alpha rhythm may stand out as far as a line, but its flanks do not fall off within half a hertz: the
    contrast is taken against the foot of the peak too. Spectra coarser than 0.25 Hz cannot show lines.
    """
    if spectrum.step_hz > COARSEST_HZ:
        return ()
    contrast, step_hz = line_contrast(spectrum), spectrum.step_hz
    near, far = (round(hz / step_hz) for hz in _FOOT_HZ)
    last = min(len(contrast) - far - 1, round(band_hz[1] / step_hz))
    found = []
    for i in range(max(far, round(band_hz[0] / step_hz)), last + 1):
        around = spectrum.db[i - far : i + far + 1]
        foot = max(np.median(around[: far - near + 1]), np.median(around[far + near :]))
        height = min(float(contrast[i]), float(spectrum.db[i] - foot))
        if height >= LINE_DB and contrast[i] == contrast[i - far : i + far + 1].max():
            left, middle, right = (float(db) for db in spectrum.db[i - 1 : i + 2])
            bend = 2 * middle - left - right  # the peak of the parabola through the three
            found.append(Line((i + ((right - left) / (2 * bend) if bend > 0 else 0.0)) * step_hz, height))
    return tuple(found)


def comb(lines: tuple[Line, ...]) -> tuple[float, int]:
    """Return the line that others repeat, as its multiples or at its distance from each other, and how many do.

    Folding mirrors a comb: its upper half then comes at the distance f of each other but not at multiples of f.
    Fewer than two repetitions are chance and give (NaN, 0).
    """
    best = (float("nan"), 0)
    for base in lines:
        others = [line.hz for line in lines if line.hz > 1.5 * base.hz]
        repeated = 0
        for hz in others:
            k = round(hz / base.hz)
            multiple = k <= 6 and abs(hz - k * base.hz) <= 0.1 + 0.02 * k
            if multiple or any(abs(abs(hz - other) - base.hz) <= 0.15 for other in others):
                repeated += 1
        if repeated >= 2 and repeated > best[1]:
            best = (base.hz, repeated)
    return best


def folded_mains(lines: tuple[Line, ...], rate_hz: float) -> tuple[float, int] | None:
    """Return the mains frequency and harmonic that sampling at `rate_hz` folded onto the lowest line, if it did.

    One line fits some harmonic nearly always; so the next harmonic's fold must be among the lines as well.
    """
    if not lines:
        return None
    low = lines[0].hz
    for harmonic in range(3, 10):
        for mains in _MAINS_HZ:
            turns = round(harmonic * mains / rate_hz)
            for sign in (-1, 1):
                mains_hz = (turns * rate_hz + sign * low) / harmonic
                folds = [_fold(k * mains_hz, rate_hz) for k in (harmonic - 1, harmonic + 1)]
                seen = any(abs(line.hz - fold) < 0.3 for line in lines[1:] for fold in folds)
                if turns and seen and abs(mains_hz - mains) <= _MAINS_DRIFT_HZ:
                    return mains_hz, harmonic
    return None


def _fold(hz: float, rate_hz: float) -> float:
    return abs(hz - round(hz / rate_hz) * rate_hz)
