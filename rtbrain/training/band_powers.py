"""Power of the conditioned EEG in each band and channel, second by second."""

from dataclasses import dataclass

import numpy as np

from rtbrain.messages import Break, FloatArray
from rtbrain.pipeline import Recipe, build, run
from rtbrain.sources.chunking import Source


@dataclass(frozen=True)
class Powers:
    """Sums over the good samples of each second after the warm-up; filled-in samples count for nothing."""

    squares: FloatArray  # (seconds, bands, channels) microvolts squared
    samples: FloatArray  # (seconds, bands, channels)

    def mean(self, seconds: float | None = None) -> FloatArray:
        """Return (bands, channels) the mean power of the first seconds; NaN where a channel had no good sample."""
        n = len(self.squares) if seconds is None else max(1, int(seconds))
        counts = self.samples[:n].sum(axis=0)
        power: FloatArray = np.where(counts > 0, self.squares[:n].sum(axis=0) / np.maximum(counts, 1), np.nan)
        return power


def band_powers(source: Source, recipe: Recipe) -> Powers:
    """Measure a source through the chain, in every band of a recipe that names its channels."""
    warmup_s = recipe.warmup_ms / 1000
    n_seconds = max(1, int(np.ceil(source.duration_s - warmup_s)))
    squares = np.zeros((n_seconds, len(recipe.bands), len(recipe.channels.names)))
    samples = np.zeros_like(squares)
    for band in range(len(recipe.bands)):
        chain = build(recipe, upto="samples", band=band)
        info = chain.open(source.info)
        at = [recipe.channels.names.index(name) for name in info.channels]
        for item in run(chain, source.chunks()):
            if isinstance(item, Break) or item.filled or not len(item):
                continue
            good = np.ones(len(at)) if item.good is None else item.good.astype(float)
            second = ((item.start + np.arange(len(item))) / info.rate_hz - warmup_s).astype(np.int64)
            second = np.clip(second, 0, n_seconds - 1)
            for each in np.unique(second):
                own = item.data[second == each]
                squares[each, band, at] += good * np.where(good > 0, own**2, 0.0).sum(axis=0)
                samples[each, band, at] += good * len(own)
    return Powers(squares, samples)
