"""Where the CLS token of a model looks during a trial."""

import numpy as np
import torch
from torch import Tensor

from rtbrain.messages import FloatArray
from rtbrain.training.batches import TokenSequence, collate, contexts
from rtbrain.training.methods.base import Attention
from rtbrain.training.model import BrainToken, blocked

BINS = 120
"""At the most, of whole seconds."""


def attention_over(model: BrainToken, context_s: float, sequence: TokenSequence) -> Attention | None:
    """Return the attention of CLS over one context of a trial, second by second; None for a model without it."""
    if not model.settings.aggregation:
        return None
    crop = contexts(sequence, context_s, most=1)[0]
    batch = collate([crop], [0])
    weights: list[Tensor] = []
    model.eval()
    with torch.no_grad():
        model.features(batch.ids, batch.attributes, weights)
    index, visible = (each[0].flatten().numpy() for each in blocked(batch.ids, model.settings))
    start, end = float(crop.start_s.min()), float(crop.end_s[-1])
    width = max(1.0, np.ceil((end - start) / BINS))
    n = max(1, int((end - start) / width))  # the rest of a bin goes to the last whole one
    bins = np.minimum(((crop.end_s - start) / width).astype(np.int64), n - 1)
    layers: list[FloatArray] = []
    for each in weights:
        of_tokens = each[0].mean(0)[1:].double().numpy()
        shares = np.bincount(bins[index[visible]], weights=of_tokens[visible], minlength=n)
        layers.append(shares.astype(np.float64))
    middles = start + (np.arange(n) + 0.5) * width
    return Attention(sequence.name, _plain(middles), tuple(map(_plain, layers)))


def _plain(values: FloatArray) -> tuple[float, ...]:
    return tuple(np.round(values, 6).tolist())
