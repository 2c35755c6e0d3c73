"""`rtbrain session replay`: every decision of a session with a gap, a marker and a reconnection comes out again."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pylsl
import pytest
import torch

from rtbrain.conditioning.filters import Band
from rtbrain.decoder.whole import WholeModel
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe
from rtbrain.session_replay import Again, bundle_of, load_session
from rtbrain.sinks.session_check import read_session
from rtbrain.sinks.session_log import SessionLog
from rtbrain.sources.synthetic import SyntheticSettings, dipole_maps
from rtbrain.training.export import export
from tests import lsl
from tests.bundles import make_bundle
from tests.decoding import Amplifier, Decoding, is_state, status_is
from tests.system.test_cli import invoke, refused
from tests.unit.training.model_cases import random_model, tokens_for

CHANNELS = SyntheticSettings().channels


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A bundle of two bands, and the log of a session with it."""
    folder = tmp_path_factory.mktemp("session")
    maps = referenced(dipole_maps(CHANNELS, 4))
    recipe = Recipe(bands=(Band("low", 2, 8), Band("high", 8, 30)))
    bundle = make_bundle(folder / "two", Templates(CHANNELS, (maps, maps), recipe.to_dict()), t_max=800)
    name, log = lsl.name(), folder / "log"
    amplifier = Amplifier(name, 120.0)
    texts: Any = pylsl.StreamOutlet(pylsl.StreamInfo(f"{name}-m", "Markers", 1, 0.0, "string", f"{name}-m"))
    options = ("--log", log, "--markers", f"{name}-m", "--reset-on", "trial")
    with Decoding(bundle.folder, name, *options) as decoding:

        def decoded_all() -> dict[str, Any]:
            """Wait for the last decision: what waits when the connection breaks, or is too much, would be lost."""
            until_s = amplifier.stamp_s - began_s - 0.2
            return decoding.until(lambda each: is_state(each) and each["signal_s"] >= until_s)

        amplifier.heard()
        began_s = amplifier.stamp_s
        assert texts.wait_for_consumers(60)
        amplifier.send(20.0)
        amplifier.send(8.0, skip_s=0.5)
        decoded_all()
        texts.push_sample(["trial"], amplifier.stamp_s + 1.0)
        number = 1
        while number == 1:
            amplifier.send(1.0)
            number = decoded_all()["context"]["number"]
            time.sleep(0.2)  # markers come by another way than samples, which are decoded as fast as they come
        amplifier.send(15.0)
        decoded_all()
        amplifier.close()
        decoding.until(status_is("lost"))
        amplifier.open()
        amplifier.heard()
        amplifier.send(10.0)
        last = number + 1
        decoding.until(lambda each: is_state(each) and each["context"]["number"] == last and each["signal_s"] > 9.7)
        assert decoding.ended()[0] == 0
    return bundle.folder, log


@pytest.mark.live
@pytest.mark.slow
def test_every_decision_comes_out_again(logged: tuple[Path, Path]) -> None:
    folder, log = logged
    session = load_session(log)
    again = Again(session, bundle_of(session, str(folder)))
    states = session.of("state")
    looks = [again.look(state) for state in states]
    assert len(states) > 400
    assert None not in looks
    assert max(look.difference for look in looks) <= 1e-4
    for look, state in zip(looks, states, strict=True):
        assert look.own + look.weights.sum() == pytest.approx(1, abs=1e-5)
        assert len(look.weights) == state["context"]["tokens"]
    began = {state["context"]["began"].partition(" ")[0] for state in states}
    assert len(began) == 3  # start, marker, the reconnection
    said = [what for _, what in session.changes()]
    assert "marker 'trial'" in said
    assert sum("began" in each for each in said) == 3


@pytest.mark.live
@pytest.mark.slow
def test_the_command(logged: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log = logged
    monkeypatch.chdir(tmp_path)
    done = invoke("session", "replay", log, "--bundle", folder)
    assert done.exit_code == 0, done.output
    assert "computed again: equal to the logged ones" in done.stdout
    assert "looks at" in done.stdout
    assert "not trusted in" in done.stdout
    without = invoke("session", "replay", log, "--every", 5)
    assert "is not in sight; give --bundle" in without.stderr
    assert "looks at" not in without.stdout
    (tmp_path / "models").mkdir()
    shutil.copytree(folder, tmp_path / "models" / "anything")  # found by its hash, whatever its folder is called
    detail = invoke("session", "replay", log, "--at", 15)
    assert detail.exit_code == 0, detail.output
    assert "of the attention" in detail.stdout
    assert "equal to the logged ones" in detail.stdout
    (line,) = invoke("session", "replay", log, "--at", 15, "--json").stdout.splitlines()
    told = json.loads(line)
    assert told["signal_s"] == pytest.approx(15, abs=0.06)
    assert sum(told["attention"]["states"].values()) == pytest.approx(1)
    assert len(told["attention"]["tokens"]) == 10


@pytest.mark.live
@pytest.mark.slow
def test_what_does_not_belong_together_is_refused(logged: tuple[Path, Path], tmp_path: Path) -> None:
    folder, log = logged
    other = make_bundle(tmp_path / "other")
    assert "is not the bundle that decoded this session" in refused("session", "replay", log, "--bundle", other.folder)
    assert "has no run 'none'" in refused("session", "replay", log, "--run", "none")
    assert "there is no session log" in refused("session", "replay", tmp_path)
    changed = tmp_path / "changed"
    with SessionLog(changed) as copy:
        for record in read_session(log):
            if "message" in record:
                message = record["message"]
                if message["topic"] == "token":
                    message = message | {"corr": 0.5 * message["corr"]}
                copy.write(b"x " + json.dumps(message).encode())
    assert "differ from the logged ones" in refused("session", "replay", changed, "--bundle", folder)


def test_a_session_that_ended_before_its_stream_was_decoded_says_why(tmp_path: Path) -> None:
    with SessionLog(tmp_path / "log"):
        pass
    told = refused("session", "replay", tmp_path / "log")
    assert "ended before its stream was decoded" in told
    assert "last word" not in told
    with SessionLog(tmp_path / "refused") as log:
        for trouble in ("", "the stream has another rate"):
            log.write(b"status " + json.dumps({"topic": "status", "trouble": trouble}).encode())
    assert "its last word: the stream has another rate" in refused("session", "replay", tmp_path / "refused")


@pytest.mark.parametrize("name", ["rtbrain", "paper-text"])
def test_the_graphs_attention_is_the_models(name: str, tmp_path: Path) -> None:
    model = random_model(name)
    export(model, tmp_path, t_max=60)
    ids, attributes = tokens_for(model, 37)
    found = WholeModel(tmp_path / "decoder.onnx").attention(ids, attributes)
    wanted: list[torch.Tensor] = []
    with torch.no_grad():
        model.eval().features(torch.from_numpy(ids[None]), torch.from_numpy(attributes[None]), wanted)
    np.testing.assert_allclose(found, torch.stack(wanted)[:, 0, :, :38].numpy(), atol=1e-5)
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-5)
