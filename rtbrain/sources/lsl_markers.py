"""A live stream of markers, such as a stimulus program sends."""

from typing import Any, Final

import pylsl
from pylsl.util import LostError
from pylsl.util import TimeoutError as LslTimeoutError

from rtbrain.errors import SourceError
from rtbrain.sources.lsl_find import LslStream
from rtbrain.sources.markers import Marker

LONGEST_TEXT: Final = 300
"""Characters of a marker that are kept: it stands in messages and on screens."""

_MOST_AT_ONCE: Final = 32  # pylsl clears a slot for each that could come, at every pull


def readable(raw: bytes) -> str:
    """Return a marker's text, fit for a screen: what is no text, such as control characters, is spelt out."""
    text = raw.decode("utf-8", "backslashreplace")
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:LONGEST_TEXT])
    return shown if len(shown) <= LONGEST_TEXT and len(text) <= LONGEST_TEXT else f"{shown[: LONGEST_TEXT - 3]}..."


class LslMarkers:
    """Markers as they come, on the local LSL clock.

    A stimulus program may end and start again: liblsl finds it by its source id, and nothing here depends on that it
    sends regularly, or at all.
    """

    def __init__(self, stream: LslStream) -> None:
        if stream.format != "string":
            raise SourceError(f"{stream} does not hold texts, markers do; choose another: rtbrain streams")
        self.stream = stream
        self._inlet: Any = pylsl.StreamInlet(stream.handle, recover=bool(stream.source_id))
        self._held: list[tuple[float, str]] = []  # until the clocks' offset is known
        self._offset_s: float | None = None
        self._open = False
        self._connect()

    def pull(self) -> list[Marker]:
        """Return the markers that came since the last call; never waits."""
        if not self._connect():
            return []
        try:
            texts, stamps = self._inlet.pull_chunk(timeout=0.0, max_samples=_MOST_AT_ONCE, as_numpy=True)
        except LostError:  # without a source id it cannot be found again
            self.close()
            return []
        self._held += [(float(stamp), readable(b" ".join(text))) for text, stamp in zip(texts, stamps, strict=True)]
        try:
            self._offset_s = float(self._inlet.time_correction(0.0))
        except (LslTimeoutError, LostError):  # a loss shows with the next pull
            if self._offset_s is None:
                return []
        offset_s = self._offset_s
        markers = [Marker(stamp + offset_s, text) for stamp, text in self._held]
        self._held = []
        return markers

    def _connect(self) -> bool:
        """Tell whether liblsl, in the background, has made the connection: before it has, a pull may hang."""
        if self._inlet is None or self._open:
            return self._open
        try:
            self._inlet.open_stream(0.0)
            self._open = True
        except LslTimeoutError:
            pass
        except LostError:
            self.close()
        return self._open

    @property
    def lost(self) -> bool:
        """Tell whether the stream ended for good."""
        return self._inlet is None

    def close(self) -> None:
        """Disconnect."""
        self._inlet, self._open = None, False
