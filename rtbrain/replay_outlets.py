"""The streams of a replay on the network: the EEG, which a fault script may take away and bring back, and markers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pylsl

from rtbrain.faults import Disconnect
from rtbrain.injection import positions
from rtbrain.messages import FloatArray, StreamInfo
from rtbrain.replay_id import ReplayId

UNITS: Final = {"V": "volts", "mV": "millivolts", "uV": "microvolts", "nV": "nanovolts", "unknown": ""}
"""How XDF's conventions write units."""

MARKERS: Final = "-markers"
"""The marker stream has the EEG's name with this behind it."""


class Outlets:
    """The two streams; they are announced at once.

    Parameters
    ----------
    info : StreamInfo
        What the EEG says about itself.
    name, source_id : str
        Of the EEG; an empty id is replaced by one for this name on this machine, see `ReplayId`.
    speed, base_s : float
        Stamps advance so many times as fast as the clock, from this LSL time on.
    disconnects : sequence of Disconnect
        When the EEG goes, and how it comes back.
    """

    def __init__(
        self,
        info: StreamInfo,
        name: str,
        source_id: str,
        speed: float,
        base_s: float,
        disconnects: Sequence[Disconnect] = (),
    ) -> None:
        self._info, self._name, self._speed, self._base_s = info, name, speed, base_s
        self._disconnects = sorted(disconnects, key=lambda each: each.at_s)
        for each in self._disconnects:
            positions(info, each.without)  # refuses channels that are not there
        self._id = None if source_id else ReplayId(name)
        self.source_id = source_id if self._id is None else self._id.text
        self._back: Disconnect | None = None
        """After which disconnection the present stream came; None for the first one."""
        self._eeg: Any = None
        self.unheard = 0
        """Samples whose time came while nobody listened."""
        self._open()
        texts = pylsl.StreamInfo(name + MARKERS, "Markers", 1, 0.0, "string", self.source_id + MARKERS)
        self._describe(texts)
        self._texts: Any = pylsl.StreamOutlet(texts)

    @property
    def second(self) -> bool:
        """Tell whether the usual id was taken: by a replay of this name that runs on this machine."""
        return self._id is not None and self._id.number > 1

    @property
    def unlocked(self) -> str:
        """Return why the id could not be taken, so that another replay may have the same; empty if all is well."""
        return "" if self._id is None else self._id.trouble

    def heard(self) -> bool:
        """Tell whether somebody listens to the EEG."""
        return self._eeg is not None and bool(self._eeg.have_consumers())

    def follow(self, at_s: float) -> None:
        """Take the EEG away or bring it back as the script says for this second."""
        past = [each for each in self._disconnects if each.at_s <= at_s]
        if past and at_s < past[-1].end_s:
            self._eeg = None
        elif past and (self._eeg is None or past[-1] is not self._back):
            self._back = past[-1]
            self._open()

    def send(self, data: FloatArray, stamps_s: FloatArray) -> int:
        """Send samples and return how many these were: none while the stream is away.

        What nobody listens to is counted and not sent at all: somebody who comes at this very moment would hear it.
        """
        if self._eeg is None or not len(data):
            return 0
        if self.heard():
            self._eeg.push_chunk(data.take(self._picks, axis=1), stamps_s.tolist())
        else:
            self.unheard += len(data)
        return len(data)

    def mark(self, stamp_s: float, text: str) -> None:
        """Send a marker."""
        self._texts.push_sample([text], stamp_s)

    def close(self) -> None:
        """Take both streams off the network."""
        self._eeg = self._texts = None  # pylsl's objects end with their last reference
        if self._id is not None:
            self._id.release()

    def _open(self) -> None:
        back, info, source_id = self._back, self._info, self.source_id
        self._picks = positions(info, ())
        if back is not None:
            kept = [i for i, name in enumerate(info.channels) if name not in back.without]
            self._picks = positions(info, [info.channels[i] for i in (kept[::-1] if back.reverse_channels else kept)])
            info = replace(info, rate_hz=back.rate_hz or info.rate_hz)
            source_id = back.source_id or source_id
        # Double precision, so that nothing is rounded that the recording holds.
        described = pylsl.StreamInfo(self._name, "EEG", len(self._picks), info.rate_hz, "double64", source_id)
        self._describe(described)
        channels = described.desc().append_child("channels")
        for i in self._picks.tolist():
            channel = channels.append_child("channel")
            channel.append_child_value("label", info.channels[i])
            channel.append_child_value("unit", UNITS[info.unit])
            channel.append_child_value("type", "EEG")
        self._eeg = pylsl.StreamOutlet(described)

    def _describe(self, described: Any) -> None:
        about = described.desc().append_child("rtbrain")
        about.append_child_value("speed", repr(self._speed))
        about.append_child_value("base_s", repr(self._base_s))
