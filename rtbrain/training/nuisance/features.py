"""What a trial tells that is not brain: length, layout, header, gain, band edges, mains, lines and amplifier floor."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from rtbrain.errors import RtbrainError, SourceError
from rtbrain.messages import FloatArray, StreamInfo
from rtbrain.sources.chunking import Source
from rtbrain.sources.recording import Excerpt
from rtbrain.training.nuisance.lines import BAND_HZ, Line, comb, find_lines, line_contrast
from rtbrain.training.nuisance.spectrum import Spectrum, measure_spectrum, segment_s
from rtbrain.training.trials import Trial, Value

LENGTH, EDGES, LINES = "length", "band edges", "lines"
GROUPS = {
    LENGTH: "seconds before the crop",
    "layout": "channel count and names, sampling rate",
    "header": "recording date and time of day, prefilter text and other facts of the files",
    "gain": "overall level from 2.5 to 28 Hz",
    EDGES: "level at 0.5, 1 and 1.5 Hz against 2.5 Hz, and at 35, 40 and 45 Hz against 29 Hz",
    "mains": "50 and 60 Hz against their neighbours",
    LINES: f"narrow lines from {BAND_HZ[0]:g} to {BAND_HZ[1]:g} Hz: number, strongest, repetitions of one",
    "floor": "level from 70 to 120 Hz, where the amplifier's noise is",
}
"""The groups of features, and what each is made of."""

LOW_EDGE = {0.5: 0.0, 1.0: 0.125, 1.5: 0.125}
HIGH_EDGE = {35.0: 1.0, 40.0: 1.0, 45.0: 1.5}
"""Frequencies at which the edges are read, and half the width in Hz over which the median leaves lines out."""
MIDDLE_HZ = (2.5, 28.0)
"""Between the edges: here a difference in shape is taken for brain, not for a recording filter."""
_FLOOR_HZ = (70.0, 120.0)
_DATES = ("%d.%m.%y %H.%M.%S", "%d.%m.%y", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d")
_LAYOUT_FACTS = ("rate_hz", "n_channels")
_LENGTH_FACTS = ("n_epochs",)

_seen: dict[tuple[object, ...], tuple[StreamInfo, Spectrum]] = {}


@dataclass(frozen=True)
class Measured:
    """A trial's nuisance: features by group, and the spectrum that most of them come from."""

    trial: Trial
    rate_hz: float
    spectrum: Spectrum
    lines: tuple[Line, ...]
    features: Mapping[str, Mapping[str, Value]]
    """Texts are categories; NaN is a value that the recording cannot have, such as 45 Hz at a rate of 64 Hz."""


def measure(
    trials: Sequence[Trial],
    whole_s: Mapping[str, float] | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Measured]:
    """Read each trial once, as its source gives it and without a filter; spectra are kept while the process lives.

    Parameters
    ----------
    trials : sequence of Trial
        Cut to one length, if the task is.
    whole_s : mapping, optional
        Seconds of each trial before it was cut, by its name; the trial's own length by default.
    progress : callable, optional
        Told the share that is done.
    """
    if not trials:
        raise SourceError("there is no trial to audit; `rtbrain data check` says what was left out and why")
    segment = segment_s(min(trial.length_s for trial in trials))
    found = []
    for i, trial in enumerate(trials):
        try:
            info, spectrum = _spectrum(trial, segment)
        except RtbrainError as error:
            raise type(error)(f"{trial.name}: {error}") from error
        lines = find_lines(spectrum)
        length_s = (whole_s or {}).get(trial.name, trial.length_s)
        features = _of_files(trial, info, length_s) | _of_spectrum(spectrum, lines)
        found.append(Measured(trial, info.rate_hz, spectrum, lines, features))
        if progress is not None:
            progress((i + 1) / len(trials))
    return found


