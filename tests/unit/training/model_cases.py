"""Models with seeded random weights, and tokens for them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rtbrain.training.model import BrainToken
from rtbrain.training.model_settings import preset

torch.set_num_threads(1)

STATES = {"paper-text": (4,), "paper-table": (6,), "rtbrain": (5, 3, 4)}


def random_model(name: str, seed: int = 0, scale: float = 1.0, n_classes: int = 3, **changes: Any) -> BrainToken:
    """Return a model in evaluation mode whose matrices are `scale` times as large as at the start of training."""
    torch.manual_seed(seed)
    model = BrainToken(preset(name, STATES[name], n_classes, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(scale)
            else:  # norms and biases, which start at 1 and 0
                parameter.add_(0.1 * torch.randn(parameter.shape))
        n = len(model.settings.attributes)
        if n:
            model.embedding.standardise(torch.linspace(-1, 1, n), torch.linspace(0.5, 2, n))
    return model


def tokens_for(model: BrainToken, n: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return ids (n,) and attributes (n, a), drifting so that early and late tokens differ."""
    rng = np.random.default_rng(seed)
    size = model.settings.vocabulary.size
    ids = np.clip(rng.integers(1, size - 1, n) // (1 + (np.arange(n) > n / 2)), 1, size - 2)
    attributes = rng.standard_normal((n, len(model.settings.attributes))) + np.linspace(0, 1, n)[:, None]
    return ids.astype(np.int64), attributes.astype(np.float32)


def batch(model: BrainToken, lengths: list[int], pad_to: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sequences of these lengths, padded; the attributes of padding are not even finite."""
    ids = torch.zeros(len(lengths), pad_to, dtype=torch.int64)
    attributes = torch.full((len(lengths), pad_to, len(model.settings.attributes)), torch.nan)
    for row, n in enumerate(lengths):
        own_ids, own_attributes = tokens_for(model, n, seed + row)
        ids[row, :n] = torch.from_numpy(own_ids)
        attributes[row, :n] = torch.from_numpy(own_attributes)
    return ids, attributes


def probabilities(model: BrainToken, ids: NDArray[np.int64], attributes: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what the whole model says about a sequence."""
    with torch.no_grad():
        exactness = next(model.parameters()).dtype
        logits = model(torch.from_numpy(ids)[None], torch.from_numpy(attributes).to(exactness)[None])[0]
    out: NDArray[np.float64] = logits.double().softmax(-1).numpy()
    return out


def loss_after_training(model: torch.nn.Module, rate: float, steps: int) -> float:
    """Train a model to tell which of two states comes twice as often, and return its last loss."""
    optimiser = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        labels = torch.randint(0, 2, (32,))
        ids = torch.where(torch.rand(32, 30) < 1 / 3, 2 - labels[:, None], 1 + labels[:, None])
        loss = torch.nn.functional.cross_entropy(model(ids), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.item())
