"""Figures of class probabilities of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import uncertainty
from bayesnb._util.arguments import to_numbers
from bayesnb.fitted import Classifier
from bayesnb.plots.style import COLOURS, GREY, WRONG, axes, dot, header, percent
from bayesnb.plots.text import font, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 40


def prediction_intervals(
    nb: Classifier, X: Any, y: Any = None, label: Any = None, prob: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Class probabilities of rows in ascending order, with their intervals.

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
    Intervals are those of `predict_interval(nb, X, prob)`, for rows from the population of the data. They say what the
    data leave unknown about the parameters if naive Bayes holds: a row can be wrong far outside its interval.
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
    ax = axes(ax, 7.0, 4.6)
    rank = np.arange(len(order))
    band = ax.fill_between(rank, low[order], high[order], step="mid", color=COLOURS[5], alpha=0.55, linewidth=0)
    band.set_label(f"{percent(prob)} interval")
    (line,) = ax.step(rank, p[order], where="mid", color=COLOURS[0], linewidth=1.3, label="P(class | row)")
    handles: list[Any] = [line, band]
    if y is not None:
        wrong = _wrong(nb, top, y)[order]
        handles.append(
            ax.scatter(
                rank[wrong],
                p[order][wrong],
                marker="x",
                s=26,
                linewidths=1.1,
                color=WRONG,
                zorder=3,
                label=f"predicted label wrong: {wrong.sum()} of {len(order)}",
            )
        )
    ax.set(xlim=(-0.5, max(len(order) - 0.5, 0.5)), ylim=(-0.03, 1.03))
    ax.set_xlabel("rows, by probability")
    of = "predicted class" if label is None else names[label]
    ax.set_ylabel(f"P({of} | row)", **font([of]))
    missing = f"{(~defined).sum()} rows have no probabilities" if not defined.all() else ""
    header(ax, ["Intervals are about the parameters, if naive Bayes holds", missing], handles)
    return ax


def prior_predictive(values: Any, ax: Axes | None = None) -> Axes:
    """How P(class | row) is distributed before any data: what a prior says of predictions.

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
    edges = np.linspace(0, 1, _BINS + 1)
    names = labels(arrays, 28)
    marks = []
    for i, (name, array) in enumerate(arrays.items()):
        share = np.histogram(array, edges)[0] / len(array)
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "linestyle": ("-", "--", ":", "-.")[i % 4]}
        ax.stairs(share, edges, linewidth=1.5, fill=len(arrays) == 1, alpha=0.8, **style)
        marks.append(dot(names[name], linewidth=1.5, **style))
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("P(class | row) before any data")
    ax.set_ylabel(f"share of draws in a bin of width {1 / _BINS:g}")
    sizes = sorted({len(array) for array in arrays.values()})
    draws = " to ".join(dict.fromkeys(f"{n:,}" for n in (sizes[0], sizes[-1])))
    uniform = ax.axhline(1 / _BINS, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=0, label="uniform")
    header(ax, [f"{draws} draws from the prior"], [*(marks if len(arrays) > 1 else []), uniform])
    return ax


def _wrong(nb: Classifier, top: np.ndarray, y: Any) -> np.ndarray:
    truth = np.asarray(y, dtype=object)
    if truth.shape != top.shape:
        raise ValueError(f"y has shape {truth.shape}; X has {len(top)} rows, and each needs one label.")
    return np.asarray(nb.classes_, dtype=object)[top] != truth
