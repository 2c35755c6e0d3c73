"""The MDD release on disk: a flat folder of EDF files with odd names, 19 electrodes at 256 Hz and some more signals."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from rtbrain.messages import FloatArray
from rtbrain.simulation.layouts.edf import EdfSignal, write_edf
from rtbrain.simulation.layouts.plan import Blocks, File, Layout, Scale, Stretch, Take, halves

RATE_HZ: Final = 256
ELECTRODES: Final = (
    "Fp1", "F3", "C3", "P3", "O1", "F7", "T3", "T5", "Fz", "Fp2", "F4", "C4", "P4", "O2", "F8", "T4", "T6", "Cz", "Pz",
)  # fmt: skip
CONDITIONS: Final = ("EC", "EO")
GROUPS: Final = ("H", "MDD")
_MORE: Final = ("EEG A2-A1", "EEG 23A-23R", "EEG 24A-24R")
"""Signals after the electrodes: some files have the first only, others all three."""
_MORE_UV: Final = 5.0


def _plan(scale: Scale) -> list[File]:
    files = []
    labels = halves(scale.subjects)
    for subject, label in enumerate(labels):
        number = subject + 1 - label * labels.count(0)
        person = f"{GROUPS[label]} S{number}"
        for index, condition in enumerate(CONDITIONS):
            fields = {"group": GROUPS[label], "condition": condition}
            stretch = Stretch(scale.trial_s, label, f"{person} {condition}", fields=fields)
            take = Take(subject, index, ELECTRODES, RATE_HZ, (stretch,), scale.seed)
            files.append(File(_name(person, number, condition), person, (take,)))
    return files


def _name(person: str, number: int, condition: str) -> str:
    """Return a file's name: now and then with two blanks or the download's number, as in the release."""
    blanks = "  " if number % 8 == 0 else " "
    download = "6921143_" if number % 15 == 0 and condition == "EO" else ""
    return f"{download}{person}{blanks}{condition}.edf"


def _write(folder: Path, file: File, blocks: Blocks) -> None:
    (take,) = file.takes
    # By the number within the group, so that the count of signals tells nothing of the group.
    more = _MORE if int(file.person.split("S")[1]) % 3 == 0 else _MORE[:1]
    names = [f"EEG {name}-LE" for name in take.channels] + list(more)
    signals = [EdfSignal(name, "-3276.8", "3276.7", prefilter="HP:0.5Hz LP:80Hz") for name in names]
    write_edf(folder / file.path, "EDF", signals, take.rate_hz, _with_more(take, blocks, len(more)))


def _with_more(take: Take, blocks: Blocks, n_more: int) -> Iterator[FloatArray]:
    rng = take.beside()
    for block in blocks(take):
        yield np.concatenate([block, rng.normal(0, _MORE_UV, (len(block), n_more))], axis=1)


def _tables(folder: Path, files: Sequence[File], scale: Scale) -> None:
    """Write nothing: the names of the files say it all."""


LAYOUT: Final = Layout(
    plan=_plan,
    write=_write,
    tables=_tables,
    subjects=20,
    labels="subject",
    n_classes=2,
    minutes=3.0,
    stored_bytes=2.4,
)
