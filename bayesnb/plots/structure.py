"""Figure of a network: which feature depends on which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayesnb.encoding import NodeColumns
from bayesnb.fitted import Classifier, require_fitted
from bayesnb.networks.learning import node_information
from bayesnb.plots.style import COLOURS, GREY, SMALL, axes, dot, header
from bayesnb.plots.text import font, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 1.45 * SMALL / 72 * 1.3
_WIDEST = 5.0


def structure(nb: Classifier, ax: Axes | None = None) -> Axes:
    """The arcs between the features of a network, from parents on the left to children on the right.

    Parameters
    ----------
    nb : fitted TAN, SPODE or NetworkNB, or a member of an AODE
    ax : Axes, optional

    Returns
    -------
    Axes
        A row a feature, children below their first parent; Gaussian features, which have no arcs, are not shown.

    Raises
    ------
    ValueError
        If `nb` has no categorical features with a network.

    Notes
    -----
    The class, a parent of all, is left out. The width of an arc is the mutual information, given the class, of the
    feature and its parents together in the training rows, in nats: of several parents all arcs have the same.
    """
    import networkx as nx

    require_fitted(nb, "plots.structure")
    blocks = (
        zip(nb.fitted_.encoding.blocks, nb.fitted_.statistics.blocks, strict=True) if hasattr(nb, "fitted_") else ()
    )
    found = [(columns.network, counted) for columns, counted in blocks if columns.network is not None]
    if not found or len({child for child, *_ in found[0][0].nodes}) != len(found[0][0].nodes):
        raise ValueError(f"{type(nb).__name__} is no single network; pass a fitted TAN, SPODE or NetworkNB.")
    columns, counted = found[0]
    graph = nx.DiGraph((p, child) for child, *parents in columns.nodes for p in parents)
    graph.add_nodes_from(child for child, *_ in columns.nodes)
    place = _places(columns)
    ax = axes(ax, 6.4, 1.2 + _ROW * len(place))
    nats = dict(zip((node[0] for node in columns.nodes), node_information(columns, counted), strict=True))
    most = max((nats[child] for _, child in graph.edges), default=0.0)
    nx.draw_networkx_edges(
        graph,
        place,
        ax=ax,
        width=[0.4 + _WIDEST * nats[child] / most if most > 0 else 0.4 for _, child in graph.edges],
        edge_color=COLOURS[0],
        alpha=0.6,
        node_size=30,
        arrowsize=7,
        connectionstyle="arc3,rad=0.15",
    )
    names = labels(columns.base.names, 30)
    for j, (x, y) in place.items():
        ax.plot(x, y, "o", color=COLOURS[0], markersize=4, zorder=3)
        text = names[columns.base.names[j]]
        ax.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=SMALL, **font([text]))
    deepest = max(x for x, _ in place.values())
    ax.set(xlim=(-0.1, deepest + 1.0), ylim=(-len(place) + 0.2, 0.8))
    ax.set_axis_off()
    said = [
        f"{graph.number_of_edges()} arcs between {len(place)} features; every feature depends on the class too",
    ]
    marks = [dot(f"{most:.2g} nats of mutual information", linestyle="-", color=COLOURS[0], linewidth=_WIDEST)]
    header(ax, said, marks if most > 0 else [dot("no arcs", marker="o", color=GREY, markersize=4)])
    return ax


def _places(columns: NodeColumns) -> dict[int, tuple[float, float]]:
    """Generation, and row: a feature directly below its first parent or that one's other descendants."""
    parents = {child: list(own) for child, *own in columns.nodes}
    depth: dict[int, int] = {}
    for i in columns.order():
        child = columns.nodes[i][0]
        depth[child] = 1 + max((depth[p] for p in parents[child]), default=-1)
    rows: list[int] = []
    todo = [child for child in reversed(parents) if not parents[child]]
    while todo:
        rows.append(todo.pop())
        todo += [child for child in reversed(parents) if parents[child][:1] == rows[-1:]]
    return {j: (float(depth[j]), -float(row)) for row, j in enumerate(rows)}


__all__ = ["structure"]
