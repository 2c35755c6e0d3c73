"""The Brain-Token model: its savings against the long way, masks, ablations and the domain head."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rtbrain.errors import ConfigError
from rtbrain.training.model import BrainToken, DomainHead, blocked, positions
from rtbrain.training.model_settings import PRESETS, preset
from rtbrain.training.plain_model import plain_logits
from tests.unit.training.model_cases import batch, loss_after_training, random_model, tokens_for

LENGTHS = [1, 2, 15, 16, 17, 59, 60, 61, 300, 1100]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("n", LENGTHS)
def test_savings_change_nothing(name: str, n: int) -> None:
    model = random_model(name, scale=2.0).double()
    ids, attributes = (torch.from_numpy(each) for each in tokens_for(model, n))
    attributes = attributes.double()
    torch.testing.assert_close(
        model(ids[None], attributes[None])[0], plain_logits(model, ids, attributes), rtol=0, atol=1e-11
    )


@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(1, 3)),
    window=st.integers(1, 9),
    n=st.integers(1, 40),
    by_segments=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_savings_change_nothing_for_any_shape(
    shape: tuple[int, int, int, int], window: int, n: int, by_segments: bool
) -> None:
    width, heads, head_width, layers = shape
    blocks = {"window": None, "segments": window} if by_segments else {"window": window}
    model = random_model(
        "rtbrain", width=4 * width, heads=heads, head_width=head_width, layers=layers, hidden=8, scale=2.0, **blocks
    ).double()
    ids, attributes = (torch.from_numpy(each) for each in tokens_for(model, n))
    attributes = attributes.double()
    torch.testing.assert_close(
        model(ids[None], attributes[None])[0], plain_logits(model, ids, attributes), rtol=0, atol=1e-11
    )


def test_savings_leave_the_gradient_as_it_is() -> None:
    model = random_model("paper-text", window=10).double()
    ids, _ = (torch.from_numpy(each) for each in tokens_for(model, 47))
    gradients = []
    for logits in (model(ids[None])[0], plain_logits(model, ids)):
        model.zero_grad()
        logits[0].backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 15
    for ours, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_the_answer_depends_neither_on_padding_nor_on_the_batch(name: str) -> None:
    model = random_model(name, scale=2.0)
    lengths = [130, 1, 61, 16]
    together = model(*batch(model, lengths, pad_to=250))
    for row, n in enumerate(lengths):
        alone = model(*batch(model, [n], pad_to=n, seed=row))
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("ablation", [{}, {"aggregation": False}, {"transitions": False}])
def test_padding_alone_gives_no_nan_and_no_gradient_of_nan(name: str, ablation: dict[str, bool]) -> None:
    model = random_model(name, **ablation).train()
    ids, attributes = batch(model, [130, 0, 7], pad_to=200)
    logits = model(ids, attributes)
    logits.square().sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", PRESETS)
def test_mixed_precision_gives_no_nan_and_much_the_same_answer(name: str) -> None:
    model = random_model(name).train()
    ids, attributes = batch(model, [130, 0, 7], pad_to=200)
    with torch.no_grad():
        whole = model(ids, attributes).softmax(-1)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # on a GPU, training does this by itself
        logits = model(ids, attributes)
    torch.testing.assert_close(logits.float().softmax(-1), whole, rtol=0, atol=0.05)
    assert logits.dtype == torch.bfloat16
    logits.float().square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def textbook_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None
) -> torch.Tensor:
    """Softmax as it is written, which is NaN over nothing; torch's own hides that in some versions only."""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    return scores.softmax(-1) @ value


def test_blocks_of_padding_need_no_forgiving_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model("paper-text")
    inputs = batch(model, [130, 0, 7], pad_to=200)
    expected = model(*inputs)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", textbook_attention)
    logits = model(*inputs)
    logits.square().sum().backward()
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_padding_between_tokens_is_refused() -> None:
    with pytest.raises(ConfigError, match="between tokens"):
        random_model("paper-text")(torch.tensor([[1, 2, 0, 3]]))


def test_segments_follow_each_sequence_and_windows_do_not() -> None:
    ids = torch.tensor([[1] * 10, [1] * 4 + [0] * 6])
    index, visible = blocked(ids, preset("paper-table", [4], 2, segments=2))
    assert [row[seen].tolist() for row, seen in zip(index[0], visible[0], strict=True)] == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
    ]
    assert [row[seen].tolist() for row, seen in zip(index[1], visible[1], strict=True)] == [[0, 1], [2, 3]]
    index, visible = blocked(ids, preset("paper-text", [4], 2, window=6))
    assert [row[seen].tolist() for row, seen in zip(index[1], visible[1], strict=True)] == [[0, 1, 2, 3], []]


