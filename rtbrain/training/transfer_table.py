"""The paper's transfer table: accuracy on each task with the templates of each data set."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rtbrain import __version__
from rtbrain.training.evaluate_table import Evaluation
from rtbrain.training.metrics import Interval
from rtbrain.training.paper_figures import OWN_MODELS, paper_transfer
from rtbrain.training.table_files import stem_in, write_table


@dataclass(frozen=True)
class Cell:
    """One method on one task with the templates of one data set."""

    target: str
    task: str
    method: str
    source: str
    accuracy: float
    interval: Interval
    balanced: float
    paper: float | None
    """The paper's accuracy of its own model, between 0 and 1."""
    n_people: int
    nuisance: str
    """What is not brain, of the target's task."""
    label: str
    """Empty, or why the figure flatters."""

    @property
    def own(self) -> bool:
        """Tell whether the templates are the target's own, of each fold's training and validation people."""
        return self.source == self.target


@dataclass(frozen=True)
class TransferTable:
    """All cells, in the order of targets, tasks, methods and sources."""

    cells: tuple[Cell, ...]
    protocol: str
    question: str = ""
    """See `Plan.question`; here of all sets, as targets and as sources."""

    @property
    def sources(self) -> list[str]:
        """Return the data sets whose templates were used."""
        return list(dict.fromkeys(cell.source for cell in self.cells))

    def rows(self) -> Iterator[tuple[tuple[str, str, str], dict[str, Cell]]]:
        """Yield (target, task, method) with its cells by source."""
        for key in dict.fromkeys((cell.target, cell.task, cell.method) for cell in self.cells):
            yield key, {cell.source: cell for cell in self.cells if (cell.target, cell.task, cell.method) == key}

    def beside(self) -> list[tuple[str, str]]:
        """Return what must stand beside the accuracies, by target and task."""
        found = {(cell.target, cell.task): f"{cell.label}; {cell.nuisance}".strip("; ") for cell in self.cells}
        return [(f"{target}, {task}", text) for (target, task), text in found.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"rtbrain": __version__, **asdict(self)}


def cells_of(found: Evaluation, source: str) -> list[Cell]:
    """Return the cells of an evaluation that was run with the templates of a data set."""
    made = []
    for row in found.rows:
        same = row.method in OWN_MODELS and found.adaptation == "transductive"  # as the paper's model
        paper = paper_transfer(found.dataset, found.task, source) if same else None
        made.append(
            Cell(
                target=found.dataset,
                task=found.task,
                method=row.method,
                source=source,
                accuracy=row.scores.accuracy,
                interval=row.scores.accuracy_interval,
                balanced=row.scores.balanced,
                paper=None if paper is None else paper / 100,
                n_people=found.n_people,
                nuisance=found.nuisance,
                label=found.label,
            )
        )
    return made


def transfer_stem(table: TransferTable, folder: Path) -> str:
    """Return what the files of a transfer table are called in a folder, without their endings."""
    return stem_in(folder, f"transfer-{table.protocol}", table.question)


def write_transfer(table: TransferTable, folder: Path) -> tuple[Path, Path]:
    """Write the JSON and the TSV file of a transfer table; return their paths."""
    return write_table(folder, transfer_stem(table, folder), table.to_dict(), _tsv(table.cells))


def _tsv(cells: Sequence[Cell]) -> str:
    names = list(Cell.__dataclass_fields__)
    lines = ["\t".join(name if name != "interval" else "low\thigh" for name in names)]
    for cell in cells:
        values = asdict(cell)
        values["interval"] = "\t".join(f"{each:.4f}" for each in cell.interval)
        texts = ("n/a" if v is None else f"{v:.4f}" if isinstance(v, float) else str(v) for v in values.values())
        lines.append("\t".join(texts))
    return "\n".join(lines) + "\n"
