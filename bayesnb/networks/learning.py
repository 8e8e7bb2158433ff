"""Which feature depends on which: pairs of levels counted, arcs weighed, trees grown."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import gammaln, xlogy

from bayesnb._util.level_pair_counts import count_pairs, require_memory, sort_by_class
from bayesnb.encoding import LevelColumns, Node, NodeColumns
from bayesnb.encoding.row_blocks import CodedRows
from bayesnb.families import Dirichlet

_ROUNDING = 1e-9  # of sums of fractional weights


def count_level_pairs(
    columns: LevelColumns, rows: CodedRows, label: np.ndarray, weight: np.ndarray, n_classes: int
) -> np.ndarray:
    """(C, L, L) weight of the rows of each class in which both levels were observed; the diagonal is of one level.

    Raises
    ------
    ValueError
        If the counts would not fit into memory, saying how much they would take.
    """
    sizes, start = columns.sizes(), columns.start()
    n_levels = int(sizes.sum())
    widest = columns.names[int(sizes.argmax())]
    require_memory(
        n_classes * n_levels**2,
        f"Counts of the pairs of {n_levels:,} levels in {n_classes} classes",
        f"Column {widest!r} alone has {sizes.max():,} levels: leave such columns out, group their levels, or make them "
        "Gaussian.",
    )
    order, bounds = sort_by_class(label, n_classes)
    code = np.ascontiguousarray(np.asarray(rows.block(0, len(label), len(label)).code)[order].T)
    weights = weight[order]
    # Products of whole numbers below 2²⁴ are exact in float32.
    whole = (weights == np.round(weights)).all() and weights.max(initial=0) <= 256
    dtype = np.float32 if whole else np.float64

    def indicators(piece: slice) -> np.ndarray:
        hot = np.empty((n_levels, len(range(*piece.indices(len(order))))), dtype)
        for own, first, size in zip(code, start, sizes, strict=True):
            hot[first : first + size] = own[piece] == np.arange(size)[:, None]
        return hot.T

    def weighted(piece: slice) -> np.ndarray:
        return indicators(piece) * weights[piece, None].astype(dtype)

    plain = indicators if (weights == 1).all() else weighted
    return count_pairs(plain, indicators, bounds, (n_levels, n_levels))


def lay_out_pairs(columns: NodeColumns, pairs: np.ndarray) -> np.ndarray:
    """Return the counts of nodes with one parent or none, from (C, L, L) counts of pairs of levels."""
    levels = [slice(s, s + n) for s, n in zip(columns.base.start(), columns.base.sizes(), strict=True)]
    alone, counts = np.diagonal(pairs, axis1=1, axis2=2), []
    for child, *parents in columns.nodes:
        table = alone[:, None, levels[child]]
        for p in parents:
            given = pairs[:, levels[p], levels[child]]
            missing = table - given.sum(axis=1, keepdims=True)
            missing[missing < _ROUNDING * table] = 0.0
            table = np.concatenate([given, missing], axis=1)[:, : columns.parent_sizes()[p]]
        counts.append(table.reshape(len(pairs), -1))
    return np.concatenate(counts, axis=1)


def mutual_information(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(F, F) I(x_i; x_j | class) in nats, of the frequencies of the rows in which both are observed.

    Σ_cab n_cab / n · log[n_cab n_c / (n_ca n_cb)]: the maximum likelihood estimate. Without rows it is zero.

    Parameters
    ----------
    counts : (C, L, L) array
        As `count_level_pairs` has them.
    sizes : (F,) int array
        Number of levels of each feature.
    """
    of = _membership(sizes)
    one = counts @ of  # (C, L, F): a level, the other feature observed
    both = of.T @ one  # (C, F, F)
    joint = np.sum(of.T @ xlogy(counts, counts) @ of, axis=0)
    margin = np.sum(of.T @ xlogy(one, one), axis=0)
    total = both.sum(axis=0)
    information = joint - margin - margin.T + np.sum(xlogy(both, both), axis=0)
    return np.maximum(information, 0.0) / np.where(total > 0, total, 1.0)


