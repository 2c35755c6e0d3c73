"""A recording becomes an amplifier: every sample, at its time, with its stamp, gaps and markers."""

import errno
import subprocess
import sys
import threading
from collections.abc import Iterator
from subprocess import PIPE

import numpy as np
import pylsl
import pytest

from rtbrain import replay_id
from rtbrain.errors import ConfigError
from rtbrain.faults import Disconnect, Faults
from rtbrain.messages import Break, Chunk, StreamInfo
from rtbrain.replay import Clock, Replay, ReplayReport, ReplaySettings
from rtbrain.replay_id import ReplayId
from rtbrain.replay_outlets import Outlets
from rtbrain.sources.chunking import Source
from rtbrain.sources.lsl import LslSettings, LslSource
from rtbrain.sources.markers import Marker
from tests import lsl

NAMES = ("Fz", "Cz", "Pz", "Oz")


class Counting(Source):
    """Samples whose value is their number, at given times."""

    def __init__(self, times: np.ndarray, rate_hz: float) -> None:
        self.info = StreamInfo(rate_hz, NAMES, "uV")
        self.n_samples = len(times)
        self.times = times

    def _produce(self) -> Iterator[Chunk]:
        for start in range(0, self.n_samples, 1000):
            times = self.times[start : start + 1000]
            yield Chunk(lsl.counting(start, len(times)), start, times)


