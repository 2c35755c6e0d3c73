"""Tokens of a source and the files that they are written to."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rtbrain.errors import SourceError
from rtbrain.messages import Chunk, StreamInfo
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe
from rtbrain.sources.chunking import Source
from rtbrain.tokenizing import tokenize, write_tsv
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
