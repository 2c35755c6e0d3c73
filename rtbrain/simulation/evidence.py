"""What the true states of a trial say about its label, to somebody who knows the population but not the person.

The numbers of the person and of the trial are unknown, so the likelihood of a label is an integral over them. Given
the counts of transitions, order and occupancy need two dimensions; given the durations, `slow` needs one, and the
person's rate and the moods are Gaussian, hence a Kalman filter takes them out exactly. Sums on grids with steps no
wider than a posterior's standard deviation do the rest; log likelihoods come out right to less than 0.01.

The last run of a trial, which the trial's end cuts, is left out.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from rtbrain.messages import FloatArray, IntArray
from rtbrain.simulation.population import Design, Effect, Traits, draw_subjects, draw_trials, transitions
from rtbrain.simulation.states import runs

_TAIL = 5.0
"""Standard deviations of people and trials that the grids reach beyond the outermost class."""


@dataclass(frozen=True)
class Statistics:
    """All that matters of some trials for telling their labels."""

    first: FloatArray  # (trials, states) 1 for the state that came first
    moves: FloatArray  # (trials, from, to) transitions
    count: FloatArray  # (trials, blocks, states) whole runs
    total: FloatArray  # (trials, blocks, states) sum of their log durations
    occupancy: FloatArray  # (trials, states) share of the time


def observe(design: Design, traits: Traits, seconds: float, rng: np.random.Generator) -> Statistics:
    """Simulate one trial for each entry of `traits`."""
    n, k = len(traits.order), design.n_states
    left = np.full(n, seconds)
    first, moves, time = np.zeros((n, k)), np.zeros(n * k * k), np.zeros((n, k))
    count: list[FloatArray] = []
    total: list[FloatArray] = []
    cell = np.arange(n)[:, None] * k  # of (trial, state 0) in a flat table

    def tally(cells: IntArray, what: FloatArray, size: int) -> FloatArray:
        return np.bincount(cells.ravel(), what.ravel(), size).astype(float, copy=False)

    for block in runs(design, traits, rng):
        duration = np.exp(block.log_duration)
        end = np.cumsum(duration, axis=1)
        whole = (end <= left[:, None]).astype(float)
        shown = np.clip(left[:, None] - (end - duration), 0.0, duration)
        left = left - end[:, -1]
        here = cell + block.state
        if count:
            previous, moved = np.column_stack([block.before, block.state[:, :-1]]), slice(None)
        else:
            first[np.arange(n), block.state[:, 0]] = 1.0
            previous, moved = block.state[:, :-1], slice(1, None)
        moves += tally((cell + previous) * k + block.state[:, moved], whole[:, moved], n * k * k)
        time += tally(here, shown, n * k).reshape(n, k)
        count.append(tally(here, whole, n * k).reshape(n, k))
        total.append(tally(here, whole * block.log_duration, n * k).reshape(n, k))
        if not (left > 0).any():
            break
    return Statistics(first, moves.reshape(n, k, k), np.stack(count, axis=1), np.stack(total, axis=1), time / seconds)


def _grid(design: Design, effect: Effect, step: float) -> tuple[FloatArray, FloatArray]:
    """Return values (n,) of one number and the log of their weights for each class (classes, n)."""
    centres = design.mean(effect, design.levels)
    sd = effect.sd
    if sd == 0:  # then nothing is to be integrated over: the classes' own values
        values, index = np.unique(centres, return_inverse=True)
        with np.errstate(divide="ignore"):
            return values, np.log(np.eye(len(values))[index])
    low, high = float(centres.min()) - _TAIL * sd, float(centres.max()) + _TAIL * sd
    values = np.linspace(low, high, int(np.ceil((high - low) / min(step, 0.7 * sd))) + 1)
    log_weights = -0.5 * ((values - centres[:, None]) / sd) ** 2
    return values, log_weights - logsumexp(log_weights, axis=1, keepdims=True)


def _of_moves(design: Design, seen: Statistics) -> FloatArray:
    """Return the log likelihood (trials, classes) of the order in which states came."""
    n_moves = seen.moves.sum(axis=(1, 2)).max()
    step = 1.0 / np.sqrt(max(1.0, n_moves))
    order, order_weights = _grid(design, design.order, step)
    occupancy, occupancy_weights = _grid(design, design.occupancy, step)
    counts = np.concatenate([seen.moves.reshape(len(seen.moves), -1), seen.first], axis=1)
    summed = np.full((len(counts), design.n_classes), -np.inf)
    for value, weights in zip(occupancy, occupancy_weights.T, strict=True):
        chances, shares = transitions(order, np.full(len(order), value), design.n_states)
        chances = chances + np.eye(design.n_states)  # no state follows itself: log 1 adds nothing
        logs = np.log(np.concatenate([chances.reshape(len(order), -1), shares], axis=1))
        given = counts @ logs.T  # (trials, orders)
        top = given.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            inner = np.log(np.exp(given - top) @ np.exp(order_weights).T) + top  # (trials, classes)
        summed = np.logaddexp(summed, inner + weights)
    return summed


def _of_durations(design: Design, seen: Statistics) -> FloatArray:
    """Return the log likelihood (trials, classes) of how durations change with time, up to a common constant."""
    slow, weights = _grid(design, design.slow, 0.3)
    keep = design.keep(slow)[None]  # (1, grid)
    n = len(seen.count)
    pattern = design.mood_pattern
    base, noise = np.log(design.duration_ms / 1000), design.duration_spread**2
    # Mean and covariance of (rate, mood), for every trial and value of `slow`.
    rate, mood = np.zeros((n, len(slow))), np.zeros((n, len(slow)))
    rate_var, both, mood_var = np.full_like(rate, design.rate_sd**2), np.zeros_like(rate), np.ones_like(rate)
    log_likelihood = np.zeros_like(rate)
    for b in range(seen.count.shape[1]):
        for k in range(design.n_states):
            there = seen.count[:, b, k, None]
            excess = seen.total[:, b, k, None] - there * base
            to_rate, to_mood = rate_var + pattern[k] * both, both + pattern[k] * mood_var
            # The mean of `there` runs varies by spread / there; written so that it also holds for none of them.
            spread = noise + there * (to_rate + pattern[k] * to_mood)
            surprise = excess - there * (rate + pattern[k] * mood)
            log_likelihood -= 0.5 * (np.log(spread) + surprise**2 / (np.maximum(there, 1.0) * spread))
            rate = rate + to_rate * surprise / spread
            mood = mood + to_mood * surprise / spread
            rate_var = rate_var - there * to_rate**2 / spread
            both = both - there * to_rate * to_mood / spread
            mood_var = mood_var - there * to_mood**2 / spread
        mood, both, mood_var = keep * mood, keep * both, keep**2 * mood_var + 1 - keep**2
    return np.asarray(logsumexp(log_likelihood[:, None] + weights[None], axis=2))


def likelihoods(design: Design, seen: Statistics) -> FloatArray:
    """Return the log likelihood (trials, classes) of each label, up to a constant for each trial."""
    return _of_moves(design, seen) + _of_durations(design, seen)


def strangers(design: Design, labels: IntArray, seconds: float, rng: np.random.Generator) -> Statistics:
    """Simulate one trial of a new person for each label."""
    people = draw_subjects(design, len(labels), rng)
    return observe(design, draw_trials(design, people, design.levels[labels], rng), seconds, rng)
