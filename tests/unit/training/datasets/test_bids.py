from shutil import copyfile

import numpy as np
import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import choose, load
from tests.recording_writers import INDEX, NAMES, read, samples, write_edf
from tests.unit.training.datasets.bids_writer import write_recording, write_table

EVENTS = """
name: lab
reader: bids
root: {root}
options: {{task: [film], trials: events, event: {{trial_type: video}}, stimulus: stim_file}}
tasks:
  liked:
    label: rating
    classes: [{{name: low, upto: 3}}, {{name: high, above: 3}}]
protocol: {{split: leave-one-subject-out}}
crop: {{seconds: 0.5, start_s: 0.1}}
"""
GROUPS = """
name: lab
reader: bids
tasks:
  who: {label: group, classes: [{name: ill, values: [patient]}, {name: well, values: [control]}], where: {task: rest}}
  what: {label: task, classes: [{name: rest, values: [rest]}, {name: count, values: [count]}]}
protocol: {split: k-fold}
"""


@pytest.fixture
def configured(tmp_path):
    def write(text: str, **changes):
        path = tmp_path / "lab.yaml"
        path.write_text(text)
        return load_dataset_config(str(path))

    return write


@pytest.fixture
def films(tmp_path):
    root = tmp_path / "set"
    for subject in ("01", "02"):
        write_recording(root, f"sub-{subject}_task-film", seed=int(subject))
        write_table(
            root / f"sub-{subject}/eeg/sub-{subject}_task-film_events.tsv",
            "onset duration trial_type stim_file rating",
            "0.0 0.2 rest n/a n/a",
            "0.4 1.0 video a.mp4 2",
            "2.0 1.5 video b.mp4 5",
        )
    return root


@pytest.fixture
def groups(tmp_path):
    root = tmp_path / "set"
    for i, subject in enumerate(("01", "02")):
        for k, task in enumerate(("rest", "count")):
            write_recording(root, f"sub-{subject}_task-{task}", seed=2 * i + k)
    write_table(root / "participants.tsv", "participant_id group age", "sub-01 patient 30", "sub-02 control n/a")
    return root


def test_events_are_trials_through_the_configuration_alone(films, configured):
    config = configured(EVENTS.format(root="set"))  # relative to the YAML file
    found = choose(load(config), config.tasks["liked"], config.crop)
    assert found.problems == ()
    assert [(t.subject, t.name[-8:], t.label, t.stimulus) for t in found.trials[:3]] == [
        ("sub-01", "trial-01", 0, "a.mp4"),
        ("sub-01", "trial-02", 1, "b.mp4"),
        ("sub-02", "trial-01", 0, "a.mp4"),
    ]
    rows = np.rint(read(found.trials[1].open())[0][:, INDEX] * 1e6)
    assert np.array_equal(rows, np.arange(525, 650))  # 2.0 s + 0.1 s, half a second
    assert found.trials[0].files[0].suffix == ".eeg"


def test_whole_recordings_with_labels_of_participants_or_file_names(groups, configured):
    config = configured(GROUPS)
    found = load(config, groups)
    who = choose(found, config.tasks["who"])
    assert [(t.name, t.label) for t in who.trials] == [("sub-01_task-rest", 0), ("sub-02_task-rest", 1)]
    assert who.trials[0].length_s == 4.0
    assert who.trials[0].fields["age"] == 30
    assert "age" not in who.trials[1].fields
    assert [t.label for t in choose(found, config.tasks["what"]).trials] == [1, 0, 1, 0]


def test_tables_hold_for_all_below_them(films, configured):
    for path in films.glob("sub-*/eeg/*_events.tsv"):
        path.unlink()
    write_table(films / "task-film_events.tsv", "onset duration trial_type stim_file rating", "1 1 video c.mp4 1")
    config = configured(EVENTS.format(root="set"))
    assert [t.stimulus for t in load(config).trials] == ["c.mp4", "c.mp4"]


def test_channels_of_other_types_are_left_out(groups, configured):
    lines = [f"{name} {'MISC' if name == 'Pz' else 'EEG'} uV" for name in NAMES]
    write_table(groups / "task-rest_channels.tsv", "name type units", *lines)
    found = load(configured(GROUPS), groups)
    by_task = {t.fields["task"]: t for t in found.trials}
    assert by_task["rest"].open().info.channels == ("Fz", "Cz", "Oz")
    assert by_task["count"].open().info.channels == tuple(NAMES)
    assert np.array_equal(np.rint(read(by_task["rest"].open())[0][:, 2] * 1e6), np.arange(1000))


def test_facts_come_from_header_and_json(groups, configured):
    write_edf(groups / "sub-01/eeg/sub-01_task-more_eeg.edf", samples(500))
    (groups / "eeg.json").write_text('{"PowerLineFrequency": 50, "EEGReference": "FCz", "SoftwareFilters": "n/a"}')
    facts = {t.fields["task"]: t.facts for t in load(configured(GROUPS), groups).trials}
    assert facts["rest"] == {"rate_hz": 250, "n_channels": 4, "power_line_hz": 50, "reference": "FCz"}
    assert "header_date" in facts["more"]


def test_without_the_label_column_the_set_is_refused(films, configured):
    for path in films.glob("sub-*/eeg/*_events.tsv"):
        path.write_text(path.read_text().replace("rating", "mark"))
    with pytest.raises(SourceError, match=r"set: .*no column 'rating'.*what has entries is mark, .*add it"):
        load(configured(EVENTS.format(root="set")))


