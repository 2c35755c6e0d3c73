"""Were all recordings made through one filter? Groups of recordings by the edges of their spectra."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np

from rtbrain.messages import BoolArray, FloatArray, IntArray
from rtbrain.training.nuisance.features import EDGES, LOW_EDGE, MIDDLE_HZ, Measured

POINTS_HZ = (0.5, 1.0, 1.5, 2.5, 30.0, 35.0, 40.0, 45.0)
"""Where a group's response is stated."""
SEPARATION = 4.0
"""Distance of two groups in standard deviations within them; halves of one normal cloud come to 2.7."""
STEP_DB = 6.0
"""Least difference at some edge: eye movements and muscles make smaller ones between crowds of recordings."""
LEAST = 3
"""Recordings of fewer people are odd ones, not a group."""
CHANCE = 0.01
_DRAWS = 300
_MOST_GROUPS = 6


@dataclass(frozen=True)
class FilterGroup:
    """Recordings that passed the same filter, as far as their band edges tell."""

    name: str
    """A has the widest band, then B, C, ..."""
    trials: tuple[str, ...]
    response_db: dict[str, float]
    """Median spectrum against group A's at each of POINTS_HZ, levels between the edges made equal; 0 for A."""
    by_class_db: dict[str, dict[str, float]]
    """The same within each class that both groups have: a filter shows in all classes alike, a disease does not."""


@dataclass(frozen=True)
class Filters:
    """The groups that were found, and how sure that is."""

    groups: tuple[FilterGroup, ...]
    separation: float
    """Of the first split, taken or not."""
    lacking: str = ""
    """Why the first split is no evidence of a second filter; empty where it is."""

    @property
    def several(self) -> bool:
        """Whether there is evidence of more than one recording filter."""
        return len(self.groups) > 1


@dataclass(frozen=True)
class Split:
    """Recordings in two parts, and how good a reason there is to tell them apart."""

    met: int
    """How many of the conditions hold: people, separation, step, chance."""
    separation: float
    lacking: str
    """The condition that does not hold, in words."""
    second: BoolArray | None = None
    """Which recordings form the second group, where all conditions hold."""


def find_filters(measured: Sequence[Measured], classes: Sequence[str]) -> Filters:
    """Group recordings by their band edges, without looking at the classes."""
    names = list(measured[0].features[EDGES])
    table = np.array([[float(each.features[EDGES][name]) for name in names] for each in measured])
    low = {f"{hz:g} Hz" for hz in LOW_EDGE}
    sides = [[i for i, name in enumerate(names) if (name in low) == wanted] for wanted in (True, False)]
    usable = ~np.isnan(table).any(axis=0)
    parts = [[i for i in side if usable[i]] for side in (*sides, range(len(names)))]
    people = np.unique([each.trial.subject for each in measured], return_inverse=True)[1]
    group, first = cluster([table[:, part] for part in parts if part], people)
    width = [float(table[group == k][:, usable].sum()) / np.sum(group == k) for k in range(group.max() + 1)]
    order = np.argsort(np.argsort(-np.array(width)))  # rank of each group, the widest first
    members = [
        [each for each, k in zip(measured, order[group], strict=True) if k == wanted] for wanted in range(len(width))
    ]
    described = tuple(_described(k, members, classes) for k in range(len(members)))
    return Filters(described, first.separation, first.lacking)


def cluster(views: Sequence[FloatArray], people: IntArray) -> tuple[IntArray, Split]:
    """Split recordings in two, and the parts again, while the parts are clearly apart in one of the views.

    Parameters
    ----------
    views : sequence of arrays
        (trials, edges) in dB; the low edge, the high edge and both are looked at apart, as the spread of one
        would hide a step of the other.
    people : array
        Which trials, (trials,), are of one person: they are alike by themselves, however many they are.

    Returns
    -------
    tuple
        Group of each trial, and the first split.
    """
    n = len(people)
    group, splits, waiting = np.zeros(n, np.int64), [], [np.arange(n)]
    while waiting and group.max() + 1 < _MOST_GROUPS:
        rows = waiting.pop()
        split = _split([view[rows] for view in views], people[rows])
        splits.append(split)
        if split.second is not None:
            group[rows[split.second]] = group.max() + 1
            waiting += [rows[~split.second], rows[split.second]]
    return group, splits[0]


