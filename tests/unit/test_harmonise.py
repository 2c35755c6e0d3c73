"""The recipe's harmonise block: what it refuses, and that another device's filter and lines hardly reach the tokens."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import signal

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.conditioning.filters import Band, BandFilter, Edges, decimation_factor, design
from rtbrain.conditioning.lines import LineSettings, find_line
from rtbrain.errors import ConfigError, RateError
from rtbrain.messages import Break, Chunk, StreamInfo, Tokens
from rtbrain.microstates.gfp import PeakFinder, global_field_power
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import HarmoniseSettings, Recipe, build, run
from rtbrain.sources.recording import excerpt, open_recording
from rtbrain.training.dataset_config import load_dataset_config
from tests.streams import NAMES, assert_same, cut, eeg, random_sizes

RATE = 256.0
FOUR = (Band("theta", 3, 8, 3), Band("alpha", 8, 13, 3), Band("low-beta", 13, 20, 3), Band("high-beta", 20, 26, 3))
WIDE = Band("broad", 3, 26)
HARMONISED = Recipe(harmonise=HarmoniseSettings(), bands=(WIDE,), warmup_ms=10_000)
EDGES_ONLY = replace(HARMONISED, harmonise=HarmoniseSettings(lines=None))
RAW = Recipe(warmup_ms=10_000)
NARROW_HZ = [0, 0.5, 1, 1.5, 2.5, 28, 35, 40, 45, 128]
NARROW_DB = [-24, -24, -12, -4, 0, 0, -4.4, -15, -25, -25]
"""What the narrower of the two recording filters of the MDD set does to the wider one's recordings."""


def narrowed(x: np.ndarray) -> np.ndarray:
    """Return a recording as the narrower recording filter would have given it."""
    gain = 10 ** (np.interp(np.fft.rfftfreq(len(x), 1 / RATE), NARROW_HZ, NARROW_DB) / 20)
    return np.fft.irfft(np.fft.rfft(x, axis=0) * gain[:, None], len(x), axis=0)


def lines_of(x: np.ndarray) -> np.ndarray:
    """Return a recording's line and its multiples alone, cut out of its spectrogram without any causal filter."""
    hz, times, bins = signal.stft(x, RATE, nperseg=2048, noverlap=1536, axis=0)
    keep = np.zeros((len(hz), len(times)))
    for i, time in enumerate(times):
        first = int(np.clip(time * RATE - 1024, 0, len(x) - 2048))
        line_hz = find_line(x[first : first + 2048], LineSettings(), RATE)
        for multiple in range(1, 9) if line_hz else ():
            keep[np.abs(hz - multiple * line_hz) <= 0.2 + 0.05 * multiple, i] = 1
    _, lines = signal.istft(bins * keep[:, None], RATE, nperseg=2048, noverlap=1536, time_axis=-1, freq_axis=0)
    return np.ascontiguousarray(lines.T[: len(x)])


def samples(x: np.ndarray, recipe: Recipe, channels: tuple[str, ...], band: int = 0) -> np.ndarray:
    chain = build(recipe, upto="samples", band=band)
    chain.open(StreamInfo(RATE, channels))
    return np.concatenate([item.data for item in run(chain, [Chunk(x)])])


def tokens(x: np.ndarray, recipe: Recipe, channels: tuple[str, ...], templates: Templates) -> Tokens:
    chain = build(recipe, templates)
    chain.open(StreamInfo(RATE, channels))
    return Tokens.concat([item for item in run(chain, [Chunk(x)]) if isinstance(item, Tokens)])


