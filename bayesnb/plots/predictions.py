"""Figures of predictions: intervals, contributions, reliability and weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from bayesnb import uncertainty
from bayesnb._util.arguments import bad_argument, find_class, list_names, shown, to_numbers
from bayesnb.encoding import Levels
from bayesnb.fitted.state import Adaptable
from bayesnb.plots import style
from bayesnb.plots.style import Artist, Axes, Look, families, labels
from bayesnb.uncertainty import CLASS
from bayesnb.uncertainty.row_variates import TrainingData

# == Figures of class probabilities: of rows, and before any data ==================================

_FEW = 100
_BINS = 40
_OUTSIDE = 0.005
_LINES = ("-", "--", ":", "-.")
_LEAST = 1e-15  # what a double can tell from 1
_END = 36.0  # log odds that a double can tell from 1
_AT_LEAST = 0.4, 0.6


def prediction_intervals(
    nb: Adaptable,
    X: object,
    y: object = None,
    label: object = None,
    prob: float = 0.9,
    ax: Axes | None = None,
    *,
    rows: TrainingData | None = None,
    groups: object = None,
) -> Axes:
    """Show the class probabilities of rows in increasing order, with posterior intervals.

    Rows are sorted by the probability of the class, from the least to the most probable. The band is the posterior
    interval of the probability, the uncertainty about the parameters. A cross marks a row whose predicted label is
    wrong; if there are more than a hundred, ticks at the bottom mark these rows.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose posterior is proper.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    y : (N,) array-like, optional
        True labels. Default: None, wrong predictions are not marked.
    label : a class, optional
        Class whose probability is drawn. Default: the second of two classes; if there are more, the predicted class of
        each row.
    prob : float, default 0.9
        Posterior probability of each interval, in (0, 1).
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    rows : tuple (X, y) or (X, y, sample_weight), optional
        Rows that `nb` has counted, all of them, for intervals that hold where columns depend on each other.
    groups : array-like, optional
        Group of each training row, such as a patient, whose rows vary together.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one step per row.

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        If there is no such class, `y` does not have one label per row, or `prob` is not in (0, 1).

    Notes
    -----
    The axis is linear in the log odds: .99 is about as far from .9 as .9 is from one half, the dotted line. Rows and
    intervals beyond the axis are drawn at its end; the axis holds 15 nines at most.

    Intervals are those of `predict_interval(nb, X, prob)`: given the row, for rows from the population of the data;
    given the data if terms are weighted. They describe the uncertainty about the parameters if naive Bayes holds, and
    not the probability that a label is right. With few training rows the line may leave the band, as the line is a mean
    over the parameters and the band has quantiles.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> nb = bnb.GaussianNB().fit(X[::2], y[::2])
    >>> ax = bnb.plots.prediction_intervals(nb, X[1::2], y[1::2])
    >>> ax.get_ylabel(), ax.get_yscale()
    ('P(predicted class | row)', 'logit')
    >>> figure = bnb.plots.detach(ax)
    """
    intervals = uncertainty.predict_interval(nb, X, prob=prob, rows=rows, groups=groups)
    proba = nb.predict_proba(X, estimate="predictive")
    top = np.argmax(proba, axis=1)
    names = labels(nb.classes_, 24)
    if label is None and len(names) == 2:
        label = nb.classes_[1]
    column = top if label is None else np.full(len(proba), find_class("label", label, list(nb.classes_)))
    p, low, high = (values[np.arange(len(proba)), column] for values in (proba, *map(np.asarray, intervals)))
    defined = ~np.isnan(p)
    order = np.argsort(p, kind="stable")[: defined.sum()]  # NaN is sorted last
    p, low, high = p[order], low[order], high[order]
    ax = style.open_axes(ax, 7.0, 4.6, grid="y")
    ends = _axis_limits(p, low, high, outside=_OUTSIDE if len(p) > _FEW else 0.0)
    _scale_axis(ax, "y", *ends)
    beyond = int(((p < ends[0]) | (p > ends[1])).sum())
    p, low, high = (np.clip(values, *ends) for values in (p, low, high))
    rank = np.arange(len(p))
    interval = f"{style.format_percent(prob)} interval"
    band = ax.fill_between(rank, low, high, step="mid", color=style.COLOURS[5], alpha=0.55, linewidth=0, label=interval)
    (line,) = ax.step(rank, p, where="mid", color=style.COLOURS[0], linewidth=1.3, label="P(class | row)")
    marks: list[Artist] = [line, band]
    if y is not None:
        truth = np.asarray(y, dtype=object)
        if truth.shape != top.shape:
            raise ValueError(f"y has shape {truth.shape}; X has {len(top)} rows, and each needs one label.")
        wrong = np.asarray(nb.classes_, dtype=object)[top] != truth
        marks.append(_mark_wrong_rows(ax, p, np.flatnonzero(wrong[order])))
    ax.axhline(0.5, color=style.GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    ax.set_xlim(-0.5, max(len(p) - 0.5, 0.5))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("rows, by probability")
    drawn = f"P({'predicted class' if label is None else names[label]} | row)"
    ax.set_ylabel(drawn, fontfamily=families())
    lines = [
        f"{len(p):,} rows: {drawn}, on the scale of log odds",
        "Intervals show uncertainty about the parameters, if naive Bayes holds",
        f"{(~defined).sum()} rows have no probabilities" if not defined.all() else "",
        f"{beyond:,} row{'s lie' if beyond > 1 else ' lies'} beyond the axis, drawn at its end" if beyond else "",
    ]
    return style.write_header(ax, lines, marks)


def _mark_wrong_rows(ax: Axes, p: np.ndarray, rank: np.ndarray) -> Artist:
    """Draw and return marks at positions `rank`: crosses on the line, or ticks at the bottom for more than 100.

    The line has the heights `p` (N,), the class probabilities of the rows in its order.
    """
    look: Look = {"label": f"predicted label wrong: {len(rank):,} of {len(p):,}", "color": style.WRONG}
    if len(rank) <= _FEW:
        return ax.scatter(rank, p[rank], 26, marker="x", linewidths=1.1, zorder=3, **look)
    look |= {"transform": ax.get_xaxis_transform(), "marker": "|", "linewidths": 0.6}
    return ax.scatter(rank, np.full(len(rank), 0.03), 60, **look)


def prior_predictive(values: object, ax: Axes | None = None) -> Axes:
    """Show the distribution of P(class | row) under draws from the prior, before any data.

    The values are probabilities of the true class. Draws below .5 are rows whose class would be predicted wrongly. If
    nearly all draws lie above .99, the prior implies near-certain predictions before any data; with many features most
    priors do.

    Parameters
    ----------
    values : array of numbers in [0, 1], or dict of str to such arrays
        Class probabilities under draws from the prior, as `prior_predictive` returns them; a dict compares priors by
        name.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one histogram per prior.

    Raises
    ------
    ValueError
        If an array is empty or holds anything outside [0, 1].

    Notes
    -----
    The axis and the bins are linear in the log odds: .99 is about as far from .9 as .9 is from one half. The first and
    the last bin hold all that lies beyond; the axis holds 15 nines at most. The dotted line is the density of uniform
    probabilities, which on this axis is a hill around one half.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> nb = bnb.GaussianNB().fit(*load_iris(return_X_y=True))
    >>> ax = bnb.plots.prior_predictive(bnb.prior_predictive(nb, draws=500))
    >>> ax.get_xlabel()
    'P(class | row) before any data'
    >>> figure = bnb.plots.detach(ax)
    """
    draws = _checked_draws(values)
    several = len(draws) > 1
    ax = style.open_axes(ax, 6.4, 4.2, grid="y")
    _scale_axis(ax, "x", *_axis_limits(*draws.values(), outside=_OUTSIDE), ticks=7)
    edges = _bin_edges(ax.get_xlim(), _BINS)
    marks = []
    for i, (p, name) in enumerate(zip(draws.values(), labels(draws, 28).values(), strict=True)):
        fractions = np.histogram(p, edges)[0] / len(p)
        look: Look = {"color": style.look(i)["color"], "linestyle": _LINES[i % len(_LINES)], "linewidth": 1.5}
        ax.stairs(fractions, edges, fill=not several, alpha=0.8, **look)
        marks += [style.legend_mark(name, **look)] * several
    uniform: Look = {"color": style.GREY, "linewidth": 1.0, "linestyle": (0, (1, 2))}
    ax.step(edges, np.diff(edges, append=1.0), where="post", zorder=0, **uniform)
    ax.set_ylim(bottom=0)
    ax.set(xlabel="P(class | row) before any data", ylabel=f"share of draws in a bin, {_BINS} in all")
    sizes = sorted(map(len, draws.values()))
    numbers = " to ".join(dict.fromkeys(f"{n:,}" for n in (sizes[0], sizes[-1])))
    tails = "" if several else _describe_tails(*draws.values())
    marks.append(style.legend_mark("uniform", **uniform))
    return style.write_header(ax, [f"{numbers} draws from the prior", tails], marks)


def _checked_draws(values: object) -> dict[Hashable, np.ndarray]:
    """(draws,) class probabilities of each prior by name; raise ValueError unless they are numbers from 0 to 1."""
    priors = values if isinstance(values, Mapping) else {"": values}
    if not priors:
        raise ValueError("values is empty; pass an array of probabilities, or a dict of such arrays by name.")
    draws = {name: to_numbers("values", array).ravel() for name, array in priors.items()}
    for name, p in draws.items():
        wrong = p[~((p >= 0) & (p <= 1))]
        if len(wrong) or not len(p):
            where, content = f"values[{name!r}]" if name else "values", wrong[0] if len(wrong) else "nothing"
            raise ValueError(f"{where} holds {content}; class probabilities are from 0 to 1, one for each draw.")
    return draws


def _describe_tails(p: np.ndarray) -> str:
    """Return a sentence on the percentages of probabilities below one half, above .99, and at 1."""
    below, above, at_one = (
        style.format_percent(round(float(part.mean()), 3)) for part in (p < 0.5, p > 0.99, p > 1 - 1e-15)
    )
    end = f", {at_one} at 1 to 15 digits" if (p > 1 - 1e-15).any() else ""
    return f"{below} lie below .5, {above} above .99{end}"


# -- axes that are linear in the log odds: .99 and .999 are as far apart as .9 and .99 --------------


def _axis_limits(*probabilities: np.ndarray, outside: float = 0.0) -> tuple[float, float]:
    """Ends (low, high) of an axis that holds .4 to .6 and all probabilities but a fraction `outside` on each side."""
    pooled = np.concatenate([np.ravel(p) for p in probabilities])
    low, high = np.quantile(pooled, [outside, 1 - outside]) if pooled.size else _AT_LEAST
    return max(_LEAST, min(low, _AT_LEAST[0])), min(1 - _LEAST, max(high, _AT_LEAST[1]))


def _scale_axis(ax: Axes, which: Literal["x", "y"], low: float, high: float, ticks: int = 9) -> None:
    """Make one axis linear in the log odds, from `low` to `high` with a margin and about `ticks` labelled ticks."""
    from matplotlib.ticker import LogitLocator, NullLocator

    ends = logit(np.array([low, high]))
    margin = 0.04 * (ends[1] - ends[0])
    low, high = expit(np.clip([ends[0] - margin, ends[1] + margin], -_END, _END))
    places = [place for place in LogitLocator(nbins=ticks).tick_values(low, high) if low <= place <= high]
    # What lies at 0 or 1 is drawn far beyond the ends, not left out.
    (ax.set_xscale if which == "x" else ax.set_yscale)("logit", nonpositive="clip")
    ax.set(**{f"{which}lim": (low, high)})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_ticks(places, labels=map(_format_probability, places))
    axis.set_minor_locator(NullLocator())


def _bin_edges(ends: tuple[float, float], bins: int) -> np.ndarray:
    """Edges (bins + 1,) of bins that are equally wide in log odds; the outer bins go on to 0 and 1."""
    low, high = logit(np.array(ends))
    inner = expit(np.linspace(low, high, bins + 1))
    return np.concatenate([[0.0], inner[1:-1], [1.0]])


def _format_probability(probability: float) -> str:
    """Return a tick label: decimals such as .9 or .999; within 5e-4 of 0 or 1 a power of ten, such as 1 - 10⁻⁹."""
    tail = min(probability, 1 - probability)
    if tail > 5e-4:
        return f"{probability:.6g}".removeprefix("0")
    power = f"10^{{{round(np.log10(tail))}}}"
    return f"${power}$" if probability < 0.5 else f"$1-{power}$"


# == Figure of reasons: what leads from the class prior to the log odds of a row ===================

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
    label = labels([of, against], 24)
    square: Look = {"marker": "s", "markersize": 7, "alpha": 0.75}
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


# == Figure of calibration: stated confidence against observed accuracy ============================

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
    tables = table if isinstance(table, Mapping) else {"": table}
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
        style.draw_dots(ax, rows["confidence"], rows["accuracy"], rows["count"], counts.max(), color=look["color"])
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


# == Figure of the weights of terms ================================================================

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
    ax = style.open_rows(ax, rows.index.to_numpy(), row_names, xlabel="weight of the term", ylabel="term")
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
    names, terms = list_names("names", names, "a list of terms of the table"), table["term"].tolist()
    if not names or not set(names) <= set(terms):
        raise bad_argument("names", names, f"terms of the table, one or more, such as {shown(terms[:8])}")
    return table[table["term"].isin(names)]
