"""The report of context lengths: how sure, and how soon after a change of state."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rtbrain import __version__
from rtbrain.topography import new_figure
from rtbrain.training.contexts import IN_A_ROW, ContextReport, ContextRow
from rtbrain.training.report_figures import COLOURS
from rtbrain.training.report_page import Page
from rtbrain.training.report_parts import add_making
from rtbrain.training.table_files import stem_in
from rtbrain.writing import replacing


def write_contexts(found: ContextReport, folder: Path, report: bool = True) -> list[Path]:
    """Write the JSON file and, unless told otherwise, the report of context lengths; return their paths."""
    stem = stem_in(folder, f"contexts-{found.bundle}-{found.dataset}-{found.task}", found.question)
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{stem}.json"]
    with replacing(written[0]) as temporary:
        temporary.write_text(json.dumps({"rtbrain": __version__, **asdict(found)}, indent=1) + "\n", encoding="utf-8")
    if report:
        written.append(folder / f"{stem}.html")
        _page(found).write(written[-1])
    return written


def _page(found: ContextReport) -> Page:
    page = Page(
        f"Context length of {found.bundle}",
        f"rtbrain evaluate --contexts · {found.dataset}, task {found.task} · {found.n_people} people that it has not "
        f"met, {found.n_sessions} sessions, {found.n_trials} trials",
    )
    page.section(
        "Accuracy and delay against the length of the context",
        f"Sessions in which the state changes are made of {found.joined}, and decoded token by token as they would be "
        f"live. A change counts as followed at the first of {IN_A_ROW} right answers in a row, a second apart; only "
        "changes before which the answer was right are counted.",
    )
    page.text(found.nuisance, "beside")
    page.figure(contexts_figure(found.rows), "accuracy and delay against the length of the context")
    header = ["context", "right at the trial's end", "95 %", "right over all time", "median delay", "changes followed"]
    page.table(header, [context_cells(row) for row in found.rows])
    add_making(page, {"bundle (SHA-256 of bundle.json)": found.sha256}, [])
    return page


def context_cells(row: ContextRow) -> list[str]:
    """Return a row of the table in words."""
    low, high = row.at_end_interval
    delay = "n/a" if row.delay_s is None else f"{row.delay_s:.1f} s"
    followed = f"{row.followed} of {row.changes}"
    cells = [f"{row.context_s:g} s", f"{row.at_end:.3f}", f"{low:.2f} to {high:.2f}", f"{row.over_time:.3f}"]
    return [*cells, delay, followed]


def contexts_figure(rows: Sequence[ContextRow]) -> Any:
    """Return accuracy on the left and delay on the right, against the length of the context."""
    figure = new_figure(10.0, 3.4)
    left, right = figure.subplots(1, 2)
    lengths = [row.context_s for row in rows]
    means = np.array([row.at_end for row in rows])
    low, high = np.array([row.at_end_interval for row in rows]).T
    ends = {"fmt": "o-", "ms": 4, "color": COLOURS[0], "elinewidth": 0.8}
    left.errorbar(lengths, means, [means - low, high - means], label="at the trial's end, 95 %", **ends)
    left.plot(lengths, [row.over_time for row in rows], "s--", ms=4, color=COLOURS[1], label="over all time")
    left.set(ylim=(0, 1.02), title="share right")
    left.legend(fontsize=8, loc="lower right")
    known = [row for row in rows if row.delay_s is not None]
    right.plot([row.context_s for row in known], [row.delay_s for row in known], "o-", ms=4, color=COLOURS[2])
    right.set(ylim=(0, None), title="median delay after a change of state, in seconds")
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xticks(lengths, [f"{each:g}" for each in lengths], fontsize=8)
        axis.set_xticks([], minor=True)
        axis.set_xlabel("context in seconds", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="0.92", lw=0.8)
    return figure
