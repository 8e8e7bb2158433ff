"""Learning of structures from counts of pairs of levels, and inference in them by elimination of variables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import xlogy

from bayesnb._util.arrays import count_pairs, require_memory, sort_by_class
from bayesnb.encoding import LevelColumns, Node, NodeColumns
from bayesnb.encoding.encoded_rows import CodedRows
from bayesnb.families import Dirichlet
from bayesnb.families.special import log_rising

# == Structure learning: counts of pairs of levels, weights of arcs, and the structures of greatest weight

_ROUNDING = 1e-9  # Relative rounding error of sums of fractional weights.


def count_level_pairs(
    columns: LevelColumns, rows: CodedRows, label: np.ndarray, weight: np.ndarray, n_classes: int
) -> np.ndarray:
    """(C, L, L) weight of the rows of each class that have both levels; the diagonal counts single levels.

    Parameters
    ----------
    columns : LevelColumns
    rows : CodedRows
        Coded cells of the columns.
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Replication count of each row.
    n_classes : int

    Raises
    ------
    ValueError
        If the counts would not fit into memory.
    """
    sizes, start = columns.sizes(), columns.start()
    n_levels = int(sizes.sum())
    widest = columns.names[int(sizes.argmax())]
    require_memory(
        n_classes * n_levels**2,
        f"Counts of the pairs of {n_levels:,} levels in {n_classes} classes",
        f"Column {widest!r} alone has {sizes.max():,} levels. Leave out such columns, group their levels, or make "
        "these columns Gaussian.",
    )
    order, bounds = sort_by_class(label, n_classes)
    code = np.ascontiguousarray(rows.codes[order].T)
    weights = weight[order]
    # Products of whole numbers below 2²⁴ are exact in float32.
    whole = (weights == np.round(weights)).all() and weights.max(initial=0) <= 256
    dtype = np.float32 if whole else np.float64

    def indicators(piece: slice) -> np.ndarray:
        """(rows, L) array of 0 and 1: whether a row of the slice `piece` has each level."""
        hot = np.empty((n_levels, len(range(*piece.indices(len(order))))), dtype)
        for column_code, first, size in zip(code, start, sizes, strict=True):
            hot[first : first + size] = column_code[piece] == np.arange(size)[:, None]
        return hot.T

    def weighted_indicators(piece: slice) -> np.ndarray:
        """`indicators` with each row multiplied by its weight."""
        return np.asarray(indicators(piece) * weights[piece, None].astype(dtype))

    first_indicators = indicators if (weights == 1).all() else weighted_indicators
    return count_pairs(first_indicators, indicators, bounds, (n_levels, n_levels))


def lay_out_pairs(columns: NodeColumns, pairs: np.ndarray) -> np.ndarray:
    """Counts (C, L') of features given one parent or none, one node's table after the other.

    `pairs` (C, L, L) are counts of pairs of levels, by `count_level_pairs`; a table with a parent may have a value for
    missing.
    """
    levels = [slice(s, s + n) for s, n in zip(columns.base.start(), columns.base.sizes(), strict=True)]
    single, counts = np.diagonal(pairs, axis1=1, axis2=2), []
    for child, *parents in columns.nodes:
        table = single[:, None, levels[child]]
        for p in parents:
            given = pairs[:, levels[p], levels[child]]
            missing = table - given.sum(axis=1, keepdims=True)
            missing[missing < _ROUNDING * table] = 0.0
            table = np.concatenate([given, missing], axis=1)[:, : columns.parent_sizes()[p]]
        counts.append(table.reshape(len(pairs), -1))
    return np.concatenate(counts, axis=1)


def mutual_information(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(F, F) conditional mutual information I(x_i; x_j | class) in nats, from the rows in which both are observed.

    Maximum likelihood estimate Σ_cab n_cab / n · log[n_cab n_c / (n_ca n_cb)]; zero without rows.

    Parameters
    ----------
    counts : (C, L, L) array
        Weight of the rows of each class with each pair of levels; the diagonal counts single levels.
    sizes : (F,) int array
        Number of levels of each feature.
    """
    membership = _membership(sizes)
    level_counts = counts @ membership  # (C, L, F): rows with a level in which the other feature is observed
    pair_counts = membership.T @ level_counts  # (C, F, F)
    joint = np.sum(membership.T @ xlogy(counts, counts) @ membership, axis=0)
    margin = np.sum(membership.T @ xlogy(level_counts, level_counts), axis=0)
    total = pair_counts.sum(axis=0)
    information = joint - margin - margin.T + np.sum(xlogy(pair_counts, pair_counts), axis=0)
    return np.asarray(np.maximum(information, 0.0) / np.where(total > 0, total, 1.0))


def class_information(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(F,) mutual information I(x_j; class) in nats, from the rows in which the feature is observed; zero without rows.

    Parameters
    ----------
    counts : (C, L, L) array
        Weight of the rows of each class with each pair of levels; the diagonal counts single levels.
    sizes : (F,) int array
        Number of levels of each feature.
    """
    membership, joint = _membership(sizes), np.diagonal(counts, axis1=1, axis2=2)  # (C, L)
    class_counts, level_counts = joint @ membership, joint.sum(axis=0)
    total = class_counts.sum(axis=0)
    information = np.sum(xlogy(joint, joint) @ membership - xlogy(class_counts, class_counts), axis=0)
    information += xlogy(total, total) - xlogy(level_counts, level_counts) @ membership
    return np.asarray(np.maximum(information, 0.0) / np.where(total > 0, total, 1.0))


def observed_pairs(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(F, F) weight of the rows in which both features are observed; the diagonal is that of single features.

    Parameters
    ----------
    counts : (C, L, L) array
        Weight of the rows of each class with each pair of levels; the diagonal counts single levels.
    sizes : (F,) int array
        Number of levels of each feature.
    """
    membership = _membership(sizes)
    return np.asarray(np.sum(membership.T @ counts @ membership, axis=0))


def log_bayes_factors(counts: np.ndarray, sizes: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(F, F) log Bayes factors of the arcs i → j: log evidence of x_j given x_i and class, less that given the class.

    Both evidences are those of the rows in which i and j are observed. The prior is Dirichlet(α_j / L_i) for each of
    the L_i values of the parent, see `share_among_parents`.

    Parameters
    ----------
    counts : (C, L, L) array
        Weight of the rows of each class with each pair of levels; the diagonal counts single levels.
    sizes : (F,) int array
        Number of levels of each feature.
    alpha : (C, L) array
        Concentration of each level given the class alone.
    """
    membership = _membership(sizes)
    total = alpha @ membership
    total = np.where(total > 0, total, 1.0)  # Features without levels have no counts either.
    n_values = np.repeat(sizes, sizes)[:, None]  # (L, 1): number of levels of the parent of each level

    def log_evidence(alpha: np.ndarray, count: np.ndarray, total: np.ndarray, total_count: np.ndarray) -> np.ndarray:
        """(C, …, F) log evidence log B(α + n) - log B(α) of the levels of each child feature."""
        return np.asarray(log_rising(alpha, count) @ membership - log_rising(total, total_count))

    parent = counts @ membership  # (C, L, F): rows with a level of the parent in which the child is observed
    child = np.swapaxes(parent, 1, 2)  # (C, F, L): rows with a level of the child in which the parent is observed
    pair_counts = membership.T @ parent  # (C, F, F)
    without_parent = log_evidence(alpha[:, None], child, total[:, None], pair_counts)
    by_value = log_evidence(alpha[:, None] / n_values, counts, total[:, None] / n_values, parent)
    return np.asarray(np.sum(membership.T @ by_value - without_parent, axis=0))


def share_among_parents(prior: Dirichlet, columns: NodeColumns) -> Dirichlet:
    """BDeu prior of each feature given its parents: concentration α divided by the number of parent configurations.

    `prior` is the prior of the features given the class alone. The total concentration is then the same whatever the
    parents. With concentration α for each value of the parents it would grow with their number: more parents would mean
    more shrinkage, and arcs between independent features would win by the shrinkage alone.

    References
    ----------
    Heckerman, Geiger & Chickering, *Learning Bayesian networks*, Machine Learning 20 (1995).
    """
    alpha = np.split(np.asarray(prior.concentration), columns.base.start()[1:], axis=1)
    n_values = [math.prod(columns.shape(node)[:-1]) for node in columns.nodes]
    tables = [np.tile(alpha[node[0]] / max(q, 1), (1, q)) for node, q in zip(columns.nodes, n_values, strict=True)]
    group = columns.groups()
    return Dirichlet(np.concatenate(tables, axis=1), group, int(group.max(initial=-1)) + 1)


def k_dependence(
    relevance: np.ndarray, dependence: np.ndarray, values: np.ndarray, k: int, most: int
) -> tuple[Node, ...]:
    """Nodes (feature, *parents), most relevant feature first, with up to k more relevant features as parents.

    Parameters
    ----------
    relevance : (F,) array
        Mutual information of each feature and the class.
    dependence : (F, F) array
        Mutual information of two features given the class. The parents of a feature are the more relevant features on
        which it depends most, in decreasing order.
    values : (F,) int array
        Number of values of each feature.
    k : int
        Greatest number of parents.
    most : int
        Greatest number of cells of a table in each class; a parent with which a table would have more is left out.

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
    """Nodes (feature, *parent) of the tree of greatest total `weight` (F, F), symmetric; arcs lead away from `root`.

    References
    ----------
    Chow & Liu, *Approximating discrete probability distributions with dependence trees*, IEEE Trans. Inf. Theory 14
    (1968).
    """
    n = len(weight)
    # SciPy finds the tree of least weight, and reads zeros as absent edges.
    cost = np.triu(weight.max(initial=0.0) - weight + 1.0, 1)
    tree = minimum_spanning_tree(cost)
    _, parent = breadth_first_order(tree, root, directed=False)
    return tuple((j,) if parent[j] < 0 else (j, int(parent[j])) for j in range(n))


def maximum_branching(weight: np.ndarray) -> tuple[Node, ...]:
    """Nodes (feature, *parent) of the directed forest of greatest total weight, `weight` (F, F) of arcs row → column.

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


def _membership(sizes: np.ndarray) -> np.ndarray:
    """(L, F) matrix of 0 and 1: whether each level belongs to each feature, given the numbers of levels (F,)."""
    return np.repeat(np.eye(len(sizes)), sizes, axis=0)


# == Exact conditional probabilities in a network, by variable elimination =========================

_MOST = 2**24
"""Greatest number of cells of a table."""
_IMPOSSIBLE = "query: the values in `given` have probability 0 under the model. Change them, or fit with alpha > 0."

Factor = tuple[tuple[Hashable, ...], np.ndarray]
"""Names of variables, and a table of probabilities with an axis for each variable."""


def conditional(factors: Sequence[Factor], asked: Sequence[Hashable], given: dict[Hashable, int]) -> np.ndarray:
    """Conditional distribution P(asked | given) in a network: an array with an axis of levels for each asked variable.

    Parameters
    ----------
    factors : sequence of Factor
        p(variable | parents) of each variable, the variable last.
    asked : sequence
        Names of the variables of the axes of the result.
    given : dict
        Level of each variable that is conditioned on.

    Raises
    ------
    ValueError
        If an intermediate table is too large, or the given levels have probability 0.
    """
    import opt_einsum

    needed = _ancestors(factors, {*asked, *given})
    relevant = _multiply_same_variables([_condition(factor, given) for factor in factors if factor[0][-1] in needed])
    number = {name: i for i, name in enumerate(dict.fromkeys(n for names, _ in relevant for n in names))}
    operands = [operand for names, table in relevant for operand in (table, [number[n] for n in names])]
    order, path = opt_einsum.contract_path(*operands, [number[n] for n in asked], optimize="auto")
    if path.largest_intermediate > _MOST:
        raise ValueError(
            f"query: summing over {len(number) - len(asked)} variables takes a table of "
            f"{path.largest_intermediate:.3g} numbers; the limit is {_MOST:,}. Query fewer, or put more into `given`."
        )
    names, joint = _eliminate(relevant, order, asked)
    joint = joint.transpose([names.index(n) for n in asked])
    return np.asarray(joint / joint.sum())


def _eliminate(factors: list[Factor], order: Sequence[tuple[int, ...]], asked: Sequence[Hashable]) -> Factor:
    """Multiply all factors in the given contraction order, summing over variables not in `asked`; up to a constant.

    Raises
    ------
    ValueError
        If the product is zero.
    """
    remaining = list(factors)
    for step in order:
        multiplied = [remaining.pop(i) for i in sorted(step, reverse=True)]
        needed = {n for names, _ in remaining for n in names} | set(asked)
        variables = list(dict.fromkeys(n for names, _ in multiplied for n in names))
        kept = tuple(n for n in variables if n in needed)
        operands = [operand for names, table in multiplied for operand in (table, [variables.index(n) for n in names])]
        table = np.einsum(*operands, [variables.index(n) for n in kept])
        if not table.max(initial=0.0) > 0:
            raise ValueError(_IMPOSSIBLE)
        remaining.append((kept, table / table.max()))
    return remaining[0]


def _ancestors(factors: Sequence[Factor], names: set[Hashable]) -> set[Hashable]:
    """Names of the given variables and of all their ancestors in the network."""
    parents = {variables[-1]: variables[:-1] for variables, _ in factors}
    ancestors: set[Hashable] = set()
    while names:
        ancestors |= names
        names = {parent for name in names for parent in parents[name]} - ancestors
    return ancestors


def _multiply_same_variables(factors: Sequence[Factor]) -> list[Factor]:
    """Multiply factors of the same variables; each product is scaled to maximum 1, to avoid underflow."""
    logs: dict[tuple[Hashable, ...], np.ndarray] = {}
    with np.errstate(divide="ignore"):
        for names, table in factors:
            logs[names] = logs.get(names, np.zeros(())) + np.log(table)
    tops = {names: table.max(initial=-np.inf) for names, table in logs.items()}
    if np.isneginf(list(tops.values())).any():
        raise ValueError(_IMPOSSIBLE)
    return [(names, np.exp(table - tops[names])) for names, table in logs.items()]


def _condition(factor: Factor, given: dict[Hashable, int]) -> Factor:
    """Condition a factor on the levels in `given`; return a factor of its other variables."""
    names, table = factor
    free = tuple(n for n in names if n not in given)
    return free, table[tuple(given.get(n, slice(None)) for n in names)]
