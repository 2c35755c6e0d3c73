"""The gap rule: time stamps onto an even grid, with every sample accounted for."""

import itertools
from typing import Any

import numpy as np
import pytest

from rtbrain.conditioning.continuity import EXACT_S, Continuity, ContinuitySettings
from rtbrain.errors import RateError, StreamError
from rtbrain.messages import Break, Chunk, StreamInfo
from tests.streams import NAMES

RATE = 250.0
STRICT = ContinuitySettings(jitter_ms=0.0)  # for stamps without jitter: one lost sample is a gap at once
NO_EVENT = {"filled": 0, "lost": 0, "repeated": 0, "slipped_in": 0, "slipped_out": 0, "breaks": 0, "clock_steps": 0}


def stamps(n: int, rate_hz: float = RATE) -> np.ndarray:
    return 1000.0 + np.arange(n) / rate_hz


def place(
    times: np.ndarray,
    settings: ContinuitySettings | None = None,
    rate_hz: float = RATE,
    data: np.ndarray | None = None,
) -> tuple[list[Any], Continuity]:
    """Return the output for one chunk whose first channel, unless given, is the time stamp itself."""
    stage = Continuity(settings or ContinuitySettings())
    stage.open(StreamInfo(rate_hz, ("A", "B")))
    data = np.column_stack([times, -times]) if data is None else data
    return stage.process(Chunk(data, times=times)) + stage.flush(), stage


def chunks(out: list[Any]) -> list[Chunk]:
    return [item for item in out if isinstance(item, Chunk)]


def breaks(out: list[Any]) -> list[Break]:
    return [item for item in out if isinstance(item, Break)]


def grid(out: list[Any]) -> np.ndarray:
    return np.concatenate([np.arange(chunk.start, chunk.start + len(chunk)) for chunk in chunks(out)])


def assert_accounted(out: list[Any], stage: Continuity) -> None:
    counts = stage.counts
    kept = counts.received - counts.repeated - counts.slipped_out
    assert sum(len(chunk) for chunk in chunks(out)) == kept + counts.filled + counts.slipped_in
    assert sum(len(chunk) for chunk in chunks(out) if chunk.filled) == counts.filled + counts.slipped_in
    assert len(breaks(out)) == counts.breaks
    assert sum(event.missing for event in breaks(out)) == counts.lost
    indices = grid(out)
    assert (np.diff(indices) > 0).all()
    assert indices[-1] + 1 == len(indices) + counts.lost


def without(n: int, at: int, missing: int) -> np.ndarray:
    return np.delete(stamps(n), np.s_[at : at + missing])


@pytest.mark.parametrize("missing", range(1, 11))  # 4 to 40 ms
def test_a_short_gap_is_filled_linearly_flagged_and_counted(missing: int) -> None:
    out, stage = place(without(500, 100, missing), STRICT)
    assert stage.report() == {**NO_EVENT, "received": 500 - missing, "filled": missing}
    before, filled, after = chunks(out)
    assert (before.filled, filled.filled, after.filled) == (False, True, False)
    assert (filled.start, len(filled), after.start) == (100, missing, 100 + missing)
    np.testing.assert_allclose(filled.data[:, 0], stamps(500)[100 : 100 + missing], rtol=1e-14)  # a ramp goes on
    np.testing.assert_array_equal(filled.data[:, 1], -filled.data[:, 0])
    assert_accounted(out, stage)


@pytest.mark.parametrize("missing", [2, 3, 10])
def test_gaps_beyond_the_jitter_are_filled_with_the_default_limits_too(missing: int) -> None:
    _, stage = place(without(500, 100, missing))
    assert stage.report() == {**NO_EVENT, "received": 500 - missing, "filled": missing}


def test_a_filled_row_weighs_its_neighbours_by_distance() -> None:
    data = np.array([[0.0, 8.0], [40.0, -8.0]])
    out, _ = place(np.array([0.0, 4 / RATE]), STRICT, data=data)
    np.testing.assert_allclose(chunks(out)[1].data, [[10, 4], [20, 0], [30, -4]])


