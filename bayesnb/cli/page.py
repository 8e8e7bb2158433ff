"""What came out, as one page that can be mailed: tables and figures, nothing to load from elsewhere."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from itertools import count

from bayesnb.cli.analysis import Section
from bayesnb.cli.command import Command
from bayesnb.cli.conclusion import Conclusion, Step
from bayesnb.cli.job import Outcome
from bayesnb.cli.readable import Table
from bayesnb.cli.report import GUIDE, columns, summary
from bayesnb.cli.style import STYLE
from bayesnb.cli.text import printable
from bayesnb.version import __version__

Part = tuple[Outcome, Sequence[Section], Conclusion]
_LONG = 40
_FLAG = re.compile(r"(?<!\S)(--[\w-]+)")
_NUMBER = re.compile(r"[-+<>≤]?(\d[\d,]*(\.\d+)?(e[-+]?\d+)?|inf|nan)( ± [\d.,]+|-)?|-|\[.*\]")


def page(parts: Sequence[Part], command: Command, seed: int) -> str:
    """A self-contained HTML page."""
    body = "\n".join(_data_set(f"data-{i}", part, command) for i, part in enumerate(parts, 1))
    guide = "\n".join(map(_paragraph, GUIDE))
    sets = "\n".join(_link(f"data-{i}", outcome.data.name) for i, (outcome, _, _) in enumerate(parts, 1))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>bayesnb compare</title>'
        f"<style>{STYLE}</style></head><body>\n<h1>Naive Bayes: maximum likelihood beside the Bayesian estimates</h1>"
        f"\n{_paragraph(f'bayesnb {__version__}, run on {command.day} (UTC), seed {seed}:', 'run')}"
        f"\n{_code(command.typed)}"
        f"\n<nav>{sets}\n{_link('guide', 'How to read this')}</nav>"
        f'\n{body}\n<h2 id="guide">How to read this</h2>\n{guide}\n</body></html>\n'
    )


def _data_set(anchor: str, part: Part, command: Command) -> str:
    outcome, sections, conclusion = part
    links = (_link(f"{anchor}-{i}", section.title) for i, section in enumerate(sections, 1))
    parts = [
        f'<h2 id="{anchor}">{escape(outcome.data.name)}</h2>',
        _paragraph(f"{summary(outcome)}."),
        _conclusion(conclusion, command),
        *(_paragraph(note, "note") for note in outcome.notes),
        "<details><summary>Columns</summary>",
        *(_paragraph(f"{kind}: {names}") for kind, names in columns(outcome.data)),
        "</details>",
        f"<details><summary>Sections</summary><nav>{'<br>'.join(links)}</nav></details>",
        *map(_section, (f"{anchor}-{i}" for i in count(1)), sections),
    ]
    return "\n".join(parts)


def _conclusion(conclusion: Conclusion, command: Command) -> str:
    details = "".join(f"<li>{escape(text)}</li>" for text in conclusion.details)
    steps = [_step(step, command) for step in conclusion.steps]
    if any(step.code for step in conclusion.steps):
        steps.append(_paragraph(conclusion.about))
    sure = " ".join(conclusion.confidence)
    next_steps = "\n".join(steps) or _paragraph("These numbers ask for no other model.")
    return (
        '<div class="conclusion"><h3>Conclusion</h3>\n'
        f"{_paragraph(conclusion.verdict, 'verdict')}\n{_paragraph(sure)}\n<ul>{details}</ul>\n"
        f"<h3>What to try next</h3>\n{next_steps}</div>"
    )


def _step(step: Step, command: Command) -> str:
    return f"{_paragraph(step.why)}\n{_code(step.code or command.again(step.flags))}"


def _section(anchor: str, section: Section) -> str:
    parts = [f'<h3 id="{anchor}">{escape(section.title)}</h3>', _paragraph(section.means, "means")]
    if section.figure is not None:
        parts.append(_image(section))
    if section.shown:
        parts.append(_table(section.shown))
    return "\n".join(parts)


def _paragraph(text: str, kind: str = "text") -> str:
    return f'<p class="{kind}">{escape(text)}</p>'


def _code(text: str) -> str:
    # A line is not to end within a flag.
    whole = _FLAG.sub(r"<span>\1</span>", escape(text))
    return f"<pre><code>{whole}</code></pre>"


def _link(anchor: str, text: str) -> str:
    return f'<a href="#{anchor}">{escape(text)}</a>'


def _table(table: Table) -> str:
    """Columns of names to the left, where they wrap; those of numbers to the right."""
    header, *rows = table
    kinds = [_kind(i, column) for i, column in enumerate(zip(*rows, strict=True))]
    lines = "\n".join(_line("td", row, kinds) for row in rows)
    head = _line("th", header, kinds)
    return f'<div class="wide"><table><thead>{head}</thead><tbody>\n{lines}\n</tbody></table></div>'


def _kind(i: int, cells: Sequence[str]) -> str:
    """Class of a column in the style."""
    if i and all(map(_NUMBER.fullmatch, cells)):
        return ""
    return "name long" if max(map(len, cells)) > _LONG else "name"


def _line(tag: str, cells: Sequence[str], kinds: Sequence[str]) -> str:
    of = [f"{tag} class='{kind}'" if kind else tag for kind in kinds]
    return f"<tr>{''.join(f'<{t}>{escape(cell)}</{tag}>' for t, cell in zip(of, cells, strict=True))}</tr>"


def _image(section: Section) -> str:
    image, width = section.image
    data = base64.b64encode(image).decode()
    return f'<figure><img alt="{escape(section.title)}" width="{width}" src="data:image/png;base64,{data}"></figure>'


def escape(text: str) -> str:
    """As text of HTML, where control characters are no characters."""
    return html.escape(printable(text))
