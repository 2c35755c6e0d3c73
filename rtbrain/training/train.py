"""From a data set to a bundle: split people, fit templates, make tokens, train, calibrate, export, pack.

What is costly is kept in a folder beside the bundle until that is done, so a run that was killed goes on where it was.
"""

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from rtbrain.decoder.bundle import Bundle, Card, check_free, load_bundle, save_bundle
from rtbrain.messages import FloatArray
from rtbrain.microstates.fit import FitSettings
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe
from rtbrain.progress import Progress
from rtbrain.sources.chunking import Source
from rtbrain.tokenizing import Tokenized
from rtbrain.training.batches import TokenSequence, sequence_of
from rtbrain.training.check_errors import left_out
from rtbrain.training.corpus import Corpus, tokenise_corpus
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import load
from rtbrain.training.evaluate import Plan, check_classes, plan
from rtbrain.training.evaluate_fold import PEAKS, STARTS
from rtbrain.training.exhibit import Exhibit, exhibit, with_scan
from rtbrain.training.export import export, fixed_window
from rtbrain.training.fit import EpochReport, Trained, temperature_of, train_model
from rtbrain.training.fit_settings import TrainSettings, settings_for
from rtbrain.training.folds import Fold, audit, groups, split
from rtbrain.training.methods.base import with_bands
from rtbrain.training.nuisance.beside import nuisance_line
from rtbrain.training.report_training import write_training_report
from rtbrain.training.run import pick_device
from rtbrain.training.task_model import context_within, task_model
from rtbrain.training.train_card import metrics_of, provenance_of, statistics_of, tokens_at_most, trust_of
from rtbrain.training.trial_cache import TrialCache
from rtbrain.training.trial_templates import fit_trials, of_subjects

_SHORTER_S = 0.1
"""A context that lacks less than this is the one that was asked for: the last token ends where it ends."""


@dataclass(frozen=True)
class TrainOrder:
    """What is to be trained, and where it goes."""

    dataset: str
    out: Path
    root: Path | None = None
    task: str | None = None
    preset: Literal["rtbrain", "paper-text", "paper-table"] = "rtbrain"
    bands: Literal["own", "several"] = "own"
    """Tokens of the recipe's own bands, or of several inside its one band."""
    n_states: int | None = None
    """Of each band; the data set's own number by default."""
    context_s: float | None = None
    epochs: int | None = None
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    adversary: Literal["none", "inductive"] = "none"
    """A transductive one needs the people that will be tested; a live model has not met them."""
    exclude: tuple[str, ...] = ()
    """Subjects that nothing may be fitted to, such as those that the bundle will be tested on."""
    licence: str | None = None
    workers: int | None = None
    report: bool = True
    """Write an HTML page beside the bundle's files."""
    work: Path | None = None
    """Folder to keep peaks and tokens in, for more runs on the same set; by default one that goes with the run."""


@dataclass(frozen=True)
class Listener:
    """Who is told how it goes."""

    say: Callable[[str], None]
    progress: Progress
    epoch: Callable[[EpochReport], None]


@dataclass(frozen=True)
class _Data:
    """The trials of a run as tokens."""

    templates: Templates
    corpus: Corpus
    train: list[TokenSequence]
    validation: list[TokenSequence]
    settings: TrainSettings


def train_bundle(order: TrainOrder, listener: Listener) -> Bundle:
    """Train a model on a data set and write its bundle.

    Raises
    ------
    SourceError
        The data are not there (the message says where they are to be had), or cannot be used.
    ConfigError
        The order asks for what the data set has not, or the bundle exists already.
    LeakError
        A person, or what was fitted before, is on two sides.
    """
    check_free(order.out)
    pick_device(order.device)  # one that is not there is refused now, not after templates and tokens were made
    config = load_dataset_config(order.dataset)
    found = load(config, order.root)
    planned = plan(config, found, (), order.task)
    check_classes(planned)
    for text in left_out(config, planned.chosen):
        listener.say(f"left out: {text}")
    fold = _fold(planned, order.exclude)
    check = partial(audit, fold, planned.chosen.trials, planned.same_person)
    crop_s = config.crop.seconds if config.crop else None
    check(crop_s=crop_s)
    beside = nuisance_line(config, found, order.root, planned.task, listener.progress)
    own = order.out.with_name(f"{order.out.name}.training")
    work = order.work or own
    data = _data(planned, fold, order, work, listener)
    fitted_on: dict[str, Sequence[str]] = {"templates": data.templates.report["recordings"]}
    check(fitted_on, crop_s)
    listener.say(_described(planned, data))
    # Sums over more threads come out differently in their last bits.
    checkpoint = own / f"{order.preset}-threads-{torch.get_num_threads()}.checkpoint"
    trained = train_model(data.train, data.validation, data.settings, order.seed, checkpoint, listener.epoch)
    check({**fitted_on, **trained.fitted_on}, crop_s)
    t_max = tokens_at_most([*data.train, *data.validation], data.settings.context_s)
    shipped = _streamed(trained, data, t_max)
    agreement = export(shipped.model, own / "graphs", t_max, order.seed)

    def results() -> Iterator[Tokenized]:
        return (data.corpus[name] for name in fold.train)

    card = Card(
        name=order.out.name,
        classes=tuple(rule.name for rule in config.tasks[planned.task].classes),
        context_s=data.settings.context_s,
        temperature=shipped.temperature,
        trust=trust_of(results(), data.settings.context_s, planned.recipe.channels.min_coverage),
        rates_hz=tuple(sorted({result.info.rate_hz for result in results()})),
        licence=order.licence or f"that of the training data: {config.obtain.strip() or 'unknown'}",
        provenance=provenance_of(planned, fold, order.seed, order.preset, data.settings, trained),
        metrics=metrics_of(shipped, data.validation, beside, agreement),
        statistics=statistics_of(results()),
    )
    made = own / "bundle"
    shutil.rmtree(made, ignore_errors=True)  # of a run that was killed
    bundle = save_bundle(made, card, data.templates, own / "graphs")
    if order.report:
        write_training_report(bundle, shipped, data.validation, _exhibit(planned, fold, order, data, work))
    check_free(order.out)
    if order.out.exists():
        order.out.rmdir()  # it is empty
    made.rename(order.out)
    shutil.rmtree(own, ignore_errors=True)
    return load_bundle(order.out)


