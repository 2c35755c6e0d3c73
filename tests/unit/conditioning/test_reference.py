"""Average reference over the good channels."""

import numpy as np

from rtbrain.conditioning.reference import AverageReference, average_reference
from rtbrain.messages import Chunk, StreamInfo
from tests.streams import NAMES


def test_the_mean_over_channels_becomes_zero_and_differences_stay(rng: np.random.Generator) -> None:
    data = 300 + rng.standard_normal((50, 8))
    out = average_reference(data)
    np.testing.assert_allclose(out.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.diff(out, axis=1), np.diff(data, axis=1), atol=1e-12)


def test_bad_channels_are_zero_and_do_not_touch_the_others(rng: np.random.Generator) -> None:
    data = rng.standard_normal((50, 8))
    good = np.array([True, False, True, True, False, True, True, True])
    data[:, ~good] = 1e9
    out = average_reference(data, good)
    np.testing.assert_array_equal(out[:, ~good], 0)
    np.testing.assert_allclose(out[:, good], average_reference(data[:, good]), atol=1e-12)
    np.testing.assert_allclose(out[:, good].mean(axis=1), 0, atol=1e-12)


def test_without_any_good_channel_all_is_zero(rng: np.random.Generator) -> None:
    np.testing.assert_array_equal(average_reference(rng.standard_normal((5, 3)), np.zeros(3, bool)), np.zeros((5, 3)))


def test_the_stage_refers_each_chunk_by_its_own_mask_and_passes_mask_and_flag_on(rng: np.random.Generator) -> None:
    stage = AverageReference()
    assert stage.open(StreamInfo(250.0, NAMES)) == StreamInfo(250.0, NAMES)
    data, good = rng.standard_normal((20, 8)), np.arange(8) != 3
    first = stage.process(Chunk(data[:10]))
    second = stage.process(Chunk(data[10:], 10, good=good, filled=True))
    np.testing.assert_array_equal(first.data, average_reference(data[:10]))
    np.testing.assert_array_equal(second.data, average_reference(data[10:], good))
    assert (second.start, second.filled) == (10, True)
    assert second.good is good
