"""What a model reads of tokens: one id for band and state, and a few attributes.

Runs without a state are left out, live and in training alike: they tell of the recording, not of the brain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rtbrain.errors import ConfigError
from rtbrain.messages import UNLABELLED, FloatArray, IntArray, Tokens

PADDING: Final = 0
"""Id that fills up the sequences of a batch; never a token's."""

ATTRIBUTES: Final = {"log_duration": -2.5, "gfp_rel": 0.0, "level": 0.0, "corr": 0.7}
"""Attributes by name with a value from their middle:

log_duration  natural logarithm of the duration in seconds
gfp_rel       log of mean GFP over the running level of the token's own band
level         the same over the running level of all bands: a gain falls out, the spectrum's shape stays
corr          mean absolute spatial correlation with the state's template
"""


@dataclass(frozen=True)
class Vocabulary:
    """Ids of tokens: 0 is padding, then the states of the first band, the second, ..., and CLS comes last."""

    states: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the number of ids, padding and CLS among them."""
        return sum(self.states) + 2

    def ids(self, band: IntArray, state: IntArray) -> IntArray:
        """Return the ids of labelled tokens."""
        if len(band) and not 0 <= band.min() <= band.max() < len(self.states):
            raise ConfigError(
                f"tokens of band {band.max()} do not fit a model of {len(self.states)} bands; "
                "use the templates that it was trained with"
            )
        counts = np.array(self.states, np.int64)
        if len(band) and (state.min() < 0 or (state >= counts[band]).any()):
            raise ConfigError(
                f"states {state.min()} to {state.max()} do not fit a model of {self.states} states; "
                "use the templates that it was trained with"
            )
        ids: IntArray = 1 + (np.cumsum(counts) - counts)[band] + state
        return ids


@dataclass(frozen=True, slots=True)
class Inputs:
    """Tokens as a model reads them, with the time that they cover; arrays have one row each."""

    ids: IntArray
    attributes: NDArray[np.float32]  # (n, attributes)
    start_s: FloatArray
    end_s: FloatArray

    def __len__(self) -> int:
        return len(self.ids)


class TokenInputs:
    """As describing all tokens of a recording at once, over batches."""

    def __init__(self, vocabulary: Vocabulary, attributes: Sequence[str], rate_hz: float) -> None:
        unknown = [name for name in attributes if name not in ATTRIBUTES]
        if unknown:
            raise ConfigError(f"tokens have no attribute {unknown}; choose from {', '.join(ATTRIBUTES)}")
        self._vocabulary = vocabulary
        self._names = tuple(attributes)
        self._rate_hz = rate_hz
        self.reset()

    def reset(self) -> None:
        """Forget the level of the bands, after a break at which the filters started anew."""
        self._levels = np.full(len(self._vocabulary.states), np.nan)

    def __call__(self, tokens: Tokens) -> Inputs:
        """Return what a model reads of the next tokens."""
        level = self._level(tokens)
        labelled = tokens.state != UNLABELLED
        kept = tokens.take(labelled)
        ids = self._vocabulary.ids(kept.band, kept.state)
        columns = {
            "log_duration": np.log(kept.duration / self._rate_hz),
            "gfp_rel": kept.gfp_rel,
            "level": level[labelled],
            "corr": kept.corr,
        }
        attributes = np.empty((len(ids), len(self._names)), np.float32)
        for i, name in enumerate(self._names):
            attributes[:, i] = columns[name]
        start_s = kept.start / self._rate_hz
        return Inputs(ids, attributes, start_s, (kept.start + kept.duration) / self._rate_hz)

    def _level(self, tokens: Tokens) -> FloatArray:
        """Return log GFP over the mean level, in logarithms, of the bands heard so far; 0 where there is no field."""
        heard = tokens.gfp > 0
        log_gfp = np.log(np.where(heard, tokens.gfp, 1.0))
        newest = np.where(heard[:, None] & (tokens.band[:, None] == np.arange(len(self._levels))), 1, 0)
        newest = np.maximum.accumulate(newest * np.arange(1, len(tokens) + 1)[:, None], axis=0)
        own = np.append(np.nan, log_gfp - tokens.gfp_rel)
        levels = np.where(newest > 0, own[newest], self._levels)  # (n, bands), each band's when the token closed
        if len(levels):
            self._levels = levels[-1]
        known = np.isfinite(levels)
        mean = np.where(known, levels, 0.0).sum(1) / np.maximum(known.sum(1), 1)
        out: FloatArray = np.where(heard, log_gfp - mean, 0.0)
        return out
