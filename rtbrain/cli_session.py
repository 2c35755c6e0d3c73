"""The commands on session logs: `session check` and `session replay`."""

from __future__ import annotations

from pathlib import Path

import click

from rtbrain.cli_options import PATH, on_signals
from rtbrain.errors import SinkError, SourceError


@click.group()
def session() -> None:
    """Look at session logs."""


@session.command("check")
@click.argument("folder", type=PATH)
@click.option("--salvage", type=click.Path(path_type=Path, dir_okay=False), help="Write what is sound to this file.")
def session_check(folder: Path, salvage: Path | None) -> None:
    """Verify a session log line by line: checksums, missing lines, cut ends.

    Example: rtbrain session check logs/today --salvage sound.jsonl
    """
    from rtbrain.sinks.session_check import check_session, salvage_session

    report = check_session(folder)
    for line in report.lines():
        click.echo(line)
    if salvage is not None:
        click.echo(f"wrote {salvage_session(folder, salvage)} sound lines to {salvage}")
    if not report.sound:
        raise SinkError(f"{folder} is damaged; `--salvage FILE` keeps what is sound")


@session.command("replay")
@click.argument("folder", type=PATH)
@click.option("--bundle", help="That of the session: folder, or name.  [default: found by its hash]")
@click.option("--run", help="Which run of the folder.  [default: the newest]")
@click.option("--every", "every_s", type=click.FloatRange(0.01), help="Seconds between the decisions that are shown.")
@click.option("--at", "at_s", type=click.FloatRange(0), help="Show the decision at this second in detail.")
@click.option("--speed", type=click.FloatRange(0.01), help="Show as it went, so many times as fast.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one decision a line.")
def session_replay(
    folder: Path,
    bundle: str | None,
    run: str | None,
    every_s: float | None,
    at_s: float | None,
    speed: float | None,
    as_json: bool,
) -> None:
    """Show what was decided and why: decisions, trust, and the tokens that the model looked at.

    The attention and the probabilities are computed again from the logged tokens with the session's own bundle; if the
    probabilities are not the logged ones, the exit code is 2.

    Example: rtbrain session replay logs/today --at 93.5
    """
    import json

    from rtbrain import console_session as shown
    from rtbrain.errors import ConfigError
    from rtbrain.session_replay import TOLERANCE, Again, bundle_of, load_session

    found = load_session(folder, run)
    states = found.of("state")
    if not states:
        raise SourceError(
            f"run {found.run} in {folder} made no decision; `rtbrain session check` tells what it holds and lists the "
            "folder's other runs, for --run"
        )
    asked = None if at_s is None else found.decision_at(at_s)
    try:
        again = Again(found, bundle_of(found, bundle))
    except ConfigError as error:
        if bundle is not None:
            raise
        click.echo(f"without attention: {error}", err=True)
        again = None
    worst = 0.0
    if asked is not None:
        looked = None if again is None else again.look(asked)
        worst = 0.0 if looked is None else looked.difference
        if as_json:
            click.echo(json.dumps(shown.as_json(asked, looked)))
        else:
            shown.show_decision(asked, looked)
    elif as_json:
        for state in shown.some(states, every_s):
            looked = None if again is None else again.look(state)
            worst = max(worst, 0.0 if looked is None else looked.difference)
            click.echo(json.dumps(shown.as_json(state, looked)))
    else:
        worst = shown.show_session(found, again, every_s=every_s, speed=speed, stop=on_signals())
    if worst > TOLERANCE:
        raise SourceError(
            f"computed again, probabilities differ from the logged ones by up to {worst:.2g}, more than {TOLERANCE:g}: "
            "the log or the bundle is not what it says; look with `rtbrain session check`"
        )
