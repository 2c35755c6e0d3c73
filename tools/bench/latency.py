"""How much later than plain LSL a decision is, over minutes, with a context that is nearly full.

64 channels at 1000 Hz, chunks of 10 ms, a context that begins with 15,000 tokens. Sender, decoder and a plain LSL
reader are processes of their own; this one subscribes over ZeroMQ. For every decision the age of its newest sample on
receipt is compared with the age at which the plain reader had the very same sample. Nothing is subtracted: a decision
is due with its newest sample, and does not wait for the look-ahead.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pylsl
from pylsl.util import LostError

RATE, CHUNK, STATES = 1000, 10, 6
PREFILLED, T_MAX = 15_000, 21_000
TARGETS = {"added_p99_ms": 5.0, "cpu_share": 0.25, "rss_mb": 300.0, "rss_growth_mb": 5.0, "unaccounted": 0.0}
"""None of these may be exceeded."""


def send(name: str, seconds: float) -> None:
    """Be the amplifier: each sample is stamped with the time it is due, each chunk sent when its last one is."""
    from rtbrain.sources.electrodes import TEN_TEN_64
    from rtbrain.sources.synthetic import Synthetic, SyntheticSettings

    source = Synthetic(SyntheticSettings(rate_hz=RATE, channels=TEN_TEN_64, n_states=STATES, duration_s=20))
    data = np.concatenate([chunk.data for chunk in source.chunks()]).astype(np.float32)
    info = pylsl.StreamInfo(name, "EEG", len(TEN_TEN_64), RATE, "float32", name)
    channels = info.desc().append_child("channels")
    for label in TEN_TEN_64:
        channel = channels.append_child("channel")
        channel.append_child_value("label", label)
        channel.append_child_value("unit", "microvolts")
    outlet = pylsl.StreamOutlet(info, chunk_size=CHUNK)
    print("announced", flush=True)
    sys.stdin.readline()
    start_s = pylsl.local_clock() + 0.5
    for first in range(0, round(seconds * RATE), CHUNK):
        stamps_s = start_s + np.arange(first, first + CHUNK) / RATE
        wait_s = stamps_s[-1] - pylsl.local_clock()
        if wait_s > 0:
            time.sleep(wait_s)
        at = first % (len(data) - CHUNK)
        outlet.push_chunk(data[at : at + CHUNK], stamps_s.tolist())
    time.sleep(2)
    print(json.dumps({"sent": round(seconds * RATE), "start_s": start_s}), flush=True)


def read(name: str) -> None:
    """Be the plain reader: print stamp and age on receipt of every tenth of a second's first sample."""
    (found,) = pylsl.resolve_byprop("name", name, timeout=30)
    inlet = pylsl.StreamInlet(found, recover=False)
    inlet.open_stream(30)
    print("reading", flush=True)
    ages, seen = {}, 0
    while True:
        try:
            _, first = inlet.pull_sample(timeout=60.0)
            _, rest = inlet.pull_chunk(timeout=0.0)
        except LostError:  # the sender ended
            break
        now_s = pylsl.local_clock()
        for stamp_s in (first, *rest):
            if seen % (RATE // 10) == 0:
                ages[seen] = now_s - stamp_s
            seen += 1
    print(json.dumps(ages), flush=True)


def decode(name: str, folder: Path) -> None:
    """Be `rtbrain stream`, with tokens in the context before the first sample."""
    from rtbrain.decoder.bundle import load_bundle
    from rtbrain.decoder.session import load_step
    from rtbrain.decoder_api import Decoder
    from rtbrain.live import Live, LiveSettings
    from rtbrain.live_outputs import open_outputs

    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))

    def prefill(decoder: Decoder) -> None:
        rng = np.random.default_rng(0)
        for i in range(PREFILLED):
            end_s = (i - PREFILLED) * 0.07
            decoder.context.push(int(rng.integers(1, STATES + 1)), rng.normal(0, 0.3, 3), end_s - 0.07, end_s)
        print("prefilled", flush=True)

    bundle = load_bundle(folder)
    with open_outputs("tcp://127.0.0.1:0", bundle.classes) as outputs:
        print(outputs.zmq.endpoint, flush=True)
        model = load_step(bundle.step, "cpu")
        Live(bundle, model, outputs, LiveSettings(name), lambda: bool(stopped), lambda text: None, prefill).run()


