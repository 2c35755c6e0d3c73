"""What is drawn reaches the browser once: a document's changes are replayed as a browser would apply them."""

from typing import Any

import pytest
from bokeh.document import Document

from rtbrain.dashboard.charts import Ribbon
from rtbrain.dashboard.feed import Run


def runs(first: int, n: int) -> list[Run]:
    return [Run("broad", i % 4, 0.1 * i, 0.1, 0.0) for i in range(first, first + n)]


class Browser:
    """Applies changes at the end of each tick, when Bokeh sends them: a set column is what it is by then."""

    def __init__(self, document: Document) -> None:
        self.left: list[float] = []
        self._waiting: list[Any] = []
        document.on_change(self._waiting.append)

    def tick(self) -> None:
        for event in self._waiting:
            if getattr(event, "kind", "") == "ColumnsStreamed" and event.model.name == "ribbon-source":
                self.left += event.data["left"]
            elif getattr(event, "kind", "") == "ColumnDataChanged" and event.model.name == "ribbon-source":
                self.left = list(event.model.data["left"])
        self._waiting.clear()


@pytest.mark.parametrize("tokens_come_at_once", [True, False])
def test_tokens_are_drawn_once(tokens_come_at_once: bool) -> None:
    ribbon, document = Ribbon(), Document()
    document.add_root(ribbon.figure)
    browser = Browser(document)
    ribbon.begin(("broad",))
    if not tokens_come_at_once:
        browser.tick()
    ribbon.add(runs(0, 2))
    browser.tick()
    ribbon.add(runs(2, 3))
    browser.tick()
    assert browser.left == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert list(ribbon.source.data["left"]) == pytest.approx(browser.left)
