"""Which run and which decision of a session log is shown."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from rtbrain.protocol import Encoder
from rtbrain.session_replay import load_session
from rtbrain.session_score import read_decisions
from rtbrain.sinks.session_check import session_files
from rtbrain.sinks.session_log import SessionLog, file_name
from tests.system.test_cli import invoke, refused
from tests.unit.sinks.examples import META, STATE


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Decisions from 2.1 to 9.1234 s of signal."""
    encoder = Encoder()
    with SessionLog(tmp_path / "log") as file:
        for message in (META, *(replace(STATE, signal_s=at_s) for at_s in (2.1, 5.0, 9.1234))):
            file.write(encoder.frame(message, 0.0))
    return tmp_path / "log"


def test_beyond_the_end_there_is_no_decision_to_show(log: Path) -> None:
    for more in ((), ("--json",)):
        message = refused("session", "replay", log, "--at", 100, *more)
        assert "no decision at 100 s" in message
        assert "ends at 9.12 s; ask for a second before that" in message


@pytest.mark.parametrize(("at_s", "signal_s"), [(9.12, 9.1234), (9.13, 9.1234), (5.4, 5.0), (0, 2.1)])
def test_the_nearest_decision_is_shown(log: Path, at_s: float, signal_s: float) -> None:
    done = invoke("session", "replay", log, "--at", at_s, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["signal_s"] == signal_s


def test_replay_and_score_take_the_same_run_for_the_newest(tmp_path: Path) -> None:
    runs = {"20240229T120000-ffffffff": 2, "20240229T120000-00000000": 3, "20240228T120000-aaaaaaaa": 9}
    for name, written_s in runs.items():
        with SessionLog(tmp_path / name) as file:
            for message in (META, replace(STATE, label=name)):
                file.write(Encoder().frame(message, 0.0))
        (path,) = session_files(tmp_path / name)
        moved = path.rename(tmp_path / file_name(name, 0))
        os.utime(moved, (written_s, written_s))
    newest = "20240229T120000-00000000"  # began in the same second as the first one, and was written to later
    session = load_session(tmp_path)
    assert (session.run, [each["label"] for each in session.of("state")]) == (newest, [newest])
    assert [each.label for each in read_decisions(tmp_path)[0]] == [newest]
    assert load_session(tmp_path, "20240228T120000-aaaaaaaa").of("state")[0]["label"].endswith("aaaaaaaa")
