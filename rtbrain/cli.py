"""The command line: parses, calls, and turns errors into messages and exit codes.

Everything heavy is imported inside the commands, so that `rtbrain --help` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rtbrain import __version__
from rtbrain.errors import ConfigError, RtbrainError, SourceError

if TYPE_CHECKING:
    from rtbrain.pipeline import Recipe

UNITS = click.Choice(["V", "mV", "uV", "nV"])
EXISTING = click.Path(path_type=Path)


class Group(click.Group):
    """A group that reports rtbrain's own errors in one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except RtbrainError as error:
            click.echo(f"rtbrain: {error}", err=True)
            sys.exit(error.exit_code)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="rtbrain")
def main() -> None:
    """Turn EEG into Brain Tokens: runs of microstates, the same live and offline."""


@main.group()
def templates() -> None:
    """Fit, look at and convert microstate templates."""


@templates.command("fit")
@click.argument("files", nargs=-1, required=True, type=EXISTING)
@click.option("-k", "n_states", type=click.IntRange(1, 64), help="Number of states.")
@click.option("--scan", metavar="FROM:TO", help="Try these numbers of states and take the recommended one.")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write.")
@click.option("--recipe", "recipe_file", type=EXISTING, help="YAML file with the recipe; see configs/broad.yaml.")
@click.option("--channels", help="Electrodes to use, separated by commas.  [default: those all recordings share]")
@click.option("--method", type=click.Choice(["modkmeans", "kmeans", "aahc"]), default="modkmeans")
@click.option("--starts", type=click.IntRange(1), default=100, help="Random starts; the best one is kept.")
@click.option("--peaks", type=click.IntRange(1), default=1000, help="GFP peaks drawn from each recording.")
@click.option("--seed", type=int, default=0)
@click.option("--unit", type=UNITS, help="What the numbers in the files are, where a file does not say or is wrong.")
def templates_fit(
    files: tuple[Path, ...],
    n_states: int | None,
    scan: str | None,
    out: Path,
    recipe_file: Path | None,
    channels: str | None,
    method: Literal["modkmeans", "kmeans", "aahc"],
    starts: int,
    peaks: int,
    seed: int,
    unit: str | None,
) -> None:
    """Fit templates to the GFP peaks of recordings (files, or folders of them).

    Example: rtbrain templates fit rest/*.edf -k 6 --out models/rest
    """
    if (n_states is None) == (scan is None):
        raise ConfigError("say how many states: either -k N or --scan FROM:TO, such as --scan 3:12")
    ks = _range(scan) if scan is not None else ()
    from dataclasses import replace

    from rtbrain.console import progress_bar, show_templates
    from rtbrain.fitting import PeakSettings, fit_templates
    from rtbrain.microstates.fit import FitSettings
    from rtbrain.microstates.templates import save

    recipe = _recipe(recipe_file)
    if channels is not None:
        names = tuple(name.strip() for name in channels.split(",") if name.strip())
        recipe = replace(recipe, channels=replace(recipe.channels, names=names))
    settings = FitSettings(n_states=n_states or ks[0], method=method, n_starts=starts, seed=seed)
    with progress_bar() as progress:
        found = fit_templates(
            _expanded(files),
            recipe,
            settings,
            ks=ks,
            peak_settings=PeakSettings(per_recording=peaks),
            unit=unit,
            progress=progress,
        )
    save(found, out)
    show_templates(out, found)


@templates.command("show")
@click.argument("folder", type=EXISTING)
@click.option("--png", is_flag=True, help="Draw the topographies, and the curve of a scan, into the folder.")
def templates_show(folder: Path, png: bool) -> None:
    """Describe a template folder.

    Example: rtbrain templates show models/rest --png
    """
    from rtbrain.console import console, show_templates
    from rtbrain.microstates.templates import load

    found = load(folder)
    show_templates(folder, found)
    if png:
        from rtbrain.topography import draw_scan, draw_templates

        draw_templates(found, folder / "templates.png")
        console.print(f"wrote {folder / 'templates.png'}")
        if draw_scan(found, folder / "scan.png"):
            console.print(f"wrote {folder / 'scan.png'}")


