"""Figures of choices: which features matter, and which of two models predicts better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.arguments import require_choice, require_result
from bayesnb.fitted import Classifier, require_fitted, require_posterior
from bayesnb.plots.style import COLOURS, GREY, SMALL, axes, dot, extent, header, light_grid, names_on
from bayesnb.plots.text import labels
from bayesnb.selection import LeaveOneOut, Prequential, bayes_factor

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bayesnb.selection.loo import Kind

_MOST_ROWS = 40
_ROW = 1.45 * SMALL
_HEADER = 4  # rows
_MANY = 2000
_MISLEADS = 4.0
_REST = 0.02  # of the area


def inclusion(nb: Classifier, ax: Axes | None = None) -> Axes:
    """Posterior probabilities that features depend on the class, the highest first.

    Read which side of the grey line a dot is on: to the right the data speak for a feature, to the left against it.

    Parameters
    ----------
    nb : fitted FeatureAveragedNB
    ax : Axes, optional

    Returns
    -------
    Axes
        At most 40 features have a row and a name, fewer in low axes. Of more, the 30 highest have; all others follow as
        a curve, whose vertical axis is the logarithm of their rank.

    Raises
    ------
    ValueError
        If `nb` does not average over features.

    Notes
    -----
    Bars begin at the prior probability, the grey line: to the right of it the data speak for dependence, to the left
    against, each feature taken with the others as they may be. Features that depend on one another given the class are
    counted as if each spoke for itself.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.inclusion(bnb.FeatureAveragedNB(bnb.GaussianNB()).fit(X[::10], y[::10]))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['petal length (cm)', 'petal width (cm)', 'sepal length (cm)', 'sepal width (cm)']
    >>> figure = bnb.plots.detach(ax)
    """
    from scipy.special import expit

    require_fitted(nb, "plots.inclusion")
    if not hasattr(nb, "inclusion_probability_"):
        raise ValueError(f"{type(nb).__name__} does not average over features; pass a fitted FeatureAveragedNB.")
    fitted = require_posterior(nb, "plots.inclusion")
    columns = fitted.encoding.feature_names
    models = fitted.prior, fitted.posterior
    before, after = (fitted.encoding.in_order(b.log_odds for b in model.blocks) for model in models)
    # By log odds: probabilities of 1 to the last digit have an order too.
    order = np.argsort(-after, kind="stable")
    room = _MOST_ROWS if ax is None else max(4, min(_MOST_ROWS, int(extent(ax)[1] / _ROW) - _HEADER))
    below = 0 if len(order) <= room else max(3, room // 4)
    named, rest = np.split(order, [room - below])
    height = min(len(order), room)
    ax = axes(ax, 6.4, 1.8 + _ROW / 72 * 1.3 * max(4, height))
    prior, posterior = expit(before), expit(after)
    y = np.arange(len(named))
    ax.hlines(y, prior[named], posterior[named], color=COLOURS[0], linewidth=1.6, alpha=0.5)
    ax.plot(posterior[named], y, "o", color=COLOURS[0], markersize=4.5, clip_on=False, zorder=4)
    ticks, names = y.tolist(), list(labels((columns[int(j)] for j in named), 26).values())
    edges = np.arange(len(named) + 1) - 0.5
    if len(rest):
        ranks = _Ranks(len(named), len(order), below)
        bottom = ranks.height(np.arange(len(named), len(order) + 1))
        edges = np.concatenate([edges[:-1], bottom])
        ax.stairs(posterior[rest], bottom, orientation="horizontal", baseline=None, color=COLOURS[0], linewidth=1.3)
        ax.axhline(bottom[0], color="0.6", linewidth=0.8)
        shown = ranks.with_labels()
        ticks += ranks.height(shown).tolist()
        names += [f"rank {r:,}" for r in shown]
    lines = ax.vlines(prior[order], edges[:-1], edges[1:], color=GREY, linewidth=1.1)
    lines.set_rasterized(len(order) > _MANY)
    names_on(ax.yaxis, ticks, names)
    ax.set(xlim=(-0.02, 1.02), ylim=(height - 0.4, -0.6))
    ax.set_xlabel("P(feature depends on the class)")
    ax.set_ylabel("feature")
    light_grid(ax, "x")
    said = [
        f"{_number(posterior.sum())} of {len(order):,} features expected, {_number(prior.sum())} a priori",
        f"{len(named)} have names, the other {len(rest):,} are below the line" if len(rest) else "",
    ]
    marks = [
        dot("posterior", marker="o", color=COLOURS[0], markersize=4.5),
        dot("prior", linestyle="-", color=GREY, linewidth=1.1),
    ]
    header(ax, said, marks, names=names)
    return ax


def pointwise_loo(
    first: LeaveOneOut,
    second: LeaveOneOut,
    ax: Axes | None = None,
    kind: Kind = "label",
    names: tuple[str, str] = ("first", "second"),
) -> Axes:
    """Which rows each of two models predicts better from the other rows.

    Read how many rows make up the difference: bars upwards are rows that the first model predicts better, downwards the
    second, and where a few bars are all there is, a few rows have decided.

    Parameters
    ----------
    first, second : LeaveOneOut
        Of the same rows in the same order, as `loo` returns them.
    ax : Axes, optional
    kind : {"label", "row"}
        Whether log p(y_i | x_i, D₋ᵢ) is compared, or log p(x_i, y_i | D₋ᵢ).
    names : two different names
        Of the models.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the rows differ in number, labels or weights; if `names` are not two.

    Notes
    -----
    Rows are sorted by the difference, and each is as wide as its weight: the area above zero less that below is their
    part of the difference of the two `elpd`. Where more than half of the rows differ so little that together they have
    at most 2% of the area, they are left out at the cut in the middle; the header says how many, and their part. Rows
    are named by their positions, counted from 0. The standard error is that of paired differences, rows taken for
    independent; where models differ by less than 4 nats it misleads (Sivula, Magnusson & Vehtari, *Uncertainty in
    Bayesian leave-one-out cross-validation based model comparison*, 2020).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> plain = bnb.loo(bnb.GaussianNB().fit(X, y), X, y)
    >>> pooled = bnb.loo(bnb.GaussianNB(prior="pooled").fit(X, y), X, y)
    >>> ax = bnb.plots.pointwise_loo(plain, pooled, names=("within", "pooled"))
    >>> ax.get_xlabel()
    'rows, by difference'
    >>> figure = bnb.plots.detach(ax)
    """
    require_choice("kind", kind, ("label", "row"))
    name = _names(names)
    for argument, result in (("first", first), ("second", second)):
        require_result(argument, result, LeaveOneOut, "bayesnb.loo")
    _require_same_rows(first, second)
    if list(first.classes) != list(second.classes):
        raise ValueError(f"first and second are of different classes: {list(first.classes)}, {list(second.classes)}.")
    field = "pointwise" if kind == "label" else "row_pointwise"
    with np.errstate(invalid="ignore"):
        paired = getattr(first, field) - getattr(second, field)
    finite = np.isfinite(paired) & (first.weight > 0)
    infinite = int((~np.isfinite(paired) & (first.weight > 0)).sum())
    order = np.flatnonzero(finite)[np.argsort(-paired[finite], kind="stable")]
    # A result whose pointwise scores are differences has the difference's total and standard error.
    difference = replace(first, pointwise=paired[order], weight=first.weight[order])
    drawn = _telling(difference.pointwise, difference.weight)
    heights, widths = difference.pointwise[drawn], difference.weight[drawn]
    ax = axes(ax, 7.0, 4.6)
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    marks: list[Artist] = []
    for i, sign in enumerate((1, -1)):
        better = sign * difference.pointwise > 0
        ax.stairs(np.where(sign * heights > 0, heights, 0.0), edges, fill=True, color=COLOURS[i], alpha=0.85)
        most = ", ".join(str(row) for row in order[better][::sign][:3])
        said = f"{name[i]} better: {difference.weight[better].sum():g} rows" + (f", most {most}" if most else "")
        marks.append(_patch(said, COLOURS[i]))
    others = ""
    if not drawn.all():
        at = edges[np.searchsorted(-heights, 0.0)]
        ax.axvline(at, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
        part, least = difference.weight[~drawn] @ difference.pointwise[~drawn], np.abs(heights).min()
        others = (
            f"Left out at the dotted line: {difference.weight[~drawn].sum():g} rows, each less than {least:.2g} nats, "
            f"together {part:+.2g}"
        )
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xlim(0, max(edges[-1], 1.0))
    ax.locator_params(axis="x", integer=True)
    light_grid(ax, "y")
    ax.set_xlabel("rows, by difference")
    what = "label | row, other rows" if kind == "label" else "row, label | other rows"
    ax.set_ylabel(f"difference of log p({what})\n(nats)")
    total = f"{difference.elpd:+.2f} ± {difference.se:.2f} nats (difference, standard error of paired differences)"
    lines = [
        total if not infinite else f"No total: {infinite} rows have no finite difference, and are not drawn",
        f"Below {_MISLEADS:g} nats the standard error misleads" if abs(difference.elpd) < _MISLEADS else "",
        others,
    ]
    header(ax, lines, marks)
    return ax


def prequential(
    first: Prequential,
    second: Prequential,
    ax: Axes | None = None,
    names: tuple[str, str] = ("first", "second"),
) -> Axes:
    """By how much one model has predicted the rows so far better than another; at the end, the log Bayes factor.

    Read its slope and its end: where the line rises the first model predicts the rows better, and the star is the log
    Bayes factor.

    Parameters
    ----------
    first, second : Prequential
        Of the same rows in the same order, as `bayesnb.prequential` returns them.
    ax : Axes, optional
    names : two different names
        Of the models.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the rows, their order or the sizes differ; as `bayes_factor`; if an evidence is zero.

    Notes
    -----
    Where the line rises, the first model predicts the next rows, labels and features, better from those before. The way
    depends on the order of the rows, its end does not.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X = X > X.mean(axis=0)
    >>> models = bnb.BernoulliNB().fit(X, y), bnb.FeatureAveragedNB(bnb.BernoulliNB()).fit(X, y)
    >>> ax = bnb.plots.prequential(*(bnb.prequential(nb, X, y) for nb in models), names=("all", "averaged"))
    >>> ax.get_xlabel()
    'rows, in the order given'
    >>> figure = bnb.plots.detach(ax)
    """
    name = _names(names)
    for argument, result in (("first", first), ("second", second)):
        require_result(argument, result, Prequential, "bayesnb.prequential")
    _require_same_rows(first, second)
    if not np.array_equal(first.sizes, second.sizes):
        raise ValueError("first and second were told at different numbers of rows; pass the same `points` to both.")
    factor = bayes_factor(first.estimator, second.estimator)
    if not np.isfinite(factor.log):
        raise ValueError("An evidence is zero: a prior has zero concentrations. Choose proper priors.")
    ahead = first.log_evidence - second.log_evidence
    ax = axes(ax, 7.0, 4.6)
    for i, sign in enumerate((1, -1)):
        ax.fill_between(
            first.sizes, ahead, where=sign * ahead >= 0, interpolate=True, color=COLOURS[i], alpha=0.25, linewidth=0
        )
    ax.plot(first.sizes, ahead, color="black", linewidth=1.4)
    ax.plot(first.sizes[-1], ahead[-1], "*", color="black", markersize=11, clip_on=False, zorder=4)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xlim(0, first.sizes[-1])
    ax.locator_params(axis="x", integer=True)
    light_grid(ax, "y")
    ax.set_xlabel("rows, in the order given")
    ax.set_ylabel("difference of log evidence so far (nats)")
    winner = name[0] if factor.log > 0 else name[1]
    end = f"log Bayes factor: {abs(factor.log):.2f} nats for {winner}"
    marks = [
        *(_patch(f"{name[i]} ahead", COLOURS[i]) for i in range(2)),
        dot(end, marker="*", color="black", markersize=11),
    ]
    header(ax, ["The way depends on the order of the rows, its end does not", *factor.notes], marks)
    return ax


def _telling(difference: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Which rows are drawn: all, or the few that have nearly all of the area."""
    area = weight * np.abs(difference)
    # By height, so that what is left out lies between the rows that are drawn.
    order = np.argsort(-np.abs(difference), kind="stable")
    missing = area.sum() - np.cumsum(area[order])
    enough = 1 + int(np.argmax(missing <= _REST * area.sum())) if len(order) else 0
    drawn = np.ones(len(order), bool)
    if enough < len(order) / 2 and len(order) > _MOST_ROWS:
        drawn[order[enough:]] = False
    return drawn


