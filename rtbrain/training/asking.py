"""What a model says about trials: all their contexts in a few batches, no more tokens at once than memory takes."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from rtbrain.messages import FloatArray, IntArray
from rtbrain.training.batches import TokenSequence, collate, contexts

_ASKED_TOKENS = 60_000
"""Tokens in a batch."""


def answers(
    model: nn.Module, sequences: Sequence[TokenSequence], context_s: float, seconds: float | None = None
) -> tuple[FloatArray, IntArray]:
    """Return the logits (n, classes) of all contexts of all trials, and which trial each is of."""
    crops, rows = [], []
    for row, sequence in enumerate(sequences):
        own = contexts(sequence, context_s, seconds)
        crops += own
        rows += [row] * len(own)
    order = sorted(range(len(crops)), key=lambda i: len(crops[i]))
    found: dict[int, FloatArray] = {}
    device = next(model.parameters()).device
    model.eval()
    while order:
        taken = [order.pop()]  # the longest first: memory that is enough for it is enough for all
        while order and (len(taken) + 1) * len(crops[taken[0]]) <= _ASKED_TOKENS:
            taken.append(order.pop())
        batch = collate([crops[i] for i in taken], taken).to(device)
        with torch.no_grad():
            logits = model(batch.ids, batch.attributes).double().cpu().numpy()
        found |= dict(zip(taken, logits, strict=True))
    return np.stack([found[i] for i in range(len(crops))]), np.array(rows)
