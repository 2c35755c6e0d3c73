"""Python programs that are killed in the middle of their work."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final

from tests.conftest import ROOT

PATIENCE_S: Final = 200.0


def kill_when(reached: Callable[[], bool], *args: object) -> None:
    """Run Python with these arguments, and kill it as soon as it has got that far; it must not end before."""
    process = subprocess.Popen(
        [sys.executable, *map(str, args)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit_s = monotonic() + PATIENCE_S
        while not reached():
            assert process.poll() is None, "it ended before it was to be killed"
            assert monotonic() < limit_s, "it never got that far"
            sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
