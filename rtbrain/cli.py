"""The command line: parses, calls, and turns errors into messages and exit codes.

Everything heavy is imported inside the commands, so that `rtbrain --help` answers at once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import click

from rtbrain import __version__
from rtbrain.cli_checks import doctor, parity
from rtbrain.cli_completion import completion
from rtbrain.cli_dashboard import dashboard
from rtbrain.cli_data import data
from rtbrain.cli_demo import demo
from rtbrain.cli_evaluate import evaluate
from rtbrain.cli_live import keys, replay, streams
from rtbrain.cli_options import PATH, SEED, STREAM, UNIT, Group, check_file, expanded
from rtbrain.cli_score import session_score
from rtbrain.cli_session import session
from rtbrain.cli_simulate import simulate, simulate_session
from rtbrain.cli_stream import stream, watch
from rtbrain.cli_templates import templates
from rtbrain.cli_train import train
from rtbrain.errors import ConfigError, RtbrainError, SourceError


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 120},
)
@click.version_option(__version__, prog_name="rtbrain")
def main() -> None:
    """Decode live EEG by Brain Tokens, runs of microstates that are the same live and offline.

    Begin with `rtbrain demo`, which needs neither an amplifier nor data. Every command has a --help with an example.
    """


main.add_command(demo)
main.add_command(simulate)
main.add_command(simulate_session)
main.add_command(templates)
main.add_command(data)
main.add_command(train)
main.add_command(evaluate)
main.add_command(replay)
main.add_command(streams)
main.add_command(stream)
main.add_command(watch)
main.add_command(parity)
main.add_command(doctor)
main.add_command(dashboard)
main.add_command(keys)
main.add_command(session)
session.add_command(session_score)
main.add_command(completion)


@main.command()
@click.argument("file", type=PATH)
@click.option("--templates", "folder", required=True, type=PATH, help="Folder made by `rtbrain templates fit`.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Tab-separated file to write."
)
@click.option(
    "--chunk", metavar="N|random", help="Samples per chunk; the tokens are the same.  [default: blocks of seconds]"
)
@SEED
@UNIT
@STREAM
def tokenize(
    file: Path, folder: Path, out: Path, chunk: str | None, seed: int, unit: str | None, stream: str | None
) -> None:
    """Turn a recording into Brain Tokens.

    Example: rtbrain tokenize session.edf --templates models/rest --out tokens.tsv
    """
    size = _chunk_size(chunk)
    from rtbrain.console import console, progress_bar, show_health, show_statistics
    from rtbrain.fitting import about
    from rtbrain.pipeline import load_templates
    from rtbrain.sources.recording import open_recording
    from rtbrain.tokenizing import check_target, write_tsv
    from rtbrain.tokenizing import tokenize as run

    found, _ = load_templates(folder)
    check_target(out)
    check_file(out)
    source = open_recording(file, unit=unit, stream=stream)
    with progress_bar() as progress, about(file):
        result = run(source, found, size, seed, lambda share: progress(f"tokens of {file.name}", share))
    card = write_tsv(out, result, found, file.name)
    show_health(result)
    for name, each in result.statistics.items():
        show_statistics(name, each)
    console.print(f"wrote {len(result.tokens)} tokens to {out}, and what they mean to {card}")


@main.command()
@click.argument("path", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@UNIT
@STREAM
def inspect(path: Path, as_json: bool, unit: str | None, stream: str | None) -> None:
    """Report what a recording, a folder of recordings or a template folder holds.

    Example: rtbrain inspect session.edf
    """
    import json

    from rtbrain.console import progress_bar, show_inspection, show_templates
    from rtbrain.inspection import inspect_recording
    from rtbrain.microstates.templates import NPZ
    from rtbrain.pipeline import load_templates

    if (path / NPZ).is_file():
        found, _ = load_templates(path)
        if as_json:
            click.echo(json.dumps({"channels": found.channels, "recipe": found.recipe, "report": found.report}))
        else:
            show_templates(path, found)
        return
    failures = 0
    reports = []
    for file in expanded((path,)):
        try:
            with progress_bar() as progress:
                reports.append(inspect_recording(file, unit, stream, partial(progress, f"reading {file.name}")))
        except RtbrainError as error:
            if not path.is_dir():
                raise
            failures += 1
            click.echo(f"rtbrain: {error}", err=True)
            continue
        if not as_json:
            show_inspection(reports[-1])
    if as_json:
        click.echo(json.dumps([each.to_dict() for each in reports]))
    if failures:
        raise SourceError(f"{failures} of {failures + len(reports)} recordings in {path} cannot be used; see above")


def _chunk_size(text: str | None) -> int | Literal["random"] | None:
    if text is None or text == "random":
        return text  # type: ignore[return-value]
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"--chunk {text!r} is neither a number of samples from 1 on nor 'random'")
    return int(text)
