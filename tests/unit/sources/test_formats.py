"""What is special about one format."""

import mne
import numpy as np
import pytest
import scipy.io

from rtbrain.errors import ChannelError, RateError, SourceError, UnitError
from rtbrain.sources.files import UNKNOWN_LOSS_S, parts
from rtbrain.sources.recording import open_recording
from tests.recording_writers import (
    INDEX,
    NAMES,
    RATE,
    raw_array,
    read,
    samples,
    write_edf,
    write_fif,
    write_set,
    write_vhdr,
)


class TestEdf:
    def patch(self, path, start, text):
        content = bytearray(path.read_bytes())
        content[start : start + len(text)] = text
        path.write_bytes(content)
        return path

    def test_one_byte_too_few_is_cut_short(self, tmp_path):
        path = write_edf(tmp_path / "a.edf", samples())
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(SourceError, match=r"promises 10 records, 21596 bytes, but it has 21595"):
            open_recording(path)

    @pytest.mark.parametrize("size", [100, 300])
    def test_cut_within_the_header(self, size, tmp_path):
        path = write_edf(tmp_path / "a.edf", samples())
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(SourceError, match="not a whole EDF file"):
            open_recording(path)

    def test_an_unfinished_header_is_noted_and_all_is_read(self, tmp_path):
        recording = open_recording(self.patch(write_edf(tmp_path / "a.edf", samples()), 236, b"-1      "))
        assert "10 whole records" in recording.notes[0]
        assert len(read(recording)[0]) == 2500

    def test_more_than_promised_is_noted(self, tmp_path):
        recording = open_recording(self.patch(write_edf(tmp_path / "a.edf", samples()), 236, b"8       "))
        assert "promises 8 records, the file holds 10" in recording.notes[0]
        assert recording.n_samples == 2500

    def test_no_records(self, tmp_path):
        path = self.patch(write_edf(tmp_path / "a.edf", samples()), 236, b"0       ")
        path.write_bytes(path.read_bytes()[: 256 * 6])
        with pytest.raises(SourceError, match="no samples"):
            open_recording(path)

    @pytest.mark.parametrize("suffix", [".edf", ".bdf"])
    def test_doubled_names(self, suffix, tmp_path):
        with pytest.raises(ChannelError, match="doubled: Fz;"):
            open_recording(write_edf(tmp_path / f"a{suffix}", samples(500), ["Fz", "Cz", "Fz", "Oz"]))

    def test_doubled_names_of_other_channels_do_not_matter(self, tmp_path):
        recording = open_recording(write_edf(tmp_path / "a.edf", samples(500), ["ECG", "Cz", "ECG", "Oz"]))
        assert recording.info.channels == ("Cz", "Oz")

    def test_a_faster_channel_that_is_no_eeg_does_not_resample_the_eeg(self, tmp_path):
        x = samples(500)
        rows = [*x, np.zeros(1000)]
        path = write_edf(tmp_path / "a.edf", rows, [*NAMES, "ECG"], rates=[RATE] * 4 + [2 * RATE])
        recording = open_recording(path)
        assert (recording.info.rate_hz, recording.n_samples) == (RATE, 500)
        assert np.array_equal(np.rint(read(recording)[0][:, INDEX] * 1e6), np.arange(500))

    def test_eeg_channels_of_different_rates_are_refused(self, tmp_path):
        rows = [*samples(500), np.zeros(1000)]
        with pytest.raises(RateError, match=r"Fz 250 Hz.*C4 500 Hz"):
            open_recording(write_edf(tmp_path / "a.edf", rows, [*NAMES, "C4"], rates=[RATE] * 4 + [2 * RATE]))

    @pytest.mark.parametrize(("written", "volts"), [("uV", 1e-6), ("mV", 1e-3), ("V", 1.0), ("nV", 1e-9), ("UV", 1e-6)])
    def test_units(self, written, volts, tmp_path):
        recording = open_recording(write_edf(tmp_path / "a.edf", samples(500), dimensions=[written] * 4))
        assert recording.info.unit == "V"
        assert np.allclose(read(recording)[0][:, INDEX], np.arange(500) * volts, atol=0.11 * volts, rtol=0)

    def test_a_missing_unit_is_unknown_until_stated(self, tmp_path):
        path = write_edf(tmp_path / "a.edf", samples(500), dimensions=[""] * 4)
        assert open_recording(path).info.unit == "unknown"
        stated = open_recording(path, unit="uV")
        assert stated.info.unit == "uV"
        assert np.array_equal(np.rint(read(stated)[0][:, INDEX]), np.arange(500))

    def test_a_partly_missing_unit_is_refused(self, tmp_path):
        with pytest.raises(UnitError, match=r"Cz \(''\)"):
            open_recording(write_edf(tmp_path / "a.edf", samples(500), dimensions=["uV", "", "uV", "uV"]))

    def test_a_channel_in_percent_is_no_eeg(self, tmp_path):
        path = write_edf(tmp_path / "a.edf", samples(500), dimensions=["uV", "%", "uV", "uV"])
        assert open_recording(path).info.channels == ("Fz", "Pz", "Oz")

    def discontinuous(self, path, onsets):
        """Turn an EDF+C of 1 s records into an EDF+D whose records began at these times."""
        write_edf(path, samples(), annotate=True)
        content = bytearray(path.read_bytes())
        content[192:197] = b"EDF+D"
        signals = content[256 : 256 + 16 * 5].decode().split()
        assert signals[-2:] == ["EDF", "Annotations"]
        width = 2 * int(content[256 + 216 * 5 + 8 * 4 : 256 + 216 * 5 + 8 * 5])
        record = 2 * RATE * 4 + width
        for i, onset in enumerate(onsets):
            at = 256 * 6 + i * record + 2 * RATE * 4
            content[at : at + width] = f"{onset:+g}\x14\x14\x00".encode().ljust(width, b"\x00")
        path.write_bytes(content)
        return path

    def test_discontinuous_records_become_jumps_of_known_length(self, tmp_path):
        onsets = [0, 1, 2, 5.5, 6.5, 7.5, 8.5, 9.52, 10.52, 11.52]
        recording = open_recording(self.discontinuous(tmp_path / "a.edf", onsets))
        data, times = read(recording, 7)
        assert np.array_equal(np.rint(data[:, INDEX] * 1e6), np.arange(2500))
        assert np.allclose(times[::RATE], onsets)
        steps = np.diff(times) * RATE
        assert np.flatnonzero(np.abs(steps - 1) > 1e-6).tolist() == [749, 1749]
        assert len(recording.notes) == 2

    def test_annotations_in_latin_1(self, tmp_path):
        path = write_edf(tmp_path / "a.edf", samples(500), annotate=True)
        path.write_bytes(path.read_bytes().replace(b"eyes closed", b"m\xfcde Augen "))
        assert np.array_equal(np.rint(read(open_recording(path))[0][:, INDEX] * 1e6), np.arange(500))

    def test_a_discontinuous_file_without_times_is_refused(self, tmp_path):
        path = self.discontinuous(tmp_path / "a.edf", range(10))
        path.write_bytes(path.read_bytes().replace(b"+4\x14\x14", b"\x00\x00\x00\x00"))
        with pytest.raises(SourceError, match="record 5 of this discontinuous"):
            open_recording(path)


