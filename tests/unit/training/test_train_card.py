"""What a bundle says of itself: thresholds that training data pass, and room for the tokens of a context."""

import numpy as np
import pytest

from rtbrain.messages import StreamInfo, Tokens
from rtbrain.tokenizing import Tokenized
from rtbrain.training.batches import TokenSequence
from rtbrain.training.train_card import tokens_at_most, trust_of
from tests.unit.training.fit_cases import piece


def result(gev: np.ndarray, quality: np.ndarray) -> Tokenized:
    """Return tokens of 0.1 s at 100 Hz, a hundred for each stretch of ten seconds."""
    n = 100 * len(gev)
    state, ones = np.zeros(n, np.int64), np.ones(n)
    start = 10 * np.arange(n)
    columns = (ones, 0 * ones, 0.8 * ones, np.repeat(quality, 100), 2 * ones, 2 * np.repeat(gev, 100))
    tokens = Tokens(state, start, np.full(n, 10), *columns, state)
    return Tokenized(tokens, (), StreamInfo(100.0, ("Cz",)), {}, (), {}, {})


def test_all_but_a_twentieth_of_the_training_data_would_be_trusted() -> None:
    gev = np.linspace(0.4, 0.8, 101)
    trust = trust_of([result(gev[:50], np.full(50, 0.6)), result(gev[50:], np.full(51, 1.0))], 60.0, 0.5)
    assert trust.min_gev == pytest.approx(0.42, abs=0.003)
    assert trust.min_quality == 0.6
    assert trust.min_context_s == 10.0


def test_clean_training_data_do_not_ask_for_perfect_caps() -> None:
    clean = [result(np.full(5, 0.7), np.ones(5))]
    assert trust_of(clean, 60.0, 0.5).min_quality == 0.8
    assert trust_of(clean, 60.0, 0.9).min_quality == 0.9  # what the recipe asks for holds in any case
    assert trust_of(clean, 6.0, 0.5).min_context_s == 6.0


def test_every_context_of_the_data_fits_and_faster_ones_too() -> None:
    slow, fast = piece(300), piece(300)
    fast = type(fast)(fast.ids, fast.attributes, fast.start_s / 2, fast.end_s / 2)
    sequences = [TokenSequence("a", "a", 0, (slow,)), TokenSequence("b", "b", 1, (slow, fast))]
    assert tokens_at_most(sequences, 10.0) == pytest.approx(1.25 * 200, abs=3)
    assert tokens_at_most(sequences, 1000.0) == 375
