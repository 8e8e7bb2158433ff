"""Names of any length and script as labels that can be drawn and told apart."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable
from contextlib import suppress
from functools import cache
from itertools import takewhile
from typing import Any

from bayesnb._util.extras import require
from bayesnb._util.warnings import warn

# Families with Chinese, Japanese and Korean glyphs, as Linux, macOS and Windows have them.
_CJK = (
    *(f"{name} {script}" for script in ("SC", "TC", "JP", "KR") for name in ("Noto Sans CJK", "Noto Sans")),
    *("Source Han Sans SC", "Source Han Sans CN", "Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *(f"Noto Serif CJK {script}" for script in ("SC", "TC", "JP", "KR")),
    *("AR PL UMing CN", "AR PL UKai CN", "Droid Sans Fallback", "PingFang SC", "Hiragino Sans GB", "Hiragino Sans"),
    *(
        "Heiti SC",
        "Heiti TC",
        "Arial Unicode MS",
        "Apple SD Gothic Neo",
        "Microsoft YaHei",
        "SimHei",
        "SimSun",
        "Yu Gothic",
    ),
    "Malgun Gothic",
)
_BOX = "□"


def require_matplotlib() -> None:
    """Raise ImportError, saying how to install it."""
    require("A figure", "plots", "matplotlib")


def labels(values: Iterable[Hashable], width: int = 24) -> dict[Any, str]:
    """A label for each distinct value: at most `width` columns of text wide, different for different values.

    Long names lose their middle, or what they have in common if they would look alike. Characters that no font at
    hand has become boxes, with a warning. Labels that are equal all the same get the position of the value behind
    them, counted from 0.
    """
    distinct = list(dict.fromkeys(values))
    plain = [" ".join(str(value).split()) or repr(value) for value in distinct]
    strange = _undrawable("".join(plain))
    if strange:
        # Always the same words, so that Python shows them once.
        warn(
            f"No font at hand has all characters of the names in this figure: the others are drawn as {_BOX}. Install "
            "a font that has them, such as Noto Sans CJK, or name one in matplotlib's rcParams['font.family']."
        )
        box = _BOX if not _undrawable(_BOX) else "?"
        plain = ["".join(box if c in strange else c for c in text) for text in plain]
    short = _told_apart(plain, width)
    often = Counter(short)
    apart = [f"{text} #{i}" if often[text] > 1 else text for i, text in enumerate(short)]
    # An escaped dollar is a dollar; two bare ones would begin a formula.
    return {value: text.replace("$", r"\$") for value, text in zip(distinct, apart, strict=True)}


def font(texts: Iterable[str]) -> dict[str, Any]:
    """The property of a matplotlib text that adds a font where the user's own lacks characters; else nothing."""
    family = _fallback(frozenset("".join(texts)) - _drawn_by_default())
    return {} if family is None else {"fontfamily": [*_default_families(), family]}


def columns(text: str) -> int:
    """Columns that a text takes, of which a Chinese character takes two."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _told_apart(texts: list[str], width: int) -> list[str]:
    """Shortened texts; those that would become equal show the part in which they differ, if it has room."""
    short = [_shorten(text, width) for text in texts]
    alike: dict[str, list[int]] = {}
    for i, text in enumerate(short):
        alike.setdefault(text, []).append(i)
    for group in alike.values():
        if len(group) == 1:
            continue
        own = [texts[i] for i in group]
        start = _common(own)
        end = _common([text[start:][::-1] for text in own])
        cores = [text[start : len(text) - end] for text in own]
        room = width - 2 - max(map(columns, cores))
        before = own[0][max(0, start - room) : start] if room > 0 else ""
        while columns(before) > room and before:
            before = before[1:]
        if room >= 0 and "" not in cores:
            for i, core in zip(group, cores, strict=True):
                short[i] = f"…{before}{core}{'…' if end else ''}"
    return short


def _common(texts: list[str]) -> int:
    """Length of the prefix that all texts share."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False)))


def _shorten(text: str, width: int) -> str:
    if columns(text) <= width:
        return text
    head, tail = list(text), list[str]()
    # The end of a name often says what its beginning does not: a third of the room is for it.
    while columns("".join(tail)) < width // 3:
        tail.insert(0, head.pop())
    while columns("".join([*head, "…", *tail])) > width:
        head.pop()
    return "".join(head).rstrip() + "…" + "".join(tail).lstrip()


def _undrawable(text: str) -> frozenset[str]:
    missing = frozenset(text) - _drawn_by_default()
    family = _fallback(missing)
    return missing if family is None else missing - _characters(family)


def _fallback(missing: frozenset[str]) -> str | None:
    """The installed family with most of these characters."""
    if not missing:
        return None
    best = _best(missing)
    if best is None:
        _read_new_fonts()
        best = _best(missing)
    return best


def _best(missing: frozenset[str]) -> str | None:
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    found = {family: len(missing & _characters(family)) for family in _CJK if family in installed}
    best = max(found, key=lambda family: found[family], default=None)
    return best if best is not None and found[best] else None


@cache
def _read_new_fonts() -> None:
    """Tell matplotlib of fonts that were installed after it made its list, which it keeps between runs."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {font.fname for font in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            with suppress(RuntimeError, OSError):  # no font that matplotlib can read
                fontManager.addfont(path)


def _drawn_by_default() -> frozenset[str]:
    return frozenset().union(*(_characters(family) for family in _default_families()))


def _default_families() -> list[str]:
    require_matplotlib()
    import matplotlib

    return list(matplotlib.rcParams["font.family"])


def _characters(family: str) -> frozenset[str]:
    from matplotlib.font_manager import FontProperties, findfont

    return _in_file(findfont(FontProperties(family=[family])))


@cache
def _in_file(path: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(path).get_charmap())) | {" "}
