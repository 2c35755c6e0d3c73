"""From a data set's files to templates and tokens, by the commands that a person would type."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from rtbrain.errors import LeakError
from rtbrain.pipeline import load_templates
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.datasets import choose, load
from rtbrain.training.folds import audit, folds
from tests.recording_writers import write_edf
from tests.system.test_cli import invoke, refused

PEOPLE = [f"{group} S{number}" for group in ("H", "MDD") for number in range(1, 4)]
CONFIG = """
name: small
reader: mdd
n_states: 3
crop: {start_s: 1, seconds: 18}
tasks:
  ec:
    label: group
    where: {condition: EC}
    classes: [{name: healthy, values: [H]}, {name: MDD, values: [MDD]}]
protocol: {split: k-fold, folds: 3}
recipe:
  channels: {names: [Fp1, F3, C3, P3, O1, F7, T7, P7, Fz, Fp2, F4, C4, P4, O2, F8, T8, P8, Cz, Pz]}
  min_duration_ms: 12
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a configuration and, below `eeg`, six people in the layout of the MDD set."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.yaml").write_text(CONFIG)
    (folder / "eeg").mkdir()
    for seed, person in enumerate(PEOPLE):
        source = Synthetic(SyntheticSettings(duration_s=20, seed=seed))
        data = np.concatenate([chunk.data for chunk in source.chunks()]).T
        write_edf(folder / "eeg" / f"{person} EC.edf", data, source.info.channels)
    return folder


def fit(folder: Path, out: Path, *more: object) -> Result:
    return invoke(
        *("templates", "fit", "--dataset", folder / "small.yaml", "--root", folder / "eeg"),
        *("--starts", 5, "--out", out, *more),
    )


@pytest.fixture(scope="module")
def fitted(folder: Path) -> Path:
    assert fit(folder, folder / "templates", "--exclude", "H S3, MDD S3").exit_code == 0
    return folder / "templates"


class TestTemplates:
    def test_recipe_and_states_are_the_data_sets(self, fitted):
        templates, recipe = load_templates(fitted)
        assert recipe.min_duration_ms == 12
        assert templates.maps[0].shape == (3, 19)

    def test_the_report_says_whose_they_are_and_the_audit_heeds_it(self, folder, fitted):
        report = json.loads((fitted / "templates.json").read_text())["report"]
        assert report["subjects"] == ["H S1", "H S2", "MDD S1", "MDD S2"]
        assert report["recordings"] == [f"{person} EC" for person in report["subjects"]]
        assert (report["dataset"], report["task"]) == ("small", "ec")
        config = load_dataset_config(str(folder / "small.yaml"))
        trials = choose(load(config, folder / "eeg"), config.task("ec")[1], config.crop).trials
        refusals = 0
        for fold in folds(trials, config.protocol):
            tested = {trial.subject for trial in trials if trial.name in fold.test}
            try:
                audit(fold, trials, fitted_on={"templates": report["subjects"]})
                assert tested == {"H S3", "MDD S3"}
            except LeakError:
                refusals += 1
                assert tested != {"H S3", "MDD S3"}
        assert refusals

    def test_what_was_fitted_is_said(self, folder, tmp_path):
        result = fit(folder, tmp_path / "t", "--subjects", "H S1,H S2", "-k", 2)
        assert "on 2 recording(s) of 2 subject(s): H S1, H S2" in result.output
        assert "may not be used to test" in result.output
        assert load_templates(tmp_path / "t")[0].maps[0].shape == (2, 19)
        listed = invoke("templates", "fit", folder / "eeg", "-k", 2, "--starts", 2, "--out", tmp_path / "u")
        assert all(f"{person} EC.edf" in listed.output for person in PEOPLE)

    def test_other_templates_that_are_replaced_are_told(self, folder, tmp_path):
        few = ("--subjects", "H S1,H S2", "-k", 2)
        assert "replacing" not in fit(folder, tmp_path / "t", *few).output
        assert "replacing" not in fit(folder, tmp_path / "t", *few).output
        said = f"replacing other templates in {tmp_path / 't'}: 2 states, of 2 recording(s)"
        assert said in fit(folder, tmp_path / "t", *few[:2], "-k", 3).output
        (tmp_path / "t" / "templates.json").write_text("{")
        assert "that could not be read as templates" in fit(folder, tmp_path / "t", *few).output

    def test_wrong_calls(self, folder, tmp_path):
        file, config = folder / "eeg" / "H S1 EC.edf", folder / "small.yaml"
        rest = ("--out", tmp_path / "x")
        assert "either files" in refused("templates", "fit", file, "--dataset", config, "-k", 2, *rest)
        assert "either files" in refused("templates", "fit", "-k", 2, *rest)
        assert "either -k N" in refused("templates", "fit", "--dataset", config, "-k", 2, "--scan", "2:3", *rest)
        assert "--dataset" in refused("templates", "fit", file, "-k", 2, "--task", "ec", *rest)
        assert "--unit" in refused("templates", "fit", "--dataset", config, "--unit", "uV", *rest)
        assert "no trial is of H S9; the subjects are H S1" in fit(folder, tmp_path / "x", "--exclude", "H S9").stderr
        assert "no subject is left" in fit(folder, tmp_path / "x", "--exclude", ",".join(PEOPLE)).stderr
        assert "no task 'eo'" in fit(folder, tmp_path / "x", "--task", "eo").stderr
        assert not (tmp_path / "x").exists()


