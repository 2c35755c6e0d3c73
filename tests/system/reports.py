"""What holds for every report: it is whole HTML, needs nothing from elsewhere, and its pictures can be drawn."""

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

_EMPTY = {"meta", "img", "br"}


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(page: str, pictures: int = 5) -> None:
    """Refuse a page that is cut short, has links to elsewhere or a picture that cannot be read."""
    parser = _Balanced()
    parser.feed(page)
    parser.close()
    assert not parser.open
    without = re.sub(r'src="data:[^"]*"', "", page)
    assert not re.search(r"(src|href|url\()\s*=?", without), "something is loaded from elsewhere"
    assert "<script" not in page
    drawn = re.findall(r'src="data:image/(svg\+xml|png);base64,([^"]*)"', page)
    assert len(drawn) >= pictures
    for kind, text in drawn:
        data = base64.b64decode(text, validate=True)
        if kind == "png":
            assert data.startswith(b"\x89PNG")
        else:
            assert ElementTree.fromstring(data).tag.endswith("svg")
