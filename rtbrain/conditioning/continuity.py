"""From time-stamped samples to an even sample grid: short gaps filled, longer ones marked, nothing silent.

The grid has the nominal rate and is locked to the source's clock: sample n of the grid is the one stamped
n / rate_hz after the first, give or take a sample and what the clock drifts in a few seconds. A stamp's
deviation from the grid is smoothed over a few seconds, so jitter cancels. What is left decides:

- a jump forward of at most `fill_ms`: the missing samples are interpolated and flagged;
- at most `break_ms`: a break of kind "gap"; longer: a break of kind "context";
- a jump back of at most `break_ms`: samples whose time has been seen already are dropped as repeats;
- further back: the clock was set, a break of kind "context";
- a smoothed deviation of most of a sample (a lone lost sample, or a rate a little off the nominal one), or a jump that
  crept up without any single stamp jumping (a rate further off): the grid slips by one sample, which is filled in or
  dropped. Too many slips are a RateError.

Everything is counted in `counts`.
"""

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.signal import lfilter

from rtbrain.config import NotNegative, Positive, Share
from rtbrain.errors import RateError, StreamError
from rtbrain.messages import Break, Chunk, FloatArray, StreamInfo

EXACT_S = 1e-6
"""A stamp no farther than this from the grid is on it: floating point, not jitter."""

SLIP = 0.75
"""Share of a sample: a smoothed deviation above it makes the grid slip, a stamp that moved by less did not jump."""

GROSS = 0.25
"""Share of samples added or dropped, slips or not, above which the declared rate must be wrong."""

RATE_S = 120.0
"""The rate is judged over so much of the newest signal: a device that changes it after hours is found out as soon as
one that does so early."""


@dataclass(frozen=True)
class ContinuitySettings:
    """The limits of the gap rule; part of the recipe, so training and live use the same."""

    fill_ms: NotNegative = 40.0
    """Longest gap that is interpolated."""
    break_ms: NotNegative = 2000.0
    """Longest gap after which the token context goes on."""
    jitter_ms: NotNegative = 20.0
    """How far a stamp may stray, beyond half a sample, before it counts as a gap or repeat.

    While all stamps of a stream have lain exactly on the grid, as those of files do, a jump by whole samples counts at
    once, however small."""
    smoothing_s: Positive = 5.0
    """Time constant over which stamps are averaged."""
    max_rate_error: Share = 0.01
    """Largest relative difference between the nominal and the true rate."""


@dataclass
class ContinuityCounts:
    """What happened to the stream so far, in samples unless said otherwise."""

    received: int = 0
    filled: int = 0
    lost: int = 0
    """Samples missing in breaks of kind "gap" or forward breaks of kind "context"."""
    repeated: int = 0
    slipped_in: int = 0
    slipped_out: int = 0
    breaks: int = 0
    """Number of breaks of either kind."""
    clock_steps: int = 0
    """Number of times the clock went back by more than the break limit."""


