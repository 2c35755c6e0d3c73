"""What `rtbrain evaluate` shows on the screen."""

from collections.abc import Sequence

from rich.markup import escape

from rtbrain.console import console, table
from rtbrain.training.complexity import NOTE, PAPER, SAVED, T_PAPER, Complexity
from rtbrain.training.contexts import ContextReport
from rtbrain.training.evaluate_table import Evaluation, compared_with, paper_figure
from rtbrain.training.metrics import Interval
from rtbrain.training.paper_figures import PAPER_NOTE
from rtbrain.training.report_contexts import context_cells
from rtbrain.training.transfer_table import TransferTable


def show_evaluation(found: Evaluation) -> None:
    """Print the table of methods, accuracy against time, and the nuisance beside them."""
    console.print(
        f"[bold]{escape(found.dataset)}, task {escape(found.task)}[/bold], {found.kind}, protocol {found.protocol}: "
        f"{found.n_people} people, {found.n_trials} trials, {found.n_folds} folds, {len(found.seeds)} seed(s)"
        f"{'' if found.adaptation == 'none' else f', adaptation {found.adaptation}'}"
    )
    if found.title:
        console.print(escape(found.title))
    if found.left_out:
        console.print(f"left out: {len(found.left_out)} files, events or trials; table and report say which, and why")
    if found.label:
        console.print(f"[yellow]{escape(found.label)}[/yellow]")
    with_paper = any(paper_figure(found, row.method) is not None for row in found.rows)
    last = ("the paper's",) if with_paper else ()
    rows = table("method", "accuracy", "95 %", "balanced", "AUC", "calibration error", *last)
    rows.columns[0].no_wrap = True
    for row in found.rows:
        own = row.scores
        numbers = (own.balanced, own.auc, own.calibration_error)
        cells = [f"{own.accuracy:.3f}", _interval(own.accuracy_interval), *(f"{number:.3f}" for number in numbers)]
        if with_paper:
            paper = paper_figure(found, row.method)
            cells.append("" if paper is None else f"{paper:.4f}")
        rows.add_row(escape(row.method), *cells)
    console.print(rows)
    console.print(escape(found.nuisance))
    if with_paper:
        console.print(PAPER_NOTE)
    _show_differences(found)
    _show_over_time(found)
    _show_probes(found)
    _show_epochs(found)


def _show_epochs(found: Evaluation) -> None:
    """Print which epochs validation people chose: a start that was kept is no network that was trained."""
    chosen = [row for row in found.rows if row.kept]
    if not chosen:
        return
    shown = table("method", "epoch kept in each fold: median (from, to)")
    for row in chosen:
        shown.add_row(escape(row.method), row.kept)
    console.print()
    console.print(shown)


def _show_probes(found: Evaluation) -> None:
    lacking = {row.method: row.not_probed for row in found.rows if row.not_probed}
    kinds = list(dict.fromkeys(kind for row in found.rows for kind in row.probes))
    for method, why in lacking.items():
        console.print(escape(f"probes of {method}: {'; '.join(why)}"))
    if not kinds:
        return
    title = _title("answers that flip when a test recording is given the filter or lines of another", found)
    shown = table("method", *kinds, title=title)
    for row in (row for row in found.rows if row.probes):
        shown.add_row(escape(row.method), *(_flips(row.probes.get(kind)) for kind in kinds))
    console.print()
    console.print(shown)


def _flips(counted: tuple[int, int] | None) -> str:
    return "" if counted is None else f"{counted[0]} of {counted[1]}"


def _show_differences(found: Evaluation) -> None:
    references = compared_with(found)
    if not references:
        return
    rows = table(
        "method",
        *(f"to {name}" for name in references),
        title=_title("difference in accuracy, with its 95 % interval", found),
    )
    for row in found.rows:
        rows.add_row(escape(row.method), *(str(row.against.get(name, "")) for name in references))
    console.print()
    console.print(rows)


def _show_over_time(found: Evaluation) -> None:
    lengths = list(found.rows[0].over_time)
    if len(lengths) < 2:
        return
    title = _title(f"accuracy by the seconds of EEG seen, after a warm-up of {found.warmup_s:g} s", found)
    shown = table("method", *(each if each == "all" else f"{each} s" for each in lengths), title=title)
    for row in found.rows:
        shown.add_row(escape(row.method), *(f"{row.over_time[each][0]:.3f}" for each in lengths))
    console.print()
    console.print(shown)


def _title(text: str, found: Evaluation) -> str:
    return escape(f"{text}; {found.label}" if found.label else text)


def _interval(interval: Interval) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"


def show_transfer(found: TransferTable) -> None:
    """Print accuracy by task and by whose templates were used, with the paper's figures and the nuisance beside it."""
    with_paper = any(cell.paper is not None for _, cells in found.rows() for cell in cells.values())
    brackets = "; in brackets the paper's model" if with_paper else ""
    title = f"accuracy by the data set that the templates are of{brackets}; * own templates"
    rows = table("target, task, method", *found.sources, title=title)
    for (target, task, method), cells in found.rows():
        shown = []
        for source in found.sources:
            cell = cells[source]
            paper = "" if cell.paper is None else f" [{cell.paper:.3f}]"
            shown.append(escape(f"{cell.accuracy:.3f}{'*' if cell.own else ''}{paper}"))
        rows.add_row(escape(f"{target}, {task}, {method}"), *shown)
    console.print(rows)
    for where, text in found.beside():
        console.print(escape(f"{where}: {text}"))


def show_contexts(found: ContextReport) -> None:
    """Print accuracy and delay against the length of the context."""
    console.print(
        f"[bold]{escape(found.bundle)}[/bold] on {escape(found.dataset)}, task {escape(found.task)}: {found.n_people} "
        f"people that it has not met, {found.n_sessions} sessions of {found.joined}, {found.n_trials} trials in all"
    )
    shown = table("context", "right at end", "95 %", "over all time", "median delay", "changes followed")
    for row in found.rows:
        shown.add_row(*context_cells(row))
    console.print(shown)
    console.print(escape(found.nuisance))


def show_complexity(rows: Sequence[Complexity]) -> None:
    """Print parameters, size and operations of each method beside the paper's."""
    title = f"one answer about {T_PAPER:,} tokens, beside the paper's figures"
    shown = table("method", "parameters", "paper", "MB", "paper", "operations", "paper", title=title)
    for column in shown.columns:
        column.no_wrap = True
    for row in rows:
        paper = ("", "", "")
        if not row.savings and row.name in PAPER:
            thousands, megabytes, billions = PAPER[row.name]
            paper = (f"{thousands:.2f} K", f"{megabytes:.2f}", f"{billions:.2f} G")
        size = f"{row.size_mb:.4f}"
        cells = (f"{row.parameters:,}", paper[0], size, paper[1], _operations(row.flops), paper[2])
        shown.add_row(*map(escape, (f"{row.name} (saved)" if row.savings else row.name, *cells)))
    console.print(shown)
    for about in dict.fromkeys(f"{row.name}: {row.about}" for row in rows if row.about):
        console.print(escape(about))
    console.print(f"(saved): {SAVED}")
    console.print(NOTE)


def _operations(n: int) -> str:
    return f"{n / 1e9:.3f} G" if n >= 1e7 else f"{n:,}"
