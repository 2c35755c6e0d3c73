"""The report of an evaluation: every accuracy with its interval, and with what is not brain beside it."""

import json
from collections.abc import Sequence
from pathlib import Path

from rtbrain.training.evaluate_table import SAME_PEOPLE, Evaluation, Row, compared_with, evaluation_stem, paper_figure
from rtbrain.training.exhibit import Exhibit
from rtbrain.training.metrics import Difference, Interval
from rtbrain.training.paper_figures import PAPER_NOTE, paper_accuracy
from rtbrain.training.report_figures import confusion_figure, over_time_figure, reliability_figure
from rtbrain.training.report_page import Page
from rtbrain.training.report_parts import add_attention, add_exhibits, add_making

OURS = ("rtbrain",)


def write_report(found: Evaluation, folder: Path, exhibits: Sequence[Exhibit] = ()) -> Path:
    """Write the report of an evaluation; return its path."""
    page = Page(
        f"{found.dataset}, task {found.task}",
        f"{f'{found.title} · ' if found.title else ''}rtbrain evaluate · "
        f"{found.kind} · protocol {found.protocol} · {found.n_people} people, {found.n_trials} trials, "
        f"{found.n_folds} folds, {len(found.seeds)} seed(s) · adaptation {found.adaptation}",
    )
    _add_accuracy(page, found)
    _add_differences(page, found)
    _add_over_time(page, found)
    scores = {row.method: row.scores for row in found.rows}
    page.section("Confusion", "Rows are what is true, columns what was said; shares of the row, and trials.")
    _beside(page, found)
    page.figure(confusion_figure(scores, found.classes), "confusion matrices")
    page.section(
        "Reliability",
        "Share of the answers that are right against how sure the method was; on the dotted line it is as sure as it "
        "may be. Larger points stand for more answers. ECE is the calibration error.",
    )
    _beside(page, found)
    page.figure(reliability_figure(scores), "reliability diagrams")
    _add_probes(page, found)
    add_attention(page, found.looks, found.label)
    add_exhibits(page, exhibits)
    _add_folds(page, found)
    seeds = ", ".join(map(str, found.seeds))
    made = {"data set and task": f"{found.dataset}, {found.task}", "seeds": seeds}
    made |= {name: json.dumps(value) for name, value in found.settings.items()}
    made["left out"] = "; ".join(found.left_out) or "nothing"
    add_making(page, made, exhibits)
    path = folder / f"{evaluation_stem(found, folder)}.html"
    page.write(path)
    return path


def _beside(page: Page, found: Evaluation) -> None:
    """Add what must stand beside every accuracy."""
    if found.label:
        page.text(found.label, "warning")
    page.text(found.nuisance, "beside")


def _add_accuracy(page: Page, found: Evaluation) -> None:
    seen = "people whom the templates have seen, and the choice of the epoch" if found.protocol == "paper" else ""
    if SAME_PEOPLE in found.label:
        seen = "stimuli that the method has not seen, of people whom it has"
    page.section(
        f"Accuracy on {seen or 'people that the method has not seen'}",
        "Intervals are 95 %, with people as the evidence. AUC: chance that a trial of a class looks more like it than "
        "one of another class.",
    )
    _beside(page, found)
    papers = [paper_figure(found, row.method) for row in found.rows]
    header = ["method", "accuracy", "95 %", "balanced", "95 %", "AUC", "calibration error"]
    shown = any(papers)
    rows = []
    for row, paper in zip(found.rows, papers, strict=True):
        own = row.scores
        cells = [row.method, f"{own.accuracy:.3f}", _interval(own.accuracy_interval), f"{own.balanced:.3f}"]
        cells += [_interval(own.balanced_interval), f"{own.auc:.3f}", f"{own.calibration_error:.3f}"]
        rows.append([*cells, *([f"{paper:.4f}" if paper is not None else "n/a"] if shown else [])])
    page.table([*header, *(["the paper's figure"] if shown else [])], rows, _ours(found.rows))
    own_model = paper_accuracy(found.dataset, found.task, "paper-text")
    if own_model is not None:
        page.text(
            f"The paper's own model on this task, with real people: {own_model / 100:.4f}. {PAPER_NOTE}",
            "note",
        )


def _add_differences(page: Page, found: Evaluation) -> None:
    references = compared_with(found)
    if not references:
        return
    page.section("Differences on the same people", "Paired, with 95 % intervals; p by tossing the sign of each person.")
    _beside(page, found)
    header = ["method"] + [cell for name in references for cell in (f"to {name}", "95 %", "p")]
    rows = [[row.method, *(c for name in references for c in _gap(row.against.get(name)))] for row in found.rows]
    page.table(header, rows, _ours(found.rows))


def _add_over_time(page: Page, found: Evaluation) -> None:
    page.section(
        "Accuracy against seconds of EEG seen",
        f"From the start of each trial, after a warm-up of {found.warmup_s:g} s from which nothing comes.",
    )
    _beside(page, found)
    curves = {row.method: row.over_time for row in found.rows}
    page.figure(over_time_figure(curves, 1 / len(found.classes)), "accuracy against seconds seen")
    lengths = list(found.rows[0].over_time)
    rows = [[row.method, *(f"{row.over_time[each][0]:.3f}" for each in lengths)] for row in found.rows]
    page.table(["method", *(each if each == "all" else f"{each} s" for each in lengths)], rows, _ours(found.rows))


def _add_folds(page: Page, found: Evaluation) -> None:
    page.section("Fold by fold", "Accuracy in each fold of each seed.")
    _beside(page, found)
    folds = list(dict.fromkeys(fold for row in found.rows for fold in row.by_fold))
    rows = [[fold, *(_share(row.by_fold.get(fold)) for row in found.rows)] for fold in folds]
    header = ["fold", *(row.method for row in found.rows)]
    if any(row.kept for row in found.rows):
        rows.append(["epoch kept: median (from, to)", *(row.kept for row in found.rows)])
    page.table(header, rows, folded=f"{len(folds)} folds" if len(folds) > 20 else "")
    people = list(found.rows[0].scores.by_person)
    each = [[who, *(f"{row.scores.by_person[who]:.2f}" for row in found.rows)] for who in people]
    page.table(["person", *header[1:]], each, folded=f"Share right of each of {len(people)} people")


def _add_probes(page: Page, found: Evaluation) -> None:
    kinds = list(dict.fromkeys(kind for row in found.rows for kind in row.probes))
    lacking = [f"{row.method}: {'; '.join(row.not_probed)}." for row in found.rows if row.not_probed]
    if not kinds and not lacking:
        return
    page.section(
        "Probes: does it listen to the recording instead of the brain?",
        "Test recordings are given the filter, or the mains lines, of others. The brain in them stays the same, so an "
        "answer that flips was not about the brain. Asked of the first seed.",
    )
    _beside(page, found)
    for why in lacking:
        page.text(why, "note")
    rows = []
    for row in (row for row in found.rows if row.probes):
        counts = [row.probes.get(kind, (0, 0)) for kind in kinds]
        rows.append([row.method, *(f"{n} of {asked} flip ({n / max(1, asked):.0%})" for n, asked in counts)])
    if rows:
        page.table(["method", *kinds], rows)


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


def _ours(rows: Sequence[Row]) -> list[int]:
    return [number for number, row in enumerate(rows) if row.method in OURS]


def _interval(interval: Interval) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"


def _gap(gap: Difference | None) -> list[str]:
    if gap is None:
        return ["n/a", "", ""]
    low, high = gap.interval
    return [f"{gap.accuracy:+.3f}", f"{low:+.2f} to {high:+.2f}", f"{gap.p:.3f}"]
