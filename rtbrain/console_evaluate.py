"""What `rtbrain evaluate` shows on the screen."""

from rich.markup import escape

from rtbrain.console import console, table
from rtbrain.training.evaluate_table import Evaluation
from rtbrain.training.methods import REFERENCES
from rtbrain.training.metrics import Difference, Interval


def show_evaluation(found: Evaluation) -> None:
    """Print the table of methods, accuracy against time, and the nuisance beside them."""
    kind = "harmonised" if found.harmonised else "raw"
    console.print(
        f"[bold]{escape(found.dataset)}, task {escape(found.task)}[/bold], {kind}, protocol {found.protocol}: "
        f"{found.n_people} people, {found.n_trials} trials, {found.n_folds} folds, {len(found.seeds)} seed(s)"
    )
    if found.label:
        console.print(f"[yellow]{escape(found.label)}[/yellow]")
    rows = table("method", "accuracy", "95 %", "balanced", "AUC", "calibration error")
    for row in found.rows:
        own = row.scores
        numbers = (own.balanced, own.auc, own.calibration_error)
        cells = [f"{own.accuracy:.3f}", _interval(own.accuracy_interval), *(f"{number:.3f}" for number in numbers)]
        rows.add_row(escape(row.method), *cells)
    console.print(rows)
    console.print(escape(found.nuisance))
    _show_differences(found)
    _show_over_time(found)


def _show_differences(found: Evaluation) -> None:
    references = [name for name in REFERENCES if any(name in row.against for row in found.rows)]
    if not references:
        return
    rows = table(
        "method",
        *(f"to {name}" for name in references),
        title=_title("difference in accuracy, with its 95 % interval", found),
    )
    for row in found.rows:
        rows.add_row(escape(row.method), *(_difference(row.against.get(name)) for name in references))
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


def _difference(gap: Difference | None) -> str:
    if gap is None:
        return ""
    low, high = gap.interval
    return f"{gap.accuracy:+.3f} ({low:+.2f} to {high:+.2f})"
