"""No process of the demo outlives it."""

import os
import signal
import subprocess
import sys

import pytest

from rtbrain.demo_processes import end

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
