"""A dict of arrays as Python 2 pickled it (protocol 2), written while the arrays are made."""

import struct
from collections.abc import Iterable, Sequence
from math import prod
from typing import IO

from rtbrain.messages import FloatArray


def start_pickle(file: IO[bytes]) -> None:
    """Begin a dict; arrays follow by `append_array`, then `end_pickle`."""
    file.write(b"\x80\x02}(")


def append_array(file: IO[bytes], key: str, shape: Sequence[int], pieces: Iterable[FloatArray]) -> None:
    """Append an array of doubles.

    Parameters
    ----------
    file : binary file
        Begun by `start_pickle`.
    key : str
        Its name in the dict.
    shape : sequence of int
        Of the whole.
    pieces : iterable of array
        Its numbers in C order, whatever the shapes of the pieces.
    """
    # The calls that numpy's arrays were pickled as: an empty array of bytes, then its state (version, shape, type,
    # Fortran order, numbers). Byte strings of Python 2 have the codes U (up to 255 bytes) and T.
    n_bytes = 8 * prod(shape)
    file.write(_string(key) + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n")
    file.write(_int(0) + b"\x85" + _string("b") + b"\x87R")
    kind = b"cnumpy\ndtype\n" + _string("f8") + _int(0) + _int(1) + b"\x87R"
    kind += b"(" + _int(3) + _string("<") + b"NNN" + _int(-1) + _int(-1) + _int(0) + b"tb"
    file.write(b"(" + _int(1) + b"(" + b"".join(map(_int, shape)) + b"t" + kind + b"\x89")
    file.write(b"T" + struct.pack("<i", n_bytes))
    written = 0
    for piece in pieces:
        written += file.write(piece.astype("<f8").tobytes())
    if written != n_bytes:
        raise ValueError(f"{key}: {written} bytes were given, its shape needs {n_bytes}")
    file.write(b"tb")


def end_pickle(file: IO[bytes]) -> None:
    """End the dict."""
    file.write(b"u.")


def _string(text: str) -> bytes:
    return b"U" + bytes([len(text)]) + text.encode("ascii")


def _int(number: int) -> bytes:
    return b"J" + struct.pack("<i", number)
