"""From a good start to an optimum in float64: k-means that also makes the moves plain k-means cannot see."""

from dataclasses import dataclass

import numpy as np

from rtbrain.messages import FloatArray, IntArray
from rtbrain.microstates.search import step, unit


@dataclass(frozen=True)
class Optimum:
    """What one start ended in."""

    maps: FloatArray  # (states, channels), unit norm; 0 for a state without peaks
    score: float  # explained power, or the sum of |correlation| for plain k-means
    passes: int
    converged: bool


def polish_plain(peaks: FloatArray, maps: FloatArray, tolerance: float, max_passes: int) -> Optimum:
    """Iterate k-means with sign-aligned means on unit-norm peaks (n, channels) until a pass gains nothing."""
    last = -np.inf
    for passes in range(1, max_passes + 1):
        sums, scores = step(peaks, maps[None], plain=True)
        score = float(scores[0])
        if score - last <= tolerance * (len(peaks) - score) + 1e-13 * len(peaks):
            return Optimum(maps, score, passes, True)
        last, maps = score, unit(sums[0])
    return Optimum(maps, last, max_passes, False)


def polish_modified(peaks: FloatArray, maps: FloatArray, tolerance: float, max_passes: int) -> Optimum:
    """Iterate modified k-means with exact eigenvectors on (n, channels) until neither a pass nor a margin move gains.

    Pascual-Marqui's algorithm stops where every peak lies with the map that explains it best. Near the border of two
    states it can still pay to move a peak, as both maps then turn a little towards their peaks (Hartigan's argument
    for k-means). Those margin moves, taken after convergence, lead out of the many shallow optima that differ in a
    few peaks. A move counts only if the next optimum explains more, so the score never falls.
    """
    n, states = len(peaks), len(maps)
    columns = np.ascontiguousarray(peaks.T)
    power = np.einsum("nc,nc->n", peaks, peaks)
    total = float(power.sum())
    everyone = np.arange(n)
    labels: IntArray = ((maps @ columns) ** 2).argmax(axis=0)
    scatter = np.stack([peaks[labels == k].T @ peaks[labels == k] for k in range(states)])  # (states, C, C)
    best = Optimum(maps, -np.inf, 0, False)
    for passes in range(1, max_passes + 1):
        for _ in range(8):  # power steps on (C, C) cost nothing beside one pass over the peaks
            maps = unit(np.einsum("kcd,kd->kc", scatter, maps))
        score = float(np.einsum("kc,kcd,kd->", maps, scatter, maps))
        squared = (maps @ columns) ** 2
        least = tolerance * (total - score) + 1e-13 * total  # the second part is what rounding may feign
        own = squared[labels, everyone]
        moved = np.flatnonzero(squared.max(axis=0) > own)
        target = squared[:, moved].argmax(axis=0)
        if squared[target, moved].sum() - own[moved].sum() <= least:
            values, vectors = np.linalg.eigh(scatter)
            score = float(values[:, -1].sum())
            if score - best.score <= least:
                return Optimum(best.maps, best.score, passes, True)
            maps = np.where(values[:, -1:] > 0, vectors[:, :, -1], 0.0)
            best = Optimum(maps, score, passes, True)
            moved, target = _margin_moves(peaks, columns, power, labels, values, vectors)
            if not len(moved):
                return best
        _move(scatter, peaks, labels, moved, target)
    # Cut short during margin moves, the optimum before them still is one.
    return best if best.converged else Optimum(maps, score, max_passes, False)


def settle(peaks: FloatArray, maps: FloatArray, plain: bool) -> FloatArray:
    """Return the maps after one last pass, which never loses, with sums whose bits do not depend on the threads.

    BLAS cuts large products by the number of threads; blocks as small as these it leaves to one.
    """
    activation = maps @ peaks.T
    labels = np.abs(activation).argmax(axis=0)
    settled = np.zeros_like(maps)
    for k in range(len(maps)):
        members = np.flatnonzero(labels == k)
        if plain:
            settled[k] = (np.sign(activation[k, members])[:, None] * peaks[members]).sum(axis=0)
            continue
        scatter = np.zeros((peaks.shape[1], peaks.shape[1]))
        for first in range(0, len(members), 32):
            block = peaks[members[first : first + 32]]
            scatter += block.T @ block
        settled[k] = np.linalg.eigh(scatter)[1][:, -1] if len(members) else 0.0
    return unit(settled)


def _move(scatter: FloatArray, peaks: FloatArray, labels: IntArray, moved: IntArray, target: IntArray) -> None:
    """Give peaks to other states, in place; correcting the scatter matrices is far cheaper than summing them anew."""
    source = labels[moved]
    labels[moved] = target
    for k in range(len(scatter)):
        come, gone = peaks[moved[target == k]], peaks[moved[source == k]]
        scatter[k] += come.T @ come - gone.T @ gone
        if len(gone) and not (labels == k).any():
            scatter[k] = 0.0  # what rounding left would have eigenvectors of its own


def _margin_moves(
    peaks: FloatArray, columns: FloatArray, power: FloatArray, labels: IntArray, values: FloatArray, vectors: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return peaks and the states to which moving them raises the sum of leading eigenvalues, to second order.

    Taking x out of a state or adding it changes the leading eigenvalue l1 by -+(u1.x)^2 and, in both cases, by
    + (u1.x)^2 sum_j (uj.x)^2 / (l1 - lj). Of two opposite streams between a pair of states only the stronger one
    flows, as each undoes the turn of the maps that the other one counts on.
    """
    states, everyone = len(values), np.arange(len(peaks))
    nothing = np.empty(0, np.int64)
    if states == 1:
        return nothing, nothing
    gaps = values[:, -1:] - values[:, :-1]
    inverse = 1.0 / np.where(gaps > 0, gaps, np.inf)  # (states, C - 1); a tie of eigenvalues counts as no gain
    squared = (vectors[:, :, -1] @ columns) ** 2
    own = squared[labels, everyone]
    squared[labels, everyone] = -1.0
    other: IntArray = squared.argmax(axis=0)
    second = squared[other, everyone]
    widest = inverse.max(axis=1)
    bound = own * (power - own) * widest[labels] + second * (power - second) * widest[other]
    near = np.flatnonzero(second - own + bound > 0)  # only for these few is the sum worth computing
    gain = second[near] - own[near]
    for k in range(states):
        part = np.flatnonzero((labels[near] == k) | (other[near] == k))
        loads = (peaks[near[part]] @ vectors[k]) ** 2
        gain[part] += loads[:, -1] * (loads[:, :-1] @ inverse[k])
    near, gain = near[gain > 0], gain[gain > 0]
    flow = np.zeros((states, states))
    np.add.at(flow, (labels[near], other[near]), gain)
    near = near[flow[labels[near], other[near]] > flow[other[near], labels[near]]]
    return near, other[near]
