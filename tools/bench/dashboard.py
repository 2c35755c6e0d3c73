"""What an open page of the dashboard costs its server, minute by minute, up to an hour of history and beyond.

A decoder's messages (64 channels, four bands of 16 microstates, 100 tokens and 10 decisions a second, a status each
second) are decoded from frames and taken in; the page is brought up to date four times a second on a clock that is not
waited for, and each change is made into the message that a browser would get. Not in it: sockets, and the browser.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import sys
import time
from collections.abc import Iterator

import numpy as np
from bokeh.document import Document
from bokeh.document.events import DocumentPatchedEvent
from bokeh.protocol import Protocol

from rtbrain.dashboard.feed import Feed
from rtbrain.dashboard.page import TICK_MS, Page
from rtbrain.protocol import Encoder, decode
from rtbrain.published import (
    Age,
    BandMeta,
    ContextMeta,
    LatencyMeta,
    LogMeta,
    Message,
    Meta,
    SampleCounts,
    SourceMeta,
    StateMessage,
    StateStatistics,
    StatusMessage,
    TokenMessage,
)
from rtbrain.sinks.zmq_sub import Subscriber
from rtbrain.sources.electrodes import TEN_TEN_64
from rtbrain.telemetry import rss_mb

BANDS, STATES, TOKENS_PER_S, DECISIONS_PER_S = 4, 16, 100, 10
MOST_SHARE = 0.05
"""Of one core, for one open page."""
MOST_GROWTH = 1.3
"""What the last minutes may cost over the second one."""


def first_messages() -> list[Message]:
    """Return what a decoder says at its start."""
    rng = np.random.default_rng(0)
    usual = StateStatistics((1 / STATES,) * STATES, (0.05,) * STATES, ((1 / STATES,) * STATES,) * STATES)
    maps = tuple(map(tuple, rng.uniform(-1, 1, (STATES, len(TEN_TEN_64))).round(3).tolist()))
    bands = tuple(BandMeta(f"band {i}", 1.0 + 8 * i, 9.0 + 8 * i, STATES, maps, usual) for i in range(BANDS))
    source = SourceMeta("EEG", "amplifier", "lab", 1000.0, 1.0)
    return [
        Meta(
            "0", "bench", "0" * 64, True, ("rest", "task"), TEN_TEN_64, bands, "0" * 64, 250.0, 10.0, 60.0, 0.01, 0.25,
            source, "now",
        )
    ]  # fmt: skip


def messages_of(second: int, rng: np.random.Generator) -> list[tuple[float, Message]]:
    """Return a second's messages and their times, in order."""
    found: list[tuple[float, Message]] = []
    for i in range(TOKENS_PER_S):
        at_s = second + i / TOKENS_PER_S
        step_s = BANDS / TOKENS_PER_S
        state = int(rng.integers(STATES))
        start_s = (i // BANDS) * step_s + second
        found.append((at_s, TokenMessage(1, f"band {i % BANDS}", state, start_s, step_s, 5.0, 0.0, 0.8, 1.0, 0.7)))
    for i in range(DECISIONS_PER_S):
        at_s, share = second + (i + 0.5) / DECISIONS_PER_S, float(rng.random())
        state = StateMessage(
            at_s, at_s, "rest" if share > 0.5 else "task", {"rest": share, "task": 1 - share},
            ContextMeta(1, 1000, 60.0, "start"), second % 60 > 9, () if second % 60 > 9 else ("the context is short",),
            Age(0.02, 0.01, 0.01, 0.1, 0.002, 0.0001), (),
        )  # fmt: skip
        found.append((at_s, state))
    latency, log = LatencyMeta(1000, 20.0, 25.0, 30.0, 40.0), LogMeta("writing", second, 0, "")
    counts = SampleCounts(1000 * second, 0, 0, 0, 0, 0)
    status = StatusMessage("live", "", 0.01, counts, 0, 0, 0, 0, (), 0, 0.1, 150.0, latency, 0, log)
    found.append((second + 0.99, status))
    return sorted(found, key=lambda each: each[0])


def minutes(n: int) -> Iterator[dict[str, float]]:
    """Yield what each minute of a session cost."""
    clock = {"now": 0.0}
    protocol, sent = Protocol(), {"bytes": 0, "messages": 0}

    def send(event: DocumentPatchedEvent) -> None:
        message = protocol.create("PATCH-DOC", [event])
        sent["bytes"] += len(message.content_json) + sum(len(each.to_bytes()) for each in message.buffers)
        sent["messages"] += 1

    with Subscriber("inproc://nobody") as subscriber:
        feed, encoder, rng = Feed(subscriber), Encoder(), np.random.default_rng(1)
        for message in first_messages():
            feed.take(decode(encoder.frame(message, 0.0))[1], 0.0)
        document = Document()
        page = Page(document, feed, "inproc://nobody", lambda: clock["now"])
        document.on_change(send)
        for minute in range(n):
            sent |= {"bytes": 0, "messages": 0}
            spent_s = 0.0
            for second in range(60 * minute, 60 * (minute + 1)):
                frames = [(at_s, encoder.frame(each, at_s)) for at_s, each in messages_of(second, rng)]
                began_s = time.process_time()
                tick_s = TICK_MS / 1000
                due_s = second + tick_s
                for at_s, frame in frames:
                    while at_s >= due_s:
                        clock["now"] = due_s
                        page.update()
                        due_s += tick_s
                    feed.take(decode(frame)[1], at_s)
                clock["now"] = second + 1.0
                page.update()
                spent_s += time.process_time() - began_s
            yield {
                "minute": minute + 1,
                "core": spent_s / 60,
                "kb_per_s": sent["bytes"] / 60e3,
                "messages_per_s": sent["messages"] / 60,
                "rss_mb": rss_mb(),
            }


def main() -> int:
    """Run, print a table and one line of JSON, and check it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=65, help="of the session")
    parser.add_argument("--check", action="store_true", help="fail if the cost grows or is too large")
    args = parser.parse_args()
    print(f"{'minute':>8}{'of a core':>11}{'kB/s':>8}{'messages/s':>12}{'MB':>8}")
    rows = []
    for row in minutes(args.minutes):
        rows.append(row)
        if row["minute"] in (1, 2, 5) or row["minute"] % 10 == 0 or row["minute"] == args.minutes:
            print(
                f"{row['minute']:8}{row['core']:11.1%}{row['kb_per_s']:8.1f}{row['messages_per_s']:12.1f}{row['rss_mb']:8.0f}",
                flush=True,
            )
    early, late = rows[min(1, len(rows) - 1)], rows[-min(5, len(rows)) :]
    share = float(np.median([row["core"] for row in late]))
    result = {
        "early": early,
        "late_core": share,
        "growth": share / early["core"],
        "rss_growth_mb": rows[-1]["rss_mb"] - early["rss_mb"],
    }
    print(json.dumps(result))
    if args.check and (share > MOST_SHARE or result["growth"] > MOST_GROWTH):
        print(
            f"too much: at most {MOST_SHARE:.0%} of a core and {MOST_GROWTH} times the second minute", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
