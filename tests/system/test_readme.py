"""The README tells the truth: its commands and its Python run as written, and its links lead somewhere."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.system.test_cli import write_eeg

README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the README supposes it: rest/ with recordings, and session.edf."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "rest").mkdir()
    for seed in range(2):
        write_eeg(folder / "rest" / f"{seed}.edf", seed)
    write_eeg(folder / "session.edf", 7)
    return folder


@pytest.mark.slow
def test_commands_and_python(lab: Path) -> None:
    blocks = re.findall(r"```console\n(.*?)```", README, flags=re.S)
    commands = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 5
    for command in commands:
        assert shlex.split(command)[0] == "rtbrain"
        local = command.replace("rtbrain", f"{shlex.quote(sys.executable)} -m rtbrain", 1)
        done = subprocess.run(["bash", "-c", local], cwd=lab, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    first, second = (lab / name for name in ("tokens.tsv", "again.tsv"))
    assert [line.split("\t")[:6] for line in first.read_text().splitlines()] == [
        line.split("\t")[:6] for line in second.read_text().splitlines()
    ]
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    given = "from pathlib import Path\nfolder, file = Path('my-templates'), Path('session.edf')\n"
    done = subprocess.run([sys.executable, "-c", given + code], cwd=lab, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Tokens(" in done.stdout


def test_the_configuration_of_a_labs_own_set_is_valid(tmp_path: Path) -> None:
    from rtbrain.training.dataset_config import load_dataset_config

    (text,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.S)
    (tmp_path / "my-set.yaml").write_text(text)
    config = load_dataset_config(str(tmp_path / "my-set.yaml"))
    assert config.root == str(tmp_path / "my-bids")
    assert list(config.tasks) == ["load"]


def test_files_and_links_exist() -> None:
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if not target.startswith("http")]
    paths = re.findall(r"`((?:configs|tests|tools|rtbrain)/[\w./-]*)`", README)
    assert links
    assert paths
    assert not [target for target in links + paths if not (ROOT / target).exists()]


def test_default_recipe_is_written_out() -> None:
    from rtbrain.config import load_yaml
    from rtbrain.pipeline import Recipe

    values = load_yaml(ROOT / "configs" / "broad.yaml")
    assert Recipe.from_dict(values) == Recipe()
    assert set(values) == set(Recipe().to_dict())
    assert len(Recipe.from_dict(load_yaml(ROOT / "configs" / "four-bands.yaml")).bands) == 4
