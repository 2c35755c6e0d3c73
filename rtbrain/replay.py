"""A recording as an amplifier: each sample is sent over LSL when it is due, the markers in a second stream.

Samples are stamped with the time at which they would have been taken, and sent in chunks once the chunk's last sample
is due. Each chunk waits for its own time on the clock, never for a while after the one before, so that delays do not
add up. At another speed than 1, stamps still advance by signal time: the factor, and the time from which on it holds,
stand in the stream's description.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final

import numpy as np
import pylsl

from rtbrain.config import Positive
from rtbrain.faults import Faults
from rtbrain.injection import Injector, Rows, described
from rtbrain.messages import Chunk
from rtbrain.replay_outlets import Outlets
from rtbrain.sources.ahead import ahead
from rtbrain.sources.chunking import Source
from rtbrain.sources.markers import Marker

CLOCK_STEP_S: Final = 1.0
"""Stamps that go back by more than this were a clock that was set: sending goes on without a pause."""

LINGER_S: Final = 1.0
"""For so long the streams stay after the last sample, so that everybody has received it."""

SLICE_S: Final = 0.05
"""Longest sleep: how fast a stop is noticed."""


@dataclass(frozen=True)
class ReplaySettings:
    """How a recording is sent."""

    name: str = "EEG"
    speed: Positive = 1.0
    loop: bool = False
    chunk_ms: Positive = 10.0
    wait: bool = False
    """Begin once somebody listens."""
    source_id: str = ""
    """Left out: one for this name on this machine, the same again after a restart; see `rtbrain.replay_id`."""


@dataclass
class ReplayReport:
    """What was sent."""

    samples: int = 0
    unheard: int = 0
    """Of these, samples whose time came while nobody listened."""
    markers: int = 0
    passes: int = 0
    """Whole passes over the recording."""
    latest_s: float = 0.0
    """The longest that a chunk was sent after its time."""
    stopped: bool = False


@dataclass(frozen=True)
class Due:
    """What is sent at one time; all times are in seconds of signal after the first sample."""

    due_s: float
    at_s: float
    rows: Rows
    marker: tuple[float, str] | None = None
    """Stamp and text, instead of rows."""


@dataclass(frozen=True)
class Clock:
    """Where the time comes from; replaced in tests only."""

    now: Callable[[], float] = pylsl.local_clock
    """The LSL clock, which is monotonic."""
    sleep: Callable[[float], None] = time.sleep


class _StopError(Exception):
    pass


@dataclass(frozen=True)
class Replay:
    """One replay; `run` does it."""

    source: Source
    settings: ReplaySettings = field(default_factory=ReplaySettings)
    faults: Faults = field(default_factory=Faults)
    markers: Sequence[Marker] = ()
    """On the clock of the source's time stamps."""
    stop: Callable[[], bool] = lambda: False
    """Is asked again and again whether to stop."""
    progress: Callable[[ReplayReport, float], None] = lambda report, at_s: None
    """Is told what was sent so far, and the second of signal."""
    clock: Clock = field(default_factory=Clock)
    tell: Callable[[str], None] = lambda text: None
    """Is told in words what the user should know."""

    def run(self) -> ReplayReport:
        """Send the recording, once or again and again; return what was sent."""
        report, settings = ReplayReport(), self.settings
        base_s = self.clock.now()
        info = described(self.source.info, self.faults)
        outlets = Outlets(info, settings.name, settings.source_id, settings.speed, base_s, self.faults.disconnect)
        steps = self.schedule(report)
        try:
            if outlets.second:
                self.tell(
                    f"another replay called {settings.name!r} runs on this machine; who listens to this one must ask "
                    f"for source_id={outlets.source_id}, or stop it and choose another --name"
                )
            if outlets.unlocked:
                self.tell(
                    f"warning: whether another replay called {settings.name!r} runs on this machine cannot be told "
                    f"({outlets.unlocked}); two at a time would be taken for one, so give each a --name of its own"
                )
            first = next(steps)  # read before the time starts
            while settings.wait and not outlets.heard():
                self._sleep_until(self.clock.now() + SLICE_S)
            start_s = self.clock.now()
            # What the description says for this time, however long it took until somebody listened.
            first_stamp_s = base_s + (start_s - base_s) * settings.speed
            told_s = start_s
            for each in chain([first], steps):
                due_s = start_s + each.due_s / settings.speed
                self._sleep_until(due_s)
                report.latest_s = max(report.latest_s, self.clock.now() - due_s)
                outlets.follow(each.at_s)
                report.samples += outlets.send(each.rows.data, first_stamp_s + each.rows.stamps_s)
                report.unheard = outlets.unheard
                if each.marker is not None:
                    outlets.mark(first_stamp_s + each.marker[0], each.marker[1])
                    report.markers += 1
                if self.clock.now() >= told_s + SLICE_S:
                    told_s = self.clock.now()
                    self.progress(report, each.at_s)
            self._sleep_until(self.clock.now() + LINGER_S)
        except _StopError:
            report.stopped = True
        finally:
            steps.close()
            outlets.close()
        return report

    def _sleep_until(self, due_s: float) -> None:
        while not self.stop():
            left_s = due_s - self.clock.now()
            if left_s <= 0:
                return
            self.clock.sleep(min(left_s, SLICE_S))
        raise _StopError

    def schedule(self, report: ReplayReport) -> Generator[Due]:
        """Give what is to be sent, in its order; `report` counts the passes."""
        info = self.source.info
        size = max(1, round(self.settings.chunk_ms * info.rate_hz / 1000))
        origin_s = next(float(chunk.times[0]) for chunk in self.source.chunks(1) if chunk.times is not None)
        texts = [(marker.time_s - origin_s, marker.text) for marker in self.markers if marker.time_s >= origin_s]
        injector = Injector(self.faults, info)
        edges = sorted({edge for each in self.faults.disconnect for edge in (each.at_s, each.end_s)})
        begun_s = 0.0
        while True:
            to_come = deque((at_s + begun_s, text) for at_s, text in texts)
            for block in timed(ahead(self.source.chunks()), begun_s - origin_s, info.rate_hz):
                due = [
                    Due(float(rows.due_s[-1]), float(rows.at_s[0]), rows)
                    for rows in pieces(injector.process(block), size / info.rate_hz, edges)
                ]
                while to_come and to_come[0][0] <= block.stamps_s[-1]:
                    due.append(_marker(*to_come.popleft(), block, injector))
                yield from sorted(due, key=lambda each: each.due_s)
            report.passes += 1
            if not self.settings.loop:
                return
            begun_s = float(block.at_s[-1]) + 1 / info.rate_hz


