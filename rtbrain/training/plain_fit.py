"""Training of the networks that ours is compared with: the usual loop, the epoch chosen on validation people.

Adam, class weights or the task's focal loss, and where asked for the alignment of training and tested people by a
domain adversary (DANN) or by covariances (Deep CORAL). None of our own model's tricks: these are others' methods. But
they learn as long as ours from random weights, and the epoch is chosen by the same rule.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from rtbrain.errors import ConfigError
from rtbrain.training.losses import Adversary, LossName, class_loss, coral_loss, refuse_infinite, reversal_strength
from rtbrain.training.stopping import Stopping

Judge = Callable[[nn.Module], float]
"""Gives the loss on validation people."""
Align = Literal["none", "adversary", "coral"]
_CLIP = 1.0


@dataclass(frozen=True)
class Step:
    """What a step of training looks at."""

    inputs: Tensor
    labels: Sequence[int]
    other: Tensor | None = None
    """Inputs of as many unlabelled trials of the tested people, of the same length; for the alignment alone."""


Steps = Callable[[np.random.Generator], Iterator[Step]]
"""Gives one pass over the training trials."""


@dataclass(frozen=True)
class PlainSettings:
    """How long and by which loss."""

    epochs: int
    patience: int
    """Epochs without a better validation loss after which training stops."""
    learning_rate: float
    weights: tuple[float, ...]
    """Of the classes."""
    passes: int = 1
    """Over the training trials in an epoch."""
    loss: LossName = "cross-entropy"
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


def train_plain(
    model: nn.Module,
    steps: Steps,
    judge: Judge,
    settings: PlainSettings,
    rng: np.random.Generator,
    after_step: Callable[[], None] = lambda: None,
) -> int:
    """Train a model that has `features`, `classifier` and perhaps `domain`; return the epoch whose weights it keeps.

    `after_step` is for models whose weights must keep within bounds.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    weights = torch.tensor(settings.weights)
    stopping, coral = Stopping(settings.epochs, settings.patience), CoralTerm()
    best, epoch, done = deepcopy(model.state_dict()), 0, 0
    while not stopping.is_over(epoch):
        model.train()
        epoch_steps = [each for _ in range(settings.passes) for each in steps(rng)]
        for each in epoch_steps:
            if (each.other is None) != (settings.align == "none"):
                lacking = "without trials" if each.other is None else "with trials"
                raise ConfigError(f"alignment {settings.align} {lacking} of the tested people; give both or neither")
            progress = done / (settings.epochs * len(epoch_steps))
            features = model.features(each.inputs)  # type: ignore[operator]
            logits, truth = model.classifier(features), torch.tensor(each.labels)  # type: ignore[operator]
            loss = class_loss(settings.loss, logits, truth, weights)
            if each.other is not None:
                other = model.features(each.other)  # type: ignore[operator]
                if settings.align == "coral":
                    loss = loss + coral(features, other, loss, 2 * done < stopping.warm_up * len(epoch_steps))
                else:
                    loss = loss + _adversary_loss(model, features, other, progress)
            refuse_infinite(loss, epoch + 1, settings.learning_rate)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
            optimizer.step()
            after_step()
            done += 1
        epoch += 1
        model.eval()
        if stopping.is_best(epoch, judge(model)):
            best = deepcopy(model.state_dict())
    model.load_state_dict(best)
    model.eval()
    return stopping.best_epoch


class CoralTerm:
    """Deep CORAL's distance, weighed to count as much as the loss of the classes.

    Its authors weigh it so that both are about equal. The distance of features that are means over many tokens is
    thousands of times smaller, and by how much depends on the data: so both are measured over the first half of the
    steps that are too early to be kept, in which classes alone are learnt, and their ratio is the weight from then on.
    A weight that followed the distance down would shrink all features to nothing.
    """

    def __init__(self) -> None:
        self._losses = self._distances = 0.0

    @property
    def weight(self) -> float:
        """Return the factor on the distance."""
        return self._losses / self._distances if self._distances > 0 else 0.0

    def __call__(self, features: Tensor, other: Tensor, loss: Tensor, weighing: bool) -> Tensor:
        """Return what is added to the loss of the classes; nothing while the weight is still to be found."""
        distance = coral_loss(features, other)
        if not weighing:
            return self.weight * distance
        self._losses += float(loss.detach())
        self._distances += float(distance.detach())
        return torch.zeros(())


def _adversary_loss(model: nn.Module, features: Tensor, other: Tensor, progress: float) -> Tensor:
    domain = torch.cat([torch.zeros(len(features), dtype=torch.int64), torch.ones(len(other), dtype=torch.int64)])
    scores = model.domain(torch.cat([features, other]), reversal_strength(progress))  # type: ignore[operator]
    return Adversary("transductive").loss(scores, domain)
