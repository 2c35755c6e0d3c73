"""The three drawings that move: probabilities of the last minute and of the last hour, and the ribbon of tokens.

No hatch patterns: tried for the spans and the ribbon, they froze Chromium within seconds at four updates a second.
"""

from collections.abc import Sequence
from math import inf, nan
from typing import Any, Final, Literal

from bokeh.models import ColumnDataSource, CustomJSTickFormatter, DatetimeTicker, FixedTicker, Range1d
from bokeh.plotting import figure

from rtbrain.dashboard.feed import BIN_S, HISTORY_S, RECENT_S, Decision, Run
from rtbrain.dashboard.palette import UNLABELLED, line, look

RIBBON_S: Final = 6.0
"""Signal that the ribbon shows."""
LABELLED_S: Final = 0.08
"""Shorter tokens have no room for the number of their state."""
_LEAST_HISTORY_S: Final = 300.0
_TOKENS_PER_S: Final = 60
_RESTART_S: Final = 2.0
_SPARE: Final = 50


def _figure(name: str, height: int, **options: Any) -> figure:
    plot = figure(
        name=name,
        height=height,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        min_border_right=12,
        **options,
    )
    plot.xgrid.grid_line_color = None
    return plot


class Curves:
    """Probabilities over time as lines, with the spans that are not to be trusted shaded."""

    def __init__(self, name: str, span_s: float, gap_s: float, ticks: Literal["true", "false"]) -> None:
        self._span_s, self._gap_s = span_s, gap_s
        self.figure = _figure(
            name, 190, x_axis_type="datetime", x_range=Range1d(start=0, end=1), y_range=Range1d(start=-0.03, end=1.03)
        )
        self.figure.yaxis.ticker = FixedTicker(ticks=[0, 0.25, 0.5, 0.75, 1])
        # Bokeh's own formatter knows UTC only; the browser knows the time on its user's wall.
        self.figure.xaxis.formatter = CustomJSTickFormatter(code=f"return rtbrain.clock(tick, {ticks})")
        self.figure.xaxis.ticker = DatetimeTicker(desired_num_ticks=4)  # as many as there is room for on a phone
        self.source = ColumnDataSource({"at": []}, name=f"{name}-source")
        self.doubted = ColumnDataSource({"left": [], "right": []}, name=f"{name}-doubted")
        self.figure.quad(
            left="left", right="right", bottom=-0.03, top=1.03, source=self.doubted,
            fill_color="#888888", fill_alpha=0.28, line_color=None,
        )  # fmt: skip
        self._lines: list[Any] = []
        self._rows: list[Decision] = []
        self._last_s = inf

    def begin(self, n_classes: int) -> None:
        """Forget all, and draw so many classes from now on."""
        self.figure.renderers = [each for each in self.figure.renderers if each not in self._lines]
        self.source.data = {"at": [], **{f"p{i}": [] for i in range(n_classes)}}
        self._rows, self._last_s = [], inf
        self._lines = [
            self.figure.line("at", f"p{i}", source=self.source, line_width=3,
                             line_color=line(i)["colour"], line_dash=line(i)["dash"])
            for i in range(n_classes)
        ]  # fmt: skip

    def add(self, decisions: Sequence[Decision], now_s: float) -> None:
        """Draw more decisions, and let the time go on to the present."""
        self._rows = [each for each in (*self._rows, *decisions) if each.at_s > now_s - self._span_s - self._gap_s]
        columns: dict[str, Any] = {name: [] for name in self.source.column_names}
        for each in decisions:
            if each.at_s - self._last_s > self._gap_s:  # no line across a time without any decision
                _append(columns, self._last_s, [nan] * len(each.probabilities))
            _append(columns, each.at_s, each.probabilities)
            self._last_s = each.at_s
        if columns["at"]:
            _draw(self.source, columns, len(self._rows) + _SPARE)
        left, right = spans(self._rows, self._gap_s)
        if left or self.doubted.data["left"]:
            self.doubted.data = {"left": left, "right": right}
        first_s = self._rows[0].at_s if self._rows else now_s
        shown_s = min(self._span_s, max(_LEAST_HISTORY_S, now_s - first_s))
        self.figure.x_range.update(start=1000 * (now_s - shown_s), end=1000 * now_s)


