"""Parameters, size and operations of each model, counted as the paper's complexity table does.

Two operations per multiplication in matrix products; everything else is left out. The paper's row for Brain-Token
counts all tokens of all blocks; `savings` counts what `model.py` really computes.
"""

from dataclasses import dataclass
from typing import Final

from torch import nn

from rtbrain.pipeline import Recipe
from rtbrain.training.baselines import BASELINES, WIDTH, baseline
from rtbrain.training.methods import METHODS, with_bands
from rtbrain.training.model import BrainToken
from rtbrain.training.model_settings import ModelSettings, preset
from rtbrain.training.plain_model import block_width

PAPER: Final = {
    "cnn": (86.98, 0.33, 2.58),
    "lstm": (166.53, 0.64, 4.92),
    "transformer": (100.48, 0.38, 118.15),
    "dann": (109.12, 0.42, 118.15),
    "deepcoral": (100.48, 0.38, 118.15),
    "paper-table": (206.40, 0.79, 13.61),
}
"""The paper's figures: thousands of parameters, megabytes, and 10^9 operations."""

T_PAPER: Final = 15_000
"""Tokens in the sequence that the paper counts for."""
NOTE: Final = (
    "Operations are two per multiplication of matrix products and convolutions, as in the paper; filters, templates "
    "and the sums that linear methods read are left out. Sizes are of single precision, in units of 2^20 bytes."
)
SAVED: Final = "what is really computed: the last block leaves its tokens alone, and CLS needs no keys and values"
STATES: Final = 4
"""Of the one band that the paper's table counts for."""
CHANNELS: Final = 63
"""Of NeuroLong, for methods that read channels."""


@dataclass(frozen=True)
class Complexity:
    """One row of the table."""

    name: str
    parameters: int
    flops: int
    savings: bool = False
    """Whether the operations are those with the savings."""
    about: str = ""
    """What it is counted for, where that is not the paper's sequence of one band."""

    @property
    def size_mb(self) -> float:
        """Return the size of the parameters in single precision, in units of 2^20 bytes."""
        return 4 * self.parameters / 2**20


def n_parameters(model: nn.Module) -> int:
    """Return the number of trained parameters."""
    return sum(each.numel() for each in model.parameters() if each.requires_grad)


def brain_token_flops(settings: ModelSettings, n: int, savings: bool = True) -> int:
    """Return the operations of one pass over n tokens."""
    inner = settings.heads * settings.head_width
    d = settings.width
    w = block_width(settings, n)
    if savings:
        w = min(w, n)
        rows = -(-n // w) * w  # blocks are filled up
        pairs = rows * w
    else:
        rows = n
        pairs = n // w * w * w + (n % w) ** 2
    feed_forward = 2 * d * settings.hidden
    projections = 4 * d * inner
    token_block = rows * (feed_forward + projections * settings.transitions) + 2 * pairs * inner * settings.transitions
    if not settings.aggregation:
        cls_block, token_blocks = 0, settings.layers
    elif savings:  # query, fold, scores, mean, values, output, feed-forward
        cls_block = projections + 2 * settings.heads * d * rows + feed_forward
        token_blocks = settings.layers - 1
    else:
        cls_block = projections + 2 * (n + 1) * inner + feed_forward
        token_blocks = settings.layers
    multiplications = settings.layers * cls_block + token_blocks * token_block
    multiplications += rows * len(settings.attributes) * d + d * settings.n_classes
    return 2 * multiplications


def baseline_flops(name: str, n: int, n_classes: int = 2) -> int:
    """Return the operations of one pass of a baseline over n tokens."""
    if name == "cnn":
        multiplications = n * 3 * (WIDTH * WIDTH + WIDTH * 2 * WIDTH + 4 * WIDTH * WIDTH) + 2 * WIDTH * n_classes
    elif name == "lstm":
        gates = 2 * 4 * WIDTH  # of both directions
        multiplications = n * gates * ((WIDTH + WIDTH) + (2 * WIDTH + WIDTH)) + 2 * WIDTH * n_classes
    else:
        layer = n * (4 * WIDTH * WIDTH + 2 * WIDTH * 256) + 2 * n * n * WIDTH
        multiplications = 2 * layer + WIDTH * n_classes
    return 2 * multiplications


def complexity_table(n: int = T_PAPER) -> list[Complexity]:
    """Return the paper's table, four states and two classes; below it the savings, and ours as it is evaluated."""
    states, n_classes = (STATES,), 2
    rows = [
        Complexity(name, n_parameters(baseline(name, states, n_classes)), baseline_flops(name, n, n_classes))
        for name in BASELINES
    ]
    for name, savings in (("paper-table", False), ("paper-text", False), ("paper-table", True), ("paper-text", True)):
        rows.append(_row(name, preset(name, states, n_classes), n, savings))
    (need,), bands = METHODS["rtbrain"].needs, with_bands(Recipe()).bands
    ours = preset("rtbrain", (need.n_states or STATES,) * len(bands), n_classes)
    return rows + [_row("rtbrain", ours, n, savings) for savings in (False, True)]


def _row(name: str, settings: ModelSettings, n: int, savings: bool) -> Complexity:
    about = ""
    if len(settings.states) > 1:
        several = "which make as many tokens in a fraction of the time that one band takes"
        about = f"{len(settings.states)} bands of {settings.states[0]} states, {several}"
    flops = brain_token_flops(settings, n, savings)
    return Complexity(name, n_parameters(BrainToken(settings)), flops, savings, about)
