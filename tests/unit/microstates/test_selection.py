import warnings
from dataclasses import replace

import numpy as np
import pytest

from rtbrain.errors import FitError
from rtbrain.messages import UNLABELLED, FloatArray
from rtbrain.microstates.fit import Fit, FitSettings
from rtbrain.microstates.selection import (
    cross_validation,
    gev,
    gev_per_state,
    recommend,
    residual_variance,
    scan,
)
from rtbrain.microstates.templates import referenced


def example(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    maps = rng.normal(size=(3, 12))
    return rng.normal(size=(200, 3)) @ maps + rng.normal(size=(200, 12)), maps


def test_gev_is_its_definition(rng: np.random.Generator) -> None:
    data, maps = example(rng)
    gfp = data.std(axis=1)
    corr = np.array([[np.corrcoef(row, one)[0, 1] for one in maps] for row in data])
    best = np.abs(corr).max(axis=1)
    assert gev(data, maps) == pytest.approx(((gfp * best) ** 2).sum() / (gfp**2).sum(), rel=1e-12)


def test_gev_equals_pycrostates(rng: np.random.Generator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its imports warn
        from pycrostates.utils import _corr_vectors
    data, maps = example(rng)
    data -= data.mean(axis=1, keepdims=True)
    maps = referenced(maps)
    labels = np.abs(maps @ data.T).argmax(axis=0)
    corr = _corr_vectors(data.T, maps[labels].T)
    assert gev(data, maps) == pytest.approx(np.sum((data.T * corr) ** 2) / np.sum(data**2), rel=1e-12)


def test_parts_of_gev_follow_the_labels(rng: np.random.Generator) -> None:
    data, maps = example(rng)
    labels = rng.integers(3, size=200)
    parts = gev_per_state(data, maps, labels)
    assert parts.sum() == pytest.approx(gev(data, maps, labels))
    assert gev(data, maps, labels) < gev(data, maps)
    hidden = np.where(labels == 1, UNLABELLED, labels)
    np.testing.assert_allclose(gev_per_state(data, maps, hidden), parts * [1, 0, 1])


def test_gev_of_flat_data_is_zero() -> None:
    assert gev(np.full((5, 4), 2.0), np.eye(2, 4)) == 0


def test_residual_and_cv_are_the_toolbox_formulas(rng: np.random.Generator) -> None:
    data, maps = example(rng)
    data = data - data.mean(axis=1, keepdims=True)
    unit = referenced(maps)
    (n, c), k = data.shape, len(maps)
    # straight from FACTS 5.1
    sig2 = ((data**2).sum() - ((data @ unit.T) ** 2).max(axis=1).sum()) / (n * (c - 1))
    cv = sig2 * ((c - 1) / (c - 1 - k)) ** 2
    assert residual_variance(data, maps) == pytest.approx(sig2, rel=1e-12)
    assert cross_validation(residual_variance(data, maps), c, k) == pytest.approx(cv, rel=1e-12)
    r2 = 1 - sig2 / ((data**2).sum() / (n * (c - 1)))
    assert gev(data, maps) == pytest.approx(r2, rel=1e-12)


def test_cv_is_refused_where_it_is_undefined() -> None:
    with pytest.raises(ValueError, match="fewer than 9 states, got 9"):
        cross_validation(1.0, 10, 9)


def test_scan_fits_each_k_once_with_rising_gev(rng: np.random.Generator) -> None:
    data, _ = example(rng)
    seen: list[float] = []
    fits = scan(data, [4, 2, 3, 2], FitSettings(99, n_starts=8), seen.append)
    assert list(fits) == [2, 3, 4]
    assert [len(one.maps) for one in fits.values()] == [2, 3, 4]
    assert fits[2].gev < fits[3].gev < fits[4].gev
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)
    with pytest.raises(FitError, match="at least one"):
        scan(data, [], FitSettings(2))


def fits(cv: list[float], explained: list[float], first: int = 2) -> dict[int, Fit]:
    none = Fit(np.empty((0, 0)), np.empty(0, np.int64), 0.0, np.empty(0), 0.0, 0.0, 1, 1)
    pairs = enumerate(zip(cv, explained, strict=True), first)
    return {k: replace(none, cv=c, gev=g) for k, (c, g) in pairs}


CURVE = [0.40, 0.55, 0.66, 0.68, 0.70, 0.71]


def test_pronounced_minimum_of_cv_decides() -> None:
    chosen = recommend(fits([1.2, 1.1, 1.05, 1.0, 1.04, 1.1], CURVE))
    assert chosen.n_states == 5
    assert "CV has its minimum at K = 5" in chosen.reason
    assert "10.0%" in chosen.reason


@pytest.mark.parametrize(
    ("cv", "why"),
    [
        ([1.5, 1.4, 1.3, 1.2, 1.1, 1.0], "edge of the scanned range (K = 7)"),
        ([1.0, 1.1, 1.2, 1.3, 1.4, 1.5], "edge of the scanned range (K = 2)"),
        ([1.2, 1.1, 1.05, 1.0, 1.001, 1.002], "too flat"),
    ],
)
def test_else_the_knee_of_gev_decides(cv: list[float], why: str) -> None:
    chosen = recommend(fits(cv, CURVE))
    assert chosen.n_states == 4
    assert why in chosen.reason
    assert "66.0%" in chosen.reason


def test_too_few_k_for_a_curve() -> None:
    assert recommend(fits([1.0, 0.9], [0.5, 0.6])).n_states == 3
    assert recommend(fits([1.0], [0.5])).n_states == 2


def test_clear_clusters_are_counted_right(rng: np.random.Generator) -> None:
    maps = referenced(rng.normal(size=(4, 19)))
    peaks = rng.choice([-1, 1], size=(600, 1)) * maps[rng.integers(4, size=600)]
    peaks = peaks + 0.2 * rng.normal(size=(600, 19)) / np.sqrt(19)
    assert recommend(scan(peaks, range(2, 7), FitSettings(2, n_starts=8))).n_states == 4
