"""A small set of people whose class is in the frequency and the states of their EEG, as an evaluation is given it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.training.dataset_config import ClassRule, Crop, DatasetConfig, Protocol, Task
from rtbrain.training.datasets import load
from rtbrain.training.evaluate import Plan, plan
from rtbrain.training.methods import methods_named
from rtbrain.training.trials import Found
from tests.recording_writers import write_edf
from tests.unit.training.datasets.bids_writer import write_table

SECONDS = 14.0
HZ, RUN_MS = (9.0, 17.0), (50.0, 150.0)
CONFIG = DatasetConfig(
    name="small",
    reader="bids",
    tasks={"group": Task("group", (ClassRule("slow", ("slow",)), ClassRule("fast", ("fast",))))},
    protocol=Protocol("k-fold", folds=2),
    crop=Crop(SECONDS - 1, 1),
    n_states=3,
)


def write_people(root: Path, n: int = 10) -> Path:
    """Write a BIDS set of n people, slow and fast in turn."""
    rows = []
    for i in range(n):
        settings = SyntheticSettings(duration_s=SECONDS, seed=i, alpha_hz=HZ[i % 2], mean_duration_ms=RUN_MS[i % 2])
        source = Synthetic(settings)
        folder = root / f"sub-{i:02d}" / "eeg"
        folder.mkdir(parents=True)
        data = np.concatenate([chunk.data for chunk in source.chunks()]).T
        write_edf(folder / f"sub-{i:02d}_task-rest_eeg.edf", data, source.info.channels)
        rows.append(f"sub-{i:02d} {('slow', 'fast')[i % 2]}")
    write_table(root / "participants.tsv", "participant_id group", *rows)
    return root


def planned(
    root: Path,
    *methods: str,
    config: DatasetConfig = CONFIG,
    optimistic: bool = False,
    n_seeds: int = 1,
    raw: bool = False,
) -> tuple[Plan, Found]:
    """Plan the evaluation of a set written before."""
    config, found = found_in(root, config)
    return plan(config, found, methods_named(methods), optimistic=optimistic, n_seeds=n_seeds, raw=raw), found


def found_in(root: Path, config: DatasetConfig = CONFIG) -> tuple[DatasetConfig, Found]:
    """Read a set written before."""
    config = replace(config, root=str(root))
    return config, load(config)


def files_of(out: Path) -> dict[str, tuple[int, int]]:
    """Return the answers in a folder, and what would change if one were written again."""
    # Hidden ones are being written, and gone in a moment.
    found = sorted(path for path in (out / "folds").rglob("*.json") if not path.name.startswith("."))
    return {str(path.relative_to(out)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}
