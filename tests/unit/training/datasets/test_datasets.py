from dataclasses import replace
from shutil import copyfile

import numpy as np
import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.pipeline import build, run
from rtbrain.sources.recording import excerpt, open_recording, trim
from rtbrain.training.dataset_config import ClassRule, Crop, Protocol, Task, known_datasets, load_dataset_config
from rtbrain.training.datasets import READERS, choose, class_of, find_root, load
from rtbrain.training.folds import audit, folds
from rtbrain.training.paper_figures import paper_accuracy
from rtbrain.training.trials import Found, Trial
from tests.recording_writers import INDEX, NAMES, WRITERS, read, samples, write_edf
from tests.unit.training.datasets.bids_writer import write_table

PAPER = {
    ("neurolong", "subjective-2"): (6, 60, "focal", (2, 1), 88.27, "leave-one-subject-out"),
    ("neurolong", "subjective-3"): (6, 60, "focal", (1, 1, 1), 78.57, "leave-one-subject-out"),
    ("neurolong", "subjective-5"): (6, 60, "focal", (1, 1, 2, 6, 1), 67.35, "leave-one-subject-out"),
    ("neurolong", "stimulus-2"): (6, 60, "focal", (1, 1), 91.16, "leave-one-subject-out"),
    ("seed", "emotion-3"): (4, 10, "cross-entropy", (), 82.22, "leave-one-subject-out"),
    ("deap", "valence-2"): (4, 10, "cross-entropy", (), 66.72, "leave-one-subject-out"),
    ("mdd", "ec"): (4, 10, "cross-entropy", (), 96.00, "k-fold"),
    ("mdd", "eo"): (4, 10, "cross-entropy", (), 92.33, "k-fold"),
    ("nssi", "b1"): (6, 10, "cross-entropy", (), 83.27, "k-fold"),
    ("nssi", "b2"): (6, 10, "cross-entropy", (), 88.09, "k-fold"),
}


def test_the_papers_ten_tasks_with_its_settings():
    found = {}
    for name in ("neurolong", "seed", "deap", "mdd", "nssi"):
        assert name in known_datasets()
        config = load_dataset_config(name)
        assert config.name == name
        assert config.reader in READERS
        assert config.crop is not None
        assert config.obtain
        assert config.layout
        assert config.protocol.folds == 10
        for key, task in config.tasks.items():
            paper = task.paper
            assert paper.batch == 12
            assert len(paper.alpha) in (0, len(task.classes))
            found[name, key] = (
                config.n_states,
                paper.window,
                paper.loss,
                paper.alpha,
                paper_accuracy(name, key, "paper-text"),
                config.protocol.split,
            )
    assert found == PAPER


OVERLAPPING = "[{name: a, upto: 5}, {name: b, above: -5}]"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("seconds: 20", "seconds: -3", "crop.seconds"),
        ("start_s: 5", "start_s: -1", "crop.start_s"),
        ("leave-one-subject-out", "loso", "protocol.split"),
        ("label: task", "label_: task", "label_"),
        ("name: b,", "name: a,", "each differently"),
        ("values: [y]", "values: []", "nothing belongs to class 'b'"),
        ("values: [y]", "values: [y, x]", "'x' would be both 'a' and 'b'"),
        ("[{name: a, values: [x]}, {name: b, values: [y]}]", OVERLAPPING, "above -5 and up to 5 would be both"),
        ("values: [x]}, {name: b, values: [y]}", "values: [3]}, {name: b, above: 2}", "3.0 would be both"),
        ("name: mine", "name: a/b", "name 'a/b' cannot be part of a file's name"),
        ("name: mine", "name: ../mine", "cannot be part of a file's name; begin it with no dot"),
        ("{load:", "{low/high:", "task 'low/high' cannot be"),
        ("name: mine,", "name: mine, training: {context_s: 2},", "context_s 2 is too short; give 5 seconds or more"),
    ],
)
def test_a_mistake_in_a_configuration_is_named(right, wrong, said, tmp_path):
    text = (
        "{name: mine, reader: bids, protocol: {split: leave-one-subject-out}, crop: {seconds: 20, start_s: 5},"
        " tasks: {load: {label: task, classes: [{name: a, values: [x]}, {name: b, values: [y]}]}}}"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert load_dataset_config(str(path)).name == "mine"
    path.write_text(text.replace(right, wrong))
    with pytest.raises(ConfigError, match=f"mine.yaml[^$]*{said}"):
        load_dataset_config(str(path))


def test_ranges_that_meet_do_not_overlap(tmp_path):
    classes = "[{name: a, upto: 0}, {name: b, above: 0, upto: 5}, {name: c, above: 5}, {name: d, values: [none]}]"
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"{{name: mine, reader: bids, protocol: {{split: k-fold}}, tasks: {{load: {{label: x, classes: {classes}}}}}}}"
    )
    rules = load_dataset_config(str(path)).tasks["load"].classes
    values = (-1.0, 0.0, 0.1, 5.0, 5.1, "none", "other", float("nan"))
    assert [class_of(value, rules) for value in values] == [0, 0, 1, 1, 2, 3, None, None]


