"""What all sources share: they produce blocks of samples, which are cut here into the chunks that are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Literal

import numpy as np

from rtbrain.errors import ConfigError
from rtbrain.messages import Chunk, StreamInfo

Size = int | Literal["random"] | None
"""Samples per chunk; "random": seeded sizes from 1 sample to 2 s; None: the source's own blocks."""

LONGEST_RANDOM_S = 2.0


class Source(ABC):
    """A stream of known length that can be read any number of times, each time from its beginning.

    Attributes
    ----------
    info : StreamInfo
        Rate in Hz, channel names as the source spells them, unit of the data.
    n_samples : int
        Samples per channel that one pass over the source gives.
    """

    info: StreamInfo
    n_samples: int

    @property
    def duration_s(self) -> float:
        """Seconds of data; gaps in time do not count."""
        return self.n_samples / self.info.rate_hz

    @abstractmethod
    def _produce(self) -> Iterator[Chunk]:
        """Give the samples in blocks of the source's choice, from the first on."""

    def chunks(self, size: Size = None, seed: int = 0) -> Iterator[Chunk]:
        """Read the source from its beginning.

        Parameters
        ----------
        size : int, "random" or None
            Samples per chunk (the last one may be shorter), seeded random sizes between 1 sample and 2 s, or
            the source's own blocks of some seconds. The samples are the same whatever the size.
        seed : int
            Seed of the random sizes.

        Yields
        ------
        Chunk
            `data` (n, channels) float64, C-contiguous, in `info.unit`; `start` the running index of the first
            row; `times` (n,) time stamps in seconds. Chunks may be views of one block: do not write to them.
        """
        longest = max(1, round(LONGEST_RANDOM_S * self.info.rate_hz))
        return rechunk(self._produce(), size, longest=longest, seed=seed)


def rechunk(chunks: Iterable[Chunk], size: Size, *, longest: int = 500, seed: int = 0) -> Iterator[Chunk]:
    """Cut or join chunks to other sizes; no sample is lost, and none is copied unless chunks must be joined.

    Parameters
    ----------
    chunks : iterable of Chunk
        Consecutive chunks of a source, which carry no flags yet; all of them have time stamps, or none.
    size : int, "random" or None
        Rows per chunk, log-uniform random numbers of rows up to `longest`, or None to leave them as they are.
    longest : int
        Most rows of a random chunk.
    seed : int
        Seed of the random sizes.

    Returns
    -------
    iterator of Chunk
        The same rows; only the last chunk may be shorter than asked for.

    Raises
    ------
    ConfigError
        At once (not at the first chunk), if `size` is no size.
    """
    if size is None:
        return iter(chunks)
    if size == "random":
        return _cut(chunks, _random_sizes(longest, seed))
    if not isinstance(size, int) or size < 1:
        raise ConfigError(f"a chunk cannot hold {size!r} samples; give a number from 1 on, 'random' or None")
    return _cut(chunks, repeat(size))


def _random_sizes(longest: int, seed: int) -> Iterator[int]:
    # Log-uniform, so that chunks of one or two samples, where stages most easily go wrong, do come up.
    rng = np.random.default_rng(seed)
    while True:
        yield from np.exp(rng.uniform(0.0, np.log(longest + 1), 256)).astype(int).clip(1, longest).tolist()


def _cut(chunks: Iterable[Chunk], sizes: Iterator[int]) -> Iterator[Chunk]:
    wanted = next(sizes)
    held: list[Chunk] = []
    for chunk in chunks:
        n, row = len(chunk), 0
        while row < n:
            stop = min(n, row + wanted)
            wanted -= stop - row
            piece = chunk if stop - row == n else _rows(chunk, row, stop)
            row = stop
            if wanted:
                held.append(piece)
                continue
            yield _join([*held, piece]) if held else piece
            held = []
            wanted = next(sizes)
    if held:
        yield _join(held)


def _rows(chunk: Chunk, start: int, stop: int) -> Chunk:
    # Built by hand: dataclasses.replace takes ten times as long, which counts for chunks of one sample.
    times = chunk.times
    return Chunk(chunk.data[start:stop], chunk.start + start, None if times is None else times[start:stop])


def _join(pieces: list[Chunk]) -> Chunk:
    if len(pieces) == 1:
        return pieces[0]
    times = [piece.times for piece in pieces if piece.times is not None]
    return Chunk(
        np.concatenate([piece.data for piece in pieces]),
        pieces[0].start,
        np.concatenate(times) if times else None,
    )
