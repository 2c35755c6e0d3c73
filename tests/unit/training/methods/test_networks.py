"""Networks as methods: each answers for every trial, repeats itself, is told what the task says, and never leaks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rtbrain.conditioning.filters import Band
from rtbrain.errors import ConfigError, LeakError
from rtbrain.training.batches import Batch, TokenSequence, crops_like
from rtbrain.training.conditioned import Conditioned
from rtbrain.training.dataset_config import Schedule, load_dataset_config
from rtbrain.training.eegnet import EEGNet
from rtbrain.training.evaluate import evaluate, fold_jobs, plan
from rtbrain.training.evaluate_fold import FoldData, FoldJob, method_answers
from rtbrain.training.evaluate_table import WHOLE, compared_with, tabulate
from rtbrain.training.fit_settings import TrainSettings, settings_for
from rtbrain.training.methods import (
    METHODS,
    Adaptation,
    Example,
    Fitted,
    Method,
    TokenNeed,
    ablations,
    for_task,
    methods_named,
    table_mode,
)
from rtbrain.training.methods.base import HIDDEN
from rtbrain.training.methods.eegnet import at_hand
from rtbrain.training.methods.networks import BrainTokenMethod
from rtbrain.training.model_settings import preset
from rtbrain.training.nuisance import audit_task
from tests.unit.training.evaluation_cases import CONFIG, found_in, write_people

from .examples import example

# Two bands of its own, as a few seconds have not enough peaks of the slowest rhythms.
BANDS = (Band("slow", 4, 13, 3), Band("fast", 13, 30, 3))
SHORT = replace(
    CONFIG,
    recipe=replace(CONFIG.recipe, bands=BANDS),
    training=Schedule(epochs=2, batch=4, context_s=6.0, patience=2),
)
PLAIN = ("rtbrain", "paper-text", "paper-table", "paper-scratch", "cnn", "lstm", "transformer", "eegnet")
TRANSDUCTIVE = ("rtbrain", "paper-text", "paper-table", "paper-scratch", "dann", "deepcoral")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_people(tmp_path_factory.mktemp("set"))


def answered(people: Path, out: Path, methods: Sequence[Method]) -> list:
    config, found = found_in(people, SHORT)
    return evaluate(plan(config, found, methods), found, out)


def job_of(people: Path, out: Path, methods: Sequence[Method], optimistic: bool = False) -> FoldJob:
    config, found = found_in(people, SHORT)
    return fold_jobs(plan(config, found, methods, optimistic=optimistic), out)[1][0]


@pytest.fixture(autouse=True)
def few_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which templates there are does not matter here."""
    monkeypatch.setattr("rtbrain.training.evaluate_fold.STARTS", 1)


@pytest.mark.slow
@pytest.mark.parametrize(("names", "adaptation"), [(PLAIN, "none"), (TRANSDUCTIVE, "transductive")])
def test_each_answers_for_every_trial_after_every_length(
    people: Path, tmp_path: Path, names: tuple[str, ...], adaptation: Adaptation
) -> None:
    found = answered(people, tmp_path, methods_named(names, adaptation))
    for name in names:
        own = [each for each in found if each.method == name]
        assert sorted(trial for each in own for trial in each.trials) == [f"sub-{i:02d}_task-rest" for i in range(10)]
        for each in own:
            assert set(each.probabilities) == {"10", "all"}
            for rows in each.probabilities.values():
                assert np.sum(rows, axis=1) == pytest.approx(1)
                assert np.isfinite(rows).all()
            # 0 where no epoch was better than the start, which is none for a model that is to adapt.
            started = adaptation == "none" and name in ("rtbrain", "paper-text", "paper-table")
            assert (0 if started else 1) <= each.facts["epoch"] <= 2