@dataclass(frozen=True)
class _Ranks:
    """Heights of ranks below `named` rows: logarithmic, the last of `every` at the end of `rows` more."""

    named: int
    every: int
    rows: int

    def height(self, rank: np.ndarray) -> np.ndarray:
        return self.named - 0.5 + self.rows * np.log(rank / self.named) / np.log(self.every / self.named)

    def with_labels(self) -> np.ndarray:
        """The last one, and powers of ten that are far enough from it and from the names."""
        powers = 10 ** np.arange(1, int(np.log10(self.every)) + 1)
        down = self.height(powers) - self.named + 0.5
        return np.append(powers[(down >= 1.0) & (down <= self.rows - 1.5)], self.every)


def _number(expected: float) -> str:
    return f"{expected:,.0f}" if expected >= 100 else f"{expected:.3g}"


def _names(names: tuple[str, str]) -> list[str]:
    found = list(labels(names, 24).values())
    if len(names) != 2 or len(found) != 2:
        raise ValueError(f"names={names!r} must be two different names, of the first and of the second model.")
    return found


def _require_same_rows(first: Any, second: Any) -> None:
    """Refuse results of other rows, as far as labels and weights tell."""
    if len(first.label) != len(second.label):
        raise ValueError(f"first and second are of different rows: {len(first.label)} and {len(second.label)} of them.")
    for what in ("label", "weight"):
        differs = getattr(first, what) != getattr(second, what)
        if differs.any():
            row = int(np.argmax(differs))
            raise ValueError(f"first and second are of different rows: their {what}s differ from row {row} on.")


def _patch(label: str, colour: str) -> Artist:
    return dot(label, marker="s", color=colour, markersize=7)
