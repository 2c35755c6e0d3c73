"""Where the electrodes of the 10-10 system are on a head that is a unit sphere; without MNE."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rtbrain.errors import ChannelError
from rtbrain.messages import FloatArray

# Degrees from Cz and, around it, from the right ear to the front: the midline, then the right half of the head.
_MIDLINE = {
    "Fpz": (92, 90), "AFz": (69, 90), "Fz": (46, 90), "FCz": (23, 90), "Cz": (0, 0),
    "CPz": (23, -90), "Pz": (46, -90), "POz": (69, -90), "Oz": (92, -90), "Iz": (115, -90),
}  # fmt: skip
_RIGHT = {
    "Fp2": (92, 72), "AF4": (74, 65), "AF8": (92, 54), "F2": (50, 68), "F4": (60, 51), "F6": (75, 41),
    "F8": (92, 36), "F10": (115, 36), "FC2": (32, 45), "FC4": (50, 28), "FC6": (72, 21), "FT8": (92, 18),
    "FT10": (115, 18), "C2": (23, 0), "C4": (46, 0), "C6": (69, 0), "T8": (92, 0), "CP2": (32, -45),
    "CP4": (50, -28), "CP6": (72, -21), "TP8": (92, -18), "TP10": (115, -18), "P2": (50, -68), "P4": (60, -51),
    "P6": (75, -41), "P8": (92, -36), "P10": (115, -36), "PO4": (74, -65), "PO8": (92, -54), "O2": (92, -72),
}  # fmt: skip
_FORMER = {"T3": "T7", "T4": "T8", "T5": "P7", "T6": "P8"}


def _point(from_cz: float, around: float) -> tuple[float, float, float]:
    theta, phi = np.radians(from_cz), np.radians(around)
    return float(np.sin(theta) * np.cos(phi)), float(np.sin(theta) * np.sin(phi)), float(np.cos(theta))


def _table() -> dict[str, tuple[float, float, float]]:
    table = {name: _point(*angles) for name, angles in (_MIDLINE | _RIGHT).items()}
    for name in _RIGHT:
        letters = name.rstrip("0123456789")
        x, y, z = table[name]
        table[f"{letters}{int(name[len(letters) :]) - 1}"] = (-x, y, z)
    return table | {old: table[new] for old, new in _FORMER.items()}


POSITIONS: Final = _table()
"""Name -> (x to the right ear, y to the nose, z up), on the unit sphere."""

TEN_TWENTY_19: Final = (
    "Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz", "C4", "T8", "P7", "P3", "Pz", "P4", "P8", "O1", "O2",
)  # fmt: skip
"""The 19 channels of the 10-20 system, by their modern names."""

TEN_TEN_64: Final = tuple(
    name for name in POSITIONS if name not in _FORMER and name not in ("F9", "F10", "FT9", "FT10", "TP9", "TP10")
)  # fmt: skip
"""64 channels: the electrodes of BioSemi's cap of that size."""


def electrode_positions(channels: Sequence[str]) -> FloatArray:
    """Return the positions (channels, 3) of electrodes by their 10-10 names."""
    unknown = [name for name in channels if name not in POSITIONS]
    if unknown:
        raise ChannelError(f"no position is known for {', '.join(unknown)}; known are {', '.join(POSITIONS)}")
    return np.array([POSITIONS[name] for name in channels])
