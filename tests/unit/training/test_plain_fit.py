"""The loop of the networks that ours is compared with: what it keeps, when it stops, and that CORAL aligns."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rtbrain.errors import ConfigError
from rtbrain.training.losses import coral_loss
from rtbrain.training.plain_fit import CoralTerm, PlainSettings, Step, train_plain

LABELS = [0, 1] * 8


class Small(nn.Module):
    """A network of the shape that the loop asks for."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.classifier = nn.Linear(3, 4), nn.Linear(4, 2)

    def features(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.layer(inputs).tanh()
        return found


def people(rng: np.random.Generator, spread: tuple[float, ...] = (0.5, 0.5, 0.5)) -> Tensor:
    """Return trials of which the first of three numbers shows the class."""
    values = rng.standard_normal((16, 3)) * spread
    values[:, 0] += LABELS
    return torch.from_numpy(values).float()


def others(rng: np.random.Generator) -> Tensor:
    """Return people who vary in what those learnt from hardly do."""
    return people(rng, (0.5, 3.0, 3.0))


def drawn(rng: np.random.Generator) -> Iterator[Step]:
    """Yield a batch of people to learn from."""
    yield Step(people(rng), LABELS)


def drawn_with_others(rng: np.random.Generator) -> Iterator[Step]:
    """Yield a batch of people to learn from, and of those to be tested."""
    yield Step(people(rng), LABELS, others(rng))


class Judge:
    """Losses as they are told, and the weights that they were told about."""

    def __init__(self, losses: Sequence[float]) -> None:
        self.losses, self.seen = losses, list[dict[str, Tensor]]()

    def __call__(self, model: nn.Module) -> float:
        self.seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return self.losses[len(self.seen) - 1]


def test_the_first_epochs_are_never_kept_and_the_best_of_the_others_is() -> None:
    # 15 % of 20 epochs: the third is the first that counts. The first two are better than all that comes.
    judge = Judge([0.1, 0.1, 0.9, 0.8, 0.5, 0.6, 0.7, 0.8] + [0.01] * 12)
    model, settings = Small(), PlainSettings(20, 3, 1e-2, (1.0, 1.0))
    assert train_plain(model, drawn, judge, settings, np.random.default_rng(0)) == 5
    assert len(judge.seen) == 8, "three epochs after the best one"
    kept = judge.seen[4]
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    assert not torch.equal(judge.seen[7]["layer.weight"], kept["layer.weight"])


def test_patience_begins_after_the_first_epochs() -> None:
    judge = Judge([0.5, 0.5, 0.4] + [0.6] * 17)
    assert train_plain(Small(), drawn, judge, PlainSettings(20, 2, 1e-2, (1.0, 1.0)), np.random.default_rng(0)) == 3
    assert len(judge.seen) == 5


def test_coral_brings_training_and_tested_people_together_and_classes_are_still_told() -> None:
    rng = np.random.default_rng(1)
    known, unknown = people(rng), others(rng)
    distances, losses = {}, {}
    for align in ("none", "coral"):
        model = Small()
        epochs = 300
        settings = PlainSettings(epochs, epochs, 1e-2, (1.0, 1.0), align=align)  # type: ignore[arg-type]
        judge = Judge([1 / (1 + epoch) for epoch in range(epochs)])  # the last epoch is kept
        steps = drawn if align == "none" else drawn_with_others
        train_plain(model, steps, judge, settings, np.random.default_rng(2))
        with torch.no_grad():
            features = model.features(known)
            distances[align] = float(coral_loss(features, model.features(unknown)))
            losses[align] = float(nn.functional.cross_entropy(model.classifier(features), torch.tensor(LABELS)))
    assert distances["coral"] < distances["none"] / 5
    assert losses["coral"] < 0.6 < np.log(2)


def test_corals_weight_is_found_before_it_counts() -> None:
    term, rng = CoralTerm(), np.random.default_rng(0)
    pairs = [torch.from_numpy(rng.standard_normal((2, 16, 4))) for _ in range(4)]
    distances = [float(coral_loss(*pair)) for pair in pairs]
    for pair, loss in zip(pairs[:3], (0.7, 0.6, 0.5), strict=True):
        assert float(term(pair[0], pair[1], torch.tensor(loss), weighing=True)) == 0
    assert np.isclose(term.weight, 1.8 / sum(distances[:3]))
    added = float(term(pairs[3][0], pairs[3][1], torch.tensor(0.1), weighing=False))
    assert np.isclose(added, 1.8 / sum(distances[:3]) * distances[3])


def test_corals_weight_counts_well_before_an_epoch_may_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noted(CoralTerm):
        """Tells of each step whether the weight was still being found."""

        def __call__(self, features: Tensor, other: Tensor, loss: Tensor, weighing: bool) -> Tensor:
            weighed.append(weighing)
            return super().__call__(features, other, loss, weighing)

    weighed: list[bool] = []
    monkeypatch.setattr("rtbrain.training.plain_fit.CoralTerm", Noted)
    # 15 % of 20 epochs of four steps: the third epoch is the first that counts, after twelve steps.
    settings = PlainSettings(20, 20, 1e-2, (1.0, 1.0), passes=4, align="coral")
    train_plain(Small(), drawn_with_others, Judge([0.5] * 20), settings, np.random.default_rng(0))
    assert weighed == [True] * 6 + [False] * 74


def test_alignment_needs_the_tested_people_and_nothing_else_may_see_them() -> None:
    for steps, align in ((drawn, "coral"), (drawn_with_others, "none")):
        settings = PlainSettings(2, 2, 1e-2, (1.0, 1.0), align=align)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="of the tested people; give both or neither"):
            train_plain(Small(), steps, Judge([0.5] * 2), settings, np.random.default_rng(0))


def test_an_epoch_goes_over_the_trials_as_often_as_asked() -> None:
    passes = list[int]()

    def counted(rng: np.random.Generator) -> Iterator[Step]:
        passes.append(1)
        return drawn(rng)

    judge = Judge([0.5] * 4)
    train_plain(Small(), counted, judge, PlainSettings(4, 4, 1e-2, (1.0, 1.0), passes=3), np.random.default_rng(0))
    assert (len(passes), len(judge.seen)) == (12, 4)


def test_features_without_any_distance_get_no_weight() -> None:
    term, alike = CoralTerm(), torch.ones(4, 3)
    term(alike, alike, torch.tensor(0.7), weighing=True)
    assert term.weight == 0
    assert float(term(alike, alike, torch.tensor(0.7), weighing=False)) == 0
