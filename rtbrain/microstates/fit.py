"""Polarity-blind clustering of GFP-peak maps into microstate templates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rtbrain.errors import FitError
from rtbrain.messages import FloatArray, IntArray
from rtbrain.microstates.aahc import MAX_PEAKS, aahc
from rtbrain.microstates.explained import cross_validation, gev_per_state, residual_variance
from rtbrain.microstates.polish import polish_modified, polish_plain, settle
from rtbrain.microstates.search import search, unit
from rtbrain.microstates.templates import referenced

Progress = Callable[[float], None]


@dataclass(frozen=True)
class FitSettings:
    """How maps are clustered."""

    n_states: int
    """Number of microstates, at least 1 and below channels - 1 (where cross-validation ends)."""
    method: Literal["modkmeans", "kmeans", "aahc"] = "modkmeans"
    """modkmeans: Pascual-Marqui 1995, strong peaks weigh more; kmeans: on maps of unit norm, all peaks weigh the
    same; aahc: atomize and agglomerate, on at most `aahc.MAX_PEAKS` peaks."""
    n_starts: int = 100
    """Random starts of both k-means; most are dropped on the way (see search.py). aahc has none."""
    max_iterations: int = 1000
    """Passes over all peaks within which a start must converge; for kmeans methods."""
    tolerance: float = 1e-9
    """A pass that gains less than this part of the unexplained power ends the iteration. The toolbox's 1e-6 stops
    on plateaus, up to 1e-5 of GEV below the optimum."""
    seed: int = 0
    """Seed of all random choices: the same peaks and seed give the same bits on the same machine."""


@dataclass(frozen=True)
class Fit:
    """Templates and how well they explain the peaks they were fitted on."""

    maps: FloatArray
    """(states, channels): average-referenced, unit norm, in canonical order and sign (see `canonical`)."""
    labels: IntArray
    """(n,) best correlated state of each peak."""
    gev: float
    """Global explained variance of the peaks, 0..1."""
    gev_per_state: FloatArray
    """(states,) parts of it; they sum to `gev`."""
    residual: float
    """Unexplained variance per peak and degree of freedom, in squared units of the peaks."""
    cv: float
    """Cross-validation criterion, in squared units of the peaks."""
    n_starts: int
    """Starts that were tried."""
    iterations: int
    """Passes over all peaks that polished the winner; for aahc, clusters that were dissolved."""


def fit(peaks: FloatArray, settings: FitSettings, progress: Progress | None = None) -> Fit:
    """Cluster GFP-peak maps.

    Neither the order of the peaks nor their polarity changes the maps.

    Parameters
    ----------
    peaks : (n, channels) array
        Samples at GFP peaks in any unit; the average reference is taken here.
    settings : FitSettings
        Method, number of states, effort and seed.
    progress : callable, optional
        Called now and then with the share of the work that is done; 1.0 at the end.

    Returns
    -------
    Fit
        The best clustering found.

    Raises
    ------
    FitError
        The peaks cannot be clustered into so many states, or the best start did not converge.
    """
    report: Progress = progress or (lambda share: None)
    work = _ordered(_checked(peaks, settings))
    rng = np.random.default_rng(settings.seed)
    if settings.method == "aahc":
        if len(work) > MAX_PEAKS:
            work = work[np.sort(rng.choice(len(work), MAX_PEAKS, replace=False))]
        maps, iterations, n_starts = aahc(work, settings.n_states), len(work) - settings.n_states, 1
    else:
        maps, iterations = _kmeans(work, settings, rng, report)
        n_starts = settings.n_starts
    maps = canonical(peaks, maps)
    labels = ((maps @ _centred(peaks).T) ** 2).argmax(axis=0)
    _check_states(maps, labels)
    shares = gev_per_state(peaks, maps)
    residual = residual_variance(peaks, maps)
    report(1.0)
    return Fit(
        maps=maps,
        labels=labels,
        gev=float(shares.sum()),
        gev_per_state=shares,
        residual=residual,
        cv=cross_validation(residual, peaks.shape[1], settings.n_states),
        n_starts=n_starts,
        iterations=iterations,
    )


def canonical(peaks: FloatArray, maps: FloatArray) -> FloatArray:
    """Return the maps in canonical order and sign, unit norm and average-referenced.

    Order: by falling part of the GEV of these peaks; equal parts by their loadings. Sign: the largest loading is
    positive; of loadings that are equally large to 1e-6, as in symmetric maps, the first channel's counts.
    """
    maps = referenced(maps)
    size = np.abs(maps)
    leading = (size >= size.max(axis=1, keepdims=True) * (1 - 1e-6)).argmax(axis=1)
    maps = maps * np.sign(maps[np.arange(len(maps)), leading])[:, None]
    shares = gev_per_state(peaks, maps)
    order = sorted(range(len(maps)), key=lambda k: (-shares[k], *maps[k].tolist()))
    return np.ascontiguousarray(maps[order])


def _kmeans(
    work: FloatArray, settings: FitSettings, rng: np.random.Generator, report: Progress
) -> tuple[FloatArray, int]:
    """Return the maps of the best start, and the passes over all peaks that polished them."""
    plain = settings.method == "kmeans"
    if plain:
        work = unit(work)
    starts = search(
        work.astype(np.float32),
        settings.n_states,
        settings.n_starts,
        plain,
        settings.max_iterations,
        rng,
        lambda share: report(0.8 * share),
    )
    polish = polish_plain if plain else polish_modified
    optima = []
    for i, maps in enumerate(starts.astype(np.float64)):
        optima.append(polish(work, unit(maps), settings.tolerance, settings.max_iterations))
        report(0.8 + 0.19 * (i + 1) / len(starts))
    best = max(optima, key=lambda optimum: optimum.score)
    if not best.converged:
        raise FitError(
            f"the best of {settings.n_starts} starts with {settings.n_states} states did not converge within "
            f"{settings.max_iterations} iterations; raise max_iterations, or tolerance (now {settings.tolerance:g})"
        )
    return settle(work, best.maps, plain), best.passes


def _check_states(maps: FloatArray, labels: IntArray) -> None:
    """Refuse states without peaks and states that are the same map twice."""
    twice = np.triu(np.abs(maps @ maps.T) > 1 - 1e-9, 1).any(axis=0)
    idle = int((twice | (np.bincount(labels, minlength=len(maps)) == 0)).sum())
    if idle:
        raise FitError(
            f"{idle} of {len(maps)} states found no peaks of their own: the {len(labels)} peaks hold too few different "
            "maps; choose fewer states or give more peaks"
        )


def _centred(peaks: FloatArray) -> FloatArray:
    centred: FloatArray = peaks - peaks.mean(axis=1, keepdims=True)
    return centred


def _checked(peaks: FloatArray, settings: FitSettings) -> FloatArray:
    """Return the average-referenced peaks that are not flat, or say why there is nothing to cluster."""
    k = settings.n_states
    if peaks.ndim != 2:
        raise FitError(f"peaks must be an array (peaks, channels), got shape {peaks.shape}")
    n, n_channels = peaks.shape
    if k < 1:
        raise FitError(f"n_states is {k}; choose at least 1")
    if settings.n_starts < 1 or settings.max_iterations < 1:
        raise FitError(
            f"n_starts is {settings.n_starts} and max_iterations {settings.max_iterations}; both must be at least 1"
        )
    if k >= n_channels - 1:
        raise FitError(
            f"n_states is {k}, but {n_channels} channels allow at most {max(n_channels - 2, 0)} (cross-validation ends "
            "there); choose fewer states"
        )
    bad = np.flatnonzero(~np.isfinite(peaks).all(axis=1))
    if len(bad):
        raise FitError(
            f"{len(bad)} of {n} peaks hold NaN or infinite values (first: peak {bad[0]}); clean the recording or drop "
            "these peaks"
        )
    centred = _centred(peaks)
    # A row of equal values leaves rounding errors, which would be taken for a map.
    flat = np.linalg.norm(centred, axis=1) <= 1e-12 * np.linalg.norm(peaks, axis=1)
    if flat.all() and n:
        raise FitError(f"all {n} peaks are 0 in every channel after average reference; check the input and its unit")
    if n - int(flat.sum()) < k:
        raise FitError(
            f"n_states is {k}, but there are only {n - int(flat.sum())} peaks that are not flat; choose fewer states "
            "or give more data"
        )
    usable: FloatArray = centred[~flat]
    return usable


def _ordered(peaks: FloatArray) -> FloatArray:
    """Sort the peaks by strength and scale them to about 1.

    Sorted, the same draws pick the same peaks in whatever order they came. The scale is a power of 2, which is exact,
    and keeps squares of volts within float32.
    """
    power = np.einsum("nc,nc->n", peaks, peaks)
    order = np.lexsort((np.abs(peaks[:, 0]), power))
    scale = 2.0 ** np.round(np.log2(np.sqrt(power.mean() / peaks.shape[1])))
    ordered: FloatArray = peaks[order] / scale
    return ordered
