"""Arrays out of a Python-2 pickle, without running anything that the file asks for.

Not even numpy's own unpickling runs, as it trusts what the file says about types and memory: the few names that a
pickled array mentions stand for classes of this module, which take the bytes and make plain arrays of numbers.
"""

import codecs
import pickle
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rtbrain.errors import SourceError

MAX_BYTES: Final = 256 << 20
"""DEAP's files have about 103 MB."""


class _Dtype:
    """What `numpy.dtype(text, 0, 1)` and its state give, for plain numbers."""

    def __init__(self, text: str, *_: object) -> None:
        if text not in ("f4", "f8", "i2", "i4", "i8"):
            raise pickle.UnpicklingError(f"an array of {text!r}, which is no plain number")
        self.value = np.dtype(text)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.value = self.value.newbyteorder(">" if state[1] == ">" else "<")


class _Array:
    """What `_reconstruct(ndarray, (0,), 'b')` and its state give."""

    def __init__(self, *_: object) -> None:
        self.value: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        if not isinstance(dtype, _Dtype):
            raise pickle.UnpicklingError("an array without a type")
        data = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
        self.value = np.frombuffer(data, dtype.value).reshape(shape, order="F" if fortran else "C")


class _Bytes(bytes):
    """What `_codecs.encode` gives, which Python 3 uses for the bytes of an array, and for no other codec."""

    def __new__(cls, text: str, encoding: str = "latin1") -> "_Bytes":
        if codecs.lookup(encoding).name != "iso8859-1":
            raise pickle.UnpicklingError(f"text in {encoding!r}")
        return super().__new__(cls, text.encode("latin1"))

    def __setstate__(self, state: object) -> None:
        # Without this a file could set attributes of the class itself, and so spoil the files read after it.
        raise pickle.UnpicklingError("bytes with a state")


_STAND_INS: Final[dict[tuple[str, str], type]] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Bytes,
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        """Return the stand-in of one of the few things that an array is made of; refuse all else."""
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no array needs; nothing of it was run")
        return _STAND_INS[module, name]


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return a pickled dict of arrays of numbers; they cannot be written to.

    Raises
    ------
    SourceError
        The file is too large, damaged, holds something else, or asks for anything but arrays.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise SourceError(f"{path}: {size} bytes are too many, at most {MAX_BYTES} are read; get the original file")
    try:
        with path.open("rb") as file:
            content = _Restricted(file, encoding="latin1").load()
    except Exception as error:  # a damaged or hostile pickle may fail in any way
        raise SourceError(f"{path}: refused as a pickle of arrays: {error}; get the original file again") from error
    if not isinstance(content, dict) or not all(
        isinstance(key, str) and isinstance(value, _Array) for key, value in content.items()
    ):
        raise SourceError(f"{path}: holds no dict of arrays of numbers; get the original file again")
    return {key: value.value for key, value in content.items()}
