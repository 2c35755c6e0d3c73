"""The folder that a simulation leaves: whole or not there, the same for the same seed, and made in little memory."""

import json
import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import welch

from rtbrain.errors import ConfigError
from rtbrain.simulation import World
from rtbrain.simulation.layouts import LAYOUTS
from rtbrain.simulation.population import Design
from rtbrain.simulation.writing import CONFIG, TRUTH, new_folder, signal_of, simulate
from rtbrain.simulation.writing_order import Order, configured, planted, scaled
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import choose, load
from rtbrain.training.folds import folds

SMALL = Order("mdd", 4, minutes=0.05)


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_the_same_seed_gives_the_same_bytes_and_another_other_ones(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        simulate(Order("mdd", 4, minutes=0.05, seed=seed), tmp_path / name, n_draws=40)
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b
    assert a.keys() == c.keys()
    recordings = [path for path in a if path.suffix == ".edf"]
    assert len(recordings) == 8
    assert all(a[path] != c[path] for path in recordings)
    assert len({a[path] for path in recordings}) == 8


def test_more_people_do_not_change_those_that_were_there(tmp_path):
    for n in (1, 2):
        simulate(Order("seed", n, trials=3, shortened_s=2), tmp_path / str(n), n_draws=40)
    name = "Preprocessed_EEG/1_20131027.mat"
    assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_an_interrupted_run_leaves_nothing(tmp_path):
    def stop(what, share):
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(SMALL, tmp_path / "set", stop, n_draws=40)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    for target in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(ConfigError, match="exists and is not an empty folder"):
            simulate(SMALL, target, n_draws=40)
    assert contents(tmp_path) == {(tmp_path / "mine.txt").relative_to(tmp_path): b"precious"}
    (tmp_path / "empty").mkdir()
    simulate(SMALL, tmp_path / "empty", n_draws=40)
    assert (tmp_path / "empty" / TRUTH).is_file()
    simulate(SMALL, tmp_path / "new" / "below", n_draws=40)
    assert (tmp_path / "new" / "below" / CONFIG).is_file()


def test_what_another_run_writes_or_left_is_named(tmp_path):
    (tmp_path / ".123-set").mkdir()
    with pytest.raises(ConfigError, match=r"\.123-set is of a run .* or was killed"), new_folder(tmp_path / "set"):
        pass
    with new_folder(tmp_path / "another-set"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [".123-set", "another-set"]


def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match=r"about 1000000000\.0 GB are needed"), new_folder(tmp_path / "set", 1e18):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mdd", "neurolong", "seed"])
def test_files_take_no_more_than_was_foreseen(name, tmp_path):
    order = Order(
        name,
        2,
        minutes=0.1 if LAYOUTS[name].minutes else None,
        trials=2 if LAYOUTS[name].trials else None,
        shortened_s=6,
    )
    files = order.layout.plan(scaled(order)[0])
    simulate(order, tmp_path / "set", n_draws=40)
    samples = sum(take.n_samples * len(take.channels) for file in files for take in file.takes)
    written = sum(path.stat().st_size for path in (tmp_path / "set").rglob("*.e*") if path.suffix in (".eeg", ".edf"))
    written += sum(path.stat().st_size for path in (tmp_path / "set").rglob("*_2*.mat"))
    assert 0.8 * order.layout.stored_bytes * samples < written < order.layout.stored_bytes * samples + 1e5


def peak(order, out):
    tracemalloc.start()
    try:
        simulate(order, out, n_draws=20)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_recording(tmp_path):
    """A whole recording of the longer set would be 30 MB as it is stored, and four times that as it is made."""
    simulate(Order("neurolong", 1, minutes=0.02, trials=1), tmp_path / "warm", n_draws=20)  # imports and caches
    short, long = (
        peak(Order("neurolong", 1, minutes=minutes, trials=1), tmp_path / str(minutes)) for minutes in (0.4, 4)
    )
    size = (tmp_path / "4/sub-01/eeg/sub-01_task-neurolong_run-01_eeg.eeg").stat().st_size
    assert size > 30e6
    assert long < 1.2 * short
    assert long < 0.5 * size


@pytest.mark.parametrize(("share", "n_first", "n_last"), [(0.9, 1, 9), (0.7, 3, 7), (1.0, 0, 10)])
def test_a_plant_has_exactly_its_shares(share, n_first, n_last):
    order = Order("mdd", 20, minutes=0.05, plant="filter", share=share)
    files = planted(order.layout.plan(scaled(order)[0]), order)
    hit = {file.person for file in files if file.takes[0].planted}
    assert Counter(person.split()[0] for person in hit) == Counter(H=n_first, MDD=n_last)
    # A person's recordings went through the same machine.
    assert all(take.planted == (file.person in hit) for file in files for take in file.takes)


def test_a_plant_by_trial_rises_with_the_class():
    order = Order("seed", 10, plant="lines", share=0.8)
    takes = [take for file in planted(order.layout.plan(scaled(order)[0]), order) for take in file.takes]
    hit = Counter(min(take.labels) for take in takes if take.planted)
    assert hit == {0: 10, 1: 25, 2: 40}  # of 50 each


def test_a_plant_is_refused_where_a_recording_holds_several_classes():
    order = Order("deap", 2, trials=8, plant="filter")
    with pytest.raises(ConfigError, match=r"s01\.bdf\) holds trials of several classes.* --form"):
        planted(order.layout.plan(scaled(order)[0]), order)


def test_a_plant_is_in_the_signal_and_in_the_truth(tmp_path):
    order = Order("mdd", 4, minutes=0.2, plant="filter", share=1.0)
    simulate(order, tmp_path / "set", n_draws=40)
    truth = {each["trial"]: each for each in json.loads((tmp_path / "set" / TRUTH).read_text())["trials"]}
    assert {each["confound"] for each in truth.values() if each["label"] == 1} == {"filter"}
    assert {each["confound"] for each in truth.values() if each["label"] == 0} == {None}
    (take,) = next(file.takes for file in planted(order.layout.plan(scaled(order)[0]), order) if file.takes[0].planted)
    world = World(Design(labels="subject"), 0)
    plain, filtered, lined = (
        np.concatenate(list(signal_of(world, each, of).chunks()))
        for each, of in (
            (replace(take, planted=False), order),
            (take, order),
            (take, Order("mdd", plant="lines")),
        )
    )
    hz, before = welch(plain, 256, nperseg=512, axis=0)
    after = welch(filtered, 256, nperseg=512, axis=0)[1]
    ratio = np.median(after / before, axis=1)
    assert ratio[(hz > 42) & (hz < 46)].mean() < 0.05
    assert ratio[(hz > 8) & (hz < 20)].mean() > 0.9
    added = welch(lined - plain, 256, nperseg=2048, axis=0)[1].mean(axis=1)
    assert 4.2 < np.arange(1025)[added.argmax()] / 8 < 6.2


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (Order("eegmat"), "'eegmat' cannot be simulated; these can: neurolong, seed, deap, mdd, nssi"),
        (Order("deap", form="mat"), "deap has no form 'mat'; it has original, preprocessed"),
        (Order("deap", trials=41), "deap has at most 40 trials per person"),
        (Order("mdd", trials=3), "mdd has its own number of recordings; change or leave out --trials 3"),
        (Order("mdd", sessions=2), r"mdd has 1 session\(s\) per person, not 2"),
    ],
)
def test_what_a_layout_does_not_have_is_refused(order, message):
    with pytest.raises(ConfigError, match=message):
        scaled(order)


