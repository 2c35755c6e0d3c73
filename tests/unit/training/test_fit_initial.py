"""Where training starts: heads look at neighbours, CLS at everybody, and nothing else of the model changes."""

from typing import Any

import pytest
import torch

from rtbrain.training.initial import look_at_neighbours
from rtbrain.training.model import Block, BrainToken
from rtbrain.training.model_settings import preset


def made(name: str, seed: int = 0, **changes: Any) -> BrainToken:
    torch.manual_seed(seed)
    model = BrainToken(preset(name, (4,), 2, **changes)).eval()
    look_at_neighbours(model)
    return model


def looks(model: BrainToken, head: int, n: int = 40) -> torch.Tensor:
    """Return (n, n) how much each of n random tokens of one block attends to each other one."""
    block = model.blocks[0]
    assert isinstance(block, Block)
    ids, attributes = torch.randint(1, 5, (1, n)), torch.randn(1, n, len(model.settings.attributes))
    tokens = model.embedding(ids, attributes if model.settings.attributes else None, torch.arange(101, 101 + n)[None])
    z, k = block.norm_interaction(tokens)[0], model.settings.head_width
    own = slice(head * k, head * k + k)
    query, key = block.interaction.query(z)[:, own], block.interaction.key(z)[:, own]
    weights: torch.Tensor = (query @ key.T * k**-0.5).softmax(-1)
    return weights


@pytest.mark.parametrize(("name", "least"), [("paper-text", 0.85), ("paper-table", 0.85), ("rtbrain", 0.5)])
def test_the_first_heads_look_at_the_token_before_and_the_one_after(name: str, least: float) -> None:
    model = made(name)
    with torch.no_grad():
        before, after = looks(model, 0), looks(model, 1)
    assert before.diagonal(-1).mean() > least
    assert after.diagonal(1).mean() > least
    # Nobody is preferred because of its state: the neighbour is the most looked at mostly.
    assert (before[1:].argmax(1) == torch.arange(39)).float().mean() > 0.7


@pytest.mark.parametrize("name", ["paper-text", "rtbrain"])
def test_cls_sees_all_tokens_alike_through_these_heads(name: str) -> None:
    model = made(name)
    seen: list[torch.Tensor] = []
    ids = torch.randint(1, 5, (2, 480))  # whole blocks
    with torch.no_grad():
        model.features(ids, torch.zeros(2, 480, 3) if model.settings.attributes else None, seen)
    assert (seen[0][:, :2] * 481).max() < 1.5
    assert (seen[0][:, :2] * 481).min() > 0.6


def test_what_has_no_use_for_neighbours_is_left_alone() -> None:
    for changes in ({"layers": 1}, {"transitions": False}, {"heads": 1}):
        torch.manual_seed(3)
        plain = BrainToken(preset("rtbrain", (4,), 2, **changes))  # type: ignore[arg-type]
        same = made("rtbrain", 3, **changes)
        assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), same.parameters(), strict=True))


def test_padding_stays_without_content() -> None:
    assert not made("rtbrain").embedding.state.weight[0].any()
