"""Commands of rtbrain as processes of their own, none of which outlives the demo."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import IO, Final

import click

from rtbrain.errors import RtbrainError

PATIENCE_S: Final = 15.0
"""For so long a process may take to end after it was asked to."""
_POSIX: Final = os.name == "posix"
_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Requests to end, and a terminal that is closed."""


def as_typed(command: Sequence[str]) -> str:
    """Return a command as one would type it."""
    return shlex.join(["rtbrain", *command])


@contextmanager
def running(command: Sequence[str], listen: Callable[[str], None] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a command for as long as a block lasts.

    Parameters
    ----------
    command : sequence of str
        What follows `rtbrain`.
    listen : callable, optional
        Is given each line of its output, from a thread; left out, the output goes to the screen.
    """
    pipe = None if listen is None else subprocess.PIPE
    process = reader = None
    try:
        with holding_back():
            process = subprocess.Popen(
                [sys.executable, "-m", "rtbrain", *command],
                stdout=pipe,
                stderr=None if pipe is None else subprocess.STDOUT,
                text=True,
                # A group of its own: Ctrl-C reaches the demo alone, which asks each of its processes once to end.
                **({"process_group": 0} if _POSIX else {}),  # type: ignore[call-overload]
            )
            if listen is not None:
                reader = Thread(target=_read, args=(process.stdout, listen))
                reader.start()
        yield process
    finally:
        if process is not None:
            end(process)
        if reader is not None:
            reader.join()


def run(command: Sequence[str]) -> None:
    """Run a command to its end; whatever it prints goes to the screen."""
    with running(command) as process:
        code = process.wait()
    if code:
        raise RtbrainError(f"the step `{as_typed(command)}` ended with exit code {code}; see above")


def end(process: subprocess.Popen[str]) -> None:
    """Ask a process to end as Ctrl-C does, insist if need be, and leave none of its own processes behind."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGINT if _POSIX else signal.SIGTERM)
            process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        pass  # it is ended by force
    finally:  # also when somebody who cannot wait presses Ctrl-C again
        process.kill()
        if _POSIX:
            with suppress(ProcessLookupError):  # as it should be: the group is empty
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], what: str, seconds: float) -> None:
    """Wait until something is so, while a process runs."""
    until = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise RtbrainError(f"{what}: the process ended with exit code {process.returncode}; see above")
        if time.monotonic() > until:
            raise RtbrainError(f"{what}: nothing came of it within {seconds:g} s; is the machine very busy? Try again")
        time.sleep(0.1)


@contextmanager
def ending_as_interrupted() -> Iterator[None]:
    """Treat a request to end, and a terminal that is closed, as Ctrl-C: processes are ended before this one."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def holding_back() -> Iterator[None]:
    """Let Ctrl-C wait for a moment: a process that is only just being started could not be ended yet."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number)) for number in (signal.SIGINT, *_ENDING)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def _read(output: IO[str] | None, listen: Callable[[str], None]) -> None:
    assert output is not None
    with output:
        for line in output:
            listen(line.rstrip("\n"))


def announce(command: Sequence[str], background: bool = False) -> None:
    """Print a command as one would type it."""
    click.secho(f"$ {as_typed(command)}{' &' if background else ''}", bold=True)
