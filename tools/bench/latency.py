"""How much later than plain LSL a decision is, over minutes, with a context that is nearly full.

64 channels at 1000 Hz, chunks of 10 ms, a context that begins with 15,000 tokens. Sender, decoder and a plain LSL
reader are processes of their own; this one subscribes over ZeroMQ. For every decision the age of its newest sample on
receipt stands beside the age at which the plain reader had the very same sample: `added` is the difference of the two
percentiles, `against the same sample` the percentile of the differences. Nothing is subtracted for filters or
look-ahead: a decision is due with its newest sample. Then the same is done to a pipeline of common parts (MNE-LSL's
StreamLSL, pycrostates on the newest second, the same model as a full pass in torch).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pylsl
import zmq
from live_parts import CHUNK, RATE, Part, stream_name, write_bundle

TARGETS = {"added_p99_ms": 5.0, "cpu_share": 0.25, "rss_mb": 300.0, "rss_growth_mb": 5.0, "unaccounted": 0.0}
"""None of these may be exceeded by ours."""

USUAL_S = 40.0
WARM_UP_S = 2.0
WORDS = {
    "decisions": "decisions",
    "decisions_per_s": "decisions a second",
    "tokens": "tokens in the context",
    "age_p50_ms": "age on receipt, p50 (ms)",
    "age_p99_ms": "age on receipt, p99 (ms)",
    "lsl_p50_ms": "plain LSL, same samples, p50 (ms)",
    "lsl_p99_ms": "plain LSL, same samples, p99 (ms)",
    "added_p50_ms": "added, p50 (ms)",
    "added_p99_ms": "added, p99 (ms)",
    "paired_p99_ms": "against the same sample, p99 (ms)",
    "cpu_share": "share of one core",
    "rss_mb": "memory (MB)",
    "rss_growth_mb": "growth of memory (MB)",
    "unaccounted": "samples unaccounted for",
    "messages_missed": "messages missed",
    "stolen_s": "given to other machines (core s)",
}


def stolen_s() -> float:
    """Return the seconds of processor time so far that a virtual machine's host gave to others; 0 where none says so.

    While they do, nothing runs here: percentiles of a run with seconds of it tell of the host, not of rtbrain.
    """
    with suppress(OSError, IndexError):
        return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")
    return 0.0


def measure(role: str, seconds: float, folder: Path) -> dict[str, float]:
    """Run a pipeline for so long beside the plain reader, and return the figures."""
    name = f"bench-latency-{role}-{os.getpid()}"
    stream = stream_name(name, 0)
    sender = Part("send", name, "--seconds", seconds)
    sender.said()
    decoder = Part(role, stream, "--bundle", folder)
    context = zmq.Context()
    subscriber: Any = context.socket(zmq.SUB)
    subscriber.setsockopt(zmq.RCVHWM, 0)
    subscriber.setsockopt(zmq.SUBSCRIBE, b"stat")  # state and status
    subscriber.connect(decoder.said())
    reader: Part | None = None
    states, statuses, memory_mb = [], [], []
    try:
        decoder.said()  # the context is full
        reader = Part("read", stream)
        reader.said()
        sender.go()
        began_s, began_cpu_s, began_stolen_s = time.monotonic(), decoder.cpu_s(), stolen_s()
        while sender.process.poll() is None:
            if subscriber.poll(100):
                frame, now_s = subscriber.recv(), pylsl.local_clock()
                topic, _, body = frame.partition(b" ")
                if topic == b"state":
                    states.append((json.loads(body), now_s))
                else:
                    statuses.append(json.loads(body))
            if time.monotonic() - began_s > len(memory_mb):
                memory_mb.append(decoder.rss_mb())
        share = (decoder.cpu_s() - began_cpu_s) / (time.monotonic() - began_s)
        stolen = stolen_s() - began_stolen_s
        sent = json.loads(sender.said())
        plain_s = np.array(json.loads(reader.said()))
    finally:
        for part in (sender, decoder, reader):
            if part is not None:
                part.end()
        context.destroy(linger=0)
    found = ages(states, plain_s, sent["start_s"])
    settled = memory_mb[max(2, len(memory_mb) // 10) :] or memory_mb
    found |= {"cpu_share": share, "rss_mb": max(memory_mb), "rss_growth_mb": settled[-1] - settled[0]}
    found |= {"decisions_per_s": len(states) / seconds, "stolen_s": stolen}
    if statuses:
        found |= accounts(states, statuses, sent["sent"])
    else:
        found["tokens"] = states[-1][0]["tokens"]
    return found


def ages(states: list[tuple[dict[str, Any], float]], plain_s: np.ndarray, start_s: float) -> dict[str, float]:
    """Return percentiles of the ages on receipt, ours and the plain reader's, of the same samples."""
    both = []
    for state, now_s in states:
        if state["time_s"] is None:
            continue
        at = round((state["time_s"] - start_s) * RATE)
        if WARM_UP_S * RATE <= at < len(plain_s) * CHUNK:
            both.append((now_s - state["time_s"], plain_s[at // CHUNK] - at % CHUNK / RATE))
    ours, plain = 1e3 * np.array(both).T
    p50, p99 = np.percentile(ours, (50, 99)).tolist()
    plain_p50, plain_p99 = np.percentile(plain, (50, 99)).tolist()
    return {
        "decisions": len(both),
        "age_p50_ms": p50,
        "age_p99_ms": p99,
        "lsl_p50_ms": plain_p50,
        "lsl_p99_ms": plain_p99,
        "added_p50_ms": p50 - plain_p50,
        "added_p99_ms": p99 - plain_p99,
        "paired_p99_ms": float(np.percentile(ours - plain, 99)),
    }


def accounts(states: list[Any], statuses: list[dict[str, Any]], sent: int) -> dict[str, float]:
    """Return what became of all samples and messages, by our decoder's own word."""
    samples, seqs = statuses[-1]["samples"], [state["seq"] for state, _ in states]
    return {
        "tokens": states[-1][0]["context"]["tokens"],
        "unaccounted": abs(sent - samples["received"]) + samples["lost"] + samples["skipped"] + samples["filled"],
        "messages_missed": seqs[-1] - seqs[0] + 1 - len(seqs),
    }


def table(ours: dict[str, float], usual: dict[str, float]) -> str:
    """Return the figures side by side."""
    lines = [f"{'':36}{'ours':>12}{'usual parts':>14}{'at most':>10}"]
    for key, words in WORDS.items():
        cells = [f"{column[key]:.2f}" if key in column else "-" for column in (ours, usual)]
        lines.append(f"{words:36}{cells[0]:>12}{cells[1]:>14}{f'{TARGETS[key]:g}' if key in TARGETS else '':>10}")
    return "\n".join(lines)


def main() -> int:
    """Measure; with --check say by the exit code whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder))
        ours = measure("decode", args.seconds, Path(folder))
        usual = measure("usual", min(USUAL_S, args.seconds), Path(folder))
    print(table(ours, usual))
    missed = [f"{key} {ours[key]:.2f} > {most:g}" for key, most in TARGETS.items() if ours[key] > most]
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    print(json.dumps(ours | {"usual": usual, "missed": missed}))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
