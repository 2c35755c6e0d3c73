"""More markers than can wait for the EEG's clock or for a decision: the newest are kept, the dropped are told."""

from types import SimpleNamespace
from typing import Any

from rtbrain.live_markers import MOST_ECHOED, MOST_HELD, MarkerWatch
from rtbrain.sources.markers import Marker


class Coming:
    """A marker stream from which what is put into `next` comes."""

    def __init__(self) -> None:
        self.next: list[Marker] = []
        self.lost = False

    def pull(self) -> list[Marker]:
        found, self.next = self.next, []
        return found


def watched() -> tuple[MarkerWatch, Coming, list[str]]:
    told: list[str] = []
    watch, coming = MarkerWatch("Markers", ("reset*",), told.append), Coming()
    watch._markers = coming  # type: ignore[assignment]
    return watch, coming, told


def markers(n: int, first: int = 0) -> list[Marker]:
    return [Marker(float(i), f"reset {i}") for i in range(first, first + n)]


def eeg(offset_s: float | None, began: list[tuple[str, float]]) -> tuple[Any, Any]:
    decoder = SimpleNamespace(origin_s=0.0, new_context=lambda text, at_s: began.append((text, at_s)))
    return SimpleNamespace(offset_s=offset_s), decoder


def test_markers_wait_for_the_clock_within_bounds_and_the_dropped_are_counted_and_told() -> None:
    watch, coming, told = watched()
    began: list[tuple[str, float]] = []
    coming.next = markers(MOST_HELD)
    watch.pull(*eeg(None, began))
    assert (watch.dropped, told) == (0, [])
    for i in range(5):
        coming.next = markers(32, MOST_HELD + 32 * i)
        watch.pull(*eeg(None, began))
    assert len(watch._held) == MOST_HELD
    assert watch.dropped == 160
    (warning,) = told
    assert f"more than {MOST_HELD} markers have come while the EEG's clock is not known" in warning
    watch.pull(*eeg(0.5, began))
    assert told[1] == "the EEG's clock is known; 160 marker(s) that had come before were dropped"
    assert [at_s for _, at_s in began] == [i - 0.5 for i in range(160, MOST_HELD + 160)], "the newest are kept"
    not_echoed = MOST_HELD - MOST_ECHOED
    assert watch.dropped == 160 + not_echoed
    assert f"more than {MOST_ECHOED} markers have come since the last decision" in told[2]
    assert [echo.time_s for echo in watch.echoes()] == list(range(160 + not_echoed, MOST_HELD + 160))
    coming.next = markers(2)
    watch.pull(*eeg(0.5, began))
    assert len(watch.echoes()) == 2
    assert told[3:] == [f"{not_echoed} marker(s) were not echoed: a decision carries at most {MOST_ECHOED}"]
    assert len(watch.echoes()) == 0
    assert (watch.dropped, len(told)) == (160 + not_echoed, 4), "told once"


def test_markers_that_are_too_many_for_every_decision_are_told_once_and_counted_in_the_end() -> None:
    watch, coming, told = watched()
    for _ in range(10):
        for _ in range(3):
            coming.next = markers(100)
            watch.pull(*eeg(0.5, []))
        assert len(watch.echoes()) == MOST_ECHOED
    assert (watch.dropped, len(told)) == (1000, 1)
    coming.close = lambda: None  # type: ignore[attr-defined]
    watch.close()
    assert told[1:] == [f"1000 marker(s) were not echoed: a decision carries at most {MOST_ECHOED}"]


def test_few_markers_lose_nothing_and_nothing_is_said() -> None:
    watch, coming, told = watched()
    began: list[tuple[str, float]] = []
    coming.next = markers(3)
    watch.pull(*eeg(None, began))
    watch.pull(*eeg(0.0, began))
    assert [text for text, _ in began] == ["marker reset 0", "marker reset 1", "marker reset 2"]
    assert len(watch.echoes()) == 3
    assert (watch.dropped, told) == (0, [])