def write_bundle(folder: Path) -> None:
    """Write a bundle of random weights and the default shape for 64 channels."""
    import torch

    from rtbrain.decoder.bundle import Card, Trust, save_bundle
    from rtbrain.microstates.templates import Templates, referenced
    from rtbrain.pipeline import Recipe
    from rtbrain.sources.electrodes import TEN_TEN_64
    from rtbrain.sources.synthetic import dipole_maps
    from rtbrain.training.export import export
    from rtbrain.training.model import BrainToken
    from rtbrain.training.model_settings import preset

    torch.set_num_threads(1)
    torch.manual_seed(0)
    export(BrainToken(preset("rtbrain", (STATES,), 2)).eval(), folder / "graphs", T_MAX)
    templates = Templates(TEN_TEN_64, (referenced(dipole_maps(TEN_TEN_64, STATES)),), Recipe().to_dict())
    card = Card(name="bench", classes=("a", "b"), context_s=1e5, trust=Trust(0.5, 0.1, 1.0, 1.0))
    save_bundle(folder / "bundle", card, templates, folder / "graphs")


def started(*role: object) -> subprocess.Popen[str]:
    """Start one of the parts."""
    command = [sys.executable, __file__, "--role", *map(str, role)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line that a part prints."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise SystemExit("a part ended early; see its error above")
    return line


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(seconds: float, folder: Path) -> dict[str, float]:
    """Run all parts for so long and return the figures."""
    from rtbrain.sinks.zmq_sub import Subscriber

    name = f"bench-latency-{os.getpid()}"
    sender = started("send", name, "--seconds", seconds)
    said(sender)
    decoder = started("decode", name, "--bundle", folder / "bundle")
    with Subscriber(said(decoder), ("state", "status")) as subscriber:
        said(decoder)  # the context is full
        reader = started("read", name)
        said(reader)
        assert sender.stdin is not None
        print("go", file=sender.stdin, flush=True)
        states, statuses = [], []
        began_s, began_cpu_s = time.monotonic(), cpu_s(decoder.pid)
        while sender.poll() is None:
            message = subscriber.receive(0.1)
            if message is not None and message["topic"] == "state":
                states.append((message, pylsl.local_clock()))
            elif message is not None:
                statuses.append(message)
        share = (cpu_s(decoder.pid) - began_cpu_s) / (time.monotonic() - began_s)
        sent = json.loads(said(sender))
        decoder.send_signal(signal.SIGTERM)
        plain = {int(at): age_s for at, age_s in json.loads(said(reader)).items()}
        decoder.wait(30)
    return figures(states, statuses, plain, sent) | {"cpu_share": share, "messages_missed": subscriber.missed}


def figures(
    states: list[tuple[dict[str, Any], float]], statuses: list[dict[str, Any]], plain: dict[int, float], sent: Any
) -> dict[str, float]:
    """Return percentiles of both ages on the same samples, in ms, and what became of all samples and memory."""
    ages = {round(state["signal_s"] * RATE): now_s - state["time_s"] for state, now_s in states if state["time_s"]}
    both = [(1e3 * ages[at], 1e3 * plain[at]) for at in sorted(ages) if at in plain][20:]  # the first 2 s warm up
    ours, theirs = np.array(both).T
    samples, newest = statuses[-1]["samples"], states[-1][0]
    tenth = max(1, len(statuses) // 10)
    (p50, p99), (plain_p50, plain_p99) = (np.percentile(each, (50, 99)).tolist() for each in (ours, theirs))
    return {
        "decisions": len(both),
        "ours_p50_ms": p50,
        "ours_p99_ms": p99,
        "lsl_p50_ms": plain_p50,
        "lsl_p99_ms": plain_p99,
        "added_p50_ms": p50 - plain_p50,
        "added_p99_ms": p99 - plain_p99,
        "inference_p50_ms": 1e3 * float(np.median([state["age"]["inference_s"] for state, _ in states])),
        "tokens": newest["context"]["tokens"],
        "unaccounted": abs(sent["sent"] - samples["received"]) + samples["lost"] + samples["skipped"],
        "rss_mb": statuses[-1]["rss_mb"],
        "rss_growth_mb": statuses[-1]["rss_mb"] - statuses[tenth]["rss_mb"],
    }


def main() -> int:
    """Measure; with --check say by the exit code whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--role", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--bundle", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    from rtbrain.lsl_scope import keep_on_this_machine

    keep_on_this_machine()
    if args.role:
        role, name = args.role
        parts = {"send": lambda: send(name, args.seconds), "read": lambda: read(name)}
        parts.get(role, lambda: decode(name, args.bundle))()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder))
        found = measure(args.seconds, Path(folder))
    for key, value in found.items():
        print(f"{key:>18} {value:10.2f}{f'  (at most {TARGETS[key]:g})' if key in TARGETS else ''}")
    missed = [f"{key} {found[key]:.2f} > {most:g}" for key, most in TARGETS.items() if found[key] > most]
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    print(json.dumps(found | {"missed": missed}))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
