"""The command that makes the README's tables: what it compares, and how it prints."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from rtbrain.training.evaluate_table import Evaluation, Row
from rtbrain.training.methods import METHODS, methods_named, table_mode
from rtbrain.training.metrics import Difference, Scores
from tests.conftest import ROOT
from tests.tool_modules import load_tool

from .evaluation_cases import CONFIG, files_of, write_people

TOOL = ROOT / "tools" / "accuracy"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("accuracy")


def test_every_method_stands_in_a_table_and_no_table_mixes_ways_of_adaptation(tool: ModuleType) -> None:
    for table in tool.TABLES:
        methods = methods_named(table.methods, table.adaptation)
        assert [method.name for method in methods] == sorted(table.methods, key=list(METHODS).index)
        assert table_mode(methods) == table.adaptation
        assert "nuisance" in table.methods, "no accuracy without what is not brain"
    harmonised = {name for table in tool.TABLES if not table.raw for name in table.methods}
    assert harmonised >= set(METHODS) - {"pooled-tokens-16"}
    main = next(table for table in tool.TABLES if table.adaptation == "none")
    assert not {"rtbrain", "band-power", "pooled-tokens"} & set(main.once), "five seeds for ours and the linear ones"


def test_a_table_says_what_must_stand_beside_it(tool: ModuleType) -> None:
    scores = Scores(0.7, (0.5, 0.9), 0.69, (0.5, 0.9), 0.75, 0.1, ((3.0, 1.0), (1.0, 3.0)), {}, ())
    gap = Difference(0.05, (-0.1, 0.2), 0.5)
    row = Row("rtbrain", scores, {"band-power": gap}, {"10": (0.6, (0, 1)), "all": (0.7, (0, 1))}, {}, 5)
    row = replace(row, epochs_kept=(9, 0, 4), not_probed=("lines not exchanged in 2 folds (why)",))
    row.probes["filters"] = (1, 12)
    found = Evaluation(
        dataset="mdd",
        task="ec",
        classes=("a", "b"),
        protocol="strict",
        adaptation="none",
        label="CONFOUNDED (for a test)",
        kind="raw",
        n_people=8,
        n_trials=8,
        seeds=(0,),
        n_folds=2,
        warmup_s=1.0,
        nuisance="nuisance alone: filters 0.90",
        rows=(row,),
    )
    shown = tool.markdown(found)
    assert "mdd, ec, raw, adaptation none, protocol strict" in shown
    assert "nuisance alone: filters 0.90" in shown
    assert "**CONFOUNDED (for a test)**" in shown
    cells = "| rtbrain | 5 | 0.700 (0.50 to 0.90) | 0.690 | 0.750 | 0.100 | +0.050 (-0.10 to +0.20) |  | 0.600 |"
    assert f"{cells} 4 (0 to 9), the start in 1 of 3 | 1 of 12 |" in shown
    assert "Probes of rtbrain: lines not exchanged in 2 folds (why)." in shown


@pytest.mark.slow
def test_it_prints_tables_and_goes_on_where_it_was_stopped(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, out = write_people(tmp_path / "set"), tmp_path / "out"
    names = ("majority", "nuisance", "band-power", "cnn", "eegnet")
    monkeypatch.setattr(tool, "TABLES", (tool.Table("mdd", "group", names),))
    monkeypatch.setattr(tool, "OURS", "band-power")
    short = replace(CONFIG, root=str(root), training=replace(CONFIG.training, epochs=2))
    monkeypatch.setattr(tool, "load_dataset_config", lambda name: short)
    args = ["accuracy", "--mdd", str(root), "--out", str(out), "--workers", "1", "--seeds", "2"]

    def run(*more: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [*args, *more])
        assert tool.main() == 0
        return capsys.readouterr().out.splitlines()

    shown = run()
    assert [line.split(" | ")[:2] for line in shown if line.startswith("| ")][1:] == [
        [f"| {name}", "1" if name in ("cnn", "eegnet") else "2"] for name in names
    ]
    assert any(line.startswith("10 people, 10 trials, 2 folds. nuisance alone:") for line in shown)
    assert [row["method"] for row in json.loads(shown[-1])[0]["rows"]] == list(names)
    before = files_of(out)
    assert len(before) == 2 * (3 * 2 + 2)
    gone = next(path for path in before if "cnn" in path)
    (out / gone).unlink()
    assert run() == shown, "what is missing is made again, alike"
    after = files_of(out)
    assert {path for path in before if after[path] != before[path]} == {gone}
    for only in ("cnn", "band-power"):  # without ours there is nothing to probe
        assert [row["method"] for row in json.loads(run("--methods", only)[-1])[0]["rows"]] == [only]
    assert files_of(out) == after
    spent = json.loads(run("--cost")[-1])[0]["cpu_s"]
    assert set(names) < set(spent)
    assert files_of(out) == after, "what is tried with shuffled labels is not kept"


def test_without_data_it_says_what_to_give() -> None:
    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "give --mdd, --eegmat or both" in done.stderr
