"""A population of people: what a label does to their microstates, and how much people and trials differ.

Three numbers describe the states of one trial, and the label shifts the mean of each: `order` (which way round the
states follow each other), `occupancy` (how often some come rather than others) and `slow` (for how long a mood of
the durations lasts). People and trials scatter around these means; that scatter is what limits an observer who has
never met the person, however long the trial.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import numpy as np
from annotated_types import Ge, Le

from rtbrain.config import NotNegative, Positive, Share
from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray

FEWEST_STATES: Final = 3
"""Two states know no order."""
MOST_STATES: Final = 8
MOST_EFFECT: Final = 10.0
RUNS_PER_BLOCK: Final = 32
"""Durations share one mood for so many runs, about two seconds. Part of what a seed means."""


@dataclass(frozen=True)
class Effect:
    """What the label does to one number of a trial, and how much that number differs by itself."""

    shift: float
    """Change per step of `Design.levels`, before `Design.effect`."""
    subject_sd: NotNegative
    """Standard deviation between people."""
    trial_sd: NotNegative
    """Standard deviation between the trials of one person."""

    @property
    def sd(self) -> float:
        """Standard deviation for somebody who knows neither the person nor the trial."""
        return float(np.hypot(self.subject_sd, self.trial_sd))


@dataclass(frozen=True)
class Appearance:
    """What the EEG of the states looks like; nothing here depends on the label."""

    amplitude_uv: Positive = 9.0
    """Median over people of the states' RMS over time and channels."""
    amplitude_sd: NotNegative = 0.2
    """Standard deviation between people of its logarithm."""
    alpha_hz: Positive = 10.0
    """Mean frequency of the oscillation that carries the states; GFP peaks come at about twice that."""
    alpha_sd_hz: NotNegative = 0.5
    """Its standard deviation between people."""
    location_sd: NotNegative = 0.04
    """Scatter between people of where a state's dipole lies, in head radii along each axis."""
    direction_sd: NotNegative = 0.12
    """Scatter between people of where it points, in radians about each axis."""
    brain_noise: NotNegative = 1.0
    """RMS of smooth 1/f noise of other sources, relative to the states'."""
    sensor_noise_uv: NotNegative = 0.7
    """RMS of each electrode's own noise."""
    line_uv: NotNegative = 3.0
    """Median amplitude of the mains hum, different for each recording and channel."""
    line_hz: Positive = 50.0
    drift_uv: NotNegative = 15.0
    """Standard deviation of slow drifts of each electrode."""
    blinks_per_minute: NotNegative = 10.0
    blink_uv: NotNegative = 60.0
    """Mean height of a blink at Fpz."""
    bad_electrode: Share = 0.15
    """Share of recordings in which one electrode loses contact now and then."""