def class_information(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(F,) I(x_j; class) in nats, of the frequencies of the rows in which the feature is observed; without any, zero.

    Parameters
    ----------
    counts, sizes
        As for `mutual_information`.
    """
    of, own = _membership(sizes), np.diagonal(counts, axis1=1, axis2=2)  # (C, L)
    of_class, of_level = own @ of, own.sum(axis=0)
    total = of_class.sum(axis=0)
    information = np.sum(xlogy(own, own) @ of - xlogy(of_class, of_class), axis=0)
    information += xlogy(total, total) - xlogy(of_level, of_level) @ of
    return np.maximum(information, 0.0) / np.where(total > 0, total, 1.0)


def observed_pairs(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(F, F) weight of the rows in which both features are observed; of one, on the diagonal."""
    of = _membership(sizes)
    return np.sum(of.T @ counts @ of, axis=0)


def log_bayes_factors(counts: np.ndarray, sizes: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(F, F) log evidence of x_j given x_i and the class, less that of x_j given the class, for arcs i → j.

    Both of the rows in which i and j are observed, with Dirichlet(α_j / L_i) for each of the L_i values of the parent,
    see `share_among_parents`.

    Parameters
    ----------
    counts, sizes
        As for `mutual_information`.
    alpha : (C, L) array
        Concentration of each level given the class alone.
    """
    of = _membership(sizes)
    total = alpha @ of
    total = np.where(total > 0, total, 1.0)  # of features without levels, which have no counts either
    values = np.repeat(sizes, sizes)[:, None]  # (L, 1): of the feature that a level of the parent is one of

    def log_evidence(alpha: np.ndarray, count: np.ndarray, total: np.ndarray, of_all: np.ndarray) -> np.ndarray:
        """(C, …, F) log B(α + n) - log B(α) of the levels of each child."""
        return _log_rising(alpha, count) @ of - _log_rising(total, of_all)

    parent = counts @ of  # (C, L, F): a level of the parent, the child observed
    one, both = np.swapaxes(parent, 1, 2), of.T @ parent  # (C, F, L): a level of the child, the parent observed
    alone = log_evidence(alpha[:, None], one, total[:, None], both)
    given = of.T @ log_evidence(alpha[:, None] / values, counts, total[:, None] / values, parent)
    return np.sum(given - alone, axis=0)


def share_among_parents(prior: Dirichlet, columns: NodeColumns) -> Dirichlet:
    """The prior of each feature given its parents, α / (number of values of the parents): the BDeu prior.

    `prior` is that of the features given the class alone. Its total, the number of rows that it is worth, is then the
    same whatever the parents. With α a level for each of their values it would grow with their number: more parents
    would mean more shrinkage, and arcs between independent features would win by the shrinkage alone.

    References
    ----------
    Heckerman, Geiger & Chickering, *Learning Bayesian networks*, Machine Learning 20 (1995).
    """
    own = np.split(np.asarray(prior.concentration), columns.base.start()[1:], axis=1)
    values = [math.prod(columns.shape(node)[:-1]) for node in columns.nodes]
    tables = [np.tile(own[node[0]] / max(q, 1), (1, q)) for node, q in zip(columns.nodes, values, strict=True)]
    group = columns.groups()
    return Dirichlet(np.concatenate(tables, axis=1), group, int(group.max(initial=-1)) + 1)


def k_dependence(
    relevance: np.ndarray, dependence: np.ndarray, values: np.ndarray, k: int, most: int
) -> tuple[Node, ...]:
    """Nodes of the features, the most relevant first, each given up to k of those before it.

    Parameters
    ----------
    relevance : (F,) array
        What each feature says of the class.
    dependence : (F, F) array
        What two features say of each other given the class; the parents of one are those before it that say most of
        it, which comes first.
    values : (F,) int array
        How many values each feature has; a parent is passed over with which the table would have more than `most`
        cells a class.
    k, most : int

    References
    ----------
    Sahami, *Learning limited dependence Bayesian classifiers*, KDD 1996.
    """
    order = np.argsort(-relevance, kind="stable")
    nodes = []
    for rank, j in enumerate(order.tolist()):
        parents: list[int] = []
        before = order[:rank]
        for p in before[np.argsort(-dependence[j, before], kind="stable")].tolist():
            if len(parents) < k and math.prod(values[[j, *parents, p]].tolist()) <= most:
                parents.append(p)
        nodes.append((j, *parents))
    return tuple(nodes)


def maximum_spanning_tree(weight: np.ndarray, root: int) -> tuple[Node, ...]:
    """Nodes of the tree of greatest total weight, arcs away from `root`; symmetric weights (F, F).

    References
    ----------
    Chow & Liu, *Approximating discrete probability distributions with dependence trees*, IEEE Trans. Inf. Theory 14
    (1968).
    """
    n = len(weight)
    # SciPy takes zeros for absent edges, and its tree is the least.
    cost = np.triu(weight.max(initial=0.0) - weight + 1.0, 1)
    tree = minimum_spanning_tree(cost)
    _, before = breadth_first_order(tree, root, directed=False)
    return tuple((j,) if before[j] < 0 else (j, int(before[j])) for j in range(n))


def maximum_branching(weight: np.ndarray) -> tuple[Node, ...]:
    """Nodes of the forest of greatest total weight among all, with weights (F, F) of arcs row → column.

    References
    ----------
    Edmonds, *Optimum branchings*, J. Res. Natl. Bur. Stand. 71B (1967).
    """
    import networkx as nx

    arcs = [(int(i), int(j), float(weight[i, j])) for i, j in np.argwhere(weight > 0) if i != j]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(weight)))
    graph.add_weighted_edges_from(arcs)
    parent = {j: i for i, j in nx.maximum_branching(graph).edges}
    return tuple((j, parent[j]) if j in parent else (j,) for j in range(len(weight)))


def _log_rising(alpha: np.ndarray, count: np.ndarray) -> np.ndarray:
    return gammaln(alpha + count) - gammaln(alpha)


def _membership(sizes: np.ndarray) -> np.ndarray:
    """(L, F) whether a level is of a feature."""
    return np.repeat(np.eye(len(sizes)), sizes, axis=0)
