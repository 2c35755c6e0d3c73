"""Channel quality: when a channel is bad, from which sample on, and when it is good again."""

import numpy as np
import pytest

from rtbrain.conditioning.quality import Quality, QualitySettings
from rtbrain.messages import Chunk, StreamInfo
from tests.streams import NAMES, eeg, faulty

RATE, BLOCK = 250.0, 25  # 100 ms
FLAT, RECOVER = 5 * BLOCK, 10 * BLOCK  # 500 ms, 1 s
N = 1500
BAD = 2  # the channel that gets the faults


@pytest.fixture
def data(rng: np.random.Generator) -> np.ndarray:
    return 20 * rng.standard_normal((N, len(NAMES)))


def judge(data: np.ndarray) -> tuple[list[Chunk], Quality]:
    stage = Quality(QualitySettings())
    stage.open(StreamInfo(RATE, NAMES))
    out = stage.process(Chunk(data)) + stage.flush()
    assert sum(len(chunk) for chunk in out) == len(data)
    return out, stage


def mask(out: list[Chunk]) -> np.ndarray:
    """Return the (n, channels) mask of good channels, sample by sample."""
    return np.concatenate(
        [np.broadcast_to(True if chunk.good is None else chunk.good, chunk.data.shape) for chunk in out]
    )


