"""The fault table of the live decoder: each fault strikes `rtbrain stream` in a process of its own, over real LSL."""

import resource
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from rtbrain.decoder.bundle import Bundle
from rtbrain.sinks.session_check import check_session
from tests import lsl
from tests.bundles import make_bundle
from tests.decoding import RATE, Amplifier, Decoding, Message, is_state, status_is
from tests.system.test_cli import refused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("models") / "small")


def reached(signal_s: float) -> Any:
    """Tell a decision at this second of signal or later."""
    return lambda message: is_state(message) and message["signal_s"] >= signal_s - 1e-6


def newest_status(decoding: Decoding) -> Message:
    """Return a status that was made after everything so far."""
    return decoding.until(lambda message: message["topic"] == "status")


def test_faults_of_the_signal(bundle: Bundle) -> None:
    """One session: lost and doubled samples, values that are no numbers, dead electrodes, ten seconds at once."""
    name = lsl.name()
    amplifier = Amplifier(name, 120.0)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(8.0)
        good = decoding.until(reached(7.9))
        assert (good["context"]["number"], good["context"]["began"]) == (1, "start")

        amplifier.send(2.0, skip_s=0.02)  # a short gap is filled in
        amplifier.send(4.0, skip_s=0.5)  # a longer one is not, but the context goes on
        after_gap = decoding.until(reached(14.4))
        assert after_gap["context"]["number"] == 1
        samples = newest_status(decoding)["samples"]
        assert (samples["filled"], samples["lost"], samples["received"]) == (5, 125, 14 * RATE)

        amplifier.at, amplifier.stamp_s = amplifier.at - 100, amplifier.stamp_s - 0.4
        amplifier.send(2.4)  # the first 100 samples were there before
        doubled = decoding.until(reached(16.4))
        assert doubled["context"]["number"] == 1
        status = newest_status(decoding)
        assert 98 <= status["samples"]["repeated"] <= 100  # the last ones may be within the grid's tolerance
        assert status["gaps"] == 1

        x = amplifier.data[amplifier.at : amplifier.at + 1500].copy()
        x[100:400, 3], x[200:500, 5] = np.nan, np.inf
        x[:, [7, 8, 9, 10, 11]] = 3.0  # dead
        amplifier.send(6.0, x)
        dead = decoding.until(reached(22.4))
        assert all(np.isfinite(list(dead["probabilities"].values())))
        bad = set(newest_status(decoding)["bad_channels"])
        assert bad >= {amplifier.labels[i] for i in (7, 8, 9, 10, 11)}
        amplifier.send(4.0)
        decoding.until(reached(26.4))
        assert newest_status(decoding)["bad_channels"] == []  # all of them are back
        assert any("signal quality" in reason for state in decoding.of("state") for reason in state["reasons"])

        amplifier.send(10.0)  # at once
        late = decoding.until(reached(36.5))
        times = [each["signal_s"] for each in decoding.of("state") if 26.55 < each["signal_s"] < 36.55]
        assert np.allclose(times, np.arange(266, 366) / 10)  # every one of them is decoded
        assert late["context"]["number"] == 1
        assert newest_status(decoding)["samples"]["skipped"] == 0

        amplifier.stamp_s -= 500.0  # the device's clock begins anew
        amplifier.send(4.0)
        stepped = decoding.until(lambda each: is_state(each) and each["context"]["number"] == 2)
        assert "the clock went back by 500" in stepped["context"]["began"]
        old = decoding.until(lambda each: is_state(each) and each["age"]["total_s"] is not None)
        assert old["trusted"] is False
        assert any("s old" in reason for reason in old["reasons"])
        assert newest_status(decoding)["clock_steps"] == 1

        amplifier.send(4.0, skip_s=30.0)  # a gap that is too long for the context
        lost = decoding.until(lambda each: is_state(each) and each["context"]["number"] == 3)
        assert lost["context"]["began"] == "30.0 s without samples"
        assert lost["context"]["seconds"] < 4
        assert decoding.ended()[0] == 0
    amplifier.close()
    assert decoding.listener.missed == 0


