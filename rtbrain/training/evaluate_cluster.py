"""Folds on a Dask cluster: workers read the recordings and fit, their answers come back and are kept here.

Workers need the same rtbrain and the recordings under the same paths, as on a shared disk. They need not see the
folder of the evaluation: what they measure on the way goes to their own scratch folder if they do not.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from threading import Lock
from typing import Any

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.corpus_cache import text_hash
from rtbrain.training.evaluate_fold import FoldJob, fold_answers
from rtbrain.training.evaluate_store import Answers, Slot, save_answers

CONNECT_S = 10
WORKERS_S = 30
"""How long to wait for the scheduler, and for its first worker."""

_PACKAGES = ("numpy", "scipy", "mne", "scikit-learn", "torch")
"""That decide answers, besides rtbrain itself."""

_one_at_a_time = Lock()
"""Of a worker with several threads: a process has one random generator of torch, and folds would mix their draws."""


def run_on_cluster(jobs: Sequence[FoldJob], address: str) -> Iterator[int]:
    """Run folds on the workers of a scheduler; yield the number of answers of each that is done.

    Raises
    ------
    ConfigError
        No scheduler is there, it has no worker, or a worker has another program.
    SourceError
        A worker cannot read the recordings.
    """
    from distributed import KilledWorker, as_completed

    with _connected(address) as client:
        _check_workers(client, _files(*jobs))
        futures = client.map(partial(_run, installed()), jobs, pure=False, retries=0)
        try:
            for future in as_completed(futures, loop=client.loop):
                done = future.result()
                for slot, answers in done:
                    save_answers(slot, answers)
                yield len(done)
        except KilledWorker as error:
            raise SourceError(
                f"a fold ended its worker again and again ({error}); workers may have too little memory: see their "
                "logs, give each more, and run this again: what is done is kept"
            ) from error
        finally:
            client.cancel(futures)


@cache
def installed() -> dict[str, str]:
    """Return what tells the program of this machine from another's: all of its text, and the packages it rests on."""
    return {"rtbrain": text_hash(("",)), **{name: metadata.version(name) for name in _PACKAGES}}


def _run(expected: Mapping[str, str], job: FoldJob) -> list[tuple[Slot, Answers]]:
    """Run a fold, on a worker; one that came late has not been looked at before."""
    from distributed import get_worker
    from threadpoolctl import threadpool_limits

    worker = get_worker()
    _refuse({worker.address: trouble(_files(job), expected)})
    if not job.cache.folder.parent.is_dir():  # the evaluation's folder is on another machine
        own = Path(worker.local_directory)
        job = replace(job, cache=replace(job.cache, folder=own / "cache"), scratch=own / job.scratch.name)
    with _one_at_a_time, threadpool_limits(1):
        return list(fold_answers(job))


def trouble(files: Sequence[str], expected: Mapping[str, str]) -> tuple[str, str] | None:
    """Return why this machine cannot work on these files, as (kind, text); None if it can."""
    own = installed()
    differing = sorted(name for name in expected if own.get(name) != expected[name])
    if differing:
        return "program", f"it has another version of {', '.join(differing)}"
    missing = [path for path in files if not Path(path).is_file()]
    if missing:
        return "files", f"it cannot see {missing[0]}{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}"
    return None


def _check_workers(client: Any, files: Sequence[str]) -> None:
    try:
        found = client.run(trouble, files, installed())
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"a worker of the cluster lacks {error.name}; install the same rtbrain[train] on all machines"
        ) from error
    _refuse(found)


def _refuse(found: Mapping[str, tuple[str, str] | None]) -> None:
    for address, fault in sorted(found.items()):
        if fault is None:
            continue
        if fault[0] == "program":
            raise ConfigError(f"worker {address}: {fault[1]}; install the same rtbrain and packages on all machines")
        raise SourceError(
            f"worker {address}: {fault[1]}; all workers must have the recordings under the same path, as on a shared "
            "disk; mount it there, or give --root a path that all know"
        )


def _files(*jobs: FoldJob) -> list[str]:
    return sorted({str(path) for job in jobs for trial in job.trials for path in trial.files})


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    from distributed import Client

    if "://" not in address:  # the client would look for it for long, and complain once more when it is forgotten
        raise ConfigError(f"{address} is no address of a Dask scheduler; give one such as tcp://10.0.0.5:8786")
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no Dask scheduler answers at {address} ({error}); start one by `dask scheduler`, and on each machine "
            f"workers by `dask worker {address} --nthreads 1`"
        ) from error
    try:
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError as error:
            raise ConfigError(
                f"the scheduler at {address} has no worker; start some by `dask worker {address} --nthreads 1`"
            ) from error
        yield client
    finally:
        client.close()