def timed(chunks: Iterator[Chunk], shift_s: float, rate_hz: float) -> Iterator[Rows]:
    """Give chunks their times: stamps are shifted by so much; where they go far back, sending just goes on."""
    before_s: float | None = None
    ahead_s = 0.0
    for chunk in chunks:
        assert chunk.times is not None
        stamps_s = chunk.times + shift_s
        steps = np.diff(stamps_s, prepend=stamps_s[0] if before_s is None else before_s)
        back = np.where(steps < -CLOCK_STEP_S, 1 / rate_hz - steps, 0.0)
        at_s = stamps_s + ahead_s + np.cumsum(back)
        before_s, ahead_s = float(stamps_s[-1]), ahead_s + float(back.sum())
        yield Rows(chunk.data, at_s, stamps_s, at_s)


def pieces(rows: Rows, chunk_s: float, edges: Sequence[float]) -> Iterator[Rows]:
    """Cut into chunks of time, so that nothing before a gap waits for its end, and at the edges."""
    number = np.floor(rows.at_s / chunk_s + 1e-6)  # of the chunk; the rest is rounding
    new = np.flatnonzero(np.diff(number)) + 1
    cuts = {0, len(rows), *new.tolist(), *np.searchsorted(rows.at_s, edges).tolist()}
    return (rows.take(slice(first, stop)) for first, stop in pairwise(sorted(cuts)))


def _marker(stamp_s: float, text: str, block: Rows, injector: Injector) -> Due:
    """Return a marker as it is sent: at its place in the recording, with the stamp that a sample there would have."""
    row = max(0, int(np.searchsorted(block.stamps_s, stamp_s, side="right")) - 1)
    at_s = float(block.at_s[row]) + stamp_s - float(block.stamps_s[row])
    later_s, stepped_s = (float(shift[0]) for shift in injector.shifts(np.array([at_s])))
    return Due(at_s + later_s, at_s, block.take(slice(0, 0)), (stamp_s + later_s + stepped_s, text))
