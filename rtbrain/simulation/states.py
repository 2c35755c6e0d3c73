"""Sequences of states with their durations: a semi-Markov chain, many trials at once, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtbrain.messages import FloatArray, IntArray
from rtbrain.simulation.population import RUNS_PER_BLOCK, Design, Traits, transitions


@dataclass(frozen=True)
class Runs:
    """The next runs of some trials."""

    before: IntArray  # (trials,) the state before the first of them; -1 where there is none
    state: IntArray  # (trials, runs)
    log_duration: FloatArray  # (trials, runs), of seconds


def runs(design: Design, traits: Traits, rng: np.random.Generator) -> Iterator[Runs]:
    """Give the runs of one or many trials for ever, in blocks of `RUNS_PER_BLOCK` which share a mood."""
    n = len(traits.order)
    chances, shares = transitions(traits.order, traits.occupancy, design.n_states)
    # The last column is left out of the sums: rounding must not leave a gap below 1.
    climb, first = np.cumsum(chances, axis=2)[:, :, :-1], np.cumsum(shares, axis=1)[:, :-1]
    keep = design.keep(traits.slow)
    mood = rng.standard_normal(n)
    base = np.log(design.duration_ms / 1000) + traits.rate
    before = np.full(n, -1)
    trials = np.arange(n)
    while True:
        state = np.empty((n, RUNS_PER_BLOCK), np.int64)
        chance = rng.random((RUNS_PER_BLOCK, n, 1))
        now = before
        for i in range(RUNS_PER_BLOCK):
            steps = climb[trials, now] if now[0] >= 0 else first
            now = (steps <= chance[i]).sum(axis=1)
            state[:, i] = now
        spread = design.duration_spread * rng.standard_normal((n, RUNS_PER_BLOCK))
        lasting = base[:, None] + design.mood_pattern[state] * mood[:, None] + spread
        yield Runs(before, state, lasting)
        before = now
        mood = keep * mood + np.sqrt(1 - keep**2) * rng.standard_normal(n)


@dataclass(frozen=True)
class Stretch:
    """Consecutive runs of one recording, without gaps; arrays of one entry per run."""

    start: FloatArray  # seconds
    stop: FloatArray
    state: IntArray
    sign: FloatArray  # polarity of the run's first half wave

    def joined(self, other: "Stretch") -> "Stretch":
        """Return these runs and then the others."""
        return Stretch(
            np.concatenate([self.start, other.start]),
            np.concatenate([self.stop, other.stop]),
            np.concatenate([self.state, other.state]),
            np.concatenate([self.sign, other.sign]),
        )

    def after(self, run: int) -> "Stretch":
        """Return the runs from one on."""
        return Stretch(self.start[run:], self.stop[run:], self.state[run:], self.sign[run:])


def timeline(
    design: Design, trial: Traits, start_s: float, stop_s: float, rng: np.random.Generator
) -> Iterator[Stretch]:
    """Give the runs of one trial between two times; the end cuts the last one."""
    at = start_s
    for block in runs(design, trial, rng):
        stop = at + np.cumsum(np.exp(block.log_duration[0]))
        start = np.concatenate([[at], stop[:-1]])
        sign = rng.choice([-1.0, 1.0], len(start))
        n = int(np.searchsorted(start, stop_s))
        yield Stretch(start[:n], np.minimum(stop[:n], stop_s), block.state[0, :n], sign[:n])
        at = float(stop[-1])
        if at >= stop_s:
            return
