"""Units: data in microvolts, or a refusal that names the likely unit."""

import numpy as np
import pytest

from rtbrain.conditioning.units import ToMicrovolts, UnitSettings, amplitude, plausible_units
from rtbrain.errors import UnitError
from rtbrain.messages import Chunk, StreamInfo
from tests.streams import NAMES

RATE = 100.0
PER_MICROVOLT = {"V": 1e-6, "mV": 1e-3, "uV": 1.0, "nV": 1e3}


@pytest.fixture
def microvolts(rng: np.random.Generator) -> np.ndarray:
    return 15 * rng.standard_normal((300, len(NAMES)))


def convert(data: np.ndarray, unit: str) -> Chunk:
    stage = ToMicrovolts(UnitSettings())
    assert stage.open(StreamInfo(RATE, NAMES, unit=unit)).unit == "uV"
    return stage.process(Chunk(data, 5, np.arange(len(data)) / RATE))


@pytest.mark.parametrize("unit", PER_MICROVOLT)
def test_every_unit_becomes_microvolts(unit: str, microvolts: np.ndarray) -> None:
    out = convert(microvolts * PER_MICROVOLT[unit], unit)
    np.testing.assert_allclose(out.data, microvolts, rtol=1e-12)
    assert out.start == 5
    assert out.times is not None


@pytest.mark.parametrize(("declared", "true"), [("uV", "V"), ("V", "uV"), ("mV", "uV"), ("uV", "mV"), ("V", "nV")])
def test_a_wrong_unit_is_refused_and_the_likely_one_named_first(
    declared: str, true: str, microvolts: np.ndarray
) -> None:
    with pytest.raises(UnitError, match=rf"declared as {declared}, .*; it would fit {true}( or \w+)*: check"):
        convert(microvolts * PER_MICROVOLT[true], declared)


def test_an_amplitude_that_fits_no_unit_says_so(microvolts: np.ndarray) -> None:
    with pytest.raises(UnitError, match="it fits no unit"):
        convert(microvolts * 1e12, "uV")


@pytest.mark.parametrize("unit", ["unknown", "", "uv", "µV", "T"])
def test_an_unknown_unit_is_refused_before_the_first_sample(unit: str) -> None:
    with pytest.raises(UnitError, match="one of V, mV, uV, nV"):
        ToMicrovolts(UnitSettings()).open(StreamInfo(RATE, NAMES, unit=unit))


@pytest.mark.parametrize("dead", [0.0, 7.5, np.nan])
def test_a_dead_first_second_is_tolerated_and_the_next_one_judged(dead: float, microvolts: np.ndarray) -> None:
    microvolts[: round(RATE)] = dead
    np.testing.assert_array_equal(convert(microvolts, "uV").data, microvolts)
    with pytest.raises(UnitError, match="it would fit uV"):
        convert(microvolts, "V")


def test_only_the_first_second_with_a_signal_is_judged(microvolts: np.ndarray) -> None:
    microvolts[round(RATE) :] *= 1e6
    np.testing.assert_array_equal(convert(microvolts, "uV").data, microvolts)


def test_offsets_of_the_electrodes_do_not_count(microvolts: np.ndarray, rng: np.random.Generator) -> None:
    offset = rng.uniform(-3e5, 3e5, len(NAMES))
    assert amplitude(microvolts + offset) == pytest.approx(amplitude(microvolts), rel=1e-6)
    convert(microvolts + offset, "uV")
    with pytest.raises(UnitError):
        convert((microvolts + offset) * 1e-6, "uV")


def test_dead_and_lost_channels_do_not_count(microvolts: np.ndarray) -> None:
    alive = amplitude(microvolts[:, 5:])
    microvolts[:, :3] = 1e9
    microvolts[10, 3] = np.nan
    microvolts[0, 4] = np.inf
    assert amplitude(microvolts) == alive
    convert(microvolts, "uV")


def test_nothing_alive_has_no_amplitude() -> None:
    assert amplitude(np.full((10, 3), 4.0)) == 0.0
    assert amplitude(np.full((10, 3), np.nan)) == 0.0
    assert plausible_units(np.zeros((10, 3))) == []


def test_plausible_units_come_most_likely_first(rng: np.random.Generator) -> None:
    noise = rng.standard_normal((1000, 5))
    assert plausible_units(15 * noise) == ["uV"]
    assert plausible_units(400 * noise) == ["uV", "nV"]
    assert plausible_units(2 * noise) == ["uV", "mV"]