@pytest.mark.parametrize("name", ["dann", "deepcoral", "paper-scratch"])
def test_training_and_tested_people_are_compared_by_crops_of_one_length(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def noted(batch: Batch, sequences: Sequence[TokenSequence], rng: np.random.Generator) -> Batch:
        made = crops_like(batch, sequences, rng)
        compared.append((batch.length_s, made.length_s, len(batch.rows) - len(made.rows), sequences[0].label))
        return made

    compared: list[tuple[float, float, int, int]] = []
    for user in ("batches", "run"):
        monkeypatch.setattr(f"rtbrain.training.{user}.crops_like", noted)
    job = job_of(people, tmp_path, methods_named([name], "transductive"))
    method_answers(job, FoldData(job), job.todo[0][0])
    assert len({known for known, *_ in compared}) > 3
    assert all(known == other and not fewer and label == HIDDEN for known, other, fewer, label in compared)


def test_a_second_run_answers_alike_on_any_number_of_threads(people: Path, tmp_path: Path) -> None:
    methods, runs = methods_named(["paper-text", "cnn", "eegnet"]), []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            job = job_of(people, tmp_path, methods)
            runs.append([method_answers(job, FoldData(job), method) for method, _ in job.todo])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert runs[0] == runs[1]


def rhythms(rng: np.random.Generator) -> list[Example]:
    """Slow people have their rhythm at 9 Hz, fast ones at 17 Hz; each has an amplifier gain of their own."""
    made = []
    for i in range(22):
        t = np.arange(1280) / 128
        wave = np.sin(2 * np.pi * (9, 17)[i % 2] * t + rng.uniform(0, 6))
        data = rng.uniform(5, 15) * (np.outer(wave, [1, 0.5, -0.5, -1]) + rng.normal(size=(1280, 4)))
        samples = Conditioned(data.astype(np.float32), t, np.zeros(1280, np.int64), 128.0)
        made.append(example(f"t{i}", i % 2, samples=lambda samples=samples: samples))
    return made


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda own: replace(own, data=own.data[:200], piece=own.piece[:200]),
            r"trial 't3': EEGNet reads 256 samples \(2 s\) .* 200 af",
        ),
        (lambda own: replace(own, rate_hz=100.0), r"these trials have several: 100 Hz in 't3', 128 Hz in 't9'"),
    ],
)
def test_trials_that_eegnet_cannot_read_are_named(
    rng: np.random.Generator, change: Callable[[Conditioned], Conditioned], said: str
) -> None:
    made = rhythms(rng)
    odd = change(made[3].samples())
    made[3] = replace(made[3], samples=lambda: odd)
    with pytest.raises(ConfigError, match=said):
        METHODS["eegnet"].fit(made[:10], made[10:14], 0)


def test_eegnet_learns_what_is_in_the_samples(rng: np.random.Generator) -> None:
    made = rhythms(rng)
    method = replace(METHODS["eegnet"], schedule=Schedule(epochs=6, patience=6, learning_rate=3e-3))
    fitted = method.fit(made[:10], made[10:14], 0)
    told = fitted.probabilities(made[14:]).argmax(axis=1)
    assert told.tolist() == [0, 1] * 4
    assert fitted.probabilities(made[14:], 0.5).sum(axis=1) == pytest.approx(1), "less than a window has an answer too"


