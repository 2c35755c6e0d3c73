"""A session log against the truth: which decisions count, how good they are, and how fast they follow."""

import json
import os
from dataclasses import replace

import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.protocol import Encoder
from rtbrain.session_score import Said, read_decisions, score, strip
from rtbrain.session_truth import Best, SessionTruth, TrueStretch, load_truth, save_truth
from rtbrain.sinks.session_check import session_files
from rtbrain.sinks.session_log import SessionLog, file_name
from tests.unit.sinks.examples import STATE, TOKEN

TRUTH = SessionTruth(
    ("rest", "task"),
    (TrueStretch(0, 20, "rest"), TrueStretch(20, 40, "task")),
    Best(accuracy=0.9, standard_error=0.01, seconds=5, chance=0.5),
)


def answers(follow_s: float, rests_s: float = 5.0) -> list[Said]:
    """One decision a second, which follows the change at 20 s after so long."""
    return [
        Said(float(at), "task" if at >= 20 + follow_s else "rest", min(rests_s, at), True, 10.0 + at)
        for at in range(1, 40)
    ]


def test_decisions_whose_context_holds_two_states_are_counted_apart():
    found = score(answers(follow_s=4), 780, TRUTH)
    assert (found.decisions, found.pure_decisions) == (39, 34)  # from 20 to 24 s the context reaches back over 20 s
    assert found.pure_accuracy == 1
    assert found.accuracy == pytest.approx(35 / 39)
    assert found.way == pytest.approx(0.5 / 0.4)
    assert [(change.at_s, change.state, change.delay_s) for change in found.changes] == [(20, "task", 4)]
    assert found.tokens_per_s == pytest.approx(780 / 39)
    assert (found.age_p50_ms, found.trusted) == (30, 1)


def test_a_change_is_followed_only_once_the_answer_stays():
    said = answers(follow_s=2)
    said[24] = replace(said[24], label="rest")  # at 25 s
    assert score(said, 0, TRUTH).changes[0].delay_s == 6
    assert score(answers(follow_s=30), 0, TRUTH).changes[0].delay_s is None


def test_the_strip_shows_both_and_the_letters_differ():
    true, told = strip(answers(follow_s=5), TRUTH, 8)
    assert true == "RRRRTTTT"
    assert told == "RRRRRTTT"
    alike = SessionTruth(("negative", "neutral"), (TrueStretch(0, 10, "neutral"),))
    assert strip([Said(20, "negative", 1, True, None)], alike, 2) == ("BB", "..")


@pytest.mark.parametrize("newest", ["rest", "task"])
def test_the_newest_run_of_a_log_counts(tmp_path, newest):
    begun_s = {"rest": 1.0, "task": 30.0}
    for run, (label, signal_s) in enumerate(begun_s.items()):
        encoder, name = Encoder(), f"20240229T120000-{run:08x}"  # both began in one second
        with SessionLog(tmp_path / name) as log:
            log.write(encoder.frame(TOKEN, 0.0))
            log.write(encoder.frame(replace(STATE, label=label, signal_s=signal_s), 1.0))
        (path,) = session_files(tmp_path / name)
        moved = path.rename(tmp_path / file_name(name, 0))
        written_s = 3 if label == newest else 2
        os.utime(moved, (written_s, written_s))
    (said,), tokens = read_decisions(tmp_path, from_s=2.0)
    assert tokens == 1
    assert said.age_ms == pytest.approx(50)
    assert said.rests_s == 2.0
    assert (said.label, said.at_s) == (newest, begun_s[newest] + 2.0)


def test_nothing_to_score_is_said(tmp_path):
    with pytest.raises(SourceError, match="no decision falls into"):
        score([Said(100.0, "rest", 5, True, None)], 0, TRUTH)
    with SessionLog(tmp_path) as log:
        log.write(Encoder().frame(TOKEN, 0.0))
    with pytest.raises(SourceError, match="holds no decision"):
        read_decisions(tmp_path)


def test_a_session_whose_seconds_began_anew_is_not_scored(tmp_path):
    encoder = Encoder()
    with SessionLog(tmp_path) as log:
        for signal_s in (24.9, 25.0, 1.0):
            log.write(encoder.frame(replace(STATE, signal_s=signal_s), 1.0))
    with pytest.raises(SourceError, match="came back after 25 s"):
        read_decisions(tmp_path)


def test_a_truth_of_ones_own_is_read_and_mistakes_are_named(tmp_path):
    path = tmp_path / "session.json"
    save_truth(TRUTH, path)
    assert load_truth(path) == TRUTH
    stretches = [{"start_s": 0, "stop_s": 60, "state": "rest"}, {"start_s": 60, "stop_s": 90, "state": "task"}]
    path.write_text(json.dumps({"classes": ["rest", "task"], "stretches": stretches}))
    assert load_truth(path).chance == pytest.approx(2 / 3)
    for change, message in (
        ({"classes": ["rest"]}, "'task'"),
        ({"stretches": []}, "no stretch"),
        ({"stretches": [*stretches, stretches[0]]}, "begins before"),
        ({"stretches": [{**stretches[0], "stop_s": 0.0}]}, "stop_s"),
    ):
        path.write_text(json.dumps({"classes": ["rest", "task"], "stretches": stretches} | change))
        with pytest.raises(ConfigError, match=message):
            load_truth(path)
    path.write_text("{")
    with pytest.raises(ConfigError, match="no valid JSON"):
        load_truth(path)
