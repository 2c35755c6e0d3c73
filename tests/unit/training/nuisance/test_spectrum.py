from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from rtbrain.errors import SourceError
from rtbrain.messages import Chunk, FloatArray, StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.training.nuisance.lines import LINE_DB, Line, comb, find_lines, folded_mains, line_contrast
from rtbrain.training.nuisance.spectrum import Spectrum, measure_spectrum, segment_s

RATE_HZ = 128.0


@dataclass
class Samples(Source):
    data: FloatArray
    times: FloatArray | None = None
    unit: str = "uV"

    def __post_init__(self) -> None:
        names = tuple(f"E{i}" for i in range(self.data.shape[1]))
        self.info, self.n_samples = StreamInfo(RATE_HZ, names, self.unit), len(self.data)

    def _produce(self) -> Iterator[Chunk]:
        yield Chunk(self.data, 0, self.times)


def sine(hz: float, seconds: float = 60) -> FloatArray:
    return np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE_HZ)) / RATE_HZ)


def noise(rng: np.random.Generator, seconds: float = 60, n_channels: int = 4) -> FloatArray:
    return rng.standard_normal((round(seconds * RATE_HZ), n_channels))


def test_the_level_of_white_noise_is_its_power_density(rng: np.random.Generator) -> None:
    found = measure_spectrum(Samples(noise(rng, 300) * 3.0))
    # The median of the logarithm of power lies 1.6 dB below the logarithm of its mean.
    expected = 10 * np.log10(9.0 / (RATE_HZ / 2)) - 1.6
    assert found.between(2, 50) == pytest.approx(expected, abs=0.2)
    assert found.step_hz == pytest.approx(1 / 8)


def test_units_are_brought_to_microvolts(rng: np.random.Generator) -> None:
    data = noise(rng)
    in_volts = measure_spectrum(Samples(data * 1e-6, unit="V"))
    np.testing.assert_allclose(in_volts.db, measure_spectrum(Samples(data)).db, atol=1e-6)


def test_blinks_a_bad_electrode_offset_and_trend_do_not_move_it(rng: np.random.Generator) -> None:
    data = noise(rng, 120, 19)
    plain = measure_spectrum(Samples(data))
    spoilt = data + 1e4 + np.linspace(0, 3e3, len(data))[:, None]
    spoilt[2000:2200] += 500
    spoilt[:, 0] = np.nan
    spoilt[:, 1] = 7.0
    spoilt[:, 2] *= 100
    shift = measure_spectrum(Samples(spoilt)).db[4:] - plain.db[4:]
    assert abs(np.median(shift)) < 0.7
    assert np.abs(shift).max() < 4


@pytest.mark.parametrize("at", [512, 700, 1023])  # between two chunks, and within one
def test_no_segment_lies_across_an_interruption(rng: np.random.Generator, at: int) -> None:
    n = round(8 * RATE_HZ)
    data, times = noise(rng, 8), np.arange(n) / RATE_HZ
    assert measure_spectrum(Samples(data, times)).between(2, 50) < 0
    times[at:] += 5
    with pytest.raises(SourceError, match="without interruption"):
        measure_spectrum(Samples(data, times))


def test_dead_recordings_are_refused() -> None:
    with pytest.raises(SourceError, match="no channel has a usable signal"):
        measure_spectrum(Samples(np.zeros((5000, 3))))


def test_what_is_not_resolved_or_reached_is_missing() -> None:
    spectrum = Spectrum(0.5, np.zeros(100))
    assert np.isnan(spectrum.level(0.5))
    assert spectrum.level(1.0) == 0
    assert np.isnan(spectrum.level(49.5, 1.0))
    assert segment_s(1000) == 8
    assert segment_s(10) == 4


def test_lines_are_found_where_they_are_and_rhythms_are_not_lines(rng: np.random.Generator) -> None:
    data = noise(rng) + (0.7 * sine(5.07) + 0.5 * sine(10.14) + 0.5 * sine(44.9))[:, None]
    wide = np.convolve(rng.standard_normal(len(data)), sine(20.0, 0.75), "same")  # a rhythm, over a hertz wide
    found = find_lines(measure_spectrum(Samples(data + 0.6 * wide[:, None])))
    assert [line.hz for line in found] == pytest.approx([5.07, 10.14, 44.9], abs=0.03)
    assert all(line.db > 10 for line in found)


def test_a_sharp_rhythm_is_told_from_a_line_by_its_flanks() -> None:
    hz = np.arange(0, 60, 0.125)
    rhythm = Spectrum(0.125, 20 * np.exp(-0.5 * ((hz - 10) / 0.6) ** 2))
    assert line_contrast(rhythm).max() > LINE_DB
    assert find_lines(rhythm) == ()


def test_noise_has_no_lines(rng: np.random.Generator) -> None:
    found = [find_lines(measure_spectrum(Samples(noise(rng, 60, 2)))) for _ in range(20)]
    assert not any(found)


def test_a_coarse_spectrum_shows_no_lines() -> None:
    peak = np.zeros(200)
    peak[20] = 30
    assert find_lines(Spectrum(0.5, peak)) == ()
    assert [line.hz for line in find_lines(Spectrum(0.25, peak))] == [5.0]


def lines(*hz: float) -> tuple[Line, ...]:
    return tuple(Line(each, 20.0) for each in hz)


def test_combs_are_multiples_or_equal_distances() -> None:
    assert comb(lines(5.0, 10.02, 15.04)) == (5.0, 2)
    assert comb(lines(5.46, 33.69, 39.18, 44.64)) == (5.46, 3)
    assert comb(lines(5.0, 10.02))[1] == 0
    assert comb(lines(4.44, 45.87))[1] == 0
    assert comb(lines(3.1, 11.3, 27.9))[1] == 0
    assert comb(())[1] == 0


def test_folded_mains_are_recognised_by_two_harmonics() -> None:
    mains_hz = 50.11
    low, mirrored = 256 - 5 * mains_hz, 6 * mains_hz - 256
    found = folded_mains(lines(low, mirrored), 256.0)
    assert found is not None
    assert found == (pytest.approx(mains_hz), 5)
    assert folded_mains(lines(low), 256.0) is None
    assert folded_mains(lines(low, mirrored + 1.5), 256.0) is None
    assert folded_mains((), 256.0) is None
