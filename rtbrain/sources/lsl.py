"""A live LSL stream as a source that watches itself: nothing is lost, late or changed without being counted and said.

Time stamps are handed on as the sender made them. Gaps are judged on the sender's own clock, where they are exact; the
offset between the clocks, which LSL measures with some jitter, is needed only to tell how old a sample is. liblsl's
dejitter is not used, as it is not aware of gaps, nor is its silent recovery: a source that comes back is
looked at as closely as a new one.
"""

from dataclasses import dataclass, field
from time import monotonic, sleep
from types import TracebackType
from typing import Final

import numpy as np
import pylsl
from pylsl.util import LostError

from rtbrain.config import Positive
from rtbrain.errors import SourceError
from rtbrain.messages import Break, Chunk, FloatArray
from rtbrain.published import SourceState
from rtbrain.sources.description import eeg_channels
from rtbrain.sources.lsl_clock import SenderClock
from rtbrain.sources.lsl_find import LslStream, connect, listed, same_source
from rtbrain.sources.lsl_return import Lookout, same_channels, what_changed
from rtbrain.sources.lsl_watch import Watch, WatchSettings

LEAST_ROWS: Final = 1024
"""Rows of the buffer; a second of samples if that is more."""

AGAIN_S: Final = 0.5
"""How long to wait for the answer of a stream that came back, before looking again: status messages must go on."""

RETRY_S: Final = 0.25
"""A stream that did not answer is not asked again for so long. One that has just ended is still announced for two
seconds and refuses at once; asking it without a pause, as often as thousands of times, also leaks memory in liblsl."""


@dataclass(frozen=True)
class LslSettings:
    """How a live stream is read."""

    watch: WatchSettings = field(default_factory=WatchSettings)
    buffer_s: Positive = 60.0
    """How long signal may wait in memory; beyond it liblsl drops the oldest, which the gap rule sees."""
    max_behind_s: Positive | None = 1.0
    """Signal that may wait while the consumer keeps up; None never skips (for recordings, where all must be read)."""
    patience_s: Positive = 2.0
    """For so long more may wait, so that ten seconds that come at once are decoded, not skipped."""
    search_after_s: Positive = 3.0
    """After so long a silence the network is searched for the stream."""


@dataclass
class LslCounts:
    """What happened to the stream so far."""

    received: int = 0
    """Samples handed on."""
    skipped: int = 0
    """Samples left out because the consumer fell behind; the gap rule sees them as missing."""
    abandoned: int = 0
    """Samples that had arrived, but could not be read any more when the connection broke."""
    stalls: int = 0
    reconnects: int = 0
    clock_resets: int = 0
    """Number of times the sender's clock was set, or began anew."""


