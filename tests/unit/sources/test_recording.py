import subprocess
import sys

import numpy as np
import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.sources.recording import find_recordings, open_recording
from tests.recording_writers import INDEX, NAMES, RATE, WRITERS, read, samples, write_edf


@pytest.mark.parametrize("suffix", WRITERS)
class TestEveryFormat:
    def test_gives_back_every_sample_in_volts(self, suffix, tmp_path):
        x = samples()
        recording = open_recording(WRITERS[suffix](tmp_path / f"a{suffix}", x))
        data, times = read(recording)
        assert recording.info.channels == tuple(NAMES)
        assert (recording.info.rate_hz, recording.info.unit) == (RATE, "V")
        assert recording.duration_s == 10.0
        assert recording.notes == ()
        assert np.array_equal(np.rint(data[:, INDEX] * 1e6), np.arange(2500))
        resolution_uv = {".edf": 0.101, ".bdf": 5e-4}.get(suffix, 2e-4)
        assert np.abs(data * 1e6 - x.T).max() < resolution_uv
        assert np.array_equal(times, np.arange(2500) / RATE)

    def test_any_chunk_size_gives_the_same(self, suffix, tmp_path):
        recording = open_recording(str(WRITERS[suffix](tmp_path / f"a{suffix}", samples(6000))))
        whole = read(recording)
        for size in (1, 7, 2501, "random"):
            assert all(np.array_equal(a, b) for a, b in zip(read(recording, size, seed=3), whole, strict=True))
        assert {len(chunk) for chunk in recording.chunks(7)} == {7, 6000 % 7}

    def test_is_read_in_blocks(self, suffix, tmp_path):
        recording = open_recording(WRITERS[suffix](tmp_path / f"a{suffix}", samples(16_000) % 5000))
        assert [len(chunk) for chunk in recording.chunks()] == [7500, 7500, 1000]

    def test_other_channels_are_left_out(self, suffix, tmp_path):
        names = ["EEG Fp1-LE", "HEOGL", "Cz", "A2-A1", "ECG", "Status", "EXG3"]
        recording = open_recording(WRITERS[suffix](tmp_path / f"a{suffix}", samples(500, 7), names))
        assert recording.info.channels == ("EEG Fp1-LE", "Cz", "A2-A1")
        assert np.array_equal(np.rint(read(recording)[0][:, 2] * 1e6), np.arange(500))

    def test_a_file_without_eeg_is_refused(self, suffix, tmp_path):
        path = WRITERS[suffix](tmp_path / f"a{suffix}", samples(500, 4), ["ECG", "EOG", "EMG", "Resp"])
        with pytest.raises(SourceError, match="no EEG channels; it has ECG"):
            open_recording(path)

    @pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
    def test_a_cut_file_is_refused(self, suffix, share, tmp_path):
        path = WRITERS[suffix](tmp_path / f"a{suffix}", samples())
        target = path.with_suffix(".eeg") if suffix == ".vhdr" else path
        whole = target.read_bytes()
        target.write_bytes(whole[: int(share * len(whole)) // 16 * 16 - 3])
        with pytest.raises(SourceError, match=r"cut short|not a whole") as caught:
            open_recording(path)
        assert str(path) in str(caught.value)

    def test_the_unit_can_be_stated(self, suffix, tmp_path):
        recording = open_recording(WRITERS[suffix](tmp_path / f"a{suffix}", samples(500)), unit="millivolts")
        # What the file calls microvolts (FIF: volts) is taken for millivolts: the numbers stay, the name changes.
        stored = 1e-6 if suffix == "_raw.fif" else 1.0
        assert recording.info.unit == "mV"
        assert np.array_equal(np.rint(read(recording)[0][:, INDEX] / stored), np.arange(500))

    def test_an_empty_file_is_refused(self, suffix, tmp_path):
        (tmp_path / f"a{suffix}").write_bytes(b"")
        with pytest.raises(SourceError, match="empty"):
            open_recording(tmp_path / f"a{suffix}")

    def test_nonsense_is_refused(self, suffix, tmp_path):
        (tmp_path / f"a{suffix}").write_bytes(b"no recording" * 100)
        with pytest.raises(SourceError):
            open_recording(tmp_path / f"a{suffix}")


class TestPaths:
    def test_missing(self, tmp_path):
        with pytest.raises(SourceError, match="does not exist"):
            open_recording(tmp_path / "none.edf")

    def test_folder(self, tmp_path):
        with pytest.raises(SourceError, match="is a folder"):
            open_recording(tmp_path)

    @pytest.mark.parametrize(
        ("name", "hint"), [("a.wav", r"\.edf, \.bdf"), ("a", "no ending"), ("a.eeg", r"a\.vhdr"), ("a.fdt", r"a\.set")]
    )
    def test_unknown_ending(self, name, hint, tmp_path):
        (tmp_path / name).write_bytes(b"abc")
        with pytest.raises(SourceError, match=hint):
            open_recording(tmp_path / name)

    def test_unknown_unit(self, tmp_path):
        with pytest.raises(ConfigError, match="'furlong'"):
            open_recording(write_edf(tmp_path / "a.edf", samples(500)), unit="furlong")

    def test_a_stream_of_a_plain_file(self, tmp_path):
        with pytest.raises(SourceError, match="XDF files only"):
            open_recording(write_edf(tmp_path / "a.edf", samples(500)), stream="EEG")

    def test_upper_case_ending(self, tmp_path):
        path = write_edf(tmp_path / "a.edf", samples(500)).rename(tmp_path / "B.EDF")
        assert open_recording(path).n_samples == 500

    def test_find_recordings_lists_one_path_per_recording(self, tmp_path):
        (tmp_path / "sub" / ".hidden").mkdir(parents=True)
        wanted = ["sub/a.vhdr", "b.set", "c.EDF", "d.xdf", "x_raw.fif", "y_split-01_eeg.fif", "z-3.fif"]
        others = [
            "sub/a.vmrk",
            "sub/a.eeg",
            "b.fdt",
            "notes.txt",
            "x_raw-1.fif",
            "y_split-02_eeg.fif",
            "sub/.hidden/e.edf",
            ".f.edf",
        ]
        for name in wanted + others:
            (tmp_path / name).touch()
        assert find_recordings(tmp_path) == sorted(tmp_path / name for name in wanted)
        with pytest.raises(SourceError, match="not a folder"):
            find_recordings(tmp_path / "d.xdf")

    def test_mne_is_not_loaded_before_a_file_is_opened(self):
        code = "import sys, rtbrain.sources.recording, rtbrain.sources.synthetic as _; print('mne' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"


class TestRealFiles:
    @pytest.mark.parametrize(
        ("name", "rate", "n_channels", "n_samples", "spread_uv"),
        [
            ("formats/eeg_microstates/test.edf", 250, 30, 48000, 6.71),
            ("formats/eegmmidb/S001R01.edf", 160, 64, 9760, 58.7),
            ("eegmat/Subject02_rest.edf", 500, 19, 46000, 12.2),
            ("mdd/H S6 EC.edf", 256, 19, 51200, 9.60),
        ],
    )
    def test_edf(self, data, name, rate, n_channels, n_samples, spread_uv):
        recording = open_recording(data / name)
        data, times = read(recording, 1000)
        assert (recording.info.rate_hz, len(recording.info.channels), len(data)) == (rate, n_channels, n_samples)
        assert data.std() * 1e6 == pytest.approx(spread_uv, rel=0.01)
        assert times[-1] == (n_samples - 1) / rate

    @pytest.mark.parametrize("name", ["preproc_S1.fif", "preproc_S2.fif"])
    def test_epochs(self, data, name):
        with pytest.raises(SourceError, match="holds epochs, rtbrain needs the continuous recording"):
            open_recording(data / "formats" / "hypyp" / name)

    def test_all_are_found(self, data):
        found = find_recordings(data)
        assert len([path for path in found if path.parent.name == "mdd"]) == 65
        assert data / "formats/xdf-examples/minimal.xdf" in found
