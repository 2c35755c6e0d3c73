"""Who trains and who validates a model that is to be used on other people."""

import random

import pytest

from rtbrain.errors import ConfigError
from rtbrain.training.dataset_config import Protocol
from rtbrain.training.folds import audit, split
from rtbrain.training.trials import Trial

PROTOCOL = Protocol("leave-one-subject-out", validation_share=0.25)


def trial(subject: int, label: int, number: int = 0) -> Trial:
    return Trial(f"s{subject}", f"s{subject}-{number}", (), 10.0, lambda: None, label=label)  # type: ignore[arg-type, return-value]


TRIALS = [trial(subject, subject % 2, number) for subject in range(12) for number in range(3)]


def test_people_are_on_one_side_and_classes_on_both() -> None:
    fold = split(TRIALS, PROTOCOL)
    audit(fold, TRIALS)
    assert fold.test == ()
    assert sorted(fold.train + fold.validation) == sorted(each.name for each in TRIALS)
    label = {each.name: each.label for each in TRIALS}
    assert {label[name] for name in fold.train} == {label[name] for name in fold.validation} == {0, 1}
    assert len(fold.validation) == 9  # a quarter of the people


def test_order_does_not_matter_and_a_seed_does() -> None:
    shuffled = random.Random(3).sample(TRIALS, len(TRIALS))
    assert split(shuffled, PROTOCOL) == split(TRIALS, PROTOCOL)
    assert len({split(TRIALS, Protocol("k-fold", seed=seed)).validation for seed in range(5)}) > 1


def test_doubles_stay_together() -> None:
    doubles = [("s0", "s2"), ("s4", "s6"), ("s1", "s3")]
    for seed in range(5):
        fold = split(TRIALS, Protocol("k-fold", seed=seed), doubles)
        audit(fold, TRIALS, doubles)
        held = {name.split("-")[0] for name in fold.validation}
        assert all(len(held & set(pair)) in (0, 2) for pair in doubles)


def test_too_few_people_are_refused() -> None:
    with pytest.raises(ConfigError, match="each needs two that have it"):
        split([trial(0, 0), trial(1, 1), trial(2, 1)], PROTOCOL)
