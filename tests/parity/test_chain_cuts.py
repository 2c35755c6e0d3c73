"""Law 2 for the whole chain: faults and cuts of every kind, and the tokens stay the same."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rtbrain.messages import Break, StreamInfo, Tokens
from rtbrain.pipeline import build
from tests.contract.cases import RECIPES, templates
from tests.streams import NAMES, assert_same, cut, faulty, random_sizes

SEEDS = st.integers(0, 2**32 - 1)


def check(seed: int) -> int:
    rng = np.random.default_rng(seed)
    recipe = RECIPES[str(rng.choice(list(RECIPES)))]
    rate_hz = float(rng.choice([160.0, 250.0, 500.0, 1000.0]))
    info = StreamInfo(rate_hz, NAMES)
    stream = faulty(round(4 * rate_hz), rng, rate_hz)
    outputs = []
    for pieces in ([stream], cut(stream, random_sizes(len(stream), rng))):
        chain = build(recipe, templates(len(recipe.bands)))
        chain.open(info)
        outputs.append([item for piece in pieces for item in chain.process(piece)] + chain.flush())
    assert_same(outputs[1], outputs[0])
    assert_tiled(outputs[0])
    return sum(len(item) for item in outputs[0] if isinstance(item, Tokens))


def assert_tiled(output: list[Tokens | Break]) -> None:
    """Between two breaks the tokens of a band follow each other without hole or overlap."""
    ends: dict[int, int] = {}
    for item in output:
        if isinstance(item, Break):
            ends.clear()
            continue
        for token in item:
            assert token.duration > 0
            assert token.start == ends.get(token.band, token.start)
            ends[token.band] = token.start + token.duration


def test_the_streams_of_these_tests_do_give_tokens() -> None:
    assert sum(check(seed) > 20 for seed in range(10)) >= 7


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_cuts_and_faults(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@given(seed=SEEDS)
@example(seed=0)
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
def test_cuts_and_faults_at_length(seed: int) -> None:
    check(seed)
