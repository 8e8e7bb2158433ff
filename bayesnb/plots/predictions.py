"""Figures of class probabilities of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import uncertainty
from bayesnb._util.arguments import to_numbers
from bayesnb.fitted import Classifier
from bayesnb.plots import logit
from bayesnb.plots.style import COLOURS, GREY, WRONG, axes, dot, header, light_grid, percent
from bayesnb.plots.text import font, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 40
_FEW, _OUTSIDE = 100, 0.005
_ABOUT = "Intervals are about the parameters, if naive Bayes holds"


def prediction_intervals(
    nb: Classifier, X: Any, y: Any = None, label: Any = None, prob: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Class probabilities of rows in ascending order, with their intervals.

    Read it from left to right: the line climbs from the rows that the classifier holds for another class to those that
    it is surest of; the band is what the data leave open, and a cross is a row whose predicted label is wrong (a tick
    at the bottom where there are more than a hundred).

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : array-like, sparse matrix or DataFrame of shape (N, F)
    y : (N,) array-like, optional
        True labels; rows whose predicted label is another are marked.
    label : a class, optional
        Whose probability. Default: the second of two classes; with more, the predicted class of each row.
    prob : float, default 0.9
        Posterior probability of the intervals, in (0, 1).
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there is no such class, if y has not one label a row, or as `predict_interval`.

    Notes
    -----
    The axis is logarithmic in the odds: .99 is as far from .9 as .9 from one half, and one half is the dotted line.
    Where rows lie beyond the axis, or their intervals end there, they are drawn at its end; it holds 15 nines at most.

    Intervals are those of `predict_interval(nb, X, prob)`: given the row, for rows from the population of the data, and
    given the data where terms are weighted. They say what the data leave unknown about the parameters if naive Bayes
    holds: a row can be wrong far outside its interval. Where rows are few the line may leave the band: it is a mean
    over the parameters, and the band has their quantiles.

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
    lower, upper = uncertainty.predict_interval(nb, X, prob=prob)
    proba = nb.predict_proba(X, estimate="predictive")
    top = np.argmax(proba, axis=1)
    names = labels(nb.classes_, 24)
    rows = np.arange(len(proba))
    if label is None and len(names) == 2:
        label = nb.classes_[1]
    if label is not None and label not in names:
        raise ValueError(f"label={label!r} is not a class; the classes are {list(nb.classes_)[:8]}.")
    column = top if label is None else np.full(len(proba), list(names).index(label))
    p, low, high = (np.asarray(values)[rows, column] for values in (proba, lower, upper))
    defined = ~np.isnan(p)
    order = np.argsort(np.where(defined, p, np.inf), kind="stable")[: defined.sum()]
    p, low, high = p[order], low[order], high[order]
    ax = axes(ax, 7.0, 4.6)
    ends = logit.limits(p, low, high, outside=_OUTSIDE if len(p) > _FEW else 0.0)
    logit.scale(ax, "y", *ends)
    rank, beyond = np.arange(len(p)), int(((p < ends[0]) | (p > ends[1])).sum())
    p, low, high = (np.clip(values, *ends) for values in (p, low, high))
    band = ax.fill_between(rank, low, high, step="mid", color=COLOURS[5], alpha=0.55, linewidth=0)
    band.set_label(f"{percent(prob)} interval")
    (line,) = ax.step(rank, p, where="mid", color=COLOURS[0], linewidth=1.3, label="P(class | row)")
    handles: list[Any] = [line, band]
    if y is not None:
        wrong = _wrong(nb, top, y)[order]
        said = f"predicted label wrong: {wrong.sum():,} of {len(p):,}"
        mark: dict[str, Any] = {"label": said, "color": WRONG, "zorder": 3}
        if wrong.sum() > _FEW:  # crosses would hide the line, and each other
            at_the_bottom: dict[str, Any] = {"marker": "|", "s": 60, "transform": ax.get_xaxis_transform()}
            marks = ax.scatter(rank[wrong], np.full(wrong.sum(), 0.03), linewidths=0.6, **at_the_bottom, **mark)
        else:
            marks = ax.scatter(rank[wrong], p[wrong], marker="x", s=26, linewidths=1.1, **mark)
        handles.append(marks)
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    ax.set_xlim(-0.5, max(len(p) - 0.5, 0.5))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("rows, by probability")
    of = "predicted class" if label is None else names[label]
    ax.set_ylabel(f"P({of} | row)", **font([of]))
    light_grid(ax, "y")
    missing = f"{(~defined).sum()} rows have no probabilities" if not defined.all() else ""
    lie = "row lies" if beyond == 1 else "rows lie"
    further = f"{beyond:,} {lie} beyond the axis, drawn at its end" if beyond else ""
    lines = [f"{len(p):,} rows: P({of} | row), on the scale of log odds", _ABOUT, missing, further]
    header(ax, lines, handles)
    return ax


def prior_predictive(values: Any, ax: Axes | None = None) -> Axes:
    """How P(class | row) is distributed before any data: what a prior says of predictions.

    Read it at .5 and .99: what is left of one half are rows that the prior expects to be told wrong, and where nearly
    all lies beyond .99 the prior is sure of the class before it has seen a row, which with many features most are.

    Parameters
    ----------
    values : array of numbers in [0, 1], or dict of str to such arrays
        Class probabilities under draws from the prior; a dict compares priors by name.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If an array is empty or holds anything outside [0, 1].

    Notes
    -----
    The axis is logarithmic in the odds, and so are the bins: .99 is as far from .9 as .9 from one half. The first and
    the last bin hold all that lies beyond; the axis holds 15 nines at most. Uniform probabilities, the dotted line,
    are a hill around one half.

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
    priors = values if isinstance(values, Mapping) else {"": values}
    arrays = {name: to_numbers("values", array).ravel() for name, array in priors.items()}
    for name, array in arrays.items():
        bad = ~((array >= 0) & (array <= 1))
        if not array.size or bad.any():
            found = f"{array[bad][0]}" if array.size else "nothing"
            where = f"values[{name!r}]" if name else "values"
            raise ValueError(f"{where} holds {found}; class probabilities are numbers from 0 to 1, one a draw.")
    if not arrays:
        raise ValueError("values holds no prior; pass an array of probabilities, or a dict of them by name.")
    ax = axes(ax, 6.4, 4.2)
    ends = logit.limits(*arrays.values(), outside=_OUTSIDE)
    logit.scale(ax, "x", *ends, room=7)
    edges = logit.edges(ax.get_xlim(), _BINS)
    names = labels(arrays, 28)
    marks = []
    for i, (name, array) in enumerate(arrays.items()):
        share = np.histogram(array, edges)[0] / len(array)
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "linestyle": ("-", "--", ":", "-.")[i % 4]}
        ax.stairs(share, edges, linewidth=1.5, fill=len(arrays) == 1, alpha=0.8, **style)
        marks.append(dot(names[name], linewidth=1.5, **style))
    steps = np.repeat(edges, 2)[1:-1], np.repeat(np.diff(edges), 2)
    (uniform,) = ax.plot(*steps, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=0, label="uniform")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("P(class | row) before any data")
    ax.set_ylabel(f"share of draws in a bin, {_BINS} in all")
    sizes = sorted({len(array) for array in arrays.values()})
    draws = " to ".join(dict.fromkeys(f"{n:,}" for n in (sizes[0], sizes[-1])))
    found = ""
    if len(arrays) == 1:
        (array,) = arrays.values()
        found = f"{_share(array < 0.5)} lie below .5, {_share(array > 0.99)} above .99"
        if (sure := array > 1 - 1e-15).any():
            found += f", {_share(sure)} at 1 to 15 digits"
    header(ax, [f"{draws} draws from the prior", found], [*(marks if len(arrays) > 1 else []), uniform])
    return ax


def _share(those: np.ndarray) -> str:
    return percent(round(float(those.mean()), 3))


def _wrong(nb: Classifier, top: np.ndarray, y: Any) -> np.ndarray:
    truth = np.asarray(y, dtype=object)
    if truth.shape != top.shape:
        raise ValueError(f"y has shape {truth.shape}; X has {len(top)} rows, and each needs one label.")
    return np.asarray(nb.classes_, dtype=object)[top] != truth
