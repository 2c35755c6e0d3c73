"""`rtbrain evaluate` as a lab would call it: the table, its files, and a run that is killed and goes on."""

import csv
import json
import signal
import subprocess
import sys
from html import escape
from pathlib import Path
from time import sleep

import psutil
import pytest

from rtbrain.locking import alone_in
from rtbrain.training.evaluate_table import SAME_PEOPLE
from tests.conftest import ROOT
from tests.killing import kill_when
from tests.system.reports import check_page
from tests.system.test_cli import invoke, refused
from tests.unit.training.evaluation_cases import files_of, write_people

LAB = """
name: lab
reader: bids
root: bids
n_states: 3
tasks:
  group: {label: group, classes: [{name: slow, values: [slow]}, {name: fast, values: [fast]}]}
protocol: {split: k-fold, folds: 2}
crop: {start_s: 1, seconds: 13}
training: {epochs: 12, context_s: 12}
"""
METHODS = "majority,nuisance,band-power,microstate-stats"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab's own set: ten people in BIDS and a YAML file."""
    folder = tmp_path_factory.mktemp("lab")
    write_people(folder / "bids")
    (folder / "lab.yaml").write_text(LAB)
    return folder / "lab.yaml"


def command(lab: Path, out: Path, *more: object, methods: str = METHODS) -> tuple[object, ...]:
    return ("evaluate", "--dataset", lab, "--methods", methods, "--out", out, *more)


def plain(path: Path) -> object:
    return json.loads(path.read_text())


@pytest.mark.slow
def test_the_table_has_intervals_differences_time_and_nuisance(lab: Path, tmp_path: Path) -> None:
    done = invoke(*command(lab, tmp_path))
    assert done.exit_code == 0, done.output
    shown = done.stdout
    assert "lab, task group, as recorded, protocol strict: 10 people, 10 trials, 2 folds, 1 seed(s)" in shown
    assert "nuisance alone:" in shown
    assert "difference in accuracy" in shown
    assert "to band-power" in shown
    assert "accuracy by the seconds of EEG seen, after a warm-up of 1 s" in shown
    assert "OPTIMISTIC" not in shown
    found = plain(tmp_path / "lab-group-as-recorded-strict.json")
    assert isinstance(found, dict)
    rows = {row["method"]: row for row in found["rows"]}
    assert list(rows) == METHODS.split(",")
    best = rows["band-power"]
    assert best["scores"]["accuracy"] == best["scores"]["auc"] == 1.0
    assert best["scores"]["confusion"] == [[5, 0], [0, 5]]
    assert best["scores"]["accuracy_interval"][0] < 0.8, "ten people are not many"
    assert set(best["scores"]["by_person"]) == {f"sub-{i:02d}" for i in range(10)}
    assert set(best["over_time"]) == {"10", "all"}
    gap = rows["majority"]["against"]["band-power"]
    assert gap["accuracy"] == pytest.approx(rows["majority"]["scores"]["accuracy"] - 1)
    assert gap["interval"][0] <= gap["accuracy"] <= gap["interval"][1]
    with (tmp_path / "lab-group-as-recorded-strict.tsv").open(encoding="utf-8") as file:
        table = {row["method"]: row for row in csv.DictReader(file, delimiter="\t")}
    assert table["band-power"]["accuracy"] == "1.0000"
    assert table["band-power"]["to_band-power"] == "n/a"
    asked = found["settings"]
    assert (asked["crop"]["seconds"], asked["protocol"]["folds"], asked["training"]["context_s"]) == (13, 2, 12)
    assert asked["recipe"]["channels"]["names"], "those that were really used"
    assert found["left_out"] == []
    assert all(row["nuisance"] == found["nuisance"] and row["protocol"] == "strict" for row in table.values())
    report = tmp_path / "lab-group-as-recorded-strict.html"
    before, page, made = files_of(tmp_path), report.read_text(), report.stat().st_mtime_ns
    assert invoke(*command(lab, tmp_path)).stdout == shown
    assert files_of(tmp_path) == before
    assert report.stat().st_mtime_ns == made, "it takes a minute, and is of this very table"
    check_page(page)
    assert page.count(escape(found["nuisance"])) >= 4, "beside every accuracy"
    assert "OPTIMISTIC" not in page
    for title in ("Accuracy on people", "Differences", "Accuracy against seconds", "Confusion", "Reliability"):
        assert f"<h2>{title}" in page
    for title in ("Microstate templates: 3 states in one band", "Fold by fold", "How this was made"):
        assert f"<h2>{title}" in page
    assert "How many states explain how much" in page
    assert "Token statistics by class" in page


