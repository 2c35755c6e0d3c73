"""What makes the real sets awkward to read is in the simulated ones too."""

import re
from collections import Counter

import mne
import numpy as np
import pytest
from scipy.io import loadmat

from rtbrain.simulation.layouts import LAYOUTS
from rtbrain.simulation.layouts.plan import Scale
from rtbrain.sources.headers import read_edf_header
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import load
from rtbrain.training.datasets.deap import CHANNELS


def noise(take):
    """Make samples without a generator: these tests are about the rest of a file."""
    yield np.random.default_rng(take.subject).normal(0, 20, (take.n_samples, len(take.channels)))


def write(name, scale, folder, wanted):
    layout = LAYOUTS[name]
    files = layout.plan(scale)
    for file in files:
        if file.person in wanted:
            layout.write(folder, file, noise)
    layout.tables(folder, files, scale)
    return files


@pytest.mark.parametrize(
    ("person", "labels", "high_bits"),
    [("s22", ["Temp", "Status"], 0), ("s23", ["Temp", "Status"], 0), ("s24", ["Temp", ""], 1638144),
     ("s28", ["Temp", ""], 1638144), ("s29", ["Temp", "", ""], 1703680), ("s32", ["Temp", "", ""], 1638144)],
)  # fmt: skip
def test_deap_signals_and_triggers_by_participant(person, labels, high_bits, tmp_path):
    write("deap", Scale(32, 1, "original"), tmp_path, {person})
    path = tmp_path / f"data_original/{person}.bdf"
    header = read_edf_header(path, "BDF")
    assert list(header.labels[46:]) == labels
    assert (header.labels[2] == "F7") == (person == "s22")  # the two labs differ in the order of electrodes
    assert set(header.labels[:32]) == set(CHANNELS)
    raw = mne.io.read_raw_bdf(path, verbose="ERROR", stim_channel=None, exclude=CHANNELS)
    values = np.unique(np.rint(raw.get_data([-1])[0]))
    assert values.tolist() == [high_bits + code for code in (0, 1, 2, 3, 4, 5, 7)]
    found = load(load_dataset_config("deap"), tmp_path)
    assert found.problems == ()
    assert ("familiarity" in found.trials[0].fields) == (person != "s23")


def test_deap_lacks_the_trials_that_the_configuration_says():
    missing = load_dataset_config("deap").options["missing_trials"]
    files = LAYOUTS["deap"].plan(Scale(32, 40, "original"))
    lacking = {file.person: 40 - sum(each.code == 4 for each in file.takes[0].stretches) for file in files}
    assert {person: n for person, n in lacking.items() if n} == {who: len(lost) for who, lost in missing.items()}


def test_deap_ratings_are_plausible_and_videos_are_not_played_in_order(tmp_path):
    files = write("deap", Scale(32, 40, "original", seed=2), tmp_path, set())
    lines = (tmp_path / "metadata_csv/participant_ratings.csv").read_text().splitlines()
    assert len(lines) == 1281
    rows = [line.split(",") for line in lines[1:]]
    assert {row[0] for row in rows if row[8] == ""} == {"2", "15", "23"}
    assert sum(row[1] == row[2] for row in rows) < 100
    valence = np.array([float(row[4]) for row in rows])
    assert valence.min() == 1
    assert valence.max() == 9
    positive = valence > 5
    assert 0.45 < positive.mean() < 0.6
    # As in the set, what others said of a video predicts well what one will say.
    by_video = {video: np.mean([p for p, row in zip(positive, rows, strict=True) if row[2] == video])
                for video in {row[2] for row in rows}}  # fmt: skip
    agreeing = np.mean([(by_video[row[2]] > 0.5) == p for p, row in zip(positive, rows, strict=True)])
    assert 0.7 < agreeing < 0.9
    names = [each.trial for each in files[0].takes[0].stretches if each.trial]
    assert names == [f"s01_video-{int(row[2]):02d}" for row in rows[:40]]


def test_seed_has_the_release_s_dates_names_and_lengths(tmp_path):
    files = LAYOUTS["seed"].plan(Scale(15, 15, "original", sessions=3))
    first = {file.path.split("/")[1] for file in files if any(each.trial for each in file.takes[0].stretches)}
    assert {"1_20131027.mat", "6_20130712.mat", "11_20140618.mat", "15_20130709.mat"} <= first
    assert len(first) == 15
    assert len({file.path for file in files}) == 45
    assert sum(take.seconds for take in files[0].takes) == 3394
    write("seed", Scale(2, 15, "original", seconds=2, sessions=2), tmp_path, {"s01", "s02"})
    paths = sorted((tmp_path / "Preprocessed_EEG").glob("*_*.mat"))
    names = [sorted(name for name in loadmat(path) if "eeg" in name) for path in paths]
    prefixes = [{name.split("_")[0] for name in each} for each in names]
    assert [len(each) for each in prefixes] == [1, 1, 1, 1]
    assert prefixes[0] == prefixes[1] != prefixes[2]
    labels = loadmat(tmp_path / "Preprocessed_EEG/label.mat")["label"]
    assert labels.tolist() == [[1, 0, -1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 0, 1, -1]]


def test_mdd_names_are_odd_now_and_then_and_signals_differ_in_number(tmp_path):
    everybody = {f"{group} S{number}" for group in ("H", "MDD") for number in range(1, 17)}
    write("mdd", Scale(32, 1, "original", seconds=1), tmp_path, everybody)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"H S1 EC.edf", "MDD S16  EC.edf", "6921143_H S15 EO.edf"} <= names
    counts = {path.name: len(read_edf_header(path, "EDF").labels) for path in tmp_path.iterdir()}
    assert set(counts.values()) == {20, 22}
    by_group = [
        Counter(n for name, n in counts.items() if re.search(rf"\b{group} ", name.replace("_", " ")))
        for group in ("H", "MDD")
    ]
    assert by_group[0] == by_group[1]
    labels = read_edf_header(tmp_path / "MDD S3 EO.edf", "EDF").labels
    assert labels[0] == "EEG Fp1-LE"
    assert labels[19:] == ("EEG A2-A1", "EEG 23A-23R", "EEG 24A-24R")
    found = load(load_dataset_config("mdd"), tmp_path)
    assert found.problems == ()
    assert len({trial.subject for trial in found.trials}) == 32


def test_neurolong_ratings_mostly_agree_with_the_films():
    files = LAYOUTS["neurolong"].plan(Scale(49, 12, "bids", seconds=660))
    films = [each.fields for file in files for take in file.takes for each in take.stretches if each.trial]
    assert len(films) == 588
    assert Counter(film["stim_valence"] for film in films) == {"neg": 392, "pos": 196}
    assert {film["valence_rating"] for film in films} == {-10, -5, 0, 5, 10}
    agreeing = np.mean([(film["valence_rating"] > 0) == (film["stim_valence"] == "pos") for film in films])
    assert 0.75 < agreeing < 1
    played = {
        person: tuple(file.takes[0].stretches[1].fields["video_id"] for file in files if file.person == person)
        for person in ("sub-01", "sub-02", "sub-49")
    }
    assert len(set(played.values())) == 3  # everybody sees them in another order
