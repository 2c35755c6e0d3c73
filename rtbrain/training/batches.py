"""Token sequences of trials, and the crops of them that a model is trained and asked with.

A live context begins anywhere in a session, at position 1, and grows from a few seconds to `context_s`. So do the
crops: each batch has one length, half of the time all of `context_s` and else anything down to a few seconds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from rtbrain.errors import ConfigError
from rtbrain.tokenizing import Tokenized
from rtbrain.tokens.inputs import PADDING, Inputs, TokenInputs, Vocabulary
from rtbrain.training.model_settings import ModelSettings


@dataclass(frozen=True)
class TokenSequence:
    """One trial as a model reads it."""

    name: str
    person: str
    """Who counts as one person in every split."""
    label: int
    pieces: tuple[Inputs, ...]
    """Stretches between breaks that start a new context, each with at least one token."""


@dataclass(frozen=True)
class Batch:
    """Padded crops."""

    ids: Tensor  # (B, T), 0 at the end of shorter ones
    attributes: Tensor | None  # (B, T, a)
    rows: tuple[int, ...]
    """Which sequence each crop is of."""
    length_s: float = math.inf
    """Longest that a crop of it may be."""

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        attributes = None if self.attributes is None else self.attributes.to(device)
        return replace(self, ids=self.ids.to(device), attributes=attributes)


def sequence_of(name: str, person: str, label: int, result: Tokenized, settings: ModelSettings) -> TokenSequence:
    """Return a trial's tokens as the model's inputs, with the live rule at breaks."""
    whole = pieces_of(result, settings.vocabulary, settings.attributes)
    if not whole:
        raise ConfigError(f"trial {name!r} has no token with a state; leave it out, or look at it by `rtbrain inspect`")
    return TokenSequence(name, person, label, whole)


def pieces_of(result: Tokenized, vocabulary: Vocabulary, attributes: Sequence[str]) -> tuple[Inputs, ...]:
    """Return tokens as a model's inputs, in stretches between breaks that start a new context."""
    tokens, rate_hz = result.tokens, result.info.rate_hz
    inputs = TokenInputs(vocabulary, attributes, rate_hz)
    breaks = sorted(result.breaks, key=lambda each: each.at_s)
    start_s = tokens.start / rate_hz
    edges = [0, *(int(np.searchsorted(start_s, each.at_s - 0.5 / rate_hz)) for each in breaks), len(tokens)]
    pieces: list[list[Inputs]] = [[]]
    for i, (begin, end) in enumerate(pairwise(edges)):
        if i > 0:
            inputs.reset()
            if breaks[i - 1].kind == "context":
                pieces.append([])
        pieces[-1].append(inputs(tokens.take(slice(begin, end))))
    return tuple(piece for piece in map(joined, pieces) if len(piece))


def seen_s(sequence: TokenSequence) -> float:
    """Return the seconds of the longest stretch of a trial that a context can cover."""
    return max(float(piece.end_s[-1] - piece.start_s.min()) for piece in sequence.pieces)


def random_crop(sequence: TokenSequence, length_s: float, rng: np.random.Generator) -> Inputs:
    """Return a stretch of `length_s` from anywhere in the trial, or the whole of a piece that is shorter."""
    lengths = np.array([float(piece.end_s[-1] - piece.start_s[0]) for piece in sequence.pieces])
    # Longer pieces come more often, so that every second of the trial is seen as often as any other.
    piece = sequence.pieces[int(rng.choice(len(lengths), p=lengths / lengths.sum()))]
    slack = float(piece.end_s[-1] - piece.start_s[0]) - length_s
    return cut(piece, float(piece.start_s[0]) + max(0.0, slack) * rng.random(), length_s)


