"""What a report shows of the tokens themselves: templates, how many states explain what, statistics by class."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rtbrain.fitting import pooled_peaks
from rtbrain.messages import FloatArray
from rtbrain.microstates.fit import FitSettings
from rtbrain.microstates.selection import recommend, scan
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe
from rtbrain.sources.chunking import Source
from rtbrain.tokenizing import Tokenized
from rtbrain.training.evaluate_fold import PEAKS
from rtbrain.training.trials import Trial

SCANNED = (2, 3, 4, 5, 6, 8, 10, 12, 16)
"""Numbers of states whose GEV and CV are drawn."""
MOST_PEAKS = 6000
STARTS = 3
"""Of the scan: it is for the eye, and decides nothing."""
MEASURES = {
    "coverage": "share of time",
    "occurrence_hz": "runs per second",
    "duration_ms": "mean duration in ms",
}


@dataclass(frozen=True)
class Spread:
    """Mean over people and its 95 % interval's half width, each (states,)."""

    mean: FloatArray
    half: FloatArray


@dataclass(frozen=True)
class Exhibit:
    """Templates and tokens of some people."""

    name: str
    about: str
    """Whose they are."""
    templates: Templates
    """With a scan in the report of each band."""
    by_class: Mapping[str, Mapping[str, Mapping[str, Spread]]]
    """Band, measure, class."""
    tokens_per_s: Mapping[str, float]
    """By class."""


def with_scan(
    templates: Templates,
    trials: Sequence[Trial],
    read: Callable[[str, Source, Recipe, int], FloatArray],
    seed: int = 0,
) -> Templates:
    """Return templates whose report holds GEV and CV against the number of states, of the same people's peaks."""
    recipe = Recipe.from_dict(templates.recipe, "the templates' recipe")
    sources = [(trial.name, trial.open()) for trial in trials]
    people = {trial.name: trial.subject for trial in trials}
    settings = replace(PEAKS, per_recording=max(20, min(PEAKS.per_recording, MOST_PEAKS // len(set(people.values())))))
    bands: list[dict[str, Any]] = []
    for number, known in enumerate(templates.report["bands"]):
        peaks, _ = pooled_peaks(sources, recipe, number, settings, seed, subjects=people, read=read)
        counts = [k for k in SCANNED if k < min(len(peaks) // 10, 0.6 * len(templates.channels))]
        found = scan(peaks, counts, FitSettings(2, n_starts=STARTS, seed=seed))
        advice = recommend(found)
        curve = {
            "n_states": list(found),
            "gev": [each.gev for each in found.values()],
            "cv": [each.cv for each in found.values()],
            "recommended": advice.n_states,
            "reason": advice.reason,
        }
        bands.append({**known, "scan": curve})
    return replace(templates, report={**templates.report, "bands": bands})


def exhibit(
    name: str,
    about: str,
    templates: Templates,
    results: Sequence[tuple[str, int, Tokenized]],
    classes: Sequence[str],
) -> Exhibit:
    """Put together what a report shows of tokens.

    Parameters
    ----------
    name, about : str
        What they are called, and whose they are.
    templates : Templates
        By which the tokens were made.
    results : sequence of (person, class, Tokenized)
        A trial each.
    classes : sequence of str
        Their names.
    """
    by_class: dict[str, dict[str, dict[str, Spread]]] = {}
    for band in results[0][2].statistics:
        by_class[band] = {
            measure: {
                name: _spread([(who, getattr(own.statistics[band], measure)) for who, k, own in results if k == label])
                for label, name in enumerate(classes)
                if any(k == label for _, k, _ in results)
            }
            for measure in MEASURES
        }
    rates = {
        name: float(np.mean([sum(s.tokens_per_s for s in own.statistics.values()) for _, k, own in results if k == i]))
        for i, name in enumerate(classes)
        if any(k == i for _, k, _ in results)
    }
    return Exhibit(name, about, templates, by_class, rates)


def _spread(values: Sequence[tuple[str, FloatArray]]) -> Spread:
    """Average within people, then over them."""
    people = sorted({who for who, _ in values})
    each = np.array([np.mean([value for who, value in values if who == person], axis=0) for person in people])
    if len(each) < 2:
        return Spread(each.mean(axis=0), np.full(each.shape[1], np.nan))
    from scipy.stats import t as student_t

    half = float(student_t.ppf(0.975, len(each) - 1)) * each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return Spread(each.mean(axis=0), half)
