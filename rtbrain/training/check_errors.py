"""What must be mended in a data set: recordings that training would silently do without, and what makes it fail."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.config import parse
from rtbrain.errors import RateError
from rtbrain.messages import StreamInfo
from rtbrain.pipeline import Recipe, build
from rtbrain.stage import Chain
from rtbrain.training.check_report import ClassCount
from rtbrain.training.dataset_config import ClassRule, DatasetConfig, Task
from rtbrain.training.datasets.bids import BidsOptions
from rtbrain.training.datasets.bids_files import bids_recordings, entities_of
from rtbrain.training.datasets.neurolong import NeuroLongOptions
from rtbrain.training.datasets.nssi import BLOCKS
from rtbrain.training.trials import Found, Trial

SIDECARS = ("events.tsv", "channels.tsv", "eeg.json")
"""They are written for a recording, and stay behind where it was not copied."""
_OPTIONS: dict[str, type[BidsOptions | NeuroLongOptions]] = {"bids": BidsOptions, "neurolong": NeuroLongOptions}
_ANY_CHANNELS = ("Fz", "Cz", "Pz")
_MOST = 6


def missing_recordings(root: Path, config: DatasetConfig) -> list[str]:
    """Return, for a BIDS folder, the recordings that are not there though files beside them are."""
    asked = _bids_tasks(config)
    if asked is None:
        return []
    there = [file.entities for file in bids_recordings(root) if file.path.exists()]  # a link may lead nowhere
    missing: dict[Path, list[str]] = defaultdict(list)
    for ending in SIDECARS:
        for path in sorted(root.glob(f"sub-*/**/eeg/sub-*_{ending}")):
            own = entities_of(path)
            wanted = not asked or own.get("task", asked[0]) in asked
            if wanted and not any(own.items() <= entities.items() for entities in there):
                missing[path.with_name(path.name.removesuffix(f"_{ending}"))].append(path.name)
    return [
        f"{stem}_eeg: the recording is missing (.edf, .bdf, .vhdr or .set), though {' and '.join(beside)} "
        f"{'is' if len(beside) == 1 else 'are'} there; copy it from its origin, or remove what belongs to it"
        for stem, beside in sorted(missing.items())
    ]


def left_out(config: DatasetConfig, chosen: Found) -> list[str]:
    """Return what a task does without, and why: what could not be used, and what is not there though it should be."""
    missing = missing_recordings(chosen.root, config) if chosen.root else []
    return [*map(str, chosen.problems), *missing]


def _bids_tasks(config: DatasetConfig) -> tuple[str, ...] | None:
    """Return the BIDS tasks whose recordings the set's reader reads, empty for all; None if it reads no BIDS."""
    if config.reader == "nssi":
        return tuple(BLOCKS.values())
    kind = _OPTIONS.get(config.reader)
    return None if kind is None else parse(kind, config.options, f"options of {config.name}").task


def empty_classes(task: Task, counts: Mapping[str, ClassCount], trials: Sequence[Trial]) -> list[str]:
    """Return which classes no trial belongs to, and why; `trials` are all of the set."""
    seen = sorted({str(trial.fields[task.label]) for trial in trials if task.label in trial.fields})
    values = ", ".join(seen[:_MOST]) + (" and others" if len(seen) > _MOST else "")
    said = []
    for rule in task.classes:
        if counts[rule.name].trials:
            continue
        if short := counts[rule.name].too_short:
            why = f"its {short} are shorter than the crop; shorten `crop` in the configuration"
        else:
            where = "".join(f", where {name} is {value}" for name, value in task.where.items())
            why = (
                f"none has {task.label} {_wanted(rule)}{where}, and the set's values of {task.label} are {values}; "
                "correct the task's `classes` in the configuration, or add such recordings"
            )
        said.append(f"class {rule.name!r} has no trial: {why}")
    return said


def _wanted(rule: ClassRule) -> str:
    if rule.values:
        return " or ".join(str(value) for value in rule.values)
    ends = [("above", rule.above), ("up to", rule.upto)]
    return " and ".join(f"{word} {value:g}" for word, value in ends if value is not None)


def impossible_bands(recipe: Recipe, trials: Sequence[Trial]) -> list[str]:
    """Return which of the recipe's filters the recordings' sampling rates cannot carry."""
    return list(dict.fromkeys(_impossible(recipe, trials)))


def _impossible(recipe: Recipe, trials: Sequence[Trial]) -> Iterator[str]:
    by_rate: dict[float, list[Trial]] = defaultdict(list)
    for trial in trials:
        if "rate_hz" in trial.facts:
            by_rate[float(trial.facts["rate_hz"])].append(trial)
    for rate_hz, own in sorted(by_rate.items()):
        for chain in _chains(recipe):
            try:
                chain.open(StreamInfo(rate_hz, _ANY_CHANNELS))
            except RateError as error:
                yield (
                    f"{error}, and {len(own)} of {len(trials)} trials have {rate_hz:g} Hz, such as {own[0].name}; "
                    "lower that frequency in the configuration's `recipe`, or leave these out"
                )


def _chains(recipe: Recipe) -> list[Chain]:
    """Return the parts that a recipe's chain is made of, each of which may refuse a rate by itself."""
    anywhere = replace(recipe, channels=ChannelSettings())  # only the rate is asked about
    bands = range(len(recipe.bands))
    return [build(anywhere, upto="clean"), *(build(anywhere, upto="samples", band=i, start="clean") for i in bands)]
