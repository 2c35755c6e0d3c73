"""How many states: fits over a range of K, and a recommendation with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtbrain.errors import FitError
from rtbrain.messages import FloatArray
from rtbrain.microstates.explained import cross_validation, gev, gev_per_state, residual_variance
from rtbrain.microstates.fit import Fit, FitSettings, Progress, fit

__all__ = [
    "Recommendation",
    "cross_validation",
    "gev",
    "gev_per_state",
    "recommend",
    "residual_variance",
    "scan",
]

PRONOUNCED = 0.01
"""Part by which CV must rise from its minimum to both ends of the scanned range before its minimum is trusted."""


@dataclass(frozen=True)
class Recommendation:
    """A number of states, and why."""

    n_states: int
    reason: str
    """One plain sentence, with the figures it rests on."""


def scan(
    peaks: FloatArray, ks: Sequence[int], settings: FitSettings, progress: Progress | None = None
) -> dict[int, Fit]:
    """Fit the same peaks with several numbers of states.

    Parameters
    ----------
    peaks : (n, channels) array
        As for `fit`.
    ks : sequence of int
        Numbers of states; order and repeats do not matter.
    settings : FitSettings
        Everything but the number of states.
    progress : callable, optional
        Called with the share of the work that is done, counting a fit's work as its number of states.

    Returns
    -------
    dict
        The fit of each K, in rising order of K.
    """
    wanted = sorted(set(ks))
    if not wanted:
        raise FitError("no numbers of states to scan; name at least one")
    fits: dict[int, Fit] = {}
    total, before = sum(wanted), 0
    for k in wanted:

        def within(share: float, before: int = before, k: int = k) -> None:
            if progress:
                progress((before + share * k) / total)

        fits[k] = fit(peaks, replace(settings, n_states=k), within)
        before += k
    return fits


def recommend(fits: dict[int, Fit]) -> Recommendation:
    """Recommend a number of states.

    The minimum of the cross-validation criterion if it lies inside the scanned range and is pronounced, which it often
    is not; else the knee of the GEV curve, the K that lies farthest above the line from its first to its last point.

    Parameters
    ----------
    fits : dict
        At least one fit by its number of states, as from `scan`.
    """
    ks = sorted(fits)
    cv = np.array([fits[k].cv for k in ks])
    explained = np.array([fits[k].gev for k in ks])
    lowest = int(cv.argmin())
    if len(ks) < 3:
        return Recommendation(
            ks[lowest], f"CV is lowest at K = {ks[lowest]}; with {len(ks)} K scanned there is no curve to judge"
        )
    inside = 0 < lowest < len(ks) - 1
    if inside and min(cv[0], cv[-1]) >= (1 + PRONOUNCED) * cv[lowest]:
        rise = min(cv[0], cv[-1]) / cv[lowest] - 1
        return Recommendation(
            ks[lowest],
            f"CV has its minimum at K = {ks[lowest]}, inside the scanned {ks[0]} to {ks[-1]}, and rises by at least "
            f"{rise:.1%} towards both ends",
        )
    along = (np.array(ks) - ks[0]) / (ks[-1] - ks[0])
    knee = int((explained - (explained[0] + along * (explained[-1] - explained[0]))).argmax())
    why = "is too flat to decide" if inside else f"is lowest at the edge of the scanned range (K = {ks[lowest]})"
    return Recommendation(
        ks[knee],
        f"CV {why}; the GEV curve has its knee at K = {ks[knee]}, with {explained[knee]:.1%} explained against "
        f"{explained[0]:.1%} at K = {ks[0]} and {explained[-1]:.1%} at K = {ks[-1]}",
    )
