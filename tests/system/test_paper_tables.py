"""`tools/paper_tables`: sets that it simulates go through the evaluation, as many people and folds as it says."""

import json
from pathlib import Path

import pytest

from rtbrain.config import load_yaml
from tests.tool_modules import load_tool


@pytest.mark.slow
def test_sets_are_simulated_once_and_told_by_each_others_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tool = load_tool("paper_tables")
    monkeypatch.setattr(tool, "PEOPLE", {"mdd": 6, "nssi": 6})
    monkeypatch.setattr(tool, "MINUTES", 0.4)
    monkeypatch.setattr(tool, "TRAINING", {"epochs": 2, "context_s": 8})
    monkeypatch.setattr("sys.argv", ["paper_tables", "transfer", "--out", str(tmp_path), "--workers", "1"])
    for again in (False, True):
        tool.main()
        assert ("rtbrain simulate" in capfd.readouterr().out) is not again
    cells = json.loads((tmp_path / "transfer-strict.json").read_text())["cells"]
    assert {(cell["target"], cell["task"]) for cell in cells} == {
        (name, task) for name, tasks in (("mdd", ("ec", "eo")), ("nssi", ("b1", "b2"))) for task in tasks
    }
    made = load_yaml(tmp_path / "sets" / "mdd" / "rtbrain.yaml")
    assert (made["protocol"]["folds"], made["training"]["epochs"], made["training"]["context_s"]) == (3, 2, 8)
    with pytest.raises(SystemExit) as stopped:
        tool.rtbrain("evaluate", "--dataset", tmp_path / "none.yaml")
    assert stopped.value.code == 2
