"""NSSI: BIDS with task-B1 and task-B2, or the lab's own folders Block1/ and Block2/ of .mat structs.

Fields of a trial: `task` (B1 or B2) and `group` (from participants.tsv; of .mat files `control` for label 0,
`NSSI` for label 1). The epochs of a .mat file are joined in their order, as consecutive seconds of one recording.
"""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtbrain.config import Positive, parse
from rtbrain.errors import ConfigError, RtbrainError, SourceError
from rtbrain.messages import StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets.arrays import ArraySource, check_microvolts
from rtbrain.training.datasets.bids import BidsOptions, check_labels, collect
from rtbrain.training.trials import Found, Problem, Trial

BLOCKS = {"Block1": "B1", "Block2": "B2"}
GROUPS = ("control", "NSSI")


@dataclass(frozen=True)
class NssiOptions:
    """What a configuration tells the reader; all but `unit` is for .mat files, which say none of it."""

    rate_hz: Positive = 500.0
    channels: tuple[str, ...] = ()
    """Electrodes in the order of the .mat files' second axis."""
    unit: str | None = None
    """Of BIDS recordings, where their headers are wrong; .mat files must be in microvolts."""


def read(root: Path, config: DatasetConfig) -> Found:
    """Read the set below `root`, in whichever of the two forms it is."""
    options = parse(NssiOptions, config.options, f"options of {config.name}")
    folders = {root / name: block for name, block in BLOCKS.items() if (root / name).is_dir()}
    if not folders:
        return check_labels(root, collect(root, BidsOptions(task=tuple(BLOCKS.values()), unit=options.unit)), config)
    if not options.channels:
        raise ConfigError(f"{root}: .mat files do not name their channels; state them as `options.channels`")
    paths = {path: block for folder, block in folders.items() for path in sorted(folder.glob("[!.]*.mat"))}
    trials: list[Trial] = []
    problems: list[Problem] = []
    for path, block in paths.items():
        try:
            trials.append(_trial(path, block, options))
        except RtbrainError as error:
            problems.append(Problem(str(path), str(error)))
    return Found(tuple(sorted(trials, key=lambda trial: trial.name)), tuple(problems))


def _trial(path: Path, block: str, options: NssiOptions) -> Trial:
    numbers = re.findall(r"\d+", path.stem)
    if len(numbers) != 1:
        raise SourceError(f"the name must hold the subject's number and no other, got {numbers}; rename the file")
    subject = f"sub-{int(numbers[0]):03d}"
    feature, label = load_struct(path)
    if feature.shape[1] != len(options.channels):
        raise SourceError(f"{feature.shape[1]} channels, `options.channels` names {len(options.channels)}; correct it")
    n_samples = feature.shape[0] * feature.shape[2]
    return Trial(
        subject=subject,
        name=f"{subject}_task-{block}",
        files=(path,),
        length_s=n_samples / options.rate_hz,
        open=partial(_open, path, options, n_samples),
        fields={"task": block, "group": GROUPS[label]},
        facts={"rate_hz": options.rate_hz, "n_channels": float(feature.shape[1]), "n_epochs": float(len(feature))},
    )


def _open(path: Path, options: NssiOptions, n_samples: int) -> Source:
    return ArraySource(partial(_continuous, path), StreamInfo(options.rate_hz, options.channels, "uV"), n_samples)


def _continuous(path: Path) -> NDArray[Any]:
    feature, _ = load_struct(path)
    return np.ascontiguousarray(feature.transpose(1, 0, 2)).reshape(feature.shape[1], -1)  # (channels, n)


def load_struct(path: Path) -> tuple[NDArray[Any], int]:
    """Return `Struct.feature` (epochs, channels, time) in microvolts and the subject's label, 0 or 1."""
    from scipy.io import loadmat

    try:
        struct: Any = loadmat(path, variable_names=["Struct"], squeeze_me=True, struct_as_record=False).get("Struct")
        feature, label = np.asarray(struct.feature), np.unique(np.asarray(struct.label))
    except NotImplementedError as error:
        raise SourceError(f"{path}: saved as MATLAB 7.3; save it again by `save(..., '-v7')`") from error
    except AttributeError as error:
        raise SourceError(f"{path}: holds no struct `Struct` with `feature` and `label`; export it again") from error
    except Exception as error:  # a damaged file may fail in any way
        raise SourceError(f"{path}: not readable as a .mat file ({error}); copy it again") from error
    if feature.ndim == 2:  # squeezed: one epoch
        feature = feature[np.newaxis]
    if feature.ndim != 3 or feature.dtype.kind not in "fiu" or not feature.size:
        raise SourceError(
            f"{path}: feature is {feature.dtype} {feature.shape}, not (epochs, channels, time); correct it"
        )
    if len(label) != 1 or label[0] not in (0, 1):
        raise SourceError(f"{path}: label holds {label.tolist()}, it must be 0 or 1 for the whole file; correct it")
    check_microvolts(path, feature)
    return feature, int(label[0])
