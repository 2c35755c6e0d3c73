"""What is told where there is no terminal: progress now and then, nothing of what is soon done, and whole tables."""

import subprocess
import sys

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


def test_tables_in_a_file_are_not_folded() -> None:
    program = "from rtbrain.console import console, table; console.print(table('method', *['calibration error'] * 6))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].count("calibration error") == 6
