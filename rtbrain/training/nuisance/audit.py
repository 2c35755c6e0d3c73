"""The audit of one task of a data set: measure what is not brain, and see how well it alone tells the class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rtbrain.errors import SourceError
from rtbrain.messages import FloatArray, IntArray
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets import task_trials
from rtbrain.training.folds import audit as audit_fold
from rtbrain.training.folds import folds, groups
from rtbrain.training.nuisance.features import GROUPS, LENGTH, Measured, columns, measure
from rtbrain.training.nuisance.filters import Filters, find_filters, mean_spectrum
from rtbrain.training.nuisance.lines import comb, folded_mains
from rtbrain.training.nuisance.score import Cases, Score, accuracy_interval, as_cases, score_groups
from rtbrain.training.nuisance.store import audit_key
from rtbrain.training.trials import Found, Trial

FILTER = "filter group"
ALL = "all together"
_SHOWN_HZ = 60.0


@dataclass(frozen=True)
class FoundLines:
    """The narrow lines of a set, in recordings of each class."""

    with_lines: tuple[int, ...]
    with_comb: tuple[int, ...]
    """Recordings in which lines repeat one of them: its multiples, or others at its distance."""
    base_hz: tuple[float, float] | None
    """Lowest and highest of these repeated lines."""
    strongest_db: float
    mains: tuple[str, ...]
    """Mains harmonics that sampling folded onto lines, such as `harmonic 5 of 50.1 Hz at 256 Hz`."""
    names: tuple[str, ...]


@dataclass(frozen=True)
class Audit:
    """What was found; plain data, as it is stored with the data set."""

    key: str
    """Stands for the trials, the task and this code: a stored audit with another key is stale."""
    dataset: str
    task: str
    classes: tuple[str, ...]
    n_trials: tuple[int, ...]
    """Of each class."""
    n_people: int
    majority: float
    cropped: bool
    """Whether trials are cut to one length, so that length is no cue any more."""
    harmonised: bool
    """Whether the data set's own recipe harmonises."""
    scores: tuple[Score, ...]
    noticeable: float
    """Balanced accuracy that a group must reach to be told from chance with so many people."""
    constant: tuple[str, ...]
    """Groups of features that are the same in all recordings."""
    filters: Filters
    members: dict[str, tuple[int, ...]]
    """Trials of each class in each filter group."""
    rule_accuracy: float | None
    """Share that "filter group, so class" gets right, each group standing for its most frequent class."""
    rule_interval: tuple[float, float] | None
    lines: FoundLines
    curves: dict[str, tuple[float, ...]]
    """Median spectra in dB, of each class and each filter group."""
    step_hz: float
    left_out: tuple[str, ...] = ()
    """What of the set could not be used, and why."""

    @property
    def counted(self) -> tuple[Score, ...]:
        """The scores that bear on a decoder: without length, where the crop takes it away."""
        return tuple(score for score in self.scores if not (self.cropped and score.group == LENGTH))

    @property
    def best(self) -> Score | None:
        """The group that tells the class best; of equals the first, so a plain group before all together."""
        return max(self.counted, key=lambda score: score.balanced, default=None)

    @property
    def finding(self) -> Literal["none", "notice", "alarm"]:
        """The worst of the findings."""
        findings = {score.finding for score in self.counted}
        return "alarm" if "alarm" in findings else "notice" if "notice" in findings else "none"


