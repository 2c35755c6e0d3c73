"""The evaluation: each trial tested once, by what has not seen it; nothing done twice; leaks refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from rtbrain.conditioning.filters import Band
from rtbrain.errors import ConfigError, LeakError, SourceError
from rtbrain.messages import FloatArray
from rtbrain.pipeline import HarmoniseSettings
from rtbrain.training.dataset_config import Crop, Protocol, Schedule
from rtbrain.training.evaluate import evaluate, fold_jobs
from rtbrain.training.evaluate_fold import FoldData, FoldJob, method_answers, run_fold
from rtbrain.training.evaluate_store import Slot, load_answers
from rtbrain.training.methods import HIDDEN, METHODS, Adaptation, Example, Fitted, TokenNeed
from rtbrain.training.trial_cache import TrialCache

from .evaluation_cases import CONFIG, files_of, planned, write_people

STATISTICS = METHODS["microstate-stats"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_people(tmp_path_factory.mktemp("set"))


@pytest.fixture(scope="module")
def done(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an evaluation that has run."""
    out = tmp_path_factory.mktemp("done")
    plan, found = planned(people, "majority", "nuisance", "band-power", "microstate-stats")
    evaluate(plan, found, out)
    return out


def answers(people: Path, out: Path, *methods: str, **options: bool | int) -> list:
    plan, found = planned(people, *methods, **options)
    return evaluate(plan, found, out)


def first_job(people: Path, out: Path, *methods: str, optimistic: bool = False) -> FoldJob:
    return fold_jobs(planned(people, *methods, optimistic=optimistic)[0], out)[1][0]


def test_every_trial_is_tested_once_with_every_seed(people: Path, tmp_path: Path) -> None:
    found = answers(people, tmp_path, "majority", n_seeds=3)
    for seed in range(3):
        tested = [name for each in found if each.seed == seed for name in each.trials]
        assert sorted(tested) == [f"sub-{i:02d}_task-rest" for i in range(10)]
    deals = {frozenset(each.trials for each in found if each.seed == seed) for seed in range(3)}
    assert len(deals) > 1, "another seed deals people out anew"
    assert set(found[0].probabilities) == {"all", "10"}


def test_other_seconds_of_the_same_files_are_another_question(people: Path, tmp_path: Path) -> None:
    keys = []
    for start_s in (1.0, 1.5):
        plan, _ = planned(people, "majority", config=replace(CONFIG, crop=Crop(12.0, start_s)))
        assert {trial.length_s for trial in plan.chosen.trials} == {12.0}
        seed, fold = next(plan.folds())
        keys.append({**plan.rests_on(seed, fold), "crop": None})
    assert keys[0] != keys[1], "as when the same crop is cut from trials whose onset was corrected"


def test_recordings_that_change_meanwhile_are_refused_and_not_kept(tmp_path: Path) -> None:
    people = write_people(tmp_path / "set")
    job = first_job(people, tmp_path / "out", "band-power")
    (one,) = (people / "sub-00" / "eeg").glob("*.edf")
    content = one.read_bytes()
    one.write_bytes(content[:-2] + b"ab")
    with pytest.raises(SourceError, match="not those that the evaluation began with"):
        method_answers(job, FoldData(job), job.todo[0][0])
    one.write_bytes(content)
    method_answers(job, FoldData(job), job.todo[0][0])


def test_a_class_that_is_in_the_eeg_is_found(people: Path, done: Path) -> None:
    found = answers(people, done, "band-power")
    told = [int(np.argmax(row)) for each in found for row in each.probabilities["all"]]
    assert told == [label for each in found for label in each.labels]
    assert all(each.facts["C"] > 0 for each in found)