def _fold(planned: Plan, exclude: tuple[str, ...]) -> Fold:
    """Return who trains and validates; those left out stand on the test side, so that the audit guards them."""
    trials = planned.chosen.trials
    used = of_subjects(trials, but=exclude) if exclude else list(trials)
    fold = split(used, planned.config.protocol, planned.same_person)
    return replace(fold, test=tuple(trial.name for trial in trials if trial.subject in exclude))


def _data(planned: Plan, fold: Fold, order: TrainOrder, work: Path, listener: Listener) -> _Data:
    """Fit templates to the training people alone, and make tokens of all trials that are used."""
    trials = {trial.name: trial for trial in planned.chosen.trials}
    recipe = with_bands(planned.recipe) if order.bands == "several" else planned.recipe
    cache = TrialCache(work / "cache", planned.content)
    done = itertools.count(1)

    def read(name: str, source: Source, own: Recipe, band: int) -> FloatArray:
        peaks = cache.peaks(trials[name], own, band)
        listener.progress(f"peaks of {len(fold.train)} trials", next(done) / (len(fold.train) * len(own.bands)))
        return peaks

    templates = fit_trials(
        [trials[name] for name in fold.train],
        recipe,
        FitSettings(order.n_states or planned.config.n_states, n_starts=STARTS, seed=order.seed),
        peak_settings=PEAKS,
        read=read,
        progress=listener.progress,
    )
    used = [trials[name] for name in (*fold.train, *fold.validation)]
    corpus = tokenise_corpus(used, templates, work / "tokens", order.workers, listener.progress)
    config, task = planned.config, planned.config.tasks[planned.task]
    model = task_model(order.preset, [len(maps) for maps in templates.maps], len(task.classes), task.paper)
    person = groups(planned.chosen.trials, planned.same_person)
    sequences: dict[str, TokenSequence] = {}
    for name in fold.train + fold.validation:
        trial = trials[name]
        assert trial.label is not None, "the task's trials are labelled"
        sequences[name] = sequence_of(name, person[trial.subject], trial.label, corpus[name], model)
    train = [sequences[name] for name in fold.train]
    context_s = context_within(order.context_s or config.training.context_s, train)
    if shortened := _shortened(planned, order, context_s):
        listener.say(shortened)
    settings = settings_for(order.preset, model, context_s, config.training, task.paper.for_others)
    settings = replace(settings, epochs=order.epochs or settings.epochs, adversary=order.adversary, device=order.device)
    return _Data(templates, corpus, train, [sequences[name] for name in fold.validation], settings)


def _shortened(planned: Plan, order: TrainOrder, context_s: float) -> str:
    """Return in words that the context is shorter than it was asked for, and why; nothing if it is not."""
    asked_s, by = order.context_s, "--context"
    if asked_s is None:
        asked_s, by = planned.config.training.context_s, "the data set's configuration"
    if context_s > asked_s - _SHORTER_S:
        return ""
    crop, warmup_s = planned.config.crop, planned.recipe.warmup_ms / 1000
    held = f"the crop keeps {crop.seconds:g} s of each" if crop else "they are no longer"
    remedy = "lengthen `crop` in the configuration, if the trials are longer" if crop else "use longer recordings"
    return (
        f"the context is shortened to {context_s:.1f} s, not {asked_s:g} s as {by} says: half of the training trials "
        f"hold no more in one piece ({held}, and tokens begin after {warmup_s:g} s, once filters have settled); for a "
        f"longer context {remedy}"
    )


def _exhibit(planned: Plan, fold: Fold, order: TrainOrder, data: _Data, work: Path) -> Exhibit:
    """Return what the report shows of the training people's tokens."""
    trials = {trial.name: trial for trial in planned.chosen.trials}
    cache = TrialCache(work / "cache", planned.content)

    def read(name: str, _: Source, recipe: Recipe, band: int) -> FloatArray:
        return cache.peaks(trials[name], recipe, band)

    templates = with_scan(data.templates, [trials[name] for name in fold.train], read, order.seed)
    results = [(each.person, each.label, data.corpus[each.name]) for each in data.train]
    classes = [rule.name for rule in planned.config.tasks[planned.task].classes]
    about = "Fitted to the training people; statistics are theirs."
    return exhibit(order.out.name, about, templates, results, classes)


def _streamed(trained: Trained, data: _Data, t_max: int) -> Trained:
    """Return the model as it will be streamed, calibrated as that: segments become a window, and answers may change."""
    model = fixed_window(trained.model, t_max)
    return replace(trained, model=model, temperature=temperature_of(model, data.validation, data.settings.context_s))


def _described(planned: Plan, data: _Data) -> str:
    people = [len({each.person for each in side}) for side in (data.train, data.validation)]
    tokens = sum(len(piece) for each in data.train for piece in each.pieces)
    return (
        f"{planned.config.name}, task {planned.task}: {len(data.train)} trials of {people[0]} people train, "
        f"{len(data.validation)} of {people[1]} validate; {tokens} training tokens, context "
        f"{data.settings.context_s:g} s"
    )
