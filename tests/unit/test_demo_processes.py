"""No process of the demo outlives it, and none fails in silence."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rtbrain import demo
from rtbrain.demo_processes import end, holding_back, running
from rtbrain.errors import RtbrainError

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; print('child', flush=True); time.sleep(600)"]).wait()
"""


@pytest.mark.skipif(os.name != "posix", reason="processes have groups on POSIX only")
def test_a_second_ctrl_c_ends_even_those_that_ignore_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True, process_group=0)
    assert process.stdout is not None
    assert process.stdout.readline() == "child\n"
    wait = process.wait

    def interrupted(timeout: float | None = None) -> int:
        if timeout is not None:
            raise KeyboardInterrupt
        return wait()

    monkeypatch.setattr(process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        end(process)
    assert process.returncode == -signal.SIGKILL
    assert process.stdout.read() == ""  # its child, which holds the other end, is gone too
    process.stdout.close()


def test_a_session_that_ends_by_itself_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = ("watch", "--zmq", "tcp://127.0.0.1:1", "--plain", "--seconds", "100")  # stands for what goes on
    monkeypatch.setattr(demo, "replay_command", lambda *_, **__: watch)
    with pytest.raises(RtbrainError, match=r"ended by itself(.|\n)*there is no bundle"):
        demo._go_on(tmp_path, "nobody", "tcp://127.0.0.1:0")


def test_ctrl_c_while_a_process_starts_waits_until_it_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def interrupted(*args: object, **options: object) -> subprocess.Popen[str]:
        os.kill(os.getpid(), signal.SIGINT)
        started.append(popen(*args, **options))  # type: ignore[call-overload]
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt), running(("watch", "--zmq", "tcp://127.0.0.1:1")):
        pytest.fail("the block must not begin")
    assert started[0].returncode is not None
    with holding_back():
        pass  # nothing came: nothing is raised
