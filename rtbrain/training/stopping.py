"""Which epoch of a training is kept, and when it stops: one rule for our model and for all that it is compared with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from rtbrain.training.asking import answers
from rtbrain.training.batches import TokenSequence
from rtbrain.training.calibrate import calibrated_loss, even_weights

WARM_UP = 0.15
"""Share of the epochs after which patience begins to count, and in which our model's steps grow to their full size."""


@dataclass
class Stopping:
    """The best epoch so far.

    Random weights, and what the first steps make of them, are no answer: a model that tells nothing may have the
    smallest loss of all where few people are learnt from, and would stand for one that was trained. So they are kept
    only where training begins with a head start.
    """

    epochs: int
    patience: int
    """Epochs without a better one after which training stops."""
    head_start: bool = False
    best_epoch: int = 0
    best_loss: float = math.inf

    @property
    def warm_up(self) -> int:
        """Return the epochs in which nothing is waited for."""
        return math.ceil(WARM_UP * self.epochs)

    def is_best(self, epoch: int, loss: float) -> bool:
        """Note the loss on validation people after an epoch, and tell whether its weights are to be kept."""
        if not loss < self.best_loss or not (self.head_start or epoch >= self.warm_up):
            return False
        self.best_epoch, self.best_loss = epoch, loss
        return True

    def is_over(self, epoch: int) -> bool:
        """Tell whether training ends after this epoch."""
        return epoch >= self.epochs or epoch - max(self.best_epoch, self.warm_up) >= self.patience


def judged(model: nn.Module, validation: Sequence[TokenSequence], context_s: float) -> tuple[float, float]:
    """Return loss and accuracy of the answers about whole trials; classes weigh the same, as do a class's people."""
    logits, rows = answers(model, validation, context_s)
    labels = np.array([each.label for each in validation])[rows]
    people = [validation[row].person for row in rows]
    weights = even_weights(people, labels)
    accuracy = float(weights @ (logits.argmax(1) == labels))
    return calibrated_loss(logits, labels, weights, len(set(people))), accuracy
