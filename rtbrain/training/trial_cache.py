"""What a trial alone gives, whoever trains or tests: its band powers and GFP peaks, measured once and kept on disk.

Its samples, cleaned but not yet filtered, are kept in memory as long as there is room for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtbrain.errors import SourceError
from rtbrain.fitting import about, peak_maps
from rtbrain.messages import FloatArray
from rtbrain.pipeline import Recipe
from rtbrain.tokenizing import Cleaned, clean
from rtbrain.training.band_powers import Powers, band_powers
from rtbrain.training.conditioned import Conditioned, conditioned
from rtbrain.training.corpus_cache import trial_keys
from rtbrain.training.datasets.identical import content_hash
from rtbrain.training.trials import Trial
from rtbrain.writing import replacing

Arrays = dict[str, NDArray[Any]]

MADE_BY = {
    "powers": ("training/band_powers.py",),
    "samples": ("training/conditioned.py",),
    "peaks": ("fitting.py",),
}
"""The files that measure what is kept on disk, besides the chain's own."""

MOST_BYTES = 1 << 30
"""Of cleaned samples that a process keeps. What does not fit goes through the whole chain again for every fold."""


@dataclass
class _Memory:
    """Cleaned samples of one set of trials; those of another take their place."""

    content: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trials: dict[str, Cleaned] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        return sum(each.n_bytes for each in self.trials.values())


_memory = _Memory()


@dataclass(frozen=True)
class TrialCache:
    """Files under keys that change with the recording's content, the recipe and the program; see corpus_cache."""

    folder: Path
    content: Mapping[str, tuple[str, ...]]
    """Hashes of each trial's files, by the trial's name."""

    def powers(self, trial: Trial, recipe: Recipe) -> Powers:
        """Return a trial's band powers."""

        def measure() -> Arrays:
            found = band_powers(trial.open(), recipe)
            return {"squares": found.squares, "samples": found.samples}

        return Powers(**self._kept(trial, recipe, "powers", measure))

    def samples(self, trial: Trial, recipe: Recipe) -> Conditioned:
        """Return a trial's conditioned EEG."""

        def measure() -> Arrays:
            found = conditioned(trial.open(), recipe)
            rate = np.array(found.rate_hz)
            return {"data": found.data, "second": found.second, "piece": found.piece, "rate_hz": rate}

        kept = self._kept(trial, recipe, "samples", measure)
        return Conditioned(kept["data"], kept["second"], kept["piece"], float(kept["rate_hz"]))

    def peaks(self, trial: Trial, recipe: Recipe, band: int) -> FloatArray:
        """Return the samples at a trial's GFP peaks, as `rtbrain.fitting.peak_maps` does."""

        def measure() -> Arrays:
            # Half the bits: far finer than the noise of any amplifier.
            return {"maps": peak_maps(trial.open(), recipe, band).astype(np.float32)}

        return self._kept(trial, recipe, f"peaks-{band}", measure)["maps"].astype(np.float64)

    def cleaned(self, trial: Trial, recipe: Recipe) -> Cleaned | None:
        """Return a trial after the first half of the chain, which is the same whatever the bands and templates.

        None where it does not fit into memory: then the whole chain has to be run, which never holds a recording.
        """
        if _memory.content != self.content:
            _memory.content, _memory.trials = self.content, {}
        shared = {name: value for name, value in recipe.to_dict().items() if name != "bands"}
        key = trial_keys({"what": "cleaned", "recipe": shared})(trial, self.content[trial.name])
        if key not in _memory.trials:
            source = trial.open()
            if _memory.n_bytes + 8 * source.n_samples * len(source.info.channels) > MOST_BYTES:
                return None
            _memory.trials[key] = clean(source, recipe)
        return _memory.trials[key]

    def check(self, name: str, content: tuple[str, ...]) -> None:
        """Refuse a trial whose files are not those that the evaluation began with, on this machine or another."""
        if content != self.content[name]:
            raise SourceError(
                "its files are not those that the evaluation began with; leave them alone, and run it again"
            )

    def _kept(self, trial: Trial, recipe: Recipe, what: str, measure: Callable[[], Arrays]) -> Arrays:
        made_by = MADE_BY[what.partition("-")[0]]
        key = trial_keys({"what": what, "recipe": recipe.to_dict()}, made_by)(trial, self.content[trial.name])
        path = self.folder / f"{what}-{key[:32]}.npz"
        found = _read(path, key)
        if found is None:
            with about(trial.name):
                self.check(trial.name, tuple(map(content_hash, trial.files)))
                found = measure()
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary, temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, key=np.array(key), **found)
        return found


def _read(path: Path, key: str) -> Arrays | None:
    """Return what is kept, or None where there is nothing whole; an .npz carries a checksum of every array."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except Exception:  # missing, or damaged in any way: it is measured again
        return None
    return arrays if str(arrays.pop("key", None)) == key else None
