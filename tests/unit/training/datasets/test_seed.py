import numpy as np
import pytest
from scipy.io import savemat

from rtbrain.errors import SourceError, UnitError
from rtbrain.training.dataset_config import Crop, load_dataset_config
from rtbrain.training.datasets import choose, load
from rtbrain.training.datasets.seed import CHANNELS
from tests.recording_writers import read

LABELS = [1, 0, -1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 0, 1, -1]


@pytest.fixture
def config():
    return load_dataset_config("seed")


def arrays(seed, prefix, n_films=15):
    rng = np.random.default_rng(seed)
    keys = [f"{prefix}_eeg{film}" for film in range(1, n_films + 1)]
    rng.shuffle(keys)  # the order of keys means nothing
    return {key: rng.normal(0, 20, (62, 400 + int(key.split("eeg")[1]))) for key in keys}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "Preprocessed_EEG"
    folder.mkdir()
    savemat(folder / "label.mat", {"label": [LABELS]})
    (folder / "readme.txt").write_text("a text")
    savemat(folder / "2_20140404.mat", arrays(1, "jl"))
    savemat(folder / "10_20131204.mat", arrays(2, "ww"))
    savemat(folder / "10_20131130.mat", arrays(3, "ww"))
    return tmp_path


def test_the_first_sessions_with_their_labels(root, config):
    found = load(config, root)
    assert found.problems == ()
    assert [t.subject for t in found.trials] == ["s02"] * 15 + ["s10"] * 15
    chosen = choose(found, config.tasks["emotion-3"], Crop(seconds=1.5, start_s=0.5))
    assert [t.label - 1 for t in chosen.trials] == 2 * LABELS
    trial = found.trials[15 + 11]
    assert (trial.name, trial.stimulus, trial.facts["session"]) == ("s10_film-12", "film-12", "20131130")
    data, _ = read(trial.open(), 100)
    kept = [i for i, name in enumerate(CHANNELS) if name not in ("CB1", "CB2")]
    expected = arrays(3, "ww")["ww_eeg12"][kept].T
    assert np.array_equal(data, expected)
    assert np.array_equal(read(chosen.trials[15 + 11].open())[0], expected[100:400])
    assert trial.length_s == 412 / 200
    assert len(trial.open().info.channels) == 60


def test_the_folder_itself_may_be_given(root, config):
    assert len(load(config, root / "Preprocessed_EEG").trials) == 30


def test_without_labels_the_set_is_refused(root, config):
    (root / "Preprocessed_EEG/label.mat").unlink()
    with pytest.raises(SourceError, match=r"label\.mat is missing; copy it"):
        load(config, root)
    savemat(root / "Preprocessed_EEG/label.mat", {"label": [[1, 2]]})
    with pytest.raises(SourceError, match=r"label\.mat: `label` must hold -1, 0 or 1"):
        load(config, root)


def test_files_that_cannot_be_used_are_reported(root, config):
    folder = root / "Preprocessed_EEG"
    savemat(folder / "3_20140603.mat", arrays(4, "x", n_films=14))
    savemat(folder / "4_20140621.mat", {key: x[:60] for key, x in arrays(5, "x").items()})
    savemat(folder / "5_20140411.mat", {key: x * 1e-6 for key, x in arrays(6, "x").items()})
    (folder / "6_20130712.mat").write_bytes((folder / "2_20140404.mat").read_bytes()[:1000])
    (folder / "7_20131027.mat").write_bytes((folder / "2_20140404.mat").read_bytes())
    found = load(config, root)
    assert {t.subject for t in found.trials} == {"s02", "s10"}
    said = {p.where.split("/")[-1]: p.what for p in found.problems}
    assert "15 films" in said["3_20140603.mat"]
    assert "not (62, n)" in said["4_20140621.mat"]
    assert "microvolts" in said["5_20140411.mat"]
    assert "copy it again" in said["6_20130712.mat"]
    assert "same recording as 2_20140404.mat" in said["7_20131027.mat"]


def test_subjects_who_share_any_session_are_one_person(root, config):
    folder = root / "Preprocessed_EEG"
    (folder / "11_20140618.mat").write_bytes((folder / "10_20131204.mat").read_bytes())  # s10's second session
    found = load(config, root)
    assert {t.subject for t in found.trials} == {"s02", "s10", "s11"}
    assert found.same_person == (("s10", "s11"),)


def test_a_later_session_instead_of_the_first_is_reported(root, config):
    (root / "Preprocessed_EEG/10_20131130.mat").unlink()
    found = load(config, root)
    (problem,) = found.problems
    assert problem.where.endswith("10_20131204.mat")
    assert "10_20131130.mat, the first, is missing" in problem.what
    assert {t.facts["session"] for t in found.trials} == {"20140404", "20131204"}


def test_two_arrays_of_one_film_are_reported(root, config):
    savemat(root / "Preprocessed_EEG/3_20140603.mat", {**arrays(4, "x"), "y_eeg3": np.ones((62, 400))})
    (problem,) = load(config, root).problems
    assert "x_eeg3" in problem.what
    assert "y_eeg3" in problem.what


def test_the_unit_of_every_film_is_checked_when_it_is_read(root, config):
    films = arrays(1, "jl")
    films["jl_eeg3"] = films["jl_eeg3"] * 1e3
    savemat(root / "Preprocessed_EEG/2_20140404.mat", films)
    trial = load(config, root).trials[2]
    with pytest.raises(UnitError, match="jl_eeg3"):
        read(trial.open())
