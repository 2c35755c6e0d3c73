"""Recordings that are one under two names, though not byte for byte."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, resample_poly, sosfilt

from rtbrain.errors import SourceError
from rtbrain.messages import StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.sources.recording import open_recording
from rtbrain.training.datasets.arrays import ArraySource
from rtbrain.training.near_identical import near_identical
from rtbrain.training.trials import Trial
from tests.recording_writers import RATE, WRITERS

SECONDS = 80
CHANNELS = 6


def eeg(seed: int, seconds: float = SECONDS) -> np.ndarray:
    """Return (channels, n) microvolts: an alpha rhythm that comes and goes, in noise."""
    rng = np.random.default_rng(seed)
    n = round(seconds * RATE)
    slow, fast = (butter(2, band, "bandpass", fs=RATE, output="sos") for band in ((0.1, 2), (8, 12)))
    waxing = np.exp(3 * sosfilt(slow, rng.normal(size=n)))
    rhythm = sosfilt(fast, rng.normal(size=(3, n))) * waxing
    return rng.normal(size=(CHANNELS, 3)) @ rhythm * 40 + rng.normal(0, 5, (CHANNELS, n))


def trial(name: str, open_: Callable[[], Source], path: Path | None = None) -> Trial:
    return Trial(name.split()[0], name, (path or Path(name),), 60, open_)


def in_memory(name: str, x: np.ndarray, rate_hz: float = RATE) -> Trial:
    info = StreamInfo(rate_hz, tuple(f"E{i}" for i in range(len(x))))
    return trial(name, partial(ArraySource, partial(np.asarray, x), info, x.shape[1]))


ORIGINAL = eeg(0, 120)
COPIES = {
    "gain": (ORIGINAL * 0.13, RATE),
    "polarity and order": (-ORIGINAL[::-1], RATE),
    "reference": (ORIGINAL - ORIGINAL[2], RATE),
    "a channel less": (ORIGINAL[:-1], RATE),
    "rounded": (np.round(ORIGINAL), RATE),
    "begins later": (ORIGINAL[:, round(7.013 * RATE) :], RATE),
    "begins much later": (ORIGINAL[:, round(45.5 * RATE) :], RATE),
    "another rate": (resample_poly(ORIGINAL, 4, 5, axis=1), 0.8 * RATE),
    "another filter": (sosfilt(butter(2, (1, 40), "bandpass", fs=RATE, output="sos"), ORIGINAL), RATE),
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_found(how: str) -> None:
    x, rate_hz = COPIES[how]
    others = [in_memory(f"other{seed} rest", eeg(seed)) for seed in (1, 2)]
    found, problems = near_identical([in_memory("p rest", ORIGINAL), *others, in_memory("q rest", x, rate_hz)])
    assert problems == []
    (pair,) = found
    assert (pair.first.name, pair.second.name, pair.subjects) == ("p rest", "q rest", ("p", "q"))
    later = {"begins later": 7.013, "begins much later": 45.5}
    assert pair.shift_s == pytest.approx(later.get(how, 0), abs=0.05)
    exactly = how in ("gain", "polarity and order", "reference")
    assert pair.correlation > (0.999 if exactly else 0.8), "also where only a part of it is in both"


def test_a_copy_that_begins_earlier_is_found() -> None:
    first, second = in_memory("p rest", ORIGINAL[:, 10 * RATE :]), in_memory("q rest", ORIGINAL)
    (pair,), _ = near_identical([first, second])
    assert pair.shift_s == -10


@pytest.mark.parametrize("suffix", [".bdf", ".vhdr", ".set", "_raw.fif"])
def test_a_copy_in_another_format_is_found(suffix: str, tmp_path: Path) -> None:
    x = eeg(3, 60)
    names = [f"E{i}" for i in range(CHANNELS)]
    paths = [WRITERS[end](tmp_path / f"{name}{end}", x, names) for name, end in (("p", ".edf"), ("q", suffix))]
    (pair,), _ = near_identical([trial(path.stem, partial(open_recording, path), path) for path in paths])
    assert pair.correlation > 0.95


def test_different_recordings_are_not_confused_even_with_one_strong_line() -> None:
    trials = []
    for seed in range(12):
        x = eeg(seed + 10, 60)
        line = np.sin(2 * np.pi * 5 * np.arange(x.shape[1]) / RATE + seed)
        trials.append(in_memory(f"s{seed} rest", x + np.arange(0, 300 * CHANNELS, 300)[:, np.newaxis] * line))
    assert near_identical(trials) == ([], [])


def test_several_trials_of_a_file_are_one_recording() -> None:
    path = Path("whole.dat")
    parts = [in_memory(f"p {i}", ORIGINAL[:, i * 30 * RATE :][:, : 30 * RATE]) for i in range(3)]
    parts = [trial(part.name, part.open, path) for part in parts]
    (pair,), _ = near_identical([*parts, in_memory("q rest", ORIGINAL)])
    assert (pair.first, pair.second.name) == (path, "q rest")


def test_what_is_too_short_or_flat_is_not_compared() -> None:
    short = [in_memory(f"{name} rest", ORIGINAL[:, : 20 * RATE]) for name in "pq"]
    flat = [in_memory(f"{name} flat", np.zeros((CHANNELS, 60 * RATE))) for name in "pq"]
    assert near_identical([*short, *flat]) == ([], [])
    assert near_identical([]) == ([], [])


def test_what_cannot_be_read_is_reported_and_the_rest_compared() -> None:
    def broken() -> Source:
        raise SourceError("cut short; copy it again")

    found, (problem,) = near_identical(
        [trial("x rest", broken), in_memory("p rest", ORIGINAL), in_memory("q rest", ORIGINAL)]
    )
    assert (problem.where, problem.what) == ("x rest", "cut short; copy it again")
    assert len(found) == 1


@pytest.mark.slow
def test_real_recordings(data: Path) -> None:
    """All recordings of depression and arithmetic, and three that come again: cut, quieter, and in another format."""
    paths = [*sorted((data / "mdd").glob("*.edf")), *sorted((data / "eegmat").glob("*.edf"))]
    trials = [trial(path.stem, partial(open_recording, path), path) for path in paths]
    source = open_recording(data / "mdd/MDD S24 EC.edf")
    x = np.concatenate([chunk.data for chunk in source.chunks()]).T * 1e6
    rate_hz = source.info.rate_hz
    copies = [
        in_memory("cut", x[:, round(12.345 * rate_hz) :], rate_hz),
        in_memory("quieter", np.round(x * 0.3), rate_hz),
        in_memory("average", x - x.mean(axis=0), rate_hz),
    ]
    found, problems = near_identical([*trials, *copies])
    assert problems == []
    names = {"MDD S24 EC.edf", "cut", "quieter", "average"}
    assert {name for pair in found for name in (pair.first.name, pair.second.name)} == names
    assert len(found) == 6
