"""What training minimises: classification losses, and what keeps subjects apart from the features."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rtbrain.errors import ConfigError

DomainMode = Literal["none", "inductive", "transductive"]
LossName = Literal["cross-entropy", "focal"]


def focal_loss(logits: Tensor, labels: Tensor, alpha: Tensor | None = None, gamma: float = 2.0) -> Tensor:
    """Return the mean of -alpha_y (1 - p_y)^gamma log p_y over the batch.

    `alpha` holds one weight per class and is taken as it is: its mean scales the learning rate. With gamma 0 and no
    alpha this is the cross entropy.
    """
    log_p = functional.log_softmax(logits, -1).gather(1, labels[:, None])[:, 0]
    loss = -((-torch.expm1(log_p)) ** gamma) * log_p
    if alpha is not None:
        if alpha.shape != logits.shape[1:]:
            raise ConfigError(f"alpha has {alpha.numel()} weights for {logits.shape[1]} classes; give one per class")
        loss = loss * alpha[labels]
    return loss.mean()


def cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None, smoothing: float = 0.0) -> Tensor:
    """Return the cross entropy with class weights (its mean is weighted too) and label smoothing."""
    return functional.cross_entropy(logits, labels, weights, label_smoothing=smoothing)


def class_loss(
    kind: LossName, logits: Tensor, labels: Tensor, weights: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """Return the loss of this name, which is how well classes are told; the focal one takes no smoothing."""
    if kind == "focal":
        return focal_loss(logits, labels, weights)
    return cross_entropy(logits, labels, weights, smoothing)


def refuse_infinite(loss: Tensor, epoch: int, learning_rate: float) -> None:
    """Stop a training whose loss is no number: what came after it would be none either."""
    if not torch.isfinite(loss):
        raise ConfigError(
            f"the loss became {float(loss)} in epoch {epoch}; lower learning_rate ({learning_rate:g}), or look at the "
            "data by `rtbrain data check`"
        )


def class_weights(labels: Sequence[int], n_classes: int) -> tuple[float, ...]:
    """Return weights inverse to the classes' frequencies, of mean 1 over the trials."""
    counts = np.bincount(labels, minlength=n_classes)
    return tuple((len(labels) / (n_classes * np.maximum(counts, 1))).tolist())


def reversal_strength(progress: float, steepness: float = 10.0) -> float:
    """Return lambda of the gradient reversal, from 0 towards 1 as training goes from 0 to 1.

    `steepness` 10 is Ganin's schedule. The code of the paper's authors amounts to steepness 1 with progress in
    thousands of steps, not capped at 1.
    """
    if not progress >= 0:
        raise ConfigError(f"progress is {progress}; it counts from 0 at the start of training")
    return 2 / (1 + math.exp(-steepness * progress)) - 1


@dataclass(frozen=True)
class Adversary:
    """Which domains the features must not tell apart; results of different modes never share a table.

    none          no adversary
    inductive     the training subjects; nothing of the test subject is used
    transductive  training subjects (0) against unlabelled trials of the test subject (1), as in the paper
    """

    mode: DomainMode = "none"
    n_subjects: int = 0
    """Training subjects, for the inductive mode."""

    def __post_init__(self) -> None:
        """Refuse a mode without what it needs."""
        if self.mode not in ("none", "inductive", "transductive"):
            raise ConfigError(f"there is no domain adversary {self.mode!r}; choose none, inductive or transductive")
        if (self.n_subjects > 1) != (self.mode == "inductive"):
            raise ConfigError(
                f"adversary {self.mode} with {self.n_subjects} subjects; inductive takes 2 or more, others none"
            )

    @property
    def domains(self) -> int:
        """Return the outputs that the domain head needs; 0 is no head."""
        return {"none": 0, "inductive": self.n_subjects, "transductive": 1}[self.mode]

    def loss(self, scores: Tensor, domain: Tensor) -> Tensor:
        """Return the loss of the domain head's scores (B, domains) for the true domains (B,)."""
        if self.mode == "none":
            raise ConfigError("there is no adversary, hence no loss of it; choose inductive or transductive")
        if scores.shape != (len(domain), self.domains):
            raise ConfigError(
                f"scores of shape {tuple(scores.shape)} for {len(domain)} trials; the {self.mode} adversary needs a "
                f"domain head with {self.domains} outputs"
            )
        if self.mode == "inductive":
            return functional.cross_entropy(scores, domain)
        each = functional.binary_cross_entropy_with_logits(scores[:, 0], domain.to(scores), reduction="none")
        target = domain.bool()
        if not target.any() or target.all():
            raise ConfigError("a transductive batch needs trials of both sides, source (0) and target (1)")
        # Both sides weigh the same, however many trials they have.
        return 0.5 * (each[~target].mean() + each[target].mean())


def coral_loss(source: Tensor, target: Tensor) -> Tensor:
    """Return the Deep CORAL distance ||C_s - C_t||_F^2 / (4 d^2) between the features of two domains, (n, d) each."""
    if min(len(source), len(target)) < 2:
        raise ConfigError(f"{len(source)} and {len(target)} trials have no covariance; give 2 or more of each")
    difference = _covariance(source) - _covariance(target)
    return difference.square().sum() / (4 * source.shape[1] ** 2)


def _covariance(features: Tensor) -> Tensor:
    centred = features - features.mean(0)
    return centred.T @ centred / (len(features) - 1)
