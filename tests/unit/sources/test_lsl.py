"""Live streams, real ones on this machine: found, read whole, watched, and looked for again."""

import signal
import subprocess
import sys
import time

import numpy as np
import pylsl
import pytest

from rtbrain.errors import SourceError, StreamError
from rtbrain.messages import Break, Chunk
from rtbrain.sources import lsl_find
from rtbrain.sources.lsl import RETRY_S, LslSettings, LslSource
from rtbrain.sources.lsl_find import find_stream, visible_streams
from rtbrain.sources.lsl_markers import LslMarkers, readable
from rtbrain.sources.lsl_watch import Watch, WatchSettings
from tests import lsl

EAGER = LslSettings(WatchSettings(stall_s=0.3, recovered_s=0.2), search_after_s=0.3)


class TestFinding:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch):
        """On one machine answers come soon."""
        monkeypatch.setattr(lsl_find, "LOOK_S", 0.8)

    def test_by_name_type_and_source_id(self):
        name = lsl.name()
        sender = lsl.outlet(name, kind=f"{name}-type", source_id=f"{name}-id")
        for wanted in (name, f"{name}-type", f"source_id={name}-id"):
            assert find_stream(wanted, lsl.PATIENCE_S).name == name
        del sender

    def test_a_name_counts_before_a_type(self):
        name = lsl.name()
        senders = [lsl.outlet(name), lsl.outlet(f"{name}-other", kind=name)]
        pylsl.resolve_byprop("type", name, 1, lsl.PATIENCE_S)
        assert find_stream(name, lsl.PATIENCE_S).name == name
        assert find_stream(f"type={name}", lsl.PATIENCE_S).name == f"{name}-other"
        del senders

    def test_several_are_listed_and_none_is_taken(self):
        name = lsl.name()
        senders = [lsl.outlet(name, source_id=each) for each in ("left", "right")]
        pylsl.resolve_byprop("name", name, 2, lsl.PATIENCE_S)
        with pytest.raises(SourceError, match=r"(?s)2 streams match.*'left'.*'right'"):
            find_stream(name, lsl.PATIENCE_S)
        assert find_stream("source_id=left", lsl.PATIENCE_S).source_id == "left"
        del senders

    def test_says_what_it_sees_while_it_waits(self):
        name, told = lsl.name(), []
        sender = lsl.outlet(name)
        lsl.seen(name)
        with pytest.raises(SourceError, match=f"(?s)no stream of name.*{name}"):
            find_stream("nobody", 1.2, told.append)
        assert name in [stream.name for stream in told[0]]
        assert name in [stream.name for stream in visible_streams(0.8)]
        del sender

    def test_another_case_is_pointed_out(self):
        name = lsl.name()
        sender = lsl.outlet(name)
        lsl.seen(name)
        for wanted in (name.swapcase(), f"name={name.swapcase()}"):
            with pytest.raises(SourceError, match=f"did you mean '{name}'"):
                find_stream(wanted, 1.2)
        with pytest.raises(SourceError) as error:
            find_stream("nobody", 1.2)
        assert "did you mean" not in str(error.value)
        del sender

    def test_texts_are_no_eeg(self):
        name = lsl.name()
        sender = lsl.outlet(name, ("text",), 0.0, form="string")
        with pytest.raises(SourceError, match="no EEG"):
            LslSource(lsl.seen(name))
        del sender


