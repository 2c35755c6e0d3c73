"""Crops: what a model is trained with is what a live context holds."""

import numpy as np
import pytest

from rtbrain.errors import ConfigError
from rtbrain.messages import Break
from rtbrain.training.batches import (
    TokenSequence,
    collate,
    contexts,
    crops_like,
    cut,
    random_crop,
    seen_s,
    sequence_of,
    training_batches,
)
from rtbrain.training.model_settings import preset
from tests.unit.training.fit_cases import piece, tokenized, trials

MODEL = preset("rtbrain", (2, 2), 2)


def broken(kind: str, at_s: float) -> Break:
    return Break(kind, round(at_s * 100), at_s, 0, "test")  # type: ignore[arg-type]


class TestSequence:
    def test_tokens_without_a_state_are_left_out_and_bands_count_on(self):
        made = sequence_of("t", "p", 1, tokenized([0, 0, 10], [10, 12, 10], [0, 1, -1], bands=[0, 1, 0]), MODEL)
        (only,) = made.pieces
        np.testing.assert_array_equal(only.ids, [1, 4])
        assert only.attributes.shape == (2, 3)
        np.testing.assert_allclose(only.end_s, [0.1, 0.12])
        assert (made.name, made.person, made.label) == ("t", "p", 1)

    def test_a_gap_goes_on_and_a_context_break_begins_a_new_piece(self):
        starts, durations = [0, 10, 30, 40, 300, 310], [10] * 6
        result = tokenized(starts, durations, [0, 1, 0, 1, 0, 1], breaks=[broken("gap", 0.3), broken("context", 3.0)])
        made = sequence_of("t", "p", 0, result, MODEL)
        assert [len(each) for each in made.pieces] == [4, 2]
        np.testing.assert_allclose(made.pieces[1].start_s, [3.0, 3.1])
        assert seen_s(made) == pytest.approx(0.5)

    def test_levels_start_anew_after_a_break_as_they_do_live(self):
        gfp = [np.e, 1.0]
        whole = tokenized([0, 10], [10, 10], [0, 1], bands=[0, 1], gfp=gfp)
        parted = tokenized([0, 10], [10, 10], [0, 1], bands=[0, 1], gfp=gfp, breaks=[broken("gap", 0.1)])
        levels = [sequence_of("t", "p", 0, each, MODEL).pieces[0].attributes[:, 1] for each in (whole, parted)]
        np.testing.assert_allclose(levels[0], [0.0, -0.5], atol=1e-6)
        np.testing.assert_allclose(levels[1], [0.0, 0.0], atol=1e-6)

    def test_a_trial_without_any_state_is_refused_by_name(self):
        with pytest.raises(ConfigError, match="trial 'dull' has no token with a state"):
            sequence_of("dull", "p", 0, tokenized([0], [10], [-1]), MODEL)


class TestCrops:
    def test_a_crop_is_as_long_as_asked_and_comes_from_anywhere(self, rng):
        sequence = TokenSequence("t", "p", 0, (piece(600),))
        crops = [random_crop(sequence, 20.0, rng) for _ in range(300)]
        assert {len(crop) for crop in crops} <= {199, 200, 201}
        starts = np.array([crop.start_s[0] for crop in crops])
        assert starts.min() < 2 < 38 < starts.max() <= 40.1
        assert 17 < starts.mean() < 23

    def test_a_short_piece_is_taken_whole_and_pieces_are_never_joined(self, rng):
        sequence = TokenSequence("t", "p", 0, (piece(50), piece(150, start_s=100.0)))
        crops = [random_crop(sequence, 30.0, rng) for _ in range(200)]
        assert {len(crop) for crop in crops} == {50, 150}
        assert 0.15 < np.mean([len(crop) == 50 for crop in crops]) < 0.35  # by their length

    def test_a_cut_has_at_least_one_token(self):
        whole = piece(10)
        assert len(cut(whole, 0.0, 1e-6)) == 1
        assert len(cut(whole, 99.0, 1.0)) == 1
        np.testing.assert_allclose(cut(whole, 0.2, 0.3).end_s, [0.3, 0.4, 0.5])

    def test_contexts_cover_a_trial_evenly(self):
        sequence = TokenSequence("t", "p", 0, (piece(1000),))
        made = contexts(sequence, 30.0)
        assert len(made) == 4
        assert made[0].start_s[0] == 0
        assert made[-1].end_s[-1] == pytest.approx(100.0)
        assert all(29.8 <= each.end_s[-1] - each.start_s[0] <= 30.01 for each in made)
        assert len(contexts(sequence, 30.0, most=2)) == 2
        assert len(contexts(sequence, 95.0)) == 1

    def test_seconds_count_from_the_beginning_over_all_pieces(self):
        sequence = TokenSequence("t", "p", 0, (piece(100), piece(100, start_s=50.0)))
        (first,) = contexts(sequence, 30.0, seconds=5.0)
        assert len(first) == 50
        both = contexts(sequence, 30.0, seconds=13.0)
        assert [len(each) for each in both] == [100, 30]


class TestBatches:
    def test_every_trial_once_in_batches_of_one_length(self, rng):
        sequences = trials(range(10), each=2, tokens=600)
        lengths = []
        rows = []
        for _ in range(30):
            made = list(training_batches(sequences, 6, (5.0, 60.0), rng))
            rows = sorted(row for batch in made for row in batch.rows)
            assert rows == list(range(20))
            lengths += [int((batch.ids > 0).sum(1).max()) for batch in made]
        lengths = np.array(lengths)
        assert 0.35 < np.mean(lengths == 600) < 0.65
        assert lengths.min() < 80
        assert 0.2 < np.mean(lengths[lengths < 600] < 173) < 0.8  # as many below the geometric middle as above

    def test_no_batch_of_one(self, rng):
        sizes = [len(batch.rows) for batch in training_batches(trials(range(13), each=1), 6, (5.0, 10.0), rng)]
        assert sizes == [6, 7]

    def test_without_prefixes_all_are_long(self, rng):
        for batch in training_batches(trials(range(4), tokens=200), 4, (5.0, 20.0), rng, prefix_share=0.0):
            assert batch.ids.shape[1] == 200

    def test_crops_of_other_people_are_as_many_and_as_long(self, rng):
        known, others = trials(range(8), tokens=600), trials(range(40, 43), tokens=600)
        for batch in training_batches(known, 6, (5.0, 60.0), rng):
            like = crops_like(batch, others, rng)
            assert len(like.rows) == len(batch.rows)
            assert set(like.rows) <= set(range(len(others)))
            assert like.length_s == batch.length_s
            assert abs(like.ids.shape[1] - batch.ids.shape[1]) <= 1

    def test_padding_stands_at_the_end(self):
        batch = collate([piece(3), piece(5)], [7, 2])
        assert batch.ids.shape == (2, 5)
        assert batch.rows == (7, 2)
        assert (batch.ids[0, 3:] == 0).all()
        assert (batch.ids[:, :3] > 0).all()
        assert collate([piece(3, attributes=0)], [0]).attributes is None
