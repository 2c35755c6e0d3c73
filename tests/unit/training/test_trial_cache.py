"""Cleaned samples that folds share: kept once for all bands, up to a limit, and for nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from rtbrain.conditioning.filters import Band
from rtbrain.conditioning.quality import QualitySettings
from rtbrain.pipeline import Recipe
from rtbrain.tokenizing import tokenize, tokenize_cleaned
from rtbrain.training import trial_cache
from rtbrain.training.trial_cache import TrialCache
from tests.unit.training.corpus_trials import make_templates, make_trials, same


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    fresh: dict[str, object] = {}
    monkeypatch.setattr(trial_cache, "_cleaned", fresh)
    return fresh


def test_bands_share_what_is_kept_and_other_settings_do_not(tmp_path: Path, kept: dict[str, object]) -> None:
    (trial,) = make_trials(tmp_path / "eeg", 1)
    cache, templates = TrialCache(tmp_path / "cache", {trial.name: ("abc",)}), make_templates()
    recipe = Recipe.from_dict(templates.recipe)
    first = cache.cleaned(trial, recipe)
    assert same(tokenize_cleaned(first, templates), tokenize(trial.open(), templates))
    assert cache.cleaned(trial, replace(recipe, bands=(Band("alpha", 8, 13),))) is first
    assert cache.cleaned(trial, replace(recipe, quality=QualitySettings(flat_ms=600))) is not first
    assert TrialCache(cache.folder, {trial.name: ("other",)}).cleaned(trial, recipe) is not first
    assert len(kept) == 3


def test_what_does_not_fit_is_cleaned_again(
    tmp_path: Path, kept: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make_trials(tmp_path / "eeg", 2)
    cache = TrialCache(tmp_path / "cache", {one.name: ("1",), two.name: ("2",)})
    recipe = Recipe.from_dict(make_templates().recipe)
    monkeypatch.setattr(trial_cache, "MOST_BYTES", 1.5 * cache.cleaned(one, recipe).n_bytes)
    assert cache.cleaned(two, recipe) is not cache.cleaned(two, recipe)
    assert cache.cleaned(one, recipe) is cache.cleaned(one, recipe)
    assert len(kept) == 1
