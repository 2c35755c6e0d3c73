"""The command `rtbrain session score`."""

from __future__ import annotations

from pathlib import Path

import click

from rtbrain.cli_dataset import JSON, check_targets, to_screen, write_json
from rtbrain.cli_options import PATH


@click.command("score")
@click.argument("folder", type=PATH)
@click.option("--truth", required=True, type=PATH, help="session.json: what truly happened, by `simulate-session`.")
@click.option(
    "--from", "from_s", type=click.FloatRange(0), default=0.0, help="Second of the recording where the stream began."
)
@JSON
def session_score(folder: Path, truth: Path, from_s: float, target: Path | None) -> None:
    """Compare the decisions of a session log with what is true: accuracy, and the delay after each change of state.

    Only the newest run of the log counts. A truth of your own is a JSON file such as {"classes": ["rest", "task"],
    "stretches": [{"start_s": 0, "stop_s": 60, "state": "rest"}, {"start_s": 60, "stop_s": 120, "state": "task"}]}.

    Example: rtbrain session score logs/today --truth session/session.json
    """
    check_targets(target)
    from dataclasses import asdict

    from rtbrain.console_score import show_score
    from rtbrain.session_score import read_decisions, score
    from rtbrain.session_truth import load_truth

    known = load_truth(truth)
    said, tokens = read_decisions(folder, from_s)
    found = score(said, tokens, known)
    if target is None or not to_screen(target):
        show_score(found, said, known)
    if target is not None:
        write_json(asdict(found) | {"best": known.best and asdict(known.best)}, target)
