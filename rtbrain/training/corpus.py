"""All trials of a data set as tokens, made by the live chain and kept in a cache.

An entry's key covers the content of the recording's files, the interval, recipe, templates and the program itself, so
that a change of any of them makes new tokens. Content is hashed anew on every call: size and times of a file can stay
the same while its samples change. Finished trials are kept whatever happens to the others.
"""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from time import time

from rtbrain.errors import ConfigError, SourceError
from rtbrain.microstates.templates import Templates
from rtbrain.progress import Progress
from rtbrain.tokenizing import Tokenized
from rtbrain.training.corpus_cache import keys_for, load_entry
from rtbrain.training.corpus_workers import FileVersion, Job, Tokenizer, run_jobs, run_parallel
from rtbrain.training.trials import Trial

_STALE_S = 60.0
"""An entry is written within seconds: temporary files older than this are those of a run that was killed."""


@dataclass(frozen=True)
class Corpus:
    """The tokens of trials by name; each is read from its file when it is asked for."""

    entries: dict[str, tuple[Path, str]]
    """File and key of each trial."""
    made: tuple[str, ...] = ()
    """Trials that were tokenized by this call; the others were in the cache."""
    notices: tuple[str, ...] = ()
    """What was wrong with the cache and has been put right."""

    @property
    def n_other_versions(self) -> int:
        """How many entries of these trials the cache holds besides, made by other templates, recipes or programs."""
        own = {path for path, _ in self.entries.values()}
        names = {_name_of(path) for path in own}
        beside = {path for folder in {path.parent for path in own} for path in folder.glob("[!.]*.npz")}
        return sum(_name_of(path) in names for path in beside - own)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> Tokenized:
        if name not in self.entries:
            raise ConfigError(
                f"the corpus has no trial {name!r}; it has {len(self)}, such as {next(iter(self), None)!r}"
            )
        return load_entry(*self.entries[name])


def tokenise_corpus(
    trials: Sequence[Trial],
    templates: Templates,
    cache: Path,
    workers: int | None = None,
    progress: Progress | None = None,
    tokenizer: Tokenizer | None = None,
) -> Corpus:
    """Tokenize trials through the live chain, those that are not in the cache yet.

    Parameters
    ----------
    trials : sequence of Trial
        Each with a name of its own, and `open` a partial of a module's function and plain values.
    templates : Templates
        They carry the recipe.
    cache : Path
        Folder with one file per trial and version; made if need be. Several calls may share it, at the same time too.
    workers : int, optional
        Processes that work at the same time, each on one recording; as many as there are cores by default. With 1 all
        is done in this process.
    progress : callable, optional
        Called with what is being done and the share of it that is done.
    tokenizer : callable, optional
        Tokenizes in this process instead, by these templates too, where a part of the work has been done before.

    Raises
    ------
    SourceError
        Trials that cannot be tokenized, all of them in one message, after the others were done and kept.
    """
    names = [trial.name for trial in trials]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"{len(names)} trials with {len(set(names))} names; give at least one, each its own name")
    workers = _cores() if workers is None else workers
    if workers < 1:
        raise ConfigError(f"{workers} workers can do nothing; give 1 or more")
    key_of = keys_for(templates)
    cache.mkdir(parents=True, exist_ok=True)
    _clean(cache)
    versions, failures = _versions(trials, workers, progress)
    entries, jobs, notices = {}, [], []
    for trial in trials:
        if not versions.keys() >= set(trial.files):
            continue
        files = tuple(versions[path] for path in trial.files)
        key = key_of(trial, [file.sha256 for file in files])
        entry = cache / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', trial.name)[:80]}-{key[:24]}.npz"
        entries[trial.name] = entry, key
        if entry.exists():
            try:
                load_entry(entry, key)
                continue
            except SourceError as error:
                notices.append(f"trial {trial.name!r} is tokenized again: {error.__cause__}: {entry}")
        jobs.append(Job(trial.name, trial.open, entry, key, files, trial.length_s))
    failures |= _run(_by_recording(jobs), templates, workers, progress, tokenizer)
    if failures:
        listed = "".join(f"\n  {name}: {failures[name]}" for name in names if name in failures)
        raise SourceError(
            f"{len(failures)} of {len(names)} trials could not be tokenized; the others are kept in {cache}:{listed}"
        )
    return Corpus(entries, tuple(job.name for job in jobs), tuple(notices))


def _run(
    recordings: list[list[Job]],
    templates: Templates,
    workers: int,
    progress: Progress | None,
    tokenizer: Tokenizer | None,
) -> dict[str, str]:
    """Do the jobs, those of one recording one after the other; return the failures."""
    total_s = sum(job.length_s for jobs in recordings for job in jobs)
    what = f"tokens of {len(recordings)} recording{'s' if len(recordings) > 1 else ''}"

    def report(done_s: float) -> None:
        if progress is not None:
            progress(what, min(1.0, done_s / max(total_s, 1e-9)))

    workers = min(workers, len(recordings))
    if workers > 1 and tokenizer is None:
        return run_parallel(recordings, templates, workers, report)
    return run_jobs([job for jobs in recordings for job in jobs], templates, report, tokenizer)


def _by_recording(jobs: list[Job]) -> list[list[Job]]:
    """Put the jobs of one file together: some readers hold it in memory from one trial to the next."""

    def recording(job: Job) -> str:
        return str(job.files[0].path) if job.files else job.name

    return [list(group) for _, group in groupby(sorted(jobs, key=recording), recording)]


def _versions(
    trials: Sequence[Trial], workers: int, progress: Progress | None
) -> tuple[dict[Path, FileVersion], dict[str, str]]:
    """Hash all files, several at a time; return those that can be read, and the trials whose files cannot."""
    paths = list(dict.fromkeys(path for trial in trials for path in trial.files))
    versions: dict[Path, FileVersion] = {}
    unreadable: dict[Path, str] = {}
    with ThreadPoolExecutor(workers) as pool:  # hashing releases the interpreter's lock
        for number, (path, found) in enumerate(zip(paths, pool.map(_version, paths), strict=True), 1):
            if isinstance(found, FileVersion):
                versions[path] = found
            else:
                unreadable[path] = f"{path} cannot be read ({found.strerror}); put it back, or read the set anew"
            if progress is not None:
                progress(f"looking at {len(paths)} files", number / len(paths))
    return versions, {trial.name: unreadable[p] for trial in trials for p in trial.files if p in unreadable}


def _version(path: Path) -> FileVersion | OSError:
    try:
        return FileVersion.of(path)
    except OSError as error:
        return error


def _name_of(entry: Path) -> str:
    """Return an entry's file name without its key."""
    return entry.stem.rpartition("-")[0]


def _clean(cache: Path) -> None:
    """Remove what a killed run left behind under temporary names (see rtbrain.writing)."""
    for path in cache.glob(".*-*.npz"):
        try:
            if time() - path.stat().st_mtime > _STALE_S:
                path.unlink(missing_ok=True)
        except FileNotFoundError:  # another run on the same cache finished or cleaned it
            continue


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
