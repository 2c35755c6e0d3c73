"""Decisions as an LSL stream, so that LabRecorder records them beside the EEG."""

import math
import socket
from collections.abc import Sequence
from typing import Any, Final

import pylsl

from rtbrain.errors import SecurityError
from rtbrain.lsl_scope import is_machine_scoped
from rtbrain.published import StateMessage

EXTRA: Final = ("class", "trusted", "context_s", "age_s")
"""Channels after the classes' probabilities: index of the class, 1 or 0, and two times in seconds (NaN: unknown)."""

STREAM_TYPE: Final = "BrainState"


class LslStateOutlet:
    """An LSL stream of irregular rate: one sample for each decision, stamped with its newest EEG sample's time.

    Parameters
    ----------
    name : str
        Name of the stream.
    classes : sequence of str
        What the probabilities, the first channels, are of.
    insecure : bool
        LSL sends in clear; unless it is limited to this machine, the user must insist.

    Raises
    ------
    SecurityError
        The stream could be seen by other machines.
    """

    def __init__(self, name: str, classes: Sequence[str], *, insecure: bool = False) -> None:
        if not (insecure or is_machine_scoped()):
            raise SecurityError(
                "an LSL stream can be read by every machine on the network, as LSL has no keys: say --insecure, or "
                "limit LSL to this machine ([multicast] ResolveScope = machine in lsl_api.cfg)"
            )
        self._classes = tuple(classes)
        labels = [f"p({each})" for each in classes] + list(EXTRA)
        source_id = f"rtbrain-{name}-{socket.gethostname()}"
        info = pylsl.StreamInfo(name, STREAM_TYPE, len(labels), pylsl.IRREGULAR_RATE, "double64", source_id)
        channels = info.desc().append_child("channels")
        for label in labels:
            channel = channels.append_child("channel")
            channel.append_child_value("label", label)
            channel.append_child_value("unit", "seconds" if label.endswith("_s") else "none")
            channel.append_child_value("type", "misc")
        self._outlet: Any = pylsl.StreamOutlet(info)

    def send(self, message: StateMessage) -> None:
        """Send one decision; without a known time of its sample it is stamped with the present."""
        age_s = message.age.total_s
        values = [message.probabilities[each] for each in self._classes]
        values += [
            float(self._classes.index(message.label)),
            float(message.trusted),
            message.context.seconds,
            math.nan if age_s is None else age_s,
        ]
        self._outlet.push_sample(values, pylsl.local_clock() if message.time_s is None else message.time_s)

    def heard(self) -> bool:
        """Tell whether somebody listens."""
        return bool(self._outlet.have_consumers())

    def close(self) -> None:
        """Take the stream off the network."""
        self._outlet = None
