"""Tab- and comma-separated tables of labels, as data sets write them."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from rtbrain.errors import SourceError
from rtbrain.training.trials import Value


@dataclass(frozen=True)
class Table:
    """A table with a header line; cells are text without surrounding blanks."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]

    def need(self, *columns: str) -> None:
        """Refuse the table if it lacks one of the columns."""
        missing = [name for name in columns if name not in self.columns]
        if missing:
            raise SourceError(
                f"{self.path}: no column {', '.join(missing)}; it has {', '.join(self.columns)}: add it, or rename one"
            )


def read_table(path: Path, delimiter: str = "\t") -> Table:
    """Read a table; rows of another length than the header are refused."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file, delimiter=delimiter) if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path}: cannot be read as a table ({error}); save it as UTF-8 text") from error
    if not lines:
        raise SourceError(f"{path}: the table is empty; it needs at least a header line")
    columns = tuple(cell.strip() for cell in lines[0])
    if len(set(columns)) < len(columns):
        raise SourceError(f"{path}: two columns have one name: {', '.join(columns)}; rename one")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(columns):
            raise SourceError(f"{path}: row {number} has {len(line)} cells, the header has {len(columns)}; correct it")
        rows.append({name: cell.strip() for name, cell in zip(columns, line, strict=True)})
    return Table(path, columns, tuple(rows))


def value_of(cell: str) -> Value | None:
    """Return a cell as a number where it is one, else as text; None where nothing was entered (`n/a`)."""
    if cell.lower() in ("", "n/a", "nan"):
        return None
    try:
        number = float(cell)
    except ValueError:
        return cell
    return number if math.isfinite(number) else cell


def values_of(row: dict[str, str], leave_out: tuple[str, ...] = ()) -> dict[str, Value]:
    """Return what was entered in a row, by column."""
    found = {name: value_of(cell) for name, cell in row.items() if name not in leave_out}
    return {name: value for name, value in found.items() if value is not None}