def _draw(source: ColumnDataSource, columns: dict[str, Any], most: int) -> None:
    """Add rows, and keep so many at the most.

    The first ones are set, not streamed: of a source that is emptied and streamed to within one tick the browser would
    get these rows twice, as Bokeh sends what was set by the time that the tick ends.
    """
    if len(source.data[next(iter(columns))]):
        source.stream(columns, rollover=most)
    else:
        source.data = columns


def _append(columns: dict[str, Any], at_s: float, values: Sequence[float]) -> None:
    columns["at"].append(1000 * at_s)
    for i, value in enumerate(values):
        columns[f"p{i}"].append(value)


def spans(rows: Sequence[Decision], gap_s: float) -> tuple[list[float], list[float]]:
    """Return beginnings and ends, in milliseconds, of the stretches of decisions that are not to be trusted."""
    left: list[float] = []
    right: list[float] = []
    doubted_s = -inf  # when the stretch that is still open was confirmed last
    for each in rows:
        goes_on = each.at_s - doubted_s <= gap_s
        if goes_on:
            right[-1] = 1000 * each.at_s
        elif not each.trusted:
            left.append(1000 * each.at_s)
            right.append(1000 * each.at_s)
        doubted_s = -inf if each.trusted else each.at_s
    return left, right


def recent_curves() -> Curves:
    """Return the curves of the last minute, decision by decision."""
    return Curves("recent", RECENT_S, 1.5, "true")


def hour_curves() -> Curves:
    """Return the curves of the last hour, in means over a few seconds."""
    return Curves("hour", HISTORY_S, 2.5 * BIN_S, "false")


class Ribbon:
    """The tokens of the last seconds of signal, a row for each band, coloured by microstate."""

    def __init__(self) -> None:
        self.figure = _figure("ribbon", 100, x_range=Range1d(start=0, end=RIBBON_S), y_range=Range1d(start=0, end=1))
        self.figure.ygrid.grid_line_color = None
        names = ("left", "right", "bottom", "top", "middle", "colour", "stripe", "text")
        self._empty: dict[str, list[Any]] = {name: [] for name in names}
        self.source = ColumnDataSource(self._empty, name="ribbon-source")
        self.figure.quad(
            left="left", right="right", bottom="bottom", top="top", source=self.source,
            fill_color="colour", line_color=None,
        )  # fmt: skip
        self.figure.quad(
            left="left", right="right", bottom="bottom", top="stripe", source=self.source,
            fill_color="#000000", fill_alpha=0.65, line_color=None,
        )  # fmt: skip
        self.figure.text(
            x="left", y="middle", text="text", source=self.source, name="ribbon-numbers",
            x_offset=3, text_baseline="middle", text_font_size="13px", text_font_style="bold", text_color="#000000",
        )  # fmt: skip
        self._bands: dict[str, int] = {}
        self._end_s = 0.0

    def begin(self, bands: Sequence[str]) -> None:
        """Forget all, and draw these bands from now on, the first one on top."""
        n = len(bands)
        self._bands, self._end_s = {name: n - 1 - i for i, name in enumerate(bands)}, 0.0
        self.source.data = dict(self._empty)
        self.figure.height = 40 + 44 * n
        self.figure.y_range.update(start=0, end=n)
        self.figure.yaxis.ticker = FixedTicker(ticks=[row + 0.5 for row in self._bands.values()])
        self.figure.yaxis.major_label_overrides = {row + 0.5: name for name, row in self._bands.items()}

    def add(self, runs: Sequence[Run]) -> None:
        """Draw more tokens."""
        runs = [run for run in runs if run.band in self._bands]
        if not runs:
            return
        columns: dict[str, Any] = {name: [] for name in self._empty}
        for run in runs:
            end_s = run.start_s + run.duration_s
            if end_s < self._end_s - _RESTART_S:  # the signal began anew
                self.source.data = dict(self._empty)
                columns = {name: [] for name in self._empty}
                self._end_s = end_s
            self._end_s = max(self._end_s, end_s)
            colour, stripe = (UNLABELLED, 0.0) if run.state is None else look(run.state)
            text = "" if run.state is None or run.duration_s < LABELLED_S else str(run.state)
            bottom, top = self._bands[run.band] + 0.06, self._bands[run.band] + 0.94
            ends = (bottom, top, (bottom + top) / 2, colour, bottom + stripe * (top - bottom), text)
            values = (run.start_s, end_s, *ends)
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value)
        _draw(self.source, columns, round(RIBBON_S * _TOKENS_PER_S) * len(self._bands))
        self.figure.x_range.update(start=self._end_s - RIBBON_S, end=self._end_s)
