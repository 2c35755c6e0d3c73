"""Which machines may work on folds: those with the same program and packages, and with the recordings."""

from pathlib import Path

import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.evaluate_cluster import _refuse, installed, trouble


def test_a_machine_like_this_one_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.edf").write_bytes(b"")
    assert trouble([str(tmp_path / "a.edf")], installed()) is None
    _refuse({"tcp://here": None})


@pytest.mark.parametrize("what", ["rtbrain", "torch", "scikit-learn", "numpy"])
def test_another_program_or_package_is_refused(what: str) -> None:
    fault = trouble([], installed() | {what: "another"})
    assert fault == ("program", f"it has another version of {what}")
    with pytest.raises(ConfigError, match=f"worker tcp://there: it has another version of {what}; install the same"):
        _refuse({"tcp://here": None, "tcp://there": fault})


def test_missing_recordings_are_counted(tmp_path: Path) -> None:
    fault = trouble([str(tmp_path / "a.edf"), str(tmp_path / "b.edf")], installed())
    with pytest.raises(SourceError, match=r"worker tcp://there: it cannot see .*a\.edf and 1 more; all workers must"):
        _refuse({"tcp://there": fault})
