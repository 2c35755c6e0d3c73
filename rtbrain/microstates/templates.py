"""Microstate templates: maps on named channels, one set per band, and their folder on disk."""

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rtbrain.errors import TemplateError
from rtbrain.messages import BoolArray, FloatArray
from rtbrain.writing import replacing

NPZ, JSON = "templates.npz", "templates.json"
FORMAT = 1


@dataclass(frozen=True)
class Templates:
    """Maps of every band of a recipe on the same channels."""

    channels: tuple[str, ...]
    maps: tuple[FloatArray, ...]  # per band (states, channels): average-referenced, unit norm
    recipe: dict[str, Any] = field(default_factory=dict)
    """The recipe with which they were fitted, as plain values."""
    report: dict[str, Any] = field(default_factory=dict)
    """How they were fitted and how well they explain the data."""

    def on(self, channels: Sequence[str]) -> tuple[FloatArray, ...]:
        """Return the maps restricted to these channels, in their order; the caller has checked coverage."""
        missing = sorted(set(channels) - set(self.channels))
        if missing:
            raise TemplateError(
                f"the templates have no value for {', '.join(missing)}; they were fitted on {', '.join(self.channels)}"
            )
        columns = [self.channels.index(name) for name in channels]
        return tuple(referenced(np.take(maps, columns, axis=1)) for maps in self.maps)


def referenced(maps: FloatArray, good: BoolArray | None = None) -> FloatArray:
    """Return (states, channels) maps as seen by the good channels: re-referenced, unit norm, 0 elsewhere."""
    mask = np.ones(maps.shape[1], bool) if good is None else good
    kept = np.where(mask, maps, 0.0)
    kept = np.where(mask, kept - kept.sum(axis=1, keepdims=True) / max(1, int(mask.sum())), 0.0)
    norm = np.linalg.norm(kept, axis=1, keepdims=True)
    unit: FloatArray = kept / np.where(norm > 0, norm, 1.0)
    return np.ascontiguousarray(unit)


def save(templates: Templates, folder: Path) -> None:
    """Write a template folder: both files under temporary names first, so that none is ever half written."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"band{i}": maps for i, maps in enumerate(templates.maps)}
    with replacing(folder / NPZ) as npz, replacing(folder / JSON) as text:
        with npz.open("wb") as file:
            np.savez(file, allow_pickle=False, channels=np.array(templates.channels), **arrays)
        card = {
            "format": FORMAT,
            "sha256": hashlib.sha256(npz.read_bytes()).hexdigest(),
            "channels": templates.channels,
            "recipe": templates.recipe,
            "report": templates.report,
        }
        text.write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def fingerprint(templates: Templates) -> str:
    """Return a SHA-256 of channels and maps, to tell by which templates tokens were made."""
    digest = hashlib.sha256(json.dumps(templates.channels).encode())
    for maps in templates.maps:
        digest.update(np.ascontiguousarray(maps).tobytes())
    return digest.hexdigest()


def load(folder: str | Path) -> Templates:
    """Read a template folder and verify it: hash, shapes, names, finite values."""
    folder = Path(folder)
    npz, text = folder / NPZ, folder / JSON
    for path in (npz, text):
        if not path.is_file():
            raise TemplateError(
                f"{folder} is no template folder: {path.name} is missing; make one by `rtbrain templates fit`"
            )
    try:
        card = json.loads(text.read_text(encoding="utf-8"))
        content = npz.read_bytes()
        if hashlib.sha256(content).hexdigest() != card["sha256"]:
            raise TemplateError(
                f"{npz} does not match the hash in {text.name}; fit the templates again or restore both files"
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            channels = tuple(str(name) for name in arrays["channels"])
            maps = tuple(np.ascontiguousarray(arrays[f"band{i}"], np.float64) for i in range(len(arrays.files) - 1))
        recipe, report, version = card["recipe"], card["report"], card["format"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise TemplateError(f"{folder} cannot be read as templates ({error}); fit them again") from error
    if version != FORMAT:
        raise TemplateError(f"{text} has format {version}, this rtbrain reads format {FORMAT}")
    if not maps:
        raise TemplateError(f"{npz} holds no maps; fit them again")
    for band in maps:
        if band.ndim != 2 or not len(band) or band.shape[1] != len(channels) or not np.isfinite(band).all():
            raise TemplateError(
                f"{npz}: maps of shape {band.shape} do not fit {len(channels)} channels; fit them again"
            )
    return Templates(channels, maps, recipe, report)
