"""What a model knows before its first step: which state follows which, and what that says about the classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from rtbrain.messages import IntArray
from rtbrain.tokens.inputs import Inputs
from rtbrain.training.asking import answers
from rtbrain.training.batches import Batch, TokenSequence, collate, contexts
from rtbrain.training.fit_settings import TrainSettings
from rtbrain.training.head_start import Scores, point_at_classes, read_classes
from rtbrain.training.head_start_pairs import detect_pairs
from rtbrain.training.initial import look_at_neighbours
from rtbrain.training.model import Block, BrainToken
from rtbrain.training.model_settings import preset
from rtbrain.training.run import Run

N_STATES = 4


def walk(n: int, seed: int, ahead: float) -> IntArray:
    """Return states that go round: `ahead` is the chance of going forwards, and no state is more frequent for it."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([1, 2, 3], n, p=[0.8 * ahead, 0.2, 0.8 * (1 - ahead)])
    states: IntArray = np.cumsum(steps) % N_STATES
    return states


def tokens(states: IntArray, attributes: int, seed: int = 0) -> Inputs:
    end_s = 0.1 * np.arange(1.0, len(states) + 1, dtype=np.float64)
    values = np.random.default_rng(seed).standard_normal((len(states), attributes)).astype(np.float32)
    return Inputs(1 + states, values, end_s - 0.1, end_s)


def people(first: int, n: int, attributes: int, classes: int = 2) -> list[TokenSequence]:
    """Return a trial of each class of n people; the class is the preference for going forwards."""
    made = []
    for person in range(first, first + n):
        for label in range(classes):
            ahead = 0.3 + 0.4 * label / (classes - 1)
            own = tokens(walk(600, 10 * person + label, ahead), attributes, person)
            made.append(TokenSequence(f"p{person}-{label}", f"p{person}", label, (own,)))
    return made


@pytest.mark.parametrize("name", ["rtbrain", "paper-text"])
def test_units_fire_for_their_pair_of_states(name: str) -> None:
    torch.manual_seed(0)
    model = BrainToken(preset(name, (N_STATES,), 2)).eval()
    look_at_neighbours(model)
    n_attributes = len(model.settings.attributes)
    detect_pairs(model, collate([tokens(walk(960, seed, 0.5), n_attributes, seed) for seed in range(8)], range(8)))
    fresh = collate([tokens(walk(960, 99, 0.5), n_attributes, 99)], [0])
    fired: list[torch.Tensor] = []
    block = model.blocks[0]
    assert isinstance(block, Block)
    block.contract.register_forward_pre_hook(lambda _, given: fired.append(given[0]) if given[0].ndim == 4 else None)
    with torch.no_grad():
        model.features(fresh.ids, fresh.attributes)
    states, units = fresh.ids[0] - 1, fired[0].flatten(1, 2)[0]
    pairs = [(i, j) for i in range(N_STATES) for j in range(N_STATES) if i != j]
    for unit, (before, after) in enumerate(pairs):
        there = (states[:-1] == before) & (states[1:] == after)
        assert units[1:, unit][there].mean() > 5 * units[1:, unit][~there].mean()


@pytest.mark.parametrize("part", ["transitions", "aggregation"])
def test_a_model_without_one_of_its_parts_begins_as_the_whole_one_does(part: str) -> None:
    for states in ((N_STATES,), (16, 16)):
        whole = preset("rtbrain", states, 2)
        assert preset("rtbrain", states, 2, **{part: False}).counts_pairs == whole.counts_pairs
    settings = TrainSettings(preset("paper-text", (N_STATES,), 2, **{part: False}), context_s=60.0)
    run = Run(people(0, 6, 0), people(30, 4, 0), settings, 0, ())
    run.begin()
    assert np.isfinite(run.start["validation_loss"])