def test_each_of_several_gaps_is_filled() -> None:
    times = np.delete(stamps(1000), [100, 101, 102, 400, 401, 402, 403, 404])
    out, stage = place(times, STRICT)
    assert stage.counts.filled == 8
    np.testing.assert_allclose(np.concatenate([chunk.data[:, 0] for chunk in chunks(out)]), stamps(1000), rtol=1e-14)
    assert_accounted(out, stage)


@pytest.mark.parametrize("missing", [11, 100, 500])  # 44 ms to 2 s
def test_a_longer_gap_is_a_break_after_which_the_context_goes_on(missing: int) -> None:
    out, stage = place(without(2000, 100, missing))
    (event,) = breaks(out)
    assert (event.kind, event.at, event.missing) == ("gap", 100 + missing, missing)
    assert str(missing) in event.reason
    np.testing.assert_array_equal(grid(out), np.delete(np.arange(2000), np.s_[100 : 100 + missing]))
    assert stage.report() == {**NO_EVENT, "received": 2000 - missing, "lost": missing, "breaks": 1}
    assert_accounted(out, stage)


@pytest.mark.parametrize("missing", [501, 900])
def test_a_gap_of_more_than_two_seconds_is_a_new_context(missing: int) -> None:
    out, stage = place(without(2000, 100, missing))
    (event,) = breaks(out)
    assert (event.kind, event.at, event.missing) == ("context", 100 + missing, missing)
    assert stage.counts.lost == missing
    assert_accounted(out, stage)


@pytest.mark.parametrize("length", [2, 5, 60, 500])  # up to 2 s
def test_samples_sent_again_are_dropped(length: int) -> None:
    times = np.concatenate([stamps(1000)[:700], stamps(1000)[700 - length :]])
    out, stage = place(times)
    # The last of them is within the jitter of its place, so the grid slips over it later on; with no jitter at once.
    assert stage.counts.repeated >= length - 1
    assert not breaks(out)
    assert_accounted(out, stage)
    out, stage = place(times, STRICT)
    assert stage.report() == {**NO_EVENT, "received": 1000 + length, "repeated": length}
    np.testing.assert_array_equal(np.concatenate([chunk.data[:, 0] for chunk in chunks(out)]), stamps(1000))


@pytest.mark.parametrize("step_s", [-2.5, -30.0, -1e6])
def test_a_clock_set_back_is_a_new_context_without_lost_samples(step_s: float) -> None:
    times = stamps(1000)
    times[600:] += step_s
    out, stage = place(times)
    (event,) = breaks(out)
    assert (event.kind, event.at, event.missing) == ("context", 600, 0)
    assert "clock" in event.reason
    np.testing.assert_array_equal(grid(out), np.arange(1000))
    assert stage.report() == {**NO_EVENT, "received": 1000, "breaks": 1, "clock_steps": 1}


def test_after_a_clock_step_gaps_are_found_on_the_new_clock() -> None:
    times = stamps(2000)
    times[600:] -= 50
    out, stage = place(np.delete(times, np.s_[1200:1250]))
    assert [(event.kind, event.at, event.missing) for event in breaks(out)] == [
        ("context", 600, 0),
        ("gap", 1250, 50),
    ]
    assert_accounted(out, stage)


@pytest.mark.parametrize("rate_hz", [128.0, 250.0, 1000.0])
def test_jitter_of_a_few_milliseconds_is_no_event(rate_hz: float, rng: np.random.Generator) -> None:
    n = round(60 * rate_hz)
    times = stamps(n, rate_hz)
    times[1:] += rng.uniform(-0.002, 0.002, n - 1)
    out, stage = place(times, rate_hz=rate_hz)
    assert stage.report() == {**NO_EVENT, "received": n}
    np.testing.assert_array_equal(grid(out), np.arange(n))


