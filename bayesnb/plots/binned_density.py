"""Figure of the density of a binned column, with what is known of where it is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.fitted import Classifier, require_posterior
from bayesnb.plots import style
from bayesnb.plots.fonts import families
from bayesnb.plots.labels import labels
from bayesnb.uncertainty import cut_table, density_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MOST_CLASSES = 7
_MOST_TICKS = 300
_BARS = 40
_FEW = 3


def density(
    nb: Classifier, feature: object, X: object = None, y: object = None, prob: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Show the density of a binned column in each class, with posterior intervals.

    Values at which the lines differ distinguish the classes. A wide band means that the data determine the height
    poorly. Each grey line at the top is a possible cut; its length is the probability of the cut.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with binned columns: `BinnedNB` or `MixedNB`.
    feature : column name or index
        Binned column.
    X : array-like or DataFrame of shape (N, F), optional
        Rows that are drawn as ticks below; the normal density with their mean and sd is the dotted line.
    y : (N,) array-like, optional
        Labels of the rows in `X`.
    prob : float, default 0.9
        Posterior probability of the interval of each cell, in (0, 1).
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with at most seven classes, those with the most rows; the header says how many were left out.

    Raises
    ------
    ValueError
        If the column is not binned, or has one cell only; if X is given without y, or y without X; if `prob` is not in
        (0, 1).

    Notes
    -----
    Neighbouring cells are joined until they are a fortieth of the range wide, as the densities of narrow cells jump
    from one to the next. The outer cells extend to infinity. They are drawn up to the smallest and the largest value in
    X, or without X as wide as their neighbours.

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
        raise ValueError("X and y must be passed together, as y holds the labels of the rows.")
    fitted = require_posterior(nb, "density")
    table, cuts = density_table(nb, [feature], prob, bars=_BARS), cut_table(nb, [feature])
    name, edges = table["feature"].iloc[0], cuts["edge"].to_numpy()
    if not len(edges):
        raise ValueError(
            f"feature={shown(feature)}: column {name!r} was not cut (it has one bin), so there is no density to draw. "
            "Choose another column."
        )
    values = label = np.zeros(0)
    if X is not None:
        rows = fitted.table(X)
        values = np.asarray(rows.numbers([*fitted.encoding.positions([feature])]), float)[:, 0]
        label, values = (array[np.isfinite(values)] for array in (fitted.label_index(y, rows.n_rows), values))
    ends = _cell_ends(table, edges, values)
    classes = fitted.encoding.classes.values
    largest = np.argsort(-fitted.statistics.class_count, kind="stable")[:_MOST_CLASSES]
    names = list(labels(classes, 22).values())
    ax = style.open_axes(ax, 6.4, 4.4)
    marks = []
    for c in sorted(largest):
        colour = style.look(int(c))["color"]
        _draw_steps(ax, table[table["class"] == classes[c]], ends, colour, 0.18 if len(largest) <= _FEW else 0.08)
        _draw_rows(ax, values[label == c], ends, colour)
        marks.append(style.legend_mark(names[c], linestyle="-", color=colour))
    margin = 0.02 * np.ptp(ends)
    ax.set_ylim(bottom=0.0)
    ax.set_xlim(ends[0] - margin, ends[-1] + margin)
    length = 0.25 * cuts["probability"]
    ax.vlines(edges, 1.0 - length, 1.0, color=style.GREY, linewidth=1.1, transform=ax.get_xaxis_transform())
    (title,) = labels([name], 48).values()
    ax.set_xlabel(title, fontfamily=families())
    ax.set_ylabel("density")
    if len(values):
        marks.append(style.legend_mark("normal density", linestyle=":", color=style.GREY))
    marks.append(style.legend_mark("cut, as long as it is probable", marker="|", color=style.GREY, markersize=9))
    n, left_out = len(largest), len(classes) - len(largest)
    lines = [
        f"{title}: all binnings averaged, with {style.format_percent(prob)} intervals of each cell",
        f"{n} largest of {len(classes)} classes; {left_out} left out" if left_out else "",
    ]
    style.write_header(ax, lines, marks)
    return ax


def _cell_ends(table: pd.DataFrame, edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Ascending ends of the drawn cells; outer cells reach to `values` beyond, or are as wide as neighbours."""
    width = np.diff(edges)[[0, -1]] if len(edges) > 1 else np.full(2, max(1.0, abs(float(edges[0])) * 0.1))
    least, greatest = values.min(initial=edges[0]), values.max(initial=edges[-1])
    inner = np.unique(table["high"][np.isfinite(table["high"])])
    first = least if least < edges[0] else edges[0] - width[0]
    return np.array([first, *inner, greatest if greatest > edges[-1] else edges[-1] + width[1]])


def _draw_steps(ax: Axes, cells: pd.DataFrame, ends: np.ndarray, colour: str, alpha: float) -> None:
    """Draw the density of one class as steps, and a band of its intervals, which outer cells do not have."""
    ax.stairs(cells["probability"] / np.diff(ends), ends, color=colour, linewidth=1.4, baseline=None)
    lower, upper = np.repeat(cells[["lower", "upper"]].to_numpy(), 2, axis=0).T
    ax.fill_between(np.repeat(ends, 2)[1:-1], lower, upper, color=colour, alpha=alpha, linewidth=0)


def _draw_rows(ax: Axes, values: np.ndarray, ends: np.ndarray, colour: str) -> None:
    """Draw values as ticks below the axes, and the normal density with their mean and standard deviation.

    Ticks are those of every k-th value, k = N // 300 or 1. Equal values have no normal density.
    """
    if len(values) and values.std() > 0:
        grid = np.linspace(ends[0], ends[-1], 200)
        normal = np.exp(-0.5 * ((grid - values.mean()) / values.std()) ** 2) / (values.std() * np.sqrt(2 * np.pi))
        ax.plot(grid, normal, color=colour, linewidth=0.9, linestyle=":", scaley=False)
    ticks = values[:: max(1, len(values) // _MOST_TICKS)]
    style_of_ticks: dict[str, Any] = {"markersize": 4, "alpha": 0.6, "clip_on": False}
    ax.plot(ticks, np.full(len(ticks), -0.02), "|", color=colour, transform=ax.get_xaxis_transform(), **style_of_ticks)
