"""From a data set to a bundle by the command that a person would type, also when it is killed on the way."""

import json
import shutil
from html import escape
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result

from rtbrain.cli_simulate import DATASETS
from rtbrain.decoder.bundle import CARD, Bundle, load_bundle
from rtbrain.decoder.session import load_step
from rtbrain.locking import alone_in
from rtbrain.simulation.writing import simulate
from rtbrain.simulation.writing_order import Order
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.training.corpus_cache import program
from rtbrain.training.datasets import SIMULATED
from tests.killing import kill_when
from tests.recording_writers import write_edf
from tests.system.reports import check_page
from tests.system.test_cli import invoke, refused

PEOPLE = [f"{group} S{number}" for group in ("H", "MDD") for number in range(1, 5)]
CONFIG = """
name: small
reader: mdd
obtain: nowhere, it is made up (CC0)
n_states: 3
crop: {start_s: 1, seconds: 18}
tasks:
  ec:
    label: group
    where: {condition: EC}
    classes: [{name: healthy, values: [H]}, {name: MDD, values: [MDD]}]
protocol: {split: k-fold, folds: 3}
training: {epochs: 3, batch: 4, context_s: 12}
recipe:
  channels: {names: [Fp1, F3, C3, P3, O1, F7, T7, P7, Fz, Fp2, F4, C4, P4, O2, F8, T8, P8, Cz, Pz]}
"""


def command(folder: Path, out: Path, *more: object) -> list[str]:
    place = ("--dataset", folder / "small.yaml", "--root", folder / "eeg", "--workers", 1)
    return [str(each) for each in ("train", *place, "--out", out, *more)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a configuration and, below `eeg`, eight people in the layout of the MDD set."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.yaml").write_text(CONFIG)
    (folder / "eeg").mkdir()
    for seed, person in enumerate(PEOPLE):
        # States last longer in patients, so that there is something to learn.
        mean_ms = 140 if person.startswith("MDD") else 60
        source = Synthetic(SyntheticSettings(duration_s=20, seed=seed, mean_duration_ms=mean_ms))
        data = np.concatenate([chunk.data for chunk in source.chunks()]).T
        write_edf(folder / "eeg" / f"{person} EC.edf", data, source.info.channels)
    return folder


@pytest.fixture(scope="module")
def done(folder: Path) -> tuple[Bundle, Result]:
    result = invoke(*command(folder, folder / "models" / "small", "--exclude", "H S4, MDD S4", "--seed", 2))
    assert result.exit_code == 0, result.output
    return load_bundle(folder / "models" / "small"), result


class TestBundle:
    def test_it_says_where_it_comes_from(self, done):
        bundle, _ = done
        about = bundle.provenance
        assert (bundle.name, bundle.classes) == ("small", ("healthy", "MDD"))
        assert (about["dataset"], about["task"], about["preset"], about["seed"]) == ("small", "ec", "rtbrain", 2)
        assert about["program"] == program()["rtbrain"]
        assert about["subjects"]["left_out"] == ["H S4", "MDD S4"]
        assert bundle.licence == "that of the training data: nowhere, it is made up (CC0)"
        assert bundle.rates_hz == (250.0,)
        assert bundle.context_s == 12

    def test_templates_and_weights_rest_on_training_people_alone(self, done):
        bundle, _ = done
        sides = bundle.provenance["subjects"]
        assert bundle.templates.report["subjects"] == sides["train"]
        assert sorted(sides["train"] + sides["validation"]) == [name for name in PEOPLE if not name.endswith("4")]
        assert {name[0] for name in sides["train"]} == {name[0] for name in sides["validation"]} == {"H", "M"}

    def test_accuracy_never_stands_alone(self, done):
        bundle, result = done
        assert bundle.metrics["nuisance"].startswith("nuisance alone: ")
        assert bundle.metrics["nuisance"] in result.output
        assert "2 validation people, 2 trials: accuracy" in result.output
        assert "an honest accuracy comes from `rtbrain evaluate`" in result.output
        assert bundle.metrics["validation"]["trials"] == 2
        assert "10" in bundle.metrics["validation"]["accuracy_by_seconds"]
        losses = [bundle.metrics["validation"][name] for name in ("log_loss", "log_loss_before_calibration")]
        assert losses[0] <= losses[1] + 1e-9

    def test_it_runs(self, done):
        bundle, _ = done
        step = load_step(bundle.step, "cpu")
        assert step.schema.states == (3,)
        # 12 s of tokens fit, with some to spare for people whose states change faster.
        assert 100 < step.schema.t_max < 600
        assert max(bundle.metrics["export"][name] for name in ("decoder", "step")) < 1e-4
        assert 0 < bundle.trust.min_gev < 1
        assert 0.5 <= bundle.trust.min_quality <= 0.8
        assert bundle.trust.min_context_s == 10
        for maps, usual in zip(bundle.templates.maps, bundle.statistics, strict=True):
            assert sum(usual.coverage) == pytest.approx(1, abs=1e-3)
            assert [sum(row) for row in usual.transitions] == pytest.approx([1] * len(maps), abs=1e-3)
            assert all(0.004 < each < 0.5 for each in usual.duration_s)

    def test_its_report_is_one_page_with_all_that_must_stand_beside_the_accuracy(self, done):
        bundle, result = done
        page = (bundle.folder / "report.html").read_text()
        check_page(page)
        assert "in it report.html" in result.output
        assert page.count(escape(bundle.metrics["nuisance"])) >= 2
        assert "Not a test: these people chose epoch and temperature" in page
        for text in ("CLS attention over an example", "Microstate templates", bundle.sha256, "H S4, MDD S4"):
            assert text in page
        assert load_bundle(bundle.folder).sha256 == bundle.sha256

    def test_nothing_else_is_left(self, done):
        assert [path.name for path in done[0].folder.parent.iterdir()] == ["small"]


