"""One process at a time in a folder."""

import errno
import sys
from pathlib import Path

import pytest

from rtbrain import locking
from rtbrain.errors import ConfigError
from rtbrain.locking import alone_in
from tests.killing import kill_when

HOLD = """
import sys, time
from pathlib import Path
from rtbrain.locking import alone_in
with alone_in(Path(sys.argv[1]), "training"):
    Path(sys.argv[2]).touch()
    time.sleep(100)
"""


def test_a_second_process_is_refused_until_the_first_has_ended_however_it_does(tmp_path: Path) -> None:
    target, ready = tmp_path / "out", tmp_path / "ready"

    def refused() -> bool:
        if not ready.exists():
            return False
        with (
            pytest.raises(ConfigError, match=r"another process is training in .*out; wait"),
            alone_in(target, "training"),
        ):
            raise AssertionError
        with alone_in(tmp_path / "other", "training"):
            return True

    kill_when(refused, "-c", HOLD, target, ready)
    with alone_in(target, "training"):
        assert not target.exists(), "nothing is written there"


@pytest.mark.skipif(sys.platform == "win32", reason="other locks")
def test_where_there_are_no_locks_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(file: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locking, "lock", refused)
    with alone_in(tmp_path, "training"):
        pass
