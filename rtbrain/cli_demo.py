"""The command `rtbrain demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rtbrain.cli_options import DASHBOARD_PORT, OUTPUT_PORT


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    help="Folder for everything; what is there already is not made again.",
)
@click.option("--quick", is_flag=True, help="Everything in small; the accuracy then means little.")
@click.option(
    "--dashboard/--no-dashboard",
    default=None,
    help="Serve the dashboard until Ctrl-C.  [default: in a terminal]",
)
def demo(out: Path, quick: bool, dashboard: bool | None) -> None:
    """Decode a live session without an amplifier or data: simulate, train, certify, replay, decode, score.

    Every step is a command of its own, printed before it runs. A demo that was interrupted goes on where it was.

    Example: rtbrain demo --out demo-output
    """
    from rtbrain.demo import run_demo
    from rtbrain.demo_steps import QUICK, DemoSettings

    wanted = sys.stdout.isatty() if dashboard is None else dashboard
    run_demo(out, QUICK if quick else DemoSettings(), OUTPUT_PORT, DASHBOARD_PORT if wanted else None)
