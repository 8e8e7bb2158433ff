"""Figure of the weights of terms."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from bayesnb._util.arguments import bad_argument, require_iterable, shown
from bayesnb.plots import style
from bayesnb.plots.labels import labels
from bayesnb.plots.style import Axes

_MOST_ROWS = 40


def weights(table: pd.DataFrame, ax: Axes | None = None, names: Iterable[object] | None = None) -> Axes:
    """Show the weights of terms with their intervals, the largest first, and the temperature.

    In naive Bayes every term has the weight 1. A term that repeats the evidence of others has a small weight.

    Parameters
    ----------
    table : DataFrame
        Result of `weight_table`, or rows of it.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    names : iterable of str, optional
        Terms that are drawn, by their names in the column "term". Default: the terms that cost most to leave out.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with at most 40 terms, fewer if the axes are low: those that cost most to leave out. The header says how
        many terms were left out. Where all terms share the temperature, the table and the figure have one row.

    Raises
    ------
    TypeError
        If `table` is not a DataFrame.
    ValueError
        If `table` has no row or lacks a column, or has no term of a name.

    Notes
    -----
    A term of weight 0 is ignored. A weight between 0 and 1 means that the term partly repeats the evidence of others; a
    negative weight corrects evidence that others count too often. A dot is hollow if its interval contains 0. Intervals
    are conditional on the fits to halves of the rows, see `weight_table`. Weights are shrunk to the temperature, the
    dashed line.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.weights(bnb.weight_table(bnb.WeightedNB(bnb.GaussianNB()).fit(X, y)))
    >>> ax.get_xlabel()
    'weight of the term'
    >>> figure = bnb.plots.detach(ax)
    """
    style.require_table(table, ("term", "weight", "lower", "upper", "cost"), "bayesnb.weight_table")
    attributes, table = table.attrs, table if names is None else _select_terms(table, names)
    fitting = style.count_fitting_rows(ax, _MOST_ROWS)
    rows = table.sort_values("cost", ascending=False, kind="stable")[:fitting]
    rows = rows.sort_values("weight", ascending=False, kind="stable").reset_index(drop=True)
    of_term = labels(table["term"], 26)
    row_names = [of_term[term] for term in rows["term"]]
    ax = style.open_rows(ax, rows.index, row_names, xlabel="weight of the term", ylabel="term")
    for reference in (0.0, 1.0):
        ax.axvline(reference, color="0.5", linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    colour = style.COLOURS[0]
    ax.hlines(rows.index, rows["lower"], rows["upper"], color=colour, linewidth=1.6, alpha=0.6)
    has_zero = (rows["lower"] <= 0) & (rows["upper"] >= 0)
    interval = f"{style.format_percent(attributes['prob'])} interval" if "prob" in attributes else "interval"
    filled, hollow = rows[~has_zero], rows[has_zero]
    marks = ax.plot(filled["weight"], filled.index, "o", color=colour, markersize=4.5, label=f"weight, {interval}")
    dots = ax.plot(hollow["weight"], hollow.index, "o", color=colour, markersize=4.5, markeredgewidth=1.1)
    dots[0].set(markerfacecolor="white", label="0 is in the interval")
    marks += dots if has_zero.any() else []
    if (temperature := attributes.get("temperature")) is not None:
        line = ax.axvline(temperature, zorder=1, color=style.WRONG, linewidth=1.2, linestyle="--")
        line.set_label(f"temperature {temperature:.3g}")
        marks.append(line)
    more = len(table) - len(rows)
    left_out = f"The {len(rows)} that cost most to leave out … and {more:,} more" if more else ""
    about = "Weights by fits to halves of the rows; 1 is naive Bayes"
    return style.write_header(ax, [about, left_out], marks, row_names)


def _select_terms(table: pd.DataFrame, names: Iterable[object]) -> pd.DataFrame:
    """Rows of the table for the named terms; ValueError if no term is named, or one is not in the table."""
    names = [names] if isinstance(names, str) else names
    require_iterable("names", names, "a list of terms of the table")
    names, terms = list(names), table["term"].tolist()
    if not names or not set(names) <= set(terms):
        raise bad_argument("names", names, f"terms of the table, one or more, such as {shown(terms[:8])}")
    return table[table["term"].isin(names)]
