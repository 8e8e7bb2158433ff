"""Short labels for names of any length and script, different for different names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any

from bayesnb._util.terminal import shorten_apart
from bayesnb._util.warnings import warn

_BOX = "□"
# Families with Chinese, Japanese and Korean glyphs, as Linux, macOS and Windows have them.
_NOTO = tuple(f"Noto {s} {script}" for script in ("SC", "TC", "JP", "KR") for s in ("Sans CJK", "Sans", "Serif CJK"))
_LINUX = ("Source Han Sans SC", "Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "AR PL UMing CN")
_MACOS = ("PingFang SC", "Hiragino Sans GB", "Hiragino Sans", "Heiti SC", "Arial Unicode MS", "Apple SD Gothic Neo")
_WINDOWS = ("Microsoft YaHei", "SimHei", "SimSun", "Yu Gothic", "Malgun Gothic")
_CJK = (*_NOTO, *_LINUX, "Droid Sans Fallback", *_MACOS, *_WINDOWS)


def labels(values: Iterable[Hashable], width: int = 24) -> dict[Any, str]:
    """Dict from each value to a label of at most `width` columns of text, different for different values.

    Long names lose their middle, or the text that they share if they would look alike. Characters that no installed
    font has become boxes, with a warning. Labels that are still equal get the position of the value, from 0 on.
    """
    names = {value: " ".join(str(value).split()) or repr(value) for value in values}
    if strange := _undrawable_characters("".join(names.values())):
        # The message is always the same, so that Python shows it once.
        warn(
            "No installed font has all characters of the names in this figure, and missing characters are drawn as "
            f"{_BOX}. Install a font that has these characters, such as Noto Sans CJK, or name such a font in "
            "matplotlib's rcParams['font.family']."
        )
        box = "?" if _undrawable_characters(_BOX) else _BOX
        boxes = str.maketrans(dict.fromkeys(strange, box))
        names = {value: name.translate(boxes) for value, name in names.items()}
    short = shorten_apart(names.values(), width)
    occurrences = Counter(short[name] for name in names.values())
    # An escaped dollar is a dollar; two bare ones would begin a formula.
    return {
        value: (f"{short[name]} #{i}" if occurrences[short[name]] > 1 else short[name]).replace("$", r"\$")
        for i, (value, name) in enumerate(names.items())
    }


def families() -> list[str]:
    """Names of the user's font families, then of installed ones with Chinese, Japanese and Korean glyphs.

    Matplotlib draws each character of a text by the first of these families that has the character.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return [*rcParams["font.family"], *(family for family in _CJK if family in installed)]


def _undrawable_characters(text: str) -> set[str]:
    """Characters of the text that neither the user's fonts nor an installed fallback font has."""
    from matplotlib.font_manager import FontProperties, findfont

    files = [findfont(FontProperties(family=[family])) for family in families()]
    return set(text).difference(" ", *map(_file_characters, files))


@cache
def _file_characters(path: str) -> frozenset[str]:
    """Characters for which a font file has glyphs; cached by path."""
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(path).get_charmap()))