class TestTokenize:
    def tokenize(self, folder: Path, fitted: Path, cache: Path, *more: object) -> tuple[object, ...]:
        place = ("--dataset", folder / "small.yaml", "--root", folder / "eeg")
        return ("data", "tokenize", *place, "--templates", fitted, "--cache", cache, "--workers", 1, *more)

    def test_all_trials_once(self, folder, fitted, tmp_path):
        first = invoke(*self.tokenize(folder, fitted, tmp_path / "c"))
        assert first.exit_code == 0
        assert "small, task ec: 6 trials of 6 subjects, 1.8 min" in first.output
        assert "6 tokenized now, 0 from the cache" in first.output
        assert "note:" not in first.output
        assert sorted(path.name[:4] for path in (tmp_path / "c").iterdir()) == [
            *("H_S1", "H_S2", "H_S3", "MDD_", "MDD_", "MDD_")
        ]
        damaged = min((tmp_path / "c").iterdir())
        damaged.write_bytes(damaged.read_bytes()[:5000])
        second = invoke(*self.tokenize(folder, fitted, tmp_path / "c"))
        assert "1 tokenized now, 5 from the cache" in second.output
        assert "'H S1 EC' is tokenized again" in second.stderr
        assert damaged.name in second.stderr

    def test_entries_of_other_templates_are_told(self, folder, fitted, tmp_path):
        fit(folder, tmp_path / "t", "-k", 2)
        assert "other entries" not in invoke(*self.tokenize(folder, fitted, tmp_path / "c")).output
        (tmp_path / "c" / "someone else-0123456789abcdef01234567.npz").write_bytes(b"")
        again = invoke(*self.tokenize(folder, tmp_path / "t", tmp_path / "c"))
        assert "6 other entries of these trials" in " ".join(again.output.split())

    @pytest.mark.slow
    def test_two_processes(self, folder, fitted, tmp_path):
        result = invoke(*self.tokenize(folder, fitted, tmp_path / "c", "--workers", 2))
        assert "6 tokenized now" in result.output

    def test_another_recipe_than_the_data_sets_is_noted(self, folder, tmp_path):
        (tmp_path / "recipe.yaml").write_text("warmup_ms: 500\nmin_duration_ms: 12\n")
        fit(folder, tmp_path / "t", "--recipe", tmp_path / "recipe.yaml")
        result = invoke(*self.tokenize(folder, tmp_path / "t", tmp_path / "c"))
        assert "in channels, warmup_ms it is not that of small" in result.stderr

    def test_wrong_calls(self, folder, fitted, tmp_path):
        assert "is no template folder" in refused(*self.tokenize(folder, folder, tmp_path / "c"))
        assert "no task 'eo'" in refused(*self.tokenize(folder, fitted, tmp_path / "c", "--task", "eo"))
        (tmp_path / "file").write_text("")
        assert "cannot be made" in refused(*self.tokenize(folder, fitted, tmp_path / "file" / "c"))
        assert not (tmp_path / "c").exists()