def test_a_column_without_entries_is_not_called_absent(groups, configured):
    path = groups / "participants.tsv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{header}\tscore", *(f"{row}\tn/a" for row in rows)]) + "\n")
    asked = GROUPS.replace("label: group", "label: score")
    assert asked != GROUPS
    problem = load(configured(asked), groups).problems[-1]
    assert "column 'score' of participants.tsv, its label, has no entry" in problem.what


def test_one_task_of_two_without_its_column_is_reported(groups, configured):
    (groups / "participants.tsv").unlink()
    (problem,) = load(configured(GROUPS), groups).problems
    assert "task 'who'" in problem.what


def test_a_person_without_a_group_is_reported(groups, configured):
    write_table(groups / "participants.tsv", "participant_id group", "sub-01 patient")
    config = configured(GROUPS)
    found = choose(load(config, groups), config.tasks["who"])
    assert [t.subject for t in found.trials] == ["sub-01"]
    assert found.problems[0].where == "sub-02_task-rest"


def test_a_person_without_a_recording_is_reported(groups, configured):
    with (groups / "participants.tsv").open("a") as file:
        file.write("sub-03\tcontrol\t20\n")
    (problem,) = load(configured(GROUPS), groups).problems
    assert problem.where.endswith("participants.tsv")
    assert "sub-03, of whom there is no recording" in problem.what


def test_an_event_without_a_stimulus_has_none(films, configured):
    for path in films.glob("sub-*/eeg/*_events.tsv"):
        path.write_text(path.read_text().replace("a.mp4", "n/a"))
    assert [t.stimulus for t in load(configured(EVENTS.format(root="set"))).trials[:2]] == [None, "b.mp4"]


def test_a_person_listed_twice_is_refused(groups, configured):
    write_table(groups / "participants.tsv", "participant_id group", "sub-01 patient", "01 control")
    with pytest.raises(SourceError, match=r"participants\.tsv: sub-01 is listed twice; remove"):
        load(configured(GROUPS), groups)


def test_a_copied_person_is_reported_and_left_out(groups, configured):
    for ending in ("eeg", "vhdr", "vmrk"):
        path = groups / f"sub-01/eeg/sub-01_task-rest_eeg.{ending}"
        copy = groups / f"sub-03/eeg/sub-03_task-rest_eeg.{ending}"
        copy.parent.mkdir(parents=True, exist_ok=True)
        if ending == "eeg":
            copyfile(path, copy)
        else:  # the header of a renamed recording names its own files
            copy.write_text(path.read_text().replace("sub-01", "sub-03"))
    found = load(configured(GROUPS), groups)
    assert {t.subject for t in found.trials} == {"sub-01", "sub-02"}
    (problem,) = found.problems
    assert problem.where.endswith("sub-03_task-rest_eeg.eeg")
    assert "sub-01_task-rest_eeg.eeg" in problem.what


def test_one_recording_under_two_labels_is_not_used(groups, configured):
    rest, count = (groups / f"sub-01/eeg/sub-01_task-{task}_eeg.eeg" for task in ("rest", "count"))
    copyfile(rest, count)
    found = load(configured(GROUPS), groups)
    assert {t.subject for t in found.trials} == {"sub-02"}
    assert {p.where for p in found.problems} == {str(rest), str(count)}
    assert all("nobody can tell which is right" in p.what for p in found.problems)


def test_a_recording_in_two_formats_is_read_once(groups, configured):
    write_edf(groups / "sub-01/eeg/sub-01_task-rest_eeg.edf", samples(500))
    found = load(configured(GROUPS), groups)
    assert len(found.trials) == 4
    (problem,) = found.problems
    assert "claims to be sub-01_task-rest" in problem.what
    assert "remove the wrong one" in problem.what


def test_a_cut_recording_is_reported(groups, configured):
    path = groups / "sub-02/eeg/sub-02_task-rest_eeg.eeg"
    path.write_bytes(path.read_bytes()[:-7])
    found = load(configured(GROUPS), groups)
    assert len(found.trials) == 3
    assert "cut short" in found.problems[0].what


@pytest.mark.parametrize(
    ("row", "what"),
    [("3 2 video c 1", "from 3 to 5 s"), ("n/a 2 video c 1", "must be seconds"), ("-1 2 video c 1", "from -1 to 1 s")],
)
def test_an_event_outside_the_recording_is_reported(row, what, films, configured):
    path = films / "sub-01/eeg/sub-01_task-film_events.tsv"
    with path.open("a") as file:
        file.write(row.replace(" ", "\t") + "\n")
    found = load(configured(EVENTS.format(root="set")))
    assert len(found.trials) == 4
    assert found.problems[0].where == f"{path}, event 3"
    assert what in found.problems[0].what


def test_tables_that_contradict_each_other_are_reported(films, configured):
    write_table(films / "participants.tsv", "participant_id rating", "sub-01 2")
    found = load(configured(EVENTS.format(root="set")))
    assert [p.what for p in found.problems] == [
        "rating is 5.0 in sub-01_task-film_events.tsv but 2.0 in participants.tsv or the file's name; correct or "
        "rename one"
    ]


def test_a_broken_table_is_refused(groups, configured):
    write_table(groups / "participants.tsv", "participant_id group", "sub-01")
    with pytest.raises(SourceError, match=r"participants\.tsv: row 2 has 1 cells"):
        load(configured(GROUPS), groups)


def test_an_unknown_option_is_refused(groups, configured):
    with pytest.raises(ConfigError, match="colour"):
        load(configured(GROUPS + "options: {colour: red}\n"), groups)
