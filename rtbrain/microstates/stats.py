"""What microstate papers report of a recording: coverage, occurrence, duration, transitions, explained variance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtbrain.messages import UNLABELLED, FloatArray, Tokens
from rtbrain.published import StateStatistics


@dataclass(frozen=True)
class Statistics:
    """Microstate statistics of one band; arrays have one entry per state."""

    coverage: FloatArray  # share of the labelled time
    occurrence_hz: FloatArray  # runs per second of labelled time
    duration_ms: FloatArray  # mean duration of a run; 0 for a state that never occurs
    gev: FloatArray  # each state's part of the global explained variance
    transitions: FloatArray  # (from, to) probability that a run of `from` is followed by one of `to`
    tokens_per_s: float
    labelled_s: float
    unlabelled_s: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in ((name, getattr(self, name)) for name in self.__dataclass_fields__)
        }


def statistics(tokens: Tokens, n_states: int, rate_hz: float, band: int = 0) -> Statistics:
    """Return the statistics of one band's tokens.

    Only direct neighbours count as a transition: none across a break or an unlabelled run.
    """
    tokens = tokens.take(tokens.band == band)
    named = tokens.state != UNLABELLED
    state, duration = tokens.state[named], tokens.duration[named]
    samples = np.bincount(state, weights=duration, minlength=n_states)
    runs = np.bincount(state, minlength=n_states)
    labelled_s = float(samples.sum() / rate_hz)
    explained = np.bincount(state, weights=duration * tokens.explained[named], minlength=n_states)
    power = float((tokens.duration * tokens.power).sum())
    follows = (tokens.start[1:] == tokens.start[:-1] + tokens.duration[:-1]) & named[1:] & named[:-1]
    counts = np.zeros((n_states, n_states))
    np.add.at(counts, (tokens.state[:-1][follows], tokens.state[1:][follows]), 1)
    return Statistics(
        coverage=samples / max(samples.sum(), 1.0),
        occurrence_hz=runs / (labelled_s or 1.0),
        duration_ms=1000 * samples / np.maximum(runs, 1) / rate_hz,
        gev=explained / (power or 1.0),
        transitions=counts / np.maximum(counts.sum(axis=1, keepdims=True), 1),
        tokens_per_s=float(runs.sum() / labelled_s) if labelled_s else 0.0,
        labelled_s=labelled_s,
        unlabelled_s=float(tokens.duration[~named].sum() / rate_hz),
    )


def pooled(parts: Sequence[Statistics]) -> StateStatistics:
    """Return what is usual over recordings: seconds and runs are summed; transitions weigh as the runs they leave."""
    seconds = np.array([part.labelled_s for part in parts])
    spent = np.array([part.coverage for part in parts]) * seconds[:, None]  # (recordings, states)
    runs = np.array([part.occurrence_hz for part in parts]) * seconds[:, None]
    follow = np.einsum("ri,rij->ij", runs, np.array([part.transitions for part in parts]))
    spent_s, n = spent.sum(axis=0), runs.sum(axis=0)
    return StateStatistics(
        coverage=_rounded(spent_s / max(spent_s.sum(), 1e-9)),
        duration_s=_rounded(spent_s / np.maximum(n, 1)),
        transitions=tuple(map(_rounded, follow / np.maximum(follow.sum(axis=1, keepdims=True), 1e-9))),
    )


def _rounded(values: FloatArray) -> tuple[float, ...]:
    return tuple(np.round(values, 4).tolist())
