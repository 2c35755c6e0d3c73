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
            held: list[Any] = []
            _add(held, stage.flush())
            out += self._run(i + 1, held)
        return out

    def _run(self, first: int, messages: list[Any]) -> list[Any]:
        for i in range(first, len(self.stages)):
            stage = self.stages[i]
            out: list[Any] = []
            for message in messages:
                if type(message) is Break:
                    _add(out, stage.flush())
                    stage.open(self._infos[i])
                    out.append(message)
                else:
                    _add(out, stage.process(message))
            messages = out
        return messages


def _add(out: list[Any], answer: Any) -> None:
    """Append a stage's answer, one message or a list, without what is empty."""
    if type(answer) is list:
        out += [item for item in answer if type(item) is Break or len(item)]
    elif len(answer):
        out.append(answer)
