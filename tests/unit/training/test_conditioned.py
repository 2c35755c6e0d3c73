"""The conditioned EEG that networks on samples read: thinned out as far as the band allows."""

from dataclasses import replace

import pytest

from rtbrain.conditioning.filters import Band
from rtbrain.pipeline import Recipe
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.training.conditioned import conditioned


@pytest.mark.parametrize(
    ("rate_hz", "high_hz", "kept_hz"), [(250, 40, 125), (256, 40, 128), (256, 26, 128), (200, 40, 200), (200, 30, 100)]
)
def test_nothing_that_the_band_lets_through_folds_back_into_it(rate_hz: float, high_hz: float, kept_hz: float) -> None:
    source = Synthetic(SyntheticSettings(duration_s=4, rate_hz=rate_hz))
    recipe = replace(Recipe(), bands=(Band("broad", 1, high_hz),))
    recipe = replace(recipe, channels=replace(recipe.channels, names=source.info.channels))
    found = conditioned(source, recipe)
    assert found.rate_hz == kept_hz
    assert len(found.data) == pytest.approx(kept_hz * (4 - recipe.warmup_ms / 1000), abs=2)
