"""What `rtbrain watch` says of the newest decision: nothing old looks like the present."""

from dataclasses import replace

import pytest
from rich.console import Console

from rtbrain.published import SampleCounts
from rtbrain.watching import SILENT_S, View, longest_wait_s
from tests.unit.dashboard.messages import Telling
from tests.unit.sinks.examples import STATUS


def test_a_decision_is_old_once_nothing_newer_comes_whatever_the_source_says() -> None:
    telling, view = Telling(), View()
    assert view.state_line(0.0) == "no decision yet"
    view.take(telling.meta(), 0.0, 0)
    view.take(telling.state(1.0), 1.0, 0)
    assert "nothing newer" not in view.state_line(1.1)
    view.take(telling.status(state="stalled"), 1.2, 0)
    assert "nothing newer" in view.state_line(1.3)
    view.take(telling.status(), 1.4, 0)
    assert "nothing newer" not in view.state_line(1.5)
    view.take(telling.status(), 2.0 + SILENT_S, 0)  # samples come, but the filters settle
    assert "nothing newer" in view.state_line(2.1 + SILENT_S)
    view.take(telling.state(6.0), 6.0, 0)
    assert "nothing newer" not in view.state_line(6.1)
    assert "nothing newer" in view.state_line(6.1 + SILENT_S)  # the decoder is gone


def test_dropped_markers_are_shown_where_there_are_any() -> None:
    telling, view = Telling(), View()
    for dropped, said in ((None, False), (0, False), (7, True)):
        view.take(telling.status(markers_dropped=dropped), 1.0, 0)
        assert (", 7 markers dropped" in view.source_line(1.0)) is said
    older = telling.status()
    del older["markers_dropped"]
    view.take(older, 1.0, 0)
    assert "markers dropped" not in view.source_line(1.0)


def test_time_without_samples_is_shown_where_there_was_some() -> None:
    telling, view = Telling(), View()
    for away_s, said in ((0.0, ""), (20.04, ", 20.0 s without samples")):
        view.take(telling.status(away_s=away_s), 1.0, 0)
        assert said in view.source_line(1.0)
        assert ("without samples" in view.source_line(1.0)) is bool(said)
    older = telling.status()
    del older["away_s"]
    view.take(older, 1.0, 0)
    assert "without samples" not in view.source_line(1.0)


@pytest.mark.parametrize(("output_hz", "speed", "wait_s"), [(10.0, 1.0, 3.0), (0.5, 1.0, 6.0), (10.0, 0.05, 6.0)])
def test_rare_decisions_are_waited_for_longer(output_hz: float, speed: float, wait_s: float) -> None:
    meta = Telling().meta(output_hz=output_hz)
    meta["source"]["speed"] = speed
    assert longest_wait_s(meta) == pytest.approx(wait_s)


def test_before_the_first_decision_it_says_what_is_waited_for() -> None:
    telling, view = Telling(), View()

    def said() -> str:
        console = Console(width=200)
        with console.capture() as drawn:
            console.print(view.drawn(1.0))
        assert view.state_line(1.0) in drawn.get()
        return view.state_line(1.0).removeprefix("no decision yet: ")

    def received(n: int) -> SampleCounts:
        return replace(STATUS.samples, received=n)

    view.take(telling.status(state="waiting", samples=received(0)), 1.0, 0)
    assert said() == "the decoder waits for samples"
    view.take(telling.meta(), 1.0, 0)
    view.take(telling.status(samples=received(500)), 1.0, 0)
    assert said() == "the filters settle, and then the first tokens are to come", "for how long is not told"
    meta = telling.meta(warmup_s=10.0)
    view.take(meta, 1.0, 0)
    assert said() == "the filters settle for the first 10 s of signal, about 8 s to go"
    meta["source"]["speed"] = 4.0
    assert said() == "the filters settle for the first 10 s of signal, about 2 s to go"
    view.take(telling.status(samples=received(2600)), 1.0, 0)
    assert said() == "the filters have settled, the first tokens are to come"
    for broken in ({"reconnects": 1}, {"gaps": 1}):
        for n in (1000, 2600):
            view.take(telling.status(samples=received(n), **broken), 1.0, 0)
            assert said() == "the filters settle, and then the first tokens are to come", "they began anew"
    view.take(telling.status(state="lost"), 1.0, 0)
    assert said() == "the decoder waits for samples"
    view.take(telling.state(1.0), 1.0, 0)
    assert "no decision yet" not in view.state_line(1.0)


def test_who_decides_is_said_as_another_decoder_may_have_the_endpoint() -> None:
    view = View()
    assert view.title() == "rtbrain"
    view.take({"topic": "meta", "bundle": "mine", "source": {"name": "EEG"}}, 0.0, 0)
    assert view.title() == "rtbrain: mine on EEG"
