"""SEED: `Preprocessed_EEG/<subject>_<date>.mat`, 15 arrays each, labels in label.mat; the first session only.

Fields of a trial: `emotion` (-1, 0 or 1). Options: none. CB1 and CB2 are in no standard montage and are left out.
"""

import re
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rtbrain.errors import ConfigError, RtbrainError, SourceError
from rtbrain.messages import StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets.arrays import ArraySource, check_microvolts, pick
from rtbrain.training.datasets.identical import identical
from rtbrain.training.trials import Found, Problem, Trial, Value

RATE_HZ: Final = 200.0
CHANNELS: Final = (
    "FP1", "FPZ", "FP2", "AF3", "AF4", "F7", "F5", "F3", "F1", "FZ", "F2", "F4", "F6", "F8", "FT7", "FC5", "FC3",
    "FC1", "FCZ", "FC2", "FC4", "FC6", "FT8", "T7", "C5", "C3", "C1", "CZ", "C2", "C4", "C6", "T8", "TP7", "CP5",
    "CP3", "CP1", "CPZ", "CP2", "CP4", "CP6", "TP8", "P7", "P5", "P3", "P1", "PZ", "P2", "P4", "P6", "P8", "PO7",
    "PO5", "PO3", "POZ", "PO4", "PO6", "PO8", "CB1", "O1", "OZ", "O2", "CB2",
)  # fmt: skip
"""Rows of every array, as in the set's channel-order.xlsx."""
FIRST: Final = (
    20131027, 20140404, 20140603, 20140621, 20140411, 20130712, 20131027, 20140511, 20140620, 20131130, 20140618,
    20131127, 20140527, 20140601, 20130709,
)  # fmt: skip
"""Dates of the first sessions of subjects 1 to 15 in the release."""
KEPT: Final = tuple(name for name in CHANNELS if name not in ("CB1", "CB2"))

_FILE = re.compile(r"^(\d+)_(\d{8})\.mat$")
_ARRAY = re.compile(r"_eeg(\d+)$")


def read(root: Path, config: DatasetConfig) -> Found:
    """Read the first session of every subject below `root`."""
    if config.options:
        raise ConfigError(f"the seed reader has no options, got {', '.join(config.options)}")
    folder = root / "Preprocessed_EEG" if (root / "Preprocessed_EEG").is_dir() else root
    sessions = _sessions(folder)
    if not sessions:
        return Found(())
    labels = _labels(folder / "label.mat")
    trials: list[Trial] = []
    problems: list[Problem] = []
    for subject, paths in sessions.items():
        if subject <= len(FIRST) and int(paths[0].stem.split("_")[1]) > FIRST[subject - 1]:
            what = (
                f"is a later session, used as {subject}_{FIRST[subject - 1]}.mat, the first, is missing; copy that too"
            )
            problems.append(Problem(str(paths[0]), what))
        try:
            trials += _trials(subject, paths[0], labels)
        except RtbrainError as error:
            problems.append(Problem(str(paths[0]), str(error)))
    return Found(tuple(trials), tuple(problems), _sharing(sessions))


def _sessions(folder: Path) -> dict[int, list[Path]]:
    """Return each subject's files, the earliest first, by subject number."""
    matches = [match for path in folder.iterdir() if (match := _FILE.match(path.name))]
    found: dict[int, list[Path]] = defaultdict(list)
    for match in sorted(matches, key=lambda match: (int(match[1]), int(match[2]))):
        found[int(match[1])].append(folder / match[0])
    return found


def _sharing(sessions: dict[int, list[Path]]) -> tuple[tuple[str, ...], ...]:
    """Return the subjects who have a session in common, also one that is not used."""
    owner = {path: f"s{subject:02d}" for subject, paths in sessions.items() for path in paths}
    people = (tuple(sorted({owner[path] for path in copies})) for copies in identical(owner))
    return tuple(names for names in people if len(names) > 1)


def _labels(path: Path) -> list[int]:
    if not path.is_file():
        raise SourceError(f"{path} is missing; copy it from the set's Preprocessed_EEG folder")
    labels = np.asarray(_mat(path, ["label"]).get("label", [])).ravel()
    if not labels.size or not np.isin(labels, (-1, 0, 1)).all():
        raise SourceError(f"{path}: `label` must hold -1, 0 or 1 for each film, got {labels.tolist()}; copy it again")
    return [int(label) for label in labels]


def _trials(subject: int, path: Path, labels: list[int]) -> list[Trial]:
    from scipy.io import whosmat

    try:
        listed = whosmat(path)
    except Exception as error:  # a damaged file may fail in any way
        raise SourceError(f"{path}: not readable as a .mat file ({error}); copy it again") from error
    matches = [(match, shape) for key, shape, _ in listed if (match := _ARRAY.search(key))]
    arrays = {int(match[1]): (match.string, shape) for match, shape in matches}
    if sorted(int(match[1]) for match, _ in matches) != list(range(1, len(labels) + 1)):
        names = ", ".join(sorted(match.string for match, _ in matches)) or "none"
        raise SourceError(f"{path}: label.mat has {len(labels)} films, the file has arrays {names}; copy it again")
    for key, shape in arrays.values():
        if len(shape) != 2 or shape[0] != len(CHANNELS):
            raise SourceError(f"{path}: {key} is {shape}, not ({len(CHANNELS)}, n); is this Preprocessed_EEG?")
    _array(path, arrays[1][0])  # its amplitude is checked
    facts: dict[str, Value] = {"rate_hz": RATE_HZ, "n_channels": float(len(KEPT)), "session": path.stem.split("_")[1]}
    return [
        Trial(
            subject=f"s{subject:02d}",
            name=f"s{subject:02d}_film-{film:02d}",
            files=(path,),
            length_s=arrays[film][1][1] / RATE_HZ,
            open=partial(_open, path, arrays[film][0], arrays[film][1][1]),
            fields={"emotion": float(label)},
            stimulus=f"film-{film:02d}",
            facts=facts,
        )
        for film, label in enumerate(labels, 1)
    ]


def _open(path: Path, key: str, n_samples: int) -> Source:
    return pick(ArraySource(partial(_array, path, key), StreamInfo(RATE_HZ, CHANNELS, "uV"), n_samples), KEPT)


def _array(path: Path, key: str) -> NDArray[Any]:
    data: NDArray[Any] = np.asarray(_mat(path, [key])[key])
    check_microvolts(f"{path}, {key}", data)
    return data


def _mat(path: Path, keys: list[str]) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        return dict(loadmat(path, variable_names=keys))
    except Exception as error:  # a damaged file may fail in any way
        raise SourceError(f"{path}: not readable as a .mat file ({error}); copy it again") from error
