"""Columns in standard deviations, for what is fitted to few rows with missing values."""

import numpy as np

from rtbrain.messages import FloatArray


def centre_and_spread(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of the columns; inf for one that does not vary: it says nothing."""
    known = np.where(np.isnan(x).all(axis=0), 0.0, x)
    centre, spread = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    return centre, np.where(spread > 1e-9, spread, np.inf)


def scaled(x: FloatArray, centre: FloatArray, spread: FloatArray, largest: float) -> FloatArray:
    """Return the columns in standard deviations, missing values as 0.

    No value counts for more than `largest`: one odd recording must not decide.
    """
    clipped: FloatArray = np.clip(np.nan_to_num((x - centre) / spread), -largest, largest)
    return clipped
