"""`rtbrain stream` as its own process, over real LSL and ZeroMQ: the offline answer, messages, markers, the end."""

import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pylsl
import pytest

from rtbrain.decoder.bundle import Bundle
from rtbrain.messages import UNLABELLED, Token, Tokens
from rtbrain.microstates.templates import Templates
from rtbrain.parity_paths import OfflinePath
from rtbrain.pipeline import Recipe, build
from rtbrain.protocol import message_of
from rtbrain.published import TokenMessage
from rtbrain.sinks.session_check import check_session, read_session
from rtbrain.sources.recording import excerpt, open_recording
from tests import lsl
from tests.bundles import make_bundle
from tests.decoding import Amplifier, Decoding, is_state, status_is
from tests.parity.test_recordings_cuts import default_recipe, some_maps, tokens
from tests.system.test_cli import invoke, refused
from tests.system.test_live_io import replaying, running

pytestmark = [pytest.mark.slow, pytest.mark.live]


@pytest.mark.parametrize(
    ("path", "chunk_ms"), [("mdd/H S1 EC.edf", 10), ("formats/*/test.edf", 37), ("formats/*/S001R01.edf", 200)]
)
def test_a_replayed_recording_is_decoded_as_offline(data: Path, path: str, chunk_ms: int, tmp_path: Path) -> None:
    """Tokens are identical, probabilities those of decoder.onnx on them within 1e-4."""
    file = next(iter(data.glob(path)), None)
    if file is None:
        pytest.skip(f"{path} is not in {data}")
    source = excerpt(open_recording(file), 5.0, 20.0)
    recipe = default_recipe(source)
    maps = some_maps(source, recipe)
    made = make_bundle(tmp_path / "model", Templates(maps.channels, maps.maps, recipe.to_dict()))
    name = lsl.name()
    with Decoding(made.folder, name) as decoding:
        options = ("--wait", "--speed", 20, "--chunk-ms", chunk_ms, "--start", 5, "--stop", 25)
        with replaying(file, name, *options) as replay:
            assert replay.wait(60) == 0
        decoding.until(status_is("lost"))
        assert decoding.ended()[0] == 0
    assert decoding.listener.missed == 0
    (offline,) = [Tokens.concat(tokens(source, recipe, maps, None))]
    chain = build(recipe, maps)
    rate_hz = chain.open(source.info).rate_hz
    assert_same_tokens(decoding.of("token"), offline, recipe, rate_hz)
    whole = OfflinePath(made, [offline], rate_hz)
    seen = compared = 0
    for message in decoding.messages:
        if message["topic"] == "token":
            seen += message["state"] is not None
        elif is_state(message):
            found = list(message["probabilities"].values())
            np.testing.assert_allclose(
                found, whole.probabilities(seen, message["context"]["tokens"]), rtol=0, atol=1e-4
            )
            compared += 1
    assert compared > 170
    assert seen == (offline.state != UNLABELLED).sum()
    times = np.array([each["signal_s"] for each in decoding.of("state")[:-1]])  # the last one is that of the end
    assert np.allclose(times, np.round(times, 1), atol=1 / source.info.rate_hz)
    assert decoding.of("status")[-1]["samples"]["received"] == source.n_samples


def assert_same_tokens(found: list[dict[str, Any]], offline: Tokens, recipe: Recipe, rate_hz: float) -> None:
    wanted = [TokenMessage.of(each, recipe.bands[each.band].name, rate_hz, 1) for each in offline]
    got = [message_of(each) for each in found]
    exact = ("band", "state", "start_s", "duration_s", "context")
    assert [[getattr(each, key) for key in exact] for each in got] == [
        [getattr(each, key) for key in exact] for each in wanted
    ]
    near = ("gfp_uv", "gfp_rel", "corr", "quality")
    values = [[[getattr(each, key) for key in near] for each in side] for side in (got, wanted)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6, atol=1e-9)
    assert isinstance(next(iter(offline)), Token)


PROGRAM = """
import sys
from rtbrain.cli import main
try:
    main()
finally:
    print([name for name in ("torch", "mne", "mne_lsl", "matplotlib", "pycrostates", "sklearn") if name in sys.modules])
"""


