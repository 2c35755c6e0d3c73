"""The live decoder: an LSL stream in, decisions out, and never silent about what it does not know."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, perf_counter, sleep
from typing import Final

import pylsl

from rtbrain.decoder.bundle import Bundle
from rtbrain.decoder.session import StepModel
from rtbrain.decoder_api import Decision, Decoder, Event
from rtbrain.errors import RtbrainError
from rtbrain.live_markers import MarkerWatch
from rtbrain.live_outputs import Outputs
from rtbrain.live_state import Describer, Health
from rtbrain.messages import Break
from rtbrain.published import Age, SourceState, StateMessage, TokenMessage
from rtbrain.sources.lsl import LslSettings, LslSource
from rtbrain.sources.lsl_find import LOOK_S, LslStream, listed, only
from rtbrain.trust import age_doubts

PULL_S: Final = 0.1
"""Longest wait for samples: how fast a stop, a stall or a message that is due is noticed."""

STATUS_S: Final = 1.0
META_S: Final = 5.0

STOPPED: Final = "stopped"
"""What the last status message says when everything is as it should be."""


@dataclass(frozen=True)
class LiveSettings:
    """What is decoded."""

    wanted: str
    """Name, type or source id of the LSL stream, or `name=...` and so on."""
    unit: str | None = None
    """What the numbers truly are, if the stream errs or is silent."""
    markers: str | None = None
    """Name, type or source id of the marker stream."""
    reset_on: tuple[str, ...] = ()
    """Markers that begin a new context; `*` stands for anything."""
    lsl: LslSettings = field(default_factory=LslSettings)


class Live:
    """One run of the live decoder.

    Parameters
    ----------
    bundle, model : Bundle, StepModel
        What decodes.
    outputs : Outputs
        Where messages go; they stay open.
    settings : LiveSettings
        What is decoded.
    stop : callable
        Is asked again and again whether to end.
    tell : callable
        Is told in words what happens, for the screen.
    prepare : callable, optional
        Is given the decoder before the first sample.
    """

    def __init__(
        self,
        bundle: Bundle,
        model: StepModel,
        outputs: Outputs,
        settings: LiveSettings,
        stop: Callable[[], bool],
        tell: Callable[[str], None],
        prepare: Callable[[Decoder], None] = lambda decoder: None,
    ) -> None:
        self._bundle, self._model, self._outputs, self._settings = bundle, model, outputs, settings
        self._stop, self._tell, self._prepare = stop, tell, prepare
        self._describer, self._health = Describer(bundle), Health(outputs)
        self.source: LslSource | None = None
        """The stream, once it was found."""
        self._decoder: Decoder | None = None
        self._markers: MarkerWatch | None = None
        self._said: tuple[SourceState, str] = ("waiting", "")
        self._gpu_failed = False
        self._status_due_s = self._meta_due_s = monotonic()
        self._arrived_s = perf_counter()  # when the newest samples did

    def run(self) -> None:
        """Decode until asked to stop.

        Raises
        ------
        RtbrainError
            The stream does not fit the bundle, or came back as another one; the last status message says so too.
        """
        trouble = "ended by an error of the program"
        try:
            stream = self._wait()
            if stream is not None:
                self._connect(stream)
                with short_collections():
                    self._loop()
            trouble = STOPPED
        except RtbrainError as error:
            trouble = str(error)
            raise
        finally:
            self._end(trouble)

    def _wait(self) -> LslStream | None:
        """Wait for the one stream that is meant; None if asked to stop before."""
        resolver, began_s, found_s = pylsl.ContinuousResolver(), monotonic(), None
        shown: str | None = None
        self._tell(f"looking for an LSL stream of name, type or source id {self._settings.wanted!r}")
        while not self._stop():
            self._tick()
            sleep(PULL_S)
            streams = [LslStream.of(handle) for handle in resolver.results()]
            if monotonic() - began_s < LOOK_S:
                continue
            found = only(streams, self._settings.wanted)
            # A second one that matches as well may need a moment longer to answer.
            found_s = None if found is None else found_s or monotonic()
            if found is not None and found_s is not None and monotonic() - found_s >= LOOK_S / 2:
                return found
            seen = listed(streams, self._settings.wanted)
            if found is None and seen != shown:
                self._tell(f"it is not there yet; visible are:\n{seen}" if seen else "there is no stream at all yet")
                shown = seen
        return None

    def _connect(self, stream: LslStream) -> None:
        settings = self._settings
        self.source = LslSource(stream, settings.lsl, settings.unit)
        info = self.source.info
        self._decoder = Decoder(
            self._bundle, rate_hz=info.rate_hz, channels=info.channels, unit=info.unit, model=self._model
        )
        self._prepare(self._decoder)
        if settings.markers is not None:
            self._markers = MarkerWatch(settings.markers, settings.reset_on, self._tell)
        self._tell(f"decoding {self.source.stream}")
        if self._decoder.missing:
            self._tell(f"the stream lacks channels of the bundle: {', '.join(self._decoder.missing)}")
        self._meta_due_s = self._status_due_s = monotonic()

    def _loop(self) -> None:
        source, decoder = self.source, self._decoder
        assert source is not None
        assert decoder is not None
        while not self._stop():
            items = source.pull(PULL_S)
            self._arrived_s = perf_counter()
            if self._markers is not None:
                self._markers.pull(source, decoder)
            for item in items:
                if isinstance(item, Break):
                    self._meta_due_s = monotonic()  # another connection, perhaps another id
                for event in decoder.feed(item):
                    self._publish(event, source, decoder)
            if not source.waiting:
                decoder.anticipate()
            decoder.context.keep_warm()
            self._tick()

    def _publish(self, event: Event, source: LslSource, decoder: Decoder) -> None:
        if isinstance(event, Break):
            self._tell(f"{'a gap' if event.kind == 'gap' else 'a new context'}: {event.reason}")
        elif isinstance(event, Decision):
            self._outputs.publish(self._message(event, source, decoder))
        else:
            bands, rate_hz = self._bundle.recipe.bands, decoder.info.rate_hz
            for token in event:
                self._outputs.publish(TokenMessage.of(token, bands[token.band].name, rate_hz, decoder.context_number))

    def _message(self, decision: Decision, source: LslSource, decoder: Decoder) -> StateMessage:
        """Add to a decision what is known here only: how old it is."""
        ready = perf_counter()
        offset_s, stamp_s = source.offset_s, decision.stamp_s
        assert stamp_s is not None
        age_s = source.age_s(stamp_s)
        inference_s = ready - self._arrived_s
        if age_s is not None:
            self._health.ages_ms.add(1000 * age_s)
        reasons = (*decision.reasons, *age_doubts(self._bundle.trust, age_s))
        return StateMessage(
            time_s=None if offset_s is None else stamp_s + offset_s,
            signal_s=decision.signal_s,
            label=decision.label,
            probabilities=decision.probabilities,
            context=decision.context,
            trusted=not reasons,
            reasons=reasons,
            age=Age(
                total_s=age_s,
                transport_s=None if age_s is None else age_s - (perf_counter() - self._arrived_s),
                filter_s=decoder.info.filter_delay_s,
                token_wait_s=decision.token_wait_s,
                inference_s=inference_s,
                publish_s=perf_counter() - ready,
            ),
            markers=() if self._markers is None else self._markers.echoes(),
        )

    def _tick(self) -> None:
        """Publish what is due by the clock; a change of state is due at once."""
        now_s, source = monotonic(), self.source
        state: tuple[SourceState, str] = ("waiting", "") if source is None else (source.state, source.trouble)
        if self._model.failed and not self._gpu_failed:
            self._gpu_failed, self._status_due_s = True, now_s
            self._tell(self._model.failed)
        if state != self._said:
            self._tell(f"the source is {state[0]}{': ' if state[1] else ''}{state[1]}")
            self._said, self._status_due_s = state, now_s
        if source is not None and self._decoder is not None and now_s >= self._meta_due_s:
            self._outputs.publish(self._describer.meta(self._decoder, source.stream))
            self._meta_due_s = now_s + META_S
        if now_s >= self._status_due_s:
            self._publish_status(self._model.failed)
            self._status_due_s = max(self._status_due_s + STATUS_S, now_s)

    def _publish_status(self, trouble: str) -> None:
        dropped = None if self._markers is None else self._markers.dropped
        self._outputs.publish(self._health.status(self.source, self._decoder, trouble, dropped))

    def _end(self, trouble: str) -> None:
        """Close the last tokens, say why it ends, and let go of the streams."""
        source, decoder = self.source, self._decoder
        try:
            if source is not None and decoder is not None and trouble == STOPPED:
                self._arrived_s = perf_counter()
                for event in decoder.end():
                    self._publish(event, source, decoder)
            self._publish_status(trouble)
        finally:
            if self._markers is not None:
                self._markers.close()
            if source is not None:
                source.close()


@contextmanager
def short_collections() -> Iterator[None]:
    """Keep what was loaded so far out of the garbage collector's sight: walking all of it would delay decisions."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
