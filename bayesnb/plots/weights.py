"""Figures of the weights of terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.plots.style import COLOURS, SMALL, WRONG, axes, dot, extent, header, light_grid, names_on, percent, require
from bayesnb.plots.text import labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MOST_ROWS = 40
_ROW = 1.45 * SMALL  # points
_HEADER = 6  # rows


def weights(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Weights of terms with their intervals, the largest first, and the temperature that they are shrunk to.

    Read how far a dot is from 1, where naive Bayes counts every term: what repeats others has a small weight.

    Parameters
    ----------
    table : DataFrame
        What `weight_table` returns, or rows of it.
    ax : Axes, optional

    Returns
    -------
    Axes
        With at most 40 terms, fewer in low axes: those that cost most to leave out. The header says how many more there
        are. Where all terms share the temperature the table has one row, and so has the figure.

    Raises
    ------
    TypeError
        If it is no DataFrame.
    ValueError
        If a column is missing, or there is no row.

    Notes
    -----
    At 1 a term counts as in naive Bayes, at 0 not at all; between them it repeats in part what others say, and below 0
    it takes back what they say too often. A hollow dot has 0 in its interval. Intervals are about the weights given
    fits to halves of the rows; the dashed line is the temperature, which weights are shrunk to.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.weights(bnb.weight_table(bnb.WeightedNB(bnb.GaussianNB()).fit(X, y)))
    >>> ax.get_xlabel()
    'weight of the term'
    >>> figure = bnb.plots.detach(ax)
    """
    require(table, ("term", "weight", "lower", "upper", "cost"), "bayesnb.weight_table")
    room = _MOST_ROWS if ax is None else max(3, min(_MOST_ROWS, int(extent(ax)[1] / _ROW) - _HEADER))
    dearest = table.iloc[np.argsort(-table["cost"].to_numpy(), kind="stable")[:room]]
    shown = dearest.iloc[np.argsort(-dearest["weight"].to_numpy(), kind="stable")]
    more = len(table) - len(shown)
    ax = axes(ax, 6.4, 1.9 + _ROW / 72 * 1.3 * max(3, len(shown)))
    for at in (0.0, 1.0):
        ax.axvline(at, color="0.5", linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    y, colour = np.arange(len(shown)), COLOURS[0]
    ax.hlines(y, shown["lower"], shown["upper"], color=colour, linewidth=1.6, alpha=0.6)
    unclear = ((shown["lower"] <= 0) & (shown["upper"] >= 0)).to_numpy()
    filled: dict[str, Any] = {"marker": "o", "color": colour, "markersize": 4.5}
    hollow = {**filled, "markerfacecolor": "white", "markeredgewidth": 1.1}
    ax.plot(shown["weight"][~unclear], y[~unclear], linestyle="none", **filled)
    ax.plot(shown["weight"][unclear], y[unclear], linestyle="none", **hollow)
    interval = f"{percent(table.attrs['prob'])} interval" if "prob" in table.attrs else "interval"
    marks = [dot(f"weight, {interval}", **filled)]
    if unclear.any():
        marks.append(dot("0 is in the interval", **hollow))
    if (temperature := table.attrs.get("temperature")) is not None:
        ax.axvline(temperature, color=WRONG, linewidth=1.2, linestyle="--", zorder=1)
        marks.append(dot(f"temperature {temperature:.3g}", linestyle="--", color=WRONG, linewidth=1.2))
    said = [
        "Given fits to halves of the rows; 1 is naive Bayes",
        f"The {len(shown)} that cost most to leave out … and {more:,} more" if more else "",
    ]
    named = labels(table["term"], 26)
    names = [named[term] for term in shown["term"]]
    names_on(ax.yaxis, y, names)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel("weight of the term")
    ax.set_ylabel("term")
    light_grid(ax, "x")
    header(ax, said, marks, names=names)
    return ax
