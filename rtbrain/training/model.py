"""The Brain-Token model: a few tokens around each token, and one CLS token that sees them all.

Letters follow the paper: T tokens of width d, h heads of width k, p blocks of w tokens, K states. Every block of the
model does two things with the same projections: *Latent State Aggregation*, in which CLS attends to all tokens and to
itself, and *State Transition Modeling*, in which tokens attend to the tokens of their own block of w, never to CLS.

Two savings leave the answer as it is. CLS alone is read at the end, so the last block leaves its tokens alone. And CLS
needs no keys and values: its query is folded through the key projection, and the value projection is applied to the
mean of the tokens (`plain_model.py` has the long way, and tests compare the two). `rtbrain.training.export` relies on
tokens never seeing CLS: a full block of w tokens is final.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from rtbrain.errors import ConfigError
from rtbrain.tokens.inputs import ATTRIBUTES, PADDING
from rtbrain.training.model_settings import ModelSettings


def angular_steps(width: int) -> tuple[Tensor, Tensor]:
    """Return frequency and phase of each dimension: PE(t) = sin(t * frequency + phase), even ones sines."""
    pair = torch.arange(width, dtype=torch.float64) // 2
    return 10_000.0 ** (-2 * pair / width), (torch.arange(width, dtype=torch.float64) % 2) * (torch.pi / 2)


def positions(n: int, width: int) -> Tensor:
    """Return the sinusoidal encodings of positions 0 to n - 1 as (n, width)."""
    frequency, phase = angular_steps(width)
    # In double precision: a sine of thousands of radians loses digits in single precision.
    return torch.sin(torch.arange(n, dtype=torch.float64)[:, None] * frequency + phase).float()


class Embedding(nn.Module):
    """Tokens as vectors: the state's own, what its attributes add, and the position's."""

    centre: Tensor
    spread: Tensor
    table: Tensor

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        size, width = settings.vocabulary.size, settings.width
        self.cls_id = size - 1
        self.state = nn.Embedding(size, width, padding_idx=PADDING)
        self.attributes = nn.Linear(len(settings.attributes), width, bias=False) if settings.attributes else None
        self.terms = nn.ModuleList(nn.Embedding(size, width, padding_idx=PADDING) for _ in settings.state_terms)
        self.term_columns = [settings.attributes.index(name) for name in settings.state_terms]
        for term in self.terms:
            assert isinstance(term, nn.Embedding)
            nn.init.normal_(term.weight, std=0.1)
        self.scale = settings.position_scale
        # Set from the training subjects by `standardise`; part of the weights, so that every export has them.
        self.register_buffer("centre", torch.tensor([ATTRIBUTES[name] for name in settings.attributes]))
        self.register_buffer("spread", torch.ones(len(settings.attributes)))
        self.register_buffer("table", positions(1024, width), persistent=False)

    def standardise(self, centre: Tensor, spread: Tensor) -> None:
        """Set what is taken off the attributes, and what they are divided by."""
        if centre.shape != self.centre.shape or spread.shape != self.spread.shape or not bool((spread > 0).all()):
            raise ConfigError(
                f"centre {centre.tolist()} and spread {spread.tolist()} do not fit {len(self.centre)} attributes; "
                "give one of each, spreads above 0"
            )
        self.centre.copy_(centre)
        self.spread.copy_(spread)

    def encodings(self, n: int) -> Tensor:
        """Return the scaled encodings of positions 0 to n - 1."""
        if n > len(self.table):
            self.table = positions(max(n, 2 * len(self.table)), self.table.shape[1]).to(self.table)
        return self.scale * self.table[:n]

    def cls(self) -> Tensor:
        """Return the vector of CLS, at position 0."""
        return self.state.weight[self.cls_id] + self.encodings(1)[0]

    def forward(self, ids: Tensor, attributes: Tensor | None, position: Tensor) -> Tensor:
        """Embed ids of any shape, with attributes of that shape + (a,), at positions counted from 1."""
        h: Tensor = self.state(ids) + self.encodings(int(position.max()) + 1)[position]
        if self.attributes is not None:
            if attributes is None:
                raise ConfigError(f"this model reads {self.attributes.in_features} attributes of each token; give them")
            values = (attributes - self.centre) / self.spread
            h = h + self.attributes(values)
            for term, column in zip(self.terms, self.term_columns, strict=True):
                h = h + term(ids) * values[..., column, None]
        return h


class Interaction(nn.Module):
    """The projections that Latent State Aggregation and State Transition Modeling share."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.heads, self.head_width = settings.heads, settings.head_width
        inner = settings.heads * settings.head_width
        self.query, self.key, self.value = (nn.Linear(settings.width, inner, bias=False) for _ in range(3))
        self.output = nn.Linear(inner, settings.width, bias=False)

    def aggregate(self, cls: Tensor, tokens: Tensor, visible: Tensor | None) -> tuple[Tensor, Tensor]:
        """Let CLS (B, d) attend to itself and to tokens (B, n, d); return its update and the weights (B, h, 1 + n)."""
        per_head = (self.heads, self.head_width, cls.shape[-1])
        query = self.query(cls).unflatten(-1, (self.heads, self.head_width))
        folded = torch.einsum("bhk,hkd->bhd", query, self.key.weight.view(per_head)) * self.head_width**-0.5
        own = (folded * cls[:, None]).sum(-1, keepdim=True)
        scores = folded @ tokens.transpose(1, 2)  # (B, h, n)
        if visible is not None:
            scores = scores.masked_fill(~visible[:, None], -torch.inf)
        weights = torch.cat([own, scores], -1).softmax(-1)
        mean = weights[..., 1:] @ tokens + weights[..., :1] * cls[:, None]  # (B, h, d)
        heads = torch.einsum("bhd,hkd->bhk", mean, self.value.weight.view(per_head))
        return self.output(heads.flatten(1)), weights

    def transitions(self, tokens: Tensor, visible: Tensor | None) -> Tensor:
        """Let tokens (B, p, w, d) attend to the visible ones (B, p, w) of their own block."""
        batch, p, w, _ = tokens.shape
        query, key, value = (
            project(tokens).view(batch * p, w, self.heads, self.head_width).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        mask = None
        if visible is not None:
            # A block of padding sees all of itself: a softmax over nothing would be NaN. Nobody reads the outcome.
            mask = (visible | ~visible.any(-1, keepdim=True)).view(batch * p, 1, 1, w)
        heads = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        update: Tensor = self.output(heads.transpose(1, 2).reshape(batch, p, w, -1))
        return update


class Block(nn.Module):
    """One round of token interaction, and the feed-forward network over CLS and tokens alike."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.norm_interaction = nn.LayerNorm(settings.width)
        self.interaction = Interaction(settings)
        self.norm_feed_forward = nn.LayerNorm(settings.width)
        self.expand = nn.Linear(settings.width, settings.hidden, bias=False)
        self.contract = nn.Linear(settings.hidden, settings.width, bias=False)
        self.dropout = nn.Dropout(settings.dropout)

    def refine(self, h: Tensor, update: Tensor | None) -> Tensor:
        """Add the interaction's update, then the feed-forward network's."""
        if update is not None:
            h = h + self.dropout(update)
        refined: Tensor = h + self.dropout(self.contract(functional.relu(self.expand(self.norm_feed_forward(h)))))
        return refined

    def forward(
        self, cls: Tensor, tokens: Tensor, visible: Tensor | None, last: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return CLS (B, d) and tokens (B, p, w, d) after this block, and the weights of CLS."""
        normed = self.norm_interaction(tokens)
        weights = None
        if self.settings.aggregation:
            flat = None if visible is None else visible.flatten(1)
            update, weights = self.interaction.aggregate(self.norm_interaction(cls), normed.flatten(1, 2), flat)
            cls = self.refine(cls, update)
        if not (last and self.settings.aggregation):  # CLS has read the last block's tokens before they change
            moved = self.interaction.transitions(normed, visible) if self.settings.transitions else None
            tokens = self.refine(tokens, moved)
        return cls, tokens, weights


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradients[0], None


class DomainHead(nn.Module):
    """Tell domains apart from features, whose gradient is reversed: the features learn to tell nothing."""

    def __init__(self, width: int, domains: int) -> None:
        super().__init__()
        hidden = [m for _ in range(2) for m in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, domains))

    def forward(self, features: Tensor, strength: float) -> Tensor:
        """Return the scores (B, domains); `strength` multiplies the reversed gradient."""
        scores: Tensor = self.layers(_Reversal.apply(features, strength))  # type: ignore[no-untyped-call]
        return scores


