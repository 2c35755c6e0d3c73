"""How a Brain-Token model is trained; free of torch, so that commands can name it cheaply."""

from dataclasses import dataclass, field, replace
from typing import Literal

from rtbrain.errors import ConfigError
from rtbrain.training.dataset_config import PaperSettings, Schedule
from rtbrain.training.model_settings import ModelSettings

SHORTEST_S = 5.0
"""Of a training crop: answers are trusted from ten seconds on, so training goes below that."""

LONGER = 5
"""Crops of every trial in an epoch where training begins with random weights; one with a head start."""


@dataclass(frozen=True)
class TrainSettings:
    """Everything that decides a training run, but for data and seed."""

    model: ModelSettings
    context_s: float
    """Longest crop, and the most that the live context holds."""
    epochs: int = 60
    """After each of them validation people are looked at."""
    passes: int = 1
    """Crops of every trial in an epoch."""
    batch: int = 12
    learning_rate: float = 1e-3
    patience: int = 10
    """Epochs without a better validation loss after which training stops."""
    weight_decay: float = 0.0
    smoothing: float = 0.0
    """Of the labels."""
    prefix_share: float = 0.5
    """Share of the batches that are shorter than the context."""
    averaging: float = 0.98
    """Decay of the running mean of the weights, which is what is kept."""
    loss: Literal["cross-entropy", "focal"] = "cross-entropy"
    alpha: tuple[float, ...] = ()
    """Weight of each class; by default inverse to its frequency among the training trials."""
    adversary: Literal["none", "inductive", "transductive"] = "none"
    adversary_weight: float = 1.0
    adversary_rate: float | None = None
    """Learning rate of the domain head; by default that of the model."""
    head_start: bool = True
    """Whether training begins near what a linear model of the tokens says, or with random weights."""
    device: Literal["auto", "cpu", "cuda"] = field(default="auto", compare=False)

    def __post_init__(self) -> None:
        """Refuse what no model can be trained with."""
        counts = min(self.epochs, self.passes)
        if not self.context_s > 0 or counts < 1 or self.batch < 2 or not self.learning_rate > 0:
            raise ConfigError(
                f"context_s {self.context_s:g}, epochs {self.epochs}, passes {self.passes}, batch {self.batch} and "
                f"learning_rate {self.learning_rate:g} must be above 0, batches of 2 or more"
            )
        if self.alpha and len(self.alpha) != self.model.n_classes:
            raise ConfigError(f"alpha {self.alpha} must weigh each of {self.model.n_classes} classes")

    @property
    def shortest_s(self) -> float:
        """Return the length of the shortest crop."""
        return min(SHORTEST_S, self.context_s)


def settings_for(
    name: str,
    model: ModelSettings,
    context_s: float,
    schedule: Schedule,
    paper: PaperSettings,
    head_start: bool = True,
) -> TrainSettings:
    """Return how a preset is trained.

    Training begins near a good answer (`rtbrain.training.head_start`), and steps of the schedule's full size would
    first leave it: ours takes a tenth of them. The paper's models read no attributes, so that there is less to be found
    beyond that answer, and lose it sooner: they take a 250th. The domain head, which begins with random weights, takes
    full steps. Without a head start all do, and there are several times as many (the paper takes up to 3000 epochs):
    an epoch is longer then, so that the one to keep is chosen among as many, and validation people cost no more.
    The paper's models keep the paper's batch and loss, and its alpha where `paper` still has it: in the protocol
    `paper`. Elsewhere classes weigh by the data's own frequencies: 2 : 1 does that for the paper's own people, and for
    others would lean towards one class.
    """
    made = TrainSettings(model, context_s, schedule.epochs, passes=1 if head_start else LONGER)
    share = (0.1 if name == "rtbrain" else 0.004) if head_start else 1.0
    made = replace(made, patience=schedule.patience, learning_rate=share * schedule.learning_rate)
    made = replace(made, head_start=head_start, adversary_rate=schedule.learning_rate)
    if name == "rtbrain":
        return replace(made, batch=schedule.batch, weight_decay=0.1, smoothing=0.1)
    return replace(made, batch=paper.batch, loss=paper.loss, alpha=paper.alpha)