@pytest.mark.slow
def test_a_recording_that_cannot_be_used_is_named_beside_the_table(tmp_path: Path) -> None:
    root = write_people(tmp_path / "bids")
    broken = root / "sub-09" / "eeg" / "sub-09_task-rest_eeg.edf"
    broken.write_bytes(broken.read_bytes()[:100])
    (tmp_path / "lab.yaml").write_text(LAB)
    done = invoke(*command(tmp_path / "lab.yaml", tmp_path / "out", methods="majority"))
    assert done.exit_code == 0, done.output
    assert "9 people, 9 trials" in done.stdout
    assert "left out: 1 files, events or trials" in done.stdout
    found = plain(tmp_path / "out" / "lab-group-as-recorded-strict.json")
    assert isinstance(found, dict)
    (left_out,) = found["left_out"]
    assert broken.name in left_out
    assert escape(left_out) in (tmp_path / "out" / "lab-group-as-recorded-strict.html").read_text()
    broken.unlink()
    broken.with_name("sub-09_task-rest_eeg.json").write_text("{}")
    done = invoke(*command(tmp_path / "lab.yaml", tmp_path / "out", methods="majority"))
    assert f"left out: {broken.with_suffix('')}: the recording is missing" in done.stderr


@pytest.mark.slow
def test_new_stimuli_of_the_same_people_are_labelled_so(tmp_path: Path) -> None:
    size = ("--form", "small", "--subjects", 5, "--trials", 6, "--minutes", 0.3)
    assert invoke("simulate", "--dataset", "neurolong", *size, "--out", tmp_path / "set").exit_code == 0
    config = tmp_path / "set" / "rtbrain.yaml"
    config.write_text(config.read_text().replace("leave-one-subject-out", "leave-one-stimulus-out"))
    done = invoke("evaluate", "--dataset", config, "--methods", "majority", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert SAME_PEOPLE in " ".join(done.stdout.split())
    (table,), (page,) = (list((tmp_path / "out").glob(f"*strict{ending}")) for ending in (".tsv", ".html"))
    assert SAME_PEOPLE in table.read_text()
    assert "Accuracy on stimuli that the method has not seen, of people whom it has" in page.read_text()


@pytest.mark.slow
def test_probes_that_cannot_be_made_are_named_with_the_reason(lab: Path, tmp_path: Path) -> None:
    done = invoke(*command(lab, tmp_path, "--probes", methods="nuisance,band-power"))
    assert done.exit_code == 0, done.output
    shown = " ".join(done.stdout.split())
    assert "probes of band-power: filters not exchanged in 2 folds (fold-01: the training recordings show one" in shown
    assert "lines not exchanged in 2 folds (fold-01: 0 training recordings have" in shown
    page = (tmp_path / "lab-group-as-recorded-strict.html").read_text()
    assert "band-power: filters not exchanged in 2 folds" in page


@pytest.mark.slow
def test_a_second_table_in_the_same_folder_keeps_the_first(lab: Path, tmp_path: Path) -> None:
    first, second = ("majority,band-power", "majority")
    assert invoke(*command(lab, tmp_path, "--no-report", methods=first)).exit_code == 0
    kept = {
        name: (tmp_path / name).read_bytes()
        for name in ("lab-group-as-recorded-strict.json", "lab-group-as-recorded-strict.tsv")
    }
    answers = files_of(tmp_path)
    done = invoke(*command(lab, tmp_path, methods=second))
    assert done.exit_code == 0, done.output
    assert "lab-group-as-recorded-strict-2.html" in done.stdout
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept
    assert files_of(tmp_path) == answers, "both rest on the same answers"
    found = plain(tmp_path / "lab-group-as-recorded-strict-2.json")
    assert isinstance(found, dict)
    assert [row["method"] for row in found["rows"]] == ["majority"]


@pytest.mark.slow
def test_the_protocol_of_the_paper_is_called_optimistic_everywhere(lab: Path, tmp_path: Path) -> None:
    args = ("evaluate", "--dataset", lab, "--methods", "majority,band-power", "--out", tmp_path)
    done = invoke(*args, "--protocol", "paper")
    assert done.stdout.count("OPTIMISTIC") == 3, "over every table"
    assert "OPTIMISTIC" in (tmp_path / "lab-group-as-recorded-paper.tsv").read_text()
    found = plain(tmp_path / "lab-group-as-recorded-paper.json")
    assert isinstance(found, dict)
    assert "OPTIMISTIC" in found["label"]
    page = (tmp_path / "lab-group-as-recorded-paper.html").read_text()
    assert page.count("OPTIMISTIC") == page.count(escape(found["nuisance"])) >= 5, "beside every accuracy"
    assert not (tmp_path / "lab-group-as-recorded-strict.json").exists()


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_to_the_same_result(lab: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    args = [command(lab, out, "--no-report", methods=f"{METHODS},paper-text") for out in (whole, killed)]
    assert invoke(*args[0]).exit_code == 0
    assert not list(whole.glob("*.html"))
    # In the middle of the first fold: the answers of all but its network are there, and that one learns.
    kill_when(lambda: len(files_of(killed)) >= 4, "-m", "rtbrain", *args[1])
    kept = files_of(killed)
    assert 3 < len(kept) < 10, "it was not in the middle"
    assert not (killed / "lab-group-as-recorded-strict.json").exists()
    done = invoke(*args[1])
    assert done.exit_code == 0, done.output
    after = files_of(killed)
    assert {path: after[path] for path in kept} == kept, "no fold is run twice"
    for name in ("lab-group-as-recorded-strict.json", "lab-group-as-recorded-strict.tsv"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    for path in files_of(whole):
        assert (killed / path).read_bytes() == (whole / path).read_bytes()


@pytest.mark.slow
def test_a_worker_that_is_killed_is_told_in_words_and_what_is_done_is_kept(lab: Path, tmp_path: Path) -> None:
    """As where memory runs out."""
    args = command(lab, tmp_path, "--no-report", "--workers", 2, methods=f"{METHODS},paper-text")
    started = [sys.executable, "-m", "rtbrain", *map(str, args)]
    with subprocess.Popen(started, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not files_of(tmp_path):
                assert process.poll() is None
                sleep(0.01)
            children = psutil.Process(process.pid).children(recursive=True)
            next(each for each in children if any("LokyProcess" in word for word in each.cmdline())).kill()
            said = process.communicate(timeout=100)[1]
        finally:
            process.kill()
    assert process.returncode not in (0, -signal.SIGKILL)
    assert "a worker process was ended from outside" in said
    assert "with fewer --workers than 2" in said
    assert "Traceback" not in said
    assert files_of(tmp_path)


def test_what_cannot_be_run_is_refused(lab: Path, tmp_path: Path) -> None:
    message = refused("evaluate", "--dataset", lab, "--methods", "bandpower", "--out", tmp_path)
    assert "no method is called 'bandpower'" in message
    assert "it has group" in refused("evaluate", "--dataset", lab, "--task", "x", "--out", tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be made or written" in refused("evaluate", "--dataset", lab, "--out", tmp_path / "file" / "out")


def test_a_class_that_nobody_has_is_refused_by_all_that_would_use_it(lab: Path, tmp_path: Path) -> None:
    other = lab.with_name("three.yaml")
    other.write_text(LAB.replace("values: [fast]}]", "values: [fast]}, {name: slower, values: [slower]}]"))
    for own in (command(other, tmp_path / "out"), ("train", "--dataset", other, "--out", tmp_path / "model")):
        message = refused(*own)
        assert "no usable trial of task 'group' is of class slower" in message
        assert "choose another --task" in message
    assert not (tmp_path / "model").exists()


def test_why_no_trial_can_be_used_is_said_at_once(lab: Path, tmp_path: Path) -> None:
    long = lab.with_name("long.yaml")
    long.write_text(LAB.replace("seconds: 13", "seconds: 90"))
    (lab.parent / "bids" / "rtbrain.yaml").write_text(LAB.replace("root: bids", "root: ."))
    for own in (command(long, tmp_path), ("train", "--dataset", long, "--out", tmp_path / "model")):
        message = refused(*own)
        assert "the crop needs 91 s; shorten the crop" in message
        assert f"--dataset {lab.parent / 'bids' / 'rtbrain.yaml'}" in message


def test_the_complexity_table_needs_no_data(tmp_path: Path) -> None:
    done = invoke("evaluate", "--complexity", "--out", tmp_path / "none")
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if "(saved)" not in line}
    assert rows["paper-table"][1:] == ["206,403", "206.40", "K", "0.7874", "0.79", "13.609", "G", "13.61", "G"]
    assert rows["transformer"][1:] == ["100,482", "100.48", "K", "0.3833", "0.38", "118.149", "G", "118.15", "G"]
    assert {"eegnet", "band-power", "pooled-tokens", "rtbrain:"} <= rows.keys()
    assert not (tmp_path / "none").exists()


def test_sets_and_tables_that_do_not_go_together(lab: Path, tmp_path: Path) -> None:
    assert "which data set" in refused("evaluate", "--out", tmp_path)
    twice = ("evaluate", "--dataset", lab, "--dataset", lab, "--out", tmp_path)
    assert "two data sets are called lab" in refused(*twice)
    assert "give --root once for each --dataset" in refused(*twice, "--root", lab.parent)
    own = ("evaluate", "--dataset", lab, "--out", tmp_path)
    assert "two or more" in refused(*own, "--transfer")
    assert "one of them" in refused(*own, "--transfer", "--ablations")
    assert "one of them" in refused(*own, "--contexts", "mdd-ec", "--ablations")
    message = refused(*own, "--contexts", "mdd-ec", "--methods", "band-power", "--protocol", "paper", "--seeds", 3)
    assert "leave out --methods, --protocol paper, --seeds" in message
    assert "majority, nuisance does not listen" in refused(*own, "--probes", "--methods", "majority,nuisance")
    assert "leave out --dataset, --ablations, --adaptation, --probes" in refused(
        *own, "--complexity", "--ablations", "--adaptation", "transductive", "--probes"
    )
    message = refused(*own, "--adaptation", "transductive", "--methods", "majority,nuisance")
    assert "majority, nuisance does not adapt; name one that can, of rtbrain, paper-text" in message
    with alone_in(tmp_path, "evaluating"):
        assert f"another process is evaluating in {tmp_path}" in refused(*own)
    assert "names none; name some" in refused(*own, "--methods", " ,")
    assert "is no address of a Dask scheduler" in refused(*own, "--cluster", "nonsense")
    assert "leave out --transfer" in refused(*own, "--transfer", "--probes")
    assert "two or more" in refused(*own, "--transfer", "--adaptation", "transductive")  # its methods can adapt
    assert "never mixed" in refused(*own, "--methods", "band-power,dann")
    assert "has no parts to leave out" in refused(*own, "--ablations", "--methods", "cnn")


@pytest.mark.slow
def test_ablations_stand_beside_the_whole_model(lab: Path, tmp_path: Path) -> None:
    done = invoke(*command(lab, tmp_path, "--ablations", methods="paper-scratch"))
    assert done.exit_code == 0, done.output
    (file,) = tmp_path.glob("*.json")
    found = plain(file)
    assert isinstance(found, dict)
    assert (found["adaptation"], found["protocol"]) == ("transductive", "strict")
    parts = ("lsa-only", "stm-only", "no-interaction", "no-adaptation")
    rows = {row["method"]: row for row in found["rows"]}
    assert list(rows) == ["majority", "nuisance", "paper-scratch", *(f"paper-scratch-{part}" for part in parts)]
    whole = rows["paper-scratch"]["scores"]["accuracy"]
    for part in parts:
        own = rows[f"paper-scratch-{part}"]
        assert own["against"]["whole"]["accuracy"] == pytest.approx(own["scores"]["accuracy"] - whole)
        assert f"paper-scratch-{part}" in done.stdout
    assert "nuisance alone:" in done.stdout
    check_page(file.with_suffix(".html").read_text())
