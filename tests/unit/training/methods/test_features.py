"""Features of a trial: what they count, what falls out, and what a short look sees."""

import numpy as np
import pytest

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.conditioning.filters import Band
from rtbrain.errors import ConfigError
from rtbrain.pipeline import HarmoniseSettings, Recipe
from rtbrain.training.band_powers import Powers, band_powers
from rtbrain.training.methods import METHODS, TokenNeed, methods_named, with_bands
from rtbrain.training.methods.band_power import relative_powers
from rtbrain.training.methods.token_features import MicrostateStatistics, Occupancy, PooledTokens

from .examples import ArraySource, louder, tokens_of, with_powers, with_tokens

NEED = TokenNeed()
ROWS = [(0, 0, 10), (1, 1, 20), (0, 1, 30), (1, 0, 20), (0, 0, 20), (1, 1, 20)]
CHANNELS = ("Fz", "Cz", "Pz", "Oz")


def edges(recipe: Recipe) -> list[tuple[float, float]]:
    return [(band.low_hz, band.high_hz) for band in recipe.bands]


def test_several_bands_fill_the_recipes_own() -> None:
    harmonised = Recipe(bands=(Band("broad", 3, 26),), harmonise=HarmoniseSettings(), warmup_ms=10_000)
    assert edges(with_bands(harmonised)) == [(3, 8), (8, 13), (13, 20), (20, 26)]
    assert edges(with_bands(Recipe())) == [(1, 4), (4, 8), (8, 13), (13, 20), (20, 30), (30, 40)]
    assert edges(with_bands(Recipe(bands=(Band("alpha", 8, 10),)))) == [(8, 10)]
    own = Recipe(bands=(Band("a", 4, 8), Band("b", 8, 30)))
    assert with_bands(own) is own


def test_methods_are_found_by_name() -> None:
    assert [method.name for method in methods_named(["pooled-tokens", "majority"])] == ["majority", "pooled-tokens"]
    assert [method.name for method in methods_named()][-2:] == ["pooled-tokens", "rtbrain"]
    with pytest.raises(
        ConfigError, match=r"no method is called 'band-powr'.*; there are majority, nuisance, band-power"
    ):
        methods_named(["band-powr"])
    assert all(name == method.name for name, method in METHODS.items())


class TestPooledTokens:
    def test_shares_levels_correlations_and_durations(self) -> None:
        power = np.array([1.0, 9.0, 4.0, 9.0, 1.0, 9.0])
        found = PooledTokens(NEED)(with_tokens(tokens_of(ROWS, power), (2, 2)), None)
        levels, rates, first, second = found[:2], found[2:4], found[4:12], found[12:20]
        level = np.array([0.5 * np.log(4), np.log(9)])
        assert levels == pytest.approx(level - level.mean())
        assert rates == pytest.approx(np.log([3 / 0.6, 3 / 0.6]))
        assert first[:2] == pytest.approx([0.5, 0.5])
        assert first[2:4] == pytest.approx(np.log([1, 4]) - level.mean())
        assert first[4:6] == pytest.approx([0.5, 0.6])
        assert first[6:8] == pytest.approx([np.log([0.1, 0.2]).mean(), np.log(0.3)])
        assert second[:2] == pytest.approx([1 / 3, 2 / 3])

    def test_gain_falls_out(self) -> None:
        tokens = tokens_of(ROWS, np.arange(1.0, 7))
        one, other = (PooledTokens(NEED)(with_tokens(each, (2, 2)), None) for each in (tokens, louder(tokens, 7)))
        assert other == pytest.approx(one)

    def test_a_state_that_does_not_occur_is_missing_and_not_zero(self) -> None:
        found = PooledTokens(NEED)(with_tokens(tokens_of(ROWS), (3, 2)), None)
        assert np.isnan(found[[9, 12, 15]]).all()
        assert found[6] == 0.0
        assert np.isnan(found).sum() == 3

    def test_unlabelled_time_counts_for_nothing(self) -> None:
        with_gap = tokens_of([*ROWS, (0, -1, 500)])
        one, other = (PooledTokens(NEED)(with_tokens(each, (2, 2)), None) for each in (tokens_of(ROWS), with_gap))
        assert other == pytest.approx(one)


def test_a_short_look_sees_what_had_closed() -> None:
    shown = with_tokens(tokens_of(ROWS), (2, 2))
    assert Occupancy(NEED)(shown, None) == pytest.approx([0.5, 0.5, 1 / 3, 2 / 3])
    assert Occupancy(NEED)(shown, 0.4) == pytest.approx([0.25, 0.75, 0.5, 0.5])
    assert Occupancy(NEED)(shown, 0.15)[:2] == pytest.approx([1, 0])
    assert np.isnan(Occupancy(NEED)(shown, 0.05)).all()
    assert PooledTokens(NEED)(shown, 0.05).shape == PooledTokens(NEED)(shown, None).shape
    assert np.isnan(PooledTokens(NEED)(shown, 0.05)).all()


def test_microstate_statistics_are_those_of_the_field() -> None:
    shown = with_tokens(tokens_of([(0, 0, 10), (0, 1, 30), (0, 0, 20), (0, 1, 40)]), (3,))
    found = MicrostateStatistics(NEED)(shown, None)
    assert found[:3] == pytest.approx([0.3, 0.7, 0])
    assert found[3:6] == pytest.approx([2, 2, 0])
    assert found[6:8] == pytest.approx([150, 350])
    assert found[9:13] == pytest.approx([1, 0, 1, 0])
    assert np.isnan(found[[8, 13, 14]]).all()


class TestBandPower:
    RECIPE = Recipe(
        channels=ChannelSettings(names=CHANNELS), bands=(Band("slow", 4, 8, 3), Band("fast", 8, 13, 3)), warmup_ms=2000
    )

    def test_a_sine_is_measured_in_its_band(self) -> None:
        t = np.arange(2500) / 250
        data = np.outer(np.sin(2 * np.pi * 10 * t), [60.0, -20, -20, -20])
        found = band_powers(ArraySource(data, CHANNELS), self.RECIPE)
        assert found.squares.shape == (8, 2, 4)
        assert found.mean()[1] == pytest.approx([1800, 200, 200, 200], rel=0.05)
        assert (found.mean()[0] < 0.1 * found.mean()[1]).all()
        assert found.samples[:, 1].sum(axis=0) == pytest.approx([2000] * 4)

    def test_seconds_count_from_the_warm_up(self, rng: np.random.Generator) -> None:
        data = rng.normal(0, 10, (2500, 4))
        data[1500:] *= 10
        found = band_powers(ArraySource(data, CHANNELS), self.RECIPE)
        assert (found.mean(4) * 4 < found.mean(5)).all(), "it grows loud six seconds after the start"
        assert found.mean(100) == pytest.approx(found.mean())

    def test_gain_falls_out_and_a_dead_channel_is_missing(self, rng: np.random.Generator) -> None:
        squares = rng.uniform(1, 2, (5, 3, 4))
        samples = np.ones_like(squares)
        squares[:, :, 2] = samples[:, :, 2] = 0
        one = relative_powers(with_powers(Powers(squares, samples)), None).reshape(3, 4)
        assert relative_powers(with_powers(Powers(9 * squares, samples)), None) == pytest.approx(
            one.ravel(), nan_ok=True
        )
        assert np.isnan(one[:, 2]).all()
        assert np.isfinite(one[:, [0, 1, 3]]).all()
        assert one[:, 0].sum() == pytest.approx(0)
