"""Losses against their formulas."""

import math

import pytest
import torch
from torch.nn import functional

from rtbrain.errors import ConfigError
from rtbrain.training.losses import Adversary, coral_loss, cross_entropy, focal_loss, reversal_strength


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(20, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def labels() -> torch.Tensor:
    return torch.arange(20) % 3


def test_focal_loss_is_its_formula(logits: torch.Tensor, labels: torch.Tensor) -> None:
    alpha = torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64)
    p = logits.softmax(-1)
    terms = [-alpha[y] * (1 - p[i, y]) ** 2 * torch.log(p[i, y]) for i, y in enumerate(labels.tolist())]
    torch.testing.assert_close(focal_loss(logits, labels, alpha, gamma=2.0), torch.stack(terms).mean())


def test_focal_loss_without_focus_is_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> None:
    expected = functional.cross_entropy(logits, labels)
    torch.testing.assert_close(focal_loss(logits, labels, gamma=0.0), expected)
    torch.testing.assert_close(cross_entropy(logits, labels), expected)


def test_focal_loss_stays_finite_when_the_model_is_sure() -> None:
    logits = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
    loss = focal_loss(logits, torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == pytest.approx(200.0)
    assert torch.isfinite(logits.grad).all()  # type: ignore[arg-type]


def test_class_weights_and_smoothing_reach_the_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> None:
    weights = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    log_p = logits.log_softmax(-1)
    each = -(weights[labels] * log_p[torch.arange(20), labels])
    torch.testing.assert_close(cross_entropy(logits, labels, weights), each.sum() / weights[labels].sum())
    smooth = 0.9 * -log_p[torch.arange(20), labels] - 0.1 * log_p.mean(-1)
    torch.testing.assert_close(cross_entropy(logits, labels, smoothing=0.1), smooth.mean())


def test_alpha_has_one_weight_per_class(logits: torch.Tensor, labels: torch.Tensor) -> None:
    with pytest.raises(ConfigError, match="2 weights for 3 classes"):
        focal_loss(logits, labels, torch.ones(2))


def test_reversal_grows_from_nothing_to_one() -> None:
    assert reversal_strength(0.0) == 0.0
    assert reversal_strength(0.5) == pytest.approx(2 / (1 + math.exp(-5)) - 1)
    assert reversal_strength(1.0) == pytest.approx(1.0, abs=1e-4)
    assert reversal_strength(1.0, steepness=1.0) == pytest.approx(0.462, abs=1e-3)
    with pytest.raises(ConfigError, match=r"progress is -0\.1"):
        reversal_strength(-0.1)


def test_the_inductive_adversary_tells_training_subjects_apart() -> None:
    adversary = Adversary("inductive", n_subjects=4)
    assert adversary.domains == 4
    scores, subjects = torch.randn(9, 4), torch.arange(9) % 4
    torch.testing.assert_close(adversary.loss(scores, subjects), functional.cross_entropy(scores, subjects))


def test_the_transductive_adversary_weighs_both_sides_alike() -> None:
    adversary = Adversary("transductive")
    assert adversary.domains == 1
    scores = torch.tensor([[1.0], [2.0], [3.0], [-1.0]])
    side = torch.tensor([0, 0, 0, 1])
    source = -torch.log(1 - torch.sigmoid(scores[:3, 0])).mean()
    target = -torch.log(torch.sigmoid(scores[3, 0]))
    torch.testing.assert_close(adversary.loss(scores, side), 0.5 * (source + target))
    for one_sided in ([0, 0, 0, 0], [1, 1, 1, 1]):
        with pytest.raises(ConfigError, match="both sides"):
            adversary.loss(scores, torch.tensor(one_sided))


def test_no_adversary_has_no_head_and_no_loss() -> None:
    assert Adversary().domains == 0
    with pytest.raises(ConfigError, match="no adversary"):
        Adversary().loss(torch.zeros(2, 1), torch.zeros(2))


@pytest.mark.parametrize(("mode", "n"), [("inductive", 0), ("inductive", 1), ("none", 5), ("transductive", 5)])
def test_modes_are_never_mixed(mode: str, n: int) -> None:
    with pytest.raises(ConfigError, match="adversary"):
        Adversary(mode, n)  # type: ignore[arg-type]


def test_unknown_modes_and_wrong_heads_are_refused() -> None:
    with pytest.raises(ConfigError, match="no domain adversary 'both'"):
        Adversary("both")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="domain head with 3 outputs"):
        Adversary("inductive", 3).loss(torch.zeros(5, 1), torch.zeros(5, dtype=torch.int64))


def test_coral_compares_covariances_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(12, 5, generator=generator, dtype=torch.float64)
    target = torch.randn(30, 5, generator=generator, dtype=torch.float64)
    expected = (torch.cov(source.T) - torch.cov(target.T)).square().sum() / (4 * 25)
    torch.testing.assert_close(coral_loss(source, target), expected)
    torch.testing.assert_close(coral_loss(source, source + 7), torch.zeros((), dtype=torch.float64))
    with pytest.raises(ConfigError, match="no covariance"):
        coral_loss(source[:1], target)
