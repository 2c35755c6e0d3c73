"""Writes a simulated set: makes the signals, says what is true of them, and leaves nothing that is not whole."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from rtbrain.config import parse
from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray
from rtbrain.progress import Progress
from rtbrain.simulation.confound import NARROW, Confound
from rtbrain.simulation.eeg import Signal
from rtbrain.simulation.layouts.bids import write_json
from rtbrain.simulation.layouts.plan import File, Layout, Take
from rtbrain.simulation.optimum import Optimum
from rtbrain.simulation.population import Design
from rtbrain.simulation.seeding import generator
from rtbrain.simulation.world import World
from rtbrain.simulation.writing_order import Order, configured, planted, scaled
from rtbrain.simulation.writing_truth import lacking_classes, optima_of, truth_of
from rtbrain.training.dataset_config import OWN, DatasetConfig

CONFIG: Final = OWN
TRUTH: Final = "simulation.json"
N_DRAWS: Final = 5000
"""Simulated trials for the optimum: its standard error is then about 0.002."""

LINES_HZ: Final = (4.3, 6.1)
"""Range of the lowest of a row of planted lines; each recording has its own."""
LINE_UV: Final = 10.0
"""Its amplitude: some 20 dB above the spectrum, as in recordings that real sets have."""


@dataclass(frozen=True)
class Simulated:
    """What was written."""

    n_files: int
    n_people: int
    n_trials: int
    trial_s: tuple[float, float]
    """The shortest and the longest trial."""
    optima: dict[str, Optimum]
    """By task."""
    as_shipped: bool
    """Whether the set's shipped configuration reads it; else only the one written beside it does."""
    notes: tuple[str, ...]
    """What the user should know."""


def simulate(order: Order, out: Path, progress: Progress = lambda *_: None, n_draws: int = N_DRAWS) -> Simulated:
    """Write a simulated set, its configuration and what is true of it.

    Parameters
    ----------
    order : Order
        Which set, and how much of it.
    out : Path
        Folder to write; it must not exist, or be empty.
    progress : callable
        Told what is being done.
    n_draws : int
        Simulated trials for the optimum.

    Returns
    -------
    Simulated
        A summary; all of it and more is in `simulation.json`.
    """
    layout = order.layout
    scale, notes = scaled(order)
    files = planted(layout.plan(scale), order)
    raw, changes = configured(order, scale, files)
    config = parse(DatasetConfig, raw, f"the configuration of {order.dataset}")
    if changes:
        notes.append(f"{'; '.join(changes)}: read this set by --dataset {out / CONFIG}")
    design = Design(n_states=config.n_states, n_classes=layout.n_classes, labels=layout.labels, effect=order.effect)
    world = World(design, order.seed)
    with new_folder(out, _bytes(files, layout)) as folder:
        optima = optima_of(world, config, files, n_draws, progress)
        signals = _Signals(world, order, _seconds(files), progress)
        for file in files:
            layout.write(folder, file, signals.blocks)
        layout.tables(folder, files, scale)
        (folder / CONFIG).write_text(yaml.safe_dump(raw, sort_keys=False, allow_unicode=True), encoding="utf-8")
        write_json(folder / TRUTH, truth_of(order, design, files, optima))
    for task, lacking in lacking_classes(config, files, layout.n_classes).items():
        notes.append(
            f"no trial of task {task} is of class {', '.join(lacking)}, so nothing can learn it; ask for more subjects "
            "or trials"
        )
    lengths = [each.seconds for file in files for take in file.takes for each in take.stretches if each.trial]
    return Simulated(
        n_files=len(files),
        n_people=len({file.person for file in files}),
        n_trials=len(lengths),
        trial_s=(min(lengths), max(lengths)),
        optima=optima,
        as_shipped=not changes,
        notes=tuple(notes),
    )


@contextmanager
def new_folder(out: Path, n_bytes: float = 0.0) -> Iterator[Path]:
    """Give a temporary folder beside `out`, which takes its place only when all went well.

    Raises
    ------
    ConfigError
        `out` holds something already, cannot be made, is being written, or the disk has no room for `n_bytes`.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} exists and is not an empty folder; choose another one, or empty it")
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(out.parent).free
    if n_bytes > free:
        raise ConfigError(
            f"{out}: about {n_bytes / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free; "
            "ask for fewer subjects, trials or minutes, or choose another disk"
        )
    left = [path for path in out.parent.iterdir() if re.fullmatch(rf"\.\d+-{re.escape(out.name)}", path.name)]
    if left:
        raise ConfigError(
            f"{left[0]} is of a run that is still writing this folder, or was killed; wait for it, or remove it"
        )
    temporary = out.with_name(f".{os.getpid()}-{out.name}")
    temporary.mkdir()
    try:
        yield temporary
        if out.exists():
            out.rmdir()  # empty, see above; not every system renames over a folder
        temporary.rename(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def signal_of(world: World, take: Take, order: Order) -> Signal:
    """Return the samples of a take."""
    segments = [(each.seconds, each.label) for each in take.stretches]
    confound = _confound(take, order) if take.planted else None
    return world.session(take.subject, segments, take.channels, take.rate_hz, take.number, confound)


def _confound(take: Take, order: Order) -> Confound:
    if order.plant == "filter":
        return NARROW
    lowest = generator(order.seed, "plant", take.subject, take.number).uniform(*LINES_HZ)
    return Confound(line_hz=float(lowest), line_uv=LINE_UV)


@dataclass
class _Signals:
    """Makes signals, and tells how far the whole set is."""

    world: World
    order: Order
    total_s: float
    progress: Progress
    done_s: float = 0.0

    def blocks(self, take: Take) -> Iterator[FloatArray]:
        """Make the samples of a take."""
        for block in signal_of(self.world, take, self.order).chunks():
            yield block
            self.done_s += len(block) / take.rate_hz
            self.progress(f"simulating {self.order.dataset}", self.done_s / self.total_s)


def _seconds(files: Sequence[File]) -> float:
    return sum(take.seconds for file in files for take in file.takes)


def _bytes(files: Sequence[File], layout: Layout) -> float:
    samples = sum(take.n_samples * len(take.channels) for file in files for take in file.takes)
    return layout.stored_bytes * samples