class BrainToken(nn.Module):
    """Classes from ids (B, T), padded by 0 at the end, and attributes (B, T, a)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.embedding = Embedding(settings)
        self.input_dropout = nn.Dropout(settings.input_dropout)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.width)
        self.classifier = nn.Linear(settings.width, settings.n_classes)
        self.domain = DomainHead(settings.width, settings.domains) if settings.domains else None

    def forward(self, ids: Tensor, attributes: Tensor | None = None) -> Tensor:
        """Return the logits (B, classes)."""
        logits: Tensor = self.classifier(self.features(ids, attributes))
        return logits

    def features(self, ids: Tensor, attributes: Tensor | None = None, weights: list[Tensor] | None = None) -> Tensor:
        """Return what classifier and domain head read, (B, d).

        `weights` collects those of CLS in each layer, (B, h, 1 + p w): for itself, then for the tokens block by block.
        """
        index, visible = blocked(ids, self.settings)
        ids = torch.where(visible, ids.gather(1, index.flatten(1)).view(index.shape), PADDING)
        if attributes is not None:
            rows = torch.arange(len(ids), device=ids.device)[:, None, None]
            attributes = torch.where(visible[..., None], attributes[rows, index], 0.0)
        tokens = self.input_dropout(self.embedding(ids, attributes, index + 1))  # (B, p, w, d)
        cls = self.embedding.cls().expand(len(ids), -1)
        mask = None if bool(visible.all()) else visible
        for i, block in enumerate(self.blocks):
            cls, tokens, seen = block(cls, tokens, mask, last=i == len(self.blocks) - 1)
            if weights is not None and seen is not None:
                weights.append(seen)
        if not self.settings.aggregation:
            count = visible.sum((1, 2)).clamp(min=1)[:, None]
            pooled: Tensor = (self.norm(tokens) * visible[..., None]).sum((1, 2)) / count
            return pooled
        features: Tensor = self.norm(cls)
        return features


def blocked(ids: Tensor, settings: ModelSettings) -> tuple[Tensor, Tensor]:
    """Cut sequences (B, T) into blocks: return the index of each token and which ones there are, both (B, p, w).

    Segments are as long as each sequence without its padding asks for, so the answer never depends on the batch.
    """
    there = ids != PADDING
    if bool((there[:, 1:] & ~there[:, :-1]).any()):
        raise ConfigError("padding (id 0) stands between tokens; put it at the end of each sequence")
    n = there.sum(1).clamp(min=1)  # a sequence of padding alone is one token that nobody sees
    if settings.window is not None:
        widths = torch.full_like(n, min(settings.window, int(n.max())))
    else:
        widths = -(-n // (settings.segments or 1))
    w, p = int(widths.max()), int((-(-n // widths)).max())
    within = torch.arange(w, device=ids.device)
    index = torch.arange(p, device=ids.device)[:, None] * widths[:, None, None] + within
    visible = (index < there.sum(1)[:, None, None]) & (within < widths[:, None, None])
    return index.clamp(max=ids.shape[1] - 1), visible
