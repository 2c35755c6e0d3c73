"""SEED on disk: a .mat file per person and session with an array for each film, 62 channels at 200 Hz."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from rtbrain.simulation.layouts.matlab import append_matrix, start_mat
from rtbrain.simulation.layouts.plan import Blocks, File, Layout, Scale, Stretch, Take
from rtbrain.training.datasets.seed import CHANNELS, FIRST, RATE_HZ

FOLDER: Final = "Preprocessed_EEG"
LABELS: Final = (1, 0, -1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 0, 1, -1)
CLIP_S: Final = (235, 233, 206, 238, 185, 195, 237, 216, 265, 237, 235, 233, 235, 238, 206)


def _plan(scale: Scale) -> list[File]:
    files = []
    for subject in range(scale.subjects):
        for session in range(scale.sessions):
            takes = tuple(_take(scale, subject, session, film) for film in range(scale.trials))
            name = f"{subject + 1}_{_date(subject, session)}.mat"
            files.append(File(f"{FOLDER}/{name}", f"s{subject + 1:02d}", takes))
    return files


def _take(scale: Scale, subject: int, session: int, film: int) -> Take:
    # Only the first session is read, so only its films are trials.
    name = None if session else f"s{subject + 1:02d}_film-{film + 1:02d}"
    stretch = Stretch(scale.seconds or CLIP_S[film], LABELS[film] + 1, name, fields={"emotion": float(LABELS[film])})
    return Take(subject, session * len(CLIP_S) + film, CHANNELS, round(RATE_HZ), (stretch,))


def _date(subject: int, session: int) -> int:
    """Return when a session was: those of a person a year apart, so that dates stay valid."""
    return FIRST[subject % len(FIRST)] + 10000 * session


def _write(folder: Path, file: File, blocks: Blocks) -> None:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    subject = file.takes[0].subject
    initials = chr(ord("a") + subject % 26) + chr(ord("a") + subject * 7 % 26)  # they differ from person to person
    with path.open("wb") as mat:
        start_mat(mat)
        for film, take in enumerate(file.takes, 1):
            append_matrix(mat, f"{initials}_eeg{film}", len(take.channels), take.n_samples, blocks(take))


def _tables(folder: Path, files: Sequence[File], scale: Scale) -> None:
    from scipy.io import savemat

    savemat(folder / FOLDER / "label.mat", {"label": np.array([LABELS[: scale.trials]], np.int16)})
    (folder / FOLDER / "readme.txt").write_text("Simulated EEG in the layout of SEED; no person was recorded.\n")


LAYOUT: Final = Layout(
    plan=_plan,
    write=_write,
    tables=_tables,
    subjects=3,
    labels="trial",
    n_classes=3,
    trials=len(LABELS),
    most_trials=len(LABELS),
    most_sessions=3,
    stored_bytes=8.0,
)
