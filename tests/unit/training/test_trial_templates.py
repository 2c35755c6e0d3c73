"""Templates of trials: persons weigh the same, however many trials they have."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rtbrain.errors import ConfigError, FitError
from rtbrain.fitting import PeakSettings
from rtbrain.microstates.fit import FitSettings
from rtbrain.pipeline import Recipe
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.training.trial_templates import fit_trials, of_subjects
from rtbrain.training.trials import Trial

SETTINGS = FitSettings(4, n_starts=5)


def trial(subject: str, number: int, seconds: float = 10.0) -> Trial:
    opened = partial(Synthetic, SyntheticSettings(duration_s=seconds, seed=number))
    return Trial(subject, f"{subject}_{number}", (Path("none"),), seconds, opened)


@pytest.fixture
def trials() -> list[Trial]:
    return [trial("a", 1), trial("b", 2), trial("a", 3), trial("a", 4)]


def test_each_subject_gives_the_same_number_of_peaks(trials):
    report = fit_trials(trials, Recipe(), SETTINGS).report
    (band,) = report["bands"]
    ones, others = band["peaks_found"]
    assert ones > 2 * others  # three trials against one
    assert band["peaks_per_recording"] == others
    assert report["subjects"] == ["a", "b"]
    assert report["recordings"] == ["a_1", "b_2", "a_3", "a_4"]


def test_a_trial_without_peaks_counts_by_what_its_subject_has_elsewhere(trials):
    nothing = trial("a", 5, seconds=0.5)  # shorter than the warm-up
    (band,) = fit_trials([*trials, nothing], Recipe(), SETTINGS).report["bands"]
    assert band["peaks_found"] == fit_trials(trials, Recipe(), SETTINGS).report["bands"][0]["peaks_found"]
    with pytest.raises(FitError, match=r"c: only 0 usable GFP peaks in 2 recordings.*leave this subject out"):
        fit_trials([*trials, replace(nothing, subject="c"), trial("c", 6, 0.5)], Recipe(), SETTINGS)


def test_no_more_peaks_than_asked_for_are_drawn_and_a_seed_repeats_them(trials):
    first, again = (
        fit_trials(trials, Recipe(), SETTINGS, peak_settings=PeakSettings(per_recording=100)) for _ in range(2)
    )
    assert first.report == again.report
    assert first.report["bands"][0]["peaks_per_recording"] == 100


def test_subjects_are_chosen_by_name(trials):
    assert [each.name for each in of_subjects(trials, only=["b"])] == ["b_2"]
    assert [each.name for each in of_subjects(trials, but=["b"])] == ["a_1", "a_3", "a_4"]
    assert of_subjects(trials) == trials
    with pytest.raises(ConfigError, match="no trial is of c; the subjects are a, b"):
        of_subjects(trials, but=["c"])
    with pytest.raises(ConfigError, match="no subject is left"):
        of_subjects(trials, but=["a", "b"])
