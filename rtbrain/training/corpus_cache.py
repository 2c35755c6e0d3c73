"""Tokens of a trial on disk: a key that changes with all that shapes them, and files that are whole or refused."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import rtbrain
from rtbrain.errors import ConfigError, SourceError
from rtbrain.messages import Break, StreamInfo, Token, Tokens
from rtbrain.microstates.stats import Statistics
from rtbrain.microstates.templates import Templates, fingerprint
from rtbrain.pipeline import Recipe
from rtbrain.tokenizing import Tokenized
from rtbrain.training.trials import Trial
from rtbrain.writing import replacing

FORMAT = 1
"""Counted up when the files below change."""

_PROGRAM = (
    "messages.py",
    "stage.py",
    "pipeline.py",
    "tokenizing.py",
    "sources",
    "conditioning",
    "microstates",
    "tokens",
    "training/datasets",
)
_PACKAGES = ("numpy", "scipy", "mne")


def keys_for(templates: Templates) -> Callable[[Trial, Sequence[str]], str]:
    """Return the function that makes a trial's key from the trial and the hashes of its files' content."""
    recipe = Recipe.from_dict(templates.recipe, "the templates' recipe").to_dict()
    return trial_keys({"recipe": recipe, "templates": fingerprint(templates)})


def trial_keys(made_with: Mapping[str, Any], made_by: tuple[str, ...] = ()) -> Callable[[Trial, Sequence[str]], str]:
    """As `keys_for`, for anything that is made from a trial alone with these plain settings.

    `made_by` are the files of this package that make it, besides those that make tokens.
    """
    shared = {"format": FORMAT, "program": program(), "made_by": text_hash(made_by), **made_with}

    def key(trial: Trial, content: Sequence[str]) -> str:
        own = {"trial": trial.name, "content": list(content), "opened": how_opened(trial)}
        return hashlib.sha256(json.dumps(shared | own, sort_keys=True).encode()).hexdigest()

    return key


@cache
def program() -> dict[str, str]:
    """Return what tells this program from another one that may read or tokenize differently.

    The source itself is hashed: a version number that somebody forgot to count up would keep stale tokens alive.
    """
    return {"rtbrain": text_hash(_PROGRAM), **{name: _version(name) for name in _PACKAGES}}


@cache
def text_hash(names: tuple[str, ...]) -> str:
    """Return a hash of the text of this package's files, and of all files below its folders, by their names."""
    package, digest = Path(rtbrain.__file__).parent, hashlib.sha256()
    for name in names:
        path = package / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def how_opened(trial: Trial) -> Any:
    """Return in plain values how a trial is opened (interval, crop, channels), wherever its files lie."""
    return _opened(trial.open, trial)


def _opened(value: Any, trial: Trial) -> Any:
    if isinstance(value, partial):
        return [_opened(part, trial) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, Path):
        if value not in trial.files:
            raise ConfigError(f"trial {trial.name!r} opens {value}, which is not among its files; its reader is wrong")
        return f"file {trial.files.index(value)}"
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _opened(getattr(value, each.name), trial) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _opened(each, trial) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_opened(each, trial) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float):
        return value
    name = getattr(value, "__qualname__", "<")
    if "<" in name:  # a lambda or a local function: what it holds cannot be seen, nor sent to another process
        raise ConfigError(
            f"trial {trial.name!r} is opened by {value!r}; make it a functools.partial of a function of a module and "
            "of plain values, so that a change of them is noticed"
        )
    return f"{value.__module__}.{name}"


def save_entry(path: Path, key: str, result: Tokenized) -> None:
    """Write what tokenizing a trial gave; the file appears whole or not at all."""
    about = json.dumps(
        {
            "key": key,
            "info": asdict(result.info),
            "breaks": [asdict(each) for each in result.breaks],
            "continuity": result.continuity,
            "missing_channels": result.missing_channels,
            "bad_share": result.bad_share,
            "statistics": {band: each.to_dict() for band, each in result.statistics.items()},
        }
    )
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(about), **result.tokens.columns())


def load_entry(path: Path, key: str) -> Tokenized:
    """Read what `save_entry` wrote; anything but exactly that is a SourceError.

    An .npz is a zip archive, which carries a checksum of every array: zipfile compares it while numpy reads.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:  # numpy leaves a broken file open
            columns = {name: stored[name] for name in Token.__dataclass_fields__}
            about = json.loads(str(stored["about"]))
        if about["key"] != key:
            raise ValueError("it was made from other data, templates or recipe")
        return _from_plain(Tokens(**columns), about)
    except FileNotFoundError as error:
        raise SourceError(
            f"{path} is gone: another run that uses the same folder may have ended and tidied up; run this again"
        ) from error
    except Exception as error:  # a damaged file may fail in any way
        raise SourceError(f"{path}: no whole cache entry ({error}); remove it, or tokenize the set again") from error


def _from_plain(tokens: Tokens, about: dict[str, Any]) -> Tokenized:
    info = about["info"]
    return Tokenized(
        tokens=tokens,
        breaks=tuple(Break(**each) for each in about["breaks"]),
        info=StreamInfo(**(info | {"channels": tuple(info["channels"])})),
        continuity=about["continuity"],
        missing_channels=tuple(about["missing_channels"]),
        bad_share=about["bad_share"],
        statistics={band: _statistics(each) for band, each in about["statistics"].items()},
    )


def _statistics(plain: dict[str, Any]) -> Statistics:
    values: dict[str, Any] = {name: np.array(x) if isinstance(x, list) else x for name, x in plain.items()}
    return Statistics(**values)
