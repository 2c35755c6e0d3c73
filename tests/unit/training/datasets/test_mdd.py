from collections import Counter
from shutil import copyfile

import numpy as np
import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import choose, load
from tests.recording_writers import INDEX, read, samples, write_edf

NAMES = ["EEG Fp1-LE", "EEG T3-LE", "EEG Cz-LE", "EEG O2-LE"]


@pytest.fixture
def config():
    return load_dataset_config("mdd")


def write(folder, name, seed=0, seconds=4):
    x = samples(250 * seconds) + seed
    x[INDEX] -= seed
    return write_edf(folder / name, x, NAMES)


def test_odd_names_are_read_and_groups_kept_apart(tmp_path, config):
    for seed, name in enumerate(
        ["H S1 EC.edf", "MDD S1  EC.edf", "mdd s1 eo.EDF", "6921143_H S15 TASK.edf", "x.txt", "._H S1 EC.edf"]
    ):
        write(tmp_path, name, seed)
    found = load(config, tmp_path)
    assert [trial.name for trial in found.trials] == ["H S1 EC", "H S15 TASK", "MDD S1 EC", "MDD S1 EO"]
    assert found.trials[2].fields == {"group": "MDD", "condition": "EC"}
    assert len({trial.subject for trial in found.trials}) == 3
    assert found.problems == ()


def test_a_foreign_name_is_reported(tmp_path, config):
    write(tmp_path, "H S1 EC.edf")
    write(tmp_path, "control 7.edf", 1)
    (problem,) = load(config, tmp_path).problems
    assert problem.where.endswith("control 7.edf")
    assert "rename" in problem.what


def test_of_copies_one_is_kept(tmp_path, config):
    write(tmp_path, "H S27 EC.edf")
    write(tmp_path, "MDD S1 EC.edf", 3)
    copyfile(tmp_path / "H S27 EC.edf", tmp_path / "H S30 EC.edf")
    copyfile(tmp_path / "H S27 EC.edf", tmp_path / "6921143_H S27 EC.edf")
    found = load(config, tmp_path)
    assert [trial.subject for trial in found.trials] == ["H S27", "MDD S1"]
    assert found.trials[0].files == (tmp_path / "H S27 EC.edf",)
    assert {problem.where.split("/")[-1] for problem in found.problems} == {"H S30 EC.edf", "6921143_H S27 EC.edf"}
    assert all("H S27 EC.edf" in problem.what for problem in found.problems)


def test_a_copy_in_the_other_group_drops_both(tmp_path, config):
    write(tmp_path, "H S1 TASK.edf")
    write(tmp_path, "H S2 TASK.edf", 1)
    copyfile(tmp_path / "H S1 TASK.edf", tmp_path / "MDD S1 TASK.edf")
    found = load(config, tmp_path)
    assert [trial.subject for trial in found.trials] == ["H S2"]
    assert "MDD S1 TASK.edf" in found.problems[0].what


def test_two_different_files_of_one_recording_are_reported(tmp_path, config):
    write(tmp_path, "H S1 EC.edf")
    write(tmp_path, "12_H S1 EC.edf", 1)
    found = load(config, tmp_path)
    assert [trial.files[0].name for trial in found.trials] == ["H S1 EC.edf"]
    assert "remove the wrong one" in found.problems[0].what


def test_a_cut_file_is_reported_and_the_rest_read(tmp_path, config):
    write(tmp_path, "H S1 EC.edf")
    path = write(tmp_path, "MDD S1 EC.edf", 1)
    path.write_bytes(path.read_bytes()[:-500])
    found = load(config, tmp_path)
    assert [trial.name for trial in found.trials] == ["H S1 EC"]
    assert found.problems[0].where == str(path)
    assert "cut short" in found.problems[0].what


def test_nothing_usable_names_the_file_and_where_to_get_the_set(tmp_path, config):
    path = write(tmp_path, "MDD S1 EC.edf")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(SourceError, match=r"MDD S1 EC\.edf(.|\n)*cut short(.|\n)*figshare(.|\n)*H S1 EO\.edf"):
        load(config, tmp_path)


def test_options_are_refused(tmp_path, config):
    from dataclasses import replace

    with pytest.raises(ConfigError, match="no options, got colour"):
        load(replace(config, options={"colour": "red"}), tmp_path)


def test_the_release(data, config):
    found = load(config, data / "mdd")
    assert found.problems == ()
    assert len(found.trials) == 65
    groups = {trial.subject: trial.fields["group"] for trial in found.trials}
    people = {subject: subject for subject in groups}
    for first, *others in config.same_person:
        people.update(dict.fromkeys(others, first))
    assert config.same_person == (("MDD S24", "MDD S25"),)
    assert Counter(groups[person] for person in set(people.values())) == {"H": 17, "MDD": 19}
    facts = found.trials[0].facts
    assert (facts["rate_hz"], facts["n_channels"], facts["prefilter"]) == (256, 19, "HP:0.5Hz LP:80Hz")
    for name, counts in (("ec", {0: 13, 1: 17}), ("eo", {0: 16, 1: 19})):
        chosen = choose(found, config.tasks[name], config.crop)
        assert chosen.problems == ()
        assert Counter(trial.label for trial in chosen.trials) == counts
        assert {trial.length_s for trial in chosen.trials} == {170.0}
    trial = chosen.trials[0]
    part, times = read(trial.open())
    whole, _ = read(next(t for t in found.trials if t.name == trial.name).open())
    assert np.array_equal(part, whole[2 * 256 : 172 * 256])
    assert times[0] == 2.0
