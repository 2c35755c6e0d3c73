import numpy as np
import pytest
from scipy.stats import binomtest

from rtbrain.messages import FloatArray
from rtbrain.training.nuisance.score import (
    MARGIN,
    Cases,
    accuracy_interval,
    as_cases,
    balanced_interval,
    classify,
    score_groups,
    shuffled,
    wilson,
)


def cases(labels: list[int], people: list[int], n_folds: int = 6, stimuli: list[int] | None = None) -> Cases:
    """Folds by person, stratified by dealing out the persons of each class in turn."""
    order = sorted(set(people), key=lambda person: (labels[people.index(person)], person))
    fold = {person: i % n_folds for i, person in enumerate(order)}
    sides = []
    for k in range(n_folds):
        test = [i for i, person in enumerate(people) if fold[person] == k]
        sides.append(([i for i in range(len(people)) if i not in test], test))
    return as_cases(labels, [f"{p:03d}" for p in people], sides, None if stimuli is None else [str(s) for s in stimuli])


def between(n: int = 30) -> Cases:
    """One trial a person, two classes."""
    return cases([i % 2 for i in range(n)], list(range(n)))


def within(n: int = 24) -> Cases:
    """Both classes of each person."""
    return cases([0, 1] * n, [i // 2 for i in range(2 * n)])


def clean_groups(rng: np.random.Generator, n: int) -> dict[str, FloatArray]:
    return {f"group {k}": rng.standard_normal((n, 1 + k % 4)) for k in range(8)}


@pytest.mark.parametrize("made", [between(), within()])
def test_a_planted_group_is_found_and_the_clean_ones_are_not(made: Cases, rng: np.random.Generator) -> None:
    n = len(made.labels)
    groups = clean_groups(rng, n)
    groups["planted"] = 2.5 * made.labels[:, None] + rng.standard_normal((n, 3))
    scores, noticeable = score_groups(groups, made)
    assert {score.group for score in scores if score.finding == "alarm"} == {"planted"}
    planted = scores[-1]
    assert planted.p == pytest.approx(1 / 1001)
    assert planted.balanced_interval[0] > 0.5 + MARGIN
    assert 0.6 < noticeable < planted.balanced


@pytest.mark.slow
@pytest.mark.parametrize("made", [between(), within()])
def test_eight_clean_groups_together_are_noticed_in_one_set_of_twenty(made: Cases) -> None:
    noticed = alarmed = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        scores, _ = score_groups(clean_groups(rng, len(made.labels)), made, 100, seed)
        noticed += any(score.finding != "none" for score in scores)
        alarmed += any(score.finding == "alarm" for score in scores)
    assert noticed <= 11  # 5 are expected, more than 11 in 0.4 % of seeds
    assert alarmed <= 2


def test_many_trials_of_few_people_are_no_evidence(rng: np.random.Generator) -> None:
    # Each of 8 people has 40 trials of one class and a level of its own: 320 trials, 8 independent facts.
    people = [i // 40 for i in range(320)]
    made = cases([person % 2 for person in people], people, n_folds=4)
    alarms = 0
    for seed in range(20):
        level = np.random.default_rng(seed).standard_normal(8)[people][:, None]
        scores, _ = score_groups({"gain": level + 0.1 * rng.standard_normal((320, 1))}, made, 200)
        alarms += scores[0].finding != "none"
    assert alarms <= 4


def test_the_result_is_the_same_every_time(rng: np.random.Generator) -> None:
    groups = clean_groups(rng, 30)
    assert score_groups(groups, between()) == score_groups(groups, between())


def test_nothing_that_varies_gives_no_score() -> None:
    scores, noticeable = score_groups({"layout": np.empty((30, 0))}, between())
    assert scores == []
    assert noticeable == 1.0


def test_three_classes_and_missing_values(rng: np.random.Generator) -> None:
    labels = [i % 3 for i in range(45)]
    made = cases(labels, list(range(45)))
    x = 4 * np.eye(3)[labels] + rng.standard_normal((45, 3))
    x[rng.random((45, 3)) < 0.05] = np.nan
    scores, _ = score_groups({"planted": np.column_stack([x, np.full(45, np.nan)])}, made, 200)
    assert scores[0].balanced > 0.8
    assert scores[0].finding == "alarm"


def test_a_class_without_trials_does_not_count() -> None:
    made = cases([2 * (i % 2) for i in range(20)], list(range(20)))
    assert made.n_classes == 2


def test_classifier_does_not_care_how_frequent_classes_are(rng: np.random.Generator) -> None:
    labels = np.array([0] * 90 + [1] * 10)
    x = rng.standard_normal((100, 1)) + 3.0 * labels[:, None]
    told = classify(x, np.array([[0.0], [0.9], [2.1], [3.0]]), labels[None], 2)
    assert told.tolist() == [[0, 0, 1, 1]]


def test_shuffles_keep_what_hangs_together() -> None:
    rng = np.random.default_rng(0)
    several = cases([0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3], 2)
    for row in shuffled(several, 50, rng):
        assert (row[::2] == row[1::2]).all()
        assert row.sum() == 4
    for row in shuffled(within(), 50, rng):
        assert (row[::2] + row[1::2] == 1).all()
    stimuli = [0, 1, 2, 3] * 3
    shown = cases([0, 0, 1, 1] * 3, [i // 4 for i in range(12)], 3, stimuli)
    rows = shuffled(shown, 50, rng)
    for row in rows:
        assert (row.reshape(3, 4) == row[:4]).all()
    assert len(np.unique(rows, axis=0)) > 3


def test_one_mixed_person_does_not_hide_a_confound_between_people(rng: np.random.Generator) -> None:
    labels = [i % 2 for i in range(30)] + [0, 1]
    made = cases(labels, [*range(30), 30, 30])
    scores, _ = score_groups({"planted": 3.0 * made.labels[:, None] + rng.standard_normal((32, 1))}, made, 300)
    assert scores[0].finding == "alarm"


def test_intervals_of_independent_answers_are_wilsons() -> None:
    right = np.array([True] * 27 + [False] * 3)
    expected = binomtest(27, 30).proportion_ci(method="wilson")
    assert wilson(0.9, 30, 1.959964) == pytest.approx((expected.low, expected.high), abs=1e-6)
    low, high = accuracy_interval(right, np.arange(30))  # by Student's t, with n - 1 in the variance
    assert expected.low - 0.02 < low < expected.low
    assert expected.high < high < expected.high + 0.02


def test_intervals_widen_when_answers_hang_together_and_stay_open_at_the_ends() -> None:
    right = np.repeat([True, True, True, False], 10)
    together = accuracy_interval(right, np.repeat(np.arange(4), 10))
    apart = accuracy_interval(right, np.arange(40))
    assert together[1] - together[0] > 2 * (apart[1] - apart[0])
    low, high = balanced_interval(np.ones(40, bool), np.arange(40) % 2, np.repeat(np.arange(8), 5))
    assert 0.55 < low < 0.7  # as 8 of 8
    assert high == 1.0
    assert accuracy_interval(np.ones(40, bool), np.zeros(40, np.int64)) == (0, 1)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        skill = rng.beta(14, 6, 12)  # people differ; 0.7 on average
        right = rng.random((12, 10)) < skill[:, None]
        low, high = accuracy_interval(right.ravel(), np.repeat(np.arange(12), 10))
        held += low <= 0.7 <= high
    assert 0.92 < held / 400 < 0.98
