"""DEAP on disk: the original BDF recordings at 512 Hz with their traps, or the preprocessed .dat files at 128 Hz."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from rtbrain.messages import FloatArray
from rtbrain.simulation.layouts.edf import EdfSignal, write_edf
from rtbrain.simulation.layouts.pickled import append_array, end_pickle, start_pickle
from rtbrain.simulation.layouts.plan import Blocks, File, Layout, Scale, Stretch, Take
from rtbrain.training.datasets.deap import (
    BASELINE,
    CHANNELS,
    PREPROCESSED_HZ,
    RATINGS,
    SHAPE,
    VIDEO_S,
    VIDEO_STARTS,
)

RATE_HZ: Final = 512
TWENTE: Final = (
    "Fp1", "AF3", "F7", "F3", "FC1", "FC5", "T7", "C3", "CP1", "CP5", "P7", "P3", "Pz", "PO3", "O1", "Oz", "O2", "PO4",
    "P4", "P8", "CP6", "CP2", "C4", "T8", "FC6", "FC2", "F4", "F8", "AF4", "Fp2", "Fz", "Cz",
)  # fmt: skip
"""Order of the electrodes in s01 to s22; the others were recorded in Geneva, in the order of CHANNELS."""
PERIPHERAL: Final = (
    "EXG1", "EXG2", "EXG3", "EXG4", "EXG5", "EXG6", "EXG7", "EXG8", "GSR1", "GSR2", "Erg1", "Erg2", "Resp", "Plet",
    "Temp",
)  # fmt: skip
MISSING: Final = {28: (24, 25, 26)}
"""Played positions that a recording lacks, by participant."""
NO_FAMILIARITY: Final = (2, 15, 23)
_PERIPHERAL_UV: Final = 20.0
_PULSE: Final = 16  # samples that a trigger lasts
_SYNC_S, _FIXATION_S, _AFTER_S, _RATING_S = 1.0, 5.0, 3.0, 4.0
_COLUMNS: Final = (
    "Participant_id",
    "Trial",
    "Experiment_id",
    "Start_time",
    *map(str.capitalize, RATINGS),
    "Familiarity",
)
_Played = dict[str, float]


def _played(scale: Scale, subject: int) -> list[_Played]:
    """Return a person's videos and ratings in the order in which they are played.

    One half of the videos is meant to please; people mostly agree with that, and differ by themselves.
    """
    rng = scale.rng(subject)
    videos = rng.permutation(scale.trials) + 1
    found = []
    for video in videos:
        pleasant = 1.0 if video % 2 else -1.0
        centres = np.array([5 + 1.5 * pleasant, 5.0, 5.0, 5 + 1.2 * pleasant])
        ratings = np.clip(np.round(centres + rng.normal(0, 1.7, len(RATINGS)), 2), 1, 9)
        familiarity = float(rng.integers(1, 6))
        found.append(
            {"video": float(video), **dict(zip(RATINGS, ratings.tolist(), strict=True)), "familiarity": familiarity}
        )
    return found


def _plan(scale: Scale) -> list[File]:
    plan = _original if scale.form == "original" else _preprocessed
    return [plan(scale, subject) for subject in range(scale.subjects)]


def _original(scale: Scale, subject: int) -> File:
    person, number = f"s{subject + 1:02d}", subject + 1
    stretches = [Stretch(5.0, code=1)]
    for position, played in enumerate(_played(scale, subject), 1):
        if position in MISSING.get(number, ()):
            continue
        stretches += [
            Stretch(_SYNC_S, code=2),
            Stretch(_FIXATION_S, code=3),
            _video(person, played, VIDEO_STARTS, has_familiarity=number not in NO_FAMILIARITY),
            Stretch(_AFTER_S, code=5),
            Stretch(_RATING_S, code=1),
        ]
    stretches.append(Stretch(2.0, code=7))
    channels = TWENTE if number <= 22 else CHANNELS
    return File(
        f"data_original/{person}.bdf", person, (Take(subject, 0, channels, RATE_HZ, tuple(stretches), scale.seed),)
    )


def _preprocessed(scale: Scale, subject: int) -> File:
    """Order the trials by video, whenever they were played."""
    person, rate_hz = f"s{subject + 1:02d}", round(PREPROCESSED_HZ)
    takes = tuple(
        Take(subject, i, CHANNELS, rate_hz, (Stretch(BASELINE / rate_hz), _video(person, played, None)), scale.seed)
        for i, played in enumerate(sorted(_played(scale, subject), key=lambda each: each["video"]))
    )
    return File(f"data_preprocessed_python/{person}.dat", person, takes)


def _video(person: str, played: _Played, code: int | None, *, has_familiarity: bool = False) -> Stretch:
    names = (*RATINGS, "familiarity") if has_familiarity else RATINGS
    label = int(played["valence"] > 5)
    name = f"{person}_video-{round(played['video']):02d}"
    return Stretch(VIDEO_S, label, name, code, {each: played[each] for each in names})


def _write(folder: Path, file: File, blocks: Blocks) -> None:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".bdf":
        _write_original(path, file.takes[0], blocks)
        return
    with path.open("wb") as pickled:
        start_pickle(pickled)
        labels = np.array([[take.stretches[-1].fields[name] for name in RATINGS] for take in file.takes], float)
        append_array(pickled, "labels", labels.shape, [labels])
        trials = (_with_peripheral(prepared(take, blocks), take) for take in file.takes)
        append_array(pickled, "data", (len(file.takes), *SHAPE), trials)
        end_pickle(pickled)


def prepared(take: Take, blocks: Blocks) -> FloatArray:
    """Return a trial (channels, n) as the preprocessed files have it: 4 to 45 Hz, average reference."""
    from scipy.signal import butter, sosfiltfilt

    band = butter(4, (4.0, 45.0), "bandpass", fs=take.rate_hz, output="sos")
    data = sosfiltfilt(band, np.concatenate(list(blocks(take))), axis=0)  # (n, channels)
    return np.ascontiguousarray((data - data.mean(axis=1, keepdims=True)).T)


def _with_peripheral(eeg: FloatArray, take: Take) -> FloatArray:
    rng = take.beside()
    return np.concatenate([eeg, rng.normal(0, _PERIPHERAL_UV, (SHAPE[0] - len(eeg), eeg.shape[1]))])


def _write_original(path: Path, take: Take, blocks: Blocks) -> None:
    number = take.subject + 1
    # As recorded: the trigger's name is lost from s24 on, and from s29 on a nameless signal comes before it.
    status = ("Status",) if number <= 23 else ("",) if number <= 28 else ("", "")
    # From s24 on, bits above the lowest 8 are set throughout.
    high_bits = 0 if number <= 23 else 1638144 if number % 2 == 0 else 1703680
    electrodes = [
        EdfSignal(name, "-262144", "262143", prefilter="HP: DC; LP: 104 Hz", transducer="Active Electrode")
        for name in (*take.channels, *PERIPHERAL)
    ]
    triggers = [EdfSignal(name, "-8388608", "8388607", "Boolean", "No filtering") for name in status]
    columns = _with_triggers(take, blocks, partial(_codes, take, high_bits), len(triggers))
    write_edf(path, "BDF", electrodes + triggers, take.rate_hz, columns)


def _codes(take: Take, high_bits: int, first: int, stop: int) -> FloatArray:
    """Return the trigger channel from sample `first` to `stop`."""
    codes = np.full(stop - first, high_bits, float)
    for at, each in take.starts():
        begin = round(at * take.rate_hz) - first
        if each.code is not None and -_PULSE < begin < len(codes):
            codes[max(begin, 0) : begin + _PULSE] = high_bits + each.code
    return codes


def _with_triggers(take: Take, blocks: Blocks, codes: "partial[FloatArray]", n_triggers: int) -> Iterator[FloatArray]:
    rng, at = take.beside(), 0
    for block in blocks(take):
        n = len(block)
        peripheral = rng.normal(0, _PERIPHERAL_UV, (n, len(PERIPHERAL)))
        idle = np.zeros((n, n_triggers - 1))
        yield np.concatenate([block, peripheral, idle, codes(at, at + n)[:, None]], axis=1)
        at += n


def _tables(folder: Path, files: Sequence[File], scale: Scale) -> None:
    if scale.form != "original":
        return
    lines = [",".join(_COLUMNS)]
    for subject in range(scale.subjects):
        for position, played in enumerate(_played(scale, subject), 1):
            familiarity = "" if subject + 1 in NO_FAMILIARITY else f"{played['familiarity']:g}"
            ratings = (f"{played[name]:g}" for name in RATINGS)
            row = (subject + 1, position, round(played["video"]), 73_000_000 * position, *ratings, familiarity)
            lines.append(",".join(map(str, row)))
    table = folder / "metadata_csv" / "participant_ratings.csv"
    table.parent.mkdir()
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")


LAYOUT: Final = Layout(
    plan=_plan,
    write=_write,
    tables=_tables,
    subjects=3,
    labels="trial",
    n_classes=2,
    forms=("original", "preprocessed"),
    trials=40,
    most_trials=40,
    stored_bytes=10.0,
)
