"""One fold of an evaluation: fit on its people, ask once about the others, keep the answers. Runs in any process."""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rtbrain.fitting import PeakSettings
from rtbrain.messages import FloatArray
from rtbrain.microstates.fit import FitSettings
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe
from rtbrain.sources.chunking import Source
from rtbrain.tokenizing import Tokenized, tokenize, tokenize_cleaned
from rtbrain.training.band_powers import band_powers
from rtbrain.training.conditioned import conditioned
from rtbrain.training.corpus import Corpus, tokenise_corpus
from rtbrain.training.corpus_workers import Job
from rtbrain.training.evaluate_store import Answers, Slot, save_answers
from rtbrain.training.folds import Fold, audit, groups
from rtbrain.training.methods.base import HIDDEN, Example, Fitted, Method, TokenNeed, with_bands
from rtbrain.training.nuisance.probes import ExchangeError, Probe, probe_filters, probe_lines
from rtbrain.training.trial_cache import TrialCache
from rtbrain.training.trial_templates import fit_trials
from rtbrain.training.trials import Trial

PEAKS = PeakSettings(per_recording=500)
STARTS = 20
"""Of the clustering; on EEG more starts or peaks change the explained variance in the fourth digit."""


@dataclass(frozen=True)
class FoldJob:
    """All that a fold needs, as plain data that another process or machine with the same files can be sent."""

    fold: Fold
    trials: tuple[Trial, ...]
    same_person: tuple[tuple[str, ...], ...]
    recipe: Recipe
    """With its channels named."""
    n_states: int
    crop_s: float | None
    seed: int
    optimistic: bool
    """The protocol `paper`: templates of all trials, test people included."""
    seconds: tuple[float, ...]
    """Lengths of EEG after which the answer is asked for, besides all of it."""
    todo: tuple[tuple[Method, Slot], ...]
    """The methods whose answers are not there yet, and where they go."""
    cache: TrialCache
    scratch: Path
    """Folder for the fold's tokens, which go when it is done: no other fold can use them."""
    nuisance: Mapping[str, tuple[float, ...]]
    foreign: Mapping[TokenNeed, Templates] = field(default_factory=dict)
    """Templates of another data set, used instead of the fold's own."""
    probed: tuple[str, ...] = ()
    """Methods that are also asked about the test recordings with other people's filters and lines."""


def run_fold(job: FoldJob) -> int:
    """Run the methods of a fold that are still to be done, and keep their answers; return how many."""
    for slot, answers in fold_answers(job):
        save_answers(slot, answers)
    return len(job.todo)


def fold_answers(job: FoldJob) -> Iterator[tuple[Slot, Answers]]:
    """Run the methods of a fold that are still to be done; yield each one's answers, and where they go."""
    data = FoldData(job)
    try:
        for method, slot in job.todo:
            yield slot, method_answers(job, data, method)
    finally:
        shutil.rmtree(job.scratch, ignore_errors=True)


