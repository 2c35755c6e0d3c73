"""What truly happened in a session, second by second: what a session log is scored against."""

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rtbrain.config import NotNegative, Positive, Share, parse
from rtbrain.errors import ConfigError
from rtbrain.writing import replacing


@dataclass(frozen=True)
class TrueStretch:
    """Some seconds of a recording during which the state did not change."""

    start_s: NotNegative
    stop_s: Positive
    state: str
    """One of the session's classes."""
    label: int | None = None
    """What acted on a simulated EEG: a class of the simulated population, which may be finer than the state."""


@dataclass(frozen=True)
class Best:
    """How well the state can be told at best by somebody who has never met the person."""

    accuracy: Share
    standard_error: NotNegative
    seconds: Positive
    """Of one state, that an answer rests on."""
    chance: Share


@dataclass(frozen=True)
class SessionTruth:
    """The file session.json; a lab may write one for a session of its own, without what is best."""

    classes: tuple[str, ...]
    stretches: tuple[TrueStretch, ...]
    """In the order of time; what lies between them, or outside, is not scored."""
    best: Best | None = None
    about: dict[str, Any] | None = None
    """How it was made; nothing here matters to a score."""

    def __post_init__(self) -> None:
        unknown = sorted({each.state for each in self.stretches} - set(self.classes))
        if not self.stretches or unknown:
            raise ConfigError(
                f"the states {unknown} are none of the classes {list(self.classes)}"
                if unknown
                else "there is no stretch to score"
            )
        for each in self.stretches:
            if not each.stop_s > each.start_s:
                raise ConfigError(f"the stretch from {each.start_s:g} to {each.stop_s:g} s has no length")
        for one, next_one in pairwise(self.stretches):
            if next_one.start_s < one.stop_s:
                raise ConfigError(f"the stretch at {next_one.start_s:g} s begins before the one before it ends")

    @property
    def chance(self) -> float:
        """Accuracy of always naming one class, the most frequent one."""
        if self.best is not None:
            return self.best.chance
        seconds = [sum(e.stop_s - e.start_s for e in self.stretches if e.state == name) for name in self.classes]
        return max(seconds) / sum(seconds)


def save_truth(truth: SessionTruth, path: Path) -> None:
    """Write session.json."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(asdict(truth), indent=2) + "\n", encoding="utf-8")


def load_truth(path: Path) -> SessionTruth:
    """Read session.json."""
    return parse(SessionTruth, load_json(path), str(path))


def load_json(path: Path) -> Any:
    """Return what a JSON file holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no valid JSON: {error}") from error
