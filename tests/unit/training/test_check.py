"""What `check_dataset` makes of a set: counts, warnings and refusals."""

from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.conditioning.filters import Band, NotchSettings
from rtbrain.conditioning.lines import LineSettings
from rtbrain.errors import ConfigError, SourceError
from rtbrain.pipeline import HarmoniseSettings, Recipe
from rtbrain.training.check import check_dataset
from rtbrain.training.check_errors import missing_recordings
from rtbrain.training.check_report import DataCheck
from rtbrain.training.dataset_config import CONFIGS, Crop, DatasetConfig, Protocol, better_fitting, load_dataset_config
from rtbrain.training.datasets.bids_files import entities_of
from rtbrain.training.datasets.nssi import BLOCKS
from tests.recording_writers import RATE, samples, write_edf
from tests.unit.training.datasets.bids_writer import write_table

NAMES = ["EEG Fp1-LE", "EEG T3-LE", "EEG Cz-LE", "EEG O2-LE"]
SHORT = Crop(seconds=3)


def config(crop: Crop | None = SHORT, n_folds: int = 3, same_person: tuple[tuple[str, ...], ...] = ()) -> DatasetConfig:
    protocol = Protocol("k-fold", folds=n_folds)
    return replace(load_dataset_config("mdd"), crop=crop, protocol=protocol, same_person=same_person)


