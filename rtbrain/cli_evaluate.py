"""The command `rtbrain evaluate`."""

from __future__ import annotations

from pathlib import Path

import click

from rtbrain.cli_dataset import DATASET_HELP, ROOT, TASK
from rtbrain.cli_options import Choice, check_folder


@click.command()
@click.option("--dataset", required=True, metavar="NAME|FILE", help=DATASET_HELP)
@ROOT
@TASK
@click.option("--methods", metavar="A,B", help="Which to compare, separated by commas.  [default: the usual ones]")
@click.option(
    "--protocol",
    type=Choice(["strict", "paper"]),
    default="strict",
    help="paper: templates of all people, for comparison with the paper only; its figures flatter.",
)
@click.option("--raw", is_flag=True, help="Without harmonising, in one band of 1 to 40 Hz: to show what that hides.")
@click.option("--seeds", type=click.IntRange(1), default=1, help="How often people are dealt out to folds anew.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("evaluation"),
    help="Folder that keeps answers fold by fold, and the tables.",
)
@click.option("--workers", type=click.IntRange(1), default=1, help="Folds at a time.")
@click.option("--cluster", metavar="TCP", help="Address of a Dask scheduler whose workers run the folds.")
@click.option("--report/--no-report", default=True, help="Write an HTML page with figures beside the tables.")
def evaluate(
    dataset: str,
    root: Path | None,
    task: str | None,
    methods: str | None,
    protocol: str,
    raw: bool,
    seeds: int,
    out: Path,
    workers: int,
    cluster: str | None,
    report: bool,
) -> None:
    """Compare methods on people that they have not seen, with what is not brain beside them.

    Everything is fitted anew for each fold, on its training people alone; a fold that leaks is refused. Answers are
    kept as they come: the same command goes on where it was interrupted, and does nothing twice.

    Example: rtbrain evaluate --dataset mdd --root data/mdd --task ec --seeds 5 --out evaluation
    """
    check_folder(out)
    from rtbrain.console import console, progress_bar
    from rtbrain.console_evaluate import show_evaluation
    from rtbrain.training.dataset_config import load_dataset_config
    from rtbrain.training.datasets import find_root, load
    from rtbrain.training.evaluate import audit_beside, plan, unharmonised
    from rtbrain.training.evaluate import evaluate as run
    from rtbrain.training.evaluate_table import tabulate, write_evaluation
    from rtbrain.training.methods import methods_named

    chosen = methods_named([name.strip() for name in (methods or "").split(",") if name.strip()])
    config = load_dataset_config(dataset)
    found = load(config, find_root(config, root).resolve())  # workers may have another working folder
    planned = plan(unharmonised(config) if raw else config, found, chosen, task, protocol == "paper", seeds)
    for problem in planned.chosen.problems:
        click.echo(f"left out: {problem.where}: {problem.what}", err=True)
    with progress_bar() as progress:
        beside = audit_beside(config, found, root, planned.task, progress)
        answers = run(planned, found, out.resolve(), workers, progress, cluster)
    result = tabulate(planned, answers, beside)
    show_evaluation(result)
    written = list(write_evaluation(result, out))
    if report:
        from rtbrain.training.exhibit_evaluation import evaluation_exhibits
        from rtbrain.training.report_evaluation import write_report

        written.append(write_report(result, out, evaluation_exhibits(planned, out)))
    for path in written:
        console.print(f"wrote {path}", markup=False)
