"""What commands show on the screen: progress bars and tables."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from rtbrain.conditioning.units import FACTORS
from rtbrain.inspection import Inspection
from rtbrain.microstates.stats import Statistics
from rtbrain.microstates.templates import Templates
from rtbrain.tokenizing import Tokenized

LOG_WIDTH = 160
"""Characters of a line where there is no terminal: tables in a file need not be folded."""

console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else LOG_WIDTH)
error_console = Console(stderr=True, highlight=False, soft_wrap=True)


LOG_EVERY_S = 30
"""How often progress is told in a log."""


def say_in_log(text: str) -> None:
    """Print a line where there is no terminal to show a bar in."""
    if not error_console.is_terminal:
        error_console.print(text, markup=False)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """Show a bar that is moved by calling with what is being done and its share done; in a log, a line now and then."""
    told = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console, transient=True, disable=not error_console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def move(what: str, share: float) -> None:
            if what not in tasks:
                for other in tasks.values():
                    bar.update(other, visible=False)
                tasks[what] = bar.add_task(escape(what), total=1.0)
            bar.update(tasks[what], completed=share)
            nonlocal told
            if time.monotonic() - told >= LOG_EVERY_S:
                told = time.monotonic()
                say_in_log(f"{what}: {share:.0%}")

        yield move


def table(*headers: str, title: str | None = None) -> Table:
    """Return an empty table whose first column is text and whose others are numbers."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for i, header in enumerate(headers):
        made.add_column(header, justify="left" if i == 0 else "right", overflow="fold")
    return made


def show_templates(folder: Path, templates: Templates) -> None:
    """Print what is known of a template folder."""
    report = templates.report
    names = " ".join(templates.channels)
    console.print(f"[bold]{escape(str(folder))}[/bold]: {len(templates.channels)} channels: {names}")
    if "recordings" in report:
        starts = "" if report["method"] == "aahc" else f", {report['fit']['n_starts']} starts"
        said = f"{len(report['recordings'])} recording(s)"
        if "subjects" in report:
            said += f" of {len(report['subjects'])} subject(s): {', '.join(report['subjects'])}"
        console.print(f"fitted by {report['method']} (seed {report['fit']['seed']}{starts}) on {escape(said)}")
    for i, (maps, band) in enumerate(zip(templates.maps, templates.recipe["bands"], strict=True)):
        known = report["bands"][i] if report.get("bands") else {}
        line = f"band {band['name']} ({band['low_hz']:g} to {band['high_hz']:g} Hz): {len(maps)} states"
        if "gev" in known:
            line += f", GEV over peaks {100 * known['gev']:.1f} %"
        if "peaks_per_recording" in known:
            line += (
                f", {known['peaks_per_recording']} peaks of each {'subject' if 'subjects' in report else 'recording'}"
            )
        console.print(line)
        if "gev_per_state" in known:
            console.print(
                "  GEV per state: " + "  ".join(f"{j}: {100 * g:.1f} %" for j, g in enumerate(known["gev_per_state"]))
            )
        if "scan" in known:
            _show_scan(known["scan"])


def _show_scan(scan: dict[str, Any]) -> None:
    rows = table("states", "GEV", "CV")
    for k, gev, cv in zip(scan["n_states"], scan["gev"], scan["cv"], strict=True):
        mark = " *" if k == scan["recommended"] else ""
        rows.add_row(f"{k}{mark}", f"{100 * gev:.2f} %", f"{cv:.4g}")
    console.print(rows)
    console.print(f"recommended: {scan['recommended']} states; {scan['reason']}")


def show_statistics(name: str, each: Statistics) -> None:
    """Print the microstate statistics of one band."""
    rows = table("state", "coverage", "per second", "duration", "GEV", title=f"band {name}")
    for state in range(len(each.coverage)):
        rows.add_row(
            str(state),
            f"{100 * each.coverage[state]:.1f} %",
            f"{each.occurrence_hz[state]:.2f}",
            f"{each.duration_ms[state]:.0f} ms",
            f"{100 * each.gev[state]:.1f} %",
        )
    console.print(rows)
    console.print(
        f"{each.tokens_per_s:.1f} tokens/s over {each.labelled_s:.1f} s labelled, {each.unlabelled_s:.1f} s "
        f"unlabelled, GEV over all samples {100 * each.gev.sum():.1f} %"
    )


def show_health(result: Tokenized) -> None:
    """Print what was lost, filled, missing or bad; nothing if all was well."""
    counts = {name: n for name, n in result.continuity.items() if n and name != "received"}
    if counts:
        console.print("stream: " + ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in counts.items()))
    for each in result.breaks:
        console.print(f"break at {each.at_s:.3f} s: {each.reason}")
    if result.missing_channels:
        console.print(f"missing channels: {', '.join(result.missing_channels)}")
    if result.bad_share:
        console.print(f"bad channels (share of time): {_bad(result)}")


def _bad(report: Inspection | Tokenized) -> str:
    """Return the channels that were flat, railed, lost or too large, those of one share together."""
    shares: dict[str, list[str]] = {}
    for name, share in report.bad_share.items():
        shares.setdefault(f"{100 * share:.1f} %", []).append(name)
    return "; ".join(f"{share} {' '.join(names)}" for share, names in shares.items()) or "none"


def show_inspection(found: Inspection) -> None:
    """Print the facts of a recording."""
    rows = table("", "")
    rows.columns[1].justify = "left"
    amplitude = "unknown" if found.amplitude_uv is None else f"{found.amplitude_uv:.3g} uV"
    rows.add_row("format", found.format)
    rows.add_row("rate", f"{found.rate_hz:g} Hz (tokens at {found.token_rate_hz:g} Hz)")
    rows.add_row("duration", f"{found.duration_s:.2f} s")
    rows.add_row("channels", f"{len(found.channels)}: {' '.join(found.channels)}")
    rows.add_row("10-05 names", f"{len(found.scalp)}: {' '.join(found.scalp)}")
    read = "V (as read: whatever unit the file has is converted)" if found.unit == "V" else found.unit
    rows.add_row("unit", f"{read}; the amplitude fits {' or '.join(found.fitting_units) or 'none'}")
    rows.add_row("amplitude", f"{amplitude} (median standard deviation within a second)")
    counts = {name: n for name, n in found.continuity.items() if n and name != "received"}
    rows.add_row("continuity", ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items()) or "no gaps")
    for each in found.breaks:
        rows.add_row("break", each)
    rows.add_row("bad channels", "not judged, as the unit is unknown" if found.unit not in FACTORS else _bad(found))
    for note in found.notes:
        rows.add_row("note", note)
    console.print(f"[bold]{escape(found.path)}[/bold]")
    console.print(rows)


def show_findings(findings: Sequence[tuple[str, str, str]]) -> None:
    """Print what checks found: what was looked at, a verdict (ok, note or bad), and why."""
    styles = {"ok": "green", "note": "yellow", "bad": "bold red"}
    for what, verdict, text in findings:
        console.print(f"[{styles[verdict]}]{verdict:<5}[/] [bold]{what}[/bold]: {escape(text)}")
    bad, notes = (sum(verdict == each for _, verdict, _ in findings) for each in ("bad", "note"))
    well = f"nothing is broken; {notes} note(s) to read" if notes else "all is well"
    console.print(f"{bad} thing(s) to put right before decoding" if bad else well, style="bold")
