"""Small HTML tables for notebooks, in the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from numbers import Real

_MOST_ROWS = 50
_TABLE = "color: inherit; background: transparent; border-collapse: collapse; margin: 0.3em 0;"
_CELL = "padding: 0.1em 0.8em 0.1em 0; color: inherit; background: transparent; text-align: "


def format_number(value: object) -> str:
    """Format a number, without decimals if whole, else with four significant digits; format others by `str`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.4g}"


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """Return the HTML of a table of the first 50 rows, and of a line with the number of the others.

    The first cell of a row is its header; columns with a number are right-aligned.
    """
    all_rows = list(rows)
    body = all_rows[:_MOST_ROWS]
    right = [n > 0 and any(isinstance(row[n], Real) for row in body) for n in range(len(body[0]) if body else 0)]
    right += [False] * len(header)
    head = "".join(_cell("th", name, side) for name, side in zip(header, right, strict=False))
    lines = (_cell("th", row[0], False) + "".join(map(_cell, ["td"] * len(row), row[1:], right[1:])) for row in body)
    lines_html = "".join(f"<tr>{line}</tr>" for line in lines)
    if len(all_rows) > len(body):
        lines_html += f"<tr>{_cell('th', f'{len(all_rows) - len(body)} more', False)}</tr>"
    head_html = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f'<table style="{_TABLE}">{head_html}<tbody>{lines_html}</tbody></table>'


def card(title: str, about: str, *parts: str, notes: Iterable[str] = ()) -> str:
    """Return the HTML of a title with a description, of `parts` that are HTML already, and of notes in italics."""
    paragraphs = "".join(f'<p style="margin: 0.3em 0;"><em>{escape(note)}</em></p>' for note in notes if note)
    heading = f"<strong>{escape(title)}</strong>{', ' if about else ''}{escape(about)}"
    return f'<div class="bayesnb" style="color: inherit;"><div>{heading}</div>{"".join(parts)}{paragraphs}</div>'


def _cell(tag: str, value: object, right: bool) -> str:
    """Return the HTML of one cell with the tag "th" or "td", aligned to the right or to the left."""
    side = "right" if right else "left"
    weight = " font-weight: normal;" if tag == "th" else ""
    return f'<{tag} style="{_CELL}{side};{weight}">{escape(format_number(value))}</{tag}>'
