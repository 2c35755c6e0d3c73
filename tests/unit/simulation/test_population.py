"""What a label does to transitions, and sequences that follow them."""

import numpy as np
import pytest

from rtbrain.config import parse
from rtbrain.errors import ConfigError
from rtbrain.simulation.population import Design, Traits, draw_subjects, draw_trials, transitions
from rtbrain.simulation.states import runs, timeline


def one(order: float = 0.0, occupancy: float = 0.0, slow: float = 0.0, rate: float = 0.0) -> Traits:
    return Traits(np.array([order]), np.array([occupancy]), np.array([slow]), np.array([rate]))


@pytest.mark.parametrize("n_states", [3, 4, 5, 6])
def test_order_turns_the_states_round_and_leaves_their_shares(n_states: int) -> None:
    occupancy = np.full(3, 0.4)
    chances, shares = transitions(np.array([-0.7, 0.0, 0.7]), occupancy, n_states)
    assert (chances >= 0).all()
    assert chances.sum(axis=2) == pytest.approx(1.0)
    assert np.diagonal(chances, axis1=1, axis2=2) == pytest.approx(0.0)
    assert np.einsum("tf,tfk->tk", shares, chances) == pytest.approx(shares)
    assert shares[0] == pytest.approx(shares[2])
    steps = np.arange(n_states)
    forwards = chances[:, steps, (steps + 1) % n_states]
    assert (forwards[0] < forwards[1]).all()
    assert (forwards[1] < forwards[2]).all()
    assert shares[0, 0] > 1.15 / n_states  # the first state is the favoured one


def test_levels_spread_more_than_two_classes_wider() -> None:
    assert Design(n_classes=2).levels.tolist() == [-1, 1]
    assert Design(n_classes=5).levels.tolist() == [-2, -1, 0, 1, 2]
    assert Design().level(None) == 0


def test_numbers_of_trials_scatter_as_the_design_says(rng: np.random.Generator) -> None:
    design = Design(effect=2.0)
    people = draw_subjects(design, 20_000, rng)
    first = draw_trials(design, people, np.full(20_000, 1.0), rng)
    second = draw_trials(design, people, np.full(20_000, 1.0), rng)
    for name in ("order", "occupancy", "slow"):
        effect = getattr(design, name)
        a, b = getattr(first, name), getattr(second, name)
        assert a.mean() == pytest.approx(2.0 * effect.shift, abs=4 * effect.sd / np.sqrt(20_000))
        assert a.std() == pytest.approx(effect.sd, rel=0.03)
        assert np.cov(a, b)[0, 1] == pytest.approx(effect.subject_sd**2, rel=0.06)
    assert (first.rate == second.rate).all()


def test_runs_follow_the_transitions_and_are_not_geometric(rng: np.random.Generator) -> None:
    design = Design(n_states=4, slow_depth=0.0)
    traits = one(order=0.5, occupancy=0.3)
    blocks = runs(design, traits, rng)
    parts = [next(blocks) for _ in range(600)]
    state = np.concatenate([part.state[0] for part in parts])
    duration = np.exp(np.concatenate([part.log_duration[0] for part in parts]))
    counts = np.zeros((4, 4))
    np.add.at(counts, (state[:-1], state[1:]), 1)
    chances, _ = transitions(traits.order, traits.occupancy, 4)
    assert counts / counts.sum(axis=1, keepdims=True) == pytest.approx(chances[0], abs=0.03)
    assert np.median(duration) == pytest.approx(0.065, rel=0.03)
    # A Markov chain's durations would scatter as much as they last.
    assert duration.std() / duration.mean() < 0.5


def test_moods_last_as_long_as_they_should_and_are_equally_strong(rng: np.random.Generator) -> None:
    design = Design(n_states=4, duration_spread=0.05)
    for slow in (-0.7, 0.7):
        blocks = runs(design, one(slow=slow), rng)
        logs = []
        for _ in range(1200):
            part = next(blocks)
            logs.append(part.log_duration[0][part.state[0] == 1].mean())  # state 1 takes all of the mood
        mood = np.array(logs) - np.mean(logs)
        kept = np.exp(-design.block_s / (design.slow_s * np.exp(slow)))
        assert np.corrcoef(mood[:-1], mood[1:])[0, 1] == pytest.approx(kept, abs=0.07)
        assert mood.std() == pytest.approx(0.3, abs=0.1)


def test_a_timeline_fills_its_interval_without_gaps(rng: np.random.Generator) -> None:
    parts = list(timeline(Design(), one(), 2.0, 9.5, rng))
    start = np.concatenate([part.start for part in parts])
    stop = np.concatenate([part.stop for part in parts])
    assert start[0] == 2.0
    assert stop[-1] == 9.5
    assert (start[1:] == stop[:-1]).all()
    assert (stop > start).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_states": 2}, "n_states"),
        ({"n_classes": 1}, "n_classes"),
        ({"effect": -1.0}, "effect"),
        ({"order": {"shift": 0.1, "subject_sd": -0.1, "trial_sd": 0.0}}, "order.subject_sd"),
        ({"eeg": {"loudness": 3}}, "eeg.loudness"),
    ],
)
def test_wrong_designs_are_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(Design, values, "design")


def test_wrong_designs_are_refused_in_code_too() -> None:
    with pytest.raises(ConfigError, match="effect is -1"):
        Design(effect=-1)
    with pytest.raises(ConfigError, match="n_states is 9"):
        Design(n_states=9)
    with pytest.raises(ConfigError, match="label 2 is none"):
        Design().level(2)
