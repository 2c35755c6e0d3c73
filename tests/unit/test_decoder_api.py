"""Decoding from Python: the whole model's answer on the offline tokens, whatever the chunks, and what is said of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtbrain import Decoder
from rtbrain.conditioning.filters import Band
from rtbrain.decoder.bundle import Bundle
from rtbrain.decoder.stream import Stream
from rtbrain.decoder_api import Decision
from rtbrain.errors import ChannelError, ConfigError, RateError, StreamError, UnitError
from rtbrain.messages import UNLABELLED, Break, Chunk, Tokens
from rtbrain.microstates.templates import Templates
from rtbrain.parity_paths import OfflinePath
from rtbrain.pipeline import build, run
from rtbrain.sources.chunking import rechunk
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from tests.bundles import TRUST, make_bundle

SECONDS = 30.0
RATE = 250.0


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture(scope="module")
def eeg() -> Chunk:
    chunks = list(Synthetic(SyntheticSettings(duration_s=SECONDS)).chunks())
    data = np.concatenate([chunk.data for chunk in chunks])
    return Chunk(data, times=100.0 + np.arange(len(data)) / RATE)


def decoder_for(bundle: Bundle, **changes: object) -> Decoder:
    settings = {"rate_hz": RATE, "channels": bundle.templates.channels, "device": "cpu"} | changes
    return Decoder(bundle, **settings)


def decisions(decoder: Decoder, chunks: list[Chunk]) -> list[Decision]:
    return [each for chunk in chunks for each in decoder.push(chunk.data, chunk.times)] + decoder.flush()


def without(eeg: Chunk, start_s: float, length_s: float) -> Chunk:
    rows = np.r_[: round(start_s * RATE), round((start_s + length_s) * RATE) : len(eeg)]
    return Chunk(np.ascontiguousarray(eeg.data[rows]), times=eeg.times[rows])


@pytest.fixture(scope="module")
def all_at_once(bundle: Bundle, eeg: Chunk) -> list[Decision]:
    return decisions(decoder_for(bundle), [eeg])


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 7, 25, 26, 1000, "random"])
def test_decisions_do_not_depend_on_the_chunks(
    bundle: Bundle, eeg: Chunk, all_at_once: list[Decision], size: int
) -> None:
    found = decisions(decoder_for(bundle), list(rechunk([eeg], size)))
    assert_same(found, all_at_once)


@pytest.mark.parametrize("lost_s", [0.02, 0.5, 3.0])
def test_nor_do_they_across_gaps(bundle: Bundle, eeg: Chunk, lost_s: float) -> None:
    eeg = without(eeg, 10.0, lost_s)
    whole = decisions(decoder_for(bundle), [eeg])
    assert_same(decisions(decoder_for(bundle), list(rechunk([eeg], 13))), whole)
    assert whole[-1].context.number == (2 if lost_s > 2 else 1)


@pytest.mark.parametrize("size", [5, 8])
def test_nor_on_what_was_computed_ahead(
    bundle: Bundle, eeg: Chunk, all_at_once: list[Decision], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    compute, runs = Stream._compute, []
    monkeypatch.setattr(Stream, "_compute", lambda own: runs.append(None) or compute(own))
    decoder, found, late, ahead = decoder_for(bundle), [], 0, 0
    for chunk in rechunk([eeg], size):
        before = len(runs)
        made = decoder.push(chunk.data, chunk.times)
        late += len(made) > 0 and len(runs) > before
        found += made
        before = len(runs)
        decoder.anticipate()
        ahead += len(runs) - before
    assert_same(found + decoder.flush(), all_at_once)
    # Most decisions are ready when they fall due: only a token of the last chunk makes them wait.
    assert 0 < late < len(found) / 2
    assert len(found) / 4 < ahead <= len(found), "at most once for each"


def test_nothing_is_computed_ahead_where_a_new_context_begins(bundle: Bundle, eeg: Chunk) -> None:
    decoder = decoder_for(bundle)
    decoder.push(eeg.data[:5000], eeg.times[:5000])
    asked: list[None] = []
    decoder.context.answer = lambda: asked.append(None)
    decoder.new_context("marker", 20.0)
    decoder.anticipate()
    assert not asked
    decoder._ordered.clear()
    decoder.anticipate()
    assert asked


def assert_same(found: list[Decision], wanted: list[Decision]) -> None:
    assert [replace(each, probabilities={}) for each in found] == [replace(each, probabilities={}) for each in wanted]
    values = [list(each.probabilities.values()) for each in found]
    np.testing.assert_allclose(values, [list(each.probabilities.values()) for each in wanted], rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", ["one band", "two bands and a gap"])
def test_decisions_are_the_whole_models_on_the_offline_tokens(
    bundle: Bundle, eeg: Chunk, case: str, tmp_path: Path
) -> None:
    if case != "one band":
        recipe = replace(bundle.recipe, bands=(Band("low", 2, 8), Band("high", 8, 30)))
        maps = bundle.templates.maps * 2
        bundle = make_bundle(tmp_path / "two", Templates(bundle.templates.channels, maps, recipe.to_dict()))
        eeg = without(eeg, 10.0, 0.5)
        eeg.data[2500:] *= 5  # the level before the gap does not count after it
    chain = build(bundle.recipe, bundle.templates)
    rate_hz = chain.open(decoder_for(bundle).source_info).rate_hz
    whole = OfflinePath(bundle, run(chain, [eeg]), rate_hz)
    decoder, seen, compared, said = decoder_for(bundle), 0, 0, []
    for chunk in rechunk([eeg], 10):
        for event in decoder.feed(chunk):
            if isinstance(event, Decision):
                probabilities = whole.probabilities(seen, event.context.tokens)
                np.testing.assert_allclose(list(event.probabilities.values()), probabilities, rtol=0, atol=1e-5)
                assert event.label == bundle.classes[int(probabilities.argmax())]
                said.append(event.probabilities["rest"])
                compared += 1
            elif isinstance(event, Tokens):
                seen += int((event.state != UNLABELLED).sum())
    assert compared > 250
    assert np.abs(np.diff(said)).mean() > 0.001  # the answer does move


@pytest.mark.parametrize(("rate_hz", "every_s"), [(250.0, 0.1), (256.0, 0.1), (160.0, 0.25)])
def test_decisions_fall_on_a_grid_of_sample_time(tmp_path: Path, rate_hz: float, every_s: float) -> None:
    source = Synthetic(SyntheticSettings(duration_s=8.0, rate_hz=rate_hz))
    bundle = make_bundle(tmp_path / "grid", every_s=every_s)
    decoder = decoder_for(bundle, rate_hz=rate_hz)
    found = [each for chunk in source.chunks(10) for each in decoder.push(chunk.data, chunk.times)]
    times = np.array([each.signal_s for each in found])
    first = round(times[0] / every_s)
    due = np.arange(first, first + len(times)) * every_s
    assert (times >= due - 1e-9).all()
    assert (times < due + 1 / rate_hz).all()
    assert times[-1] > 7.5
    assert np.allclose([each.stamp_s for each in found], source_start(source) + times)


def source_start(source: Synthetic) -> float:
    return float(next(iter(source.chunks(1))).times[0])


def test_without_stamps_the_grid_is_the_same(bundle: Bundle, eeg: Chunk, all_at_once: list[Decision]) -> None:
    found = decisions(decoder_for(bundle), [Chunk(eeg.data)])
    assert all(each.stamp_s is None for each in found)
    assert_same([replace(each, stamp_s=100 + each.signal_s) for each in found], all_at_once)


def test_a_long_gap_a_new_source_and_a_clock_step_begin_a_context(bundle: Bundle, eeg: Chunk) -> None:
    decoder = decoder_for(bundle)
    before = decoder.push(*parts(eeg, 0, 8))
    after_gap = decoder.push(*parts(eeg, 11, 15))
    assert (before[-1].context.number, after_gap[-1].context.number) == (1, 2)
    assert after_gap[-1].context.began == "3.0 s without samples"
    assert after_gap[-1].context.seconds < 4
    assert after_gap[0].signal_s > 12  # the filters' warm-up gives no token, and no old ones are used meanwhile
    (broken, *_), data = list(decoder.feed(Break("context", 0, 0.0, 0, "the source came back"))), parts(eeg, 15, 19)
    assert isinstance(broken, Tokens | Break)
    again = decoder.push(data[0], data[1] - 1000)
    assert (again[-1].context.number, again[-1].context.began) == (3, "the source came back")
    assert again[-1].signal_s < 4
    assert again[-1].stamp_s == pytest.approx(data[1][0] - 1000 + again[-1].signal_s)
    stepped = decoder.push(data[0], data[1] - 1900)
    assert (stepped[-1].context.number, decoder.counts.clock_steps) == (4, 1)
    assert decoder.counts.received == 19 * RATE - 3 * RATE + 4 * RATE
    assert decoder.counts.lost == 3 * RATE  # from before the new source


def parts(eeg: Chunk, start_s: float, stop_s: float) -> tuple[np.ndarray, np.ndarray]:
    rows = slice(round(start_s * RATE), round(stop_s * RATE))
    return eeg.data[rows], eeg.times[rows]


@pytest.mark.parametrize("told_s", [6.0, 10.0, 11.3])
def test_a_marker_begins_a_context_at_its_own_time(bundle: Bundle, eeg: Chunk, told_s: float) -> None:
    """Told before, at or after its time, it leaves the same tokens in the context."""
    decoder = decoder_for(bundle)
    decoder.push(*parts(eeg, 0, told_s))
    decoder.new_context("trial 1", at_s=10.0)
    found = decoder.push(*parts(eeg, told_s, 14))
    last = found[-1].context
    assert (last.number, last.began) == (2, "trial 1")
    assert {each.context.number for each in found if each.signal_s >= 10.0} == {2}
    assert {each.context.number for each in found if each.signal_s < 10.0} <= {1}
    assert 3.5 < last.seconds < 4.0
    at_its_time = decoder_for(bundle)
    at_its_time.new_context("trial 1", at_s=10.0)
    assert_same([at_its_time.push(*parts(eeg, 0, 14))[-1]], [found[-1]])


def test_at_once_means_from_the_newest_sample_on(bundle: Bundle, eeg: Chunk) -> None:
    decoder = decoder_for(bundle)
    decoder.push(*parts(eeg, 0, 10))
    decoder.new_context("by hand")
    found = decoder.push(*parts(eeg, 10, 12))
    assert found[0].signal_s - found[0].context.seconds >= 10.0
    assert {each.context.began for each in found} == {"by hand"}


def test_trust_tells_of_short_contexts_bad_channels_foreign_fields_and_old_samples(bundle: Bundle, eeg: Chunk) -> None:
    decoder = decoder_for(bundle)
    found = decoder.push(*parts(eeg, 0, 15))
    short = [each for each in found if each.context.seconds < TRUST.min_context_s]
    assert all("shorter than 5 s" in each.reasons[0] for each in short)
    assert all(each.trusted for each in found if each.context.seconds >= TRUST.min_context_s)
    data, times = parts(eeg, 15, 20)
    now_s = times[-1] + 0.5
    fresh = decoder.push(data, times, now_s=now_s)
    assert [each.trusted for each in fresh] == [each.stamp_s > now_s - TRUST.max_age_s for each in fresh]
    assert "s old" in fresh[0].reasons[0]
    dead = data.copy()
    dead[:, :5] = 0.0
    decoder.push(dead, times + 5)
    assert len(decoder.bad_channels) == 5
    (reason,) = decoder.push(dead, times + 10)[-1].reasons
    assert "quality 0.7" in reason
    list(decoder.feed(Break("context", 0, 0.0, 0, "the source came back")))
    (reason,) = decoder.push(data, times)[0].reasons
    assert "shorter than" in reason  # what was before does not count any more
    noise = np.random.default_rng(0).normal(0, 10, data.shape)
    foreign = decoder_for(bundle).push(np.concatenate([noise, noise]))[-1]
    assert "the templates explain" in " ".join(foreign.reasons)


def test_signal_that_gives_no_tokens_is_not_decoded_as_fresh(bundle: Bundle, eeg: Chunk) -> None:
    decoder = decoder_for(bundle)
    decoder.push(*parts(eeg, 0, 10))
    data, times = parts(eeg, 10, 16)
    found = decoder.push(np.full_like(data, np.nan), times)
    assert found[-1].token_wait_s > 4
    assert any("the newest token ended" in each for each in found[-1].reasons)


def test_missing_channels_count_against_the_quality(bundle: Bundle, eeg: Chunk) -> None:
    decoder = decoder_for(bundle, channels=bundle.templates.channels[:15])
    found = decoder.push(eeg.data[:2500, :15])
    assert decoder.missing == bundle.templates.channels[15:] == decoder.bad_channels
    assert "quality 0.79" in found[-1].reasons[0]


def test_streams_that_do_not_fit_are_refused(bundle: Bundle, eeg: Chunk, tmp_path: Path) -> None:
    with pytest.raises(ChannelError, match="only 5 of the recipe's"):
        decoder_for(bundle, channels=bundle.templates.channels[:5])
    with pytest.raises(RateError, match="was trained at 250 Hz"):
        decoder_for(make_bundle(tmp_path / "rates", rates_hz=(250.0,)), rate_hz=160.0)
    with pytest.raises(UnitError, match="declare it"):
        decoder_for(bundle, unit="unknown")
    with pytest.raises(UnitError, match="it would fit uV"):
        decoder_for(bundle, unit="V").push(eeg.data)
    decoder = decoder_for(bundle)
    with pytest.raises(StreamError, match="do not fit 19 channels"):
        decoder.push(eeg.data[:, :5])
    with pytest.raises(StreamError, match="give one for each"):
        decoder.push(eeg.data[:5], eeg.times[:4])
    with pytest.raises(ConfigError, match="push them with `times`"):
        decoder.push(eeg.data, now_s=1.0)
    assert decoder_for(bundle).push(np.empty((0, 19))) == []
    assert decoder_for(bundle).flush() == []


def test_a_folder_will_do_and_one_sample_too(bundle: Bundle, eeg: Chunk) -> None:
    decoder = Decoder(str(bundle.folder), rate_hz=RATE, channels=bundle.templates.channels)
    found = [each for row in eeg.data[:700] for each in decoder.push(row)]
    assert found


def test_more_channels_in_another_order_change_nothing(bundle: Bundle, eeg: Chunk, all_at_once: list[Decision]) -> None:
    channels = ("HEOG", *bundle.templates.channels[::-1])
    data = np.concatenate([eeg.data[:, :1], eeg.data[:, ::-1]], axis=1)
    assert_same(decisions(decoder_for(bundle, channels=channels), [Chunk(data, times=eeg.times)]), all_at_once)
