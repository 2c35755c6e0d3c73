"""Training: it learns, it repeats itself bit for bit, also after a kill, and it refuses what would deceive."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.asking import answers
from rtbrain.training.batches import TokenSequence, crops_like
from rtbrain.training.dataset_config import PaperSettings, Schedule
from rtbrain.training.fit import EpochReport, Trained, temperature_of, train_model
from rtbrain.training.fit_settings import settings_for
from rtbrain.training.model import BrainToken
from rtbrain.training.model_settings import preset
from rtbrain.training.run import Run, pick_device
from tests.killing import kill_when
from tests.unit.training.fit_cases import piece, small, trials

TRAIN, VALIDATION = trials(range(12)), trials(range(20, 24))


def weights_of(trained: Trained) -> dict[str, torch.Tensor]:
    return dict(trained.model.state_dict())


def same(a: Trained, b: Trained) -> bool:
    mine, theirs = weights_of(a), weights_of(b)
    tensors = all(torch.equal(mine[name], theirs[name]) for name in mine)
    return tensors and (a.temperature, a.history, a.best_epoch) == (b.temperature, b.history, b.best_epoch)


@pytest.fixture(scope="module")
def trained() -> Trained:
    return train_model(TRAIN, VALIDATION, small(epochs=12), seed=1)


def test_unseen_people_are_told_also_after_a_few_seconds(trained: Trained) -> None:
    unseen = trials(range(50, 80))
    labels = np.array([each.label for each in unseen])
    for seconds, least in ((None, 0.95), (5.0, 0.85)):
        shares = trained.probabilities(unseen, seconds)
        assert shares.shape == (60, 2)
        np.testing.assert_allclose(shares.sum(1), 1)
        assert (shares.argmax(1) == labels).mean() >= least


def test_the_kept_epoch_is_the_one_with_the_least_validation_loss(trained: Trained) -> None:
    losses = [each["validation_loss"] for each in (trained.start, *trained.history)]
    assert trained.best_epoch == int(np.argmin(losses))


def test_answers_are_calibrated_on_validation_people(trained: Trained) -> None:
    assert trained.temperature == temperature_of(trained.model, VALIDATION, 10.0) != 1.0
    sure = trained.probabilities(VALIDATION).max(1)
    assert (replace(trained, temperature=5 * trained.temperature).probabilities(VALIDATION).max(1) < sure).all()
    assert {name for names in trained.fitted_on.values() for name in names} == {s.name for s in TRAIN + VALIDATION}
    assert set(trained.fitted_on["model"]) == {s.name for s in TRAIN}


def test_the_model_is_scaled_by_training_people_alone() -> None:
    def shifted(sequences: list[TokenSequence], by: float) -> list[TokenSequence]:
        return [
            replace(each, pieces=tuple(replace(p, attributes=p.attributes * 3 + np.float32(by)) for p in each.pieces))
            for each in sequences
        ]

    made = train_model(shifted(TRAIN, 5.0), shifted(VALIDATION, 50.0), small(epochs=1))
    np.testing.assert_allclose(made.model.embedding.centre.numpy(), 5.0, atol=0.3)
    np.testing.assert_allclose(made.model.embedding.spread.numpy(), 3.0, atol=0.2)


def test_a_seed_means_one_result_whatever_else_draws_random_numbers() -> None:
    torch.manual_seed(5)
    one = train_model(TRAIN, VALIDATION, small(epochs=2), seed=3)
    torch.manual_seed(77)
    before = torch.get_rng_state()
    assert same(one, train_model(TRAIN, VALIDATION, small(epochs=2), seed=3))
    assert torch.equal(before, torch.get_rng_state())
    assert not same(one, train_model(TRAIN, VALIDATION, small(epochs=2), seed=4))


def test_training_stops_when_validation_people_gain_nothing_more() -> None:
    upside_down = [replace(each, label=1 - each.label) for each in VALIDATION]
    made = train_model(TRAIN, upside_down, small(epochs=40, patience=3))
    # Patience begins once steps have their full size, after 15 % of the epochs.
    assert len(made.history) == max(made.best_epoch, 6) + 3 < 40


def test_reports_come_after_every_epoch() -> None:
    reports: list[EpochReport] = []
    train_model(TRAIN, VALIDATION, small(epochs=3), progress=reports.append)
    assert [(each.epoch, each.epochs) for each in reports] == [(1, 3), (2, 3), (3, 3)]
    assert reports[-1].left_s == 0 < reports[0].left_s
    assert all(np.isfinite(each.loss) and 0 <= each.accuracy <= 1 for each in reports)


def test_rare_classes_weigh_more() -> None:
    # With next to nothing to learn from, a model that does not weigh would always name the frequent class.
    rng = np.random.default_rng(0)
    rare = [TokenSequence(f"t{i}", f"p{i}", int(i % 6 == 0), (piece(60, int(rng.integers(1e6))),)) for i in range(48)]
    settings = small(epochs=6, prefix_share=0.0)
    shares = []
    for each in (settings, replace(settings, alpha=(1.0, 1.0))):
        run = Run(rare[:36], rare[36:], each, 0, ())
        for _ in range(6):
            run.train_epoch()
        model = BrainToken(each.model)
        model.load_state_dict(run.state()["average"])
        logits = torch.from_numpy(answers(model, rare[:36], 10.0)[0])
        shares.append(float(logits.softmax(1)[:, 1].mean()))
    assert shares[0] > 0.4
    assert shares[1] < 0.3


@pytest.mark.parametrize("loss", ["focal", "cross-entropy"])
@pytest.mark.parametrize("name", ["paper-text", "paper-table"])
def test_the_papers_models_train_too(name: str, loss: str) -> None:
    model = preset(name, (2,), 2, width=8, heads=2, head_width=4, hidden=16)
    paper = PaperSettings(loss=loss, alpha=(2, 1) if loss == "focal" else ())  # type: ignore[arg-type]
    settings = replace(settings_for(name, model, 10.0, Schedule(), paper), epochs=2, loss=loss)
    plain = [replace(s, pieces=tuple(replace(p, attributes=p.attributes[:, :0]) for p in s.pieces)) for s in TRAIN]
    made = train_model(plain[:16], plain[16:], settings)
    assert np.isfinite(made.probabilities(plain[16:])).all()


def test_without_a_head_start_training_begins_with_random_weights_and_whole_steps() -> None:
    model, schedule = preset("paper-text", (2,), 2, width=8, heads=2, head_width=4, hidden=16), Schedule()
    given, plain = (settings_for("paper-text", model, 10.0, schedule, PaperSettings(), own) for own in (True, False))
    assert plain == replace(given, learning_rate=schedule.learning_rate, head_start=False, passes=5)
    tokens = [replace(s, pieces=tuple(replace(p, attributes=p.attributes[:, :0]) for p in s.pieces)) for s in TRAIN]
    run = Run(tokens[:16], tokens[16:], plain, 7, ())
    run.begin()
    torch.manual_seed(7)
    drawn = BrainToken(model).state_dict()
    assert all(torch.equal(values, drawn[name]) for name, values in run.state()["model"].items())
    assert run.start["validation_loss"] > 0
    run.train_epoch()
    assert (run.epoch, run.state()["counts"][1]) == (1, 5 * 2), "five times over 16 trials in batches of 12 or fewer"


def test_random_weights_are_never_kept_however_little_they_err() -> None:
    contrary = [replace(each, label=1 - each.label) for each in VALIDATION]  # who learns is wrong about these
    for head_start in (True, False):
        settings = small(epochs=20, head_start=head_start, learning_rate=3e-2)
        made = train_model(TRAIN, contrary, settings, 3)
        losses = [each["validation_loss"] for each in (made.start, *made.history)]
        first = 0 if head_start else 3  # steps grow over 15 % of the epochs
        assert made.best_epoch == first + int(np.argmin(losses[first:]))
    assert min(losses[:3]) < min(losses[3:]), "the case that this is about"


class TestAdversary:
    def test_inductive_has_a_domain_for_each_training_person(self):
        made = train_model(TRAIN, VALIDATION, small(epochs=2, adversary="inductive"))
        assert made.model.settings.domains == 12
        assert same(made, train_model(TRAIN, VALIDATION, small(epochs=2, adversary="inductive")))

    def test_the_head_learns_at_its_own_rate(self):
        # Steps that hardly move a model with a head start would leave the head random, and the adversary blind.
        for rate, moves in ((None, False), (1e-2, True)):
            settings = small(epochs=4, adversary="inductive", learning_rate=1e-7, adversary_rate=rate)
            run = Run(TRAIN, VALIDATION, settings, 0, ())
            before = {name: value.clone() for name, value in run.state()["model"].items()}
            for _ in range(4):
                run.train_epoch()
            moved = {name: float((value - before[name]).abs().max()) for name, value in run.state()["model"].items()}
            assert max(by for name, by in moved.items() if not name.startswith("domain.")) < 1e-4
            assert (moved["domain.layers.0.weight"] > 1e-2) == moves

    def test_transductive_sees_the_target_without_labels(self):
        target = trials(range(40, 43))
        settings = small(epochs=2, adversary="transductive")
        made = train_model(TRAIN, VALIDATION, settings, target=target)
        assert made.model.settings.domains == 1
        hidden = [replace(each, label=-1) for each in target]
        assert same(made, train_model(TRAIN, VALIDATION, settings, target=hidden))
        other = train_model(TRAIN, VALIDATION, settings, target=trials(range(45, 48), clarity=0.5))
        assert made.history != other.history

    def test_training_and_tested_people_are_compared_by_crops_of_one_length(self, monkeypatch):
        compared = []

        def noted(batch, target, rng):
            made = crops_like(batch, target, rng)
            compared.append((batch.ids.shape[1], made.ids.shape[1]))
            return made

        monkeypatch.setattr("rtbrain.training.run.crops_like", noted)
        train_model(TRAIN, VALIDATION, small(epochs=4, adversary="transductive"), target=trials(range(40, 43)))
        assert len({known for known, _ in compared}) > 3
        assert max(abs(known - other) for known, other in compared) <= 1

    def test_a_start_that_has_not_adapted_is_not_kept(self, monkeypatch):
        target = trials(range(40, 43))
        for adversary, told, kept in (("none", (), 0), ("inductive", (), 2), ("transductive", target, 2)):
            losses = iter((0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 0.9, *[1.0] * 10))  # the longer, the worse
            monkeypatch.setattr("rtbrain.training.run.judged", lambda *_: (next(losses), 0.5))  # noqa: B023
            # 15 % of 8 epochs: the second is the first that counts without an answer to begin with.
            assert train_model(TRAIN, VALIDATION, small(epochs=8, adversary=adversary), target=told).best_epoch == kept

    def test_modes_cannot_be_mixed_up(self):
        for settings, target in ((small(), TRAIN), (small(adversary="transductive"), [])):
            with pytest.raises(ConfigError, match="target trials"):
                train_model(TRAIN, VALIDATION, settings, target=target)


class TestRefusals:
    def test_a_person_on_both_sides(self):
        with pytest.raises(ConfigError, match="p3 is in training and in validation"):
            train_model(TRAIN, [*VALIDATION, replace(TRAIN[6], name="new")], small())

    def test_too_little(self):
        with pytest.raises(ConfigError, match="give 2 and 1 at least"):
            train_model(TRAIN, [], small())
        with pytest.raises(ConfigError, match="one class"):
            train_model([each for each in TRAIN if each.label], VALIDATION, small())
        with pytest.raises(ConfigError, match="must weigh each of 2 classes"):
            small(alpha=(1.0, 2.0, 3.0))
        with pytest.raises(ConfigError, match="batches of 2 or more"):
            small(batch=1)

    def test_a_loss_that_is_not_finite_is_no_model(self):
        wild = [
            replace(each, pieces=tuple(replace(p, attributes=p.attributes * np.float32(np.nan)) for p in each.pieces))
            for each in TRAIN
        ]
        with pytest.raises(ConfigError, match=r"(spreads above 0|the loss became nan)"):
            train_model(wild, VALIDATION, small(epochs=1))

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
    def test_a_gpu_that_is_not_there(self):
        assert pick_device("auto").type == "cpu"
        with pytest.raises(ConfigError, match="torch finds no GPU"):
            pick_device("cuda")


class TestCheckpoint:
    def test_an_interrupted_run_goes_on_to_the_same_result(self, tmp_path, trained):
        class HaltError(Exception):
            pass

        def interrupt(report: EpochReport) -> None:
            if report.epoch == 5:
                raise HaltError

        path = tmp_path / "run.checkpoint"
        with pytest.raises(HaltError):
            train_model(TRAIN, VALIDATION, small(epochs=12), 1, path, interrupt)
        epochs: list[int] = []
        again = train_model(TRAIN, VALIDATION, small(epochs=12), 1, path, lambda report: epochs.append(report.epoch))
        assert epochs == list(range(6, 13))
        assert same(again, trained)
        assert same(train_model(TRAIN, VALIDATION, small(epochs=12), 1, path), trained)  # nothing is left to do

    def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(self, tmp_path):
        path = tmp_path / "run.checkpoint"
        train_model(TRAIN, VALIDATION, small(epochs=1), 1, path)
        for other in (
            (TRAIN, VALIDATION, small(epochs=2), 1),
            (TRAIN, VALIDATION, small(epochs=1), 2),
            (TRAIN[1:], VALIDATION, small(epochs=1), 1),
            (TRAIN, [replace(each, label=1 - each.label) for each in VALIDATION], small(epochs=1), 1),
        ):
            with pytest.raises(SourceError, match="other data, settings, program or seed; remove it"):
                train_model(*other, path)
        path.write_bytes(path.read_bytes()[:500])
        with pytest.raises(SourceError, match="no whole checkpoint"):
            train_model(TRAIN, VALIDATION, small(epochs=1), 1, path)

    @pytest.mark.slow
    def test_a_killed_process_goes_on_to_the_same_result(self, tmp_path, trained):
        path = tmp_path / "run.checkpoint"
        script = (
            "import sys, time; from pathlib import Path\n"
            "from tests.unit.training.test_fit import *\n"
            "train_model(TRAIN, VALIDATION, small(epochs=12), 1, Path(sys.argv[1]), lambda report: time.sleep(0.3))\n"
        )
        kill_when(path.exists, "-c", script, path)
        epochs: list[int] = []
        again = train_model(TRAIN, VALIDATION, small(epochs=12), 1, path, lambda report: epochs.append(report.epoch))
        assert 1 < epochs[0] <= 12
        assert same(again, trained)