def write(folder: Path, name: str, seed: int, seconds: float = 4) -> Path:
    folder.mkdir(exist_ok=True)
    x = np.random.default_rng(seed).normal(0, 20, (len(NAMES), round(RATE * seconds)))
    return write_edf(folder / f"{name}.edf", x, NAMES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for i in range(5):
        write(tmp_path / "mdd", f"H S{i} EC", i)
        write(tmp_path / "mdd", f"MDD S{i} EC", 10 + i, seconds=4 + i % 2)
    return tmp_path / "mdd"


def check(root: Path, settings: DatasetConfig | None = None, task: str | None = "ec") -> DataCheck:
    return check_dataset(settings or config(), root, task, nuisance=False)


def test_what_is_there(root: Path) -> None:
    found = check(root)
    assert (found.subjects, found.persons, found.trials, found.recordings) == (10, 10, 10, 10)
    assert found.persons_of_class == {"healthy": 5, "MDD": 5}
    assert (found.rates_hz, found.n_channels) == ({"250": 10}, {"4": 10})
    assert (found.lengths_s.smallest, found.lengths_s.median, found.lengths_s.largest) == (4, 4, 5)
    (task,) = found.tasks
    assert {name: count.trials for name, count in task.classes.items()} == {"healthy": 5, "MDD": 5}
    assert (task.majority, task.crop_s, task.refused) == (0.5, 3, None)
    assert len(task.folds) == 3
    assert sum(fold.test for fold in task.folds) == 10
    assert all(fold.train + fold.validation + fold.test == 10 for fold in task.folds)
    assert sum(fold.test_classes["MDD"] for fold in task.folds) == 5
    assert found.n_warnings == 0, found.to_dict()
    assert found.to_dict()["tasks"][0]["length_after"]["leaks"] is False


def test_persons_who_may_be_one_count_once_and_stay_together(root: Path) -> None:
    found = check(root, config(same_person=(("MDD S1", "MDD S2"),)))
    assert (found.subjects, found.persons) == (10, 9)
    assert found.tasks[0].classes["MDD"].persons == 4
    assert sorted(fold.test - fold.test_persons for fold in found.tasks[0].folds) == [0, 0, 1]


def test_a_misspelt_person_is_warned_of(root: Path) -> None:
    found = check(root, config(same_person=(("MDD S1", "MDD_S2"), ("H S1", "H S77"))))
    (warning,) = found.warnings
    assert "'MDD_S2'" in warning
    assert "'MDD S2'" in warning
    assert "'H S77'" in found.notes[0]
    assert found.n_warnings == 1


def test_lengths_are_a_warning_only_where_no_crop_cures_them(root: Path) -> None:
    for i in range(5):
        write(root, f"MDD S{i} EC", 10 + i, seconds=8)
    (cured,) = check(root).tasks
    assert cured.length_before is not None
    assert cured.length_after is not None
    assert (cured.length_before.accuracy, cured.length_before.leaks) == (1, True)
    assert cured.length_after.accuracy <= 0.5
    assert not cured.length_after.leaks
    assert cured.warnings == ()
    assert "without the crop" in cured.notes[0]
    (open_,) = check(root, config(crop=None)).tasks
    assert "length alone tells 100.0 % of the labels, always answering one class 50.0 %" in open_.warnings[0]
    assert "set `crop`" in open_.warnings[0]


def test_trials_that_the_crop_leaves_out_are_counted_by_class(root: Path) -> None:
    write(root, "H S9 EC", 30, seconds=2)
    found = check(root)
    assert {name: count.too_short for name, count in found.tasks[0].classes.items()} == {"healthy": 1, "MDD": 0}
    (problem,) = found.tasks[0].problems
    assert problem.where == "H S9 EC"
    assert found.n_warnings == 1


def test_damaged_files_and_copies_are_problems(root: Path) -> None:
    cut = root / "H S0 EC.edf"
    cut.write_bytes(cut.read_bytes()[:-100])
    copyfile(root / "MDD S1 EC.edf", root / "MDD S7 EC.edf")
    found = check(root, config(n_folds=2))
    said = {Path(problem.where).name: problem.what for problem in found.problems}
    assert "cut short" in said["H S0 EC.edf"]
    assert "same recording as MDD S1 EC.edf" in said["MDD S7 EC.edf"]
    assert found.same_person == (("MDD S1", "MDD S7"),)
    assert found.n_warnings == 2


def test_copies_of_a_file_that_is_no_recording_join_nobody(root: Path) -> None:
    for i in range(4):
        (root / f"{'H' if i % 2 else 'MDD'} S{i} TASK.edf").write_bytes(b"<html>404</html>" * 100)
    found = check(root)
    assert len(found.problems) == 4
    assert found.same_person == ()


def test_a_copy_with_another_header_is_warned_of(root: Path) -> None:
    write(root, "H S8 EC", 40, seconds=60)
    copy = root / "MDD S8 EC.edf"
    copyfile(root / "H S8 EC.edf", copy)
    content = bytearray(copy.read_bytes())
    content[168:176] = b"01.02.03"  # the date
    copy.write_bytes(content)
    found = check(root)
    (pair,) = found.near_identical
    assert pair.subjects == ("H S8", "MDD S8")
    (warning,) = found.warnings
    assert "H S8 EC.edf" in warning
    assert "remove one of them, or declare both as `same_person`" in warning
    declared = check(root, config(same_person=(("H S8", "MDD S8"),)))
    assert declared.warnings[0].endswith("remove one of them")


def test_a_set_too_small_for_its_folds_says_so(root: Path) -> None:
    found = check(root, config(n_folds=20))
    (task,) = found.tasks
    assert task.folds == ()
    assert task.length_after is None
    assert "needs at least 20" in str(task.refused)
    assert (found.errors, found.n_warnings) == ([f"task ec: cannot be split: {task.refused}"], 0)


def test_the_configuration_that_a_set_brings_along_is_told(root: Path) -> None:
    own = root / "rtbrain.yaml"
    shipped = (CONFIGS / "mdd.yaml").read_text(encoding="utf-8")
    own.write_text(shipped, encoding="utf-8")
    hint = f"; this folder has a configuration that fits it: --dataset {own}"
    (task,) = check(root, config(n_folds=20)).tasks
    assert str(task.refused).endswith(hint)
    assert task.errors[0].endswith(hint)
    assert better_fitting(load_dataset_config(str(own)), root) == "", "it is the one in use"
    own.write_text("name: [", encoding="utf-8")
    assert "configuration that fits" not in str(check(root, config(n_folds=20)).tasks[0].refused)


def test_a_task_without_trials_is_a_warning_and_without_any_an_error(root: Path) -> None:
    found = check(root, task=None)
    assert [bool(task.classes) for task in found.tasks] == [True, False]
    assert "no trial has condition = EO" in found.tasks[1].warnings[0]
    with pytest.raises(SourceError, match=r"no trial can be used:\n  task eo: no trial has condition = EO"):
        check(root, task="eo")
    with pytest.raises(SourceError, match="crop needs 100 s"):
        check(root, config(crop=Crop(seconds=100)))
    with pytest.raises(ConfigError, match="no task 'nap'"):
        check(root, task="nap")


def test_a_task_none_of_whose_trials_can_be_used_is_an_error_whatever_the_others_are(root: Path) -> None:
    for i in range(3):
        write(root, f"H S{i} EO", 20 + i, seconds=2)
    found = check(root, task=None)
    assert [bool(task.classes) for task in found.tasks] == [True, False]
    (error,) = found.errors
    assert error.startswith("task eo: cannot be used: no trial has a class and the crop's length, such as H S0 EO: ")
    assert "lasts 2.00 s, the crop needs 3 s; shorten the crop" in error
    assert found.tasks[1].warnings == ()
    tasks = config().tasks
    misspelt = tuple(replace(rule, values=(f"{rule.name}?",)) for rule in tasks["eo"].classes)
    wrong = replace(config(crop=None), tasks={**tasks, "eo": replace(tasks["eo"], classes=misspelt)})
    (error,) = check(root, wrong, task=None).errors
    assert "task eo: cannot be used" in error
    assert "belongs to none of the classes healthy, MDD" in error


def test_a_class_whose_trials_are_all_too_short_is_an_error(root: Path) -> None:
    for i in range(5):
        write(root, f"H S{i} EC", i, seconds=8)
    (error,) = check(root, config(crop=Crop(seconds=7))).errors
    assert "class 'MDD' has no trial: its 5 are shorter than the crop; shorten `crop`" in error


def test_filters_that_the_rate_cannot_carry_are_errors(root: Path) -> None:
    sound = config()
    band = replace(sound.recipe.bands[0], name="fast", low_hz=60.0, high_hz=130.0)
    recipes = {
        "band fast (60 to 130 Hz); at least 325 Hz are needed": Recipe(bands=(Band(), band)),
        "a notch at 200 Hz needs a rate above 400 Hz, not 250 Hz": Recipe(notch=NotchSettings(hz=200.0)),
        "notches on 20 multiples of a line, up to 128 Hz, need a rate above 256 Hz, not 250 Hz": Recipe(
            harmonise=HarmoniseSettings(lines=LineSettings(multiples=20)),
            bands=(Band("slow", 3.0, 8.0), Band("quick", 8.0, 26.0)),
            warmup_ms=10_000.0,
        ),
    }
    for said, recipe in recipes.items():
        (error,) = check(root, replace(sound, recipe=recipe)).errors
        assert said in error
        assert "10 of 10 trials have 250 Hz, such as H S0 EC; lower that frequency" in error
    assert check(root, sound).errors == []
    few = replace(sound.recipe, channels=ChannelSettings(names=("Cz", "Oz")))
    assert check(root, replace(sound, recipe=few)).errors == [], "electrodes are no matter of rates"


def test_a_class_without_trials_is_an_error(tmp_path: Path) -> None:
    for i in range(6):
        write_edf(tmp_path / f"H S{i} EC.edf", samples(1000) + i, NAMES)
    (error,) = check(tmp_path).errors
    assert error.startswith(
        "task ec: class 'MDD' has no trial: none has group MDD, where condition is EC, and the set's "
    )
    assert "values of group are H; correct the task's `classes`" in error
    (task,) = check_dataset(config(), tmp_path, "ec").tasks
    assert task.audit is None
    assert task.notes == ("no nuisance audit: all usable trials are of one class",)
    assert not (tmp_path / "rtbrain-audit").exists()


@pytest.mark.parametrize(("reader", "missing"), [("bids", "all"), ("neurolong", "neurolong"), ("nssi", "B1 B2 B3")])
def test_recordings_are_missed_that_the_reader_would_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, missing: str
) -> None:
    monkeypatch.setitem(BLOCKS, "Block3", "B3")  # what a reader reads is said in one place
    tasks = ["neurolong", "B1", "B2", "B3", "rest"]
    for task in tasks:
        write_table(tmp_path / f"sub-01/eeg/sub-01_task-{task}_events.tsv", "onset duration")
    said = missing_recordings(tmp_path, replace(config(), reader=reader, options={}))
    expected = tasks if missing == "all" else missing.split()
    assert [entities_of(Path(text.split(": the recording")[0]))["task"] for text in said] == sorted(expected)
    assert missing_recordings(tmp_path, config()) == []
