"""Files with the same content under two names, without reading more of them than is needed to tell."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

_HEAD = 1 << 16
_BLOCK = 1 << 20


def identical(paths: Iterable[Path]) -> list[list[Path]]:
    """Return the groups of two or more files that have the same bytes, each in the order given."""
    groups = [list(dict.fromkeys(paths))]
    keys: tuple[Callable[[Path], Hashable], ...] = (_size, _ends, content_hash)
    for key in keys:
        groups = [part for group in groups for part in _split(group, key)]
    return groups


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _split(paths: list[Path], key: Callable[[Path], Hashable]) -> list[list[Path]]:
    found: dict[Hashable, list[Path]] = defaultdict(list)
    for path in paths:
        found[key(path)].append(path)
    return [group for group in found.values() if len(group) > 1]


def _size(path: Path) -> int:
    return path.stat().st_size


def _ends(path: Path) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        head = hashlib.sha256(file.read(_HEAD)).digest()
        file.seek(max(0, path.stat().st_size - _HEAD))
        return head, hashlib.sha256(file.read(_HEAD)).digest()
