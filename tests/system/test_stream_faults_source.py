"""The fault table, source: it stalls, goes, comes back as itself or changed, or sends more than can be decoded."""

import time

import pytest

from rtbrain.decoder.bundle import Bundle
from tests import lsl
from tests.decoding import RATE, Amplifier, Decoding, Message, is_state, newest_status, reached, status_is

pytestmark = [pytest.mark.slow, pytest.mark.live]

STALLS = 3
"""A promise about time is judged by the best of some trials: the machine may pause a program now and then."""


def test_a_stall_is_reported_within_a_second(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 60.0)
    took_s = []
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        for i in range(STALLS):
            since = decoding.now
            amplifier.play(3.0)
            stalled = decoding.until(status_is("stalled"), since)
            took_s.append(stalled["published_s"] - amplifier.stamp_s)  # which was sent when it was due
            assert (stalled["stalls"], stalled["silent_s"] >= 0.7) == (i + 1, True)
            assert decoding.of("state")  # there were decisions
            since = decoding.now
            still = newest_status(decoding)
            assert (still["state"], still["silent_s"] > stalled["silent_s"]) == ("stalled", True)
            assert not any(map(is_state, decoding.messages[since:]))  # and there are none without samples
        since = decoding.now
        amplifier.play(3.0)
        decoding.until(status_is("recovered"), since)
        decoding.until(status_is("live"), since)
        sent = (STALLS + 1) * 3.0 * RATE
        status = decoding.until(lambda each: each["topic"] == "status" and each["samples"]["received"] == sent, since)
        # The stamps went on in between, so what was not sent counts as lost.
        assert (status["gaps"], status["samples"]["lost"] > 0.7 * STALLS * RATE) == (STALLS, True)
    amplifier.close()
    assert min(took_s) < 1.0, took_s


def test_lost_and_back_with_the_same_and_another_id(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 60.0)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(6.0)
        decoding.until(status_is("live"), 0)
        decoding.until(reached(5.9), 0)

        closed_s = time.monotonic()
        amplifier.close()  # it stops
        gone = decoding.until(status_is("lost"), decoding.now)
        assert "broke" in gone["trouble"]
        n_states = len(decoding.of("state"))
        away_s = time.monotonic() - closed_s  # at least
        amplifier.open()  # same id, the channels the same
        took_s = [check_back(decoding, amplifier, 2, "the source came back")]
        assert newest_status(decoding)["away_s"] > away_s
        assert len([each for each in decoding.of("state") if each["context"]["number"] == 1]) == n_states

        since = decoding.now
        amplifier.open(labels=amplifier.labels[::-1], source_id="amplifier-2")
        decoding.until(status_is("lost"), since)
        took_s.append(check_back(decoding, amplifier, 3, "with another id ('amplifier-2'"))
        assert "in another order" in decoding.of("state")[-1]["context"]["began"]
        renamed = decoding.until(lambda each: each["topic"] == "meta", since)
        assert (renamed["source"]["source_id"], renamed["channels"]) == ("amplifier-2", list(amplifier.labels))
        status = newest_status(decoding)
        assert (status["reconnects"], status["stalls"] >= 2, status["bad_channels"]) == (2, True, [])
        assert status["samples"]["received"] == (6.0 + 3.0 + 3.0) * RATE

        since = decoding.now
        amplifier.open(rate_hz=500.0)
        decoding.until(status_is("lost"), since)
        check_refused(decoding, "came back changed: 500 Hz")
    amplifier.close()
    assert min(took_s) < 2.0, took_s


def check_back(decoding: Decoding, amplifier: Amplifier, number: int, began: str) -> float:
    """Send some seconds over a new connection; return how long after the first sample the first decision came."""
    amplifier.heard()
    since = decoding.now
    first_s = amplifier.play(3.0)
    first: Message = decoding.until(lambda each: is_state(each) and each["context"]["number"] == number, since)
    assert first["signal_s"] <= 2.0  # of signal since the first sample
    assert began in first["context"]["began"]
    assert first["trusted"] is False
    decoding.until(lambda each: reached(2.9)(each) and each["context"]["number"] == number, since)
    return float(first["published_s"]) - first_s


def check_refused(decoding: Decoding, why: str) -> None:
    """The run ends by itself, and says why on the screen and in its last message."""
    code, _, err = decoding.ended(None)
    assert code == 2
    assert why in err
    assert why in decoding.messages[-1]["trouble"]


def test_a_stream_that_lacks_a_channel_when_it_comes_back_ends_the_run(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 20.0)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(1.0)
        decoding.until(status_is("live"), 0)
        amplifier.open(labels=amplifier.labels[1:])
        check_refused(decoding, f"without {amplifier.labels[0]}")
    amplifier.close()


def test_overload_skips_to_the_present_and_every_sample_is_accounted_for(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 60.0)
    sent_s = 2.0
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(2.0)
        decoding.until(reached(1.9), 0)
        skipped = None
        while skipped is None:  # far faster than anybody can decode, until it gives up
            amplifier.at = 0
            amplifier.send(20.0)
            sent_s += 20.0
            message = decoding.receive(0.02)
            if message is not None and message["topic"] == "status" and message["samples"]["skipped"]:
                skipped = message
        decoding.until(status_is("stalled"))  # all that waited is decoded, or skipped as well
        since = decoding.now
        amplifier.at = 0
        amplifier.send(8.0)
        sent_s += 8.0
        last = decoding.until(reached(sent_s - 0.1), since)
        assert last["context"]["number"] > 1
        assert "s without samples" in last["context"]["began"]
        samples = newest_status(decoding)["samples"]
        assert samples["skipped"] >= skipped["samples"]["skipped"]
        # What did not fit into the inlet's buffer is lost or filled in as well; stamps tell of all of it.
        assert samples["lost"] >= samples["skipped"]
        assert samples["received"] + samples["lost"] + samples["filled"] == sent_s * RATE
    amplifier.close()
