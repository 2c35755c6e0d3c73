"""The id of a replay: taken is only what another has; whatever else goes wrong ends the search at once, in words."""

import errno
import os
from pathlib import Path

import pytest

from rtbrain import replay_id
from rtbrain.replay_id import ReplayId

NAME = "of-this-test-alone"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for lock files that nothing else uses."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_second_at_a_time_has_another() -> None:
    first, second = ReplayId(NAME), ReplayId(NAME)
    assert second.text == f"{first.text}-2"
    assert (first.trouble, second.trouble) == ("", "")
    first.release()
    third = ReplayId(NAME)
    assert third.text == first.text
    for each in (second, third):
        each.release()


def test_a_file_system_without_locks_ends_the_search_with_the_plain_id(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refused(file: int) -> None:
        asked.append(file)
        assert len(asked) == 1, "asked again and again, for ever"
        raise OSError(errno.ENOLCK, "No locks available")

    plain = ReplayId(NAME)
    plain.release()
    monkeypatch.setattr(replay_id, "lock", refused)
    found = ReplayId(NAME)
    assert (found.text, found.number) == (plain.text, 1)
    assert "No locks available" in found.trouble
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(asked[0])  # closed
    found.release()


def test_without_a_folder_for_lock_files_it_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder / "gone"))
    found = ReplayId(NAME)
    assert found.number == 1
    assert "No such file or directory" in found.trouble


def test_a_taken_id_is_not_used_even_if_the_next_cannot_be_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    first, opened = ReplayId(NAME), replay_id._opened

    def only_the_first(text: str) -> int:
        if text != first.text:
            raise PermissionError(errno.EACCES, "Permission denied", text)
        return opened(text)

    monkeypatch.setattr(replay_id, "_opened", only_the_first)
    second = ReplayId(NAME)
    assert second.text == f"{first.text}-2"
    assert "Permission denied" in second.trouble
    first.release()
