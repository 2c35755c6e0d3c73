"""The demo in small, as a process of its own: it can be stopped at any moment, goes on where it was, and ends well."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from rtbrain.demo_steps import QUICK, claim
from rtbrain.errors import ConfigError
from tests.system.test_cli import refused

PATIENCE_S = 280.0
pytestmark = [pytest.mark.patient, pytest.mark.slow]


def start(out: Path, dashboard: str = "--no-dashboard") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rtbrain", "demo", "--quick", dashboard, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def left_behind(out: Path) -> list[str]:
    """Processes of this machine whose command names the demo's folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended meanwhile
            continue
        if any(str(out) in word for word in words) and int(each.parent.name) != os.getpid():
            found.append(" ".join(words))
    return found


def wait_for(path: Path) -> bool:
    until = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.05)
    return True


def interrupted(out: Path, when: Callable[[str], bool], dashboard: str = "--no-dashboard") -> str:
    """Press Ctrl-C once a line of the output tells that it is time; return all that was printed."""
    process = start(out, dashboard)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if when(line):
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, "".join(lines) + rest
    return "".join(lines) + rest


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked for in /proc")
@pytest.mark.timeout(900)
def test_it_is_stopped_twice_and_then_ends_well(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    told = interrupted(out, lambda line: line.startswith("$ rtbrain train") and wait_for(out / "bundle.training"))
    assert "Traceback" not in told
    assert left_behind(out) == []
    assert not (out / "bundle").exists()
    told = interrupted(out, lambda line: "the source is live" in line)
    assert "Traceback" not in told
    assert f"done already: {out / 'set' / 'simulation.json'}" in told
    assert left_behind(out) == []
    process = start(out)
    told, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, told
    assert told.count("done already") == 4
    commands = re.findall(r"^\$ rtbrain (\S+)", told, flags=re.M)
    assert commands == ["simulate", "train", "simulate-session", "parity", "stream", "replay", "session"]
    true, decoded = re.findall(r"^(?:truth|decoded) +([NP.]+)$", told, flags=re.M)
    assert len(true) == len(decoded)
    assert true.count("N") == pytest.approx(true.count("P"), abs=2)
    assert set(decoded) & {"N", "P"}
    assert len(re.findall(r"^\d+ s +(?:not )?positive +(?:[\d.]+ s|not at all)$", told, flags=re.M)) == 3
    for figure in (r"accuracy 0\.\d+ of the \d+ decisions", r"tokens, [\d.]+ per second", r"p50 [\d.]+ ms, p99"):
        assert re.search(figure, told), told
    assert left_behind(out) == []
    assert (out / "bundle" / "parity.json").is_file()
    check_the_dashboard(out)


def check_the_dashboard(out: Path) -> None:
    """As in a terminal: the page is served before and after the score, and goes with Ctrl-C."""
    pages: list[str] = []

    def goes_on(line: str) -> bool:
        pages.extend(re.findall(r"the dashboard is at (http://\S+)", line))
        if "the session goes on" not in line:
            return False
        with urlopen(pages[0], timeout=60) as page:
            assert "<title>rtbrain</title>" in page.read().decode()
        return True

    told = interrupted(out, goes_on, "--dashboard")
    assert "accuracy" in told
    assert "Traceback" not in told
    assert left_behind(out) == []
    with pytest.raises(URLError):
        urlopen(pages[0], timeout=60)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    assert "holds no demo" in refused("demo", "--out", tmp_path)
    claim(tmp_path / "demo", QUICK)
    claim(tmp_path / "demo", QUICK)
    with pytest.raises(ConfigError, match="other settings"):
        claim(tmp_path / "demo", type(QUICK)())
