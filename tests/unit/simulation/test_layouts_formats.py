import pickle
import warnings

import mne
import numpy as np
import pytest
from scipy.io import loadmat, whosmat

from rtbrain.errors import RtbrainError
from rtbrain.simulation.layouts.brainvision import Marker, write_brainvision
from rtbrain.simulation.layouts.digital import digitised
from rtbrain.simulation.layouts.edf import EdfSignal, write_edf
from rtbrain.simulation.layouts.matlab import append_matrix, start_mat
from rtbrain.simulation.layouts.pickled import append_array, end_pickle, start_pickle
from rtbrain.training.datasets.safe_pickle import load_arrays

NAMES = ("Fz", "Cz", "Pz")


def cut(x, *sizes):
    """Cut rows into blocks of these sizes, the rest in one."""
    return np.split(x, np.cumsum(sizes))


@pytest.mark.parametrize(("kind", "low", "high"), [("EDF", "-3276.8", "3276.7"), ("BDF", "-262144", "262143")])
def test_edf_and_bdf_read_by_mne(kind, low, high, tmp_path, rng):
    path = tmp_path / f"x.{kind.lower()}"
    x = rng.normal(0, 30, (500, 3))
    x[7] = [-3276.8, 3276.7, 0]
    signals = [EdfSignal(name, low, high, prefilter="HP: DC") for name in NAMES]
    write_edf(path, kind, signals, 100, cut(x, 1, 0, 99, 150, 230), "03.02.24 10.20.30")
    raw = mne.io.read_raw(path, verbose="ERROR")
    assert tuple(raw.ch_names) == NAMES
    assert raw.info["sfreq"] == 100
    assert raw.info["meas_date"].strftime("%d.%m.%y %H.%M.%S") == "03.02.24 10.20.30"
    step = (float(high) - float(low)) / (2 ** (16 if kind == "EDF" else 24) - 1)
    assert np.abs(raw.get_data().T * 1e6 - x).max() < 0.51 * step


def test_edf_refuses_what_it_cannot_hold(tmp_path):
    signals = [EdfSignal("Fz", "-3276.8", "3276.7")]
    with pytest.raises(ValueError, match="50 samples are left over"):
        write_edf(tmp_path / "x.edf", "EDF", signals, 100, [np.zeros((150, 1))])
    with pytest.raises(RtbrainError, match=r"x\.edf: a sample of 3277 does not fit into 16 bits"):
        write_edf(tmp_path / "x.edf", "EDF", signals, 1, [np.array([[3277.0]])])
    with pytest.raises(ValueError, match="does not fit into 16 characters"):
        write_edf(tmp_path / "x.edf", "EDF", [EdfSignal("E" * 17, "-1", "1")], 1, [])


def test_numbers_are_never_cut_off(tmp_path):
    x = np.array([-3276.8, 3276.7])
    assert digitised(x, 0.1, 0.0, 16, tmp_path).tolist() == [-32768, 32767]
    for bad in (-3276.9, 3276.8, np.nan, np.inf):
        with pytest.raises(RtbrainError, match="does not fit"):
            digitised(np.array([bad]), 0.1, 0.0, 16, tmp_path)


def test_brainvision_read_by_mne(tmp_path, rng):
    path = tmp_path / "x.vhdr"
    x = rng.normal(0, 30, (700, 3))
    write_brainvision(path, NAMES, 500, cut(x, 1, 300), [Marker(0, 1), Marker(250, 12)])
    raw = mne.io.read_raw_brainvision(path, verbose="ERROR")
    assert tuple(raw.ch_names) == NAMES
    assert raw.info["sfreq"] == 500
    assert np.abs(raw.get_data().T * 1e6 - x).max() < 0.0501
    events, codes = mne.events_from_annotations(raw, verbose="ERROR")
    assert {name.split("/")[-1]: code for name, code in codes.items()}["S 12"] == 12
    assert [(int(row), int(code)) for row, _, code in events if code < 1000] == [(0, 1), (250, 12)]


def test_mat_read_by_scipy(tmp_path, rng):
    path = tmp_path / "x.mat"
    x, y = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    with path.open("wb") as file:
        start_mat(file)
        append_matrix(file, "ab_eeg1", 4, 30, cut(x, 1, 20))
        append_matrix(file, "ab_eeg10", 4, 7, [y])
    assert whosmat(path) == [("ab_eeg1", (4, 30), "double"), ("ab_eeg10", (4, 7), "double")]
    read = loadmat(path)
    assert np.array_equal(read["ab_eeg1"], x.T)
    assert np.array_equal(read["ab_eeg10"], y.T)
    with path.open("wb") as file, pytest.raises(ValueError, match="224 bytes were given, its shape needs 256"):
        append_matrix(file, "z", 4, 8, [y])


def test_pickle_read_by_numpy_and_by_the_reader(tmp_path, rng):
    path = tmp_path / "x.dat"
    x, y = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 4))
    with path.open("wb") as file:
        start_pickle(file)
        append_array(file, "labels", y.shape, [y])
        append_array(file, "data", x.shape, [x[0], x[1]])
        end_pickle(file)
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy complains of the module names that Python 2 wrote
        plain = pickle.load(file, encoding="latin1")
    for read in (plain, load_arrays(path)):
        assert list(read) == ["labels", "data"]
        assert np.array_equal(read["data"], x)
        assert np.array_equal(read["labels"], y)
    with path.open("wb") as file, pytest.raises(ValueError, match="64 bytes were given, its shape needs 72"):
        append_array(file, "z", (3, 3), [y])
