"""The report of a transfer: the paper's table with ours, and whose templates were used."""

from pathlib import Path

from rtbrain.training.evaluate_table import LABELS
from rtbrain.training.report_page import Page
from rtbrain.training.report_parts import add_making
from rtbrain.training.transfer_table import TransferTable, transfer_stem


def write_transfer_report(table: TransferTable, folder: Path) -> Path:
    """Write the report of a transfer; return its path."""
    names = ", ".join(table.sources)
    page = Page("Templates carried over between data sets", f"rtbrain evaluate --transfer · {names}")
    page.section(
        "Accuracy by whose templates were used",
        "Rows are what is told, columns the data set that the templates are of. Maps are carried over to the target's "
        "electrodes by spherical splines, average-referenced and normalised; everything after the templates is fitted "
        "anew. Own templates (*) rest on each fold's training and validation people, foreign ones on all people of the "
        "other set.",
    )
    for where, text in table.beside():
        page.text(f"{where}: {text}", "warning" if any(label in text for label in LABELS) else "beside")
    header = ["target, task, method", *table.sources]
    ours, papers = [], []
    for (target, task, method), cells in table.rows():
        found = [cells[source] for source in table.sources]
        ours.append(
            [
                f"{target}, {task}, {method}",
                *(
                    f"{cell.accuracy:.3f}{'*' if cell.own else ''} ({cell.interval[0]:.2f} to {cell.interval[1]:.2f})"
                    for cell in found
                ),
            ]
        )
        papers.append([f"{target}, {task}", *("n/a" if c.paper is None else f"{c.paper:.4f}" for c in found)])
    page.table(header, ours)
    page.heading("The paper's figures, of its own model, cohorts and protocol")
    page.table(["target, task", *table.sources], [list(row) for row in dict.fromkeys(map(tuple, papers))])
    page.text(
        "The paper names no validation people, so its epochs were probably chosen on the test folds; its own and its "
        "foreign templates rest on different cohorts of NSSI.",
        "note",
    )
    add_making(page, {"protocol": table.protocol}, [])
    path = folder / f"{transfer_stem(table, folder)}.html"
    page.write(path)
    return path
