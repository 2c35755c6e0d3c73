"""Tables in one folder: another question never writes over an earlier answer, the same one replaces its own."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtbrain.console import console
from rtbrain.console_evaluate import show_evaluation
from rtbrain.training.contexts import ContextReport, ContextRow, _question
from rtbrain.training.dataset_config import Crop, DatasetConfig
from rtbrain.training.evaluate import Plan, plan
from rtbrain.training.evaluate_table import OPTIMISTIC, Evaluation, Look, Row, paper_figure, write_evaluation
from rtbrain.training.methods import Method, ablations, methods_named
from rtbrain.training.methods.base import Attention
from rtbrain.training.metrics import Scores
from rtbrain.training.report_contexts import write_contexts
from rtbrain.training.report_evaluation import write_report
from rtbrain.training.table_files import has_report, write_table
from rtbrain.training.transfer_table import TransferTable, cells_of, write_transfer
from rtbrain.training.trials import Found

from .nuisance.planted import CONFIG, people

METHODS = methods_named(["majority", "band-power"])


@pytest.fixture(scope="module")
def found() -> Found:
    return people(6)


def table(question: str, *methods: str, adaptation: str = "none") -> Evaluation:
    scores = Scores(0.7, (0.5, 0.9), 0.69, (0.5, 0.9), 0.75, 0.1, ((3.0, 1.0), (1.0, 3.0)), {}, ((1.0, 0.7, 0.7),))
    rows = tuple(Row(name, scores, {}, {"all": (0.7, (0.0, 1.0))}, {"seed 0, a": 0.7}) for name in methods)
    return Evaluation(
        dataset="lab",
        task="group",
        classes=("a", "b"),
        protocol="strict",
        adaptation=adaptation,
        label="",
        kind="as recorded",
        n_people=8,
        n_trials=8,
        seeds=(0,),
        n_folds=2,
        warmup_s=1.0,
        nuisance="nuisance alone: 0.50",
        rows=rows,
        question=question,
    )


def test_a_table_of_other_methods_is_kept_beside_the_first(tmp_path: Path) -> None:
    first, second = table("one", "majority"), table("two", "majority", "band-power")
    for each in (first, second, first):
        write_evaluation(each, tmp_path)
        write_report(each, tmp_path)
    stems = {path.stem for path in tmp_path.iterdir()}
    assert stems == {"lab-group-as-recorded-strict", "lab-group-as-recorded-strict-2"}, (
        "the same question has its own name again"
    )
    assert len(list(tmp_path.iterdir())) == 6
    for stem, methods in (
        ("lab-group-as-recorded-strict", ["majority"]),
        ("lab-group-as-recorded-strict-2", ["majority", "band-power"]),
    ):
        kept = json.loads((tmp_path / f"{stem}.json").read_text())
        assert [row["method"] for row in kept["rows"]] == methods
        assert ("band-power" in (tmp_path / f"{stem}.html").read_text()) == ("band-power" in methods)


def test_what_is_optimistic_is_called_so_over_every_figure_of_the_report(tmp_path: Path) -> None:
    look = Look("rtbrain", "a", Attention("one", (0.5, 1.5), ((0.4, 0.6),)))
    found = replace(table("one", "rtbrain"), label=OPTIMISTIC, looks=(look,))
    sections = write_report(found, tmp_path).read_text().split("<h2>")
    shown = {each.split("<")[0]: OPTIMISTIC.split()[0] in each for each in sections if "<img" in each}
    assert [name.split()[0] for name in shown] == ["Accuracy", "Confusion", "Reliability", "CLS"]
    assert all(shown.values()), shown


@pytest.mark.parametrize(
    ("method", "adaptation", "figure"),
    [
        ("paper-scratch", "transductive", 0.96),
        ("paper-scratch", "none", 0.94),  # the paper's own without adaptation
        ("paper-scratch-no-adaptation", "transductive", 0.94),
        ("paper-table-no-interaction", "transductive", 0.8833),
        ("paper-text-lsa-only", "none", None),
        ("paper-scratch", "inductive", None),  # an adversary that the paper does not have
        ("paper-scratch-no-adaptation", "inductive", None),
        ("dann", "transductive", 0.96),
        ("rtbrain", "none", None),
        ("rtbrain-lsa-only", "transductive", None),
    ],
)
def test_the_papers_figure_is_of_the_same_way_of_adaptation(method: str, adaptation: str, figure: float | None) -> None:
    found = replace(table("one", method, adaptation=adaptation), dataset="mdd", task="ec")
    assert paper_figure(found, method) == (None if figure is None else pytest.approx(figure))


def test_the_papers_transfer_stands_beside_its_own_model_that_adapts_as_the_papers() -> None:
    for adaptation, figure in (("transductive", 0.8083), ("none", None)):
        found = table("one", "microstate-stats", "paper-text", adaptation=adaptation)
        cells = cells_of(replace(found, dataset="nssi", task="b1"), "mdd")
        assert [cell.paper for cell in cells] == [None, figure if figure is None else pytest.approx(figure)]


def test_ablations_are_told_by_their_name(tmp_path: Path) -> None:
    written = write_evaluation(table("one", "rtbrain", "rtbrain-lsa-only", adaptation="inductive"), tmp_path)
    assert written[0].name == "lab-group-as-recorded-strict-inductive-ablations.json"
    assert write_evaluation(table("two", "rtbrain", adaptation="inductive"), tmp_path)[0].stem.endswith("-inductive")


def test_what_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "lab-group-as-recorded-strict.json").write_text("{")
    (tmp_path / "lab-group-as-recorded-strict-2.html").write_text("mine")
    assert write_evaluation(table("one", "majority"), tmp_path)[0].name == "lab-group-as-recorded-strict-3.json"


def test_transfers_between_other_sets_are_kept(tmp_path: Path) -> None:
    names = [write_transfer(TransferTable((), "strict", question), tmp_path)[0].name for question in ("a", "b", "a")]
    assert names == ["transfer-strict.json", "transfer-strict-2.json", "transfer-strict.json"]


def test_context_lengths_of_a_bundle_trained_anew_are_kept_beside_those_of_the_first(tmp_path: Path) -> None:
    def written(sha256: str, report: bool = True) -> list[str]:
        row = ContextRow(10.0, 0.8, (0.7, 0.9), 0.7, 4.0, 3, 4)
        asked = _question(SimpleNamespace(sha256=sha256), plan(CONFIG, people(6), METHODS))  # type: ignore[arg-type]
        found = ContextReport("mine", sha256, "lab", "group", 2, 1, 4, "trials", "nuisance", (row,), asked)
        return [path.name for path in write_contexts(found, tmp_path, report)]

    assert written("one") == ["contexts-mine-lab-group.json", "contexts-mine-lab-group.html"]
    assert written("two") == ["contexts-mine-lab-group-2.json", "contexts-mine-lab-group-2.html"]
    assert written("one", report=False) == ["contexts-mine-lab-group.json"]
    kept = {path.stem: json.loads(path.read_text())["sha256"] for path in tmp_path.glob("*.json")}
    assert kept == {"contexts-mine-lab-group": "one", "contexts-mine-lab-group-2": "two"}


def test_what_is_asked_about_contexts_is_the_bundle_the_task_and_the_crop(found: Found) -> None:
    def asked(sha256: str = "one", config: DatasetConfig = CONFIG, methods: Sequence[Method] = METHODS) -> str:
        return _question(SimpleNamespace(sha256=sha256), plan(config, found, methods))  # type: ignore[arg-type]

    assert asked() == asked(methods=METHODS[:1]) == asked(config=replace(CONFIG, n_states=5))
    assert len({asked(), asked("two"), asked(config=replace(CONFIG, crop=Crop(5.0)))}) == 3


def test_a_question_is_its_methods_seeds_probes_and_settings_but_not_its_recordings(found: Found) -> None:
    def asked(config: object = CONFIG, methods: object = METHODS, **options: object) -> Plan:
        return plan(config, found, methods, **options)  # type: ignore[arg-type]

    plans = [
        asked(),
        asked(methods=methods_named(["majority"])),
        asked(methods=ablations(["paper-text"])),
        asked(n_seeds=2),
        asked(optimistic=True),
        asked(probed=["band-power"]),
        asked(replace(CONFIG, n_states=5)),
        asked(replace(CONFIG, crop=Crop(5.0))),
        asked(replace(CONFIG, recipe=replace(CONFIG.recipe, warmup_ms=1500))),
    ]
    assert len({each.question for each in plans}) == len(plans)
    fewer = replace(found, trials=found.trials[:-1])
    assert plan(CONFIG, fewer, METHODS).question == plans[0].question


def test_names_of_methods_are_whole_on_a_narrow_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 80)
    names = ("majority", "paper-scratch-no-interaction")
    made = replace(table("one", *names, adaptation="transductive"), dataset="mdd", task="ec")
    with console.capture() as shown:
        show_evaluation(made)
    assert all(name in shown.get() for name in names)


def test_a_report_is_of_its_table_unless_the_table_was_made_anew(tmp_path: Path) -> None:
    as_json, _ = write_table(tmp_path, "t", {"question": "a", "n": 1}, "n\n1\n")
    assert not has_report(as_json)
    (tmp_path / "t.html").write_text("page")
    assert has_report(as_json)
    write_table(tmp_path, "t", {"question": "a", "n": 1}, "n\n1\n")
    assert has_report(as_json), "the same again"
    as_json, as_tsv = write_table(tmp_path, "t", {"question": "a", "n": 2}, "n\n2\n")
    assert not has_report(as_json)
    assert json.loads(as_json.read_text())["n"] == 2
    assert as_tsv.read_text() == "n\n2\n"
