"""The examples in docs/examples run as they are printed there."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pylsl
import pytest

from rtbrain.decoder.bundle import Bundle
from tests import lsl
from tests.bundles import make_bundle
from tests.conftest import ROOT
from tests.decoding import PATIENCE_S, Amplifier, Decoding, is_state
from tests.system.test_live_io import running

pytestmark = [pytest.mark.live, pytest.mark.slow]

EXAMPLES = ROOT / "docs" / "examples"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder: Path = tmp_path_factory.mktemp("models") / "small"
    return make_bundle(folder, rates_hz=(250.0,))


@pytest.fixture(scope="module")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example and the zeromq package from npm."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no Node.js here")
    folder = tmp_path_factory.mktemp("javascript")
    shutil.copy(EXAMPLES / "listen.mjs", folder)
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "zeromq"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not install zeromq within 200 s")
    if done.returncode:
        pytest.skip(f"npm cannot install zeromq here: {done.stderr.strip()[-300:]}")
    return folder / "listen.mjs"


def test_decode(bundle: Bundle) -> None:
    command = [sys.executable, str(EXAMPLES / "decode.py"), str(bundle.folder)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) > 80
    assert lines[0].split(" s:")[0] < "2.0"
    assert "trusted" in lines[-1]


@pytest.mark.parametrize("name", ["mdd-ec", "neurolong-demo"])
def test_decode_by_the_bundles_in_models(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / "decode.py"), str(ROOT / "models" / name)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert float(lines[-1].split(" s:")[0]) > 24


def heard_by(bundle: Bundle, command: Sequence[object], wanted: str) -> tuple[str, Decoding]:
    """Stream until a listener prints what is wanted; return that line, and the decoder with its messages."""
    amplifier = Amplifier(lsl.name(), 120.0)
    lines: list[str] = []
    with Decoding(bundle.folder, amplifier.name) as decoding, running(*command, decoding.endpoint) as listener:
        assert listener.stdout is not None
        reader = Thread(target=lambda: lines.extend(iter(listener.stdout.readline, "")))
        reader.start()
        amplifier.heard()
        amplifier.stamp_s = pylsl.local_clock() - 7.0
        amplifier.send(7.0)
        deadline = time.monotonic() + PATIENCE_S
        while not any(wanted in line for line in lines):
            assert time.monotonic() < deadline, f"waited in vain for {wanted!r}: {lines[-3:]} {listener.poll()}"
            amplifier.send(0.1)
            decoding.until(is_state)
            time.sleep(0.1)
        listener.terminate()
        reader.join(30)
    amplifier.close()
    return next(line for line in lines if wanted in line), decoding


def test_listen_takes_trusted_decisions_only(bundle: Bundle) -> None:
    line, _ = heard_by(bundle, (sys.executable, EXAMPLES / "listen.py"), "{'rest': 0.")
    assert line.split()[0] in bundle.classes


def test_subscribe(bundle: Bundle) -> None:
    line, decoding = heard_by(bundle, (sys.executable, EXAMPLES / "subscribe.py"), "{'rest': 0.")
    signal_s = float(line.split()[0])
    (message,) = [each for each in decoding.of("state") if each["signal_s"] == signal_s]
    assert json.loads(line.split("{")[1].split("}")[0].join("{}").replace("'", '"')) == message["probabilities"]


def test_listen_in_javascript(bundle: Bundle, javascript: Path) -> None:
    line, decoding = heard_by(bundle, ("node", javascript), "rest: 0.")
    signal_s, label = line.split()[:2]
    (message,) = [each for each in decoding.of("state") if each["signal_s"] == float(signal_s)]
    assert message["label"] == label