@dataclass(frozen=True)
class Design:
    """What the classes are, and what they do."""

    n_states: Annotated[int, Ge(FEWEST_STATES), Le(MOST_STATES)] = 4
    n_classes: Annotated[int, Ge(2)] = 2
    labels: Literal["trial", "subject"] = "trial"
    """trial: one person's trials have several labels (emotions); subject: the label is the person's group."""
    effect: Annotated[float, Ge(0), Le(MOST_EFFECT)] = 1.0
    """Factor on all shifts; with 0 the label does nothing. 1 is far more than any real data set promises."""
    order: Effect = Effect(shift=0.25, subject_sd=0.18, trial_sd=0.17)
    """Preference for going round the states forwards (A > B > C) rather than backwards, as atanh of
    (forwards - backwards) / (forwards + backwards). It leaves the states' shares as they are, exactly."""
    occupancy: Effect = Effect(shift=0.07, subject_sd=0.11, trial_sd=0.08)
    """Log weight of the first state when the next one is chosen; the opposite one has minus that."""
    slow: Effect = Effect(shift=0.3, subject_sd=0.35, trial_sd=0.35)
    """Log of the time constant with which the durations' mood changes, relative to `slow_s`. How strong the moods
    are does not change, so that only somebody who follows them over tens of seconds can tell."""
    slow_s: Positive = 15.0
    """Time constant at level 0."""
    slow_depth: NotNegative = 0.3
    """Standard deviation of the mood: while some states last longer, the opposite ones last shorter."""
    duration_ms: Positive = 65.0
    """Median duration of a run; durations are log-normal, so not geometric."""
    duration_spread: Positive = 0.38
    """Standard deviation of the log duration from run to run."""
    rate_sd: NotNegative = 0.06
    """Standard deviation between people of the mean log duration."""
    eeg: Appearance = field(default_factory=Appearance)

    def __post_init__(self) -> None:
        if not FEWEST_STATES <= self.n_states <= MOST_STATES:
            raise ConfigError(
                f"n_states is {self.n_states}; from {FEWEST_STATES} (two know no order) to {MOST_STATES} can be made"
            )
        if self.n_classes < 2:
            raise ConfigError(f"n_classes is {self.n_classes}; at least 2 are needed to tell anything apart")
        if not 0 <= self.effect <= MOST_EFFECT:
            raise ConfigError(f"effect is {self.effect}; it must lie between 0 (none) and {MOST_EFFECT:g}")

    @property
    def levels(self) -> FloatArray:
        """Where each class lies on the scale that shifts everything, (classes,).

        Two classes lie at -1 and 1. More of them are spread between -2 and 2: in the span of two, nobody could
        tell neighbours apart.
        """
        reach = 1.0 if self.n_classes == 2 else 2.0
        return np.linspace(-reach, reach, self.n_classes)

    def level(self, label: int | None) -> float:
        """Return where a label lies on that scale; no label, as in rest, is its middle."""
        if label is None:
            return 0.0
        if not 0 <= label < self.n_classes:
            raise ConfigError(f"label {label} is none of the design's {self.n_classes} classes, counted from 0")
        return float(self.levels[label])

    def mean(self, effect: Effect, level: float | FloatArray) -> FloatArray:
        """Return the mean over people of one of the numbers at a level."""
        return np.asarray(self.effect * effect.shift * np.asarray(level))

    @property
    def block_s(self) -> float:
        """Usual duration of a block of runs."""
        return RUNS_PER_BLOCK * self.duration_ms / 1000 * float(np.exp(self.duration_spread**2 / 2))

    @property
    def mood_pattern(self) -> FloatArray:
        """How much of the mood each state's durations take, (states,)."""
        return np.asarray(self.slow_depth * np.sin(2 * np.pi * np.arange(self.n_states) / self.n_states))

    def keep(self, slow: FloatArray) -> FloatArray:
        """Return the part of the mood that is left after a block of runs, for values of `slow`."""
        return np.asarray(np.exp(-self.block_s / (self.slow_s * np.exp(slow))))


@dataclass(frozen=True)
class Traits:
    """The numbers of some trials; arrays of one entry per trial."""

    order: FloatArray
    occupancy: FloatArray
    slow: FloatArray
    rate: FloatArray
    """Added to the log duration of every run."""


def draw_subjects(design: Design, n: int, rng: np.random.Generator) -> Traits:
    """Return how much each of `n` people differs from the mean."""
    order, occupancy, slow, rate = rng.standard_normal((4, n))
    return Traits(
        order * design.order.subject_sd,
        occupancy * design.occupancy.subject_sd,
        slow * design.slow.subject_sd,
        rate * design.rate_sd,
    )


def draw_trials(design: Design, subjects: Traits, levels: FloatArray, rng: np.random.Generator) -> Traits:
    """Return the numbers of one trial of each person at these levels, (n,)."""
    order, occupancy, slow = rng.standard_normal((3, len(levels)))
    return Traits(
        subjects.order + design.mean(design.order, levels) + order * design.order.trial_sd,
        subjects.occupancy + design.mean(design.occupancy, levels) + occupancy * design.occupancy.trial_sd,
        subjects.slow + design.mean(design.slow, levels) + slow * design.slow.trial_sd,
        subjects.rate,
    )


def transitions(order: FloatArray, occupancy: FloatArray, n_states: int) -> tuple[FloatArray, FloatArray]:
    """Return the chance to go from each state to each other (..., from, to), and the states' shares (..., states).

    Shares are of runs. A symmetric flow between the states gets a flow round and round on top, which enters each
    state as much as it leaves it: hence the order cannot change the shares.
    """
    states = np.arange(n_states)
    weights = np.exp(occupancy[..., None] * np.cos(2 * np.pi * states / n_states))
    flow = weights[..., :, None] * weights[..., None, :] * (1 - np.eye(n_states))
    flow /= flow.sum(axis=(-2, -1), keepdims=True)
    ahead = (states[None, :] - states[:, None]) % n_states
    direction = np.sign(n_states - 2 * ahead) * (ahead > 0)
    smallest = np.where(direction == 0, np.inf, flow).min(axis=(-2, -1))
    shares = flow.sum(axis=-1)
    # Never quite 1: an impossible transition would make its logarithm infinite.
    preference = 0.999999 * np.tanh(order)
    flow = flow + (preference * smallest)[..., None, None] * direction
    return flow / shares[..., :, None], shares
