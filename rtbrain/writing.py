"""Files appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; what was written there takes its place only when all went well."""
    # The ending stays last, as some writers choose the format by it.
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        # A full disk names no file; the temporary name means nothing to whoever asked for the other one.
        if error.errno is None or str(error.filename or temporary) != str(temporary):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
