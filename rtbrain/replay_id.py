"""The source id of a replay: the same when it is started again, another one for each that runs at the same time."""

import errno
import hashlib
import os
import socket
import sys
import tempfile
from itertools import count
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _is_taken(error: OSError) -> bool:
        return error.errno in (errno.EACCES, errno.EDEADLOCK)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_taken(error: OSError) -> bool:
        return isinstance(error, BlockingIOError)


class ReplayId:
    """An id for the replay of this name, taken until `release`; the system releases it when the process ends.

    Whoever listens finds a replay that is started again by its id. A second one at the same time must have another:
    listeners could not tell the two apart, and would take one's samples for the other's.
    """

    def __init__(self, name: str) -> None:
        first = f"rtbrain-replay-{name}-{socket.gethostname()}"
        self.trouble = ""
        """Why the id could not be taken, so that another replay may have the same; empty if it was."""
        self._file: int | None = None
        for self.number in count(1):
            self.text = first if self.number == 1 else f"{first}-{self.number}"
            try:
                self._file = _opened(self.text)
                _lock(self._file)
            except OSError as error:
                opened = self._file is not None
                self.release()
                if opened and _is_taken(error):  # a running replay has it
                    continue
                self.trouble = str(error)  # no file, or no locks on its file system: as good as can be had
            return

    def release(self) -> None:
        """Let another replay have the id."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _opened(text: str) -> int:
    """Open the file that is locked for an id; another user's can be, too, though not written to."""
    path = Path(tempfile.gettempdir()) / f"rtbrain-replay-{hashlib.sha256(text.encode()).hexdigest()[:16]}.lock"
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