def edges(spectrum: Spectrum) -> dict[str, float]:
    """Return the level at each edge frequency against the nearest reference between the edges, in dB."""
    low, high = spectrum.level(2.5, 0.25), spectrum.level(29.0, 1.0)
    found = {f"{hz:g} Hz": spectrum.level(hz, half) - low for hz, half in LOW_EDGE.items()}
    return found | {f"{hz:g} Hz": spectrum.level(hz, half) - high for hz, half in HIGH_EDGE.items()}


def columns(measured: Sequence[Measured], group: str) -> FloatArray:
    """Return a group's features as (trials, columns): categories as 0 and 1, what does not vary left out.

    A value that some trials lack stays NaN, and that it is lacking is a column of its own.
    """
    rows = [each.features.get(group, {}) for each in measured]
    made = []
    for name in sorted({name for row in rows for name in row}):
        values = [row.get(name, math.nan) for row in rows]
        if any(isinstance(value, str) for value in values):
            texts = ["" if isinstance(value, float) and math.isnan(value) else str(value) for value in values]
            # What only one trial has can tell nothing about another one.
            made += [np.array([t == text for t in texts], float) for text, n in sorted(Counter(texts).items()) if n > 1]
            continue
        numbers = np.array(values, float)
        made += [np.isnan(numbers).astype(float), numbers]
    varying = [column for column in made if len(np.unique(column[np.isfinite(column)])) > 1]
    return np.stack(varying, axis=1) if varying else np.empty((len(measured), 0))


def _spectrum(trial: Trial, segment: float) -> tuple[StreamInfo, Spectrum]:
    source = trial.open()
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in trial.files]
    key = (trial.name, *stats, _first(source), source.n_samples, segment)
    if not stats:  # nothing tells whether it is still the same
        return source.info, measure_spectrum(source, segment)
    if key not in _seen:
        _seen[key] = source.info, measure_spectrum(source, segment)
    return _seen[key]


def _first(source: Source) -> int:
    return source.first + _first(source.source) if isinstance(source, Excerpt) else 0


def _of_files(trial: Trial, info: StreamInfo, length_s: float) -> dict[str, dict[str, Value]]:
    facts = dict(trial.facts)
    length: dict[str, Value] = {name: facts.pop(name) for name in _LENGTH_FACTS if name in facts}
    for name in _LAYOUT_FACTS:
        facts.pop(name, None)  # the source's own are what a decoder sees
    when = _date(str(facts.get("header_date", "")))
    if when is not None:
        del facts["header_date"]
        facts["day"], facts["hour"] = float(when.toordinal()), when.hour + when.minute / 60
    layout: dict[str, Value] = {
        "channels": float(len(info.channels)),
        "names": " ".join(info.channels),
        "rate": info.rate_hz,
    }
    return {LENGTH: {"log seconds": math.log(length_s), **length}, "layout": layout, "header": facts}


def _date(text: str) -> datetime | None:
    for form in _DATES:
        try:
            return datetime.strptime(text.strip()[:19], form)
        except ValueError:
            continue
    return None


def _of_spectrum(spectrum: Spectrum, lines: tuple[Line, ...]) -> dict[str, dict[str, Value]]:
    contrast = line_contrast(spectrum)
    mains: dict[str, Value] = {}
    for hz in (50.0, 60.0):
        first, last = round((hz - 0.25) / spectrum.step_hz), round((hz + 0.25) / spectrum.step_hz)
        # The mean, not the peak: a notch is a mark of the device as a line is, and goes the other way.
        inside = contrast[first : last + 1] if last + 8 < len(contrast) else np.array([math.nan])
        mains[f"{hz:g} Hz"] = float(inside.mean())
    top = min(_FLOOR_HZ[1], spectrum.hz[-1])
    _, repetitions = comb(lines)
    return {
        "gain": {"level": spectrum.between(*MIDDLE_HZ)},
        EDGES: dict(edges(spectrum)),
        "mains": mains,
        LINES: {
            "number": float(len(lines)),
            "strongest": max((line.db for line in lines), default=0.0),
            "repetitions": float(repetitions),
        },
        "floor": {"level": spectrum.between(_FLOOR_HZ[0], top) if top >= _FLOOR_HZ[0] + 10 else math.nan},
    }
