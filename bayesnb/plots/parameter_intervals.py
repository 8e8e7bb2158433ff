"""Figures of parameters: posterior intervals, and the effect of the prior."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from bayesnb.fitted.state import Classifier
from bayesnb.plots import style
from bayesnb.plots.diagnostic_table import is_diagnostic, read_prob, select_quantities
from bayesnb.plots.labels import labels
from bayesnb.plots.parameter_units import select_parameters
from bayesnb.plots.style import Axes

_MOST_ROWS = 30
_GAP = 0.5  # rows, between groups
_MANY = 2000
_MOST_COLOURED = 12  # classes


def forest(
    nb: Classifier | Any,
    features: Iterable[object] | None = None,
    prob: float | None = None,
    ax: Axes | None = None,
    parameter: str | None = None,
) -> Axes:
    """Compare the parameters of the classes, feature by feature, by their posterior intervals.

    Within a group of intervals, a feature distinguishes the classes whose intervals do not overlap. A hollow mark
    (maximum likelihood) away from the filled mark (posterior mean) shows that the prior has moved the estimate. For
    diagnostic tests, the figure compares the intervals of prevalences, sensitivities and specificities.

    Parameters
    ----------
    nb : fitted classifier of bayesnb, or DiagnosticTests
        Classifier whose posterior is proper, or the result of `diagnostic_tests`.
    features : iterable of column names or indices, optional
        Features whose parameters are drawn; for diagnostic tests, names of tests or populations. Default: all features.
    prob : float, optional
        Posterior probability of each interval, in (0, 1). Default: 0.9. Intervals of diagnostic tests have the
        probability that was given to `diagnostic_tests`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    parameter : str, optional
        Parameters that are drawn: "theta" (probabilities of levels or words), "mu" or "sigma2" (means or variances of
        Gaussian features), or "rate" (of Poisson features). Default: the kind that these features have most of, but not
        "sigma2". For diagnostic tests "prevalence", "sensitivity" or "specificity". Default: all three.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with at most 30 intervals, fewer if the axes are low: those of the features with the widest intervals,
        which come first, each with its levels and classes in their order. The header says how many were left out. For
        diagnostic tests a grey line is the interval of the prior, and the header says how many quantities are
        identified by the prior only.

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        If `prob` is not in (0, 1), or is given for diagnostic tests; if there is no such column, parameter, test or
        population.

    Notes
    -----
    Filled marks are posterior means, hollow marks maximum likelihood estimates. A Bernoulli feature has only the
    probability that it is present. Features are left out whole; if the first feature alone has too many rows, its last
    levels are left out, and if it has a single level, the last classes.

    A mean is drawn as its distance from the feature's mean over all rows, in standard deviations of the feature over
    all rows (population form); a variance or rate is divided by the feature's variance or mean over all rows. A divisor
    of zero is replaced by 1.

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
    prob, of_tests = read_prob(nb, prob), is_diagnostic(nb)
    parameters = (select_quantities if of_tests else select_parameters)(nb, prob, parameter, features)
    table = parameters.table[~parameters.table["absent"]]
    rows = _fit_rows(table, np.inf if ax is None else style.measure(ax)[1] / style.ROW - 3)
    heights, names = _row_heights(rows), parameters.names(rows)
    ax = style.open_rows(ax, heights, names, xlabel=parameters.axis, ylabel=parameters.row_axis)
    if of_tests:
        ax.hlines(heights, rows["prior_lower"], rows["prior_upper"], color="0.6", linewidth=0.8)
    for y, row in zip(heights, rows.to_dict("records"), strict=True):
        colour = style.look(row["code"])["color"]
        ax.plot([row["lower"], row["upper"]], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
        ax.plot(row["mean"], y, "o", color=colour, markersize=4.5)
        ax.plot(row["mle"], y, "o", color=colour, markersize=6.5, markerfacecolor="none", markeredgewidth=0.9)
    about = f"Uncertainty about the parameters, if {'the model' if of_tests else 'naive Bayes'} holds"
    if left_out := len(table) - len(rows):
        about = f"{len(rows)} of {len(table)} intervals, widest features first; {left_out} left out"
    grey: dict[str, Any] = {"marker": "o", "color": style.GREY}
    hollow = style.legend_mark("maximum likelihood", **grey, markersize=6.5, markerfacecolor="none")
    line = style.legend_mark("interval of the prior", linestyle="-", color="0.6")
    dot = style.legend_mark(f"posterior mean, {style.format_percent(prob)} interval", **grey, markersize=4.5)
    return style.write_header(ax, [about, parameters.left_out], [dot, line if of_tests else hollow], names)


def shrinkage(
    nb: Classifier,
    prob: float = 0.9,
    ax: Axes | None = None,
    parameter: str | None = None,
    features: Iterable[object] | None = None,
) -> Axes:
    """Show how far the prior moves each parameter: maximum likelihood against the posterior mean.

    The distance of a dot from the diagonal is the effect of the prior. Small dots, which are estimated from few cells,
    move most.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose posterior is proper.
    prob : float, default 0.9
        Posterior probability of each interval, in (0, 1).
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    parameter : {"theta", "mu", "sigma2", "rate"}, optional
        Parameters that are drawn: probabilities of levels or words, means or variances of Gaussian features, or rates
        of Poisson features. Default: the kind that these features have most of, but not "sigma2".
    features : iterable of column names or indices, optional
        Features whose parameters are drawn. Default: all features.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one dot per parameter, and its equal-tailed interval as a vertical line.

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        If `prob` is not in (0, 1), or there is no such column or parameter.

    Notes
    -----
    The area of a dot grows with the weight of the cells behind the parameter. More than 12 classes share one colour.
    An interval describes the uncertainty about the parameter if naive Bayes holds.

    A mean is drawn as its distance from the feature's mean over all rows, in standard deviations of the feature over
    all rows (population form); a variance or rate is divided by the feature's variance or mean over all rows. A divisor
    of zero is replaced by 1.
    Probabilities of words have a scale that is linear up to the smallest estimate above zero, and logarithmic beyond.

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
    parameters = select_parameters(nb, prob, parameter, features)
    ax = style.open_axes(ax, 5.6, 6.0, grid="both")
    table = parameters.table[np.isfinite(parameters.table["mle"])]
    # The dots are in no order, so that no class hides the others.
    table = table.sample(frac=1.0, random_state=0)
    names = labels(nb.classes_, 16).values()
    one_colour = len(names) > _MOST_COLOURED
    looks = pd.DataFrame([style.look(0 if one_colour else code) for code in table["code"]], table.index)
    table = table.join(looks)
    alpha = float(np.clip(8 / np.sqrt(max(1, len(table))), 0.12, 0.85))
    lines = ax.vlines(table["mle"], table["lower"], table["upper"], table["color"], linewidth=0.8, alpha=alpha / 2)
    lines.set_rasterized(len(table) > _MANY)
    counts = table["count"].to_numpy()
    for marker, rows in table.groupby("marker", sort=False):
        where = rows["mle"], rows["mean"], rows["count"], counts.max()
        dots = style.draw_dots(ax, *where, rows["color"], alpha, str(marker))
        dots.set_rasterized(len(table) > _MANY)
    _equate_axes(ax, table, parameters.are_words)
    ax.set(xlabel="maximum likelihood estimate", ylabel="posterior mean")
    without = len(parameters.table) - len(table)
    about = [
        f"{parameters.axis}, with {style.format_percent(prob)} intervals",
        parameters.left_out,
        f"{without} have no maximum likelihood estimate" if without else "",
        f"{len(names)} classes, all in one colour" if one_colour else "",
    ]
    marks = [style.legend_mark(n, markersize=6, **style.look(i)) for i, n in enumerate(() if one_colour else names)]
    return style.write_header(ax, about, [*marks, *style.dot_marks(counts, "cell")])


def _fit_rows(table: pd.DataFrame, height: float) -> pd.DataFrame:
    """Rows of a parameter table that fit into `height` rows of text, features with the widest intervals first.

    Features are left out whole; of a first feature that is too large the last levels, of its only level the last rows.
    """
    widest = (table["upper"] - table["lower"]).groupby(table["feature"], sort=False).max()
    widest = widest.sort_values(ascending=False, kind="stable")
    level = table.groupby("feature", sort=False)["level"].transform(lambda levels: levels.factorize()[0])
    rank = table["feature"].map({feature: i for i, feature in enumerate(widest.index)})
    rows = table.assign(rank=rank, place=level).sort_values(["rank", "place"], kind="stable")
    room = max(1, min(_MOST_ROWS, int((_row_heights(rows) + 1 <= height).sum())))
    fitting: pd.DataFrame = rows[:room]
    for keys in (["rank", "place"], ["rank"]):
        group = rows.groupby(keys, sort=False).ngroup().to_numpy()
        if len(rows) > room and group[room] > 0:
            fitting = rows[group < group[room]]
    return fitting


def _row_heights(rows: pd.DataFrame) -> np.ndarray:
    """Vertical positions (N,) of the rows, in rows of text, with a gap wherever a feature or level begins."""
    keys = rows[["rank", "place"]].to_numpy()
    begins = (keys[1:] != keys[:-1]).any(axis=1)
    return np.arange(len(rows)) + _GAP * np.append(0, np.cumsum(begins))


def _equate_axes(ax: Axes, table: pd.DataFrame, are_words: bool) -> None:
    """Give both axes the same limits and scale, and draw the diagonal.

    If the parameters `are_words`, the scale is linear up to the smallest estimate above zero, and logarithmic beyond.
    """
    values = table[["mle", "mean", "lower", "upper"]].to_numpy()
    values = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([0.0, 1.0])
    low, high = values.min(), values.max()
    margin = 0.04 * (high - low) or 1.0
    low, high = low - margin, high + margin
    if are_words:
        # Probabilities of words span decades, and zero is the value to see.
        smallest = table["mle"][table["mle"] > 0].min() if (table["mle"] > 0).any() else 1.0
        low, high = -0.2 * smallest, 1.5 * values.max()
        ax.set_xscale("symlog", linthresh=smallest)
        ax.set_yscale("symlog", linthresh=smallest)
    ax.plot([low, high], [low, high], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.set(xlim=(low, high), ylim=(low, high), box_aspect=1)
