"""A view of what a live decoder publishes, for a terminal."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from time import monotonic
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live as LiveView
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rtbrain.errors import SourceError
from rtbrain.security import ClientKeys
from rtbrain.sinks.zmq_sub import Subscriber

SILENT_S: Final = 3.0
"""A decoder sends a status each second; after so long without one it is not there any more."""

MOST_MISSING: Final = 3
"""Decisions that may fail to come before the last one is not the present any more."""

BAR: Final = 40
_RECEIVE_S: Final = 0.1
_OLD: Final = "the last decision; nothing newer comes in"


def longest_wait_s(meta: dict[str, Any] | None) -> float:
    """Return after how long without a new decision the last one is old, though samples come: filters may settle."""
    if meta is None or meta["source"] is None:
        return SILENT_S
    return max(SILENT_S, MOST_MISSING / float(meta["output_hz"] * meta["source"]["speed"]))


@dataclass
class View:
    """The newest message of each topic, and what follows from them."""

    newest: dict[str, dict[str, Any]] = field(default_factory=dict)
    heard_s: float | None = None
    decided_s: float | None = None
    missed: int = 0

    def take(self, values: dict[str, Any], now_s: float, missed: int) -> None:
        """Take a message."""
        self.newest[values["topic"]] = values
        self.heard_s, self.missed = now_s, missed
        if values["topic"] == "state":
            self.decided_s = now_s

    def source_line(self, now_s: float) -> str:
        """Return in words how the source is, or that the decoder itself is silent."""
        if self.heard_s is None:
            return "nothing has been received yet; is the decoder running, and this its endpoint?"
        if now_s - self.heard_s > SILENT_S:
            return f"NOTHING RECEIVED for {now_s - self.heard_s:.0f} s: the decoder ended or the network is down"
        status = self.newest.get("status")
        if status is None:
            return "waiting for a status message"
        samples = status["samples"]
        text = (
            f"source {status['state']}: {samples['received']} samples received, {samples['lost']} lost, "
            f"{samples['skipped']} skipped, "
            f"{status['gaps']} gaps, {status['reconnects']} reconnects, {self.missed} messages missed here"
        )
        if status.get("away_s"):  # older decoders do not say
            text += f", {status['away_s']:.1f} s without samples"
        if status.get("markers_dropped"):
            text += f", {status['markers_dropped']} markers dropped"
        bad = f"; bad channels: {', '.join(status['bad_channels'])}" if status["bad_channels"] else ""
        return text + bad + (f"; {status['trouble']}" if status["trouble"] else "")

    def is_old(self, now_s: float) -> bool:
        """Tell whether the newest decision is not the present's: it must not look like one."""
        status, decided_s = self.newest.get("status"), self.decided_s
        if self.heard_s is None or now_s - self.heard_s > SILENT_S:
            return True
        if status is not None and status["state"] in ("stalled", "lost", "waiting"):
            return True
        return decided_s is None or now_s - decided_s > longest_wait_s(self.newest.get("meta"))

    def state_line(self, now_s: float) -> str:
        """Return the newest decision in one line."""
        state = self.newest.get("state")
        if state is None:
            return self.waiting_line()
        shares = ", ".join(f"{name} {value:.3f}" for name, value in state["probabilities"].items())
        old = f"; {_OLD}" if self.is_old(now_s) else ""
        return f"{state['label']} ({shares}) {self.verdict()}; {_about(state)}{old}"

    def waiting_line(self) -> str:
        """Return what the first decision waits for and, where the messages tell, for how long."""
        status, meta = self.newest.get("status"), self.newest.get("meta")
        if status is None:
            return "no decision yet"
        if status["state"] not in ("live", "recovered") or meta is None or meta["source"] is None:
            return "no decision yet: the decoder waits for samples"
        warmup_s = meta.get("warmup_s")  # older decoders do not say
        if warmup_s is None or status["reconnects"] or status["gaps"]:  # each began it anew, and none says when
            return "no decision yet: the filters settle, and then the first tokens are to come"
        left_s = warmup_s - status["samples"]["received"] / meta["source"]["rate_hz"]
        if left_s <= 0:
            return "no decision yet: the filters have settled, the first tokens are to come"
        about = f"for the first {warmup_s:g} s of signal"
        return f"no decision yet: the filters settle {about}, about {ceil(left_s / meta['source']['speed'])} s to go"

    def verdict(self) -> str:
        """Return whether the newest decision is trusted, and why not."""
        state = self.newest["state"]
        return "trusted" if state["trusted"] else f"NOT TRUSTED: {'; '.join(state['reasons'])}"

    def drawn(self, now_s: float) -> Panel:
        """Return the view for a terminal."""
        lines: list[Any] = []
        state, status = (self.newest.get(topic) for topic in ("state", "status"))
        if state is None:
            lines.append(Text(self.waiting_line()))
        else:
            old = self.is_old(now_s)
            lines.append(_bars(state["probabilities"], dim=old or not state["trusted"]))
            if old:
                lines.append(Text(_OLD, style="bold red"))
            lines.append(Text(self.verdict(), style="green" if state["trusted"] else "bold yellow"))
            lines.append(Text(_about(state)))
        if status is not None and status["latency"] is not None:
            latency = status["latency"]
            lines.append(
                Text(
                    f"age p50 {latency['p50_ms']:.0f} ms, p99 {latency['p99_ms']:.0f} ms; "
                    f"CPU {status['cpu_share']:.0%} of a core, {status['rss_mb']:.0f} MB, log {status['log']['state']}"
                )
            )
        lines.append(Text(self.source_line(now_s)))
        return Panel(Group(*lines), title=escape(self.title()))

    def title(self) -> str:
        """Return which decoder this is of which stream: another one may have the endpoint."""
        meta = self.newest.get("meta")
        if meta is None:
            return "rtbrain"
        return f"rtbrain: {meta['bundle']} on {meta['source']['name'] if meta['source'] else 'no stream yet'}"


