"""The contract that every stage keeps, and Chain, which runs stages one after another.

A stage is a small object with three calls:

- `open(info) -> info` allocates the state and declares what comes out: rate, channels, delay.
- `process(x) -> y` takes any chunk, also an empty one; it neither changes nor keeps its input.
- `flush() -> y` gives out what was held back; after it only `open` may be called.

However the stream is cut into chunks, the joined output is the same (tests/contract checks every stage).
A stage that cuts the stream itself answers with a list of chunks and breaks instead of one chunk.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from rtbrain.messages import Break, StreamInfo

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)


class Stage(Protocol[In, Out]):
    """One step of the chain; see the module's text for the contract."""

    def open(self, info: StreamInfo) -> StreamInfo:
        """Allocate the state for such a stream and describe the output."""
        ...

    def process(self, x: In) -> Out:
        """Take the next chunk and return what can be decided with it."""
        ...

    def flush(self) -> Out:
        """Return what is still held back at the stream's end."""
        ...


def items(answer: Any) -> list[Any]:
    """Return a stage's answer as a list without its empty messages."""
    answers = answer if isinstance(answer, list) else [answer]
    return [item for item in answers if isinstance(item, Break) or len(item)]


S = TypeVar("S")


class Chain:
    """Stages in a row; itself a stage whose answer is a list of messages and breaks."""

    def __init__(self, stages: Sequence[Stage[Any, Any]]) -> None:
        self.stages = tuple(stages)
        self._infos: list[StreamInfo] = []

    def find(self, kind: type[S]) -> S:
        """Return the chain's stage of this class, to read its counts."""
        return next(stage for stage in self.stages if isinstance(stage, kind))

    def open(self, info: StreamInfo) -> StreamInfo:
        """Open every stage with what the one before it declares."""
        self._infos = [info]
        for stage in self.stages:
            self._infos.append(stage.open(self._infos[-1]))
        return self._infos[-1]

    def process(self, x: Any) -> list[Any]:
        """Pass one chunk through all stages."""
        return self._run(0, [x])

    def flush(self) -> list[Any]:
        """Flush the first stage into the second, and so on."""
        out: list[Any] = []
        for i, stage in enumerate(self.stages):
            out += self._run(i + 1, items(stage.flush()))
        return out

    def _run(self, first: int, messages: list[Any]) -> list[Any]:
        for i in range(first, len(self.stages)):
            stage, out = self.stages[i], []
            for message in messages:
                if isinstance(message, Break):
                    out += items(stage.flush())
                    stage.open(self._infos[i])
                    out.append(message)
                else:
                    out += items(stage.process(message))
            messages = out
        return messages
