"""The README and docs tell the truth: their commands run in order as they are typed, their links lead somewhere.

Of every command only two things are changed: `rtbrain` is this Python's, and the port is a free one.
"""

import re
import shlex
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from tests import lsl  # noqa: F401  # keeps streams to this test run, also those of processes
from tests.conftest import ROOT
from tests.recording_writers import write_edf

pytestmark = pytest.mark.slow
README = (ROOT / "README.md").read_text()
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
RATE_HZ = 256
PATIENCE_S = 120.0


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


def write_recording(path: Path, seed: int, seconds: float = 40, mean_duration_ms: float = 70.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = Synthetic(
        SyntheticSettings(duration_s=seconds, seed=seed, rate_hz=RATE_HZ, mean_duration_ms=mean_duration_ms)
    )
    data = np.concatenate([chunk.data for chunk in source.chunks()]).T
    write_edf(path, data, names=source.info.channels, rates=[RATE_HZ] * len(data))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the README supposes it: recordings, a BIDS set with its description, and the shipped models."""
    folder = tmp_path_factory.mktemp("lab")
    for seed in range(2):
        write_recording(folder / "rest" / f"{seed}.edf", seed)
    write_recording(folder / "session.edf", 7)
    for person in range(1, 7):
        for number, task in enumerate(("rest", "arith")):
            name = f"sub-{person:02d}_task-{task}_eeg.edf"
            path = folder / "my-bids" / f"sub-{person:02d}" / "eeg" / name
            write_recording(path, 10 * person + number, 65, mean_duration_ms=60 + 30 * number)
    (folder / "my-bids" / "dataset_description.json").write_text('{"Name": "lab", "BIDSVersion": "1.8.0"}')
    (described,) = blocks(README, "yaml")
    (folder / "my-set.yaml").write_text(described)
    (folder / "models").mkdir()
    (folder / "models" / "mdd-ec").symlink_to(ROOT / "models" / "mdd-ec")
    return folder


def here(command: str, port: int) -> list[str]:
    """Return a command for bash, with this Python's rtbrain and a port that is free."""
    assert shlex.split(command)[0] == "rtbrain", command
    local = command.replace("rtbrain", f"exec {shlex.quote(sys.executable)} -m rtbrain", 1)
    if shlex.split(command)[1] in {"stream", "watch"}:
        local += f" --zmq tcp://127.0.0.1:{port}"
    return ["bash", "-c", local]


def run_commands(lab: Path, text: str) -> str:
    """Run all console blocks in order; what a block starts in the background ends with it."""
    told = []
    for block in blocks(text, "console"):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with ExitStack() as stack:
            for line in block.splitlines():
                command = line.removeprefix("$ ").split("  #")[0].strip()
                if command.endswith("&"):
                    stack.enter_context(in_background(here(command[:-1].strip(), port), lab, "stream --lsl" in command))
                    continue
                done = subprocess.run(here(command, port), cwd=lab, capture_output=True, text=True)
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
                told.append(done.stdout)
    return "".join(told)


@contextmanager
def in_background(command: list[str], lab: Path, decoder: bool) -> Iterator[None]:
    """Run a command for as long as a block lasts; a decoder is waited for until it hears its source."""
    process = subprocess.Popen(command, cwd=lab, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: list[str] = []
    assert process.stdout is not None
    reader = Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")))
    reader.start()
    try:
        until = time.monotonic() + PATIENCE_S
        while decoder and not any("the source is live" in line for line in lines):
            assert process.poll() is None, "".join(lines)
            assert time.monotonic() < until, "".join(lines)
            time.sleep(0.1)
        yield
        assert process.poll() is None, "".join(lines)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        reader.join()
        process.stdout.close()


def run_python(lab: Path, given: str, code: str) -> str:
    lines = ["from pathlib import Path", given, "def main():", textwrap.indent(code, "    ")]
    script = lab / "script.py"  # a file with a main guard, as the processes that tokenize import it anew
    script.write_text("\n".join([*lines, "if __name__ == '__main__':", "    main()"]))
    done = subprocess.run([sys.executable, str(script)], cwd=lab, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(900)
def test_the_readme(lab: Path) -> None:
    told = run_commands(lab, README)
    assert re.search(r"(healthy|MDD|depressed).* tokens; age", told), told  # what `watch` shows of the shipped decoder
    assert re.search(r"(rest|arithmetic) \(rest 0\.\d+, arithmetic 0\.\d+\)", told), told
    assert "all lines are sound" in told
    assert (lab / "models" / "mine" / "parity.json").is_file()


def test_the_subscribers_are_the_examples() -> None:
    """The examples themselves are run against a decoder by their own tests."""
    examples = ROOT / "docs" / "examples"
    assert blocks(README, "python") == [(examples / "subscribe.py").read_text()]
    assert blocks(README, "javascript") == [(examples / "listen.mjs").read_text()]


@pytest.mark.timeout(600)
def test_the_page_on_recordings(lab: Path) -> None:
    run_commands(lab, PAGES["recordings.md"])
    first, second = (lab / name for name in ("first.tsv", "again.tsv"))
    assert [line.split("\t")[:6] for line in first.read_text().splitlines()] == [
        line.split("\t")[:6] for line in second.read_text().splitlines()
    ]
    (chain,) = blocks(PAGES["recordings.md"], "python")
    assert "Tokens(" in run_python(lab, "folder, file = Path('rest-templates'), Path('session.edf')", chain)


@pytest.mark.timeout(600)
def test_the_page_on_data_sets(lab: Path) -> None:
    run_commands(lab, PAGES["data-sets.md"])
    (corpus,) = blocks(PAGES["data-sets.md"], "python")
    told = run_python(lab, "root, cache = 'simulated/mdd', Path('mdd-tokens')", corpus)
    assert told.count("H S") == told.count("MDD S") == 10


def test_files_and_links_exist() -> None:
    for folder, text in [(ROOT, README), *((ROOT / "docs", page) for page in PAGES.values())]:
        links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if not target.startswith("http")]
        paths = re.findall(r"`((?:configs|docs|tests|tools|rtbrain)/[\w./-]*)`", text)
        assert not [target for target in links if not (folder / target).exists()]
        assert not [target for target in paths if not (ROOT / target).exists()]


def test_default_recipe_is_written_out() -> None:
    from rtbrain.config import load_yaml
    from rtbrain.pipeline import Recipe

    values = load_yaml(ROOT / "configs" / "broad.yaml")
    assert Recipe.from_dict(values) == Recipe()
    assert set(values) == set(Recipe().to_dict())
    assert len(Recipe.from_dict(load_yaml(ROOT / "configs" / "four-bands.yaml")).bands) == 4
