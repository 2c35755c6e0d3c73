"""A session of somebody whom a simulated set does not hold, whose state changes while it is recorded."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from rtbrain import __version__
from rtbrain.config import parse
from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray
from rtbrain.progress import Progress
from rtbrain.session_truth import Best, SessionTruth, TrueStretch, load_json, save_truth
from rtbrain.simulation.layouts.brainvision import Marker, write_brainvision
from rtbrain.simulation.population import Design
from rtbrain.simulation.seeding import generator
from rtbrain.simulation.world import World
from rtbrain.simulation.writing import CONFIG, N_DRAWS, TRUTH, new_folder
from rtbrain.simulation.writing_order import Order, scaled
from rtbrain.simulation.writing_truth import mix_of
from rtbrain.training.dataset_config import load_dataset_config

RECORDING: Final = "session.vhdr"
SESSION: Final = "session.json"


@dataclass(frozen=True)
class SessionOrder:
    """What session is to be made."""

    stretches: int = 8
    seconds: float = 60.0
    """Of each stretch."""
    context_s: float = 20.0
    """What an answer rests on; the best possible accuracy is stated for so many seconds."""
    task: str | None = None
    person: int = 1
    """Which of the people who are not in the set, counted from 1."""


def simulate_session(
    folder: Path, order: SessionOrder, out: Path, progress: Progress = lambda *_: None, n_draws: int = N_DRAWS
) -> SessionTruth:
    """Record one more person of the population of a simulated set, in a new folder; return what is true of it.

    Parameters
    ----------
    folder : Path
        The set, as `rtbrain simulate` wrote it.
    order : SessionOrder
        How long the session is, and whose.
    out : Path
        Folder to write: the recording, and session.json. It must not exist, or be empty.
    progress : callable
        Told what is being done.
    n_draws : int
        Simulated stretches for the best possible accuracy.

    Raises
    ------
    ConfigError
        The folder holds no simulated set, or labels belong to people there, so that no state can change.
    """
    if not (folder / TRUTH).is_file():
        raise ConfigError(f"{folder} holds no simulated set ({TRUTH} is missing); make one by `rtbrain simulate`")
    written = load_json(folder / TRUTH)
    made, design = parse(Order, written["order"], TRUTH), parse(Design, written["design"], TRUTH)
    if design.labels == "subject":
        raise ConfigError(f"in {made.dataset} the label is the person's group, so no state can change; use another set")
    name, task = load_dataset_config(str(folder / CONFIG)).task(order.task)
    if not 1 <= order.context_s <= order.seconds:
        raise ConfigError(
            f"a context of {order.context_s:g} s never lies within a stretch of {order.seconds:g} s; "
            "make stretches at least as long as the context"
        )
    scale, _ = scaled(made)
    take = made.layout.plan(scale)[0].takes[0]  # for its electrodes and rate
    subject = scale.subjects + order.person - 1
    mix = _evenly(mix_of(task, design.n_classes, ((each["label"], each["fields"]) for each in written["trials"])))
    world = World(design, made.seed)
    labels = _labels(mix, order.stretches, generator(made.seed, "session", subject))
    signal = world.session(
        subject, [(order.seconds, label) for label, _ in labels], take.channels, take.rate_hz, recording=0
    )
    progress("what is possible at best", 0.0)
    best = world.bayes_optimal(order.context_s, mix, n_draws)
    truth = SessionTruth(
        classes=tuple(rule.name for rule in task.classes),
        stretches=tuple(
            TrueStretch(part.start_s, part.stop_s, task.classes[state].name, label)
            for part, (label, state) in zip(signal.truth, labels, strict=True)
        ),
        best=Best(best.accuracy, best.standard_error, best.seconds, best.chance),
        about={
            "made_by": f"rtbrain {__version__}",
            "dataset": made.dataset,
            "task": name,
            "effect": design.effect,
            "person": f"number {order.person} of those who are not in the set (simulated subject {subject})",
        },
    )
    with new_folder(out, 2.0 * signal.n_samples * len(signal.channels)) as temporary:
        blocks = _told(signal.chunks(), signal.n_samples, progress)
        markers = [
            Marker(round(part.start_s * take.rate_hz), 10 + state)
            for part, (_, state) in zip(signal.truth, labels, strict=True)
        ]
        write_brainvision(temporary / RECORDING, signal.channels, signal.rate_hz, blocks, markers)
        save_truth(truth, temporary / SESSION)
    return truth


def _evenly(mix: FloatArray) -> FloatArray:
    """Return the labels' shares within each class (columns) as in the set, but all classes equally frequent."""
    if not mix.sum(axis=0).all():
        raise ConfigError("the set has no trial of one of the task's classes; simulate more people or trials")
    return np.asarray(mix / mix.sum(axis=0) / mix.shape[1])


def _labels(mix: FloatArray, n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return label and class of each stretch: the class changes every time, and all come equally often in the end."""
    n_labels, n_classes = mix.shape
    order = rng.permutation(n_classes)
    states = [int(order[i % n_classes]) for i in range(n)]
    return [(int(rng.choice(n_labels, p=mix[:, state] / mix[:, state].sum())), state) for state in states]


def _told(blocks: Iterator[FloatArray], n_samples: int, progress: Progress) -> Iterator[FloatArray]:
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        progress("simulating the session", done / n_samples)
