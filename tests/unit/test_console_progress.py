"""What is told of progress where there is no terminal: a line now and then, and nothing of what is soon done."""

import pytest

from rtbrain import console


def test_a_log_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.progress_bar() as progress:
        for share in (0.1, 0.2, 0.3, 0.4):
            progress("reading [x]", share)
            now[0] += console.LOG_EVERY_S / 2
    assert capsys.readouterr().err.splitlines() == ["reading [x]: 30%"]
