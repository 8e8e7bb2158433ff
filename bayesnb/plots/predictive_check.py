"""Figure of a posterior predictive check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_integer, require_result
from bayesnb.analysis.predictive import PredictiveCheck
from bayesnb.plots import style
from bayesnb.plots.labels import labels
from bayesnb.plots.style import Axes


def predictive_check(result: PredictiveCheck, top: int = 30, ax: Axes | None = None) -> Axes:
    """Show observed quantities beside their values in replicated tables, the largest discrepancies first.

    A diamond outside its line is a quantity that the model seldom replicates.

    Parameters
    ----------
    result : PredictiveCheck
        Result of `posterior_predictive_check`.
    top : int, default 30
        Largest number of quantities that are shown; low axes have room for fewer.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one row for each quantity: a line from the 5% to the 95% quantile of the replicates, and a mark at the
        observed value.

    Raises
    ------
    TypeError
        If `result` is not a `PredictiveCheck`.
    ValueError
        If `top` is not a positive integer.

    Notes
    -----
    Associations have one axis, from 0 to 1. Other quantities have units of their own, and are drawn in standard
    deviations of the replicates from their mean. Of many quantities some lie outside of their lines by chance: the p in
    the header is that of the largest discrepancy.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> check = bnb.posterior_predictive_check(bnb.GaussianNB().fit(X, y), X, y)
    >>> ax = bnb.plots.predictive_check(check, top=2)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['sepal length (cm), petal length (cm) | 2', 'petal length (cm), petal width (cm) | 1']
    >>> figure = bnb.plots.detach(ax)
    """
    require_result("result", result, PredictiveCheck, "bayesnb.posterior_predictive_check")
    require_integer("top", top)
    rows = result.table.iloc[: style.count_fitting_rows(ax, top)]
    is_association = result.statistic == "association"
    observed, lower, upper = _positions(rows, is_association)
    y, names = np.arange(len(rows)), _row_names(result.table, rows)
    axis = "association, from 0 to 1" if is_association else "standard deviations from the mean of the replicates"
    ax = style.open_rows(ax, y, names, xlabel=axis, ylabel="quantity")
    outside = (observed < lower) | (observed > upper)
    ax.hlines(y, lower, upper, color=style.GREY, linewidth=2.2, alpha=0.6)
    dot: dict[str, Any] = {"marker": "o", "color": style.COLOURS[0], "markersize": 4.5}
    diamond: dict[str, Any] = {"marker": "D", "color": style.WRONG, "markersize": 4.5}
    for at, mark in ((~outside, dot), (outside, diamond)):
        ax.plot(observed[at], y[at], linestyle="none", **mark)
    if is_association:
        ax.set_xlim(-0.02, 1.02)
    left_out = len(result.table) - len(rows)
    lines = [
        f"p = {result.p:.3g} for the largest discrepancy of {len(result.table):,}; {result.draws:,} replicates",
        f"{len(rows)} largest; {left_out:,} left out" if left_out else "",
        f"{result.excluded:,} undefined" if result.excluded else "",
    ]
    marks = [
        style.legend_mark("90% of the replicates", linestyle="-", linewidth=2.2, color=style.GREY, alpha=0.6),
        style.legend_mark("observed", **dot),
        style.legend_mark("observed, outside", **diamond),
    ]
    return style.write_header(ax, lines, marks, names)


def _positions(rows: pd.DataFrame, is_association: bool) -> np.ndarray:
    """Return positions (3, N) of observed, lower and upper values: unchanged for associations, else standardised."""
    values = rows[["observed", "lower", "upper"]].to_numpy(float)
    if not is_association:
        mean, sd = rows["mean"].to_numpy(float)[:, None], rows["sd"].to_numpy(float)[:, None]
        values = (values - mean) / np.where(sd > 0, sd, 1.0)
    return values.T


def _row_names(table: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Return names such as "size, weight | ripe", or "mean of size | ripe"; for a user's function its own name."""
    features = [f for column in ("feature_1", "feature_2") for f in table[column].tolist() if f is not None]
    feature = labels(dict.fromkeys(features), 18)
    label = labels(dict.fromkeys(c for c in table["class"].tolist() if c is not None), 12)
    quantity = labels(dict.fromkeys(table["statistic"]), 22)
    names = []
    for row in rows.to_dict("records"):
        first, second = row["feature_1"], row["feature_2"]
        of = [] if first is None else [feature[first]]
        of = [quantity[row["statistic"]], *of] if second is None else [*of, feature[second]]
        names.append(", ".join(of) + ("" if first is None else f" | {label[row['class']]}"))
    return names
