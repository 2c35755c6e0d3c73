"""BrainVision recordings (.vhdr, .vmrk, .eeg), written while the samples are made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rtbrain.messages import FloatArray
from rtbrain.simulation.layouts.digital import digitised

STEP_UV: Final = 0.1
"""Resolution of the 16-bit numbers, that of the common amplifiers: they reach to 3.2 mV."""


@dataclass(frozen=True)
class Marker:
    """A trigger."""

    row: int
    """Sample, counted from 0."""
    code: int


def write_brainvision(
    path: Path,
    channels: Sequence[str],
    rate_hz: float,
    blocks: Iterable[FloatArray],
    markers: Iterable[Marker] = (),
) -> None:
    """Write a recording.

    Parameters
    ----------
    path : Path
        The header, `.vhdr`; the other two files go beside it.
    channels : sequence of str
        Columns of the blocks.
    rate_hz : float
        Sampling rate.
    blocks : iterable of (n, channels) arrays
        Consecutive samples in microvolts.
    markers : iterable of Marker
        Triggers, in the order of time.
    """
    data, marks = path.with_suffix(".eeg"), path.with_suffix(".vmrk")
    with data.open("wb") as file:
        for block in blocks:
            file.write(digitised(block, STEP_UV, 0.0, 16, path).astype("<i2").tobytes())
    lines = ["Mk1=New Segment,,1,1,0"]
    lines += [f"Mk{i}=Stimulus,S{each.code:3d},{each.row + 1},1,0" for i, each in enumerate(markers, 2)]
    common = f"[Common Infos]\nCodepage=UTF-8\nDataFile={data.name}\n"
    marks.write_text(
        f"Brain Vision Data Exchange Marker File, Version 1.0\n\n{common}\n[Marker Infos]\n" + "\n".join(lines) + "\n",
        encoding="utf-8",
    )
    described = "\n".join(f"Ch{i}={name},,{STEP_UV:g},\u00b5V" for i, name in enumerate(channels, 1))
    path.write_text(
        f"Brain Vision Data Exchange Header File Version 1.0\n\n{common}MarkerFile={marks.name}\nDataFormat=BINARY\n"
        f"DataOrientation=MULTIPLEXED\nNumberOfChannels={len(channels)}\nSamplingInterval={1e6 / rate_hz:.10g}\n\n"
        f"[Binary Infos]\nBinaryFormat=INT_16\n\n[Channel Infos]\n{described}\n",
        encoding="utf-8",
    )