def test_messages_markers_log_and_the_end(bundle: Bundle, tmp_path: Path) -> None:
    """One short session with everything on, in a process that loads neither torch nor mne."""
    name, log = lsl.name(), tmp_path / "log"
    amplifier = Amplifier(name)
    texts: Any = pylsl.StreamOutlet(pylsl.StreamInfo(f"{name}-m", "Markers", 1, 0.0, "string", f"{name}-m"))
    options = ("--lsl-out", f"{name}-out", "--markers", f"{name}-m", "--reset-on", "trial*", "--log", log)
    with Decoding(bundle.folder, name, *options, program=("-c", PROGRAM)) as decoding:
        meta = decoding.until(lambda each: each["topic"] == "meta")
        assert (meta["bundle"], meta["classes"], meta["source"]["name"]) == ("small", ["rest", "task"], name)
        assert (meta["bundle_sha256"], meta["parity"]) == (bundle.sha256, False)
        assert texts.wait_for_consumers(60)
        (found,) = pylsl.resolve_byprop("name", f"{name}-out", timeout=60)
        inlet = pylsl.StreamInlet(found, recover=False)
        inlet.open_stream(60)
        amplifier.heard()
        amplifier.stamp_s -= 8.0
        amplifier.send(8.0)
        decoding.until(lambda each: is_state(each) and each["signal_s"] >= 7.9)
        texts.push_sample(["note"], amplifier.stamp_s)
        texts.push_sample(["trial 1"], amplifier.stamp_s + 0.5)
        time.sleep(0.3)  # markers come by another way than samples; let them be there first
        for _ in range(20):
            amplifier.send(0.1)
            time.sleep(0.1)
        last = decoding.until(lambda each: is_state(each) and each["context"]["began"] == "marker trial 1")
        samples, _ = inlet.pull_chunk(timeout=0.0, max_samples=1000)  # while it is there
        code, out, err = decoding.ended(signal.SIGINT)
        assert (code, err) == (0, "")
        assert out.splitlines()[-2:] == ["stopped", "[]"]
    assert decoding.listener.missed == 0
    for message in decoding.messages:
        message_of(message)  # every field is there and fits the schema's types
    states = decoding.of("state")
    assert [each["text"] for state in states for each in state["markers"]] == ["note", "trial 1"]
    assert last["context"]["number"] == 2
    assert last["context"]["seconds"] < 2
    live = [each for each in states if each["signal_s"] > 8 and each["age"]["total_s"] is not None]
    assert live
    for each in live:
        age = each["age"]
        parts = age["transport_s"] + age["inference_s"] + age["publish_s"]
        assert age["total_s"] == pytest.approx(parts, abs=1e-3)
        assert age["filter_s"] > 0
        assert each["time_s"] == pytest.approx(amplifier.stamp_s, abs=5)
        assert each["trusted"] == (not each["reasons"])
    final = decoding.messages[-1]
    assert (final["topic"], final["trouble"]) == ("status", "stopped")
    assert len(samples) > 60
    assert all(len(each) == 6 for each in samples)
    report = check_session(log)
    assert report.sound
    logged = [record["message"] for record in read_session(log) if "message" in record]
    assert logged[-1] == final
    assert [each for each in logged if is_state(each)] == states


def test_what_does_not_fit_is_refused_before_the_first_output(bundle: Bundle) -> None:
    """Each is published as the last status, said on the screen, and ends with exit code 2."""
    name = lsl.name()
    for changes, reason in (
        ({"labels": Amplifier(lsl.name(), 1.0).labels[:6]}, "only 6 of the recipe's 19 channels"),
        ({"unit": "volts"}, "it would fit uV"),
    ):
        amplifier = Amplifier(name, 20.0, **changes)
        with Decoding(bundle.folder, name) as decoding:
            if changes == {"unit": "volts"}:
                amplifier.heard()
                amplifier.send(5.0)
            code, _, err = decoding.ended(None)
        amplifier.close()
        assert code == 2
        assert reason in err
        assert reason in decoding.messages[-1]["trouble"]
        assert not decoding.of("state")


def test_several_streams_that_match_are_listed(bundle: Bundle) -> None:
    name = lsl.name()
    first, second = Amplifier(name, 1.0, source_id="a"), Amplifier(name, 1.0, source_id="b")
    with Decoding(bundle.folder, name) as decoding:
        code, _, err = decoding.ended(None)
    assert code == 2
    assert "guessing could decode the wrong person" in err
    assert all(f"source id {each!r}" in err for each in ("a", "b"))
    first.close()
    second.close()


def test_it_waits_and_says_what_it_sees(bundle: Bundle) -> None:
    other = Amplifier(lsl.name(), 1.0)
    with Decoding(bundle.folder, lsl.name()) as decoding:
        for _ in range(3):
            waiting = decoding.until(status_is("waiting"))
        assert waiting["samples"]["received"] == 0
        code, out, _ = decoding.ended()
        assert code == 0
        assert "not there yet" in out
        assert other.name in out
    other.close()


def test_which_bundle_is_meant(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RTBRAIN_BUNDLE", raising=False)
    assert "which bundle is to be used?" in refused("stream", "--lsl", "EEG")
    assert "is no bundle" in refused("stream", "--lsl", "EEG", "--bundle", tmp_path)
    assert "--reset-on needs --markers" in refused("stream", "--lsl", "EEG", "--reset-on", "x")
    assert "belong together" in refused("stream", "--lsl", "EEG", "--key", "x")
    folder = ("--bundle", bundle.folder)
    assert "other machines" in refused("stream", "--lsl", "EEG", *folder, "--zmq", "tcp://0.0.0.0:0")


def test_watch_shows_what_is_published(bundle: Bundle) -> None:
    name = lsl.name()
    amplifier = Amplifier(name)
    with Decoding(bundle.folder, name) as decoding:
        amplifier.heard()
        command = (sys.executable, "-m", "rtbrain", "watch", "--zmq", decoding.endpoint, "--plain")
        with running(*command) as watching:
            assert watching.stdout is not None
            seen = ""
            while "trusted" not in seen.lower():
                amplifier.send(1.0)
                seen = watching.stdout.readline()
            assert "context 1 (start)" in seen
            assert "samples" in seen
            watching.send_signal(signal.SIGINT)
            assert watching.wait(30) == 0
    amplifier.close()
    nobody = invoke("watch", "--zmq", "tcp://127.0.0.1:1", "--seconds", 1.2)
    assert "nothing has been received" in nobody.stdout
    assert nobody.exit_code == 2
    assert "nothing was received from tcp://127.0.0.1:1 in 1.2 s; is `rtbrain stream` running" in nobody.stderr
