"""Figures of features: densities, dependence, structure and predictive checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_integer, require_probability, require_result, shown
from bayesnb._util.precision import float64
from bayesnb._util.terminal import count_columns
from bayesnb.analysis.dependence import information_of_tables
from bayesnb.analysis.predictive import PredictiveCheck
from bayesnb.encoding import NodeColumns
from bayesnb.fitted.state import Classifier, Fitted, require_estimate, require_fitted, require_posterior
from bayesnb.model import Estimate, read_block
from bayesnb.plots import style
from bayesnb.plots.style import Axes, Look, families, labels
from bayesnb.uncertainty import cut_table, density_table, require_proper
from bayesnb.uncertainty.variates import HostVariates

# == Figure of the densities of a numeric column in the classes, with posterior intervals ==========

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
        raise ValueError(f"feature={shown(feature)}: {name!r} has levels or words, or exposures; see plots.forest.")
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
    described = about.get(estimate, f"at the {estimate.upper()}")
    described += " and an exposure of 1" * bool(fitted.encoding.blocks[b].auxiliary)
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
    look: Look = {"color": colour, "markersize": 4, "alpha": 0.6, "clip_on": False}
    ax.plot(ticks, np.full(len(ticks), -0.02), "|", transform=ax.get_xaxis_transform(), **look)


# == Figures of dependence given the class: pairs of features that violate naive Bayes, and arcs of a network

_CELL = 1.6 * style.SMALL  # points
_THINNEST, _WIDEST = 0.4, 4.0
_MOST_ROWS, _MOST_LOOSE = 40, 10
_FIRST, _FURTHER = "#66AAD1", "#E89E66"  # lighter blue and vermilion, opaque where arcs share their way
_STEP = 60.0  # points from a generation to the next, at most


def independence(table: pd.DataFrame, top: int = 20, ax: Axes | None = None) -> Axes:
    """Show the log Bayes factors of dependence between features given the class, as a matrix.

    Dark orange cells are pairs of features that depend on each other. Naive Bayes takes them for independent, and
    counts their evidence twice.

    Parameters
    ----------
    table : DataFrame
        Result of `check_independence`: one row per pair, with columns feature_1, feature_2 and log_bayes_factor (nats).
    top : int, default 20
        Largest number of features that are shown, those of the strongest pairs; low axes have room for fewer.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the matrix. The colour bar has separate axes in the same figure.

    Raises
    ------
    TypeError
        If `table` is not a DataFrame.
    ValueError
        If `table` has no row or lacks a column, or `top` is not an integer of at least 2.

    Notes
    -----
    Positive log Bayes factors (orange) are evidence of dependence given the class, against naive Bayes; negative
    factors (purple) of independence. The scale is linear from -1 to 1 and logarithmic beyond. Pairs that are not in the
    table are grey.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> table = bnb.check_independence(bnb.GaussianNB().fit(X, y), X, y, draws=20)
    >>> ax = bnb.plots.independence(table)
    >>> len(ax.get_yticklabels())
    4
    >>> figure = bnb.plots.detach(ax)
    """
    from matplotlib.colors import SymLogNorm

    style.require_table(table, ("feature_1", "feature_2", "log_bayes_factor"), "bayesnb.check_independence")
    require_integer("top", top, least=2)
    strongest_first = table.sort_values("log_bayes_factor", ascending=False, kind="stable")
    features = list(dict.fromkeys(strongest_first[["feature_1", "feature_2"]].to_numpy().ravel().tolist()))
    n = min(len(features), top if ax is None else max(2, min(top, int(min(style.measure(ax)) / _CELL))))
    factors = table.pivot_table("log_bayes_factor", "feature_1", "feature_2")
    factors = factors.reindex(features[:n], columns=features[:n])
    matrix = factors.fillna(factors.T).to_numpy()
    names = list(labels(features, 22).values())[:n]
    margin = 0.58 * style.SMALL / 72 * max(map(count_columns, names))
    side = margin + max(2.6, 1.4 * _CELL / 72 * n)
    ax = style.open_axes(ax, side + 1.7, side + 1.05)
    ax.set_facecolor("0.85")
    largest = max(1.0, float(np.nanmax(np.abs(matrix), initial=0.0)))
    norm = SymLogNorm(linthresh=1.0, vmin=-largest, vmax=largest, base=10)
    ax.spines[:].set_visible(False)
    mesh = ax.pcolormesh(np.ma.masked_invalid(matrix), cmap="PuOr_r", norm=norm, edgecolors="white", linewidth=0.5)
    style.write_names(ax.xaxis, np.arange(n) + 0.5, names, rotation=90)
    style.write_names(ax.yaxis, np.arange(n) + 0.5, names)
    ax.set(xlim=(0, n), ylim=(n, 0), xlabel="feature", ylabel="feature", box_aspect=1)
    bar = ax.figure.colorbar(mesh, ax=ax, format="{x:g}", label="log Bayes factor (nats)")
    bar.minorticks_off()
    bar.outline.set_visible(False)
    left_out = f"{n} of {len(features)} features: strongest pairs" if n < len(features) else ""
    return style.write_header(ax, ["Dependence given the class", left_out])


def structure(nb: Classifier, ax: Axes | None = None) -> Axes:
    """Show the arcs of a network from parents to children, and the strength of each dependence.

    Children are below their first parent, as in a tree of folders. A feature depends on the class and on the features
    at the other ends of its arrows. A wider arrow means that the parent adds more information about the feature.

    Parameters
    ----------
    nb : fitted TAN, SPODE, KDB or NetworkNB, or a member of an AODE
        Classifier with one network.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one row per feature, children below their first parent, and at most 40 features: those with the widest
        arcs. Features without arcs come last, if they are ten or fewer. Gaussian features, which have no arcs, are not
        shown.

    Raises
    ------
    ValueError
        If `nb` has no categorical features with a network.

    Notes
    -----
    The class, a parent of all features, is left out. The width of an arc is the mutual information of parent and
    feature, given the class and the feature's other parents, in the training rows, in nats. Arcs from second and later
    parents are curved, and have another colour.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.structure(bnb.TAN().fit(X.round().astype(int), y))
    >>> [text.get_text() for text in ax.texts]
    ['sepal length (cm)', 'sepal width (cm)', 'petal length (cm)', 'petal width (cm)']
    >>> figure = bnb.plots.detach(ax)
    """
    require_fitted(nb, "plots.structure")
    network, counts = _single_network(nb)
    nats = _arc_information(network, counts)
    strongest = dict.fromkeys(j for arc in sorted(nats, key=lambda arc: -nats[arc]) for j in arc)
    loose = [child for child, *_ in network.nodes if child not in strongest]
    features = [*strongest, *(loose if len(loose) <= _MOST_LOOSE or not strongest else ())]
    shown = set(features[:_MOST_ROWS])
    positions = _place_features([node for node in network.nodes if node[0] in shown], shown)
    drawn = {arc: information for arc, information in nats.items() if shown.issuperset(arc)}
    largest = max(drawn.values(), default=0.0)
    ax = style.open_axes(ax, 6.4, 1.2 + 1.3 * style.ROW / 72 * len(shown))
    names = list(labels(network.base.names, 30).values())
    # Limits that leave room for the names, generations at most `_STEP` points apart.
    width = style.measure(ax)[0] - 12
    room = [(width - 0.62 * style.SMALL * count_columns(names[j])) / x for j, (x, _) in positions.items() if x]
    step = max(6.0, min([_STEP, *room]))
    ax.set(xlim=(-8 / step, (width + 4) / step), ylim=(-len(positions) + 0.2, 0.8))
    first_parents = {(node[1], node[0]) for node in network.nodes if len(node) > 1}
    for (parent, child), information in drawn.items():
        thickness = _THINNEST + (_WIDEST * information / largest if largest > 0 else 0.0)
        _draw_arrow(ax, positions[parent], positions[child], thickness, (parent, child) in first_parents)
    for j, position in positions.items():
        ax.plot(*position, "o", color=style.COLOURS[0], markersize=4.5, zorder=3)
        text: Look = {"va": "center", "fontsize": style.SMALL, "fontfamily": families()}
        ax.annotate(names[j], position, (7, 0), textcoords="offset points", zorder=4, **text)
    ax.set_axis_off()
    many, left_out = len(network.nodes), len(nats) - len(drawn)
    about = f"{len(nats)} arc{'s' * (len(nats) != 1)} between {many} features; every feature depends on the class too"
    part = f"Shown are {len(shown)} of {many} features" if len(shown) < many else ""
    part += f"; {left_out} thinner ones left out" if left_out else ""
    widest = style.legend_mark(f"{largest:.2g} nats lost without it", linestyle="-", color=_FIRST, linewidth=_WIDEST)
    return style.write_header(ax, [about, part], [widest if largest > 0 else style.legend_mark("no arcs")])


def _single_network(nb: Classifier) -> tuple[NodeColumns, np.ndarray]:
    """Return the only network of a fitted classifier, and its (C, L) counts; ValueError if there is none."""
    if (fitted := getattr(nb, "fitted_", None)) is not None:
        for columns, statistics in zip(fitted.encoding.blocks, fitted.statistics.blocks, strict=True):
            network = columns.network
            if network is not None and len({node[0] for node in network.nodes}) == len(network.nodes):
                return network, statistics.count
    raise ValueError(f"{type(nb).__name__} is not a single network. Pass a fitted TAN, SPODE or NetworkNB.")


def _arc_information(network: NodeColumns, counts: np.ndarray) -> dict[tuple[int, int], float]:
    """Conditional mutual information in nats of each arc (parent, child), given class and the child's other parents."""
    nats = {}
    for (child, *parents), table in zip(network.nodes, network.tables(counts), strict=True):
        for axis, parent in enumerate(parents, 1):
            pair = np.moveaxis(table, axis, -2)
            nats[parent, child] = float(information_of_tables(pair.reshape(-1, *pair.shape[-2:])))
    return nats


