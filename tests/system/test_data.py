"""`rtbrain data check` as a lab would call it, on sound sets and on broken ones."""

import json
import os
import pickle
from pathlib import Path
from shutil import copyfile, copytree

import numpy as np
import pytest
from scipy.io import savemat

from rtbrain.training.datasets.seed import FIRST
from tests.recording_writers import samples, write_edf
from tests.system.test_cli import invoke, refused
from tests.unit.training.datasets.bids_writer import write_recording, write_table
from tests.unit.training.evaluation_cases import write_people

SEED_S = [235, 233, 206, 238, 185, 195, 237, 216, 265, 237, 235, 233, 235, 238, 206]
SEED_LABELS = [1, 0, -1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 0, 1, -1]
LAB = """
name: lab
reader: bids
root: bids
tasks:
  group: {label: group, classes: [{name: well, values: [control]}, {name: ill, values: [patient]}]}
protocol: {split: k-fold, folds: 2}
crop: {seconds: 2}
"""
PEOPLE = """
name: lab
reader: bids
root: bids
tasks:
  group: {label: group, classes: [{name: slow, values: [slow]}, {name: fast, values: [fast]}]}
protocol: {split: k-fold, folds: 2}
crop: {start_s: 1, seconds: 13}
"""


def check(*args: object) -> str:
    """Return what a check that succeeds prints."""
    result = invoke("data", "check", *args)
    assert result.exit_code == 0, result.output
    return result.output


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab's own set: eight people in BIDS and a YAML file."""
    rows = []
    for i in range(1, 9):
        write_recording(tmp_path / "bids", f"sub-0{i}_task-rest", seed=i)
        rows.append(f"sub-0{i} {'control' if i % 2 else 'patient'}")
    write_table(tmp_path / "bids/participants.tsv", "participant_id group", *rows)
    (tmp_path / "lab.yaml").write_text(LAB)
    return tmp_path / "lab.yaml"


