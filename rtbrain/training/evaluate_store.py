"""Answers of a fold on disk, under a key that changes with data, settings and program: whole, or not there."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from rtbrain.config import parse
from rtbrain.errors import RtbrainError, SourceError
from rtbrain.training.corpus_cache import program, text_hash
from rtbrain.training.methods.base import Attention, Method
from rtbrain.training.nuisance.probes import Probe
from rtbrain.writing import replacing

FORMAT = 1
"""Counted up when the files below change."""

_PROGRAM = (
    "fitting.py",
    "training/evaluate_fold.py",
    "training/evaluate_store.py",
    "training/folds.py",
    "training/methods/base.py",
    "training/trial_cache.py",
    "training/trial_templates.py",
)


@dataclass(frozen=True)
class Answers:
    """What one method said about the test side of one fold, and what was true."""

    method: str
    seed: int
    fold: str
    optimistic: bool
    trials: tuple[str, ...]
    people: tuple[str, ...]
    labels: tuple[int, ...]
    probabilities: dict[str, tuple[tuple[float, ...], ...]]
    """By the seconds of EEG seen, or `all`: for each trial the probability of each class."""
    facts: dict[str, float]
    """What the method chose on the way."""
    probes: tuple[Probe, ...] = ()
    """What it said with the filters and lines of others in the test recordings."""
    not_probed: dict[str, str] = field(default_factory=dict)
    """Why `filters` or `lines` could not be exchanged, though that was asked for."""
    attention: Attention | None = None
    """Of the first test trial, where the method has any; for reports."""


@dataclass(frozen=True)
class Slot:
    """Where the answers of a method and a fold go."""

    path: Path
    key: str


def slot_for(folder: Path, method: Method, fold: str, seed: int, rests_on: Mapping[str, Any]) -> Slot:
    """Return the place of answers that rest on these plain values."""
    values = {"format": FORMAT, "method": described(method), "program": _program(method.program), **rests_on}
    key = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    return Slot(folder / method.name / f"seed-{seed}_{_safe(fold)}_{key[:16]}.json", key)


def save_answers(slot: Slot, answers: Answers) -> None:
    """Write answers; the file appears whole or not at all."""
    slot.path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(slot.path) as temporary:
        temporary.write_text(json.dumps({"key": slot.key, **asdict(answers)}) + "\n", encoding="utf-8")


def load_answers(slot: Slot) -> Answers | None:
    """Return the answers that are there already, or None."""
    if not slot.path.exists():
        return None
    try:
        values = json.loads(slot.path.read_text(encoding="utf-8"))
        if values.pop("key") != slot.key:
            raise ValueError("its key is another one")
        return parse(Answers, values, str(slot.path))
    except (OSError, ValueError, KeyError, AttributeError, RtbrainError) as error:
        raise SourceError(f"{slot.path} is damaged ({error}); remove it, and its fold is run again") from error


def described(value: Any) -> Any:
    """Return a method's settings as plain values; functions by their names."""
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: described(getattr(value, each.name)) for each in fields(value)}
        return {"type": f"{type(value).__module__}.{type(value).__qualname__}", **own}
    if isinstance(value, Mapping):
        return {str(name): described(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [described(each) for each in value]
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    return value


@cache
def _program(more: tuple[str, ...]) -> dict[str, str]:
    """Return what tells this program from one that may answer otherwise: the text itself, not a version number."""
    packages = {name: metadata.version(name) for name in ("scikit-learn", "torch")}
    return {**program(), "evaluation": text_hash((*_PROGRAM, *more)), **packages}


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:60]
