"""Where to start: a batched search in float32 for the basins of the best clusterings.

All starts of a batch advance together, as one tall matrix product. They first climb on random subsets of the peaks,
the worse ones are dropped on the way, and the best get descendants with one map exchanged for a random peak, which
leaves local optima that fresh starts rarely leave. What is left then competes on all peaks.

On 20,000 peaks of 63 channels and 6 states, search and polishing take 1/34 to 1/84 of the time of pycrostates' 100
restarts and reach at least its GEV (tools/bench/microstates.py measures both). Peaks without any clusters, smooth noise
alone, have countless optima of nearly the same height; there either of the two may be ahead, by up to 5e-5 of GEV.
"""

from collections.abc import Callable
from math import ceil
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rtbrain.messages import FloatArray, IntArray

Single = NDArray[np.float32]
F = TypeVar("F", np.float32, np.float64)

BATCHES = 4
"""Batches of starts; each sees its own subset, so that no single draw of peaks decides."""
SUBSET = 4000
"""Peaks in a subset; with no more peaks than this, every batch sees all of them."""
EXCHANGES = 3
"""Generations of descendants in each batch."""
PARENTS = 2
"""Solutions that get descendants."""
OVERSHOOT = 1.8
"""Step length over that of plain k-means: two thirds of the passes, and it glides over the smallest local optima."""
SHARES = {4: 0.4, 8: 0.2}
"""Share of a batch that goes on after so many passes; later ranks hardly change."""
FINALS = ((3, 30), (6, 12), (10, 6), (20, 3))
"""(passes, best so many go on), on all peaks."""
_BLOCK = 512  # peaks per product, so that its result stays in the cache


def step(peaks: NDArray[F], maps: NDArray[F], plain: bool) -> tuple[NDArray[F], FloatArray]:
    """Assign all peaks and sum up each state's, for many sets of maps at once.

    Parameters
    ----------
    peaks : (n, channels) array
        Average-referenced peaks; of unit norm if `plain`.
    maps : (starts, states, channels) array
        Unit-norm maps.
    plain : bool
        Weigh peaks by their sign only (k-means) instead of by their signed activation (modified k-means, where
        the sum is one power step towards the leading eigenvector of the state's peaks).

    Returns
    -------
    sums : (starts, states, channels) array
        New maps before scaling; 0 for a state without peaks.
    scores : (starts,) float64 array
        Explained power of the given maps, or the sum of |correlation| if `plain`.
    """
    starts, states, channels = maps.shape
    flat = maps.reshape(-1, channels)
    sums = np.zeros_like(flat)
    scores = np.zeros(starts)
    for first in range(0, len(peaks), _BLOCK):
        block = peaks[first : first + _BLOCK]
        weights = (flat @ block.T).reshape(starts, states, -1)
        size = np.abs(weights)
        best = size.max(axis=1)
        if plain:
            np.sign(weights, out=weights)
            scores += best.sum(axis=1)
        else:
            scores += np.einsum("sn,sn->s", best, best)
        weights *= size == best[:, None]
        sums += weights.reshape(len(flat), -1) @ block
    return sums.reshape(maps.shape), scores


def unit(maps: NDArray[F]) -> NDArray[F]:
    """Scale (..., channels) to unit norm; 0 stays 0."""
    norm = np.sqrt(np.einsum("...c,...c->...", maps, maps))
    scaled: NDArray[F] = (maps / np.where(norm > 0, norm, 1)[..., None]).astype(maps.dtype, copy=False)
    return scaled


def climb(
    peaks: Single, maps: Single, plain: bool, tolerance: float, passes: int, shares: dict[int, float] | None = None
) -> tuple[Single, FloatArray]:
    """Improve many sets of maps by over-relaxed k-means, and return them with their scores.

    A set stops when a pass gains less than `tolerance` of what is unexplained, or when it is among the worse ones
    at a pass named in `shares`. Where the longer step lost, the plain step, which never loses, is taken instead.
    """
    total = float(len(peaks) if plain else np.einsum("nc,nc->", peaks, peaks, dtype=np.float64))
    n = len(maps)
    found, scores = maps.copy(), np.zeros(n)
    rows, current, safe, last = np.arange(n), maps, maps, np.zeros(n)
    longer = np.float32(OVERSHOOT)
    for done in range(1, passes + 1):
        sums, score = step(peaks, current, plain)
        straight = unit(sums)
        lost = score < last
        found[rows] = straight
        scores[rows] = np.maximum(scores[rows], score)
        stretched = unit(current + longer * (straight - current))  # their signs agree: each map attracts its own side
        goes_on = lost | (score - last >= tolerance * (total - score))
        if shares and done in shares:
            places = max(2, ceil(shares[done] * n))
            if len(rows) > places:
                goes_on &= scores[rows] >= np.sort(scores[rows])[-places]
        current = np.where(lost[:, None, None], safe, stretched)[goes_on]
        safe, last, rows = straight[goes_on], np.where(lost, 0.0, score)[goes_on], rows[goes_on]
        if not len(rows):
            break
    return found, scores


def distinct(maps: Single, scores: FloatArray, limit: int, alike: float) -> IntArray:
    """Return the best sets by score, without those whose maps pair up with a better set's above `alike`."""
    kept: list[int] = []
    for candidate in np.argsort(-scores, kind="stable").tolist():
        if len(kept) == limit:
            break
        corr = np.abs(maps[kept] @ maps[candidate].T)  # (kept, states, states)
        same = (corr.max(axis=2).min(axis=1) > alike) & (corr.max(axis=1).min(axis=1) > alike)
        if not same.any():
            kept.append(candidate)
    return np.array(kept, np.int64)


def search(
    peaks: Single,
    n_states: int,
    n_starts: int,
    plain: bool,
    passes: int,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> Single:
    """Return the maps (few, states, channels), best first, from which polishing should start.

    `peaks` is (n, channels) float32 of about unit scale; `passes` limits the passes of each start in each round.
    """
    batches = min(BATCHES, n_starts)
    size = ceil(n_starts / batches)
    pools: list[tuple[Single, FloatArray]] = []
    for batch in range(batches):
        subset = peaks
        if len(peaks) > SUBSET:
            subset = peaks[np.sort(rng.choice(len(peaks), SUBSET, replace=False))]
        limits = (plain, 1e-5, min(passes, 60), SHARES)
        starts = np.stack([rng.choice(len(subset), n_states, replace=False) for _ in range(size)])
        maps, scores = climb(subset, unit(subset[starts]), *limits)
        best = distinct(maps, scores, ceil(size / 2), 0.9999)
        pools.append((maps[best], scores[best]))
        for _ in range(EXCHANGES):
            parents = distinct(maps, scores, PARENTS, 0.99)
            children = maps[parents[np.arange(size) % len(parents)]]
            children[np.arange(size), rng.integers(n_states, size=size)] = unit(
                subset[rng.integers(len(subset), size=size)]
            )
            young, young_scores = climb(subset, children, *limits)
            maps = np.concatenate([maps[parents], young])
            scores = np.concatenate([scores[parents], young_scores])
        best = distinct(maps, scores, ceil(size / 4), 0.9999)
        pools.append((maps[best], scores[best]))
        progress((batch + 1) / (batches + 1))
    maps = np.concatenate([pool[0] for pool in pools])
    scores = np.concatenate([pool[1] for pool in pools])
    for more, places in FINALS:
        maps, scores = climb(peaks, maps, plain, 1e-7, min(passes, more))
        best = distinct(maps, scores, places, 0.99999)
        maps, scores = maps[best], scores[best]
    progress(1.0)
    return maps
