"""Planted traces of the recording chain."""

import numpy as np
import pytest
from scipy import signal

from rtbrain.errors import ConfigError
from rtbrain.simulation import NARROW, Confound, World
from rtbrain.simulation.confound import Recorder, export_filter
from rtbrain.sources.electrodes import TEN_TWENTY_19


@pytest.mark.parametrize("rate_hz", [128.0, 256.0, 1000.0])
def test_the_narrow_filter_answers_as_the_one_that_was_measured(rate_hz: float) -> None:
    measured = {0.5: -24, 1.0: -12, 1.5: -4, 2.5: 0, 10.0: 0, 28.0: 0, 35.0: -4.4, 40.0: -15, 45.0: -25}
    sos = export_filter(NARROW, rate_hz)
    _, response = signal.freqz_sos(sos, worN=np.array(list(measured)), fs=rate_hz)
    found = 20 * np.log10(np.abs(response))
    for (hz, expected), db in zip(measured.items(), found, strict=True):
        # Near Nyquist of 128 Hz a digital filter falls faster.
        assert db == pytest.approx(expected, abs=3.0) or (rate_hz == 128 and hz > 35 and db < expected)


def test_a_recorder_over_blocks_is_one_over_the_whole(rng: np.random.Generator) -> None:
    x = 100 + rng.standard_normal((1000, 3))
    confound = Confound(high_pass_hz=1.8, low_pass_hz=34.0, line_hz=5.2)
    one, many = (Recorder(confound, 256.0, 3, np.random.default_rng(1)) for _ in range(2))
    expected = one(x, 0)
    found = np.concatenate([many(x[:1], 0), many(x[1:300], 1), many(x[300:], 300)])
    assert found == pytest.approx(expected, abs=1e-9)
    assert np.abs(expected[:50]).max() < 30  # no step at the start, as large as the offset was
    assert Recorder(Confound(), 256.0, 3, rng)(x, 0) == pytest.approx(x)


def test_lines_and_filter_reach_the_recording_and_leave_the_states() -> None:
    def spectrum(confound: Confound | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        made = World().trial(0, 0, 0, TEN_TWENTY_19, 256.0, 60.0, confound)
        hz, power = signal.welch(np.concatenate(list(made.chunks())), 256.0, nperseg=2048, axis=0)
        return hz, 10 * np.log10(power.mean(axis=1)), made.states

    hz, plain, states = spectrum(None)
    _, narrow, same = spectrum(NARROW)
    assert np.array_equal(states, same)
    change = narrow - plain
    assert change[np.searchsorted(hz, 40.0)] < -10
    assert change[np.searchsorted(hz, 1.0)] < -8
    assert np.abs(change[(hz > 4) & (hz < 28)]).max() < 1.0
    _, lined, _ = spectrum(Confound(line_hz=5.25))
    for multiple in (1, 2, 3, 4):
        assert (lined - plain)[np.searchsorted(hz, 5.25 * multiple)] > 6
    assert np.median(np.abs(lined - plain)) < 0.1


def test_lines_above_half_the_rate_are_left_out() -> None:
    recorder = Recorder(Confound(line_hz=50.0), 128.0, 2, np.random.default_rng(0))
    hz, power = signal.periodogram(recorder(np.zeros((1280, 2)), 0)[:, 0], 128.0)
    assert hz[power > 1e-3 * power.max()] == pytest.approx([50.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [({"low_pass_hz": 0.0}, "low_pass_hz is 0"), ({"line_uv": -1.0}, "line_uv"), ({"n_lines": 0}, "n_lines")],
)
def test_wrong_confounds_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Confound(**values)  # type: ignore[arg-type]


def test_a_filter_above_half_the_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a rate above 68 Hz, not 64 Hz"):
        Recorder(NARROW, 64.0, 2, np.random.default_rng(0))
