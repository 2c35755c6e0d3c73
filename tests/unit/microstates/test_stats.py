"""Microstate statistics of token lists that can be worked out by hand."""

import json

import numpy as np
import pytest

from rtbrain.messages import NO_TOKENS, UNLABELLED, Tokens
from rtbrain.microstates.stats import pooled, statistics


def tokens(rows: list[tuple[int, int, int, float, float, int]]) -> Tokens:
    """Build tokens from (state, start, duration, power, explained, band)."""
    state, start, duration, power, explained, band = (np.array(column) for column in zip(*rows, strict=True))
    zeros = np.zeros(len(rows))
    return Tokens(state, start, duration, zeros, zeros, zeros, zeros, power, explained, band)


# At 100 Hz: 0 for 10, 1 for 30, 0 for 20, unlabelled for 40, 2 for 10, a break of 100 samples, 1 for 30, 0 for 50.
SESSION = tokens(
    [
        (0, 0, 10, 4.0, 2.0, 0),
        (1, 10, 30, 2.0, 1.0, 0),
        (0, 40, 20, 1.0, 0.5, 0),
        (UNLABELLED, 60, 40, 1.0, 0.0, 0),
        (2, 100, 10, 8.0, 2.0, 0),
        (1, 210, 30, 1.0, 1.0, 0),
        (0, 240, 50, 2.0, 1.0, 0),
        (3, 0, 290, 99.0, 50.0, 1),  # another band
    ]
)


def test_statistics_of_a_session_worked_out_by_hand() -> None:
    got = statistics(SESSION, 4, 100.0)
    np.testing.assert_allclose(got.coverage, [80 / 150, 60 / 150, 10 / 150, 0])
    np.testing.assert_allclose(got.occurrence_hz, [3 / 1.5, 2 / 1.5, 1 / 1.5, 0])
    np.testing.assert_allclose(got.duration_ms, [800 / 3, 300, 100, 0])
    power = 40 + 60 + 20 + 40 + 80 + 30 + 100  # = 370, the unlabelled run included
    np.testing.assert_allclose(got.gev, [(20 + 10 + 50) / power, (30 + 30) / power, 20 / power, 0])
    # 0>1, 1>0, then nothing across the unlabelled run and the break, 1>0
    np.testing.assert_allclose(got.transitions, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    assert got.tokens_per_s == pytest.approx(6 / 1.5)
    assert (got.labelled_s, got.unlabelled_s) == (1.5, 0.4)


def test_transitions_are_shares_of_what_follows() -> None:
    rows = [(state, 10 * i, 10, 1.0, 1.0, 0) for i, state in enumerate([0, 1, 0, 2, 0, 1, 2, 1])]
    got = statistics(tokens(rows), 3, 250.0)
    np.testing.assert_allclose(got.transitions, [[0, 2 / 3, 1 / 3], [1 / 2, 0, 1 / 2], [1 / 2, 1 / 2, 0]])


def test_the_other_band_is_described_by_itself() -> None:
    got = statistics(SESSION, 4, 100.0, band=1)
    np.testing.assert_allclose(got.coverage, [0, 0, 0, 1])
    np.testing.assert_allclose(got.duration_ms, [0, 0, 0, 2900])
    assert got.gev[3] == pytest.approx(50 / 99)


@pytest.mark.parametrize("nothing", [NO_TOKENS, SESSION.take(np.array([3]))], ids=["no token", "nothing labelled"])
def test_nothing_labelled_gives_zeros(nothing: Tokens) -> None:
    got = statistics(nothing, 3, 100.0)
    for name in ("coverage", "occurrence_hz", "duration_ms", "gev", "transitions"):
        np.testing.assert_array_equal(getattr(got, name), 0)
    assert (got.tokens_per_s, got.labelled_s) == (0, 0)


def test_statistics_are_plain_values_for_json() -> None:
    values = json.loads(json.dumps(statistics(SESSION, 4, 100.0).to_dict()))
    assert values["labelled_s"] == 1.5
    assert values["transitions"][0] == [0, 1, 0, 0]


def test_recordings_together_are_their_seconds_and_runs_together() -> None:
    """Two halves at different rates: as one recording, but for what would have followed at the seam."""
    rows = [(state, 10 * i, 10, 1.0, 1.0, 0) for i, state in enumerate([0, 1, 0, 2, 0, 1, 2, 1, 0, 2])]
    twice = [(state, 2 * start, 2 * n, *rest) for state, start, n, *rest in rows[4:]]
    got = pooled([statistics(tokens(rows[:4]), 3, 100.0), statistics(tokens(twice), 3, 200.0)])
    whole = statistics(tokens(rows), 3, 100.0)
    np.testing.assert_allclose(got.coverage, whole.coverage, atol=1e-4)
    np.testing.assert_allclose(got.duration_s, whole.duration_ms / 1000, atol=1e-4)
    # 0>1 and 0>2, then of the second half 0>1 and 0>2; 1>0, then 1>2 and 1>0, by runs: 1 of the first, 2 of the second
    np.testing.assert_allclose(got.transitions[0], [0, 1 / 2, 1 / 2], atol=1e-4)
    np.testing.assert_allclose(got.transitions[1], [2 / 3, 0, 1 / 3], atol=1e-4)
