"""XDF files (LabRecorder) as recordings: the one EEG stream, with its own time stamps, gaps and all."""

import gzip
import logging
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from rtbrain.errors import RateError, SourceError
from rtbrain.messages import Chunk, FloatArray
from rtbrain.sources.description import Description, eeg_channels, fields_of
from rtbrain.sources.markers import Marker, xdf_markers
from rtbrain.sources.recording import Recording

MAX_RATE_ERROR: Final = 0.02
"""Largest relative difference between a stream's nominal rate and the rate of its stamps."""

BLOCK_S: Final = 10.0

_HEADER, _SAMPLES, _FOOTER, _WITH_STREAM = 2, 3, 6, (2, 3, 4, 6)


@dataclass(frozen=True)
class Stream(Description):
    """What an XDF file says about one of its streams."""

    id: int = 0
    n_samples: int = 0
    ended: bool = False
    """The recorder closed the stream; if not, it was killed."""

    def __str__(self) -> str:
        return (
            f"{self.name!r} (id {self.id}, type {self.type!r}, {len(self.labels)} channels of {self.format}, "
            f"{self.rate_hz:g} Hz, {self.n_samples} samples)"
        )


def open_xdf(path: Path, *, unit: str | None, stream: str | None) -> Recording:
    """Open the EEG stream of an XDF file; see `open_recording`.

    Parameters
    ----------
    path : Path
        An existing file that is not empty.
    unit : str or None
        The unit of the samples, whatever the file says.
    stream : str or None
        Name (or id, as decimal digits) of the stream; None takes the only one of type EEG.
    """
    streams = read_streams(path)
    found = _choose(path, streams, stream)
    picks, info = eeg_channels(path, found, unit)
    data, stamps, notes = _load(path, found)
    _check_rate(path, found, stamps)
    return Recording(
        path=path,
        format="XDF",
        info=info,
        n_samples=len(data),
        reader=partial(_blocks, data, stamps, picks, max(1, round(BLOCK_S * found.rate_hz))),
        notes=notes,
        markers=partial(_markers, path, [each.id for each in streams if each.format == "string" and each.n_samples]),
    )


def _markers(path: Path, ids: list[int]) -> list[Marker]:
    with _log_of_pyxdf(), _open(path) as file:
        return xdf_markers(path, file, ids)


def read_streams(path: Path) -> list[Stream]:
    """Walk through the file from chunk to chunk, check that it is whole, and return its streams.

    pyxdf goes on silently, with wrong numbers in the last sample, where a file was cut.
    """
    streams: dict[int, Stream] = {}
    try:
        with _open(path) as file:
            if file.read(4) != b"XDF:":
                raise ValueError("it does not begin with 'XDF:'")
            while (length := _varlen(file)) is not None:
                content = _exactly(file, length)
                tag = int.from_bytes(content[:2], "little")
                stream_id = int.from_bytes(content[2:6], "little") if tag in _WITH_STREAM else -1
                if tag == _HEADER:
                    root = ElementTree.fromstring(content[6:].decode("utf-8", "replace"))
                    streams[stream_id] = Stream(**fields_of(root), id=stream_id)
                elif tag == _SAMPLES:
                    before = streams[stream_id]
                    more = int.from_bytes(content[7 : 7 + content[6]], "little")
                    streams[stream_id] = replace(before, n_samples=before.n_samples + more)
                elif tag == _FOOTER:
                    streams[stream_id] = replace(streams[stream_id], ended=True)
    except EOFError as error:
        raise SourceError(f"{path}: the file is cut short: {error}; copy it again from its origin") from error
    except (ValueError, KeyError, OSError, struct.error, ElementTree.ParseError) as error:
        raise SourceError(f"{path}: this is not a sound XDF file: {error!r}; copy it again") from error
    return list(streams.values())


def _open(path: Path) -> BufferedIOBase:
    packed = path.name.lower().endswith((".xdfz", ".gz"))
    return gzip.open(path, "rb") if packed else path.open("rb")


def _varlen(file: BufferedIOBase) -> int | None:
    """Read a length, which is stored as its own width in bytes and then the number; None at the file's end."""
    width = file.read(1)
    if not width:
        return None
    if width[0] not in (1, 4, 8):
        raise ValueError(f"a chunk's length has {width[0]} bytes")
    return int.from_bytes(_exactly(file, width[0]), "little")


def _exactly(file: BufferedIOBase, n: int) -> bytes:
    content = file.read(n)
    if len(content) < n:
        raise EOFError(f"its last chunk should have {n} bytes and has {len(content)}")
    return content


