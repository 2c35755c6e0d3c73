"""What `rtbrain watch` says of the newest decision: nothing old looks like the present."""

import pytest

from rtbrain.watching import SILENT_S, View, longest_wait_s
from tests.unit.dashboard.messages import Telling


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


@pytest.mark.parametrize(("output_hz", "speed", "wait_s"), [(10.0, 1.0, 3.0), (0.5, 1.0, 6.0), (10.0, 0.05, 6.0)])
def test_rare_decisions_are_waited_for_longer(output_hz: float, speed: float, wait_s: float) -> None:
    meta = Telling().meta(output_hz=output_hz)
    meta["source"]["speed"] = speed
    assert longest_wait_s(meta) == pytest.approx(wait_s)
