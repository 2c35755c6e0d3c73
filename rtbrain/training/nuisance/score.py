"""How well nuisance alone tells the class: a small classifier on the task's own folds, against chance.

The classifier is a regularised linear discriminant with equal priors. It reaches what logistic regression reaches on
these few features, and a thousand label permutations cost one matrix product each instead of a fit each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import t as student_t

from rtbrain.messages import BoolArray, FloatArray, IntArray
from rtbrain.training.scaling import centre_and_spread, scaled

SIGNIFICANT = 0.05
"""Chance that any group of a clean set is noticed at all; the groups are counted as one family."""
MARGIN = 0.15
"""An alarm needs the interval's lower end of balanced accuracy so far above chance."""
PERMUTATIONS = 1000
_RIDGE = 0.1  # of the variance of a scaled feature
_LARGEST = 4.0  # standard deviations
_BATCH = 4_000_000  # numbers held at a time


@dataclass(frozen=True)
class Score:
    """What one group of features tells about the class of unseen people."""

    group: str
    accuracy: float
    accuracy_interval: tuple[float, float]
    """95 %, with people as the evidence."""
    balanced: float
    balanced_interval: tuple[float, float]
    p: float
    """Chance of so good a balanced accuracy in any group, were labels and features unrelated."""
    finding: Literal["none", "notice", "alarm"]


