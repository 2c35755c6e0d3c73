"""Heads from above: electrodes where they are on a head, and fields with their poles where the values are."""

import base64
import struct
import zlib

import numpy as np
import pytest

from rtbrain.dashboard.heads import LEVELS, PIXELS, electrodes, topography
from rtbrain.sources.electrodes import TEN_TEN_64, TEN_TWENTY_19


def test_front_is_up_left_is_left_and_the_caps_lowest_row_is_inside() -> None:
    spots = electrodes(["Fpz", "Oz", "T7", "T8", "Cz", "EEG T3-LE", "nowhere"])
    assert spots["Cz"] == (0.0, 0.0)
    assert spots["Fpz"][1] > 0.9 > spots["Cz"][1] > spots["Oz"][1]
    assert spots["T7"][0] < -0.9
    assert spots["EEG T3-LE"] == spots["T7"]  # the same electrode by an older name
    assert "nowhere" not in spots
    assert all(np.hypot(*spot) < 1 for spot in electrodes(TEN_TWENTY_19).values())


def pixels(url: str) -> np.ndarray:
    """Read back a PNG of palette indices: the chunks' checksums, the size, the rows."""
    data = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        (n,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + n]
        assert struct.unpack(">I", data[at + 8 + n : at + 12 + n]) == (zlib.crc32(kind + content),)
        parts[kind] = content
        at += 12 + n
    assert struct.unpack(">II", parts[b"IHDR"][:8]) == (PIXELS, PIXELS)
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(PIXELS, PIXELS + 1)
    return rows[:, 1:]


@pytest.mark.parametrize("channels", [TEN_TWENTY_19, TEN_TEN_64], ids=["19", "64"])
def test_the_field_has_its_values_at_the_electrodes(channels: tuple[str, ...]) -> None:
    spots = electrodes(channels)
    values = np.array([y + 0.3 * x for x, y in spots.values()])  # from the back to the front
    image = pixels(topography(channels, list(values / np.abs(values).max())))
    assert image[0, 0] == 0  # outside of the head
    seen = [
        image[int((1 - y) / 2 * PIXELS), int((1 + x) / 2 * PIXELS)] for x, y in spots.values() if np.hypot(x, y) < 1
    ]
    level = (np.array(seen, float) - 1) / (LEVELS - 1) * 2 - 1
    inside = [value for value, spot in zip(values, spots.values(), strict=True) if np.hypot(*spot) < 1]
    assert np.corrcoef(level, inside)[0, 1] > 0.98


def test_too_few_known_places_give_no_picture() -> None:
    assert topography(["Fz", "Cz", "Pz", "ECG"], [1.0, 0.5, -0.5, 9.0]) == ""
    with_stranger = topography(["Fz", "Cz", "Pz", "C3", "ECG"], [1.0, 0.5, -0.5, 0.0, 9.0])
    assert with_stranger == topography(["Fz", "Cz", "Pz", "C3"], [1.0, 0.5, -0.5, 0.0])
