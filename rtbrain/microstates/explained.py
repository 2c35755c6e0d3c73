"""How much of the data a set of maps explains: global explained variance, residual noise and cross-validation."""

import numpy as np

from rtbrain.messages import UNLABELLED, FloatArray, IntArray
from rtbrain.microstates.templates import referenced


def _explained(data: FloatArray, maps: FloatArray, labels: IntArray | None) -> tuple[FloatArray, float]:
    """Return the power that each state explains (states,), and the power of all data."""
    centred = data - data.mean(axis=1, keepdims=True)
    squared = (referenced(maps) @ centred.T) ** 2  # (states, n)
    state = squared.argmax(axis=0) if labels is None else labels
    named = np.flatnonzero(state != UNLABELLED)
    own = squared[state[named], named]
    explained: FloatArray = np.bincount(state[named], weights=own, minlength=len(maps)).astype(np.float64)
    return explained, float(np.einsum("nc,nc->", centred, centred))


def gev_per_state(data: FloatArray, maps: FloatArray, labels: IntArray | None = None) -> FloatArray:
    """Return each state's part of the global explained variance.

    Parameters
    ----------
    data : (n, channels) array
        Samples in any unit; the average reference is taken here.
    maps : (states, channels) array
        Maps of any sign and length.
    labels : (n,) array, optional
        State of each sample, UNLABELLED ones explain nothing; by default the best correlated map.

    Returns
    -------
    (states,) array
        sum over the state's samples of (GFP corr)^2, over the sum of GFP^2 of all samples; 0 for flat data.
    """
    explained, power = _explained(data, maps, labels)
    return explained / power if power else explained


def gev(data: FloatArray, maps: FloatArray, labels: IntArray | None = None) -> float:
    """Return the global explained variance, 0..1; parameters as in `gev_per_state`."""
    return float(gev_per_state(data, maps, labels).sum())


def residual_variance(data: FloatArray, maps: FloatArray, labels: IntArray | None = None) -> float:
    """Return the variance per sample and degree of freedom that the maps leave over, in squared units of the data.

    Parameters as in `gev_per_state`; data has at least 2 channels.
    """
    explained, power = _explained(data, maps, labels)
    n, n_channels = data.shape
    return float(max(power - explained.sum(), 0.0) / (n * (n_channels - 1)))


def cross_validation(residual: float, n_channels: int, n_states: int) -> float:
    """Return Pascual-Marqui's cross-validation criterion, as the EEGLAB toolbox computes it (smaller is better).

    Defined for n_states < n_channels - 1 only.
    """
    if n_states >= n_channels - 1:
        raise ValueError(f"cross-validation needs fewer than {n_channels - 1} states, got {n_states}")
    return residual * ((n_channels - 1) / (n_channels - 1 - n_states)) ** 2
