"""The wheel that users install: all modules, and the data sets' configurations, without the repository."""

import subprocess
import sys
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns
from zipfile import ZipFile

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy: a build in the repository would leave old modules behind for the next one."""
    copy = tmp_path_factory.mktemp("copy")
    for name in ("rtbrain", "configs"):
        copytree(ROOT / name, copy / name, ignore=ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        copy2(ROOT / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--wheel-dir", copy / "dist", copy], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next((copy / "dist").glob("*.whl"))


@pytest.mark.slow
def test_all_modules_and_configurations_are_in_the_wheel(wheel):
    with ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rtbrain").rglob("*.py")}
    configs = {f"rtbrain/configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
    page = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rtbrain" / "dashboard" / "assets").iterdir()}
    assert len(configs) > 5
    assert (modules | configs | page | {"rtbrain/py.typed"}) - inside == set()
    assert not [name for name in inside if not name.startswith("rtbrain")]


@pytest.mark.slow
def test_the_unpacked_wheel_finds_its_own_configurations(wheel, tmp_path):
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from rtbrain.training.dataset_config import CONFIGS, known_datasets, load_dataset_config\n"
        "print(CONFIGS, *known_datasets(), load_dataset_config('mdd').name)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert said == [str(tmp_path / "rtbrain" / "configs"), "deap", "eegmat", "mdd", "neurolong", "nssi", "seed", "mdd"]
