"""Densities of binned columns, with what is known of where they are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.fitted import Classifier, require_posterior
from bayesnb.plots.style import GREY, SMALL, axes, dot, header, look, percent
from bayesnb.plots.text import font, labels
from bayesnb.uncertainty import cut_table, density_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_CLASSES = 7
_MOST_TICKS = 300
_CURVE = 200
_BARS = 40
_FEW = 3


def density(
    nb: Classifier, feature: Any, X: Any = None, y: Any = None, prob: float = 0.9, ax: Axes | None = None
) -> Axes:
    """The density of a binned column in each class, with its interval, and how probable each cut is.

    Read where the lines are apart: there a value tells the classes apart; where a band is wide the data say little of
    the height.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        With binned columns.
    feature : column name or index
    X, y : (N, F) and (N,) array-like, optional
        Rows and their labels.
        Drawn as ticks below, the normal density with their mean and sd beside (dotted).
    prob : float, default 0.9
        Posterior probability of the intervals, of one cell each.
    ax : Axes, optional

    Returns
    -------
    Axes
        With at most seven classes, those with the most rows; the header says how many were left out. Grey lines hang
        from above, each as long as its cut is probable.

    Raises
    ------
    ValueError
        If the column is not binned, or has one cell only; if X is given without y, or y without X.

    Notes
    -----
    Neighbouring cells are joined until they are a fortieth of the range wide: where the rows are dense cells are
    narrow, and a density jumps from each to the next as the widths do. The outer cells have no end: they are drawn up
    to the least and the greatest value in X, or without X as wide as their neighbours.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.density(bnb.BinnedNB().fit(X, y), "petal length (cm)", X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('petal length (cm)', 'density')
    >>> figure = bnb.plots.detach(ax)
    """
    if (X is None) != (y is None):
        raise ValueError("X and y come together: pass the labels of the rows.")
    fitted = require_posterior(nb, "density")
    table, cuts = density_table(nb, [feature], prob, bars=_BARS), cut_table(nb, [feature])
    name, edges = table["feature"].iloc[0], cuts["edge"].to_numpy()
    if not len(edges):
        raise ValueError(f"feature={feature!r}: column {name!r} has one cell only, and so no density to draw.")
    (j,) = fitted.encoding.positions([feature])
    classes = list(fitted.encoding.classes.values)
    values = label = np.zeros(0)
    if X is not None:
        rows = fitted.table(X)
        values = np.asarray(rows.numbers([j]), float)[:, 0]
        label = fitted.label_index(y, rows.n_rows)
    seen = values[np.isfinite(values)]
    least, greatest = _outer(edges, seen)
    inner = np.unique(table["high"][np.isfinite(table["high"])])
    ends = np.concatenate([[least], inner, [greatest]])
    width = np.diff(ends)

    largest = np.argsort(-fitted.statistics.class_count, kind="stable")[:_MOST_CLASSES]
    ax = axes(ax, 6.4, 4.4)
    handles: list[Any] = []
    names = list(labels(classes, 22).values())
    (title,) = labels([name], 48).values()
    top = 0.0
    for c in np.sort(largest):
        own = table[table["class"] == classes[c]] if len(classes) > 1 else table
        colour = look(int(c))["color"]
        height = own["probability"].to_numpy() / width
        finite = np.isfinite(own["density"].to_numpy())
        share = np.where(finite, own["density"] / height, 1.0)
        lower, upper = (np.where(finite, own[end] / share, np.nan) for end in ("lower", "upper"))
        ax.stairs(height, ends, color=colour, linewidth=1.4, baseline=None)
        band = np.repeat(ends, 2)[1:-1], np.repeat(lower, 2), np.repeat(upper, 2)
        ax.fill_between(*band, color=colour, alpha=0.18 if len(largest) <= _FEW else 0.08, linewidth=0)
        handles.append(dot(names[c], linestyle="-", color=colour))
        top = max(top, float(height.max()), float(np.nanmax(upper, initial=0.0)))
        ticks = values[(label == c) & np.isfinite(values)] if len(values) else values
        if len(ticks) > 1 and ticks.std() > 0:
            grid = np.linspace(least, greatest, _CURVE)
            normal = np.exp(-0.5 * ((grid - ticks.mean()) / ticks.std()) ** 2) / (ticks.std() * np.sqrt(2 * np.pi))
            ax.plot(grid, normal, color=colour, linewidth=0.9, linestyle=":")
        if len(ticks):
            some = ticks[:: max(1, len(ticks) // _MOST_TICKS)]
            ax.plot(
                some,
                np.full(len(some), -0.02),
                "|",
                color=colour,
                markersize=4,
                alpha=0.6,
                clip_on=False,
                transform=ax.get_xaxis_transform(),
            )
    ax.set_ylim(0.0, 1.05 * top)
    ax.set_xlim(least - 0.02 * (greatest - least), greatest + 0.02 * (greatest - least))
    probability = cuts["probability"].to_numpy()
    ax.vlines(edges, 1.0 - 0.25 * probability, 1.0, color=GREY, linewidth=1.1, transform=ax.get_xaxis_transform())
    ax.set_xlabel(title, **font([title]))
    ax.set_ylabel("density")
    ax.tick_params(labelsize=SMALL)
    if len(values):
        handles.append(dot("normal density", linestyle=":", color=GREY))
    handles.append(dot("cut, as long as it is probable", marker="|", color=GREY, markersize=9))
    header(
        ax,
        [
            f"{title}: all binnings averaged, with {percent(prob)} intervals of each cell",
            f"{len(largest)} largest of {len(classes)} classes; {len(classes) - len(largest)} left out"
            if len(largest) < len(classes)
            else "",
        ],
        handles,
    )
    return ax


def _outer(edges: np.ndarray, seen: np.ndarray) -> tuple[float, float]:
    """Where the outer cells are taken to end."""
    beside = np.diff(edges)[[0, -1]] if len(edges) > 1 else np.full(2, max(1.0, abs(float(edges[0])) * 0.1))
    least, greatest = edges[0] - beside[0], edges[-1] + beside[1]
    if len(seen):
        least = seen.min() if seen.min() < edges[0] else least
        greatest = seen.max() if seen.max() > edges[-1] else greatest
    return float(least), float(greatest)


__all__ = ["density"]
