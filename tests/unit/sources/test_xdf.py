import gzip
import logging

import numpy as np
import pytest

from rtbrain.errors import ChannelError, RateError, SourceError, UnitError
from rtbrain.sources.recording import open_recording
from rtbrain.sources.xdf import effective_rate_hz
from tests.recording_writers import read
from tests.xdf_writer import XdfStream, write_xdf, xdf_bytes

RATE = 100


def stream(n=1000, **changes):
    data = np.stack([np.arange(n), np.sin(np.arange(n)), -np.arange(n)], axis=1).astype(np.float32)
    fields = {"labels": ["Fz", "Cz", "Pz"], "units": ["microvolts"] * 3} | changes
    return XdfStream(**({"name": "Amp", "data": data, "stamps": 1000 + np.arange(n) / RATE, "rate_hz": RATE} | fields))


@pytest.mark.parametrize("kind", ["float32", "double64", "int16", "int32"])
def test_samples_and_stamps_survive(kind, tmp_path):
    source = stream(format=kind)
    recording = open_recording(write_xdf(tmp_path / "a.xdf", source))
    data, times = read(recording)
    assert recording.info.channels == ("Fz", "Cz", "Pz")
    assert (recording.info.rate_hz, recording.info.unit, recording.format) == (RATE, "uV", "XDF")
    assert (recording.n_samples, recording.duration_s, recording.notes) == (1000, 10.0, ())
    assert np.array_equal(data, source.data if "int" not in kind else np.trunc(source.data))
    assert np.array_equal(times, source.stamps)


@pytest.mark.parametrize("size", [1, 7, "random"])
def test_any_chunk_size_gives_the_same(size, tmp_path):
    recording = open_recording(write_xdf(tmp_path / "a.xdf", stream(2500)))
    whole = read(recording)
    assert [len(chunk) for chunk in recording.chunks()] == [1000, 1000, 500]
    assert all(np.array_equal(a, b) for a, b in zip(read(recording, size), whole, strict=True))


def test_compressed(tmp_path):
    path = tmp_path / "a.b.xdf.gz"
    path.write_bytes(gzip.compress(xdf_bytes(stream())))
    assert open_recording(path).n_samples == 1000


def test_gaps_and_jitter_are_passed_on(tmp_path):
    stamps = 1000 + np.arange(1000) / RATE + np.random.default_rng(1).normal(0, 0.003, 1000)
    stamps[400:] += 3.0
    _, times = read(open_recording(write_xdf(tmp_path / "a.xdf", stream(stamps=stamps))))
    assert np.array_equal(times, stamps)


def test_clock_offsets_bring_stamps_to_one_clock(tmp_path):
    offsets = [(1000.0 + i, -500.0) for i in range(10)]
    _, times = read(open_recording(write_xdf(tmp_path / "a.xdf", stream(offsets=offsets))))
    assert np.allclose(times, 500 + np.arange(1000) / RATE)


def test_stamps_within_a_chunk_follow_the_rate(tmp_path):
    _, times = read(open_recording(write_xdf(tmp_path / "a.xdf", stream(stamp_every=10))))
    assert np.allclose(times, 1000 + np.arange(1000) / RATE)


class TestChoice:
    def two(self, tmp_path, **second):
        markers = XdfStream("Keys", ["a", "b"], np.array([1001.0, 1002.0]), 0, type="Markers", format="string")
        return write_xdf(tmp_path / "a.xdf", stream(), stream(500, name="Other", **second), markers)

    def test_several_are_listed(self, tmp_path):
        with pytest.raises(SourceError, match="several streams of type EEG") as caught:
            open_recording(self.two(tmp_path))
        text = str(caught.value)
        assert "'Amp' (id 1, type 'EEG', 3 channels of float32, 100 Hz, 1000 samples)" in text
        assert "'Other'" in text
        assert "'Keys'" in text

    @pytest.mark.parametrize(("name", "n"), [("Amp", 1000), ("Other", 500), ("2", 500)])
    def test_one_can_be_named(self, name, n, tmp_path):
        assert open_recording(self.two(tmp_path), stream=name).n_samples == n

    def test_an_empty_rival_does_not_count(self, tmp_path):
        path = write_xdf(tmp_path / "a.xdf", stream(0), stream(name="Other"))
        assert open_recording(path).n_samples == 1000

    def test_another_type_is_no_rival_but_may_be_named(self, tmp_path):
        path = self.two(tmp_path, type="ACC")
        assert open_recording(path).n_samples == 1000
        assert open_recording(path, stream="Other").n_samples == 500

    @pytest.mark.parametrize(
        ("name", "reason"), [("None", "no stream named 'None'.*'Amp'"), ("Keys", "texts, not samples")]
    )
    def test_unfit_names(self, name, reason, tmp_path):
        with pytest.raises(SourceError, match=reason):
            open_recording(self.two(tmp_path), stream=name)

    def test_no_eeg_at_all(self, tmp_path):
        with pytest.raises(SourceError, match=r"no stream of type EEG.*'Amp'"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(type="Gaze")))

    def test_irregular(self, tmp_path):
        with pytest.raises(SourceError, match="no regular rate"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(rate_hz=0)))

    def test_empty(self, tmp_path):
        with pytest.raises(SourceError, match="is empty"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(0)))


