"""EDF and BDF files, written while the samples are made: one second of them is held at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

import numpy as np

from rtbrain.messages import FloatArray
from rtbrain.simulation.layouts.digital import digitised

Kind = Literal["EDF", "BDF"]
_BEGINNING: Final[dict[Kind, bytes]] = {"EDF": b"0       ", "BDF": b"\xffBIOSEMI"}
_RESERVED: Final[dict[Kind, str]] = {"EDF": "", "BDF": "24BIT"}
_BITS: Final[dict[Kind, int]] = {"EDF": 16, "BDF": 24}


@dataclass(frozen=True)
class EdfSignal:
    """One column of the samples, as the header describes it."""

    label: str
    low: str
    """Physical value of the smallest number that can be stored, as it is written."""
    high: str
    unit: str = "uV"
    prefilter: str = ""
    transducer: str = ""


def write_edf(
    path: Path,
    kind: Kind,
    signals: Sequence[EdfSignal],
    rate_hz: int,
    blocks: Iterable[FloatArray],
    date: str = "01.01.85 00.00.00",
) -> None:
    """Write samples as EDF (16 bits) or BDF (24 bits), in records of one second.

    Parameters
    ----------
    path : Path
        File to write.
    kind : {"EDF", "BDF"}
        Which of the two.
    signals : sequence of EdfSignal
        Columns of the blocks.
    rate_hz : int
        Of all signals.
    blocks : iterable of (n, signals) arrays
        Consecutive samples in the signals' units, whole seconds in all.
    date : str
        Start of the recording, `dd.mm.yy hh.mm.ss`; the default is the format's word for unknown.
    """
    limits = [_limits(signal, kind) for signal in signals]
    with path.open("wb") as file:
        file.write(_header(kind, signals, rate_hz, date))
        n_records = 0
        for records in _seconds(blocks, rate_hz):
            numbers = np.stack(
                [digitised(records[:, i], *limits[i], _BITS[kind], path) for i in range(len(signals))], axis=1
            )  # (n, signals)
            _write_records(file, numbers.reshape(-1, rate_hz, len(signals)), kind)
            n_records += len(numbers) // rate_hz
        file.seek(236)
        file.write(_text(n_records, 8))


def _limits(signal: EdfSignal, kind: Kind) -> tuple[float, float]:
    """Return what one step and zero mean: step size, and value of the number 0."""
    low, high = float(signal.low), float(signal.high)
    step = (high - low) / (2 ** _BITS[kind] - 1)
    return step, low + step * 2 ** (_BITS[kind] - 1)


def _seconds(blocks: Iterable[FloatArray], rate_hz: int) -> Iterator[FloatArray]:
    """Cut or join blocks to whole seconds."""
    held: FloatArray | None = None
    for block in blocks:
        held = block if held is None else np.concatenate([held, block])
        whole = len(held) - len(held) % rate_hz
        if whole:
            yield held[:whole]
            held = held[whole:]
    if held is not None and len(held):
        raise ValueError(f"{len(held)} samples are left over; an EDF holds whole seconds only")


def _write_records(file: IO[bytes], numbers: "np.ndarray[tuple[int, ...], np.dtype[np.int32]]", kind: Kind) -> None:
    ordered = np.ascontiguousarray(numbers.transpose(0, 2, 1))  # (records, signals, samples)
    if kind == "EDF":
        file.write(ordered.astype("<i2").tobytes())
    else:
        file.write(ordered.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes())


def _header(kind: Kind, signals: Sequence[EdfSignal], rate_hz: int, date: str) -> bytes:
    n, day, time = len(signals), *date.split()
    head = _BEGINNING[kind] + _text("X X X X", 80) + _text("Startdate X X X X", 80) + _text(day, 8) + _text(time, 8)
    head += _text(256 * (n + 1), 8) + _text(_RESERVED[kind], 44) + _text(-1, 8) + _text(1, 8) + _text(n, 4)
    smallest = -(2 ** (_BITS[kind] - 1))
    columns: list[tuple[int, list[object]]] = [
        (16, [signal.label for signal in signals]),
        (80, [signal.transducer for signal in signals]),
        (8, [signal.unit for signal in signals]),
        (8, [signal.low for signal in signals]),
        (8, [signal.high for signal in signals]),
        (8, [smallest] * n),
        (8, [-smallest - 1] * n),
        (80, [signal.prefilter for signal in signals]),
        (8, [rate_hz] * n),
        (32, [""] * n),
    ]
    return head + b"".join(_text(value, width) for width, values in columns for value in values)


def _text(value: object, width: int) -> bytes:
    text = str(value).encode("latin-1")
    if len(text) > width:
        raise ValueError(f"{value!r} does not fit into {width} characters of an EDF header")
    return text.ljust(width)
