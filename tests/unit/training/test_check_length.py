"""What a trial's length alone tells, and names under same_person that are nobody's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rtbrain.sources.chunking import Source
from rtbrain.training.dataset_config import Protocol
from rtbrain.training.folds import folds, groups
from rtbrain.training.length_leak import LengthOnly, length_only
from rtbrain.training.same_names import misspelt
from rtbrain.training.trials import Trial

SEED_S = [235, 233, 206, 238, 185, 195, 237, 216, 265, 237, 235, 233, 235, 238, 206]
SEED_LABELS = [1, 0, -1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 0, 1, -1]
LOSO = Protocol("leave-one-subject-out")


def closed() -> Source:
    raise AssertionError("lengths are known without reading samples")


def trial(subject: str, number: int, length_s: float, label: int) -> Trial:
    return Trial(subject, f"{subject}_{number}", (), length_s, closed, label=label)


def scored(trials: Sequence[Trial], protocol: Protocol = LOSO, same_person: Sequence[Sequence[str]] = ()) -> LengthOnly:
    return length_only(trials, folds(trials, protocol, same_person), groups(trials, same_person))


@pytest.mark.parametrize("n_subjects", [4, 15])
@pytest.mark.parametrize("jitter_s", [0, 0.02])
def test_the_clips_of_seed_tell_eleven_of_fifteen(n_subjects: int, jitter_s: float) -> None:
    rng = np.random.default_rng(0)
    trials = [
        trial(f"s{i}", film, seconds + rng.uniform(-jitter_s, jitter_s), label + 1)
        for i in range(n_subjects)
        for film, (seconds, label) in enumerate(zip(SEED_S, SEED_LABELS, strict=True))
    ]
    found = scored(trials)
    assert found.accuracy == pytest.approx(11 / 15, abs=0.001 if not jitter_s else 0.05)
    assert found.majority == pytest.approx(1 / 3)
    assert found.leaks
    cropped = scored([replace(t, length_s=180) for t in trials])
    assert cropped.accuracy == pytest.approx(1 / 3)
    assert not cropped.leaks


def test_longer_recordings_of_one_group_are_found() -> None:
    rng = np.random.default_rng(1)
    people = [trial(f"{label}-{i}", 0, rng.normal(300 + 30 * label, 10), label) for label in (0, 1) for i in range(20)]
    found = scored(people, Protocol("k-fold", folds=5))
    assert found.accuracy > 0.85
    assert found.majority == 0.5
    assert found.leaks


def test_lengths_that_tell_nothing_are_no_alarm() -> None:
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        people = [trial(f"{label}-{i}", 0, rng.normal(300, 10), label) for label in (0, 1) for i in range(15)]
        alarms += scored(people, Protocol("k-fold", folds=5)).leaks
    assert alarms <= 5
    # Leave-one-out on equal classes: the other class is always in the majority, which is no merit of lengths.
    equal = [trial(f"{label}-{i}", 0, 60, label) for label in (0, 1) for i in range(10)]
    assert not scored(equal).leaks


def test_persons_are_the_evidence() -> None:
    """All trials of two persons are told by length, none of four others: forty trials, yet two pieces of evidence."""
    told = [trial(subject, k, 100 + 50 * (k % 2), k % 2) for subject in "ab" for k in range(20)]
    others = [trial(subject, k, 60, k % 2) for subject in "cdef" for k in range(20)]
    found = scored([*told, *others])
    assert found.accuracy == pytest.approx(4 / 6)
    assert found.standard_error > 0.1
    assert not found.leaks
    joined = scored([*told, *others], same_person=["ab"])
    assert joined.accuracy == pytest.approx(0.5), "nobody else has such lengths"


SUBJECTS = ["MDD S2", "MDD S24", "MDD S25", "H S1"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("mdd s24", "MDD S24"), ("MDD S024", "MDD S24"), ("MDD_S24", "MDD S24"), ("MD S24", "MDD S24"), ("S2", "MDD S2")],
)
def test_a_misspelt_name_is_told_with_the_right_one(name: str, hint: str) -> None:
    (warning,), notes = misspelt([(name, "MDD S25")], SUBJECTS)
    assert repr(name) in warning
    assert repr(hint) in warning
    assert notes == []


def test_a_right_name_without_a_recording_is_noted_only() -> None:
    warnings, (note,) = misspelt([("MDD S24", "MDD S26")], SUBJECTS)
    assert warnings == []
    assert "'MDD S26'" in note
    assert misspelt([("MDD S24", "MDD S25")], SUBJECTS) == ([], [])
