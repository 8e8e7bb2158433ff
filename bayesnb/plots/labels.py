"""Short labels for names of any length and script, different for different names."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import takewhile
from typing import Any

from bayesnb._util.warnings import warn
from bayesnb.plots.fonts import undrawable_characters

_BOX = "□"


def labels(values: Iterable[Hashable], width: int = 24) -> dict[Any, str]:
    """Labels by distinct value: each at most `width` columns of text wide, and different for different values.

    Long names lose their middle, or the text that they share if they would look alike. Characters that no installed
    font has become boxes, with a warning. Labels that are still equal get the position of the value, from 0 on.
    """
    distinct = list(dict.fromkeys(values))
    names = [" ".join(str(value).split()) or repr(value) for value in distinct]
    short = _shorten_apart(_with_boxes(names), width)
    occurrences = Counter(short)
    numbered = [f"{text} #{i}" if occurrences[text] > 1 else text for i, text in enumerate(short)]
    # An escaped dollar is a dollar; two bare ones would begin a formula.
    return {value: text.replace("$", r"\$") for value, text in zip(distinct, numbered, strict=True)}


def count_columns(text: str) -> int:
    """Number of columns that a text takes; a Chinese character takes two."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _with_boxes(names: list[str]) -> list[str]:
    """Return the names with a box for each character that no installed font has; warn if there is one."""
    strange = undrawable_characters("".join(names))
    if not strange:
        return names
    # The message is always the same, so that Python shows it once.
    warn(
        f"No font at hand has all characters of the names in this figure: the others are drawn as {_BOX}. Install "
        "a font that has them, such as Noto Sans CJK, or name one in matplotlib's rcParams['font.family']."
    )
    box = "?" if undrawable_characters(_BOX) else _BOX
    return [name.translate({ord(character): box for character in strange}) for name in names]


def _shorten_apart(names: list[str], width: int) -> list[str]:
    """Shorten names; names that would become equal keep the part in which they differ, if it fits."""
    short = [_shorten(name, width) for name in names]
    for text, occurrences in Counter(short).items():
        if occurrences > 1:
            alike = [i for i, other in enumerate(short) if other == text]
            for i, part in zip(alike, _differing_parts([names[i] for i in alike], width), strict=False):
                short[i] = part
    return short


def _differing_parts(names: list[str], width: int) -> list[str]:
    """The part in which names differ, with as much text before it as fits; empty if there is no such part."""
    start = _common_length(names)
    end = _common_length([name[start:][::-1] for name in names])
    parts = [name[start : len(name) - end] for name in names]
    room = width - 2 - max(map(count_columns, parts))
    if room < 0 or "" in parts:
        return []
    before = names[0][:start]
    while count_columns(before) > room:
        before = before[1:]
    return [f"…{before}{part}{'…' * (end > 0)}" for part in parts]


def _common_length(names: list[str]) -> int:
    """Length of the prefix that all names share."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False)))


def _shorten(name: str, width: int) -> str:
    """Replace the middle of a name by an ellipsis if the name is wider than `width` columns."""
    if count_columns(name) <= width:
        return name
    head, tail = name, ""
    # The end of a name often says what its beginning does not: a third of the width is for it.
    while count_columns(tail) < width // 3:
        head, tail = head[:-1], head[-1] + tail
    while count_columns(head) + 1 + count_columns(tail) > width:
        head = head[:-1]
    return f"{head.rstrip()}…{tail.lstrip()}"
