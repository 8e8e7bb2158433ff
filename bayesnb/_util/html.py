"""Small tables for notebooks: escaped, and in the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from numbers import Real
from typing import Any

_MOST_ROWS = 50
_TABLE = "color: inherit; background: transparent; border-collapse: collapse; margin: 0.3em 0;"
_CELL = "padding: 0.1em 0.8em 0.1em 0; color: inherit; background: transparent; text-align: "


def figure(value: Any) -> str:
    """A number as texts show it: whole ones whole, others to four digits; anything else by `str`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.4g}"


def table(rows: Iterable[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """Rows of cells, the first 50 of them; the first of each row is its head. Numbers stand to the right."""
    every = list(rows)
    body = every[:_MOST_ROWS]
    right = [n > 0 and any(isinstance(row[n], Real) for row in body) for n in range(len(body[0]) if body else 0)]
    right += [False] * len(header)
    head = "".join(_cell("th", name, side) for name, side in zip(header, right, strict=False))
    lines = (_cell("th", row[0], False) + "".join(map(_cell, ["td"] * len(row), row[1:], right[1:])) for row in body)
    rest = "".join(f"<tr>{line}</tr>" for line in lines)
    if len(every) > len(body):
        rest += f"<tr>{_cell('th', f'{len(every) - len(body)} more', False)}</tr>"
    return f'<table style="{_TABLE}">{f"<thead><tr>{head}</tr></thead>" if header else ""}<tbody>{rest}</tbody></table>'


def card(title: str, about: str, *parts: str, notes: Iterable[str] = ()) -> str:
    """A title, tables, and what is to be known of their numbers."""
    said = "".join(f'<p style="margin: 0.3em 0;"><em>{escape(note)}</em></p>' for note in notes if note)
    heading = f"<strong>{escape(title)}</strong>{', ' if about else ''}{escape(about)}"
    return f'<div class="bayesnb" style="color: inherit;"><div>{heading}</div>{"".join(parts)}{said}</div>'


def _cell(tag: str, value: Any, right: bool) -> str:
    side = "right" if right else "left"
    weight = " font-weight: normal;" if tag == "th" else ""
    return f'<{tag} style="{_CELL}{side};{weight}">{escape(figure(value))}</{tag}>'
