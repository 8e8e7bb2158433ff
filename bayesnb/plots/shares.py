"""Figures of the shares of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_result
from bayesnb.plots.style import GREY, SMALL, axes, dot, extent, header, light_grid, look, names_on, percent
from bayesnb.plots.text import labels
from bayesnb.prediction.prevalence import Prevalence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS = 30
_ROW = 3.0 * SMALL  # points
_BINS = 30
_TALLEST = 0.62  # of a row


def prevalence(result: Prevalence, ax: Axes | None = None) -> Axes:
    """The posterior of each class's share among unlabelled rows, beside its share of the training rows.

    Read whether a diamond, the share in training, lies in the line of its class: if not, the share has moved.

    Parameters
    ----------
    result : what `estimate_prevalence` returns
    ax : Axes, optional

    Returns
    -------
    Axes
        With at most 30 classes, fewer in low axes, those whose share is the largest now or was in training; the header
        says how many were left out.

    Raises
    ------
    TypeError
        If it is no `Prevalence`.

    Notes
    -----
    Histograms are of the draws, each as high as its row. The intervals are about the shares, if p(row | class) is what
    it was in training and the scores are calibrated.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = bnb.plots.prevalence(bnb.estimate_prevalence(bnb.GaussianNB().fit(X, y), X[40:]))
    >>> ax.get_xlabel()
    'share of the class'
    >>> figure = bnb.plots.detach(ax)
    """
    require_result("result", result, Prevalence, "estimate_prevalence")
    n = len(result.classes)
    room = _MOST_ROWS if ax is None else max(1, min(_MOST_ROWS, int(extent(ax)[1] / _ROW)))
    largest = np.argsort(-np.maximum(result.mean, result.training), kind="stable")[:room]
    shown = np.sort(largest)
    ax = axes(ax, 6.4, 1.9 + (1.3 if len(shown) <= 10 else 0.8) * _ROW / 72 * len(shown))
    for y, c in enumerate(shown):
        colour = look(int(c))["color"]
        height, edges = np.histogram(result.draws[:, c], _BINS, (0.0, 1.0) if n == 1 else None)
        ax.stairs(y - _TALLEST * height / height.max(), edges, baseline=y, fill=True, color=colour, alpha=0.3)
        ax.plot([result.lower[c], result.upper[c]], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
        ax.plot(result.mean[c], y, "o", color=colour, markersize=5)
        ax.plot(result.training[c], y, "D", color=GREY, markersize=5.5, markerfacecolor="none", markeredgewidth=1.1)
    names = list(labels(result.classes, 22).values())
    names = [names[c] for c in shown]
    names_on(ax.yaxis, range(len(shown)), names)
    ax.set_ylim(len(shown) - 0.6, -0.8)
    widest = float(max(result.draws[:, shown].max(), result.training[shown].max()))
    ax.set_xlim(-0.02 * widest, 1.03 * widest)
    ax.set_xlabel("share of the class")
    ax.set_ylabel("class")
    light_grid(ax, "x")
    marks: list[Any] = [
        dot(f"posterior mean, {percent(result.prob)} interval", marker="o", color=GREY, markersize=5),
        dot("share in training", marker="D", color=GREY, markersize=5.5, markerfacecolor="none"),
    ]
    header(
        ax,
        [
            f"{result.n_rows:,} rows without labels",
            "If p(row | class) is what it was and scores are calibrated",
            f"{len(shown)} largest of {n} classes; {n - len(shown)} left out" if len(shown) < n else "",
        ],
        marks,
        names=names,
    )
    return ax
