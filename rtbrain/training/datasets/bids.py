"""Any lab's BIDS EEG data set, through the configuration alone.

A trial is a whole recording or an event (`options.trials`). Its fields are the columns of participants.tsv, the
entities of the file name (`task`, `ses`, `run`, ...) and, for events, the columns of events.tsv; a task's `label`
and `where` may name any of them. Number-like cells are numbers, `n/a` is no value.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from rtbrain.config import NotNegative, Positive, parse
from rtbrain.errors import RtbrainError, SourceError
from rtbrain.sources.chunking import Source
from rtbrain.sources.recording import SeekableSource, excerpt, open_recording
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets.arrays import pick
from rtbrain.training.datasets.bids_files import (
    BidsFile,
    bids_recordings,
    eeg_channels,
    file_facts,
    sidecar,
)
from rtbrain.training.datasets.tables import Table, read_table, value_of, values_of
from rtbrain.training.trials import Found, Problem, Trial, Value

PARTICIPANTS = "participants.tsv"
END_TOLERANCE_S = 0.1
"""An event may seem to last so much longer than its recording; it is cut there."""


@dataclass(frozen=True)
class BidsOptions:
    """What a configuration tells the reader."""

    task: tuple[str, ...] = ()
    """BIDS task names whose recordings are read; empty reads all."""
    trials: Literal["recordings", "events"] = "recordings"
    event: dict[str, Value] = field(default_factory=dict)
    """Which rows of events.tsv are trials, by the values of columns, such as {trial_type: video}."""
    duration_s: Positive | None = None
    """Length of every event, instead of its `duration`."""
    offset_s: NotNegative = 0.0
    """Seconds after an event's onset at which its trial begins; they are taken from its duration."""
    stimulus: str | None = None
    """Column that names what was shown."""
    unit: str | None = None
    """What the numbers in the files are, where they do not say so or say something wrong."""


def read(root: Path, config: DatasetConfig) -> Found:
    """Read the set below `root`."""
    found = collect(root, parse(BidsOptions, config.options, f"options of {config.name}"))
    return check_labels(root, found, config)


def collect(root: Path, options: BidsOptions) -> Found:
    """Return the trials with all their fields; labels are not looked at yet."""
    people = _participants(root)
    files = [file for file in bids_recordings(root) if not options.task or file.entities.get("task") in options.task]
    trials: list[Trial] = []
    problems: list[Problem] = []
    absent = sorted(set(people) - {file.subject for file in files})
    if absent and files:
        asked = f" of task {' or '.join(options.task)}" if options.task else ""
        what = f"lists {', '.join(absent)}, of whom there is no recording{asked}; copy them, or remove the rows"
        problems.append(Problem(str(root / PARTICIPANTS), what))
    for file in files:
        try:
            source = open_recording(file.path, unit=options.unit)
            picked = pick(source, eeg_channels(root, file, source.info.channels))
            base = _trial(root, file, picked, options, people.get(file.subject, {}))
            if options.trials == "recordings":
                trials.append(base)
                continue
            events, bad = _events(root, file, base, picked.info.channels, options)
        except RtbrainError as error:
            problems.append(Problem(str(file.path), str(error)))
            continue
        trials += events
        problems += bad
    return Found(tuple(trials), tuple(problems))


def check_labels(root: Path, found: Found, config: DatasetConfig) -> Found:
    """Report the tasks whose label is in no table; refuse the set if none has one."""
    if not found.trials:
        return found
    fields = sorted({name for trial in found.trials for name in trial.fields})
    missing = {name: task.label for name, task in config.tasks.items() if task.label not in fields}
    table = root / PARTICIPANTS
    where = str(table) if table.is_file() else str(root)
    columns = read_table(table).columns if table.is_file() else ()
    usable = f"what has entries is {', '.join(fields) or 'nothing'}"
    said = [
        f"task {name!r}: column {label!r} of participants.tsv, its label, has no entry; {usable}: fill it in, or name "
        "another one as the task's `label`"
        if label in columns
        else f"task {name!r}: there is no column {label!r} for its label, neither in participants.tsv nor in "
        f"events.tsv; {usable}: add it, or name another one as the task's `label`"
        for name, label in missing.items()
    ]
    if len(missing) == len(config.tasks):
        raise SourceError(f"{where}: {'; '.join(said)}")
    return replace(found, problems=found.problems + tuple(Problem(where, text) for text in said))


