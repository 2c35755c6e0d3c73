"""The causal filter of a band, against scipy, against theory, and against steps that must not ring."""

import itertools

import numpy as np
import pytest
from scipy import signal

from rtbrain.conditioning.filters import Band, BandFilter, NotchSettings, WarmUp, decimation_factor, design
from rtbrain.errors import RateError
from rtbrain.messages import Chunk, StreamInfo
from tests.streams import NAMES, eeg

BANDS = {"broad": Band(), "alpha": Band("alpha", 8, 13, 3), "low": Band("low", 2, 20, 4)}
RATES = [160.0, 250.0, 500.0, 1000.0, 2048.0]


def run(data: np.ndarray, rate_hz: float, band: Band | None = None, notch: NotchSettings | None = None) -> np.ndarray:
    stage = BandFilter(band or Band(), notch)
    stage.open(StreamInfo(rate_hz, NAMES[: data.shape[1]]))
    return stage.process(Chunk(np.ascontiguousarray(data))).data


def sine(hz: float, rate_hz: float, seconds: float = 8.0) -> np.ndarray:
    return 50 * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate_hz)) / rate_hz)[:, None]


def settled_rms(y: np.ndarray) -> float:
    return float(np.sqrt((y[len(y) // 2 :] ** 2).mean()))


@pytest.mark.parametrize(
    ("rate_hz", "factor"),
    [(1000, 4), (500, 2), (512, 2), (256, 1), (250, 1), (160, 1), (2048, 8), (350, 1), (128, 1), (5000, 20), (200, 1)],
)
def test_rates_are_decimated_by_a_whole_factor_close_to_250_hz(rate_hz: float, factor: int) -> None:
    assert decimation_factor(rate_hz) == factor
    info = BandFilter(Band()).open(StreamInfo(float(rate_hz), NAMES))
    assert info.rate_hz == rate_hz / factor


@pytest.mark.parametrize("notch", [None, NotchSettings(50.0)])
@pytest.mark.parametrize("band", BANDS.values(), ids=BANDS)
@pytest.mark.parametrize("rate_hz", RATES)
def test_the_filter_is_scipys_started_in_the_steady_state_of_the_first_sample(
    rate_hz: float, band: Band, notch: NotchSettings | None, rng: np.random.Generator
) -> None:
    data = eeg(1000, rng, rate_hz=rate_hz)
    sos = design(band, notch, rate_hz, decimation_factor(rate_hz, band.high_hz))
    wanted, _ = signal.sosfilt(sos, data, axis=0, zi=signal.sosfilt_zi(sos)[:, :, None] * data[0])
    # The same arithmetic in another order: both agree to a tenth of a picovolt.
    np.testing.assert_allclose(
        run(data, rate_hz, band, notch), wanted[:: decimation_factor(rate_hz)], rtol=0, atol=1e-7
    )


def test_the_sample_grid_decides_which_samples_stay(rng: np.random.Generator) -> None:
    data = eeg(1000, rng)
    stage = BandFilter(Band())
    stage.open(StreamInfo(1000.0, NAMES))
    first = stage.process(Chunk(data[:250], 1001))  # as after a break: the grid goes on at 1001
    second = stage.process(Chunk(data[250:], 1251))
    assert (first.start, len(first), second.start) == (251, 62, 313)
    sos = design(Band(), None, 1000.0, 4)
    wanted, _ = signal.sosfilt(sos, data, axis=0, zi=signal.sosfilt_zi(sos)[:, :, None] * data[0])
    np.testing.assert_allclose(np.concatenate([first.data, second.data]), wanted[3::4], rtol=0, atol=1e-7)


@pytest.mark.parametrize("rate_hz", RATES)
def test_the_band_passes_and_the_rest_does_not(rate_hz: float) -> None:
    reference = settled_rms(sine(10, rate_hz))
    assert settled_rms(run(sine(10, rate_hz), rate_hz)) == pytest.approx(reference, rel=0.01)
    assert settled_rms(run(sine(0.1, rate_hz, 40), rate_hz)) < 0.02 * reference
    assert settled_rms(run(sine(75, rate_hz), rate_hz)) < 0.3 * reference


@pytest.mark.parametrize("band", [BANDS["broad"], BANDS["low"]], ids=["broad", "low"])
@pytest.mark.parametrize("rate_hz", [500.0, 512.0, 1000.0, 2048.0])
@pytest.mark.parametrize("fold", [1, -1])
def test_what_decimation_folds_into_the_band_is_at_least_50_db_down(rate_hz: float, band: Band, fold: int) -> None:
    out_hz = rate_hz / decimation_factor(rate_hz)
    for hz in (3.0, 10.0, band.high_hz - 1):
        alias = sine(out_hz + fold * hz, rate_hz)
        assert 20 * np.log10(settled_rms(run(alias, rate_hz, band)) / settled_rms(sine(hz, rate_hz))) < -50


def test_the_notch_takes_the_mains_and_leaves_the_band() -> None:
    notch = NotchSettings(50.0, 2.0)
    assert settled_rms(run(sine(50, 250.0), 250.0, notch=notch)) < 1e-3 * settled_rms(run(sine(50, 250.0), 250.0))
    assert settled_rms(run(sine(10, 250.0), 250.0, notch=notch)) > 0.99 * settled_rms(sine(10, 250.0))


@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize(("band", "at_hz"), [(Band(), 10.0), (BANDS["low"], 10.0), (Band("beta", 13, 30), 19.75)])
def test_the_declared_delay_is_that_of_a_wave_packet(rate_hz: float, band: Band, at_hz: float) -> None:
    t = np.arange(round(8 * rate_hz)) / rate_hz
    packet = np.exp(-(((t - 4) / 0.6) ** 2)) * np.sin(2 * np.pi * at_hz * t)
    y = run(packet[:, None], rate_hz, band)[:, 0]
    t_out = t[:: decimation_factor(rate_hz)]
    measured = (t_out * y**2).sum() / (y**2).sum() - (t * packet**2).sum() / (packet**2).sum()
    declared = BandFilter(band).open(StreamInfo(rate_hz, NAMES)).filter_delay_s
    assert declared == pytest.approx(measured, abs=0.001)


@pytest.mark.parametrize(
    ("band", "delay_ms"),
    [(Band(), 8), (Band(order=4), 15), (Band("low", 2, 20), 19), (Band("low", 2, 20, 4), 34)],
)
def test_the_declared_delay_without_decimation_is_the_known_one(band: Band, delay_ms: float) -> None:
    info = BandFilter(band).open(StreamInfo(250.0, NAMES, filter_delay_s=0.5))
    assert 1000 * (info.filter_delay_s - 0.5) == pytest.approx(delay_ms, abs=1.0)
    assert info.wait_s == 0


@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize("band", BANDS.values(), ids=BANDS)
def test_a_constant_offset_of_100_mv_gives_nothing_from_the_first_sample_on(rate_hz: float, band: Band) -> None:
    out = run(np.full((2000, 2), [1e5, -1e5]), rate_hz, band, NotchSettings())
    assert np.abs(out).max() < 1e-2


def test_a_channel_that_comes_back_5_mv_away_does_not_ring(rng: np.random.Generator) -> None:
    data = rng.standard_normal((1000, 3))
    data[500:, 1] += 5000
    fresh = np.array([False, True, False])
    stage = BandFilter(Band())
    stage.open(StreamInfo(250.0, NAMES[:3]))
    out = [stage.process(Chunk(data[:500])), stage.process(Chunk(data[500:], 500, fresh=fresh))]
    untouched = run(data[:, [0, 2]], 250.0)
    got = np.concatenate([chunk.data for chunk in out])
    assert np.abs(got[500:, 1]).max() < 10
    np.testing.assert_array_equal(got[:, [0, 2]], untouched)
    assert np.abs(run(data, 250.0)[500:, 1]).max() > 1000  # what the step does otherwise


def test_the_mask_and_the_filled_flag_pass_through(rng: np.random.Generator) -> None:
    stage = BandFilter(Band())
    stage.open(StreamInfo(250.0, NAMES[:3]))
    good = np.array([True, False, True])
    out = stage.process(Chunk(rng.standard_normal((9, 3)), good=good, filled=True, fresh=~good))
    assert out.good is good
    assert out.filled
    assert out.fresh is None


@pytest.mark.parametrize(("band", "rate_hz"), [(Band(), 99.0), (Band("gamma", 30, 100), 200.0)])
def test_a_rate_too_low_for_the_band_is_refused(band: Band, rate_hz: float) -> None:
    with pytest.raises(RateError, match=f"{rate_hz:g} Hz cannot carry .* {band.name} .* at least"):
        BandFilter(band).open(StreamInfo(rate_hz, NAMES))


def test_a_notch_above_half_the_rate_is_refused() -> None:
    with pytest.raises(RateError, match="notch at 60 Hz"):
        BandFilter(Band(), NotchSettings(60.0)).open(StreamInfo(110.0, NAMES))


def test_the_lowest_rate_that_carries_the_band_is_taken() -> None:
    assert BandFilter(Band()).open(StreamInfo(100.0, NAMES)).rate_hz == 100.0


def test_the_warm_up_drops_the_first_samples_whatever_the_chunks(rng: np.random.Generator) -> None:
    data = rng.standard_normal((100, 3))
    stage = WarmUp(200.0)  # 50 samples
    stage.open(StreamInfo(250.0, NAMES[:3]))
    out = [stage.process(Chunk(data[a:b], 7 + a)) for a, b in itertools.pairwise([0, 20, 49, 60, 100])]
    assert [(chunk.start, len(chunk)) for chunk in out] == [(27, 0), (56, 0), (57, 10), (67, 40)]
    np.testing.assert_array_equal(np.concatenate([chunk.data for chunk in out]), data[50:])


@pytest.mark.parametrize("rate_hz", [500.0, 1000.0, 2048.0])
@pytest.mark.parametrize("band", [Band("gamma", 30, 100), Band("wide", 1, 110), Band("broad", 1, 40)], ids=str)
def test_a_band_edge_is_at_minus_three_decibels_whatever_the_decimation(rate_hz: float, band: Band) -> None:
    factor = decimation_factor(rate_hz, band.high_hz)
    _, response = signal.freqz_sos(design(band, None, rate_hz, factor), worN=[band.high_hz], fs=rate_hz)
    assert 20 * np.log10(abs(response[0])) == pytest.approx(-3.0, abs=0.2)