class TestBrainVision:
    def replace(self, path, old, new):
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    @pytest.mark.parametrize("sidecar", [".eeg", ".vmrk"])
    def test_missing_sidecar(self, sidecar, tmp_path):
        path = write_vhdr(tmp_path / "a.vhdr", samples(500))
        path.with_suffix(sidecar).unlink()
        with pytest.raises(SourceError, match=rf"a\{sidecar} is missing"):
            open_recording(path)

    def test_empty_data_file(self, tmp_path):
        path = write_vhdr(tmp_path / "a.vhdr", samples(500))
        path.with_suffix(".eeg").write_bytes(b"")
        with pytest.raises(SourceError, match=r"a\.eeg is empty"):
            open_recording(path)

    def test_whole_frames_but_fewer_than_promised(self, tmp_path):
        path = write_vhdr(tmp_path / "a.vhdr", samples(500))
        self.replace(path, "NumberOfChannels=4", "NumberOfChannels=4\nDataPoints=501")
        with pytest.raises(SourceError, match=r"500 samples .* promises 501"):
            open_recording(path)

    def test_a_marker_after_the_end_tells_that_data_are_missing(self, tmp_path):
        path = write_vhdr(tmp_path / "a.vhdr", samples(500))
        with path.with_suffix(".vmrk").open("a") as file:
            file.write("Mk1=Stimulus,S  1,2000,1,0\n")
        with pytest.raises(SourceError, match="holds 500 samples, but there is a marker at sample 2000"):
            open_recording(path)

    def test_doubled_names(self, tmp_path):
        path = write_vhdr(tmp_path / "a.vhdr", samples(500))
        self.replace(path, "Ch3=Pz", "Ch3=Fz")
        with pytest.raises(ChannelError, match="doubled: Fz;"):
            open_recording(path)

    def test_a_channel_in_degrees_is_no_eeg(self, tmp_path):
        path = write_vhdr(tmp_path / "a.vhdr", samples(500))
        self.replace(path, "Ch3=Pz,,0.1,µV", "Ch3=Pz,,0.1,C")
        assert open_recording(path).info.channels == ("Fz", "Cz", "Oz")

    def test_new_segments_become_jumps(self, tmp_path):
        path = write_vhdr(tmp_path / "a.vhdr", samples(2500))
        with path.with_suffix(".vmrk").open("a") as file:
            file.write("Mk1=New Segment,,1,1,0,20240101120000000000\n")
            file.write("Mk2=New Segment,,501,1,0,20240101120005500000\n")  # 2 s of data, then 3.5 s lost
            file.write("Mk3=New Segment,,1001,1,0\n")  # no date
        data, times = read(open_recording(path))
        assert np.array_equal(np.rint(data[:, INDEX] * 1e6), np.arange(2500))
        steps = np.diff(times) - 1 / RATE
        assert np.flatnonzero(np.abs(steps) > 1e-9).tolist() == [499, 999]
        assert steps[499] == pytest.approx(3.5)
        assert steps[999] == pytest.approx(UNKNOWN_LOSS_S)