class TestReading:
    @pytest.mark.parametrize("form", ["float32", "double64", "int16", "int32"])
    def test_all_samples_with_the_senders_stamps(self, form):
        name = lsl.name()
        sender = lsl.outlet(name, ("Fz", "Cz", "ECG", "Oz"), form=form)
        with lsl.connected(sender, name) as source:
            assert source.info.channels == ("Fz", "Cz", "Oz")
            assert (source.info.rate_hz, source.info.unit) == (250.0, "uV")
            stamps = 1000.0 + np.arange(3000) / 250
            # More at once than one pull of liblsl gives by default.
            sender.push_chunk((10 * lsl.counting(0, 3000)).astype(np.float64), stamps.tolist())
            items = lsl.pull_until(source, lambda: source.counts.received == 3000)
        expected = 10 * lsl.counting(0, 3000)[:, [0, 1, 3]]
        assert np.allclose(lsl.samples_of(items), expected, rtol=1e-6)
        assert np.array_equal(np.concatenate([item.times for item in items]), stamps)
        assert all(item.data.flags.c_contiguous and item.data.dtype == np.float64 for item in items)
        assert [item.start for item in items] == np.cumsum([0, *map(len, items)])[:-1].tolist()

    def test_chunks_are_not_overwritten_by_later_ones(self):
        name = lsl.name()
        sender = lsl.outlet(name, form="double64")
        with lsl.connected(sender, name) as source:
            sender.push_chunk(lsl.counting(0, 10))
            (first, *_) = lsl.pull_until(source, lambda: source.counts.received >= 1)
            before = first.data.copy()
            sender.push_chunk(lsl.counting(10, 100))
            lsl.pull_until(source, lambda: source.counts.received == 110)
        assert np.array_equal(first.data, before)

    def test_units_as_mne_writes_them(self):
        name = lsl.name()
        sender = lsl.outlet(name, unit="-6", types=("eeg", "eeg", "eeg", "stim"))
        with LslSource(lsl.seen(name)) as source:
            assert source.info.unit == "uV"
            assert source.info.channels == ("Fz", "Cz", "Pz")
        del sender

    def test_age_also_when_stamped_ahead(self):
        name = lsl.name()
        sender = lsl.outlet(name)
        with lsl.connected(sender, name) as source:
            lsl.pull_until(source, lambda: source.offset_s is not None)
            assert 0.9 < source.age_s(pylsl.local_clock() - 1.0) < 1.1
            assert -1.1 < source.age_s(pylsl.local_clock() + 1.0) < -0.9

    def test_age_of_a_fast_replay(self):
        name = lsl.name()
        sender = lsl.outlet(name, speed=10.0)
        with lsl.connected(sender, name) as source:
            lsl.pull_until(source, lambda: source.offset_s is not None)
            now = source.stream.signal_time(pylsl.local_clock())
            assert now > pylsl.local_clock()
            assert 0.4 < source.age_s(now - 5.0) < 0.7  # five seconds of signal pass in half a second

    def test_markers(self):
        name = lsl.name()
        sender = lsl.outlet(name, ("text",), 0.0, form="string")
        source = LslMarkers(lsl.seen(name))
        assert sender.wait_for_consumers(lsl.PATIENCE_S)
        at_s = pylsl.local_clock()
        sender.push_sample(["trial 1"], at_s)
        markers, deadline = [], time.monotonic() + lsl.PATIENCE_S
        while not markers and time.monotonic() < deadline:
            markers = source.pull()
            time.sleep(0.02)
        assert [marker.text for marker in markers] == ["trial 1"]
        assert abs(markers[0].time_s - at_s) < 0.01
        source.close()


MARKING = """
import sys, time, pylsl
outlet = pylsl.StreamOutlet(pylsl.StreamInfo(sys.argv[1], "Markers", 1, 0.0, "string", sys.argv[1]))
outlet.wait_for_consumers(60)
outlet.push_sample(["go"])
time.sleep(60)
"""


def test_a_marker_stream_that_does_not_answer_holds_nobody_up():
    """Its program hangs after it was found; connecting returns at once, and is done when the program goes on."""
    name = lsl.name()
    with subprocess.Popen([sys.executable, "-c", MARKING, name]) as program:
        try:
            found = lsl.seen(name)
            program.send_signal(signal.SIGSTOP)
            source = LslMarkers(found)
            for _ in range(20):
                assert source.pull() == []
            program.send_signal(signal.SIGCONT)
            markers, deadline = [], time.monotonic() + lsl.PATIENCE_S
            while not markers and time.monotonic() < deadline:
                markers = source.pull()
                time.sleep(0.02)
            assert [marker.text for marker in markers] == ["go"]
            source.close()
        finally:
            program.kill()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"trial 1", "trial 1"),
        ("Bär ☺".encode(), "Bär ☺"),
        (b"a\x1b[2J\nb", "a\\x1b[2J\\nb"),
        (b"\xe4", "\\xe4"),
        ("\u202egnp".encode(), "\\u202egnp"),
        (b"x" * 300, "x" * 300),
        (b"x" * 301, "x" * 297 + "..."),
        (b"\x1b" * 100, ("\\x1b" * 100)[:297] + "..."),
    ],
)
def test_what_is_no_text_is_spelt_out(raw, shown):
    assert readable(raw) == shown


