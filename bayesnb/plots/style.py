"""What all figures share: new axes, colours of classes, a header above the axes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bayesnb._util.arguments import require_result
from bayesnb.plots.text import columns, font, require_matplotlib

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours without the yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = "os^DvPX"
GREY = "#666666"
WRONG = "#D55E00"
SMALL = 8
_POINTS = 72
_MARGIN = 40  # points left of axes for labels, before the layout
_PAD = 0.08  # inches: the layout of square axes is off by a few pixels


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The user's axes, or those of a new figure of this size in inches; open above and on the right."""
    if ax is None:
        ax = _new(width, height)
    bare(ax, ("top", "right"))
    return ax


def _new(width: float, height: float) -> Axes:
    require_matplotlib()
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return pyplot.subplots(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=_PAD, h_pad=_PAD))[1]


def bare(ax: Axes, sides: Iterable[str] = ("top", "right", "left", "bottom")) -> None:
    """Without the lines of the frame on these sides."""
    for side in sides:
        ax.spines[side].set_visible(False)


def light_grid(ax: Axes, axis: Literal["x", "y", "both"]) -> None:
    """Thin lines behind all else, to read values by."""
    ax.grid(axis=axis, color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)


def detach(ax: Axes) -> Figure:
    """The figure of `ax`, no longer kept open by pyplot: for programs that save many.

    Parameters
    ----------
    ax : Axes
        As a function of `bayesnb.plots` returns it.

    Returns
    -------
    Figure
        To be saved with `savefig`.

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


def look(i: int) -> dict[str, Any]:
    """Colour and mark of class i: seven colours, then the same with another mark."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i // len(COLOURS) % len(MARKS)]}


def dot(label: str, **properties: Any) -> Artist:
    """A mark for the header, without a line unless `linestyle` says so."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"linestyle": "none", **properties})


def header(
    ax: Axes, lines: Iterable[str], handles: Sequence[Artist] = (), most: int = 14, names: Iterable[str] = ()
) -> None:
    """Say above the axes what is shown: short lines, then the marks with their labels.

    Of more than `most` marks the last ones are left out, and their number is told. `names` are the labels of the
    vertical axis, which will take some of the width.
    """
    taken = SMALL * 0.58 * max(map(columns, names), default=0)
    width = extent(ax)[0] - max(0.0, taken - _MARGIN)
    room, named = max(24, int(width / (0.56 * (SMALL + 1)))), [(h, str(h.get_label())) for h in handles]
    lines = [part for line in lines for part in textwrap.wrap(line, room)]
    if len(named) > most:
        rest = len(named) - most + 1
        named = [*named[: most - 1], (dot("", marker=""), f"… and {rest} more")]
    wide = [SMALL * (3.5 + 0.58 * columns(text)) for _, text in named]
    fit = len(wide) if sum(wide) <= width else max(1, int(width / max(wide)))
    texts = [*lines, *(text for _, text in named)]
    family = font(texts).get("fontfamily")
    legend = ax.legend(
        [handle for handle, _ in named],
        [text for _, text in named],
        title="\n".join(lines),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=max(1, fit),
        alignment="left",
        frameon=False,
        borderaxespad=0.3,
        borderpad=0,
        columnspacing=1.2,
        handletextpad=0.6,
        handlelength=1.5,
        prop={"size": SMALL, **({"family": family} if family else {})},
    )
    legend.get_title().set(fontsize=SMALL + 1, **font(lines))


def extent(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, as they are now."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return box.width / dpi * _POINTS, box.height / dpi * _POINTS


def percent(prob: float) -> str:
    """0.9 is 90%."""
    return f"{100 * prob:.6g}%"


def names_on(axis: Any, positions: Iterable[float], texts: Sequence[str], rotation: float = 0) -> None:
    """Small tick labels that are names."""
    axis.set_ticks(list(positions), labels=texts, fontsize=SMALL, rotation=rotation, **font(texts))
    axis.set_tick_params(length=0)


def require(table: pd.DataFrame, needed: Iterable[str], source: str, name: str = "table") -> None:
    """Refuse what is no table, lacks columns, or has no row."""
    import pandas as pd

    require_result(name, table, pd.DataFrame, source)
    absent = [column for column in needed if column not in table]
    if absent:
        raise ValueError(f"{name} has no column {absent[0]!r}, only {list(table)}; pass what {source} returns.")
    if not len(table):
        raise ValueError(f"{name} has no row; pass what {source} returns.")
