"""Labels: the best |correlation|, borders between peaks, masks, and what must not matter (sign and scale)."""

import numpy as np
import pytest

from rtbrain.conditioning.reference import average_reference
from rtbrain.messages import UNLABELLED, Chunk, Labels, StreamInfo
from rtbrain.microstates.assign import AssignSettings, LabelPeaks, LabelSamples, label, measure, spread
from rtbrain.microstates.templates import Templates, referenced
from tests.streams import NAMES, eeg
from tests.unit.microstates.test_gfp import plain_peaks

RATE = 250.0
RULES = {"peaks": LabelPeaks, "samples": LabelSamples}
each_rule = pytest.mark.parametrize("rule", RULES)


@pytest.fixture
def templates(rng: np.random.Generator) -> Templates:
    return Templates(NAMES, (referenced(rng.standard_normal((4, len(NAMES)))),))


@pytest.fixture
def data(rng: np.random.Generator) -> np.ndarray:
    return average_reference(eeg(1500, rng))


def labels(
    rule: str, templates: Templates, data: np.ndarray, good: np.ndarray | None = None, channels: tuple[str, ...] = NAMES
) -> Labels:
    stage = RULES[rule](templates, 0, AssignSettings(rule=rule), 0.7)
    stage.open(StreamInfo(RATE, channels))
    first, rest = stage.process(Chunk(data, good=good)), stage.flush()
    parts = [first, *(rest if isinstance(rest, list) else [rest])]
    columns = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in Labels.__dataclass_fields__
        if name != "start"
    )
    out = Labels(first.start, *columns)
    assert len(out) == len(data)
    return out


def plain_correlations(data: np.ndarray, maps: np.ndarray) -> np.ndarray:
    return np.array([[abs(np.corrcoef(row, each)[0, 1]) for each in maps] for row in data])


def test_correlation_is_that_of_numpy_without_its_sign(data: np.ndarray, templates: Templates) -> None:
    norm = np.linalg.norm(data[:50], axis=1, keepdims=True)
    along, _ = measure(data[:50], templates.maps[0], start=5, states=len(templates.maps[0]), n_good=data.shape[1])
    corr = along / norm
    np.testing.assert_allclose(corr, plain_correlations(data[:50], templates.maps[0]), rtol=1e-9)


