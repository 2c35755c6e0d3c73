"""`rtbrain doctor` on this machine, with a real bundle and a real stream."""

import json
import re
import socket
from pathlib import Path

import pytest

from rtbrain import cli_checks
from rtbrain.decoder import find
from tests import lsl
from tests.bundles import make_bundle
from tests.system.test_cli import invoke, write_eeg
from tests.system.test_live_io import replaying

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No models around, and ports that nobody else uses."""
    monkeypatch.delenv("RTBRAIN_BUNDLE", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(find, "SHIPPED", tmp_path / "shipped")
    with socket.socket() as one, socket.socket() as other:
        for probe, name in ((one, "OUTPUT_PORT"), (other, "DASHBOARD_PORT")):
            probe.bind(("127.0.0.1", 0))
            monkeypatch.setattr(cli_checks, name, probe.getsockname()[1])


def test_a_stream_that_can_be_decoded(tmp_path: Path) -> None:
    bundle, name = make_bundle(tmp_path / "small"), lsl.name()
    file = write_eeg(tmp_path / "rest.edf", seconds=20.0)
    with replaying(file, name, "--loop"):
        lsl.seen(name)
        done = invoke("doctor", "--lsl", name, "--bundle", bundle.folder, "--seconds", 3, "--json")
    assert done.exit_code == 0, done.output
    found = {each["what"]: each for each in json.loads(done.stdout)}
    assert {name for name, each in found.items() if each["verdict"] == "bad"} == set()
    assert found["multicast"]["verdict"] == found["output"]["verdict"] == "ok"
    assert "reaches this machine only" in found["liblsl"]["text"]
    assert "all hashes are right" in found["bundle"]["text"]
    assert "rtbrain parity" in found["certificate"]["text"]
    assert "cpu is taken, by CPU" in found["model"]["text"]
    assert "250 Hz declared" in found["rate"]["text"]
    assert found["unit"]["text"].startswith("V;")
    assert "can decode it, at 250 Hz" in found["fit"]["text"]


def test_what_is_wrong_is_said_and_ends_with_exit_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = make_bundle(tmp_path / "small")
    (bundle.folder / "step.onnx").write_bytes(b"damaged")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(cli_checks, "OUTPUT_PORT", taken.getsockname()[1])
        done = invoke("doctor", "--lsl", lsl.name(), "--bundle", bundle.folder)
    assert done.exit_code == 2
    assert "step.onnx is not the file" in done.stdout
    assert "is taken" in done.stdout
    assert "no stream of name, type or source id" in done.stdout
    assert "2 thing(s) to put right" in done.stdout


def test_without_any_bundle_it_only_notes_so() -> None:
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    assert "which bundle is to be used?" in done.stdout
    assert re.search(r"nothing is broken; \d+ note\(s\) to read", done.stdout)
