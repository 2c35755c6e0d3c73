"""Folds one after the other, in several processes of this machine, or on a Dask cluster.

Each fold is worked on by one thread, wherever it runs: sums over several come out differently in their last bits, and
a run that goes on with another number of workers must give the same.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool

from rtbrain.training.corpus_workers import worker_ended
from rtbrain.training.evaluate_cluster import run_on_cluster
from rtbrain.training.evaluate_fold import FoldJob, run_fold


def run_folds(jobs: Sequence[FoldJob], workers: int = 1, cluster: str | None = None) -> Iterator[int]:
    """Run folds and keep their answers; yield the number of answers of each that is done."""
    if cluster is not None and jobs:
        yield from run_on_cluster(jobs, cluster)
        return
    if workers == 1 or len(jobs) < 2:
        yield from map(_run_here, jobs)
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor

    try:
        with parallel_config(backend="loky", n_jobs=min(workers, len(jobs)), inner_max_num_threads=1):
            yield from Parallel(return_as="generator_unordered")(delayed(run_fold)(job) for job in jobs)
    except BrokenProcessPool as error:
        raise worker_ended("answers", workers) from error
    finally:
        get_reusable_executor().shutdown(wait=True)  # its processes would wait for more work for minutes


def _run_here(job: FoldJob) -> int:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return run_fold(job)
