"""Shapes of the Brain-Token model and the presets; free of torch, so that commands can name them cheaply."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rtbrain.errors import ConfigError
from rtbrain.tokens.inputs import ATTRIBUTES, Vocabulary


@dataclass(frozen=True)
class ModelSettings:
    """Shape of a model; `preset` knows the usual ones."""

    states: tuple[int, ...]
    """Number of states of each band; ids count through all of them (see Vocabulary)."""
    n_classes: int
    width: int = 64
    heads: int = 3
    head_width: int = 64
    hidden: int = 256
    """Inner width of the feed-forward network."""
    layers: int = 2
    window: int | None = 60
    """Tokens in a block of State Transition Modeling."""
    segments: int | None = None
    """Or the number of blocks, whose borders then depend on the sequence's length."""
    attributes: tuple[str, ...] = ()
    """What the model reads of a token besides its state; names of rtbrain.tokens.inputs.ATTRIBUTES."""
    state_terms: tuple[str, ...] = ()
    """Attributes that every state weighs in its own way."""
    position_scale: float = 1.0
    dropout: float = 0.0
    input_dropout: float = 0.0
    domains: int = 1
    """Outputs of the domain head: 1 tells source from target, more tell subjects apart, 0 leaves the head out."""
    aggregation: bool = True
    """Ablation: without, the answer is read from the mean of the tokens instead of CLS."""
    transitions: bool = True
    """Ablation: without, tokens do not see each other."""

    def __post_init__(self) -> None:
        """Refuse shapes that mean nothing."""
        if not self.states or min(self.states) < 1 or self.n_classes < 2:
            raise ConfigError(f"a model needs states and two classes; got {self.states} and {self.n_classes}")
        if (self.window is None) == (self.segments is None) or (self.window or self.segments or 0) < 1:
            raise ConfigError(f"give either a window ({self.window}) or a number of segments ({self.segments})")
        unknown = [name for name in (*self.attributes, *self.state_terms) if name not in ATTRIBUTES]
        if unknown or not set(self.state_terms) <= set(self.attributes):
            raise ConfigError(
                f"attributes {self.attributes} and state_terms {self.state_terms}: choose from "
                f"{', '.join(ATTRIBUTES)}, and state_terms from the attributes"
            )

    @property
    def vocabulary(self) -> Vocabulary:
        """Return how tokens become ids."""
        return Vocabulary(self.states)

    @property
    def sees_neighbours(self) -> bool:
        """Whether the model can see what follows what: the last layer's tokens are read before they look around."""
        return self.transitions and self.layers > 1 and self.heads > 1

    @property
    def counts_pairs(self) -> bool:
        """Whether half of the feed-forward units are enough to count which state follows which.

        That goes by the states alone, so that a model and what is left of it without a part begin alike.
        """
        n = self.vocabulary.size - 2
        return 2 * n * (n - 1) <= self.hidden


PRESETS: Final[dict[str, dict[str, Any]]] = {
    "paper-text": {"heads": 3, "window": 60},
    "paper-table": {"heads": 4, "window": None, "segments": 60},
    "rtbrain": {
        "width": 32,
        "heads": 4,
        "head_width": 8,
        "hidden": 128,
        "window": 16,
        "attributes": ("log_duration", "level", "corr"),
        "state_terms": ("level", "corr"),
        "position_scale": 0.1,
        # What differs between people is a few per cent of what CLS gathers: dropout would bury it. Weight decay,
        # smoothed labels, averaged weights and early stopping regularise instead.
        "domains": 0,
    },
}
"""`paper-text` is the paper's text, `paper-table` what its complexity table counts, `rtbrain` is ours. The paper takes
60 tokens (or segments) for NeuroLong and 10 for the other sets."""


def preset(name: str, states: Sequence[int], n_classes: int, **changes: Any) -> ModelSettings:
    """Return the settings of a preset, with changes."""
    if name not in PRESETS:
        raise ConfigError(f"there is no model {name!r}; choose from {', '.join(PRESETS)}")
    return ModelSettings(states=tuple(states), n_classes=n_classes, **(PRESETS[name] | changes))
