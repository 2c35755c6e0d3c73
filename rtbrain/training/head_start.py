"""A head start: before the first step the model already tells the classes as well as a linear model of its tokens.

What a class does to a trial is small against what people differ by, so gradients of a few hundred trials are mostly
noise, and from random weights a model needs many more steps than it has people to learn from. Three things are found
in one pass each instead, on training people alone: units of the first feed-forward network that count which state
follows which, the direction in which these counts tell the classes, and the classifier that reads it. With too many
states to count pairs, as in several bands, the embedding itself begins with what each state and its attributes tell.
The shape of the model stays as it is, and training goes on from there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rtbrain.messages import FloatArray, IntArray
from rtbrain.tokens.inputs import PADDING
from rtbrain.training.batches import Batch
from rtbrain.training.initial import positional
from rtbrain.training.model import Block, BrainToken, blocked

if TYPE_CHECKING:
    from rtbrain.training.methods.linear import LinearModel

REACH = 0.3
"""Length of what the classes' direction adds to an embedded token, relative to the token's own."""
PAIR_REACH = 0.5
"""The same where pairs are counted: what is weaker drowns in what else tokens differ by, and what is stronger leaves so
little else that, in the end, single precision does not tell trials apart."""
_RIDGE = 1e-3
_EVERY = 50
"""Tokens of which one is looked at, where a few are enough."""
_RULED_OUT = -10.0
"""Bias of a class without training trials."""
_TOKENS_NDIM = 4
Scores = Callable[[Sequence[Batch]], Tensor]
"""Gives (crops, classes - 1), what a linear model says of crops: the score of each class against the first."""


def least_squares(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights (columns of x, columns of y) and bias that read y from x."""
    centre, middle = x.mean(0), y.mean(0)
    x = x - centre
    gram = x.T @ x
    ridge = _RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=x.dtype)
    weights = torch.linalg.solve(gram + ridge, x.T @ (y - middle))
    return weights, middle - centre @ weights


def point_at_classes(
    model: BrainToken,
    batches: Sequence[Batch],
    labels: IntArray,
    people: Sequence[str],
    seed: int,
    n_units: int | None = None,
) -> Scores:
    """Let the first feed-forward network start out adding to its tokens what tells the classes.

    Parameters
    ----------
    model : BrainToken
        Whose first block is changed.
    batches : sequence of Batch
        Contexts of training trials, some of each.
    labels, people : (contexts,)
        Their classes, and whose they are, in the order of the batches.
    seed : int
        Of the split of people on which the strength of regularisation is chosen.
    n_units : int, optional
        The network's first units that are looked at, all by default. Where some count pairs the others, at random
        weights, would only add to what can be learnt by heart.

    Returns
    -------
    Scores
        What the linear model that was found says.
    """
    settings, block = model.settings, first_block(model)
    rng = torch.Generator().manual_seed(seed)

    def looks(own: Sequence[Batch]) -> Iterator[tuple[Tensor, Tensor]]:
        """Give the units' means over each crop, and some of the tokens', batch by batch."""
        for batch, given in zip(own, inputs_of(model, block.contract, own), strict=True):
            _, visible = blocked(batch.ids, settings)
            units = given[..., :n_units]
            means = (units * visible[..., None]).sum((1, 2)).double() / visible.sum((1, 2))[:, None]
            yield means, _some(units[visible], rng).double()

    means, some = (torch.cat(each) for each in zip(*looks(batches), strict=True))
    found = _logistic(means.numpy(), labels, people, settings.n_classes, seed)
    weights = _between_classes(found)
    strength = (some @ weights.T).std(0).clamp(min=1e-9)
    (tokens,) = inputs_of(model, block.norm_feed_forward, batches[:1])
    with torch.no_grad():
        directions = _directions(tokens, len(weights), seed, PAIR_REACH)
        block.contract.weight[:, :n_units] += ((directions / strength) @ weights).float()
    return lambda own: torch.cat([means for means, _ in looks(own)]) @ weights.T


