"""The command `rtbrain evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_dataset import DATASET_HELP
from rtbrain.cli_options import Choice, check_folder
from rtbrain.errors import ConfigError
from rtbrain.locking import alone_in

if TYPE_CHECKING:
    from rtbrain.training.evaluate_command import DataSet, EvaluateOrder
    from rtbrain.training.methods import Adaptation, Method


@click.command()
@click.option(
    "--dataset", "datasets", multiple=True, metavar="NAME|FILE", help=f"{DATASET_HELP} May be given several times."
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder of each data set, in their order.  [default: by RTBRAIN_DATA, then the configuration]",
)
@click.option("--task", help="Which of the data set's tasks, or `all`.  [default: its first]")
@click.option(
    "--methods",
    metavar="A,B",
    help="Which to compare, separated by commas.  [default: rtbrain and the linear ones; with --adaptation all that "
    "can adapt so; with --ablations rtbrain and paper-scratch; with --transfer microstate-stats and paper-text]",
)
@click.option("--ablations", is_flag=True, help="Brain-Token models whole and without one of their parts each.")
@click.option(
    "--adaptation",
    type=Choice(["none", "inductive", "transductive"]),
    help="To people: not, between those learnt from, or to the tested ones without labels; never mixed in one table."
    "  [default: none; transductive, as in the paper, for ablations]",
)
@click.option("--probes", is_flag=True, help="Give test recordings the filters and lines of others; count flips.")
@click.option(
    "--protocol",
    type=Choice(["strict", "paper"]),
    default="strict",
    help="paper: templates of all people, epoch by the test fold; to compare with the paper only: its figures flatter.",
)
@click.option("--raw", is_flag=True, help="Without harmonising, in one band of 1 to 40 Hz: to show what that hides.")
@click.option("--seeds", type=click.IntRange(1), default=1, help="How often people are dealt out to folds anew.")
@click.option("--transfer", is_flag=True, help="Each data set with its own templates and with those of the others.")
@click.option(
    "--contexts",
    metavar="BUNDLE",
    help="How sure, and how soon after a change of state, a trained bundle answers with shorter contexts.",
)
@click.option("--complexity", is_flag=True, help="Print parameters, size and operations of all methods.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("evaluation"),
    help="Folder that keeps answers fold by fold, the tables and the report.",
)
@click.option("--workers", type=click.IntRange(1), default=1, help="Folds at a time.")
@click.option("--cluster", metavar="TCP", help="Address of a Dask scheduler whose workers run the folds.")
@click.option("--report/--no-report", default=True, help="Write an HTML page with figures beside the tables.")
def evaluate(
    datasets: tuple[str, ...],
    roots: tuple[Path, ...],
    task: str | None,
    methods: str | None,
    ablations: bool,
    adaptation: Adaptation | None,
    probes: bool,
    protocol: str,
    raw: bool,
    seeds: int,
    transfer: bool,
    contexts: str | None,
    complexity: bool,
    out: Path,
    workers: int,
    cluster: str | None,
    report: bool,
) -> None:
    """Compare methods on people that they have not seen, with what is not brain beside them.

    Everything is fitted anew for each fold, without its test people; a fold that leaks is refused. Answers are kept as
    they come: the same command goes on where it was interrupted, and does nothing twice.

    Example: rtbrain evaluate --dataset mdd --root data/mdd --task ec --seeds 5 --out evaluation
    """
    if complexity:
        others = {
            "--dataset": datasets,
            "--root": roots,
            "--task": task,
            "--methods": methods,
            "--ablations": ablations,
        }
        others |= {"--adaptation": adaptation, "--probes": probes, "--raw": raw, "--transfer": transfer}
        others |= {"--contexts": contexts, "--cluster": cluster, "--protocol paper": protocol != "strict"}
        if given := [name for name, value in others.items() if value]:
            raise ConfigError(f"--complexity is a table of its own, of all methods; leave out {', '.join(given)}")
        _show_complexity()
        return
    if not datasets:
        raise ConfigError("which data set is to be evaluated? Give --dataset, such as --dataset mdd --root data/mdd")
    asked = {"--ablations": ablations, "--transfer": transfer, "--contexts": contexts is not None}
    if sum(asked.values()) > 1:
        several = " and ".join(name for name, on in asked.items() if on)
        raise ConfigError(f"{several} are tables of their own; ask for one of them")
    if probes and (transfer or contexts is not None):
        raise ConfigError("--probes belong to the table of methods; leave out --transfer and --contexts")
    unused = {"--methods": methods, "--adaptation": adaptation, "--raw": raw, "--cluster": cluster}
    unused |= {"--protocol paper": protocol != "strict", "--seeds": seeds > 1}
    if contexts is not None and (given := [name for name, value in unused.items() if value]):
        raise ConfigError(f"--contexts asks a bundle as it is, without folds; leave out {', '.join(given)}")
    check_folder(out)
    from rtbrain.training.evaluate_command import YARDSTICKS, EvaluateOrder, open_sets

    chosen = _methods(methods, adaptation, ablations, transfer)
    if probes and all(method.name in YARDSTICKS for method in chosen):
        raise ConfigError(
            f"--probes: {', '.join(method.name for method in chosen)} does not listen to the brain in the first place; "
            "name others in --methods"
        )
    order = EvaluateOrder(
        methods=tuple(chosen),
        out=out.resolve(),
        paper=protocol == "paper",
        raw=raw,
        seeds=seeds,
        workers=workers,
        cluster=cluster,
        probes=probes,
    )
    sets = open_sets(datasets, roots)
    with alone_in(order.out, "evaluating"):
        if transfer:
            _transfer(sets, task, order, report)
            return
        for own in sets:
            for name in own.tasks(task):
                if contexts is not None:
                    _contexts(own, name, contexts, order, report)
                else:
                    _evaluate(own, name, order, report)


def _methods(names: str | None, adaptation: Adaptation | None, ablated: bool, transfer: bool) -> list[Method]:
    from rtbrain.training.methods import ablations, methods_named, table_mode
    from rtbrain.training.paper_figures import OWN_MODELS
    from rtbrain.training.transfer import USUAL

    asked = [name.strip() for name in (names or "").split(",") if name.strip()]
    if names is not None and not asked:
        raise ConfigError(f"--methods {names!r} names none; name some, separated by commas, or leave the option out")
    if ablated:
        return ablations(asked, adaptation or "transductive")
    if transfer and not asked:
        asked = [name for name in USUAL if adaptation in (None, "none") or name in OWN_MODELS]
    found = methods_named(asked, adaptation or "none")
    if adaptation not in (None, "none") and table_mode(found) == "none":
        able = ", ".join(method.name for method in methods_named((), adaptation) if method.adaptation is not None)
        raise ConfigError(f"--adaptation {adaptation}: {', '.join(asked)} does not adapt; name one that can, of {able}")
    return found


def _evaluate(own: DataSet, task: str, order: EvaluateOrder, report: bool) -> None:
    """Evaluate one task; show its tables, and write them."""
    from rtbrain.console import progress_bar, say_in_log
    from rtbrain.console_evaluate import show_evaluation
    from rtbrain.training.check_errors import left_out
    from rtbrain.training.evaluate_command import evaluate_plan, plan_task
    from rtbrain.training.evaluate_table import write_evaluation
    from rtbrain.training.table_files import has_report

    planned = plan_task(own, task, order)
    for text in left_out(own.config, planned.chosen):
        click.echo(f"left out: {text}", err=True)
    names = ", ".join(method.name for method in planned.methods)
    say_in_log(f"{own.config.name}, task {task}: {names}; answers go to {order.out}")
    with progress_bar() as progress:
        result = evaluate_plan(own, planned, order, progress)
    show_evaluation(result)
    written = list(write_evaluation(result, order.out))
    if report and has_report(written[0]):
        written.append(written[0].with_suffix(".html"))  # of this very table: what takes a minute is not done twice
    elif report:
        from rtbrain.training.exhibit_evaluation import evaluation_exhibits
        from rtbrain.training.report_evaluation import write_report

        click.echo("the report is being made (--no-report leaves it out)", err=True)
        written.append(write_report(result, order.out, evaluation_exhibits(planned, order.out)))
    _say(written)


def _transfer(sets: list[DataSet], task: str | None, order: EvaluateOrder, report: bool) -> None:
    from rtbrain.console import progress_bar
    from rtbrain.console_evaluate import show_transfer
    from rtbrain.training.evaluate_command import evaluate_transfer
    from rtbrain.training.transfer_table import write_transfer

    with progress_bar() as progress:
        table = evaluate_transfer(sets, task, order, progress)
    show_transfer(table)
    written = list(write_transfer(table, order.out))
    if report:
        from rtbrain.training.report_transfer import write_transfer_report

        written.append(write_transfer_report(table, order.out))
    _say(written)


def _contexts(own: DataSet, task: str, bundle: str, order: EvaluateOrder, report: bool) -> None:
    from rtbrain.console import progress_bar
    from rtbrain.console_evaluate import show_contexts
    from rtbrain.decoder.bundle import load_bundle
    from rtbrain.decoder.find import find_bundle
    from rtbrain.training.contexts import context_report
    from rtbrain.training.evaluate_command import plan_task
    from rtbrain.training.nuisance.beside import nuisance_line
    from rtbrain.training.report_contexts import write_contexts

    loaded = load_bundle(find_bundle(bundle))
    planned = plan_task(own, task, order)
    with progress_bar() as progress:
        beside = nuisance_line(own.config, own.found, own.root, task, progress)
        found = context_report(loaded, planned, beside, order.out / "cache", order.workers, progress)
    show_contexts(found)
    _say(write_contexts(found, order.out, report))


def _show_complexity() -> None:
    from rtbrain.console_evaluate import show_complexity
    from rtbrain.training.complexity_others import full_table

    show_complexity(full_table())


def _say(written: list[Path]) -> None:
    from rtbrain.console import console

    for path in written:
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        console.print(f"wrote {shown}", markup=False)