def test_a_context_that_the_trials_do_not_hold_is_told_in_words(folder, done, tmp_path):
    fast = ("--epochs", 1, "--no-report")
    result = invoke(*command(folder, tmp_path / "long", "--context", 60, *fast))
    assert result.exit_code == 0, result.output
    context_s = load_bundle(tmp_path / "long").context_s
    assert 15 < context_s <= 17
    assert f"the context is shortened to {context_s:.1f} s, not 60 s as --context says" in result.stderr
    assert "the crop keeps 18 s of each, and tokens begin after 1 s" in result.stderr
    assert "lengthen `crop`" in result.stderr
    assert "shortened" not in done[1].stderr


class TestContexts:
    def test_accuracy_and_delay_of_people_left_out(self, folder, done, tmp_path):
        bundle, _ = done
        place = ("evaluate", "--dataset", folder / "small.yaml", "--root", folder / "eeg", "--out", tmp_path)
        result = invoke(*place, "--contexts", bundle.folder)
        assert result.exit_code == 0, result.output
        assert "2 people that it has not met, 1 sessions of trials of different people" in result.stdout
        assert bundle.metrics["nuisance"] in result.stdout
        found = json.loads((tmp_path / "contexts-small-small-ec.json").read_text())
        assert [row["context_s"] for row in found["rows"]] == [10, 12]
        shown = [" ".join(line.replace("│", " ").split()) for line in result.stdout.splitlines()]
        for row in found["rows"]:
            low, high = row["at_end_interval"]
            told = f"{row['context_s']:g} s {row['at_end']:.3f} {low:.2f} to {high:.2f} {row['over_time']:.3f} "
            (line,) = (each for each in shown if each.startswith(told))
            assert line.endswith(f" {row['followed']} of {row['changes']}")
        page = (tmp_path / "contexts-small-small-ec.html").read_text()
        check_page(page, pictures=1)
        assert bundle.sha256 in page

    def test_a_bundle_that_has_met_everybody(self, folder, done, tmp_path):
        place = ("evaluate", "--dataset", folder / "small.yaml", "--root", folder / "eeg", "--out", tmp_path)
        bundle = tmp_path / "met"
        shutil.copytree(done[0].folder, bundle)
        card = json.loads((bundle / CARD).read_text())
        card["provenance"]["subjects"]["train"] += ["H S4"]
        (bundle / CARD).write_text(json.dumps(card))
        assert "leave some out of the training by `rtbrain train --exclude`" in refused(*place, "--contexts", bundle)


@pytest.mark.slow
def test_the_papers_models_with_several_bands_and_an_adversary(folder: Path, tmp_path: Path) -> None:
    more = ("--bands", "several", "-k", 2, "--adversary", "inductive", "--epochs", 1)
    assert invoke(*command(folder, tmp_path / "m", "--preset", "paper-table", *more)).exit_code == 0
    bundle = load_bundle(tmp_path / "m")
    assert len(bundle.recipe.bands) > 3
    assert load_step(bundle.step, "cpu").schema.states == (2,) * len(bundle.recipe.bands)
    assert bundle.provenance["settings"]["adversary"] == "inductive"


def graphs(bundle: Path) -> dict[str, str]:
    hashes: dict[str, str] = json.loads((bundle / CARD).read_text())["files"]
    return hashes


