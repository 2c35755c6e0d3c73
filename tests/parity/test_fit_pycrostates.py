"""On the same real peaks our fit explains at least as much as pycrostates' best of 100 restarts."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from rtbrain.messages import FloatArray
from rtbrain.microstates.explained import gev
from rtbrain.microstates.fit import FitSettings, fit
from rtbrain.microstates.gfp import PeakFinder, global_field_power

N_PEAKS = 2000


@pytest.fixture(scope="module")
def peaks(data: Path) -> FloatArray:
    """GFP peaks in volts of four recordings: 1-40 Hz, average reference."""
    mne = pytest.importorskip("mne")
    paths = sorted((data / "mdd").glob("*.edf"))[:4]
    if not paths:
        pytest.skip(f"no EDF files in {data / 'mdd'}")
    found = []
    for path in paths:
        raw = mne.io.read_raw_edf(path, preload=True, verbose="error")
        names = [name for name in raw.ch_names if re.fullmatch(r"EEG \w+-LE", name)]
        sos = butter(4, [1, 40], "bandpass", fs=raw.info["sfreq"], output="sos")
        signal = np.ascontiguousarray(sosfiltfilt(sos, raw.get_data(names)).T)
        signal -= signal.mean(axis=1, keepdims=True)
        found.append(signal[PeakFinder(1, 0)(global_field_power(signal))])
    both = np.concatenate(found)
    chosen: FloatArray = both[np.random.default_rng(0).choice(len(both), N_PEAKS, replace=False)]
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [4, 6])
def test_explains_at_least_as_much(peaks: FloatArray, n_states: int) -> None:
    mne = pytest.importorskip("mne")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its imports and repr templates warn
        pytest.importorskip("pycrostates")
        from pycrostates.cluster import ModKMeans
        from pycrostates.io import ChData

        model = ModKMeans(n_clusters=n_states, n_init=100, random_state=0)
        model.fit(ChData(np.ascontiguousarray(peaks.T), mne.create_info(19, 256.0, "eeg")), verbose="error")
    ours = fit(peaks, FitSettings(n_states))
    theirs = gev(peaks, model.cluster_centers_)
    assert theirs == pytest.approx(model.GEV_, abs=1e-9)  # both mean the same by GEV
    assert gev(peaks, ours.maps) >= theirs - 1e-9
