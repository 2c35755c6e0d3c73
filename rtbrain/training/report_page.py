"""A report as one HTML file that needs nothing else: no links to elsewhere, pictures inside."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

from rtbrain.writing import replacing

_STYLE = """
:root { --ink: #1c2733; --faint: #5b6b7b; --line: #dde3ea; --accent: #0b5cad; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f6f8; color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
header { background: #10263d; color: #fff; padding: 28px 0 24px; }
header h1 { margin: 0 0 6px; font-size: 26px; font-weight: 650; }
header p { margin: 0; color: #c5d3e2; }
.wide { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
main { padding: 20px 24px 60px; }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 20px 24px; margin: 18px 0; }
h2 { margin: 0 0 8px; font-size: 19px; }
h3 { margin: 18px 0 6px; font-size: 15px; }
p { margin: 6px 0 10px; }
.note { color: var(--faint); font-size: 13.5px; }
.beside { border-left: 4px solid #c9d4e0; background: #f2f6fa; padding: 7px 12px; margin: 10px 0; font-size: 13.5px; }
.warning { border-left: 4px solid #d55e00; background: #fff3ea; padding: 8px 12px; margin: 10px 0; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 10px 0; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 5px 14px 5px 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--faint); font-weight: 600; vertical-align: bottom; }
table.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
tr.ours td { background: #eef5fc; font-weight: 600; }
img { max-width: 100%; height: auto; display: block; margin: 10px auto; }
details summary { cursor: pointer; color: var(--accent); margin: 8px 0; }
code { font: 13px ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
"""


@dataclass
class Page:
    """Sections one after the other; text is escaped, figures are put in."""

    title: str
    subtitle: str
    _parts: list[str] = field(default_factory=list)
    _open: bool = False

    def section(self, title: str, note: str = "") -> None:
        """Begin a section."""
        self._close()
        self._parts.append(f"<section><h2>{escape(title)}</h2>")
        self._open = True
        if note:
            self.text(note, "note")

    def heading(self, text: str) -> None:
        """Add a heading within the section."""
        self._parts.append(f"<h3>{escape(text)}</h3>")

    def text(self, text: str, kind: Literal["", "note", "beside", "warning"] = "") -> None:
        """Add a paragraph."""
        self._parts.append(f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>")

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        marked: Sequence[int] = (),
        folded: str = "",
    ) -> None:
        """Add a table whose first column is text; `marked` rows stand out, `folded` hides it behind these words."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = ""
        for number, row in enumerate(rows):
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
            body += f'<tr class="ours">{cells}</tr>' if number in marked else f"<tr>{cells}</tr>"
        made = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        self._parts.append(f"<details><summary>{escape(folded)}</summary>{made}</details>" if folded else made)

    def facts(self, values: dict[str, str]) -> None:
        """Add names and values."""
        rows = "".join(f"<tr><td>{escape(k)}</td><td><code>{escape(v)}</code></td></tr>" for k, v in values.items())
        self._parts.append(f'<table class="facts"><tbody>{rows}</tbody></table>')

    def figure(self, figure: Any, about: str, kind: Literal["svg", "png"] = "svg") -> None:
        """Add a figure of matplotlib; `about` says in words what it shows."""
        mime = {"svg": "image/svg+xml", "png": "image/png"}[kind]
        data = base64.b64encode(_drawn(figure, kind)).decode()
        width = round(figure.get_figwidth() * 96)
        self._parts.append(f'<img alt="{escape(about)}" width="{width}" src="data:{mime};base64,{data}">')

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        self._close()
        title, subtitle = escape(self.title), escape(self.subtitle)
        text = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
            f'<body><header><div class="wide"><h1>{title}</h1><p>{subtitle}</p></div></header>\n'
            f'<main class="wide">{"".join(self._parts)}</main></body></html>\n'
        )
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _close(self) -> None:
        if self._open:
            self._parts.append("</section>\n")
        self._open = False


def _drawn(figure: Any, kind: str) -> bytes:
    """Return a figure's file; the same figure gives the same bytes."""
    import matplotlib as mpl

    target = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "rtbrain", "svg.fonttype": "path"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(target, format=kind, dpi=110, metadata=metadata)
    return target.getvalue()