def test_every_sample_gets_the_best_correlated_state(data: np.ndarray, templates: Templates) -> None:
    out = labels("samples", templates, data)
    wanted = plain_correlations(data, templates.maps[0])
    np.testing.assert_array_equal(out.state, wanted.argmax(axis=1))
    np.testing.assert_allclose(out.along, out.gfp[:, None] * wanted, rtol=1e-9)
    np.testing.assert_allclose(out.gfp, data.std(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(out.quality, 1.0)


def test_peaks_spread_over_a_recording_are_those_of_a_plain_loop(data: np.ndarray, templates: Templates) -> None:
    out = labels("peaks", templates, data)
    peaks = plain_peaks(data.std(axis=1).tolist(), 2)  # 10 ms
    states = plain_correlations(data[peaks], templates.maps[0]).argmax(axis=1)
    np.testing.assert_array_equal(out.state, plain_spread(peaks, states.tolist(), len(data), 62))


def plain_spread(peaks: list[int], states: list[int], n: int, max_gap: int) -> list[int]:
    """Label each sample by itself: by the nearest peak, the earlier one of two, as far as peaks reach."""
    out = []
    for i in range(n):
        before = max((k for k, peak in enumerate(peaks) if peak <= i), default=None)
        after = min((k for k, peak in enumerate(peaks) if peak > i), default=None)
        bridged = before is not None and after is not None and peaks[after] - peaks[before] <= max_gap
        reached = [
            (abs(peaks[k] - i), k)
            for k in (before, after)
            if k is not None and (bridged or abs(peaks[k] - i) <= max_gap // 2)
        ]
        out.append(states[min(reached)[1]] if reached else UNLABELLED)
    return out


def test_the_midpoint_rounds_down_and_belongs_to_the_earlier_peak() -> None:
    even = spread(np.array([2, 6]), np.array([0, 1]), 0, 9, 10)
    odd = spread(np.array([2, 7]), np.array([0, 1]), 0, 9, 10)
    assert even.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert odd.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_peaks_farther_apart_than_the_limit_leave_an_unlabelled_run() -> None:
    exactly = spread(np.array([5, 11]), np.array([0, 1]), 0, 17, 6)
    farther = spread(np.array([5, 12]), np.array([0, 1]), 0, 18, 6)
    assert exactly.tolist() == [-1, -1, *[0] * 7, *[1] * 6, -1, -1]
    assert farther.tolist() == [-1, -1, *[0] * 7, *[1] * 7, -1, -1]
    assert spread(np.array([5, 15]), np.array([0, 1]), 0, 20, 6).tolist() == [
        *[-1] * 2,
        *[0] * 7,
        *[-1] * 3,
        *[1] * 7,
        -1,
    ]


def test_without_peaks_nothing_is_labelled() -> None:
    none = np.empty(0, np.int64)
    np.testing.assert_array_equal(spread(none, none, 3, 8, 10), [UNLABELLED] * 5)


@pytest.mark.parametrize("seed", range(20))
def test_spread_is_that_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    max_gap = int(rng.integers(2, 12))
    peaks = np.flatnonzero(rng.random(200) < 0.15)
    states = rng.integers(0, 4, len(peaks))
    wanted = plain_spread(peaks.tolist(), states.tolist(), 200, max_gap)
    np.testing.assert_array_equal(spread(peaks, states, 0, 200, max_gap), wanted)


def test_a_field_without_peaks_for_long_is_unlabelled_in_between(templates: Templates) -> None:
    strength = np.concatenate([[1, 5], np.linspace(4, 2, 200), [5, 1]])  # peaks 201 samples apart, a valley between
    out = labels("peaks", templates, strength[:, None] * templates.maps[0][2])
    assert out.state.tolist() == [2] * 33 + [UNLABELLED] * 138 + [2] * 33


@each_rule
def test_polarity_does_not_matter(rule: str, data: np.ndarray, templates: Templates) -> None:
    np.testing.assert_array_equal(labels(rule, templates, -data).state, labels(rule, templates, data).state)
    turned = Templates(NAMES, (templates.maps[0] * np.array([[1], [-1], [1], [-1]]),))
    np.testing.assert_array_equal(labels(rule, turned, data).state, labels(rule, templates, data).state)


@each_rule
@pytest.mark.parametrize("gain", [1e-6, 0.3, 7.0, 1e6])
def test_scale_does_not_matter(rule: str, gain: float, data: np.ndarray, templates: Templates) -> None:
    scaled, plain = labels(rule, templates, gain * data), labels(rule, templates, data)
    np.testing.assert_array_equal(scaled.state, plain.state)
    np.testing.assert_allclose(scaled.along, gain * plain.along, rtol=1e-9)
    np.testing.assert_allclose(scaled.gfp, gain * plain.gfp, rtol=1e-9)


@each_rule
@pytest.mark.parametrize("dead", [[0], [3, 6]])
def test_dead_electrodes_are_as_templates_without_them(
    rule: str, dead: list[int], data: np.ndarray, templates: Templates
) -> None:
    good = ~np.isin(np.arange(len(NAMES)), dead)
    left = tuple(np.array(NAMES)[good])
    by_hand = Templates(left, (referenced(templates.maps[0][:, good]),))
    masked = labels(rule, templates, average_reference(data, good), good)
    restricted = labels(rule, by_hand, average_reference(data[:, good]), channels=left)
    np.testing.assert_array_equal(masked.state, restricted.state)
    np.testing.assert_allclose(masked.along, restricted.along, rtol=1e-9)
    np.testing.assert_allclose(masked.gfp, restricted.gfp, rtol=1e-9)
    np.testing.assert_array_equal(masked.quality, good.mean())
    assert (masked.state != labels(rule, templates, data).state).any()


@each_rule
def test_a_stream_with_fewer_channels_is_as_templates_restricted_by_hand(
    rule: str, data: np.ndarray, templates: Templates
) -> None:
    some = [6, 0, 3, 5, 1, 7]
    names = tuple(NAMES[i] for i in some)
    by_hand = Templates(names, (referenced(templates.maps[0][:, some]),))
    part = average_reference(data[:, some])
    wanted = labels(rule, by_hand, part, channels=names)
    np.testing.assert_array_equal(labels(rule, templates, part, channels=names).state, wanted.state)


@each_rule
@pytest.mark.parametrize(("n_good", "labelled"), [(6, True), (5, False), (2, False), (0, False)])  # 0.7 of 8 is 5.6
def test_below_the_coverage_nothing_is_labelled(
    rule: str, n_good: int, labelled: bool, data: np.ndarray, templates: Templates
) -> None:
    good = np.arange(len(NAMES)) < n_good
    out = labels(rule, templates, average_reference(data, good), good)
    assert (out.state != UNLABELLED).any() == labelled
    assert (out.state == UNLABELLED).all() != labelled


def test_filled_samples_have_quality_zero(data: np.ndarray, templates: Templates) -> None:
    stage = LabelSamples(templates, 0, AssignSettings(rule="samples"), 0.7)
    stage.open(StreamInfo(RATE, NAMES))
    np.testing.assert_array_equal(stage.process(Chunk(data[:5], filled=True)).quality, 0.0)


def test_a_sample_without_field_is_unlabelled(templates: Templates) -> None:
    out = labels("samples", templates, np.zeros((3, len(NAMES))))
    assert out.state.tolist() == [UNLABELLED] * 3
    assert not out.along.any()
    assert label(np.empty((0, 4)))[0].tolist() == []


def test_a_peak_does_not_reach_samples_without_enough_channels(data: np.ndarray, templates: Templates) -> None:
    stage = LabelPeaks(templates, 0, AssignSettings(), 0.7)
    stage.open(StreamInfo(RATE, NAMES))
    good = np.arange(len(NAMES)) < 3
    parts = [
        stage.process(Chunk(data[:100])),
        stage.process(Chunk(average_reference(data[100:120], good), 100, good=good)),
        stage.process(Chunk(data[120:200], 120)),
        stage.flush(),
    ]
    state = np.concatenate([part.state for part in parts])
    assert (state[100:120] == UNLABELLED).all()
    assert (state[:99] != UNLABELLED).all()


def test_the_level_waits_while_too_few_channels_are_good(data: np.ndarray, templates: Templates) -> None:
    stage = LabelSamples(templates, 0, AssignSettings(rule="samples"), 0.7)
    stage.open(StreamInfo(RATE, NAMES))
    before = stage.process(Chunk(data[:100])).level[-1]
    off = np.zeros(len(NAMES), bool)
    during = stage.process(Chunk(np.zeros((5000, len(NAMES))), 100, good=off))
    np.testing.assert_array_equal(during.level, before)
