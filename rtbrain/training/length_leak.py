"""How much of the labels a trial's length alone gives away, measured on the folds that a decoder would be."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rtbrain.training.folds import Fold
from rtbrain.training.trials import Trial

SAME_S: Final = 0.05
"""Lengths that differ by less are the same: films are cut by hand."""
NEIGHBOURS: Final = 5
"""Trials of similar length that vote where none is as long."""
CLEAR_GAIN: Final = 0.05
CLEAR_ERRORS: Final = 2.5
"""Length tells the label where it beats the constant answer by CLEAR_GAIN and by so many standard errors."""


@dataclass(frozen=True)
class LengthOnly:
    """A classifier that knows only how long a trial lasts."""

    accuracy: float
    majority: float
    """Accuracy of the best constant answer, on the same trials."""
    standard_error: float
    """Of the difference of the two, over persons: their trials are no evidence of their own."""
    leaks: bool
    """Whether length clearly tells the label."""


def length_only(trials: Sequence[Trial], made: Sequence[Fold], person: dict[str, str]) -> LengthOnly:
    """Classify the test side of each fold by the lengths of the other sides.

    The training trials of the same length vote; where there is none, those that come nearest.

    Parameters
    ----------
    trials : sequence of Trial
        Labelled trials.
    made : sequence of Fold
        Their folds.
    person : dict
        The person behind each subject; see `folds.groups`.
    """
    by_name = {trial.name: trial for trial in trials}
    constant = _winner([_label(trial) for trial in trials])
    gains: dict[str, list[int]] = defaultdict(list)
    right = 0
    for fold in made:
        known = [by_name[name] for name in (*fold.train, *fold.validation)]
        lengths, labels = np.array([trial.length_s for trial in known]), [_label(trial) for trial in known]
        for trial in (by_name[name] for name in fold.test):
            distances = np.abs(lengths - trial.length_s)
            reach = max(SAME_S, np.sort(distances)[:NEIGHBOURS][-1]) if distances.min() > SAME_S else SAME_S
            answer = _winner([labels[i] for i in np.flatnonzero(distances <= reach)])
            right += answer == trial.label
            gains[person[trial.subject]].append(int(answer == trial.label) - int(constant == trial.label))
    n = sum(map(len, gains.values()))
    majority = sum(trial.label == constant for trial in trials) / n
    error, gain = _clustered_error(list(gains.values())), right / n - majority
    return LengthOnly(right / n, majority, error, leaks=gain >= max(CLEAR_GAIN, CLEAR_ERRORS * error))


def _label(trial: Trial) -> int:
    assert trial.label is not None, "folds are made of labelled trials only"
    return trial.label


def _winner(labels: Sequence[int]) -> int:
    """Return the most frequent label, the lowest of equals."""
    counts = Counter(labels)
    return min(counts, key=lambda label: (-counts[label], label))


def _clustered_error(clusters: list[list[int]]) -> float:
    """Return the standard error of the mean over all values, of which those of a cluster are one piece of evidence."""
    sizes = np.array([len(values) for values in clusters])
    sums = np.array([sum(values) for values in clusters])
    residuals = sums - sizes * sums.sum() / sizes.sum()
    correction = len(clusters) / max(1, len(clusters) - 1)
    return float(np.sqrt(correction * np.sum(residuals**2)) / sizes.sum())
