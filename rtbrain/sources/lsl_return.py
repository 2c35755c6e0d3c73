"""A stream that was lost: looked for on the network, and compared with what it was once it is back."""

from time import monotonic
from typing import Any, Final

import pylsl

from rtbrain.errors import StreamError
from rtbrain.messages import StreamInfo
from rtbrain.sources.description import eeg_channels
from rtbrain.sources.lsl_find import LOOK_S, LslStream, same_source

_FORGET_S: Final = 2.0


class Lookout:
    """Watches the network in the background for the stream `mine`."""

    def __init__(self, mine: LslStream) -> None:
        self._mine = mine
        self._resolver: Any = pylsl.ContinuousResolver(forget_after=_FORGET_S)
        self._since_s = monotonic()
        self._found_since: float | None = None

    @property
    def settled(self) -> bool:
        """Tell whether all streams have had the time to answer."""
        return monotonic() - self._since_s >= LOOK_S

    def visible(self) -> list[LslStream]:
        """Return all streams that are there at the moment."""
        return [LslStream.of(handle) for handle in self._resolver.results()]

    def returned(self) -> list[LslStream]:
        """Return the streams that are the lost one, none while it is too early to tell."""
        found = same_source(self._mine, self.visible())
        self._found_since = (self._found_since or monotonic()) if found else None
        # Under a new id it must stay the only one of its name for a while: a second device may show up as well.
        renamed = any(each.source_id != self._mine.source_id for each in found)
        early = self._found_since is None or (renamed and monotonic() - self._found_since < LOOK_S)
        return [] if early else found


def same_channels(info: StreamInfo, stream: LslStream, unit: str | None) -> list[int]:
    """Return where the channels of `info` stand in a stream that came back.

    Raises
    ------
    StreamError
        It has another rate or unit, or lacks a channel.
    """
    picks, now = eeg_channels(stream.name, stream, unit)
    missing = [name for name in info.channels if name not in now.channels]
    if missing or (now.rate_hz, now.unit) != (info.rate_hz, info.unit):
        lack = f", without {', '.join(missing)}" if missing else ""
        raise StreamError(
            f"{stream} came back changed: {_summary(now)}{lack}; it had {_summary(info)}: start the decoder anew"
        )
    return [picks[now.channels.index(name)] for name in info.channels]


def what_changed(before: LslStream, now: LslStream) -> str:
    """Return in words that a stream came back, and what is new about it."""
    reason = "the source came back"
    if now.source_id != before.source_id:
        reason += f" with another id ({now.source_id!r}, it was {before.source_id!r})"
    if now.labels != before.labels:
        reason += ", its channels in another order or with others beside them"
    return reason


def _summary(info: StreamInfo) -> str:
    return f"{info.rate_hz:g} Hz, {len(info.channels)} channels in {info.unit}"
