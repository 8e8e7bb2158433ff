"""Figure of calibration: stated confidence against observed accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesnb.plots import style
from bayesnb.plots.labels import labels
from bayesnb.plots.style import Axes

_SOURCE = "bayesnb.evaluation.reliability"
_BIN_COLUMNS = ("lower", "upper", "count", "confidence", "accuracy")


def reliability(table: pd.DataFrame | Mapping[str, pd.DataFrame], ax: Axes | None = None) -> Axes:
    """Show the reliability diagram: stated confidence against observed accuracy, in bins of the top probability.

    On the diagonal, probabilities are calibrated. Below the diagonal, labels are right less often than the
    probabilities state: the probabilities are overconfident.

    Parameters
    ----------
    table : DataFrame, or dict of str to DataFrame
        Result of `bayesnb.evaluation.reliability`: one row per bin of the top probability, with columns lower, upper,
        count, confidence (mean of the stated probabilities) and accuracy. Empty bins are not drawn. A dict shows
        several tables by name, such as {"plain": ..., "weighted": ...}. Where most rows have a top probability near
        1, bins of equal width show most rows as one dot; pass `strategy="quantile"` to
        `bayesnb.evaluation.reliability` for bins with equal numbers of rows.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one dot per bin.

    Raises
    ------
    TypeError
        If `table` is neither a DataFrame nor a dict of DataFrames.
    ValueError
        If there is no table, a column is missing, or all bins are empty.

    Notes
    -----
    Areas of the dots grow with the number of rows. If the numbers are about equal, the header gives them. Error bars
    are 95% intervals of Wilson for the accuracy in a bin, E. B. Wilson, J. Am. Stat. Assoc. 22 (1927).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from bayesnb.evaluation import reliability
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> nb = bnb.GaussianNB().fit(X[::2], y[::2])
    >>> ax = bnb.plots.reliability(reliability(nb.predict_log_proba(X[1::2]), y[1::2], nb.classes_))
    >>> ax.get_ylabel()
    'observed accuracy (share of rows)'
    >>> figure = bnb.plots.detach(ax)
    """
    several = isinstance(table, Mapping)
    tables: Mapping[Any, pd.DataFrame] = table if isinstance(table, Mapping) else {"": table}
    if not tables:
        raise ValueError(f"table is an empty dict; pass what {_SOURCE} returns, or a dict of such tables.")
    bins = {name: _filled_bins(t, f"table[{name!r}]" if several else "table") for name, t in tables.items()}
    ax = style.open_axes(ax, 5.0, 5.4, grid="both")
    ax.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
    counts = np.concatenate([rows["count"].to_numpy(float) for rows in bins.values()])
    marks = []
    for i, (label, rows) in enumerate(zip(labels(bins, 26).values(), bins.values(), strict=True)):
        look = style.look(i)
        ax.vlines(rows["confidence"], *_wilson_intervals(rows), color=look["color"], linewidth=1.0)
        style.draw_dots(ax, rows["confidence"], rows["accuracy"], rows["count"], counts.max(), look["color"])
        marks += [style.legend_mark(label, **look)] * several
    # A top probability is never low: the axis leaves out what cannot be.
    least = min(rows["confidence"].min() for rows in bins.values())
    ax.set(xlim=(max(-0.03, min(0.9, least) - 0.06), 1.03), ylim=(-0.03, 1.03), box_aspect=1)
    ax.set(xlabel="stated confidence: mean top probability", ylabel="observed accuracy (share of rows)")
    totals = dict.fromkeys(f"{rows['count'].sum():,.12g}" for rows in bins.values())
    lines = [f"{' and '.join(totals)} rows; bars: 95% Wilson intervals"]
    if counts.max() <= 1.1 * counts.min():
        ends = " to ".join(dict.fromkeys(f"{n:,.12g}" for n in (counts.min(), counts.max())))
        lines.append(f"each dot: {ends} row{'' if ends == '1' else 's'}")
    else:
        marks += style.dot_marks(counts, "row")
    return style.write_header(ax, lines, marks)


def _filled_bins(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows of a reliability table whose bins have data; ValueError with the table's `name` if there are none."""
    style.require_table(table, _BIN_COLUMNS, _SOURCE, name)
    filled = table[table["count"] > 0]
    if not len(filled):
        raise ValueError(f"{name}: all bins are empty; make the table from at least one row.")
    return filled


def _wilson_intervals(bins: pd.DataFrame) -> np.ndarray:
    """(2, B) lower and upper ends of 95% intervals of the accuracy in each bin."""
    from scipy.stats import binomtest

    cells = zip(bins["accuracy"], bins["count"], strict=True)
    tests = [binomtest(round(accuracy * n), max(1, round(n))) for accuracy, n in cells]
    return np.array([test.proportion_ci(0.95, method="wilson") for test in tests]).T
