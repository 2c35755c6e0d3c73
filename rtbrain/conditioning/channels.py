"""Channels by name: every lab's spelling of an electrode becomes one, and the recipe's channels are picked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtbrain.config import Share
from rtbrain.errors import ChannelError, StreamError
from rtbrain.messages import Chunk, IntArray, StreamInfo

RENAMED = {"t3": "t7", "t4": "t8", "t5": "p7", "t6": "p8"}
"""Names of the first 10-20 system and what they have been called since 1994."""

_PREFIX = re.compile(r"^eeg[ _:]+", re.IGNORECASE)
_SUFFIX = re.compile(r"-(le|ref|a1|a2|avg|ar)$", re.IGNORECASE)

_SCALP = re.compile(
    r"^(Fp|AFP?|AFF|F|FFC|FFT|FC|FT|FCC|FTT|C|T|CCP|TTP|CP|TP|CPP|TPP|P|PPO|PO|POO|O|OI|I)(z|\d{1,2})H?$"
)


def is_scalp(name: str) -> bool:
    """Say whether a canonical name is a position of the 10-05 system on the scalp (not an ear, eye or auxiliary)."""
    return _SCALP.match(name) is not None


def canonical(name: str) -> str:
    """Return the modern 10-05 spelling of an electrode's name.

    `EEG T3-LE`, `t3`, `T3..` and `T7` all give `T7`. Case of the answer follows the usual rule: letters upper,
    but `Fp` and a final `z`. Names that are no electrodes come back in the same manner, so they never collide.
    """
    bare = _SUFFIX.sub("", _PREFIX.sub("", name.strip())).strip().rstrip(".").lower()
    bare = RENAMED.get(bare, bare)
    spelled = bare.upper()
    if spelled.startswith("FP"):
        spelled = "Fp" + spelled[2:]
    return spelled[:-1] + "z" if spelled.endswith("Z") else spelled


def canonical_channels(names: Sequence[str]) -> dict[str, int]:
    """Map each canonical name to its position; refuse two channels of one name."""
    found: dict[str, int] = {}
    for position, name in enumerate(names):
        key = canonical(name)
        if key in found:
            raise ChannelError(
                f"channels {found[key] + 1} ({names[found[key]]!r}) and {position + 1} ({name!r}) are the same "
                f"electrode, {key}; rename or remove one of them in the recording"
            )
        found[key] = position
    return found


@dataclass(frozen=True)
class ChannelSettings:
    """Which electrodes the recipe uses."""

    names: tuple[str, ...] = ()
    """Electrodes in the recipe's order; empty takes all that the stream has."""
    min_coverage: Share = 0.7
    """Smallest share of them that must be in the stream, and good, for labels to be given."""


class PickChannels:
    """As `data[:, positions]`, over chunks: the recipe's channels, in its order, by canonical name."""

    def __init__(self, settings: ChannelSettings) -> None:
        self.settings = settings
        self.missing: tuple[str, ...] = ()
        self._positions: IntArray | None = None

    def open(self, info: StreamInfo) -> StreamInfo:
        """Find the recipe's channels; refuse doubled names and too small a share."""
        found = canonical_channels(info.channels)
        wanted = tuple(canonical_channels(self.settings.names)) or tuple(found)
        self._n_columns = len(info.channels)
        here = [name for name in wanted if name in found]
        self.missing = tuple(name for name in wanted if name not in found)
        if len(here) < self.settings.min_coverage * len(wanted):
            raise ChannelError(
                f"only {len(here)} of the recipe's {len(wanted)} channels are in the stream, at least "
                f"{self.settings.min_coverage:.0%} are needed; missing: {', '.join(self.missing)}; "
                f"the stream has: {', '.join(info.channels)}"
            )
        if len(here) < 3:
            raise ChannelError(f"{len(here)} channels ({', '.join(here)}) have no topography; at least 3 are needed")
        positions = [found[name] for name in here]
        identity = positions == list(range(len(info.channels)))
        self._positions = None if identity else np.array(positions)
        return replace(info, channels=tuple(here))

    def process(self, x: Chunk) -> Chunk:
        """Pick the columns; refuse a stream that has changed their number."""
        if x.data.shape[1] != self._n_columns:
            raise StreamError(f"the stream had {self._n_columns} channels and now has {x.data.shape[1]}; open it anew")
        if self._positions is None:
            return x
        return Chunk(np.take(x.data, self._positions, axis=1), x.start, x.times)

    def flush(self) -> list[Chunk]:
        """Nothing is held back."""
        return []