def _place_features(nodes: Sequence[tuple[int, ...]], shown: set[int]) -> dict[int, tuple[float, float]]:
    """Position (generation, -row) of each feature; rows follow a depth-first walk along arcs from first parents."""
    import networkx as nx

    arcs, first_arcs = nx.DiGraph(), nx.DiGraph()
    arcs.add_nodes_from(child for child, *_ in nodes)
    parents = {child: [parent for parent in others if parent in shown] for child, *others in nodes}
    arcs.add_edges_from((parent, child) for child in parents for parent in parents[child])
    # Features without any arc come last.
    for child in sorted(parents, key=lambda j: arcs.degree(j) == 0):
        first_arcs.add_edge(parents[child][0] if parents[child] else "root", child)
    generations = {j: x for x, generation in enumerate(nx.topological_generations(arcs)) for j in generation}
    _, *rows = nx.dfs_preorder_nodes(first_arcs, "root")
    return {j: (float(generations[j]), -float(row)) for row, j in enumerate(rows)}


def _draw_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], width: float, first: bool) -> None:
    """Draw an arrow: from a first parent down and across to the child, from another parent in a curve."""
    from matplotlib.patches import FancyArrowPatch

    upwards = end[1] > start[1]
    way = "angle,angleA=-90,angleB=180,rad=4" if first and not upwards else f"arc3,rad={-0.3 if upwards else 0.2}"
    arrow = FancyArrowPatch(start, end, arrowstyle="-|>", connectionstyle=way, mutation_scale=5 + 1.5 * width)
    arrow.set(color=_FIRST if first else _FURTHER, linewidth=width, joinstyle="miter", capstyle="butt", zorder=2)
    arrow.shrinkA, arrow.shrinkB = 2, 3
    ax.add_patch(arrow)


