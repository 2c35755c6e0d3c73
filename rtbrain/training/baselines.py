"""The paper's other methods on the same tokens: CNN, LSTM, Transformer, DANN and DeepCORAL.

Structures are those whose parameters and operations match the paper's complexity table. They read ids (B, T), padded
by 0 at the end, and no attributes. As with `BrainToken`, the answer does not depend on the padding.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import torch
from torch import Tensor, nn

from rtbrain.errors import ConfigError
from rtbrain.tokens.inputs import PADDING, Vocabulary
from rtbrain.training.model import DomainHead, positions

WIDTH: Final = 64


class TokenBaseline(nn.Module):
    """Embedding, a body that pools the sequence into features, and a linear classifier."""

    def __init__(self, states: tuple[int, ...], n_classes: int, n_features: int, domains: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(Vocabulary(states).size, WIDTH, padding_idx=PADDING)
        self.classifier = nn.Linear(n_features, n_classes)
        self.domain = DomainHead(n_features, domains) if domains else None

    def features(self, ids: Tensor, attributes: Tensor | None = None) -> Tensor:
        """Return what classifier and domain head read; attributes are accepted and not used."""
        # A sequence without any token counts as one padding token, so that nothing divides by zero.
        there = ids != PADDING
        visible = there | (~there.any(1, keepdim=True) & (torch.arange(ids.shape[1], device=ids.device) == 0))
        return self.pooled(self.embedding(ids), visible)

    def pooled(self, h: Tensor, visible: Tensor) -> Tensor:
        """Return features from embedded tokens (B, T, 64), of which some are visible (B, T)."""
        raise NotImplementedError

    def forward(self, ids: Tensor, attributes: Tensor | None = None) -> Tensor:
        """Return the logits (B, classes)."""
        logits: Tensor = self.classifier(self.features(ids, attributes))
        return logits


def _mean(h: Tensor, visible: Tensor) -> Tensor:
    return (h * visible[..., None]).sum(1) / visible.sum(1, keepdim=True)


class CNN(TokenBaseline):
    """Three convolutions over three tokens each, averaged over time."""

    def __init__(self, states: tuple[int, ...], n_classes: int) -> None:
        super().__init__(states, n_classes, 2 * WIDTH)
        widths = (WIDTH, WIDTH, 2 * WIDTH, 2 * WIDTH)
        self.convolutions = nn.ModuleList(nn.Conv1d(a, b, kernel_size=3, padding=1) for a, b in pairwise(widths))

    def pooled(self, h: Tensor, visible: Tensor) -> Tensor:
        """Convolve; beyond the last token every layer sees zeros."""
        h = h.transpose(1, 2)
        for convolution in self.convolutions:
            h = torch.relu(convolution(h)) * visible[:, None]
        return _mean(h.transpose(1, 2), visible)


class LSTM(TokenBaseline):
    """Two bidirectional layers, averaged over time.

    Each direction is a network of its own over padded sequences, the backward one over sequences that are turned round
    within their length: what comes out is that of torch's bidirectional layers over packed sequences, whose gradients
    take thirty times as long where lengths differ.
    """

    def __init__(self, states: tuple[int, ...], n_classes: int) -> None:
        super().__init__(states, n_classes, 2 * WIDTH)
        layers = [nn.LSTM(width, WIDTH, batch_first=True) for width in (WIDTH, WIDTH, 2 * WIDTH, 2 * WIDTH)]
        self.forwards, self.backwards = nn.ModuleList(layers[::2]), nn.ModuleList(layers[1::2])

    def pooled(self, h: Tensor, visible: Tensor) -> Tensor:
        """Run both directions over each sequence; what follows its end reaches nothing that is read."""
        at = torch.arange(h.shape[1], device=h.device)
        lengths = visible.sum(1, keepdim=True)
        turned = torch.where(at < lengths, lengths - 1 - at, at)[..., None]  # (B, T, 1); turned twice is as before
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            behind = backwards(h.gather(1, turned.expand_as(h)))[0]
            h = torch.cat([forwards(h)[0], behind.gather(1, turned.expand_as(behind))], 2)
        return _mean(h, visible)


class Transformer(TokenBaseline):
    """Two encoder layers in which every token sees all others, averaged over time.

    Memory and time grow with the square of the length: train it on crops.
    """

    def __init__(self, states: tuple[int, ...], n_classes: int, dropout: float = 0.1, domains: int = 0) -> None:
        super().__init__(states, n_classes, WIDTH, domains)
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=256, dropout=dropout, batch_first=True)
        # Dropout of attention weights would make torch keep all T x T of them, of every head: several times the cost.
        layer.self_attn.dropout = 0.0
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)

    def pooled(self, h: Tensor, visible: Tensor) -> Tensor:
        """Encode with sinusoidal positions, counted from 1 as in BrainToken.

        One sequence at a time: padded to the longest of a batch, crops of training cost nearly twice as much.
        """
        h = h + positions(h.shape[1] + 1, WIDTH)[1:].to(h)
        # The fast path of torch keeps all T x T weights of every head: gigabytes for a long recording.
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            encoded = [self.encoder(own[None, :n]).mean(1) for own, n in zip(h, visible.sum(1).tolist(), strict=True)]
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
        return torch.cat(encoded)


def dann(states: tuple[int, ...], n_classes: int, domains: int = 1) -> Transformer:
    """Return the Transformer with a domain head behind a gradient reversal."""
    return Transformer(states, n_classes, domains=domains)


BASELINES: Final[dict[str, Callable[[tuple[int, ...], int], TokenBaseline]]] = {
    "cnn": CNN,
    "lstm": LSTM,
    "transformer": Transformer,
    "dann": dann,
    "deepcoral": Transformer,  # differs in its loss alone: losses.coral_loss between source and target
}


def baseline(name: str, states: tuple[int, ...], n_classes: int) -> TokenBaseline:
    """Return an untrained baseline by name."""
    if name not in BASELINES:
        raise ConfigError(f"there is no baseline {name!r}; choose from {', '.join(BASELINES)}")
    return BASELINES[name](states, n_classes)
