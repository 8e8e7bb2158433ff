"""Figure of the densities of a numeric column in the classes, with posterior intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_probability, shown
from bayesnb._util.precision import float64
from bayesnb.fitted.state import Classifier, Fitted, require_estimate, require_posterior
from bayesnb.model import Estimate, read_block
from bayesnb.plots import style
from bayesnb.plots.labels import families, labels
from bayesnb.plots.style import Axes
from bayesnb.uncertainty import cut_table, density_table, require_proper
from bayesnb.uncertainty.draws import HostVariates

_MOST_CLASSES = 7
_MOST_TICKS = 300
_BARS = 40
_FEW = 3
_POINTS = 250
_QUANTILES = 40
_MOST_POINTS = 60
_DRAWS = 1000


def density(
    nb: Classifier,
    feature: object,
    X: object = None,
    y: object = None,
    prob: float = 0.9,
    ax: Axes | None = None,
    estimate: Estimate = "predictive",
) -> Axes:
    """Show the density of a numeric column in each class, with posterior intervals.

    Values at which the lines differ distinguish the classes. A wide band means that the data determine the height
    poorly. Of a binned column, each grey line at the top is a possible cut; its length is the probability of the cut.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with columns of numbers: binned, Gaussian, Poisson or exponential.
    feature : column name or index
        Column of numbers.
    X : array-like or DataFrame of shape (N, F), optional
        Rows that are drawn as ticks below. Of a binned column, the dotted line is the normal density with their mean
        and sd.
    y : (N,) array-like, optional
        Labels of the rows in `X`.
    prob : float, default 0.9
        Posterior probability of the interval of the density at each value, or in each cell, in (0, 1).
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    estimate : {"mle", "map", "mean", "predictive"}, default "predictive"
        Density that is drawn: with the parameters at this estimate, or integrated out. Binned columns have the
        posterior predictive density only, which is the mean.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with at most seven classes, those with the most rows; the header says how many were left out.

    Raises
    ------
    ValueError
        If the column has levels or counts of words, or one cell only; if X is given without y, or y without X; if
        `prob` is not in (0, 1); if `estimate` is unknown, or "mle" or "map" for a binned column.
    ImproperPosteriorError
        If the posterior is improper.

    Notes
    -----
    The predictive densities are Student t (Gaussian), negative binomial (Poisson) and Lomax (exponential). A band has
    the quantiles of p(x | class, θ) at each x over 1,000 draws of the parameters θ from their posterior, the same draws
    in every call; it does not depend on `estimate`. Values run from the smallest to the largest in X, and from the .1%
    to the 99.9% quantile of the predictive distributions of the classes.

    Of a binned column, neighbouring cells are joined until they are a fortieth of the range wide, as the densities of
    narrow cells jump from one to the next. The outer cells extend to infinity. They are drawn up to the smallest and
    the largest value in X, or without X as wide as their neighbours.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.density(bnb.BinnedNB().fit(X, y), "petal length (cm)", X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('petal length (cm)', 'density')
    >>> figure = bnb.plots.detach(ax)
    """
    if (X is None) != (y is None):
        raise ValueError("X and y must be passed together, as y holds the labels of the rows.")
    require_probability("prob", prob)
    require_estimate(estimate)
    fitted = require_posterior(nb, "density")
    require_proper(fitted.encoding, fitted.posterior)
    (j,) = fitted.encoding.positions([feature])
    values = label = np.zeros(0)
    if X is not None:
        rows = fitted.table(X)
        values = np.asarray(rows.numbers([j]), float)[:, 0]
        label, values = (array[np.isfinite(values)] for array in (fitted.label_index(y, rows.n_rows), values))
    classes, name = fitted.encoding.classes.values, fitted.encoding.feature_names[j]
    largest = np.sort(np.argsort(-fitted.statistics.class_count, kind="stable")[:_MOST_CLASSES])
    blocks = [(b, block) for b, block in enumerate(fitted.encoding.blocks) if j in block.index]
    is_binned = any(block.kind == "binned" for _, block in blocks)
    numbers = [b for b, block in blocks if block.axis()[1] is None and not block.one_simplex]
    if is_binned:
        if estimate not in ("predictive", "mean"):
            raise ValueError(f"estimate={estimate!r}: a binned column averages binnings. Use estimate='predictive'.")
        cuts = cut_table(nb, [feature])
        if cuts.empty:
            raise ValueError(f"feature={shown(feature)}: {name!r} was not cut (it has one bin). Choose another column.")
        table = density_table(nb, [feature], prob, bars=_BARS)
        curves = _binned_curves(table, cuts["edge"].to_numpy(), largest, values)
    elif numbers:
        curves = _number_curves(fitted, numbers[0], j, largest, prob, estimate, values)
    else:
        raise ValueError(f"feature={shown(feature)}: {name!r} has levels or words, no density; see plots.forest.")
    names = list(labels(classes, 22).values())
    ax = style.open_axes(ax, 6.4, 4.4)
    marks, marker = [], "." if curves.is_discrete and len(curves.x) <= _MOST_POINTS else ""
    for i, c in enumerate(largest):
        colour = style.look(int(c))["color"]
        ax.plot(curves.x, curves.density[i], color=colour, linewidth=1.4, marker=marker)
        alpha = 0.18 if len(largest) <= _FEW else 0.08
        ax.fill_between(curves.x, curves.lower[i], curves.upper[i], color=colour, alpha=alpha, linewidth=0)
        _draw_rows(ax, values[label == c], curves.x if is_binned else None, colour)
        marks.append(style.legend_mark(names[c], linestyle="-", color=colour))
    low, high = curves.x[[0, -1]]
    margin = 0.02 * (high - low)
    ax.set_ylim(bottom=0.0)
    ax.set_xlim(low - margin, high + margin)
    (title,) = labels([name], 48).values()
    ax.set_xlabel(title, fontfamily=families())
    ax.set_ylabel("probability" if curves.is_discrete else "density")
    if is_binned:
        length = 0.25 * cuts["probability"]
        ax.vlines(cuts["edge"], 1.0 - length, 1.0, color=style.GREY, linewidth=1.1, transform=ax.get_xaxis_transform())
        marks += [style.legend_mark("normal density", linestyle=":", color=style.GREY)] * bool(len(values))
        marks.append(style.legend_mark("cut, as long as it is probable", marker="|", color=style.GREY, markersize=9))
    n, left_out = len(largest), len(classes) - len(largest)
    without = [names[c] for c, height in zip(largest, curves.density, strict=True) if not 0 < height.max() < np.inf]
    lines = [
        f"{title}: {curves.about}, with {style.format_percent(prob)} intervals",
        f"{n} largest of {len(classes)} classes; {left_out} left out" if left_out else "",
        f"No density, or a variance of 0: {', '.join(without)}" if without else "",
    ]
    return style.write_header(ax, lines, marks)


class _Curves(NamedTuple):
    """Densities (C, M) of C classes at values x (M,), ends of their intervals, and what they are, in words."""

    x: np.ndarray
    density: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    about: str
    is_discrete: bool = False


def _binned_curves(table: pd.DataFrame, edges: np.ndarray, classes: np.ndarray, values: np.ndarray) -> _Curves:
    """Posterior mean densities of a `density_table`: both ends of each cell, joined to bars.

    The outer cells reach to `values` beyond the edges, or are as wide as their neighbours.
    """
    width = np.diff(edges)[[0, -1]] if len(edges) > 1 else np.full(2, max(1.0, abs(float(edges[0])) * 0.1))
    least, greatest = values.min(initial=edges[0]), values.max(initial=edges[-1])
    first = least if least < edges[0] else edges[0] - width[0]
    last = greatest if greatest > edges[-1] else edges[-1] + width[1]
    ends = np.array([first, *np.unique(table["high"][np.isfinite(table["high"])]), last])
    cells = table[["probability", "lower", "upper"]].to_numpy().reshape(-1, len(ends) - 1, 3)[classes]
    cells[..., 0] /= np.diff(ends)
    density, lower, upper = np.moveaxis(np.repeat(cells, 2, axis=1), 2, 0)
    return _Curves(np.repeat(ends, 2)[1:-1], density, lower, upper, "all binnings averaged")


def _number_curves(
    fitted: Fitted, b: int, j: int, classes: np.ndarray, prob: float, estimate: Estimate, values: np.ndarray
) -> _Curves:
    """Densities of column j, in block b of independent numbers, by a reading of the posterior."""
    from scipy import stats

    keep = np.asarray(fitted.encoding.blocks[b].index) == j
    model, reading = fitted.read(estimate)
    column, drawn_from = (m.blocks[b].restrict(keep) for m in (model, fitted.posterior))
    places, is_discrete = [values], False
    for _, component in drawn_from.components():
        name, arguments = component.predictive_distribution()
        distribution = getattr(stats, name)
        is_discrete |= isinstance(distribution, stats.rv_discrete)
        quantiles = distribution(**arguments).ppf(np.linspace(0.001, 0.999, _QUANTILES)[:, None, None])
        places.append(np.broadcast_to(quantiles, (_QUANTILES, model.n_classes, 1))[:, classes])
    # Quantiles show the peak of a narrow class beside a wide one.
    x = np.concatenate([place.ravel() for place in places])
    x = np.concatenate([x[len(values) :], np.linspace(x.min(), x.max(), _POINTS)])
    x = np.unique(np.round(x) if is_discrete else x)
    tails = [(1 - prob) / 2, (1 + prob) / 2]
    lower, upper = np.quantile(np.exp(_draw_log_density(drawn_from, classes, x)), tails, axis=0)
    about = {"predictive": "posterior predictive", "mean": "at the posterior mean", "mle": "maximum likelihood"}
    described = about.get(estimate, "at the MAP")
    return _Curves(x, np.exp(_log_density(column, reading, x))[classes], lower, upper, described, is_discrete)


@float64
def _log_density(column: Any, reading: str, x: np.ndarray) -> np.ndarray:
    """(C, M) log density of the values x (M,) in each class under a reading of the posterior of one column."""
    with np.errstate(all="ignore"):
        log_prob = read_block(column, reading).terms(x[:, None])[..., 0] + column.log_base(x[:, None])[:, None]
    return np.asarray(log_prob).T


@float64
def _draw_log_density(column: Any, classes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(S, C, M) log density of the values x (M,) in the `classes` at S draws of the parameters of one column."""
    with np.errstate(all="ignore"):
        likelihood = column.draw(HostVariates(np.random.default_rng(0)), _DRAWS)
        drawn = {name: np.asarray(values)[:, classes] for name, values in likelihood.parameters().items()}
        log_prob = type(likelihood).from_parameters(**drawn).cells(x[:, None, None, None])[..., 0]
        return np.moveaxis(np.asarray(log_prob) + column.log_base(x[:, None])[:, None, None], 0, -1)


def _draw_rows(ax: Axes, values: np.ndarray, ends: np.ndarray | None, colour: str) -> None:
    """Draw values as ticks below the axes, and with `ends` the normal density with their mean and sd between these.

    Ticks are those of every k-th value, k = N // 300 or 1. Equal values have no normal density.
    """
    if ends is not None and len(values) and values.std() > 0:
        grid = np.linspace(ends[0], ends[-1], 200)
        normal = np.exp(-0.5 * ((grid - values.mean()) / values.std()) ** 2) / (values.std() * np.sqrt(2 * np.pi))
        ax.plot(grid, normal, color=colour, linewidth=0.9, linestyle=":", scaley=False)
    ticks = values[:: max(1, len(values) // _MOST_TICKS)]
    look: dict[str, Any] = {"color": colour, "markersize": 4, "alpha": 0.6, "clip_on": False}
    ax.plot(ticks, np.full(len(ticks), -0.02), "|", transform=ax.get_xaxis_transform(), **look)
