"""`rtbrain evaluate --transfer`: every set with the templates of every other, from recordings to the table."""

import json
import re
from pathlib import Path

import pytest

from rtbrain.errors import LeakError
from rtbrain.training.evaluate import plan
from rtbrain.training.evaluate_command import open_sets
from rtbrain.training.methods import methods_named
from rtbrain.training.transfer import with_templates_of
from tests.system.reports import check_page
from tests.system.test_cli import invoke, refused
from tests.unit.training.evaluation_cases import files_of, write_people


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two simulated sets with other electrodes, rates, readers and numbers of states."""
    folder = tmp_path_factory.mktemp("sets")
    for name, people in (("mdd", 10), ("nssi", 10)):
        args = ("simulate", "--dataset", name, "--subjects", people, "--minutes", 0.4, "--out", folder / name)
        done = invoke(*args)
        assert done.exit_code == 0, done.output
        path = folder / name / "rtbrain.yaml"
        path.write_text(re.sub(r"folds: \d+", "folds: 2", path.read_text()))
    return [folder / name / "rtbrain.yaml" for name in ("mdd", "nssi")]


def command(sets: list[Path], out: Path) -> list[object]:
    named = [word for path in sets for word in ("--dataset", path)]
    return ["evaluate", *named, "--transfer", "--methods", "microstate-stats", "--out", out]


@pytest.mark.slow
def test_the_table_has_own_and_foreign_templates(sets: list[Path], tmp_path: Path) -> None:
    done = invoke(*command(sets, tmp_path))
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "transfer-strict.json").read_text())
    cells = {(cell["target"], cell["source"]): cell for cell in found["cells"]}
    assert set(cells) == {(a, b) for a in ("mdd", "nssi") for b in ("mdd", "nssi")}
    assert {cell["paper"] for cell in cells.values()} == {None}, "the paper's are of its model, which adapts"
    assert {cell["task"] for cell in cells.values()} == {"ec", "b1"}
    assert "mdd, ec: nuisance alone:" in done.stdout
    page = (tmp_path / "transfer-strict.html").read_text()
    check_page(page, pictures=0)
    assert page.count("nuisance alone:") == 2
    before = files_of(tmp_path)
    assert invoke(*command(sets, tmp_path)).stdout == done.stdout
    assert files_of(tmp_path) == before, "nothing is done twice"


@pytest.mark.slow
def test_foreign_maps_are_on_the_targets_electrodes_and_have_the_sources_number(
    sets: list[Path], tmp_path: Path
) -> None:
    mdd, nssi = open_sets([str(path) for path in sets], [])
    methods = methods_named(["microstate-stats"])
    source, target = plan(nssi.config, nssi.found, methods), plan(mdd.config, mdd.found, methods)
    used = with_templates_of(source, target, tmp_path)
    (templates,) = used.foreign.values()
    assert templates.channels == target.recipe.channels.names
    assert templates.maps[0].shape == (nssi.config.n_states, 19)
    assert templates.recipe == target.recipe.to_dict()
    assert set(templates.report["subjects"]) == {trial.subject for trial in source.chosen.trials}
    seed, fold = next(target.folds())
    assert used.rests_on(seed, fold) != target.rests_on(seed, fold)


def test_sets_that_share_a_recording_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_people(tmp_path / name / "bids", 6)  # the same people, as they are seeded
        text = (
            f"name: {name}\nreader: bids\nroot: bids\ntasks:\n  group: {{label: group, classes: "
            "[{name: slow, values: [slow]}, {name: fast, values: [fast]}]}\nprotocol: {split: k-fold, folds: 2}\n"
        )
        (tmp_path / name / "lab.yaml").write_text(text)
    one, two = open_sets([str(tmp_path / name / "lab.yaml") for name in ("one", "two")], [])
    plans = [plan(each.config, each.found, methods_named(["microstate-stats"])) for each in (one, two)]
    with pytest.raises(LeakError, match="one and two hold the same recording"):
        with_templates_of(plans[0], plans[1], tmp_path / "cache")


def test_bands_that_the_other_set_does_not_have_are_refused_before_anything_is_run(
    sets: list[Path], tmp_path: Path
) -> None:
    args = command(sets, tmp_path)
    args[args.index("microstate-stats")] = "pooled-tokens"
    assert "from 3 to 26 Hz only, and the target's band 30-40 lies outside" in refused(*args)
    assert list(tmp_path.iterdir()) == []


def test_methods_without_tokens_are_refused(sets: list[Path], tmp_path: Path) -> None:
    args = command(sets, tmp_path)
    args[args.index("microstate-stats")] = "band-power"
    assert "none of these reads tokens" in refused(*args)