class TestWhere:
    @pytest.fixture(autouse=True)
    def no_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("RTBRAIN_DATA", raising=False)

    def test_missing_data_say_where_to_get_them_and_their_layout(self, tmp_path: Path) -> None:
        for args in ((), ("--root", tmp_path / "gone"), ("--root", tmp_path)):
            message = refused("data", "check", "--dataset", "mdd", *args)
            assert "doi.org/10.6084/m9.figshare.4244171" in message
            assert "MDD S1 EC.edf  MDD S1 EO.edf" in message
        for name in ("neurolong", "seed", "deap", "nssi"):
            assert "To be had from" in refused("data", "check", "--dataset", name, "--root", tmp_path)

    def test_root_comes_before_the_variable_and_that_before_the_configuration(
        self, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other, third = tmp_path / "all/lab", tmp_path / "third"
        copytree(tmp_path / "bids", other)
        copytree(tmp_path / "bids", third)
        args = ("--dataset", lab, "--no-audit", "--json", "-")
        assert json.loads(check(*args))["root"] == str(tmp_path / "bids")
        monkeypatch.setenv("RTBRAIN_DATA", str(tmp_path / "all"))
        assert json.loads(check(*args))["root"] == str(other)
        assert json.loads(check(*args, "--root", third))["root"] == str(third)

    def test_unknown_sets_and_tasks_are_refused(self, lab: Path) -> None:
        assert "known are deap, eegmat, mdd, neurolong, nssi, seed" in refused("data", "check", "--dataset", "mmd")
        assert "it has group" in refused("data", "check", "--dataset", lab, "--task", "x")


def test_a_sound_set_has_no_warnings_on_screen_or_in_json(lab: Path, tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    shown = check("--dataset", lab, "--no-audit", "--json", target)
    assert "no warnings" in shown
    assert "persons 4 ill, 4 well" in flat(shown) or "persons 4 well, 4 ill" in flat(shown)
    assert "length-only classifier: 50.0 %" in shown
    found = json.loads(target.read_text())
    assert (found["n_warnings"], found["subjects"], found["trials"]) == (0, 8, 8)
    assert [fold["test"] for fold in found["tasks"][0]["folds"]] == [4, 4]
    assert "does not exist" in refused("data", "check", "--dataset", lab, "--json", tmp_path / "no/found.json")


class TestRefusals:
    def test_a_malicious_pickle_does_not_run(self, tmp_path: Path) -> None:
        class Attack:
            def __reduce__(self) -> tuple[object, tuple[str]]:
                return os.system, (f"touch {tmp_path / 'ran'}",)

        folder = tmp_path / "deap/data_preprocessed_python"
        folder.mkdir(parents=True)
        (folder / "s01.dat").write_bytes(pickle.dumps({"data": Attack(), "labels": Attack()}, protocol=2))
        shipped = (Path(__file__).parents[2] / "configs/deap.yaml").read_text()
        (tmp_path / "deap.yaml").write_text(shipped.replace("form: original", "form: preprocessed"))
        message = refused("data", "check", "--dataset", tmp_path / "deap.yaml", "--root", tmp_path / "deap")
        assert "s01.dat: refused as a pickle of arrays" in message
        assert "get the original file again" in message
        assert not (tmp_path / "ran").exists()

    def test_a_truncated_file_is_listed_and_the_rest_used(self, lab: Path, tmp_path: Path) -> None:
        cut = write_edf(tmp_path / "bids/sub-01/eeg/sub-01_task-more_eeg.edf", samples(1000))
        cut.write_bytes(cut.read_bytes()[:-500])
        shown = flat(check("--dataset", lab, "--no-audit"))
        assert f"cannot be used {cut}: the file is cut short" in shown
        assert "copy it again from its origin" in shown
        assert "1 warning(s)" in shown

    def test_a_set_of_truncated_files_is_refused(self, tmp_path: Path) -> None:
        for name in ("H S1 EC.edf", "MDD S1 EC.edf"):
            path = write_edf(tmp_path / name, samples(500))
            path.write_bytes(path.read_bytes()[:-100])
        message = refused("data", "check", "--dataset", "mdd", "--root", tmp_path)
        assert message.count("cut short") == 2
        assert "H S1 EC.edf" in message

    def test_a_set_without_its_label_column_is_refused(self, lab: Path, tmp_path: Path) -> None:
        write_table(tmp_path / "bids/participants.tsv", "participant_id age", *(f"sub-0{i} 30" for i in range(1, 9)))
        message = refused("data", "check", "--dataset", lab)
        assert "participants.tsv: task 'group': there is no column 'group'" in message
        assert "add it, or name another one" in message

    def test_ratings_that_disagree_are_refused(self, tmp_path: Path) -> None:
        write_recording(tmp_path, "sub-01_task-neurolong_run-01")
        events = tmp_path / "sub-01/eeg/sub-01_task-neurolong_run-01_events.tsv"
        write_table(events, "onset duration trial_type video_id valence_rating", "0 2 video 1 5", "2 2 video 2 -5")
        write_table(tmp_path / "sub-01/beh/sub-01_task-neurolong_beh.tsv", "video_id valence_rating", "1 5", "2 10")
        message = refused("data", "check", "--dataset", "neurolong", "--root", tmp_path)
        assert "events.tsv and beh.tsv disagree; correct one of the two" in message
        assert "video 2: valence_rating is -5 in events.tsv, 10 in" in message
        assert "sub-01_task-neurolong_beh.tsv" in message

    def test_a_duplicated_subject_is_listed_and_used_once(self, lab: Path, tmp_path: Path) -> None:
        folder = tmp_path / "bids/sub-09/eeg"
        folder.mkdir(parents=True)
        for ending in ("eeg", "vhdr", "vmrk"):
            source = tmp_path / f"bids/sub-01/eeg/sub-01_task-rest_eeg.{ending}"
            copyfile(source, folder / f"sub-09_task-rest_eeg.{ending}")
            if ending != "eeg":
                copy = folder / f"sub-09_task-rest_eeg.{ending}"
                copy.write_text(copy.read_text().replace("sub-01", "sub-09"))
        with (tmp_path / "bids/participants.tsv").open("a") as table:
            table.write("sub-09\tcontrol\n")
        shown = flat(check("--dataset", lab, "--no-audit"))
        assert "sub-09_task-rest_eeg.eeg: is the same recording as sub-01_task-rest_eeg.eeg" in shown
        assert "remove the copy" in shown
        assert "subjects 8" in shown
        with (tmp_path / "bids/participants.tsv").open("a") as table:
            table.write("sub-09\tcontrol\n")
        assert "sub-09 is listed twice; remove one of the rows" in refused("data", "check", "--dataset", lab)


class TestErrors:
    """What could not be trained or evaluated ends with exit code 2, after all that was found."""

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("values: [patient]", "values: [patents]", "class 'ill' has no trial: none has group patents"),
            ("folds: 2", "folds: 9", "k-fold needs at least 9 to leave out in turn and found 8"),
            ("crop:", "recipe: {bands: [{name: a, low_hz: 1, high_hz: 140}]}\ncrop:", "at least 350 Hz are needed"),
        ],
    )
    def test_what_no_model_can_be_trained_on(self, lab: Path, old: str, new: str, said: str) -> None:
        lab.write_text(LAB.replace(old, new))
        assert said in refused("data", "check", "--dataset", lab, "--no-audit")
        found = invoke("data", "check", "--dataset", lab, "--no-audit", "--json", "-")
        assert found.exit_code == 2
        (error,) = json.loads(found.stdout)["errors"]
        assert said in error

    def test_a_task_of_which_the_set_holds_nothing_is_a_warning_as_the_help_says(self, lab: Path) -> None:
        assert "a task of which the set holds nothing is one" in flat(invoke("data", "check", "--help").output)
        classes = "classes: [{name: well, values: [control]}, {name: ill, values: [patient]}]"
        lab.write_text(
            LAB.replace("protocol:", f"  walk: {{label: group, where: {{task: walk}}, {classes}}}\nprotocol:")
        )
        assert "warning task walk: cannot be used: no trial has task = walk" in flat(
            check("--dataset", lab, "--no-audit")
        )

    @pytest.mark.parametrize("link", [False, True])
    def test_a_missing_recording_with_its_sidecars(self, lab: Path, tmp_path: Path, link: bool) -> None:
        folder = tmp_path / "bids/sub-03/eeg"
        for name in ("sub-03_task-rest_events.tsv", "sub-03_task-rest_run-2_channels.tsv"):
            write_table(folder / name, "onset duration" if "events" in name else "name type")
        (folder / "sub-03_task-rest_run-2_eeg.json").write_text("{}")
        if link:
            (folder / "sub-03_task-rest_run-2_eeg.edf").symlink_to(tmp_path / "not-fetched")
        message = refused("data", "check", "--dataset", lab, "--no-audit")
        assert f"{folder / 'sub-03_task-rest_run-2_eeg'}: the recording is missing" in message
        assert "sub-03_task-rest_run-2_channels.tsv and sub-03_task-rest_run-2_eeg.json are there" in message
        assert "1 error(s)" in message, "the other recording has its events"
        lab.write_text(LAB.replace("root: bids", "root: bids\noptions: {task: [other, rest]}"))
        assert "is missing" in refused("data", "check", "--dataset", lab, "--no-audit")
        (folder / "sub-03_task-walk_events.tsv").write_text("onset\n")
        assert "walk" not in refused("data", "check", "--dataset", lab, "--no-audit"), "nobody asks for it"


