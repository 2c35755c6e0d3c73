"""How good the decisions of a session log were, and how fast they followed, where the truth is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from rtbrain.errors import SourceError
from rtbrain.session_truth import SessionTruth, TrueStretch
from rtbrain.sinks.session_check import read_run

STEADY_S: Final = 3.0
"""A change has been followed once the answer is the new state and stays so for this long, or to the stretch's end."""


@dataclass(frozen=True)
class Said:
    """A decision of the log."""

    at_s: float
    """Second of the recording."""
    label: str
    rests_s: float
    """Seconds before it that it rests on."""
    trusted: bool
    age_ms: float | None


@dataclass(frozen=True)
class Change:
    """How fast the answer followed a change of state."""

    at_s: float
    state: str
    delay_s: float | None
    """None if it never did."""


@dataclass(frozen=True)
class Score:
    """What came out."""

    decisions: int
    """That fall into a stretch of the truth."""
    accuracy: float
    """Of all of them."""
    pure_decisions: int
    """Those that rest on one state only: the whole context lies within the stretch."""
    pure_accuracy: float | None
    way: float | None
    """How far the pure decisions are on the way from chance to the best possible accuracy; 1 is all of it."""
    trusted: float
    """Share of all decisions."""
    changes: tuple[Change, ...]
    tokens: int
    tokens_per_s: float
    age_p50_ms: float | None
    age_p99_ms: float | None


def read_decisions(folder: Path, from_s: float = 0.0) -> tuple[list[Said], int]:
    """Return the decisions of the newest run in a log's folder, and the number of tokens.

    Parameters
    ----------
    folder : Path
        Where `rtbrain stream --log` wrote.
    from_s : float
        Second of the recording at which the stream began.

    Raises
    ------
    SourceError
        There is no decision, or the stream was connected anew: then its seconds are not those of the truth.
    """
    found: list[Said] = []
    tokens, broken_s = 0, None
    for message in read_run(folder)[1]:
        if message["topic"] == "token":
            tokens += 1
        elif message["topic"] == "state":
            age_s, at_s = message["age"]["total_s"], message["signal_s"] + from_s
            if found and at_s < found[-1].at_s:
                broken_s = found[-1].at_s
            found.append(
                Said(
                    at_s=at_s,
                    label=message["label"],
                    rests_s=message["context"]["seconds"],
                    trusted=message["trusted"],
                    age_ms=None if age_s is None else 1000 * age_s,
                )
            )
    if not found:
        raise SourceError(f"the session log in {folder} holds no decision; was the stream long enough for one?")
    if broken_s is not None:
        raise SourceError(
            f"in {folder} the stream came back after {broken_s:g} s and its seconds count from 0 again, so nobody "
            "knows where they lie in the truth; score a session of one connection"
        )
    return found, tokens


def score(said: Sequence[Said], tokens: int, truth: SessionTruth) -> Score:
    """Compare decisions with what was true when they were made."""
    placed = list(_placed(said, truth))
    if not placed:
        raise SourceError(
            f"no decision falls into the truth's {truth.stretches[0].start_s:g} to {truth.stretches[-1].stop_s:g} s; "
            f"the log's lie between {said[0].at_s:g} and {said[-1].at_s:g} s"
        )
    right = np.array([each.label == stretch.state for each, stretch in placed])
    pure = np.array([each.at_s - each.rests_s >= stretch.start_s for each, stretch in placed])
    pure_accuracy = float(right[pure].mean()) if pure.any() else None
    ages = [each.age_ms for each in said if each.age_ms is not None]
    best, way = truth.best, None
    if best is not None and pure_accuracy is not None and best.accuracy > best.chance:
        way = (pure_accuracy - best.chance) / (best.accuracy - best.chance)
    return Score(
        decisions=len(placed),
        accuracy=float(right.mean()),
        pure_decisions=int(pure.sum()),
        pure_accuracy=pure_accuracy,
        way=way,
        trusted=sum(each.trusted for each, _ in placed) / len(placed),
        changes=tuple(_changes(placed, truth)),
        tokens=tokens,
        tokens_per_s=tokens / max(1e-9, said[-1].at_s - said[0].at_s + said[0].rests_s),
        age_p50_ms=float(np.percentile(ages, 50)) if ages else None,
        age_p99_ms=float(np.percentile(ages, 99)) if ages else None,
    )


def _placed(said: Sequence[Said], truth: SessionTruth) -> Iterator[tuple[Said, TrueStretch]]:
    for each in said:
        for stretch in truth.stretches:
            if stretch.start_s <= each.at_s < stretch.stop_s:
                yield each, stretch


def _changes(placed: Sequence[tuple[Said, TrueStretch]], truth: SessionTruth) -> Iterator[Change]:
    for before, stretch in pairwise(truth.stretches):
        if before.state == stretch.state:
            continue
        inside = [each for each, its in placed if its is stretch]
        delay_s = None
        for i, each in enumerate(inside):
            after = [later.label == stretch.state for later in inside[i:] if later.at_s <= each.at_s + STEADY_S]
            if all(after):
                delay_s = each.at_s - stretch.start_s
                break
        yield Change(stretch.start_s, stretch.state, delay_s)


def strip(said: Sequence[Said], truth: SessionTruth, width: int) -> tuple[str, str]:
    """Return truth and decisions as two lines of so many letters: the first letter of the class, a dot for nothing."""
    letters = letters_of(truth.classes)
    start_s, stop_s = truth.stretches[0].start_s, truth.stretches[-1].stop_s
    edges = np.linspace(start_s, stop_s, width + 1)
    true, told = [], []
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        true.append(next((letters[e.state] for e in truth.stretches if e.start_s <= middle < e.stop_s), "."))
        names = [each.label for each in said if low <= each.at_s < high]
        told.append(letters[max(set(names), key=names.count)] if names else ".")
    return "".join(true), "".join(told)


def letters_of(classes: Sequence[str]) -> dict[str, str]:
    """Return a letter for each class: its first one where these differ, else A, B, C."""
    firsts = [name[:1].upper() for name in classes]
    distinct = len(set(firsts)) == len(classes)
    return {name: firsts[i] if distinct else chr(ord("A") + i) for i, name in enumerate(classes)}
