"""The honest comparison of methods on a data set: the same folds for all, nobody on two sides of anything fitted."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rtbrain.conditioning.channels import canonical_channels
from rtbrain.errors import ConfigError, SourceError
from rtbrain.fitting import common_channels
from rtbrain.microstates.templates import Templates, fingerprint
from rtbrain.pipeline import Recipe
from rtbrain.progress import Progress
from rtbrain.training.corpus_cache import how_opened, text_hash
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets import task_trials
from rtbrain.training.datasets.identical import content_hash
from rtbrain.training.evaluate_fold import FoldJob
from rtbrain.training.evaluate_store import Answers, Slot, described, load_answers, slot_for
from rtbrain.training.evaluate_workers import run_folds
from rtbrain.training.folds import Fold, audit, folds
from rtbrain.training.methods import NUISANCE, Adaptation, Method, TokenNeed, for_task, table_mode
from rtbrain.training.nuisance.features import GROUPS, LENGTH, columns, measure
from rtbrain.training.trial_cache import TrialCache
from rtbrain.training.trials import Found

SECONDS = (10.0, 30.0, 60.0, 120.0)
"""After which answers are asked for, besides those of the whole trial."""


_PROBING = tuple(f"training/nuisance/{name}.py" for name in ("probes", "features", "filters", "lines", "spectrum"))
"""What probed answers rest on besides the program of their method: the probes, and what these measure by."""


@dataclass(frozen=True)
class Plan:
    """What is evaluated: fixed before anything is fitted."""

    config: DatasetConfig
    task: str
    chosen: Found
    """The task's trials, labelled and cropped."""
    methods: tuple[Method, ...]
    optimistic: bool
    n_seeds: int
    recipe: Recipe
    content: dict[str, tuple[str, ...]]
    foreign: Mapping[TokenNeed, Templates] = field(default_factory=dict)
    """Templates of another data set to use instead of the folds' own; see `rtbrain.training.transfer`."""
    probed: tuple[str, ...] = ()
    """Methods that are probed, with the first seed: do answers flip with other people's filters and lines?"""
    once: tuple[str, ...] = ()
    """Methods that are run with the first seed only, as they cost too much."""
    raw: bool = False
    """Whether it was asked for recordings without harmonising, in the default band."""

    @property
    def seconds(self) -> tuple[float, ...]:
        """Lengths of EEG that the shortest trial has."""
        shortest = min(trial.length_s for trial in self.chosen.trials) - self.recipe.warmup_ms / 1000
        return tuple(each for each in SECONDS if each < shortest)

    @property
    def adaptation(self) -> Adaptation:
        """How all methods of the table adapt."""
        return table_mode(self.methods)

    def folds(self) -> Iterator[tuple[int, Fold]]:
        """Yield the folds of every seed: each seed deals people out anew."""
        for seed in range(self.n_seeds):
            protocol = replace(self.config.protocol, seed=self.config.protocol.seed + seed)
            for fold in folds(self.chosen.trials, protocol, self.same_person):
                yield protocol.seed, fold

    @property
    def same_person(self) -> tuple[tuple[str, ...], ...]:
        """Who may be one person."""
        return (*self.config.same_person, *self.chosen.same_person)

    def rests_on(self, seed: int, fold: Fold) -> dict[str, Any]:
        """Return what a fold's answers rest on besides the method and the program, as plain values."""
        trials = [
            (trial.name, trial.subject, trial.label, trial.length_s, self.content[trial.name], how_opened(trial))
            for trial in sorted(self.chosen.trials, key=lambda trial: trial.name)
        ]
        return {
            "trials": trials,
            "same_person": self.same_person,
            "recipe": self.recipe.to_dict(),
            "n_states": self.config.n_states,
            "crop": asdict(self.config.crop) if self.config.crop else None,
            "optimistic": self.optimistic,
            "seconds": self.seconds,
            "seed": seed,
            "fold": asdict(fold),
            **({"foreign": self._fingerprints()} if self.foreign else {}),
        }

    @property
    def question(self) -> str:
        """What is asked, whatever the recordings and the program answer; tables of two questions share no file."""
        whole = described(self.config)
        about = [self.task, {name: value for name, value in whole.items() if name not in ("obtain", "layout", "root")}]
        asked = ([described(method) for method in self.methods], described(self.config.protocol), self.optimistic)
        often = (self.n_seeds, self.probed, self.once)
        return hashlib.sha256(json.dumps([about, asked, often], sort_keys=True).encode()).hexdigest()

    def _fingerprints(self) -> list[tuple[str, str]]:
        return sorted((repr(need), fingerprint(templates)) for need, templates in self.foreign.items())


