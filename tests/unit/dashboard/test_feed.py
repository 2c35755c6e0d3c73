"""What the page keeps of a decoder's messages: all of the last minute, means of the last hour, and no more."""

from collections.abc import Iterator

import pytest

from rtbrain.dashboard.charts import Curves, hour_curves, recent_curves, spans
from rtbrain.dashboard.feed import BIN_S, HISTORY_S, MOST_DECISIONS, MOST_TOKENS, N_BINS, RECENT_S, Decision, Feed, Kept
from rtbrain.sinks.zmq_pub import ZmqPublisher
from rtbrain.sinks.zmq_sub import Subscriber
from tests.unit.dashboard.messages import Telling

HERE = "tcp://127.0.0.1:0"


@pytest.fixture
def feed() -> Iterator[Feed]:
    with ZmqPublisher(HERE) as publisher, Subscriber(publisher.endpoint) as subscriber:
        yield Feed(subscriber)


def test_a_reader_gets_what_it_has_not_seen() -> None:
    kept: Kept[int] = Kept(3)
    assert list(kept.since(0)) == []
    for i in range(5):
        kept.add(i)
    assert list(kept.since(3)) == [3, 4]
    assert list(kept.since(0)) == [2, 3, 4]  # the first two are gone
    assert list(kept.since(5)) == []


def test_messages_come_over_the_wire_and_unreadable_ones_are_told() -> None:
    with ZmqPublisher(HERE) as publisher, Subscriber(publisher.endpoint) as subscriber:
        feed = Feed(subscriber)
        for _ in range(200):  # joining takes a moment
            publisher.send(b'status {"schema": 99, "topic": "status", "seq": 0}')
            subscriber._socket.poll(50)
            feed.receive(1.0)
            if feed.trouble:
                break
        assert "version 99" in feed.trouble
        assert feed.heard_s is None


def test_times_are_the_decoders_own_intervals_on_this_machines_clock(feed: Feed) -> None:
    telling = Telling()
    feed.take(telling.meta(), 1000.0)
    for i in range(10):
        feed.take(telling.state(50 + i / 10), 1000.2)  # ten that were taken in at once
    times = [each.at_s for each in feed.session.decisions.since(0)]
    assert times == pytest.approx([1000.2 + i / 10 for i in range(10)])
    feed.take(telling.state(7.0), 1005.0)  # a decoder that was started again, on another machine
    assert feed.session.decisions.since(10)[0].at_s == pytest.approx(1005.0)


def test_an_hour_is_kept_as_means_and_nothing_grows_beyond_it(feed: Feed) -> None:
    """More than an hour of decisions and tokens, ten of each a second."""
    telling = Telling()
    feed.take(telling.meta(), 0.0)
    state, token, status = telling.state(0.0), telling.token(0.0), telling.status()
    for i in range(40_000):
        at_s = i / 10
        feed.take(state | {"published_s": at_s, "trusted": at_s % 20 < 12}, at_s)
        feed.take(token | {"published_s": at_s, "start_s": at_s}, at_s)
        feed.take(status, at_s)
    assert len(feed.session.bad) == RECENT_S
    session = feed.session
    assert len(session.bins.since(0)) == N_BINS == HISTORY_S / BIN_S
    assert len(session.decisions.since(0)) == MOST_DECISIONS
    assert len(session.tokens.since(0)) == MOST_TOKENS
    bins = session.bins.since(0)
    assert all(each.probabilities == pytest.approx((0.7, 0.3)) for each in bins)
    # 0-5 and 5-10 s are trusted, of 10-15 s less than half is, 15-20 s is not
    assert [each.trusted for each in bins[-4:]] in [
        [True, True, False, False][i:] + [True, True, False, False][:i] for i in range(4)
    ]


def test_another_model_begins_a_new_history(feed: Feed) -> None:
    telling = Telling()
    feed.take(telling.state(1.0), 1.0)  # its meta comes a moment later
    feed.take(telling.meta(), 1.0)
    feed.take(telling.meta(), 6.0)
    assert feed.session.decisions.total == 1
    first = feed.session
    feed.take(telling.meta(bundle_sha256="f" * 64), 7.0)
    assert feed.session is not first
    assert feed.session.decisions.total == 0
    feed.take(telling.state(8.0) | {"probabilities": {"a": 0.2, "b": 0.3, "c": 0.5}, "label": "c"}, 8.0)
    feed.take(telling.state(9.0), 9.0)  # other classes, before the meta that explains them
    assert feed.session.decisions.total == 1


def test_spans_of_doubt_end_at_trust_and_at_gaps() -> None:
    times = [0.0, 0.1, 0.2, 0.3, 5.0, 5.1, 5.2]
    trusted = [False, False, True, True, False, False, True]
    rows = [Decision(at_s, (0.5, 0.5), each) for at_s, each in zip(times, trusted, strict=True)]
    assert spans(rows, 1.0) == ([0.0, 5000.0], [200.0, 5200.0])
    assert spans(rows[:2], 1.0) == ([0.0], [100.0])
    assert spans(rows[2:4], 1.0) == ([], [])


@pytest.mark.parametrize("curves", [recent_curves(), hour_curves()], ids=["minute", "hour"])
def test_curves_hold_their_span_and_break_at_gaps(curves: Curves) -> None:
    curves.begin(2)
    step_s, span_s = (0.1, 60.0) if curves.figure.name == "recent" else (5.0, 3600.0)
    for i in range(2000):
        curves.add([Decision(i * step_s, (0.25, 0.75), True)], i * step_s)
    assert len(curves.source.data["at"]) <= (span_s + 15) / step_s + 60
    assert curves.figure.x_range.end - curves.figure.x_range.start == pytest.approx(1000 * span_s)
    curves.add([Decision(2000 * step_s + 100, (0.25, 0.75), False)], 2000 * step_s + 100)
    assert [str(value) for value in curves.source.data["p0"][-2:]] == ["nan", "0.25"]
    assert len(curves.doubted.data["left"]) == 1
