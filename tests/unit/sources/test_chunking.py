from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtbrain.errors import ConfigError
from rtbrain.messages import Chunk
from rtbrain.sources.chunking import rechunk


def blocks(lengths, stamped=True):
    start = 0
    for n in lengths:
        rows = np.arange(start, start + n)
        yield Chunk(np.stack([rows, -rows], axis=1).astype(float), start, rows / 100 if stamped else None)
        start += n


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 40))
def test_any_cutting_keeps_every_row_in_order(lengths, size):
    total, out = sum(lengths), list(rechunk(blocks(lengths), size))
    rows = np.concatenate([chunk.data[:, 0] for chunk in out] or [np.empty(0)])
    times = np.concatenate([chunk.times for chunk in out] or [np.empty(0)])
    assert rows.tolist() == list(range(total))
    assert np.array_equal(times, rows / 100)
    assert [len(chunk) for chunk in out] == [size] * (total // size) + [total % size] * (total % size > 0)
    assert [chunk.start for chunk in out] == list(range(0, total, size))
    assert all(chunk.data.flags.c_contiguous for chunk in out)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.integers(0, 99))
def test_random_sizes_keep_every_row_and_stay_in_bounds(lengths, seed):
    out = list(rechunk(blocks(lengths), "random", longest=50, seed=seed))
    assert np.array_equal(np.concatenate([chunk.data[:, 0] for chunk in out]), np.arange(sum(lengths)))
    assert max(len(chunk) for chunk in out) <= 50


def test_random_sizes_follow_the_seed_and_reach_both_ends():
    def sizes(seed):
        return [len(chunk) for chunk in rechunk(blocks([20000]), "random", longest=40, seed=seed)]

    assert sizes(1) == sizes(1) != sizes(2)
    assert {1, 2, 40} <= set(sizes(1))


def test_none_leaves_the_blocks_alone():
    assert [len(chunk) for chunk in rechunk(blocks([3, 5]), None)] == [3, 5]


def test_chunks_without_stamps_stay_without():
    assert all(chunk.times is None for chunk in rechunk(blocks([3, 5], stamped=False), 4))


def test_small_chunks_are_views_of_the_block():
    block = next(blocks([1000]))
    assert all(np.shares_memory(chunk.data, block.data) for chunk in rechunk([block], 1))


def test_only_as_many_blocks_are_read_as_needed():
    read = []

    def counted():
        for chunk in blocks([10] * 100):
            read.append(chunk.start)
            yield chunk

    assert len(list(islice(rechunk(counted(), 5), 3))) == 3
    assert read == [0, 10]


@pytest.mark.parametrize("size", [0, -1, 1.5, "all"])
def test_what_is_no_size_is_refused_at_once(size):
    with pytest.raises(ConfigError, match="cannot hold"):
        rechunk(blocks([3]), size)
