"""DEAP: the original BDF recordings with participant_ratings.csv, or the preprocessed .dat files.

Fields of a trial: `valence`, `arousal`, `dominance`, `liking` (1 to 9) and, where given, `familiarity`. The trial's
name and stimulus tell the video; nothing of either may reach a model, as the video alone predicts the rating.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from rtbrain.config import parse
from rtbrain.errors import RtbrainError, SourceError
from rtbrain.messages import IntArray, StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.sources.headers import read_edf_header
from rtbrain.sources.recording import excerpt, open_recording
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets.arrays import ArraySource, pick
from rtbrain.training.datasets.edf_facts import edf_facts
from rtbrain.training.datasets.safe_pickle import load_arrays
from rtbrain.training.datasets.tables import read_table, value_of
from rtbrain.training.trials import Found, Problem, Trial, Value

CHANNELS: Final = (
    "Fp1", "AF3", "F3", "F7", "FC5", "FC1", "C3", "T7", "CP5", "CP1", "P3", "P7", "PO3", "O1", "Oz", "Pz", "Fp2",
    "AF4", "Fz", "F4", "F8", "FC6", "FC2", "Cz", "C4", "T8", "CP6", "CP2", "P4", "P8", "PO4", "O2",
)  # fmt: skip
"""In the order of the preprocessed files; in the original ones the order differs, and names decide."""
RATINGS: Final = ("valence", "arousal", "dominance", "liking")
VIDEO_S: Final = 60.0
VIDEO_STARTS: Final = 4
"""Trigger code of a video's start."""
PREPROCESSED_HZ: Final = 128.0
BASELINE: Final = 384
"""Samples before the video in preprocessed trials: 3 s."""
SHAPE: Final = (40, 8064)
"""Channels and samples of a preprocessed trial."""


