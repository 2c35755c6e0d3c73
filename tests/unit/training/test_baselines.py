"""The token baselines: masks, shapes and that they learn (their counts are in test_model_complexity)."""

import pytest
import torch
from torch import nn
from torch.nn.utils import rnn

from rtbrain.errors import ConfigError
from rtbrain.tokens.inputs import PADDING
from rtbrain.training.baselines import BASELINES, LSTM, WIDTH, Transformer, baseline
from rtbrain.training.model import positions
from tests.unit.training.model_cases import loss_after_training

torch.set_num_threads(1)
STATES = (4, 2)


def sequences(lengths: list[int], pad_to: int) -> torch.Tensor:
    ids = torch.zeros(len(lengths), pad_to, dtype=torch.int64)
    for row, n in enumerate(lengths):
        ids[row, :n] = torch.randint(1, 7, (n,), generator=torch.Generator().manual_seed(row))
    return ids


@pytest.mark.parametrize("name", BASELINES)
def test_the_answer_depends_neither_on_padding_nor_on_the_batch(name: str) -> None:
    torch.manual_seed(0)
    model = baseline(name, STATES, 3).eval()
    lengths = [40, 1, 17]
    together = model(sequences(lengths, 55))
    assert together.shape == (3, 3)
    for row, n in enumerate(lengths):
        alone = model(sequences(lengths, 55)[row : row + 1, :n])
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", BASELINES)
def test_padding_alone_gives_no_nan(name: str) -> None:
    torch.manual_seed(0)
    model = baseline(name, STATES, 2)
    logits = model(sequences([30, 0], 30))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", BASELINES)
def test_the_order_of_tokens_counts(name: str) -> None:
    torch.manual_seed(0)
    model = baseline(name, STATES, 2).eval()
    ids = sequences([30], 30)
    assert (model(ids) - model(ids.sort().values)).abs().max() > 1e-4


def test_the_transformer_is_torchs_encoder_over_a_padded_batch() -> None:
    torch.manual_seed(0)
    model, ids = baseline("transformer", STATES, 2).eval(), sequences([30, 4, 17], 30)
    assert isinstance(model, Transformer)
    there = ids != PADDING
    padded = model.encoder(model.embedding(ids) + positions(31, WIDTH)[1:], src_key_padding_mask=~there)
    mean = (padded * there[..., None]).sum(1) / there.sum(1, keepdim=True)
    torch.testing.assert_close(model.features(ids), mean, rtol=0, atol=1e-5)


def test_the_lstm_is_torchs_bidirectional_one_over_packed_sequences() -> None:
    torch.manual_seed(0)
    model, lengths = baseline("lstm", STATES, 2), [30, 4, 17]
    assert isinstance(model, LSTM)
    ids = sequences(lengths, 30)
    torchs = nn.LSTM(WIDTH, WIDTH, num_layers=2, bidirectional=True, batch_first=True)
    for layer, both in enumerate(zip(model.forwards, model.backwards, strict=True)):
        for one, ending in zip(both, ("", "_reverse"), strict=True):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(torchs, f"{kind}_l{layer}{ending}").data.copy_(getattr(one, f"{kind}_l0"))
    packed = rnn.pack_padded_sequence(
        model.embedding(ids), torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    outputs, _ = rnn.pad_packed_sequence(torchs(packed)[0], batch_first=True)
    means = torch.stack([own[:n].mean(0) for own, n in zip(outputs, lengths, strict=True)])
    torch.testing.assert_close(model.features(ids), means)


def test_only_dann_has_a_domain_head() -> None:
    heads = {name: baseline(name, STATES, 2).domain for name in BASELINES}
    assert [name for name, head in heads.items() if head is not None] == ["dann"]
    model = baseline("dann", STATES, 2)
    assert model.domain is not None
    assert model.domain(model.features(sequences([9, 5], 9)), 0.5).shape == (2, 1)


def test_torch_is_left_as_it_was() -> None:
    assert torch.backends.mha.get_fastpath_enabled()
    with torch.no_grad():
        baseline("transformer", STATES, 2).eval()(sequences([9, 5], 9))
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("name", ["cnn", "lstm", "transformer"])
def test_a_baseline_can_be_trained(name: str) -> None:
    torch.manual_seed(0)
    model = baseline(name, (2,), 2)
    assert loss_after_training(model, 2e-3, steps=25) < 0.5


def test_unknown_baselines_are_refused() -> None:
    with pytest.raises(ConfigError, match="choose from cnn, lstm, transformer, dann, deepcoral"):
        baseline("resnet", STATES, 2)
