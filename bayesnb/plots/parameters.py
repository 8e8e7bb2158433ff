"""Figures of parameters: what the prior moved, and what the data leave open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.fitted import Classifier
from bayesnb.plots.scaled import Scaled, scaled
from bayesnb.plots.style import GREY, SMALL, axes, dot, extent, header, look, names_on, percent
from bayesnb.plots.text import labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS = 30
_ROW = 1.45 * SMALL
_SMALLEST, _LARGEST = 9.0, 90.0
_MANY = 2000


def shrinkage(nb: Classifier, prob: float = 0.9, ax: Axes | None = None, parameter: str | None = None) -> Axes:
    """Maximum likelihood against the posterior mean: what the prior moves, and how far.

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
    of the cells behind it. On the diagonal the prior does nothing.

    So that features in different units can share an axis, a mean is counted from the feature's mean over all rows, in
    its standard deviations over all rows (population form); a variance or rate is divided by the feature's
    variance or mean over all rows. Where such a unit is zero it is taken for 1. Words have a scale that is linear up
    to the smallest estimate above zero, and logarithmic beyond.

    An interval says what the data leave unknown about the parameter if naive Bayes holds.
    """
    chosen = scaled(nb, prob, parameter)
    ax = axes(ax, 5.6, 6.0)
    table = chosen.table
    there = np.isfinite(table["mle"].to_numpy())
    table = table[there]
    size, reference = _areas(table["count"].to_numpy())
    position = {label: i for i, label in enumerate(nb.classes_)}
    looks = [look(position[label]) for label in table["class"]]
    colour, mark = np.array([k["color"] for k in looks]), np.array([k["marker"] for k in looks])
    raster = len(table) > _MANY
    lines = ax.vlines(table["mle"], table["lower"], table["upper"], linewidth=0.8, alpha=0.4, zorder=2)
    lines.set(color=colour, rasterized=raster)
    # In no order, so that no class hides the others.
    order = np.random.default_rng(0).permutation(len(table))
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
            alpha=0.85,
            zorder=3,
        )
        dots.set_rasterized(raster)
    _square(ax, chosen, table)
    ax.set_xlabel("maximum likelihood estimate")
    ax.set_ylabel("posterior mean")
    cells = [dot(f"{n:g} cells", marker="o", color=GREY, markersize=np.sqrt(area)) for n, area in reference]
    said = [
        f"{chosen.axis}, with {percent(prob)} intervals",
        _left_out(chosen),
        f"{(~there).sum()} have no maximum likelihood estimate" if not there.all() else "",
    ]
    marks = [dot(name, markersize=6, **look(i)) for i, name in enumerate(labels(nb.classes_, 16).values())]
    more = [dot(f"… and {len(marks) - 12} more", marker="")] if len(marks) > 12 else []
    header(ax, said, [*marks[:12], *more, *cells], most=99)
    return ax


def forest(
    nb: Classifier,
    features: Iterable[Any] | None = None,
    prob: float = 0.9,
    ax: Axes | None = None,
    parameter: str | None = None,
) -> Axes:
    """Posterior intervals of parameters, the widest first.

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
        With at most 30 rows, fewer in low axes; the header says how many were left out.

    Raises
    ------
    ImproperPosteriorError, ValueError
        As `parameter_table`; if there is no such column or parameter.

    Notes
    -----
    Filled marks are posterior means, hollow ones maximum likelihood estimates. Of a Bernoulli feature only
    the probability that it is present is shown; the other is its mirror image.
    """
    chosen = scaled(nb, prob, parameter, features)
    table = chosen.table
    table = table[~chosen.absent]
    order = np.argsort(-(table["upper"] - table["lower"]).to_numpy(), kind="stable")
    room = _MOST_ROWS if ax is None else max(1, min(_MOST_ROWS, int(extent(ax)[1] / _ROW)))
    shown: Any = table.iloc[order[:room]]
    ax = axes(ax, 7.5, 1.8 + _ROW / 72 * 1.3 * len(shown))
    position = {label: i for i, label in enumerate(nb.classes_)}
    for y, row in enumerate(shown.itertuples(index=False)):
        colour = look(position[row[0]])["color"]
        ax.plot([row.lower, row.upper], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
        ax.plot(row.mean, y, "o", color=colour, markersize=4.5)
        ax.plot(row.mle, y, "o", color=colour, markersize=6.5, markerfacecolor="none", markeredgewidth=0.9)
    names = _row_names(nb, chosen, shown)
    names_on(ax.yaxis, range(len(shown)), names)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel(chosen.axis)
    ax.set_ylabel("feature = level | class" if _has_levels(chosen) else "feature | class")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    lines = [
        f"{len(shown)} widest of {len(table)} intervals; {len(table) - len(shown)} left out"
        if len(shown) < len(table)
        else "",
        _left_out(chosen),
    ]
    marks = [
        dot(f"posterior mean, {percent(prob)} interval", marker="o", color=GREY, markersize=4.5),
        dot("maximum likelihood", marker="o", color=GREY, markersize=6.5, markerfacecolor="none"),
    ]
    header(ax, lines, marks, names=names)
    return ax


def _areas(count: np.ndarray) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Areas of the dots in square points, and a few (count, area) to explain them by."""
    most = max(float(count.max(initial=0.0)), 1e-300)
    area = _SMALLEST + (_LARGEST - _SMALLEST) * count / most
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
    elif chosen.levels:
        low, high = -0.03, 1.03
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