class TestEeglab:
    @pytest.mark.parametrize(("duration_s", "jump_s"), [(0.5, 0.5), (0.0, UNKNOWN_LOSS_S)])
    def test_boundaries_become_jumps(self, duration_s, jump_s, tmp_path):
        # EEGLAB writes a boundary half-way between the last sample before and the first one after it.
        marks = [("boundary", 499.5 / RATE, duration_s), ("blink", 3.0, 0.1)]
        data, times = read(open_recording(write_set(tmp_path / "a.set", samples(), marks=marks)))
        steps = np.diff(times) - 1 / RATE
        assert np.flatnonzero(np.abs(steps) > 1e-9).tolist() == [499]
        assert steps[499] == pytest.approx(jump_s)
        assert np.array_equal(np.rint(data[:, INDEX] * 1e6), np.arange(2500))

    def test_doubled_names(self, tmp_path):
        with pytest.raises(ChannelError, match="doubled: Cz;"):
            open_recording(write_set(tmp_path / "a.set", samples(500), ["Fz", "Cz", "Cz", "Oz"]))

    def with_fdt(self, path, x, **fields):
        content = scipy.io.loadmat(write_set(path, x))
        content = {key: value for key, value in content.items() if not key.startswith("__")}
        scipy.io.savemat(path, {**content, "data": path.with_suffix(".fdt").name, **fields}, appendmat=False)
        path.with_suffix(".fdt").write_bytes(x.T.astype("<f4").tobytes())
        return path

    def test_data_in_a_file_of_their_own(self, tmp_path):
        path = self.with_fdt(tmp_path / "a.set", samples())
        assert np.array_equal(np.rint(read(open_recording(path))[0][:, INDEX] * 1e6), np.arange(2500))
        fdt = path.with_suffix(".fdt")
        fdt.write_bytes(fdt.read_bytes()[:-16])
        with pytest.raises(SourceError, match="has 39984 bytes, the header promises 40000"):
            open_recording(path)
        fdt.unlink()
        with pytest.raises(SourceError, match=r"is missing: .*a\.fdt"):
            open_recording(path)

    def test_epochs_are_refused(self, tmp_path):
        with pytest.raises(SourceError, match="holds epochs, rtbrain needs the continuous recording"):
            open_recording(self.with_fdt(tmp_path / "a.set", samples(), trials=5))