def cut(piece: Inputs, start_s: float, length_s: float) -> Inputs:
    """Return the tokens that end within these seconds; at least one."""
    begin = min(int(np.searchsorted(piece.end_s, start_s, "right")), len(piece) - 1)
    end = max(begin + 1, int(np.searchsorted(piece.end_s, start_s + length_s, "right")))
    rows = slice(begin, end)
    return Inputs(piece.ids[rows], piece.attributes[rows], piece.start_s[rows], piece.end_s[rows])


def contexts(sequence: TokenSequence, context_s: float, seconds: float | None = None, most: int = 8) -> list[Inputs]:
    """Return the contexts that an answer about a whole trial rests on: one after the other, evenly over its time.

    With `seconds`, only the beginning of the trial counts. No more than `most` are taken.
    """
    found: list[Inputs] = []
    left = float("inf") if seconds is None else seconds
    for piece in sequence.pieces:
        first, length = float(piece.start_s[0]), float(piece.end_s[-1] - piece.start_s[0])
        length, left = min(length, left), left - min(length, left)
        if length <= 0:
            break
        n = max(1, int(np.ceil(length / context_s - 0.25)))
        starts = np.linspace(0.0, max(0.0, length - context_s), n)
        found += [cut(piece, first + float(start), min(context_s, length)) for start in starts]
    if len(found) > most:
        found = [found[i] for i in np.linspace(0, len(found) - 1, most).round().astype(int)]
    return found


def collate(crops: Sequence[Inputs], rows: Sequence[int], length_s: float = math.inf) -> Batch:
    """Return crops as one padded batch."""
    longest = max(map(len, crops))
    ids = torch.full((len(crops), longest), PADDING, dtype=torch.int64)
    n_attributes = crops[0].attributes.shape[1]
    attributes = torch.zeros(len(crops), longest, n_attributes)
    for row, crop in enumerate(crops):
        ids[row, : len(crop)] = torch.from_numpy(crop.ids)
        attributes[row, : len(crop)] = torch.from_numpy(crop.attributes)
    return Batch(ids, attributes if n_attributes else None, tuple(rows), length_s)


def training_batches(
    sequences: Sequence[TokenSequence],
    batch: int,
    lengths_s: tuple[float, float],
    rng: np.random.Generator,
    prefix_share: float = 0.5,
) -> Iterator[Batch]:
    """Yield one crop of every sequence, in random order.

    Parameters
    ----------
    sequences : sequence of TokenSequence
        What to learn from.
    batch : int
        Crops in a batch; the last one has up to one more rather than a single crop.
    lengths_s : (float, float)
        Shortest and longest crop in seconds.
    rng : Generator
        Decides everything.
    prefix_share : float
        Share of the batches that are shorter than the longest, by a length that is uniform in its logarithm.
    """
    shortest, longest = lengths_s
    order = rng.permutation(len(sequences))
    starts = list(range(0, len(order), batch))
    if len(order) - starts[-1] == 1 and len(starts) > 1:
        starts.pop()  # a batch of one has no statistics for the domain head
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        short = rng.random() < prefix_share
        length = float(np.exp(rng.uniform(np.log(shortest), np.log(longest)))) if short else longest
        yield _crops(sequences, order[start:end].tolist(), length, rng)


def crops_like(batch: Batch, sequences: Sequence[TokenSequence], rng: np.random.Generator) -> Batch:
    """Return as many crops of any of the sequences as a batch has, and of its length.

    How long a crop is shows in what a model makes of it: who compares people by crops of different lengths, as those do
    that bring training and tested people together, compares lengths.
    """
    return _crops(sequences, rng.integers(len(sequences), size=len(batch.rows)).tolist(), batch.length_s, rng)


def _crops(sequences: Sequence[TokenSequence], rows: list[int], length_s: float, rng: np.random.Generator) -> Batch:
    return collate([random_crop(sequences[row], length_s, rng) for row in rows], rows, length_s)


def joined(parts: Sequence[Inputs]) -> Inputs:
    """Return tokens one after the other."""
    names = ("ids", "attributes", "start_s", "end_s")
    return Inputs(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