class LslSource:
    """A stream that is connected for as long as this lives, and looked for again whenever it is gone.

    Parameters
    ----------
    stream : LslStream
        What `find_stream` gave.
    settings : LslSettings, optional
        Limits.
    unit : str, optional
        What the numbers truly are, if the stream errs or is silent.

    Attributes
    ----------
    info : StreamInfo
        Rate, EEG channels and unit; they never change. A stream that comes back with another rate, without one of the
        channels or in another unit raises a StreamError; another order of channels is put right.
    stream : LslStream
        The present connection's description.
    counts : LslCounts
        What happened so far.
    trouble : str
        Why there is no connection, in words.
    """

    def __init__(self, stream: LslStream, settings: LslSettings | None = None, unit: str | None = None) -> None:
        self.settings = settings or LslSettings()
        self.counts = LslCounts()
        self.trouble = ""
        self._clock = SenderClock()
        self._unit = unit
        self._watch = Watch(self.settings.watch, monotonic())
        self._lookout: Lookout | None = None
        self._refused = ("", 0.0)  # who did not answer, and when
        self._pending: Break | None = None  # to be given out before the first sample of a new connection
        self._behind_since: float | None = None
        self._inlet, self.stream = connect(stream, self.settings.buffer_s)
        try:
            self._picks, self.info = eeg_channels(stream.name, self.stream, unit)
        except BaseException:
            self.close()
            raise
        self._connected()

    def __enter__(self) -> "LslSource":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def state(self) -> SourceState:
        """The state as of the last pull."""
        return self._watch.state

    @property
    def silent_s(self) -> float:
        """Seconds since the newest sample came."""
        return self._watch.silent_s(monotonic())

    @property
    def away_s(self) -> float:
        """Seconds of all stalls and losses together, this one included."""
        return self._watch.away_s(monotonic())

    @property
    def waiting(self) -> int:
        """Samples that have arrived and were not pulled yet."""
        return 0 if self._inlet is None else int(self._inlet.samples_available())

    @property
    def offset_s(self) -> float | None:
        """What is added to the sender's stamps to have the local LSL clock; None until it was measured."""
        return self._clock.offset_s

    def age_s(self, stamp_s: float) -> float | None:
        """Return how long ago a sample of this stamp was taken; negative if the sender stamps ahead of time."""
        if self.offset_s is None:
            return None
        sender_s = pylsl.local_clock() - self.offset_s
        return (self.stream.signal_time(sender_s) - stamp_s) / self.stream.speed

    def pull(self, timeout_s: float = 0.1) -> list[Chunk | Break]:
        """Wait for samples, not longer than this, and return them; a break comes before those of a new connection.

        To be called again and again; in between nothing is watched.
        """
        if self._inlet is None:
            self._search(timeout_s)
            return []
        try:
            stamps = self._receive(timeout_s)
        except LostError:
            # What still waits in the inlet cannot be had any more; the last one is liblsl's mark of the end.
            self.counts.abandoned += max(0, int(self._inlet.samples_available()) - 1)
            self._lose(f"the connection to {self.stream} broke")
            return []
        self._clock.measure(self._inlet, monotonic())
        self.counts.clock_resets = self._clock.resets
        if not len(stamps):
            self._silence()
            return []
        return self._hand_on(stamps)

    def _receive(self, timeout_s: float) -> FloatArray:
        """Fill the buffer with what there is, at least one row unless the time is over; return the stamps."""
        _, stamps = self._inlet.pull_chunk(timeout=timeout_s, max_samples=1, dest_obj=self._buffer[:1], as_numpy=True)
        if not len(stamps):
            return np.asarray(stamps)
        rest = self._buffer[1:]
        try:
            _, more = self._inlet.pull_chunk(timeout=0.0, max_samples=len(rest), dest_obj=rest, as_numpy=True)
        except LostError:  # the next pull will say so; this sample is here
            more = stamps[:0]
        return np.concatenate([stamps, more])

    def close(self) -> None:
        """Disconnect."""
        self._inlet = self._lookout = None  # pylsl's objects end with their last reference

    def _hand_on(self, stamps: FloatArray) -> list[Chunk | Break]:
        now_s = monotonic()
        self._watch.samples(now_s)
        self._lookout, self.trouble = None, ""
        data = self._buffer[: len(stamps)].take(self._picks, axis=1).astype(np.float64)
        out: list[Chunk | Break] = [] if self._pending is None else [self._pending]
        out.append(Chunk(data, self.counts.received, stamps))
        self._pending = None
        self.counts.received += len(stamps)
        self._skip_if_behind(now_s)
        return out

    def _skip_if_behind(self, now_s: float) -> None:
        """Drop what waits if it has been too much for too long."""
        limit_s = self.settings.max_behind_s
        if limit_s is None or self.waiting <= limit_s * self.info.rate_hz * self.stream.speed:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now_s
        elif now_s - self._behind_since >= self.settings.patience_s:
            self.counts.skipped += int(self._inlet.flush())
            self._behind_since = None

    def _silence(self) -> None:
        """Judge a pull without samples; after a while look whether the stream still is on the network."""
        now_s = monotonic()
        self._watch.silence(now_s)
        self.counts.stalls = self._watch.stalls
        if self.state not in ("stalled", "lost") or self.silent_s < self.settings.search_after_s / self.stream.speed:
            return
        streams = self._looking().visible()
        if not self._looking().settled:
            return
        if any(stream.uid == self.stream.uid for stream in streams):
            self.trouble = f"{self.stream} is on the network, but sends nothing"
        elif same_source(self.stream, streams):
            self._lose(f"{self.stream} is gone")
        elif self.silent_s >= 2 * self.settings.search_after_s:
            self.trouble = f"{self.stream} is silent and no longer on the network"
            self._watch.lost(now_s)

    def _lose(self, trouble: str) -> None:
        self._watch.lost(monotonic())
        self.counts.stalls = self._watch.stalls
        self.trouble, self._inlet = trouble, None

    def _looking(self) -> Lookout:
        if self._lookout is None:
            self._lookout = Lookout(self.stream)
        return self._lookout

    def _search(self, timeout_s: float) -> None:
        found = self._looking().returned()
        if len(found) > 1:
            self.trouble = f"several streams could be the one that is lost; stop all but one of:\n{listed(found)}"
        uid, at_s = self._refused
        if len(found) != 1 or (found[0].uid == uid and monotonic() - at_s < RETRY_S):
            sleep(min(timeout_s, 0.05))
            return
        try:
            inlet, stream = connect(found[0], self.settings.buffer_s, AGAIN_S)
        except SourceError as error:  # gone again, or not ready yet
            self.trouble, self._refused = str(error), (found[0].uid, monotonic())
            return
        self._picks = same_channels(self.info, stream, self._unit)
        start = self.counts.received
        self._pending = Break("context", start, start / self.info.rate_hz, 0, what_changed(self.stream, stream))
        self._inlet, self.stream = inlet, stream
        self.counts.reconnects += 1
        self._connected()

    def _connected(self) -> None:
        rows = max(LEAST_ROWS, round(self.info.rate_hz))
        self._buffer = np.empty((rows, len(self.stream.labels)), self._inlet.np_dtype)
        self._watch.speed = self.stream.speed
        self._clock.forget()
        self._lookout = self._behind_since = None
        self.trouble = ""
