"""Does a trained decoder listen to the recording filter or to lines? Give test recordings those of others, and see.

The brain in a recording does not change when its band edges are made those of another export, or when another
recording's mains harmonics are added: answers that flip were not about the brain.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import median_filter

from rtbrain.conditioning.channels import canonical
from rtbrain.conditioning.units import FACTORS
from rtbrain.errors import ConfigError, LeakError
from rtbrain.messages import Chunk, FloatArray, StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.training.nuisance.features import MIDDLE_HZ, Measured, edges, measure
from rtbrain.training.nuisance.filters import find_filters, mean_spectrum
from rtbrain.training.nuisance.lines import Line
from rtbrain.training.trials import Trial

Decide = Callable[[Sequence[Source]], Sequence[int]]
"""A trained decoder: the class of each recording."""
MOST_GAIN_DB = 20.0
"""What one filter took away, another's response cannot bring back: beyond this only rounding noise would grow."""
LINE_HALF_WIDTH_HZ = 0.4
LEAST_LINES = 2
"""Recordings with fewer lines give none."""
_PAD_S = 4.0


class ExchangeError(ConfigError):
    """The recordings have no filters, or no lines, that could be exchanged."""


@dataclass(frozen=True)
class Probe:
    """Answers to the same recordings before and after a change that does not touch the brain."""

    what: str
    trials: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def flips(self) -> int:
        """Number of answers that changed."""
        return sum(a != b for a, b in zip(self.before, self.after, strict=True))

    def __str__(self) -> str:
        return f"{self.what}: {self.flips} of {len(self.trials)} answers flip"


@dataclass(frozen=True)
class Altered(Source):
    """A source whose samples, as a whole, are changed by a function; time stamps stay."""

    source: Source
    change: Callable[[FloatArray], FloatArray] = field(repr=False)
    """From (n, channels) to (n, channels)."""
    info: StreamInfo
    n_samples: int

    def _produce(self) -> Iterator[Chunk]:
        chunks = list(self.source.chunks())
        data = np.concatenate([chunk.data for chunk in chunks])
        lost = ~np.isfinite(data)
        # A lost sample would spread over the whole channel: its mean stands in, and the sample is lost again after.
        kept = np.where(lost, 0.0, data)
        mean = kept.sum(axis=0) / np.maximum((~lost).sum(axis=0), 1)
        changed = np.where(lost, data, self.change(np.where(lost, mean, data)))
        row = 0
        for chunk in chunks:
            yield Chunk(np.ascontiguousarray(changed[row : row + len(chunk)]), chunk.start, chunk.times)
            row += len(chunk)


def altered(source: Source, change: Callable[[FloatArray], FloatArray]) -> Altered:
    """Return the source with its samples changed."""
    return Altered(source, change, source.info, source.n_samples)


def probe_filters(decide: Decide, tests: Sequence[Trial], training: Sequence[Trial]) -> list[Probe]:
    """Give test recordings the response of each other filter group; groups and responses come from training alone.

    Raises
    ------
    ExchangeError
        The training recordings show only one filter.
    LeakError
        A subject is both in training and in test.
    """
    _check_apart(tests, training)
    learnt, asked = _measured(training, tests)
    found = find_filters(learnt, ())
    if not found.several:
        raise ExchangeError("the training recordings show one recording filter only, so there is none to exchange")
    groups = [[each for each in learnt if each.trial.name in group.trials] for group in found.groups]
    centres = [np.nanmean([list(edges(each.spectrum).values()) for each in group], axis=0) for group in groups]
    by_group: dict[int, list[Trial]] = {}
    for each in asked:
        away = [float(np.nansum((np.array(list(edges(each.spectrum).values())) - centre) ** 2)) for centre in centres]
        by_group.setdefault(int(np.argmin(away)), []).append(each.trial)
    probes = []
    for own, trials in sorted(by_group.items()):
        for other in (k for k in range(len(groups)) if k != own):
            response = response_between(groups[own], groups[other])
            sources = [altered(source, _Shape(source.info.rate_hz, response)) for source in _open(trials)]
            what = f"filter {found.groups[own].name} made {found.groups[other].name}"
            probes.append(_probe(what, decide, trials, sources))
    return probes


