"""The whole of rtbrain on people who never lived: simulate, train, certify, replay over LSL, decode live, score.

Every step is a command that is printed before it runs, so that each can be repeated by hand.
"""

import os
import socket
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Final

import click

from rtbrain.demo_processes import announce, as_typed, ending_as_interrupted, run, running, wait_for
from rtbrain.demo_steps import DemoSettings, claim, replay_command, score_command, steps, stream_command
from rtbrain.errors import RtbrainError

_START_S: Final = 120.0
"""For so long a process may take to be ready on a busy machine."""
_LAST_LINES: Final = 5


def run_demo(out: Path, settings: DemoSettings, output_port: int, dashboard_port: int | None) -> None:
    """Run the demo in a folder; what is there already is not made again.

    Parameters
    ----------
    out : Path
        Folder for everything.
    settings : DemoSettings
        How much of everything.
    output_port : int
        Where the decoder publishes, if that port is free.
    dashboard_port : int, optional
        Serve the dashboard there, if that is free, and go on decoding until Ctrl-C.
    """
    claim(out, settings)
    began_s = time.monotonic()
    todo = steps(settings, out)
    n_steps = len(todo) + 1
    with ending_as_interrupted():
        for number, step in enumerate(todo, 1):
            click.secho(f"\n{number} of {n_steps}: {step.title}", fg="cyan")
            announce(step.command)
            if step.made.exists():
                click.echo(f"done already: {step.made}")
            else:
                run(step.command)
        click.secho(
            f"\n{n_steps} of {n_steps}: replay that recording as an LSL stream, {settings.speed:g} times as fast as it "
            "was taken, and decode it live",
            fg="cyan",
        )
        _live(out, settings, output_port, dashboard_port, began_s)


def _live(out: Path, settings: DemoSettings, output_port: int, dashboard_port: int | None, began_s: float) -> None:
    """Decode the session once and score it; with a dashboard, go on at the pace of a real session."""
    name = f"demo-{os.getpid()}"
    endpoint = f"tcp://127.0.0.1:{_free_port(output_port)}"
    log = out / "log"
    with ExitStack() as stack:
        if dashboard_port is not None:
            command = ("dashboard", "--zmq", endpoint, "--port", f"{_free_port(dashboard_port)}")
            announce(command, background=True)
            stack.enter_context(running(command))
        _decode_once(out, settings, name, endpoint, log)
        announce(score_command(out, log))
        run(score_command(out, log))
        _summary(out, log, began_s)
        if dashboard_port is not None:
            _go_on(out, name, endpoint)


def _decode_once(out: Path, settings: DemoSettings, name: str, endpoint: str, log: Path) -> None:
    said: list[str] = []
    sent = Event()

    def listen(line: str) -> None:
        said.append(line)
        if not sent.is_set():  # then the source is gone, as it should be
            click.echo(f"  stream: {line}")

    command = stream_command(out, name, endpoint, log)
    announce(command, background=True)
    with running(command, listen) as decoder:
        wait_for(lambda: any("looking for" in line for line in said), decoder, "starting the decoder", _START_S)
        sending = replay_command(out, name, settings.speed, loop=False)
        announce(sending)
        with running(sending) as replay:
            wait_for(lambda: replay.poll() is not None, decoder, "decoding", float("inf"))
        sent.set()
        if replay.returncode:
            raise RtbrainError(f"the replay ended with exit code {replay.returncode}; see above")


def _go_on(out: Path, name: str, endpoint: str) -> None:
    """Decode the same session again and again, at its own pace, until Ctrl-C."""
    click.secho("\nthe session goes on at its own pace; look at the dashboard, stop by Ctrl-C", fg="cyan")
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with (
        running(stream_command(out, name, endpoint, None), last.append) as decoder,
        running(replay_command(out, name, 1.0, loop=True), last.append) as replay,
    ):
        while decoder.poll() is None and replay.poll() is None:
            time.sleep(0.1)
    raise RtbrainError("\n  ".join(["the session ended by itself; the last that it said:", *last]))


def _summary(out: Path, log: Path, began_s: float) -> None:
    files = {
        out / "set": "the simulated people; rtbrain.yaml describes the set, simulation.json is the truth",
        out / "bundle": "the trained decoder: templates, ONNX graphs, bundle.json; parity.json is its certificate",
        out / "session": "the recording of the stranger, and what is true of it",
        log: "every message of the live session, checksummed; `rtbrain session check` verifies it",
    }
    width = max(len(str(path)) for path in files)
    click.echo(f"\nthis took {time.monotonic() - began_s:.0f} s. Where everything is:")
    for path, what in files.items():
        click.echo(f"  {path!s:{width}}  {what}")
    click.echo(
        "The commands above, those after $, can be typed; those that write files want another --out than theirs."
    )
    click.echo(f"Decode it again: {as_typed(replay_command(out, 'EEG', 1.0, loop=True))} &")
    click.echo(f"                 rtbrain stream --lsl EEG --bundle {out / 'bundle'} --local &   then: rtbrain watch")


def _free_port(wanted: int) -> int:
    """Return a port of this machine that is free: the usual one, if possible."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return wanted
