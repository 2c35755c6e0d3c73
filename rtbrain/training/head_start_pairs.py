"""Counters of pairs: units of a model's first feed-forward network that start out firing for one state after another.

The first part of the head start (`rtbrain.training.head_start`), where a model has units enough for its states.
"""

import torch
from torch import nn

from rtbrain.tokens.inputs import PADDING
from rtbrain.training.batches import Batch
from rtbrain.training.head_start import first_block, inputs_of, least_squares
from rtbrain.training.model import BrainToken, blocked

MARGIN = 0.3
"""A unit is to fire for its pair alone: what it reads is 1 there and 0 where one of the two is another state."""
TRUST = 0.2
"""How much more a pair counts whose tokens fit their templates by one standard deviation better."""
QUIET = 0.3
"""What is left of the attributes' random weights where pairs are counted."""


def quiet_attributes(model: BrainToken) -> None:
    """Let attributes start out with little weight: people differ in them by more than classes do in pairs of states."""
    embedding = model.embedding
    with torch.no_grad():
        for own in (*embedding.terms, *([] if embedding.attributes is None else [embedding.attributes])):
            assert isinstance(own, nn.Embedding | nn.Linear)
            own.weight.mul_(QUIET)


def detect_pairs(model: BrainToken, batch: Batch) -> int:
    """Let units of the first feed-forward network start out as counters of one state after another; return how many.

    Which state a token has, and which the one before it, is read by least squares from what the network is given.
    """
    settings, block = model.settings, first_block(model)
    n_states = settings.vocabulary.size - 2
    pairs = [(i, j) for i in range(n_states) for j in range(n_states) if i != j]
    index, visible = blocked(batch.ids, settings)
    ids = torch.where(visible, batch.ids.gather(1, index.flatten(1)).view(index.shape), PADDING)
    (given,) = inputs_of(model, block.expand, [batch])
    there = visible[..., 1:] & (ids[..., :-1] != PADDING)
    own, before = (nn.functional.one_hot(x[there] - 1, n_states).double() for x in (ids[..., 1:], ids[..., :-1]))
    wanted = [own, before]
    if batch.attributes is not None and "corr" in settings.attributes:
        column = settings.attributes.index("corr")
        fits = batch.attributes[torch.arange(len(ids))[:, None, None], index][..., column].double()
        fits = (fits - fits[visible].mean()) / fits[visible].std().clamp(min=1e-6)
        wanted.append(torch.stack([fits[..., 1:][there], fits[..., :-1][there]], 1))
    read, bias = least_squares(given[..., 1:, :][there].double(), torch.cat(wanted, 1))
    rows, shifts = [], []
    for i, j in pairs:
        columns = [j, n_states + i]
        row, shift = read[:, columns].sum(1), bias[columns].sum() - 1 - MARGIN
        if len(wanted) > 2:
            row, shift = row + TRUST * read[:, -2:].sum(1), shift + TRUST * bias[-2:].sum()
        rows.append(row)
        shifts.append(shift)
    with torch.no_grad():
        # A normed token is 0 on the average over its dimensions; the norm's bias makes that a constant to read.
        weight = block.expand.weight
        weight[: len(pairs)] = torch.stack(rows).float()
        weight -= weight.mean(1, keepdim=True)
        weight[: len(pairs)] += torch.stack(shifts).float()[:, None] / settings.width
        block.norm_feed_forward.bias.add_(1.0)
    return len(pairs)
