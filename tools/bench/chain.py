"""How fast the whole chain turns samples into tokens, and whether that stays so over hours.

64 channels at 1000 Hz, default recipe, six states, one thread. The signal is one minute of synthetic EEG that is fed
again and again with running time stamps; making it is not timed.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import resource
import sys
import time

import numpy as np

from rtbrain.messages import Chunk, StreamInfo
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe, build
from rtbrain.sources.electrodes import TEN_TEN_64
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.stage import Chain

RATE = 1000.0
TARGETS = {"realtime_10ms": 40.0, "realtime_1s": 200.0}
MOST_GROWTH = 1.25
"""Cost of the last hour over cost of the first, in CPU time; the rest is the machine's noise."""
MOST_RSS_GROWTH_MB = 8.0


def one_minute() -> tuple[StreamInfo, np.ndarray, Templates]:
    """Return a minute of synthetic EEG and templates for it."""
    source = Synthetic(SyntheticSettings(rate_hz=RATE, channels=TEN_TEN_64, n_states=6, duration_s=60))
    data = np.concatenate([chunk.data for chunk in source.chunks()])
    return source.info, data, Templates(TEN_TEN_64, (referenced(source.maps),))


def opened(info: StreamInfo, templates: Templates) -> Chain:
    """Return a new chain, ready for the first sample."""
    chain = build(Recipe(), templates)
    chain.open(info)
    return chain


def feed(chain: Chain, data: np.ndarray, size: int, minute: int) -> tuple[float, int]:
    """Push one minute in chunks; return CPU seconds and tokens."""
    times = minute * 60 + np.arange(len(data)) / RATE
    chunks = [Chunk(data[i : i + size], times=times[i : i + size]) for i in range(0, len(data), size)]
    began = time.process_time()
    tokens = sum(len(item) for chunk in chunks for item in chain.process(chunk))
    return time.process_time() - began, tokens


def rss_mb() -> float:
    """Return the memory that the process has in use now, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def speed(info: StreamInfo, data: np.ndarray, templates: Templates) -> dict[str, float]:
    """Measure multiples of real time for several chunk lengths, over some minutes of signal each.

    The targets are checked on the median; best and worst show how noisy the machine was.
    """
    figures = {}
    print(f"{'chunk':>10} {'x real time, median':>20} {'best':>6} {'worst':>6} {'per chunk, median':>18}")
    for label, size in (("1ms", 1), ("10ms", 10), ("50ms", 50), ("1s", 1000)):
        chain = opened(info, templates)
        costs = np.array([feed(chain, data, size, minute)[0] for minute in range(3 if size == 1 else 9)])
        median, best, worst = 60 / np.median(costs), 60 / costs.min(), 60 / costs.max()
        figures |= {f"realtime_{label}": float(median), f"realtime_{label}_best": float(best)}
        per_chunk = 1e6 * float(np.median(costs)) * size / len(data)
        print(f"{label:>10} {median:>20.0f} {best:>6.0f} {worst:>6.0f} {per_chunk:>15.0f} us")
    return figures


def endurance(info: StreamInfo, data: np.ndarray, templates: Templates, hours: float) -> dict[str, float]:
    """Run for hours of signal in chunks of a second; return how cost and memory change."""
    chain = opened(info, templates)
    minutes = max(20, round(hours * 60))
    costs, memory, tokens = [], [], 0
    for minute in range(minutes):
        cost, found = feed(chain, data, 1000, minute)
        costs.append(cost / 60)
        memory.append(rss_mb())
        tokens += found
    tenth = max(1, minutes // 10)
    parts = [slice(i, i + tenth) for i in range(0, tenth * 10, tenth)]
    print(f"\n{'signal':>10} {'ms per s of EEG':>16} {'RSS MB':>8}")
    for part in parts:
        print(f"{part.stop / 60:>8.1f} h {1e3 * np.median(costs[part]):>16.2f} {memory[part.stop - 1]:>8.1f}")
    # The first minutes fill caches and the allocator's pools; memory counts from then on.
    return {
        "hours": minutes / 60,
        "tokens_per_s": tokens / (60 * minutes),
        "cost_growth": float(np.median(costs[parts[-1]]) / np.median(costs[parts[0]])),
        "rss_growth_mb": memory[-1] - memory[tenth - 1],
    }


def main() -> int:
    """Run both parts; with --check say by the exit code whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=10.0, help="hours of signal for the endurance part")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    args = parser.parse_args()
    info, data, templates = one_minute()
    figures = speed(info, data, templates) | endurance(info, data, templates, args.hours)
    missed = [f"{name} {figures[name]:.0f} < {least:g}" for name, least in TARGETS.items() if figures[name] < least]
    if figures["cost_growth"] > MOST_GROWTH:
        missed.append(f"cost_growth {figures['cost_growth']:.2f} > {MOST_GROWTH}")
    if figures["rss_growth_mb"] > MOST_RSS_GROWTH_MB:
        missed.append(f"rss_growth_mb {figures['rss_growth_mb']:.1f} > {MOST_RSS_GROWTH_MB}")
    print("\n" + ("missed: " + "; ".join(missed) if missed else "all targets met"))
    print(json.dumps(figures | {"missed": missed}))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