def some_maps(x: np.ndarray, recipe: Recipe, channels: tuple[str, ...]) -> Templates:
    """Take four of the signal's own GFP peaks as maps."""
    data = samples(x, recipe, channels)
    peaks = PeakFinder(0, 0)(global_field_power(data))
    return Templates(channels, (referenced(data[peaks[:: len(peaks) // 4][:4]]),))


def share_of_other_labels(a: np.ndarray, b: np.ndarray, recipe: Recipe, channels: tuple[str, ...]) -> float:
    templates = some_maps(a, recipe, channels)
    states = [np.repeat(each.state, each.duration) for each in (tokens(x, recipe, channels, templates) for x in (a, b))]
    n = min(map(len, states))
    return float((states[0][:n] != states[1][:n]).mean())


def power_change_db(x: np.ndarray, y: np.ndarray, recipe: Recipe, channels: tuple[str, ...], band: int = 0) -> float:
    before, after = samples(x, recipe, channels, band), samples(y, recipe, channels, band)
    return float(10 * np.log10((after**2).mean() / (before**2).mean()))


def synthetic(seconds: int, rng: np.random.Generator) -> np.ndarray:
    """Return EEG-like data with muscle above and drifts below the harmonised edges."""
    return eeg(round(seconds * RATE), rng, rate_hz=RATE)


def synthetic_lines(n: int) -> np.ndarray:
    phase = 2 * np.pi * np.cumsum(np.linspace(4.8, 4.9, n)) / RATE
    return sum(level * np.sin((i + 1) * phase) for i, level in enumerate((40, 15, 12, 8, 5)))[:, None]


def test_a_harmonised_recipe_survives_json() -> None:
    assert Recipe.from_dict(json.loads(json.dumps(HARMONISED.to_dict()))) == HARMONISED
    assert Recipe.from_dict({"harmonise": {}, "bands": [{"low_hz": 3, "high_hz": 26}], "warmup_ms": 1e4}) == HARMONISED
    assert Recipe().harmonise is None


def test_the_canceller_comes_once_before_all_bands_and_the_edges_with_each() -> None:
    chain = build(replace(HARMONISED, bands=FOUR), Templates(NAMES, (np.eye(4, len(NAMES)),) * 4))
    assert [type(stage).__name__ for stage in chain.stages][3:] == ["Quality", "LineCanceller", "Interleave"]
    for recipe, after_quality in ((HARMONISED, "LineCanceller"), (EDGES_ONLY, "BandFilter"), (RAW, "BandFilter")):
        stages = build(recipe, upto="samples").stages
        assert type(stages[4]).__name__ == after_quality
        band = next(stage for stage in stages if isinstance(stage, BandFilter))
        assert band.edges is recipe.harmonise


@pytest.mark.parametrize(("low_hz", "high_hz"), [(2.5, 26), (3, 30), (1, 40)])
def test_a_band_beyond_the_edges_is_refused(low_hz: float, high_hz: float) -> None:
    with pytest.raises(ConfigError, match=rf"band b: {low_hz:g} to {high_hz:g} Hz reaches beyond harmonise, 3 to 26"):
        replace(HARMONISED, bands=(WIDE, Band("b", low_hz, high_hz)))


def test_a_warm_up_shorter_than_the_first_look_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"warmup_ms is 1000, but lines are first looked for after 8 s.*to 8000"):
        replace(HARMONISED, warmup_ms=1000)
    replace(EDGES_ONLY, warmup_ms=1000)


def test_edges_without_anything_between_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"nothing is between low_hz \(30\) and high_hz \(26\)"):
        HarmoniseSettings(low_hz=30)


def test_a_rate_too_low_for_the_edges_is_refused() -> None:
    with pytest.raises(RateError, match="low-pass at 26 Hz needs a rate above 52 Hz, not 50 Hz"):
        design(Band("alpha", 8, 13), None, 50.0, 1, Edges())


def test_a_harmonised_set_needs_a_crop(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "configs" / "mdd.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("\ncrop:", "\n#"))
    with pytest.raises(ConfigError, match="needs a crop, for their length"):
        load_dataset_config(str(path))


def test_the_mdd_recipe_is_harmonised_and_gives_tokens_of_seconds_12_to_172() -> None:
    config = load_dataset_config("mdd")
    assert config.recipe.harmonise == HarmoniseSettings()
    assert config.recipe.bands == (WIDE,)
    assert config.crop is not None
    assert config.crop.start_s + config.recipe.warmup_ms / 1000 == 12
    assert config.crop.start_s + config.crop.seconds == 172


@pytest.mark.parametrize("rate_hz", [160.0, 256.0, 1000.0])
def test_the_edges_are_scipys_filters_before_the_band(rate_hz: float, rng: np.random.Generator) -> None:
    data = eeg(3000, rng, rate_hz=rate_hz)
    stage = BandFilter(WIDE, edges=Edges())
    stage.open(StreamInfo(rate_hz, NAMES))
    factor = decimation_factor(rate_hz)
    parts = [
        signal.butter(6, 3, "highpass", fs=rate_hz, output="sos"),
        signal.butter(8, 26, "lowpass", fs=rate_hz, output="sos"),
        design(WIDE, None, rate_hz, factor),
    ]
    wanted = data - data[0]
    for part in parts:
        wanted = signal.sosfilt(part, wanted, axis=0)
    np.testing.assert_allclose(stage.process(Chunk(data)).data, wanted[::factor], rtol=0, atol=1e-6)


def test_tokens_of_a_harmonised_chain_do_not_depend_on_the_chunks(rng: np.random.Generator) -> None:
    data = synthetic(24, rng)
    data += synthetic_lines(len(data))
    data[1200:1300, 2] = np.nan
    times = np.arange(len(data)) / RATE
    times[12 * 256 :] += 1.0  # a gap in the middle: all filters and the search for lines begin anew
    stream = Chunk(data, 0, times)
    quick = LineSettings(every_s=0.5, window_s=4)
    recipe = replace(HARMONISED, harmonise=HarmoniseSettings(lines=quick), bands=FOUR[:2], warmup_ms=4000)
    maps = [referenced(rng.standard_normal((4, len(NAMES)))) for _ in range(2)]
    outputs = []
    for sizes in ([], [1] * 4000, random_sizes(len(stream), rng)):
        chain = build(recipe, Templates(NAMES, tuple(maps)))
        chain.open(StreamInfo(RATE, NAMES))
        outputs.append([item for piece in cut(stream, sizes) for item in chain.process(piece)] + chain.flush())
    assert sum(isinstance(item, Break) for item in outputs[0]) == 1
    assert sum(len(item) for item in outputs[0] if isinstance(item, Tokens)) > 80
    for other in outputs[1:]:
        assert_same(other, outputs[0])


def test_another_recording_filter_changes_raw_tokens_but_not_harmonised_ones(rng: np.random.Generator) -> None:
    x = synthetic(40, rng)
    y = narrowed(x)
    assert share_of_other_labels(x, y, RAW, NAMES) > 0.08
    assert share_of_other_labels(x, y, HARMONISED, NAMES) < 0.02
    assert abs(power_change_db(x, y, HARMONISED, NAMES)) < 0.05


def test_lines_added_to_a_recording_do_not_pass_the_canceller(rng: np.random.Generator) -> None:
    x = synthetic(40, rng)
    y = x + synthetic_lines(len(x)) * rng.uniform(0.5, 1.5, len(NAMES))
    theta = [power_change_db(x, y, replace(recipe, bands=FOUR), NAMES) for recipe in (EDGES_ONLY, HARMONISED)]
    assert theta[0] > 4
    assert abs(theta[1]) < 1


def real(data: Path, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return seconds 2 to 172 of a recording of the MDD set, in microvolts, with the set's channels."""
    path = data / "mdd" / f"{name}.edf"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    source = excerpt(open_recording(path), 2, 170)
    channels = load_dataset_config("mdd").recipe.channels
    chain = build(Recipe(channels=ChannelSettings(channels.names)), upto="samples")
    picker, to_microvolts = chain.stages[:2]
    info = to_microvolts.open(picker.open(source.info))
    pieces = [to_microvolts.process(picker.process(chunk)).data for chunk in source.chunks()]
    return np.concatenate(pieces), info.channels


@pytest.mark.slow
@pytest.mark.parametrize("name", ["H S13 EC", "H S1 EC", "H S2 EO"])
def test_the_narrow_filter_of_the_mdd_set_does_not_reach_harmonised_tokens(data: Path, name: str) -> None:
    x, channels = real(data, name)
    y = narrowed(x)
    assert share_of_other_labels(x, y, RAW, channels) > 0.15
    assert share_of_other_labels(x, y, HARMONISED, channels) < 0.04
    assert abs(power_change_db(x, y, HARMONISED, channels)) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("donor", "recipient"),
    # The last pair is the worst of six that were tried: 0.9 dB remain of 14.
    [("H S28 EC", "MDD S1 EC"), ("H S18 EO", "H S2 EO"), ("H S15 EO", "MDD S19 EO")],
)
def test_lines_of_the_mdd_set_added_to_a_clean_recording_are_cancelled(data: Path, donor: str, recipient: str) -> None:
    lines = lines_of(real(data, donor)[0])
    x, channels = real(data, recipient)
    changes = {
        recipe: [power_change_db(x, x + lines, replace(recipe, bands=FOUR), channels, band) for band in range(4)]
        for recipe in (EDGES_ONLY, HARMONISED)
    }
    assert changes[EDGES_ONLY][0] > 4
    assert np.abs(changes[HARMONISED]).max() < 1.0
