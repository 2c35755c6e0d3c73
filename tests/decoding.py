"""The live decoder as a process of its own, with a listener, and an amplifier to feed it."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pylsl

from rtbrain.sinks.zmq_sub import Subscriber
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from tests import lsl

PATIENCE_S = 60.0
RATE = 250.0

Message = dict[str, Any]


class Decoding:
    """`rtbrain stream` for as long as a block lasts; what it publishes is collected in `messages`."""

    def __init__(
        self,
        bundle: Path,
        wanted: str,
        *options: object,
        program: Sequence[str] = ("-m", "rtbrain"),
        before: Callable[[], None] | None = None,
        python: object = sys.executable,
    ) -> None:
        command = [
            python,
            *program,
            "stream",
            "--lsl",
            wanted,
            "--bundle",
            bundle,
            "--zmq",
            "tcp://127.0.0.1:0",
        ]
        self.messages: list[Message] = []
        self.process = subprocess.Popen(
            [str(each) for each in (*command, "--device", "cpu", *options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("publishing on "):
            self.process.kill()
            raise AssertionError(f"{line}{self.process.communicate()}")
        self.endpoint = line.split()[-1]
        self.listener = Subscriber(self.endpoint)
        self.until(lambda each: each["topic"] == "status")

    def __enter__(self) -> "Decoding":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.listener.close()
        self.process.kill()
        self.process.communicate()

    def receive(self, timeout_s: float = 0.1) -> Message | None:
        message = self.listener.receive(timeout_s)
        self.messages += [] if message is None else [message]
        return message

    @property
    def now(self) -> int:
        """Number of messages so far: what comes after this may be asked for `since` it."""
        return len(self.messages)

    def until(self, done: Callable[[Message], bool], since: int | None = None) -> Message:
        """Receive until a message of interest comes, and return it; it may have come already, since that number."""
        deadline = time.monotonic() + PATIENCE_S
        for message in self.messages[len(self.messages) if since is None else since :]:
            if done(message):
                return message
        while time.monotonic() < deadline:
            message = self.receive()
            if message is not None and done(message):
                return message
        raise AssertionError(f"waited in vain; the newest message is {self.messages[-1:]}")

    def ended(self, stop: int | None = signal.SIGTERM) -> tuple[int, str, str]:
        """Ask it to stop, unless it ends by itself, and return exit code, output and errors."""
        if stop is not None:
            self.process.send_signal(stop)
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            self.receive()
        while self.receive(0.3) is not None:
            pass
        out, err = self.process.communicate()
        return self.process.returncode, out, err

    def of(self, topic: str) -> list[Message]:
        return [each for each in self.messages if each["topic"] == topic]


def is_state(message: Message) -> bool:
    return bool(message["topic"] == "state")


def status_is(*states: str) -> Callable[[Message], bool]:
    return lambda message: message["topic"] == "status" and message["state"] in states


def reached(signal_s: float) -> Callable[[Message], bool]:
    """Tell a decision at this second of signal or later."""
    return lambda message: is_state(message) and message["signal_s"] >= signal_s - 1e-6


def newest_status(decoding: Decoding) -> Message:
    """Return a status that was made after everything so far."""
    return decoding.until(lambda message: message["topic"] == "status")


class Amplifier:
    """Synthetic EEG on LSL: sent when told to, with stamps that run on by the number of samples."""

    def __init__(self, name: str, seconds: float = 60.0, **changes: Any) -> None:
        source = Synthetic(SyntheticSettings(duration_s=seconds))
        self.data = np.concatenate([chunk.data for chunk in source.chunks()])
        self.name, self.labels = name, source.info.channels
        self.at = 0
        self.open(**changes)

    def open(self, **changes: Any) -> None:
        """Announce the stream, anew if there was one; its clock starts at the present."""
        self.outlet: Any = None
        self.order = [self.labels.index(label) for label in changes.setdefault("labels", self.labels)]
        changes.setdefault("source_id", self.name)
        self.outlet = lsl.outlet(self.name, form="double64", **changes)
        self.stamp_s = pylsl.local_clock()

    def heard(self) -> None:
        assert self.outlet.wait_for_consumers(PATIENCE_S)

    def send(self, seconds: float, data: np.ndarray | None = None, skip_s: float = 0.0, rate_hz: float = RATE) -> None:
        """Send the next seconds at once, perhaps after some that get lost, or stamped at another rate than declared."""
        n = round(seconds * RATE)
        self.at += round(skip_s * RATE)
        self.stamp_s += skip_s
        rows = self.data[self.at : self.at + n] if data is None else data
        assert len(rows) == n, "the amplifier has no more signal"
        self.outlet.push_chunk(
            np.ascontiguousarray(rows[:, self.order]), (self.stamp_s + np.arange(n) / rate_hz).tolist()
        )
        self.at += n
        self.stamp_s += n / rate_hz

    def play(self, seconds: float) -> float:
        """Begin a clock at the present and send the next seconds in real time; return the first sample's stamp."""
        first_s = self.stamp_s = pylsl.local_clock()
        self.go_on(seconds)
        return first_s

    def go_on(self, seconds: float) -> None:
        """Send the next seconds, a tenth at a time, as soon as they are due by their stamps."""
        for _ in range(round(10 * seconds)):
            time.sleep(max(0.0, self.stamp_s + 0.1 - pylsl.local_clock()))
            self.send(0.1)

    def close(self) -> None:
        self.outlet = None
