"""The rolling context: two streams half a context apart, so that old tokens leave without a new start.

Positions are absolute, so tokens cannot slide out of a model's state. Instead the older of two streams answers until
it is full; then the younger one, half full by then, takes over, and the other begins anew.
"""

from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray


class TokenStream(Protocol):
    """What a context needs of a model (rtbrain.decoder.session.Stream has it)."""

    t_max: int
    n_tokens: int

    def reset(self) -> None:
        """Forget all tokens."""
        ...

    def push(self, token_id: int, attributes: ArrayLike) -> None:
        """Append a token."""
        ...

    def probabilities(self) -> FloatArray:
        """Return the probability of each class, given all tokens so far."""
        ...

    def keep_warm(self) -> None:
        """Keep the device awake between answers."""
        ...


@dataclass(frozen=True)
class Answer:
    """Probabilities, and the tokens that they rest on: the newest `n_tokens`."""

    probabilities: FloatArray
    n_tokens: int
    start_s: float
    """Where the earliest of these tokens begins."""
    end_s: float
    """Where the newest of them ends."""
    gaps: int
    """Gaps in the signal between them."""


class RollingContext:
    """As the whole model on the newest tokens, between half and all of the context, token by token.

    The first answers rest on fewer: on all tokens so far. Half is meant to a token: the one in the middle stays whole.
    After a pause without tokens only those remain that lie within `context_s` of each other.
    """

    def __init__(self, first: TokenStream, second: TokenStream, context_s: float | None = None) -> None:
        """Take two streams of one model; `context_s` None means as many tokens as the model takes."""
        if context_s is not None and not context_s > 0:
            raise ConfigError(f"context_s is {context_s}; give seconds above 0, or leave it out for the whole session")
        if first is second or first.t_max != second.t_max:
            raise ConfigError("a rolling context needs two streams of the same model, each with its own state")
        self._context_s = float("inf") if context_s is None else context_s
        self._older, self._younger = _Context(first), _Context(second)
        self.reset()

    def reset(self) -> None:
        """Begin a new context, after a break in the signal that was too long to go on."""
        self._older.clear()
        self._younger.clear()

    def mark_gap(self) -> None:
        """Note that some signal is missing between the last token and the next."""
        for context in (self._older, self._younger):
            if context.n_tokens:
                context.gaps += 1

    def push(self, token_id: int, attributes: ArrayLike, start_s: float, end_s: float) -> None:
        """Append a token that covers these seconds of the signal."""
        for _ in range(2):
            if self._older.has_room(start_s, end_s, self._context_s):
                break
            self._older.clear()
            self._older, self._younger = self._younger, self._older
        # The younger one begins with the first token after the middle, as early as it may: begun any sooner, it would
        # be full before its own successor is half full.
        if self._younger.n_tokens or self._older.half_full(self._context_s):
            self._younger.push(token_id, attributes, start_s, end_s)
        self._older.push(token_id, attributes, start_s, end_s)

    def answer(self) -> Answer | None:
        """Return what the model says now; None before the first token."""
        older = self._older
        if not older.n_tokens:
            return None
        return Answer(older.stream.probabilities(), older.n_tokens, older.start_s, older.end_s, older.gaps)

    def keep_warm(self) -> None:
        """Keep the device awake between answers."""
        self._older.stream.keep_warm()


class _Context:
    """A stream and the time that its tokens cover."""

    def __init__(self, stream: TokenStream) -> None:
        self.stream = stream
        self.clear()

    @property
    def n_tokens(self) -> int:
        return self.stream.n_tokens

    def clear(self) -> None:
        self.stream.reset()
        self.start_s = float("inf")
        self.end_s = float("-inf")
        self.gaps = 0

    def has_room(self, start_s: float, end_s: float, context_s: float) -> bool:
        if not self.n_tokens:
            return True
        return self.n_tokens < self.stream.t_max and end_s - min(start_s, self.start_s) <= context_s

    def half_full(self, context_s: float) -> bool:
        return self.end_s - self.start_s >= context_s / 2 or 2 * self.n_tokens >= self.stream.t_max

    def push(self, token_id: int, attributes: ArrayLike, start_s: float, end_s: float) -> None:
        self.stream.push(token_id, attributes)
        self.start_s, self.end_s = min(start_s, self.start_s), max(end_s, self.end_s)