def test_two_samples_with_one_stamp_are_no_event() -> None:
    _, stage = place(stamps(5000) - np.arange(5000) % 2 / RATE)
    assert stage.report() == {**NO_EVENT, "received": 5000}


def test_a_lone_lost_sample_under_jitter_is_made_up_for_within_ten_seconds() -> None:
    jitter = 1e-4 * (-1.0) ** np.arange(4999)
    out, stage = place(without(5000, 1000, 1) + jitter)
    assert stage.report() == {**NO_EVENT, "received": 4999, "slipped_in": 1}
    filled = next(chunk for chunk in chunks(out) if chunk.filled)
    assert 1000 < filled.start < 1000 + 10 * RATE
    after = chunks(out)[-1]
    np.testing.assert_allclose(after.data[:, 0], 1000 + np.arange(after.start, 5000) / RATE, rtol=0, atol=1.01e-4)
    assert_accounted(out, stage)


def test_a_lone_extra_sample_is_dropped_within_ten_seconds() -> None:
    out, stage = place(np.insert(stamps(5000), 1000, stamps(5000)[1000]))
    assert stage.report() == {**NO_EVENT, "received": 5001, "slipped_out": 1}
    assert_accounted(out, stage)


@pytest.mark.parametrize("error", [1e-4, -1e-4, 3e-3, -3e-3])
@pytest.mark.parametrize("rate_hz", [160.0, 250.0, 1000.0])
def test_a_rate_a_little_off_keeps_the_grid_with_the_stamps(rate_hz: float, error: float) -> None:
    settings = ContinuitySettings()
    n = round((600 if abs(error) < 1e-3 else 60) * rate_hz)
    times = stamps(n, rate_hz * (1 + error))
    out, stage = place(times, rate_hz=rate_hz)
    counts = stage.counts
    slips, none = (counts.slipped_in, counts.slipped_out) if error < 0 else (counts.slipped_out, counts.slipped_in)
    assert slips == pytest.approx(abs(error) * n, abs=0.2 * abs(error) * n + 1)
    assert none == counts.filled == counts.repeated == counts.breaks == 0
    assert_accounted(out, stage)
    lag_s = min(abs(error / (1 + error)) * settings.smoothing_s, settings.jitter_ms / 1000 + 0.5 / rate_hz)
    tolerance_s = 0.75 / rate_hz + lag_s + EXACT_S + abs(error) / rate_hz
    for chunk in chunks(out):
        on_grid = 1000 + np.arange(chunk.start, chunk.start + len(chunk)) / rate_hz
        assert np.abs(chunk.data[:, 0] - on_grid).max() < tolerance_s


@pytest.mark.parametrize("error", [0.02, -0.02, 0.05, -0.05, 0.3, -0.3])
@pytest.mark.parametrize("rate_hz", [160.0, 250.0, 1000.0])
def test_a_wrong_rate_is_refused(rate_hz: float, error: float) -> None:
    with pytest.raises(RateError, match=f"declares {rate_hz:g} Hz"):
        place(stamps(round(16 * rate_hz), rate_hz * (1 + error)), rate_hz=rate_hz)


@pytest.mark.parametrize(("declared", "true"), [(500.0, 250.0), (250.0, 500.0), (1000.0, 250.0), (128.0, 256.0)])
def test_a_rate_wrong_by_a_factor_is_refused(declared: float, true: float) -> None:
    with pytest.raises(RateError, match=f"declares {declared:g} Hz"):
        place(stamps(round(12 * true), true), rate_hz=declared)


@pytest.mark.parametrize(("declared", "true"), [(250.0, 256.0), (500.0, 250.0)])
def test_a_wrong_rate_is_refused_at_the_same_sample_however_cut(declared: float, true: float) -> None:
    def feed(size: int) -> None:
        stage = Continuity(ContinuitySettings())
        stage.open(StreamInfo(declared, ("A",)))
        for times in np.split(stamps(8000, true), range(size, 8000, size)):
            stage.process(Chunk(np.zeros((len(times), 1)), times=times))

    messages = set()
    for size in (1, 7, 8000):
        with pytest.raises(RateError) as error:
            feed(size)
        messages.add(str(error.value))  # it tells the sample and the number of slips
    assert len(messages) == 1


