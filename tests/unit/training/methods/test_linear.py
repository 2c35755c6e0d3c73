"""Logistic regression: it learns, it chooses its strength on other people, and it leans to no class."""

import numpy as np
import pytest

from rtbrain.messages import FloatArray
from rtbrain.training.methods import Example
from rtbrain.training.methods.linear import STRENGTHS, USUAL, Linear, choose_strength, fit_model
from rtbrain.training.methods.plain import Majority

from .examples import example


def given(rows: FloatArray, labels: list[int], people: list[str] | None = None) -> list[Example]:
    people = people or [f"p{i}" for i in range(len(labels))]
    return [
        example(f"t{i}", label, person, nuisance=tuple(row))
        for i, (row, label, person) in enumerate(zip(rows, labels, people, strict=True))
    ]


def shown(each: Example, seconds: float | None) -> FloatArray:
    return np.array(each.nuisance) if seconds is None else np.array(each.nuisance) * 0


def clouds(rng: np.random.Generator, n: int, n_classes: int = 2, distance: float = 4.0) -> tuple[FloatArray, list[int]]:
    labels = [i % n_classes for i in range(n)]
    centres = np.eye(n_classes, 6)
    return rng.normal(size=(n, 6)) + distance * centres[labels], labels


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_told_apart(rng: np.random.Generator, n_classes: int) -> None:
    train, test = clouds(rng, 90, n_classes), clouds(rng, 60, n_classes)
    fitted = Linear("x", shown).fit(given(*train)[:70], given(*train)[70:], 0)
    told = fitted.probabilities(given(*test))
    assert told.shape == (60, n_classes)
    assert told.sum(axis=1) == pytest.approx(1)
    assert (told.argmax(axis=1) == test[1]).mean() > 0.95
    assert set(fitted.fitted_on) == {"scaling", "C", "model"}
    assert all(sorted(names) == sorted(f"t{i}" for i in range(90)) for names in fitted.fitted_on.values())
    assert fitted.facts["C"] in STRENGTHS


def test_missing_values_and_constant_columns_do_no_harm(rng: np.random.Generator) -> None:
    x, labels = clouds(rng, 60)
    x = np.column_stack([x, np.full(60, 3.0), np.full(60, np.nan)])
    x[rng.uniform(size=x.shape) < 0.1] = np.nan
    model = fit_model(x, np.array(labels), 2, 0.1)
    y, truth = clouds(rng, 60)
    y = np.column_stack([y, np.full(60, 1e6), np.full(60, 1e6)])
    assert (model.probabilities(y).argmax(axis=1) == truth).mean() > 0.9
    assert np.isfinite(model.probabilities(np.full((1, 8), np.nan))).all()


def test_scaling_rests_on_the_rows_fitted(rng: np.random.Generator) -> None:
    x, labels = clouds(rng, 40)
    model = fit_model(x, np.array(labels), 2, 0.1)
    alone = model.probabilities(x[:1])
    assert model.probabilities(np.concatenate([x[:1], 1000 + x]))[:1] == pytest.approx(alone)


def test_strength_is_chosen_on_other_people(rng: np.random.Generator) -> None:
    """Six trials of each person look alike, but the class is not in them: trusting them helps only with leaks."""
    people = [f"p{i % 16}" for i in range(96)]
    labels = np.arange(96) % 2
    fingerprint = rng.normal(size=(16, 30))[np.arange(96) % 16] + 0.01 * rng.normal(size=(96, 30))
    assert choose_strength(fingerprint, labels, people, 2, 0) <= 0.001
    as_if_strangers = [f"s{i}" for i in range(96)]
    assert choose_strength(fingerprint, labels, as_if_strangers, 2, 0) >= 1


def test_a_clear_class_is_trusted_and_few_people_give_the_usual(rng: np.random.Generator) -> None:
    x, labels = clouds(rng, 80)
    people = [f"p{i}" for i in range(80)]
    assert choose_strength(x, np.array(labels), people, 2, 0) >= 0.1
    assert choose_strength(x[:3], np.array([0, 0, 1]), people[:3], 2, 0) == USUAL


def test_nothing_to_tell_leans_to_no_class(rng: np.random.Generator) -> None:
    """A fold without one healthy person must not call that person ill for want of others."""
    x = rng.normal(size=(25, 10))
    told = fit_model(x, np.array([0] * 12 + [1] * 13), 2, STRENGTHS[0]).probabilities(rng.normal(size=(500, 10)))
    assert told.mean(axis=0) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_a_class_that_is_not_there_gets_nothing(rng: np.random.Generator) -> None:
    x, labels = clouds(rng, 30)
    told = fit_model(x, np.array(labels), 3, 0.1).probabilities(x)
    assert (told[:, 2] == 0).all()
    assert (fit_model(x, np.zeros(30, int), 2, 0.1).probabilities(x) == [1, 0]).all()


def test_each_length_has_a_model_of_its_own(rng: np.random.Generator) -> None:
    x, labels = clouds(rng, 40)
    fitted = Linear("x", shown).fit(given(x, labels), [], 0)
    assert fitted.probabilities(given(x, labels), 10.0) == pytest.approx(np.full((40, 2), 0.5))
    assert (fitted.probabilities(given(x, labels)).argmax(axis=1) == labels).mean() > 0.9


def test_majority_counts_those_it_learns_from() -> None:
    fitted = Majority().fit(given(np.zeros((3, 1)), [0, 1, 1]), given(np.zeros((1, 1)), [1]), 0)
    assert fitted.probabilities(given(np.zeros((2, 1)), [0, 0]), 10.0).tolist() == [[0.25, 0.75]] * 2
