"""What the tokens of a trial add up to: microstate statistics, and pooled tokens with their attributes."""

from dataclasses import dataclass

import numpy as np

from rtbrain.messages import UNLABELLED, FloatArray, Tokens
from rtbrain.microstates.stats import statistics
from rtbrain.tokenizing import Tokenized
from rtbrain.training.methods.base import Example, TokenNeed


def first_seconds(example: Example, result: Tokenized, seconds: float | None) -> Tokens:
    """Return the tokens that had closed so many seconds after the warm-up."""
    if seconds is None:
        return result.tokens
    end = (example.warmup_s + seconds) * result.info.rate_hz
    return result.tokens.take(result.tokens.start + result.tokens.duration <= end)


@dataclass(frozen=True)
class MicrostateStatistics:
    """What microstate papers report, of every band: coverage, occurrence, duration and transitions."""

    need: TokenNeed

    def __call__(self, example: Example, seconds: float | None) -> FloatArray:
        """Return the features of a trial's first seconds."""
        result = example.tokens(self.need)
        tokens = first_seconds(example, result, seconds)
        parts: list[FloatArray] = []
        for band, whole in enumerate(result.statistics.values()):
            n_states = len(whole.coverage)
            found = statistics(tokens, n_states, result.info.rate_hz, band)
            others = ~np.eye(n_states, dtype=bool)
            # A state that never occurs has no duration and no successors.
            duration = np.where(found.duration_ms > 0, found.duration_ms, np.nan)
            follows = np.where(found.transitions.sum(axis=1, keepdims=True) > 0, found.transitions, np.nan)
            parts += [found.coverage, found.occurrence_hz, duration, follows[others]]
        return np.concatenate(parts)


@dataclass(frozen=True)
class Occupancy:
    """Each state's share of its band's labelled time, and nothing else."""

    need: TokenNeed

    def __call__(self, example: Example, seconds: float | None) -> FloatArray:
        """Return the features of a trial's first seconds."""
        result = example.tokens(self.need)
        tokens = first_seconds(example, result, seconds)
        return np.concatenate([each.shares for each in _bands(tokens, result)])


@dataclass(frozen=True)
class PooledTokens:
    """Shares of the states, and by state the mean level, correlation and duration; level and rate of each band.

    Levels are logarithms of power, less the mean level of all bands: a gain falls out, the spectrum's shape stays.
    """

    need: TokenNeed

    def __call__(self, example: Example, seconds: float | None) -> FloatArray:
        """Return the features of a trial's first seconds."""
        result = example.tokens(self.need)
        bands = _bands(first_seconds(example, result, seconds), result)
        levels = np.array([band.level for band in bands])
        common = np.nanmean(levels) if np.isfinite(levels).any() else np.nan
        parts: list[FloatArray] = [levels - common, np.array([band.rate for band in bands])]
        for band in bands:
            parts += [band.shares, band.levels - common, band.correlations, band.durations]
        return np.concatenate(parts)


@dataclass(frozen=True)
class _Band:
    """Sums over the tokens of one band; arrays are (states,), NaN for a state that does not occur."""

    shares: FloatArray
    levels: FloatArray
    correlations: FloatArray
    durations: FloatArray
    level: float
    rate: float


def _bands(tokens: Tokens, result: Tokenized) -> list[_Band]:
    rate_hz, found = result.info.rate_hz, []
    for band, whole in enumerate(result.statistics.values()):
        own = tokens.take((tokens.band == band) & (tokens.state != UNLABELLED) & (tokens.power > 0))
        n_states, time = len(whole.coverage), own.duration / rate_hz
        seconds, runs = _sums(own, time, n_states), _sums(own, np.ones(len(own)), n_states)
        log_power = np.log(own.power)
        total = float(seconds.sum())
        if not total:
            nothing = np.full(n_states, np.nan)
            found.append(_Band(nothing, nothing, nothing, nothing, np.nan, np.nan))
            continue
        found.append(
            _Band(
                shares=seconds / total,
                levels=_ratio(_sums(own, time * log_power, n_states), seconds),
                correlations=_ratio(_sums(own, time * own.corr, n_states), seconds),
                durations=_ratio(_sums(own, np.log(time), n_states), runs),
                level=float((time * log_power).sum() / total),
                rate=float(np.log(len(own) / total)),
            )
        )
    return found


def _sums(tokens: Tokens, values: FloatArray, n_states: int) -> FloatArray:
    return np.bincount(tokens.state, weights=values, minlength=n_states).astype(float)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    ratio: FloatArray = np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)
    return ratio