class TestWatch:
    def test_states(self):
        watch = Watch(WatchSettings(stall_s=0.7, recovered_s=2.0), 0.0)
        assert watch.state == "waiting"
        watch.silence(5.0)
        assert watch.state == "waiting"
        seen = []
        for now_s, event in [(6, "samples"), (6.6, "silence"), (6.8, "silence"), (7, "samples"), (8.9, "samples")]:
            getattr(watch, event)(now_s)
            seen.append(watch.state)
        assert seen == ["live", "live", "stalled", "recovered", "recovered"]
        watch.samples(9.1)
        assert watch.state == "live"
        watch.lost(9.2)
        watch.lost(9.3)
        assert (watch.state, watch.stalls) == ("lost", 2)
        assert watch.away_s(9.6) == pytest.approx(1.0 + 0.5)  # from 6 to 7, and since 9.1
        watch.samples(10.1)
        watch.samples(10.4)
        assert watch.away_s(20.0) == pytest.approx(1.0 + 1.0)  # not stalled, as far as anybody has noticed

    def test_limits_scale_with_the_speed_of_a_replay(self):
        watch = Watch(WatchSettings(stall_s=0.7), 0.0)
        watch.speed = 5.0
        watch.samples(0.0)
        watch.silence(0.13)
        assert watch.state == "live"
        watch.silence(0.15)
        assert watch.state == "stalled"

    def test_a_stall_shows_and_passes(self):
        name = lsl.name()
        sender = lsl.outlet(name)
        with lsl.connected(sender, name, EAGER) as source:
            assert source.state == "waiting"
            sender.push_chunk(lsl.counting(0, 10))
            lsl.pull_until(source, lambda: source.state == "live")
            lsl.pull_until(source, lambda: source.state == "stalled")
            lsl.pull_until(source, lambda: "sends nothing" in source.trouble)  # still on the network
            assert source.state == "stalled"
            sender.push_chunk(lsl.counting(10, 10))
            items = lsl.pull_until(source, lambda: source.counts.received == 20)
            assert source.state == "recovered"
            assert not any(isinstance(item, Break) for item in items)  # the same connection: the stamps tell all
            assert (source.counts.stalls, source.counts.reconnects, source.trouble) == (1, 0, "")

    def test_who_falls_behind_skips_to_now_and_counts(self):
        name = lsl.name()
        sender = lsl.outlet(name, form="double64")
        settings = LslSettings(max_behind_s=1.0, patience_s=0.2)
        with lsl.connected(sender, name, settings) as source:
            sender.push_chunk(lsl.counting(0, 10_000))  # 40 s at once
            deadline = time.monotonic() + lsl.PATIENCE_S
            while source.waiting < 10_000:
                assert time.monotonic() < deadline
            items = source.pull()
            time.sleep(0.3)  # slow for longer than the patience
            items += source.pull()
            assert source.counts.skipped > 5000
            assert source.counts.received + source.counts.skipped == 10_000
            sender.push_chunk(lsl.counting(10_000, 10))
            items += lsl.pull_until(source, lambda: source.counts.received + source.counts.skipped == 10_010)
            assert lsl.samples_of(items)[-1, 0] == 10_009

    def test_who_catches_up_skips_nothing(self):
        name = lsl.name()
        sender = lsl.outlet(name, form="double64")
        with lsl.connected(sender, name, LslSettings(max_behind_s=1.0, patience_s=20.0)) as source:
            sender.push_chunk(lsl.counting(0, 10_000))
            items = lsl.pull_until(source, lambda: source.counts.received == 10_000)
            assert source.counts.skipped == 0
            assert np.array_equal(lsl.samples_of(items), lsl.counting(0, 10_000))


