"""The complete record of a session: every message as one line with its checksum, safe against a sudden end.

A line is `{"crc32":"xxxxxxxx","record":{...}}`; the checksum is that of the record's bytes. Records are numbered, so
that missing lines show. Files are only ever appended to, and a new one is begun when one is full: what is written is
never touched again. A thread writes, so that a slow disk does not delay decisions.
"""

import json
import os
import time
import zlib
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Final
from uuid import uuid4

from rtbrain import __version__
from rtbrain.errors import SinkError

PREFIX: Final = b'{"crc32":"'
MIDDLE: Final = b'","record":'
SUFFIX: Final = b"}\n"

MAX_FILE_BYTES: Final = 64 << 20
WRITE_S: Final = 0.25
"""Longest time that a message waits for being handed to the operating system, where kill -9 cannot reach it."""
SYNC_S: Final = 0.75
"""Longest time after that until it is on the disk, where a power cut cannot reach it."""
MAX_WAITING: Final = 100_000
"""Messages kept while the disk does not take them; the newest beyond it are dropped and counted."""


def line_of(record: bytes) -> bytes:
    """Return the line that holds a record."""
    return b"%b%08x%b%b%b" % (PREFIX, zlib.crc32(record), MIDDLE, record, SUFFIX)


def file_name(run: str, part: int) -> str:
    """Return the name of a run's n-th file."""
    return f"session-{run}-{part:05d}.jsonl"


class SessionLog:
    """A log in a folder; each run writes files of its own.

    Attributes
    ----------
    written : int
        Records that the operating system has.
    dropped : int
        Messages that were lost because the disk took none for too long.
    trouble : str
        Why nothing can be written at the moment; empty if all is well.
    """

    def __init__(self, folder: Path, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        self.written = self.dropped = 0
        self.trouble = ""
        self._folder, self._max_file_bytes = folder, max_file_bytes
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"
        self._part = self._number = self._newest = 0  # the newest number is the last one written
        self._file: Any = None
        self._size = 0  # bytes of the file that are whole lines
        self._unsynced_since: float | None = None
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._changed = Condition()
        self._closing = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._begin_file()
        except OSError as error:
            raise SinkError(f"no session log can be written in {folder}: {error.strerror}; choose another") from error
        self._thread = Thread(target=self._work, name="session log", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Messages that are still to be written."""
        return len(self._waiting)

    def write(self, frame: bytes) -> None:
        """Take one published frame; never waits for the disk."""
        wall = datetime.now(UTC).isoformat(timespec="milliseconds")
        body = frame.partition(b" ")[2]
        with self._changed:
            self._number += 1  # also of one that is dropped, so that it is missed
            if len(self._waiting) >= MAX_WAITING:
                self.dropped += 1
                return
            record = b'{"n":%d,"wall":"%b","message":%b}' % (self._number, wall.encode(), body)
            self._waiting.append((self._number, record))

    def close(self) -> None:
        """Write and sync what waits, and close."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> "SessionLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing, WRITE_S)
                closing = self._closing
            try:
                self._write_waiting()
                self._sync(now=closing)
                self.trouble = ""
            except OSError as error:  # a full disk or a network drive that went away: kept, told, tried again
                self.trouble = f"the session log cannot be written: {error.strerror or error}"
                self._discard_half_line()
            if closing:
                self.dropped += len(self._waiting)
                return

    def _write_waiting(self) -> None:
        while self._waiting:
            with self._changed:
                batch = list(self._waiting)[:1000]
            for number, record in batch:
                if self._file is None or self._size >= self._max_file_bytes:
                    self._begin_file()
                self._append(line_of(record))
                self._waiting.popleft()
                self.written += 1
                self._newest = number

    def _append(self, line: bytes) -> None:
        if self._file.write(line) != len(line):  # unbuffered: a full disk may take a part
            raise OSError(28, "the disk took only a part of a line")
        self._size += len(line)
        if self._unsynced_since is None:
            self._unsynced_since = time.monotonic()

    def _sync(self, now: bool = False) -> None:
        due = self._unsynced_since is not None and time.monotonic() - self._unsynced_since >= SYNC_S - WRITE_S
        if self._file is not None and (now or due):
            os.fsync(self._file.fileno())
            self._unsynced_since = None

    def _begin_file(self) -> None:
        if self._file is not None:
            self._sync(now=True)
            self._file.close()
            self._file = None
        path = self._folder / file_name(self.run, self._part)
        self._file, self._size = path.open("xb", buffering=0), 0
        head = {"run": self.run, "part": self._part, "before": self._newest, "rtbrain": __version__}
        try:
            self._append(line_of(json.dumps(head).encode()))
        except OSError:  # no file without its first line
            self._file.close()
            self._file = None
            path.unlink()
            raise
        self._part += 1
        if os.name == "posix":  # the file's name, too, must survive a power cut
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _discard_half_line(self) -> None:
        """Cut what a failed write left behind, so that the next line begins on its own."""
        try:
            if self._file is not None:
                self._file.truncate(self._size)
                self._file.seek(self._size)
        except OSError as error:  # then this file ends with half a line, which the check allows; go on in a new one
            self.trouble += f"; and the file cannot be repaired: {error.strerror or error}"
            self._file = None
