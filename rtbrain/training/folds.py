"""Splits that cannot leak: who trains, validates and tests, and the audit that runs before every fit."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Literal

from rtbrain.errors import ConfigError, LeakError, SourceError
from rtbrain.training.dataset_config import Protocol
from rtbrain.training.datasets.identical import identical
from rtbrain.training.trials import Trial

TOLERANCE_S = 0.01
"""A crop ends at a whole sample: one more or less, at 100 Hz and above, is no difference in length."""


@dataclass(frozen=True)
class Fold:
    """One split, by the names of trials: an index would mean another trial as soon as their order changes."""

    name: str
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    apart: Literal["subjects", "stimuli"] = "subjects"
    """What the test side shares with no other side; train and validation never share a subject."""


@dataclass(frozen=True)
class _Units:
    """Subjects or stimuli, in groups of those that count as one."""

    of: Callable[[Trial], str]
    group: dict[str, str]
    why: dict[str, list[str]]
    """What joined the members of a group."""

    def __call__(self, trial: Trial) -> str:
        return self.group[self.of(trial)]


def groups(trials: Collection[Trial], same_person: Iterable[Sequence[str]] = ()) -> dict[str, str]:
    """Return the group of each subject: those who share a byte-identical recording or are declared one person.

    A group has the name of its first member. Duplicates are seen among these trials only; `Found.same_person` has
    those of the whole set, so pass it as `same_person` here, to `folds` and to `audit`.
    """
    people = _units(trials, _subject, same_person)
    return {subject: people.group[subject] for subject in sorted({trial.subject for trial in trials})}


def folds(trials: Collection[Trial], protocol: Protocol, same_person: Iterable[Sequence[str]] = ()) -> list[Fold]:
    """Split labelled trials so that each is tested once; the order they come in does not matter.

    k-fold deals groups out by their majority class and, within it, by that class's share: folds differ by at most one
    group of a class, and in all, which no balance of label counts can promise. A group weighs the same however many
    trials it has: persons are the evidence. Validation takes its share of the other groups, at least one per class
    where a subject has only one class, and never the last one of a class.
    """
    trials = sorted(trials, key=lambda trial: trial.name)
    _check(trials, protocol)
    people = _units(trials, _subject, same_person)
    part: Callable[[Trial], str] = people
    if protocol.split == "k-fold":
        part = _dealt(_labels(trials, people), people, protocol)
    elif protocol.split == "leave-one-stimulus-out":
        part = _units(trials, _stimulus)
    names, needed = sorted({part(trial) for trial in trials}), protocol.folds if protocol.split == "k-fold" else 2
    if len(names) < needed:
        raise ConfigError(
            f"{protocol.split} needs at least {needed} to leave out in turn and found {len(names)}, where those that "
            "share a recording or are declared same_person count as one; add data, or ask for fewer folds"
        )
    one_class_each = all(len(counts) == 1 for counts in _labels(trials, _subject).values())
    made = []
    for name in names:
        rest = [trial for trial in trials if part(trial) != name]
        if missing := {trial.label for trial in trials} - {trial.label for trial in rest}:
            raise ConfigError(f"fold {name!r}: {_numbers(missing)} is on the test side only; merge it or leave it out")
        held = _validators(_labels(rest, people), protocol, name, one_class_each)
        train = tuple(trial.name for trial in rest if people(trial) not in held)
        validation = tuple(trial.name for trial in rest if people(trial) in held)
        test = tuple(trial.name for trial in trials if part(trial) == name)
        apart: Literal["subjects", "stimuli"] = "stimuli" if protocol.split == "leave-one-stimulus-out" else "subjects"
        made.append(Fold(name, train, validation, test, apart))
    return made


def split(trials: Collection[Trial], protocol: Protocol, same_person: Iterable[Sequence[str]] = ()) -> Fold:
    """Split labelled trials once, for a model to be used on other people: who trains, who validates, nobody to test."""
    trials = sorted(trials, key=lambda trial: trial.name)
    _check(trials, protocol)
    people = _units(trials, _subject, same_person)
    one_class_each = all(len(counts) == 1 for counts in _labels(trials, _subject).values())
    held = _validators(_labels(trials, people), protocol, "all", one_class_each)
    train = tuple(trial.name for trial in trials if people(trial) not in held)
    return Fold("all", train, tuple(trial.name for trial in trials if people(trial) in held), ())


def audit(
    fold: Fold,
    trials: Collection[Trial],
    same_person: Iterable[Sequence[str]] = (),
    fitted_on: Mapping[str, Collection[str]] | None = None,
    crop_s: float | None = None,
) -> None:
    """Raise LeakError if the fold, or what was fitted before it, shows the test side to training.

    `fitted_on` names the subjects or trials that "templates", "scaling" and the like rest on; a subject stands for all
    its trials, so name trials where stimuli are kept apart. `crop_s` is the one length that all trials must have.
    """
    where, known = f"fold {fold.name!r}", {trial.name: trial for trial in trials}
    if len(known) < len(trials):  # a name that is two trials could be on two sides unseen
        raise LeakError(f"{where}: {len(trials)} trials have {len(known)} names; give each trial its own")
    named = {"train": fold.train, "validation": fold.validation, "test": fold.test}
    if unknown := sorted({name for names in named.values() for name in names} - known.keys()):
        raise LeakError(f"{where}: trial {unknown[0]!r} is not among the trials; make the folds anew")
    sides = {side: [known[name] for name in names] for side, names in named.items()}
    people = _units(trials, _subject, same_person)
    apart = _units(trials, _stimulus) if fold.apart == "stimuli" else people
    for one, other in combinations(sides, 2):
        units = apart if other == "test" else people
        for group in sorted({units(trial) for trial in sides[one]} & {units(trial) for trial in sides[other]}):
            first, second = (sorted({units.of(t) for t in sides[side] if units(t) == group}) for side in (one, other))
            why = "the same name" if set(first) & set(second) else "; ".join(units.why[group])
            raise LeakError(
                f"{where}: {', '.join(first)} in {one} and {', '.join(second)} in {other} count as one ({why}); "
                "make the folds with rtbrain.training.folds, or leave one of them out"
            )
    tested = {apart(trial) for trial in sides["test"]}
    units_of: dict[str, set[str]] = defaultdict(set)
    for trial in trials if fitted_on else ():
        units_of[trial.name].add(apart(trial))
        units_of[trial.subject].add(apart(trial))
    for what, name in sorted((what, name) for what, names in (fitted_on or {}).items() for name in names):
        used = set(units_of[name])
        if apart is people and name in people.group:  # without trials here, and yet perhaps a test subject's double
            used.add(people.group[name])
        if not used or used & tested:
            fault = f"is tested (as {min(used & tested)!r})" if used else "is no subject or trial of this set"
            raise LeakError(f"{where}: {what} fitted on {name!r}, which {fault}; fit on training trials and name those")
    for trial in (trial for side in sides.values() for trial in side):
        if crop_s is not None and not abs(trial.length_s - crop_s) <= TOLERANCE_S:  # a NaN is refused too
            raise LeakError(
                f"{where}: trial {trial.name!r} lasts {trial.length_s:g} s and the crop {crop_s:g} s; length can give "
                "the class away, so crop it, or leave it out if it is too short"
            )


def _check(trials: Sequence[Trial], protocol: Protocol) -> None:
    """Refuse what no protocol can split."""
    names, share = Counter(trial.name for trial in trials), protocol.validation_share
    for bad, fault in (
        ([name for name in names if names[name] > 1], "trial names occur twice; each trial needs its own"),
        ([trial.name for trial in trials if trial.label is None], "trials have no label; choose a task first"),
        ([] if 0 < share < 1 else [share], "validation_share must lie between 0 and 1"),
        ([] if protocol.folds > 1 else [protocol.folds], "folds must be 2 or more"),
    ):
        if bad:
            raise ConfigError(f"{fault}: {', '.join(map(str, bad[:5]))}{' and more' if len(bad) > 5 else ''}")


def _subject(trial: Trial) -> str:
    return trial.subject


def _stimulus(trial: Trial) -> str:
    if trial.stimulus is None:
        raise ConfigError(f"trial {trial.name!r} has no stimulus; leave it out, or choose a split by subject")
    return trial.stimulus


def _labels(trials: Iterable[Trial], by: Callable[[Trial], str]) -> dict[str, Counter[int]]:
    """Count the labels of each subject or group."""
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for trial in trials:
        counts[by(trial)].update([] if trial.label is None else [trial.label])
    return counts


def _strata(labels: Mapping[str, Counter[int]], rng: Random) -> list[list[str]]:
    """Return the groups by majority class (the lower of equals), each class in random order, the rarest first."""
    strata: dict[int, list[str]] = defaultdict(list)
    for group in rng.sample(sorted(labels), len(labels)):
        strata[max(sorted(labels[group]), key=labels[group].__getitem__)].append(group)
    return [strata[label] for label in sorted(strata, key=lambda label: (len(strata[label]), label))]


def _dealt(labels: Mapping[str, Counter[int]], people: _Units, protocol: Protocol) -> Callable[[Trial], str]:
    """Deal groups to folds, in blocks of as many similar groups as there are folds."""
    rng, load, fold_of = Random(f"{protocol.seed}/deal"), [0] * protocol.folds, {}
    for stratum in _strata(labels, rng):
        stratum.sort(key=lambda group: -max(labels[group].values()) / labels[group].total())
        for start in range(0, len(stratum), protocol.folds):
            block = stratum[start : start + protocol.folds]
            # A class's last block may not go round: it fills the smallest folds, so that sizes stay within one.
            least = sorted(range(protocol.folds), key=lambda fold: (load[fold], rng.random()))
            for group, fold in zip(rng.sample(block, len(block)), least, strict=False):
                load[fold] += 1
                fold_of[group] = f"fold-{fold + 1:02d}"
    return lambda trial: fold_of[people(trial)]


def _validators(labels: Mapping[str, Counter[int]], protocol: Protocol, fold: str, one_class_each: bool) -> set[str]:
    """Choose the groups that validate: one for each class, the rarest first, then a share of each stratum."""
    # A text seeds alike on every machine, and a fold's draw does not hang on the folds before it.
    strata, held = _strata(labels, Random(f"{protocol.seed}/{fold}")), set[str]()
    holders: dict[int, list[str]] = defaultdict(list)
    for group in (group for stratum in strata for group in stratum):
        for label in labels[group]:
            holders[label].append(group)

    def spare(group: str) -> bool:
        return all(set(holders[label]) - held - {group} for label in labels[group])

    for label in sorted(holders, key=lambda label: (len(holders[label]), label)):
        if held.isdisjoint(holders[label]):
            held.update([group for group in holders[label] if spare(group)][:1])
    taken = quota = 0.0
    for stratum in strata:
        taken, quota = quota, quota + protocol.validation_share * len(stratum)
        for group in stratum:
            if len(held.intersection(stratum)) < round(quota) - round(taken) and spare(group):
                held.add(group)
    unseen = sorted(label for label in holders if held.isdisjoint(holders[label]))
    if not held or (unseen and one_class_each):
        raise ConfigError(
            f"fold {fold!r}: the {len(labels)} groups of subjects outside the test side cannot both train and validate "
            f"{_numbers(unseen)}, each needs two that have it; add subjects, merge classes, or change the number of "
            "folds"
        )
    return held


def _numbers(labels: Iterable[int | None]) -> str:
    """Name classes by their place in the task, as trials do not know their names."""
    places = sorted(label + 1 for label in labels if label is not None)
    return f"class number {', '.join(map(str, places))} of the task"


def _units(trials: Collection[Trial], of: Callable[[Trial], str], declared: Iterable[Sequence[str]] = ()) -> _Units:
    """Join what is declared one, or shares a recording, by union-find."""
    owners: dict[Path, set[str]] = defaultdict(set)
    for trial in trials:
        for path in trial.files[:1]:  # the samples; see Trial.files
            owners[path].add(of(trial))
    # One recording of many stimuli is cut into trials: neither it nor its copies make these stimuli one.
    recordings = sorted(path for path in owners if of is _subject or len(owners[path]) == 1)
    try:
        copies = [[path] for path in recordings] + identical(recordings)
    except OSError as error:
        raise SourceError(f"{error}: cannot tell whether it is a copy of another; put it back or read anew") from error
    links = [(list(names), f"same_person: {', '.join(names)}") for names in declared if names]
    for paths in copies:
        links.append(
            (sorted(set[str]().union(*(owners[path] for path in paths))), f"same bytes: {', '.join(map(str, paths))}")
        )
    own = {of(trial) for trial in trials}
    parent = {name: name for names in (own, *(names for names, _ in links)) for name in names}

    def root(name: str) -> str:
        return name if parent[name] == name else root(parent[name])

    for names, _ in links:
        for name in names:
            # The first name that has trials leads, whatever the order of trials and links.
            first, last = sorted((root(names[0]), root(name)), key=lambda top: (top not in own, top))
            parent[last] = first
    why: dict[str, list[str]] = defaultdict(list)
    for names, text in links:
        if len(set(names)) > 1:
            why[root(names[0])].append(text)
    return _Units(of, {name: root(name) for name in parent}, why)
