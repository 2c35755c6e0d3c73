"""The Brain-Token model as a method: ours, the paper's presets, and what is left of them without one of their parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rtbrain.messages import FloatArray
from rtbrain.training.dataset_config import PaperSettings, Schedule
from rtbrain.training.fit_settings import settings_for
from rtbrain.training.methods.base import Adaptation, Attention, Example, Fitted, TokenNeed, n_classes

if TYPE_CHECKING:
    from rtbrain.training.batches import TokenSequence
    from rtbrain.training.model_settings import ModelSettings

BRAIN_TOKEN_PROGRAM = (
    "training/methods/networks.py",
    "training/attention.py",
    "training/task_model.py",
    "training/model_settings.py",
    "training/plain_fit.py",
    "tokens/inputs.py",
    "decoder/bundle.py",
)


@dataclass(frozen=True)
class FittedNetwork:
    """A network that has learnt."""

    answer: Callable[[Sequence[Any], float | None], FloatArray] = field(repr=False)
    read: Callable[[Example], Any] = field(repr=False)
    """From a trial to what the network reads."""
    fitted_on: Mapping[str, Sequence[str]]
    facts: Mapping[str, float]
    looks: Callable[[Any], Attention | None] | None = field(default=None, repr=False)
    """From what the network reads to where its CLS token looks; None for a network without one."""

    def attention(self, example: Example) -> Attention | None:
        """Return where CLS looks in a trial."""
        return None if self.looks is None else self.looks(self.read(example))

    def probabilities(self, examples: Sequence[Example], seconds: float | None = None) -> FloatArray:
        """Return (examples, classes)."""
        from rtbrain.training.plain_fit import one_thread

        with one_thread():
            return self.answer([self.read(example) for example in examples], seconds)


@dataclass(frozen=True)
class BrainTokenMethod:
    """A preset of the Brain-Token model."""

    name: str
    preset: Literal["rtbrain", "paper-text", "paper-table"]
    need: TokenNeed
    adaptation: Adaptation | None = "none"
    aggregation: bool = True
    """Latent State Aggregation; see ModelSettings for what is left without it, here and below."""
    transitions: bool = True
    head_start: bool = True
    """Whether training begins near what a linear model says (ours), or with random weights, as the paper's."""
    schedule: Schedule = field(default_factory=Schedule)
    paper: PaperSettings = field(default_factory=PaperSettings)
    stops_early: bool = True

    @property
    def needs(self) -> tuple[TokenNeed, ...]:
        """Return the tokens that it reads."""
        return (self.need,)

    @property
    def program(self) -> tuple[str, ...]:
        """Return the files that decide its answers."""
        from rtbrain.training.fit import PROGRAM

        return (*BRAIN_TOKEN_PROGRAM, *(f"training/{name}" for name in PROGRAM))

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        """Train as `rtbrain train` does."""
        from rtbrain.training.attention import attention_over
        from rtbrain.training.fit import train_model
        from rtbrain.training.plain_fit import seeded
        from rtbrain.training.task_model import context_within, task_model

        shape = {"aggregation": self.aggregation, "transitions": self.transitions}
        model = task_model(
            self.preset, states_of(train[0], self.need), n_classes(train, validation), self.paper, **shape
        )
        read = Reader(self.need, model)
        known, held = [read(example) for example in train], [read(example) for example in validation]
        context_s = context_within(self.schedule.context_s, known)
        settings = settings_for(self.preset, model, context_s, self.schedule, self.paper, self.head_start)
        settings = replace(settings, adversary=self.adaptation or "none", device="cpu")
        with seeded(seed):
            trained = train_model(known, held, settings, seed, target=[read(example) for example in target])
        facts = {
            "epoch": float(trained.best_epoch),
            "epochs": float(len(trained.history)),
            "temperature": trained.temperature,
            "context_s": context_s,
        }
        looks = partial(attention_over, trained.model, context_s)
        return FittedNetwork(trained.probabilities, read, trained.fitted_on, facts, looks)


@dataclass(frozen=True)
class Reader:
    """From a trial to the sequence of tokens that a network reads."""

    need: TokenNeed
    model: "ModelSettings"

    def __call__(self, example: Example) -> "TokenSequence":
        """Read the tokens of a trial."""
        from rtbrain.training.batches import sequence_of

        return sequence_of(example.name, example.person, example.label, example.tokens(self.need), self.model)


def states_of(example: Example, need: TokenNeed) -> tuple[int, ...]:
    """Return the number of states of each band."""
    return tuple(len(each.coverage) for each in example.tokens(need).statistics.values())
