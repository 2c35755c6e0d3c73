"""What a model reads of tokens, over batches and at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtbrain.errors import ConfigError
from rtbrain.messages import NO_TOKENS, Tokens
from rtbrain.tokens.inputs import ATTRIBUTES, Inputs, TokenInputs, Vocabulary

VOCABULARY = Vocabulary((4, 2, 3))


def tokens(n: int, seed: int = 0) -> Tokens:
    rng = np.random.default_rng(seed)
    band = rng.integers(0, 3, n)
    state = rng.integers(-1, np.array(VOCABULARY.states)[band])
    gfp = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(1, 9, n))
    gfp_rel = np.where(gfp > 0, rng.standard_normal(n), 0.0)
    start = np.cumsum(rng.integers(1, 9, n))
    return Tokens(state, start, rng.integers(1, 30, n), gfp, gfp_rel, rng.random(n), *rng.random((3, n)), band)


def reader(*names: str) -> TokenInputs:
    return TokenInputs(VOCABULARY, names or tuple(ATTRIBUTES), rate_hz=250.0)


def test_ids_count_through_the_states_of_all_bands() -> None:
    band = np.array([0, 0, 1, 1, 2, 2])
    state = np.array([0, 3, 0, 1, 0, 2])
    assert VOCABULARY.ids(band, state).tolist() == [1, 4, 5, 6, 7, 9]
    assert VOCABULARY.size == 11


@pytest.mark.parametrize(("band", "state"), [(3, 0), (-1, 0), (0, 4), (1, 2), (2, -1)])
def test_tokens_of_other_templates_are_refused(band: int, state: int) -> None:
    with pytest.raises(ConfigError, match="templates that it was trained with"):
        VOCABULARY.ids(np.array([0, band]), np.array([0, state]))


def test_attributes_are_what_their_names_say() -> None:
    x = tokens(200)
    got = reader()(x)
    kept = x.take(x.state >= 0)
    assert len(got) == len(kept) < 200
    assert got.ids.tolist() == VOCABULARY.ids(kept.band, kept.state).tolist()
    columns = dict(zip(ATTRIBUTES, got.attributes.T, strict=True))
    np.testing.assert_allclose(columns["log_duration"], np.log(kept.duration / 250), rtol=1e-6)
    np.testing.assert_allclose(columns["gfp_rel"], kept.gfp_rel, rtol=1e-6)
    np.testing.assert_allclose(columns["corr"], kept.corr, rtol=1e-6)
    np.testing.assert_allclose(got.start_s, kept.start / 250)
    np.testing.assert_allclose(got.end_s, (kept.start + kept.duration) / 250)


def test_the_level_is_relative_to_the_mean_of_all_bands() -> None:
    x = tokens(200)
    levels: dict[int, float] = {}
    expected = []
    for token in x:
        if token.gfp > 0:
            levels[token.band] = np.log(token.gfp) - token.gfp_rel
        if token.state >= 0:
            expected.append(np.log(token.gfp) - np.mean(list(levels.values())) if token.gfp > 0 else 0.0)
    np.testing.assert_allclose(reader("level")(x).attributes[:, 0], expected, rtol=0, atol=1e-6)


def test_a_gain_changes_no_level_and_a_louder_band_does() -> None:
    x = tokens(100)
    louder = Tokens(**x.columns() | {"gfp": 3 * x.gfp})
    np.testing.assert_allclose(reader()(louder).attributes, reader()(x).attributes, atol=1e-5)
    shifted = Tokens(**x.columns() | {"gfp": np.where(x.band == 1, 3.0, 1.0) * x.gfp})
    moved = reader("level")(shifted).attributes - reader("level")(x).attributes
    labelled = x.take(x.state >= 0)
    late = np.arange(len(labelled)) > 20
    assert (moved[late & (labelled.band == 1) & (labelled.gfp > 0)] > 0.5).all()
    assert (moved[late & (labelled.band == 0) & (labelled.gfp > 0)] < -0.3).all()


def test_with_one_band_level_and_gfp_rel_are_the_same() -> None:
    x = tokens(80)
    one = x.take((x.band == 0) & (x.gfp > 0))
    got = TokenInputs(Vocabulary((4,)), ("gfp_rel", "level"), 250.0)(one)
    np.testing.assert_allclose(got.attributes[:, 0], got.attributes[:, 1], atol=1e-6)


@given(sizes=st.lists(st.integers(0, 20), max_size=20), seed=st.integers(0, 50))
def test_batches_change_nothing(sizes: list[int], seed: int) -> None:
    x = tokens(60, seed)
    whole = reader()(x)
    cutter, parts, at = reader(), [], 0
    for size in [*sizes, 60]:
        parts.append(cutter(x.take(slice(at, at + size))))
        at += size
    for name in Inputs.__dataclass_fields__:
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


def test_a_reset_forgets_the_levels() -> None:
    x = tokens(30)
    used = reader()
    used(x)
    used.reset()
    np.testing.assert_array_equal(used(x).attributes, reader()(x).attributes)


def test_no_tokens_give_no_inputs_and_unknown_attributes_are_refused() -> None:
    empty = reader()(NO_TOKENS)
    assert empty.attributes.shape == (0, 4)
    with pytest.raises(ConfigError, match="choose from log_duration"):
        reader("colour")
