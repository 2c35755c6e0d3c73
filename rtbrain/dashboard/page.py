"""One open page: a Bokeh document that takes from the feed what it has not shown yet."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import time
from typing import Any, Final

from bokeh.document import Document
from bokeh.events import DocumentReady
from bokeh.models import ColumnDataSource, CustomJS
from jinja2 import Environment, FileSystemLoader, Template

from rtbrain.dashboard.charts import Ribbon, hour_curves, recent_curves
from rtbrain.dashboard.feed import Feed, Session
from rtbrain.dashboard.view import facts, minute, present

ASSETS: Final = Path(__file__).parent / "assets"
TICK_MS: Final = 250
"""How often the page is brought up to date."""
SLOWLY: Final = 4
"""Every so many ticks also what changes slowly."""


@cache
def template() -> Template:
    """Return the page around the drawings, with its style and its script inside."""
    files = Environment(loader=FileSystemLoader(ASSETS), autoescape=False)
    parts = {name: (ASSETS / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")}
    files.globals.update(style=parts["page.css"], script=parts["page.js"])
    return files.get_template("page.html")


class Page:
    """What one browser shows."""

    def __init__(self, document: Document, feed: Feed, endpoint: str, clock: Callable[[], float] = time) -> None:
        self._feed, self._endpoint, self._clock = feed, endpoint, clock
        self._recent, self._hour, self._ribbon = recent_curves(), hour_curves(), Ribbon()
        self._session: Session | None = None
        self._seen = {"decisions": 0, "bins": 0, "tokens": 0}
        self._shape: tuple[Any, ...] = ()
        self._meta: dict[str, Any] | None = None
        self._ticks = 0
        self._texts = {name: ColumnDataSource({"json": ["null"]}, name=name) for name in ("facts", "minute", "present")}
        for name, source in self._texts.items():
            source.js_on_change("data", CustomJS(args={"source": source}, code=f"rtbrain.{name}(source)"))
        document.title = "rtbrain"
        document.template = template()
        self.update()
        for root in (self._recent.figure, self._hour.figure, self._ribbon.figure, *self._texts.values()):
            document.add_root(root)
        document.js_on_event(DocumentReady, CustomJS(args=self._texts, code="rtbrain.begin(facts, minute, present)"))
        document.add_periodic_callback(self.update, TICK_MS)

    def update(self) -> None:
        """Show what came since the last time."""
        now_s = self._clock()
        if self._ticks % SLOWLY == 0:
            meta = self._feed.newest.get("meta")
            if meta is not self._meta:  # it comes again every few seconds
                self._meta = meta
                self._say("facts", facts(self._feed))
            self._say("minute", minute(self._feed))
        self._ticks += 1
        self._begin_anew()
        self._recent.add(self._new("decisions"), now_s)
        bins = self._new("bins")
        if bins or self._ticks % (5 * SLOWLY) == 1:
            self._hour.add(bins, now_s)
        self._ribbon.add(self._new("tokens"))
        self._say("present", present(self._feed, self._endpoint, now_s))

    def _say(self, name: str, values: dict[str, Any] | None) -> None:
        text = json.dumps(values)
        if self._texts[name].data["json"] != [text]:
            self._texts[name].data = {"json": [text]}

    def _new(self, name: str) -> Any:
        kept = getattr(self._session, name)
        fresh = kept.since(self._seen[name])
        self._seen[name] = kept.total
        return fresh

    def _begin_anew(self) -> None:
        """Clear the drawings when the decoder came with another model or start, or said only now what it has."""
        session, meta = self._feed.session, self._feed.newest.get("meta")
        bands = () if meta is None else tuple(band["name"] for band in meta["bands"])
        shape = (session.classes, bands)
        if session is self._session and shape == self._shape:
            return
        self._session, self._shape = session, shape
        self._seen = dict.fromkeys(self._seen, 0)
        self._recent.begin(len(session.classes))
        self._hour.begin(len(session.classes))
        self._ribbon.begin(bands)
