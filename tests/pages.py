"""The README and the pages of docs/: what is printed in them, run as it is typed.

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

from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from tests.conftest import ROOT
from tests.recording_writers import write_edf

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


def fill(folder: Path) -> Path:
    """Put there what all pages suppose: rest/ with recordings, and session.edf."""
    for seed in range(2):
        write_recording(folder / "rest" / f"{seed}.edf", seed)
    write_recording(folder / "session.edf", 7)
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