def test_stalled_lost_and_back_with_the_same_and_another_id(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 60.0)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(6.0)
        decoding.until(status_is("live"))
        decoding.until(reached(5.9))
        stalled = decoding.until(status_is("stalled"))
        assert 0.7 <= stalled["silent_s"] < 3  # said at once, not with the next status
        n_states = len(decoding.of("state"))
        amplifier.send(0.4)
        decoding.until(reached(6.3))
        decoding.until(status_is("recovered"))
        assert len(decoding.of("state")) == n_states + 4  # nothing was decoded in between

        amplifier.open()  # same id, the channels the same
        decoding.until(status_is("lost"))
        check_back(decoding, amplifier, 2, "the source came back")
        amplifier.open(labels=amplifier.labels[::-1], source_id="amplifier-2")
        decoding.until(status_is("lost"))
        again = check_back(decoding, amplifier, 3, "with another id ('amplifier-2'")
        assert "in another order" in again["context"]["began"]
        meta = decoding.until(lambda each: each["topic"] == "meta" and each["source"]["source_id"] == "amplifier-2")
        assert meta["channels"] == list(amplifier.labels)
        status = newest_status(decoding)
        assert (status["reconnects"], status["stalls"] >= 3, status["bad_channels"]) == (2, True, [])
        assert status["samples"]["received"] == (6.0 + 0.4 + 4.0 + 4.0) * RATE

        amplifier.open(rate_hz=500.0)
        decoding.until(status_is("lost"))
        amplifier.outlet.wait_for_consumers(30)
        code, _, err = decoding.ended(None)
        assert code == 2
        assert "came back changed: 500 Hz" in err
        assert "came back changed: 500 Hz" in decoding.messages[-1]["trouble"]
    amplifier.close()


def check_back(decoding: Decoding, amplifier: Amplifier, number: int, began: str) -> Message:
    """Send some seconds over a new connection; return its last decision."""
    amplifier.heard()
    amplifier.send(4.0)
    first = decoding.until(lambda each: is_state(each) and each["context"]["number"] == number)
    assert first["signal_s"] <= 2.0  # of signal since the first sample
    assert began in first["context"]["began"]
    assert first["trusted"] is False
    return decoding.until(reached(3.9))


def test_a_stream_that_lacks_a_channel_when_it_comes_back_ends_the_run(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 20.0)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(1.0)
        decoding.until(status_is("live"))
        amplifier.open(labels=amplifier.labels[1:])
        code, _, err = decoding.ended(None)
    assert code == 2
    assert f"without {amplifier.labels[0]}" in err
    assert f"without {amplifier.labels[0]}" in decoding.messages[-1]["trouble"]
    amplifier.close()


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_full_disk_and_a_hung_listener_stop_nothing(bundle: Bundle, tmp_path: Path) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 60.0)
    with Decoding(bundle.folder, name, "--log", tmp_path, before=limit_files) as decoding:
        context = zmq.Context()
        hung: Any = context.socket(zmq.SUB)
        hung.setsockopt(zmq.RCVHWM, 1)
        hung.setsockopt(zmq.RCVBUF, 1024)
        hung.setsockopt(zmq.SUBSCRIBE, b"")
        hung.connect(decoding.endpoint)
        amplifier.heard()
        for _ in range(10):
            amplifier.send(2.0)
            time.sleep(0.1)
        full = decoding.until(lambda each: each["topic"] == "status" and each["log"]["state"] == "failing")
        assert "the session log cannot be written" in full["trouble"]
        amplifier.send(4.0)
        decoding.until(reached(23.9))  # decisions go on
        code, out, _ = decoding.ended()
        assert code == 0
        assert "the session log lacks" in out
        hung.close(0)
        context.term()
    amplifier.close()
    assert decoding.listener.missed == 0
    report = check_session(tmp_path)  # what was written is sound
    assert (report.damaged, report.cut, report.records > 10) == ([], [], True)


def test_a_port_that_is_taken_is_refused(bundle: Bundle) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        assert "another program has it" in refused(
            "stream", "--lsl", "EEG", "--bundle", bundle.folder, "--zmq", endpoint
        )
