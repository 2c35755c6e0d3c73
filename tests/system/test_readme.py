"""The README tells the truth: its commands and its Python run as written, and its links lead somewhere."""

import re
import shlex
import subprocess
import sys
import textwrap
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
    chain, corpus = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    assert "Tokens(" in run_python(lab, "folder, file = Path('my-templates'), Path('session.edf')", chain)
    told = run_python(lab, "root, cache = 'simulated/mdd', Path('mdd-tokens')", corpus)
    assert told.count("H S") == told.count("MDD S") == 10


def run_python(lab: Path, given: str, code: str) -> str:
    lines = ["from pathlib import Path", given, "def main():", textwrap.indent(code, "    ")]
    script = lab / "script.py"  # a file with a main guard, as the processes that tokenize import it anew
    script.write_text("\n".join([*lines, "if __name__ == '__main__':", "    main()"]))
    done = subprocess.run([sys.executable, str(script)], cwd=lab, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