class TestFif:
    def test_only_eeg_by_type(self, tmp_path):
        path = write_fif(tmp_path / "a_raw.fif", samples(500), ["Fz", "X1", "X2", "Oz"], ["eeg", "stim", "misc", "eeg"])
        assert open_recording(path).info.channels == ("Fz", "Oz")

    def test_any_name_ending_in_fif_will_do(self, tmp_path):
        path = write_fif(tmp_path / "a_raw.fif", samples(500)).rename(tmp_path / "mine.fif")
        assert open_recording(path).notes == ()

    def test_joined_recordings_jump_by_an_unknown_time(self, tmp_path):
        x = samples()
        first, second = raw_array(x[:, :1000], first_samp=500), raw_array(x[:, 1000:])
        mne.concatenate_raws([first, second], verbose="ERROR").save(tmp_path / "a_raw.fif", verbose="ERROR")
        data, times = read(open_recording(tmp_path / "a_raw.fif"), "random")
        steps = np.diff(times) - 1 / RATE
        assert times[0] == 0
        assert np.flatnonzero(np.abs(steps) > 1e-9).tolist() == [999]
        assert steps[999] == pytest.approx(UNKNOWN_LOSS_S)
        assert np.array_equal(np.rint(data[:, INDEX] * 1e6), np.arange(2500))

    def test_skipped_data_are_left_out_but_their_time_passes(self, tmp_path):
        raw = raw_array(samples(), first_samp=500)
        raw.set_annotations(mne.Annotations([2 + 3.0], [1.0], "BAD_ACQ_SKIP", orig_time=raw.info["meas_date"]))
        raw.save(tmp_path / "a_raw.fif", verbose="ERROR")
        data, times = read(open_recording(tmp_path / "a_raw.fif"))
        kept = np.r_[:750, 1000:2500]
        assert np.array_equal(np.rint(data[:, INDEX] * 1e6), kept)
        assert np.array_equal(times, kept / RATE)

    def test_epochs_are_refused(self, tmp_path):
        info = mne.create_info(NAMES, RATE, "eeg")
        mne.EpochsArray(samples(500)[None] * 1e-6, info, verbose="ERROR").save(tmp_path / "a-epo.fif", verbose="ERROR")
        with pytest.raises(SourceError, match="holds epochs, rtbrain needs the continuous recording"):
            open_recording(tmp_path / "a-epo.fif")


def test_parts_accumulate_losses():
    found = parts(100, 10.0, {0: 5.0, 20: 1.5, 60: None}, [(80, 90)])
    assert [(part.first, part.stop) for part in found] == [(0, 20), (20, 60), (60, 80), (90, 100)]
    lost = 1.5 + UNKNOWN_LOSS_S
    assert [part.shift_s for part in found] == [0.0, 1.5, lost, lost]