def _some(tokens: Tensor, rng: torch.Generator) -> Tensor:
    """Return some of the tokens (n, ...), drawn: each n-th of them could always be a block's first one."""
    return tokens[torch.randperm(len(tokens), generator=rng)[: -(-len(tokens) // _EVERY)]]


def weigh_tokens(
    model: BrainToken, batches: Sequence[Batch], labels: IntArray, people: Sequence[str], seed: int
) -> Scores:
    """Let the embedding start out adding to each token what its state and its attributes tell of the classes.

    The embedding is linear in these, and CLS starts out with the mean over tokens: so this is the logistic regression
    on pooled tokens, written into the weights that can say it. Parameters and what is returned are those of
    `point_at_classes`.
    """
    embedding = model.embedding
    parts = [_token_columns(model, batch) for batch in batches]
    found = _logistic(
        torch.cat([part.pooled() for part in parts]).numpy(), labels, people, model.settings.n_classes, seed
    )
    weights = _between_classes(found)
    strength = torch.cat([part.scores(weights) for part in parts]).std(0).clamp(min=1e-9)
    (tokens,) = inputs_of(model, first_block(model).norm_interaction, batches[:1])
    free = positional(model.settings)
    directions = _directions(tokens, len(weights), seed, REACH, free)
    adds = ((directions / strength) @ weights).float()  # (width, columns)
    size = model.settings.vocabulary.size
    with torch.no_grad():
        maps = [embedding.state, *embedding.terms]
        for i, own in enumerate(maps):
            assert isinstance(own, nn.Embedding)
            own.weight += adds[:, i * size : (i + 1) * size].T
        if embedding.attributes is not None:
            embedding.attributes.weight += adds[:, len(maps) * size :]
    return lambda own: torch.cat([_token_columns(model, batch).pooled() for batch in own]) @ weights.T


@dataclass(frozen=True)
class _TokenColumns:
    """What an embedding is linear in, of the crops of a batch: the state, each state's terms, and the attributes."""

    ids: Tensor  # (B, T)
    values: Tensor  # (B, T, a), standardised
    terms: tuple[Tensor, ...]
    """The factor (B, T) on each table of states: 1 for the states' own vectors, then the attributes of their terms."""
    size: int
    """Ids of a table."""

    def pooled(self) -> Tensor:
        """Return the means over the tokens of each crop, (B, columns)."""
        there = (self.ids != PADDING).double()
        count = there.sum(1, keepdim=True).clamp(min=1)
        empty = torch.zeros(len(self.ids), self.size, dtype=torch.float64)
        sums = [empty.scatter_add(1, self.ids, factor * there) for factor in self.terms]
        return torch.cat([*sums, (self.values * there[..., None]).sum(1)], 1) / count

    def scores(self, weights: Tensor) -> Tensor:
        """Return what weights (rows, columns) make of every token, (tokens, rows)."""
        there = self.ids != PADDING
        ids, found = self.ids[there], self.values[there] @ weights[:, len(self.terms) * self.size :].T
        for i, factor in enumerate(self.terms):
            found = found + factor[there][:, None] * weights[:, i * self.size : (i + 1) * self.size].T[ids]
        return found


def _token_columns(model: BrainToken, batch: Batch) -> _TokenColumns:
    embedding, ids = model.embedding, batch.ids
    values = torch.zeros(*ids.shape, 0, dtype=torch.float64)
    if batch.attributes is not None:
        values = ((batch.attributes - embedding.centre) / embedding.spread).double()
    factors = [torch.ones(ids.shape, dtype=torch.float64), *(values[..., column] for column in embedding.term_columns)]
    return _TokenColumns(ids, values, tuple(factors), model.settings.vocabulary.size)


def _between_classes(found: "LinearModel") -> Tensor:
    """Return the weights of each class against the first, (classes - 1, columns): what all share tells nothing."""
    return torch.from_numpy((found.weights[1:] - found.weights[:1]) / found.spread)


def _directions(tokens: Tensor, n: int, seed: int, reach: float, free: int = 0) -> Tensor:
    """Return n random directions (width, n) of a length relative to the tokens'; the first `free` rows are 0."""
    width = tokens.shape[-1] - free
    drawn = torch.randn(width, n, generator=torch.Generator().manual_seed(seed))
    # Orthogonal to each other, and of mean 0, or the next norm would take them off.
    columns = torch.cat([torch.ones(width, 1), drawn], 1).double()
    found = reach * float(tokens.norm(dim=-1).mean()) * torch.linalg.qr(columns)[0][:, 1:]
    return torch.cat([torch.zeros(free, n, dtype=torch.float64), found])


def read_classes(
    model: BrainToken, features: Tensor, scores: Tensor, labels: IntArray, people: Sequence[str], seed: int
) -> None:
    """Let the classifier start out saying what the linear model says, as sure of it as the labels allow.

    Parameters
    ----------
    model : BrainToken
        Whose classifier and last norm are changed. The norm makes features of mean 0 and spread 1: what differs
        between trials is a few per cent of what CLS gathers, and weights of 50 and more that could read it would take
        many thousands of steps to grow.
    features : (crops, d)
        What the classifier reads of crops of training people.
    scores : (crops, classes - 1)
        What the linear model says of them. The features learn from it and not from the labels, which have been used: a
        second fit to them would learn the training people by heart.
    labels, people : (crops,)
        Classes, and whose the crops are.
    seed : int
        Of the split of people on which the strength of regularisation is chosen.
    """
    with torch.no_grad():
        mean, spread = features.mean(0), features.std(0).clamp(min=1e-3)
        model.norm.weight.div_(spread)
        model.norm.bias.copy_((model.norm.bias - mean) / spread)
        x = ((features - mean) / spread).double()
        read, bias = least_squares(x, scores)
        found = _logistic((x @ read + bias).numpy(), labels, people, model.settings.n_classes, seed)
        own = torch.from_numpy(found.weights / found.spread)
        model.classifier.weight.copy_(own @ read.T)
        shift = torch.from_numpy(found.bias) + own @ (bias - torch.from_numpy(found.centre))
        model.classifier.bias.copy_(shift.clamp(min=_RULED_OUT))


def _logistic(x: FloatArray, labels: IntArray, people: Sequence[str], classes: int, seed: int) -> "LinearModel":
    # Methods import the training: not the other way round at the top of a file.
    from rtbrain.training.methods.linear import choose_strength, fit_model

    return fit_model(x, labels, classes, choose_strength(x, labels, people, classes, seed))


def first_block(model: BrainToken) -> Block:
    """Return the first block of a model."""
    block = model.blocks[0]
    assert isinstance(block, Block)
    return block


def inputs_of(model: BrainToken, module: nn.Module, batches: Iterable[Batch]) -> Iterator[Tensor]:
    """Give what a module of the model is given of the tokens of each batch."""
    given: list[Tensor] = []

    def keep(_: nn.Module, values: tuple[Tensor, ...]) -> None:
        if values[0].ndim == _TOKENS_NDIM:  # else it is CLS that passes
            given.append(values[0])

    handle = module.register_forward_pre_hook(keep)
    model.eval()
    try:
        for batch in batches:
            with torch.no_grad():
                model.features(batch.ids, batch.attributes)
            yield given.pop()
    finally:
        handle.remove()
