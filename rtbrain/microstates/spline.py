"""Values between electrodes: spherical splines (Perrin and others, 1989)."""

import numpy as np
from numpy.polynomial.legendre import legval

from rtbrain.messages import FloatArray

STIFFNESS = 4
TERMS = 50
SMOOTHING = 1e-5
"""Order of the splines, terms of their series, and what is added to the diagonal; as usual in EEG, and in MNE."""


def spline_matrix(known: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the matrix (wanted, known) that carries values from unit vectors (known, 3) to others (wanted, 3)."""
    n = len(known)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = _splines(known @ known.T) + SMOOTHING * np.eye(n)
    system[n, n] = 0.0
    rows = np.hstack([_splines(wanted @ known.T), np.ones((len(wanted), 1))])
    return np.asarray(np.linalg.solve(system, rows.T).T[:, :n], np.float64)  # the system is symmetric


def _splines(cosines: FloatArray) -> FloatArray:
    n = np.arange(1, TERMS + 1)
    factors = (2 * n + 1) / (4 * np.pi * (n * (n + 1.0)) ** STIFFNESS)
    values: FloatArray = legval(np.clip(cosines, -1.0, 1.0), np.concatenate([[0.0], factors]))
    return values
