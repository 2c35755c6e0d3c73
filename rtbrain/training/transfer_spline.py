"""Maps of one montage on the electrodes of another, by spherical splines (Perrin and others, 1989)."""

from collections.abc import Sequence

import numpy as np
from numpy.polynomial.legendre import legval

from rtbrain.conditioning.channels import canonical
from rtbrain.errors import ChannelError
from rtbrain.messages import FloatArray
from rtbrain.microstates.templates import referenced
from rtbrain.topography import electrodes_on_sphere

STIFFNESS = 4
TERMS = 50
SMOOTHING = 1e-5
"""Order of the splines, terms of their series, and what is added to the diagonal; as usual in EEG, and in MNE."""


def maps_on(maps: FloatArray, channels: Sequence[str], target: Sequence[str]) -> FloatArray:
    """Return (states, target) average-referenced maps of unit norm from (states, channels).

    Electrodes that both montages have keep their values; those of the others are interpolated.
    """
    known = [canonical(name) for name in channels]
    matrix = spline_matrix(_directions(channels), _directions(target))
    for row, name in enumerate(map(canonical, target)):
        if name in known:
            matrix[row] = np.eye(len(known))[known.index(name)]
    return referenced(maps @ matrix.T)


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


def _directions(channels: Sequence[str]) -> FloatArray:
    """Return unit vectors from the centre of the head to electrodes; refuse names without a standard position."""
    known = electrodes_on_sphere()
    unknown = [name for name in channels if canonical(name) not in known]
    if unknown:
        raise ChannelError(
            f"no standard position is known for {', '.join(unknown)}; maps can only be carried over to electrodes of "
            "the 10-05 system: leave these out of the recipe's channels"
        )
    return np.array([known[canonical(name)] for name in channels])
