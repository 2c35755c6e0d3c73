"""Where training starts: with heads that look at the token before, and at the one after.

In which order states follow each other is what State Transition Modeling is there for. From random weights a model
needs many thousands of steps to find out that neighbours matter, and a few dozen people do not give it that many.
Sinusoidal positions make a neighbour a rotation away, so the first layer's heads can start with that rotation; the
shape of the model stays as it is, and training may unlearn it.
"""

import torch
from torch import Tensor, nn

from rtbrain.training.model import Block, BrainToken, angular_steps
from rtbrain.training.model_settings import ModelSettings

PAIRS = 8
"""Sines and cosines that tell neighbours apart: those of the highest frequencies."""
SHARPNESS = 15.0
"""Score of the neighbour meant, over that of tokens far away, before the softmax; of those beside it by 3 to 4."""
VALUE_GAIN = 2.0
_NEAR = 200


def positional(settings: ModelSettings) -> int:
    """Return how many of the first dimensions are kept for positions, free of content."""
    if not settings.sees_neighbours:
        return 0
    return 2 * min(PAIRS, settings.head_width // 2, settings.width // 4)


def look_at_neighbours(model: BrainToken) -> None:
    """Let heads of the first layer start out looking at the previous and the next token.

    The dimensions that carry the chosen frequencies are kept free of content, for tokens and for CLS alike: CLS
    shares the projections, and starts out seeing all tokens alike.
    """
    settings, embedding = model.settings, model.embedding
    if not settings.sees_neighbours:
        return
    n = positional(settings)
    offsets = (-1, 1) if settings.heads > 2 else (-1,)
    first = model.blocks[0]
    assert isinstance(first, Block)
    interaction, k = first.interaction, settings.head_width
    frequency = angular_steps(settings.width)[0][:n:2].float()
    with torch.no_grad():
        maps = [embedding.state.weight, *(term.weight for term in embedding.terms if isinstance(term, nn.Embedding))]
        for weight in maps if embedding.attributes is None else [*maps, embedding.attributes.weight.T]:
            weight[:, :n] = 0.0
            # Of mean 0 and one size, or else the layer norm would shift and stretch positions by their content.
            content = weight[:, n:] - weight[:, n:].mean(1, keepdim=True)
            size = content.square().mean(1, keepdim=True).sqrt()
            weight[:, n:] = content / size.clamp(min=1e-6) * size.mean()
        # What the layer norm makes of positions, with content of variance 1 in the other dimensions.
        scale, share = settings.position_scale, (settings.width - n) / settings.width
        shrunk = (share + 0.5 * scale**2) ** -0.5
        first.norm_interaction.bias[:n] = shrunk * embedding.encodings(_NEAR).mean()
        for _ in range(5):  # CLS has no position after the layer norm, whose mean and spread hang on it in turn
            cls, shift = embedding.cls(), first.norm_interaction.bias[:n]
            level = cls.mean() - shift * cls.std(unbiased=False)
            embedding.state.weight[embedding.cls_id, :n] = level - embedding.encodings(1)[0, :n]
        # Higher frequencies weigh more: they tell the nearest apart.
        power = (SHARPNESS * k**0.5 * frequency / frequency.sum()).sqrt() / (scale * shrunk)
        for head, offset in enumerate(offsets):
            rows = slice(head * k, head * k + k)
            for weight, turn in ((interaction.query.weight, offset), (interaction.key.weight, 0)):
                weight[rows] = 0.0
                weight[head * k : head * k + n, :n] = _rotation(frequency * turn, power)
            interaction.value.weight[rows] *= VALUE_GAIN
            interaction.value.weight[rows, :n] = 0.0
            interaction.output.weight[:, rows] *= VALUE_GAIN
            interaction.output.weight[:n, rows] = 0.0


def _rotation(angle: Tensor, size: Tensor) -> Tensor:
    """Return the matrix that turns pairs of (sin, cos) by these angles and stretches them, (2 pairs, 2 pairs)."""
    sin, cos = size * torch.sin(angle), size * torch.cos(angle)
    blocks = torch.stack([torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)], -2)
    turned: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return turned