def probe_lines(decide: Decide, tests: Sequence[Trial], training: Sequence[Trial]) -> Probe:
    """Add the lines of training recordings, of another class where there are any, to test recordings without lines.

    Raises
    ------
    ExchangeError
        No training recording has lines, or all test recordings have.
    LeakError
        A subject is both in training and in test.
    """
    _check_apart(tests, training)
    learnt, asked = _measured(training, tests)
    donors = [each for each in learnt if len(each.lines) >= LEAST_LINES]
    takers = [each for each in asked if not each.lines]
    sources, names = [], []
    for i, taker in enumerate(takers):
        fit = [each for each in donors if each.rate_hz == taker.rate_hz]
        fit = [each for each in fit if each.trial.label != taker.trial.label] or fit
        if fit:
            source = taker.trial.open()
            sources.append(altered(source, _AddLines(source.info, fit[i % len(fit)])))
            names.append(taker.trial)
    if not sources:
        raise ExchangeError(
            f"{len(donors)} training recordings have {LEAST_LINES} lines or more and {len(takers)} test recordings "
            "none: no pair of one sampling rate can be made, so there are no lines to exchange"
        )
    return _probe("lines added", decide, names, sources)


def response_between(own: Sequence[Measured], other: Sequence[Measured]) -> tuple[FloatArray, FloatArray]:
    """Return frequencies in Hz and the response in dB that turns the spectra of `own` into those of `other`.

    Between the edges nothing changes: a difference there may be brain.
    """
    step_hz = own[0].spectrum.step_hz
    one, two = mean_spectrum(own), mean_spectrum(other)
    n = min(len(one), len(two))
    hz = np.arange(n, dtype=np.float64) * step_hz
    db = two[:n] - one[:n]
    inside = (hz >= MIDDLE_HZ[0]) & (hz <= MIDDLE_HZ[1])
    db -= np.median(db[inside])
    smooth = median_filter(db, size=2 * round(1.0 / step_hz) + 1, mode="nearest")
    db = np.where(hz > MIDDLE_HZ[1], smooth, db)  # up there edges are wide, and lines stand in the way
    db[inside] = 0.0
    db[:2] = db[2]  # the lowest bins hold what the window lets through of offset and trend
    return hz, np.clip(db, None, MOST_GAIN_DB)


@dataclass(frozen=True)
class _Shape:
    """A zero-phase filter with a measured response."""

    rate_hz: float
    response: tuple[FloatArray, FloatArray]

    def __call__(self, data: FloatArray) -> FloatArray:
        pad = min(len(data) - 1, round(_PAD_S * self.rate_hz))
        longer = np.pad(data, ((pad, pad), (0, 0)), mode="reflect", reflect_type="odd")
        hz = np.fft.rfftfreq(len(longer), 1 / self.rate_hz)
        gain = 10 ** (np.interp(hz, *self.response) / 20)
        shaped = np.fft.irfft(np.fft.rfft(longer, axis=0) * gain[:, None], len(longer), axis=0)
        return shaped[pad : pad + len(data)]


@dataclass(frozen=True)
class _AddLines:
    """Adds what a recording has within its lines, electrode by electrode."""

    info: StreamInfo
    donor: Measured

    def __call__(self, data: FloatArray) -> FloatArray:
        source = self.donor.trial.open()
        there = np.concatenate([chunk.data for chunk in source.chunks()])
        lines = lines_alone(np.nan_to_num(there), source.info.rate_hz, self.donor.lines)
        lines *= FACTORS.get(source.info.unit, 1.0) / FACTORS.get(self.info.unit, 1.0)
        place = {canonical(name): i for i, name in enumerate(source.info.channels)}
        average = lines.mean(axis=1)
        columns = [
            lines[:, place[canonical(name)]] if canonical(name) in place else average for name in self.info.channels
        ]
        return data + np.resize(np.stack(columns, axis=1), data.shape)


def lines_alone(data: FloatArray, rate_hz: float, lines: Sequence[Line]) -> FloatArray:
    """Return what (n, channels) data hold close to these lines, and nothing else."""
    hz = np.fft.rfftfreq(len(data), 1 / rate_hz)
    kept = np.any([np.abs(hz - line.hz) <= LINE_HALF_WIDTH_HZ for line in lines], axis=0)
    return np.fft.irfft(np.fft.rfft(data, axis=0) * kept[:, None], len(data), axis=0)


def _measured(training: Sequence[Trial], tests: Sequence[Trial]) -> tuple[list[Measured], list[Measured]]:
    """Measure both at once, so that their spectra have one resolution."""
    both = measure([*training, *tests])
    return both[: len(training)], both[len(training) :]


def _probe(what: str, decide: Decide, trials: Sequence[Trial], sources: Sequence[Source]) -> Probe:
    before, after = (tuple(int(k) for k in decide(each)) for each in (_open(trials), sources))
    return Probe(what, tuple(trial.name for trial in trials), before, after)


def _open(trials: Sequence[Trial]) -> list[Source]:
    return [trial.open() for trial in trials]


def _check_apart(tests: Sequence[Trial], training: Sequence[Trial]) -> None:
    if both := sorted({trial.subject for trial in tests} & {trial.subject for trial in training}):
        raise LeakError(
            f"{', '.join(both[:5])} would be probed with what was measured on the same person; "
            "pass the trials of one fold's training side and of its test side"
        )