def _participants(root: Path) -> dict[str, dict[str, Value]]:
    path = root / PARTICIPANTS
    if not path.is_file():
        return {}
    table = read_table(path)
    table.need("participant_id")
    people: dict[str, dict[str, Value]] = {}
    for row in table.rows:
        subject = row["participant_id"]
        subject = subject if subject.startswith("sub-") else f"sub-{subject}"
        if subject in people:
            raise SourceError(f"{path}: {subject} is listed twice; remove one of the rows")
        people[subject] = values_of(row, ("participant_id",))
    return people


def _trial(root: Path, file: BidsFile, source: SeekableSource, options: BidsOptions, person: dict[str, Value]) -> Trial:
    entities = {name: text for name, text in file.entities.items() if name != "sub"}
    collision = sorted(set(entities) & set(person))
    if collision:
        raise SourceError(f"participants.tsv has a column {collision[0]!r}, which is in file names too; rename it")
    fields: dict[str, Value] = {**person, **entities}
    shown = fields.get(options.stimulus) if options.stimulus else None
    return Trial(
        subject=file.subject,
        name=file.stem,
        files=file.all_files,
        length_s=source.duration_s,
        open=partial(_open, file.path, options.unit, source.info.channels, None),
        fields=fields,
        stimulus=None if shown is None else str(shown),
        facts={
            "rate_hz": source.info.rate_hz,
            "n_channels": float(len(source.info.channels)),
            **file_facts(root, file),
        },
    )


def _open(path: Path, unit: str | None, channels: tuple[str, ...], interval: tuple[float, float] | None) -> Source:
    """Open channels of a recording, and of an interval (start, length in seconds) only."""
    source = pick(open_recording(path, unit=unit), channels)
    return source if interval is None else excerpt(source, *interval)


def _events(
    root: Path, file: BidsFile, base: Trial, channels: tuple[str, ...], options: BidsOptions
) -> tuple[list[Trial], list[Problem]]:
    path = sidecar(root, file, "events.tsv")
    if path is None:
        raise SourceError(f"there is no {file.stem}_events.tsv; add it, or set `trials: recordings` in the options")
    table = read_table(path)
    table.need("onset", "duration", *options.event, *([options.stimulus] if options.stimulus else []))
    trials, problems = [], []
    chosen = [row for row in table.rows if all(value_of(row[name]) == want for name, want in options.event.items())]
    if not chosen:
        asked = ", ".join(f"{name} = {want}" for name, want in options.event.items()) or "any value"
        raise SourceError(f"{path}: no event has {asked}; correct `event` in the options")
    for number, row in enumerate(chosen, 1):
        try:
            interval = _interval(row, base.length_s, options)
            fields = _joined(base, row, table)
        except SourceError as error:
            problems.append(Problem(f"{path}, event {number}", str(error)))
            continue
        trials.append(
            Trial(
                subject=base.subject,
                name=f"{base.name}_trial-{number:02d}",
                files=base.files,
                length_s=interval[1],
                open=partial(_open, file.path, options.unit, channels, interval),
                fields=fields,
                stimulus=_shown(row, options) or base.stimulus,
                facts=base.facts,
            )
        )
    return trials, problems


def _interval(row: dict[str, str], length_s: float, options: BidsOptions) -> tuple[float, float]:
    onset, duration = value_of(row["onset"]), options.duration_s or value_of(row["duration"])
    if not isinstance(onset, float) or not isinstance(duration, float | int):
        raise SourceError(
            f"onset is {row['onset']!r} and duration {row['duration']!r}; both must be seconds "
            "(or state `duration_s` in the options)"
        )
    start, stop = onset + options.offset_s, onset + duration
    if start < 0 or stop <= start or stop > length_s + END_TOLERANCE_S:
        raise SourceError(f"lasts from {start:g} to {stop:g} s, the recording from 0 to {length_s:g} s; correct it")
    return start, min(stop, length_s) - start


def _shown(row: dict[str, str], options: BidsOptions) -> str | None:
    """Return the stimulus as it is written; None where nothing was entered."""
    written = row[options.stimulus] if options.stimulus else "n/a"
    return None if value_of(written) is None else written


def _joined(base: Trial, row: dict[str, str], table: Table) -> dict[str, Value]:
    said = values_of(row, ("onset", "duration", "sample"))
    for name in sorted(set(said) & set(base.fields)):
        if said[name] != base.fields[name]:
            raise SourceError(
                f"{name} is {said[name]!r} in {table.path.name} but {base.fields[name]!r} in participants.tsv or the "
                "file's name; correct or rename one"
            )
    return {**base.fields, **said}