@pytest.mark.parametrize("name", LAYOUTS)
def test_by_default_the_shipped_configuration_fits(name):
    order = Order(name)
    scale, notes = scaled(order)
    files = order.layout.plan(scale)
    raw, changes = configured(order, scale, files)
    assert notes == changes == []
    shipped = load_dataset_config(name)
    assert raw["crop"] == {"start_s": shipped.crop.start_s, "seconds": shipped.crop.seconds}
    lengths = {each.seconds for file in files for take in file.takes for each in take.stretches if each.trial}
    assert min(lengths) >= shipped.crop.start_s + shipped.crop.seconds


def test_minutes_are_ignored_with_a_note_where_the_format_fixes_them():
    for name, fixed in (("seed", True), ("deap", True), ("mdd", False)):
        scale, notes = scaled(Order(name, minutes=0.5))
        assert [note.startswith("--minutes is ignored") for note in notes] == [True] * fixed
        assert scale.seconds == (None if fixed else 30)


@pytest.mark.slow
def test_a_set_of_default_size_passes_as_it_is(tmp_path):
    made = simulate(Order("mdd"), tmp_path / "set")
    assert made.as_shipped
    assert made.notes == ()
    config = load_dataset_config("mdd")
    found = load(config, tmp_path / "set")
    assert found.problems == ()
    for name, task in config.tasks.items():
        trials = choose(found, task, config.crop).trials
        assert len(trials) == 20
        assert len(folds(trials, config.protocol, config.same_person)) == 10
        assert 0.8 < made.optima[name].accuracy < 0.95
        assert made.optima[name].standard_error < 0.005


def test_people_who_are_not_there_are_not_declared_one_person():
    for n, groups in ((20, []), (60, [["MDD S24", "MDD S25"]])):
        order = Order("mdd", n)
        scale, _ = scaled(order)
        assert configured(order, scale, order.layout.plan(scale))[0]["same_person"] == groups