def watch_output(
    endpoint: str, keys: ClientKeys | None, stop: Callable[[], bool], seconds: float | None, *, plain: bool
) -> None:
    """Show messages until asked to stop, or for some seconds; in lines where the output is no terminal.

    Raises
    ------
    SourceError
        The seconds are over, and nothing was received.
    """
    console, view, began_s = Console(), View(), monotonic()
    with Subscriber(endpoint, ("meta", "state", "status"), keys) as subscriber:

        def step() -> dict[str, Any] | None:
            values = subscriber.receive(_RECEIVE_S)
            if values is not None:
                view.take(values, monotonic(), subscriber.missed)
            return values

        def over() -> bool:
            return stop() or (seconds is not None and monotonic() - began_s >= seconds)

        if plain or not console.is_terminal:
            _print_lines(view, step, over, console)
        else:
            with LiveView(view.drawn(monotonic()), console=console, auto_refresh=False) as shown:
                while not over():
                    step()
                    shown.update(view.drawn(monotonic()), refresh=True)
    if seconds is not None and view.heard_s is None and not stop():
        raise SourceError(
            f"nothing was received from {endpoint} in {seconds:g} s; is `rtbrain stream` running, and this the "
            "endpoint that it prints (with keys, if it asks for them)?"
        )


def _print_lines(
    view: View, step: Callable[[], dict[str, Any] | None], over: Callable[[], bool], console: Console
) -> None:
    """Print the newest decision and the source's state once a second, and who decides whenever that changes."""
    due_s, title = monotonic() + 1, View().title()
    while not over():
        step()
        if monotonic() >= due_s:
            due_s += 1
            if view.title() != title:
                title = view.title()
                console.print(title, markup=False, soft_wrap=True)
            console.print(
                f"{view.state_line(monotonic())} | {view.source_line(monotonic())}", markup=False, soft_wrap=True
            )


def _bars(probabilities: dict[str, float], *, dim: bool) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in probabilities.items():
        table.add_row(Text(name), Text("█" * round(BAR * value), style="dim" if dim else "cyan"), Text(f"{value:.3f}"))
    return table


def _about(state: dict[str, Any]) -> str:
    context, age_s = state["context"], state["age"]["total_s"]
    return (
        f"context {context['number']} ({context['began']}): {context['seconds']:.1f} s, {context['tokens']} tokens; "
        f"age {'unknown' if age_s is None else f'{1000 * age_s:.0f} ms'}"
    )
