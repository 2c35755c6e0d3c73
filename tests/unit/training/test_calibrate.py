"""Temperature: found again where it is known, bounded where people are few."""

import numpy as np
import pytest

from rtbrain.errors import ConfigError
from rtbrain.training.calibrate import COLDEST, even_weights, fit_temperature, log_loss


def answers(rng: np.random.Generator, n: int, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Return logits that are `temperature` times too large, and labels drawn from the true probabilities."""
    true = rng.normal(0, 1.5, (n, 3))
    shares = np.exp(true) / np.exp(true).sum(1, keepdims=True)
    labels = (rng.random(n)[:, None] > shares.cumsum(1)).sum(1)
    return true * temperature, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_true_temperature_is_found(rng: np.random.Generator, temperature: float) -> None:
    logits, labels = answers(rng, 20_000, temperature)
    weights = np.full(len(labels), 1 / len(labels))
    found = fit_temperature(logits, labels, weights, n_people=1000)
    assert found == pytest.approx(temperature, rel=0.05)
    assert log_loss(logits, labels, weights, found) <= log_loss(logits, labels, weights) + 1e-9


def test_perfect_answers_of_a_few_people_do_not_ask_for_certainty() -> None:
    logits, labels = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([0, 1])
    few, some, many = (fit_temperature(logits, labels, np.full(2, 0.5), n) for n in (2, 20, 1_000_000))
    assert 0.75 < few < 1.0
    assert COLDEST < some < few
    assert many == pytest.approx(COLDEST, rel=0.01)


def test_answers_of_a_few_people_that_were_too_sure_are_made_less_so() -> None:
    logits, labels = np.array([[3.0, -3.0]] * 4), np.array([0, 0, 1, 0])
    found = fit_temperature(logits, labels, np.full(4, 0.25), n_people=2)
    assert found == pytest.approx(6 / np.log(3), rel=0.01)  # three of four are right


def test_classes_weigh_the_same_and_people_within_them() -> None:
    weights = even_weights(["a", "b", "a", "c"], np.array([0, 0, 0, 1]))
    np.testing.assert_allclose(weights, [1 / 8, 1 / 4, 1 / 8, 1 / 2])
    # One class's many wrong answers count as much as the other's single right one.
    logits, labels = np.array([[1.0, 0.0]] * 4), np.array([1, 0, 1, 1])
    found = log_loss(logits, labels, even_weights(list("abcd"), labels))
    assert found == pytest.approx((np.log1p(np.e) + np.log1p(np.exp(-1.0))) / 2)


@pytest.mark.parametrize("logits", [np.empty((0, 2)), np.array([[np.nan, 0.0]])])
def test_what_cannot_be_calibrated_is_refused(logits: np.ndarray) -> None:
    labels = np.zeros(len(logits), int)
    with pytest.raises(ConfigError, match="all of them finite"):
        fit_temperature(logits, labels, np.ones(len(logits)), 2)
