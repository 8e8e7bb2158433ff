"""Axes, colours and labels that all figures share."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesnb._util.arguments import require_result
from bayesnb._util.terminal import count_columns, shorten_apart
from bayesnb._util.warnings import warn

# == Short labels for names of any length and script, different for different names ================

_BOX = "□"
# Families with Chinese, Japanese and Korean glyphs, as Linux, macOS and Windows have them.
_NOTO = tuple(f"Noto {s} {script}" for script in ("SC", "TC", "JP", "KR") for s in ("Sans CJK", "Sans", "Serif CJK"))
_LINUX = ("Source Han Sans SC", "Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "AR PL UMing CN")
_MACOS = ("PingFang SC", "Hiragino Sans GB", "Hiragino Sans", "Heiti SC", "Arial Unicode MS", "Apple SD Gothic Neo")
_WINDOWS = ("Microsoft YaHei", "SimHei", "SimSun", "Yu Gothic", "Malgun Gothic")
_CJK = (*_NOTO, *_LINUX, "Droid Sans Fallback", *_MACOS, *_WINDOWS)
Name = TypeVar("Name", bound=Hashable)


def labels(values: Iterable[Name], width: int = 24) -> dict[Name, str]:
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


if TYPE_CHECKING:
    from matplotlib.artist import Artist as Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
else:
    Artist = Axes = Figure = Any  # Matplotlib is imported when a figure is drawn.
Look = dict[str, Any]
"""Properties of what is drawn, as matplotlib names them."""

# == Axes, colours, headers and tick labels that all figures share =================================

# Colours of Okabe & Ito without the yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = "os^DvPX"
GREY = "#666666"
WRONG = "#D55E00"
SMALL = 8
ROW = 1.45 * SMALL
"""Height of a row of small text, in points."""
_LEFT_MARGIN = 40  # points for tick labels that are there before the layout
_MOST_MARKS = 14
_SMALLEST_DOT, _LARGEST_DOT = 18.0, 110.0  # square points


def open_axes(ax: Axes | None, width: float, height: float, grid: Literal["x", "y", "both", ""] = "") -> Axes:
    """Return `ax`, or axes of a new figure of this size in inches, without the frame's upper and right lines.

    `grid` names the axes whose values have thin lines behind everything else.
    """
    if ax is None:
        from matplotlib import pyplot
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        # The layout of square axes is off by a few pixels, which this padding hides.
        ax = pyplot.subplots(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))[1]
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(axis=grid, color="0.92", linewidth=0.6)
        ax.set_axisbelow(True)
    return ax


def open_rows(ax: Axes | None, heights: np.ndarray, names: Sequence[str], row: float = ROW, **labels: str) -> Axes:
    """Return `ax`, or axes of a new figure, with named rows of text, each `row` points high.

    `heights` (N,) are the vertical positions of the rows, downwards from 0; `labels` are xlabel and ylabel.
    """
    ax = open_axes(ax, 7.5, 1.9 + 1.3 * row / 72 * max(3, heights[-1] + 1), grid="x")
    write_names(ax.yaxis, heights, names)
    ax.set(ylim=(heights[-1] + 0.6, -0.6), **labels)
    return ax


def count_fitting_rows(ax: Axes | None, most: int, reserved: int = 6, row: float = ROW) -> int:
    """Number of rows of text that fit into the axes beside `reserved` rows for the header, from 2 to `most`.

    Without axes it is `most`. `row` is the height of a row in points.
    """
    return most if ax is None else max(2, min(most, int(measure(ax)[1] / row) - reserved))


def detach(ax: Axes) -> Figure:
    """Close the figure of `ax` in pyplot and return it, so that programs that save many figures free memory.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Axes that a function of `bayesnb.plots` returned.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which `savefig` writes to a file.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> figure = bnb.plots.detach(bnb.plots.prior_predictive([0.2, 0.7, 0.9]))
    >>> len(figure.axes)
    1
    """
    from matplotlib import pyplot

    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that were never removed
    pyplot.close(figure)
    return figure


def look(i: int) -> Look:
    """Colour and marker of class i, as matplotlib properties: seven colours, then the same with another marker."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i // len(COLOURS) % len(MARKS)]}


