"""Text for a terminal: East Asian characters take two columns, and control characters are shown, not obeyed."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import takewhile

WIDTH = 100
_LONG_NAME = 80
_NARROWEST = 12
_JOINERS = "\u200c\u200d"  # Persian words and emojis are spelt with these characters.


def printable(text: str) -> str:
    r"""Replace control characters by escapes such as \x1b, \n and \u202e."""
    if text.isprintable():
        return text
    return "".join(map(_escape, text))


def _escape(c: str) -> str:
    harmless = c.isprintable() or c in _JOINERS or unicodedata.category(c) == "Zs"
    return c if harmless else c.encode("unicode_escape", "surrogatepass").decode("ascii")


def width(text: str) -> int:
    """Number of columns that the text takes in a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, limit: int) -> str:
    """Cut the end of a text that takes more than `limit` columns, and mark the cut by …."""
    if width(text) <= limit:
        return text
    kept = ""
    for c in text:
        if width(kept + c) > limit - 1:
            break
        kept += c
    return kept + "…"


def squeeze(text: str, limit: int) -> str:
    """Cut the middle of a text that takes more than `limit` columns, since names often differ at their end."""
    if width(text) <= limit:
        return text
    head = shorten(text, limit - limit // 3)
    tail = shorten(text[::-1], limit // 3 + 1)
    return head.rstrip("…") + tail[::-1]


def tell_apart(texts: Sequence[str], limit: int) -> list[str]:
    """Squeeze texts into `limit` columns each; texts that would then look alike start where they begin to differ."""
    squeezed = {text: squeeze(text, limit) for text in texts}
    alike: dict[str, list[str]] = {}
    for text, short in squeezed.items():
        alike.setdefault(short, []).append(text)
    for group in alike.values():
        if len(group) > 1:
            start = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*group, strict=False)))
            squeezed |= {text: "…" + shorten(text[start:], limit - 1) for text in group}
    return [squeezed[text] for text in texts]


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align a table: the first column to the left, squeezed where lines would be too long; all others to the right."""
    names, *others = ([*map(printable, column)] for column in zip(header, *rows, strict=True))
    widths = [max(map(width, column)) for column in others]
    names = tell_apart(names, max(WIDTH - sum(widths) - 2 * len(widths), _NARROWEST))
    columns = [[name + " " * (max(map(width, names)) - width(name)) for name in names]]
    columns += [[" " * (w - width(cell)) + cell for cell in cells] for w, cells in zip(widths, others, strict=True)]
    return "\n".join(map("  ".join, zip(*columns, strict=True)))


def fill(text: str, first: str = "", rest: str | None = None) -> str:
    """Wrap a paragraph at `WIDTH`; `first` stands before its first line, `rest` before all other lines."""
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
    """Join at most `limit` names by commas, long names squeezed, and count the names that are not shown."""
    shown = ", ".join(squeeze(name, _LONG_NAME) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown}, … ({len(names) - limit} more)"