def test_a_folder_is_no_name_of_a_set_and_its_own_configuration_is_pointed_out(tmp_path):
    with pytest.raises(ConfigError, match=r"is a folder; .*--dataset NAME --root"):
        load_dataset_config(str(tmp_path))
    (tmp_path / "rtbrain.yaml").write_text("{}")
    with pytest.raises(ConfigError, match=rf"give --dataset {tmp_path}/rtbrain.yaml"):
        load_dataset_config(str(tmp_path))


class TestRoot:
    @pytest.fixture
    def config(self, monkeypatch):
        monkeypatch.delenv("RTBRAIN_DATA", raising=False)
        return load_dataset_config("mdd")

    def test_the_option_comes_first_then_the_variable_then_the_configuration(self, config, tmp_path, monkeypatch):
        for name in ("option", "variable", "variable/mdd", "own"):
            (tmp_path / name).mkdir()
        config = replace(config, root=str(tmp_path / "own"))
        assert find_root(config) == tmp_path / "own"
        monkeypatch.setenv("RTBRAIN_DATA", str(tmp_path / "variable"))
        assert find_root(config) == tmp_path / "variable/mdd"
        assert find_root(replace(config, name="other")) == tmp_path / "variable"
        assert find_root(config, tmp_path / "option") == tmp_path / "option"

    def test_nowhere_says_where_to_get_the_set_and_its_layout(self, config):
        with pytest.raises(SourceError, match=r"--root, or set RTBRAIN_DATA(.|\n)*figshare(.|\n)*H S1 EC\.edf"):
            load(config)

    def test_a_folder_that_is_not_there_is_named(self, config, tmp_path, monkeypatch):
        monkeypatch.setenv("RTBRAIN_DATA", str(tmp_path / "gone"))
        with pytest.raises(SourceError, match=r"gone \(from RTBRAIN_DATA\) is not a folder(.|\n)*figshare"):
            load(config)

    def test_an_empty_folder_is_refused(self, config, tmp_path):
        with pytest.raises(SourceError, match=r"no recording of this set(.|\n)*figshare"):
            load(config, tmp_path)


def trial(name, length_s=10.0, **fields):
    return Trial(name, name, (), length_s, open=lambda: None, fields=fields)


class TestChoose:
    TASK = Task("mark", (ClassRule("low", upto=5), ClassRule("high", above=5)), where={"part": "a"})

    def test_classes_and_conditions(self):
        found = Found((trial("p", mark=5.0, part="a"), trial("q", mark=5.5, part="a"), trial("r", mark=1.0, part="b")))
        assert [(t.name, t.label) for t in choose(found, self.TASK).trials] == [("p", 0), ("q", 1)]

    def test_what_has_no_class_or_is_too_short_is_reported(self):
        found = Found(
            (
                trial("p", mark=5.0, part="a"),
                trial("q", mark="?", part="a"),
                trial("r", part="a"),
                trial("s", 3, mark=1.0, part="a"),
            )
        )
        chosen = choose(found, self.TASK, Crop(seconds=4))
        assert [t.name for t in chosen.trials] == ["p"]
        assert [p.where for p in chosen.problems] == ["q", "r", "s"]
        assert "lasts 3.00 s, the crop needs 4 s" in chosen.problems[2].what

    def test_no_trial_at_all_is_refused(self):
        with pytest.raises(SourceError, match="no trial has part = a; part is b, c"):
            choose(Found((trial("p", part="c"), trial("q", part="b"))), self.TASK)
        with pytest.raises(SourceError, match="no trial has the field 'mark'"):
            choose(Found((trial("p", part="a"),)), self.TASK)

    def test_values_ranges_and_neither(self):
        rules = (ClassRule("a", values=("x", 1.0)), ClassRule("b", above=1, upto=3), ClassRule("c"))
        assert [class_of(v, rules) for v in ("x", 1.0, 1.5, 3.0, 3.1, "y")] == [0, 0, 1, 1, None, None]


