"""`rtbrain evaluate --cluster` on a real Dask scheduler with two worker processes on this machine."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from tests.conftest import ROOT
from tests.system.test_evaluate import METHODS, lab  # noqa: F401  (a fixture)
from tests.unit.training.evaluation_cases import files_of

pytestmark = pytest.mark.slow
STARTED_S = 120


@contextmanager
def process(folder: Path, *args: object, ready: str) -> Iterator[str]:
    """Run a command of Dask until the end of the block; give what it said when it was ready."""
    command = [sys.executable, "-m", "distributed.cli." + str(args[0]), *map(str, args[1:])]
    # A scheduler leaves the place of its dashboard to whoever wants it.
    environment = {**os.environ, "DASK_DISTRIBUTED__DASHBOARD__LINK": "", "PYTHONPATH": str(ROOT)}
    run = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    lines: list[str] = []
    found = next((match for line in run.stderr if (lines.append(line) or (match := re.search(ready, line)))), None)
    assert found is not None, "".join(lines)
    rest = Thread(target=run.stderr.read)  # a full pipe would stop it
    rest.start()
    try:
        yield found.group(0)
    finally:
        run.terminate()
        try:
            run.wait(30)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
        rest.join()
        run.stderr.close()


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    options = ("--host", "127.0.0.1", "--port", 0, "--no-dashboard")
    with process(folder, "dask_scheduler", *options, ready=r"tcp://127\.0\.0\.1:\d+") as address:
        yield address


@contextmanager
def worker(folder: Path, address: str, name: str) -> Iterator[None]:
    options = ("--nthreads", 2, "--no-dashboard", "--name", name, "--no-nanny", "--local-directory", folder / name)
    with process(folder, "dask_worker", address, *options, ready="Registered to"):
        yield


def evaluate(
    lab: Path,  # noqa: F811
    out: Path,
    *more: object,
    methods: str = METHODS,
) -> subprocess.CompletedProcess[str]:
    args = ("evaluate", "--dataset", lab, "--methods", methods, "--out", out, *more)
    command = [sys.executable, "-m", "rtbrain", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)


def test_a_cluster_gives_what_this_machine_gives(lab: Path, tmp_path: Path) -> None:  # noqa: F811
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    assert evaluate(lab, alone).returncode == 0
    with scheduler(tmp_path) as address, worker(tmp_path, address, "a"), worker(tmp_path, address, "b"):
        done = evaluate(lab, spread, "--cluster", address)
        assert done.returncode == 0, done.stderr
        before = files_of(spread)
        assert evaluate(lab, spread, "--cluster", address).returncode == 0
    assert files_of(spread) == before, "no fold is run twice"
    assert before.keys() == files_of(alone).keys()
    for path in [*before, "lab-group-as-recorded-strict.json", "lab-group-as-recorded-strict.tsv"]:
        assert (spread / path).read_bytes() == (alone / path).read_bytes()


def test_networks_do_not_disturb_each_other_on_a_worker_with_two_threads(lab: Path, tmp_path: Path) -> None:  # noqa: F811
    alone, threads = tmp_path / "alone", tmp_path / "threads"
    assert evaluate(lab, alone, "--no-report", methods="cnn").returncode == 0
    with scheduler(tmp_path) as address, worker(tmp_path, address, "a"):
        done = evaluate(lab, threads, "--no-report", "--cluster", address, methods="cnn")
        assert done.returncode == 0, done.stderr
    answers = files_of(alone)
    assert len(answers) == 2
    assert answers.keys() == files_of(threads).keys()
    assert all((threads / path).read_bytes() == (alone / path).read_bytes() for path in answers)


def test_a_worker_without_the_files_is_named(lab: Path, tmp_path: Path) -> None:  # noqa: F811
    there = next((lab.parent / "bids").rglob("*.edf"))
    code = (
        "import sys; from rtbrain.training import evaluate_cluster as cluster\n"
        "with cluster._connected(sys.argv[1]) as client: cluster._check_workers(client, sys.argv[2:])"
    )
    with scheduler(tmp_path) as address, worker(tmp_path, address, "a"):
        for more, n in (([], 0), (["/nowhere/b.edf"], 1)):
            command = [sys.executable, "-c", code, address, str(there), *more]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=STARTED_S)
            assert done.returncode == n, done.stderr
    assert "it cannot see /nowhere/b.edf; all workers must have the recordings" in done.stderr
    assert "worker tcp://127.0.0.1:" in done.stderr


def test_no_scheduler(lab: Path, tmp_path: Path) -> None:  # noqa: F811
    done = evaluate(lab, tmp_path, "--cluster", "tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in done.stderr
    assert "dask worker" in done.stderr
    assert not files_of(tmp_path)
