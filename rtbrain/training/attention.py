"""Where the CLS token of a model looks during a trial."""

import numpy as np
import torch
from torch import Tensor

from rtbrain.training.batches import TokenSequence, collate, contexts
from rtbrain.training.exhibit import Attention
from rtbrain.training.model import BrainToken, blocked

BINS = 120
"""At the most, of whole seconds."""


def attention_over(model: BrainToken, sequence: TokenSequence, context_s: float, said: str) -> Attention | None:
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
    bins = np.minimum(((crop.end_s - start) / width).astype(np.int64), int((end - start) / width))
    n = int(bins.max()) + 1
    layers = []
    for each in weights:
        of_tokens = each[0].mean(0)[1:].double().numpy()
        layers.append(np.bincount(bins[index[visible]], weights=of_tokens[visible], minlength=n))
    middles = start + (np.arange(n) + 0.5) * width
    return Attention(sequence.name, said, middles, np.array(layers))
