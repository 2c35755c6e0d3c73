"""The methods that an evaluation compares, by name."""

from collections.abc import Sequence
from dataclasses import replace

from rtbrain.errors import ConfigError, perhaps
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.methods.band_power import relative_powers
from rtbrain.training.methods.base import (
    ADAPTATIONS,
    HIDDEN,
    Adaptation,
    Example,
    Fitted,
    Method,
    TokenNeed,
    n_classes,
    with_bands,
)
from rtbrain.training.methods.baseline import MOST_TOKENS, Baseline
from rtbrain.training.methods.eegnet import EEGNetMethod
from rtbrain.training.methods.linear import Features, Linear
from rtbrain.training.methods.networks import BrainTokenMethod
from rtbrain.training.methods.plain import Majority, nuisance_features
from rtbrain.training.methods.token_features import MicrostateStatistics, Occupancy, PooledTokens

__all__ = [
    "ADAPTATIONS",
    "HIDDEN",
    "METHODS",
    "Adaptation",
    "Example",
    "Fitted",
    "Method",
    "TokenNeed",
    "ablations",
    "for_task",
    "methods_named",
    "n_classes",
    "table_mode",
    "with_bands",
]

NUISANCE = "nuisance"
REFERENCES = ("band-power", "pooled-tokens")
"""What the others are compared with."""

_BROAD = TokenNeed()
_SEVERAL = TokenNeed(several_bands=True, n_states=8)
_MANY = TokenNeed(several_bands=True, n_states=16)


def _linear(name: str, features: Features, file: str, *needs: TokenNeed, more: tuple[str, ...] = ()) -> Linear:
    return Linear(
        name,
        features,
        needs,
        ("training/methods/linear.py", "training/scaling.py", f"training/methods/{file}.py", *more),
    )


