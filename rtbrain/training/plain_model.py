"""The Brain-Token model the long way: every projection and every token of every block is computed.

What the paper's complexity table counts, what the savings of `model.py` are tested against, and what the benchmark
takes as its first anchor. It reads the weights of a `BrainToken` and answers for one sequence at a time.
"""

import torch
from torch import Tensor
from torch.nn import functional

from rtbrain.training.model import Block, BrainToken, Interaction
from rtbrain.training.model_settings import ModelSettings


def plain_logits(model: BrainToken, ids: Tensor, attributes: Tensor | None = None) -> Tensor:
    """Return the logits (classes,) for one sequence of ids (T,) without padding and attributes (T, a)."""
    position = torch.arange(1, len(ids) + 1, device=ids.device)
    tokens = model.embedding(ids, attributes, position)
    h = torch.cat([model.embedding.cls()[None], tokens])  # (1 + T, d)
    for block in model.blocks:
        assert isinstance(block, Block)
        h = h + _attend(block.interaction, block.norm_interaction(h), block_width(model.settings, len(ids)))
        h = h + block.contract(functional.relu(block.expand(block.norm_feed_forward(h))))
    logits: Tensor = model.classifier(model.norm(h[0]))
    return logits


def block_width(settings: ModelSettings, n: int) -> int:
    """Return the tokens in a block of State Transition Modeling over n tokens."""
    if settings.window is not None:
        return settings.window
    assert settings.segments is not None
    return max(1, -(-n // settings.segments))


def _attend(interaction: Interaction, z: Tensor, w: int) -> Tensor:
    """Return the update of CLS, from all rows of z (1 + T, d), and of tokens, from those of their block."""
    projected = [project(z) for project in (interaction.query, interaction.key, interaction.value)]
    full = 1 + (len(z) - 1) // w * w
    parts = [_heads(interaction, projected[0][None, :1], *(each[None] for each in projected[1:]))]
    if full > 1:  # all full blocks at once
        parts.append(_heads(interaction, *(each[1:full].view(-1, w, each.shape[1]) for each in projected)))
    if full < len(z):
        parts.append(_heads(interaction, *(each[None, full:] for each in projected)))
    update: Tensor = interaction.output(torch.cat(parts))
    return update


def _heads(interaction: Interaction, *projected: Tensor) -> Tensor:
    """Return what queries (p, n, h k) read from keys and values (p, m, h k) of their own block, as (p n, h k)."""
    shape = (interaction.heads, interaction.head_width)
    query, key, value = (each.view(*each.shape[:2], *shape).transpose(1, 2) for each in projected)
    return functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2).flatten(0, 1)
