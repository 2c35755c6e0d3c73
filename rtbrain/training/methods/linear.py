"""Logistic regression on a few features of a trial, its strength chosen on people that the fit has not seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import softmax

from rtbrain.messages import FloatArray, IntArray
from rtbrain.training.methods.base import Adaptation, Example, Fitted, TokenNeed, n_classes
from rtbrain.training.scaling import centre_and_spread, scaled

STRENGTHS = tuple(10.0**k for k in (-4, -3, -2, -1, 0, 1))
"""Values of C to choose from, the strongest regularisation first."""
USUAL = 0.01
"""C where there are too few people to choose."""
INNER_FOLDS = 5
_LARGEST = 5.0  # standard deviations

Features = Callable[[Example, float | None], FloatArray]
"""Gives the features (columns,) of a trial's first seconds; NaN is a missing value."""


@dataclass(frozen=True)
class LinearModel:
    """Scaling and weights; a missing value counts as the mean of those that were fitted on."""

    centre: FloatArray
    spread: FloatArray
    weights: FloatArray  # (classes, columns)
    bias: FloatArray  # (classes,)

    def probabilities(self, x: FloatArray) -> FloatArray:
        """Return (rows, classes)."""
        shares: FloatArray = softmax(scaled(x, self.centre, self.spread, _LARGEST) @ self.weights.T + self.bias, axis=1)
        return shares


def fit_model(x: FloatArray, labels: IntArray, classes: int, strength: float) -> LinearModel:
    """Fit scaling and weights to rows, all classes weighing the same; one without rows gets no probability."""
    from sklearn.linear_model import LogisticRegression

    centre, spread = centre_and_spread(x)
    weights, bias = np.zeros((classes, x.shape[1])), np.full(classes, -np.inf)
    present = np.unique(labels)
    if len(present) == 1:
        bias[present] = 0.0
        return LinearModel(centre, spread, weights, bias)
    # Without equal weights a fold leans towards the class of which it left out fewer people, so against its own test.
    found = LogisticRegression(C=strength, max_iter=5000, class_weight="balanced")
    found.fit(scaled(x, centre, spread, _LARGEST), labels)
    if len(present) == 2:  # one score for both: half of it for the one, half against the other
        weights[present] = np.concatenate([-found.coef_, found.coef_]) / 2
        bias[present] = np.concatenate([-found.intercept_, found.intercept_]) / 2
    else:
        weights[present], bias[present] = found.coef_, found.intercept_
    return LinearModel(centre, spread, weights, bias)


def choose_strength(x: FloatArray, labels: IntArray, people: Sequence[str], classes: int, seed: int) -> float:
    """Return the C whose answers on left-out people are the most likely ones; of equals the strongest penalty."""
    from sklearn.model_selection import StratifiedGroupKFold

    fewest = min(len({p for p, own in zip(people, labels, strict=True) if own == k}) for k in np.unique(labels))
    n_folds = min(INNER_FOLDS, fewest)
    if n_folds < 2:
        return USUAL
    splits = list(StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed).split(x, labels, list(people)))
    losses = []
    for strength in STRENGTHS:
        told = np.zeros(len(labels))
        for train, test in splits:
            shares = fit_model(x[train], labels[train], classes, strength).probabilities(x[test])
            told[test] = shares[np.arange(len(test)), labels[test]]
        loss = -np.log(np.maximum(told, 1e-6))
        losses.append(float(np.mean([loss[labels == k].mean() for k in np.unique(labels)])))
    return STRENGTHS[int(np.argmin(np.round(losses, 9)))]


@dataclass
class FittedLinear:
    """A model for each length of EEG that is asked for, all of the same people: short looks are noisier."""

    features: Features
    known: Sequence[Example]
    strength: float
    """C, chosen on whole trials."""
    fitted_on: Mapping[str, Sequence[str]]
    _models: dict[float | None, LinearModel] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, float]:
        """Return what was chosen."""
        return {"C": self.strength}

    def attention(self, example: Example) -> None:
        """Return nothing: it has no attention."""

    def probabilities(self, examples: Sequence[Example], seconds: float | None = None) -> FloatArray:
        """Return (examples, classes)."""
        if seconds not in self._models:
            x = rows(self.features, self.known, seconds)
            self._models[seconds] = fit_model(x, _labels(self.known), n_classes(self.known), self.strength)
        return self._models[seconds].probabilities(rows(self.features, examples, seconds))


def rows(features: Features, examples: Sequence[Example], seconds: float | None = None) -> FloatArray:
    """Return (examples, columns)."""
    return np.stack([features(example, seconds) for example in examples])


def _labels(examples: Sequence[Example]) -> IntArray:
    return np.array([example.label for example in examples])


@dataclass(frozen=True)
class Linear:
    """Features and logistic regression, as a method.

    Training and validation people are put together, and C is chosen by leaving out a fifth of them in turn: with a
    handful of validation people alone it would be chosen by chance.
    """

    name: str
    features: Features
    needs: tuple[TokenNeed, ...] = ()
    program: tuple[str, ...] = ()
    stops_early: bool = False
    adaptation: Adaptation | None = "none"

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        """Choose C on whole trials; the model of each length is fitted when it is asked for first."""
        known = [*train, *validation]
        people, names = [example.person for example in known], tuple(example.name for example in known)
        x = rows(self.features, known)
        strength = choose_strength(x, _labels(known), people, n_classes(known), seed)
        return FittedLinear(self.features, known, strength, {"scaling": names, "C": names, "model": names})
