"""The commands `rtbrain templates ...`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from rtbrain.cli_options import PATH, SEED, STREAM, UNIT, check_folder, expanded, number_range, recipe_from
from rtbrain.errors import ConfigError

PICTURES = ("templates.png", "scan.png")


@click.group()
def templates() -> None:
    """Fit, look at and convert microstate templates."""


@templates.command("fit")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("-k", "n_states", type=click.IntRange(1, 64), help="Number of states.")
@click.option("--scan", metavar="FROM:TO", help="Try these numbers of states and take the recommended one.")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write.")
@click.option("--recipe", "recipe_file", type=PATH, help="YAML file with the recipe; see configs/broad.yaml.")
@click.option("--channels", help="Electrodes to use, separated by commas.  [default: those all recordings share]")
@click.option("--method", type=click.Choice(["modkmeans", "kmeans", "aahc"]), default="modkmeans")
@click.option("--starts", type=click.IntRange(1), default=100, help="Random starts; the best one is kept.")
@click.option("--peaks", type=click.IntRange(1), default=1000, help="GFP peaks drawn from each recording.")
@SEED
@UNIT
@STREAM
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
    stream: str | None,
) -> None:
    """Fit templates to the GFP peaks of recordings (files, or folders of them).

    Example: rtbrain templates fit rest/*.edf -k 6 --out models/rest
    """
    if (n_states is None) == (scan is None):
        raise ConfigError("say how many states: either -k N or --scan FROM:TO, such as --scan 3:12")
    ks = number_range(scan) if scan is not None else ()
    from dataclasses import replace

    from rtbrain.console import progress_bar, show_templates
    from rtbrain.fitting import PeakSettings, fit_templates
    from rtbrain.microstates.fit import FitSettings
    from rtbrain.microstates.templates import save

    recipe = recipe_from(recipe_file)
    check_folder(out)
    if channels is not None:
        names = tuple(name.strip() for name in channels.split(",") if name.strip())
        recipe = replace(recipe, channels=replace(recipe.channels, names=names))
    settings = FitSettings(n_states=n_states or ks[0], method=method, n_starts=starts, seed=seed)
    with progress_bar() as progress:
        found = fit_templates(
            expanded(files),
            recipe,
            settings,
            ks=ks,
            peak_settings=PeakSettings(per_recording=peaks),
            unit=unit,
            stream=stream,
            progress=progress,
        )
    save(found, out)
    for picture in PICTURES:
        (out / picture).unlink(missing_ok=True)  # of an earlier fit; they would show other maps
    show_templates(out, found)


@templates.command("show")
@click.argument("folder", type=PATH)
@click.option("--png", is_flag=True, help="Draw the topographies, and the curve of a scan, into the folder.")
def templates_show(folder: Path, png: bool) -> None:
    """Describe a template folder.

    Example: rtbrain templates show models/rest --png
    """
    from rtbrain.console import console, show_templates
    from rtbrain.pipeline import load_templates

    found, _ = load_templates(folder)
    show_templates(folder, found)
    if png:
        from rtbrain.topography import draw_scan, draw_templates

        maps, scan = (folder / name for name in PICTURES)
        draw_templates(found, maps)
        console.print(f"wrote {maps}")
        if draw_scan(found, scan):
            console.print(f"wrote {scan}")


@templates.command("convert")
@click.argument("source", type=PATH)
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--band", type=click.IntRange(0), default=0, help="Which band's templates to write, counted from 0.")
@click.option("--recipe", "recipe_file", type=PATH, help="YAML file with the recipe, when reading a .fif.")
def templates_convert(source: Path, target: Path, band: int, recipe_file: Path | None) -> None:
    """Convert a template folder to pycrostates' .fif, or a .fif to a folder.

    Example: rtbrain templates convert models/rest rest.fif
    """
    from rtbrain.interop import is_clustering, read_fif, write_fif
    from rtbrain.microstates.templates import NPZ, save
    from rtbrain.pipeline import load_templates

    if target.suffix == ".fif":
        found, recipe = load_templates(source)
        if band >= len(found.maps):
            raise ConfigError(f"--band {band}: the templates have {len(found.maps)} band(s), counted from 0")
        if not target.parent.is_dir():
            raise ConfigError(f"the folder of {target} does not exist")
        if target.exists() and not is_clustering(target):
            raise ConfigError(f"{target} exists and is no pycrostates clustering; choose another name or remove it")
        write_fif(found, target, band)
        kept = recipe.bands[band]
        click.echo(f"wrote {target}: band {kept.name} ({kept.low_hz:g} to {kept.high_hz:g} Hz); a .fif keeps no recipe")
    elif source.suffix == ".fif":
        check_folder(target)
        if (target / NPZ).exists():
            raise ConfigError(f"{target} holds templates already; choose another folder or remove it")
        recipe = recipe_from(recipe_file)
        save(read_fif(source, recipe), target)
        said = f"the recipe of {recipe_file}" if recipe_file else "the default recipe (give --recipe for another)"
        click.echo(f"wrote {target} with {said}: {recipe.bands[0].low_hz:g} to {recipe.bands[0].high_hz:g} Hz")
    else:
        raise ConfigError(f"neither {source} nor {target} ends in .fif, so there is nothing to convert")