@pytest.mark.slow
class TestComingBack:
    def lose(self, name, **how):
        """Return a source whose stream is gone, having given one sample."""
        sender = lsl.outlet(name, **how)
        source = lsl.connected(sender, name, EAGER)
        sender.push_chunk(lsl.counting(0, 1, len(how.get("labels", "1234"))))
        lsl.pull_until(source, lambda: source.counts.received == 1)
        del sender
        lsl.pull_until(source, lambda: source.state == "lost")
        assert "broke" in source.trouble
        return source

    @pytest.mark.parametrize("source_id", ["amplifier-1", "amplifier-2"])
    def test_same_or_new_id(self, source_id):
        name = lsl.name()
        with self.lose(name) as source:
            sender = lsl.outlet(name, source_id=source_id)
            lsl.pull_until(source, lambda: source.counts.reconnects == 1)
            assert sender.wait_for_consumers(lsl.PATIENCE_S)
            assert source.state == "lost"  # until a sample comes
            sender.push_chunk(lsl.counting(0, 5))
            first, *rest = lsl.pull_until(source, lambda: source.counts.received == 6)
            assert isinstance(first, Break)
            assert (first.kind, first.at) == ("context", 1)
            assert ("another id" in first.reason) == (source_id != "amplifier-1")
            assert all(isinstance(item, Chunk) for item in rest)
            assert source.state == "recovered"

    def test_who_does_not_answer_is_not_asked_without_a_pause(self, monkeypatch):
        name, asked = lsl.name(), []
        sender = lsl.outlet(name)
        source = lsl.connected(sender, name, EAGER)

        def refuse(*_):
            asked.append(time.monotonic())
            raise SourceError("it ended a moment ago, and is still announced")

        monkeypatch.setattr("rtbrain.sources.lsl.connect", refuse)
        source._lose("the connection broke")
        lsl.pull_until(source, lambda: len(asked) == 4)
        assert np.diff(asked).min() >= RETRY_S
        monkeypatch.undo()
        lsl.pull_until(source, lambda: source.counts.reconnects == 1)
        del sender

    def test_what_could_not_be_read_any_more_is_counted(self):
        name = lsl.name()
        sender = lsl.outlet(name)
        with lsl.connected(sender, name, EAGER) as source:
            sender.push_chunk(lsl.counting(0, 500))
            deadline = time.monotonic() + lsl.PATIENCE_S
            while source.waiting < 500:
                assert time.monotonic() < deadline
            del sender
            while source.waiting == 500:  # liblsl's mark that the connection ended comes behind the samples
                assert time.monotonic() < deadline
                time.sleep(0.01)
            lsl.pull_until(source, lambda: source.state == "lost")
            assert source.counts.received + source.counts.abandoned == 500
            assert source.counts.abandoned > 0

    def test_channels_in_another_order_are_put_right(self):
        name, labels = lsl.name(), ("Fz", "Cz", "Pz", "Oz")
        with self.lose(name, labels=labels) as source:
            sender = lsl.outlet(name, labels=labels[::-1])
            lsl.pull_until(source, lambda: source.counts.reconnects == 1)
            assert sender.wait_for_consumers(lsl.PATIENCE_S)
            sender.push_chunk(np.array([[3.0, 2.0, 1.0, 0.0]]))
            first, second = lsl.pull_until(source, lambda: source.counts.received == 2)
            assert "another order" in first.reason
            assert second.data.tolist() == [[0.0, 1.0, 2.0, 3.0]]

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"rate_hz": 500.0}, "500 Hz"),
            ({"labels": ("Fz", "Cz", "Pz")}, "without Oz"),
            ({"unit": "volts"}, "channels in V"),
        ],
    )
    def test_another_rate_channels_or_unit_is_refused(self, change, said):
        name = lsl.name()
        with self.lose(name) as source:
            sender = lsl.outlet(name, **change)
            with pytest.raises(StreamError, match=f"came back changed: .*{said}"):
                lsl.pull_until(source, lambda: False)
            del sender

    def test_never_another_persons_amplifier(self):
        name = lsl.name()
        other = lsl.outlet(f"{name}-other", source_id="amplifier-9")
        with self.lose(name) as source:
            lsl.seen(f"{name}-other")
            began = time.monotonic()
            lsl.pull_until(source, lambda: time.monotonic() > began + 1.5)
            assert (source.state, source.counts.reconnects) == ("lost", 0)
        del other

    def test_two_that_could_be_it(self):
        name = lsl.name()
        with self.lose(name) as source:
            senders = [lsl.outlet(name, source_id=each) for each in ("a", "b")]
            pylsl.resolve_byprop("name", name, 2, lsl.PATIENCE_S)
            lsl.pull_until(source, lambda: "several streams" in source.trouble)
            assert source.counts.reconnects == 0
            del senders
