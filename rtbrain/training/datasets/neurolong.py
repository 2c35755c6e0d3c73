"""NeuroLong: BIDS with one event per video, and ratings in events.tsv or in beh.tsv.

Ratings are joined on the video's id. Where both tables have one and they differ, the set is refused: one of the
tables was joined wrongly, and no label of it can be trusted.
Options: those of `bids`, with defaults for this set, and `video` and `ratings`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from rtbrain.config import parse
from rtbrain.errors import SourceError
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets.bids import BidsOptions, check_labels, collect
from rtbrain.training.datasets.bids_files import entities_of
from rtbrain.training.datasets.tables import read_table, value_of
from rtbrain.training.trials import Found, Problem, Trial, Value


@dataclass(frozen=True)
class NeuroLongOptions:
    """What a configuration tells the reader."""

    task: tuple[str, ...] = ("neurolong",)
    event: dict[str, Value] = field(default_factory=lambda: {"trial_type": "video"})
    video: tuple[str, ...] = ("video_id", "stim_file")
    """Columns that may name the video; the first that a table has is used."""
    ratings: tuple[str, ...] = ("valence_rating", "stim_valence")
    """Columns that may be in either table."""
    unit: str | None = None


@dataclass(frozen=True)
class _Entry:
    value: Value
    path: Path


_Ratings = dict[tuple[Value, str], _Entry]
"""Video and column -> what was entered."""


def read(root: Path, config: DatasetConfig) -> Found:
    """Read the set below `root`."""
    options = parse(NeuroLongOptions, config.options, f"options of {config.name}")
    found = collect(root, BidsOptions(task=options.task, trials="events", event=options.event, unit=options.unit))
    ratings: dict[str, _Ratings] = {}
    trials, disagreements = [], []
    for trial in found.trials:
        if trial.subject not in ratings:
            ratings[trial.subject] = _behaviour(root / trial.subject, options)
        joined, differing = _join(trial, ratings[trial.subject], options)
        trials.append(joined)
        disagreements += differing
    problems = [*found.problems, *_unseen(trials, ratings, options)]
    if disagreements:
        listed = "".join(f"\n  {text}" for text in disagreements)
        raise SourceError(f"{root}: events.tsv and beh.tsv disagree; correct one of the two, for each of:{listed}")
    return check_labels(root, replace(found, trials=tuple(trials), problems=tuple(problems)), config)


def _join(trial: Trial, ratings: _Ratings, options: NeuroLongOptions) -> tuple[Trial, list[str]]:
    """Return the trial with the ratings of its video, and where they contradict those it has."""
    column = _first(options.video, trial.fields)
    if column is None:
        if ratings:
            raise SourceError(
                f"{trial.name}: its event names no video ({' or '.join(options.video)}), so the ratings in beh.tsv "
                "cannot be joined; add the column to events.tsv"
            )
        return trial, []
    video = trial.fields[column]
    fields, differing = dict(trial.fields), []
    for name in options.ratings:
        entry = ratings.get((video, name))
        if entry is None:
            continue
        if fields.setdefault(name, entry.value) != entry.value:
            differing.append(
                f"{trial.name}, video {_text(video)}: {name} is {_text(fields[name])} in events.tsv, "
                f"{_text(entry.value)} in {entry.path}"
            )
    return replace(trial, fields=fields, stimulus=_text(video)), differing


def _unseen(trials: Iterable[Trial], ratings: dict[str, _Ratings], options: NeuroLongOptions) -> list[Problem]:
    """Report rated videos that no event shows: their trials may be lost."""
    seen = {(trial.subject, trial.fields[name]) for trial in trials for name in options.video if name in trial.fields}
    problems = []
    for subject, entries in ratings.items():
        lost = {video: entry.path for (video, _), entry in entries.items() if (subject, video) not in seen}
        for video, path in lost.items():
            what = f"rates video {_text(video)}, which no usable event of {subject} shows; complete events.tsv"
            problems.append(Problem(str(path), what))
    return problems


def _behaviour(folder: Path, options: NeuroLongOptions) -> _Ratings:
    """Return the ratings in the beh.tsv files of one subject."""
    found: _Ratings = {}
    for path in sorted(folder.glob("**/beh/*_beh.tsv")):
        if options.task and entities_of(path).get("task") not in (None, *options.task):
            continue  # of another experiment
        table = read_table(path)
        column = _first(options.video, table.columns)
        if column is None:
            table.need(options.video[0])
            continue
        for row in table.rows:
            video = value_of(row[column])
            if video is None:
                continue
            for name in options.ratings:
                value = value_of(row.get(name, "n/a"))
                if value is None:
                    continue
                before = found.setdefault((video, name), _Entry(value, path))
                if before.value != value:
                    raise SourceError(
                        f"{path}: {name} of video {_text(video)} is {_text(value)} here and {_text(before.value)} in "
                        f"{'another row' if before.path == path else before.path}; keep the right one only"
                    )
    return found


def _first(names: Iterable[str], among: Iterable[str]) -> str | None:
    have = set(among)
    return next((name for name in names if name in have), None)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}"
