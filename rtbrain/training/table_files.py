"""What tables are called in a folder that holds several: one that answers another question is never written over."""

import json
from itertools import count
from pathlib import Path
from typing import Any

from rtbrain.writing import replacing

ENDINGS = ("json", "tsv", "html")


def stem_in(folder: Path, stem: str, question: str) -> str:
    """Return the name, without an ending, of the table that answers a question in a folder.

    It is `stem`, or `stem-2`, `stem-3` and so on where tables of other questions have the names before. The same
    question has the same name again: asked anew, its table is replaced.
    """
    for number in count(1):
        name = stem if number == 1 else f"{stem}-{number}"
        if _answers(folder, name, question):
            return name
    raise AssertionError("numbers do not end")


def write_table(folder: Path, stem: str, values: dict[str, Any], tsv: str) -> tuple[Path, Path]:
    """Write a table as JSON and as TSV, each whole or not at all; return their paths.

    A file that holds the same already is left alone, so that its time tells whether the report beside it is of it.
    """
    as_json, as_tsv = folder / f"{stem}.json", folder / f"{stem}.tsv"
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in ((as_json, json.dumps(values, indent=1) + "\n"), (as_tsv, tsv)):
        if not (path.exists() and path.read_bytes() == text.encode()):
            with replacing(path) as temporary:
                temporary.write_bytes(text.encode())
    return as_json, as_tsv


def has_report(table: Path) -> bool:
    """Tell whether a report stands beside a table that was made after it."""
    page = table.with_suffix(".html")
    return page.exists() and page.stat().st_mtime_ns > table.stat().st_mtime_ns


def _answers(folder: Path, name: str, question: str) -> bool:
    """Tell whether a name is free, or that of the question's own table."""
    if not any((folder / f"{name}.{ending}").exists() for ending in ENDINGS):
        return True
    try:
        values = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # whatever it is, it is not ours to write over
        return False
    return isinstance(values, dict) and values.get("question") == question
