"""Locks that the system releases when a process ends, however it ends."""

import errno
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtbrain.errors import ConfigError

if sys.platform == "win32":
    import msvcrt

    def lock(file: int) -> None:
        """Lock an open file; see `is_taken` for what is raised where somebody else has."""
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def is_taken(error: OSError) -> bool:
        """Tell whether a lock could not be had because somebody else has it."""
        return error.errno in (errno.EACCES, errno.EDEADLOCK)
else:
    import fcntl

    def lock(file: int) -> None:
        """Lock an open file; see `is_taken` for what is raised where somebody else has."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def is_taken(error: OSError) -> bool:
        """Tell whether a lock could not be had because somebody else has it."""
        return isinstance(error, BlockingIOError)


def opened(kind: str, text: str) -> int:
    """Open the file of this machine that is locked for a text; another user's can be, too, though not written to."""
    path = Path(tempfile.gettempdir()) / f"rtbrain-{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.lock"
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)


@contextmanager
def alone_in(folder: Path, doing: str) -> Iterator[None]:
    """Be the only process of this machine that does something in a folder; refuse if another one is at it."""
    file = opened("folder", str(folder.resolve()))
    try:
        try:
            lock(file)
        except OSError as error:
            if is_taken(error):
                raise ConfigError(
                    f"another process is {doing} in {folder}; wait for it or end it, or give another --out"
                ) from error
            # No locks on this file system: then nobody can be told from anybody, and the work is worth more than that.
        yield
    finally:
        os.close(file)
