"""The complexity table of all methods: the paper's, ours, and what a user would pick instead.

Columns of the linear methods are counted by making the features of a trial without tokens.
"""

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from rtbrain.messages import StreamInfo, Tokens
from rtbrain.microstates.stats import statistics
from rtbrain.pipeline import Recipe
from rtbrain.tokenizing import Tokenized
from rtbrain.training.band_powers import Powers
from rtbrain.training.complexity import CHANNELS, STATES, Complexity, complexity_table, n_parameters
from rtbrain.training.conditioned import Conditioned
from rtbrain.training.eegnet import EEGNet
from rtbrain.training.methods import METHODS, NUISANCE, TokenNeed, with_bands
from rtbrain.training.methods.base import Example
from rtbrain.training.methods.eegnet import MOST_WINDOWS, WINDOW
from rtbrain.training.methods.linear import Linear

_RATE_HZ = 250.0


def full_table() -> list[Complexity]:
    """Return the rows of all methods, the paper's first."""
    return [*complexity_table(), eegnet_complexity(), *map(linear_complexity, linear_names())]


def eegnet_complexity() -> Complexity:
    """Return the size of EEGNet, and its operations on as many windows as an answer rests on, by torch's count."""
    model = EEGNet(CHANNELS, WINDOW, 2).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(MOST_WINDOWS, CHANNELS, WINDOW))
    about = f"{MOST_WINDOWS} windows of {WINDOW} samples in {CHANNELS} channels instead of tokens"
    return Complexity("eegnet", n_parameters(model), counter.get_total_flops(), about=about)


def linear_complexity(name: str) -> Complexity:
    """Return the parameters and operations of a linear method with two classes; making the features is left out."""
    method = METHODS[name]
    assert isinstance(method, Linear)
    n = len(method.features(_empty(), None))
    return Complexity(name, n + 1, 2 * n, about=f"{n} columns{_of_channels(name)}")


def _of_channels(name: str) -> str:
    return f" of {CHANNELS} channels" if not METHODS[name].needs else ""


def linear_names() -> list[str]:
    """Return the methods that `linear_complexity` knows: the nuisance is no decoder."""
    return [name for name, method in METHODS.items() if isinstance(method, Linear) and name != NUISANCE]


def _empty() -> Example:
    n_bands = len(with_bands(Recipe()).bands)
    nothing = Powers(squares=np.zeros((1, n_bands, CHANNELS)), samples=np.zeros((1, n_bands, CHANNELS)))
    return Example("none", "nobody", 0, 0.0, tokens=_no_tokens, powers=lambda: nothing, samples=_no_samples)


def _no_samples() -> Conditioned:
    raise AssertionError("a linear method reads no samples")


def _no_tokens(need: TokenNeed) -> Tokenized:
    recipe = with_bands(Recipe()) if need.several_bands else Recipe()
    tokens, n_states = Tokens.concat([]), need.n_states or STATES
    return Tokenized(
        tokens=tokens,
        breaks=(),
        info=StreamInfo(rate_hz=_RATE_HZ, channels=tuple(f"E{i}" for i in range(CHANNELS))),
        continuity={},
        missing_channels=(),
        bad_share={},
        statistics={band.name: statistics(tokens, n_states, _RATE_HZ, i) for i, band in enumerate(recipe.bands)},
    )
