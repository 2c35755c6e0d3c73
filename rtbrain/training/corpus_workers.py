"""The work on a corpus: trials tokenized one after the other, or by several processes at a time."""

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

from rtbrain.errors import RtbrainError, SourceError
from rtbrain.microstates.templates import Templates
from rtbrain.sources.chunking import Source
from rtbrain.tokenizing import Tokenized, tokenize
from rtbrain.training.corpus_cache import save_entry
from rtbrain.training.datasets.identical import content_hash

_POLL_S = 0.2
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_log = logging.getLogger(__name__)

Report = Callable[[float], None]
"""Called with the seconds of EEG that are done."""

_own: dict[str, Any] = {}
"""What a worker process got when it started: the templates, and the seconds done of every recording (shared memory)."""


@dataclass(frozen=True)
class FileVersion:
    """A file's content, and what the system says of it: to notice that it changes while it is being read."""

    path: Path
    sha256: str
    status: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> "FileVersion":
        """Read a file as it is now."""
        status = _status(path)
        return cls(path, content_hash(path), status)

    def check(self) -> None:
        """Refuse a file that is not the same any more."""
        if _status(self.path) != self.status:
            raise SourceError(f"{self.path} was changed while it was read; wait until it is complete, then run again")


def _status(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True)
class Job:
    """One trial to tokenize, as plain data that another process can be sent."""

    name: str
    open: Callable[[], Source] = field(repr=False)
    entry: Path
    key: str
    files: tuple[FileVersion, ...]
    length_s: float


Tokenizer = Callable[[Job], Tokenized]
"""Gives the tokens of a trial."""


def run_jobs(
    jobs: Iterable[Job], templates: Templates, report: Report, tokenizer: Tokenizer | None = None
) -> dict[str, str]:
    """Tokenize trials and write their entries; return what went wrong by trial, as the others go on."""
    failures: dict[str, str] = {}
    before_s = 0.0
    for job in jobs:

        def report_share(share: float, before_s: float = before_s, length_s: float = job.length_s) -> None:
            report(before_s + share * length_s)

        try:
            result = tokenize(job.open(), templates, progress=report_share) if tokenizer is None else tokenizer(job)
            for file in job.files:
                file.check()
            save_entry(job.entry, job.key, result)
        except RtbrainError as error:
            failures[job.name] = str(error)
        except Exception as error:  # a reader may fail in any way; that is no reason to lose the other trials
            _log.exception("trial %r", job.name)
            failures[job.name] = f"{type(error).__name__}: {error}"
        before_s += job.length_s
        report(before_s)
    return failures


def run_parallel(recordings: list[list[Job]], templates: Templates, workers: int, report: Report) -> dict[str, str]:
    """Do the jobs of each recording in one of so many processes; return the failures by trial.

    New processes, not forks: a fork would copy the locks of whatever threads run here.
    """
    context = get_context("spawn")
    done_s = context.RawArray("d", len(recordings))  # each slot has one writer, so no lock is needed
    pool = ProcessPoolExecutor(workers, context, _start, (templates, done_s))
    failures: dict[str, str] = {}
    try:
        with _one_thread_each(), _deaf_to_interrupts():
            pending = {pool.submit(_recording, slot, jobs) for slot, jobs in enumerate(recordings)}
        while pending:
            finished, pending = wait(pending, _POLL_S, FIRST_COMPLETED)
            for future in finished:
                failures |= future.result()
            report(sum(done_s))
    except BrokenProcessPool as error:
        raise worker_ended("trials", workers) from error
    finally:
        pool.shutdown(cancel_futures=True)
    return failures


def worker_ended(kept: str, workers: int) -> RtbrainError:
    """Return what is said where one of so many processes is gone; what is kept lies on disk."""
    return RtbrainError(
        f"a worker process was ended from outside, perhaps for want of memory; finished {kept} are kept: run again, "
        f"with fewer --workers than {workers}"
    )


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started meanwhile use one thread each for linear algebra; numpy reads this on import."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started meanwhile not hear Ctrl-C, which would end them in the middle of their imports.

    A signal that is held back here reaches this process right afterwards, and those started inherit the holding back.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(templates: Templates, done_s: Any) -> None:
    # Ctrl-C reaches all processes of a terminal: the parent stops handing out work, and recordings at work are kept.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _own.update(templates=templates, done_s=done_s)


def _end_with_parent() -> None:
    """Leave no process behind, waiting for work that never comes, when the parent was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _recording(slot: int, jobs: list[Job]) -> dict[str, str]:
    failures = run_jobs(jobs, _own["templates"], partial(_own["done_s"].__setitem__, slot))
    gc.collect()  # readers leave cycles behind, and memory should not grow from one recording to the next
    return failures