def test_a_read_only_set_is_checked_and_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_people(tmp_path / "bids")
    (tmp_path / "lab.yaml").write_text(PEOPLE)
    folders = [tmp_path / "bids", *(path for path in (tmp_path / "bids").rglob("*") if path.is_dir())]
    before = sorted((tmp_path / "bids").rglob("*"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for folder in folders:
        folder.chmod(0o555)
    try:
        for command in ("check", "audit"):
            done = invoke("data", command, "--dataset", tmp_path / "lab.yaml")
            assert done.exit_code == 0, done.output
            assert sorted((tmp_path / "bids").rglob("*")) == before
            (kept,) = (tmp_path / "cache").rglob("lab-group.json")
            kept.unlink()
    finally:
        for folder in folders:
            folder.chmod(0o755)


@pytest.mark.slow
def test_the_lengths_of_seed_are_found_and_cured(tmp_path: Path) -> None:
    """The clips' true lengths, as short as they can be: CB1 and 61 others, a tenth of a second for a second."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "seed/Preprocessed_EEG"
    folder.mkdir(parents=True)
    savemat(folder / "label.mat", {"label": [SEED_LABELS]})
    for subject in range(1, 5):
        arrays = {
            f"x_eeg{film}": rng.normal(0, 20, (62, 20 * seconds)).astype("f4") for film, seconds in enumerate(SEED_S, 1)
        }
        savemat(folder / f"{subject}_{FIRST[subject - 1]}.mat", arrays)
    shipped = (Path(__file__).parents[2] / "configs/seed.yaml").read_text()
    (tmp_path / "seed.yaml").write_text(shipped.replace("seconds: 180", "seconds: 18"))
    target = tmp_path / "seed.json"
    shown = check("--dataset", tmp_path / "seed.yaml", "--root", tmp_path / "seed", "--no-audit", "--json", target)
    assert "73.3 % (one class always 33.3 %) before the crop, 33.3 % (one class always 33.3 %) after" in flat(shown)
    assert "no warnings" in shown
    (task,) = json.loads(target.read_text())["tasks"]
    assert (task["length_before"]["leaks"], task["length_after"]["leaks"]) == (True, False)


@pytest.mark.slow
def test_the_release_of_mdd(data: Path, tmp_path: Path) -> None:
    root = tmp_path / "mdd"
    root.mkdir()
    for path in (data / "mdd").glob("*.edf"):
        (root / path.name).symlink_to(path)  # nothing is to be written beside the real ones
    target = tmp_path / "mdd.json"
    shown = flat(check("--dataset", "mdd", "--root", root, "--json", target))
    assert "persons 17 healthy, 19 MDD" in shown
    assert "raw accuracies on this set cannot be trusted" in shown
    found = json.loads(target.read_text())
    assert (found["subjects"], found["persons"], found["trials"], found["problems"]) == (37, 36, 65, [])
    assert found["same_person"] == [["MDD S24", "MDD S25"]]
    assert found["near_identical"] == []
    for task, counts in zip(found["tasks"], ((13, 16), (16, 18)), strict=True):
        assert tuple(each["persons"] for each in task["classes"].values()) == counts
        assert len(task["folds"]) == 10
        doubled = [fold["test"] - fold["test_persons"] for fold in task["folds"]]
        assert sorted(doubled) == [0] * 9 + [1], "S24 and S25 are tested together"
        assert task["audit"]["key"]
    assert found["n_warnings"] == 2


@pytest.mark.slow
def test_eegmat_through_a_yaml_file_alone(data: Path, tmp_path: Path) -> None:
    """Rest (92 s) against arithmetic (62 s): BIDS made by links, and nothing but a configuration."""
    rows = []
    for path in sorted((data / "eegmat").glob("*.edf"))[:16]:
        subject, part = path.stem.split("_")
        name = f"sub-{subject.removeprefix('Subject')}"
        (tmp_path / "bids" / name / "eeg").mkdir(parents=True, exist_ok=True)
        (tmp_path / "bids" / name / f"eeg/{name}_task-{part}_eeg.edf").symlink_to(path)
        rows.append(f"{name} {len(rows)}")
    write_table(tmp_path / "bids/participants.tsv", "participant_id row", *rows[::2])
    (tmp_path / "eegmat.yaml").write_text(
        "{name: eegmat, reader: bids, root: bids, protocol: {split: k-fold, folds: 4}, crop: {seconds: 60},"
        " recipe: {bands: [{name: broad, low_hz: 2, high_hz: 20}]},"
        " tasks: {load: {label: task, classes: [{name: rest, values: [rest]}, {name: count, values: [arith]}]}}}"
    )
    shown = flat(check("--dataset", tmp_path / "eegmat.yaml"))
    assert "100.0 % (one class always 50.0 %) before the crop, 50.0 % (one class always 50.0 %) after" in shown
    assert "no warnings" in shown
    assert "rest 8 50.0 % 8 0" in shown