_MEASURING = tuple(f"training/nuisance/{name}.py" for name in ("features", "lines", "spectrum"))
_ALL: tuple[Method, ...] = (
    Majority(),
    replace(
        _linear(NUISANCE, nuisance_features, "plain", more=(*_MEASURING, "training/evaluate.py")),
        adaptation=None,
    ),
    _linear("band-power", relative_powers, "band_power", more=("training/band_powers.py",)),
    _linear("microstate-stats", MicrostateStatistics(_BROAD), "token_features", _BROAD),
    _linear("occupancy", Occupancy(_SEVERAL), "token_features", _SEVERAL),
    _linear("pooled-tokens", PooledTokens(_SEVERAL), "token_features", _SEVERAL),
    _linear("pooled-tokens-16", PooledTokens(_MANY), "token_features", _MANY),
    BrainTokenMethod("rtbrain", "rtbrain", _SEVERAL),
    BrainTokenMethod("paper-text", "paper-text", _BROAD),
    BrainTokenMethod("paper-table", "paper-table", _BROAD),
    BrainTokenMethod("paper-scratch", "paper-text", _BROAD, head_start=False),
    Baseline("cnn", _BROAD),
    Baseline("lstm", _BROAD),
    Baseline("transformer", _BROAD, most_tokens=MOST_TOKENS),
    Baseline("dann", _BROAD, align="adversary", most_tokens=MOST_TOKENS),
    Baseline("deepcoral", _BROAD, align="coral", most_tokens=MOST_TOKENS),
    EEGNetMethod(),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
USUAL = ("majority", NUISANCE, "band-power", "microstate-stats", "occupancy", "pooled-tokens", "rtbrain")
"""What is run unless methods are named, without adaptation: ours, and all that takes seconds."""
ABLATED = ("paper-scratch", "rtbrain")
"""The paper's model from random weights, as the paper's own: steps after a head start are too small to tell parts."""


def methods_named(names: Sequence[str] = (), adaptation: Adaptation = "none") -> list[Method]:
    """Return methods by name, each once, in the order of the register; the usual ones by default.

    Methods that adapt to the tested people, between people and not at all answer different questions, so they never
    share a table: all that are returned are of the kind asked for, but for the yardsticks (majority, nuisance).
    """
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        named = ", ".join(f"{name!r}{perhaps(name, METHODS)}" for name in unknown)
        raise ConfigError(f"no method is called {named}; there are {', '.join(METHODS)}")
    able = {name: made for name, method in METHODS.items() if (made := adapted(method, adaptation)) is not None}
    if unable := [name for name in names if name not in able]:
        raise ConfigError(
            f"{', '.join(unable)} cannot stand in a table of adaptation {adaptation!r}: methods that adapt in another "
            f"way, or do not, are never mixed with these; those with it are {', '.join(able)}. Choose among them, or "
            f"evaluate {unable[0]} by itself with --adaptation {_own_mode(METHODS[unable[0]])}"
        )
    usual = USUAL if adaptation == "none" else tuple(able)
    return [method for name, method in able.items() if name in (names or usual)]


def adapted(method: Method, adaptation: Adaptation) -> Method | None:
    """Return a method as it adapts in this way, or None if it cannot."""
    if isinstance(method, BrainTokenMethod):
        return replace(method, adaptation=adaptation)
    return method if method.adaptation in (None, adaptation) else None


def _own_mode(method: Method) -> str:
    return method.adaptation or "none"


def ablations(names: Sequence[str] = (), adaptation: Adaptation = "transductive") -> list[Method]:
    """Return Brain-Token models whole and without one of their parts each; ours and the paper's by default.

    They adapt as the paper's do. An adversary between the people learnt from has no use where each has one class: what
    tells nothing about the person then tells nothing about the class.

    The row without domain adaptation is the only one that may stand beside models with it: to show what it does.
    """
    unable = [name for name in names if not isinstance(METHODS.get(name), BrainTokenMethod)]
    if unable:
        raise ConfigError(
            f"{', '.join(unable)} has no parts to leave out; ablations are there for "
            f"{', '.join(name for name, method in METHODS.items() if isinstance(method, BrainTokenMethod))}"
        )
    found: list[Method] = [METHODS["majority"], METHODS[NUISANCE]]
    for name in names or ABLATED:
        whole = METHODS[name]
        assert isinstance(whole, BrainTokenMethod)
        whole = replace(whole, adaptation=adaptation)
        found.append(whole)
        found.append(replace(whole, name=f"{name}-lsa-only", transitions=False))
        found.append(replace(whole, name=f"{name}-stm-only", aggregation=False))
        found.append(replace(whole, name=f"{name}-no-interaction", aggregation=False, transitions=False))
        if adaptation != "none":
            found.append(replace(whole, name=f"{name}{WITHOUT_ADAPTATION}", adaptation="none"))
    return found


WITHOUT_ADAPTATION = "-no-adaptation"


def table_mode(methods: Sequence[Method]) -> Adaptation:
    """Return the one way in which all methods of a table adapt; refuse a mixture."""
    modes = {method.adaptation for method in methods if not method.name.endswith(WITHOUT_ADAPTATION)} - {None}
    if len(modes) > 1:
        listed = "; ".join(
            f"{mode}: {', '.join(method.name for method in methods if method.adaptation == mode)}"
            for mode in ADAPTATIONS
            if mode in modes
        )
        raise ConfigError(f"ways of adaptation are never mixed in one table, and these are ({listed}); evaluate apart")
    return next((mode for mode in ADAPTATIONS if mode in modes), "none")


def for_task(method: Method, config: DatasetConfig, task: str, as_paper: bool = False) -> Method:
    """Return a method with what the data set's configuration says of training, and the paper of the task.

    `as_paper`: with what holds for the paper's own people alone, too.
    """
    if isinstance(method, BrainTokenMethod | Baseline | EEGNetMethod):
        paper = config.tasks[task].paper
        return replace(method, schedule=config.training, paper=paper if as_paper else paper.for_others)
    return method