def audit_task(
    config: DatasetConfig, found: Found, task: str | None = None, progress: Callable[[float], None] | None = None
) -> Audit:
    """Audit a task on its own folds.

    Parameters
    ----------
    config : DatasetConfig
        Gives the task, the crop, the protocol and who may be one person.
    found : Found
        The whole set as `rtbrain.training.datasets.load` returns it, not yet cropped.
    task : str, optional
        Name of the task; the first one by default.
    progress : callable, optional
        Told the share of the recordings that has been read.

    Raises
    ------
    ConfigError
        The task is unknown, or its trials cannot be split by the protocol.
    SourceError
        No trial fits the task and the crop, all are of one class, or one cannot be read.
    LeakError
        The folds put a person on two sides.
    """
    name, chosen = task_trials(config, found, task)
    trials = chosen.trials
    classes = tuple(rule.name for rule in config.tasks[name].classes)
    if len(seen := {classes[label] for label in _labels(trials) if label >= 0}) == 1:
        raise SourceError(
            f"{config.name}: all {len(trials)} usable trials of task {name!r} are of class {seen.pop()!r}, so nothing "
            "can tell classes apart; `rtbrain data check` says what of the others cannot be used"
        )
    whole_s = {trial.name: trial.length_s for trial in found.trials}
    same_person = (*config.same_person, *found.same_person)
    cases = _cases(trials, config, same_person)  # before anything is read: a set that cannot be split costs no time
    measured = measure(trials, whole_s, progress)
    filters = find_filters(measured, classes)
    table = {group: columns(measured, group) for group in GROUPS}
    member = np.array([[trial.name in group.trials for group in filters.groups] for trial in trials], float)
    if filters.several:
        table[FILTER] = member
    # A length that the crop takes away is told, but must not make the test of what remains blunter.
    gone = {LENGTH: table.pop(LENGTH)} if config.crop else {}
    table[ALL] = np.concatenate(list(table.values()), axis=1)
    scores, noticeable = score_groups(table, cases)
    scores = score_groups(gone, cases)[0] + scores
    table |= gone
    counts = np.array(
        [[label == k for k in range(len(classes))] for label in _labels(trials)], int
    )  # (trials, classes)
    rule, interval = _rule(member.argmax(axis=1), cases) if filters.several else (None, None)
    return Audit(
        key=audit_key(config, name, chosen),
        dataset=config.name,
        task=name,
        classes=classes,
        n_trials=tuple(counts.sum(axis=0).tolist()),
        n_people=len(np.unique(cases.people)),
        majority=float(counts.sum(axis=0).max() / len(trials)),
        cropped=config.crop is not None,
        harmonised=config.recipe.harmonise is not None,
        scores=tuple(scores),
        noticeable=noticeable,
        constant=tuple(group for group in GROUPS if not table[group].shape[1]),
        filters=filters,
        members={
            group.name: tuple((member[:, k] @ counts).astype(int).tolist()) for k, group in enumerate(filters.groups)
        },
        rule_accuracy=rule,
        rule_interval=interval,
        lines=_lines(measured, len(classes)),
        curves=_curves(measured, classes, filters),
        step_hz=measured[0].spectrum.step_hz,
        left_out=tuple(map(str, chosen.problems)),
    )


def _labels(trials: Sequence[Trial]) -> list[int]:
    return [-1 if trial.label is None else trial.label for trial in trials]


def _cases(trials: Sequence[Trial], config: DatasetConfig, same_person: Sequence[Sequence[str]]) -> Cases:
    made, person = folds(trials, config.protocol, same_person), groups(trials, same_person)
    for fold in made:
        audit_fold(fold, trials, same_person, crop_s=config.crop.seconds if config.crop else None)
    row = {trial.name: i for i, trial in enumerate(trials)}
    sides = [([row[name] for name in fold.train + fold.validation], [row[name] for name in fold.test]) for fold in made]
    stimuli = [trial.stimulus or "" for trial in trials] if made[0].apart == "stimuli" else None
    return as_cases(_labels(trials), [person[trial.subject] for trial in trials], sides, stimuli)


def _rule(group: IntArray, cases: Cases) -> tuple[float, tuple[float, float]]:
    right = np.zeros(len(group), bool)
    for k in np.unique(group):
        own = group == k
        right[own] = cases.labels[own] == np.bincount(cases.labels[own]).argmax()
    return float(right.mean()), accuracy_interval(right, cases.people)


def _lines(measured: Sequence[Measured], n_classes: int) -> FoundLines:
    lined = [each for each in measured if each.lines]
    combs = [(each, comb(each.lines)) for each in lined]
    combs = [(each, (hz, n)) for each, (hz, n) in combs if n]
    folded = [(each, folded_mains(each.lines, each.rate_hz)) for each in lined]
    mains = sorted({f"harmonic {f[1]} of {f[0]:.1f} Hz folded at {each.rate_hz:g} Hz" for each, f in folded if f})
    bases = [hz for _, (hz, _) in combs]
    return FoundLines(
        with_lines=tuple(sum(each.trial.label == k for each in lined) for k in range(n_classes)),
        with_comb=tuple(sum(each.trial.label == k for each, _ in combs) for k in range(n_classes)),
        base_hz=(min(bases), max(bases)) if bases else None,
        strongest_db=max((line.db for each in lined for line in each.lines), default=0.0),
        mains=tuple(mains),
        names=tuple(each.trial.name for each in lined),
    )


def _curves(measured: Sequence[Measured], classes: Sequence[str], filters: Filters) -> dict[str, tuple[float, ...]]:
    parts = {name: [each for each in measured if each.trial.label == k] for k, name in enumerate(classes)}
    for group in filters.groups if filters.several else ():
        parts[f"filter {group.name}"] = [each for each in measured if each.trial.name in group.trials]
    top = int(_SHOWN_HZ / measured[0].spectrum.step_hz)

    def rounded(curve: FloatArray) -> tuple[float, ...]:
        return tuple(np.round(curve[: top + 1], 2).tolist())

    return {name: rounded(mean_spectrum(part)) for name, part in parts.items() if part}
