"""The commands `rtbrain simulate` and `rtbrain simulate-session`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtbrain.cli_dataset import TASK
from rtbrain.cli_options import PATH, SEED, Choice, check_folder

if TYPE_CHECKING:
    from rtbrain.simulation.optimum import Optimum

DATASETS = ("neurolong", "seed", "deap", "mdd", "nssi")
BY_SET = "[default: a few, by data set]"


@click.command()
@click.option("--dataset", required=True, type=Choice(DATASETS), help="Whose layout on disk.")
@click.option("--subjects", type=click.IntRange(1), help=f"People.  {BY_SET}")
@click.option(
    "--minutes",
    type=click.FloatRange(0, 600, min_open=True),
    help="Per trial; ignored where the format fixes it.  [default: as long as the shipped configuration needs]",
)
@click.option("--trials", type=click.IntRange(1), help=f"Films or videos per person.  {BY_SET}")
@click.option("--sessions", type=click.IntRange(1), default=1, help="Sessions per person, of SEED.")
@click.option(
    "--form",
    help="deap: original or preprocessed; nssi: bids or mat; neurolong: bids or small (32 channels, 250 Hz).  "
    "[default: the first of them]",
)
@click.option("--effect", type=click.FloatRange(0), default=1.0, help="Factor on what labels do; 0 for nothing.")
@click.option("--plant", type=Choice(["filter", "lines"]), help="Plant a confound that is not brain.")
@click.option(
    "--share",
    type=click.FloatRange(0.5, 1),
    default=0.9,
    help="Share of the last class that has the plant, and of the first that has it not.",
)
@SEED
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="New folder to write.")
def simulate(out: Path, dataset: str, **options: object) -> None:
    """Write a synthetic data set, with a known answer, in the layout of one of the five real ones.

    Beside the set go rtbrain.yaml, a configuration that fits it, and simulation.json: all true labels, and how well
    they can be told at best by somebody who has never met the person.

    Example: rtbrain simulate --dataset mdd --out simulated/mdd
    """
    from rtbrain.config import parse
    from rtbrain.console import console, progress_bar
    from rtbrain.simulation.writing import CONFIG, TRUTH
    from rtbrain.simulation.writing import simulate as write
    from rtbrain.simulation.writing_order import Order

    order = parse(Order, {"dataset": dataset, **options}, "the command")
    check_folder(out)
    with progress_bar() as progress:
        made = write(order, out, progress)
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    shortest, longest = made.trial_s
    lengths = f"{shortest:g} s" if shortest == longest else f"{shortest:g} to {longest:g} s"
    people = f"{made.n_people} {'people' if made.n_people > 1 else 'person'}"
    console.print(
        f"wrote {made.n_files} recordings of {people}, {made.n_trials} trials of {lengths}, to {out}",
        markup=False,
    )
    _show(made.optima)
    how = f"--dataset {dataset} --root {out}" if made.as_shipped else f"--dataset {out / CONFIG}"
    console.print(f"true labels and design: {out / TRUTH}\nlook at it by: rtbrain data check {how}", markup=False)


@click.command("simulate-session")
@click.argument("folder", metavar="SET", type=PATH)
@click.option("--stretches", type=click.IntRange(1, 1000), default=8, help="How often there is a state, one by one.")
@click.option("--seconds", type=click.FloatRange(1), default=60.0, help="Length of each.")
@click.option(
    "--context", "context_s", type=click.FloatRange(1), default=20.0, help="Of the decoder: for the best accuracy."
)
@click.option("--person", type=click.IntRange(1), default=1, help="Which of the people who are not in the set.")
@TASK
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="New folder to write.")
def simulate_session(folder: Path, out: Path, **options: Any) -> None:
    """Record somebody whom a simulated set does not hold, whose state changes from stretch to stretch.

    SET is a folder made by `rtbrain simulate`. The recording (session.vhdr) comes with session.json: what was true
    when, and the best accuracy that is possible for somebody who never met the person and sees CONTEXT seconds.

    Example: rtbrain simulate-session simulated/neurolong --stretches 8 --seconds 60 --context 20 --out session
    """
    check_folder(out)
    from rtbrain.console import console, progress_bar
    from rtbrain.simulation.session import RECORDING, SESSION, SessionOrder
    from rtbrain.simulation.session import simulate_session as write

    with progress_bar() as progress:
        truth = write(folder, SessionOrder(**options), out, progress)
    assert truth.best is not None
    states = ", ".join(f"{each.state} at {each.start_s:g} s" for each in truth.stretches)
    console.print(
        f"wrote {out / RECORDING}, {truth.stretches[-1].stop_s:g} s of somebody who is not in the set: {states}\n"
        f"at best {truth.best.accuracy:.3f} +- {truth.best.standard_error:.3f} of the answers that rest on "
        f"{truth.best.seconds:g} s of one state are right (chance {truth.best.chance:.3f}); all in {out / SESSION}",
        markup=False,
    )


def _show(optima: dict[str, Optimum]) -> None:
    """Print how well each task can be solved at best."""
    from rtbrain.console import console, table

    rows = table("task", "seconds", "majority", "best possible", "by states' shares alone")
    for name, each in optima.items():
        rows.add_row(
            name,
            f"{each.seconds:g}",
            f"{each.chance:.3f}",
            f"{each.accuracy:.3f} +- {each.standard_error:.3f}",
            f"{each.occupancy_linear:.3f} +- {each.occupancy_standard_error:.3f}",
        )
    console.print(rows)
