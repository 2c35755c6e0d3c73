"""A fault script applied to samples on their way out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtbrain.conditioning.units import FACTORS
from rtbrain.errors import ConfigError
from rtbrain.faults import Duplicate, Faults, Loss
from rtbrain.messages import BoolArray, FloatArray, IntArray, StreamInfo


@dataclass(frozen=True)
class Rows:
    """Samples on their way out; times are in seconds of signal after the first sample."""

    data: FloatArray  # (n, channels)
    at_s: FloatArray  # (n,) where they stand in the recording
    stamps_s: FloatArray  # (n,) what they are stamped with
    due_s: FloatArray  # (n,) when they are sent; never falls

    def __len__(self) -> int:
        return len(self.data)

    def take(self, rows: slice | BoolArray) -> "Rows":
        """Return some of the rows."""
        return Rows(self.data[rows], self.at_s[rows], self.stamps_s[rows], self.due_s[rows])


def described(info: StreamInfo, faults: Faults) -> StreamInfo:
    """Return what the stream says about itself, swapped labels and wrong unit included."""
    names = list(info.channels)
    for pair in faults.swapped_labels:
        i, j = positions(info, pair).tolist()
        names[i], names[j] = names[j], names[i]
    return replace(info, channels=tuple(names), unit=faults.declared_unit or info.unit)


def positions(info: StreamInfo, channels: Sequence[str]) -> IntArray:
    """Return where channels stand; all of them for none."""
    unknown = [name for name in channels if name not in info.channels]
    if unknown:
        raise ConfigError(f"the fault script names {', '.join(unknown)}; the recording has {', '.join(info.channels)}")
    return np.array([info.channels.index(name) for name in channels or info.channels])


class Injector:
    """Applies a script to rows in any cutting: the same faults strike the same samples."""

    def __init__(self, faults: Faults, info: StreamInfo) -> None:
        self.faults = faults
        described(info, faults)  # refuses channels that are not there
        self._uv = 1.0 / FACTORS.get(info.unit, 1.0)  # of the stream's unit
        electrodes = (*faults.dead, *faults.pop, *faults.not_finite, *faults.scale)
        self._picks = {id(fault): positions(info, fault.channels) for fault in electrodes}
        self._held: dict[int, FloatArray] = {}
        rows_at_random = (*faults.loss, *faults.duplicate, *faults.jitter)
        self._rngs = {id(fault): np.random.default_rng([faults.seed, i]) for i, fault in enumerate(rows_at_random)}
        self._due_s = 0.0  # of the newest row

    def process(self, rows: Rows) -> Rows:
        """Return what is sent instead of these rows."""
        if not len(rows):
            return rows
        rows = self._times(replace(rows, data=self._electrodes(rows)))
        due_s = np.maximum.accumulate(np.maximum(rows.due_s, self._due_s))
        self._due_s = float(due_s[-1])
        rows = replace(rows, due_s=due_s)
        for fault in self.faults.duplicate:
            struck = self._random(fault, rows, fault.share)
            rows = Rows(*(np.repeat(x, 1 + struck, axis=0) for x in (rows.data, rows.at_s, rows.stamps_s, rows.due_s)))
        for each in self.faults.loss:
            rows = rows.take(~self._random(each, rows, each.share))
        return rows

    def _random(self, fault: Loss | Duplicate, rows: Rows, share: float) -> BoolArray:
        struck = fault.rows(rows.at_s)
        struck[struck] = self._rngs[id(fault)].random(int(struck.sum())) < share
        return struck

    def _electrodes(self, rows: Rows) -> FloatArray:
        data = rows.data.copy()
        for fault in self.faults.dead:
            struck = np.flatnonzero(fault.rows(rows.at_s))
            if len(struck):
                picks = self._picks[id(fault)]
                value = self._held.setdefault(id(fault), data[struck[0], picks].copy())
                data[np.ix_(struck, picks)] = value
        for pop in self.faults.pop:
            data[np.ix_(pop.rows(rows.at_s), self._picks[id(pop)])] += pop.uv * self._uv
        for scale in self.faults.scale:
            data[np.ix_(scale.rows(rows.at_s), self._picks[id(scale)])] *= scale.factor
        for odd in self.faults.not_finite:
            data[np.ix_(odd.rows(rows.at_s), self._picks[id(odd)])] = float(odd.value)
        return data

    def shifts(self, at_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much things at these times happen later, and by how much more their stamps are off."""
        later, stepped = np.zeros(len(at_s)), np.zeros(len(at_s))
        for stall in self.faults.stall:
            later += np.where(at_s >= stall.at_s, stall.for_s, 0.0)
        for error in self.faults.rate_error:
            later += np.clip(at_s - error.at_s, 0.0, error.end_s - error.at_s) * error.percent / 100
        for step in self.faults.clock_step:
            stepped += np.where(at_s >= step.at_s, step.step_s, 0.0)
        return later, stepped

    def _times(self, rows: Rows) -> Rows:
        at_s = rows.at_s
        later, stepped = self.shifts(at_s)
        stamps_s, due_s = rows.stamps_s + later + stepped, rows.due_s + later
        for jitter in self.faults.jitter:
            struck = jitter.rows(at_s)
            stamps_s[struck] += self._rngs[id(jitter)].normal(0.0, jitter.ms / 1000, int(struck.sum()))
        for burst in self.faults.burst:
            held = (at_s >= burst.at_s) & (at_s < burst.end_s)
            due_s[held] += burst.end_s - at_s[held]
        return Rows(rows.data, at_s, stamps_s, due_s)
