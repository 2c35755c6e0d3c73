"""The stage contract, for every stage: cuts do not matter, inputs stay as they are, reopened is as new."""

import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rtbrain
from rtbrain.messages import Break
from rtbrain.tokens.runs import MergeRuns
from tests.contract.cases import CASES, Case
from tests.streams import assert_same, cut, random_sizes

each_stage = pytest.mark.parametrize("case", CASES, ids=str)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def as_list(answer: Any) -> list[Any]:
    assert answer is not None
    return answer if isinstance(answer, list) else [answer]


def feed(stage: Any, messages: list[Any]) -> list[Any]:
    return [item for message in messages for item in as_list(stage.process(message))]


def whole(case: Case, messages: list[Any]) -> list[Any]:
    stage = case.make()
    stage.open(case.info)
    return feed(stage, messages) + as_list(stage.flush())


@each_stage
@given(seed=st.integers(0, 2**32 - 1))
@QUICK
def test_cuts_do_not_matter(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    messages = case.stream(700, rng)
    pieces = [piece for message in messages for piece in cut(message, random_sizes(len(message), rng))]
    assert_same(whole(case, pieces), whole(case, messages))


@each_stage
def test_empty_chunks_are_taken(case: Case, rng: np.random.Generator) -> None:
    messages = case.stream(300, rng)
    stage = case.make()
    stage.open(case.info)
    empty = next(cut(messages[0], [0]))
    out = as_list(stage.process(empty))
    assert all(len(item) == 0 for item in out)
    assert_same(out + feed(stage, messages) + as_list(stage.flush()), whole(case, messages))


@each_stage
def test_nothing_at_all_can_be_flushed(case: Case) -> None:
    stage = case.make()
    stage.open(case.info)
    assert all(len(item) == 0 for item in as_list(stage.flush()))


@each_stage
def test_input_is_neither_changed_nor_kept(case: Case, rng: np.random.Generator) -> None:
    messages = case.stream(600, rng)
    expected = whole(case, messages)
    stage = case.make()
    stage.open(case.info)
    out: list[Any] = []
    for message in messages:
        for piece in cut(message, [7] * (len(message) // 7)):
            arrays = buffers(piece)
            for array in arrays:
                array.flags.writeable = False  # a write into the input raises
            out += [copied(item) for item in as_list(stage.process(piece))]
            for array in arrays:
                array.flags.writeable = True
                array[...] = 0  # as a live buffer that is used again
    assert_same(out + as_list(stage.flush()), expected)


@each_stage
def test_reopened_is_as_new(case: Case, rng: np.random.Generator) -> None:
    first, second = case.stream(500, rng), case.stream(500, rng)
    stage = case.make()
    stage.open(case.info)
    feed(stage, first)
    stage.open(case.info)
    assert_same(feed(stage, second) + as_list(stage.flush()), whole(case, second))


@each_stage
def test_state_is_bounded(case: Case, rng: np.random.Generator) -> None:
    largest = []
    for n in (2_000, 20_000):
        stage = case.make()
        stage.open(case.info)
        sizes = [0]
        for message in case.stream(n, rng):
            for piece in cut(message, [50] * (len(message) // 50)):
                stage.process(piece)
                sizes.append(state_bytes(stage))
        largest.append(max(sizes))
    assert largest[1] <= 1.5 * largest[0] + 2_000


@pytest.mark.parametrize("case", [case for case in CASES if case.waits], ids=str)
def test_declared_wait_is_true(case: Case, rng: np.random.Generator) -> None:
    stage = case.make()
    opened = stage.open(case.info)
    declared = round((opened.wait_s - case.info.wait_s) * opened.rate_hz)
    ratio = case.info.rate_hz / opened.rate_hz
    messages = case.stream(600, rng)
    seen = known = messages[0].start
    longest = 0
    for message in messages:
        for piece in cut(message, [1] * len(message)):
            seen += len(piece)
            for item in as_list(stage.process(piece)):
                known = max(known, stage.until if isinstance(stage, MergeRuns) else item.start + len(item))
            longest = max(longest, int(np.ceil(seen / ratio)) - known)
    assert longest == declared


def test_completeness() -> None:
    """Every class of the package that has a stage's three calls is in CASES."""
    stages = set()
    for module in pkgutil.walk_packages(rtbrain.__path__, "rtbrain."):
        for _, each in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            is_stage = all(callable(getattr(each, name, None)) for name in ("open", "process", "flush"))
            if is_stage and each.__module__.startswith("rtbrain.") and not getattr(each, "_is_protocol", False):
                stages.add(each)
    assert stages == {case.stage for case in CASES}


def fields(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in type(message).__dataclass_fields__}


def buffers(message: Any) -> list[np.ndarray]:
    """Return what a live source would use again for its next chunk (masks are the sender's own state)."""
    shared = {"good", "fresh"}
    return [v for k, v in fields(message).items() if isinstance(v, np.ndarray) and k not in shared]


def copied(message: Any) -> Any:
    if isinstance(message, Break):
        return message
    values = fields(message)
    return type(message)(**{k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()})


def state_bytes(thing: Any, seen: set[int] | None = None) -> int:
    """Return the size of all arrays that an object holds on to, the bases of views included."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes + (state_bytes(thing.base, seen) if thing.base is not None else 0)
    if isinstance(thing, dict):
        return sum(state_bytes(value, seen) for value in thing.values())
    if isinstance(thing, list | tuple):
        return 8 * len(thing) + sum(state_bytes(value, seen) for value in thing)
    if hasattr(thing, "__dataclass_fields__"):
        return state_bytes(fields(thing), seen)
    return state_bytes(vars(thing), seen) if hasattr(thing, "__dict__") and not isinstance(thing, type) else 0
