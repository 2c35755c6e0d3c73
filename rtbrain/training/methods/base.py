"""What a method is, and what it is given: trials as tokens, band powers or nuisance, with a person and a class each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, Protocol

from rtbrain.conditioning.filters import Band
from rtbrain.messages import FloatArray
from rtbrain.pipeline import Recipe
from rtbrain.tokenizing import Tokenized
from rtbrain.training.band_powers import Powers
from rtbrain.training.conditioned import Conditioned

HIDDEN = -1
"""Class of a trial that is tested: whoever predicts it is not told."""

Adaptation = Literal["none", "inductive", "transductive"]
"""Domain adaptation: not at all, between the people learnt from, or to the tested people's trials without labels."""
ADAPTATIONS: tuple[Adaptation, ...] = ("none", "inductive", "transductive")

EDGES_HZ = (1.0, 4.0, 8.0, 13.0, 20.0, 30.0, 45.0)
_NARROWEST_HZ = 2.0
_ORDER = 3


@dataclass(frozen=True)
class TokenNeed:
    """Which tokens a method reads; methods with the same need share templates and tokens."""

    several_bands: bool = False
    """Tokens of several bands inside that of the data set's recipe (see `with_bands`), not of the recipe's own."""
    n_states: int | None = None
    """States of each band; by default as many as the data set's configuration says."""


@dataclass(frozen=True)
class Example:
    """One trial as methods see it; what it holds is read when it is asked for."""

    name: str
    person: str
    """Who counts as one person: subjects that share a recording or are declared one have the same."""
    label: int
    warmup_s: float
    """Seconds at the start of the trial from which nothing comes."""
    tokens: Callable[[TokenNeed], Tokenized] = field(repr=False)
    powers: Callable[[], Powers] = field(repr=False)
    samples: Callable[[], Conditioned] = field(repr=False)
    nuisance: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Attention:
    """Where a model's CLS token looked during one trial."""

    trial: str
    seconds: tuple[float, ...]
    """Middle of each bin."""
    layers: tuple[tuple[float, ...], ...]
    """By layer, mean over heads; a layer's bins and its attention to itself add up to 1."""


class Fitted(Protocol):
    """A method that has learnt."""

    @property
    def fitted_on(self) -> Mapping[str, Sequence[str]]:
        """Names of the trials that the model, scaling, calibration and so on rest on; audited before the test."""

    @property
    def facts(self) -> Mapping[str, float]:
        """What was chosen on the way, for the record."""

    def attention(self, example: Example) -> Attention | None:
        """Return where a trial's answer comes from, if the method can say."""

    def probabilities(self, examples: Sequence[Example], seconds: float | None = None) -> FloatArray:
        """Return (examples, classes): the answer after so many seconds of EEG beyond the warm-up; None for all."""


class Method(Protocol):
    """A way to tell the class of a trial: a frozen dataclass of plain values, since these name its results."""

    @property
    def name(self) -> str:
        """As it is asked for, and stands in tables."""

    @property
    def needs(self) -> tuple[TokenNeed, ...]:
        """Tokens that it reads; empty if none."""

    @property
    def program(self) -> tuple[str, ...]:
        """Files of rtbrain, besides those that all results rest on, whose change asks for new results."""

    @property
    def stops_early(self) -> bool:
        """Whether validation only chooses when to stop; the protocol `paper` then hands it the test side for that."""

    @property
    def adaptation(self) -> Adaptation | None:
        """How it adapts; None for a yardstick, which may stand beside methods of any kind."""

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        """Learn from trials of two groups of people; one that is transductive is also given those to be tested.

        The classes of `target` are hidden.
        """


def n_classes(*sides: Sequence[Example]) -> int:
    """Return the number of classes; folds see to it that no class is on the test side only."""
    return 1 + max(example.label for side in sides for example in side)


def with_bands(recipe: Recipe) -> Recipe:
    """Return the recipe with several bands: its own, or else the usual ones inside its only band.

    The usual edges less than 2 Hz from the recipe's own are left out: 3 to 26 Hz become 3-8, 8-13, 13-20 and 20-26.
    """
    if len(recipe.bands) > 1:
        return recipe
    low, high = recipe.bands[0].low_hz, recipe.bands[0].high_hz
    inside = [hz for hz in EDGES_HZ if low + _NARROWEST_HZ <= hz <= high - _NARROWEST_HZ]
    edges = [low, *inside, high]
    bands = [Band(f"{a:g}-{b:g}", a, b, _ORDER) for a, b in pairwise(edges)]
    return replace(recipe, bands=tuple(bands))
