"""MATLAB version 5 files of matrices, written while their columns are made.

MATLAB stores columns one after the other, and a column of an EEG array (channels, n) is one moment: so samples can
be appended as they come, which SciPy's writer cannot do.
"""

import struct
from collections.abc import Iterable
from typing import IO, Final

from rtbrain.messages import FloatArray

_INT8, _INT32, _UINT32, _DOUBLE, _MATRIX = 1, 5, 6, 9, 14
_DOUBLE_CLASS: Final = 6
_TITLE: Final = b"MATLAB 5.0 MAT-file, simulated by rtbrain"


def start_mat(file: IO[bytes]) -> None:
    """Write the header of a file; matrices follow by `append_matrix`."""
    file.write(_TITLE.ljust(116) + bytes(8) + struct.pack("<H", 0x0100) + b"IM")


def append_matrix(file: IO[bytes], name: str, n_rows: int, n_columns: int, columns: Iterable[FloatArray]) -> None:
    """Append a matrix of doubles.

    Parameters
    ----------
    file : binary file
        Begun by `start_mat`.
    name : str
        Of the variable.
    n_rows, n_columns : int
        Its shape.
    columns : iterable of (n, n_rows) arrays
        Consecutive columns of the matrix, `n_columns` in all.
    """
    text = name.encode("ascii")
    n_bytes = 8 * n_rows * n_columns
    parts = _element(_UINT32, struct.pack("<II", _DOUBLE_CLASS, 0))
    parts += _element(_INT32, struct.pack("<ii", n_rows, n_columns)) + _element(_INT8, text)
    file.write(struct.pack("<II", _MATRIX, len(parts) + 8 + n_bytes) + parts + struct.pack("<II", _DOUBLE, n_bytes))
    written = 0
    for block in columns:
        written += file.write(block.astype("<f8").tobytes())
    if written != n_bytes:
        raise ValueError(f"{name}: {written} bytes were given, its shape needs {n_bytes}")


def _element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)
