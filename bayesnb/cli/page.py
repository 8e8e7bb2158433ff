"""What came out, as one page that can be mailed: tables and figures, nothing to load from elsewhere."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import Any

from bayesnb.cli.analysis import Section
from bayesnb.cli.job import Outcome
from bayesnb.cli.readable import Table
from bayesnb.cli.report import GUIDE, columns, summary
from bayesnb.cli.text import printable

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.35rem; margin-top: 3rem; border-top: 2px solid #ddd; padding-top: 1rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 .3rem; } p { max-width: 46rem; } .means { color: #555; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #e5e5e5; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { white-space: normal; vertical-align: bottom; border-bottom: 2px solid #999; }
img { max-width: 100%; height: auto; margin: .5rem 0; } .note { color: #8a4b00; }
"""


def page(analyses: Iterable[tuple[Outcome, Sequence[Section]]]) -> str:
    """A self-contained HTML page."""
    body = "\n".join(_data_set(outcome, sections) for outcome, sections in analyses)
    guide = "\n".join(map(_paragraph, GUIDE))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>bayesnb compare</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Naive Bayes: maximum likelihood beside the Bayesian estimates</h1>"
        '\n<p>What the names of estimates and scores mean is said <a href="#guide">at the end</a>.</p>'
        f'\n{body}\n<h2 id="guide">How to read this</h2>\n{guide}\n</body></html>\n'
    )


def _data_set(outcome: Outcome, sections: Sequence[Section]) -> str:
    parts = [
        f"<h2>{escape(outcome.data.name)}</h2>",
        _paragraph(f"{summary(outcome)}."),
        "<details><summary>Columns, with the number of levels</summary>",
        *(_paragraph(f"{kind}: {names}") for kind, names in columns(outcome.data)),
        "</details>",
        *(_paragraph(note, "note") for note in outcome.notes),
        *map(_section, sections),
    ]
    return "\n".join(parts)


def _section(section: Section) -> str:
    parts = [f"<h3>{escape(section.title)}</h3>", _paragraph(section.means, "means")]
    if section.figure is not None:
        parts.append(_image(section.figure, section.title))
    if section.shown:
        parts.append(_table(section.shown))
    return "\n".join(parts)


def _paragraph(text: str, kind: str = "text") -> str:
    return f'<p class="{kind}">{escape(text)}</p>'


def _table(table: Table) -> str:
    header, *rows = table
    lines = "\n".join(_line("td", row) for row in rows)
    return f'<div class="wide"><table><thead>{_line("th", header)}</thead><tbody>\n{lines}\n</tbody></table></div>'


def _line(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _image(figure: Any, title: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return f'<img alt="{escape(title)}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def escape(text: str) -> str:
    """As text of HTML, where control characters are no characters."""
    return html.escape(printable(text))
