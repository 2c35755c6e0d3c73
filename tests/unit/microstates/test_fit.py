from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from rtbrain.errors import FitError
from rtbrain.messages import FloatArray, IntArray
from rtbrain.microstates import aahc, search
from rtbrain.microstates.explained import gev, gev_per_state
from rtbrain.microstates.fit import FitSettings, canonical, fit
from rtbrain.microstates.polish import polish_modified
from rtbrain.microstates.templates import referenced

Method = Literal["modkmeans", "kmeans", "aahc"]
METHODS: list[Method] = ["modkmeans", "kmeans", "aahc"]


def mixture(
    rng: np.random.Generator, n: int = 800, n_channels: int = 19, n_states: int = 4, noise: float = 0.3
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Peaks in microvolts that each hold one of few maps, in either polarity; the maps; which one."""
    maps = referenced(rng.normal(size=(n_states, n_channels)))
    state = rng.integers(n_states, size=n)
    size = rng.lognormal(0, 0.4, size=n) * rng.choice([-1, 1], size=n)
    peaks = size[:, None] * maps[state] + noise * rng.normal(size=(n, n_channels)) / np.sqrt(n_channels)
    return 30 * peaks, maps, state


def paired(found: FloatArray, true: FloatArray) -> tuple[FloatArray, IntArray]:
    """|Correlation| of each true map with the found map that it pairs up with, and which that is."""
    corr = np.abs(found @ true.T)
    rows, columns = linear_sum_assignment(-corr)
    order = rows[np.argsort(columns)]
    return corr[order, np.arange(len(true))], order


@pytest.mark.parametrize("method", METHODS)
def test_recovers_known_maps_and_labels(method: Method, rng: np.random.Generator) -> None:
    peaks, maps, state = mixture(rng)
    result = fit(peaks, FitSettings(4, method=method, n_starts=20))
    corr, order = paired(result.maps, maps)
    assert corr.min() > 0.99
    assert (result.labels == order[state]).mean() > 0.98


def test_modified_kmeans_finds_the_best_partition_of_a_tiny_set(rng: np.random.Generator) -> None:
    peaks = rng.normal(size=(9, 6))
    peaks -= peaks.mean(axis=1, keepdims=True)
    best = 0.0
    for code in range(2**8):  # every way to part 9 peaks into two states
        first = np.array([code >> i & 1 for i in range(8)] + [0], bool)
        parts = [peaks[first], peaks[~first]]
        best = max(best, sum(np.linalg.svd(part, compute_uv=False)[0] ** 2 for part in parts if len(part)))
    result = fit(peaks, FitSettings(2, n_starts=20))
    assert result.gev == pytest.approx(best / (peaks**2).sum(), abs=1e-12)


def test_one_state_is_the_leading_eigenvector(rng: np.random.Generator) -> None:
    peaks, _, _ = mixture(rng)
    centred = peaks - peaks.mean(axis=1, keepdims=True)
    leading = np.linalg.svd(centred, full_matrices=False)[2][0]
    result = fit(peaks, FitSettings(1, n_starts=2))
    assert abs(result.maps[0] @ leading) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_maps_are_canonical(method: Method, rng: np.random.Generator) -> None:
    peaks, _, _ = mixture(rng)
    result = fit(peaks, FitSettings(4, method=method, n_starts=8))
    np.testing.assert_allclose(np.linalg.norm(result.maps, axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(result.maps.mean(axis=1), 0, atol=1e-12)
    assert (result.maps.max(axis=1) >= -result.maps.min(axis=1)).all()
    assert (np.diff(result.gev_per_state) <= 0).all()
    assert result.maps.dtype == np.float64
    assert result.labels.dtype == np.int64


def test_canonical_undoes_any_sign_order_and_scale(rng: np.random.Generator) -> None:
    peaks, maps, _ = mixture(rng)
    changed = maps[[2, 0, 3, 1]] * np.array([-1.0, 3.0, -0.1, 1.0])[:, None]
    np.testing.assert_allclose(canonical(peaks, changed), canonical(peaks, maps), atol=1e-12)


def test_sign_of_a_symmetric_map_survives_rounding(rng: np.random.Generator) -> None:
    dipole = np.array([[1.0, 0.2, -0.2, -1.0]])
    peaks = rng.normal(size=(20, 1)) * dipole
    for nudge in (1e-12, -1e-12):
        assert canonical(peaks, dipole + np.array([0, 0, nudge, -nudge]))[0, 0] > 0


@pytest.mark.parametrize("method", METHODS)
def test_polarity_and_order_of_peaks_do_not_matter(
    method: Method, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More peaks than a subset holds, and no clear clusters: equal maps can only come from equal choices.
    monkeypatch.setattr("rtbrain.microstates.search.SUBSET", 300)
    monkeypatch.setattr("rtbrain.microstates.fit.MAX_PEAKS", 300)
    peaks = rng.normal(size=(700, 8))
    settings = FitSettings(3, method=method, n_starts=4)
    before = fit(peaks, settings)
    order = rng.permutation(len(peaks))
    after = fit((peaks * rng.choice([-1, 1], size=(len(peaks), 1)))[order], settings)
    np.testing.assert_allclose(after.maps, before.maps, atol=1e-9)
    np.testing.assert_array_equal(after.labels, before.labels[order])


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_gives_the_same_bits_and_input_stays_as_it_was(method: Method, rng: np.random.Generator) -> None:
    peaks = rng.normal(size=(500, 12))
    given = peaks.copy()
    first, second = (fit(peaks, FitSettings(4, method=method, n_starts=8, seed=7)) for _ in range(2))
    np.testing.assert_array_equal(first.maps, second.maps)
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.gev == second.gev
    np.testing.assert_array_equal(peaks, given)


def test_seed_is_used(rng: np.random.Generator) -> None:
    peaks = rng.normal(size=(500, 12))
    few = [fit(peaks, FitSettings(6, n_starts=1, seed=seed)).gev for seed in range(4)]
    assert len(set(few)) > 1


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_unit_of_the_peaks_does_not_matter(scale: float, rng: np.random.Generator) -> None:
    peaks, _, _ = mixture(rng, n=300)
    settings = FitSettings(4, n_starts=8)
    plain, scaled = fit(peaks, settings), fit(scale * peaks, settings)
    np.testing.assert_allclose(scaled.maps, plain.maps, atol=1e-9)
    assert scaled.residual == pytest.approx(scale**2 * plain.residual, rel=1e-9)


def test_average_reference_is_taken(rng: np.random.Generator) -> None:
    peaks, _, _ = mixture(rng, n=300)
    settings = FitSettings(4, n_starts=8)
    offset = fit(peaks + 50 * rng.normal(size=(300, 1)), settings)
    np.testing.assert_allclose(offset.maps, fit(peaks, settings).maps, atol=1e-9)


def test_figures_belong_to_the_maps_and_labels(rng: np.random.Generator) -> None:
    peaks, _, _ = mixture(rng)
    result = fit(peaks, FitSettings(4, n_starts=8))
    np.testing.assert_array_equal(
        result.labels, np.abs((peaks - peaks.mean(axis=1, keepdims=True)) @ result.maps.T).argmax(axis=1)
    )
    assert result.gev == pytest.approx(gev(peaks, result.maps, result.labels), abs=1e-12)
    np.testing.assert_allclose(result.gev_per_state, gev_per_state(peaks, result.maps, result.labels))
    assert result.cv == pytest.approx(result.residual * (18 / 14) ** 2)
    assert (result.n_starts, result.iterations > 0) == (8, True)


def test_margin_moves_never_explain_less_than_plain_convergence(rng: np.random.Generator) -> None:
    peaks = rng.normal(size=(300, 8))
    peaks -= peaks.mean(axis=1, keepdims=True)
    gains = []
    for _ in range(5):
        maps = search.unit(peaks[rng.choice(300, 4, replace=False)])
        polished = polish_modified(peaks, maps, 1e-9, 1000)
        for _ in range(100):  # Pascual-Marqui's algorithm, by the letter
            labels = np.abs(peaks @ maps.T).argmax(axis=1)
            maps = np.stack([np.linalg.svd(peaks[labels == k], full_matrices=False)[2][0] for k in range(4)])
        assert polished.converged
        gains.append(polished.score - float(((peaks @ maps.T) ** 2).max(axis=1).sum()))
    assert min(gains) > -1e-6
    assert max(gains) > 1.0


def test_aahc_subsamples_large_sets(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtbrain.microstates.fit.MAX_PEAKS", 100)
    assert aahc.MAX_PEAKS > 100
    peaks, maps, _ = mixture(rng)
    result = fit(peaks, FitSettings(4, method="aahc"))
    assert paired(result.maps, maps)[0].min() > 0.95
    assert (len(result.labels), result.iterations) == (800, 96)


@pytest.mark.parametrize("method", METHODS)
def test_progress_rises_to_one(method: Method, rng: np.random.Generator) -> None:
    seen: list[float] = []
    fit(mixture(rng, n=100)[0], FitSettings(3, method=method, n_starts=8), seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert all(0 <= share <= 1 for share in seen)


def test_noise_free_peaks_are_explained_whole(rng: np.random.Generator) -> None:
    peaks, maps, _ = mixture(rng, n=200, noise=0.0)
    result = fit(peaks, FitSettings(4, n_starts=8))
    assert result.gev == pytest.approx(1, abs=1e-12)
    assert paired(result.maps, maps)[0].min() > 1 - 1e-9


def test_flat_peaks_are_left_out(rng: np.random.Generator) -> None:
    peaks, _, _ = mixture(rng, n=200)
    padded = np.concatenate([peaks, np.full((3, 19), 7.3), np.zeros((2, 19))])
    settings = FitSettings(4, n_starts=8)
    np.testing.assert_allclose(fit(padded, settings).maps, fit(peaks, settings).maps, atol=1e-9)


def _with(value: float) -> Callable[[FloatArray], FloatArray]:
    def change(peaks: FloatArray) -> FloatArray:
        changed = peaks.copy()
        changed[17, 3] = value
        return changed

    return change


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "n_states", "message"),
    [
        (lambda peaks: peaks[:3], 4, "n_states is 4, but there are only 3 peaks.*fewer states"),
        (lambda peaks: peaks[:0], 4, "only 0 peaks"),
        (lambda peaks: peaks, 18, "n_states is 18, but 19 channels allow at most 17"),
        (lambda peaks: peaks, 0, "n_states is 0; choose at least 1"),
        (_with(np.nan), 4, r"1 of 100 peaks hold NaN or infinite values \(first: peak 17\)"),
        (_with(np.inf), 4, "NaN or infinite"),
        (lambda peaks: 0 * peaks, 4, "all 100 peaks are 0"),
        (lambda peaks: 0 * peaks + 3.3, 4, "all 100 peaks are 0"),
        (lambda peaks: peaks[0], 4, r"\(peaks, channels\), got shape \(19,\)"),
    ],
)
def test_errors_say_what_and_what_next(
    method: Method,
    change: Callable[[FloatArray], FloatArray],
    n_states: int,
    message: str,
    rng: np.random.Generator,
) -> None:
    peaks, _, _ = mixture(rng, n=100)
    with pytest.raises(FitError, match=message):
        fit(change(peaks), FitSettings(n_states, method=method, n_starts=4))


def test_zero_starts_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(FitError, match="n_starts is 0"):
        fit(mixture(rng, n=100)[0], FitSettings(4, n_starts=0))


@pytest.mark.parametrize("method", ["modkmeans", "kmeans"])
def test_a_best_start_that_did_not_converge_is_an_error(method: Method, rng: np.random.Generator) -> None:
    peaks = rng.normal(size=(2000, 19))
    with pytest.raises(FitError, match=r"best of 4 starts .* did not converge within 1 iterations; raise max_iter"):
        fit(peaks, FitSettings(6, method=method, n_starts=4, max_iterations=1))


@pytest.mark.parametrize("method", METHODS)
def test_fewer_different_maps_than_states_is_an_error(method: Method, rng: np.random.Generator) -> None:
    peaks = np.repeat(rng.normal(size=(2, 10)), 20, axis=0)
    with pytest.raises(FitError, match="too few different maps"):
        fit(peaks, FitSettings(4, method=method, n_starts=4))
