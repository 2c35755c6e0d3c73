"""LSL for tests: limited to this machine and to this test run; to be imported before anything that uses LSL."""

import atexit
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

_CONFIG = Path(tempfile.mkdtemp(prefix="rtbrain-lsl-")) / "lsl_api.cfg"
# A session id of its own: two test runs on one machine must not see each other's streams.
_CONFIG.write_text(f"[multicast]\nResolveScope = machine\n[lab]\nSessionID = test-{uuid4().hex}\n[log]\nlevel = -3\n")
os.environ["LSLAPICFG"] = str(_CONFIG)  # children inherit it
atexit.register(lambda: (_CONFIG.unlink(missing_ok=True), _CONFIG.parent.rmdir()))

import numpy as np  # noqa: E402
import pylsl  # noqa: E402

from rtbrain.messages import Break, Chunk  # noqa: E402
from rtbrain.sources.lsl import LslSettings, LslSource  # noqa: E402
from rtbrain.sources.lsl_find import LslStream  # noqa: E402

PATIENCE_S = 30.0
"""How long a test waits for what should take a moment: the machine may be busy."""


def name() -> str:
    """Return a stream name that nobody else uses."""
    return f"test-{uuid4().hex[:12]}"


def outlet(
    name: str,
    labels: tuple[str, ...] = ("Fz", "Cz", "Pz", "Oz"),
    rate_hz: float = 250.0,
    unit: str = "microvolts",
    source_id: str = "amplifier-1",
    kind: str = "EEG",
    form: str = "float32",
    types: tuple[str, ...] = (),
    speed: float | None = None,
) -> Any:
    """Announce a stream; it ends with the last reference to it."""
    info = pylsl.StreamInfo(name, kind, len(labels), rate_hz, form, source_id)
    channels = info.desc().append_child("channels")
    for i, label in enumerate(labels):
        channel = channels.append_child("channel")
        channel.append_child_value("label", label)
        channel.append_child_value("unit", unit)
        if types:
            channel.append_child_value("type", types[i])
    if speed is not None:
        about = info.desc().append_child("rtbrain")
        about.append_child_value("speed", str(speed))
        about.append_child_value("base_s", str(pylsl.local_clock()))
    return pylsl.StreamOutlet(info)


def seen(name: str) -> LslStream:
    """Return the stream of this name as soon as it is on the network."""
    (found,) = pylsl.resolve_byprop("name", name, timeout=PATIENCE_S)
    return LslStream.of(found)


def connected(sender: Any, name: str, settings: LslSettings | None = None) -> LslSource:
    """Return a source that receives everything that is sent from now on."""
    source = LslSource(seen(name), settings)
    assert sender.wait_for_consumers(PATIENCE_S)
    return source


def counting(first: int, n: int, channels: int = 4) -> np.ndarray:
    """Return (n, channels) samples whose value is their number, plus a tenth of the channel's."""
    return np.arange(first, first + n)[:, None] + np.arange(channels) / 10


def pull_until(source: LslSource, done: Callable[[], bool]) -> list[Chunk | Break]:
    """Pull until a condition holds; return all that came."""
    out: list[Chunk | Break] = []
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, f"waited in vain: {source.state}, {source.counts}, {source.trouble}"
        out += source.pull(0.05)
    return out


def samples_of(items: list[Chunk | Break]) -> np.ndarray:
    return np.concatenate([item.data for item in items if isinstance(item, Chunk)])
