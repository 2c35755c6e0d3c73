"""Small recordings as trials, templates that fit them, and what a cache holds."""

from functools import partial
from pathlib import Path

import numpy as np

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe
from rtbrain.sources.recording import open_recording
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.tokenizing import Tokenized
from rtbrain.training.trials import Trial
from tests.recording_writers import write_edf

SECONDS = 12


def write_eeg(path: Path, seed: int, seconds: float = SECONDS) -> Path:
    source = Synthetic(SyntheticSettings(duration_s=seconds, seed=seed))
    return write_edf(path, np.concatenate([chunk.data for chunk in source.chunks()]).T, source.info.channels)


def trial_of(path: Path, seconds: float = SECONDS) -> Trial:
    return Trial(path.stem, path.stem, (path,), seconds, partial(open_recording, path))


def make_trials(folder: Path, n: int = 3, seconds: float = SECONDS) -> list[Trial]:
    """Write recordings s0, s1 and so on."""
    folder.mkdir(exist_ok=True)
    return [trial_of(write_eeg(folder / f"s{seed}.edf", seed, seconds), seconds) for seed in range(n)]


def make_templates() -> Templates:
    source = Synthetic(SyntheticSettings())
    recipe = Recipe(channels=ChannelSettings(names=source.info.channels))
    return Templates(source.info.channels, (referenced(source.maps),), recipe.to_dict())


def same(a: Tokenized, b: Tokenized) -> bool:
    columns = zip(a.tokens.columns().values(), b.tokens.columns().values(), strict=True)
    plain = [
        {band: each.to_dict() for band, each in result.statistics.items()}
        | {name: getattr(result, name) for name in ("breaks", "info", "continuity", "missing_channels", "bad_share")}
        for result in (a, b)
    ]
    return plain[0] == plain[1] and all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in columns)


def files_of(cache: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in cache.iterdir()}
