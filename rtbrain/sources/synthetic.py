"""Synthetic EEG with known microstates: seeded, of any length, made block by block."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.signal import lfilter

from rtbrain.errors import ConfigError
from rtbrain.messages import Chunk, FloatArray, IntArray, StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.sources.electrodes import TEN_TWENTY_19, electrode_positions
from rtbrain.sources.noise import Pink

MAX_STATES: Final = 8

# One dipole per state: where it is (x right, y front, z up, in head radii) and where it points. The first four look
# like the canonical maps A to D. They do not depend on the seed: two recordings share their states, as people do.
STATE_DIPOLES: Final = np.array(
    [
        [(0.0, 0.0, 0.1), (0.75, 0.65, 0.1)],
        [(0.0, 0.0, 0.1), (-0.75, 0.65, 0.1)],
        [(0.0, -0.1, 0.2), (0.0, 1.0, 0.35)],
        [(0.0, 0.1, 0.45), (0.0, 0.0, 1.0)],
        [(0.0, -0.6, 0.2), (0.0, -0.2, 1.0)],
        [(0.55, -0.2, 0.2), (0.2, 0.3, 1.0)],
        [(-0.55, 0.25, 0.2), (-0.2, 0.3, 1.0)],
        [(0.0, 0.65, 0.2), (1.0, 0.0, 0.2)],
    ]
)


@dataclass(frozen=True)
class SyntheticSettings:
    """What the synthetic EEG looks like."""

    rate_hz: float = 250.0
    channels: tuple[str, ...] = TEN_TWENTY_19
    """Names of the 10-10 system; see electrodes.POSITIONS."""
    n_states: int = 4
    """Number of microstates, 1 to MAX_STATES."""
    duration_s: float = 60.0
    seed: int = 0
    amplitude_uv: float = 10.0
    """RMS of the states' signal over time and channels."""
    snr: float = 3.0
    """Ratio of the states' RMS to that of the 1/f noise; inf for no noise."""
    mean_duration_ms: float = 70.0
    """Mean duration of a state's run. Durations are gamma distributed above a minimum, so not geometric."""
    alpha_hz: float = 10.0
    """Frequency of the oscillation that carries the states; GFP peaks come at twice that."""
    line_uv: float = 0.0
    """Amplitude of the mains hum, different on each channel."""
    line_hz: float = 50.0
    drift_uv: float = 0.0
    """Standard deviation of slow drifts, with a time constant of 10 s."""

    def __post_init__(self) -> None:
        positive = ("rate_hz", "duration_s", "amplitude_uv", "snr", "mean_duration_ms", "alpha_hz", "line_hz")
        wrong = [name for name in positive if not getattr(self, name) > 0]
        wrong += [name for name in ("line_uv", "drift_uv") if not getattr(self, name) >= 0]
        if wrong:
            raise ConfigError(f"{wrong[0]} is {getattr(self, wrong[0])!r}; it must be a positive number")
        if not 1 <= self.duration_s * self.rate_hz < 2**53:
            raise ConfigError(f"duration_s is {self.duration_s}; it must be finite and hold at least one sample")
        if not 1 <= self.n_states <= MAX_STATES:
            raise ConfigError(f"n_states is {self.n_states}; from 1 to {MAX_STATES} states can be made")
        if len(self.channels) < 3:
            raise ConfigError(f"{len(self.channels)} channels have no topography; at least 3 are needed")


def dipole_maps(channels: tuple[str, ...], n_states: int) -> FloatArray:
    """Return smooth maps (n_states, channels): fields of dipoles in the head, average reference, GFP 1."""
    away = electrode_positions(channels)[None] - STATE_DIPOLES[:n_states, None, 0]  # (states, channels, 3)
    distance = np.linalg.norm(away, axis=2)
    potential = np.einsum("kcx,kx->kc", away, STATE_DIPOLES[:n_states, 1]) / distance**3
    potential -= potential.mean(axis=1, keepdims=True)
    return np.asarray(potential / potential.std(axis=1, keepdims=True))


