"""A live stream of markers, such as a stimulus program sends."""

from typing import Any

import pylsl
from pylsl.util import LostError
from pylsl.util import TimeoutError as LslTimeoutError

from rtbrain.errors import SourceError
from rtbrain.sources.lsl_find import LslStream
from rtbrain.sources.markers import Marker


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
        self._inlet.open_stream(5.0)

    def pull(self) -> list[Marker]:
        """Return the markers that came since the last call; never waits."""
        if self._inlet is None:
            return []
        try:
            texts, stamps = self._inlet.pull_chunk(timeout=0.0)
        except LostError:  # without a source id it cannot be found again
            self.close()
            return []
        self._held += [(stamp, " ".join(text)) for text, stamp in zip(texts, stamps, strict=True)]
        try:
            self._offset_s = float(self._inlet.time_correction(0.0))
        except LslTimeoutError:
            if self._offset_s is None:
                return []
        offset_s = self._offset_s
        markers = [Marker(stamp + offset_s, text) for stamp, text in self._held]
        self._held = []
        return markers

    @property
    def lost(self) -> bool:
        """Tell whether the stream ended for good."""
        return self._inlet is None

    def close(self) -> None:
        """Disconnect."""
        self._inlet = None