@dataclass(frozen=True)
class Cases:
    """The trials to score, as numbers; arrays are (trials,)."""

    labels: IntArray
    people: IntArray
    """Which trials are of one person, or of people that count as one."""
    tests: tuple[IntArray, ...]
    """The trials that each fold tests; all others train, validation included."""
    trains: tuple[IntArray, ...]
    stimuli: IntArray | None = None
    """What was shown, where the folds leave stimuli out."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1


def score_groups(
    groups: Mapping[str, FloatArray], cases: Cases, n_permutations: int = PERMUTATIONS, seed: int = 0
) -> tuple[list[Score], float]:
    """Score each group of features (trials, columns); NaN is a missing value.

    Labels are shuffled between people, or within them where a person has several classes, all groups at once; a
    group's p is the share of shuffles in which the best of all groups does as well as it did. So eight groups do
    not raise eight times as many false alarms. Also returned is the balanced accuracy that would just be noticed.
    """
    labels = shuffled(cases, n_permutations, np.random.default_rng(seed))  # (1 + n, trials), the true ones first
    right = {name: _right(x, labels, cases) for name, x in groups.items() if x.shape[1]}
    if not right:
        return [], 1.0
    balanced = {name: _balanced(hits, labels, cases.n_classes) for name, hits in right.items()}  # (1 + n,) each
    best = np.max(list(balanced.values()), axis=0)[1:]
    found = []
    for name, hits in right.items():
        true = float(balanced[name][0])
        p = float((1 + np.sum(best >= true - 1e-9)) / (1 + n_permutations))
        interval = balanced_interval(hits[0], cases.labels, cases.people)
        surely = interval[0] > 1 / cases.n_classes + MARGIN
        finding: Literal["none", "notice", "alarm"] = "none" if p > SIGNIFICANT else "alarm" if surely else "notice"
        accuracy = float(hits[0].mean())
        found.append(Score(name, accuracy, accuracy_interval(hits[0], cases.people), true, interval, p, finding))
    return found, float(np.quantile(best, 1 - SIGNIFICANT))


def classify(train: FloatArray, test: FloatArray, labels: IntArray, n_classes: int) -> IntArray:
    """Return the classes (labellings, test) of test rows, learnt from train rows under each of several labellings.

    The pooled covariance is that of all training rows, which no labelling changes; for two classes it gives the
    direction of the usual discriminant. Scaling and missing values come from the training rows alone.
    """
    centre, spread = centre_and_spread(train)
    x, y = (scaled(rows, centre, spread, _LARGEST) for rows in (train, test))
    inner = np.linalg.inv(x.T @ x / len(x) + _RIDGE * np.eye(x.shape[1]))
    scores = np.empty((n_classes, len(labels), len(y)))
    for k in range(n_classes):
        own = (labels == k).astype(float)  # (labellings, train)
        count = own.sum(axis=1, keepdims=True)
        mean = own @ x / np.maximum(count, 1)  # (labellings, columns)
        axis = mean @ inner
        scores[k] = axis @ y.T - 0.5 * (axis * mean).sum(axis=1, keepdims=True)
        scores[k][count[:, 0] == 0] = -np.inf
    told: IntArray = scores.argmax(axis=0)
    return told


def shuffled(cases: Cases, n: int, rng: np.random.Generator) -> IntArray:
    """Return the true labels and n shuffled ones, (1 + n, trials), that keep what hangs together together."""
    labels, people = cases.labels, cases.people
    units = people
    if cases.stimuli is not None and _constant(labels, cases.stimuli).all():
        units = cases.stimuli  # the class belongs to what was shown, so that is what can be swapped
    constant = _constant(labels, units)
    made = np.tile(labels, (n + 1, 1))
    if constant.mean() > 0.5:
        # A unit with two classes among many with one counts as two.
        _, first, unit = np.unique(units * cases.n_classes + labels, return_index=True, return_inverse=True)
        for row in made[1:]:
            row[:] = rng.permutation(labels[first])[unit]
        return made
    for row in made[1:]:
        for person in np.unique(people):
            own = people == person
            row[own] = rng.permutation(labels[own])
    return made


def _constant(labels: IntArray, units: IntArray) -> BoolArray:
    """Return for each unit whether all its trials have one label."""
    return np.array([len(np.unique(labels[units == unit])) == 1 for unit in np.unique(units)])


def _right(x: FloatArray, labels: IntArray, cases: Cases) -> BoolArray:
    """Return which trials are told correctly when they are tested, (labellings, trials)."""
    right = np.zeros(labels.shape, bool)
    step = max(1, _BATCH // labels.shape[1])
    for train, test in zip(cases.trains, cases.tests, strict=True):
        for first in range(0, len(labels), step):
            rows = slice(first, first + step)
            told = classify(x[train], x[test], labels[rows][:, train], cases.n_classes)
            right[rows, test] = told == labels[rows][:, test]
    return right


def _balanced(right: BoolArray, labels: IntArray, n_classes: int) -> FloatArray:
    """Return the mean over classes of the share told correctly, (labellings,)."""
    recalls = []
    for k in range(n_classes):
        own = labels == k
        recalls.append((right & own).sum(axis=1) / np.maximum(own.sum(axis=1), 1))
    mean: FloatArray = np.mean(recalls, axis=0)
    return mean


def accuracy_interval(right: BoolArray | FloatArray, people: IntArray) -> tuple[float, float]:
    """Return the 95 % interval of an accuracy, with people as the evidence; `right` may hold shares of answers."""
    return balanced_interval(right, np.zeros(len(right), np.int64), people)


def balanced_interval(right: BoolArray | FloatArray, labels: IntArray, people: IntArray) -> tuple[float, float]:
    """Return the 95 % interval of a balanced accuracy, with people as the evidence.

    The variance is that between people of what each adds to the result. Wilson's formula with the number of
    independent answers that would vary as much keeps the interval within 0 and 1, and open at a perfect score;
    Student's factor makes it wider where few people had to show how much they vary.
    """
    present = np.unique(labels)
    weight = np.array([1 / (len(present) * np.sum(labels == label)) for label in labels])
    recall = {k: right[labels == k].mean() for k in present}
    share = float(np.mean(list(recall.values())))
    beyond = weight * (right - np.array([recall[label] for label in labels]))
    each = np.array([beyond[people == person].sum() for person in np.unique(people)])
    n_people = len(each)
    if n_people < 2:
        return 0.0, 1.0
    variance = float((each**2).sum()) * n_people / (n_people - 1)
    n = min(share * (1 - share) / variance, float(len(right))) if variance > 1e-12 else float(n_people)
    return wilson(share, n, float(student_t.ppf(0.975, n_people - 1)))


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of n independent answers, z standard errors to each side."""
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * float(np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)))
    return max(0.0, centre - half), min(1.0, centre + half)


def as_cases(
    labels: Sequence[int],
    people: Sequence[str],
    sides: Sequence[tuple[Sequence[int], Sequence[int]]],
    stimuli: Sequence[str] | None = None,
) -> Cases:
    """Replace names by numbers; `sides` holds the training and test rows of each fold."""
    return Cases(
        np.unique(np.array(labels, np.int64), return_inverse=True)[1],  # a class without trials is no class here
        np.unique(list(people), return_inverse=True)[1],
        tuple(np.array(test, np.int64) for _, test in sides),
        tuple(np.array(train, np.int64) for train, _ in sides),
        None if stimuli is None else np.unique(list(stimuli), return_inverse=True)[1],
    )