class Continuity:
    """As resampling stamps onto `t0 + n / rate`, over chunks, but with whole samples only and gaps kept."""

    def __init__(self, settings: ContinuitySettings) -> None:
        self.settings = settings
        self.counts = ContinuityCounts()
        self.origin_s: float | None = None
        """Time stamp of grid sample 0; moves when the clock is set."""
        self._next = 0  # grid index of the next sample
        self._smooth = 0.0  # smoothed deviation of the newest sample from the grid, seconds
        self._last: FloatArray | None = None  # the newest row, for interpolation
        self._stamp = 0.0  # the newest row's time stamp, also of one that was dropped
        self._repeating = False  # that row was dropped as a repeat
        self._changes: deque[tuple[int, int, bool]] = deque()  # of the newest signal: at, samples added, by a slip
        self._net = self._slips = 0  # their sums

    def open(self, info: StreamInfo) -> StreamInfo:
        """Start a new grid at sample 0."""
        self._rate = info.rate_hz
        gain = 1.0 / (self.settings.smoothing_s * self._rate)
        self._filter = np.array([gain]), np.array([1.0, gain - 1.0])
        self._keep = 1.0 - gain
        self._tolerance = self.settings.jitter_ms / 1000 + 0.5 / self._rate
        self._exact = True  # no stamp has strayed from the grid so far
        self.counts, self.origin_s = ContinuityCounts(), None
        self._next, self._smooth, self._last = 0, 0.0, None
        self._repeating = False
        self._changes.clear()
        self._net = self._slips = 0
        return info

    def process(self, x: Chunk) -> list[Chunk | Break]:
        """Place the samples on the grid."""
        out: list[Chunk | Break] = []
        if not len(x):
            return out
        self.counts.received += len(x)
        if x.times is None:
            self._emit(out, x, 0, len(x))
            return out
        if self.origin_s is None:
            self.origin_s = float(x.times[0])
        row = 0
        while row < len(x):
            row = self._advance(out, x, row)
        self._stamp = float(x.times[-1])
        return out

    def flush(self) -> list[Chunk | Break]:
        """Nothing is held back."""
        return []

    def _advance(self, out: list[Chunk | Break], x: Chunk, row: int) -> int:
        """Emit rows up to the next event, deal with it, and return the first row that is still to do."""
        assert x.times is not None
        assert self.origin_s is not None
        n = len(x) - row
        grid = self.origin_s + np.arange(self._next, self._next + n) / self._rate
        deviation = x.times[row:] - grid
        exact = np.abs(deviation) < EXACT_S
        if self._smooth == 0.0 and exact.all():  # as what follows, for the sake of speed
            self._emit(out, x, row, len(x))
            return len(x)
        if not np.isfinite(deviation).all():
            raise StreamError("a time stamp of the stream is not a finite number; the source must stamp every sample")
        deviation = np.where(exact, 0.0, deviation)
        smooth, _ = lfilter(*self._filter, deviation, zi=np.array([self._smooth * self._keep]))
        before = np.empty(n)  # the smoothed deviation up to, but without, each sample
        before[0], before[1:] = self._smooth, smooth[:-1]
        jump = deviation - before
        slips = np.abs(smooth) > SLIP / self._rate
        jumps = np.abs(jump) > self._tolerance
        if self._exact:
            whole = np.round(jump * self._rate)
            # One sample back is left to the slips: sources that stamp samples in pairs do that all the time.
            lost = ((whole > 0) | (whole < -1)) & (np.abs(jump - whole / self._rate) < EXACT_S)
            jumps |= lost
            strayed = np.logical_or.accumulate(~(exact | lost))
            jumps[1:] &= ~strayed[:-1] | (np.abs(jump[1:]) > self._tolerance)
        events = jumps | slips
        i = int(events.argmax()) if events.any() else n
        if i:
            self._emit(out, x, row, row + i)
            self._smooth = float(smooth[i - 1])
            self._exact = self._exact and bool(exact[:i].all())
        if i == n:
            return len(x)
        if not jumps[i]:
            self._exact = False
            sign = 1 if smooth[i] > 0 else -1
            self._smooth = float(smooth[i]) - sign / self._rate
            return self._slip(out, x, row + i, sign)
        previous = x.times[row + i - 1] if row + i else self._stamp
        moved = x.times[row + i] - previous - 1 / self._rate
        if abs(moved) < SLIP / self._rate and not self._repeating:
            self._smooth = float(smooth[i])
            return self._slip(out, x, row + i, 1 if jump[i] > 0 else -1)
        if jump[i] > 0:
            self._gap(out, x, row + i, round(float(jump[i]) * self._rate))
            return row + i
        if jump[i] >= -self.settings.break_ms / 1000:
            self.counts.repeated += 1
            self._repeating = True
            self._check_rate(-1)
            return row + i + 1
        self.counts.clock_steps += 1
        self.counts.breaks += 1
        out.append(self._break("context", 0, f"the clock went back by {-jump[i]:.3f} s"))
        self._restart_clock(float(x.times[row + i]))
        return row + i

    def _emit(self, out: list[Chunk | Break], x: Chunk, start: int, stop: int) -> None:
        out.append(Chunk(x.data[start:stop], self._next))
        self._next += stop - start
        self._last = x.data[stop - 1].copy()
        self._repeating = False

    def _gap(self, out: list[Chunk | Break], x: Chunk, row: int, missing: int) -> None:
        """Bridge the missing samples before this row, or mark a break; the row itself is still to be emitted."""
        gap_ms = 1000 * missing / self._rate
        if gap_ms <= self.settings.fill_ms:
            self.counts.filled += missing
            self._fill(out, x.data[row], missing)
            self._check_rate(missing)
            return
        self.counts.lost += missing
        self.counts.breaks += 1
        self._next += missing
        if gap_ms <= self.settings.break_ms:
            out.append(self._break("gap", missing, f"{missing} samples ({gap_ms:.0f} ms) are missing"))
        else:
            out.append(self._break("context", missing, f"{gap_ms / 1000:.1f} s without samples"))
        assert x.times is not None
        self._restart_clock(float(x.times[row]))

    def _break(self, kind: Literal["gap", "context"], missing: int, reason: str) -> Break:
        return Break(kind, self._next, self._next / self._rate, missing, reason)

    def _fill(self, out: list[Chunk | Break], after: FloatArray, missing: int) -> None:
        assert self._last is not None
        share = np.arange(1, missing + 1)[:, None] / (missing + 1)
        with np.errstate(invalid="ignore"):  # next to an infinite sample the filled ones are nan: also not finite
            data = self._last + share * (after - self._last)
        out.append(Chunk(data, start=self._next, filled=True))
        self._next += missing

    def _slip(self, out: list[Chunk | Break], x: Chunk, row: int, sign: int) -> int:
        """Add or drop one sample so that the grid stays with the source's clock."""
        if sign > 0 and self._last is not None:
            self.counts.slipped_in += 1
            self._fill(out, x.data[row], 1)
            self._emit(out, x, row, row + 1)
        else:
            self.counts.slipped_out += 1
        self._check_rate(sign, slip=True)
        return row + 1

    def _check_rate(self, added: int, slip: bool = False) -> None:
        """Refuse a stream whose stamps contradict its declared rate, after the first ten seconds.

        Parameters
        ----------
        added : int
            Samples that were just added to the grid; negative if they were dropped.
        slip : bool
            It was the grid that slipped.
        """
        window = RATE_S * self._rate
        self._changes.append((self._next, added, slip))
        self._net, self._slips = self._net + added, self._slips + slip
        while self._changes[0][0] < self._next - window:
            _, earlier, was_slip = self._changes.popleft()
            self._net, self._slips = self._net - earlier, self._slips - was_slip
        seen = min(self._next, window)
        few = self._slips <= self.settings.max_rate_error * seen and abs(self._net) <= GROSS * seen
        if self._next > 10 * self._rate and not few:
            raise RateError(
                f"the stream declares {self._rate:g} Hz, but its stamps differ from that by more than "
                f"{self.settings.max_rate_error:.0%} ({max(self._slips, abs(self._net))} of the newest {seen:.0f} "
                "samples had to be added or dropped); correct the declared rate"
            )

    def _restart_clock(self, stamp: float) -> None:
        """Let the grid's phase follow this stamp, the first one after a break."""
        self.origin_s = stamp - self._next / self._rate
        self._smooth = 0.0

    def report(self) -> dict[str, Any]:
        """Return the counts by name."""
        return asdict(self.counts)
