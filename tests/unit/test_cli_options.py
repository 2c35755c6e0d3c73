"""How errors of the system become messages and exit codes."""

import errno
import os

import click
from click.testing import CliRunner

from rtbrain.cli_options import Group


def test_a_full_disk_is_one_message_and_other_faults_keep_their_traceback() -> None:
    group = Group()

    @group.command()
    @click.argument("number", type=int)
    def write(number: int) -> None:
        raise OSError(number, os.strerror(number), "tokens.tsv")

    full = CliRunner().invoke(group, ["write", str(errno.ENOSPC)])
    assert full.exit_code == 2
    assert full.stderr == "rtbrain: tokens.tsv cannot be written or read: No space left on device\n"
    assert isinstance(CliRunner().invoke(group, ["write", str(errno.EIO)]).exception, OSError)
