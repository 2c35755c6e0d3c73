"""Streams for property tests: EEG-like chunks, random cuts and faults, and a form in which outputs can be compared."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rtbrain.messages import Break, Chunk, Labels, Tokens

NAMES = ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "O1", "O2")


def eeg(n: int, rng: np.random.Generator, channels: int = len(NAMES), rate_hz: float = 250.0) -> np.ndarray:
    """Return (n, channels) microvolts: an alpha wave under changing maps, pink-like noise, drift and offsets."""
    t = np.arange(n) / rate_hz
    maps = rng.standard_normal((4, channels))
    state = np.repeat(rng.integers(0, 4, n), 15)[:n]
    alpha = 20 * np.sin(2 * np.pi * 10 * t) * (1 + 0.5 * np.sin(2 * np.pi * 0.3 * t))
    noise = rng.standard_normal((n, channels))
    drift = np.cumsum(rng.standard_normal((n, channels)), axis=0) * 0.3
    return alpha[:, None] * maps[state] + 4 * noise + drift + rng.uniform(-200, 200, channels)


def cut(message: Chunk | Labels, sizes: Sequence[int]) -> Iterator[Chunk | Labels]:
    """Yield the message in pieces of these sizes (0 allowed), then the rest."""
    row = 0
    for size in [*sizes, len(message)]:
        stop = min(len(message), row + size)
        yield rows(message, row, stop)
        row = stop


def rows(message: Chunk | Labels, start: int, stop: int) -> Chunk | Labels:
    if isinstance(message, Labels):
        fields = ("state", "own", "along", "gfp", "level", "quality")
        return Labels(message.start + start, *(getattr(message, name)[start:stop].copy() for name in fields))
    return replace(
        message,
        data=message.data[start:stop].copy(),
        start=message.start + start,
        times=None if message.times is None else message.times[start:stop].copy(),
        fresh=message.fresh if start == 0 else None,
    )


def random_sizes(n: int, rng: np.random.Generator) -> list[int]:
    """Return chunk sizes of one temper: single samples, a few, or up to half the stream, with empty ones between."""
    largest = int(rng.choice([1, 3, 17, 100, max(2, n // 2)]))
    sizes: list[int] = []
    while sum(sizes) < n:
        sizes.append(int(rng.integers(0, largest + 1)))
    return sizes


def flatten(outputs: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return outputs row by row and event by event, so that two cuts of one stream compare equal."""
    flat: list[tuple[Any, ...]] = []
    for item in outputs:
        if isinstance(item, Break):
            flat.append(("break", item.kind, item.at, item.missing))
        elif isinstance(item, Chunk):
            if item.fresh is not None and len(item):
                flat.append(("fresh", item.start, item.fresh.tobytes()))
            mask = b"" if item.good is None else item.good.tobytes()
            flat += [("row", item.start + i, row.tobytes(), mask, item.filled) for i, row in enumerate(item.data)]
        elif isinstance(item, Labels):
            values = np.column_stack([item.own, item.gfp, item.level, item.quality, item.along])
            flat += [("label", item.start + i, int(s), values[i].tobytes()) for i, s in enumerate(item.state)]
        elif isinstance(item, Tokens):
            flat += [("token", token) for token in item]
        else:
            raise TypeError(f"a stage put out {type(item).__name__}")
    return flat


def assert_same(got: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Compare two outputs: everything identical, but for token attributes, which may differ by 1e-6 relative."""
    got, wanted = flatten(got), flatten(wanted)
    assert [key(item) for item in got] == [key(item) for item in wanted]
    attributes = [attributes_of(item) for item in got if item[0] == "token"]
    reference = [attributes_of(item) for item in wanted if item[0] == "token"]
    np.testing.assert_allclose(attributes, reference, rtol=1e-6, atol=1e-9)


def key(item: tuple[Any, ...]) -> tuple[Any, ...]:
    if item[0] != "token":
        return item
    token = item[1]
    return "token", token.state, token.start, token.duration, token.band


def attributes_of(item: tuple[Any, ...]) -> list[float]:
    token = item[1]
    return [token.gfp, token.gfp_rel, token.corr, token.quality, token.power, token.explained]


def faulty(n: int, rng: np.random.Generator, rate_hz: float = 250.0) -> Chunk:
    """Return EEG with random faults: gaps, repeats, clock steps, jitter, NaN bursts, dead and railed electrodes."""
    data = eeg(n, rng, rate_hz=rate_hz)
    times = 1000.0 + np.arange(n) / (rate_hz * (1 + rng.choice([0, 0, 1e-4, -3e-4])))
    for _ in range(int(rng.integers(1, 7))):
        at, channel = int(rng.integers(0, len(data))), int(rng.integers(0, data.shape[1]))
        length = int(rng.choice([1, 5, 30, 200, 600]))
        span = slice(at, at + length)
        fault = rng.choice(["gap", "repeat", "step", "jitter", "nan", "inf", "dead", "railed", "pop", "burst", "late"])
        if fault == "gap":
            data, times = np.delete(data, np.s_[span], axis=0), np.delete(times, np.s_[span])
        elif fault == "repeat":
            data = np.concatenate([data[: at + length], data[at:]])
            times = np.concatenate([times[: at + length], times[at:]])
        elif fault == "step":
            times[at:] += rng.choice([-30.0, -1.0, -0.02, 0.03, 0.5, 20.0])
        elif fault == "jitter":
            times[span] += rng.normal(0, 0.002, len(times[span]))
        elif fault == "nan":
            data[span, channel] = np.nan
        elif fault == "inf":
            data[span, rng.integers(0, 2, data.shape[1]).astype(bool)] = np.inf
        elif fault == "dead":
            data[at:, channel] = data[at - 1, channel]
        elif fault == "railed":
            data[span, channel] = np.clip(data[span, channel] * 100, -187.5, 187.5)
        elif fault == "pop":
            data[span, channel] += 5000
        elif fault == "burst":
            data[span][rng.random(data[span].shape) < 0.3] = np.nan
        elif fault == "late":
            times[at] += 0.004
        if len(data) < 10:
            break
    return Chunk(np.ascontiguousarray(data), times=times)
