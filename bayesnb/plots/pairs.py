"""Pairs of features: where independence given the class fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_integer
from bayesnb.plots.style import SMALL, axes, bare, extent, header, names_on, require
from bayesnb.plots.text import columns, labels, require_matplotlib

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_STEP = 1.6 * SMALL


def independence(table: pd.DataFrame, top: int = 20, ax: Axes | None = None) -> Axes:
    """Matrix of the pairs of features: evidence that they depend on each other given the class.

    Read the dark orange cells: pairs that naive Bayes, which takes them for independent, counts twice.

    Parameters
    ----------
    table : DataFrame
        One row a pair, with columns feature_1, feature_2 and log_bayes_factor (nats), as `check_independence`
        returns it.
    top : int, default 20
        At most so many features are shown: those of the strongest pairs. Low axes have room for fewer.
    ax : Axes, optional

    Returns
    -------
    Axes
        The colour bar is a further Axes of its figure.

    Raises
    ------
    ValueError
        If a column is missing, or `top` is not an integer of at least 2.

    Notes
    -----
    Positive log Bayes factors (orange) speak for dependence given the class, against naive Bayes; negative ones
    (purple) for independence. The scale is linear from -1 to 1 and logarithmic beyond. Pairs that the table does not
    have are grey.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> table = bnb.check_independence(bnb.GaussianNB().fit(X, y), X, y, draws=20)
    >>> ax = bnb.plots.independence(table)
    >>> len(ax.get_yticklabels())
    4
    >>> figure = bnb.plots.detach(ax)
    """
    require_matplotlib()
    from matplotlib.colors import SymLogNorm

    require(table, ("feature_1", "feature_2", "log_bayes_factor"), "bayesnb.check_independence")
    require_integer("top", top, least=2)
    room = top if ax is None else max(2, min(top, int(min(extent(ax)) / _STEP)))
    every, shown = _strongest(table, room)
    matrix = _matrix(table, shown)
    largest = max(1.0, float(np.nanmax(np.abs(matrix), initial=0.0)))
    norm = SymLogNorm(linthresh=1.0, vmin=-largest, vmax=largest, base=10)
    ax, image = _drawn(ax, matrix, [*labels(every, 22).values()][: len(shown)], cmap="PuOr_r", norm=norm)
    bar = ax.figure.colorbar(image, ax=ax, ticks=_ticks(largest), label="log Bayes factor (nats)")
    bar.ax.set_yticklabels([f"{tick:g}" for tick in _ticks(largest)])
    bar.minorticks_off()
    bar.outline.set_visible(False)
    header(ax, ["Dependence given the class", _said(len(shown), len(every))])
    return ax


def arcs(probability: pd.DataFrame, top: int = 20, ax: Axes | None = None) -> Axes:
    """Matrix of the pairs of features: the posterior probability of an arc between them, all trees averaged.

    Read the black cells: arcs that nearly every probable tree has; grey ones are arcs that the rows leave open.

    Parameters
    ----------
    probability : DataFrame
        (F, F), `arc_probability_` of a `TreeAveragedNB`.
    top : int, default 20
        As for `independence`.
    ax : Axes, optional

    Returns
    -------
    Axes
        The colour bar is a further Axes of its figure.

    Raises
    ------
    TypeError
        If it is no DataFrame.
    ValueError
        If it is not square, of at least two features, or `top` is not an integer of at least 2.

    Notes
    -----
    That an arc is improbable does not say that its features are independent: others may say what it would.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> trees = bnb.TreeAveragedNB().fit(X.round().astype(int), y)
    >>> ax = bnb.plots.arcs(trees.arc_probability_)
    >>> ax.get_yticklabels()[0].get_text()
    'sepal length (cm)'
    >>> figure = bnb.plots.detach(ax)
    """
    require(probability, probability.index if hasattr(probability, "index") else (), "arc_probability_")
    require_integer("top", top, least=2)
    if len(probability) < 2:
        raise ValueError("arcs: there is one feature, and so no pair.")
    room = top if ax is None else max(2, min(top, int(min(extent(ax)) / _STEP)))
    values = probability.to_numpy(dtype=float)
    shown = np.sort(np.argsort(-values.max(axis=1), kind="stable")[:room])
    matrix = np.where(np.eye(len(shown), dtype=bool), np.nan, values[np.ix_(shown, shown)])
    named = [*labels(list(probability.index), 22).values()]
    ax, image = _drawn(ax, matrix, [named[j] for j in shown], cmap="Greys", vmin=0.0, vmax=1.0)
    ax.figure.colorbar(image, ax=ax, label="probability of the arc").outline.set_visible(False)
    header(ax, ["Arcs given the class, all trees averaged", _said(len(shown), len(values))])
    return ax


def _said(shown: int, every: int) -> str:
    return f"{shown} of {every} features: strongest pairs" if shown < every else ""


def _drawn(ax: Axes | None, matrix: np.ndarray, names: list[str], **colours: Any) -> tuple[Axes, Any]:
    """The axes with the matrix, and what the colour bar is of."""
    n = len(names)
    side, margin = max(2.6, 1.4 * _STEP / 72 * n), 0.58 * SMALL / 72 * max(map(columns, names))
    ax = axes(ax, side + margin + 1.7, side + margin + 1.05)
    ax.set_facecolor("0.85")
    image = ax.pcolormesh(np.ma.masked_invalid(matrix), edgecolors="white", linewidth=0.5 if n < 60 else 0, **colours)
    centres = np.arange(n) + 0.5
    names_on(ax.xaxis, centres, names, rotation=90)
    names_on(ax.yaxis, centres, names)
    ax.set(xlim=(0, n), ylim=(n, 0))
    ax.set_box_aspect(1)
    bare(ax)
    ax.set_xlabel("feature")
    ax.set_ylabel("feature")
    return ax, image


def _strongest(table: pd.DataFrame, top: int) -> tuple[list[str], list[str]]:
    """All features, and those `top` that come first when the pairs are read from the strongest on."""
    strength = table["log_bayes_factor"].to_numpy(dtype=float)
    order = np.argsort(-np.where(np.isnan(strength), -np.inf, strength), kind="stable")
    pairs = table[["feature_1", "feature_2"]].to_numpy()[order]
    every = list(dict.fromkeys(pairs.ravel().tolist()))
    return every, every[:top]


def _matrix(table: pd.DataFrame, shown: list[str]) -> np.ndarray:
    """Symmetric, NaN on the diagonal and where there is no pair."""
    place = {name: i for i, name in enumerate(shown)}
    matrix = np.full((len(shown), len(shown)), np.nan)
    pairs = (table[name] for name in ("feature_1", "feature_2", "log_bayes_factor"))
    for a, b, value in zip(*pairs, strict=True):
        if a in place and b in place:
            matrix[place[a], place[b]] = matrix[place[b], place[a]] = value
    return matrix


def _ticks(largest: float) -> list[float]:
    """Zero and powers of ten on both sides, at most four a side."""
    top = int(np.floor(np.log10(largest)))
    step = top // 4 + 1
    powers = [10.0**k for k in range(top, -1, -step)]
    return [*(-p for p in powers), 0.0, *powers[::-1]]
