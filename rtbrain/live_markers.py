"""The markers of a stimulus program beside the EEG: echoed in decisions, and some of them begin a new context."""

from collections import deque
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from time import monotonic
from typing import Any, Final

import pylsl

from rtbrain.decoder_api import Decoder
from rtbrain.errors import SourceError
from rtbrain.published import MarkerEcho
from rtbrain.sources.lsl import LslSource
from rtbrain.sources.lsl_find import LOOK_S, LslStream, only
from rtbrain.sources.lsl_markers import LslMarkers
from rtbrain.sources.markers import Marker

MOST_ECHOED: Final = 200
"""Markers that wait for a decision; older ones give way and are counted, so that a message stays small."""

MOST_HELD: Final = 1000
"""Markers that wait for the EEG's clock, which may never be known; older ones give way and are counted."""


class MarkerWatch:
    """Looks for a marker stream for as long as it is not there, and hands its markers on.

    Parameters
    ----------
    wanted : str
        Name, type or source id of the stream.
    reset_on : sequence of str
        Texts that begin a new context; `*` stands for anything.
    tell : callable
        Is told in words what happens.
    """

    def __init__(self, wanted: str, reset_on: Sequence[str], tell: Callable[[str], None]) -> None:
        self._wanted, self._reset_on, self._tell = wanted, tuple(reset_on), tell
        self._markers: LslMarkers | None = None
        self._resolver: Any = None
        self._since_s = 0.0
        self._had_one = False
        self._said = ""
        self._held: deque[Marker] = deque(maxlen=MOST_HELD)  # until the EEG's clock is known
        self._not_held = self._not_held_said = 0
        self._echoes: deque[MarkerEcho] = deque(maxlen=MOST_ECHOED)
        self._not_echoed = self._not_echoed_said = 0
        self._crowded = False  # markers gave way since the last decision

    @property
    def dropped(self) -> int:
        """Markers that no decision echoes.

        Those that gave way before the EEG's clock was known do not begin a context either; those that gave way to
        others before the next decision do.
        """
        return self._not_held + self._not_echoed

    def pull(self, source: LslSource, decoder: Decoder) -> None:
        """Take what came; to be called again and again."""
        if self._markers is None:
            self._look()
            return
        self._hold(self._markers.pull())
        if self._markers.lost:
            self._say_once(f"the marker stream {self._wanted!r} is gone; waiting for it to come back")
            self._markers = None
        if source.offset_s is None or decoder.origin_s is None:
            return
        if self._not_held > self._not_held_said:
            n, self._not_held_said = self._not_held - self._not_held_said, self._not_held
            self._tell(f"the EEG's clock is known; {n} marker(s) that had come before were dropped")
        for marker in self._held:
            self._echo(MarkerEcho(marker.time_s, marker.text))
            if any(fnmatchcase(marker.text, each) for each in self._reset_on):
                at_s = marker.time_s - source.offset_s - decoder.origin_s
                decoder.new_context(f"marker {marker.text}", at_s)
        self._held.clear()

    def echoes(self) -> tuple[MarkerEcho, ...]:
        """Return the markers that were not returned yet."""
        found = tuple(self._echoes)
        self._echoes.clear()
        if not self._crowded:  # while they come too fast for every decision, it is not said at each
            self._say_not_echoed()
        self._crowded = False
        return found

    def close(self) -> None:
        """Disconnect."""
        self._say_not_echoed()
        if self._markers is not None:
            self._markers.close()
        self._markers = self._resolver = None

    def _hold(self, markers: Sequence[Marker]) -> None:
        """Keep markers, the newest ones if there are too many."""
        surplus = max(0, len(self._held) + len(markers) - MOST_HELD)
        self._held.extend(markers)
        if surplus and self._not_held == self._not_held_said:
            self._tell(
                f"warning: more than {MOST_HELD} markers have come while the EEG's clock is not known, so the oldest "
                "are dropped; does the EEG send samples?"
            )
        self._not_held += surplus

    def _echo(self, marker: MarkerEcho) -> None:
        """Keep a marker for the next decision; the oldest gives way if there are too many."""
        if len(self._echoes) == MOST_ECHOED:
            if self._not_echoed == self._not_echoed_said:
                self._tell(
                    f"warning: more than {MOST_ECHOED} markers have come since the last decision, so it will not echo "
                    "the oldest"
                )
            self._not_echoed += 1
            self._crowded = True
        self._echoes.append(marker)

    def _say_not_echoed(self) -> None:
        if self._not_echoed > self._not_echoed_said:
            n, self._not_echoed_said = self._not_echoed - self._not_echoed_said, self._not_echoed
            self._tell(f"{n} marker(s) were not echoed: a decision carries at most {MOST_ECHOED}")

    def _look(self) -> None:
        if self._resolver is None:
            self._resolver, self._since_s = pylsl.ContinuousResolver(), monotonic()
        if monotonic() - self._since_s < LOOK_S:
            return
        self._since_s = monotonic()
        try:
            found = only([LslStream.of(handle) for handle in self._resolver.results()], self._wanted)
            if found is None:
                return
            self._markers = LslMarkers(found)
        except SourceError as error:
            if not self._had_one:
                raise
            self._say_once(f"{error}")  # decoding goes on: no marker is worth the session
            return
        self._resolver, self._had_one = None, True
        self._say_once(f"markers come from {found}")

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._tell(text)
        self._said = text
