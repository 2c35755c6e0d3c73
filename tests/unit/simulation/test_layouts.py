"""Every layout: what is written is what the reader of the real set finds, and what other software finds."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mne
import mne_bids
import numpy as np
import pytest

from rtbrain.simulation import World
from rtbrain.simulation.layouts.deap import prepared
from rtbrain.simulation.population import Design
from rtbrain.simulation.writing import CONFIG, TRUTH, Simulated, signal_of, simulate
from rtbrain.simulation.writing_order import Order, scaled
from rtbrain.training.dataset_config import DatasetConfig, load_dataset_config
from rtbrain.training.datasets import choose, load
from rtbrain.training.folds import folds
from rtbrain.training.trials import Found
from tests.recording_writers import read

ORDERS = {
    "neurolong": Order("neurolong", 3, minutes=0.1, seed=5),
    "nssi": Order("nssi", 6, minutes=0.05),
    "nssi-mat": Order("nssi", 6, minutes=0.05, form="mat"),
    "seed": Order("seed", 3, sessions=2, shortened_s=3),
    "deap": Order("deap", 3, trials=3, seed=1),
    "deap-preprocessed": Order("deap", 3, trials=3, form="preprocessed"),
    "mdd": Order("mdd", 18, minutes=0.05),
}
HALF_A_STEP_UV = {".vhdr": 0.05, ".edf": 0.05, ".bdf": 0.0157, ".mat": 0.0, ".dat": 0.0}


@dataclass(frozen=True)
class Written:
    order: Order
    root: Path
    made: Simulated
    config: DatasetConfig
    found: Found
    truth: dict


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """Return a function that simulates a set by its name in ORDERS, once for all tests."""
    folder = tmp_path_factory.mktemp("sets")

    @cache
    def written(name) -> Written:
        made = simulate(ORDERS[name], folder / name, n_draws=60)
        config = load_dataset_config(str(folder / name / CONFIG))
        truth = json.loads((folder / name / TRUTH).read_text())
        return Written(ORDERS[name], folder / name, made, config, load(config), truth)

    return written


# The original recordings of DEAP cannot be short: a video lasts 60 s.
@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) if name == "deap" else name for name in ORDERS])
def written(request, write) -> Written:
    return write(request.param)


def test_the_reader_finds_all_trials_and_nothing_odd(written):
    assert written.found.problems == ()
    said = {each["trial"]: each for each in written.truth["trials"]}
    assert len(said) == len(written.truth["trials"]) == len(written.found.trials) == written.made.n_trials
    for trial in written.found.trials:
        true = said[trial.name]
        assert trial.subject == true["subject"]
        assert trial.length_s == true["seconds"]
        assert true["fields"].items() <= dict(trial.fields).items()
        assert written.root / true["file"] in {path.with_suffix(Path(true["file"]).suffix) for path in trial.files}


def test_every_task_has_all_its_classes_and_can_be_split(written):
    said = {each["trial"]: each["label"] for each in written.truth["trials"]}
    for name, task in written.config.tasks.items():
        chosen = choose(written.found, task, written.config.crop)
        assert chosen.problems == ()
        assert {trial.label for trial in chosen.trials} == set(range(len(task.classes)))
        assert folds(chosen.trials, written.config.protocol, written.config.same_person)
        if len(task.classes) == written.order.layout.n_classes:
            assert all(trial.label == said[trial.name] for trial in chosen.trials), name
        counts = Counter(trial.label for trial in chosen.trials)
        assert max(counts.values()) / sum(counts.values()) == pytest.approx(written.made.optima[name].chance)


def test_nothing_but_the_eeg_tells_the_class(written):
    """Lengths, rates, channels and headers have the same distribution in all classes."""
    task = written.config.task(None)[1]
    seen: dict[int, Counter] = {}
    for trial in choose(written.found, task, None).trials:
        facts = {name: value for name, value in trial.facts.items() if name != "session"}  # the date is the person's
        seen.setdefault(trial.label, Counter())[json.dumps([trial.length_s, facts], sort_keys=True)] += 1
    shares = [{each: n / counts.total() for each, n in counts.items()} for counts in seen.values()]
    assert all(each == pytest.approx(shares[0]) for each in shares)


def test_samples_are_those_of_the_generator(written):
    layout = written.order.layout
    design = Design(n_states=written.config.n_states, n_classes=layout.n_classes, labels=layout.labels)
    world = World(design, written.order.seed)
    trials = {trial.name: trial for trial in written.found.trials}
    checked = 0
    for file in layout.plan(scaled(written.order)[0])[::2]:
        for take in file.takes[:3]:
            whole = _made(file, take, world, written.order)
            for at, stretch in take.starts():
                if stretch.trial is None:
                    continue
                source = trials[stretch.trial].open()
                first = round(at * take.rate_hz)
                data = read(source)[0] * (1e6 if source.info.unit == "V" else 1.0)
                names = [name.removeprefix("EEG ").removesuffix("-LE") for name in source.info.channels]
                electrodes = [i for i, name in enumerate(names) if name in take.channels]
                columns = [take.channels.index(names[i]) for i in electrodes]
                expected = whole[first : first + len(data), columns]
                assert len(columns) >= len(take.channels) - 2  # CB1 and CB2 of SEED are not read
                assert np.abs(data[:, electrodes] - expected).max() <= HALF_A_STEP_UV[Path(file.path).suffix] + 1e-9
                checked += 1
    assert checked >= 3


def _made(file, take, world, order):
    """Return what must be in the file, (n, channels) in microvolts."""
    if file.path.endswith(".dat"):
        return prepared(take, lambda each: signal_of(world, each, order).chunks()).T
    return np.concatenate(list(signal_of(world, take, order).chunks()))


@pytest.mark.parametrize(
    ("name", "subject", "task", "run", "rate_hz"),
    [("neurolong", "03", "neurolong", "02", 1000), ("nssi", "006", "B2", None, 500)],
)
def test_bids_sets_read_by_mne_bids(name, subject, task, run, rate_hz, write):
    root = write(name).root
    path = mne_bids.BIDSPath(subject=subject, task=task, run=run, datatype="eeg", root=root)
    raw = mne_bids.read_raw_bids(path, verbose="ERROR")
    assert len(raw.ch_names) == 63
    assert set(raw.get_channel_types()) == {"eeg"}
    assert raw.info["line_freq"] == 50
    assert raw.info["sfreq"] == rate_hz
    if name == "neurolong":
        marks = [(mark["description"], round(mark["onset"], 6), mark["duration"]) for mark in raw.annotations]
        assert marks == [("rest", 0, 5), ("video", 5, 6), ("rating", 11, 5)]


@pytest.mark.slow
def test_bdf_triggers_read_by_mne(write):
    written = write("deap")
    raw = mne.io.read_raw_bdf(written.root / "data_original/s02.bdf", verbose="ERROR")
    assert len(raw.ch_names) == 48
    events = mne.find_events(raw, "Status", verbose="ERROR")
    assert Counter(events[:, 2].tolist()) == {1: 3, 2: 3, 3: 3, 4: 3, 5: 3, 7: 1}  # the first 1 is there from row 0
    starts = {each["start_s"] for each in written.truth["trials"] if each["subject"] == "s02"}
    assert set((events[events[:, 2] == 4, 0] / 512).tolist()) == starts
