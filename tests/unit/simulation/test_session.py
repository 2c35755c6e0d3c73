"""A stranger's session: from the set's own population, not in the set, with states that change."""

from itertools import pairwise

import pytest

from rtbrain.errors import ConfigError
from rtbrain.session_truth import load_truth
from rtbrain.simulation.session import RECORDING, SESSION, SessionOrder, simulate_session
from rtbrain.simulation.writing import simulate
from rtbrain.simulation.writing_order import Order
from rtbrain.sources.recording import open_recording

ORDER = SessionOrder(stretches=4, seconds=6, context_s=5)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets") / "films"
    simulate(Order("neurolong", 2, minutes=0.1, trials=6, form="small", effect=4), folder, n_draws=40)
    return folder


def test_the_state_changes_and_all_is_said(films, tmp_path):
    truth = simulate_session(films, ORDER, tmp_path / "session", n_draws=200)
    assert truth == load_truth(tmp_path / "session" / SESSION)
    assert truth.classes == ("not positive", "positive")
    assert [each.start_s for each in truth.stretches] == [0, 6, 12, 18]
    assert all(one.state != other.state for one, other in pairwise(truth.stretches))
    for each in truth.stretches:  # ratings of -10, -5 and 0 are not positive
        assert (each.label >= 3) == (each.state == "positive")
    assert (truth.best.seconds, truth.best.chance) == (5, 0.5)
    assert 0.7 < truth.best.accuracy <= 1
    recording = open_recording(tmp_path / "session" / RECORDING)
    assert (recording.duration_s, recording.info.rate_hz, len(recording.info.channels)) == (24, 250, 32)
    assert [marker.time_s for marker in recording.markers() if "S" in marker.text][-4:] == [0, 6, 12, 18]


def test_the_same_command_gives_the_same_bytes_and_each_person_others(films, tmp_path):
    for name, person in (("a", 1), ("b", 1), ("c", 2)):
        order = SessionOrder(stretches=2, seconds=6, context_s=5, person=person)
        simulate_session(films, order, tmp_path / name, n_draws=40)
    a, b, c = ((tmp_path / name / "session.eeg").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    in_the_set = {path.read_bytes()[: len(a)] for path in films.rglob("*.eeg")}
    assert a not in in_the_set


def test_what_cannot_be_recorded_is_refused(films, tmp_path):
    with pytest.raises(ConfigError, match="no simulated set"):
        simulate_session(tmp_path, ORDER, tmp_path / "x")
    with pytest.raises(ConfigError, match="never lies within a stretch"):
        simulate_session(films, SessionOrder(seconds=5, context_s=10), tmp_path / "x")
    with pytest.raises(ConfigError, match="no task"):
        simulate_session(films, SessionOrder(task="anger"), tmp_path / "x")
    simulate(Order("mdd", 4, minutes=0.05), tmp_path / "mdd", n_draws=40)
    with pytest.raises(ConfigError, match="person's group"):
        simulate_session(tmp_path / "mdd", ORDER, tmp_path / "x")
    assert not (tmp_path / "x").exists()
