"""Any folder of recordings, read by a pattern of their names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import choose, load
from tests.recording_writers import write_edf

EEGMAT = load_dataset_config("eegmat")
CHANNELS = ("Fz", "Cz", "Pz")


def written(folder: Path, *names: str) -> Path:
    for i, name in enumerate(names):
        write_edf(folder / name, 10 * np.random.default_rng(i).standard_normal((3, 2500)), CHANNELS)
    return folder


def test_names_say_who_and_what(tmp_path: Path) -> None:
    root = written(tmp_path, "Subject02_rest.edf", "Subject02_arith.edf", "Subject03_rest.edf", "odd.edf")
    (root / "notes.txt").write_text("")
    found = load(EEGMAT, root)
    told = {(trial.subject, trial.name, trial.fields["condition"]) for trial in found.trials}
    assert told == {
        ("Subject02", "Subject02_rest", "rest"),
        ("Subject02", "Subject02_arith", "arith"),
        ("Subject03", "Subject03_rest", "rest"),
    }
    assert len(found.problems) == 1, "a file with another ending is none of ours"
    assert "odd.edf" in found.problems[0].where
    assert "rename it" in found.problems[0].what
    assert all(trial.facts["rate_hz"] > 0 for trial in found.trials)


@pytest.mark.parametrize(
    ("pattern", "said"), [("(x", "is no regular expression"), (r"(\d+)\.edf", r"has no group \(\?P<subject>")]
)
def test_a_pattern_that_cannot_work_is_refused(tmp_path: Path, pattern: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(replace(EEGMAT, options={"pattern": pattern}), tmp_path)


def test_a_pattern_that_fits_no_name_says_which_names_there_are(tmp_path: Path) -> None:
    root = written(tmp_path, *(f"s{i}_rest.edf" for i in range(8)))
    with pytest.raises(SourceError, match=r"none of its 8 files .*s0_rest\.edf; correct the option `pattern`"):
        load(EEGMAT, root)


def test_the_releases_own_names_are_known(tmp_path: Path) -> None:
    root = written(tmp_path, "Subject02_1.edf", "Subject02_2.edf")
    chosen = choose(load(EEGMAT, root), EEGMAT.tasks["condition"])
    assert [(trial.name, trial.label) for trial in chosen.trials] == [("Subject02_1", 0), ("Subject02_2", 1)]


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    root = written(tmp_path, "Subject02_rest.edf")
    (root / "Subject03_rest.edf").write_bytes(b"no recording")
    found = load(EEGMAT, root)
    assert [trial.name for trial in found.trials] == ["Subject02_rest"]
    assert "Subject03_rest.edf" in str(found.problems[0])


def test_the_real_set_has_both_classes_of_everybody(data: Path) -> None:
    chosen = choose(load(EEGMAT, data / "eegmat"), EEGMAT.tasks["condition"], EEGMAT.crop)
    assert len(chosen.trials) == 48
    assert len({trial.subject for trial in chosen.trials}) == 24
    assert sorted({trial.label for trial in chosen.trials}) == [0, 1]
    assert not chosen.problems
