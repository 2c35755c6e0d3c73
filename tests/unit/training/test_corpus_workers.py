"""Processes that make a corpus may be killed: what is done is kept, and nothing lingers."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rtbrain.errors import RtbrainError
from rtbrain.microstates.templates import save
from rtbrain.tokenizing import tokenize
from rtbrain.training.corpus import tokenise_corpus
from tests.conftest import ROOT
from tests.unit.training.corpus_trials import files_of, make_templates, make_trials, same


def open_and_die(path: Path) -> object:
    """End the process, as the system does where memory runs out."""
    os._exit(9)


@pytest.mark.slow
def test_a_worker_that_is_ended_from_outside_is_an_error_and_no_hang(tmp_path):
    trials = make_trials(tmp_path / "set")
    dying = replace(trials[1], open=partial(open_and_die, trials[1].files[0]))
    with pytest.raises(RtbrainError, match=r"ended from outside.* fewer --workers than 2"):
        tokenise_corpus([trials[0], dying, trials[2]], make_templates(), tmp_path / "c", 2)


PROGRAM = """
import sys
from pathlib import Path
from rtbrain.microstates.templates import load
from rtbrain.training.corpus import tokenise_corpus
from tests.unit.training.corpus_trials import trial_of
folder = Path(sys.argv[1])
tokenise_corpus([trial_of(p, 60) for p in sorted(folder.glob("*.edf"))], load(folder / "t"), folder / "c", 2)
"""


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from tests.unit.training.test_corpus_workers import PROGRAM, workers_of

def interrupt(delay_s):
    while len(workers_of(os.getpgid(0))) < 4:  # this process, its resource tracker and two workers
        time.sleep(0.001)
    time.sleep(delay_s)
    os.killpg(os.getpgid(0), signal.SIGINT)

if __name__ == "__main__":
    threading.Thread(target=interrupt, args=(float(sys.argv[2]),), daemon=True).start()
    try:
        exec(PROGRAM)
    except KeyboardInterrupt:
        sys.exit("interrupted")
"""


def workers_of(group: int) -> list[int]:
    """Return the processes of a process group that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(after_name[2]) == group and after_name[0] != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
def test_a_killed_run_is_taken_up_where_it_was(tmp_path):
    n, cache, templates = 10, tmp_path / "c", make_templates()
    trials = make_trials(tmp_path, n, seconds=60)
    save(templates, tmp_path / "t")
    run = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, start_new_session=True)
    try:
        while not (cache.is_dir() and len(list(cache.glob("[!.]*"))) >= 2):
            assert run.poll() is None, "the run ended before it could be killed"
            time.sleep(0.002)
        run.send_signal(signal.SIGKILL)
        run.wait()
        until = time.monotonic() + 30
        while workers_of(run.pid) and time.monotonic() < until:
            time.sleep(0.02)
        assert workers_of(run.pid) == []  # its workers must not linger, waiting for work that never comes
    finally:
        for process in workers_of(run.pid):  # only where the test fails
            os.kill(process, signal.SIGKILL)
        run.wait()
    kept = files_of(cache)
    whole = {name.split("-")[0] for name in kept if not name.startswith(".")}
    assert 2 <= len(whole) < n
    corpus = tokenise_corpus(trials, templates, cache, 1)
    assert set(corpus.made) == {trial.name for trial in trials} - whole
    assert corpus.notices == ()  # nothing that was there was half written
    now = files_of(cache)
    assert all(now[name] == kept[name] for name in kept if not name.startswith("."))
    for trial in trials:
        assert same(corpus[trial.name], tokenize(trial.open(), templates))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
@pytest.mark.parametrize("delay_s", [0.0, 0.1])
def test_ctrl_c_while_workers_start_is_silent(tmp_path, delay_s):
    make_trials(tmp_path, 4, seconds=10)
    save(make_templates(), tmp_path / "t")
    (tmp_path / "program.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path, str(delay_s)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (1, "interrupted\n")
