"""MDD (Mumtaz 2016, figshare 4244171): a flat folder of EDF files, with odd names and with duplicates.

Fields of a trial: `group` (H or MDD) and `condition` (EC, EO or TASK). Options: none.
"""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rtbrain.errors import ConfigError, RtbrainError
from rtbrain.sources.recording import open_recording
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets.edf_facts import edf_facts
from rtbrain.training.trials import Found, Problem, Trial

_NAME = re.compile(r"^(\d+_)?(H|MDD)\s+S(\d+)\s+(EC|EO|TASK)\.edf$", re.IGNORECASE)


@dataclass(frozen=True)
class _File:
    path: Path
    group: str
    number: int
    condition: str

    @property
    def subject(self) -> str:
        """H S1 is not MDD S1, so the group is part of the key."""
        return f"{self.group} S{self.number}"

    @property
    def name(self) -> str:
        return f"{self.subject} {self.condition}"


def read(root: Path, config: DatasetConfig) -> Found:
    """Read the set below `root`."""
    if config.options:
        raise ConfigError(f"the mdd reader has no options, got {', '.join(config.options)}")
    files, problems = _files(root)
    trials = []
    for file in files:
        try:
            recording = open_recording(file.path)
        except RtbrainError as error:
            problems.append(Problem(str(file.path), str(error)))
            continue
        trials.append(
            Trial(
                subject=file.subject,
                name=file.name,
                files=(file.path,),
                length_s=recording.duration_s,
                open=partial(open_recording, file.path),
                fields={"group": file.group, "condition": file.condition},
                facts={
                    "rate_hz": recording.info.rate_hz,
                    "n_channels": float(len(recording.info.channels)),
                    **edf_facts(file.path),
                },
            )
        )
    return Found(tuple(trials), tuple(problems))


def _files(root: Path) -> tuple[list[_File], list[Problem]]:
    files, problems = [], []
    for path in sorted(root.iterdir()):
        match = _NAME.match(path.name)
        if match:
            files.append(_File(path, match[2].upper(), int(match[3]), match[4].upper()))
        elif path.suffix.lower() == ".edf" and not path.name.startswith("."):
            problems.append(Problem(str(path), "is not named like `H S1 EC.edf` or `MDD S1 EO.edf`; rename it"))
    # Names without a download number come before those with one.
    files.sort(key=lambda file: (file.group, file.number, file.condition, len(file.path.name), file.path.name))
    return files, problems
