"""The Bayes-optimal observer: right, calibrated, attainable, and out of reach of the states' shares."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LogisticRegression

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray
from rtbrain.simulation import Design, Effect, World
from rtbrain.simulation.evidence import Statistics, _of_durations, _of_moves, likelihoods, observe, strangers
from rtbrain.simulation.optimum import draw, optimum
from rtbrain.simulation.population import RUNS_PER_BLOCK, draw_subjects, draw_trials, transitions
from rtbrain.simulation.states import runs


def test_likelihoods_equal_those_of_the_plain_definition() -> None:
    """One short trial, run by run: transition by transition, and one big Gaussian for the durations."""
    # Three states and much scatter: then the unknown rate and moods matter, and so does where the trial begins.
    design = Design(n_states=3, n_classes=3, effect=1.5, rate_sd=0.5, slow_depth=0.8)
    seconds, seed = 14.0, 5
    people = draw_subjects(design, 1, np.random.default_rng(1))
    traits = draw_trials(design, people, np.array([1.0]), np.random.default_rng(2))
    seen = observe(design, traits, seconds, np.random.default_rng(seed))

    blocks = runs(design, traits, np.random.default_rng(seed))
    parts = [next(blocks) for _ in range(12)]
    state = np.concatenate([part.state[0] for part in parts])
    log_duration = np.concatenate([part.log_duration[0] for part in parts])
    n = int((np.cumsum(np.exp(log_duration)) <= seconds).sum())
    state, log_duration, block = state[:n], log_duration[:n], np.arange(n) // RUNS_PER_BLOCK

    def of_durations(slow: float) -> float:
        keep = np.exp(-design.block_s / (design.slow_s * np.exp(slow)))
        pattern = design.mood_pattern[state]
        moods = np.outer(pattern, pattern) * keep ** np.abs(block[:, None] - block)
        covariance = moods + design.rate_sd**2 + design.duration_spread**2 * np.eye(n)
        return float(multivariate_normal(np.full(n, np.log(0.065)), covariance).logpdf(log_duration))

    def of_moves(order: FloatArray, occupancy: FloatArray) -> FloatArray:
        chances, shares = transitions(order, occupancy, 3)
        return np.log(shares[..., state[0]]) + np.log(chances[..., state[:-1], state[1:]]).sum(axis=-1)

    def on_grid(effect: Effect, level: float, values: FloatArray) -> FloatArray:
        weights = norm.pdf(values, design.effect * effect.shift * level, effect.sd)
        return np.asarray(weights / weights.sum())

    moves, durations = [], []
    wide, fine = np.linspace(-4, 4, 65), np.linspace(-2.5, 2.5, 101)
    durations_given = np.array([of_durations(each) for each in wide])
    durations_given = np.exp(durations_given - durations_given.max())
    moves_given = of_moves(*np.meshgrid(fine, fine, indexing="ij"))
    moves_given = np.exp(moves_given - moves_given.max())
    for level in design.levels:
        durations.append(np.log(on_grid(design.slow, level, wide) @ durations_given))
        inner = moves_given @ on_grid(design.occupancy, level, fine)
        moves.append(np.log(on_grid(design.order, level, fine) @ inner))
    for found, expected, error in (
        (_of_moves(design, seen)[0], moves, 0.01),
        (_of_durations(design, seen)[0], durations, 1e-4),
    ):
        assert found - found[0] == pytest.approx(np.array(expected) - expected[0], abs=error)
        assert np.ptp(found) > 0.4  # else little was tested
    both = np.array(moves) + durations
    assert likelihoods(design, seen)[0] @ [-1, 0, 1] == pytest.approx(both[2] - both[0], abs=0.02)


@pytest.fixture(scope="module")
def observed() -> tuple[Design, FloatArray, Statistics, FloatArray]:
    design = Design()
    label = np.arange(3000) % 2
    seen = strangers(design, label, 60.0, np.random.default_rng(7))
    return design, label, seen, likelihoods(design, seen)


def test_posteriors_are_calibrated(observed: tuple[Design, FloatArray, Statistics, FloatArray]) -> None:
    _, label, _, log_likelihood = observed
    sure = 1 / (1 + np.exp(log_likelihood[:, 0] - log_likelihood[:, 1]))
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.7), (0.7, 0.9), (0.9, 1.0)):
        here = (sure >= low) & (sure <= high)
        assert label[here].mean() == pytest.approx(sure[here].mean(), abs=4 * 0.5 / np.sqrt(here.sum()))


def test_the_right_statistics_come_close_to_the_optimum_and_not_above(
    observed: tuple[Design, FloatArray, Statistics, FloatArray],
) -> None:
    _, label, seen, log_likelihood = observed
    best = np.mean(log_likelihood.argmax(axis=1) == label)
    steps = (np.arange(4)[None, :] - np.arange(4)[:, None]) % 4
    forwards, backwards = seen.moves[:, steps == 1].sum(axis=1), seen.moves[:, steps == 3].sum(axis=1)
    came = seen.moves.sum(axis=1)
    mean = seen.total / np.maximum(seen.count, 1)
    tilt = np.where(seen.count.min(axis=2) > 0, mean[:, :, 1] - mean[:, :, 3], 0.0)
    lasting = (tilt[:, :-1] * tilt[:, 1:]).mean(axis=1) / (tilt**2).mean(axis=1)
    features = np.column_stack(
        [(forwards - backwards) / (forwards + backwards), np.log(came[:, 0] / came[:, 2]), lasting]
    )
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    half = np.arange(len(label)) < len(label) // 2
    reached = LogisticRegression().fit(features[half], label[half]).score(features[~half], label[~half])
    assert best - 0.03 < reached < best + 0.02


def test_without_effect_nothing_can_be_told() -> None:
    found = World(Design(effect=0.0)).bayes_optimal(30.0, n_draws=400)
    assert found.accuracy == pytest.approx(0.5, abs=1e-9)


def test_the_linear_model_is_judged_by_people_it_has_not_seen() -> None:
    nothing = Design(n_states=6, effect=0.0)
    scores = [optimum(draw(nothing, 5.0, 16, np.random.default_rng(i)), np.eye(2)).occupancy_linear for i in range(20)]
    assert np.mean(scores) < 0.6  # eight trials and six shares: on its own trials it would be right


def test_more_effect_or_a_longer_trial_tell_more() -> None:
    def accuracy(effect: float, seconds: float) -> float:
        return World(Design(effect=effect)).bayes_optimal(seconds, n_draws=1000).accuracy

    base = accuracy(1.0, 20.0)
    assert accuracy(0.4, 20.0) < base - 0.1
    assert accuracy(1.0, 3.0) < base - 0.05
    assert accuracy(2.0, 20.0) > base + 0.05


def test_scatter_between_people_and_not_length_limits_the_observer() -> None:
    alike = replace(Design().order, subject_sd=0.0, trial_sd=0.0)
    assert World(Design(order=alike)).bayes_optimal(40.0, n_draws=400).accuracy > 0.98


@pytest.mark.parametrize(("n_states", "n_classes", "seconds"), [(4, 2, 60.0), (6, 2, 60.0), (4, 3, 90.0)])
def test_by_default_the_limit_is_clear_of_chance_of_one_and_of_the_shares(
    n_states: int, n_classes: int, seconds: float
) -> None:
    found = World(Design(n_states=n_states, n_classes=n_classes)).bayes_optimal(seconds)
    assert found.standard_error <= 0.005
    assert 0.80 < found.accuracy < 0.95
    assert found.chance + 0.05 < found.occupancy_linear < found.accuracy - 0.05
    assert found.chance == pytest.approx(1 / n_classes)


def test_each_kind_of_effect_counts() -> None:
    design = Design()
    everything = World(design).bayes_optimal(30.0, n_draws=1000).accuracy
    for name in ("order", "occupancy", "slow"):
        without = replace(design, **{name: replace(getattr(design, name), shift=0.0)})
        assert World(without).bayes_optimal(30.0, n_draws=1000).accuracy < everything - 0.003
        alone = replace(
            design, **{n: replace(getattr(design, n), shift=0.0) for n in {"order", "occupancy", "slow"} - {name}}
        )
        assert World(alone).bayes_optimal(30.0, n_draws=1000).accuracy > 0.58


def test_tasks_group_labels_by_how_often_they_occur() -> None:
    draws = draw(Design(n_states=6, n_classes=5), 60.0, 1500, np.random.default_rng(3))
    each = optimum(draws, np.eye(5))
    signs = optimum(draws, np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]]))
    assert each.accuracy < 0.7
    assert 0.80 < signs.accuracy < 0.95
    assert signs.chance == pytest.approx(0.6)
    rare = optimum(draws, np.diag([96, 1, 1, 1, 1]))
    assert rare.chance == pytest.approx(0.96)
    assert rare.accuracy > 0.96
    extremes = optimum(draws, np.array([[1, 0], [0, 0], [0, 0], [0, 0], [0, 1]]))  # three labels do not occur
    assert extremes.accuracy > 0.98
    assert extremes.chance == 0.5
    # Where labels and classes agree in half of the trials only, nothing is left to be told.
    assert optimum(draws, np.ones((5, 2))).accuracy == pytest.approx(0.5)
    with pytest.raises(ConfigError, match="5 labels"):
        optimum(draws, np.eye(2))
    with pytest.raises(ConfigError, match="5 labels"):
        optimum(draws, -np.eye(5))


def test_a_trial_too_short_to_observe_is_refused() -> None:
    with pytest.raises(ConfigError, match="no transition"):
        World().bayes_optimal(0.05)
