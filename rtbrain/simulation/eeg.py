"""EEG of a sequence of states, block by block: the same numbers at every pass, and never a whole recording at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rtbrain.messages import Chunk, FloatArray, IntArray, StreamInfo
from rtbrain.simulation.confound import Confound, Recorder
from rtbrain.simulation.head import N_NOISE_SOURCES, Head
from rtbrain.simulation.population import Design, Traits
from rtbrain.simulation.seeding import generator
from rtbrain.simulation.states import Stretch, timeline
from rtbrain.sources.chunking import Source
from rtbrain.sources.noise import Pink

BLOCK_S: Final = 4.0
"""Part of what a seed means, like everything that is drawn block by block."""
_KNOTS: Final = 16
"""Points per block between which amplitude and drifts are interpolated."""
_BLINK_S: Final = 0.35


@dataclass(frozen=True)
class Interval:
    """A stretch of a recording and its label; None for rest."""

    start_s: float
    stop_s: float
    label: int | None


@dataclass(frozen=True, eq=False)
class Signal:
    """One simulated recording or trial; made by `World`."""

    channels: tuple[str, ...]
    rate_hz: float
    n_samples: int
    truth: tuple[Interval, ...]
    """What happens when, without gaps from 0 to the end."""
    design: Design
    head: Head
    traits: tuple[Traits, ...]
    """Of each interval."""
    seed: int
    key: tuple[int, int]
    """Subject and recording."""
    amplitude_uv: float
    alpha_hz: float
    confound: Confound | None = None

    def chunks(self) -> Iterator[FloatArray]:
        """Give the recording from its beginning, (n, channels) in microvolts, 4 s at a time."""
        return (data for data, _ in self.blocks())

    @property
    def states(self) -> IntArray:
        """True state of every sample, (n_samples,); computed anew, without the data."""
        return np.concatenate([states for states, _ in self._carried()])

    def source(self) -> "SignalSource":
        """Return the recording as a source for the chain."""
        return SignalSource(self)

    def blocks(self) -> Iterator[tuple[FloatArray, IntArray]]:
        """As `chunks`, each with the true state of every row, (n,)."""
        look, n_channels = self.design.eeg, len(self.channels)
        rng = generator(self.seed, "noise", *self.key)
        recorder_rng = generator(self.seed, "confound", *self.key)
        recorder = self.confound and Recorder(self.confound, self.rate_hz, n_channels, recorder_rng)
        electrodes = _Electrodes(self, generator(self.seed, "electrodes", *self.key))
        brain = Pink(N_NOISE_SOURCES, look.brain_noise * self.amplitude_uv)
        level = _Wander(1, 1.0, rng)
        rows = _block_rows(self.rate_hz)
        start = 0
        for states, carrier in self._carried():
            n = len(states)
            # Whole blocks are drawn, and cut: what is drawn does not depend on the length.
            loud = self.amplitude_uv * np.sqrt(2.0) * np.exp(0.3 * level.next(rows)[:n, 0] - 0.09)
            data = self.head.maps[states] * (carrier * loud)[:, None]  # (n, channels)
            data += brain(rng.standard_normal((N_NOISE_SOURCES, rows))).T[:n] @ self.head.noise
            data += self._blinks(rows, rng)[:n, None] * self.head.blink
            data = electrodes(data, start)
            yield (recorder(data, start) if recorder else data), states
            start += n

    def _carried(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Give, block by block, the state of every row and the oscillation that carries it, of amplitude 1.

        Each run holds whole half waves, as many as fit alpha best: the field vanishes where the state changes.
        """
        parts = self._timeline()
        held = next(parts)
        start, rows = 0, _block_rows(self.rate_hz)
        while start < self.n_samples:
            times = np.arange(start, min(self.n_samples, start + rows)) / self.rate_hz
            while held.stop[-1] <= times[-1] and (more := next(parts, None)) is not None:
                held = held.joined(more)
            run = np.searchsorted(held.start, times, side="right") - 1
            duration = held.stop - held.start
            half_waves = np.maximum(1.0, np.rint(2 * self.alpha_hz * duration))
            within = (times - held.start[run]) / duration[run]
            yield held.state[run], held.sign[run] * np.sin(np.pi * half_waves[run] * within)
            held = held.after(int(run[-1]))
            start += len(times)

    def _timeline(self) -> Iterator[Stretch]:
        for i, (part, traits) in enumerate(zip(self.truth, self.traits, strict=True)):
            rng = generator(self.seed, "states", *self.key, i)
            yield from timeline(self.design, traits, part.start_s, part.stop_s, rng)

    def _blinks(self, rows: int, rng: np.random.Generator) -> FloatArray:
        """Return the blinks of one block, (rows,) in microvolts at Fpz; none crosses its borders."""
        look = self.design.eeg
        wave = np.zeros(rows)
        width = max(2, round(_BLINK_S * self.rate_hz))
        # Quick to close, slower to open.
        shape = np.sin(np.pi * np.linspace(0, 1, width) ** 0.7) ** 2
        for _ in range(int(rng.poisson(look.blinks_per_minute * BLOCK_S / 60))):
            at = int(rng.integers(0, max(1, rows - width)))
            wave[at : at + width] += look.blink_uv * rng.uniform(0.6, 1.4) * shape[: rows - at]
        return wave