class Synthetic(Source):
    """Endless-looking EEG whose states are known.

    At each moment one state's map is there, times an alpha oscillation whose amplitude changes slowly and whose
    polarity changes at random from run to run; added are 1/f noise on each channel, mains hum and drifts. Two
    passes give the same numbers, bit for bit, as does any cutting into chunks. States depend on `seed`,
    `n_states`, `rate_hz` and `mean_duration_ms` only, so that the same states can be had at several noise levels.

    Parameters
    ----------
    settings : SyntheticSettings
        What it looks like; the defaults if left out.

    Attributes
    ----------
    info : StreamInfo
        Unit is uV.
    maps : (n_states, channels) array
        The states' maps: average reference, standard deviation over channels (GFP) 1.
    """

    def __init__(self, settings: SyntheticSettings | None = None) -> None:
        self.settings = settings = settings or SyntheticSettings()
        self.info = StreamInfo(settings.rate_hz, settings.channels, "uV")
        self.n_samples = round(settings.duration_s * settings.rate_hz)
        self.maps = dipole_maps(settings.channels, settings.n_states)
        # The rows of a block are part of what the seed means: never make them depend on chunks or length.
        self._rows = max(1, round(4.0 * settings.rate_hz))

    @property
    def states(self) -> IntArray:
        """True state of every sample, (n_samples,); computed anew, without the data, and not in blocks."""
        return np.concatenate([states for states, _ in self._runs()])

    def blocks(self) -> Iterator[tuple[Chunk, IntArray]]:
        """Give the samples in blocks of 4 s, each with the true state of every row, (n,)."""
        settings, n_channels = self.settings, len(self.settings.channels)
        drift_rng, alpha_rng, noise_rng, line_rng = _generators(settings.seed, 5)[1:]
        alpha = _Alpha(settings, alpha_rng)
        pink = Pink(n_channels, settings.amplitude_uv / settings.snr)
        slow = 1.0 / (10.0 * settings.rate_hz)
        drift = drift_rng.standard_normal((n_channels, 1)) * settings.drift_uv * (1 - slow)
        hum_uv = settings.line_uv * line_rng.uniform(0.5, 1.5, n_channels)
        start = 0
        for states, signs in self._runs():
            n = len(states)
            carrier = alpha.next(n) * signs  # (n,)
            data = self.maps[states] * carrier[:, None]  # (n, channels)
            # A whole block is always drawn, and cut: the last block's numbers do not depend on the length.
            noise = pink(noise_rng.standard_normal((n_channels, self._rows)))
            data += noise[:, :n].T
            if settings.drift_uv:
                white = drift_rng.standard_normal((n_channels, self._rows)) * settings.drift_uv * np.sqrt(2 * slow)
                wander, drift = lfilter([1.0], [1.0, slow - 1.0], white, axis=1, zi=drift)
                data += wander[:, :n].T
            rows = np.arange(start, start + n)
            if settings.line_uv:
                turns = (rows * (settings.line_hz / settings.rate_hz)) % 1.0
                data += np.sin(2 * np.pi * turns)[:, None] * hum_uv
            yield Chunk(data, start, rows / settings.rate_hz), states
            start += n

    def _produce(self) -> Iterator[Chunk]:
        return (chunk for chunk, _ in self.blocks())

    def _runs(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Give the state and polarity of every row, block by block."""
        settings = self.settings
        rng = _generators(settings.seed, 5)[0]
        mean = settings.mean_duration_ms * settings.rate_hz / 1000
        floor = 0.3 * mean
        held_states, held_signs = np.empty(0, np.int64), np.empty(0)
        state = int(rng.integers(settings.n_states))
        left = self.n_samples
        n_runs = max(8, round(self._rows / mean))
        while left:
            while len(held_states) < self._rows:
                # Duration of a run = minimum + gamma of shape 2; never the same state twice in a row.
                durations = np.maximum(1, np.rint(floor + rng.gamma(2.0, (mean - floor) / 2, n_runs))).astype(int)
                steps = rng.integers(1, settings.n_states, n_runs) if settings.n_states > 1 else np.zeros(n_runs, int)
                states = (state + np.cumsum(steps)) % settings.n_states
                state = int(states[-1])
                signs = rng.choice([-1.0, 1.0], n_runs)
                held_states = np.concatenate([held_states, np.repeat(states, durations)])
                held_signs = np.concatenate([held_signs, np.repeat(signs, durations)])
            n = min(left, self._rows)
            yield held_states[:n], held_signs[:n]
            held_states, held_signs = held_states[n:], held_signs[n:]
            left -= n


class _Alpha:
    """An oscillation whose phase wanders a little and whose amplitude changes slowly, over blocks."""

    def __init__(self, settings: SyntheticSettings, rng: np.random.Generator) -> None:
        self._rng = rng
        self._step = settings.alpha_hz / settings.rate_hz  # turns per sample
        self._wander = np.sqrt(0.1 / settings.rate_hz)  # turns: coherent over some seconds
        self._slow = 1.0 / (1.0 * settings.rate_hz)  # the amplitude's time constant is 1 s
        self._turn = float(rng.uniform())
        self._level = np.array([float(rng.standard_normal())])
        # RMS of a sine is 1/sqrt(2), mean square of exp(0.4 g) for normal g is exp(2 * 0.16).
        self._scale = settings.amplitude_uv * np.sqrt(2.0) * np.exp(-0.16)
        self._rows = max(1, round(4.0 * settings.rate_hz))

    def next(self, n: int) -> FloatArray:
        """Return the next n samples, (n,) in uV; only the last call may ask for less than a block."""
        white = self._rng.standard_normal((2, self._rows))
        turns = self._turn + np.cumsum(self._step + self._wander * white[0])
        self._turn = float(turns[-1] % 1.0)
        keep = 1.0 - self._slow
        zi = self._level * keep
        level, _ = lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white[1], zi=zi)
        self._level = level[-1:]
        return np.asarray(self._scale * np.exp(0.4 * level[:n]) * np.sin(2 * np.pi * turns[:n]))


def _generators(seed: int, n: int) -> list[np.random.Generator]:
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(n)]
