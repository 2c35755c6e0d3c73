"""The source id of a replay: the same when it is started again, another one for each that runs at the same time."""

import os
import socket
from itertools import count

from rtbrain.locking import is_taken, lock, opened


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
                lock(self._file)
            except OSError as error:
                had_file = self._file is not None
                self.release()
                if had_file and is_taken(error):  # a running replay has it
                    continue
                self.trouble = str(error)  # no file, or no locks on its file system: as good as can be had
            return

    def release(self) -> None:
        """Let another replay have the id."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _opened(text: str) -> int:
    return opened("replay", text)
