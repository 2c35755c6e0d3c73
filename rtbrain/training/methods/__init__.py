"""The methods that an evaluation compares, by name."""

from collections.abc import Sequence

from rtbrain.errors import ConfigError
from rtbrain.training.methods.band_power import relative_powers
from rtbrain.training.methods.base import HIDDEN, Example, Fitted, Method, TokenNeed, n_classes, with_bands
from rtbrain.training.methods.linear import Features, Linear
from rtbrain.training.methods.plain import Majority, nuisance_features
from rtbrain.training.methods.token_features import MicrostateStatistics, Occupancy, PooledTokens

__all__ = ["HIDDEN", "METHODS", "Example", "Fitted", "Method", "TokenNeed", "methods_named", "n_classes", "with_bands"]

NUISANCE = "nuisance"
REFERENCES = ("band-power", "pooled-tokens")
"""What the others are compared with."""

_BROAD = TokenNeed()
_SEVERAL = TokenNeed(several_bands=True, n_states=8)
_MANY = TokenNeed(several_bands=True, n_states=16)


def _linear(name: str, features: Features, file: str, *needs: TokenNeed, more: tuple[str, ...] = ()) -> Linear:
    return Linear(name, features, needs, ("training/methods/linear.py", f"training/methods/{file}.py", *more))


_ALL: tuple[Method, ...] = (
    Majority(),
    _linear(NUISANCE, nuisance_features, "plain", more=("training/nuisance",)),
    _linear("band-power", relative_powers, "band_power", more=("training/band_powers.py",)),
    _linear("microstate-stats", MicrostateStatistics(_BROAD), "token_features", _BROAD),
    _linear("occupancy", Occupancy(_SEVERAL), "token_features", _SEVERAL),
    _linear("pooled-tokens", PooledTokens(_SEVERAL), "token_features", _SEVERAL),
    _linear("pooled-tokens-16", PooledTokens(_MANY), "token_features", _MANY),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
USUAL = ("majority", NUISANCE, "band-power", "microstate-stats", "occupancy", "pooled-tokens")
"""What is run unless methods are named."""


def methods_named(names: Sequence[str] = ()) -> list[Method]:
    """Return methods by name, each once, in the order of the register; the usual ones by default."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise ConfigError(f"no method is called {', '.join(map(repr, unknown))}; there are {', '.join(METHODS)}")
    return [method for name, method in METHODS.items() if name in (names or USUAL)]
