"""What happened when, according to a recording: its annotations, triggers, BIDS events or marker streams."""

import csv
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtbrain.errors import SourceError

_INTERRUPTION = re.compile(r"BAD_ACQ_SKIP|(bad |edge )?boundary|new segment.*", re.IGNORECASE)
_BIDS_SUFFIX = re.compile(r"_(eeg|ieeg|meg)$")
_BIOSEMI_CODES = 0xFFFF  # the status channel's higher bits are the amplifier's own


@dataclass(frozen=True)
class Marker:
    """Something that happened."""

    time_s: float
    """On the clock of the time stamps that the recording's or stream's samples have."""
    text: str


def bids_events(path: Path) -> list[Marker] | None:
    """Return what the events file beside a BIDS recording says; None if there is none."""
    stem = _BIDS_SUFFIX.sub("", path.name.partition(".")[0])
    table = path.with_name(f"{stem}_events.tsv")
    if not path.name.startswith("sub-") or not table.is_file():
        return None
    found = []
    with table.open(encoding="utf-8-sig", newline="") as file:
        for line, row in enumerate(csv.DictReader(file, delimiter="\t"), 2):
            texts = (row.get(key) for key in ("trial_type", "value", "stim_file"))
            text = next((each for each in texts if each and each != "n/a"), "event")
            try:
                found.append(Marker(float(row["onset"]), text))
            except (KeyError, TypeError, ValueError) as error:
                raise SourceError(f"{table}: line {line} has no onset in seconds; correct or remove it") from error
    return found


def file_markers(path: Path, kind: str, raw: Any, starts: Sequence[int], shifts_s: Sequence[float]) -> list[Marker]:
    """Return the markers of a file that MNE reads, in order.

    Parameters
    ----------
    path, kind, raw
        The file, its format, and MNE's object.
    starts, shifts_s : sequence
        First row of each uninterrupted part, and the time lost before it.
    """
    events = bids_events(path)
    if events is None:
        events = _annotations(kind, raw, starts, shifts_s) or _triggers(path, kind, raw, starts, shifts_s)
    return sorted(events, key=lambda marker: marker.time_s)


def _shift(row: float, starts: Sequence[int], shifts_s: Sequence[float]) -> float:
    return shifts_s[max(0, bisect_right(starts, row) - 1)]


def _annotations(kind: str, raw: Any, starts: Sequence[int], shifts_s: Sequence[float]) -> list[Marker]:
    rate_hz, found = float(raw.info["sfreq"]), []
    for mark in raw.annotations:
        if _INTERRUPTION.fullmatch(mark["description"]):
            continue
        onset_s = float(mark["onset"] - raw.first_time)
        # EDF's onsets are times, interruptions included; all others are positions in the data.
        lost_s = 0.0 if kind in ("EDF", "BDF") else _shift(onset_s * rate_hz + 1e-6, starts, shifts_s)
        found.append(Marker(onset_s + lost_s, str(mark["description"])))
    return found


def _triggers(path: Path, kind: str, raw: Any, starts: Sequence[int], shifts_s: Sequence[float]) -> list[Marker]:
    import mne

    if kind == "BDF":  # its trigger channel was not read, as it may have another rate than the EEG
        raw = mne.io.read_raw(path, preload=False, verbose="ERROR")
    if kind not in ("BDF", "FIF") or "stim" not in raw.get_channel_types():
        return []
    mask = {"mask": _BIOSEMI_CODES, "mask_type": "and"} if kind == "BDF" else {}
    events = mne.find_events(raw, shortest_event=1, verbose="ERROR", **mask)
    rate_hz, first = float(raw.info["sfreq"]), int(raw.first_samp)
    rows = [(int(row) - first, int(code)) for row, _, code in events]
    return [Marker(row / rate_hz + _shift(row, starts, shifts_s), str(code)) for row, code in rows]


def xdf_markers(path: Path, file: Any, ids: Sequence[int]) -> list[Marker]:
    """Return the texts of an XDF file's marker streams, in order, on the clock of its other streams' stamps."""
    if not ids:
        return []
    import pyxdf

    loaded, _ = pyxdf.load_xdf(file, select_streams=list(ids), synchronize_clocks=True, dejitter_timestamps=False)
    found = [
        Marker(float(stamp), " ".join(map(str, texts)))
        for stream in loaded
        for stamp, texts in zip(stream["time_stamps"], stream["time_series"], strict=True)
    ]
    if any(marker.time_s != marker.time_s for marker in found):
        raise SourceError(f"{path}: a marker's time stamp is not a number")
    return sorted(found, key=lambda marker: marker.time_s)