@pytest.mark.parametrize("error", [0.015, -0.02, 0.3])
def test_a_rate_that_changes_after_an_hour_is_refused_within_two_minutes(error: float) -> None:
    hour, after = round(3600 * RATE), round(120 * RATE)
    times = stamps(hour)
    changed = times[-1] + np.arange(1, after + 1) / (RATE * (1 + error))
    stage = Continuity(ContinuitySettings())
    stage.open(StreamInfo(RATE, ("A",)))
    stage.process(Chunk(np.zeros((hour, 1)), times=times))
    with pytest.raises(RateError, match="of the newest 30000 samples"):
        stage.process(Chunk(np.zeros((after, 1)), times=changed))


def test_a_lossy_stream_of_the_right_rate_is_taken() -> None:
    """Three samples lost in each hundred: twelve milliseconds at a time, filled and counted, but no wrong rate."""
    times = stamps(10_000)
    out, stage = place(times[(np.arange(10_000) + 50) % 100 > 2])
    assert stage.report() == {**NO_EVENT, "received": 9700, "filled": 300}
    assert_accounted(out, stage)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_stamp_that_is_no_number_is_refused(bad: float) -> None:
    times = stamps(100)
    times[40] = bad
    with pytest.raises(StreamError, match="not a finite number"):
        place(times)


def test_without_stamps_the_samples_are_the_grid() -> None:
    stage = Continuity(ContinuitySettings())
    stage.open(StreamInfo(RATE, ("A",)))
    out = [item for n in (3, 0, 4) for item in stage.process(Chunk(np.ones((n, 1))))]
    assert [(item.start, len(item)) for item in out] == [(0, 3), (3, 4)]
    assert stage.report() == {**NO_EVENT, "received": 7}


def test_any_mixture_of_faults_is_accounted_for(rng: np.random.Generator) -> None:
    n = 20_000
    times = stamps(n, RATE * (1 + 2e-4)) + rng.normal(0, 0.0015, n)
    lost = np.concatenate(
        [np.arange(at, at + length) for at, length in zip(range(500, n, 1000), LENGTHS, strict=False)]
    )
    times = np.delete(times, lost)
    times = np.concatenate([times[:9000], times[8900:]])
    times[15_000:] -= 100
    out, stage = place(times)
    counts = stage.counts
    assert min(counts.filled, counts.lost, counts.repeated, counts.breaks, counts.clock_steps) > 0
    assert_accounted(out, stage)


LENGTHS = tuple(itertools.islice(itertools.cycle([1, 7, 9, 40, 300, 700]), 20))


def test_stamps_that_jitter_by_chunks_lose_and_invent_nothing(rng: np.random.Generator) -> None:
    n, size = 15_000, 8
    times = np.arange(n) / 250 + np.repeat(rng.normal(0, 0.004, n // size), size)
    stage = Continuity(ContinuitySettings())
    stage.open(StreamInfo(250.0, NAMES))
    out = stage.process(Chunk(np.zeros((n, len(NAMES))), times=times))
    counts = stage.counts
    assert counts.filled + counts.repeated + counts.slipped_in + counts.slipped_out <= 5  # of 15,000
    assert not [item for item in out if isinstance(item, Break)]


def test_an_exact_stream_notices_one_lost_sample_at_once() -> None:
    times = np.delete(np.arange(1000) / 250, 500)
    stage = Continuity(ContinuitySettings())
    stage.open(StreamInfo(250.0, NAMES))
    out = stage.process(Chunk(np.zeros((999, len(NAMES))), times=times))
    assert [(len(item), item.filled) for item in out] == [(500, False), (1, True), (499, False)]
