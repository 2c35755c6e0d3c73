"""Figures of merit: right by hand and by other implementations, and honest about how many people there are."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray
from rtbrain.training.metrics import Answered, area_under_curve, calibration_error, compare, confusion, numbered, score


def answered(probabilities: FloatArray, labels: list[int], people: list[str] | None = None) -> Answered:
    """Answers (trials, classes) or (seeds, trials, classes); each trial of its own person by default."""
    numbers, names = numbered(people or [f"p{i:03d}" for i in range(len(labels))])
    trials = tuple(f"t{i}" for i in range(len(labels)))
    return Answered(trials, np.array(labels), numbers, names, probabilities.reshape(-1, len(labels), 2))


def told(right: FloatArray, labels: list[int], confidence: float = 0.8) -> FloatArray:
    """Return answers of so much confidence that are right where `right` is."""
    said = np.where(right.astype(bool), labels, 1 - np.array(labels))
    return np.where(said[:, None] == np.arange(2), confidence, 1 - confidence)


def test_figures_by_hand() -> None:
    labels = [0, 0, 0, 1]
    found = score(answered(told(np.array([1, 1, 0, 1]), labels), labels, ["a", "a", "b", "b"]))
    assert found.accuracy == 0.75
    assert found.balanced == pytest.approx((2 / 3 + 1) / 2)
    assert found.auc == pytest.approx(5 / 6)
    assert found.confusion == ((2, 1), (0, 1))
    assert found.calibration_error == pytest.approx(0.05)
    assert found.by_person == {"a": 1.0, "b": 0.5}


def test_seeds_are_averaged_and_ties_count_in_part() -> None:
    labels = [0, 1]
    both = np.stack([told(np.array([1, 1]), labels), told(np.array([1, 0]), labels)])
    assert score(answered(both, labels)).accuracy == 0.75
    assert score(answered(both, labels)).confusion == ((1, 0), (0.5, 0.5))
    assert score(answered(np.full((2, 2), 0.5), labels)).accuracy == 0.5
    assert score(answered(np.full((2, 2), 0.5), labels)).auc == 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_area_is_that_of_scikit_learn(rng: np.random.Generator, n_classes: int) -> None:
    labels = np.arange(60) % n_classes
    shares = softmax(rng.normal(size=(60, n_classes)).round(1) + np.eye(n_classes)[labels], axis=1).round(6)
    theirs = roc_auc_score(labels, shares[:, 1] if n_classes == 2 else shares, multi_class="ovr")
    assert area_under_curve(shares, labels) == pytest.approx(theirs)


def test_calibration_error_is_small_where_confidence_is_true(rng: np.random.Generator) -> None:
    first = rng.uniform(size=(1, 20_000))
    labels = (rng.uniform(size=20_000) > first[0]).astype(int)
    honest = np.stack([first, 1 - first], axis=2)
    assert calibration_error(honest, labels) < 0.02
    boastful = np.where(honest > 0.5, 0.99, 0.01)
    assert calibration_error(boastful, labels) == pytest.approx(0.24, abs=0.02)


def test_confusion_counts_true_in_rows() -> None:
    assert confusion(told(np.array([0, 1, 1]), [0, 1, 1])[None], np.array([0, 1, 1])).tolist() == [[0, 1], [0, 2]]


def test_more_trials_of_the_same_people_are_no_more_evidence() -> None:
    right = np.array([1, 1, 1, 0, 1, 0, 1, 1, 0, 1])
    labels = [0, 1] * 5
    once = score(answered(told(right, labels), labels))
    people = [f"p{i}" for i in range(10)] * 20
    often = score(answered(np.tile(told(right, labels), (20, 1)), labels * 20, people))
    for interval in ("accuracy_interval", "balanced_interval"):
        assert getattr(often, interval) == pytest.approx(getattr(once, interval), abs=0.03)
    alone = score(answered(np.tile(told(right, labels), (20, 1)), labels * 20))
    assert np.ptp(alone.accuracy_interval) < 0.3 * np.ptp(often.accuracy_interval)


def test_a_difference_that_is_the_same_for_all_people_has_an_interval() -> None:
    labels = [0, 1] * 10
    one = answered(told(np.arange(20) % 3 > 0, labels), labels)
    gap = compare(one, one)
    assert (gap.accuracy, gap.p) == (0.0, 1.0)
    # Twenty people: a twentieth of all people and more for whom they differ would mostly have shown.
    assert gap.interval == pytest.approx((-0.139, 0.139), abs=1e-3)
    better, worse = answered(told(np.ones(20), labels), labels), answered(told(np.zeros(20), labels), labels)
    assert compare(better, worse).interval == pytest.approx((0.722, 1.0), abs=1e-3)


def test_pairs_tell_more_than_two_intervals() -> None:
    """Ten of forty people gain and nobody loses: the intervals of the two accuracies overlap, the pairs do not lie."""
    labels = [0, 1] * 20
    worse = answered(told(np.arange(40) >= 20, labels), labels)
    better = answered(told(np.arange(40) >= 10, labels), labels)
    assert score(worse).accuracy_interval[1] > score(better).accuracy_interval[0]
    gap = compare(better, worse)
    assert gap.accuracy == 0.25
    assert 0.05 < gap.interval[0] < 0.25 < gap.interval[1] < 0.45
    assert gap.p < 0.01
    assert compare(worse, better).accuracy == -0.25


def test_intervals_hold_the_truth_as_often_as_they_say(rng: np.random.Generator) -> None:
    """Twelve people, five trials each, methods that share the people's difficulty."""
    labels, people = [0, 1] * 30, [f"p{i % 12}" for i in range(60)]
    held = 0
    for _ in range(400):
        difficulty = rng.uniform(0.3, 1.0, 12)[np.arange(60) % 12]
        one = answered(told(rng.uniform(size=60) < difficulty, labels), labels, people)
        other = answered(told(rng.uniform(size=60) < difficulty - 0.1, labels), labels, people)
        low, high = compare(one, other).interval
        held += low <= 0.1 <= high
    assert 0.91 <= held / 400 <= 0.985


def test_answers_about_other_trials_are_not_compared() -> None:
    one, other = answered(np.full((2, 2), 0.5), [0, 1]), answered(np.full((3, 2), 0.5), [0, 1, 1])
    with pytest.raises(ConfigError, match="same trials and seeds"):
        compare(one, other)
