"""Files that MNE reads, as recordings: EEG channels only, in blocks, with jumps in time where data are missing."""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from rtbrain.errors import RateError, SourceError, UnitError
from rtbrain.messages import Chunk, FloatArray, StreamInfo
from rtbrain.sources.headers import (
    ANNOTATION_LABELS,
    MICRO,
    EdfHeader,
    check_brainvision,
    edf_losses,
    read_edf_header,
)
from rtbrain.sources.labels import VOLTS, is_eeg_name, refuse_doubled, unit_name
from rtbrain.sources.markers import file_markers
from rtbrain.sources.recording import Recording

UNKNOWN_LOSS_S: Final = 10.0
"""Jump of the time stamps where a file marks an interruption but not its length: enough for a new context."""

BLOCK_S: Final = 30.0

_BOUNDARY = re.compile(r"(bad |edge )?boundary|new segment.*", re.IGNORECASE)
_CUT_SHORT = re.compile(r"invalid tag|truncat|unexpected end|could not be read", re.IGNORECASE)
_BENIGN = re.compile(r"naming conventions|'boundary' events|Number of records from the header", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """Rows of a file that were recorded without interruption."""

    first: int
    stop: int
    shift_s: float
    """Time lost before: row i has the time stamp i / rate + shift_s."""


def parts(
    n_rows: int, rate_hz: float, losses: dict[int, float | None], skips: Sequence[tuple[int, int]] = ()
) -> list[Part]:
    """Split the rows of a file where time jumps.

    Parameters
    ----------
    n_rows : int
        Rows of the file.
    rate_hz : float
        Sampling rate.
    losses : dict
        Row of the first sample after an interruption -> seconds lost before it; None is UNKNOWN_LOSS_S.
    skips : sequence of (first, stop)
        Rows that stand for missing data: they are left out, but their time passes.
    """
    cuts = {0, n_rows, *losses, *(row for skip in skips for row in skip)}
    edges = sorted(row for row in cuts if 0 <= row <= n_rows)
    found, lost = [], 0.0
    for first, stop in pairwise(edges):
        loss = losses.get(first, 0.0) if first else 0.0
        lost += UNKNOWN_LOSS_S if loss is None else loss
        if not any(a <= first < b for a, b in skips):
            found.append(Part(first, stop, lost))
    return found


def clip(pieces: Sequence[Part], first: int, stop: int) -> list[Part]:
    """Return what samples `first` to `stop` are made of, counted over the pieces."""
    found, before = [], 0
    for part in pieces:
        n = part.stop - part.first
        a, b = max(first - before, 0), min(stop - before, n)
        if a < b:
            found.append(Part(part.first + a, part.first + b, part.shift_s))
        before += n
    return found


def open_file(path: Path, kind: str, *, unit: str | None) -> Recording:
    """Open a file through MNE; see `open_recording`.

    Parameters
    ----------
    path : Path
        An existing file that is not empty.
    kind : str
        "EDF", "BDF", "BrainVision", "EEGLAB", "FIF", "GDF" or "CNT".
    unit : str or None
        What the numbers in the file are, whatever the file says.
    """
    losses: dict[int, float | None] = {}
    header: EdfHeader | None = None
    options: dict[str, Any] = {}
    if kind in ("EDF", "BDF"):
        header = read_edf_header(path, kind)
        kept, samples = _edf_channels(path, header)
        losses = edf_losses(path, header, samples)
        # MNE brings all channels that it reads to the fastest one's rate, so the others must not be read at all.
        others = {header.labels[i] for i in range(len(header.labels))} - {header.labels[i] for i in kept}
        options["exclude"] = sorted(name for name in others if name.lower() not in ANNOTATION_LABELS)
    elif kind == "BrainVision":
        losses = check_brainvision(path)

    raw, said = _read_raw(path, kind, options)
    if kind == "EEGLAB":
        _check_fdt(path, raw)
    types = raw.get_channel_types()
    picks = [i for i, name in enumerate(raw.ch_names) if types[i] == "eeg" and is_eeg_name(name)]
    names = tuple(raw.ch_names[i] for i in picks)
    if not names:
        raise SourceError(
            f"{path}: no EEG channels; it has {', '.join(map(' '.join, zip(raw.ch_names, types, strict=True)))}"
        )
    rate_hz, n_rows = float(raw.info["sfreq"]), int(raw.n_times)
    marked, skips = _interruptions(raw)
    pieces = parts(n_rows, rate_hz, {**marked, **losses}, skips)
    n_samples = sum(part.stop - part.first for part in pieces)
    if not n_samples:
        raise SourceError(f"{path}: the file holds no samples")
    scale, unit = _scale(path, kind, raw, names, header, unit)
    factor = None if (scale == 1.0).all() else scale
    notes = header.notes if header else ()
    notes += tuple(text for text in said if not _BENIGN.search(text))
    notes += tuple(
        f"time jumps at {part.first / rate_hz + part.shift_s:.3f} s (row {part.first})" for part in pieces[1:]
    )
    return Recording(
        path=path,
        format=kind,
        info=StreamInfo(rate_hz, names, unit),
        n_samples=n_samples,
        reader=partial(_blocks, path, raw, picks, pieces, factor),
        notes=notes,
        seek=partial(_seek, path, raw, picks, pieces, factor),
        markers=partial(file_markers, path, kind, raw, [p.first for p in pieces], [p.shift_s for p in pieces]),
    )


def _seek(
    path: Path, raw: Any, picks: list[int], pieces: list[Part], scale: FloatArray | None, first: int, stop: int
) -> Iterator[Chunk]:
    return _blocks(path, raw, picks, clip(pieces, first, stop), scale)


def _blocks(path: Path, raw: Any, picks: list[int], pieces: list[Part], scale: FloatArray | None) -> Iterator[Chunk]:
    rate_hz = float(raw.info["sfreq"])
    rows, start = max(1, round(BLOCK_S * rate_hz)), 0
    for part in pieces:
        for first in range(part.first, part.stop, rows):
            stop = min(first + rows, part.stop)
            try:
                with _warnings():
                    block = raw.get_data(picks, first, stop)  # (channels, n)
            except Exception as error:  # a reader may fail in any way on a damaged file
                raise SourceError(f"{path}: samples {first} to {stop} cannot be read: {error}") from error
            data = np.ascontiguousarray(block.T)  # (n, channels)
            if scale is not None:
                data *= scale
            times = np.arange(first, stop) / rate_hz + part.shift_s
            yield Chunk(data, start, times)
            start += len(data)


@contextmanager
def _warnings() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def _read_raw(path: Path, kind: str, options: dict[str, Any]) -> tuple[Any, list[str]]:
    """Return MNE's raw object and what MNE warned about, except for what is an error to us."""
    import mne

    raw, failure = None, None  # type: Any, Exception | None
    with _warnings() as caught:
        try:
            raw = mne.io.read_raw(path, preload=False, verbose="WARNING", **options)
        except Exception as error:  # readers fail in any way on a damaged file (AttributeError, struct.error, ...)
            failure = error
    if failure is not None and "encoding='latin1'" in str(failure) and "encoding" not in options:
        # MNE's advice: older writers put Latin-1 into EDF annotations, which should be UTF-8.
        return _read_raw(path, kind, {**options, "encoding": "latin1"})
    said = [str(warning.message) for warning in caught]
    for text in said:
        if "not unique" in text:  # MNE renames them to Fz-0, Fz-1 (and may fail over that); its text has the names
            doubled = [name for name in re.findall(r"'([^']*)'", text) if is_eeg_name(name)]
            refuse_doubled(path, 2 * doubled)
        if _CUT_SHORT.search(text):
            raise SourceError(f"{path}: the file is cut short or damaged ({text}); copy it again from its origin")
    if failure is None:
        return raw, said
    if isinstance(failure, FileNotFoundError):
        raise SourceError(f"{path}: a file that belongs to it is missing: {failure}") from failure
    if "number of trials" in str(failure) or (kind == "FIF" and mne.what(path) == "epochs"):
        raise SourceError(f"{path}: this file holds epochs, rtbrain needs the continuous recording") from failure
    raise SourceError(
        f"{path}: not readable as {kind} ({failure}); it may be damaged or cut short: copy it again"
    ) from failure


def _edf_channels(path: Path, header: EdfHeader) -> tuple[list[int], int]:
    """Return the positions of the EEG channels and their common number of samples per record."""
    # A channel without a name is no electrode: some BDF files leave the trigger channel's label empty.
    named = [i for i, name in enumerate(header.labels) if name and name.lower() not in ANNOTATION_LABELS]
    kept = [i for i in named if is_eeg_name(header.labels[i])]
    # `%` or `bpm` is no EEG; where no channel has a voltage, the units are missing, not the EEG.
    voltage = [i for i in kept if not header.dimensions[i] or unit_name(header.dimensions[i]) in VOLTS]
    kept = voltage or kept
    if not kept:
        raise SourceError(f"{path}: no EEG channels; it has {', '.join(header.labels) or 'none at all'}")
    refuse_doubled(path, [header.labels[i] for i in kept])
    if len({header.samples[i] for i in kept}) > 1:
        rates = ", ".join(f"{header.labels[i]} {header.samples[i] / header.record_s:g} Hz" for i in kept)
        raise RateError(f"{path}: the EEG channels differ in rate: {rates}; resample the recording to one rate")
    return kept, header.samples[kept[0]]


def _check_fdt(path: Path, raw: Any) -> None:
    data = Path(raw.filenames[0])
    if data.suffix.lower() != ".fdt":
        return
    size, promised = data.stat().st_size, 4 * len(raw.ch_names) * raw.n_times
    if size != promised:
        raise SourceError(
            f"{path}: its data file {data.name} has {size} bytes, the header promises {promised}; copy it again"
        )


def _interruptions(raw: Any) -> tuple[dict[int, float | None], list[tuple[int, int]]]:
    """Return the losses and skips (see `parts`) that annotations mark."""
    losses: dict[int, float | None] = {}
    skips = []
    rate_hz = float(raw.info["sfreq"])
    for mark in raw.annotations:
        onset = (mark["onset"] - raw.first_time) * rate_hz
        if mark["description"] == "BAD_ACQ_SKIP":  # zeros that MNE puts where a .fif has no data
            skips.append((round(onset), round(onset + mark["duration"] * rate_hz)))
        elif _BOUNDARY.fullmatch(mark["description"]):
            # EEGLAB puts boundaries half-way between two samples, and in `duration` the length that was cut out.
            row, lost = math.ceil(onset - 1e-3), float(mark["duration"])
            losses[row] = lost if lost > 0 and mark["description"] == "boundary" else losses.get(row)
    return losses, skips


def _scale(
    path: Path, kind: str, raw: Any, names: tuple[str, ...], header: EdfHeader | None, unit: str | None
) -> tuple[FloatArray, str]:
    """Return the factor (channels,) that MNE's numbers need, and the unit that they then have."""
    if header is not None:
        written = [header.dimensions[header.labels.index(name)] for name in names]
        # What MNE multiplies by: it knows few spellings, and takes all others for volts.
        applied = np.array([1e-6 if text in MICRO else 1e-3 if text == "mV" else 1.0 for text in written])
    else:
        given = getattr(raw, "_orig_units", {})
        default = "uV" if kind in ("EEGLAB", "CNT") else "V"
        written = [given.get(name, default) for name in names]
        applied = np.array([VOLTS.get(unit_name(text), 1.0) for text in written])
    units = [unit_name(text) for text in written]
    if unit is not None:
        return 1.0 / applied, unit
    if "unknown" not in units:
        return np.array([VOLTS[known] for known in units]) / applied, "V"
    if set(units) == {"unknown"}:
        return 1.0 / applied, "unknown"
    lacking = ", ".join(
        f"{name} ({text!r})" for name, text in zip(names, written, strict=True) if unit_name(text) == "unknown"
    )
    raise UnitError(f"{path}: some channels have no known unit: {lacking}; state the unit of all (option --unit)")
