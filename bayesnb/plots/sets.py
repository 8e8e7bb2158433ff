"""Figures of prediction sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_result
from bayesnb.plots.style import COLOURS, GREY, WRONG, axes, dot, header, percent
from bayesnb.plots.text import require_matplotlib
from bayesnb.prediction import PredictionSets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def set_sizes(sets: PredictionSets, y: Any = None, ax: Axes | None = None) -> Axes:
    """How many labels the sets of rows have, and how many of the sets hold the true one.

    Read the bars for how much the sets say, since one label says most, and the marks against the dashed line for how
    often they hold the truth.

    Parameters
    ----------
    sets : PredictionSets
        As `bayesnb.conformal(nb, X, y).predict_set` returns them.
    y : (M,) array-like, optional
        True labels: then a mark for each size is the share of its sets that hold the true label.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there is no row, or not one label a row.

    Notes
    -----
    What is promised is the coverage of all rows together, the dashed line, not that of the sets of one size: those with
    one label may hold the true one less often. Bars of the marks are 95% intervals of Wilson.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = bnb.conformal(bnb.GaussianNB().fit(X[::2], y[::2]), X[::2], y[::2]).predict_set(X[1::2])
    >>> ax = bnb.plots.set_sizes(sets, y[1::2])
    >>> ax.get_xlabel()
    'labels in the set'
    >>> figure = bnb.plots.detach(ax)
    """
    require_matplotlib()
    from matplotlib.ticker import MaxNLocator

    require_result("sets", sets, PredictionSets, "predict_set of bayesnb.conformal")
    n, size = len(sets.members), sets.size
    if not n:
        raise ValueError("sets: there is no row.")
    ax = axes(ax, 6.4, 4.2)
    count = np.bincount(size, minlength=2)
    kinds = {
        "no label": (WRONG, slice(0, 1)),
        "one": (COLOURS[0], slice(1, 2)),
        "several": (COLOURS[5], slice(2, None)),
    }
    handles = []
    for name, (colour, own) in kinds.items():
        at = np.arange(len(count))[own]
        ax.bar(at, count[own] / n, width=0.8, color=colour, linewidth=0)
        handles.append(dot(f"{name}: {count[own].sum():,}", marker="s", color=colour, markersize=7))
    lines = [f"{n:,} rows, sets of {percent(sets.coverage)} coverage"]
    if y is not None:
        covered = sets.covered(y)
        handles.append(_coverage(ax, size, covered))
        lines.append(f"The true label is in {percent(round(covered.mean(), 4))} of the sets")
        asked = ax.axhline(sets.coverage, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
        asked.set_label("asked of all together")
        handles.append(asked)
    ax.set(xlim=(-0.6, len(count) - 0.4), ylim=(0, None if y is None else 1.03))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    ax.set_xlabel("labels in the set")
    ax.set_ylabel("share of rows" if y is None else "share")
    header(ax, lines, handles)
    return ax


def _coverage(ax: Axes, size: np.ndarray, covered: np.ndarray) -> Any:
    """Marks of the share of sets of each size that hold the label; an empty one holds none."""
    from scipy.stats import binomtest

    own = {int(k): covered[size == k] for k in np.unique(size[size > 0])}
    wilson = [binomtest(int(held.sum()), len(held)).proportion_ci(method="wilson") for held in own.values()]
    ax.vlines(list(own), [w.low for w in wilson], [w.high for w in wilson], color="black", linewidth=1.0, zorder=3)
    share = [held.mean() for held in own.values()]
    look: Any = {"s": 26, "color": "white", "edgecolors": "black", "linewidths": 1.1, "zorder": 4}
    return ax.scatter(list(own), share, label="hold the true label", **look)
