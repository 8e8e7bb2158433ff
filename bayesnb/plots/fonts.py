"""Fonts for characters that the user's own fonts lack."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache

from bayesnb._util.extras import require

# Families with Chinese, Japanese and Korean glyphs, as Linux, macOS and Windows have them.
_NOTO = tuple(f"Noto {s} {script}" for script in ("SC", "TC", "JP", "KR") for s in ("Sans CJK", "Sans", "Serif CJK"))
_LINUX = ("Source Han Sans SC", "Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "AR PL UMing CN")
_MACOS = ("PingFang SC", "Hiragino Sans GB", "Hiragino Sans", "Heiti SC", "Arial Unicode MS", "Apple SD Gothic Neo")
_WINDOWS = ("Microsoft YaHei", "SimHei", "SimSun", "Yu Gothic", "Malgun Gothic")
_CJK = (*_NOTO, *_LINUX, "Droid Sans Fallback", *_MACOS, *_WINDOWS)


def require_matplotlib() -> None:
    """Raise ImportError, which says how to install matplotlib, if matplotlib is not installed."""
    require("A figure", "plots", "matplotlib")


def families(texts: Iterable[str]) -> list[str]:
    """The user's font families, then an installed family with the characters that they lack, for matplotlib texts."""
    return [*_default_families(), *_fallback_families(frozenset("".join(texts)) - _default_characters())]


def undrawable_characters(text: str) -> frozenset[str]:
    """Characters of the text that neither the user's fonts nor an installed fallback has."""
    missing = frozenset(text) - _default_characters()
    return missing.difference(*map(_family_characters, _fallback_families(missing)))


def _fallback_families(missing: frozenset[str]) -> list[str]:
    """The installed family that has most of these characters, or no family if none has any."""
    if missing and not _families_with(missing):
        _add_new_fonts()
    return _families_with(missing)[:1]


def _families_with(missing: frozenset[str]) -> list[str]:
    """Installed families that have some of these characters, that with most of them first."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    number = {family: len(missing & _family_characters(family)) for family in _CJK if missing and family in installed}
    return sorted(filter(number.get, number), key=lambda family: -number[family])


@cache
def _add_new_fonts() -> None:
    """Add fonts to matplotlib's list that were installed after matplotlib made the list, which it keeps on disk."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {font.fname for font in fontManager.ttflist}
    for path in set(findSystemFonts()) - known:
        with suppress(RuntimeError, OSError):  # no font that matplotlib can read
            fontManager.addfont(path)


def _default_characters() -> frozenset[str]:
    return frozenset().union(*map(_family_characters, _default_families()))


def _default_families() -> list[str]:
    require_matplotlib()
    import matplotlib

    return list(matplotlib.rcParams["font.family"])


def _family_characters(family: str) -> frozenset[str]:
    from matplotlib.font_manager import FontProperties, findfont

    return _file_characters(findfont(FontProperties(family=[family])))


@cache
def _file_characters(path: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(path).get_charmap())) | {" "}
