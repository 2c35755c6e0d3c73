r"""Any folder of recordings whose names say who and what: one file is one trial, through the configuration alone.

Option `pattern` is a regular expression that the whole name of a file must match. Its group `subject` says who it is;
its other named groups are the trial's fields, such as `(?P<subject>Subject\d+)_(?P<condition>rest|arith)\.edf`.
"""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rtbrain.config import parse
from rtbrain.errors import ConfigError, RtbrainError
from rtbrain.sources.recording import open_recording
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets.edf_facts import edf_facts
from rtbrain.training.trials import Found, Problem, Trial, Value


@dataclass(frozen=True)
class FilesOptions:
    """What a configuration tells the reader."""

    pattern: str
    """Of file names, with a named group `subject`."""
    unit: str | None = None
    """What the numbers in the files are, where they do not say so or say something wrong."""


def read(root: Path, config: DatasetConfig) -> Found:
    """Read the files directly below `root` whose names match; others with the same endings are reported."""
    options = parse(FilesOptions, config.options, f"options of {config.name}")
    try:
        pattern = re.compile(options.pattern)
    except re.error as error:
        raise ConfigError(
            f"options of {config.name}: pattern {options.pattern!r} is no regular expression: {error}"
        ) from error
    if "subject" not in pattern.groupindex:
        raise ConfigError(f"options of {config.name}: pattern {options.pattern!r} has no group (?P<subject>...)")
    trials: list[Trial] = []
    problems: list[Problem] = []
    paths = [path for path in sorted(root.iterdir()) if path.is_file() and not path.name.startswith(".")]
    matches = {path: match for path in paths if (match := pattern.fullmatch(path.name))}
    if paths and not matches:
        what = f"none of its {len(paths)} files has a name that matches {options.pattern!r}, such as {paths[0].name}"
        return Found((), (Problem(str(root), f"{what}; correct the option `pattern`"),))
    endings = {path.suffix.lower() for path in matches}
    for path in paths:
        if path not in matches:
            if path.suffix.lower() in endings:
                problems.append(Problem(str(path), f"its name does not match {options.pattern!r}; rename it"))
            continue
        try:
            recording = open_recording(path, unit=options.unit)
        except RtbrainError as error:
            problems.append(Problem(str(path), str(error)))
            continue
        told = {name: text for name, text in matches[path].groupdict().items() if text is not None}
        facts: dict[str, Value] = {
            "rate_hz": recording.info.rate_hz,
            "n_channels": float(len(recording.info.channels)),
        }
        if path.suffix.lower() == ".edf":
            facts |= edf_facts(path)
        trials.append(
            Trial(
                subject=told.pop("subject"),
                name=path.stem,
                files=(path,),
                length_s=recording.duration_s,
                open=partial(open_recording, path, unit=options.unit),
                fields=dict(told),
                facts=facts,
            )
        )
    return Found(tuple(trials), tuple(problems))
