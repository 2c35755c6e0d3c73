"""Maps between montages: as MNE interpolates them, back and forth, and sign and scale do not matter."""

import numpy as np
import pytest
from mne.channels.interpolation import _make_interpolation_matrix

from rtbrain.errors import ChannelError
from rtbrain.microstates.spline import spline_matrix
from rtbrain.sources.electrodes import TEN_TEN_64, TEN_TWENTY_19
from rtbrain.sources.synthetic import dipole_maps
from rtbrain.topography import electrodes_on_sphere
from rtbrain.training.transfer_spline import maps_on


def directions(names: tuple[str, ...]) -> np.ndarray:
    return np.array([electrodes_on_sphere()[name] for name in names])


@pytest.mark.parametrize(("known", "wanted"), [(TEN_TWENTY_19, TEN_TEN_64), (TEN_TEN_64, TEN_TWENTY_19)])
def test_the_matrix_is_that_of_mne(known, wanted):
    ours = spline_matrix(directions(known), directions(wanted))
    assert np.allclose(ours, _make_interpolation_matrix(directions(known), directions(wanted)), atol=1e-8)


def test_dipole_maps_survive():
    small = dipole_maps(TEN_TWENTY_19, 6)
    large = dipole_maps(TEN_TEN_64, 6)
    for maps, channels, target, expected, least in (
        (large, TEN_TEN_64, TEN_TWENTY_19, small, 1 - 1e-9),
        (small, TEN_TWENTY_19, TEN_TEN_64, large, 0.9),  # 19 electrodes know less of what is between and below them
    ):
        found = maps_on(maps, channels, target)
        assert np.allclose(found.sum(axis=1), 0)
        assert np.allclose(np.linalg.norm(found, axis=1), 1)
        centred = expected - expected.mean(axis=1, keepdims=True)
        alike = np.abs((found * centred).sum(axis=1)) / np.linalg.norm(centred, axis=1)
        assert alike.min() > least
        assert np.allclose(maps_on(-3 * maps, channels, target), -found)


def test_the_same_montage_keeps_its_maps():
    maps = dipole_maps(TEN_TWENTY_19, 4)
    shuffled = TEN_TWENTY_19[::-1]
    found = maps_on(maps, TEN_TWENTY_19, shuffled)
    centred = maps - maps.mean(axis=1, keepdims=True)
    alike = (found[:, ::-1] * centred).sum(axis=1) / np.linalg.norm(centred, axis=1)
    assert np.allclose(alike, 1)


def test_unknown_electrodes_are_named():
    with pytest.raises(ChannelError, match=r"no standard position is known for CB1; .*leave these out"):
        maps_on(dipole_maps(TEN_TWENTY_19, 2), TEN_TWENTY_19, ("Cz", "CB1"))
