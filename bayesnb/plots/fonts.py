"""Fonts for characters that the user's own fonts lack."""

from __future__ import annotations

from functools import cache

# Families with Chinese, Japanese and Korean glyphs, as Linux, macOS and Windows have them.
_NOTO = tuple(f"Noto {s} {script}" for script in ("SC", "TC", "JP", "KR") for s in ("Sans CJK", "Sans", "Serif CJK"))
_LINUX = ("Source Han Sans SC", "Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "AR PL UMing CN")
_MACOS = ("PingFang SC", "Hiragino Sans GB", "Hiragino Sans", "Heiti SC", "Arial Unicode MS", "Apple SD Gothic Neo")
_WINDOWS = ("Microsoft YaHei", "SimHei", "SimSun", "Yu Gothic", "Malgun Gothic")
_CJK = (*_NOTO, *_LINUX, "Droid Sans Fallback", *_MACOS, *_WINDOWS)


def families() -> list[str]:
    """Names of the user's font families, then of installed ones with Chinese, Japanese and Korean glyphs.

    Matplotlib draws each character of a text by the first of these families that has the character.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return [*rcParams["font.family"], *(family for family in _CJK if family in installed)]


def undrawable_characters(text: str) -> set[str]:
    """Characters of the text that neither the user's fonts nor an installed fallback font has."""
    from matplotlib.font_manager import FontProperties, findfont

    files = [findfont(FontProperties(family=[family])) for family in families()]
    return set(text).difference(" ", *map(_file_characters, files))


@cache
def _file_characters(path: str) -> frozenset[str]:
    """Characters for which a font file has glyphs; cached by path."""
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(path).get_charmap()))
