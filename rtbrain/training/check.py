"""Look through a data set: what it holds, what is wrong with it, and whether anything but brain tells its labels."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from rtbrain.errors import ConfigError, RtbrainError, SourceError
from rtbrain.progress import Progress
from rtbrain.training.check_errors import empty_classes, impossible_bands, missing_recordings
from rtbrain.training.check_report import ClassCount, DataCheck, FoldCount, Spread, TaskCheck
from rtbrain.training.dataset_config import DatasetConfig, Task, better_fitting
from rtbrain.training.datasets import choose, class_of, find_root, load
from rtbrain.training.folds import Fold, folds, groups
from rtbrain.training.folds import audit as audit_fold
from rtbrain.training.length_leak import length_only
from rtbrain.training.near_identical import Alike, near_identical
from rtbrain.training.nuisance.audit import audit_task
from rtbrain.training.nuisance.report import one_line
from rtbrain.training.nuisance.store import load_audit, save_audit
from rtbrain.training.same_names import misspelt
from rtbrain.training.trials import Found, Trial


def check_dataset(
    config: DatasetConfig,
    root: str | Path | None = None,
    task: str | None = None,
    nuisance: bool = True,
    progress: Progress = lambda what, share: None,
) -> DataCheck:
    """Look through a data set.

    Parameters
    ----------
    config : DatasetConfig
        What it is and how it is read.
    root : str or Path, optional
        Where it is; see `datasets.find_root`.
    task : str, optional
        Look at this task only; by default at all of them.
    nuisance : bool
        Whether to run the nuisance audit, which reads every trial; one that is stored and still valid is taken.
    progress : callable, optional
        Called with what is being done and its share done.

    Raises
    ------
    SourceError
        The data are not there, contradict each other, or no task can use anything of them.
    """
    names = [config.task(task)[0]] if task else list(config.tasks)
    folder = find_root(config, root)
    found = load(config, folder)
    person = groups(found.trials, found.same_person)
    tasks = [_task(config, name, found, person, folder) for name in names]
    if not any(each.classes for each in tasks):
        why = "".join(f"\n  task {each.name}: {each.refused}" for each in tasks)
        raise SourceError(f"{folder}: no trial can be used:{why}{better_fitting(config, folder)}")
    copies, unreadable = near_identical(found.trials, lambda share: progress("comparing recordings", share))
    if nuisance:
        tasks = [_with_audit(each, config, found, folder, progress) for each in tasks]
    warnings, notes = misspelt(config.same_person, person)
    one_each = {trial.files[0]: trial for trial in found.trials}
    return DataCheck(
        dataset=config.name,
        title=config.title,
        root=folder,
        subjects=len(person),
        persons=len(set(person.values())),
        persons_of_class=_persons_of_class(config, found, person),
        trials=len(found.trials),
        recordings=len(one_each),
        lengths_s=_spread(found.trials),
        rates_hz=_counted(one_each.values(), "rate_hz"),
        n_channels=_counted(one_each.values(), "n_channels"),
        same_person=found.same_person,
        near_identical=tuple(copies),
        problems=(*found.problems, *unreadable),
        warnings=(*warnings, *(_copy_warning(pair, person) for pair in copies)),
        notes=tuple(notes),
        tasks=tuple(tasks),
        missing=tuple(missing_recordings(folder, config)),
    )


def _task(config: DatasetConfig, name: str, found: Found, person: dict[str, str], root: Path) -> TaskCheck:
    task, crop_s, split = config.tasks[name], config.crop.seconds if config.crop else None, config.protocol.split
    try:
        whole, used = choose(found, task), choose(found, task, config.crop)
    except RtbrainError as error:  # nothing of this task is in the set; others may be, and can be used
        return TaskCheck(name, split, crop_s, refused=str(error), warnings=(f"cannot be used: {error}",))
    if not used.trials:
        why = f"no trial has a class and the crop's length, such as {used.problems[len(found.problems)]}"
        return TaskCheck(name, split, crop_s, refused=why, errors=(f"cannot be used: {why}",))
    classes = _classes(task, whole.trials, used.trials, person)
    errors = [*empty_classes(task, classes, found.trials), *impossible_bands(config.recipe, used.trials)]
    warnings = []
    made, refused = _folds(used, config)
    if refused is not None:
        refused += better_fitting(config, root)
        errors.append(f"cannot be split: {refused}")
    earlier, _ = _folds(whole, config)
    before = length_only(whole.trials, earlier, person) if earlier else None
    after = length_only(used.trials, made, person) if made else None
    if after is not None and after.leaks:
        warnings.append(
            f"length alone tells {100 * after.accuracy:.1f} % of the labels, always answering one class "
            f"{100 * after.majority:.1f} %: decoders will learn it; set `crop` in the configuration to seconds that "
            "all trials have"
        )
    cured = before is not None and before.leaks and not (after is not None and after.leaks)
    note = "length alone would tell the label without the crop, and does not with it"
    return TaskCheck(
        name=name,
        split=split,
        crop_s=crop_s,
        classes=classes,
        lengths_s=_spread(whole.trials),
        majority=max(count.trials for count in classes.values()) / len(used.trials),
        length_before=before,
        length_after=after,
        folds=tuple(_fold_count(fold, used.trials, task, person) for fold in made),
        refused=refused,
        problems=used.problems[len(found.problems) :],
        errors=tuple(errors),
        warnings=tuple(warnings),
        notes=(note,) if cured and after is not None else (),
    )


def _folds(found: Found, config: DatasetConfig) -> tuple[list[Fold], str | None]:
    """Return the folds, audited, or why there are none."""
    try:
        made = folds(found.trials, config.protocol, found.same_person)
    except ConfigError as error:
        return [], str(error)
    for fold in made:
        audit_fold(fold, found.trials, found.same_person)
    return made, None


def _with_audit(checked: TaskCheck, config: DatasetConfig, found: Found, root: Path, progress: Progress) -> TaskCheck:
    """Add the nuisance audit: the stored one if it is still valid, else a new one, which is stored."""
    if not checked.folds:
        return checked
    if sum(count.trials > 0 for count in checked.classes.values()) < 2:
        return replace(checked, notes=(*checked.notes, "no nuisance audit: all usable trials are of one class"))
    try:
        audit = load_audit(config, root, checked.name, found)
    except SourceError:  # stale or damaged
        audit = None
    try:
        if audit is None:
            what = f"nuisance audit of {checked.name}"
            audit = audit_task(config, found, checked.name, lambda share: progress(what, share))
            save_audit(audit, root)
    except RtbrainError as error:
        return replace(checked, audit=audit, warnings=(*checked.warnings, f"nuisance audit: {error}"))
    said = one_line(audit)
    if audit.finding == "alarm":
        return replace(checked, audit=audit, warnings=(*checked.warnings, said))
    notes = (*checked.notes, said) if audit.finding == "notice" else checked.notes
    return replace(checked, audit=audit, notes=notes)


def _classes(
    task: Task, whole: Sequence[Trial], used: Sequence[Trial], person: dict[str, str]
) -> dict[str, ClassCount]:
    counts = {}
    for label, rule in enumerate(task.classes):
        own = [trial for trial in used if trial.label == label]
        n_whole = sum(trial.label == label for trial in whole)
        counts[rule.name] = ClassCount(len(own), len({person[trial.subject] for trial in own}), n_whole - len(own))
    return counts


def _persons_of_class(config: DatasetConfig, found: Found, person: dict[str, str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for task in config.tasks.values():
        names: dict[str, set[str]] = defaultdict(set)
        for trial in (trial for trial in found.trials if task.label in trial.fields):
            label = class_of(trial.fields[task.label], task.classes)
            names[person[trial.subject]].update([] if label is None else [task.classes[label].name])
        if all(len(own) < 2 for own in names.values()):
            counts |= Counter(name for own in names.values() for name in own)
    return counts


def _fold_count(fold: Fold, trials: Sequence[Trial], task: Task, person: dict[str, str]) -> FoldCount:
    names = set(fold.test)
    tested = [trial for trial in trials if trial.name in names]
    labels = Counter(trial.label for trial in tested)
    classes = {rule.name: labels[label] for label, rule in enumerate(task.classes)}
    n_persons = len({person[trial.subject] for trial in tested})
    return FoldCount(fold.name, len(fold.train), len(fold.validation), len(fold.test), n_persons, classes)


def _copy_warning(pair: Alike, person: dict[str, str]) -> str:
    shift = f", the second begins {pair.shift_s:.2f} s later" if pair.shift_s else ""
    what = f"{pair.first} and {pair.second} are one recording (correlation {pair.correlation:.2f}{shift})"
    if len({person[subject] for subject in pair.subjects}) == 1:
        return f"{what}: remove one of them"
    return f"{what} of {' and '.join(pair.subjects)}: remove one of them, or declare both as `same_person`"


def _spread(trials: Sequence[Trial]) -> Spread:
    lengths = [trial.length_s for trial in trials]
    return Spread(min(lengths), median(lengths), max(lengths))


def _counted(trials: Iterable[Trial], fact: str) -> dict[str, int]:
    counts = Counter(float(trial.facts[fact]) for trial in trials if fact in trial.facts)
    return {f"{value:g}": counts[value] for value in sorted(counts)}
