"""Tables and paragraphs for a terminal, where East Asian characters are two columns wide and none is a command."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import takewhile

WIDTH = 100
_LONG_NAME = 80
_JOINERS = "\u200c\u200d"  # what Persian words and emojis are spelt with


def printable(text: str) -> str:
    """The text with its control characters, which a terminal would obey, written as escapes: \\x1b, \\n, \\u202e."""
    if text.isprintable():
        return text
    return "".join(map(_escaped, text))


def _escaped(c: str) -> str:
    harmless = c.isprintable() or c in _JOINERS or unicodedata.category(c) == "Zs"
    return c if harmless else c.encode("unicode_escape", "surrogatepass").decode("ascii")


def width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, limit: int) -> str:
    """The text in at most `limit` columns, its end replaced by … where it is longer."""
    if width(text) <= limit:
        return text
    kept = ""
    for c in text:
        if width(kept + c) > limit - 1:
            break
        kept += c
    return kept + "…"


def squeeze(text: str, limit: int) -> str:
    """The text in at most `limit` columns, its middle replaced by … where it is longer, as names differ at the end."""
    if width(text) <= limit:
        return text
    head, tail = shorten(text, limit - limit // 3).rstrip("…"), ""
    for c in reversed(text):
        if width(head) + 1 + width(c + tail) > limit:
            break
        tail = c + tail
    return f"{head}…{tail}"


def tell_apart(texts: Sequence[str], limit: int) -> dict[str, str]:
    """Different texts in at most `limit` columns each: those that would look alike begin where they differ."""
    short = {text: squeeze(text, limit) for text in texts}
    alike: dict[str, list[str]] = {}
    for text, shown in short.items():
        alike.setdefault(shown, []).append(text)
    for group in alike.values():
        if len(group) > 1:
            start = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*group, strict=False)))
            short |= {text: "…" + shorten(text[start:], limit - 1) for text in group}
    return short


def grid(table: Sequence[Sequence[str]]) -> str:
    """Aligned columns, the first to the left and shortened where the lines would not fit; the rest right."""
    table = [[*map(printable, row)] for row in table]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    room = WIDTH - sum(w + 2 for w in widths[1:])
    widths[0] = min(widths[0], max(room, 12))

    def line(cells: Sequence[str]) -> str:
        first, *rest = cells
        first = shorten(first, widths[0])
        padded = [first + " " * (widths[0] - width(first))]
        padded += [" " * (w - width(cell)) + cell for cell, w in zip(rest, widths[1:], strict=True)]
        return "  ".join(padded)

    return "\n".join(map(line, table))


def fill(text: str, first: str = "", rest: str | None = None) -> str:
    """A paragraph wrapped at `WIDTH`; `first` and `rest` stand before the first and the other lines."""
    rest = first if rest is None else rest
    lines, line = [], first
    for word in map(printable, text.split()):
        gap = "" if line in (first, rest) else " "
        if gap and width(line + gap + word) > WIDTH:
            lines.append(line)
            line, gap = rest, ""
        line += gap + word
    return "\n".join([*lines, line])


def enumerate_names(names: Sequence[str], limit: int) -> str:
    """Join at most `limit` names, long ones cut in the middle, and say how many there are beyond."""
    shown = ", ".join(squeeze(name, _LONG_NAME) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown}, … ({len(names) - limit} more)"
