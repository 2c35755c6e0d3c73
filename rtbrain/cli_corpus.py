"""The command `rtbrain data tokenize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_dataset import DATASET, ROOT, TASK, trials_of
from rtbrain.cli_options import PATH, check_folder

if TYPE_CHECKING:
    from rtbrain.pipeline import Recipe


@click.command()
@DATASET
@ROOT
@TASK
@click.option("--templates", "folder", required=True, type=PATH, help="Folder made by `rtbrain templates fit`.")
@click.option(
    "--cache", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder that keeps the tokens."
)
@click.option("--workers", type=click.IntRange(1), help="Recordings at a time.  [default: one per core]")
def tokenize(dataset: str, root: Path | None, task: str | None, folder: Path, cache: Path, workers: int | None) -> None:
    """Turn all trials of a data set's task into Brain Tokens; what is in the cache already is kept.

    Example: rtbrain data tokenize --dataset mdd --root data/mdd --templates models/mdd --cache cache/mdd
    """
    from rtbrain.console import console, progress_bar
    from rtbrain.pipeline import load_templates
    from rtbrain.training.corpus import tokenise_corpus

    templates, recipe = load_templates(folder)
    check_folder(cache)
    config, name, trials = trials_of(dataset, root, task)
    if differing := _differing(recipe, config.recipe):
        click.echo(
            f"note: the templates' recipe is used, and in {', '.join(differing)} it is not that of {config.name}; fit "
            "templates by --dataset to use the data set's own",
            err=True,
        )
    with progress_bar() as progress:
        corpus = tokenise_corpus(trials, templates, cache, workers, progress)
    for notice in corpus.notices:
        click.echo(notice, err=True)
    results = [corpus[trial] for trial in corpus]
    console.print(
        f"{config.name}, task {name}: {len(corpus)} trials of {len({trial.subject for trial in trials})} subjects, "
        f"{sum(trial.length_s for trial in trials) / 60:.1f} min, {sum(len(each.tokens) for each in results)} tokens",
        markup=False,
    )
    for what, those in (
        ("time jumps", [trial for trial, each in zip(corpus, results, strict=True) if each.breaks]),
        ("channels are missing", [trial for trial, each in zip(corpus, results, strict=True) if each.missing_channels]),
        ("channels are bad at times", [trial for trial, each in zip(corpus, results, strict=True) if each.bad_share]),
    ):
        if those:
            listed = ", ".join(those[:5]) + (", ..." if len(those) > 5 else "")
            console.print(f"{what} in {len(those)} of them: {listed}", markup=False)
    console.print(
        f"{len(corpus.made)} tokenized now, {len(corpus) - len(corpus.made)} from the cache; in {cache}", markup=False
    )
    if n_others := corpus.n_other_versions:
        console.print(
            f"{n_others} other entries of these trials in {cache} belong to other templates, recipes or versions",
            markup=False,
        )


def _differing(used: Recipe, own: Recipe) -> list[str]:
    """Return the blocks in which two recipes differ; a recipe without channel names leaves them to the templates."""
    from dataclasses import replace

    if not own.channels.names:
        own = replace(own, channels=replace(own.channels, names=used.channels.names))
    return [name for name in own.__dataclass_fields__ if getattr(used, name) != getattr(own, name)]
