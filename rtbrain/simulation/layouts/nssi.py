"""NSSI on disk: BIDS with two blocks per person, or the lab's folders of .mat structs; 63 channels at 500 Hz."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from rtbrain.simulation.layouts.bids import acticap, write_description, write_recording
from rtbrain.simulation.layouts.plan import Blocks, File, Layout, Scale, Stretch, Take, halves
from rtbrain.training.datasets.nssi import BLOCKS, GROUPS

RATE_HZ: Final = 500


def _plan(scale: Scale) -> list[File]:
    channels, files = acticap(), []
    for subject, label in enumerate(halves(scale.subjects)):
        person = f"sub-{subject + 1:03d}"
        for number, (folder, block) in enumerate(BLOCKS.items()):
            name = f"{person}_task-{block}"
            stretch = Stretch(scale.trial_s, label, name, 1, {"task": block, "group": GROUPS[label]})
            path = f"{person}/eeg/{name}_eeg.vhdr" if scale.form == "bids" else f"{folder}/{subject + 1}.mat"
            files.append(File(path, person, (Take(subject, number, channels, RATE_HZ, (stretch,)),)))
    return files


def _write(folder: Path, file: File, blocks: Blocks) -> None:
    (take,), path = file.takes, folder / file.path
    if path.suffix == ".mat":
        _write_struct(path, take, blocks)
    else:
        stem = path.with_name(path.name.removesuffix("_eeg.vhdr"))
        write_recording(stem, take, blocks, str(take.stretches[0].fields["task"]))


def _write_struct(path: Path, take: Take, blocks: Blocks) -> None:
    """Write epochs of one second. The format keeps time for last, so that a recording is held as a whole."""
    from scipy.io import savemat

    path.parent.mkdir(parents=True, exist_ok=True)
    feature = np.empty((take.n_samples // RATE_HZ, len(take.channels), RATE_HZ))  # (epochs, channels, time)
    at = 0
    for block in blocks(take):
        epoch, row = np.divmod(np.arange(at, at + len(block)), RATE_HZ)
        feature[epoch, :, row] = block
        at += len(block)
    label = np.full((len(feature), 1), float(min(take.labels)))
    savemat(path, {"Struct": {"feature": feature, "label": label}})


def _tables(folder: Path, files: Sequence[File], scale: Scale) -> None:
    if scale.form == "bids":
        groups = {file.person: file.takes[0].stretches[0].fields["group"] for file in files}
        write_description(folder, "NSSI", [{"participant_id": who, "group": group} for who, group in groups.items()])


LAYOUT: Final = Layout(
    plan=_plan,
    write=_write,
    tables=_tables,
    subjects=20,
    labels="subject",
    n_classes=2,
    forms=("bids", "mat"),
    minutes=3.0,
    stored_bytes=8.0,
)
