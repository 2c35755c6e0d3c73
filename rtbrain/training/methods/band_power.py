"""Log band powers of each channel: what most labs would try first."""

import numpy as np

from rtbrain.messages import FloatArray
from rtbrain.training.methods.base import Example


def relative_powers(example: Example, seconds: float | None) -> FloatArray:
    """Return the log power of each band and channel, less the channel's mean over bands: a gain falls out."""
    log_power = np.log(np.maximum(example.powers().mean(seconds), 1e-12))  # NaN stays NaN
    if len(log_power) > 1:
        log_power = log_power - log_power.mean(axis=0)
    features: FloatArray = log_power.ravel()
    return features
