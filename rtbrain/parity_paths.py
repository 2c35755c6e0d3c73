"""The two ways from a recording to answers: as a live stream, and offline as in training."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pylsl

from rtbrain.decoder.bundle import Bundle, calibrated
from rtbrain.decoder.session import Device, load_step
from rtbrain.decoder.whole import WholeModel
from rtbrain.decoder_api import Decision, Decoder, Event
from rtbrain.errors import SourceError
from rtbrain.messages import UNLABELLED, Break, FloatArray, Tokens
from rtbrain.pipeline import build, run
from rtbrain.replay_outlets import Outlets
from rtbrain.sources.chunking import Source
from rtbrain.sources.lsl import LslSettings, LslSource
from rtbrain.sources.lsl_find import find_stream
from rtbrain.tokens.inputs import TokenInputs, Vocabulary

PATIENCE_S: Final = 30.0
"""How long to wait for what takes a moment on this machine: a stream that appears, samples that arrive."""

Share = Callable[[float], None]
"""Is told the share that is done."""


@dataclass
class LivePath:
    """What the live decoder made of a recording."""

    parts: list[Tokens] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    decisions: list[tuple[Decision, int]] = field(default_factory=list)
    """Each with the number of labelled tokens before it."""
    chunks: list[int] = field(default_factory=list)
    """Samples that were sent at a time."""
    labelled: int = 0

    @property
    def tokens(self) -> Tokens:
        """Return all tokens in their order."""
        return Tokens.concat(self.parts)

    def take(self, events: Iterable[Event]) -> None:
        """Keep what the decoder says."""
        for event in events:
            if isinstance(event, Decision):
                self.decisions.append((event, self.labelled))
            elif isinstance(event, Break):
                self.breaks.append(event)
            else:
                self.parts.append(event)
                self.labelled += int((event.state != UNLABELLED).sum())


def live_path(
    bundle: Bundle, source: Source, seed: int = 0, device: Device = "auto", progress: Share = lambda share: None
) -> LivePath:
    """Send a recording over LSL in random chunks, as fast as it is taken, and decode it as `rtbrain stream` does.

    Raises
    ------
    SourceError
        The stream cannot be found or its samples do not arrive, though both ends are here.
    """
    name = f"rtbrain-parity-{uuid4().hex}"
    shift_s = pylsl.local_clock()
    outlets = Outlets(source.info, name, name, 1.0, shift_s)
    path, sent = LivePath(), 0
    try:
        stream = find_stream(f"source_id={name}", PATIENCE_S)
        # A recording is read to its last sample, however slow the machine is.
        with LslSource(stream, LslSettings(max_behind_s=None)) as live:
            _wait_until(outlets.heard)
            info, model = live.info, load_step(bundle.step, device)
            decoder = Decoder(bundle, rate_hz=info.rate_hz, channels=info.channels, unit=info.unit, model=model)
            for chunk in source.chunks("random", seed):
                assert chunk.times is not None
                path.chunks.append(len(chunk))
                sent += outlets.send(chunk.data, shift_s + chunk.times)
                _receive(live, sent, decoder, path)
                progress(sent / source.n_samples)
            path.take(decoder.end())
    finally:
        outlets.close()
    return path


def _wait_until(ready: Callable[[], bool]) -> None:
    until_s = monotonic() + PATIENCE_S
    while not ready():
        if monotonic() > until_s:
            raise SourceError(f"LSL connected no listener within {PATIENCE_S:g} s; look with `rtbrain doctor`")
        sleep(0.005)


def _receive(live: LslSource, n: int, decoder: Decoder, path: LivePath) -> None:
    """Decode until so many samples have arrived."""
    while live.counts.received < n:
        for item in live.pull():
            path.take(decoder.feed(item))
        if live.state == "lost" or live.silent_s > PATIENCE_S:
            raise SourceError(
                f"{live.counts.received} of {n} samples came back over LSL, then nothing for {live.silent_s:.0f} s; "
                "look with `rtbrain doctor`"
            )


class OfflinePath:
    """What the bundle's chain makes of a whole recording, and `decoder.onnx` of the tokens."""

    def __init__(self, bundle: Bundle, items: Iterable[Tokens | Break], rate_hz: float) -> None:
        self._bundle, self._model = bundle, WholeModel(bundle.decoder)
        schema = self._model.schema
        describe = TokenInputs(Vocabulary(schema.states), schema.attributes, rate_hz)
        tokens, inputs, breaks = [], [], []
        for item in items:
            if isinstance(item, Break):
                describe.reset()
                breaks.append(item)
            else:
                tokens.append(item)
                inputs.append(describe(item))
        self.tokens, self.breaks = Tokens.concat(tokens), breaks
        self._ids = np.concatenate([np.empty(0, np.int64), *(each.ids for each in inputs)])
        self._attributes = np.concatenate(
            [np.empty((0, len(schema.attributes)), np.float32), *(each.attributes for each in inputs)]
        )

    @classmethod
    def of(cls, bundle: Bundle, source: Source, progress: Share = lambda share: None) -> "OfflinePath":
        """Run a recording through the chain in the file's own blocks, as training does."""
        chain = build(bundle.recipe, bundle.templates)
        rate_hz = chain.open(source.info).rate_hz

        def chunks() -> Iterable[Any]:
            for chunk in source.chunks():
                yield chunk
                progress((chunk.start + len(chunk)) / source.n_samples)

        return cls(bundle, run(chain, chunks()), rate_hz)

    def probabilities(self, last: int, n: int) -> FloatArray:
        """Return the calibrated answer to the n labelled tokens up to, but without, the one of this number."""
        rows = slice(last - n, last)
        return calibrated(self._model.probabilities(self._ids[rows], self._attributes[rows]), self._bundle.temperature)
