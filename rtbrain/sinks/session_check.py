"""Is a session log whole, and what of it can be trusted if it is not."""

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtbrain.errors import SourceError
from rtbrain.sinks.session_log import MIDDLE, PREFIX, SUFFIX
from rtbrain.writing import replacing

_NAME = re.compile(r"session-(?P<run>.+)-(?P<part>\d{5,})\.jsonl")
_HEAD = len(PREFIX) + 8 + len(MIDDLE)


@dataclass
class SessionReport:
    """What was found in a folder."""

    files: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    """The last word of each run: what its last status message says, empty if it says nothing."""
    records: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    """Lines whose checksum or form is wrong: file and line number."""
    missing: list[str] = field(default_factory=list)
    """Records that should be there and are not."""
    cut: list[str] = field(default_factory=list)
    """Files that end within a line, as a killed process leaves them; everything before is sound."""

    @property
    def sound(self) -> bool:
        """Nothing is wrong but for an end that was cut."""
        return not (self.damaged or self.missing)

    def lines(self) -> Iterator[str]:
        """Give the report in words."""
        topics = ", ".join(f"{n} {topic}" for topic, n in sorted(self.topics.items())) or "none"
        yield f"{self.records} records in {self.files} file(s) of {len(self.runs)} run(s): {topics}"
        yield from (f"run {run}: {_ending(word)}" for run, word in self.runs.items())
        yield from (f"damaged: {each}" for each in self.damaged)
        yield from (f"missing: {each}" for each in self.missing)
        yield from (f"cut: {each}" for each in self.cut)
        well = "all lines are sound but for the cut end" if self.cut else "all lines are sound"
        yield well if self.sound else "the log is damaged"


def _ending(word: str) -> str:
    return f"its last word is: {word}" if word else "no last word: it was killed, or runs still"


def record_of(line: bytes) -> dict[str, Any] | None:
    """Return the record that a line holds, None if it is damaged or cut."""
    body = line[_HEAD : -len(SUFFIX)]
    if not (line.startswith(PREFIX) and line.endswith(SUFFIX) and line[_HEAD - len(MIDDLE) : _HEAD] == MIDDLE):
        return None
    if line[len(PREFIX) : len(PREFIX) + 8] != b"%08x" % zlib.crc32(body):
        return None
    try:
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def session_files(folder: Path) -> list[Path]:
    """Return a folder's log files, run by run."""
    found = sorted(path for path in folder.glob("session-*.jsonl") if _NAME.fullmatch(path.name))
    if not found:
        raise SourceError(f"there is no session log in {folder}; give the folder of `rtbrain stream --log`")
    return found


def read_session(folder: Path) -> Iterator[dict[str, Any]]:
    """Give all sound records in order; those with a "message" are messages, the others begin a file."""
    for path in session_files(folder):
        yield from _records(path)


def read_run(folder: Path, run: str | None = None) -> tuple[str, Iterator[dict[str, Any]]]:
    """Return a run's name and its messages in order: of the newest run, or of the one that is named.

    Raises
    ------
    SourceError
        There is no such run.
    """
    runs: dict[str, list[Path]] = {}
    for path in session_files(folder):
        name = _NAME.fullmatch(path.name)
        assert name is not None
        runs.setdefault(name["run"], []).append(path)
    wanted = run if run is not None else max(runs, key=lambda each: _age(each, runs[each]))
    if wanted not in runs:
        raise SourceError(f"{folder} has no run {wanted!r}; it has {', '.join(sorted(runs))}")
    records = (record for path in runs[wanted] for record in _records(path))
    return wanted, (record["message"] for record in records if "message" in record)


def _age(run: str, files: list[Path]) -> tuple[str, int, str]:
    """Return what sorts runs by age: the second in their names, and within one when they were last written to."""
    return run.partition("-")[0], max(path.stat().st_mtime_ns for path in files), run


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        yield from (record for line in file if (record := record_of(line)) is not None)


def check_session(folder: Path) -> SessionReport:
    """Verify every line of every file in a folder."""
    report = SessionReport()
    runs: dict[str, _Run] = {}
    for path in session_files(folder):
        name = _NAME.fullmatch(path.name)
        assert name is not None
        report.files += 1
        run = runs.setdefault(name["run"], _Run(report))
        run.begin(path, int(name["part"]))
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                record = record_of(line)
                if record is None and not line.endswith(b"\n"):
                    report.cut.append(f"{path.name} ends within line {number} ({len(line)} bytes)")
                elif record is None:
                    report.damaged.append(f"{path.name} line {number}")
                else:
                    run.take(path, number, record)
    report.runs = {name: run.last_word for name, run in runs.items()}
    return report


class _Run:
    """The numbers that are to come in one run."""

    def __init__(self, report: SessionReport) -> None:
        self._report = report
        self._part = self._number = 0
        self.last_word = ""

    def begin(self, path: Path, part: int) -> None:
        if part != self._part:
            self._report.missing.append(f"file(s) {self._part} to {part - 1} of the run of {path.name}")
        self._part = part + 1

    def take(self, path: Path, line: int, record: dict[str, Any]) -> None:
        if "message" not in record:
            self._expect(path, line, int(record["before"]))
            return
        self._expect(path, line, int(record["n"]) - 1)
        self._number = int(record["n"])
        self._report.records += 1
        message = record["message"]
        self._report.topics[message["topic"]] += 1
        # Whoever ends says why in a status that is the last message of all.
        self.last_word = message["trouble"] if message["topic"] == "status" else ""

    def _expect(self, path: Path, line: int, before: int) -> None:
        if before != self._number:
            self._report.missing.append(f"records {self._number + 1} to {before} before {path.name} line {line}")
        self._number = before


def salvage_session(folder: Path, target: Path) -> int:
    """Write the sound records of a folder, one JSON object a line, into one file, and return their number."""
    if target.exists():
        raise SourceError(f"{target} exists; nothing is overwritten here: choose another name")
    written = 0
    with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
        for record in read_session(folder):
            if "message" in record:
                file.write(json.dumps(record, separators=(",", ":")) + "\n")
                written += 1
    return written
