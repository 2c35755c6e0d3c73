"""Which streams are on the network, and the one that is meant."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final
from xml.etree import ElementTree

import pylsl
from pylsl.util import LostError
from pylsl.util import TimeoutError as LslTimeoutError

from rtbrain.errors import SourceError
from rtbrain.sources.description import Description, fields_of

LOOK_S: Final = 1.2
"""How long one look lasts: liblsl asks at once and again after half a second, and only then do all streams answer."""

CONNECT_S: Final = 3.0
"""How long to wait for a stream's description and first connection."""

LONGEST_BUFFER_S: Final = 3600
"""Most signal that an inlet may hold, however fast a recording is replayed."""

KEYS: Final = ("name", "source_id", "type")
"""What a stream can be chosen by; where streams match by one of them, the next ones do not count."""


@dataclass(frozen=True)
class LslStream(Description):
    """A stream that was seen; labels, units and speed are known only once an inlet has asked for them."""

    source_id: str = ""
    uid: str = ""
    """Different for each outlet, also when a device starts again."""
    host: str = ""
    speed: float = 1.0
    """Seconds of signal per second, for a recording that is replayed faster or slower than it was."""
    base_s: float = 0.0
    """The LSL time from which on stamps advance `speed` times as fast as the clock."""
    handle: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{super().__str__()[:-1]}, source id {self.source_id or 'none'!r}, on {self.host or 'unknown host'})"

    @classmethod
    def of(cls, handle: Any) -> "LslStream":
        """Read what pylsl's description holds."""
        root = ElementTree.fromstring(handle.as_xml())
        return cls(
            **fields_of(root),
            source_id=root.findtext("source_id") or "",
            uid=root.findtext("uid") or "",
            host=root.findtext("hostname") or "",
            speed=float(root.findtext("desc/rtbrain/speed") or 1.0),
            base_s=float(root.findtext("desc/rtbrain/base_s") or 0.0),
            handle=handle,
        )

    def signal_time(self, lsl_s: float) -> float:
        """Return what a sample that is taken at this time of the sender's clock is stamped with."""
        return lsl_s if self.speed == 1.0 else self.base_s + (lsl_s - self.base_s) * self.speed


def visible_streams(wait_s: float = LOOK_S) -> list[LslStream]:
    """Look around for so long and return all streams, by name."""
    found = [LslStream.of(handle) for handle in pylsl.resolve_streams(wait_s)]
    return sorted(found, key=lambda stream: (stream.name, stream.source_id, stream.uid))


def matching(streams: Sequence[LslStream], wanted: str) -> list[LslStream]:
    """Return the streams whose name is `wanted`, else those of that source id, else those of that type.

    Most streams are of type EEG: one that is called so is meant before those. `type=EEG` and the like look at one key.
    """
    key, equals, value = wanted.partition("=")
    if equals and key in KEYS:
        return [stream for stream in streams if getattr(stream, key) == value]
    by_key = ([stream for stream in streams if getattr(stream, key) == wanted] for key in KEYS)
    return next((found for found in by_key if found), [])


def only(streams: Sequence[LslStream], wanted: str) -> LslStream | None:
    """Return the one stream that is meant, None if there is none yet; several are refused.

    Raises
    ------
    SourceError
        Several streams match.
    """
    found = matching(streams, wanted)
    if len(found) > 1:
        raise SourceError(
            f"{len(found)} streams match {wanted!r}, and guessing could decode the wrong person; say which one by "
            f"{', '.join(f'{key}=...' for key in KEYS)} in place of {wanted}:\n" + listed(found)
        )
    return found[0] if found else None


def listed(streams: Sequence[LslStream], wanted: str = "") -> str:
    """Return one line per stream, and whether one would match but for upper and lower case."""
    lines = [f"  {stream}" for stream in streams]
    value = wanted.partition("=")[2] or wanted
    words = {word for stream in streams for key in KEYS if (word := getattr(stream, key)).lower() == value.lower()}
    if words and value not in words:
        lines.append(f"did you mean {' or '.join(map(repr, sorted(words)))}? upper and lower case are told apart")
    return "\n".join(lines)


def find_stream(
    wanted: str, wait_s: float | None = None, seen: Callable[[list[LslStream]], None] | None = None
) -> LslStream:
    """Wait for the stream that is meant.

    Parameters
    ----------
    wanted : str
        Its name, type or source id, or `name=...`, `type=...`, `source_id=...` to look at one of them.
    wait_s : float, optional
        How long to wait; without end if left out.
    seen : callable, optional
        Is told after each look which other streams are there, to tell the user.

    Raises
    ------
    SourceError
        Several streams match, or none did within `wait_s`.
    """
    began = monotonic()
    while True:
        streams = visible_streams(LOOK_S)
        found = only(streams, wanted)
        if found is not None:
            return found
        if wait_s is not None and monotonic() - began >= wait_s:
            others = f"there are:\n{listed(streams, wanted)}" if streams else "there is no stream at all"
            raise SourceError(
                f"no stream of name, type or source id {wanted!r} within {wait_s:g} s; {others}\n"
                "Check that the amplifier's LSL output is on and that no firewall blocks it (`rtbrain streams`)"
            )
        if seen is not None:
            seen(streams)


def same_source(mine: LslStream, streams: Sequence[LslStream]) -> list[LslStream]:
    """Return those streams that are the same source: of the same id, else the same device under a new id.

    Never just any stream of the wanted type: the other one in the lab is another person's.
    """
    same = matching(streams, f"source_id={mine.source_id}") if mine.source_id else []
    return same or [each for each in streams if (each.name, each.type, each.host) == (mine.name, mine.type, mine.host)]


def connect(stream: LslStream, buffer_s: float, timeout_s: float = CONNECT_S) -> tuple[Any, LslStream]:
    """Return an inlet that holds so many seconds, and the stream's full description.

    Raises
    ------
    SourceError
        The stream is no regular one of numbers, or does not answer.
    """
    if stream.format == "string" or stream.rate_hz <= 0:
        raise SourceError(f"{stream} is no EEG: it holds texts or has no regular rate; choose another: rtbrain streams")
    try:
        inlet = pylsl.StreamInlet(stream.handle, max_buflen=max(1, round(buffer_s)), recover=False)
        full = LslStream.of(inlet.info(timeout_s))
        if full.speed > 1:  # the buffer is counted in seconds of signal, which pass faster
            longer = min(LONGEST_BUFFER_S, max(1, round(buffer_s * full.speed)))
            inlet = pylsl.StreamInlet(stream.handle, max_buflen=longer, recover=False)
        inlet.open_stream(timeout_s)
    except (LslTimeoutError, LostError) as error:
        raise SourceError(
            f"{stream} is announced, but does not answer within {timeout_s:g} s ({error}); its program may have ended, "
            "or a firewall lets the announcement through but not the data"
        ) from error
    return inlet, full
