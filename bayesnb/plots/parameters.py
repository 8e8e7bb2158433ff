"""Figures of parameters: what the prior moved, and what the data leave open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.fitted import Classifier
from bayesnb.plots.scaled import Scaled, scaled
from bayesnb.plots.style import GREY, SMALL, axes, dot, extent, header, light_grid, look, names_on, percent
from bayesnb.plots.text import labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MOST_ROWS = 30
_ROW = 1.45 * SMALL
_SMALLEST, _LARGEST = 16.0, 90.0
_MANY = 2000
_MOST_COLOURS = 12
_GAP = 0.5
_HEADER = 3  # rows


def shrinkage(nb: Classifier, prob: float = 0.9, ax: Axes | None = None, parameter: str | None = None) -> Axes:
    """Maximum likelihood against the posterior mean: what the prior moves, and how far.

    Read the distance from the diagonal: on it the prior does nothing, and small dots, of few cells, are moved most.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    prob : float, default 0.9
        Posterior probability of the intervals, in (0, 1).
    ax : Axes, optional
    parameter : {"theta", "mu", "sigma2", "rate"}, optional
        Which parameters: probabilities of levels or words, means or variances of Gaussian features, rates of
        Poisson features. Default: those that the model has most of, but not "sigma2".

    Returns
    -------
    Axes

    Raises
    ------
    ImproperPosteriorError, ValueError
        As `parameter_table`; if the model has no such parameter.

    Notes
    -----
    One dot a parameter, with its equal-tailed interval as a vertical line. The area of a dot grows with the weight
    of the cells behind it. Of more than 12 classes all have one colour.

    So that features in different units can share an axis, a mean is counted from the feature's mean over all rows, in
    its standard deviations over all rows (population form); a variance or rate is divided by the feature's
    variance or mean over all rows. Where such a unit is zero it is taken for 1. Words have a scale that is linear up
    to the smallest estimate above zero, and logarithmic beyond.

    An interval says what the data leave unknown about the parameter if naive Bayes holds.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> nb = bnb.GaussianNB().fit(*load_iris(return_X_y=True))
    >>> ax = bnb.plots.shrinkage(nb, prob=0.8)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('maximum likelihood estimate', 'posterior mean')
    >>> figure = bnb.plots.detach(ax)
    """
    chosen = scaled(nb, prob, parameter)
    ax = axes(ax, 5.6, 6.0)
    table = chosen.table
    there = np.isfinite(table["mle"].to_numpy())
    table = table[there]
    size, reference = _areas(table["count"].to_numpy())
    position = {label: i for i, label in enumerate(nb.classes_)}
    alike = len(position) > _MOST_COLOURS
    looks = [look(0 if alike else position[label]) for label in table["class"]]
    colour, mark = np.array([k["color"] for k in looks]), np.array([k["marker"] for k in looks])
    faint = float(np.clip(8 / np.sqrt(max(1, len(table))), 0.12, 0.85))
    raster = len(table) > _MANY
    # In no order, so that no class hides the others.
    order = np.random.default_rng(0).permutation(len(table))
    mixed = table.iloc[order]
    lines = ax.vlines(mixed["mle"], mixed["lower"], mixed["upper"], linewidth=0.8, alpha=0.5 * faint, zorder=2)
    lines.set(color=colour[order], rasterized=raster)
    for marker in dict.fromkeys(mark):
        own = order[mark[order] == marker]
        rows = table.iloc[own]
        dots = ax.scatter(
            rows["mle"],
            rows["mean"],
            s=size[own],
            c=colour[own],
            marker=marker,
            linewidths=0.4,
            edgecolors="white",
            alpha=faint,
            zorder=3,
        )
        dots.set_rasterized(raster)
    _square(ax, chosen, table)
    ax.set_xlabel("maximum likelihood estimate")
    ax.set_ylabel("posterior mean")
    light_grid(ax, "both")
    cells = [
        dot(f"{n:,.12g} cell{'s' if n != 1 else ''}", marker="o", color=GREY, markersize=np.sqrt(area))
        for n, area in reference
    ]
    said = [
        f"{chosen.axis}, with {percent(prob)} intervals",
        _left_out(chosen),
        f"{(~there).sum()} have no maximum likelihood estimate" if not there.all() else "",
        f"{len(position)} classes, all in one colour" if alike else "",
    ]
    names = [] if alike else list(labels(nb.classes_, 16).values())
    header(ax, said, [*(dot(name, markersize=6, **look(i)) for i, name in enumerate(names)), *cells], most=99)
    return ax


def forest(
    nb: Classifier,
    features: Iterable[Any] | None = None,
    prob: float = 0.9,
    ax: Axes | None = None,
    parameter: str | None = None,
) -> Axes:
    """Posterior intervals of parameters, the classes of a feature side by side.

    Read it within a group: classes whose intervals are apart are told apart by the feature, and where the hollow mark
    is off the filled one the prior has moved the estimate.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    features : iterable of column names or indices, optional
        Default: all.
    prob : float, default 0.9
        Posterior probability of the intervals, in (0, 1).
    ax : Axes, optional
    parameter : {"theta", "mu", "sigma2", "rate"}, optional
        As for `shrinkage`, with the same units.

    Returns
    -------
    Axes
        With at most 30 rows, fewer in low axes: the features with the widest intervals, which come first, each with
        its levels and classes in their order. The header says how many rows were left out.

    Raises
    ------
    ImproperPosteriorError, ValueError
        As `parameter_table`; if there is no such column or parameter.

    Notes
    -----
    Filled marks are posterior means, hollow ones maximum likelihood estimates. Of a Bernoulli feature only
    the probability that it is present is shown; the other is its mirror image. Features are left out whole, unless one
    alone is more than has room: then its last levels are, and of a single level all but the widest intervals.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.forest(bnb.GaussianNB().fit(X, y))
    >>> [text.get_text() for text in ax.get_yticklabels()][:3]
    ['sepal width (cm) | 0', 'sepal width (cm) | 1', 'sepal width (cm) | 2']
    >>> figure = bnb.plots.detach(ax)
    """
    chosen = scaled(nb, prob, parameter, features)
    table = chosen.table
    table = table[~chosen.absent]
    rows, first = _grouped(table, np.inf if ax is None else extent(ax)[1] / _ROW - _HEADER)
    shown: Any = table.iloc[rows]
    height = np.arange(len(shown)) + _GAP * (np.cumsum(first) - 1)
    ax = axes(ax, 7.5, 1.8 + _ROW / 72 * 1.3 * (height[-1] + 1))
    position = {label: i for i, label in enumerate(nb.classes_)}
    for y, row in zip(height, shown.itertuples(index=False), strict=True):
        colour = look(position[row[0]])["color"]
        ax.plot([row.lower, row.upper], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
        ax.plot(row.mean, y, "o", color=colour, markersize=4.5)
        ax.plot(row.mle, y, "o", color=colour, markersize=6.5, markerfacecolor="none", markeredgewidth=0.9)
    names = _row_names(nb, chosen, shown)
    names_on(ax.yaxis, height, names)
    ax.set_ylim(height[-1] + 0.6, -0.6)
    ax.set_xlabel(chosen.axis)
    ax.set_ylabel("feature = level | class" if _has_levels(chosen) else "feature | class")
    light_grid(ax, "x")
    lines = [
        f"{len(shown)} of {len(table)} intervals, widest features first; {len(table) - len(shown)} left out"
        if len(shown) < len(table)
        else "What the data say of parameters, if naive Bayes holds",
        _left_out(chosen),
    ]
    marks = [
        dot(f"posterior mean, {percent(prob)} interval", marker="o", color=GREY, markersize=4.5),
        dot("maximum likelihood", marker="o", color=GREY, markersize=6.5, markerfacecolor="none"),
    ]
    header(ax, lines, marks, names=names)
    return ax


def _grouped(table: pd.DataFrame, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions of as many rows as fit, those of a feature and level together, and which begin a group."""
    from pandas import factorize

    width = (table["upper"] - table["lower"]).to_numpy()
    feature, _ = factorize(table["feature"])
    level = feature + 1j * factorize(table["level"])[0]
    widest = np.full(feature.max() + 1, -np.inf)
    np.maximum.at(widest, feature, width)
    order = np.lexsort([np.arange(len(table)), level.imag, feature, -widest[feature]])
    first = np.diff(level[order], prepend=-1) != 0
    bottom = np.arange(1, len(order) + 1) + _GAP * (np.cumsum(first) - 1)
    room = max(1, min(_MOST_ROWS, int((bottom <= height).sum())))
    if len(order) > room:
        whole = np.append(np.diff(feature[order], prepend=-1) != 0, True)  # where features end, and begin
        ends = (np.flatnonzero(of[: room + 1])[-1] for of in (whole, np.append(first, True)))
        fits = next((int(end) for end in ends if end), 0)
        # Of one group alone, the widest intervals.
        alone = order[: np.flatnonzero(np.append(first[1:], True))[0] + 1]
        order = order[:fits] if fits else alone[np.sort(np.argsort(-width[alone], kind="stable")[:room])]
    return order, first[: len(order)]


