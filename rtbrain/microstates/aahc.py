"""Atomize and agglomerate hierarchical clustering of maps, polarity-blind."""

import numpy as np

from rtbrain.messages import FloatArray, IntArray
from rtbrain.microstates.search import unit

MAX_PEAKS = 2000
"""More peaks than this are sub-sampled: time and comparisons grow with their square."""


def aahc(peaks: FloatArray, n_states: int) -> FloatArray:
    """Dissolve the cluster that explains least, again and again, until `n_states` are left.

    Parameters
    ----------
    peaks : (n, channels) array
        Average-referenced, none of them 0, at most MAX_PEAKS for a bearable time.
    n_states : int
        1..n.

    Returns
    -------
    (n_states, channels) array
        Unit-norm maps: the leading eigenvector of each cluster's peaks.
    """
    maps = unit(peaks)
    explained = np.einsum("nc,nc->n", peaks, peaks)  # (clusters,): sum of (map . peak)^2, its part of GEV
    members: list[IntArray] = [np.array([i]) for i in range(len(peaks))]
    for _ in range(len(peaks) - n_states):
        weakest = int(explained.argmin())
        orphans = members[weakest]
        members[weakest] = orphans[:0]
        explained[weakest] = np.inf  # never the weakest again,
        maps[weakest] = 0.0  # and never the best correlated
        homes = np.abs(peaks[orphans] @ maps.T).argmax(axis=1)
        alive = np.isfinite(explained)
        homes = np.where(alive[homes], homes, alive.argmax())  # a peak at right angles to every map
        for home in np.unique(homes).tolist():
            members[home] = np.concatenate([members[home], orphans[homes == home]])
            maps[home], explained[home] = _leading(peaks[members[home]], maps[home])
    survivors: FloatArray = maps[np.isfinite(explained)]
    return survivors


def _leading(peaks: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    """Return the leading eigenvector of the peaks' scatter and its eigenvalue, by power steps from the old map."""
    last = 0.0
    for _ in range(100):
        activation = peaks @ start
        value = float(activation @ activation)
        if value - last <= 1e-9 * value:
            break
        last, start = value, unit(activation @ peaks)
    return start, value
