"""Microstate templates of a data set's trials: persons weigh the same, and the report says whose they are."""

from collections.abc import Collection, Sequence
from typing import Any

from rtbrain.errors import ConfigError
from rtbrain.fitting import about, fit_sources
from rtbrain.microstates.fit import FitSettings
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe
from rtbrain.sources.chunking import Source
from rtbrain.training.trials import Trial


def fit_trials(trials: Sequence[Trial], recipe: Recipe, settings: FitSettings, **options: Any) -> Templates:
    """Fit templates to trials, an equal share of peaks from each subject.

    `options` are those of `rtbrain.fitting.fit_sources`. The report lists `subjects` and, as `recordings`, the trials:
    hand either on to `rtbrain.training.folds.audit` as `fitted_on`.
    """
    sources: list[tuple[str, Source]] = []
    for trial in trials:
        with about(trial.name):
            sources.append((trial.name, trial.open()))
    return fit_sources(sources, recipe, settings, subjects={trial.name: trial.subject for trial in trials}, **options)


def of_subjects(trials: Sequence[Trial], only: Collection[str] = (), but: Collection[str] = ()) -> list[Trial]:
    """Return the trials of these subjects (of all if none is named) but for those of others."""
    known = sorted({trial.subject for trial in trials})
    if unknown := sorted({*only, *but} - set(known)):
        raise ConfigError(f"no trial is of {', '.join(unknown)}; the subjects are {', '.join(known)}")
    kept = [trial for trial in trials if (not only or trial.subject in only) and trial.subject not in but]
    if not kept:
        raise ConfigError("no subject is left; name fewer to leave out")
    return kept