class TestChannels:
    def test_without_labels_they_are_numbered_and_the_unit_is_unknown(self, tmp_path):
        recording = open_recording(write_xdf(tmp_path / "a.xdf", stream(labels=None, units=None)))
        assert recording.info.channels == ("ch1", "ch2", "ch3")
        assert recording.info.unit == "unknown"

    def test_the_unit_can_be_stated(self, tmp_path):
        recording = open_recording(write_xdf(tmp_path / "a.xdf", stream(units=None)), unit="µV")
        assert recording.info.unit == "uV"
        assert read(recording)[0][5, 0] == 5

    def test_others_are_left_out_by_type_and_by_name(self, tmp_path):
        source = stream(labels=["Fz", "X", "TRIGGER"], types=["EEG", "ACC", "EEG"], units=["uV", "g", ""])
        recording = open_recording(write_xdf(tmp_path / "a.xdf", source))
        assert recording.info.channels == ("Fz",)
        assert recording.info.unit == "uV"
        assert np.array_equal(read(recording)[0][:, 0], np.arange(1000))

    def test_no_eeg_left(self, tmp_path):
        with pytest.raises(SourceError, match="no EEG channels in stream 'Amp'"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(labels=["ECG", "EOG", "AUX1"])))

    def test_doubled_names(self, tmp_path):
        with pytest.raises(ChannelError, match="doubled: Fz;"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(labels=["Fz", "Cz", "Fz"])))

    def test_different_units(self, tmp_path):
        path = write_xdf(tmp_path / "a.xdf", stream(units=["uV", "mV", "uV"]))
        with pytest.raises(UnitError, match="mV, uV"):
            open_recording(path)
        assert open_recording(path, unit="uV").info.unit == "uV"


class TestDamage:
    def test_every_cut_is_refused(self, tmp_path):
        whole = xdf_bytes(stream(12), rows=6)
        path = tmp_path / "a.xdf"
        opened = 0
        for size in range(1, len(whole)):
            path.write_bytes(whole[:size])
            try:
                recording = open_recording(path)
            except SourceError:
                continue
            # Between two chunks nothing is half-written: a recorder that was killed; then there is a note.
            opened += 1
            assert "did not close" in recording.notes[0]
            data, _ = read(recording)
            assert np.array_equal(data[:, 0], np.arange(len(data)))
        assert opened == 2  # after 6 samples, and after 12 but before the footer

    @pytest.mark.parametrize(
        "content", [b"XDF", b"XDF:\x07abcdefg", b"XDF:\x01\x09\x03\x00\x01\x00\x00\x00\x01\x00\x00", b"EDF:" * 9]
    )
    def test_nonsense(self, content, tmp_path):
        (tmp_path / "a.xdf").write_bytes(content)
        with pytest.raises(SourceError):
            open_recording(tmp_path / "a.xdf")

    def test_stamps_that_are_no_numbers(self, tmp_path):
        stamps = 1000 + np.arange(1000) / RATE
        stamps[10] = np.nan
        with pytest.raises(SourceError, match="not finite"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(stamps=stamps)))


class TestRate:
    @pytest.mark.parametrize("true_hz", [97.0, 103.0])
    def test_stamps_that_contradict_the_rate(self, true_hz, tmp_path):
        with pytest.raises(RateError, match=f"declares 100 Hz, but .* {true_hz:.2f} Hz"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(stamps=np.arange(1000) / true_hz)))

    def test_also_where_stamps_within_chunks_follow_the_nominal_rate(self, tmp_path):
        with pytest.raises(RateError, match=r"9[0-9]\.\d\d Hz"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(stamps=np.arange(1000) / 95, stamp_every=10)))

    @pytest.mark.parametrize("true_hz", [99.0, 101.0])
    def test_a_small_difference_passes(self, true_hz, tmp_path):
        assert open_recording(write_xdf(tmp_path / "a.xdf", stream(stamps=np.arange(1000) / true_hz))).n_samples == 1000

    def test_gaps_jitter_and_clock_steps_do_not_count(self):
        stamps = np.arange(10000) / RATE + np.random.default_rng(3).normal(0, 0.01, 10000)
        stamps[3000:] += 100
        stamps[7000:] -= 400
        assert effective_rate_hz(stamps, RATE) == pytest.approx(RATE, rel=1e-3)

    def test_a_single_sample_has_no_rate(self, tmp_path):
        assert np.isnan(effective_rate_hz(np.array([5.0]), RATE))
        assert open_recording(write_xdf(tmp_path / "a.xdf", stream(1))).n_samples == 1

    def test_stamps_that_stand_still(self, tmp_path):
        with pytest.raises(RateError, match=r"0\.00 Hz"):
            open_recording(write_xdf(tmp_path / "a.xdf", stream(stamps=np.full(1000, 7.0))))


class TestRealFiles:
    def test_minimal(self, data):
        recording = open_recording(data / "formats/xdf-examples/minimal.xdf")
        data, times = read(recording)
        assert (recording.info.rate_hz, recording.info.unit, data.shape) == (10, "unknown", (9, 3))
        assert np.allclose(times, 5.0 + np.arange(9) / 10)

    def test_clock_resets(self, data, caplog):
        # Declared as 100 Hz, but both halves come at 93 Hz: decoding it at 100 Hz would be wrong in silence.
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(RateError, match=r"'BioSemi'.*declares 100 Hz.*93\.\d\d Hz"),
        ):
            open_recording(data / "formats/xdf-examples/clock_resets.xdf")
        assert not caplog.records

    def test_empty_streams(self, data):
        path = data / "formats/xdf-examples/empty_streams.xdf"
        with pytest.raises(SourceError, match=r"no stream of type EEG.*'Data stream: test stream 0 counter'"):
            open_recording(path)
        with pytest.raises(SourceError, match="is empty"):
            open_recording(path, stream="Empty data stream: test stream 0 counter")
        assert open_recording(path, stream="Data stream: test stream 0 counter").n_samples == 10