@pytest.mark.slow
def test_a_killed_command_goes_on_to_the_same_bundle(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "models" / "again"
    # A model that does not see durations has something left to learn after its head start.
    more = ("--preset", "paper-text", "--exclude", "H S4,MDD S4", "--seed", 2, "--epochs", 40, "--no-report")
    args = command(folder, out, *more)
    checkpoint = out.with_name("again.training") / "paper-text-threads-1.checkpoint"
    kill_when(checkpoint.exists, "-m", "rtbrain", *args)
    assert not out.exists()
    assert invoke(*args).exit_code == 0
    assert invoke(*command(folder, tmp_path / "whole", *more)).exit_code == 0
    assert graphs(out) == graphs(tmp_path / "whole")
    cards = [json.loads((path / CARD).read_text()) for path in (out, tmp_path / "whole")]
    for card in cards:
        card.pop("name")
        card["provenance"].pop("created")
    assert cards[0] == cards[1]
    assert cards[0]["provenance"]["best_epoch"] > 5  # or else the killed process might have done all that counts


@pytest.mark.slow
def test_a_run_that_ends_while_it_makes_its_report_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    args = command(folder, tmp_path / "m", "--epochs", 1, "--seed", 2)
    with monkeypatch.context() as patched:
        patched.setattr("rtbrain.training.train.write_training_report", killed)
        assert invoke(*args).exit_code == 130
    assert not (tmp_path / "m").exists()
    assert invoke(*args).exit_code == 0
    assert (tmp_path / "m" / "report.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.slow
def test_another_number_of_threads_begins_training_anew(folder: Path, tmp_path: Path) -> None:
    args = command(folder, tmp_path / "m", "--epochs", 40, "--seed", 2, "--no-report", "--preset", "paper-text")
    begun = [tmp_path / "m.training" / f"paper-text-threads-{threads}.checkpoint" for threads in (1, 2)]
    kill_when(begun[0].exists, "-m", "rtbrain", *args)
    kill_when(begun[1].exists, "-m", "rtbrain", *args, "--threads", 2)
    before = torch.get_num_threads()
    try:
        assert invoke(*args).exit_code == 0
    finally:
        torch.set_num_threads(before)
    assert load_bundle(tmp_path / "m").provenance["threads"] == 1


class TestRefusals:
    def test_missing_data_say_where_they_are_to_be_had(self, tmp_path, monkeypatch):
        monkeypatch.delenv("RTBRAIN_DATA", raising=False)
        assert set(SIMULATED) == set(DATASETS)
        for dataset, source in (("neurolong", "the authors of the paper"), ("mdd", "figshare")):
            place = ["--dataset", dataset, "--root", str(tmp_path / "none"), "--out", str(tmp_path / "m")]
            message = refused("train", *place)
            assert f"To be had from: {source}" in message
            assert "Expected below the folder" in message
            form = " --form small" if dataset == "neurolong" else ""
            folder = f"simulated/{dataset}"
            made = f"rtbrain simulate --dataset {dataset}{form} --out {folder}"
            assert f"{made}, then --dataset {folder}/rtbrain.yaml" in message
        assert not (tmp_path / "m").exists()

    def test_wrong_calls(self, folder, done, tmp_path):
        assert "never replaced" in refused(*command(folder, done[0].folder))
        with alone_in(tmp_path / "m", "training"):
            message = refused(*command(folder, tmp_path / "m"))
        assert f"another process is training in {tmp_path / 'm'}; wait for it or end it, or give another" in message
        assert "no task 'eo'" in refused(*command(folder, tmp_path / "m", "--task", "eo"))
        assert "no trial is of H S9" in refused(*command(folder, tmp_path / "m", "--exclude", "H S9"))
        assert "two that have it" in refused(*command(folder, tmp_path / "m", "--exclude", "H S2,H S3,H S4"))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
    def test_a_gpu_that_is_not_there_is_missed_before_anything_is_made(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr("rtbrain.training.train.load", None)
        assert "torch finds no GPU" in refused(*command(folder, tmp_path / "m", "--device", "cuda"))
        assert list(tmp_path.iterdir()) == []

    def test_whoever_is_left_out_may_not_come_in_as_somebody_else(self, folder, tmp_path):
        config = CONFIG + "same_person: [[H S1, H S2]]\n"
        (folder / "joined.yaml").write_text(config)
        args = command(folder, tmp_path / "m", "--exclude", "H S1")
        args[args.index("--dataset") + 1] = str(folder / "joined.yaml")
        assert "H S2 in train and H S1 in test count as one (same_person" in refused(*args)
        assert list(tmp_path.iterdir()) == []  # it is refused before anything is fitted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "task"),
    [
        (Order("neurolong", 5, 0.4, trials=4, form="small"), "subjective-2"),
        (Order("seed", 4, trials=6, shortened_s=24), "emotion-3"),
        (Order("deap", 4, trials=4), "valence-2"),
        (Order("mdd", 6, 0.5), "ec"),
        (Order("nssi", 6, 0.25), "b1"),
    ],
    ids=lambda each: each.dataset if isinstance(each, Order) else each,
)
def test_every_set_of_the_paper_can_be_trained_on(order: Order, task: str, tmp_path: Path) -> None:
    simulate(order, tmp_path / "set", n_draws=40)
    told = invoke(
        *("train", "--dataset", tmp_path / "set" / "rtbrain.yaml", "--workers", 1, "--epochs", 1),
        *("--no-report", "--out", tmp_path / "bundle"),
    )
    assert told.exit_code == 0, told.output
    bundle = load_bundle(tmp_path / "bundle")
    assert bundle.provenance["task"] == task, "the configuration's first"
    assert len(bundle.classes) == (3 if order.dataset == "seed" else 2)