class TestNothingTwice:
    def test_what_is_there_is_kept(self, people: Path, done: Path) -> None:
        before = files_of(done)
        assert len(before) == 8
        answers(people, done, "majority", "nuisance", "band-power", "microstate-stats")
        assert files_of(done) == before

    def test_only_what_is_missing_is_run(self, people: Path, done: Path, tmp_path: Path) -> None:
        plan, found = planned(people, "majority", "band-power")
        evaluate(plan, found, tmp_path)
        before = files_of(tmp_path)
        gone = next(path for path in before if "band-power" in path)
        (tmp_path / gone).unlink()
        evaluate(plan, found, tmp_path)
        after = files_of(tmp_path)
        assert after.keys() == before.keys()
        assert {path for path in after if after[path] != before[path]} == {gone}

    def test_other_settings_make_other_answers(self, people: Path, tmp_path: Path) -> None:
        answers(people, tmp_path, "majority")
        before = set(files_of(tmp_path))
        for config in (
            replace(CONFIG, n_states=4),
            replace(CONFIG, recipe=replace(CONFIG.recipe, warmup_ms=1500)),
            replace(CONFIG, same_person=(("sub-00", "sub-02"),)),
        ):
            plan, found = planned(people, "majority", config=config)
            evaluate(plan, found, tmp_path)
            assert len(set(files_of(tmp_path)) - before) == 2
            before = set(files_of(tmp_path))

    def test_other_recordings_make_other_answers(self, tmp_path: Path) -> None:
        root = write_people(tmp_path / "set")
        answers(root, tmp_path / "out", "majority")
        path = root / "sub-00/eeg/sub-00_task-rest_eeg.edf"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        answers(root, tmp_path / "out", "majority")
        assert len(files_of(tmp_path / "out")) == 4

    def test_other_facts_beside_the_recordings_make_other_nuisance(self, tmp_path: Path) -> None:
        root, out = write_people(tmp_path / "set"), tmp_path / "out"
        for line_hz in (50, 60):
            before = set(files_of(out))
            for i in range(0, 10, 2):
                sidecar = root / f"sub-{i:02d}" / "eeg" / f"sub-{i:02d}_task-rest_eeg.json"
                sidecar.write_text(f'{{"PowerLineFrequency": {line_hz}}}')
            answers(root, out, "majority", "nuisance")
            new = set(files_of(out)) - before
            assert {Path(path).parent.name for path in new} == ({"nuisance"} if before else {"majority", "nuisance"})

    def test_tokens_go_when_the_fold_is_done(self, done: Path) -> None:
        assert not [path for path in (done / "scratch").rglob("*") if path.is_file()]

    def test_damaged_answers_are_refused_by_name(self, people: Path, tmp_path: Path) -> None:
        answers(people, tmp_path, "majority")
        path = tmp_path / next(iter(files_of(tmp_path)))
        path.write_text(path.read_text()[:-30])
        with pytest.raises(SourceError, match=f"{path.name} is damaged .* remove it, and its fold is run again"):
            answers(people, tmp_path, "majority")

    def test_a_damaged_cache_is_measured_again(self, people: Path, tmp_path: Path) -> None:
        plan, _ = planned(people, "band-power")
        trial, cache = plan.chosen.trials[0], TrialCache(tmp_path, plan.content)
        first = cache.powers(trial, plan.recipe)
        (path,) = tmp_path.iterdir()
        path.write_bytes(path.read_bytes()[:-40])
        assert np.array_equal(cache.powers(trial, plan.recipe).squares, first.squares)
        whole = path.read_bytes()
        assert np.array_equal(cache.powers(trial, plan.recipe).squares, first.squares)
        assert path.read_bytes() == whole


@dataclass(frozen=True)
class Cheat:
    """A method that is calibrated on whom it likes, and notes which labels it is shown."""

    calibrated_on: tuple[str, ...] = ()
    name: str = "cheat"
    needs: tuple[TokenNeed, ...] = ()
    program: tuple[str, ...] = ()
    stops_early: bool = False
    adaptation: Adaptation | None = None
    seen: list[tuple[tuple[str, ...], ...]] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    @property
    def fitted_on(self) -> Mapping[str, Sequence[str]]:
        return {"calibration": self.calibrated_on}

    @property
    def facts(self) -> Mapping[str, float]:
        return {}

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        self.seen.append((tuple(each.name for each in train), tuple(each.name for each in validation)))
        return self

    def attention(self, example: Example) -> None:
        return None

    def probabilities(self, examples: Sequence[Example], seconds: float | None = None) -> FloatArray:
        self.labels.extend(each.label for each in examples)
        return np.full((len(examples), 2), 0.5)


