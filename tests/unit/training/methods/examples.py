"""Trials as methods see them, made by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rtbrain.messages import Chunk, FloatArray, StreamInfo, Tokens
from rtbrain.microstates.stats import statistics
from rtbrain.sources.chunking import Source
from rtbrain.tokenizing import Tokenized
from rtbrain.training.band_powers import Powers
from rtbrain.training.methods import Example, TokenNeed

RATE_HZ = 100.0


class ArraySource(Source):
    """Samples (n, channels) in microvolts at 250 Hz."""

    def __init__(self, data: FloatArray, channels: tuple[str, ...]) -> None:
        self.info, self.n_samples, self._data = StreamInfo(250.0, channels), len(data), data

    def _produce(self) -> Iterator[Chunk]:
        for start in range(0, len(self._data), 1000):
            yield Chunk(np.ascontiguousarray(self._data[start : start + 1000]), start)


def none(*_: Any) -> Any:
    raise AssertionError("this was not to be read")


def example(name: str = "a", label: int = 0, person: str | None = None, **parts: Any) -> Example:
    return Example(name, person or name, label, 1.0, **({"tokens": none, "powers": none, "samples": none} | parts))


def with_powers(powers: Powers) -> Example:
    return example(powers=lambda: powers)


def with_tokens(tokens: Tokens, n_states: Sequence[int]) -> Example:
    result = Tokenized(
        tokens=tokens,
        breaks=(),
        info=StreamInfo(RATE_HZ, ("Cz",)),
        continuity={},
        missing_channels=(),
        bad_share={},
        statistics={str(band): statistics(tokens, n, RATE_HZ, band) for band, n in enumerate(n_states)},
    )

    def give(need: TokenNeed) -> Tokenized:
        return result

    return example(tokens=give)


def tokens_of(rows: Sequence[tuple[int, int, int]], power: FloatArray | float = 4.0) -> Tokens:
    """Return tokens from (band, state, samples), each band's one after the other from the end of the warm-up on."""
    band, state, duration = (np.array(column) for column in zip(*rows, strict=True))
    start = np.zeros(len(rows), np.int64)
    for each in np.unique(band):
        own = duration[band == each]
        start[band == each] = RATE_HZ + np.cumsum(own) - own
    n, power = len(rows), np.broadcast_to(power, len(rows)).astype(float)
    ones = np.ones(n)
    corr = 0.5 + 0.1 * state
    return Tokens(state, start, duration, np.sqrt(power), 0 * ones, corr, ones, power, power * corr**2, band)


def louder(tokens: Tokens, gain: float) -> Tokens:
    return replace(tokens, gfp=gain * tokens.gfp, power=gain**2 * tokens.power)
