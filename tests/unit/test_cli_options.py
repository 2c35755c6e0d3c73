"""How errors of the system become messages and exit codes."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rtbrain.cli_options import Group, check_file, check_folder
from rtbrain.errors import ConfigError


def test_a_full_disk_is_one_message_and_other_faults_keep_their_traceback() -> None:
    group = Group()

    @group.command()
    @click.argument("number", type=int)
    def write(number: int) -> None:
        raise OSError(number, os.strerror(number), "tokens.tsv")

    full = CliRunner().invoke(group, ["write", str(errno.ENOSPC)])
    assert full.exit_code == 2
    said = "rtbrain: tokens.tsv cannot be written or read: No space left on device; free some space, or choose"
    assert full.stderr.startswith(said)
    assert isinstance(CliRunner().invoke(group, ["write", str(errno.EIO)]).exception, OSError)


def test_a_liblsl_that_cannot_be_loaded_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "liblsl.so").write_text("no library")
    environment = os.environ | {"PYLSL_LIB": str(tmp_path / "liblsl.so")}
    command = [sys.executable, "-m", "rtbrain", "streams"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "liblsl.so' found but could not be loaded" in done.stderr
    assert "Traceback" not in done.stderr


class TestTargets:
    def test_what_can_be_written_is_left_as_it_was(self, tmp_path: Path) -> None:
        check_folder(tmp_path / "new" / "deep")
        check_file(tmp_path / "a.json")
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_folder_is_made_for_folders_only(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"the folder of .*a.json does not exist"):
            check_file(tmp_path / "no" / "a.json")

    def test_a_file_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ConfigError, match=r"cannot be made or written: .*file is no folder .*; choose another"):
            check_folder(tmp_path / "file" / "deep")

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that not even root can write to")
    def test_a_folder_that_nobody_may_write_to(self) -> None:
        for path in (Path("/proc/a.json"), Path("/proc/self/a.json")):
            with pytest.raises(ConfigError, match="choose another folder, or change its permissions"):
                check_file(path)
