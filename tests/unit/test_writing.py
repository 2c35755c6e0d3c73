"""Files appear whole or not at all, and errors name the file that was asked for."""

import errno
import os
from pathlib import Path

import pytest

from rtbrain.writing import replacing


def test_a_file_takes_the_place_of_another_only_when_all_went_well(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        assert temporary.write_text("half") // 0
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.txt", "old")]
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.txt", "new")]


@pytest.mark.parametrize("above", ["gone", "file"])
def test_errors_name_the_file_that_was_asked_for(tmp_path: Path, above: str) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / above / "a.txt"
    with pytest.raises((FileNotFoundError, NotADirectoryError)) as caught, replacing(path) as temporary:
        temporary.write_text("x")
    assert caught.value.filename == str(path)
    assert str(os.getpid()) not in str(caught.value).replace(str(tmp_path), "")


def test_a_target_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError) as caught, replacing(tmp_path / "a") as temporary:
        temporary.write_text("x")
    assert caught.value.filename == str(tmp_path / "a")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_names_no_file_and_other_files_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match="No space left") as caught, replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as caught, replacing(path):
        (tmp_path / "other").read_text()
    assert caught.value.filename == str(tmp_path / "other")
    with pytest.raises(OSError, match=r"^plain words$"), replacing(path):
        raise OSError("plain words")
