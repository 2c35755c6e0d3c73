"""EEGNet on windows of the conditioned EEG as a method: what a lab would take that does not care for tokens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from rtbrain.decoder.bundle import calibrated
from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray
from rtbrain.training.conditioned import Conditioned
from rtbrain.training.dataset_config import PaperSettings, Schedule
from rtbrain.training.fit_settings import LONGER
from rtbrain.training.methods.base import Adaptation, Example, Fitted, TokenNeed, n_classes
from rtbrain.training.methods.networks import FittedNetwork

if TYPE_CHECKING:
    from torch import nn

    from rtbrain.training.plain_fit import Step

WINDOW = 256
"""Samples that it reads at once: two seconds at 128 Hz."""
PER_TRIAL = 4
"""Windows of each trial in an epoch."""
MOST_WINDOWS = 40
"""That an answer rests on, evenly over the trial."""
MOST_BYTES = 1 << 30
"""Of training samples that are kept in memory; what is beyond lies in temporary files and is read window by window."""
_LARGEST = 10.0  # in units of the usual size: an electrode that was touched must not decide

Windows = NDArray[np.float32]


@dataclass(frozen=True)
class EEGNetMethod:
    """EEGNet-8,2 on windows of two seconds, whose answers are averaged."""

    name: str = "eegnet"
    needs: tuple[TokenNeed, ...] = ()
    adaptation: Adaptation | None = "none"
    schedule: Schedule = field(default_factory=Schedule)
    paper: PaperSettings = field(default_factory=PaperSettings)
    stops_early: bool = True

    @property
    def program(self) -> tuple[str, ...]:
        """Return the files that decide its answers."""
        own = ("methods/eegnet", "methods/networks", "eegnet", "conditioned", "plain_fit", "losses", "calibrate")
        return (*(f"training/{name}.py" for name in (*own, "fit_settings", "stopping")), "decoder/bundle.py")

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        """Train on windows; the epoch and the temperature rest on validation people."""
        from rtbrain.training.calibrate import calibrated_loss, even_weights, fit_temperature
        from rtbrain.training.eegnet import EEGNet
        from rtbrain.training.losses import class_weights
        from rtbrain.training.plain_fit import PlainSettings, seeded, train_plain

        labels, truth = ([each.label for each in side] for side in (train, validation))
        people = [each.person for each in validation]
        classes, weights = n_classes(train, validation), even_weights(people, np.array(truth))
        settings = PlainSettings(
            epochs=self.schedule.epochs,
            passes=LONGER,
            patience=self.schedule.patience,
            learning_rate=self.schedule.learning_rate,
            weights=class_weights(labels, classes),
        )
        with seeded(seed), at_hand(train) as known:
            _check_windows([example.name for example in train], known)
            size = _usual_size(known)
            crops = _Crops(known, labels, size, self.paper.batch)
            held = [_windows(example.samples(), size) for example in validation]
            model = EEGNet(known[0].data.shape[1], WINDOW, classes)

            def loss(own: "nn.Module") -> float:
                return calibrated_loss(_logits(own, held), np.array(truth), weights, len(set(people)))

            model.limit()
            epoch = train_plain(model, crops.epoch, loss, settings, np.random.default_rng(seed), model.limit)
            temperature = fit_temperature(_logits(model, held), np.array(truth), weights, len(set(people)))

        def answer(trials: Sequence[Conditioned], seconds: float | None) -> FloatArray:
            scores = _logits(model, [_windows(each, size, seconds) for each in trials])
            return calibrated(softmax(scores, axis=1), temperature)

        names, held_names = (tuple(each.name for each in side) for side in (train, validation))
        fitted_on = {"scaling": names, "model": names, "early stopping": held_names, "calibration": held_names}
        return FittedNetwork(answer, _samples, fitted_on, {"epoch": float(epoch), "temperature": temperature})


@dataclass(frozen=True)
class _Crops:
    """Windows from anywhere in the trials."""

    trials: Sequence[Conditioned]
    labels: Sequence[int]
    size: FloatArray
    batch: int

    def epoch(self, rng: np.random.Generator) -> "Iterator[Step]":
        """Yield some windows of every trial; a batch holds as many of each of its trials."""
        import torch

        from rtbrain.training.plain_fit import Step

        order = rng.permutation(len(self.trials))
        for begin in range(0, len(order), self.batch):
            rows = [int(row) for row in order[begin : begin + self.batch]]
            found = []
            for row in rows:
                chosen = rng.choice(self.trials[row].starts(WINDOW), PER_TRIAL)
                found += [self.trials[row].data[start : start + WINDOW].T for start in chosen]
            scaled = _scaled(np.stack(found), self.size)
            yield Step(torch.from_numpy(scaled), [self.labels[row] for row in rows for _ in range(PER_TRIAL)])


@contextmanager
def at_hand(examples: Sequence[Example]) -> Iterator[list[Conditioned]]:
    """Give the samples of all trials: hours of many electrodes do not fit into memory."""
    known, n_bytes = list[Conditioned](), 0
    # Windows does not remove a file that is still mapped, and leaves it to its own tidying.
    with TemporaryDirectory(prefix="rtbrain-eegnet-", ignore_cleanup_errors=True) as folder:
        for i, example in enumerate(examples):
            trial = example.samples()
            n_bytes += trial.data.nbytes
            if n_bytes > MOST_BYTES:
                path = Path(folder) / f"{i}.npy"
                np.save(path, trial.data, allow_pickle=False)
                trial = replace(trial, data=np.load(path, mmap_mode="r", allow_pickle=False))
            known.append(trial)
        yield known


def _samples(example: Example) -> Conditioned:
    return example.samples()


def _check_windows(names: Sequence[str], trials: Sequence[Conditioned]) -> None:
    """Refuse trials that are too short, or of several rates, by name."""
    for name, trial in zip(names, trials, strict=True):
        if not len(trial.starts(WINDOW)):
            raise ConfigError(
                f"trial {name!r}: EEGNet reads {WINDOW} samples ({WINDOW / trial.rate_hz:.3g} s) at once, and of the "
                f"{len(trial.data)} after the warm-up there are not so many between two breaks; leave eegnet out of "
                "--methods, or use a longer crop"
            )
    if len(rates := {trial.rate_hz: name for name, trial in zip(names, trials, strict=True)}) > 1:
        several = ", ".join(f"{rate:g} Hz in {name!r}" for rate, name in sorted(rates.items()))
        raise ConfigError(
            f"EEGNet reads windows of one sampling rate, and these trials have several: {several}; leave eegnet out of "
            "--methods, or use recordings of one rate"
        )


def _usual_size(trials: Sequence[Conditioned]) -> FloatArray:
    """Return the usual size of each channel over the training people, robust to artefacts."""
    each = np.array([np.median(np.abs(trial.data), axis=0) for trial in trials])
    size: FloatArray = np.maximum(np.median(each, axis=0) / 0.6745, 1e-3)
    return size


def _scaled(windows: Windows, size: FloatArray) -> Windows:
    return np.clip(windows / size[:, None], -_LARGEST, _LARGEST).astype(np.float32)


def _windows(trial: Conditioned, size: FloatArray, seconds: float | None = None) -> Windows:
    found = trial.windows(WINDOW, seconds)
    if len(found) > MOST_WINDOWS:
        found = found[np.linspace(0, len(found) - 1, MOST_WINDOWS).round().astype(int)]
    return _scaled(found, size)


def _logits(model: "nn.Module", trials: Sequence[Windows]) -> FloatArray:
    """Return (trials, classes): the mean over each trial's windows of the logarithm of their answers."""
    import torch

    model.eval()
    with torch.no_grad():
        each = [model(torch.from_numpy(windows)).log_softmax(1).mean(0).double().numpy() for windows in trials]
    return np.stack(each)
