"""What needs no EEG, or nothing of the brain in it: the most frequent class, and the nuisance alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rtbrain.messages import FloatArray
from rtbrain.training.methods.base import Adaptation, Example, Fitted, TokenNeed, n_classes


@dataclass(frozen=True)
class FittedShares:
    """The classes' shares, whatever the trial."""

    shares: FloatArray
    fitted_on: Mapping[str, Sequence[str]]
    facts: Mapping[str, float] = field(default_factory=dict)

    def attention(self, example: Example) -> None:
        """Return nothing: it has no attention."""

    def probabilities(self, examples: Sequence[Example], seconds: float | None = None) -> FloatArray:
        """Return (examples, classes)."""
        return np.tile(self.shares, (len(examples), 1))


@dataclass(frozen=True)
class Majority:
    """Always the most frequent class of the people learnt from.

    Where classes are about equal this comes out below chance: a fold lacks just those whom it is tested on.
    """

    name: str = "majority"
    needs: tuple[TokenNeed, ...] = ()
    program: tuple[str, ...] = ("training/methods/plain.py",)
    stops_early: bool = False
    adaptation: Adaptation | None = None

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        """Count."""
        known = [*train, *validation]
        counts = np.bincount([each.label for each in known], minlength=n_classes(known))
        return FittedShares(counts / counts.sum(), {"model": tuple(each.name for each in known)})


def nuisance_features(example: Example, seconds: float | None) -> FloatArray:
    """Return what the nuisance audit measures of the trial; it is that of the whole trial, however short the look."""
    return np.array(example.nuisance or (0.0,))
