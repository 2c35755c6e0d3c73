"""The fault table, signal: what is wrong with the samples strikes `rtbrain stream` in a process of its own."""

import numpy as np
import pytest

from rtbrain.decoder.bundle import Bundle
from tests import lsl
from tests.decoding import RATE, Amplifier, Decoding, is_state, newest_status, reached

pytestmark = [pytest.mark.slow, pytest.mark.live]


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


def test_the_first_decision_without_any_good_channel_is_not_trusted(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 20.0)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(8.0)
        amplifier.send(2.0, np.full((500, len(amplifier.labels)), np.nan))
        decoding.until(reached(9.9))
        amplifier.send(8.0)
        decoding.until(reached(17.9))
        status = newest_status(decoding)
    amplifier.close()
    doubted = [
        round(each["signal_s"], 1)
        for each in decoding.of("state")
        if each["signal_s"] > 5 and any("signal quality" in reason for reason in each["reasons"])
    ]
    assert doubted[0] == 8.0  # sample 2000 is the first without a number, and a decision is due with it
    assert set(np.round(np.arange(8.0, 10.0, 0.1), 1)) <= set(doubted)
    assert max(doubted) < 17  # and when the electrodes have been back for a while, it is
    assert status["bad_channels"] == []


def test_a_rate_that_changes_without_a_word_ends_the_run(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name, 80.0)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        amplifier.send(20.0)
        decoding.until(reached(19.9))
        amplifier.send(40.0, rate_hz=240.0)
        code, _, err = decoding.ended(None)
    amplifier.close()
    assert code == 2
    assert "declares 250 Hz, but its stamps differ" in err
    assert "declares 250 Hz, but its stamps differ" in decoding.messages[-1]["trouble"]
    assert decoding.listener.missed == 0
