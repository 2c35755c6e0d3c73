from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import choose, load
from tests.recording_writers import read
from tests.unit.training.datasets.bids_writer import write_recording, write_table


@pytest.fixture
def config():
    return load_dataset_config("nssi")


def feature(seed, n_epochs=3, n_channels=63):
    return np.random.default_rng(seed).normal(0, 20, (n_epochs, n_channels, 500))


def write(root, name, seed, label, **shape):
    path = root / name
    path.parent.mkdir(exist_ok=True)
    savemat(path, {"Struct": {"feature": feature(seed, **shape), "label": label}})
    return path


def test_structs_of_the_lab(tmp_path, config):
    write(tmp_path, "Block1/sub2.mat", 0, 0)
    write(tmp_path, "Block1/sub10.mat", 1, np.ones(3))
    write(tmp_path, "Block2/sub2.mat", 2, 0)
    found = load(config, tmp_path)
    assert found.problems == ()
    assert [t.name for t in found.trials] == ["sub-002_task-B1", "sub-002_task-B2", "sub-010_task-B1"]
    assert [t.label for t in choose(found, config.tasks["b1"]).trials] == [0, 1]
    assert [t.label for t in choose(found, config.tasks["b2"]).trials] == [0]
    source = found.trials[0].open()
    assert (source.info.rate_hz, source.info.unit, len(source.info.channels)) == (500, "uV", 63)
    assert np.array_equal(read(source, 7)[0], np.concatenate([epoch.T for epoch in feature(0)]))
    assert source.duration_s == found.trials[0].length_s == 3.0


def test_bids(tmp_path, config):
    for i, name in enumerate(["sub-001_task-B1", "sub-001_task-B2", "sub-002_task-B1", "sub-002_task-rest"]):
        write_recording(tmp_path, name, seed=i)
    write_table(tmp_path / "participants.tsv", "participant_id group", "sub-001 NSSI", "sub-002 control")
    found = load(config, tmp_path)
    assert len(found.trials) == 3
    assert [t.label for t in choose(found, config.tasks["b1"]).trials] == [1, 0]


@pytest.mark.parametrize(
    ("name", "label", "shape", "what"),
    [
        ("Block1/someone.mat", 0, {}, "subject's number"),
        ("Block1/7_2.mat", 0, {}, "subject's number"),
        ("Block1/7.mat", np.array([0, 1]), {}, "for the whole file"),
        ("Block1/7.mat", 2, {}, "for the whole file"),
        ("Block1/7.mat", 0, {"n_channels": 62}, "62 channels, `options.channels` names 63"),
        ("Block1/01.mat", 0, {}, "claims to be sub-001_task-B1, as"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported(name, label, shape, what, tmp_path, config):
    write(tmp_path, "Block1/1.mat", 5, 0)
    path = write(tmp_path, name, 6, label, **shape)
    found = load(config, tmp_path)
    assert len(found.trials) == 1
    (problem,) = found.problems
    assert what in problem.what
    assert problem.where in (str(path), str(tmp_path / "Block1/1.mat"))


def test_volts_a_foreign_struct_and_a_cut_file_are_reported(tmp_path, config):
    write(tmp_path, "Block1/1.mat", 5, 0)
    savemat(tmp_path / "Block1/2.mat", {"Struct": {"feature": feature(1) * 1e-6, "label": 0}})
    savemat(tmp_path / "Block1/3.mat", {"other": 1})
    path = write(tmp_path, "Block1/4.mat", 6, 0)
    path.write_bytes(path.read_bytes()[:5000])
    found = load(config, tmp_path)
    assert [t.subject for t in found.trials] == ["sub-001"]
    for number, what in (("2", "microvolts"), ("3", "no struct"), ("4", "not readable")):
        assert any(p.where.endswith(f"{number}.mat") and what in p.what for p in found.problems)


def test_a_copied_subject_is_reported(tmp_path, config):
    path = write(tmp_path, "Block1/1.mat", 5, 0)
    (tmp_path / "Block1/2.mat").write_bytes(path.read_bytes())
    found = load(config, tmp_path)
    assert [t.subject for t in found.trials] == ["sub-001"]
    assert "same recording as 1.mat" in found.problems[0].what
    assert found.same_person == (("sub-001", "sub-002"),)
    (tmp_path / "Block2").mkdir()
    (tmp_path / "Block2/3.mat").write_bytes(path.read_bytes())  # of another block: which of the two is it?
    write(tmp_path, "Block2/4.mat", 7, 0)
    assert [t.subject for t in load(config, tmp_path).trials] == ["sub-004"]


def test_channels_must_be_named_for_structs(tmp_path, config):
    write(tmp_path, "Block1/1.mat", 5, 0)
    with pytest.raises(ConfigError, match=r"options\.channels"):
        load(replace(config, options={}), tmp_path)


def test_nothing_there_says_what_is_expected(tmp_path, config):
    with pytest.raises(SourceError, match=r"on request(.|\n)*Block1/<subject number>\.mat"):
        load(config, tmp_path)