def test_eegnet_reads_from_files_what_does_not_fit_into_memory(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, told = rhythms(rng), []
    method = replace(METHODS["eegnet"], schedule=Schedule(epochs=2, patience=2))
    for most in (1 << 30, 3 * made[0].samples().data.nbytes):
        monkeypatch.setattr("rtbrain.training.methods.eegnet.MOST_BYTES", most)
        with at_hand(made[:10]) as known:
            mapped = [isinstance(each.data, np.memmap) for each in known]
            files = [Path(str(each.data.filename)) for each in known if isinstance(each.data, np.memmap)]
        assert mapped == [i > 2 and most < 1 << 30 for i in range(10)]
        assert not any(path.exists() for path in files)
        told.append(method.fit(made[:10], made[10:14], 0).probabilities(made[14:]))
    assert np.array_equal(*told)


def test_eegnets_weights_are_within_the_papers_norms_whenever_they_are_looked_at(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spy(EEGNet):
        """Notes the largest norms that answers are given with."""

        def forward(self, windows: torch.Tensor) -> torch.Tensor:
            norms.append((self.spatial.weight.flatten(1).norm(dim=1).max(), self.classifier.weight.norm(dim=1).max()))
            return super().forward(windows)

    norms: list[tuple[torch.Tensor, torch.Tensor]] = []
    monkeypatch.setattr("rtbrain.training.eegnet.EEGNet", Spy)
    made = rhythms(rng)
    # Steps so large that the norms are soon reached.
    method = replace(METHODS["eegnet"], schedule=Schedule(epochs=3, patience=3, learning_rate=3e-2))
    method.fit(made[:10], made[10:14], 0)
    spatial, dense = (max(map(float, each)) for each in zip(*norms, strict=True))
    assert spatial <= 1.0 + 1e-6
    assert dense == pytest.approx(0.25, abs=1e-6), "reached, and not passed"


class TestModes:
    def test_a_table_has_one_mode(self) -> None:
        with pytest.raises(ConfigError, match=r"dann cannot stand in .* 'none'.* --adaptation transductive"):
            methods_named(["rtbrain", "dann"])
        with pytest.raises(ConfigError, match=r"cnn cannot stand in .* 'inductive'"):
            methods_named(["rtbrain", "cnn"], "inductive")
        with pytest.raises(ConfigError, match=r"never mixed .*none: cnn; transductive: dann"):
            table_mode([METHODS["majority"], METHODS["cnn"], METHODS["dann"]])

    def test_yardsticks_stand_beside_any(self) -> None:
        for mode in ("none", "inductive", "transductive"):
            found = methods_named(["majority", "nuisance", "rtbrain"], mode)
            assert [method.name for method in found] == ["majority", "nuisance", "rtbrain"]
            assert table_mode(found) == mode

    def test_only_those_that_are_transductive_see_the_tested_people(self, people: Path, tmp_path: Path) -> None:
        job = job_of(people, tmp_path, [METHODS["majority"]])
        for mode, n in (("none", 0), ("inductive", 0), ("transductive", len(job.fold.test))):
            spy = Spy("spy", "rtbrain", TokenNeed(), mode)
            with pytest.raises(InterruptedError):
                method_answers(job, FoldData(job), spy)
            assert [len(target) for target in spy.paper_targets] == [n]
            assert all(example.label == -1 for target in spy.paper_targets for example in target)
            spy.paper_targets.clear()


class Spy(BrainTokenMethod):
    """Notes whom it is given without labels."""

    paper_targets: list[Sequence[Example]] = []  # noqa: RUF012 (shared on purpose: the method itself is frozen)

    def fit(
        self, train: Sequence[Example], validation: Sequence[Example], seed: int, target: Sequence[Example] = ()
    ) -> Fitted:
        self.paper_targets.append(target)
        raise InterruptedError


@pytest.mark.parametrize(("name", "head_start"), [("paper-text", True), ("paper-scratch", False)])
def test_only_scratch_begins_with_random_weights(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, head_start: bool
) -> None:
    given: list[TrainSettings] = []

    def spy(train: object, validation: object, settings: TrainSettings, *more: object, **named: object) -> None:
        given.append(settings)
        raise InterruptedError

    monkeypatch.setattr("rtbrain.training.fit.train_model", spy)
    job = job_of(people, tmp_path, methods_named([name]))
    with pytest.raises(InterruptedError):
        method_answers(job, FoldData(job), job.todo[0][0])
    assert [each.head_start for each in given] == [head_start]


class TestAblations:
    def test_each_leaves_one_part_out(self) -> None:
        found = {each.name: each for each in ablations(["paper-text"]) if isinstance(each, BrainTokenMethod)}
        parts = {name: (each.aggregation, each.transitions, each.adaptation) for name, each in found.items()}
        assert parts == {
            "paper-text": (True, True, "transductive"),
            "paper-text-lsa-only": (True, False, "transductive"),
            "paper-text-stm-only": (False, True, "transductive"),
            "paper-text-no-interaction": (False, False, "transductive"),
            "paper-text-no-adaptation": (True, True, "none"),
        }
        assert table_mode(ablations()) == "transductive"
        assert not [each for each in ablations(adaptation="none") if each.name.endswith("no-adaptation")]
        assert not {each.name for each in ablations()} & {"paper-text", "paper-table"}
        with pytest.raises(ConfigError, match="cnn has no parts to leave out"):
            ablations(["cnn"])

    @pytest.mark.slow
    def test_all_can_be_trained_and_are_compared_with_the_whole(self, people: Path, tmp_path: Path) -> None:
        config, found = found_in(people, SHORT)
        planned = plan(config, found, ablations(["paper-text"]))
        made = tabulate(planned, evaluate(planned, found, tmp_path), audit_task(config, found))
        rows = {row.method: row for row in made.rows}
        assert len(rows) == 7
        assert {name for name, row in rows.items() if WHOLE in row.against} == {
            f"paper-text-{part}" for part in ("lsa-only", "stm-only", "no-interaction", "no-adaptation")
        }
        assert compared_with(made) == [WHOLE]
        for row in made.rows:
            if WHOLE in row.against:
                gap = row.scores.accuracy - rows["paper-text"].scores.accuracy
                assert row.against[WHOLE].accuracy == pytest.approx(gap)


def test_the_papers_loss_is_what_its_models_are_trained_with() -> None:
    config = load_dataset_config("neurolong")
    model = preset("paper-text", (6,), 5)
    for as_paper, alpha in ((False, ()), (True, (1, 1, 2, 6, 1))):
        for name in ("paper-text", "cnn", "rtbrain"):
            method = for_task(METHODS[name], config, "subjective-5", as_paper)
            assert (method.paper.loss, method.paper.alpha) == ("focal", alpha)
            assert method.schedule == config.training
        given = settings_for("paper-text", model, 60.0, config.training, method.paper)
        assert (given.loss, given.alpha, given.batch) == ("focal", alpha, 12)
        assert settings_for("rtbrain", model, 60.0, config.training, method.paper).alpha == ()


class TestLeaks:
    NAMES = ("paper-text", "cnn", "eegnet")

    @pytest.mark.parametrize("name", NAMES)
    def test_a_test_subject_in_the_training_list_is_refused(self, people: Path, tmp_path: Path, name: str) -> None:
        job = job_of(people, tmp_path, [METHODS[name]])
        leaking = replace(job, fold=replace(job.fold, train=(*job.fold.train, job.fold.test[0])))
        with pytest.raises(LeakError, match=r"in train and .* in test count as one"):
            method_answers(leaking, FoldData(job), job.todo[0][0])

    @pytest.mark.parametrize("side", ["train", "validation"])
    @pytest.mark.parametrize("name", NAMES)
    def test_a_test_subject_in_what_it_is_given_is_refused(
        self, people: Path, tmp_path: Path, name: str, side: str
    ) -> None:
        """The fold is clean, but whoever hands out the trials cheats: weights, or stopping and calibration, leak."""
        job = job_of(people, tmp_path, [METHODS[name]])
        with pytest.raises(LeakError, match=r"(model|calibration) fitted on 'sub-.*, which is tested"):
            method_answers(job, Smuggler(job, side), job.todo[0][0])

    def test_a_test_subject_in_the_templates_is_refused(self, people: Path, tmp_path: Path) -> None:
        job = job_of(people, tmp_path, [METHODS["cnn"]])
        data = FoldData(job)
        data._templates[TokenNeed()] = FoldData(replace(job, optimistic=True)).templates(TokenNeed())
        with pytest.raises(LeakError, match=r"templates .* fitted on 'sub-.*, which is tested"):
            method_answers(job, data, job.todo[0][0])


class Smuggler(FoldData):
    """Adds a trial of the test side to one of the others."""

    def __init__(self, job: FoldJob, side: str) -> None:
        super().__init__(job)
        self._smuggled = getattr(job.fold, side), job.fold.test[0]

    def examples(self, names: Sequence[str], hidden: bool = False) -> list[Example]:
        into, who = self._smuggled
        return super().examples((*names, who) if tuple(names) == into else names, hidden)


def test_the_protocol_of_the_paper_stops_on_the_test_side(people: Path, tmp_path: Path) -> None:
    job = job_of(people, tmp_path, [METHODS["eegnet"]], optimistic=True)
    seen: list[tuple[str, ...]] = []

    class Watched(FoldData):
        def examples(self, names: Sequence[str], hidden: bool = False) -> list[Example]:
            if not hidden:
                seen.append(tuple(names))
            return super().examples(names, hidden)

    found = method_answers(job, Watched(job), job.todo[0][0])
    assert found.optimistic
    assert job.fold.test in seen
