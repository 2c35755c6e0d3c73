"""The command `rtbrain simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_options import SEED, check_folder

if TYPE_CHECKING:
    from rtbrain.simulation.optimum import Optimum

DATASETS = ("neurolong", "seed", "deap", "mdd", "nssi")
BY_SET = "[default: a few, by data set]"


@click.command()
@click.option("--dataset", required=True, type=click.Choice(DATASETS), help="Whose layout on disk.")
@click.option("--subjects", type=click.IntRange(1), help=f"People.  {BY_SET}")
@click.option(
    "--minutes",
    type=click.FloatRange(0, 600, min_open=True),
    help="Per trial; ignored where the format fixes it.  [default: as long as the shipped configuration needs]",
)
@click.option("--trials", type=click.IntRange(1), help=f"Films or videos per person.  {BY_SET}")
@click.option("--sessions", type=click.IntRange(1), default=1, help="Sessions per person, of SEED.")
@click.option("--form", help="deap: original or preprocessed; nssi: bids or mat.  [default: the first of them]")
@click.option("--effect", type=click.FloatRange(0), default=1.0, help="Factor on what labels do; 0 for nothing.")
@click.option("--plant", type=click.Choice(["filter", "lines"]), help="Plant a confound that is not brain.")
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