def test_what_states_and_attributes_tell_is_written_into_the_embedding_where_pairs_are_too_many() -> None:
    settings = TrainSettings(preset("rtbrain", (16, 16), 2), context_s=60.0)
    assert not settings.model.counts_pairs

    def trial(person: int, label: int) -> TokenSequence:
        rng = np.random.default_rng(10 * person + label)
        own = tokens(rng.integers(32, size=600), 3, 10 * person + label)
        # One state's level and one state's correlation; people differ by as much in the level of all states.
        own.attributes[:, 1] += 0.5 * rng.standard_normal() + np.where(own.ids == 5, label - 0.5, 0)
        own.attributes[:, 2] += np.where(own.ids == 20, label - 0.5, 0)
        return TokenSequence(f"p{person}-{label}", f"p{person}", label, (own,))

    train, validation, unseen = (
        [trial(person, label) for person in range(first, first + n) for label in (0, 1)]
        for first, n in ((0, 40), (100, 8), (200, 30))
    )
    run = Run(train, validation, settings, 0, ())
    run.begin()
    logits, rows = answers(run.best_model(), unseen, 60.0)
    assert (logits.argmax(1) == np.array([each.label for each in unseen])[rows]).mean() > 0.85


@pytest.mark.parametrize(("name", "classes"), [("rtbrain", 2), ("paper-text", 2), ("rtbrain", 3)])
def test_the_order_of_states_tells_unseen_people_before_the_first_step(name: str, classes: int) -> None:
    settings = TrainSettings(preset(name, (N_STATES,), classes), context_s=60.0)
    attributes = len(settings.model.attributes)
    unseen = people(50, 30, attributes, classes)
    run = Run(people(0, 16, attributes, classes), people(30, 8, attributes, classes), settings, 0, ())
    run.begin()
    assert run.epoch == run.best_epoch == 0
    logits, rows = answers(run.best_model(), unseen, 60.0)
    labels = np.array([each.label for each in unseen])[rows]
    assert (logits.argmax(1) == labels).mean() > 0.8


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "window"),
    [("rtbrain", 16), ("paper-text", 10), ("paper-text", 60)],
)
def test_the_start_says_what_the_linear_model_of_its_tokens_says(
    name: str, window: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, found = TrainSettings(preset(name, (N_STATES,), 2, window=window), context_s=60.0), []

    def point(*given: Any) -> Scores:
        found.append(point_at_classes(*given))
        return found[0]

    monkeypatch.setattr("rtbrain.training.run.point_at_classes", point)
    attributes = len(settings.model.attributes)
    unseen = [each for each in people(50, 60, attributes) if each.label == 0]  # that the classes differ is no help
    run = Run(people(0, 40, attributes), people(40, 4, attributes), settings, seed, ())
    run.begin()
    logits, _ = answers(run.best_model(), unseen, 60.0)
    scores = found[0]([collate([each.pieces[0] for each in unseen], range(len(unseen)))])[:, 0].numpy()
    assert np.corrcoef(logits[:, 1] - logits[:, 0], scores)[0, 1] > 0.9


def test_the_start_rests_on_the_contexts_that_an_answer_about_a_trial_rests_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[list[int]] = []

    def point(model: BrainToken, batches: Sequence[Batch], *given: Any) -> Scores:
        found.append([row for batch in batches for row in batch.rows])
        return point_at_classes(model, batches, *given)

    monkeypatch.setattr("rtbrain.training.run.point_at_classes", point)
    known, context_s = people(0, 8, 0), 5.0
    Run(known, people(8, 4, 0), TrainSettings(preset("paper-text", (N_STATES,), 2), context_s), 0, ()).begin()
    asked = [row for row, each in enumerate(known) for _ in contexts(each, context_s)]
    assert found == [asked]
    assert len(asked) > 4 * len(known)


def test_features_start_with_mean_0_and_spread_1_and_the_classifier_reads_them() -> None:
    torch.manual_seed(0)
    model = BrainToken(preset("rtbrain", (N_STATES,), 2)).eval()
    ids, attributes = torch.randint(1, 5, (40, 64)), torch.randn(40, 64, 3)
    labels = np.arange(40) % 2
    attributes[labels == 1, :, 0] += 1.0
    with torch.no_grad():
        before = model.features(ids, attributes)
        scores = attributes[..., 0].mean(1, keepdim=True).double()
        read_classes(model, before, scores, labels, [f"p{i // 2}" for i in range(40)], 0)
        after = model.features(ids, attributes)
        told = model(ids, attributes).argmax(1).numpy()
    assert before.std(0).max() < 0.8
    torch.testing.assert_close(after.mean(0), torch.zeros(32), atol=1e-3, rtol=0)
    torch.testing.assert_close(after.std(0), torch.ones(32), atol=1e-2, rtol=0)
    assert (told == labels).mean() > 0.9
