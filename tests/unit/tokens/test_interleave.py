"""Several bands in one sequence: the order is that of the tokens' ends, however the stream is cut."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtbrain.messages import Chunk, Labels, StreamInfo, Token, Tokens
from rtbrain.stage import Chain
from rtbrain.tokens.interleave import Interleave
from rtbrain.tokens.runs import MergeRuns
from tests.streams import NAMES, cut

SIZES = st.lists(st.integers(0, 9), max_size=30)
BANDS = st.lists(
    st.tuples(st.lists(st.integers(0, 2), min_size=40, max_size=40), st.integers(0, 12)), min_size=1, max_size=3
)


class Column:
    """Labels each sample by one column of the data, so many samples late."""

    def __init__(self, column: int, wait: int) -> None:
        self.column, self.wait = column, wait

    def open(self, info: StreamInfo) -> StreamInfo:
        self.held = np.empty(0, np.int64)
        self.start: int | None = None
        return info.delayed(wait_samples=self.wait, filter_delay_s=self.wait / 100)

    def process(self, x: Chunk) -> Labels:
        self.start = x.start if self.start is None else self.start
        self.held = np.concatenate([self.held, x.data[:, self.column].astype(np.int64)])
        return self.release(max(0, len(self.held) - self.wait))

    def flush(self) -> Labels:
        return self.release(len(self.held))

    def release(self, n: int) -> Labels:
        start, state, self.held = self.start or 0, self.held[:n], self.held[n:]
        self.start = start + n
        ones = np.ones(n)
        return Labels(start, state, ones, np.ones((n, 3)), ones, ones, ones)


def interleave(waits: list[int]) -> Interleave:
    stage = Interleave([Chain([Column(i, wait), MergeRuns(i)]) for i, wait in enumerate(waits)])
    stage.open(StreamInfo(250.0, NAMES))
    return stage


def tokens_of(states: list[int], band: int, start: int) -> list[tuple[int, int, int, int]]:
    """Return (end, band, state, start) of every run."""
    edges = [0, *(i for i in range(1, len(states)) if states[i] != states[i - 1]), len(states)]
    return [(start + b, band, states[a], start + a) for a, b in itertools.pairwise(edges)]


def described(token: Token) -> tuple[int, int, int, int]:
    return token.start + token.duration, token.band, token.state, token.start


@given(bands=BANDS, sizes=SIZES, start=st.integers(0, 500))
def test_tokens_come_by_end_then_band_however_cut(
    bands: list[tuple[list[int], int]], sizes: list[int], start: int
) -> None:
    columns, waits = zip(*bands, strict=True)
    stage = interleave(list(waits))
    stream = Chunk(np.array(columns, float).T.copy(), start)
    out = Tokens.concat([*(stage.process(piece) for piece in cut(stream, sizes)), stage.flush()])
    wanted = sorted(row for band, states in enumerate(columns) for row in tokens_of(states, band, start))
    assert [described(token) for token in out] == wanted


def test_a_token_waits_until_no_band_can_close_an_earlier_one() -> None:
    stage = interleave([0, 5])
    stream = Chunk(np.column_stack([[0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1.0]]))
    came = [[described(token)[:2] for token in stage.process(piece)] for piece in cut(stream, [1] * 12)]
    # Band 0 closes at 2, known with sample 2; band 1 is 5 samples late: only sample 7 rules out a token ending at 2.
    assert [i for i, tokens in enumerate(came) if tokens] == [7, 8]
    assert came[7] == [(2, 0)]
    assert came[8] == [(3, 1)]


def test_a_single_band_does_not_wait() -> None:
    stage = interleave([0])
    stream = Chunk(np.array([[0.0], [0.0], [1.0], [1.0]]))
    assert [len(stage.process(piece)) for piece in cut(stream, [1] * 4)][:4] == [0, 0, 1, 0]


def test_the_slowest_band_decides_the_declared_delays() -> None:
    stage = interleave([3, 10, 0])
    info = stage.open(StreamInfo(250.0, NAMES, wait_s=1.0))
    assert info.wait_s == pytest.approx(1.0 + 10 / 250)
    assert info.filter_delay_s == pytest.approx(0.1)
