"""Figures of reasons: what led from the class prior to the log odds that are predicted of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding import Levels
from bayesnb.plots.style import COLOURS, GREY, SMALL, axes, dot, extent, header, light_grid, names_on, require
from bayesnb.plots.text import labels
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_COLUMNS = ("row", "feature", "value", "of", "against", "contribution", "sd")
_MOST = 12
_ROW = 1.9 * SMALL
_HEADER = 5  # rows, of the header and the axis below
_SDS = 1.6449  # of a normal 90% interval


def explain(frame: pd.DataFrame, row: Any = None, ax: Axes | None = None) -> Axes:
    """A waterfall: from the log odds of the classes, feature by feature, to those that `predict_proba` states.

    Read it downwards: each bar moves the log odds from where the one above has left them, in the colour of the class
    that it speaks for; the grey bar is where they end.

    Parameters
    ----------
    frame : DataFrame
        As `bayesnb.explain` returns it.
    row : label, optional
        Which row of X, by its name in `frame`; needed if there are several.
    ax : Axes, optional

    Returns
    -------
    Axes
        With the classes, the 12 features of the largest contributions, fewer in low axes, all others as one bar, and
        the log odds of `predict_proba`, which they lead to.

    Raises
    ------
    ValueError
        If `frame` has no such row, or several and none was chosen; if a contribution is infinite.

    Notes
    -----
    Each bar begins where the one before has ended. Lines reach 1.64 posterior sd to both sides of a bar's end: sd of
    its own contribution and, the last one, of the log odds. With many rows they are 90% intervals; with few the log
    odds of the predictive are not the posterior mean of the log odds, see `bayesnb.explain`. They say what the data
    leave open about the parameters, if naive Bayes holds. Of words that share probabilities the last line, and that of
    the other words together, are bounds from above: of text messages 1% too wide at most. The two classes have the
    first two colours, which are their own if there are no others.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.explain(bnb.explain(bnb.GaussianNB().fit(X, y), X[70:71]))
    >>> [text.get_text() for text in ax.get_yticklabels()][:2]
    ['classes', 'petal width (cm) = 1.8']
    >>> figure = bnb.plots.detach(ax)
    """
    require(frame, _COLUMNS, "bayesnb.explain")
    lines = _of_row(frame, row)
    of, against = (lines[name].iloc[0] for name in ("of", "against"))
    contribution, sd = (lines[name].to_numpy(dtype=float) for name in ("contribution", "sd"))
    if not np.isfinite(contribution).all():
        i = int(np.argmax(~np.isfinite(contribution)))
        raise ValueError(f"frame: the contribution of {lines['feature'].iloc[i]!r} is {contribution[i]}, and no bar.")
    names = _line_names(lines)
    room = _MOST if ax is None else max(1, min(_MOST, int(extent(ax)[1] / _ROW) - _HEADER))
    if len(lines) > room + 2:
        rest = slice(room + 1, None)
        names = [*names[: room + 1], f"… and {len(lines) - room - 1} more"]
        contribution = np.append(contribution[: room + 1], contribution[rest].sum())
        sd = np.append(sd[: room + 1], np.linalg.norm(sd[rest]))
    names = [*names, "log odds"]
    end = np.cumsum(contribution)
    start = np.append(end - contribution, 0.0)
    end, spread = np.append(end, end[-1]), _SDS * np.append(sd, np.linalg.norm(sd))
    ax = axes(ax, 7.5, 1.6 + _ROW / 72 * len(names))
    y = np.arange(len(names))
    first = Levels.of([of, against]).values[0] == of
    pro, con = COLOURS[:2] if first else COLOURS[1::-1]
    colour = [*np.where(contribution >= 0, pro, con), GREY]
    ax.barh(y, end - start, 0.62, start, color=colour, alpha=0.75)
    ax.hlines(y, end - spread, end + spread, color="black", linewidth=1.1, zorder=3)
    ax.vlines(end[:-1], y[:-1], y[1:], color="0.6", linewidth=0.8, zorder=0)
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    names_on(ax.yaxis, y, names)
    ax.use_sticky_edges = False  # room beside bars that begin at 0
    ax.set_ylim(len(names) - 0.4, -0.6)
    label = labels([of, against], 24)
    ax.set_xlabel("log odds (nats)")
    ax.set_ylabel("feature = value")
    light_grid(ax, "x")
    marks = [
        dot(f"for {label[of]}", marker="s", color=pro, markersize=7, alpha=0.75),
        dot(f"for {label[against]}", marker="s", color=con, markersize=7, alpha=0.75),
        dot("± 1.64 sd", linestyle="-", color="black", linewidth=1.1),
    ]
    which = "" if row is None else f"row {next(iter(labels([row]).values()))}: "
    said = [
        f"{which}{label[of]} against {label[against]}",
        "The sd is about the parameters, if naive Bayes holds",
    ]
    header(ax, said, marks, names=names)
    return ax


def _of_row(frame: pd.DataFrame, row: Any) -> pd.DataFrame:
    """The lines of one row of X, that of the classes first, then the largest contributions."""
    rows = frame["row"].drop_duplicates().tolist()
    if row is None and len(rows) > 1:
        raise ValueError(f"frame is about {len(rows)} rows; say which with row=, such as {shown(rows[0])}.")
    lines = frame if row is None else frame[[own == row for own in frame["row"]]]
    if not len(lines):
        raise ValueError(f"row={shown(row)} is not in the frame; its rows are {shown(rows[:8])}.")
    if (often := int((lines["feature"] == CLASS).sum())) != 1:
        raise ValueError(
            f"frame has {often} lines of {CLASS!r} for row {shown(lines['row'].iloc[0])}, and the waterfall begins at "
            "one: pass all lines of a row, whose label no other row has."
        )
    size = np.where(lines["feature"] == CLASS, np.inf, lines["contribution"].abs())
    return lines.iloc[np.argsort(-size, kind="stable")]


def _line_names(lines: pd.DataFrame) -> list[str]:
    """What each line is about, the classes first."""
    feature = labels(lines["feature"], 24)
    written = [f"{v:.5g}" if isinstance(v, float) else str(v) for v in lines["value"]]
    value = labels(written, 18)
    found = ["classes"]
    for name, cell, text in list(zip(lines["feature"], lines["value"], written, strict=True))[1:]:
        found.append(f"{feature[name]} missing" if cell is None else f"{feature[name]} = {value[text]}")
    return found