def plan(
    config: DatasetConfig,
    found: Found,
    methods: Sequence[Method],
    task: str | None = None,
    optimistic: bool = False,
    n_seeds: int = 1,
    probed: Sequence[str] = (),
    once: Sequence[str] = (),
    raw: bool = False,
) -> Plan:
    """Fix what will be evaluated.

    Parameters
    ----------
    config : DatasetConfig
        The data set, whose recipe and protocol are used.
    found : Found
        The whole set, as `rtbrain.training.datasets.load` returns it.
    methods : sequence of Method
        See `rtbrain.training.methods.methods_named`.
    task : str, optional
        The set's first task by default.
    optimistic : bool
        The protocol `paper`, to be compared with the paper's figures and nothing else.
    n_seeds : int
        How often people are dealt out to folds, and methods fitted, anew.
    probed : sequence of str
        Methods that are also asked about test recordings with the filters and lines of others; first seed only.
    once : sequence of str
        Methods that are run with the first seed only.
    raw : bool
        Recordings without harmonising, in the default band; the same seconds are used.
    """
    if raw:
        config = replace(config, recipe=replace(config.recipe, harmonise=None, bands=Recipe().bands))
    name, chosen = task_trials(config, found, task)
    if n_seeds < 1:
        raise ConfigError(f"{n_seeds} seeds are no evaluation; give 1 or more")
    names = tuple(canonical_channels(config.recipe.channels.names))
    names = names or common_channels([(trial.name, trial.open()) for trial in chosen.trials])
    recipe = replace(config.recipe, channels=replace(config.recipe.channels, names=names))
    hashes = {path: content_hash(path) for path in {path for trial in chosen.trials for path in trial.files}}
    content = {trial.name: tuple(hashes[path] for path in trial.files) for trial in chosen.trials}
    table_mode(methods)
    own = tuple(for_task(method, config, name, optimistic) for method in methods)
    known = {method.name for method in own}
    if unknown := [each for each in (*probed, *once) if each not in known]:
        raise ConfigError(f"{', '.join(unknown)} cannot be probed or run once: it is not among the methods of the plan")
    by_stimulus = config.protocol.split == "leave-one-stimulus-out"
    if optimistic and by_stimulus and (networks := [method.name for method in own if method.stops_early]):
        raise ConfigError(
            f"the protocol paper has the test fold choose the epoch of {', '.join(networks)}, and "
            "leave-one-stimulus-out has the same people in it as in training; use --protocol strict, or a split by "
            "subject"
        )
    if probed and by_stimulus:
        raise ConfigError(
            "probes give test recordings the filters and lines of other people, and leave-one-stimulus-out has the "
            "same people on both sides; leave the probes out, or choose a split by subject"
        )
    return Plan(
        config, name, chosen, own, optimistic, n_seeds, recipe, content, probed=tuple(probed), once=tuple(once), raw=raw
    )


def check_classes(planned: Plan) -> None:
    """Refuse a task with a class that nobody has: what learns from it, or is judged by it, would not know the class."""
    present = {trial.label for trial in planned.chosen.trials}
    rules = planned.config.tasks[planned.task].classes
    lacking = [rule.name for number, rule in enumerate(rules) if number not in present]
    if lacking:
        raise SourceError(
            f"{planned.config.name}: no usable trial of task {planned.task!r} is of class {', '.join(lacking)}; "
            "`rtbrain data check` says why. Add such recordings, choose another --task, or take the class out of the "
            "task's `classes` in a configuration of yours"
        )


