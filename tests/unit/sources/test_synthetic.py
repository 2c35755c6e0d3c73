import tracemalloc
from dataclasses import replace
from itertools import islice

import mne
import numpy as np
import pytest
from scipy.signal import welch

from rtbrain.errors import ChannelError, ConfigError
from rtbrain.sources.electrodes import POSITIONS, TEN_TEN_64, TEN_TWENTY_19, electrode_positions
from rtbrain.sources.synthetic import MAX_STATES, Synthetic, SyntheticSettings, dipole_maps

SETTINGS = SyntheticSettings(duration_s=21.3, seed=4)


def whole(settings, size=None):
    return np.concatenate([chunk.data for chunk in Synthetic(settings).chunks(size, seed=2)])


def test_describes_itself():
    source = Synthetic(SETTINGS)
    assert source.info.channels == TEN_TWENTY_19
    assert (source.info.rate_hz, source.info.unit) == (250, "uV")
    assert (source.n_samples, source.duration_s) == (5325, 21.3)
    assert source.maps.shape == (4, 19)


@pytest.mark.parametrize("size", [1, 7, "random", 5325])
def test_any_chunk_size_gives_the_same(size):
    source = Synthetic(replace(SETTINGS, line_uv=3, drift_uv=9))
    chunks = list(source.chunks(size, seed=2))
    assert np.array_equal(np.concatenate([chunk.data for chunk in chunks]), whole(source.settings))
    assert np.array_equal(np.concatenate([chunk.times for chunk in chunks]), np.arange(5325) / 250)
    assert all(chunk.data.flags.c_contiguous for chunk in chunks)
    assert [chunk.start for chunk in chunks] == np.cumsum([0, *map(len, chunks)])[:-1].tolist()


def test_a_longer_recording_begins_with_the_shorter_one():
    longer = whole(replace(SETTINGS, duration_s=40, line_uv=3, drift_uv=9))
    assert np.array_equal(longer[:5325], whole(replace(SETTINGS, line_uv=3, drift_uv=9)))


def test_the_seed_decides():
    assert np.array_equal(whole(SETTINGS), whole(SETTINGS))
    assert not np.array_equal(whole(SETTINGS), whole(replace(SETTINGS, seed=5)))


def test_states_belong_to_the_samples_and_not_to_the_noise():
    source = Synthetic(SETTINGS)
    states = np.concatenate([states for chunk, states in source.blocks()])
    assert np.array_equal(states, source.states)
    assert np.array_equal(states, Synthetic(replace(SETTINGS, snr=0.5, drift_uv=50)).states)
    assert all(len(chunk) == len(states) for chunk, states in source.blocks())


def test_without_noise_every_sample_is_its_states_map():
    source = Synthetic(replace(SETTINGS, snr=np.inf))
    data, maps = whole(source.settings), source.maps[source.states]
    fit = (data * maps).sum(axis=1, keepdims=True) / 19
    assert np.allclose(data, fit * maps)
    assert 9 < np.sqrt((data**2).mean()) < 11


def test_durations_are_plausible_and_not_geometric():
    states = Synthetic(SyntheticSettings(duration_s=600, seed=1)).states
    edges = np.flatnonzero(np.diff(states)) + 1
    durations_ms = np.diff(edges) * 4
    assert durations_ms.mean() == pytest.approx(70, rel=0.03)
    # Geometric durations have a standard deviation of about their mean, and most often last one sample.
    assert durations_ms.std() < 0.6 * durations_ms.mean()
    assert durations_ms.min() >= 20
    assert np.allclose(np.bincount(states) / len(states), 0.25, atol=0.02)


def test_noise_is_1_over_f_and_as_strong_as_stated():
    settings = SyntheticSettings(duration_s=300, snr=1e-3, amplitude_uv=0.02)
    data = whole(settings)
    assert data.std() == pytest.approx(20, rel=0.05)
    f, power = welch(data.mean(axis=1), 250, nperseg=2500)
    band = (f > 0.5) & (f < 80)
    assert np.polyfit(np.log(f[band]), np.log(power[band]), 1)[0] == pytest.approx(-1, abs=0.1)
    assert np.abs(np.corrcoef(data.T) - np.eye(19)).max() < 0.1


