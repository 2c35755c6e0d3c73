"""The canceller of narrow lines: what it finds, what it takes away, and that it does so without a click."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import signal

from rtbrain.conditioning.lines import LineCanceller, LineSettings, find_line, notches
from rtbrain.errors import ConfigError, RateError
from rtbrain.messages import Chunk, StreamInfo
from tests.contract.cases import with_lines
from tests.streams import NAMES, eeg

RATE = 256.0
LINES = LineSettings()
WINDOW = 8 * 256
LEVELS = (30.0, 10.0, 8.0, 5.0, 4.0, 3.0)


def background(seconds: float, rng: np.random.Generator, rate_hz: float = RATE) -> np.ndarray:
    """Return EEG-like noise: a falling spectrum of a few microvolts per channel, no line."""
    white = rng.standard_normal((round(seconds * rate_hz), len(NAMES)))
    return 3 * signal.lfilter([1.0], [1.0, -0.95], white, axis=0)


def comb(line_hz: float | np.ndarray, n: int, rate_hz: float = RATE) -> np.ndarray:
    """Return (n, 1) a line, which may drift from sample to sample, and its multiples."""
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(line_hz, n)) / rate_hz
    return sum(level * np.sin((i + 1) * phase) for i, level in enumerate(LEVELS))[:, None]


def opened(settings: LineSettings = LINES, rate_hz: float = RATE) -> LineCanceller:
    stage = LineCanceller(settings)
    stage.open(StreamInfo(rate_hz, NAMES))
    return stage


def rms(x: np.ndarray) -> float:
    return float(np.sqrt((x**2).mean()))


@pytest.mark.parametrize("line_hz", [3.95, 4.3, 5.0, 5.437, 6.06, 6.38])
@pytest.mark.parametrize("rate_hz", [160.0, 256.0, 1000.0])
def test_a_line_is_found_to_a_fiftieth_of_a_hertz(line_hz: float, rate_hz: float, rng: np.random.Generator) -> None:
    data = background(8, rng, rate_hz)
    found = find_line(data + 0.3 * comb(line_hz, len(data), rate_hz), LINES, rate_hz)
    assert found == pytest.approx(line_hz, abs=0.02)


def test_noise_is_hardly_ever_a_line(rng: np.random.Generator) -> None:
    assert sum(find_line(background(8, rng), LINES, RATE) is not None for _ in range(200)) <= 2


def test_a_broad_rhythm_is_no_line(rng: np.random.Generator) -> None:
    theta = signal.butter(2, [4.2, 5.8], "bandpass", fs=RATE, output="sos")
    for _ in range(20):
        rhythm = signal.sosfilt(theta, rng.standard_normal((WINDOW + 512, len(NAMES))), axis=0)[512:]
        assert find_line(background(8, rng) + 100 * rhythm, LINES, RATE) is None


@pytest.mark.parametrize("line_hz", [3.0, 7.5, 10.0])
def test_lines_elsewhere_are_left_alone(line_hz: float, rng: np.random.Generator) -> None:
    tone = 30 * np.sin(2 * np.pi * line_hz * np.arange(WINDOW) / RATE)[:, None]
    assert find_line(background(8, rng) + tone, LINES, RATE) is None


def test_the_strongest_line_is_taken(rng: np.random.Generator) -> None:
    t = np.arange(WINDOW)[:, None] / RATE
    data = background(8, rng) + 10 * np.sin(2 * np.pi * 4.2 * t) + 20 * np.sin(2 * np.pi * 5.9 * t)
    assert find_line(data, LINES, RATE) == pytest.approx(5.9, abs=0.02)


def test_a_loud_channel_does_not_hide_the_line_of_the_others(rng: np.random.Generator) -> None:
    data = background(8, rng) + 0.3 * comb(4.6, WINDOW)
    data[:, 2] = 1000 * background(8, rng)[:, 2]
    assert find_line(data, LINES, RATE) == pytest.approx(4.6, abs=0.02)


def test_silence_has_no_line() -> None:
    assert find_line(np.zeros((WINDOW, 3)), LINES, RATE) is None


def test_the_notches_are_deep_and_narrow() -> None:
    centres = 5.0 * np.arange(1, 7)
    at = np.concatenate([centres, centres + 0.3, centres[:-1] + 2.5])
    _, response = signal.freqz_sos(notches(LINES, 5.0, RATE), worN=at, fs=RATE)
    gain_db = 20 * np.log10(np.abs(response) + 1e-12)
    assert gain_db[:6].max() < -100
    np.testing.assert_allclose(gain_db[6:12], -6, atol=0.5)  # two notches of -3 dB each
    assert gain_db[12:].min() > -0.5


@pytest.mark.parametrize("rate_hz", [160.0, 250.0, 256.0, 1000.0])
def test_a_line_and_its_multiples_are_gone_after_the_first_look(rate_hz: float, rng: np.random.Generator) -> None:
    data = background(24, rng, rate_hz)
    lines = comb(4.7, len(data), rate_hz)
    stage = opened(rate_hz=rate_hz)
    out = stage.process(Chunk(data + lines)).data
    clean = signal.sosfilt(notches(LINES, 4.7, rate_hz), data, axis=0)
    after = slice(round(8.5 * rate_hz), None)
    assert rms(out[after] - clean[after]) < 0.03 * rms(lines)
    assert stage.line_hz == pytest.approx(4.7, abs=0.01)
    assert stage.found == stage.looks == 9


def test_a_line_that_drifts_is_followed(rng: np.random.Generator) -> None:
    data = background(60, rng)
    lines = comb(np.linspace(5.6, 5.3, len(data)), len(data))
    out = opened().process(Chunk(data + lines)).data
    assert rms(out[10 * 256 :] - data[10 * 256 :]) < 0.35 * rms(lines)


def test_without_a_line_the_notches_stay_where_they_start(rng: np.random.Generator) -> None:
    data = background(30, rng)
    stage = opened()
    sos = notches(LINES, LINES.start_hz, RATE)
    wanted, _ = signal.sosfilt(sos, data, axis=0, zi=signal.sosfilt_zi(sos)[:, :, None] * data[0])
    np.testing.assert_allclose(stage.process(Chunk(data)).data, wanted, rtol=0, atol=1e-7)
    assert (stage.looks, stage.found, stage.line_hz) == (12, 0, LINES.start_hz)


def test_notches_that_move_are_as_if_they_had_always_been_there(rng: np.random.Generator) -> None:
    data = background(9.9, rng) + comb(6.0, round(9.9 * RATE))  # up to the second look
    stage = opened()
    out = stage.process(Chunk(data)).data
    sos = notches(LINES, stage.line_hz, RATE)
    wanted, _ = signal.sosfilt(sos, data, axis=0, zi=signal.sosfilt_zi(sos)[:, :, None] * data[0])
    np.testing.assert_allclose(out[WINDOW:], wanted[WINDOW:], rtol=0, atol=1e-4)


def test_a_line_that_jumps_makes_no_click(rng: np.random.Generator) -> None:
    n = 40 * 256
    data = 0.1 * background(40, rng)
    lines = comb(np.where(np.arange(n) < 19 * 256, 4.2, 6.1), n)
    stage = opened()
    out = stage.process(Chunk(data + lines)).data
    assert stage.line_hz == pytest.approx(6.1, abs=0.02)
    peak = np.abs(out.reshape(-1, 256, len(NAMES))).max(axis=(1, 2))  # of each second
    moved = np.flatnonzero((peak[:-1] > 30) & (peak[1:] <= 30)) + 1
    assert moved.tolist() == [8, 24]  # the first look, and when most of the window is after the jump
    assert peak.max() < sum(LEVELS)
    assert peak[8:19].max() < 6  # from the very second in which the notches moved
    assert peak[24:].max() < 6


def test_faulty_channels_have_no_say(rng: np.random.Generator) -> None:
    data = background(12, rng)
    data[:, :4] += comb(4.2, len(data))
    good = np.arange(len(NAMES)) >= 4
    stage = opened()
    stage.process(Chunk(data, good=good))
    assert (stage.looks, stage.found) == (3, 0)
    stage = opened()
    stage.process(Chunk(data[:100], good=good))  # bad at first: no say as long as that is in the window
    stage.process(Chunk(data[100:2100], 100))
    assert (stage.looks, stage.found) == (1, 0)
    stage.process(Chunk(data[2100:], 2100))
    assert (stage.looks, stage.found) == (3, 2)


def test_no_look_without_a_channel_that_was_good_all_along(rng: np.random.Generator) -> None:
    data = background(12, rng) + comb(4.2, 12 * 256)
    stage = opened()
    out = stage.process(Chunk(data, good=np.zeros(len(NAMES), bool)))
    assert (stage.looks, stage.line_hz) == (0, LINES.start_hz)
    assert np.isfinite(out.data).all()


@pytest.mark.parametrize("at", [7 * 256 + 5, 9 * 256])  # before the first look, which moves the notches, and after it
def test_a_channel_that_comes_back_5_mv_away_does_not_ring(at: int, rng: np.random.Generator) -> None:
    data = background(14, rng) + comb(4.4, 14 * 256)
    data[at:, 1] += 5000
    fresh = np.arange(len(NAMES)) == 1
    stage = opened()
    parts = [stage.process(Chunk(data[:at])), stage.process(Chunk(data[at:], at, fresh=fresh))]
    assert parts[1].fresh is fresh  # the filters behind have to start anew as well
    out = np.concatenate([part.data for part in parts])
    assert np.abs(out[at:, 1] - 5000).max() < 2 * np.abs(data[:at]).max()
    step = opened().process(Chunk(data)).data  # what the step does otherwise
    assert np.abs(step[at + 20 :, 1] - 5000).max() > 500


def test_a_fault_that_is_over_does_not_come_back_when_the_notches_move(rng: np.random.Generator) -> None:
    data = background(10, rng) + comb(4.4, 2560)
    at = 7 * 256 + 5
    fault = np.zeros_like(data)
    fault[at - 200 : at, 1] = 5000
    outputs = []
    for before in (data, data + fault):
        stage = opened()
        stage.process(Chunk(before[:at]))
        outputs.append(stage.process(Chunk(data[at:], at, fresh=np.arange(len(NAMES)) == 1)).data)
        assert stage.found == 2  # the other channels have the line, and the notches moved
    np.testing.assert_array_equal(outputs[1], outputs[0])


def test_an_offset_of_100_mv_passes_unharmed(rng: np.random.Generator) -> None:
    data = background(10, rng) + comb(5.1, 2560)
    plain = opened().process(Chunk(data)).data
    np.testing.assert_allclose(opened().process(Chunk(data + 1e5)).data - 1e5, plain, rtol=0, atol=1e-5)


def test_flags_pass_through(rng: np.random.Generator) -> None:
    good = np.arange(len(NAMES)) > 1
    out = opened().process(Chunk(eeg(40, rng), 17, good=good, filled=True, fresh=~good))
    assert (out.start, out.filled) == (17, True)
    assert out.good is good
    assert (out.fresh == ~good).all()


def test_the_declared_delay_is_that_of_the_energy_that_passes() -> None:
    stage = LineCanceller(LINES)
    info = stage.open(StreamInfo(RATE, NAMES, filter_delay_s=0.5))
    n = 16 * 256
    response = np.fft.rfft(signal.sosfilt(notches(LINES, LINES.start_hz, RATE), np.eye(1, n)[0]))
    hz = np.fft.rfftfreq(n, 1 / RATE)
    middle = (LINES.low_hz + LINES.multiples * LINES.high_hz) / 2
    response *= np.abs(hz - middle) < middle - LINES.low_hz
    energy = np.fft.irfft(response) ** 2
    lag = (energy * np.where(np.arange(n) < n // 2, np.arange(n), np.arange(n) - n)).sum() / energy.sum() / RATE
    assert info.filter_delay_s - 0.5 == pytest.approx(lag, abs=0.002)
    assert info.wait_s == 0


def test_the_contract_puts_moving_notches_to_the_test(rng: np.random.Generator) -> None:
    stage = opened(LineSettings(every_s=0.5, window_s=4.0), 250.0)
    places = set()
    for piece in with_lines(700, rng):
        for row in range(0, len(piece), 50):
            stage.process(replace(piece, data=piece.data[row : row + 50], start=piece.start + row))
            places.add(stage.line_hz)
    assert len(places) > 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"start_hz": 7.0}, r"start_hz \(7\) must be between low_hz \(3.9\) and high_hz \(6.4\)"),
        ({"low_hz": 1.5}, "at least 2 Hz"),
        ({"window_s": 3.0}, "window_s at least 4 s"),
        ({"every_s": 9.0}, "must not be longer than window_s"),
    ],
)
def test_settings_that_find_no_line_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LineSettings(**values)


def test_a_rate_too_low_for_the_highest_notch_is_refused() -> None:
    with pytest.raises(RateError, match=r"up to 38.4 Hz, need a rate above 76.8 Hz, not 76 Hz"):
        opened(rate_hz=76.0)


@pytest.mark.parametrize("rate_hz", [128.0, 250.0, 500.0])
def test_the_first_look_is_not_later_than_the_window(rate_hz: float, rng: np.random.Generator) -> None:
    stage = opened(rate_hz=rate_hz)
    data = background(8.1, rng, rate_hz)
    for row, stop in itertools.pairwise([0, round(7.7 * rate_hz), round(8 * rate_hz)]):
        before = stage.looks
        stage.process(Chunk(data[row:stop], row))
    assert (before, stage.looks) == (0, 1)
