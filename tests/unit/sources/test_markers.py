"""Markers of recordings in every format, on the clock of the samples."""

import mne
import numpy as np
import pytest

from rtbrain.errors import SourceError
from rtbrain.sources.markers import Marker
from rtbrain.sources.recording import open_recording
from tests.recording_writers import RATE, raw_array, samples, write_edf, write_set, write_vhdr
from tests.xdf_writer import XdfStream, write_xdf


def test_edf_annotations(tmp_path):
    recording = open_recording(write_edf(tmp_path / "a.edf", samples(), annotate=True))
    assert recording.markers() == [Marker(1.0, "eyes closed")]


def test_edf_onsets_are_times_interruptions_included(tmp_path):
    """Five seconds are missing after the first record; the annotation stands in the third and says when it was."""
    path = write_edf(tmp_path / "a.edf", samples(), annotate=True)
    content = bytearray(path.read_bytes())
    content[192:197] = b"EDF+D"
    width = 2 * int(content[256 + 216 * 5 + 8 * 4 : 256 + 216 * 5 + 8 * 5])
    for i, onset in enumerate([0, *range(6, 15)]):
        at = 256 * 6 + i * (2 * RATE * 4 + width) + 2 * RATE * 4
        text = f"{onset:+g}\x14\x14\x00" + ("+7.25\x14go\x14\x00" if i == 2 else "")
        content[at : at + width] = text.encode().ljust(width, b"\x00")
    path.write_bytes(content)
    recording = open_recording(path)
    assert next(recording.chunks(300)).times[-1] > 6
    assert recording.markers() == [Marker(7.25, "go")]


def test_no_markers(tmp_path):
    assert open_recording(write_edf(tmp_path / "a.edf", samples())).markers() == []
    assert open_recording(write_vhdr(tmp_path / "a.vhdr", samples())).markers() == []


def test_after_an_interruption_markers_move_with_the_samples(tmp_path):
    """EEGLAB counts positions in what is left; 2 s were cut out at second 4."""
    marks = [("first", 1.0, 0.0), ("boundary", 4.0, 2.0), ("second", 5.0, 0.0)]
    recording = open_recording(write_set(tmp_path / "a.set", samples(), marks=marks))
    times = np.concatenate([chunk.times for chunk in recording.chunks()])
    first, second = recording.markers()
    assert (first, second.text) == (Marker(1.0, "first"), "second")
    assert second.time_s == pytest.approx(times[5 * RATE]) == pytest.approx(7.0)


def test_fif_annotations_count_from_the_first_sample(tmp_path):
    raw = raw_array(samples(), first_samp=500)
    raw.set_annotations(mne.Annotations([2.0 + 3.0], [0.0], "go", orig_time=raw.info["meas_date"]))
    raw.save(tmp_path / "a_raw.fif", verbose="ERROR")
    (marker,) = open_recording(tmp_path / "a_raw.fif").markers()
    assert (marker.text, marker.time_s) == ("go", pytest.approx(3.0))


def test_fif_triggers(tmp_path):
    x = samples()
    x = np.vstack([x, np.zeros(x.shape[1])])
    x[4, 500:510] = 7e6  # raw_array scales to volts
    raw = raw_array(x, ["Fz", "Cz", "Pz", "Oz", "STI 014"], ["eeg"] * 4 + ["stim"])
    raw.save(tmp_path / "a_raw.fif", verbose="ERROR")
    assert open_recording(tmp_path / "a_raw.fif").markers() == [Marker(2.0, "7")]


def test_bdf_triggers(tmp_path):
    import edfio

    x = samples(2500)
    status = np.zeros(2500)
    status[750:760] = 33
    signals = [
        edfio.BdfSignal(row, RATE, label=name, physical_dimension="uV", physical_range=(-8388608, 8388607))
        for row, name in [*zip(x, ("Fz", "Cz", "Pz", "Oz"), strict=True), (status, "Status")]
    ]
    edfio.Bdf(signals).write(tmp_path / "a.bdf")
    assert open_recording(tmp_path / "a.bdf").markers() == [Marker(3.0, "33")]


def test_bids_events_come_first(tmp_path):
    path = write_edf(tmp_path / "sub-01_task-rest_eeg.edf", samples(), annotate=True)
    events = tmp_path / "sub-01_task-rest_events.tsv"
    events.write_text("onset\tduration\ttrial_type\tvalue\n2.5\t1\tgo\t1\n0.5\t1\tn/a\t9\n")
    assert open_recording(path).markers() == [Marker(0.5, "9"), Marker(2.5, "go")]
    events.write_text("onset\tduration\nsoon\t1\n")
    with pytest.raises(SourceError, match=r"events.tsv: line 2"):
        open_recording(path).markers()


def test_xdf_markers_are_on_the_clock_of_the_samples(tmp_path):
    stamps = 50 + np.arange(500) / 250
    eeg = XdfStream("EEG", samples(500).T, stamps, 250.0, labels=["Fz", "Cz", "Pz", "Oz"], units=["uV"] * 4)
    # The stimulus machine's clock is 100 s behind.
    offsets = [(-50.0 + i, 100.0) for i in range(5)]
    texts = XdfStream("stimuli", ["a", "b"], np.array([-49.5, -49.0]), 0.0, "Markers", "string", offsets=offsets)
    recording = open_recording(write_xdf(tmp_path / "a.xdf", eeg, texts))
    assert [(round(m.time_s, 6), m.text) for m in recording.markers()] == [(50.5, "a"), (51.0, "b")]
