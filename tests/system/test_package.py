"""The wheel that users install: all modules, and the data sets' configurations, without the repository."""

import subprocess
import sys
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns
from zipfile import ZipFile

import pytest

from rtbrain.training.dataset_config import known_datasets
from tests.conftest import ROOT


def copied(copy: Path) -> Path:
    """Copy what is built from: a build in the repository would leave old modules behind for the next one."""
    copy.mkdir(parents=True, exist_ok=True)
    for name in ("rtbrain", "configs", "models"):
        copytree(ROOT / name, copy / name, ignore=ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        copy2(ROOT / name, copy)
    return copy


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = copied(tmp_path_factory.mktemp("copy"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--wheel-dir", copy / "dist", copy], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next((copy / "dist").glob("*.whl"))


@pytest.mark.slow
def test_all_modules_configurations_and_the_bundle_are_in_the_wheel(wheel):
    with ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rtbrain").rglob("*.py")}
    configs = {f"rtbrain/configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
    page = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rtbrain" / "dashboard" / "assets").iterdir()}
    files = ("bundle.json", "decoder.onnx", "step.onnx", "templates.npz", "templates.json", "parity.json")
    bundle = {f"rtbrain/models/neurolong-demo/{name}" for name in files}
    assert len(configs) > 5
    assert (modules | configs | page | bundle | {"rtbrain/py.typed"}) - inside == set()
    assert not [name for name in inside if not name.startswith("rtbrain")]


@pytest.mark.slow
def test_the_unpacked_wheel_finds_its_own_configurations_and_bundle(wheel, tmp_path):
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from rtbrain.training.dataset_config import CONFIGS, known_datasets, load_dataset_config\n"
        "from rtbrain.decoder.bundle import load_bundle\n"
        "from rtbrain.decoder.find import find_bundle\n"
        "print(CONFIGS, *known_datasets(), load_dataset_config('mdd').name)\n"
        "print(load_bundle(find_bundle('neurolong-demo')).folder)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    shipped = str(tmp_path / "rtbrain" / "models" / "neurolong-demo")
    assert said == [str(tmp_path / "rtbrain" / "configs"), *known_datasets(), "mdd", shipped]
    assert len(known_datasets()) > 4
