"""Heads seen from above: where electrodes are, and a field drawn between them; numpy alone, no plotting library."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rtbrain.conditioning.channels import canonical
from rtbrain.messages import FloatArray
from rtbrain.microstates.spline import spline_matrix
from rtbrain.sources.electrodes import POSITIONS, electrode_positions

PIXELS: Final = 112
LEVELS: Final = 17
"""Steps of colour, as between contour lines; odd, so that one of them is around zero."""
FEWEST: Final = 4
"""Electrodes below which a field between them is invention."""
EDGE: Final = np.radians(100.0)
"""Angle from the vertex that is drawn as the head's outline, a little below the lowest row of most caps."""

# Blue over white to red-brown: told apart with any usual form of colour blindness, and by lightness from the middle.
_COLOURS: Final = np.array([(5, 62, 122), (67, 147, 205), (247, 247, 247), (225, 120, 70), (126, 34, 10)], float)


def placed(channels: Sequence[str]) -> list[str]:
    """Return the channels whose place on the head is known."""
    return [name for name in channels if canonical(name) in POSITIONS]


def flat(places: FloatArray) -> FloatArray:
    """Return points of the unit sphere (n, 3) as seen from above (n, 2): x right, y front; the outline is at 1."""
    angle = np.arccos(np.clip(places[:, 2], -1, 1))
    across = np.hypot(places[:, 0], places[:, 1])
    seen: FloatArray = places[:, :2] * (angle / EDGE / np.where(across > 0, across, 1.0))[:, None]
    return seen


def electrodes(channels: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return where electrodes are drawn, by name; those without a known place are left out."""
    names = placed(channels)
    if not names:
        return {}
    points = flat(electrode_positions([canonical(name) for name in names]))
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, points, strict=True)}


@lru_cache(maxsize=8)
def _canvas(channels: tuple[str, ...]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the matrix from electrodes to the pixels inside the outline, and which those are."""
    at = (np.arange(PIXELS) + 0.5) * 2 / PIXELS - 1
    x, y = np.meshgrid(at, -at)  # the nose is up
    radius = np.hypot(x, y)
    inside = radius <= 1
    angle, around = radius[inside] * EDGE, np.arctan2(y[inside], x[inside])
    points = np.column_stack([np.sin(angle) * np.cos(around), np.sin(angle) * np.sin(around), np.cos(angle)])
    return spline_matrix(electrode_positions(channels), points), inside


def topography(channels: Sequence[str], values: Sequence[float]) -> str:
    """Return a field as a PNG in a data URL, transparent around the head; empty where too few places are known."""
    known = set(placed(channels))
    if len(known) < FEWEST:
        return ""
    here = [(canonical(name), value) for name, value in zip(channels, values, strict=True) if name in known]
    return _drawn(tuple(name for name, _ in here), tuple(value for _, value in here))


@lru_cache(maxsize=256)
def _drawn(channels: tuple[str, ...], values: tuple[float, ...]) -> str:
    matrix, inside = _canvas(channels)
    field = matrix @ np.array(values)
    share = field / max(float(np.abs(field).max()), 1e-12)
    image = np.zeros((PIXELS, PIXELS), np.uint8)  # 0 is transparent
    image[inside] = 1 + np.clip(np.round((share + 1) / 2 * (LEVELS - 1)), 0, LEVELS - 1)
    return "data:image/png;base64," + b64encode(_png(image, _palette())).decode()


def _palette() -> NDArray[np.uint8]:
    """Return the colours (1 + levels, 3); the first stands for what is transparent."""
    at = np.linspace(0, len(_COLOURS) - 1, LEVELS)
    steps = np.column_stack([np.interp(at, np.arange(len(_COLOURS)), column) for column in _COLOURS.T])
    return np.concatenate([np.zeros((1, 3)), np.round(steps)]).astype(np.uint8)


def _png(image: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """Return an image of palette indices as a PNG file; index 0 is transparent."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)  # each row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", palette.tobytes()), (b"tRNS", b"\0"), (b"IDAT", zlib.compress(rows, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts) + chunk(b"IEND", b"")