def test_noise_goes_on_from_block_to_block():
    data = whole(SyntheticSettings(duration_s=400, snr=1e-3, amplitude_uv=0.02))
    for name, rows in {"borders": np.arange(1000, 100_000, 1000), "inside": np.arange(1500, 100_000, 1000)}.items():
        assert np.corrcoef(data[rows - 1].ravel(), data[rows].ravel())[0, 1] > 0.6, name


def test_alpha_goes_on_from_block_to_block():
    data = whole(SyntheticSettings(duration_s=800, snr=np.inf, n_states=1))
    gfp = data.std(axis=1)  # |alpha|: polarity changes at random
    steps = np.abs(np.diff(gfp))
    assert steps[999::1000].mean() < 1.3 * steps.mean()


def test_alpha_line_and_drift_are_where_they_should_be():
    f, quiet = welch(whole(SyntheticSettings(duration_s=60)), 250, nperseg=1000, axis=0)
    assert 8 <= f[quiet.mean(axis=1)[4:].argmax() + 4] <= 12
    loud = welch(whole(SyntheticSettings(duration_s=60, line_uv=20, line_hz=60)), 250, nperseg=1000, axis=0)[1]
    assert f[(loud / quiet).mean(axis=1).argmax()] == 60
    drift = whole(SyntheticSettings(duration_s=300, drift_uv=40)) - whole(SyntheticSettings(duration_s=300))
    assert drift.std() == pytest.approx(40, rel=0.25)
    assert np.abs(np.diff(drift, axis=0)).max() < 10


@pytest.mark.parametrize("channels", [TEN_TWENTY_19, TEN_TEN_64])
def test_maps_are_distinct_and_average_referenced(channels):
    maps = dipole_maps(channels, MAX_STATES)
    assert np.allclose(maps.mean(axis=1), 0)
    assert np.allclose(maps.std(axis=1), 1)
    assert np.abs(np.corrcoef(maps) - np.eye(MAX_STATES)).max() < 0.7


def test_maps_are_smooth():
    positions, maps = electrode_positions(TEN_TEN_64), dipole_maps(TEN_TEN_64, MAX_STATES)
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2) + 9 * np.eye(64)
    nearest = distances.argmin(axis=1)
    assert all(np.corrcoef(one, one[nearest])[0, 1] > 0.7 for one in maps)


def test_electrodes_are_where_mne_has_them():
    theirs = mne.channels.make_standard_montage("biosemi64").get_positions()["ch_pos"]
    assert set(theirs) == set(TEN_TEN_64)
    for name, place in theirs.items():
        unit = place / np.linalg.norm(place)
        assert np.degrees(np.arccos(np.clip(unit @ POSITIONS[name], -1, 1))) < 3, name
    assert POSITIONS["T3"] == POSITIONS["T7"]


def test_a_day_long_stream_needs_no_day_long_array():
    source = Synthetic(SyntheticSettings(duration_s=86400, rate_hz=500, channels=TEN_TEN_64))
    assert source.n_samples == 43_200_000
    tracemalloc.start()
    rows = sum(len(chunk) for chunk in islice(source.chunks(500), 60))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 30000
    assert peak < 20e6


@pytest.mark.parametrize("n_states", [1, 2, 8])
def test_any_number_of_states(n_states):
    states = Synthetic(replace(SETTINGS, n_states=n_states)).states
    assert set(states.tolist()) == set(range(n_states))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"n_states": 0}, ConfigError),
        ({"n_states": 9}, ConfigError),
        ({"rate_hz": 0.0}, ConfigError),
        ({"snr": -1.0}, ConfigError),
        ({"snr": float("nan")}, ConfigError),
        ({"drift_uv": -1.0}, ConfigError),
        ({"duration_s": float("inf")}, ConfigError),
        ({"duration_s": 1e-6}, ConfigError),
        ({"channels": ("Fz", "Cz")}, ConfigError),
        ({"channels": ("Fz", "Cz", "Nose")}, ChannelError),
    ],
)
def test_what_cannot_be_made_is_refused(changes, error):
    with pytest.raises(error):
        Synthetic(replace(SETTINGS, **changes))
