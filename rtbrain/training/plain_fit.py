"""Training of the networks that ours is compared with: the usual loop, the epoch chosen on validation people.

Adam, class weights or the task's focal loss, and where asked for the alignment of training and tested people by a
domain adversary (DANN) or by covariances (Deep CORAL). None of our own model's tricks: these are others' methods. But
they have as many epochs as ours from random weights, and epochs are judged as ours are.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from rtbrain.errors import ConfigError
from rtbrain.training.asking import answers
from rtbrain.training.batches import TokenSequence
from rtbrain.training.calibrate import calibrated_loss, even_weights
from rtbrain.training.losses import Adversary, coral_loss, cross_entropy, focal_loss, reversal_strength

Batches = Callable[[np.random.Generator], Iterator[tuple[Tensor, Sequence[int]]]]
"""Gives the inputs and classes of one epoch."""
Target = Callable[[np.random.Generator, int], Tensor]
"""Gives inputs of so many unlabelled trials."""
Judge = Callable[[nn.Module], float]
"""Gives the loss on validation people."""
Align = Literal["none", "adversary", "coral"]
_CLIP = 1.0


@dataclass(frozen=True)
class PlainSettings:
    """How long and by which loss."""

    epochs: int
    patience: int
    """Epochs without a better validation loss after which training stops."""
    learning_rate: float
    weights: tuple[float, ...]
    """Of the classes."""
    loss: Literal["cross-entropy", "focal"] = "cross-entropy"
    align: Align = "none"


@contextmanager
def one_thread() -> Iterator[None]:
    """Work on one thread: sums over several come out differently, and folds run side by side anyway."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from a generator of our own, on one thread: the same answers whoever works beside us."""
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def validation_loss(model: nn.Module, validation: Sequence[TokenSequence], context_s: float) -> float:
    """Return the loss of the answers about whole trials; classes weigh the same, and so do the people of a class."""
    logits, rows = answers(model, validation, context_s)
    labels = np.array([each.label for each in validation])[rows]
    people = [validation[row].person for row in rows]
    return calibrated_loss(logits, labels, even_weights(people, labels), len(set(people)))


def train_plain(
    model: nn.Module,
    batches: Batches,
    judge: Judge,
    settings: PlainSettings,
    rng: np.random.Generator,
    target: Target | None = None,
) -> int:
    """Train a model that has `features`, `classifier` and perhaps `domain`; return the epoch whose weights it keeps."""
    if (target is None) != (settings.align == "none"):
        raise ConfigError(f"alignment {settings.align} with{'out' if target is None else ''} a target; give both")
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    weights = torch.tensor(settings.weights)
    best, best_loss, best_epoch, step = deepcopy(model.state_dict()), math.inf, 0, 0
    for epoch in range(1, settings.epochs + 1):
        model.train()
        epoch_batches = list(batches(rng))
        for inputs, labels in epoch_batches:
            progress = step / (settings.epochs * len(epoch_batches))
            features = model.features(inputs)  # type: ignore[operator]
            logits, truth = model.classifier(features), torch.tensor(labels)  # type: ignore[operator]
            if settings.loss == "focal":
                loss = focal_loss(logits, truth, weights)
            else:
                loss = cross_entropy(logits, truth, weights)
            if target is not None:
                other = model.features(target(rng, len(labels)))  # type: ignore[operator]
                loss = loss + _alignment(model, settings.align, features, other, progress)
            if not torch.isfinite(loss):
                raise ConfigError(
                    f"the loss became {float(loss)} in epoch {epoch}; lower learning_rate ({settings.learning_rate:g})"
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
            optimizer.step()
            step += 1
        model.eval()
        found = judge(model)
        if found < best_loss:
            best, best_loss, best_epoch = deepcopy(model.state_dict()), found, epoch
        if epoch - best_epoch >= settings.patience:
            break
    model.load_state_dict(best)
    model.eval()
    return best_epoch


def _alignment(model: nn.Module, align: Align, features: Tensor, other: Tensor, progress: float) -> Tensor:
    if align == "coral":
        return coral_loss(features, other)
    domain = torch.cat([torch.zeros(len(features), dtype=torch.int64), torch.ones(len(other), dtype=torch.int64)])
    scores = model.domain(torch.cat([features, other]), reversal_strength(progress))  # type: ignore[operator]
    return Adversary("transductive").loss(scores, domain)
