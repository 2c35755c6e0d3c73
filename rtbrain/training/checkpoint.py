"""Where a training run stands, on disk after every epoch: whole, and only for the run that it belongs to."""

from pathlib import Path
from typing import Any

import torch

from rtbrain.errors import SourceError
from rtbrain.writing import replacing


def save_checkpoint(path: Path, key: str, state: dict[str, Any]) -> None:
    """Write tensors and plain values; the file appears whole or not at all, whenever the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        torch.save({"key": key, "state": state}, temporary)


def load_checkpoint(path: Path, key: str) -> dict[str, Any] | None:
    """Return what `save_checkpoint` wrote for this key; None where there is nothing.

    Raises
    ------
    SourceError
        The file is damaged, or belongs to a run with other data, settings or seed.
    """
    if not path.exists():
        return None
    remedy = "remove it to start anew"
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
        found, state = stored["key"], stored["state"]
    except Exception as error:  # a damaged file may fail in any way
        raise SourceError(f"{path} is no whole checkpoint ({error}); {remedy}") from error
    if found != key:
        raise SourceError(f"{path} is of a run with other data, settings, program or seed; {remedy}")
    assert isinstance(state, dict)
    return state
