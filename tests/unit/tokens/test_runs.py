"""Runs of equal labels against `itertools.groupby`: minimum duration and merging."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtbrain.messages import Labels, StreamInfo, Tokens, own_value
from rtbrain.tokens.runs import MergeRuns, MinDuration, run_starts
from tests.streams import NAMES, cut

INFO = StreamInfo(250.0, NAMES)
STATES = st.lists(st.integers(-1, 2), min_size=1, max_size=60)
CUTS = st.lists(st.integers(0, 9), max_size=20)


def labels(states: list[int], start: int = 40, seed: int = 0) -> Labels:
    rng, n = np.random.default_rng(seed), len(states)
    gfp = rng.uniform(1, 9, n)
    along = gfp[:, None] * rng.random((n, 3))
    state = np.array(states, np.int64)
    return Labels(start, state, own_value(along, state), along, gfp, rng.uniform(3, 5, n), rng.random(n))


def shortest(states: list[int], m: int) -> list[int]:
    """Give runs shorter than m, but for the first, to the state before them."""
    out: list[int] = []
    for state, run in itertools.groupby(states):
        n = len(list(run))
        out += [state if n >= m or not out else out[-1]] * n
    return out


def smooth(x: Labels, m: int, sizes: list[int]) -> Labels:
    stage = MinDuration(4.0 * m)
    assert stage.open(INFO).wait_s == pytest.approx(max(0, m - 1) / 250)
    parts = [stage.process(piece) for piece in cut(x, sizes)] + stage.flush()
    known = x.start
    for part in parts:
        assert part.start == known or not len(part)
        known += len(part)
    fields = ("state", "own", "along", "gfp", "level", "quality")
    return Labels(x.start, *(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


@given(states=STATES, m=st.integers(0, 7), sizes=CUTS)
def test_a_change_counts_once_it_has_lasted_long_enough(states: list[int], m: int, sizes: list[int]) -> None:
    x = labels(states)
    got = smooth(x, m, sizes)
    assert got.state.tolist() == shortest(states, m)
    for name in ("along", "gfp", "level", "quality"):  # only states are rewritten
        np.testing.assert_array_equal(getattr(got, name), getattr(x, name))


def test_a_run_of_exactly_the_minimum_counts_and_one_shorter_does_not() -> None:
    assert smooth(labels([0] * 5 + [1] * 3 + [0] * 5), 3, []).state.tolist() == [0] * 5 + [1] * 3 + [0] * 5
    assert smooth(labels([0] * 5 + [1] * 2 + [0] * 5), 3, []).state.tolist() == [0] * 12


def test_the_first_run_counts_however_short() -> None:
    assert smooth(labels([2, 1, 1, 1]), 3, []).state.tolist() == [2, 1, 1, 1]


def test_an_unfinished_change_at_the_end_belongs_to_the_state_before() -> None:
    assert smooth(labels([0, 0, 0, 1, 1]), 3, []).state.tolist() == [0] * 5


def merge(x: Labels, sizes: list[int], band: int = 0) -> Tokens:
    stage = MergeRuns(band)
    stage.open(INFO)
    return Tokens.concat([*(stage.process(piece) for piece in cut(x, sizes)), stage.flush()])


@given(states=STATES, sizes=CUTS)
def test_tokens_are_groupby_with_the_mean_of_each_attribute(states: list[int], sizes: list[int]) -> None:
    x = labels(states)
    got = list(merge(x, sizes, band=3))
    groups = [
        (state, [i for i, _ in rows]) for state, rows in itertools.groupby(enumerate(states), key=lambda pair: pair[1])
    ]
    assert [(token.state, token.start, token.duration, token.band) for token in got] == [
        (state, 40 + rows[0], len(rows), 3) for state, rows in groups
    ]
    for token, (state, rows) in zip(got, groups, strict=True):
        gfp, along = x.gfp[rows], x.along[rows, state] if state >= 0 else np.zeros(len(rows))
        assert token.gfp == pytest.approx(gfp.mean())
        assert token.gfp_rel == pytest.approx(np.log(gfp.mean() / x.level[rows[-1]]))
        assert token.corr == pytest.approx((along / gfp).mean())
        assert token.quality == pytest.approx(x.quality[rows].mean())
        assert token.power == pytest.approx((gfp**2).mean())
        assert token.explained == pytest.approx((along**2).mean())


@given(states=STATES, m=st.integers(1, 7), sizes=CUTS)
def test_nothing_is_lost_and_nothing_comes_twice(states: list[int], m: int, sizes: list[int]) -> None:
    duration, merging = MinDuration(4.0 * m), MergeRuns(0)
    duration.open(INFO)
    merging.open(INFO)
    parts = [merging.process(duration.process(piece)) for piece in cut(labels(states), sizes)]
    parts += [merging.process(rest) for rest in duration.flush()] + [merging.flush()]
    tokens = Tokens.concat(parts)
    assert tokens.duration.sum() == len(states)
    assert tokens.start[0] == 40
    np.testing.assert_array_equal(tokens.start[1:], (tokens.start + tokens.duration)[:-1])
    assert (np.diff(tokens.state) != 0).all()
    assert len(merging.flush()) == 0


def test_a_token_closes_with_the_first_sample_of_the_next() -> None:
    stage = MergeRuns(0)
    stage.open(INFO)
    x = labels([1, 1, 2, 2, 1])
    closed = [len(stage.process(piece)) for piece in cut(x, [1] * 5)]
    assert closed[:5] == [0, 0, 1, 0, 1]
    assert stage.until == 45


def test_a_run_without_field_has_a_relative_gfp_of_zero() -> None:
    x = labels([-1] * 4)
    silent = Labels(0, x.state, 0 * x.own, 0 * x.along, np.zeros(4), np.zeros(4), x.quality)
    (token,) = merge(silent, [])
    assert (token.gfp, token.gfp_rel, token.corr, token.explained) == (0, 0, 0, 0)


def test_run_starts_are_where_the_value_changes() -> None:
    assert run_starts(np.array([3, 3, 1, 1, 1, 3])).tolist() == [0, 2, 5]
    assert run_starts(np.array([7])).tolist() == [0]
