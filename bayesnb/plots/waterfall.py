"""Figure of reasons: what leads from the class prior to the log odds of a row."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesnb._util.arguments import shown
from bayesnb.encoding import Levels
from bayesnb.plots import style
from bayesnb.plots.labels import labels
from bayesnb.plots.style import Axes
from bayesnb.uncertainty import CLASS

_CONTRIBUTION_COLUMNS = ("row", "feature", "value", "of", "against", "contribution", "sd")
_MOST = 12
_ROW = 1.9 * style.SMALL
_SDS = 1.6449  # of a normal 90% interval


def explain(frame: pd.DataFrame, row: object = None, ax: Axes | None = None) -> Axes:
    """Show the contribution of each feature to the log odds of a row, as a waterfall.

    From top to bottom, each bar starts where the bar above ends, and has the colour of the class that its feature
    supports. The grey bar at the bottom is the sum, the log odds of `predict_proba`.

    Parameters
    ----------
    frame : DataFrame
        Result of `bayesnb.explain`.
    row : label, optional
        Row of X, by its name in `frame`; needed if there are several.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with a bar for the classes, bars for the 12 features of the largest contributions (fewer if the axes are
        low), one bar for all other features, and one for the log odds.

    Raises
    ------
    TypeError
        If `frame` is not a DataFrame.
    ValueError
        If `frame` has no such row, or several and none was chosen; if a contribution is infinite.

    Notes
    -----
    Lines reach 1.64 posterior sd to both sides of a bar's end: the sd of the bar's contribution and, for the last bar,
    of the log odds. With many rows they are 90% intervals; with few rows the log odds of the predictive are not the
    posterior mean of the log odds, see `bayesnb.explain`. The lines describe the uncertainty about the parameters, if
    naive Bayes holds. Words share probabilities, so that the last line and the line of the other words together are
    upper bounds; for text messages they are at most 1% too wide. The two classes have the first two colours.

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
    style.require_table(frame, _CONTRIBUTION_COLUMNS, "bayesnb.explain", "frame")
    rows = _select_row(frame, row)
    of, against = rows["of"].iloc[0], rows["against"].iloc[0]
    contribution, sd = rows["contribution"].to_numpy(float), rows["sd"].to_numpy(float)
    if not np.isfinite(contribution).all():
        feature, infinite = rows[~np.isfinite(contribution)][["feature", "contribution"]].iloc[0]
        raise ValueError(
            f"frame: the contribution of {feature!r} is {infinite}, which has no bar. Choose a prior with positive "
            "concentrations, such as alpha=1, or another row."
        )
    names = _bar_names(rows)
    kept = style.count_fitting_rows(ax, _MOST, reserved=5, row=_ROW) + 1
    if len(rows) > kept + 1:
        names = [*names[:kept], f"… and {len(rows) - kept} more"]
        contribution = np.append(contribution[:kept], contribution[kept:].sum())
        sd = np.append(sd[:kept], np.linalg.norm(sd[kept:]))
    names.append("log odds")
    end = np.cumsum(contribution)
    start = np.append(end - contribution, 0.0)
    end, spread = np.append(end, end[-1]), _SDS * np.append(sd, np.linalg.norm(sd))
    y = np.arange(len(names))
    ax = style.open_rows(ax, y, names, _ROW / 1.3, xlabel="log odds (nats)", ylabel="feature = value")
    pro, con = style.COLOURS[:2] if Levels.from_values([of, against]).values[0] == of else style.COLOURS[1::-1]
    ax.barh(y, end - start, 0.62, start, color=[*np.where(contribution >= 0, pro, con), style.GREY], alpha=0.75)
    ax.hlines(y, end - spread, end + spread, color="black", linewidth=1.1, zorder=3)
    ax.vlines(end[:-1], y[:-1], y[1:], color="0.6", linewidth=0.8, zorder=0)
    ax.axvline(0, color=style.GREY, linewidth=0.8, zorder=0)
    ax.use_sticky_edges = False  # or bars that begin at 0 would have no margin
    label, square = labels([of, against], 24), {"marker": "s", "markersize": 7, "alpha": 0.75}
    marks = [style.legend_mark(f"for {label[c]}", color=colour, **square) for c, colour in ((of, pro), (against, con))]
    marks.append(style.legend_mark("± 1.64 sd", linestyle="-", color="black", linewidth=1.1))
    which = "" if row is None else f"row {labels([row])[row]}: "
    about = "The sd is uncertainty about the parameters, if naive Bayes holds"
    return style.write_header(ax, [f"{which}{label[of]} against {label[against]}", about], marks, names)


def _select_row(frame: pd.DataFrame, row: object) -> pd.DataFrame:
    """Contributions to the log odds of one row of X: that of the classes first, then the largest."""
    names = frame["row"].drop_duplicates().tolist()
    if row is None and len(names) > 1:
        raise ValueError(f"frame has {len(names)} rows of X; choose one, such as row={shown(names[0])}.")
    rows = frame if row is None else frame[[name == row for name in frame["row"]]]
    if not len(rows):
        raise ValueError(f"row={shown(row)} is not a row of X in frame; its rows are {shown(names[:8])}.")
    is_class = rows["feature"] == CLASS
    if is_class.sum() != 1:
        raise ValueError(
            f"frame has {is_class.sum()} lines with the feature {CLASS!r} for row {shown(rows['row'].iloc[0])}; one is "
            "needed. Pass the whole result of bayesnb.explain, for an X without duplicate index labels."
        )
    size = np.where(is_class, np.inf, rows["contribution"].abs())
    return rows.iloc[np.argsort(-size, kind="stable")]


def _bar_names(rows: pd.DataFrame) -> list[str]:
    """Label of each contribution: "classes" first, then such as "colour = green" or "colour missing"."""
    feature = labels(rows["feature"], 24)
    texts = [f"{value:.5g}" if isinstance(value, float) else str(value) for value in rows["value"]]
    short, cells = labels(texts, 18), zip(rows["feature"], rows["value"], texts, strict=True)
    names = [feature[f] + (" missing" if value is None else f" = {short[text]}") for f, value, text in cells]
    return ["classes", *names[1:]]
