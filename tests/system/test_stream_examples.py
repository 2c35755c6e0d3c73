"""The examples in docs/examples run as they are printed there."""

import subprocess
import sys
import time
from pathlib import Path

import pylsl
import pytest

from rtbrain.decoder.bundle import Bundle
from tests import lsl
from tests.bundles import make_bundle
from tests.conftest import ROOT
from tests.decoding import Amplifier, Decoding
from tests.system.test_live_io import running

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "docs" / "examples"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder: Path = tmp_path_factory.mktemp("models") / "small"
    return make_bundle(folder)


def test_decode(bundle: Bundle) -> None:
    command = [sys.executable, str(EXAMPLES / "decode.py"), str(bundle.folder)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) > 80
    assert lines[0].split(" s:")[0] < "2.0"
    assert "trusted" in lines[-1]


def test_listen(bundle: Bundle) -> None:
    amplifier = Amplifier(lsl.name(), 60.0)
    with (
        Decoding(bundle.folder, amplifier.name) as decoding,
        running(sys.executable, EXAMPLES / "listen.py", decoding.endpoint) as listener,
    ):
        amplifier.heard()
        amplifier.stamp_s = pylsl.local_clock() - 7.0
        amplifier.send(7.0)
        for _ in range(40):
            amplifier.send(0.1)
            time.sleep(0.1)
        listener.terminate()
        assert "{'rest': 0." in listener.communicate(timeout=30)[0]
    amplifier.close()
