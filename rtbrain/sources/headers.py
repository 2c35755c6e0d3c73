"""What MNE does not tell about EDF, BDF and BrainVision files: whether they are whole, and where time jumps.

MNE shortens a cut EDF or BrainVision file (with a warning at most), renames doubled channels and joins the pieces
of a discontinuous EDF+ as if nothing were missing. So their headers are read here as well.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rtbrain.errors import SourceError

MICRO = ("\u03bcV", "\u00b5V", "\x83\xcaV", "uV")
"""Microvolts as EDF headers write them: Greek mu, micro sign, Shift-JIS mu, letter u."""

_BRAINVISION_BYTES = {"INT_16": 2, "UINT_16": 2, "INT_32": 4, "IEEE_FLOAT_32": 4, "IEEE_FLOAT_64": 8}
_BEGINNINGS = {"EDF": b"0       ", "BDF": b"\xffBIOSEMI"}


@dataclass(frozen=True)
class EdfHeader:
    """The header of an EDF or BDF file, as far as it is needed here; tuples have one entry per signal."""

    labels: tuple[str, ...]
    dimensions: tuple[str, ...]
    """Physical dimension (unit), as written."""
    samples: tuple[int, ...]
    """Samples per data record."""
    record_s: float
    n_records: int
    """Number of whole data records in the file."""
    first_byte: int
    sample_bytes: int
    discontinuous: bool
    notes: tuple[str, ...]

    @property
    def annotations(self) -> tuple[int, ...]:
        """Positions of the signals that hold annotations instead of samples."""
        return tuple(i for i, label in enumerate(self.labels) if label.lower() in ANNOTATION_LABELS)


ANNOTATION_LABELS = ("edf annotations", "bdf annotations")


def read_edf_header(path: Path, kind: str) -> EdfHeader:
    """Read the header of an EDF or BDF file and check that the file holds all that it promises.

    Parameters
    ----------
    path : Path
        An existing file.
    kind : str
        "EDF" or "BDF".
    """
    with path.open("rb") as file:
        head = file.read(256)
        try:
            if len(head) < 256:
                raise ValueError(f"it has {len(head)} bytes, and the header alone has more than 256")
            if not head.startswith(_BEGINNINGS[kind]):
                raise ValueError(f"it begins with {head[:8]!r}, not with {_BEGINNINGS[kind]!r}")
            first_byte, promised = _whole(head[184:192]), _whole(head[236:244])
            record_s, n_signals = float(head[244:252].rstrip(b"\x00")), _whole(head[252:256])
            table = file.read(256 * n_signals)
            if len(table) < 256 * n_signals:
                raise ValueError(f"it ends within the header of {256 + 256 * n_signals} bytes")
            samples = tuple(_whole(field.encode()) for field in _fields(table, n_signals, 216, 8))
        except ValueError as error:
            raise SourceError(f"{path}: this is not a whole {kind} file: {error}; check or copy it again") from error
    sample_bytes = 3 if kind == "BDF" else 2
    size, record_bytes = path.stat().st_size, sum(samples) * sample_bytes
    if not record_bytes or not promised or record_s <= 0:
        raise SourceError(f"{path}: the header promises no samples; was the recording ever started?")
    if size < first_byte + promised * record_bytes:
        raise SourceError(
            f"{path}: the file is cut short: its header promises {promised} records, "
            f"{first_byte + promised * record_bytes} bytes, but it has {size}; copy it again from its origin"
        )
    n_records = (size - first_byte) // record_bytes
    notes: tuple[str, ...] = ()
    if promised < 0:
        notes = (f"the header does not say how long the recording is; the file holds {n_records} whole records",)
    elif n_records > promised:
        notes = (f"the header promises {promised} records, the file holds {n_records}; all are read",)
    return EdfHeader(
        labels=tuple(_fields(table, n_signals, 0, 16)),
        dimensions=tuple(_fields(table, n_signals, 96, 8)),
        samples=samples,
        record_s=record_s,
        n_records=n_records,
        first_byte=first_byte,
        sample_bytes=sample_bytes,
        discontinuous=head[192:197] in (b"EDF+D", b"BDF+D"),
        notes=notes,
    )


def _fields(table: bytes, n: int, offset: int, width: int) -> list[str]:
    # Each field is stored for all signals in a row, so the field at `offset` of 256 starts after n * offset bytes.
    starts = range(n * offset, n * (offset + width), width)
    return [table[i : i + width].strip().decode("latin-1") for i in starts]


def _whole(field: bytes) -> int:
    return int(field.rstrip(b"\x00"))


def edf_losses(path: Path, header: EdfHeader, samples: int) -> dict[int, float | None]:
    """Return where the records of a discontinuous EDF+ do not follow each other.

    Parameters
    ----------
    path : Path
        The file.
    header : EdfHeader
        Its header.
    samples : int
        Samples per record of the channels that are read.

    Returns
    -------
    dict
        Row of the first sample after a gap -> seconds lost before it.
    """
    if not header.discontinuous:
        return {}
    if not header.annotations:
        raise SourceError(f"{path}: a discontinuous EDF+ without annotations does not say when its records began")
    signal = header.annotations[0]
    skip = sum(header.samples[:signal]) * header.sample_bytes
    width = header.samples[signal] * header.sample_bytes
    record_bytes = sum(header.samples) * header.sample_bytes
    losses: dict[int, float | None] = {}
    expected: float | None = None
    with path.open("rb") as file:
        for record in range(header.n_records):
            file.seek(header.first_byte + record * record_bytes + skip)
            found = re.match(rb"([+-]\d+(?:\.\d*)?)\x14\x14", file.read(width))
            if found is None:
                raise SourceError(f"{path}: record {record + 1} of this discontinuous EDF+ does not say when it began")
            onset = float(found[1])
            # Onsets are written with limited digits: less than half a sample is rounding.
            if expected is not None and abs(onset - expected) > 0.5 * header.record_s / samples:
                losses[record * samples] = onset - expected
            expected = onset + header.record_s
    return losses


def check_brainvision(path: Path) -> dict[int, float | None]:
    """Check that a BrainVision recording has all its files, whole, and return where its segments begin.

    Parameters
    ----------
    path : Path
        The .vhdr file.

    Returns
    -------
    dict
        Row of the first sample of each segment but the first -> seconds lost before it, None if unknown.
    """
    text = _text(path)
    data = path.with_name(_value(text, "DataFile") or path.with_suffix(".eeg").name)
    if not data.is_file():
        raise SourceError(f"{path}: its data file {data.name} is missing; put it beside the .vhdr")
    n_channels, width = int(_value(text, "NumberOfChannels") or 0), None
    if (_value(text, "DataFormat") or "").upper() == "BINARY":
        width = _BRAINVISION_BYTES.get((_value(text, "BinaryFormat") or "").upper())
    if not n_channels or width is None:
        return {}  # text data, or a header that MNE will refuse with its own reason
    size, frame = data.stat().st_size, n_channels * width
    points = int(_value(text, "DataPoints") or 0)
    if size % frame or size < points * frame:
        raise SourceError(
            f"{path}: its data file {data.name} is cut short: {size} bytes are {size / frame:g} samples of "
            f"{n_channels} channels x {width} bytes"
            + (f", the header promises {points}" if points else "")
            + "; copy it again from its origin"
        )
    if not size:
        raise SourceError(f"{path}: its data file {data.name} is empty (0 bytes); copy it again from its origin")
    marker_name = _value(text, "MarkerFile")
    if not marker_name:
        return {}
    markers = path.with_name(marker_name)
    if not markers.is_file():
        markers = path.with_suffix(".vmrk")  # a renamed recording; MNE looks there as well
    if not markers.is_file():
        raise SourceError(f"{path}: its marker file {marker_name} is missing; breaks in time would go unnoticed")
    found = re.findall(r"^Mk\d+=([^,]*),[^,]*,(\d+),[^,]*,[^,\r\n]*(?:,(\d{20}))?", _text(markers), re.MULTILINE)
    rate_hz = 1e6 / float(_value(text, "SamplingInterval") or "nan")
    last = max((int(row) for _, row, _ in found), default=0)
    if last > size // frame + rate_hz:  # a second of grace: recorders may stamp a marker just after the end
        raise SourceError(
            f"{path}: its data file {data.name} is cut short: it holds {size // frame} samples, but there is a "
            f"marker at sample {last}; copy it again from its origin"
        )
    segments = [(int(row) - 1, date) for kind, row, date in found if kind.strip().lower() == "new segment"]
    return _segment_losses(segments, rate_hz)


def _segment_losses(segments: Sequence[tuple[int, str]], rate_hz: float) -> dict[int, float | None]:
    losses: dict[int, float | None] = {}
    before: tuple[int, datetime | None] = (0, None)
    for row, date in segments:
        try:
            began = datetime.strptime(date, "%Y%m%d%H%M%S%f")
        except ValueError:  # no date, or all zeros
            began = None
        if row > 0:
            losses[row] = None
            if began is not None and before[1] is not None:
                lost = (began - before[1]).total_seconds() - (row - before[0]) / rate_hz
                # A new segment that loses nothing cannot be: such dates are not to be believed.
                losses[row] = lost if lost > 0 else None
        before = row, began
    return losses


def _text(path: Path) -> str:
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _value(text: str, key: str) -> str | None:
    found = re.search(rf"^{key}[ \t]*=[ \t]*(.*?)[ \t\r]*$", text, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else None