def _split(views: Sequence[FloatArray], people: IntArray) -> Split:
    """Return the best split: the one that meets most conditions, then the one with the widest separation."""
    best = Split(0, 0.0, f"no split has recordings of {LEAST} or more people on both sides")
    for view in views:
        core = _without_odd(view, people)
        if len(core) < 2 * LEAST:
            continue
        x = view[core]
        upper, separation = _halves(x)
        centres = x[~upper].mean(axis=0), x[upper].mean(axis=0)
        step_db = float(np.abs(centres[1] - centres[0]).max())
        apart = f"the sides of the best split are {separation:.1f} standard deviations apart in their band edges"
        if separation < SEPARATION:
            split = Split(1, separation, f"{apart}, and {SEPARATION:g} are needed")
        elif step_db < STEP_DB:
            split = Split(2, separation, f"{apart}, but only {step_db:.1f} dB, and {STEP_DB:g} dB are needed")
        elif (chance := _by_chance(x, people[core], separation)) > CHANCE:
            lacking = f"{apart}, but one filter gives as much by chance (p {chance:.3f}, at most {CHANCE:g} is needed)"
            split = Split(3, separation, lacking)
        else:
            away = [((view - centre) ** 2).sum(axis=1) for centre in centres]
            split = Split(4, separation, "", away[1] < away[0])
        best = max(best, split, key=lambda each: (each.met, each.separation))
    return best


def _without_odd(x: FloatArray, people: IntArray) -> IntArray:
    """Return the rows that are left when those far off, of too few people to be a group, are taken away."""
    rows = np.arange(len(x))
    while len(rows) >= 2 * LEAST:
        upper, _ = _halves(x[rows])
        counts = [len(np.unique(people[rows[side]])) for side in (~upper, upper)]
        if min(counts) >= LEAST:
            return rows
        rows = rows[upper] if counts[1] >= counts[0] else rows[~upper]
    return rows


def _halves(x: FloatArray) -> tuple[BoolArray, float]:
    """Return the cut across the main axis of (n, d) data that leaves least spread, and the separation of its sides."""
    centred = x - x.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(along, kind="stable")
    n, lower = len(x), np.cumsum(along[order])[:-1]  # (cuts,) sums of the lower side; all sides together sum to 0
    below = np.arange(1, n)
    apart = -lower / (n - below) - lower / below  # distance of the two means
    between = apart**2 * below * (n - below) / n
    at = int(np.argmax(between))
    chosen = np.zeros(n, bool)
    chosen[order[at + 1 :]] = True
    # By medians: a few odd recordings on one side must not hide that the sides are apart.
    middles = np.median(along[~chosen]), np.median(along[chosen])
    within = 1.4826 * np.median(np.abs(along - np.where(chosen, middles[1], middles[0])))
    return chosen, float((middles[1] - middles[0]) / max(within, 1e-6))


def _by_chance(x: FloatArray, people: IntArray, separation: float) -> float:
    """Return how often normal clouds of as many trials and people, which vary as much, split as well."""
    who = np.unique(people, return_inverse=True)[1]
    means = np.array([x[who == k].mean(axis=0) for k in range(who.max() + 1)])
    between, within = _root_of_covariance(means), _root_of_covariance(x - means[who])
    rng, draws = np.random.default_rng(0), []
    for _ in range(_DRAWS):
        cloud = (rng.standard_normal(means.shape) @ between.T)[who] + rng.standard_normal(x.shape) @ within.T
        draws.append(_halves(cloud)[1])
    return float((1 + np.sum(np.array(draws) >= separation)) / (1 + _DRAWS))


def _root_of_covariance(x: FloatArray) -> FloatArray:
    n = x.shape[1]
    return np.asarray(np.linalg.cholesky(np.cov(x.T).reshape(n, n) + 1e-6 * np.eye(n)))


def _described(k: int, members: list[list[Measured]], classes: Sequence[str]) -> FilterGroup:
    by_class = {}
    for label, name in enumerate(classes):
        own, reference = ([each for each in group if each.trial.label == label] for group in (members[k], members[0]))
        if k and own and reference:
            by_class[name] = response(own, reference)
    names = tuple(each.trial.name for each in members[k])
    return FilterGroup(ascii_uppercase[k], names, response(members[k], members[0]), by_class)


def response(group: Sequence[Measured], reference: Sequence[Measured]) -> dict[str, float]:
    """Return the group's median spectrum against the reference's at POINTS_HZ, in dB, the middle made equal."""
    one, other = mean_spectrum(group), mean_spectrum(reference)
    step_hz = group[0].spectrum.step_hz
    first, last = (round(hz / step_hz) for hz in MIDDLE_HZ)
    n = min(len(one), len(other))
    difference = one[:n] - other[:n]
    difference -= np.median(difference[first : last + 1])
    found = {}
    for hz in POINTS_HZ:
        # Half a hertz on either side leaves the lines out where the spectrum is flat enough for it.
        half = 0 if hz < 1 else round((0.125 if hz < 2 else 0.25 if hz < 10 else 1.0) / step_hz)
        at = round(hz / step_hz)
        if at - half >= 2 and at + half < n:
            found[f"{hz:g} Hz"] = float(np.median(difference[at - half : at + half + 1]))
    return found


def mean_spectrum(group: Sequence[Measured]) -> FloatArray:
    """Return the median over recordings of their spectra, as far up as all of them reach."""
    n = min(len(each.spectrum.db) for each in group)
    middle: FloatArray = np.median([each.spectrum.db[:n] for each in group], axis=0)
    return middle
