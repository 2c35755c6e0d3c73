"""The commands `rtbrain templates ...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from rtbrain.cli_dataset import DATASET_HELP, ROOT, TASK, trials_of
from rtbrain.cli_options import PATH, SEED, STREAM, UNIT, Choice, check_folder, expanded, number_range, recipe_from
from rtbrain.errors import ConfigError

if TYPE_CHECKING:
    from rtbrain.microstates.templates import Templates

PICTURES = ("templates.png", "scan.png")


@click.group()
def templates() -> None:
    """Fit, look at and convert microstate templates."""


@templates.command("fit")
@click.argument("files", nargs=-1, type=PATH)
@click.option("--dataset", metavar="NAME|FILE", help=f"Instead of files: {DATASET_HELP}")
@ROOT
@TASK
@click.option("--subjects", help="Fit on these subjects of the data set only, separated by commas.")
@click.option("--exclude", help="Leave these subjects of the data set out, separated by commas.")
@click.option("-k", "n_states", type=click.IntRange(1, 64), help="Number of states.  [default: the data set's]")
@click.option("--scan", metavar="FROM:TO", help="Try these numbers of states and take the recommended one.")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write.")
@click.option("--recipe", "recipe_file", type=PATH, help="YAML file with the recipe; see configs/broad.yaml.")
@click.option("--channels", help="Electrodes to use, separated by commas.  [default: those all recordings share]")
@click.option(
    "--method", type=Choice(["modkmeans", "kmeans", "aahc"]), default="modkmeans", help="How maps are clustered."
)
@click.option("--starts", type=click.IntRange(1), default=100, help="Random starts; the best one is kept.")
@click.option("--peaks", type=click.IntRange(1), default=1000, help="GFP peaks drawn from each recording, or subject.")
@SEED
@UNIT
@STREAM
def templates_fit(
    files: tuple[Path, ...],
    dataset: str | None,
    root: Path | None,
    task: str | None,
    subjects: str | None,
    exclude: str | None,
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
    """Fit templates to the GFP peaks of recordings (files, or folders of them) or of a data set's trials.

    Example: rtbrain templates fit rest/*.edf -k 6 --out templates/rest

    Example: rtbrain templates fit --dataset mdd --root data/mdd --exclude "H S1,MDD S1" --out templates/mdd
    """
    if bool(files) == (dataset is not None):
        raise ConfigError("say what to fit to: either files (or folders of them), or --dataset NAME")
    if dataset is None and any(each is not None for each in (root, task, subjects, exclude)):
        raise ConfigError("--root, --task, --subjects and --exclude choose from a --dataset; leave them out")
    if dataset is not None and any(each is not None for each in (unit, stream)):
        raise ConfigError("--unit and --stream are for files; a data set's configuration says what it holds")
    if (n_states is not None) + (scan is not None) != 1 and (dataset is None or scan is not None):
        raise ConfigError("say how many states: either -k N or --scan FROM:TO, such as --scan 3:12")
    ks = number_range(scan) if scan is not None else ()
    from dataclasses import replace
    from functools import partial

    from rtbrain.console import progress_bar, show_templates
    from rtbrain.decoder.bundle import CARD
    from rtbrain.fitting import PeakSettings, fit_templates
    from rtbrain.microstates.fit import FitSettings
    from rtbrain.microstates.templates import save

    recipe = recipe_from(recipe_file)
    check_folder(out)
    if (out / CARD).exists():
        raise ConfigError(f"{out} is a trained bundle, which other templates would break; give another folder to --out")
    origin = {}
    if dataset is None:
        recordings = expanded(files)
        if any(path.is_dir() for path in files):
            click.echo("fitting to " + ", ".join(map(str, recordings)))
        fit = partial(fit_templates, recordings, unit=unit, stream=stream)
    else:
        from rtbrain.training.trial_templates import fit_trials, of_subjects

        config, task, trials = trials_of(dataset, root, task)
        fit = partial(fit_trials, of_subjects(trials, _listed(subjects), _listed(exclude)))
        recipe = recipe if recipe_file else config.recipe
        n_states = n_states or config.n_states
        origin = {"dataset": config.name, "task": task}
    if channels is not None:
        recipe = replace(recipe, channels=replace(recipe.channels, names=_listed(channels)))
    settings = FitSettings(n_states=ks[0] if ks else n_states or 0, method=method, n_starts=starts, seed=seed)
    with progress_bar() as progress:
        found = fit(recipe, settings, ks=ks, peak_settings=PeakSettings(per_recording=peaks), progress=progress)
    found = replace(found, report=found.report | origin)
    if earlier := _replaced(out, found):
        click.echo(earlier)
    save(found, out)
    for picture in PICTURES:
        (out / picture).unlink(missing_ok=True)  # of an earlier fit; they would show other maps
    show_templates(out, found)
    if dataset is not None:
        click.echo("these templates may not be used to test any of these subjects; leave some out by --exclude")


def _replaced(out: Path, found: Templates) -> str | None:
    """Say which other templates are about to be replaced."""
    from rtbrain.errors import TemplateError
    from rtbrain.microstates.templates import NPZ, fingerprint
    from rtbrain.pipeline import load_templates

    if not (out / NPZ).exists():
        return None
    try:
        old, _ = load_templates(out)
    except TemplateError:
        return f"replacing files in {out} that could not be read as templates"
    if fingerprint(old) == fingerprint(found) and old.recipe == found.recipe:
        return None
    states = " + ".join(str(len(maps)) for maps in old.maps)
    return (
        f"replacing other templates in {out}: {states} states, of {len(old.report.get('recordings', ()))} recording(s)"
    )


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


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
