"""The same recording under two names though not byte for byte: another header, gain, format, rate or start.

Each recording is reduced to a signature: the course of its power in a band that every export keeps, on a logarithmic
scale, at the median electrode. Neither gain, reference, polarity nor the order of channels changes it, and two
recordings of one person have no more of it in common than those of two.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rtbrain.errors import RtbrainError
from rtbrain.messages import FloatArray
from rtbrain.sources.chunking import Source
from rtbrain.training.trials import Problem, Trial

SECONDS: Final = 90.0
"""So much of the beginning of each recording is compared."""
MIN_OVERLAP_S: Final = 30.0
"""A copy may begin up to SECONDS - MIN_OVERLAP_S earlier or later."""
BAND_HZ: Final = (4.0, 20.0)
RATE_HZ: Final = 25.0
SMOOTH: Final = 5
"""Bins over which power is smoothed: those of a copy begin a fraction of a bin elsewhere."""
SLOW_S: Final = 2.0
"""Slower changes than this are taken out: drifts are alike in many recordings."""
LINE: Final = 2.0
"""A frequency may be so much stronger than those around it: beats of a line are alike in many recordings."""
THRESHOLD: Final = 0.6
"""Correlation from which two signatures are of one recording. Measured on real EEG: at most 0.40 between any two of 113
recordings; at least 0.76 for copies of 20 of them with another start or filter, or with a channel of noise more."""


@dataclass(frozen=True)
class Alike:
    """Two recordings with the same samples."""

    first: Path
    second: Path
    subjects: tuple[str, ...]
    """Whose they are said to be: one name, or two."""
    correlation: float
    shift_s: float
    """How much later the second one begins."""


def near_identical(
    trials: Iterable[Trial], progress: Callable[[float], None] = lambda share: None
) -> tuple[list[Alike], list[Problem]]:
    """Compare the beginnings of all recordings of a set.

    Parameters
    ----------
    trials : iterable of Trial
        Byte-identical copies are left out already; the trials of one file are its beginning, in their order.
    progress : callable, optional
        Called with the share done.

    Returns
    -------
    list of Alike
        The pairs that are one recording.
    list of Problem
        Recordings that cannot be read.
    """
    of_file: dict[Path, list[Trial]] = {}
    for trial in trials:
        of_file.setdefault(trial.files[0], []).append(trial)
    signatures: dict[Path, FloatArray] = {}
    problems = []
    for i, (path, own) in enumerate(of_file.items()):
        try:
            signatures[path] = signature(trial.open() for trial in own)
        except RtbrainError as error:
            problems.append(Problem(str(path), str(error)))
        progress((i + 1) / len(of_file))
    paths = [path for path in signatures if len(signatures[path]) >= MIN_OVERLAP_S * RATE_HZ]
    pairs = alike([signatures[path] for path in paths])
    found = []
    for i, k, correlation, lag in pairs:
        subjects = dict.fromkeys(trial.subject for n in (i, k) for trial in of_file[paths[n]])
        found.append(Alike(paths[i], paths[k], tuple(subjects), round(correlation, 3), lag / RATE_HZ))
    return found, problems


def signature(sources: Iterable[Source]) -> FloatArray:
    """Return the course of power of the first seconds, at RATE_HZ; empty where there is too little to compare."""
    from scipy.ndimage import convolve1d
    from scipy.signal import butter, sosfilt

    pieces: list[NDArray[Any]] = []
    rate_hz, left = 0.0, 0
    for source in sources:
        if source.info.rate_hz != rate_hz:
            if pieces:
                break
            rate_hz, left = source.info.rate_hz, round(SECONDS * source.info.rate_hz)
        for chunk in source.chunks():
            pieces.append(chunk.data[:left])
            left -= len(pieces[-1])
            if left == 0:
                break
        if left == 0:
            break
    n = sum(map(len, pieces))
    if n < MIN_OVERLAP_S * rate_hz or len({piece.shape[1] for piece in pieces}) != 1 or rate_hz <= 2.2 * BAND_HZ[1]:
        return np.empty(0)
    data = np.concatenate(pieces)  # (n, channels)
    data = np.nan_to_num(data - data.mean(axis=1, keepdims=True))
    filtered = sosfilt(butter(2, BAND_HZ, "bandpass", fs=rate_hz, output="sos"), data, axis=0)[round(rate_hz) :]
    # Edges of bins are rounded to samples, so that any two rates give the same grid.
    edges = np.round(np.arange(0, len(filtered) * RATE_HZ / rate_hz + 1e-9) * rate_hz / RATE_HZ).astype(int)
    sums = np.add.reduceat(filtered[: edges[-1]] ** 2, edges[:-1], axis=0)
    smooth = np.hanning(SMOOTH + 2)[1:-1]
    power = convolve1d(sums / np.diff(edges)[:, np.newaxis], smooth / smooth.sum(), axis=0)  # (bins, channels)
    return _fast_part(np.median(np.log(np.maximum(power, np.finfo(float).tiny)), axis=1))


def _fast_part(level: FloatArray) -> FloatArray:
    """Take out what many recordings have in common: slow changes, and the beats of lines."""
    from scipy.fft import irfft, rfft
    from scipy.ndimage import median_filter

    width = round(SLOW_S * RATE_HZ) | 1
    if len(level) < 2 * width:
        return np.empty(0)
    sums = np.cumsum(np.pad(level, (width // 2 + 1, width // 2), mode="edge"))
    fast = level - (sums[width:] - sums[:-width]) / width
    limit = 3 * float(np.median(np.abs(fast))) / 0.6745  # an artefact must not decide
    if limit < 1e-6:  # flat: two of these are alike, but not one
        return np.empty(0)
    spectrum = rfft(np.clip(fast, -limit, limit))
    size = np.abs(spectrum)
    usual = median_filter(size, min(len(size), 101), mode="nearest")
    spectrum *= np.minimum(1.0, LINE * usual / np.maximum(size, np.finfo(float).tiny))
    return np.asarray(irfft(spectrum, len(fast)))


def alike(signatures: list[FloatArray]) -> list[tuple[int, int, float, int]]:
    """Return the pairs that match: both indices, the correlation, and how many steps later the second one begins."""
    from scipy.fft import irfft, next_fast_len, rfft

    if len(signatures) < 2:
        return []
    longest = max(map(len, signatures))
    size = next_fast_len(2 * longest, real=True)
    spectra = [rfft(x, size).astype(np.complex64) for x in signatures]
    energies = [np.concatenate(([0.0], np.cumsum(x**2))) for x in signatures]
    lags = np.arange(-longest, longest + 1)
    found = []
    for i, k in combinations(range(len(signatures)), 2):
        products = irfft(spectra[i] * spectra[k].conj(), size)[lags]
        # At a lag, rows max(lag, 0) to stop of the first meet rows that lag behind in the second.
        start, stop = np.maximum(lags, 0), np.minimum(len(signatures[i]), len(signatures[k]) + lags)
        enough = stop - start >= MIN_OVERLAP_S * RATE_HZ
        a, b = start[enough], stop[enough]
        shared = (energies[i][b] - energies[i][a]) * (energies[k][b - lags[enough]] - energies[k][a - lags[enough]])
        correlations = products[enough] / np.sqrt(np.maximum(shared, np.finfo(float).tiny))
        best = int(np.argmax(correlations))
        if correlations[best] >= THRESHOLD:
            found.append((i, k, float(correlations[best]), int(lags[enough][best])))
    return found
