"""How a live stream really is: rate, bursts, jitter, clock and unit, measured for some seconds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Final

import numpy as np

from rtbrain.conditioning.units import FACTORS, amplitude, plausible_units
from rtbrain.decoder.bundle import Bundle
from rtbrain.decoder_api import Decoder
from rtbrain.doctor import Finding
from rtbrain.errors import RtbrainError
from rtbrain.messages import Chunk, FloatArray, StreamInfo
from rtbrain.sources.lsl import LslSource
from rtbrain.sources.lsl_find import find_stream

FIND_S: Final = 5.0
SAME_BURST_S: Final = 0.002
"""Samples that arrive no farther apart than this came together."""
MOST_BURST_S: Final = 0.1
"""Longer bursts delay decisions visibly."""
MOST_RATE_ERROR: Final = 0.01
MOST_AGE_S: Final = 1.0
UNIX_S: Final = 1e9
"""Stamps above this are seconds since 1970, not the seconds since the machine was started that LSL counts."""


@dataclass(frozen=True)
class Measured:
    """What was received in a while."""

    info: StreamInfo
    speed: float
    stamps_s: FloatArray
    arrived_s: FloatArray
    """One for each sample, on the clock of this machine."""
    ages_s: FloatArray
    """Of the newest sample when it arrived, one for each pull; negative where stamps lie ahead."""
    block: FloatArray
    """(samples, channels)"""


def measure(source: LslSource, seconds: float, progress: Callable[[float], None] = lambda share: None) -> Measured:
    """Listen to a stream for so long."""
    stamps, arrived, ages, blocks = [], [], [], []
    began_s = monotonic()
    while (passed_s := monotonic() - began_s) < seconds:
        for item in source.pull(0.1):
            if isinstance(item, Chunk) and item.times is not None:
                stamps.append(item.times)
                arrived.append(np.full(len(item), monotonic()))
                age_s = source.age_s(float(item.times[-1]))
                ages += [] if age_s is None else [age_s]
                blocks.append(item.data)
        progress(passed_s / seconds)
    empty = np.empty(0)
    return Measured(
        source.info,
        source.stream.speed,
        np.concatenate([empty, *stamps]),
        np.concatenate([empty, *arrived]),
        np.array(ages),
        np.concatenate([np.empty((0, len(source.info.channels))), *blocks]),
    )


def check_stream(
    wanted: str,
    bundle: Bundle | None,
    unit: str | None = None,
    seconds: float = 5.0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Finding]:
    """Listen to a stream and judge it."""
    try:
        stream = find_stream(wanted, FIND_S)
        with LslSource(stream, unit=unit) as source:
            found = [Finding("stream", "ok", str(source.stream)), *judge(measure(source, seconds, progress))]
            info = source.info
    except RtbrainError as error:
        return [Finding("stream", "bad", str(error))]
    if bundle is not None:
        found.append(_fits(bundle, info))
    return found


def judge(found: Measured) -> Iterator[Finding]:
    """Say in words how a stream is."""
    rate_hz, n = found.info.rate_hz, len(found.stamps_s)
    if n < 3:
        yield Finding("samples", "bad", f"{n} samples came: the stream is announced, but silent; start its recording")
        return
    yield _rate(found)
    first = np.flatnonzero(np.diff(found.arrived_s, prepend=-np.inf) > SAME_BURST_S)
    bursts = np.diff(first, append=n)
    typical = float(np.median(bursts))
    text = f"{typical:g} samples arrive at a time ({1000 * typical / rate_hz:.0f} ms), {bursts.max()} at the most"
    long = typical / rate_hz / found.speed > MOST_BURST_S
    more = "; decisions wait for them: set the amplifier to smaller blocks" if long else ""
    yield Finding("bursts", "note" if long else "ok", text + more)
    yield _jitter(found)
    yield _clock(found)
    yield _unit(found)


def _rate(found: Measured) -> Finding:
    rate_hz, n = found.info.rate_hz, len(found.stamps_s)
    steps = np.diff(found.stamps_s)
    by_stamps = 1 / float(np.median(steps)) if np.median(steps) > 0 else float("inf")
    # From burst to burst, so that neither end counts a part of one.
    span_s = float(found.arrived_s[-1] - found.arrived_s[0])
    later = int(np.searchsorted(found.arrived_s, found.arrived_s[0], side="right"))
    arrived = (n - later) / span_s / found.speed if span_s > 0 else float("nan")
    text = f"{rate_hz:g} Hz declared, {by_stamps:.2f} Hz by the stamps, {arrived:.1f} Hz arrive"
    if abs(by_stamps / rate_hz - 1) > MOST_RATE_ERROR:
        return Finding("rate", "bad", f"{text}; the declared rate is wrong, and filters would be as well")
    if not abs(arrived / rate_hz - 1) < 0.1:
        return Finding("rate", "note", f"{text}; fewer or more than should: samples are lost, or come in large bursts")
    return Finding("rate", "ok", text)


def _jitter(found: Measured) -> Finding:
    index = np.arange(len(found.stamps_s))
    slope, offset = np.polyfit(index, found.stamps_s - found.stamps_s[0], 1)
    stray_ms = 1000 * (found.stamps_s - found.stamps_s[0] - slope * index - offset)
    gaps = int((np.diff(found.stamps_s) > 0.04 + 1 / found.info.rate_hz).sum())
    back = int((np.diff(found.stamps_s) < 0).sum())
    text = f"stamps stray by {stray_ms.std():.2f} ms (standard deviation), {np.abs(stray_ms).max():.1f} ms at the most"
    if gaps or back:
        return Finding("jitter", "note", f"{text}; {gaps} gap(s) above 40 ms, and {back} time(s) stamps go back")
    return Finding("jitter", "ok", text)


def _clock(found: Measured) -> Finding:
    if found.stamps_s[0] > UNIX_S:
        return Finding("clock", "bad", "stamps are seconds since 1970, not LSL's clock: no age can be told from them")
    if not len(found.ages_s):
        return Finding("clock", "note", "the sender's clock could not be compared with this machine's: listen longer")
    age_s = float(np.median(found.ages_s))
    text = f"LSL's clock; the newest sample is {1000 * age_s:.0f} ms old when it arrives"
    if abs(age_s) > MOST_AGE_S:
        return Finding("clock", "bad", f"{text}: the sender's stamps are wrong, or it is far behind")
    if age_s < 0:
        return Finding("clock", "note", f"{text}: the sender stamps ahead of time, and ages will be negative")
    return Finding("clock", "ok", text)


def _unit(found: Measured) -> Finding:
    declared, fitting = found.info.unit, plausible_units(found.block)
    if declared not in FACTORS:
        return Finding("unit", "bad", f"the stream declares none; {_or(fitting)} would fit: give --unit")
    text = f"{declared}; {amplitude(found.block) * FACTORS[declared]:.3g} uV (median standard deviation)"
    if declared in fitting:
        return Finding("unit", "ok", text)
    return Finding("unit", "bad", f"{text}: this is no EEG in {declared}; {_or(fitting)} would fit: give --unit")


def _or(units: list[str]) -> str:
    return " or ".join(units) or "no unit"


def _fits(bundle: Bundle, info: StreamInfo) -> Finding:
    try:
        decoder = Decoder(bundle, rate_hz=info.rate_hz, channels=info.channels, unit=info.unit, device="cpu")
    except RtbrainError as error:
        return Finding("fit", "bad", f"the bundle {bundle.name} cannot decode it: {error}")
    missing = f"; it lacks {', '.join(decoder.missing)}" if decoder.missing else ""
    text = f"the bundle {bundle.name} can decode it, at {decoder.info.rate_hz:g} Hz{missing}"
    return Finding("fit", "note" if missing else "ok", text)
