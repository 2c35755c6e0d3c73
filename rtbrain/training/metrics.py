"""How good answers are, and how sure that is: people are the evidence, however many trials and seeds there are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student_t

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray, IntArray
from rtbrain.training.nuisance.score import accuracy_interval, balanced_interval

BINS = 10
"""Of confidence, for the calibration error."""
FLIPS = 10_000
_NO_SPREAD = 1e-12
_MISSED = 0.05
"""Chance of meeting nobody of those for whom a difference is another one."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Answered:
    """All answers of one method, each trial once for every seed, in one order for all methods."""

    trials: tuple[str, ...]
    labels: IntArray  # (trials,)
    people: IntArray  # (trials,)
    names: tuple[str, ...]
    """Of the people, by their number."""
    probabilities: FloatArray  # (seeds, trials, classes)

    @property
    def right(self) -> FloatArray:
        """Return (trials,) the share of the seeds in which the trial is told correctly; ties count in part."""
        best = self.probabilities >= self.probabilities.max(axis=2, keepdims=True) - 1e-12
        own = best[:, np.arange(len(self.labels)), self.labels]
        shares: FloatArray = (own / best.sum(axis=2)).mean(axis=0)
        return shares


@dataclass(frozen=True)
class Scores:
    """The figures of one method; intervals are 95 %, with people as the evidence."""

    accuracy: float
    accuracy_interval: Interval
    balanced: float
    balanced_interval: Interval
    auc: float
    """Chance that a trial of a class looks more like it than one of another class; mean over classes and seeds."""
    calibration_error: float
    """Mean distance between confidence and the share that is right, over ten bins of confidence."""
    confusion: tuple[tuple[float, ...], ...]
    """Trials by true and told class, mean over seeds."""
    by_person: dict[str, float]
    """Share of each person's trials that is told correctly."""
    reliability: tuple[tuple[float, float, float], ...]
    """Of each bin of confidence with answers in it: their share of all, mean confidence, share that is right."""


@dataclass(frozen=True)
class Difference:
    """How much better one method is than another on the same trials."""

    accuracy: float
    interval: Interval
    """95 %, of the paired difference, with people as the evidence."""
    p: float
    """Chance of so large a difference, either way, if it were a toss for each person which method is the better."""

    def __str__(self) -> str:
        """Return the difference with its interval, as tables have it."""
        low, high = self.interval
        return f"{self.accuracy:+.3f} ({low:+.2f} to {high:+.2f})"


def score(answered: Answered) -> Scores:
    """Return the figures of one method."""
    right, labels, people = answered.right, answered.labels, answered.people
    recalls = [right[labels == k].mean() for k in np.unique(labels)]
    return Scores(
        accuracy=float(right.mean()),
        accuracy_interval=accuracy_interval(right, people),
        balanced=float(np.mean(recalls)),
        balanced_interval=balanced_interval(right, labels, people),
        auc=float(np.mean([area_under_curve(each, labels) for each in answered.probabilities])),
        calibration_error=calibration_error(answered.probabilities, labels),
        confusion=tuple(map(tuple, confusion(answered.probabilities, labels).tolist())),
        by_person={name: float(right[people == i].mean()) for i, name in enumerate(answered.names)},
        reliability=reliability(answered.probabilities, labels),
    )


def area_under_curve(probabilities: FloatArray, labels: IntArray) -> float:
    """Return the mean over classes of the area under the ROC curve, a class against all others; ties count half."""
    areas = []
    for k in np.unique(labels):
        own = labels == k
        n, others = int(own.sum()), int((~own).sum())
        if others:
            ranks = rankdata(probabilities[:, k])
            areas.append((ranks[own].sum() - n * (n + 1) / 2) / (n * others))
    return float(np.mean(areas)) if areas else float("nan")


def calibration_error(probabilities: FloatArray, labels: IntArray) -> float:
    """Return the expected calibration error of (seeds, trials, classes)."""
    return sum(share * abs(right - confidence) for share, confidence, right in reliability(probabilities, labels))


def reliability(probabilities: FloatArray, labels: IntArray) -> tuple[tuple[float, float, float], ...]:
    """Return share of the answers, mean confidence and share that is right, of each bin of confidence that has some."""
    confidence, told = probabilities.max(axis=2).ravel(), probabilities.argmax(axis=2)
    right = (told == labels).ravel()
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    held = [bins == b for b in np.unique(bins)]
    return tuple((float(own.mean()), float(confidence[own].mean()), float(right[own].mean())) for own in held)


def confusion(probabilities: FloatArray, labels: IntArray) -> FloatArray:
    """Return (true, told) mean numbers of trials."""
    told = probabilities.argmax(axis=2)
    counts = np.zeros((probabilities.shape[2], probabilities.shape[2]))
    np.add.at(counts, (np.broadcast_to(labels, told.shape), told), 1 / len(told))
    return counts


def compare(one: Answered, other: Answered, seed: int = 0) -> Difference:
    """Compare two methods on the same trials and seeds, person by person."""
    if one.trials != other.trials or one.probabilities.shape != other.probabilities.shape:
        raise ConfigError("only answers about the same trials and seeds can be compared; evaluate both on all folds")
    gains = (one.right - other.right) / len(one.trials)
    each = np.array([gains[one.people == person].sum() for person in range(len(one.names))])
    n, mean = len(each), float(each.sum())
    if n < 2:
        return Difference(mean, (-1.0, 1.0), 1.0)
    # What a person adds varies with the number of their trials too, so it is held against the mean by trial.
    trials = np.bincount(one.people, minlength=n) / len(one.trials)
    spread = float(np.sqrt(((each - mean * trials) ** 2).sum() * n / (n - 1)))
    half = float(student_t.ppf(0.975, n - 1)) * spread
    if spread < _NO_SPREAD:  # the same for all these people: how many of all people may it not hold for?
        half = (1 + abs(mean)) * (1 - _MISSED ** (1 / n))
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (FLIPS, n))
    p = float((1 + np.sum(np.abs(signs @ each) >= abs(mean) - 1e-12)) / (1 + FLIPS))
    return Difference(mean, (max(-1.0, mean - half), min(1.0, mean + half)), p)


def numbered(people: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Return people as numbers, and the names of the numbers."""
    names, numbers = np.unique(list(people), return_inverse=True)
    return numbers.astype(np.int64), tuple(map(str, names))