def legend_mark(label: str, **properties: Any) -> Artist:
    """Legend entry of a mark with its label, without a line unless `linestyle` asks for one."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"linestyle": "none", **properties})


def draw_dots(ax: Axes, x: ArrayLike, y: ArrayLike, counts: ArrayLike, largest: float, **look: Any) -> Artist:
    """Draw dots whose areas grow linearly with counts up to `largest`, and return them."""
    return ax.scatter(x, y, _dot_areas(counts, largest), edgecolors="white", linewidths=0.5, zorder=3, **look)


def dot_marks(counts: np.ndarray, unit: str) -> list[Artist]:
    """Legend marks for the dots of the smallest and largest count, labelled with the numbers of units."""
    ends = np.unique([counts.min(), counts.max()]) if len(counts) else counts
    texts = [f"{n:,.12g} {unit}{'' if n == 1 else 's'}" for n in ends]
    sizes = np.sqrt(_dot_areas(ends, ends.max(initial=0.0)))
    return [legend_mark(t, marker="o", color=GREY, markersize=size) for t, size in zip(texts, sizes, strict=True)]


def _dot_areas(counts: ArrayLike, largest: float) -> np.ndarray:
    """Areas of dots in square points, linear in counts: 18 for a count of 0, 110 for `largest`."""
    return _SMALLEST_DOT + (_LARGEST_DOT - _SMALLEST_DOT) * np.asarray(counts) / max(largest, 1e-300)


def write_header(ax: Axes, lines: Iterable[str], marks: Sequence[Artist] = (), row_names: Iterable[str] = ()) -> Axes:
    """Write above the axes what is shown, short lines, then at most 14 marks with their labels; return the axes.

    `row_names` are tick labels of the vertical axis, which take some of the width when the figure is laid out.
    """
    width = measure(ax)[0] - max(0.0, SMALL * 0.58 * max(map(count_columns, row_names), default=0) - _LEFT_MARGIN)
    characters = max(24, int(width / (0.56 * (SMALL + 1))))
    lines = [part for line in lines for part in textwrap.wrap(line, characters)]
    if len(marks) > _MOST_MARKS:
        rest = len(marks) - _MOST_MARKS + 1
        marks = [*marks[: _MOST_MARKS - 1], legend_mark(f"… and {rest} more", marker="")]
    texts = [str(mark.get_label()) for mark in marks]
    widths = [SMALL * (3.5 + 0.58 * count_columns(text)) for text in texts]
    ncols = max(1, len(texts) if sum(widths) <= width else int(width / max(widths)))
    place: Look = {"loc": "lower left", "bbox_to_anchor": (0, 1), "alignment": "left", "frameon": False}
    place |= {"borderaxespad": 0.3, "borderpad": 0, "columnspacing": 1.2, "handletextpad": 0.6, "handlelength": 1.5}
    font = {"size": SMALL, "family": families()}
    legend = ax.legend(marks, texts, title="\n".join(lines), ncols=ncols, prop=font, **place)
    legend.get_title().set(fontsize=SMALL + 1, fontfamily=families())
    return ax


def measure(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, before the layout of the figure."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return box.width / dpi * 72, box.height / dpi * 72


def write_names(axis: Axis, positions: Iterable[float], names: Sequence[str], rotation: float = 0) -> None:
    """Write names as small tick labels at the positions of an axis."""
    axis.set_ticks(list(positions), labels=names, fontsize=SMALL, rotation=rotation, fontfamily=families())
    axis.set_tick_params(length=0)


def format_percent(prob: float) -> str:
    """Return a probability as a percentage: 0.9 is "90%"."""
    return f"{100 * prob:.6g}%"


def require_table(table: pd.DataFrame, columns: Iterable[str], source: str, name: str = "table") -> None:
    """Raise TypeError unless the argument `name` is a DataFrame, ValueError if it lacks columns or rows."""
    require_result(name, table, pd.DataFrame, source)
    if absent := [column for column in columns if column not in table]:
        raise ValueError(f"{name} has no column {absent[0]!r}, only {list(table)}; pass what {source} returns.")
    if not len(table):
        raise ValueError(f"{name} has no row; pass what {source} returns.")
