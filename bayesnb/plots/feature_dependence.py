"""Figures of dependence given the class: pairs of features that violate naive Bayes, and arcs of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr

from bayesnb._util.arguments import require_integer
from bayesnb._util.terminal import count_columns
from bayesnb.encoding import NodeColumns
from bayesnb.fitted.state import Classifier, require_fitted
from bayesnb.plots import style
from bayesnb.plots.labels import families, labels
from bayesnb.plots.style import Axes

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
        text: dict[str, Any] = {"va": "center", "fontsize": style.SMALL, "fontfamily": families()}
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
            sides = table.sum(axis=-1), table.sum(axis=axis), table, table.sum(axis=(axis, -1))
            with_parent, with_child, both, neither = (entr(n / max(float(n.sum()), 1.0)).sum() for n in sides)
            nats[parent, child] = max(float(with_parent + with_child - both - neither), 0.0)
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
