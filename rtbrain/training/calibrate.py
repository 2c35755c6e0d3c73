"""Temperature: one number that makes a model's confidence match how often it is right on people it has not met."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray, IntArray

COLDEST, HOTTEST = 0.2, 20.0
"""Limits of what is looked for."""
DOUBT = 0.5
"""How far below 0 the logarithm of a temperature may be expected to lie, as a standard deviation."""


def even_weights(people: list[str], labels: IntArray) -> FloatArray:
    """Return weights that sum to 1: classes weigh the same, and so do the people within a class.

    A model that is trained with class weights answers as if classes were equally frequent, and is judged by that.
    """
    weights = np.zeros(len(labels))
    classes = np.unique(labels)
    for label in classes:
        own = np.flatnonzero(labels == label)
        names, index, counts = np.unique([people[i] for i in own], return_inverse=True, return_counts=True)
        weights[own] = 1.0 / (counts[index] * len(names) * len(classes))
    return weights


def log_loss(logits: FloatArray, labels: IntArray, weights: FloatArray, temperature: float = 1.0) -> float:
    """Return the weighted mean of -log p of the true classes."""
    log_p = log_softmax(logits / temperature, axis=1)
    return -float(weights @ log_p[np.arange(len(labels)), labels])


def fit_temperature(logits: FloatArray, labels: IntArray, weights: FloatArray, n_people: int) -> float:
    """Return the temperature whose answers are the most likely ones.

    A handful of people who happen to be told perfectly would ask for a temperature near 0. So one below 1, which makes
    answers surer than the model's own, is believed as much as the number of people warrants; one above 1 always.

    Parameters
    ----------
    logits : (n, classes) array
        Of people that the model has not been fitted to.
    labels : (n,) array
        Their classes.
    weights : (n,) array
        See `even_weights`.
    n_people : int
        Whose answers these are.
    """
    if not len(labels) or not np.isfinite(logits).all():
        raise ConfigError(f"a temperature needs answers, all of them finite; got {len(labels)} answers")

    def loss(log_temperature: float) -> float:
        surer = min(0.0, log_temperature) / DOUBT
        return log_loss(logits, labels, weights, float(np.exp(log_temperature))) + 0.5 * surer**2 / n_people

    found = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


def calibrated_loss(logits: FloatArray, labels: IntArray, weights: FloatArray, n_people: int) -> float:
    """Return the loss at the best temperature, by which epochs are judged.

    Focal loss and smoothed labels leave a model less sure than it could be, and a few people too many epochs too sure:
    the temperature puts both right in the end.
    """
    return log_loss(logits, labels, weights, fit_temperature(logits, labels, weights, n_people))
