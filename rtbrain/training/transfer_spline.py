"""Maps of one montage on the electrodes of another, by spherical splines (Perrin and others, 1989)."""

from collections.abc import Sequence

import numpy as np

from rtbrain.conditioning.channels import canonical
from rtbrain.errors import ChannelError
from rtbrain.messages import FloatArray
from rtbrain.microstates.spline import spline_matrix
from rtbrain.microstates.templates import referenced
from rtbrain.topography import electrodes_on_sphere


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
