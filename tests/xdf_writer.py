"""A minimal writer of XDF files, for tests: what LabRecorder writes, without LabRecorder."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

_TYPES = {"float32": "<f4", "double64": "<f8", "int16": "<i2", "int32": "<i4"}


@dataclass
class XdfStream:
    """One stream; `data` (n, channels) or, with format "string", a list of n texts; `stamps` (n,) seconds."""

    name: str
    data: np.ndarray | list[str]
    stamps: np.ndarray
    rate_hz: float
    type: str = "EEG"
    format: str = "float32"
    labels: list[str] | None = None
    units: list[str] | None = None
    types: list[str] | None = None
    offsets: list[tuple[float, float]] = field(default_factory=list)
    """Clock offset measurements: (time, offset), seconds."""
    stamp_every: int = 1
    """Write every n-th stamp only, as LSL does within a chunk; readers go on by the nominal rate."""
    footer: bool = True


def chunk(tag: int, content: bytes) -> bytes:
    body = struct.pack("<H", tag) + content
    return b"\x04" + struct.pack("<I", len(body)) + body


def _header(stream: XdfStream) -> bytes:
    n_channels = 1 if stream.format == "string" else np.shape(stream.data)[1]
    channels = ""
    for i in range(n_channels):
        given = {"label": stream.labels, "unit": stream.units, "type": stream.types}
        fields = (f"<{key}>{escape(values[i])}</{key}>" for key, values in given.items() if values)
        channels += f"<channel>{''.join(fields)}</channel>"
    desc = (
        f"<desc><channels>{channels}</channels></desc>" if stream.labels or stream.units or stream.types else "<desc/>"
    )
    return (
        f"<?xml version='1.0'?><info><name>{escape(stream.name)}</name><type>{stream.type}</type>"
        f"<channel_count>{n_channels}</channel_count><nominal_srate>{stream.rate_hz:g}</nominal_srate>"
        f"<channel_format>{stream.format}</channel_format>{desc}</info>"
    ).encode()


def _samples(stream: XdfStream, first: int, stop: int) -> bytes:
    out = b"\x04" + struct.pack("<I", stop - first)
    for i in range(first, stop):
        stamped = (i - first) % stream.stamp_every == 0
        out += b"\x08" + struct.pack("<d", stream.stamps[i]) if stamped else b"\x00"
        if stream.format == "string":
            text = stream.data[i].encode()
            out += b"\x04" + struct.pack("<I", len(text)) + text
        else:
            out += np.asarray(stream.data[i]).astype(_TYPES[stream.format]).tobytes()
    return out


def xdf_bytes(*streams: XdfStream, rows: int = 50) -> bytes:
    """Return a file with these streams, in chunks of some rows each."""
    out = b"XDF:" + chunk(1, b"<?xml version='1.0'?><info><version>1.0</version></info>")
    for number, stream in enumerate(streams, 1):
        out += chunk(2, struct.pack("<I", number) + _header(stream))
    for number, stream in enumerate(streams, 1):
        for first in range(0, len(stream.data), rows):
            out += chunk(3, struct.pack("<I", number) + _samples(stream, first, min(first + rows, len(stream.data))))
        for time, offset in stream.offsets:
            out += chunk(4, struct.pack("<Idd", number, time, offset))
    for number, stream in enumerate(streams, 1):
        if stream.footer:
            text = f"<?xml version='1.0'?><info><sample_count>{len(stream.data)}</sample_count></info>"
            out += chunk(6, struct.pack("<I", number) + text.encode())
    return out


def write_xdf(path: Path, *streams: XdfStream, rows: int = 50) -> Path:
    """Write the file and return its path."""
    path.write_bytes(xdf_bytes(*streams, rows=rows))
    return path
