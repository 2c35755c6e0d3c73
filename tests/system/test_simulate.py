"""Simulated sets from the shell: written, looked through and turned into tokens, each in the layout of the real one."""

import json
from pathlib import Path

import pytest

from rtbrain.cli_simulate import DATASETS
from rtbrain.simulation.layouts import LAYOUTS
from tests.system.test_cli import invoke, refused


def test_the_command_knows_all_layouts() -> None:
    assert tuple(LAYOUTS) == DATASETS


def test_the_answer_is_printed_and_a_second_run_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "set"
    command = ("simulate", "--dataset", "mdd", "--subjects", 4, "--minutes", 0.05, "--out", out)
    done = invoke(*command)
    assert done.exit_code == 0
    truth = json.loads((out / "simulation.json").read_text())
    best = truth["optimum"]["ec"]
    assert f"{best['accuracy']:.3f} +- {best['standard_error']:.3f}" in done.stdout
    assert "8 recordings of 4 people, 8 trials of 3 s" in done.stdout
    assert f"rtbrain data check --dataset {out / 'rtbrain.yaml'}" in done.stdout
    assert "note: trials of 3 s are shorter than the crop of the shipped configuration" in done.stderr
    assert "exists and is not an empty folder; choose another one, or empty it" in refused(*command)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set"]


def test_minutes_are_ignored_with_a_note_where_the_format_fixes_them(tmp_path: Path) -> None:
    fixed = ("--dataset", "deap", "--form", "preprocessed", "--subjects", 1, "--trials", 2)
    done = invoke("simulate", *fixed, "--minutes", 3, "--out", tmp_path / "set")
    assert "note: --minutes is ignored: the format of deap fixes the length of its trials" in done.stderr
    assert "1 recordings of 1 person, 2 trials of 60 s" in done.stdout
    assert (tmp_path / "set/data_preprocessed_python/s01.dat").stat().st_size == pytest.approx(
        2 * 40 * 8064 * 8, abs=500
    )


def test_one_class_alone_is_no_task(tmp_path: Path) -> None:
    done = invoke("simulate", "--dataset", "mdd", "--subjects", 1, "--minutes", 0.05, "--out", tmp_path / "set")
    assert "note: no trial of task ec is of class healthy, so nothing can learn it; ask for more" in done.stderr


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    for options, message in (
        (("mdd", "--trials", 3), "mdd has its own number of recordings"),
        (("deap", "--form", "mat"), "deap has no form 'mat'; it has original, preprocessed"),
        (("deap", "--plant", "filter"), "holds trials of several classes"),
        (("mdd", "--minutes", "nan"), "minutes: Input should be a finite number"),
        (("mdd", "--minutes", "0"), "0.0 is not in the range"),
        (("mdd", "--minutes", "0.001"), "--minutes 0.001 is less than a second"),
        (("mdd", "--share", "0.4"), "0.4 is not in the range"),
    ):
        assert message in refused("simulate", "--out", tmp_path / "set", "--dataset", *options), options
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("neurolong", ("--subjects", 3, "--minutes", 0.3)),
        ("seed", ("--subjects", 3, "--trials", 3)),
        ("deap", ("--subjects", 3, "--trials", 2, "--seed", 1)),
        ("mdd", ("--subjects", 6, "--minutes", 0.5)),
        ("nssi", ("--subjects", 6, "--minutes", 0.4)),
    ],
)
def test_from_simulation_to_tokens(name: str, options: tuple[object, ...], tmp_path: Path) -> None:
    dataset, templates, report = tmp_path / "set/rtbrain.yaml", tmp_path / "templates", tmp_path / "check.json"
    assert invoke("simulate", "--dataset", name, *options, "--out", tmp_path / "set").exit_code == 0
    checked = invoke("data", "check", "--dataset", dataset, "--json", report, "--no-audit")
    assert checked.exit_code == 0
    assert "no warnings" in checked.stdout
    assert json.loads(report.read_text())["problems"] == []
    fast = ("-k", 4, "--starts", 3, "--peaks", 200)
    assert invoke("templates", "fit", "--dataset", dataset, *fast, "--out", templates).exit_code == 0
    more = ("--templates", templates, "--cache", tmp_path / "cache", "--workers", 1)
    tokenized = invoke("data", "tokenize", "--dataset", dataset, *more)
    assert tokenized.exit_code == 0
    truth = json.loads((tmp_path / "set/simulation.json").read_text())["trials"]
    first = [each for each in truth if name not in ("mdd", "nssi") or each["trial"].endswith(("EC", "B1"))]
    assert f"{len(first)} tokenized now" in tokenized.stdout
