"""From microvolts to the whole numbers that a file stores."""

from pathlib import Path

import numpy as np

from rtbrain.errors import RtbrainError
from rtbrain.messages import FloatArray


def digitised(
    data: FloatArray, step: float, zero: float, bits: int, path: Path
) -> "np.ndarray[tuple[int, ...], np.dtype[np.int32]]":
    """Return the nearest of the numbers of so many bits; data beyond them are refused, not cut off.

    Parameters
    ----------
    data : array
        In the file's unit.
    step : float
        What one number is more than the one before it.
    zero : float
        What the number 0 stands for.
    bits : int
        Of the numbers, at most 32.
    path : Path
        Where they go, for the message.
    """
    numbers = np.rint((data - zero) / step)
    if not (np.abs(numbers + 0.5) <= 2 ** (bits - 1)).all():  # NaN fails as well
        worst = float(np.abs(data).max())
        raise RtbrainError(
            f"{path.name}: a sample of {worst:.6g} does not fit into {bits} bits in steps of {step:.6g}; "
            "choose another seed, or a smaller effect"
        )
    return numbers.astype(np.int32)