class FakeTime:
    """A clock that only sleeping and looking at it moves; sleeps are too long, as real ones are."""

    def __init__(self, overshoot_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.rng = np.random.default_rng(1)
        self.overshoot_s = overshoot_s

    def now(self) -> float:
        self.now_s += 1e-6
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.rng.uniform(0, self.overshoot_s)

    @property
    def clock(self) -> Clock:
        return Clock(self.now, self.sleep)


def even(n: int, rate_hz: float, start_s: float = 0.0) -> Counting:
    return Counting(start_s + np.arange(n) / rate_hz, rate_hz)


def plan(replay: Replay) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values of channel 0, stamps, and the time at which each sample is due, in seconds of signal."""
    steps = [step for step in replay.schedule(ReplayReport()) if len(step.rows)]
    due = np.concatenate([np.full(len(step.rows), step.due_s) for step in steps])
    rows = [step.rows for step in steps]
    return np.concatenate([r.data[:, 0] for r in rows]), np.concatenate([r.stamps_s for r in rows]), due


class TestSchedule:
    def test_every_sample_once_the_last_of_its_chunk_is_due(self):
        values, stamps, due = plan(Replay(even(1003, 250.0, start_s=7.0), ReplaySettings(chunk_ms=40)))
        assert np.array_equal(values, np.arange(1003))
        assert np.allclose(stamps, np.arange(1003) / 250, atol=1e-9)
        assert (due >= stamps - 1e-9).all()
        assert (due - stamps < 0.04).all()

    def test_gaps_of_the_recording_are_kept_and_nothing_waits_for_their_end(self):
        times = np.concatenate([np.arange(15), 1000 + np.arange(20)]) / 250
        _, stamps, due = plan(Replay(Counting(times, 250.0), ReplaySettings(chunk_ms=40)))
        assert np.allclose(stamps, times)
        assert due[14] == pytest.approx(14 / 250)
        assert due[15] > 3.9

    def test_stamps_that_stray_do_not_change_the_order(self, rng):
        times = np.arange(2000) / 250 + rng.normal(0, 0.01, 2000)
        values, stamps, due = plan(Replay(Counting(times, 250.0), ReplaySettings(chunk_ms=20)))
        assert np.array_equal(values, np.arange(2000))
        assert np.allclose(stamps, times - times[0])
        assert (np.diff(due) >= 0).all()

    def test_a_clock_that_was_set_back_does_not_stop_the_sending(self):
        times = np.concatenate([50 + np.arange(100) / 100, np.arange(100) / 100])
        _, stamps, due = plan(Replay(Counting(times, 100.0), ReplaySettings(chunk_ms=10)))
        assert np.allclose(stamps, times - 50)
        assert np.allclose(due, np.arange(200) / 100)

    def test_loops_go_on_in_time(self):
        steps = Replay(even(10, 10.0), ReplaySettings(chunk_ms=1000, loop=True)).schedule(ReplayReport())
        stamps = np.concatenate([next(steps).rows.stamps_s for _ in range(3)])
        steps.close()
        assert np.allclose(stamps, np.arange(30) / 10)

    def test_markers_have_their_own_times_in_each_pass(self):
        markers = [Marker(6.0, "before"), Marker(7.25, "in"), Marker(8.5, "after")]
        report = ReplayReport()
        steps = Replay(even(10, 10.0, 7.0), ReplaySettings(chunk_ms=100, loop=True), markers=markers).schedule(report)
        told = []
        while report.passes < 2:
            step = next(steps)
            if step.marker is not None:
                told.append((round(step.marker[0], 6), step.marker[1], round(step.due_s, 6)))
        steps.close()
        assert told == [(0.25, "in", 0.25), (1.25, "in", 1.25)]


class TestPacing:
    @pytest.mark.slow
    def test_an_hour_does_not_drift(self):
        """Each of 36,000 sleeps is up to 15 ms too long; if that added up, the end would be minutes late."""
        time = FakeTime(overshoot_s=0.015)
        replay = Replay(even(180_000, 50.0), ReplaySettings(lsl.name(), chunk_ms=100), clock=time.clock)
        report = replay.run()
        assert report.samples == 180_000
        assert report.latest_s < 0.02
        assert time.now_s - 100 == pytest.approx(3600 + 1, abs=0.1)

    def test_speed(self):
        time = FakeTime()
        Replay(even(6000, 50.0), ReplaySettings(lsl.name(), speed=20.0), clock=time.clock).run()
        assert time.now_s - 100 == pytest.approx(120 / 20 + 1, abs=0.1)

    def test_it_stops_when_told(self):
        time = FakeTime()
        settings = ReplaySettings(lsl.name(), loop=True)
        report = Replay(even(500, 50.0), settings, stop=lambda: time.now_s > 125, clock=time.clock).run()
        assert report.stopped
        assert report.passes == 2
        assert 1230 < report.samples < 1260


@pytest.mark.slow
class TestOverLsl:
    def receive(self, replay: Replay, n: int) -> tuple[list[Chunk | Break], LslSource]:
        """Run a replay in a thread and return the first n samples as received, with the source."""
        name = replay.settings.name
        thread = threading.Thread(target=replay.run)
        thread.start()
        try:
            with LslSource(lsl.seen(name), LslSettings(max_behind_s=None)) as source:
                return lsl.pull_until(source, lambda: source.counts.received >= n), source
        finally:
            thread.join()

    def test_samples_and_stamps_arrive_exactly(self):
        times = np.concatenate([np.arange(1500), 1600 + np.arange(500)]) / 250
        settings = ReplaySettings(lsl.name(), speed=20.0, wait=True)
        items, source = self.receive(Replay(Counting(times, 250.0), settings), 2000)
        stamps = np.concatenate([item.times for item in items])
        assert np.array_equal(lsl.samples_of(items), lsl.counting(0, 2000))
        assert np.allclose(stamps - stamps[0], times, atol=1e-9)
        assert source.info == StreamInfo(250.0, NAMES, "uV")
        assert source.stream.speed == 20.0

    def test_what_counts_as_unheard_reaches_nobody_who_comes_at_that_moment(self, monkeypatch):
        name = lsl.name()
        outlets = Outlets(StreamInfo(250.0, NAMES, "uV"), name, name, 1.0, 0.0)
        try:
            assert outlets.send(lsl.counting(0, 5), np.arange(5.0)) == 5
            with LslSource(lsl.seen(name)) as source:
                lsl.pull_until(source, outlets.heard)
                with monkeypatch.context() as late:  # it came after the look, and before the samples
                    late.setattr(outlets, "heard", lambda: False)
                    assert outlets.send(lsl.counting(5, 5), 5 + np.arange(5.0)) == 5
                outlets.send(lsl.counting(10, 5), 10 + np.arange(5.0))
                items = lsl.pull_until(source, lambda: source.counts.received >= 5)
            assert outlets.unheard == 10
            assert np.array_equal(lsl.samples_of(items), lsl.counting(10, 5))
        finally:
            outlets.close()

    def test_stamps_say_when_the_sample_was_due(self):
        """At any speed the age is that of a chunk under way, not more: the description tells how to compute it."""
        ages = []
        settings = ReplaySettings(lsl.name(), speed=4.0, wait=True, chunk_ms=20)
        replay = Replay(even(750, 250.0), settings)
        thread = threading.Thread(target=replay.run)
        thread.start()
        with LslSource(lsl.seen(settings.name)) as source:
            while source.counts.received < 750 and source.state != "lost":
                for item in source.pull(0.1):
                    ages.append(source.age_s(item.times[-1]))
        thread.join()
        known = [age for age in ages if age is not None]
        assert known
        assert min(known) > -0.001  # never ahead of time
        assert np.median(known) < 0.5

    def test_a_disconnection_of_the_script(self):
        gone = Disconnect(0.4, 0.4, source_id="new one", reverse_channels=True)
        replay = Replay(even(750, 250.0), ReplaySettings(lsl.name(), wait=True), Faults(disconnect=(gone,)))
        items, _ = self.receive(replay, 150)
        (the_break,) = [item for item in items if isinstance(item, Break)]
        assert "another id" in the_break.reason
        assert "another order" in the_break.reason
        values = lsl.samples_of(items)
        assert np.allclose(values - np.floor(values), [0.0, 0.1, 0.2, 0.3])  # each channel where it belongs
        assert values[-1, 0] > 200

    def test_a_script_of_unknown_channels_is_refused_before_anything_is_sent(self):
        with pytest.raises(ConfigError, match="XX"):
            Replay(even(10, 10.0), ReplaySettings(lsl.name()), Faults(swapped_labels=(("Fz", "XX"),))).run()
        script = Faults(disconnect=(Disconnect(1.0, 1.0, without=("XX",)),))
        with pytest.raises(ConfigError, match="XX"):
            Replay(even(10, 10.0), ReplaySettings(lsl.name()), script).run()


class TestSourceId:
    def test_replays_of_one_name_at_a_time_differ_and_a_restarted_one_is_the_same(self):
        name, info = lsl.name(), StreamInfo(250.0, NAMES, "uV")
        first, second = (Outlets(info, name, "", 1.0, 0.0) for _ in range(2))
        assert first.source_id.startswith(f"rtbrain-replay-{name}-")
        assert (first.second, second.second) == (False, True)
        assert second.source_id == f"{first.source_id}-2"
        first.close()
        again = Outlets(info, name, "", 1.0, 0.0)
        assert again.source_id == first.source_id
        for each in (second, again):
            each.close()
        given = [Outlets(info, name, "mine", 1.0, 0.0) for _ in range(2)]
        assert [each.source_id for each in given] == ["mine", "mine"]

    def test_another_process_has_another_and_gives_it_back_however_it_ends(self):
        name = lsl.name()
        code = f"from rtbrain.replay_id import ReplayId; print(ReplayId({name!r}).text, flush=True); input()"
        with subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True) as process:
            theirs = process.stdout.readline().strip()
            mine = ReplayId(name)
            process.kill()
        assert mine.text == f"{theirs}-2"
        again = ReplayId(name)
        assert again.text == theirs
        for each in (mine, again):
            each.release()

    def test_who_replays_the_same_name_is_told(self):
        name, told, time = lsl.name(), [], FakeTime()
        taken = ReplayId(name)
        Replay(even(10, 10.0), ReplaySettings(name), clock=time.clock, tell=told.append).run()
        assert told == [
            f"another replay called {name!r} runs on this machine; who listens to this one must ask for "
            f"source_id={taken.text}-2, or stop it and choose another --name"
        ]
        taken.release()
        Replay(even(10, 10.0), ReplaySettings(name), clock=time.clock, tell=told.append).run()
        assert len(told) == 1

    def test_without_a_lock_the_plain_id_is_sent_and_it_is_told(self, monkeypatch):
        def refused(file):
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(replay_id, "lock", refused)
        name, told, time = lsl.name(), [], FakeTime()
        Replay(even(10, 10.0), ReplaySettings(name), clock=time.clock, tell=told.append).run()
        (warning,) = told
        assert f"whether another replay called {name!r} runs on this machine cannot be told" in warning
        assert "No locks available" in warning
        assert "--name of its own" in warning
        Replay(even(10, 10.0), ReplaySettings(name, source_id="mine"), clock=time.clock, tell=told.append).run()
        assert len(told) == 1, "whoever gives an id knows what they do"


def test_the_clock_is_that_of_lsl():
    assert abs(Clock().now() - pylsl.local_clock()) < 1.0