@pytest.mark.parametrize("suffix", WRITERS)
def test_an_excerpt_is_the_same_samples_in_any_chunks(suffix, tmp_path):
    recording = open_recording(WRITERS[suffix](tmp_path / f"a{suffix}", samples(6000)))
    whole, times = read(recording)
    part = excerpt(recording, 3.0, 15.0)
    for size in (None, 7, "random"):
        data, at = read(part, size)
        assert np.array_equal(data, whole[750:4500])
        assert np.array_equal(at, times[750:4500])
    trimmed = list(trim(recording.chunks(7), 750, 4500))
    assert np.array_equal(np.concatenate([chunk.data for chunk in trimmed]), whole[750:4500])
    assert [chunk.start for chunk in trimmed] == np.cumsum([0, *map(len, trimmed)])[:-1].tolist()
    again = excerpt(part, 1.0, 2.0)
    assert np.array_equal(np.rint(read(again)[0][:, INDEX] * 1e6), np.arange(1000, 1500))
    with pytest.raises(SourceError, match="not in a recording of 24 s"):
        excerpt(recording, 20, 5)


def test_an_excerpt_across_an_interruption_keeps_the_jump(tmp_path):
    path = WRITERS[".set"](tmp_path / "a.set", samples(2000), marks=[("boundary", 4.0, 3.0)])
    recording = open_recording(path)
    whole, times = read(recording)
    data, at = read(excerpt(recording, 3.0, 2.0))
    assert np.array_equal(data, whole[750:1250])
    assert np.array_equal(at, times[750:1250])
    assert at[-1] - at[0] > 4.5


def test_eegmat_as_bids_through_a_yaml_file_alone(data, tmp_path):
    """Rest against arithmetic: converted to BIDS by copying, read by a configuration, and conditioned by its chain."""
    root = tmp_path / "bids"
    for path in sorted((data / "eegmat").glob("*.edf"))[:4]:
        subject, part = path.stem.split("_")
        name = f"sub-{subject.removeprefix('Subject')}_task-{'rest' if part == 'rest' else 'count'}"
        (root / name.split("_")[0] / "eeg").mkdir(parents=True, exist_ok=True)
        (root / name.split("_")[0] / "eeg" / f"{name}_eeg.edf").write_bytes(path.read_bytes())
    write_table(root / "participants.tsv", "participant_id", *(p.name for p in sorted(root.glob("sub-*"))))
    (tmp_path / "eegmat.yaml").write_text(
        "{name: eegmat, reader: bids, root: bids, protocol: {split: leave-one-subject-out},"
        " crop: {seconds: 20, start_s: 5},"
        " tasks: {load: {label: task, classes: [{name: rest, values: [rest]}, {name: count, values: [count]}]}}}"
    )
    config = load_dataset_config(str(tmp_path / "eegmat.yaml"))
    chosen = choose(load(config), config.tasks["load"], config.crop)
    assert chosen.problems == ()
    assert sorted(t.label for t in chosen.trials) == [0, 0, 1, 1]
    source = chosen.trials[0].open()
    chain = build(config.recipe, upto="samples")
    chain.open(source.info)
    assert sum(len(chunk) for chunk in run(chain, source.chunks())) >= 18 * 250


def test_a_copy_known_from_one_condition_joins_the_persons_in_all(tmp_path):
    """H S1 and H S2 share the recording with eyes open; only those with eyes closed are split."""
    for i, name in enumerate(
        ["H S1 EO", "H S1 EC", "H S2 EC", "H S3 EC", "H S4 EC", *(f"MDD S{k} EC" for k in "1234")]
    ):
        write_edf(tmp_path / f"{name}.edf", samples(500) + i, NAMES)
    copyfile(tmp_path / "H S1 EO.edf", tmp_path / "H S2 EO.edf")
    config = replace(load_dataset_config("mdd"), crop=None, protocol=Protocol("k-fold", folds=3))
    chosen = choose(load(config, tmp_path), config.tasks["ec"])
    assert chosen.same_person == (("MDD S24", "MDD S25"), ("H S1", "H S2"))
    assert len(chosen.trials) == 8
    for fold in folds(chosen.trials, config.protocol, chosen.same_person):
        audit(fold, chosen.trials, chosen.same_person)
        assert ("H S1 EC" in fold.test) == ("H S2 EC" in fold.test)
    alone = folds(chosen.trials, config.protocol)
    assert any(("H S1 EC" in fold.test) != ("H S2 EC" in fold.test) for fold in alone), "the test can fail"
