"""The rolling context: which tokens an answer rests on, and that it is the whole model's answer for them."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtbrain.decoder.session import StepModel, load_step
from rtbrain.errors import ConfigError
from rtbrain.tokens.context import Answer, RollingContext
from rtbrain.training.export import export
from rtbrain.training.model import BrainToken
from tests.unit.training.model_cases import probabilities, random_model, tokens_for

T_MAX = 40


@pytest.fixture(scope="module")
def model() -> BrainToken:
    return random_model("rtbrain", scale=3.0, window=4, width=8, heads=2, head_width=4, hidden=8)


@pytest.fixture(scope="module")
def step(model: BrainToken, tmp_path_factory: pytest.TempPathFactory) -> StepModel:
    folder = tmp_path_factory.mktemp("bundle")
    export(model, folder, T_MAX)
    return load_step(folder / "step.onnx", "cpu")


def contexts(step: StepModel) -> Callable[[float | None], RollingContext]:
    return lambda context_s: RollingContext(step.stream(), step.stream(), context_s)


def feed(
    context: RollingContext, model: BrainToken, durations: list[float], pauses: dict[int, float] | None = None
) -> list[Answer]:
    """Push tokens of these durations, check every answer against the whole model, and return them."""
    ids, attributes = tokens_for(model, len(durations))
    now, spans, answers = 0.0, [], []
    for n, duration in enumerate(durations, 1):
        now += (pauses or {}).get(n, 0.0)
        spans.append((now, now + duration))
        context.push(ids[n - 1], attributes[n - 1], *spans[-1])
        now += duration
        answer = context.answer()
        assert answer is not None
        rows = slice(n - answer.n_tokens, n)
        np.testing.assert_allclose(
            answer.probabilities, probabilities(model, ids[rows], attributes[rows]), rtol=0, atol=1e-5
        )
        assert (answer.start_s, answer.end_s) == (spans[rows.start][0], spans[-1][1])
        answers.append(answer)
    return answers


@given(
    durations=st.lists(st.floats(0.02, 0.5), min_size=1, max_size=120),
    context_s=st.none() | st.floats(1.0, 8.0),
    pauses=st.dictionaries(st.integers(1, 100), st.floats(0.0, 20.0), max_size=3),
)
@settings(max_examples=25, deadline=None)
def test_every_answer_is_the_whole_models_on_the_tokens_it_names(
    step: StepModel, model: BrainToken, durations: list[float], context_s: float | None, pauses: dict[int, float]
) -> None:
    answers = feed(contexts(step)(context_s), model, durations, pauses)
    for answer in answers:
        assert 1 <= answer.n_tokens <= T_MAX
        if context_s is not None:
            assert answer.end_s - answer.start_s <= context_s


@pytest.mark.slow
@given(durations=st.lists(st.floats(0.1, 0.3), min_size=60, max_size=90), context_s=st.floats(1.0, 3.5))
@settings(max_examples=15, deadline=None)
def test_answers_rest_on_half_to_all_of_the_context(
    step: StepModel, model: BrainToken, durations: list[float], context_s: float
) -> None:
    for answer in feed(contexts(step)(context_s), model, durations):
        span = answer.end_s - answer.start_s
        assert span <= context_s
        assert answer.start_s == 0 or span >= context_s / 2 - max(durations)


def test_without_a_time_the_models_capacity_counts(step: StepModel, model: BrainToken) -> None:
    counts = [answer.n_tokens for answer in feed(contexts(step)(None), model, [0.1] * 130)]
    assert counts[:T_MAX] == list(range(1, T_MAX + 1))
    assert min(counts[T_MAX:]) > T_MAX / 2
    assert max(counts) == T_MAX
    assert counts[T_MAX] < T_MAX  # the younger took over


def test_the_switch_comes_exactly_when_the_older_is_full(step: StepModel, model: BrainToken) -> None:
    answers = feed(contexts(step)(2.0), model, [0.25] * 20)
    # Eight tokens fill 2 s; the fifth begins in the middle and is the younger's first.
    assert [answer.n_tokens for answer in answers] == [1, 2, 3, 4, 5, 6, 7, 8, *([5, 6, 7, 8] * 3)]
    assert [answer.start_s for answer in answers[7:9]] == [0.0, 1.0]


def test_a_long_pause_leaves_only_what_came_after_it(step: StepModel, model: BrainToken) -> None:
    answers = feed(contexts(step)(2.0), model, [0.25] * 12, pauses={8: 100.0})
    assert answers[6].n_tokens == 7
    assert answers[7].n_tokens == 1
    assert answers[7].start_s == pytest.approx(101.75)


def test_a_token_longer_than_the_context_still_counts(step: StepModel, model: BrainToken) -> None:
    assert [answer.n_tokens for answer in feed_long(step, model)] == [1, 1, 2]


def feed_long(step: StepModel, model: BrainToken) -> list[Answer]:
    context = contexts(step)(1.0)
    ids, attributes = tokens_for(model, 3)
    answers = []
    for i, span in enumerate([(0.0, 5.0), (5.0, 5.2), (5.2, 5.4)]):
        context.push(ids[i], attributes[i], *span)
        answer = context.answer()
        assert answer is not None
        answers.append(answer)
    return answers


def test_tokens_of_bands_overlap_in_time(step: StepModel, model: BrainToken) -> None:
    context = contexts(step)(10.0)
    ids, attributes = tokens_for(model, 2)
    context.push(ids[0], attributes[0], 1.0, 1.1)
    context.push(ids[1], attributes[1], 0.4, 1.2)
    answer = context.answer()
    assert answer is not None
    assert (answer.start_s, answer.end_s, answer.n_tokens) == (0.4, 1.2, 2)


def test_gaps_are_counted_where_they_lie_and_leave_with_their_tokens(step: StepModel, model: BrainToken) -> None:
    context = contexts(step)(2.0)
    ids, attributes = tokens_for(model, 30)
    gaps = []
    context.mark_gap()  # before the first token nothing is missing between tokens
    for i in range(30):
        context.push(ids[i], attributes[i], 0.25 * i, 0.25 * (i + 1))
        if i == 2:
            context.mark_gap()
        if i == 5:
            context.mark_gap()
        answer = context.answer()
        assert answer is not None
        gaps.append(answer.gaps)
    assert gaps[:8] == [0, 0, 1, 1, 1, 2, 2, 2]
    assert gaps[8] == 1  # the younger one began between the two
    assert gaps[-1] == 0


def test_a_reset_begins_a_new_context(step: StepModel, model: BrainToken) -> None:
    context = contexts(step)(2.0)
    assert context.answer() is None
    feed(context, model, [0.3] * 20)
    context.reset()
    assert context.answer() is None
    assert feed(context, model, [0.3])[0].n_tokens == 1


def test_contexts_that_cannot_work_are_refused(step: StepModel) -> None:
    one = step.stream()
    with pytest.raises(ConfigError, match="two streams"):
        RollingContext(one, one, 10.0)
    for context_s in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match="context_s"):
            contexts(step)(context_s)
