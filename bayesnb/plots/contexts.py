"""Figures of contexts: how many parents the rows speak for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesnb.plots.style import COLOURS, SMALL, axes, dot, extent, header, names_on, require
from bayesnb.plots.text import labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MOST_ROWS = 40
_ROW = 1.45 * SMALL  # points
_HEADER = 5  # rows
_LIGHT = 0.88


def contexts(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """For each feature the share of its rows whose distribution depends on no parent, on the first one, on two, ….

    Read how far the dark part goes: rows there have a distribution of their own for every value of all parents; in the
    light part the feature depends on the class alone.

    Parameters
    ----------
    table : DataFrame
        What `context_table` returns.
    ax : Axes, optional

    Returns
    -------
    Axes
        With at most 40 features, fewer in low axes: those whose rows depend on most parents come first.

    Raises
    ------
    TypeError
        If it is no DataFrame.
    ValueError
        If a column is missing, or there is no row.

    Notes
    -----
    Posterior probabilities, averaged over the rows of all classes, given the network.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> arcs = {"sepal length (cm)": ["petal length (cm)", "petal width (cm)"]}
    >>> nb = bnb.NetworkNB(arcs, tables="context").fit(X.round().astype(int), y)
    >>> ax = bnb.plots.contexts(bnb.context_table(nb))
    >>> ax.get_xlabel()
    'share of the rows'
    >>> figure = bnb.plots.detach(ax)
    """
    require(table, ("feature", "parents", "rows", "last"), "bayesnb.context_table")
    ending = table.assign(ending=table["rows"] * table["last"])
    share = ending.pivot_table("ending", "feature", "parents", "sum", fill_value=0.0)
    share = share.div(share.sum(axis=1), axis=0)
    mean = (share * np.asarray(share.columns, float)).sum(axis=1)
    room = _MOST_ROWS if ax is None else max(2, min(_MOST_ROWS, int(extent(ax)[1] / _ROW) - _HEADER))
    shown = share.loc[mean.sort_values(ascending=False, kind="stable").index[:room]]
    ax = axes(ax, 6.4, 1.6 + _ROW / 72 * 1.3 * max(3, len(shown)))
    y, left, marks = np.arange(len(shown)), np.zeros(len(shown)), []
    for i, d in enumerate(map(int, shown.columns.to_numpy())):
        colour = _blend(i / max(1, len(shown.columns) - 1))
        ax.barh(y, shown[d], left=left, height=0.72, color=colour)
        left += shown[d].to_numpy()
        name = "no parent" if d == 0 else "1 parent" if d == 1 else f"{d} parents"
        marks.append(dot(name, marker="s", color=colour, markersize=6))
    more = len(share) - len(shown)
    said = ["Rows by how many parents their distribution depends on", f"… and {more:,} more features" if more else ""]
    named = labels(share.index, 26)
    names = [named[feature] for feature in shown.index]
    names_on(ax.yaxis, y, names)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("share of the rows")
    ax.set_ylabel("feature")
    header(ax, said, marks, names=names)
    return ax


def _blend(share: float) -> tuple[float, ...]:
    """From a light grey to the first colour."""
    from matplotlib.colors import to_rgb

    return tuple((1 - share) * _LIGHT + share * np.array(to_rgb(COLOURS[0])))
