"""Everything inside rtbrain is in microvolts; a unit that the amplitude contradicts is refused."""

from dataclasses import dataclass, replace

import numpy as np

from rtbrain.config import NotNegative, Positive
from rtbrain.errors import UnitError
from rtbrain.messages import Chunk, FloatArray, StreamInfo

FACTORS = {"V": 1e6, "mV": 1e3, "uV": 1.0, "nV": 1e-3}
"""Microvolts in one of each unit."""


@dataclass(frozen=True)
class UnitSettings:
    """What a plausible EEG amplitude is."""

    low_uv: NotNegative = 0.3
    """Median over channels of the standard deviation in a second: less than this is no EEG in microvolts."""
    high_uv: Positive = 3000.0
    """More than this is no EEG either, even with movement and drifts."""


def amplitude(block: FloatArray) -> float:
    """Return the median over channels of the standard deviation over time of (n, channels) data.

    Offsets do not count, dead channels (constant or not finite) are left out; 0 when all are dead.
    """
    moved = block - np.where(np.isfinite(block[:1]), block[:1], 0.0)
    usable = np.isfinite(moved).all(axis=0)
    spread = moved[:, usable].std(axis=0)
    spread = spread[spread > 0]
    return float(np.median(spread)) if spread.size else 0.0


def plausible_units(block: FloatArray, settings: UnitSettings | None = None) -> list[str]:
    """Return the units in which such data would have the amplitude of EEG, most likely first."""
    settings = settings or UnitSettings()
    spread = amplitude(block)
    fits = [unit for unit, factor in FACTORS.items() if settings.low_uv <= spread * factor <= settings.high_uv]
    typical = np.log(15.0)  # microvolts: the middle of raw scalp EEG on a log scale
    return sorted(fits, key=lambda unit: abs(np.log(spread * FACTORS[unit]) - typical))


class ToMicrovolts:
    """As `data * factor`, over chunks; the first second with a signal is checked against the declared unit."""

    def __init__(self, settings: UnitSettings) -> None:
        self.settings = settings
        self._factor = 1.0
        self._unit = "uV"
        self._block: FloatArray | None = None
        self._filled = 0

    def open(self, info: StreamInfo) -> StreamInfo:
        """Look the factor up; an undeclared unit is refused."""
        if info.unit not in FACTORS:
            raise UnitError(
                f"the unit of the data is {info.unit!r}; declare it as one of {', '.join(FACTORS)} (option --unit)"
            )
        self._unit, self._factor = info.unit, FACTORS[info.unit]
        self._block = np.empty((max(2, round(info.rate_hz)), len(info.channels)))
        self._filled = 0
        return replace(info, unit="uV")

    def process(self, x: Chunk) -> Chunk:
        """Scale the samples."""
        data = x.data * self._factor
        if self._block is not None:
            self._check(data)
        return Chunk(data, x.start, x.times)

    def flush(self) -> list[Chunk]:
        """Nothing is held back."""
        return []

    def _check(self, data: FloatArray) -> None:
        block = self._block
        while block is not None and len(data):
            taken = data[: len(block) - self._filled]
            block[self._filled : self._filled + len(taken)] = taken
            self._filled += len(taken)
            data = data[len(taken) :]
            if self._filled < len(block):
                return
            spread, self._filled = amplitude(block), 0
            if spread == 0.0:
                continue  # nothing to judge yet: all channels flat or lost in this second
            if not self.settings.low_uv <= spread <= self.settings.high_uv:
                guesses = plausible_units(block / self._factor, self.settings)
                hint = f"it would fit {' or '.join(guesses)}" if guesses else "it fits no unit"
                raise UnitError(
                    f"declared as {self._unit}, the signal has a typical amplitude of {spread:.3g} uV, outside "
                    f"{self.settings.low_uv:g} to {self.settings.high_uv:g} uV; {hint}: check the amplifier's or "
                    "the file's unit and state the true one (option --unit)"
                )
            block = self._block = None
