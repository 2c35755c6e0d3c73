"""How many streams one machine decodes at once, with hardly any answer older than 50 ms.

Each stream is that of tools/bench/latency.py: 64 channels at 1000 Hz in chunks of 10 ms, a context that begins with
15,000 tokens, a decoder in a process of its own. One sender feeds all of them on the same machine, and its work counts
too. The number is doubled until the 99th percentile of the age on receipt passes the limit, a decision is missing or a
sample was lost, and then narrowed down. A number that fails is tried once more, since a shared machine may stand still
for a moment by itself; both tries are printed.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pylsl
import zmq
from live_parts import Part, stream_name, write_bundle

LIMIT_MS = 50.0
WARM_UP_S = 3.0
MOST = 256


def measure(n: int, seconds: float, folder: Path) -> dict[str, float]:
    """Decode n streams for so long, and return the figures."""
    name = f"bench-many-{n}-{os.getpid()}"
    sender = Part("send", name, "--seconds", seconds + WARM_UP_S, "--streams", n)
    sender.said()
    decoders = [Part("decode", stream_name(name, i), "--bundle", folder) for i in range(n)]
    context = zmq.Context()
    subscriber: Any = context.socket(zmq.SUB)
    subscriber.setsockopt(zmq.RCVHWM, 0)
    subscriber.setsockopt(zmq.SUBSCRIBE, b"stat")  # state and status
    states, lost = [], 0
    try:
        for decoder in decoders:
            subscriber.connect(decoder.said())
        for decoder in decoders:
            decoder.said()  # the context is full
        sender.go()
        began_cpu_s = sum(decoder.cpu_s() for decoder in decoders)
        while sender.process.poll() is None:
            if subscriber.poll(100):
                frame, now_s = subscriber.recv(), pylsl.local_clock()
                topic, _, body = frame.partition(b" ")
                values = json.loads(body)
                if topic == b"state":
                    states.append((values["signal_s"], now_s, values["time_s"]))
                else:
                    lost = max(lost, values["samples"]["lost"])
        cpu_s = sum(decoder.cpu_s() for decoder in decoders) - began_cpu_s
    finally:
        for part in (sender, *decoders):
            part.process.terminate()
        for part in (sender, *decoders):
            part.end()
        context.destroy(linger=0)
    ages_ms = [1e3 * (now_s - time_s) for signal_s, now_s, time_s in states if signal_s >= WARM_UP_S and time_s]
    p50, p99 = np.percentile(ages_ms, (50, 99)).tolist() if ages_ms else (float("inf"),) * 2
    return {
        "streams": n,
        "p50_ms": p50,
        "p99_ms": p99,
        "decisions_missing": max(0, round(10 * seconds) * n - len(ages_ms)),
        "most_samples_lost": lost,
        "cpu_share_each": cpu_s / n / (seconds + WARM_UP_S),
    }


def passes(found: dict[str, float]) -> bool:
    """Tell whether all streams were decoded in time."""
    return found["p99_ms"] < LIMIT_MS and not found["decisions_missing"] and not found["most_samples_lost"]


def search(seconds: float, folder: Path) -> tuple[int, list[dict[str, float]]]:
    """Return the largest number that passes, and all that was measured."""
    rows = []

    def tried(n: int) -> bool:
        return once(n) or once(n)

    def once(n: int) -> bool:
        rows.append(measure(n, seconds, folder))
        row = rows[-1]
        print(
            f"{n:8} {row['p50_ms']:12.1f} {row['p99_ms']:12.1f} {row['decisions_missing']:12.0f} "
            f"{row['most_samples_lost']:12.0f} {row['cpu_share_each']:12.3f}  {'yes' if passes(row) else 'no'}",
            flush=True,
        )
        return passes(row)

    best, n = 0, 1
    while tried(n):
        best, n = n, 2 * n
        if n > MOST:
            return best, rows
    while n - best > 1:  # n failed, best did not
        middle = (best + n) // 2
        best, n = (middle, n) if tried(middle) else (best, middle)
    return best, rows


def main() -> int:
    """Search; with --check say by the exit code whether at least one stream is decoded in time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="for each number of streams")
    parser.add_argument("--check", action="store_true", help="exit with 1 when not even one stream is in time")
    args = parser.parse_args()
    print(f"{'streams':>8} {'p50 (ms)':>12} {'p99 (ms)':>12} {'missing':>12} {'lost':>12} {'core each':>12}  in time")
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder))
        best, rows = search(args.seconds, Path(folder))
    cores = len(os.sched_getaffinity(0))
    print(f"{best} streams at once on {cores} cores, with p99 of the age below {LIMIT_MS:g} ms")
    print(json.dumps({"streams": best, "cores": cores, "limit_ms": LIMIT_MS, "rows": rows}))
    return 1 if args.check and not best else 0


if __name__ == "__main__":
    sys.exit(main())