class FoldData:
    """Templates and tokens of one fold, made when they are asked for first and shared by its methods."""

    def __init__(self, job: FoldJob) -> None:
        self._job = job
        self._trials = {trial.name: trial for trial in job.trials}
        self._person = groups(job.trials, job.same_person)
        self._templates: dict[TokenNeed, Templates] = {}
        self._corpora: dict[TokenNeed, Corpus] = {}

    def templates(self, need: TokenNeed) -> Templates:
        """Return templates of the fold's training and validation trials; of all, in the protocol `paper`."""
        job = self._job
        if need in job.foreign:
            return job.foreign[need]
        if need not in self._templates:
            names = job.fold.train + job.fold.validation + (job.fold.test if job.optimistic else ())
            settings = FitSettings(need.n_states or job.n_states, n_starts=STARTS, seed=job.seed)
            recipe = with_bands(job.recipe) if need.several_bands else job.recipe
            chosen = [self._trials[name] for name in names]
            self._templates[need] = fit_trials(chosen, recipe, settings, peak_settings=PEAKS, read=self.peaks)
        return self._templates[need]

    def examples(self, names: Collection[str], hidden: bool = False) -> list[Example]:
        """Return trials as methods see them."""
        return [self._example(self._trials[name], hidden) for name in names]

    def _example(self, trial: Trial, hidden: bool) -> Example:
        job = self._job
        return Example(
            name=trial.name,
            person=self._person[trial.subject],
            label=HIDDEN if hidden or trial.label is None else trial.label,
            warmup_s=job.recipe.warmup_ms / 1000,
            tokens=partial(self._tokens, trial.name),
            powers=partial(job.cache.powers, trial, with_bands(job.recipe)),
            samples=partial(job.cache.samples, trial, job.recipe),
            nuisance=job.nuisance.get(trial.name, ()),
        )

    def example_of(self, source: Source) -> Example:
        """Return a recording that is no trial as methods see it."""
        job = self._job
        return Example(
            name="altered",
            person="",
            label=HIDDEN,
            warmup_s=job.recipe.warmup_ms / 1000,
            tokens=lambda need: tokenize(source, self.templates(need)),
            powers=lambda: band_powers(source, with_bands(job.recipe)),
            samples=lambda: conditioned(source, job.recipe),
        )

    def peaks(self, name: str, source: Source, recipe: Recipe, band: int) -> FloatArray:
        """Return the peaks of a trial, from the cache if they are there."""
        return self._job.cache.peaks(self._trials[name], recipe, band)

    def _tokens(self, name: str, need: TokenNeed) -> Tokenized:
        if need not in self._corpora:
            trials = [self._trials[each] for each in self._in_fold()]
            # Foreign templates are the same in all folds, which then share their tokens.
            kept = self._job.cache.folder / "foreign" if need in self._job.foreign else self._job.scratch
            templates = self.templates(need)
            recipe = Recipe.from_dict(templates.recipe)

            def tokenizer(job: Job) -> Tokenized:
                cache = self._job.cache
                cache.check(job.name, tuple(file.sha256 for file in job.files))
                cleaned = cache.cleaned(self._trials[job.name], recipe)
                return tokenize(job.open(), templates) if cleaned is None else tokenize_cleaned(cleaned, templates)

            self._corpora[need] = tokenise_corpus(trials, templates, kept, workers=1, tokenizer=tokenizer)
        return self._corpora[need][name]

    def _in_fold(self) -> tuple[str, ...]:
        fold = self._job.fold
        return fold.train + fold.validation + fold.test


def method_answers(job: FoldJob, data: FoldData, method: Method) -> Answers:
    """Fit a method on a fold and ask it about the test people; refuse what rests on them."""
    fold, fitted_on = job.fold, dict[str, Sequence[str]]()
    for need in set(method.needs) - set(job.foreign):  # of foreign ones `rtbrain.training.transfer` has seen to it
        fitted_on[f"templates ({need.n_states or job.n_states} states)"] = data.templates(need).report["recordings"]
    if job.optimistic:
        fitted_on = {}  # that the templates know the test people is what this protocol is there to show
    check = partial(audit, fold, job.trials, job.same_person, crop_s=job.crop_s)
    check(fitted_on)
    train, validation = data.examples(fold.train), data.examples(fold.validation)
    test = data.examples(fold.test, hidden=True)
    target = test if method.adaptation == "transductive" else ()
    if job.optimistic and method.stops_early:
        fitted = method.fit(train + validation, data.examples(fold.test), job.seed, target)
    else:
        fitted = method.fit(train, validation, job.seed, target)
        check({**fitted_on, **fitted.fitted_on})
    told = {"all": fitted.probabilities(test).tolist()}
    told |= {f"{seconds:g}": fitted.probabilities(test, seconds).tolist() for seconds in job.seconds}
    probes, not_probed = _probes(job, data, fitted) if method.name in job.probed else ((), {})
    return Answers(
        method=method.name,
        seed=job.seed,
        fold=fold.name,
        optimistic=job.optimistic,
        trials=fold.test,
        people=tuple(example.person for example in test),
        labels=tuple(example.label for example in data.examples(fold.test)),
        probabilities=told,
        facts=dict(fitted.facts),
        attention=fitted.attention(test[0]),
        probes=probes,
        not_probed=not_probed,
    )


def _probes(job: FoldJob, data: FoldData, fitted: Fitted) -> tuple[tuple[Probe, ...], dict[str, str]]:
    """Ask about the test recordings with filters and lines of training people, or say why there are none to take."""
    trials = {trial.name: trial for trial in job.trials}
    tests, training = ([trials[name] for name in side] for side in (job.fold.test, job.fold.train))

    def decide(sources: Sequence[Source]) -> list[int]:
        told = fitted.probabilities([data.example_of(source) for source in sources])
        return [int(k) for k in told.argmax(axis=1)]

    found, lacking = list[Probe](), dict[str, str]()
    for kind, probe in (("filters", probe_filters), ("lines", probe_lines)):
        try:
            made = probe(decide, tests, training)
        except ExchangeError as error:
            lacking[kind] = str(error)
        else:
            found += made if isinstance(made, list) else [made]
    return tuple(found), lacking