def evaluate(
    planned: Plan,
    found: Found,
    out: Path,
    workers: int = 1,
    progress: Progress | None = None,
    cluster: str | None = None,
) -> list[Answers]:
    """Run all folds whose answers are not in the folder yet; return all answers.

    What is done is kept, fold by fold and method by method, and never done twice: a run that was killed goes on.
    `cluster` is the address of a Dask scheduler whose workers run the folds.
    """
    slots, jobs = fold_jobs(planned, out)
    nuisance = nuisance_values(planned, found, jobs)
    jobs = [replace(job, nuisance=nuisance) for job in jobs]
    total, done = len(slots), len(slots) - sum(len(job.todo) for job in jobs)
    doing = f"{planned.config.name}, {planned.task}: {len(planned.methods)} methods, {total} answers"
    doing += f", {done} of them kept from before" if done else ""
    tell = progress or (lambda what, share: None)
    tell(doing, done / total)
    for n in run_folds(jobs, workers, cluster):
        done += n
        tell(doing, done / total)
    answers = [load_answers(slot) for slot in slots]
    missing = [slot.path for slot, each in zip(slots, answers, strict=True) if each is None]
    if missing:
        raise SourceError(f"{missing[0]} was removed while the evaluation ran; run it again")
    return [each for each in answers if each is not None]


def fold_jobs(planned: Plan, out: Path) -> tuple[list[Slot], list[FoldJob]]:
    """Return the places of all answers, and the folds of which some are missing; refuse folds that leak."""
    slots, jobs = [], []
    crop_s = planned.config.crop.seconds if planned.config.crop else None
    folder = out / "folds" / f"{planned.config.name}-{planned.task}"
    for seed, fold in planned.folds():
        audit(fold, planned.chosen.trials, planned.same_person, crop_s=crop_s)
        first = seed == planned.config.protocol.seed
        probed = planned.probed if first else ()
        own = []
        for method in planned.methods:
            if first or method.name not in planned.once:
                more: dict[str, Any] = {"probed": text_hash(_PROBING)} if method.name in probed else {}
                if method.name == NUISANCE:  # facts may stand in files beside the recordings
                    more["facts"] = {trial.name: dict(trial.facts) for trial in planned.chosen.trials}
                rests_on = planned.rests_on(seed, fold) | more
                own.append((method, slot_for(folder, method, fold.name, seed, rests_on)))
        slots += [slot for _, slot in own]
        todo = tuple((method, slot) for method, slot in own if load_answers(slot) is None)
        if todo:
            jobs.append(_job(planned, out, seed, fold, todo, probed))
    return slots, jobs


def first_fold(planned: Plan, out: Path) -> FoldJob:
    """Return the first fold of all, with nothing to do; for whoever wants to see its templates and tokens."""
    seed, fold = next(planned.folds())
    return _job(planned, out, seed, fold, (), ())


def _job(
    planned: Plan,
    out: Path,
    seed: int,
    fold: Fold,
    todo: tuple[tuple[Method, Slot], ...],
    probed: tuple[str, ...],
) -> FoldJob:
    return FoldJob(
        fold=fold,
        trials=planned.chosen.trials,
        same_person=planned.same_person,
        recipe=planned.recipe,
        n_states=planned.config.n_states,
        crop_s=planned.config.crop.seconds if planned.config.crop else None,
        seed=seed,
        optimistic=planned.optimistic,
        seconds=planned.seconds,
        todo=todo,
        cache=TrialCache(out / "cache", planned.content),
        scratch=out / "scratch" / (todo[0][1].key[:16] if todo else "shown"),
        nuisance={},
        foreign=planned.foreign,
        probed=probed,
    )


def nuisance_values(planned: Plan, found: Found, jobs: Sequence[FoldJob]) -> dict[str, tuple[float, ...]]:
    """Return each trial's nuisance in numbers, if a method still asks for it; a length that is cropped is no cue."""
    if not any(method.name == NUISANCE for job in jobs for method, _ in job.todo):
        return {}
    trials = planned.chosen.trials
    measured = measure(trials, {trial.name: trial.length_s for trial in found.trials})
    used = [group for group in GROUPS if not (group == LENGTH and planned.config.crop)]
    parts = [columns(measured, group) for group in used]
    return {trial.name: tuple(float(x) for part in parts for x in part[i]) for i, trial in enumerate(trials)}