class TestLeaks:
    def test_a_test_subject_in_the_training_list_is_refused(self, people: Path, tmp_path: Path) -> None:
        job = first_job(people, tmp_path, "majority")
        leaking = replace(job.fold, train=(*job.fold.train, job.fold.test[0]))
        with pytest.raises(LeakError, match=r"in train and .* in test count as one"):
            run_fold(replace(job, fold=leaking))
        assert not files_of(tmp_path)

    def test_a_leak_is_found_before_anything_is_fitted(self, people: Path, tmp_path: Path) -> None:
        job, spy = first_job(people, tmp_path, "majority"), Cheat()
        leaking = replace(job.fold, validation=(*job.fold.validation, job.fold.test[0]))
        with pytest.raises(LeakError):
            method_answers(replace(job, fold=leaking), FoldData(job), spy)
        assert spy.seen == []

    def test_a_double_of_a_test_subject_is_refused(self, people: Path, tmp_path: Path) -> None:
        job = first_job(people, tmp_path, "majority")
        both = (job.fold.test[0].split("_")[0], job.fold.train[0].split("_")[0])
        with pytest.raises(LeakError, match="same_person"):
            run_fold(replace(job, same_person=(both,)))

    def test_a_test_subject_in_the_templates_is_refused(self, people: Path, tmp_path: Path) -> None:
        job = first_job(people, tmp_path, "microstate-stats")
        data = FoldData(job)
        leaking = FoldData(replace(job, optimistic=True)).templates(TokenNeed())
        data._templates[TokenNeed()] = leaking
        with pytest.raises(LeakError, match=r"templates .* fitted on 'sub-.*, which is tested"):
            method_answers(job, data, STATISTICS)

    def test_a_test_subject_in_the_calibration_is_refused(self, people: Path, tmp_path: Path) -> None:
        job = first_job(people, tmp_path, "majority")
        with pytest.raises(LeakError, match=r"calibration fitted on 'sub-.*, which is tested"):
            method_answers(job, FoldData(job), Cheat((job.fold.validation[0], job.fold.test[0])))

    def test_a_trial_of_another_length_is_refused(self, people: Path, tmp_path: Path) -> None:
        job = first_job(people, tmp_path, "majority")
        trials = (replace(job.trials[0], length_s=20.0), *job.trials[1:])
        with pytest.raises(LeakError, match="length can give"):
            run_fold(replace(job, trials=trials))

    def test_labels_of_the_test_side_are_hidden(self, people: Path, tmp_path: Path) -> None:
        job, spy = first_job(people, tmp_path, "majority"), Cheat()
        found = method_answers(job, FoldData(job), spy)
        assert set(spy.labels) == {HIDDEN}
        assert set(found.labels) == {0, 1}
        assert spy.seen == [(job.fold.train, job.fold.validation)]


class TestPaper:
    def test_templates_know_the_test_people_and_answers_say_so(self, people: Path, tmp_path: Path) -> None:
        job = first_job(people, tmp_path, "microstate-stats", optimistic=True)
        data = FoldData(job)
        assert set(data.templates(TokenNeed()).report["recordings"]) == {trial.name for trial in job.trials}
        assert method_answers(job, data, STATISTICS).optimistic
        strict = first_job(people, tmp_path, "microstate-stats")
        known = FoldData(strict).templates(TokenNeed()).report["recordings"]
        assert set(known) == set(strict.fold.train + strict.fold.validation)

    def test_what_stops_early_does_so_on_the_test_side(self, people: Path, tmp_path: Path) -> None:
        job, spy = first_job(people, tmp_path, "majority", optimistic=True), Cheat(stops_early=True)
        method_answers(job, FoldData(job), spy)
        assert spy.seen == [(job.fold.train + job.fold.validation, job.fold.test)]

    def test_its_answers_are_never_taken_for_strict_ones(self, people: Path, tmp_path: Path) -> None:
        answers(people, tmp_path, "majority", optimistic=True)
        assert not [each for each in answers(people, tmp_path, "majority") if each.optimistic]
        assert len(files_of(tmp_path)) == 4

    def test_the_same_people_cannot_choose_the_epoch_and_be_learnt_from(self, people: Path) -> None:
        stimuli = replace(CONFIG, protocol=Protocol("leave-one-stimulus-out"))
        with pytest.raises(ConfigError, match=r"epoch of paper-text.*--protocol strict"):
            planned(people, "majority", "paper-text", config=stimuli, optimistic=True)
        planned(people, "majority", config=stimuli, optimistic=True)


@pytest.mark.slow
def test_two_workers_answer_as_one_does(people: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, training=Schedule(epochs=2, batch=4, context_s=6.0, patience=2))
    plan, found = planned(people, "majority", "microstate-stats", "cnn", config=config)
    one, two = (evaluate(plan, found, tmp_path / str(workers), workers) for workers in (1, 2))
    assert one == two
    assert all(each.facts for each in one if each.method != "majority")


def test_raw_is_the_default_band_without_harmonising(people: Path) -> None:
    own = replace(
        CONFIG, recipe=replace(CONFIG.recipe, harmonise=HarmoniseSettings(lines=None), bands=(Band("x", 3, 26),))
    )
    for raw, edges in ((False, (3, 26)), (True, (1, 40))):
        plan, _ = planned(people, "majority", config=own, raw=raw)
        assert (plan.recipe.harmonise is None) == raw == plan.raw
        assert (plan.recipe.bands[0].low_hz, plan.recipe.bands[0].high_hz) == edges


def test_no_seeds_are_refused(people: Path) -> None:
    with pytest.raises(ConfigError, match="0 seeds are no evaluation"):
        planned(people, "majority", n_seeds=0)


def test_answers_that_are_not_there_are_none(tmp_path: Path) -> None:
    assert load_answers(Slot(tmp_path / "none.json", "")) is None
