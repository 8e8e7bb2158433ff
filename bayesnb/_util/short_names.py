"""Names cut to a number of columns of text, so that different names stay different."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate, takewhile


def count_columns(text: str) -> int:
    """Number of columns that a text takes on a terminal; a Chinese character takes two."""
    return sum(map(_width, text))


def shorten(text: str, width: int) -> str:
    """Return a text, cut to `width` columns by "…" in its middle, as names often differ at the end."""
    if count_columns(text) <= width:
        return text
    tail = _first_columns(text[::-1], width // 3)[::-1]
    return f"{_first_columns(text, width - 1 - count_columns(tail)).rstrip()}…{tail.lstrip()}"


def shorten_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Return {name: short form of at most `width` columns}; forms that would look alike start where names differ."""
    short = {name: shorten(name, width) for name in names}
    for text, occurrences in Counter(short.values()).items():
        if occurrences > 1:
            alike = [name for name in short if short[name] == text]
            common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*alike, strict=False)))
            start = alike[0].rfind(" ", 0, common) + 1 or common
            short |= {name: "…" + shorten(name[start:], width - 1) for name in alike}
    return short


def _first_columns(text: str, width: int) -> str:
    """Longest beginning of a text that takes at most `width` columns."""
    return text[: sum(columns <= width for columns in accumulate(map(_width, text)))]


def _width(character: str) -> int:
    """Number of columns of a character: 2 if it is East Asian and wide, 0 if it is combining, else 1."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
