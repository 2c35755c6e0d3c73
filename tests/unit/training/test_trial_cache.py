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


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> trial_cache._Memory:
    fresh = trial_cache._Memory()
    monkeypatch.setattr(trial_cache, "_memory", fresh)
    return fresh


def test_bands_share_what_is_kept_and_other_settings_do_not(tmp_path: Path, memory: trial_cache._Memory) -> None:
    (trial,) = make_trials(tmp_path / "eeg", 1)
    cache, templates = TrialCache(tmp_path / "cache", {trial.name: ("abc",)}), make_templates()
    recipe = Recipe.from_dict(templates.recipe)
    first = cache.cleaned(trial, recipe)
    assert first is not None
    for _ in range(2):  # it serves many templates, and none may change it
        assert same(tokenize_cleaned(first, templates), tokenize(trial.open(), templates))
    assert cache.cleaned(trial, replace(recipe, bands=(Band("alpha", 8, 13),))) is first
    assert cache.cleaned(trial, replace(recipe, quality=QualitySettings(flat_ms=600))) is not first
    assert len(memory.trials) == 2
    assert TrialCache(cache.folder, {trial.name: ("other",)}).cleaned(trial, recipe) is not first
    assert len(memory.trials) == 1, "another set takes the place of the one before"


def test_what_does_not_fit_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = make_trials(tmp_path / "eeg", 2)
    cache = TrialCache(tmp_path / "cache", {one.name: ("1",), two.name: ("2",)})
    recipe = Recipe.from_dict(make_templates().recipe)
    first = cache.cleaned(one, recipe)
    assert first is not None
    monkeypatch.setattr(trial_cache, "MOST_BYTES", 1.5 * first.n_bytes)
    assert cache.cleaned(two, recipe) is None
    assert cache.cleaned(one, recipe) is first
