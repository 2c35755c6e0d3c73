"""Global field power, its running level and its peaks, against plain definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import find_peaks

from rtbrain.conditioning.reference import average_reference
from rtbrain.microstates.gfp import PeakFinder, RunningLevel, global_field_power


def plain_peaks(x: list[float], min_distance: int) -> list[int]:
    peaks: list[int] = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] >= x[i + 1] and (not peaks or i - peaks[-1] >= min_distance):
            peaks.append(i)
    return peaks


@given(
    x=st.lists(st.integers(0, 4), max_size=60),
    min_distance=st.integers(0, 6),
    start=st.integers(0, 1000),
    cuts=st.lists(st.integers(0, 60), max_size=8),
)
def test_peaks_are_those_of_a_plain_loop_however_cut(
    x: list[int], min_distance: int, start: int, cuts: list[int]
) -> None:
    finder = PeakFinder(min_distance, start)
    found = np.concatenate([finder(piece) for piece in np.split(np.array(x, float), sorted(cuts))])
    assert (found - start).tolist() == plain_peaks(x, min_distance)


def test_peaks_without_plateaus_and_distance_are_scipys(rng: np.random.Generator) -> None:
    x = rng.random(5000)
    np.testing.assert_array_equal(PeakFinder(0, 0)(x), find_peaks(x)[0])


def test_of_two_close_peaks_the_earlier_one_stays_even_if_lower() -> None:
    x = np.array([0.0, 1, 0, 9, 0, 0, 2, 0])
    assert PeakFinder(3, 0)(x).tolist() == [1, 6]


def test_the_very_first_peak_is_kept() -> None:
    assert PeakFinder(50, 700)(np.array([0.0, 1, 0])).tolist() == [701]


def test_gfp_is_the_spatial_standard_deviation(rng: np.random.Generator) -> None:
    data = average_reference(rng.standard_normal((100, 19)))
    np.testing.assert_allclose(global_field_power(data), data.std(axis=1), rtol=1e-12)


def test_gfp_of_good_channels_only_counts_those(rng: np.random.Generator) -> None:
    good = np.arange(19) % 5 > 0
    data = average_reference(rng.standard_normal((100, 19)), good)
    np.testing.assert_allclose(global_field_power(data, int(good.sum())), data[:, good].std(axis=1), rtol=1e-12)


def test_gfp_without_channels_or_signal_is_zero() -> None:
    np.testing.assert_array_equal(global_field_power(np.zeros((3, 4))), 0)
    np.testing.assert_array_equal(global_field_power(np.zeros((3, 4)), 0), 0)


@pytest.mark.parametrize("cuts", [[], [1, 1, 50, 51], list(range(1, 600, 7))])
def test_the_level_is_the_mean_at_first_and_exponentially_weighted_later(
    rng: np.random.Generator, cuts: list[int]
) -> None:
    x = rng.uniform(1, 9, 600)
    level = RunningLevel(20.0)
    got = np.concatenate([level(piece) for piece in np.split(x, cuts)])
    expected = [x[: n + 1].mean() for n in range(20)]
    for value in x[20:]:
        expected.append(0.95 * expected[-1] + 0.05 * value)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    np.testing.assert_array_equal(got, RunningLevel(20.0)(x))  # to the last bit
    assert level.value == got[-1]


def test_the_level_of_a_constant_is_that_constant_from_the_start() -> None:
    np.testing.assert_allclose(RunningLevel(7500.0)(np.full(1000, 6.5)), 6.5, rtol=1e-12)