@templates.command("convert")
@click.argument("source", type=EXISTING)
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--band", type=click.IntRange(0), default=0, help="Which band's templates to write, counted from 0.")
@click.option("--recipe", "recipe_file", type=EXISTING, help="YAML file with the recipe, when reading a .fif.")
def templates_convert(source: Path, target: Path, band: int, recipe_file: Path | None) -> None:
    """Convert a template folder to pycrostates' .fif, or a .fif to a folder.

    Example: rtbrain templates convert models/rest rest.fif
    """
    from rtbrain.interop import read_fif, write_fif
    from rtbrain.microstates.templates import load, save

    if target.suffix == ".fif":
        found = load(source)
        if band >= len(found.maps):
            raise ConfigError(f"--band {band}: the templates have {len(found.maps)} band(s), counted from 0")
        write_fif(found, target, band)
    elif source.suffix == ".fif":
        save(read_fif(source, _recipe(recipe_file)), target)
    else:
        raise ConfigError(f"neither {source} nor {target} ends in .fif, so there is nothing to convert")
    click.echo(f"wrote {target}")


@main.command()
@click.argument("file", type=EXISTING)
@click.option("--templates", "folder", required=True, type=EXISTING, help="Folder made by `rtbrain templates fit`.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Tab-separated file to write."
)
@click.option(
    "--chunk", metavar="N|random", help="Samples per chunk; the tokens are the same.  [default: blocks of seconds]"
)
@click.option("--seed", type=int, default=0, help="Seed of random chunk sizes.")
@click.option("--unit", type=UNITS, help="What the numbers in the file are, where it does not say or is wrong.")
def tokenize(file: Path, folder: Path, out: Path, chunk: str | None, seed: int, unit: str | None) -> None:
    """Turn a recording into Brain Tokens.

    Example: rtbrain tokenize session.edf --templates models/rest --out tokens.tsv
    """
    size = _chunk_size(chunk)
    from rtbrain.console import console, progress_bar, show_health, show_statistics
    from rtbrain.fitting import about
    from rtbrain.microstates.templates import load
    from rtbrain.sources.recording import open_recording
    from rtbrain.tokenizing import tokenize as run
    from rtbrain.tokenizing import write_tsv

    found = load(folder)
    if not out.parent.is_dir():
        raise ConfigError(f"the folder of --out {out} does not exist")
    source = open_recording(file, unit=unit)
    with progress_bar() as progress, about(file):
        result = run(source, found, size, seed, lambda share: progress(f"tokens of {file.name}", share))
    card = write_tsv(out, result, found, file.name)
    show_health(result)
    for name, each in result.statistics.items():
        show_statistics(name, each)
    console.print(f"wrote {len(result.tokens)} tokens to {out}, and what they mean to {card}")


@main.command()
@click.argument("path", type=EXISTING)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--unit", type=UNITS, help="What the numbers in the file are, where it does not say or is wrong.")
def inspect(path: Path, as_json: bool, unit: str | None) -> None:
    """Report what a recording, a folder of recordings or a template folder holds.

    Example: rtbrain inspect session.edf
    """
    import json

    from rtbrain.console import show_inspection, show_templates
    from rtbrain.inspection import inspect_recording
    from rtbrain.microstates.templates import NPZ, load

    if (path / NPZ).is_file():
        found = load(path)
        if as_json:
            click.echo(json.dumps({"channels": found.channels, "recipe": found.recipe, "report": found.report}))
        else:
            show_templates(path, found)
        return
    failures = 0
    reports = []
    for file in _expanded((path,)):
        try:
            reports.append(inspect_recording(file, unit))
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


@main.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("demo-output"))
@click.option("--seconds", type=click.FloatRange(20), default=120.0, help="Length of the synthetic recording.")
def demo(out: Path, seconds: float) -> None:
    """Make synthetic EEG with known states, fit templates, tokenize it, and compare with the truth.

    Example: rtbrain demo --out demo-output
    """
    from rtbrain.demo import run

    run(out, seconds)


def _expanded(paths: tuple[Path, ...]) -> list[Path]:
    """Replace folders by the recordings in them."""
    from rtbrain.sources.recording import find_recordings

    found = [file for path in paths for file in (find_recordings(path) if path.is_dir() else [path])]
    if not found:
        raise SourceError(f"there is no recording in {', '.join(map(str, paths))}")
    return found


def _recipe(path: Path | None) -> Recipe:
    from rtbrain.config import load_yaml
    from rtbrain.pipeline import Recipe

    return Recipe() if path is None else Recipe.from_dict(load_yaml(path), str(path))


def _range(text: str) -> tuple[int, ...]:
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit()) or not 1 <= int(first) < int(last) <= 64:
        raise ConfigError(f"--scan {text!r} is no range of numbers of states; write for example --scan 3:12")
    return tuple(range(int(first), int(last) + 1))


def _chunk_size(text: str | None) -> int | Literal["random"] | None:
    if text is None or text == "random":
        return text  # type: ignore[return-value]
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"--chunk {text!r} is neither a number of samples nor 'random'")
    return int(text)
