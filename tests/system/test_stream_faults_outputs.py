"""The fault table, outputs: full disks, listeners that hang or misbehave, a taken port, markers that are no text."""

import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pylsl
import pytest
import zmq

from rtbrain.decoder.bundle import Bundle
from rtbrain.sinks.session_check import check_session
from tests import lsl
from tests.decoding import RATE, Amplifier, Decoding, is_state, newest_status, reached
from tests.system.test_cli import refused

pytestmark = [pytest.mark.slow, pytest.mark.live]

FULL_BYTES = 20_000


def fill_disk() -> None:
    """Let no file of this process grow beyond some kilobytes; to it that is a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, resource.RLIM_INFINITY))


@contextmanager
def raw_listener() -> Iterator[Any]:
    """Give a SUB socket of ZeroMQ's own."""
    context = zmq.Context()
    try:
        yield context.socket(zmq.SUB)
    finally:
        context.destroy(linger=0)


def log_is(state: str) -> Any:
    return lambda message: message["topic"] == "status" and message["log"]["state"] == state


def test_a_full_disk_and_a_hung_listener_stop_nothing(bundle: Bundle, tmp_path: Path) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 60.0)
    with Decoding(bundle.folder, name, "--log", tmp_path, before=fill_disk) as decoding, raw_listener() as hung:
        hung.setsockopt(zmq.RCVHWM, 1)
        hung.setsockopt(zmq.RCVBUF, 1024)
        hung.setsockopt(zmq.SUBSCRIBE, b"")
        hung.connect(decoding.endpoint)
        amplifier.heard()
        for _ in range(10):
            amplifier.send(2.0)
        full = decoding.until(log_is("failing"))
        assert "the session log cannot be written" in full["trouble"]
        amplifier.send(4.0)
        decoding.until(reached(23.9), 0)  # decisions go on

        # Somebody deletes something: all that waited is written.
        resource.prlimit(decoding.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        decoding.until(log_is("writing"))
        code, out, _ = decoding.ended()
        assert (code, "lacks" in out) == (0, False)
    amplifier.close()
    assert decoding.listener.missed == 0
    report = check_session(tmp_path)
    assert (report.sound, report.cut) == (True, [])
    assert report.topics["state"] == len(decoding.of("state"))


def test_a_disk_that_stays_full_is_said_at_the_end(bundle: Bundle, tmp_path: Path) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 30.0)
    with Decoding(bundle.folder, name, "--log", tmp_path, before=fill_disk) as decoding:
        amplifier.heard()
        amplifier.send(20.0)
        decoding.until(log_is("failing"))
        code, out, _ = decoding.ended()
        assert code == 0
        assert "the session log lacks" in out
    amplifier.close()
    report = check_session(tmp_path)  # what was written is sound
    assert (report.damaged, report.cut, report.records > 10) == ([], [], True)


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 3) + b"SUB"


def test_long_subscriptions_are_refused_and_fill_no_memory(bundle: Bundle) -> None:
    """A listener that speaks ZeroMQ's protocol, but subscribes to twenty topics of a megabyte each."""
    with Decoding(bundle.folder, lsl.name()) as decoding:
        before = newest_status(decoding)
        host, port = decoding.endpoint.removeprefix("tcp://").split(":")
        for i in range(20):
            with socket.create_connection((host, int(port)), 30) as rude:
                rude.sendall(GREETING + b"\x04" + bytes([len(READY)]) + READY)
                topic = b"\x01%02d" % i + b"x" * 1_000_000
                with suppress(ConnectionError):
                    rude.sendall(b"\x02" + struct.pack(">Q", len(topic)) + topic)
                with suppress(ConnectionError):
                    while rude.recv(65536):  # until the other side hangs up
                        pass
        for _ in range(2):
            after = newest_status(decoding)
        assert after["rss_mb"] < before["rss_mb"] + 20
        assert decoding.listener.missed == 0


def test_a_port_that_is_taken_is_refused(bundle: Bundle) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        assert "another program has it" in refused(
            "stream", "--lsl", "EEG", "--bundle", bundle.folder, "--zmq", endpoint
        )


def test_markers_that_are_no_text_reach_no_screen(bundle: Bundle) -> None:
    """Control characters, bytes of another encoding, and a marker as long as a book."""
    name = lsl.name()
    amplifier = Amplifier(name, 90.0)
    texts: Any = pylsl.StreamOutlet(pylsl.StreamInfo(f"{name}-m", "Markers", 1, 0.0, "string", f"{name}-m"))
    with Decoding(bundle.folder, name, "--markers", f"{name}-m", "--reset-on", "*") as decoding:
        amplifier.heard()
        amplifier.send(2.0)
        assert texts.wait_for_consumers(60)
        odd = ["\x1b[2Jtrial\n1", b"n\xe4chster", "x" * 500_000]
        for i, each in enumerate(odd):
            texts.push_sample([each], amplifier.stamp_s + 0.2 * i)
        while len(echoed(decoding)) < len(odd):  # markers come by another way than samples, perhaps later
            amplifier.go_on(0.2)
            decoding.until(reached(amplifier.at / RATE - 0.5), 0)
        amplifier.send(2.0)
        decoding.until(lambda each: is_state(each) and "marker xxx" in each["context"]["began"], 0)
        code, out, _ = decoding.ended()
    amplifier.close()
    assert code == 0
    found = echoed(decoding)
    assert found[:2] == ["\\x1b[2Jtrial\\n1", "n\\xe4chster"]
    assert (len(found), len(found[2]), found[2][-4:]) == (3, 300, "x...")
    assert "\x1b" not in out


def echoed(decoding: Decoding) -> list[str]:
    return [each["text"] for state in decoding.of("state") for each in state["markers"]]
