"""What the page says: where it stands, what is decided, and the last minute against the training data."""

from collections.abc import Iterator

import pytest

from rtbrain.dashboard.feed import Feed
from rtbrain.dashboard.view import condition, facts, minute, present
from rtbrain.sinks.zmq_sub import Subscriber
from tests.unit.dashboard.messages import Telling
from tests.unit.sinks.examples import TRAINING

NOWHERE = "tcp://127.0.0.1:1"


@pytest.fixture
def feed() -> Iterator[Feed]:
    with Subscriber(NOWHERE) as subscriber:
        yield Feed(subscriber)


def test_it_is_said_what_is_waited_for_and_since_when_nothing_comes(feed: Feed) -> None:
    telling = Telling()

    def said(now_s: float) -> tuple[str, str, float | None]:
        found = condition(feed, NOWHERE, now_s)
        return found["condition"], found["headline"], found["since_s"]

    assert said(0.0) == ("waiting", "Waiting for the decoder", None)
    assert NOWHERE in condition(feed, NOWHERE, 0.0)["detail"]
    feed.take(telling.status(state="waiting"), 1.0)
    assert said(1.0) == ("waiting", "Waiting for the EEG stream", None)
    feed.take(telling.status(), 2.0)
    assert said(2.0) == ("waiting", "Waiting for the first decision", None)
    feed.take(telling.state(3.0), 3.0)
    assert said(3.0) == ("live", "", None)
    feed.take(telling.status(state="stalled", silent_s=2.5, trouble="no sample"), 10.0)
    assert said(10.0) == ("stalled", "EEG stalled", 7.5)
    feed.take(telling.status(state="lost", silent_s=20.0), 30.0)
    assert said(30.0) == ("lost", "EEG connection lost", 10.0)
    feed.take(telling.status(state="recovered"), 31.0)
    assert said(31.0) == ("waiting", "Waiting for the next decision", 3.0)  # the filters settle: the last one is old
    feed.take(telling.state(31.5), 31.5)
    assert said(31.5) == ("live", "", None)
    feed.take(telling.status(trouble="stopped"), 32.0)
    assert said(40.0) == ("silent", "No word from the decoder", 32.0)
    assert condition(feed, NOWHERE, 40.0)["detail"] == "its last word: stopped"


def test_the_decision_is_that_of_the_message(feed: Feed) -> None:
    telling = Telling()
    feed.take(telling.meta(), 0.0)
    message = telling.state(1.0, 0.2, trusted=True, reasons=())
    feed.take(message, 1.0)
    feed.take(telling.token(1.0, state=1), 1.0)
    shown = present(feed, NOWHERE, 1.0)
    assert shown["decision"]["confidence"] == pytest.approx(0.8)
    assert all(shown["decision"][name] == message[name] for name in ("seq", "label", "probabilities", "trusted", "age"))
    assert shown["active"] == {"broad": 1}


def test_facts_hold_maps_training_and_electrodes_also_missing_ones(feed: Feed) -> None:
    telling = Telling()
    assert facts(feed) is None
    feed.take(telling.status(bad_channels=("Oz", "Pz")), 0.0)
    feed.take(telling.meta(channels=("Fz", "Cz", "Pz", "C3", "ECG"), bands=()), 0.0)
    found = facts(feed)
    assert found is not None
    assert {each["name"] for each in found["electrodes"]} == {"Fz", "Cz", "Pz", "C3", "Oz"}
    assert found["unplaced"] == ["ECG"]
    feed.take(telling.meta(), 0.0)
    (band,) = facts(feed)["bands"]
    assert band["training"]["coverage"] == list(TRAINING.coverage)
    assert [each["image"] for each in band["states"]] == ["", ""]  # three electrodes make no field


def test_the_last_minute_is_counted_and_earlier_tokens_are_not(feed: Feed) -> None:
    telling = Telling()
    assert minute(feed) is None
    feed.take(telling.meta(), 0.0)
    for i in range(100):
        feed.take(telling.token(float(i), state=0, start_s=float(i), duration_s=1.0), float(i))
    at_s = 200.0
    for state, duration_s in ((0, 0.1), (1, 0.3), (0, 0.2), (None, 0.5), (1, 0.2)):
        feed.take(telling.token(at_s, state=state, start_s=at_s, duration_s=duration_s), at_s)
        at_s += duration_s
    feed.take(telling.status(bad_channels=("Pz",)), at_s)
    feed.take(telling.status(bad_channels=()), at_s)
    found = minute(feed)
    assert found is not None
    band = found["bands"]["broad"]
    assert band["tokens"] == 5
    assert band["coverage"] == pytest.approx([0.3 / 0.8, 0.5 / 0.8], abs=1e-3)
    assert band["duration_s"] == pytest.approx([0.15, 0.25], abs=1e-3)
    assert band["transitions"] == [[0.0, 1.0], [1.0, 0.0]]  # none across what has no state
    assert found["bad"] == {"Pz": 0.5}