def test_positions_are_sines_and_cosines_of_the_absolute_place() -> None:
    table = positions(50_001, 8).double()
    t = torch.tensor([0.0, 1.0, 50_000.0], dtype=torch.float64)
    for i in range(4):
        angle = t * 10_000 ** (-2 * i / 8)
        torch.testing.assert_close(table[[0, 1, 50_000], 2 * i], angle.sin(), rtol=0, atol=1e-7)
        torch.testing.assert_close(table[[0, 1, 50_000], 2 * i + 1], angle.cos(), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("ablation", "order_matters"),
    [
        ({}, True),
        ({"aggregation": False}, True),
        ({"transitions": False}, False),
        ({"transitions": False, "aggregation": False}, False),
    ],
)
def test_without_transitions_and_positions_the_order_is_lost(ablation: dict[str, bool], order_matters: bool) -> None:
    model = random_model("paper-text", window=5, position_scale=0.0, scale=2.0, **ablation)
    ids, _ = tokens_for(model, 40)
    ordered = model(torch.from_numpy(ids)[None])
    sorted_ = model(torch.from_numpy(ids).sort().values[None])
    assert bool((ordered - sorted_).abs().max() > 1e-3) == order_matters


def test_every_attribute_and_every_state_term_counts() -> None:
    model = random_model("rtbrain")
    ids, attributes = batch(model, [400], pad_to=400)
    attributes.requires_grad_()
    model(ids, attributes)[0, 0].backward()
    assert attributes.grad is not None
    assert (attributes.grad.abs().amax((0, 1)) > 1e-7).all()
    for term in model.embedding.terms:
        gradient = next(term.parameters()).grad
        assert gradient is not None
        assert (gradient[1:-1].abs().amax(1) > 0).all()
        assert (gradient[0] == 0).all()


def test_attributes_are_standardised_by_the_training_set() -> None:
    model = random_model("rtbrain")
    ids, attributes = batch(model, [30], pad_to=30)
    before = model(ids, attributes)
    model.embedding.standardise(3 * model.embedding.centre + 1, 3 * model.embedding.spread)
    torch.testing.assert_close(model(ids, 3 * attributes + 1), before, rtol=0, atol=1e-5)
    with pytest.raises(ConfigError, match="spreads above 0"):
        model.embedding.standardise(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ConfigError, match="attributes of each token; give them"):
        model(ids)


def test_weights_of_cls_cover_all_tokens_and_no_padding() -> None:
    model = random_model("paper-text", window=8)
    ids, attributes = batch(model, [20, 5], pad_to=20)
    weights: list[torch.Tensor] = []
    model.features(ids, attributes, weights)
    assert [each.shape for each in weights] == [(2, 3, 1 + 24)] * 2
    for each in weights:
        torch.testing.assert_close(each.sum(-1), torch.ones(2, 3))
        assert (each[0, :, : 1 + 20] > 0).all()
        assert (each[0, :, 1 + 20 :] == 0).all()
        assert (each[1, :, 1 + 5 :] == 0).all()


def test_the_domain_head_learns_and_the_features_unlearn() -> None:
    torch.manual_seed(0)
    head = DomainHead(4, 1)
    features = torch.randn(6, 4, requires_grad=True)
    (plain,) = torch.autograd.grad(head.layers(features).sum(), features)
    scores = head(features, 0.3)
    torch.testing.assert_close(scores, head.layers(features))
    (reversed_,) = torch.autograd.grad(scores.sum(), features, retain_graph=True)
    torch.testing.assert_close(reversed_, -0.3 * plain)
    own = next(head.parameters())
    (through_head,) = torch.autograd.grad(scores.sum(), own)
    (direct,) = torch.autograd.grad(head.layers(features).sum(), own)
    torch.testing.assert_close(through_head, direct)


def test_a_model_can_be_trained() -> None:
    torch.manual_seed(0)
    model = BrainToken(preset("paper-text", [2], 2, window=10, width=16, heads=2, head_width=8, hidden=32))
    assert loss_after_training(model, 3e-3, steps=40) < 0.35


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": None}, "either a window"),
        ({"segments": 10}, "either a window"),
        ({"window": 0}, "either a window"),
        ({"attributes": ("colour",)}, "choose from"),
        ({"state_terms": ("corr",)}, "state_terms from the attributes"),
    ],
)
def test_settings_that_mean_nothing_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        preset("paper-text", [4], 2, **changes)


def test_unknown_presets_and_empty_vocabularies_are_refused() -> None:
    with pytest.raises(ConfigError, match="choose from paper-text, paper-table, rtbrain"):
        preset("gpt", [4], 2)
    with pytest.raises(ConfigError, match="needs states and two classes"):
        preset("rtbrain", [], 2)
    with pytest.raises(ConfigError, match="needs states and two classes"):
        preset("rtbrain", [4], 1)
