"""Microstate statistics of simulated people, by rtbrain's own chain, lie where those of real people do."""

import numpy as np
import pytest

from rtbrain.conditioning.filters import Band
from rtbrain.fitting import fit_sources, peak_maps
from rtbrain.microstates.fit import FitSettings
from rtbrain.pipeline import Recipe
from rtbrain.simulation import Confound, Design, World
from rtbrain.sources.electrodes import TEN_TEN_64, TEN_TWENTY_19
from rtbrain.tokenizing import tokenize

OCCURRENCE_HZ = {4: (2.0, 5.0), 6: (1.5, 3.5)}
COVERAGE = {4: (0.15, 0.35), 6: (0.08, 0.25)}
SECONDS = 40.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_states", "channels", "rate_hz", "exported"),
    [
        (4, TEN_TWENTY_19, 256.0, None),
        (6, TEN_TEN_64, 500.0, None),
        (4, TEN_TEN_64, 200.0, None),
        (4, TEN_TEN_64[::2], 128.0, Confound(high_pass_hz=4.0, low_pass_hz=45.0)),
    ],
)
def test_statistics_lie_in_the_ranges_of_the_literature(
    n_states: int, channels: tuple[str, ...], rate_hz: float, exported: Confound | None
) -> None:
    world = World(Design(n_states=n_states))
    sources = [
        (f"person {i}", world.trial(i, i % 2, 0, channels, rate_hz, SECONDS, exported).source()) for i in range(6)
    ]
    recipe = Recipe(bands=(Band("smooth", 2.0, 20.0),), min_duration_ms=35.0)
    templates = fit_sources(sources, recipe, FitSettings(n_states, n_starts=20))
    assert 0.64 < templates.report["bands"][0]["gev"] < 0.84
    results = [tokenize(source, templates) for _, source in sources]
    found = [result.statistics["smooth"] for result in results]

    def within(values: list[np.ndarray], low: float, high: float) -> None:
        mean = np.mean(values, axis=0)  # over people
        assert low < mean.min()
        assert mean.max() < high

    within([each.duration_ms for each in found], 60.0, 90.0)
    within([each.occurrence_hz for each in found], *OCCURRENCE_HZ[n_states])
    within([each.coverage for each in found], *COVERAGE[n_states])
    for each in found:
        assert each.duration_ms.min() > 40.0
        assert each.duration_ms.max() < 120.0
        assert 10.0 < each.tokens_per_s < 16.0
        assert 0.50 < each.gev.sum() < 0.80
    for name, source in sources:
        # Where an electrode has lost contact no peak is taken: judge by the others.
        result = results[int(name.split()[1])]
        if not result.bad_share:
            peaks = len(peak_maps(source, Recipe.from_dict(templates.recipe))) / (SECONDS - 1.0)
            assert 15.0 < peaks < 25.0
