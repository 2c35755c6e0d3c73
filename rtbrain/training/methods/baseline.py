"""The paper's comparison networks on the same tokens as methods: CNN, LSTM, Transformer, DANN, DeepCORAL."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rtbrain.training.dataset_config import PaperSettings, Schedule
from rtbrain.training.fit_settings import LONGER
from rtbrain.training.methods.base import Adaptation, Example, Fitted, TokenNeed, n_classes
from rtbrain.training.methods.networks import FittedNetwork, Reader, states_of

if TYPE_CHECKING:
    from rtbrain.training.batches import TokenSequence
    from rtbrain.training.plain_fit import Align, Step

MOST_TOKENS = 1000
"""In a crop of what attends from every token to every other."""
_SPARE = 0.8  # so that a stretch with more tokens than usual is not cut short


@dataclass(frozen=True)
class Baseline:
    """A network of `rtbrain.training.baselines`, trained by the usual loop, as long as ours from random weights."""

    name: str
    need: TokenNeed
    align: "Align" = "none"
    most_tokens: int | None = None
    """Longest crop, in tokens."""
    schedule: Schedule = field(default_factory=Schedule)
    paper: PaperSettings = field(default_factory=PaperSettings)
    stops_early: bool = True

    @property
    def adaptation(self) -> Adaptation | None:
        """Return how it adapts: those that align do so with the tested people."""
        return "none" if self.align == "none" else "transductive"

    @property
    def needs(self) -> tuple[TokenNeed, ...]:
        """Return the tokens that it reads."""
        return (self.need,)

    @property
    def program(self) -> tuple[str, ...]:
        """Return the files that decide its answers."""
        own = ("methods/baseline", "methods/networks", "baselines", "plain_fit", "losses", "model", "model_settings")
        loop = ("fit", "fit_settings", "batches", "asking", "calibrate", "stopping", "task_model")
        return (*(f"training/{name}.py" for name in (*own, *loop)), "decoder/bundle.py")

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        """Train on crops; the epoch and the temperature rest on validation people."""
        from rtbrain.training.baselines import baseline
        from rtbrain.training.fit import Trained, temperature_of
        from rtbrain.training.losses import class_weights
        from rtbrain.training.plain_fit import PlainSettings, seeded, train_plain
        from rtbrain.training.stopping import judged
        from rtbrain.training.task_model import task_model

        states, classes = states_of(train[0], self.need), n_classes(train, validation)
        shape = task_model("paper-text", states, classes, self.paper)  # tells how tokens are read; without attributes
        read = Reader(self.need, shape)
        known, held = [read(example) for example in train], [read(example) for example in validation]
        context_s = self._context(known)
        settings = PlainSettings(
            epochs=self.schedule.epochs,
            passes=LONGER,
            patience=self.schedule.patience,
            learning_rate=self.schedule.learning_rate,
            # By the data's own frequencies, as the paper's model in the same table (see fit_settings.settings_for).
            weights=self.paper.alpha or class_weights([each.label for each in known], classes),
            loss=self.paper.loss,
            align=self.align,
        )
        others = [read(example) for example in target]
        crops = _Crops(known, others, context_s, self.paper.batch, self.most_tokens)
        with seeded(seed):
            # The register's networks differ from BrainToken in their type alone: both answer to ids.
            model = cast("Any", baseline(self.name, states, classes))
            epoch = train_plain(
                model,
                crops.epoch,
                lambda own: judged(own, held, context_s)[0],
                settings,
                np.random.default_rng(seed),
            )
            temperature = temperature_of(model, held, context_s)
        names, held_names = (tuple(each.name for each in side) for side in (train, validation))
        fitted_on = {"model": names, "early stopping": held_names, "calibration": held_names}
        trained = Trained(model, _as_asked(shape, context_s), temperature, epoch, (), fitted_on)
        facts = {"epoch": float(epoch), "temperature": temperature, "context_s": context_s}
        return FittedNetwork(trained.probabilities, read, fitted_on, facts)

    def _context(self, known: "Sequence[TokenSequence]") -> float:
        from rtbrain.training.batches import seen_s
        from rtbrain.training.task_model import context_within

        context_s = context_within(self.schedule.context_s, known)
        if self.most_tokens is None:
            return context_s
        rates = [max(map(len, each.pieces)) / seen_s(each) for each in known]
        return round(min(context_s, _SPARE * self.most_tokens / max(rates)), 3)


@dataclass(frozen=True)
class _Crops:
    """Crops of trials, drawn as for our own model."""

    known: "Sequence[TokenSequence]"
    others: "Sequence[TokenSequence]"
    """Unlabelled ones of the tested people, where there are any to adapt to."""
    context_s: float
    batch: int
    most_tokens: int | None

    def epoch(self, rng: np.random.Generator) -> "Iterator[Step]":
        """Yield one crop of every trial."""
        from rtbrain.training.batches import crops_like, training_batches
        from rtbrain.training.fit_settings import SHORTEST_S
        from rtbrain.training.plain_fit import Step

        lengths = (min(SHORTEST_S, self.context_s), self.context_s)
        for made in training_batches(self.known, self.batch, lengths, rng):
            other = crops_like(made, self.others, rng).ids[:, : self.most_tokens] if self.others else None
            yield Step(made.ids[:, : self.most_tokens], [self.known[row].label for row in made.rows], other)


def _as_asked(shape: Any, context_s: float) -> Any:
    from rtbrain.training.fit_settings import TrainSettings

    return TrainSettings(shape, context_s)