def _areas(count: np.ndarray) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Areas of the dots in square points, and a few (count, area) to explain them by."""
    most = max(float(count.max(initial=0.0)), 1e-300)
    area = _SMALLEST + (_LARGEST - _SMALLEST) * count / most
    if (count == most).all():
        return area, [(most, _LARGEST)] * len(count[:1])
    nice = 10.0 ** np.floor(np.log10(most))
    nice *= max(k for k in (1, 2, 5) if k * nice <= most)
    shown = [nice / 10, nice] if nice >= 10 else [nice]
    return area, [(n, _SMALLEST + (_LARGEST - _SMALLEST) * n / most) for n in shown]


def _square(ax: Axes, chosen: Scaled, table: Any) -> None:
    """The same limits and scale on both axes, and the diagonal."""
    values = table[["mle", "mean", "lower", "upper"]].to_numpy()
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    if chosen.words:
        # Probabilities of words span decades, and zero is the one to see.
        smallest = table["mle"][table["mle"] > 0].min() if (table["mle"] > 0).any() else 1.0
        low, high = -0.2 * smallest, high * 1.5
        ax.set_xscale("symlog", linthresh=smallest)
        ax.set_yscale("symlog", linthresh=smallest)
    else:
        margin = 0.04 * (high - low) or 1.0
        low, high = low - margin, high + margin
    ax.plot([low, high], [low, high], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.set(xlim=(low, high), ylim=(low, high))
    ax.set_box_aspect(1)


def _row_names(nb: Classifier, chosen: Scaled, shown: Any) -> list[str]:
    # All names of X, so that a position behind a name is that of the column.
    feature, label = labels(nb.fitted_.encoding.feature_names, 22), labels(nb.classes_, 12)
    if not _has_levels(chosen):
        return [f"{feature[f]} | {label[c]}" for f, c in zip(shown["feature"], shown["class"], strict=True)]
    named = chosen.table[chosen.table["feature"].isin(shown["feature"])]
    level = {f: labels(rows["level"], 14) for f, rows in named.groupby("feature", sort=False)}
    cells = zip(shown["feature"], shown["level"], shown["class"], strict=True)
    return [f"{feature[f]} = {level[f][v]} | {label[c]}" for f, v, c in cells]


def _left_out(chosen: Scaled) -> str:
    counts = ", ".join(f"{n} {name}" for name, n in chosen.others.items())
    return f"Not in this figure: {counts}" if counts else ""


def _has_levels(chosen: Scaled) -> bool:
    return chosen.levels and not chosen.words
