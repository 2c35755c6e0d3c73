"""The command `rtbrain train`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtbrain.cli_dataset import DATASET, ROOT, TASK
from rtbrain.cli_options import SEED, Choice, check_folder
from rtbrain.locking import alone_in

if TYPE_CHECKING:
    from rtbrain.decoder.bundle import Bundle
    from rtbrain.training.train import Listener

_BY_SET = "[default: the data set's]"


@click.command()
@DATASET
@ROOT
@TASK
@click.option(
    "--preset",
    type=Choice(["rtbrain", "paper-text", "paper-table"]),
    default="rtbrain",
    help="The model: ours, as in the paper's text, or as in its complexity table.",
)
@click.option(
    "--bands",
    type=Choice(["own", "several"]),
    default="own",
    help="Tokens of the recipe's own bands, or of several inside its one band.",
)
@click.option("-k", "n_states", type=click.IntRange(2, 64), help=f"Microstates of each band.  {_BY_SET}")
@click.option("--context", "context_s", type=click.FloatRange(5), help=f"Seconds that an answer rests on.  {_BY_SET}")
@click.option("--epochs", type=click.IntRange(1), help=f"At the most; early stopping may end sooner.  {_BY_SET}")
@click.option(
    "--adversary",
    type=Choice(["none", "inductive"]),
    default="none",
    help="inductive: features that do not tell the training people apart.",
)
@click.option("--exclude", default="", help="Subjects that nothing may be fitted to, separated by commas.")
@click.option("--licence", help="Of the model.  [default: names the source of the training data]")
@SEED
@click.option("--device", type=Choice(["auto", "cpu", "cuda"]), default="auto", help="Where it is trained.")
@click.option("--threads", type=click.IntRange(1), default=1, help="Of the training; part of what a seed means.")
@click.option("--workers", type=click.IntRange(1), help="Recordings tokenized at a time.  [default: one per core]")
@click.option("--report/--no-report", default=True, help="Write an HTML page with figures into the bundle's folder.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="New folder, such as models/NAME."
)
def train(out: Path, exclude: str, threads: int, **options: Any) -> None:
    """Train a decoder on a data set and write it as a bundle for `rtbrain stream`.

    People are split into those that train and those that validate; templates and weights rest on the first, early
    stopping and calibration on the second. The same command goes on where it was interrupted.

    Example: rtbrain train --dataset neurolong --root data/neurolong --out models/neurolong
    """
    check_folder(out)
    import torch

    from rtbrain.training.train import TrainOrder, train_bundle

    torch.set_num_threads(threads)
    left_out = tuple(name.strip() for name in exclude.split(",") if name.strip())
    with alone_in(out, "training"), _listening() as listener:
        bundle = train_bundle(TrainOrder(out=out, exclude=left_out, **options), listener)
    show_trained(bundle)


@contextmanager
def _listening() -> Iterator[Listener]:
    """Show bars, or lines in a log: what is being done, and in training the loss, the accuracy and the time left."""
    from rtbrain.console import progress_bar
    from rtbrain.training.fit import EpochReport
    from rtbrain.training.train import Listener

    with progress_bar() as progress:

        def epoch(report: EpochReport) -> None:
            minutes, seconds = divmod(round(report.left_s), 60)
            told = (
                f"epoch {report.epoch} of {report.epochs}: loss {report.loss:.3f}, validation "
                f"{report.validation_loss:.3f}, accuracy {report.accuracy:.3f}, at most {minutes}:{seconds:02d} left"
            )
            progress(told, report.epoch / report.epochs)

        yield Listener(lambda text: click.echo(text, err=True), progress, epoch)


START_KEPT = ": the start is kept, which says what a linear model of the tokens says; no epoch told these people better"
KNOWS_NOTHING = (
    "that is the highest temperature that is looked for: on these people no answer of the model was worth being sure "
    "of, so its probabilities will stay near even; more people, or another task, are needed\n"
)
NEXT_TO_NOTHING = (
    "that is no better than saying that all classes are as likely: on these people the model tells next to nothing\n"
)
_LEAST_GAIN = 0.01
"""In log loss, over knowing nothing."""


def show_trained(bundle: Bundle) -> None:
    """Print what was made, the accuracy, and what must stand beside it."""
    from rtbrain.console import console
    from rtbrain.training.calibrate import HOTTEST

    figures = bundle.metrics["validation"]
    hot = bundle.temperature > 0.99 * HOTTEST
    nothing = figures["log_loss"] > log(len(bundle.classes)) - _LEAST_GAIN
    low, high = figures["accuracy_interval"]
    told = ", ".join(f"{share:.2f} after {seconds} s" for seconds, share in figures["accuracy_by_seconds"].items())
    console.print(
        f"best epoch {bundle.provenance['best_epoch']} of {bundle.provenance['epochs_run']}"
        f"{START_KEPT if bundle.provenance['best_epoch'] == 0 else ''}\n"
        f"{figures['people']} validation people, {figures['trials']} trials: accuracy {figures['accuracy']:.3f} "
        f"({low:.2f} to {high:.2f}) about whole trials, balanced {figures['balanced_accuracy']:.3f}"
        f"{'; ' + told if told else ''}\n"
        f"  ({figures['note']})\n"
        f"{bundle.metrics['nuisance']}\n"
        f"temperature {bundle.temperature:.2f}: log loss {figures['log_loss_before_calibration']:.3f} before, "
        f"{figures['log_loss']:.3f} after; calibration error {figures['calibration_error']:.3f}\n"
        f"{KNOWS_NOTHING if hot else NEXT_TO_NOTHING if nothing else ''}"
        f"wrote {bundle.folder} (context {bundle.context_s:g} s), SHA-256 {bundle.sha256}"
        f"{', and in it report.html' if (bundle.folder / 'report.html').exists() else ''}",
        markup=False,
    )
