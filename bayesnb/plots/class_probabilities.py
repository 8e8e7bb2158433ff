"""Figures of class probabilities: of rows, and before any data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from bayesnb import uncertainty
from bayesnb._util.arguments import find_class, to_numbers
from bayesnb.fitted.state import Classifier
from bayesnb.plots import style
from bayesnb.plots.labels import families, labels
from bayesnb.plots.style import Artist, Axes

_FEW = 100
_BINS = 40
_OUTSIDE = 0.005
_LINES = ("-", "--", ":", "-.")
_LEAST = 1e-15  # what a double can tell from 1
_END = 36.0  # log odds that a double can tell from 1
_AT_LEAST = 0.4, 0.6


def prediction_intervals(
    nb: Classifier, X: object, y: object = None, label: object = None, prob: float = 0.9, ax: Axes | None = None
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
    intervals = uncertainty.predict_interval(nb, X, prob=prob)
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
    look: dict[str, Any] = {"label": f"predicted label wrong: {len(rank):,} of {len(p):,}", "color": style.WRONG}
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
        look: dict[str, Any] = {"color": style.look(i)["color"], "linestyle": _LINES[i % len(_LINES)], "linewidth": 1.5}
        ax.stairs(fractions, edges, fill=not several, alpha=0.8, **look)
        marks += [style.legend_mark(name, **look)] * several
    uniform: dict[str, Any] = {"color": style.GREY, "linewidth": 1.0, "linestyle": (0, (1, 2))}
    ax.step(edges, np.diff(edges, append=1.0), where="post", zorder=0, **uniform)
    ax.set_ylim(bottom=0)
    ax.set(xlabel="P(class | row) before any data", ylabel=f"share of draws in a bin, {_BINS} in all")
    sizes = sorted(map(len, draws.values()))
    numbers = " to ".join(dict.fromkeys(f"{n:,}" for n in (sizes[0], sizes[-1])))
    tails = "" if several else _describe_tails(*draws.values())
    marks.append(style.legend_mark("uniform", **uniform))
    return style.write_header(ax, [f"{numbers} draws from the prior", tails], marks)


def _checked_draws(values: object) -> dict[Any, np.ndarray]:
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