def _choose(path: Path, streams: list[Stream], wanted: str | None) -> Stream:
    listed = "; ".join(map(str, streams)) or "none"
    if wanted is None:
        fitting, what = [s for s in streams if s.type.lower() == "eeg"], "of type EEG"
    else:
        fitting, what = [s for s in streams if wanted in (s.name, str(s.id))], f"named {wanted!r}"
    if len(fitting) > 1:  # a stream that never sent anything is no rival
        fitting = [s for s in fitting if s.n_samples] or fitting
    if len(fitting) != 1:
        count = "several streams" if fitting else "no stream"
        raise SourceError(f"{path}: {count} {what}; choose one by its name or id (option --stream) from: {listed}")
    found = fitting[0]
    if found.format == "string":
        raise SourceError(f"{path}: stream {found} holds texts, not samples; choose another from: {listed}")
    if found.rate_hz <= 0:
        raise SourceError(f"{path}: stream {found} has no regular rate, EEG must; choose another from: {listed}")
    if not found.n_samples:
        raise SourceError(f"{path}: stream {found} is empty; the file's streams are: {listed}")
    return found


def _load(path: Path, stream: Stream) -> tuple[NDArray[Any], FloatArray, tuple[str, ...]]:
    """Return samples (n, channels) in the file's own type, stamps (n,) in seconds, and notes."""
    import pyxdf

    with _log_of_pyxdf() as records, np.errstate(all="ignore"):
        try:
            loaded, _ = pyxdf.load_xdf(
                _open(path),
                select_streams=[stream.id],
                synchronize_clocks=True,
                handle_clock_resets=True,
                dejitter_timestamps=False,  # the continuity stage does it, for files as for live streams
            )
        except Exception as error:  # the file's chunks are whole, but what is in them may be anything
            raise SourceError(f"{path}: not readable as XDF ({error!r}); copy it again from its origin") from error
    data, stamps = loaded[0]["time_series"], loaded[0]["time_stamps"]
    damage = [record.getMessage() for record in records if record.levelno >= logging.ERROR]
    if damage:
        raise SourceError(f"{path}: the file is damaged ({damage[0]}); copy it again from its origin")
    if not np.isfinite(stamps).all():
        raise SourceError(f"{path}: stream {stream} has time stamps that are not finite numbers")
    notes = []
    if not stream.ended:
        notes.append("the recorder did not close the stream; its last samples may be missing")
    if len(data) != stream.n_samples:
        notes.append(f"{stream.n_samples - len(data)} samples after the stream's end were left out")
    resets = len(loaded[0]["info"]["clock_segments"]) - 1
    if resets > 0:
        notes.append(f"the sender's clock was reset {resets} times")
    return data, stamps, tuple(notes)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def _log_of_pyxdf() -> Iterator[list[logging.LogRecord]]:
    """Collect what pyxdf logs: it reports damage there and nowhere else."""
    handler = _Collector()
    logger = logging.getLogger("pyxdf.pyxdf")
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield handler.records
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def effective_rate_hz(stamps: FloatArray, nominal_hz: float) -> float:
    """Return the rate of stamps (n,) in seconds, whatever their jitter and gaps; NaN for a single one.

    The median over the times that 2 s of samples took: within a chunk, LSL makes stamps from the nominal rate,
    so that the differences of neighbours would confirm that rate whatever the true one is.
    """
    lag = min(len(stamps) - 1, max(1, round(2 * nominal_hz)))
    if lag < 1:
        return float("nan")
    took = float(np.median(stamps[lag:] - stamps[:-lag]))
    return lag / took if took > 0 else 0.0


def _check_rate(path: Path, stream: Stream, stamps: FloatArray) -> None:
    effective_hz = effective_rate_hz(stamps, stream.rate_hz)
    if abs(effective_hz / stream.rate_hz - 1) > MAX_RATE_ERROR:  # never for NaN
        raise RateError(
            f"{path}: stream {stream} declares {stream.rate_hz:g} Hz, but by its time stamps it has "
            f"{effective_hz:.2f} Hz; correct the rate that the sender declares"
        )


def _blocks(data: NDArray[Any], stamps: FloatArray, picks: list[int], rows: int) -> Iterator[Chunk]:
    for start in range(0, len(data), rows):
        block = data[start : start + rows, picks]
        yield Chunk(np.ascontiguousarray(block, np.float64), start, stamps[start : start + rows])