class SignalSource(Source):
    """A simulated recording as a source."""

    def __init__(self, simulated: Signal) -> None:
        self.simulated = simulated
        self.info = StreamInfo(simulated.rate_hz, simulated.channels, "uV")
        self.n_samples = simulated.n_samples

    def _produce(self) -> Iterator[Chunk]:
        start = 0
        for data in self.simulated.chunks():
            yield Chunk(data, start, np.arange(start, start + len(data)) / self.info.rate_hz)
            start += len(data)


class _Electrodes:
    """What the electrodes add by themselves, over blocks: noise, hum, drifts, and lost contact."""

    def __init__(self, made: Signal, rng: np.random.Generator) -> None:
        look, n = made.design.eeg, len(made.channels)
        self._look, self._rng, self._rate_hz, self._rows = look, rng, made.rate_hz, _block_rows(made.rate_hz)
        self._hum_uv = look.line_uv * np.exp(0.5 * rng.standard_normal()) * rng.uniform(0.5, 1.5, n)
        self._line_hz = look.line_hz + 0.02 * float(rng.standard_normal())
        self._drift = _Wander(n, 20.0, rng)
        self._bad = int(rng.integers(n)) if rng.random() < look.bad_electrode else None
        self._lost = False

    def __call__(self, data: FloatArray, start: int) -> FloatArray:
        look, n = self._look, len(data)
        data = data + look.sensor_noise_uv * self._rng.standard_normal((self._rows, data.shape[1]))[:n]
        data += look.drift_uv * self._drift.next(self._rows)[:n]
        if self._line_hz < self._rate_hz / 2:
            turns = (np.arange(start, start + n) * (self._line_hz / self._rate_hz)) % 1.0
            data += np.sin(2 * np.pi * turns)[:, None] * self._hum_uv
        change = self._rng.random()
        # Contact is lost in about every tenth block, and comes back in every second.
        self._lost = change < (0.5 if self._lost else 0.07)
        if self._bad is not None and self._lost:
            data[:, self._bad] = 0.02 * np.sin(np.arange(start, start + n))  # what an open input shows: next to nothing
        return data


class _Wander:
    """Slow Gaussian changes of variance 1, drawn at a few knots of each block and linear between them."""

    def __init__(self, n: int, time_constant_s: float, rng: np.random.Generator) -> None:
        self._rng = rng
        self._keep = float(np.exp(-BLOCK_S / _KNOTS / time_constant_s))
        self._last = rng.standard_normal(n)

    def next(self, rows: int) -> FloatArray:
        """Return the next block, (rows, n)."""
        knots = np.empty((_KNOTS + 1, len(self._last)))
        knots[0] = self._last
        fresh = self._rng.standard_normal((_KNOTS, len(self._last))) * np.sqrt(1 - self._keep**2)
        for i in range(_KNOTS):
            knots[i + 1] = self._keep * knots[i] + fresh[i]
        self._last = knots[-1]
        at = np.arange(rows) * (_KNOTS / rows)
        left = at.astype(int)
        part = (at - left)[:, None]
        return np.asarray((1 - part) * knots[left] + part * knots[left + 1])


def _block_rows(rate_hz: float) -> int:
    return max(1, round(BLOCK_S * rate_hz))
