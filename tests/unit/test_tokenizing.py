"""Tokens of a source and the files that they are written to."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtbrain.conditioning.filters import Band
from rtbrain.conditioning.lines import LineSettings
from rtbrain.errors import SourceError
from rtbrain.messages import NO_TOKENS, Chunk, StreamInfo, Token
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import HarmoniseSettings, Recipe
from rtbrain.sources.chunking import Source
from rtbrain.tokenizing import clean, tokenize, tokenize_cleaned, write_tsv
from rtbrain.writing import replacing
from tests.contract.cases import templates
from tests.streams import NAMES, eeg


class Stamped(Source):
    """Samples with time stamps, in one block."""

    def __init__(self, data: np.ndarray, times: np.ndarray, rate_hz: float) -> None:
        self.info, self.n_samples = StreamInfo(rate_hz, NAMES), len(data)
        self._data, self._times = data, times

    def _produce(self) -> Iterator[Chunk]:
        yield Chunk(self._data, times=self._times)


@pytest.fixture
def fitted() -> Templates:
    return Templates(NAMES, templates().maps, Recipe().to_dict())


def test_times_are_seconds_of_the_source_also_after_decimation(
    fitted: Templates, tmp_path: Path, rng: np.random.Generator
) -> None:
    rate_hz = 500.0  # tokens are made at 250 Hz
    data, times = eeg(5000, rng, rate_hz=rate_hz), np.arange(5000) / rate_hz
    times[2001:] += 1.0
    result = tokenize(Stamped(data, times, rate_hz), fitted)
    card = write_tsv(tmp_path / "tokens.tsv", result, fitted, "made up")
    (found,) = json.loads(card.read_text())["breaks"]
    assert found["onset"] == pytest.approx(2501 / rate_hz)
    onsets = [float(line.split("\t")[0]) for line in (tmp_path / "tokens.tsv").read_text().splitlines()[1:]]
    assert min(onset for onset in onsets if onset > 5) == pytest.approx(2501 / rate_hz + 1.0, abs=2 / 250)


def test_a_recording_of_nothing_but_nan_is_refused(fitted: Templates) -> None:
    data = np.full((2000, len(NAMES)), np.nan)
    with pytest.raises(SourceError, match="Fp1"):
        tokenize(Stamped(data, np.arange(2000) / 250, 250.0), fitted)


def test_the_chain_in_two_halves_gives_what_the_whole_one_gives(rng: np.random.Generator) -> None:
    rate_hz = 500.0
    data, times = eeg(12000, rng, rate_hz=rate_hz), np.arange(12000) / rate_hz
    times[6001:] += 1.0
    data[3000:3100, 2] = np.nan
    bands = (Band("low", 2, 12), Band("high", 12, 30))
    harmonised = HarmoniseSettings(2, high_hz=30, lines=LineSettings(window_s=4))
    for recipe in (Recipe(), Recipe(bands=bands, harmonise=harmonised, warmup_ms=4000)):
        fitted = Templates(NAMES, templates().maps * len(recipe.bands), recipe.to_dict())
        whole = tokenize(Stamped(data, times, rate_hz), fitted)
        halves = tokenize_cleaned(clean(Stamped(data, times, rate_hz), recipe), fitted)
        assert len(whole.breaks) == 1
        for name in Token.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(whole.tokens, name), getattr(halves.tokens, name), name)
        empty = {"tokens": NO_TOKENS, "statistics": {}}
        assert replace(whole, **empty) == replace(halves, **empty)


def fail_while_writing(path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text("new, but not all of it")
        raise ZeroDivisionError


def test_a_file_is_never_half_written(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        fail_while_writing(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
