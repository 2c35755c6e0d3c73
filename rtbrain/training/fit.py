"""Training of a Brain-Token model: crops in, weights out, everything chosen on validation people.

The same data, settings and seed give the same weights bit for bit on one machine's CPU, also when the run was killed
on the way: every epoch draws from its own generators, and a checkpoint holds all else.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax

from rtbrain.decoder.bundle import calibrated
from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray, IntArray
from rtbrain.training.asking import answers
from rtbrain.training.batches import TokenSequence
from rtbrain.training.calibrate import even_weights, fit_temperature
from rtbrain.training.checkpoint import load_checkpoint, save_checkpoint
from rtbrain.training.fit_settings import TrainSettings
from rtbrain.training.model import BrainToken
from rtbrain.training.run import Run, pick_device

LENGTHS_S = (10.0, 30.0, 120.0)
"""Besides the whole context, lengths at which answers are calibrated."""
PROGRAM = (
    "fit.py",
    "run.py",
    "initial.py",
    "head_start.py",
    "head_start_pairs.py",
    "asking.py",
    "batches.py",
    "calibrate.py",
    "stopping.py",
    "losses.py",
    "model.py",
    "fit_settings.py",
    "methods/linear.py",
    "scaling.py",
)
"""Files beside this one whose change makes other weights."""


@dataclass(frozen=True)
class EpochReport:
    """How training stands after an epoch."""

    epoch: int
    epochs: int
    loss: float
    validation_loss: float
    accuracy: float
    """On validation people, with all of the context."""
    left_s: float


@dataclass(frozen=True)
class Trained:
    """A trained model, and what it rests on."""

    model: BrainToken
    settings: TrainSettings
    temperature: float
    best_epoch: int
    """0 where no epoch was better than the start."""
    history: tuple[dict[str, float], ...]
    fitted_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Trials that weights, scaling, stopping and calibration rest on; for `rtbrain.training.folds.audit`."""
    start: Mapping[str, float] = field(default_factory=dict)
    """Validation loss and accuracy before the first epoch."""

    def probabilities(self, sequences: Sequence[TokenSequence], seconds: float | None = None) -> FloatArray:
        """Return (sequences, classes): the calibrated answer after so many seconds of each trial, or after all.

        Trials longer than the context are answered by the mean over contexts that cover them.
        """
        logits, rows = answers(self.model, sequences, self.settings.context_s, seconds)
        each = calibrated(softmax(logits, axis=1), self.temperature)
        out = np.zeros((len(sequences), each.shape[1]))
        np.add.at(out, rows, each)
        found: FloatArray = out / out.sum(axis=1, keepdims=True)
        return found


def train_model(
    train: Sequence[TokenSequence],
    validation: Sequence[TokenSequence],
    settings: TrainSettings,
    seed: int = 0,
    checkpoint: Path | None = None,
    progress: Callable[[EpochReport], None] | None = None,
    target: Sequence[TokenSequence] = (),
) -> Trained:
    """Train a model.

    Parameters
    ----------
    train, validation : sequence of TokenSequence
        Trials of different people. Weights and scaling rest on the first; the number of epochs and the temperature on
        the second.
    settings : TrainSettings
        All that is not data.
    seed : int
        Of weights, crops and dropout.
    checkpoint : Path, optional
        File that is written after every epoch, and continued from if it is there.
    progress : callable, optional
        Told after every epoch.
    target : sequence of TokenSequence
        Unlabelled trials of the people to be tested, for the transductive adversary only.
    """
    _check(train, validation, settings, target)
    run = Run(train, validation, settings, seed, target)
    key = _key(train, validation, settings, seed, target)
    if checkpoint is not None and (state := load_checkpoint(checkpoint, key)) is not None:
        run.restore(state)
    else:
        run.begin()
    began, first = time.monotonic(), run.epoch
    while not run.over:
        run.train_epoch()
        if checkpoint is not None:
            save_checkpoint(checkpoint, key, run.state())
        if progress is not None:
            each = (time.monotonic() - began) / (run.epoch - first)
            last = run.history[-1]
            # Early stopping may end it sooner.
            left = each * (settings.epochs - run.epoch)
            told = {name: last[name] for name in ("loss", "validation_loss", "accuracy")}
            progress(EpochReport(run.epoch, settings.epochs, left_s=left, **told))
    model = run.best_model()
    names, held = tuple(each.name for each in train), tuple(each.name for each in validation)
    fitted_on = {"scaling": names, "model": names, "early stopping": held, "calibration": held}
    if target:
        fitted_on["adversary"] = names  # that it saw the target's trials without labels is what transductive means
    temperature = temperature_of(model, validation, settings.context_s)
    return Trained(model, settings, temperature, run.best_epoch, tuple(run.history), fitted_on, run.start)


def temperature_of(model: BrainToken, validation: Sequence[TokenSequence], context_s: float) -> float:
    """Return the temperature for answers after ten seconds as well as after the whole context."""
    n_people = len({each.person for each in validation})
    return fit_temperature(*calibration_answers(model, validation, context_s), n_people)


def calibration_answers(
    model: BrainToken, validation: Sequence[TokenSequence], context_s: float
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return logits, classes and weights of answers after short and long stretches of every trial."""
    truth, parts = np.array([each.label for each in validation]), []
    for seconds in (*(each for each in LENGTHS_S if each < context_s), None):
        logits, rows = answers(model, validation, context_s, seconds)
        weights = even_weights([validation[row].person for row in rows], truth[rows])
        parts.append((logits, truth[rows], weights))
    logits, labels, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return logits, labels, weights / len(parts)


def _check(
    train: Sequence[TokenSequence],
    validation: Sequence[TokenSequence],
    settings: TrainSettings,
    target: Sequence[TokenSequence],
) -> None:
    if len(train) < 2 or not validation:
        raise ConfigError(f"{len(train)} trials to train and {len(validation)} to validate; give 2 and 1 at least")
    shared = {each.person for each in train} & {each.person for each in validation}
    if shared:
        raise ConfigError(f"{min(shared)} is in training and in validation; people must not be on both sides")
    if len({each.label for each in train}) < 2:
        raise ConfigError("all training trials are of one class; there is nothing to learn")
    if bool(target) != (settings.adversary == "transductive"):
        raise ConfigError(
            f"adversary {settings.adversary} with {len(target)} target trials; the transductive one needs some, the "
            "others must not see any"
        )


def _key(
    train: Sequence[TokenSequence],
    validation: Sequence[TokenSequence],
    settings: TrainSettings,
    seed: int,
    target: Sequence[TokenSequence],
) -> str:
    """Return what tells this run from any other: data, settings, seed and program."""
    values = asdict(settings) | {"device": pick_device(settings.device).type}
    digest = hashlib.sha256(json.dumps([values, seed, torch.__version__], sort_keys=True).encode())
    for name in PROGRAM:
        digest.update((Path(__file__).parent / name).read_bytes())
    for side in (train, validation, target):
        for each in side:
            digest.update(f"{each.name}\n{each.person}\n{each.label}\n{len(each.pieces)}\n".encode())
            for piece in each.pieces:
                for array in (piece.ids, piece.attributes, piece.start_s, piece.end_s):
                    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
