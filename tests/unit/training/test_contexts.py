"""Sessions whose state changes, and what is counted as following a change."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rtbrain.decoder.session import load_step
from rtbrain.errors import ConfigError
from rtbrain.tokens.inputs import Inputs
from rtbrain.training.contexts import _alternating, _decoded, _followed, _orders, _row, _Session, _session, _unknown_to
from rtbrain.training.trials import Trial
from tests.bundles import make_bundle


def trial(subject: str, name: str, label: int) -> Trial:
    return Trial(subject, name, (), 10.0, open=lambda: None, label=label)


def planned(name: str, trials: tuple[Trial, ...]) -> SimpleNamespace:
    content = {each.name: (f"hash of {each.name}",) for each in trials}
    chosen, config = SimpleNamespace(trials=trials), SimpleNamespace(name=name)
    return SimpleNamespace(config=config, chosen=chosen, same_person=(("a", "b"),), content=content)


def test_whoever_counts_as_one_person_with_somebody_met_is_known_though_only_the_double_has_trials():
    trials = tuple(trial(who, f"{who}-trial", label) for who, label in (("b", 0), ("c", 0), ("d", 1)))
    bundle = SimpleNamespace(name="m", provenance={"dataset": "set", "subjects": {"train": ["a"], "validation": []}})
    assert [each.subject for each in _unknown_to(bundle, planned("set", trials))] == ["c", "d"]


def test_a_recording_that_was_met_is_known_under_any_name_of_set_and_subject():
    trials = tuple(trial(who, f"{who}-trial", label) for who, label in (("x", 0), ("y", 0), ("z", 1)))
    about = {"dataset": "set", "subjects": {"train": ["a"], "validation": ["b"]}}
    hashes = {"train": ["hash of x-trial"], "validation": [], "left_out": ["hash of y-trial"]}
    bundle = SimpleNamespace(name="m", provenance=about | {"recordings": hashes})
    assert [each.subject for each in _unknown_to(bundle, planned("renamed", trials))] == ["y", "z"]
    with pytest.raises(ConfigError, match=r"m was trained on set, not renamed, .* train it anew"):
        _unknown_to(SimpleNamespace(name="m", provenance=about), planned("renamed", trials))


def test_a_long_gap_in_a_trial_begins_a_new_context_there(tmp_path: Path, rng: np.random.Generator):
    model = load_step(make_bundle(tmp_path / "b").step, "cpu")

    def piece(start_s: float) -> Inputs:
        start = start_s + np.arange(40) / 4
        return Inputs(rng.integers(1, 5, 40), rng.standard_normal((40, 3)).astype(np.float32), start, start + 0.25)

    parts = [(piece(0.0), piece(30.0)), (piece(7.0),)]
    made = _session("a", [trial("a", "t0", 0), trial("a", "t1", 1)], parts)
    assert made.edges_s == (0.0, 40.0, 50.0)
    assert made.new_contexts == {40}, "the second trial goes on in the context of the first"
    times, told = _decoded(model, made, 1000.0)
    stream = model.stream()
    for i in range(40, 80):
        stream.push(int(made.inputs.ids[i]), made.inputs.attributes[i])
        if i % 4 == 3 and i < 79:
            assert told[times == 31.0 + (i - 43) / 4] == np.argmax(stream.probabilities())


def test_classes_take_turns_and_what_would_not_change_is_left_out():
    trials = [trial("a", f"t{i}", label) for i, label in enumerate([0, 0, 0, 0, 1, 1])]
    order = _alternating(trials)
    assert [each.label for each in order] == [0, 1, 0, 1, 0]
    assert [each.name for each in order] == ["t0", "t4", "t1", "t5", "t2"]


def test_people_with_one_class_are_joined_in_pairs_that_begin_with_either():
    trials = [trial(who, who, label) for who, label in zip("abcd", (0, 0, 1, 1), strict=True)]
    rows, said = _orders(trials, {who: who for who in "abcd"})
    assert [[each.name for each in row] for row in rows] == [["a", "c"], ["d", "b"]]
    assert "different people" in said
    rows, said = _orders([trial("a", "x", 0), trial("a", "y", 1), trial("b", "z", 0)], {"a": "a", "b": "b"})
    assert [[each.name for each in row] for row in rows] == [["x", "y"]]
    assert said == "trials of one person each"


def test_a_change_is_followed_by_three_in_a_row():
    times = np.arange(11.0, 19.0)
    assert _followed(times, np.array([0, 1, 1, 0, 1, 1, 1, 1], bool), 10.0) == 5.0
    assert _followed(times, np.array([1, 1, 1, 0, 0, 0, 0, 0], bool), 10.0) == 1.0
    assert _followed(times, np.array([0, 1, 1, 0, 1, 1, 0, 1], bool), 10.0) is None
    assert _followed(times[:2], np.array([1, 1], bool), 10.0) is None


@dataclass
class Counter:
    """A stream whose answer is the more frequent of two states: its delay is half of what it holds."""

    t_max: int = 10_000
    ids: list[int] = field(default_factory=list)

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    def reset(self) -> None:
        self.ids = []

    def push(self, token_id: int, attributes: object) -> None:
        self.ids.append(token_id)

    def probabilities(self) -> np.ndarray:
        share = np.mean(np.array(self.ids) == 2)
        return np.array([1 - share, share])


class Counting:
    def stream(self) -> Counter:
        return Counter()


def session(seconds: float, labels: tuple[int, ...]) -> _Session:
    n = int(4 * seconds)
    ids = np.repeat(np.array(labels) + 1, n)
    start = np.arange(len(ids)) / 4
    edges = tuple(seconds * i for i in range(len(labels) + 1))
    return _Session("a", labels, edges, Inputs(ids, np.zeros((len(ids), 0), np.float32), start, start + 0.25))


def test_a_longer_context_follows_later():
    rows = [_row(Counting(), [session(100.0, (0, 1, 0))], context) for context in (10.0, 40.0, 80.0)]  # type: ignore[arg-type]
    delays = [row.delay_s for row in rows]
    assert all(row.at_end == 1 and row.followed == row.changes == 2 for row in rows)
    assert delays[0] is not None
    assert delays == sorted(delays)
    for row in rows:  # between half and all of the context is held, and half of that must be new
        assert row.delay_s is not None
        assert row.context_s / 4 - 2 <= row.delay_s <= row.context_s / 2 + 2
    assert rows[0].over_time > rows[-1].over_time


def test_sessions_too_short_for_an_answer_are_refused():
    with pytest.raises(ConfigError, match=r"no session of 1 gives an answer after 10 s; the longest lasts 8 s"):
        _row(Counting(), [session(4.0, (0, 1))], 10.0)  # type: ignore[arg-type]


def test_answers_are_those_of_the_step_graph_on_a_grid(tmp_path: Path, rng: np.random.Generator):
    model = load_step(make_bundle(tmp_path / "b").step, "cpu")
    ids, start = rng.integers(1, 5, 60), np.arange(60) / 4
    attributes = rng.standard_normal((60, 3)).astype(np.float32)
    inputs = Inputs(ids, attributes, start, start + 0.25)
    times, told = _decoded(model, _Session("a", (0,), (0.0, 15.0), inputs), 100.0)
    assert times.tolist() == list(range(1, 15))
    for time, answer in zip(times, told, strict=True):
        stream = model.stream()
        for i in range(int(4 * time)):
            stream.push(int(ids[i]), attributes[i])
        assert int(np.argmax(stream.probabilities())) == answer