# == Figure of a posterior predictive check ========================================================


def predictive_check(result: PredictiveCheck, top: int = 30, ax: Axes | None = None) -> Axes:
    """Show observed quantities beside their values in replicated tables, the largest discrepancies first.

    A diamond outside its line is a quantity that the model seldom replicates.

    Parameters
    ----------
    result : PredictiveCheck
        Result of `posterior_predictive_check`.
    top : int, default 30
        Largest number of quantities that are shown; low axes have room for fewer.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one row for each quantity: a line from the 5% to the 95% quantile of the replicates, and a mark at the
        observed value.

    Raises
    ------
    TypeError
        If `result` is not a `PredictiveCheck`.
    ValueError
        If `top` is not a positive integer.

    Notes
    -----
    Associations have one axis, from 0 to 1. Other quantities have units of their own, and are drawn in standard
    deviations of the replicates from their mean. Of many quantities some lie outside of their lines by chance: the p in
    the header is that of the largest discrepancy.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> check = bnb.posterior_predictive_check(bnb.GaussianNB().fit(X, y), X, y)
    >>> ax = bnb.plots.predictive_check(check, top=2)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['sepal length (cm), petal length (cm) | 2', 'petal length (cm), petal width (cm) | 1']
    >>> figure = bnb.plots.detach(ax)
    """
    require_result("result", result, PredictiveCheck, "bayesnb.posterior_predictive_check")
    require_integer("top", top)
    rows = result.table.iloc[: style.count_fitting_rows(ax, top)]
    is_association = result.statistic == "association"
    observed, lower, upper = _positions(rows, is_association)
    y, names = np.arange(len(rows)), _row_names(result.table, rows)
    axis = "association, from 0 to 1" if is_association else "standard deviations from the mean of the replicates"
    ax = style.open_rows(ax, y, names, xlabel=axis, ylabel="quantity")
    outside = (observed < lower) | (observed > upper)
    ax.hlines(y, lower, upper, color=style.GREY, linewidth=2.2, alpha=0.6)
    dot: Look = {"marker": "o", "color": style.COLOURS[0], "markersize": 4.5}
    diamond: Look = {"marker": "D", "color": style.WRONG, "markersize": 4.5}
    for at, mark in ((~outside, dot), (outside, diamond)):
        ax.plot(observed[at], y[at], linestyle="none", **mark)
    if is_association:
        ax.set_xlim(-0.02, 1.02)
    left_out = len(result.table) - len(rows)
    lines = [
        f"p = {result.p:.3g} for the largest discrepancy of {len(result.table):,}; {result.draws:,} replicates",
        f"{len(rows)} largest; {left_out:,} left out" if left_out else "",
        f"{result.excluded:,} undefined" if result.excluded else "",
    ]
    marks = [
        style.legend_mark("90% of the replicates", linestyle="-", linewidth=2.2, color=style.GREY, alpha=0.6),
        style.legend_mark("observed", **dot),
        style.legend_mark("observed, outside", **diamond),
    ]
    return style.write_header(ax, lines, marks, names)


def _positions(rows: pd.DataFrame, is_association: bool) -> np.ndarray:
    """Return positions (3, N) of observed, lower and upper values: unchanged for associations, else standardised."""
    values = rows[["observed", "lower", "upper"]].to_numpy(float)
    if not is_association:
        mean, sd = rows["mean"].to_numpy(float)[:, None], rows["sd"].to_numpy(float)[:, None]
        values = (values - mean) / np.where(sd > 0, sd, 1.0)
    return values.T


def _row_names(table: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Return names such as "size, weight | ripe", or "mean of size | ripe"; for a user's function its own name."""
    features = [f for column in ("feature_1", "feature_2") for f in table[column].tolist() if f is not None]
    feature = labels(dict.fromkeys(features), 18)
    label = labels(dict.fromkeys(c for c in table["class"].tolist() if c is not None), 12)
    quantity = labels(dict.fromkeys(table["statistic"]), 22)
    names = []
    for row in rows.to_dict("records"):
        first, second = row["feature_1"], row["feature_2"]
        of = [] if first is None else [feature[first]]
        of = [quantity[row["statistic"]], *of] if second is None else [*of, feature[second]]
        names.append(", ".join(of) + ("" if first is None else f" | {label[row['class']]}"))
    return names
