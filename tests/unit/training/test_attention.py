"""Where CLS looks: all of its attention but its own share is shown, each second that of the tokens that ended in it."""

import numpy as np
import pytest
import torch

from rtbrain.tokens.inputs import Inputs
from rtbrain.training.attention import attention_over
from rtbrain.training.batches import TokenSequence
from tests.unit.training.model_cases import random_model


def sequence(n: int, seconds: float, n_attributes: int) -> TokenSequence:
    rng = np.random.default_rng(1)
    end = np.linspace(seconds / n, seconds, n)
    attributes = rng.standard_normal((n, n_attributes)).astype(np.float32)
    piece = Inputs(rng.integers(1, 5, n), attributes, end - seconds / n, end)
    return TokenSequence("a trial", "a", 0, (piece,))


@pytest.mark.parametrize("name", ["rtbrain", "paper-text", "paper-table"])
def test_shares_are_those_of_the_model(name: str) -> None:
    model = random_model(name)
    trial = sequence(205, 20.0, len(model.settings.attributes))
    found = attention_over(model, 100.0, trial)
    assert found is not None
    assert found.trial == "a trial"
    assert found.seconds == tuple(np.arange(20) + 0.5)
    weights: list[torch.Tensor] = []
    (piece,) = trial.pieces
    attributes = torch.from_numpy(piece.attributes)[None] if model.settings.attributes else None
    with torch.no_grad():
        model.features(torch.from_numpy(piece.ids)[None], attributes, weights)
    for own, layer in zip(found.layers, weights, strict=True):
        mean = layer[0].mean(0).double().numpy()
        assert sum(own) == pytest.approx(1 - mean[0], abs=1e-4)
        last = piece.end_s > 19.0
        if model.settings.window is not None:  # tokens stand in their order, padding at the end
            assert own[-1] == pytest.approx(mean[1 : 1 + len(piece)][last].sum(), abs=1e-4)


def test_a_model_without_cls_shows_nothing() -> None:
    assert attention_over(random_model("paper-text", aggregation=False), 100.0, sequence(50, 5.0, 0)) is None
