"""When an answer is not trusted, and why."""

import numpy as np
import pytest

from rtbrain.decoder.bundle import Trust
from rtbrain.messages import Tokens
from rtbrain.trust import RecentFit, age_doubts, doubts

TRUST = Trust(min_quality=0.8, min_gev=0.5, min_context_s=5.0, max_age_s=1.0)
GOOD = {"quality": 0.8, "gev": 0.5, "context_s": 5.0, "wait_s": 1.25, "usual_s": 0.25}


def tokens(start: list[int], duration: list[int], quality: list[float], gev: list[float]) -> Tokens:
    n = len(start)
    ints, ones = np.zeros(n, np.int64), np.ones(n)
    power = np.full(n, 4.0)
    columns = (ones, ones, ones, np.array(quality), power, power * np.array(gev))
    return Tokens(ints, np.array(start), np.array(duration), *columns, ints)


def test_nothing_speaks_against_what_is_within_all_limits() -> None:
    assert doubts(TRUST, **GOOD) == []
    assert age_doubts(TRUST, 1.0) == age_doubts(TRUST, -1.0) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"quality": 0.79}, "signal quality 0.79 is below 0.80"),
        ({"gev": 0.4}, "the templates explain 40% of the field, in training at least 50%"),
        ({"context_s": 4.9}, "the context of 4.9 s is shorter than 5 s"),
        ({"context_s": 4.99}, "the context of 4.9 s is shorter than 5 s"),
        ({"wait_s": 1.3}, "the newest token ended 1.3 s before the newest sample"),
    ],
)
def test_each_limit_has_its_reason(change: dict[str, float], reason: str) -> None:
    assert doubts(TRUST, **(GOOD | change)) == [reason]


def test_all_reasons_are_given() -> None:
    assert len(doubts(TRUST, 0.0, 0.0, 0.0, 9.0, 0.0)) == 4


@pytest.mark.parametrize(
    ("age_s", "reason"), [(None, "not known yet"), (1.1, "1.1 s old"), (-1.1, "1.1 s ahead of time")]
)
def test_old_unknown_and_future_samples_are_not_trusted(age_s: float | None, reason: str) -> None:
    (found,) = age_doubts(TRUST, age_s)
    assert reason in found


def test_quality_and_fit_are_weighted_by_duration() -> None:
    fit = RecentFit(100.0)
    fit.add(tokens([0, 30], [30, 10], [1.0, 0.0], [0.8, 0.4]))
    assert fit.quality() == pytest.approx(0.75)
    assert fit.gev() == pytest.approx(0.7)


def test_only_the_newest_seconds_count_whatever_the_batches() -> None:
    start, duration = list(range(0, 2000, 10)), [10] * 200
    quality = [0.0] * 150 + [1.0] * 50  # the newest 5 of 20 s at 100 Hz
    fit, single = RecentFit(100.0, 5.0), RecentFit(100.0, 5.0)
    every = tokens(start, duration, quality, [0.5] * 200)
    fit.add(every)
    for i in range(200):
        single.add(every.take(slice(i, i + 1)))
    assert fit.quality() == single.quality() == pytest.approx(50 / 51)  # one token ends just at the border
    fit.clear()
    assert (fit.quality(), fit.gev()) == (0.0, 0.0)
