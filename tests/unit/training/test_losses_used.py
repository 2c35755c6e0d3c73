"""The losses that a task asks for are the ones that training minimises."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rtbrain.training import losses, plain_fit
from rtbrain.training.baselines import baseline
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.fit import train_model
from rtbrain.training.fit_settings import settings_for
from rtbrain.training.losses import coral_loss, cross_entropy, focal_loss
from rtbrain.training.plain_fit import PlainSettings, Step, train_plain
from rtbrain.training.task_model import task_model

from .fit_cases import small, trials


class Counted:
    """A loss that notes how often it is asked, and with which weights."""

    def __init__(self, loss: Any) -> None:
        self.loss, self.weights = loss, list[Any]()

    def __call__(self, *given: Any) -> Tensor:
        self.weights.append(given[2].tolist() if len(given) > 2 and isinstance(given[2], Tensor) else None)
        found: Tensor = self.loss(*given)
        return found


@pytest.fixture
def spies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counted]:
    made = {
        "focal_loss": Counted(focal_loss),
        "cross_entropy": Counted(cross_entropy),
        "coral_loss": Counted(coral_loss),
    }
    for name, spy in made.items():
        for module in (losses, plain_fit):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, spy)
    return made


def test_neurolong_asks_for_the_focal_loss_and_the_other_sets_do_not() -> None:
    for dataset, task, loss in (("neurolong", "subjective-2", "focal"), ("mdd", "ec", "cross-entropy")):
        config = load_dataset_config(dataset)
        paper = config.tasks[task].paper
        model = task_model("paper-text", (4,), len(config.tasks[task].classes), paper)
        settings = settings_for("paper-text", model, 30.0, config.training, paper.for_others)
        # Classes weigh by the data's own frequencies: the paper's 2 : 1 would lean where classes are even.
        assert (settings.loss, settings.alpha) == (loss, ())
        assert model.window == paper.window


@pytest.mark.parametrize(
    ("loss", "used", "unused"),
    [("focal", "focal_loss", "cross_entropy"), ("cross-entropy", "cross_entropy", "focal_loss")],
)
def test_our_loop_minimises_the_loss_it_is_told(spies: dict[str, Counted], loss: str, used: str, unused: str) -> None:
    train_model(trials(range(4)), trials(range(4, 6)), small(epochs=1, loss=loss, alpha=(2.0, 1.0)), 0)
    assert spies[used].weights
    assert set(map(tuple, spies[used].weights)) == {(2.0, 1.0)}
    assert not spies[unused].weights


@pytest.mark.parametrize("align", ["none", "adversary", "coral"])
@pytest.mark.parametrize("loss", ["focal", "cross-entropy"])
def test_the_usual_loop_minimises_the_loss_and_alignment_it_is_told(
    spies: dict[str, Counted], loss: Any, align: Any
) -> None:
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(1, 3, (6, 20)))
    model = baseline("dann" if align == "adversary" else "cnn", (2,), 2)
    before = {name: value.clone() for name, value in model.named_parameters()}
    settings = PlainSettings(1, 1, 1e-3, (3.0, 1.0), loss=loss, align=align)
    step = Step(ids, [0, 1] * 3, None if align == "none" else ids)
    assert train_plain(model, lambda rng: iter([step]), lambda own: 1.0, settings, rng) == 1
    used, unused = ("focal_loss", "cross_entropy") if loss == "focal" else ("cross_entropy", "focal_loss")
    assert spies[used].weights == [[3.0, 1.0]]
    assert not spies[unused].weights
    assert len(spies["coral_loss"].weights) == (align == "coral")
    moved = {name.split(".")[0] for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    assert ("domain" in moved) == (align == "adversary")
    assert "classifier" in moved
