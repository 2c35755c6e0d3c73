"""What `pip install .` brings, without extras, is enough to decode: neither torch nor mne is there at all."""

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
from tests.decoding import PATIENCE_S, Amplifier, Decoding, is_state
from tests.system.test_cli import write_eeg
from tests.system.test_live_io import running
from tests.system.test_package import copied

pytestmark = [pytest.mark.patient, pytest.mark.slow, pytest.mark.timeout(900)]

ABSENT = ("torch", "mne", "mne_lsl", "onnx", "pycrostates", "sklearn", "matplotlib", "bokeh", "dask")
NO_INDEX = ("No matching distribution", "Max retries", "NewConnectionError", "Temporary failure", "ReadTimeout")
"""What pip says where it cannot reach packages."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with rtbrain and what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("live-only")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    interpreter = folder / "venv" / "bin" / "python"
    source = copied(folder / "source")
    command = [interpreter, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", source]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and any(each in done.stderr for each in NO_INDEX):
        pytest.skip(f"pip cannot get the packages here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return interpreter


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder: Path = tmp_path_factory.mktemp("models") / "small"
    return make_bundle(folder)


def run(python: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-P", *map(str, arguments)]  # -P: this folder's rtbrain must not be found
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_nothing_of_the_extras_is_there(python: Path, tmp_path: Path) -> None:
    program = f"import importlib.util as u; print([name for name in {ABSENT} if u.find_spec(name)])"
    assert run(python, "-c", program, cwd=tmp_path).stdout.strip() == "[]"
    told = run(python, "-m", "rtbrain", "doctor", "--bundle", "neurolong-demo", cwd=tmp_path)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "neurolong-demo (not positive, positive), all hashes are right" in told.stdout
    write_eeg(tmp_path / "rest.edf", seconds=5.0)
    refused = run(python, "-m", "rtbrain", "inspect", "rest.edf", cwd=tmp_path)
    assert refused.returncode == 2
    assert "pip install 'rtbrain[files]'" in refused.stderr


def test_stream_and_watch(python: Path, bundle: Bundle) -> None:
    amplifier = Amplifier(lsl.name(), 120.0)
    program = ("-P", "-m", "rtbrain")
    with Decoding(bundle.folder, amplifier.name, program=program, python=python) as decoding:
        command = (python, *program, "watch", "--zmq", decoding.endpoint, "--plain")
        with running(*command) as watching:
            amplifier.heard()
            amplifier.stamp_s = pylsl.local_clock() - 7.0
            amplifier.send(7.0)
            assert watching.stdout is not None
            seen, deadline = "", time.monotonic() + PATIENCE_S
            while "trusted; context 1" not in seen:
                assert time.monotonic() < deadline, f"watch shows {seen!r}"
                amplifier.go_on(1.0)
                decoding.until(is_state)
                seen = watching.stdout.readline()
        code, _, err = decoding.ended()
    amplifier.close()
    assert (code, err) == (0, "")
    assert sum(decoding.of("state")[-1]["probabilities"].values()) == pytest.approx(1)
