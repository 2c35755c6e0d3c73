"""What `rtbrain data check` shows on the screen."""

from rich.markup import escape

from rtbrain.console import console, table
from rtbrain.training.check_report import DataCheck, Spread, TaskCheck
from rtbrain.training.length_leak import LengthOnly
from rtbrain.training.nuisance.report import verdict

MOST_FOLDS = 12
"""More folds than these are summed up in a line."""


def show_check(found: DataCheck) -> None:
    """Print what a data set holds and what is wrong with it."""
    console.print(f"[bold]{escape(found.title or found.dataset)}[/bold] in {escape(str(found.root))}")
    rows = table("", "")
    rows.columns[1].justify = "left"
    joined = f" ({found.persons} persons, as some may be one)" if found.persons < found.subjects else ""
    rows.add_row("subjects", f"{found.subjects}{joined}")
    if found.persons_of_class:
        by_class = (f"{n} {escape(name)}" for name, n in found.persons_of_class.items())
        rows.add_row("persons", ", ".join(by_class))
    rows.add_row("trials", f"{found.trials} in {found.recordings} recordings")
    rows.add_row("lengths", _spread(found.lengths_s))
    rows.add_row("rates", _counts(found.rates_hz, "Hz"))
    rows.add_row("channels", _counts(found.n_channels, "each"))
    for names in found.same_person:
        rows.add_row("one person", escape(", ".join(names)))
    console.print(rows)
    for task in found.tasks:
        _show_task(task)
    if found.n_warnings:
        _show_warnings(found)
    for text in found.notes:
        console.print(f"note: {escape(text)}")
    said = "no warnings" if not found.n_warnings else f"{found.n_warnings} warning(s), see above"
    console.print(f"{said}; {len(found.errors)} error(s), see below" if found.errors else said)


def _show_task(task: TaskCheck) -> None:
    console.print()
    console.print(f"[bold]task {escape(task.name)}[/bold], {task.split}")
    if task.classes and task.majority is not None and task.lengths_s is not None:
        n = sum(count.trials for count in task.classes.values())
        rows = table("class", "trials", "share", "persons", "too short")
        for name, count in task.classes.items():
            share = f"{100 * count.trials / n:.1f} %"
            rows.add_row(escape(name), str(count.trials), share, str(count.persons), str(count.too_short))
        console.print(rows)
        crop = "no crop" if task.crop_s is None else f"crop to {task.crop_s:g} s"
        console.print(
            f"lengths {_spread(task.lengths_s)}; {crop}; always the largest class {100 * task.majority:.1f} %"
        )
        console.print(
            f"length-only classifier: {_scored(task.length_before)} before the crop, {_scored(task.length_after)} after"
        )
        _show_folds(task)
    if task.audit is not None:
        console.print(escape(f"nuisance audit: {verdict(task.audit)}"))
    for text in task.notes:
        console.print(f"note: {escape(text)}")


def _show_folds(task: TaskCheck) -> None:
    folds = task.folds
    if not folds:
        console.print(f"no folds: {escape(task.refused or '')}")
    elif len(folds) > MOST_FOLDS:
        tested = [fold.test for fold in folds]
        trained = [fold.train for fold in folds]
        console.print(
            f"{len(folds)} folds: {_range(trained)} trials train, {_range([fold.validation for fold in folds])} "
            f"validate, {_range(tested)} test"
        )
    else:
        rows = table("fold", "train", "validation", "test", "persons tested", *map(escape, folds[0].test_classes))
        for fold in folds:
            numbers = (fold.train, fold.validation, fold.test, fold.test_persons, *fold.test_classes.values())
            rows.add_row(escape(fold.name), *map(str, numbers))
        console.print(rows)


def _show_warnings(found: DataCheck) -> None:
    console.print()
    for problem in found.problems:
        console.print(f"[yellow]cannot be used[/yellow] {escape(str(problem))}")
    for text in found.warnings:
        console.print(f"[yellow]warning[/yellow] {escape(text)}")
    for task in found.tasks:
        for problem in task.problems:
            console.print(f"[yellow]cannot be used[/yellow] {escape(f'task {task.name}: {problem}')}")
        for text in task.warnings:
            console.print(f"[yellow]warning[/yellow] task {escape(task.name)}: {escape(text)}")


def _spread(spread: Spread) -> str:
    return f"{spread.smallest:.2f} to {spread.largest:.2f} s, median {spread.median:.2f} s"


def _counts(counts: dict[str, int], unit: str) -> str:
    return ", ".join(f"{value} {unit} ({n} recordings)" for value, n in counts.items()) or "not told"


def _range(numbers: list[int]) -> str:
    return f"{min(numbers)}" if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"


def _scored(score: LengthOnly | None) -> str:
    if score is None:
        return "not scored"
    return f"{100 * score.accuracy:.1f} % (one class always {100 * score.majority:.1f} %)"