@dataclass(frozen=True)
class DeapOptions:
    """What a configuration tells the reader."""

    form: Literal["original", "preprocessed"] = "original"
    missing_trials: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Played positions (from 1) that a recording lacks, by subject, such as {s28: [24, 25, 26]}."""


def read(root: Path, config: DatasetConfig) -> Found:
    """Read the set below `root` in the form that the options name."""
    options = parse(DeapOptions, config.options, f"options of {config.name}")
    original = options.form == "original"
    name, ending = ("data_original", "bdf") if original else ("data_preprocessed_python", "dat")
    folder = root / name if (root / name).is_dir() else root
    files = [
        (f"s{int(match[1]):02d}", path)
        for path in sorted(folder.iterdir())
        if (match := re.fullmatch(rf"s(\d+)\.{ending}", path.name, re.IGNORECASE))
    ]
    if not files:
        return Found(())
    ratings = _ratings(root, folder) if original else {}
    trials: list[Trial] = []
    problems: list[Problem] = []
    for subject, path in files:
        try:
            if original:
                missing = options.missing_trials.get(subject, ())
                trials += _original(subject, path, ratings.get(subject, {}), missing)
            else:
                trials += _preprocessed(subject, path)
        except RtbrainError as error:
            problems.append(Problem(str(path), str(error)))
    low_hz = min(band.low_hz for band in config.recipe.bands)
    if not original and low_hz < 4:
        what = f"holds nothing below 4 Hz, but the recipe begins at {low_hz:g} Hz; use the original recordings"
        problems.append(Problem(str(folder), what))
    return Found(tuple(trials), tuple(problems))


@dataclass(frozen=True)
class _Played:
    video: int
    fields: dict[str, Value]


def _ratings(root: Path, folder: Path) -> dict[str, dict[int, _Played]]:
    """Return what each subject was shown and said, by the position at which it was played (from 1)."""
    name = "participant_ratings.csv"
    path = next((p for p in (root / "metadata_csv" / name, root / name, folder / name) if p.is_file()), None)
    if path is None:
        raise SourceError(
            f"{root / 'metadata_csv' / name} is missing; without it nobody knows which video was played when"
        )
    table = read_table(path, ",")
    table.need("Participant_id", "Trial", "Experiment_id", *(rating.capitalize() for rating in RATINGS))
    found: dict[str, dict[int, _Played]] = {}
    for row in table.rows:
        try:
            subject, played, video = (int(row[key]) for key in ("Participant_id", "Trial", "Experiment_id"))
        except ValueError as error:
            raise SourceError(f"{path}: {error}; ids and trials must be whole numbers: copy it again") from error
        given = {name: value_of(row.get(name.capitalize(), "")) for name in (*RATINGS, "familiarity")}
        fields = {name: value for name, value in given.items() if value is not None}
        own = found.setdefault(f"s{subject:02d}", {})
        if played in own or any(other.video == video for other in own.values()):
            raise SourceError(f"{path}: participant {subject} has trial {played} or video {video} twice; copy it again")
        own[played] = _Played(video, fields)
    return found


def _original(subject: str, path: Path, played: dict[int, _Played], missing: tuple[int, ...]) -> list[Trial]:
    if not played:
        raise SourceError(f"participant_ratings.csv has no rows of {subject}; copy it again")
    recording = open_recording(path)
    pick(recording, CHANNELS)  # all are there, whatever their order
    onsets = video_onsets(path) / recording.info.rate_hz
    positions = [position for position in sorted(played) if position not in missing]
    if len(onsets) != len(positions):
        raise SourceError(
            f"{path}: {len(onsets)} videos begin (trigger {VIDEO_STARTS}), participant_ratings.csv has {len(played)} "
            f"and {len(missing)} are declared missing; state those that are not in the recording as `missing_trials`"
        )
    if len(onsets) and (np.diff(onsets, append=recording.duration_s) < VIDEO_S - 0.5 / recording.info.rate_hz).any():
        raise SourceError(f"{path}: videos of {VIDEO_S:g} s overlap or go beyond the end; the triggers are damaged")
    facts: dict[str, Value] = {
        "rate_hz": recording.info.rate_hz,
        "n_channels": float(len(read_edf_header(path, "BDF").labels)),
        **edf_facts(path),
    }
    return [
        Trial(
            subject=subject,
            name=f"{subject}_video-{played[position].video:02d}",
            files=(path,),
            length_s=VIDEO_S,
            open=partial(_open_original, path, float(onset)),
            fields=played[position].fields,
            stimulus=f"video-{played[position].video:02d}",
            facts=facts,
        )
        for position, onset in zip(positions, onsets, strict=True)
    ]


def _open_original(path: Path, onset_s: float) -> Source:
    return excerpt(pick(open_recording(path), CHANNELS), onset_s, VIDEO_S)


def video_onsets(path: Path) -> IntArray:
    """Return the samples at which videos begin.

    The trigger channel is the last signal whatever its label is (`Status`, or nothing), and only its lowest 8 bits
    are triggers: in some recordings higher ones are set throughout.
    """
    header = read_edf_header(path, "BDF")
    if len(set(header.samples)) > 1:  # then its samples are not those of the EEG
        raise SourceError(f"{path}: signals differ in rate; get the original file, triggers cannot be placed here")
    shape = (header.n_records, sum(header.samples) * header.sample_bytes)
    records = np.memmap(path, np.uint8, "r", offset=header.first_byte, shape=shape)
    start = sum(header.samples[:-1]) * header.sample_bytes
    codes = np.asarray(records[:, start :: header.sample_bytes]).ravel()  # little-endian: the lowest byte comes first
    begins = (codes == VIDEO_STARTS) & (np.concatenate(([0], codes[:-1])) != VIDEO_STARTS)
    return np.flatnonzero(begins).astype(np.int64)


def _preprocessed(subject: str, path: Path) -> list[Trial]:
    data, labels = _load(path)
    facts: dict[str, Value] = {"rate_hz": PREPROCESSED_HZ, "n_channels": 32.0, "prefilter": "4-45 Hz"}
    return [
        Trial(
            subject=subject,
            name=f"{subject}_video-{video:02d}",
            files=(path,),
            length_s=VIDEO_S,
            open=partial(_open_preprocessed, path, video - 1, data.shape[2] - BASELINE),
            fields=dict(zip(RATINGS, map(float, labels[video - 1]), strict=True)),
            stimulus=f"video-{video:02d}",
            facts=facts,
        )
        for video in range(1, len(data) + 1)
    ]


def _open_preprocessed(path: Path, index: int, n_samples: int) -> Source:
    return ArraySource(partial(_video, path, index), StreamInfo(PREPROCESSED_HZ, CHANNELS, "uV"), n_samples)


def _video(path: Path, index: int) -> NDArray[Any]:
    data: NDArray[Any] = _load(path)[0][index, : len(CHANNELS), BASELINE:]
    return data


def _load(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    return _load_version(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=1)  # the 40 trials of a file are read one after the other
def _load_version(path: Path, mtime_ns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    content = load_arrays(path)
    data, labels = content.get("data", np.empty(0)), content.get("labels", np.empty(0))
    if data.ndim != 3 or data.shape[1:] != SHAPE or labels.shape != (len(data), len(RATINGS)):
        raise SourceError(
            f"{path}: data {data.shape} and labels {labels.shape} are not (40, 40, 8064) and (40, 4); get the original"
        )
    return data, labels