def bad_spans(out: list[Chunk]) -> list[tuple[int, int]]:
    """Return where the faulty channel is bad, from and to; the others never may be."""
    good = mask(out)
    assert np.delete(good, BAD, axis=1).all()
    edges = np.flatnonzero(np.diff(np.concatenate([[True], good[:, BAD], [True]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def fresh_at(out: list[Chunk]) -> list[tuple[int, list[int]]]:
    return [(chunk.start, np.flatnonzero(chunk.fresh).tolist()) for chunk in out if chunk.fresh is not None]


def test_clean_channels_stay_good_in_one_chunk_without_a_mask(data: np.ndarray) -> None:
    out, stage = judge(data)
    (chunk,) = out
    assert chunk.good is None
    assert chunk.fresh is None
    np.testing.assert_array_equal(chunk.data, data)
    np.testing.assert_array_equal(stage.bad_samples, 0)
    assert stage.samples == N


def test_a_flat_channel_is_bad_after_half_a_second_and_good_one_second_after_it_lives_again(data: np.ndarray) -> None:
    data[250:750, BAD] = 11.0
    out, stage = judge(data)
    assert bad_spans(out) == [(250 + FLAT, 750 + RECOVER)]
    assert fresh_at(out) == [(750 + BLOCK, [BAD])]
    assert stage.bad_samples.tolist() == [0, 0, 500 - FLAT + RECOVER, 0, 0, 0, 0, 0]


def test_a_flat_stretch_of_less_than_half_a_second_is_nothing(data: np.ndarray) -> None:
    data[250 : 250 + FLAT - BLOCK, BAD] = 11.0
    assert bad_spans(judge(data)[0]) == []


def test_noise_below_the_flat_limit_is_flat_too(data: np.ndarray) -> None:
    data[250:, BAD] *= 0.2 / np.ptp(data[250:, BAD])
    assert bad_spans(judge(data)[0]) == [(250 + FLAT, N)]


def test_a_channel_at_the_rail_is_bad_from_the_next_block_on(data: np.ndarray) -> None:
    data[250:500, BAD] = np.clip(data[250:500, BAD] * 100, -300, 300)
    out, _ = judge(data)
    assert bad_spans(out) == [(250 + BLOCK, 500 + RECOVER)]
    assert fresh_at(out) == [(500 + BLOCK, [BAD])]


def test_a_rail_on_one_side_is_seen(data: np.ndarray) -> None:
    data[250:500, BAD] = np.minimum(data[250:500, BAD], 0)
    assert bad_spans(judge(data)[0]) == [(250 + BLOCK, 500 + RECOVER)]


def test_too_large_an_amplitude_is_bad_from_the_next_block_on(data: np.ndarray) -> None:
    data[260, BAD] = 2000
    out, _ = judge(data)
    assert bad_spans(out) == [(275, 275 + RECOVER)]
    assert fresh_at(out) == [(275 + BLOCK, [BAD])]


def test_an_offset_is_no_amplitude(data: np.ndarray) -> None:
    data[:, BAD] += 2e5
    assert bad_spans(judge(data)[0]) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_makes_the_channel_bad_at_that_sample(data: np.ndarray, value: float) -> None:
    data[263, BAD] = value
    out, stage = judge(data)
    assert bad_spans(out) == [(263, 275 + RECOVER)]
    assert fresh_at(out) == [(275 + BLOCK, [BAD])]
    assert stage.bad_samples[BAD] == 275 + RECOVER - 263


def test_the_last_finite_value_is_held_and_the_input_left_as_it_is(data: np.ndarray) -> None:
    data[263:270, BAD] = np.nan
    data.flags.writeable = False
    out, _ = judge(data)
    got = np.concatenate([chunk.data for chunk in out])
    np.testing.assert_array_equal(got[263:270, BAD], data[262, BAD])
    np.testing.assert_array_equal(np.delete(got, np.s_[263:270], axis=0), np.delete(data, np.s_[263:270], axis=0))


def test_without_any_finite_value_yet_zero_is_held(data: np.ndarray) -> None:
    data[:60, BAD] = np.nan
    out, _ = judge(data)
    assert bad_spans(out) == [(0, 75 + RECOVER)]
    np.testing.assert_array_equal(np.concatenate([chunk.data for chunk in out])[:60, BAD], 0)


@pytest.mark.parametrize("seed", range(30))
def test_nothing_that_is_not_finite_ever_comes_out(seed: int) -> None:
    stream = faulty(2000, np.random.default_rng(seed))
    out, _ = judge(stream.data)
    assert all(np.isfinite(chunk.data).all() for chunk in out)
    np.testing.assert_array_equal(mask(out)[~np.isfinite(stream.data)], False)


def test_a_channel_that_flickers_at_the_amplitude_limit_does_not_flicker_in_the_mask(data: np.ndarray) -> None:
    for block in range(10, 40):  # 1400 to 1600 uV in turn, about the limit of 1500
        data[block * BLOCK : (block + 1) * BLOCK, BAD] = np.linspace(0, 1600 - 200 * (block % 2), BLOCK)
    out, _ = judge(data)
    assert bad_spans(out) == [(11 * BLOCK, 40 * BLOCK + RECOVER)]
    assert fresh_at(out) == [(41 * BLOCK, [BAD])]


def test_a_channel_that_flickers_at_the_flat_limit_does_not_flicker_in_the_mask(data: np.ndarray) -> None:
    data[250 : 250 + FLAT, BAD] = 0
    for block in range(15, 40):  # 0.4 to 0.9 uV in turn: not flat any more, not alive either
        data[block * BLOCK : (block + 1) * BLOCK, BAD] = np.linspace(0, 0.4 + 0.5 * (block % 2), BLOCK)
    assert bad_spans(judge(data)[0]) == [(15 * BLOCK, 40 * BLOCK + RECOVER)]


def test_a_fault_during_recovery_starts_the_recovery_anew(data: np.ndarray) -> None:
    data[263, BAD] = np.nan
    data[430, BAD] = np.nan
    out, _ = judge(data)
    assert bad_spans(out) == [(263, 450 + RECOVER)]
    assert fresh_at(out) == [(275 + BLOCK, [BAD]), (450 + BLOCK, [BAD])]


def test_a_second_fault_after_the_return_is_a_second_span(data: np.ndarray) -> None:
    data[263, BAD] = data[1000, BAD] = np.nan
    assert bad_spans(judge(data)[0]) == [(263, 275 + RECOVER), (1000, 1025 + RECOVER)]


def test_two_channels_have_faults_of_their_own(data: np.ndarray) -> None:
    data[263, 1] = data[300, 4] = np.nan
    good = mask(judge(data)[0])
    np.testing.assert_array_equal(np.flatnonzero(~good[:, 1]), np.arange(263, 275 + RECOVER))
    np.testing.assert_array_equal(np.flatnonzero(~good[:, 4]), np.arange(300, 325 + RECOVER))
    np.testing.assert_array_equal(np.delete(good, [1, 4], axis=1), True)


def test_filled_samples_keep_their_flag(data: np.ndarray) -> None:
    stage = Quality(QualitySettings())
    stage.open(StreamInfo(RATE, NAMES))
    out = stage.process(Chunk(data[:100])) + stage.process(Chunk(data[100:110], 100, filled=True))
    assert [(chunk.start, chunk.filled) for chunk in out] == [(0, False), (100, True)]


def test_quiet_eeg_of_coarse_resolution_is_not_at_a_rail(rng: np.random.Generator) -> None:
    data = np.round(rng.normal(0, 1.2, (5000, len(NAMES))))  # a bit is a microvolt: many samples share the extremes
    stage = Quality(QualitySettings())
    stage.open(StreamInfo(160.0, NAMES))
    stage.process(Chunk(data))
    assert stage.bad_share() == {}


def test_a_value_of_a_volt_is_lost_like_nan(rng: np.random.Generator) -> None:
    data = eeg(500, rng)
    data[200, 3] = 1e30
    stage = Quality(QualitySettings())
    stage.open(StreamInfo(250.0, NAMES))
    out = stage.process(Chunk(data))
    assert max(np.abs(piece.data).max() for piece in out) < 1e6
    assert out[1].start == 200
    assert not out[1].good[3]
