"""Figure of a network: which feature depends on which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

from bayesnb.encoding import NodeColumns
from bayesnb.fitted import Classifier, require_fitted
from bayesnb.plots.style import COLOURS, GREY, SMALL, axes, bare, dot, extent, header
from bayesnb.plots.text import columns, font, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 1.45 * SMALL / 72 * 1.3
_THINNEST, _WIDEST = 0.4, 4.0
_MOST_ROWS, _MOST_LOOSE = 40, 10
_ARC, _FURTHER = "#66AAD1", "#E89E66"  # lighter blue and vermilion: without transparency, where arcs share their way
_STEP = 60.0  # points from a generation to the next, at most

Arcs = dict[tuple[int, int], float]


def structure(nb: Classifier, ax: Axes | None = None) -> Axes:
    """The arcs between the features of a network, from parents to children below and to the right.

    Read it like a tree of folders: a feature depends on the class and on those that arrows come from, and the wider the
    arrow, the more the parent says of it that nothing else does.

    Parameters
    ----------
    nb : fitted TAN, SPODE, KDB or NetworkNB, or a member of an AODE
    ax : Axes, optional

    Returns
    -------
    Axes
        A row a feature, children below their first parent, at most 40: those with the widest arcs. Features without
        arcs come last, if they are ten or fewer. Gaussian features, which have no arcs, are not shown.

    Raises
    ------
    ValueError
        If `nb` has no categorical features with a network.

    Notes
    -----
    The class, a parent of all, is left out. The width of an arc is the mutual information of parent and feature, given
    the class and the feature's other parents, in the training rows, in nats: what the feature would lose without the
    arc. Arcs from second and later parents are curved, and of another colour.

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
    blocks = (
        zip(nb.fitted_.encoding.blocks, nb.fitted_.statistics.blocks, strict=True) if hasattr(nb, "fitted_") else ()
    )
    found = [(columns.network, counted) for columns, counted in blocks if columns.network is not None]
    if not found or len({child for child, *_ in found[0][0].nodes}) != len(found[0][0].nodes):
        raise ValueError(f"{type(nb).__name__} is no single network; pass a fitted TAN, SPODE or NetworkNB.")
    network, counted = found[0]
    nats = _worth(network, counted.count)
    shown = _strongest(network, nats)
    place = _places(network, shown)
    ax = axes(ax, 6.4, 1.2 + _ROW * len(place))
    names = {j: text for j, text in enumerate(labels(network.base.names, 30).values()) if j in place}
    _fit(ax, place, names)
    drawn = {arc: worth for arc, worth in nats.items() if set(arc) <= set(place)}
    most = max(drawn.values(), default=0.0)
    for (parent, child), worth in drawn.items():
        width = _THINNEST + (_WIDEST * worth / most if most > 0 else 0.0)
        first = next(node for node in network.nodes if node[0] == child)[1] == parent
        _arrow(ax, place[parent], place[child], width, first)
    for j, at in place.items():
        ax.plot(*at, "o", color=COLOURS[0], markersize=4.5, zorder=3)
        style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": SMALL, "zorder": 4}
        ax.annotate(names[j], at, (7, 0), **style, **font([names[j]]))
    bare(ax)
    ax.set_axis_off()
    header(ax, _said(network, nats, drawn, place), [_example(most) if most > 0 else dot("no arcs", color=GREY)])
    return ax


def _worth(network: NodeColumns, count: np.ndarray) -> Arcs:
    """Of each arc from parent to child: I(child; parent | class, other parents) in nats."""
    found = {}
    for (child, *parents), table in zip(network.nodes, network.tables(count), strict=True):
        together, rows = _information(table), max(float(table.sum()), 1.0)
        for k, parent in enumerate(parents):
            others = _information(table.sum(axis=1 + k, keepdims=True))
            found[parent, child] = max(together - others, 0.0) / rows
    return found


def _information(table: np.ndarray) -> float:
    """Rows times the mutual information of the last axis and the others but the first, given the first."""
    count = table.reshape(len(table), -1, table.shape[-1])
    parts = (count, 1), (count.sum(axis=2), -1), (count.sum(axis=1), -1), (count.sum(axis=(1, 2)), 1)
    return float(sum(sign * xlogy(n, n).sum() for n, sign in parts))


def _strongest(network: NodeColumns, nats: Arcs) -> set[int]:
    """The features that have a row: those of the widest arcs, then those without arcs if they are few."""
    every = dict.fromkeys(j for arc in sorted(nats, key=lambda arc: -nats[arc]) for j in arc)
    loose = [child for child, *_ in network.nodes if child not in every]
    with_loose = [*every, *loose] if len(loose) <= _MOST_LOOSE or not every else list(every)
    return set(with_loose[:_MOST_ROWS])


def _places(network: NodeColumns, shown: set[int]) -> dict[int, tuple[float, float]]:
    """Generation, and row: a feature directly below its first parent or that one's other descendants."""
    parents = {child: [p for p in own if p in shown] for child, *own in network.nodes if child in shown}
    depth: dict[int, int] = {}
    for i in network.order():
        child = network.nodes[i][0]
        if child in parents:
            depth[child] = 1 + max((depth[p] for p in parents[child]), default=-1)
    having = {p for own in parents.values() for p in own}
    roots = [child for child in parents if not parents[child]]
    rows: list[int] = []
    # A stack: those without arcs come last.
    todo = [*[c for c in roots if c not in having][::-1], *[c for c in roots if c in having][::-1]]
    while todo:
        rows.append(todo.pop())
        todo += [child for child in reversed(parents) if parents[child][:1] == rows[-1:]]
    return {j: (float(depth[j]), -float(row)) for row, j in enumerate(rows)}


def _fit(ax: Axes, place: dict[int, tuple[float, float]], names: dict[int, str]) -> None:
    """Limits that leave room for the names, generations at most so far apart as looks well."""
    width = extent(ax)[0] - 12
    step = min([_STEP, *((width - 0.62 * SMALL * columns(names[j])) / x for j, (x, _) in place.items() if x)])
    step = max(step, 6.0)
    ax.set(xlim=(-8 / step, (width + 4) / step), ylim=(-len(place) + 0.2, 0.8))


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], width: float, first: bool) -> None:
    """Down from the first parent and then across to its child; from others in a curve."""
    from matplotlib.patches import FancyArrowPatch

    upwards = end[1] > start[1]
    way = "angle,angleA=-90,angleB=180,rad=4" if first and not upwards else f"arc3,rad={-0.3 if upwards else 0.2}"
    style: dict[str, Any] = {"color": _ARC if first else _FURTHER, "linewidth": width}
    arrow = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=5 + 1.5 * width, connectionstyle=way, shrinkA=2, shrinkB=3, **style
    )
    arrow.set(joinstyle="miter", capstyle="butt", zorder=2)
    ax.add_patch(arrow)


def _example(most: float) -> Any:
    return dot(f"{most:.2g} nats lost without it", linestyle="-", color=_ARC, linewidth=_WIDEST)


def _said(network: NodeColumns, nats: Arcs, drawn: Arcs, place: dict[int, Any]) -> list[str]:
    every, arcs = len(network.nodes), len(nats)
    left_out = f"; {arcs - len(drawn)} thinner ones left out" if len(drawn) < arcs else ""
    return [
        f"{arcs} arc{'s' if arcs != 1 else ''} between {every} features; every feature depends on the class too",
        f"Shown are {len(place)} of {every} features{left_out}" if len(place) < every else "",
    ]


__all__ = ["structure"]
