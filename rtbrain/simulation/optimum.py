"""How well the labels of a design can be told at best, and how far a look at the states' shares alone gets."""

from dataclasses import dataclass

import numpy as np

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray, IntArray
from rtbrain.simulation.evidence import likelihoods, strangers
from rtbrain.simulation.population import Design


@dataclass(frozen=True)
class Optimum:
    """The limit for decoders that see one trial of a person they have never met."""

    accuracy: float
    """Bayes-optimal, of an observer of the true states; no decoder of the EEG can be better in the long run."""
    standard_error: float
    """Of the accuracy, from the finite number of simulated trials."""
    n_draws: int
    """Simulated trials, each of another person."""
    seconds: float
    chance: float
    """Accuracy of always naming the most frequent class."""
    occupancy_linear: float
    """Accuracy of a logistic regression on the states' shares of the time, trained on other people."""
    occupancy_standard_error: float


@dataclass(frozen=True)
class Draws:
    """Simulated trials of strangers, as many of each label, and what an ideal observer makes of them."""

    seconds: float
    label: IntArray  # (trials,)
    log_likelihood: FloatArray  # (trials, labels)
    occupancy: FloatArray  # (trials, states)


def draw(design: Design, seconds: float, n_draws: int, rng: np.random.Generator) -> Draws:
    """Simulate at least `n_draws` trials of so many seconds."""
    shortest = 2 * design.duration_ms / 1000
    if not seconds > shortest:
        raise ConfigError(f"a trial of {seconds:g} s holds no transition to observe; give more than {shortest:g} s")
    # Two of each label at least: one half judges the other.
    label = np.tile(np.arange(design.n_classes), max(2, -(-n_draws // design.n_classes)))
    seen = strangers(design, label, seconds, rng)
    return Draws(seconds, label, likelihoods(design, seen), seen.occupancy)


def optimum(draws: Draws, mix: FloatArray) -> Optimum:
    """Judge a task by simulated trials.

    Parameters
    ----------
    draws : Draws
        Simulated trials of all labels.
    mix : (labels, classes) array
        How many trials of each label belong to each class of the task, in any unit.
    """
    labels = draws.label.max() + 1
    mix = np.asarray(mix, float)
    if mix.ndim != 2 or len(mix) != labels or not np.isfinite(mix).all() or (mix < 0).any() or mix.sum() <= 0:
        raise ConfigError(
            f"mix must count the trials of each of the {labels} labels (rows) by class (columns); got {mix.tolist()}"
        )
    mix = mix / mix.sum()
    prior = mix.sum(axis=1)
    # Trials stand for their label's share: they were drawn in equal numbers.
    weight = prior[draws.label] / np.bincount(draws.label)[draws.label]
    with np.errstate(divide="ignore"):  # labels that do not occur
        logs = draws.log_likelihood + np.log(prior)
    of_label = np.exp(logs - logs.max(axis=1, keepdims=True))
    share = mix / np.where(prior > 0, prior, 1.0)[:, None]  # of each class among the trials of a label
    posterior = of_label @ share / of_label.sum(axis=1, keepdims=True)
    # The posterior of the class that is named, not whether it was right: the same mean, and a smaller error.
    accuracy, error = _weighted(posterior.max(axis=1), weight, draws.label)
    hits = _occupancy_hits(draws, share, weight)
    linear, linear_error = _weighted(hits, weight, draws.label)
    return Optimum(accuracy, error, len(weight), draws.seconds, float(mix.sum(axis=0).max()), linear, linear_error)


def _weighted(values: FloatArray, weight: FloatArray, label: IntArray) -> tuple[float, float]:
    """Return the weighted mean and its standard error; every label was drawn by itself."""
    variance = sum(float(values[label == each].var() * (weight[label == each] ** 2).sum()) for each in np.unique(label))
    return float(weight @ values), float(np.sqrt(variance))


def _occupancy_hits(draws: Draws, share: FloatArray, weight: FloatArray) -> FloatArray:
    """Return how likely the linear model's answer is right for each trial; each half is judged by the other."""
    from sklearn.linear_model import LogisticRegression

    n_labels, n_classes = share.shape
    half = (np.arange(len(weight)) // n_labels) % 2
    # In units of their spread: the penalty is to be the same for all.
    features = (draws.occupancy - draws.occupancy.mean(axis=0)) / np.maximum(draws.occupancy.std(axis=0), 1e-9)
    hits = np.empty(len(weight))
    for test in (0, 1):
        train = np.flatnonzero(half != test)
        # A trial stands for all classes that its label occurs with, each by its share.
        classes = np.tile(np.arange(n_classes), len(train))
        weights = (weight[train, None] * share[draws.label[train]]).ravel() * len(weight)
        kept = weights > 0
        repeated = np.repeat(features[train], n_classes, axis=0)[kept]
        if len(np.unique(classes[kept])) < 2:
            named = np.full((half == test).sum(), classes[kept][0])
        else:
            model = LogisticRegression(C=100.0, max_iter=2000).fit(repeated, classes[kept], weights[kept])
            named = model.predict(features[half == test])
        hits[half == test] = share[draws.label[half == test], named]
    return hits
