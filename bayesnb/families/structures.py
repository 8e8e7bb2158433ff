"""Networks of levels: sums over missing cells, averages over structures, and the average over all trees.

With the parameters integrated out, or plugged in, a row's probability is a product of one table for each feature,
p(x_j | its parents, class). Missing cells are summed out of that product by variable elimination [1]_, which in a tree
is the upward pass. Observed cells are indicators, so that one order of elimination serves all rows.

Sums over all spanning trees of a graph, and draws of trees, are in logarithms, so that weights may span any range. A
vertex k is taken out of the graph by giving each two of its neighbours the weight w_ik w_jk / Σ_m w_km more; that
takes the factor Σ_m w_km out of the sum over trees Π w (star and mesh, the elimination of the graph's Laplacian) [2]_.
There is not a subtraction, so that nothing cancels, and each step can be undone at random, which draws a tree [3]_.

References
----------
.. [1] Koller & Friedman, *Probabilistic Graphical Models* (2009), ch. 9; for draws of eliminated variables, ch. 12.
.. [2] Meilă & Jaakkola, *Tractable Bayesian learning of tree belief networks*, Stat. Comput. 16 (2006).
.. [3] Colbourn, Day & Nel, *Unranking and ranking spanning trees of a graph*, J. Algorithms 10 (1989).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families.arrays import (
    Array,
    add_at,
    gather,
    is_host,
    kernel,
    log_segment_sum,
    log_sigmoid,
    map_leading_axis,
    map_parts,
    pytree,
    scan,
    segment_max,
    segment_sum,
    set_at,
    sigmoid,
    static,
    xp,
)
from bayesnb.families.dirichlet import Dirichlet, n_free_levels, simulate_levels
from bayesnb.families.protocol import Family, Likelihood, ReadyLikelihood, Variates, lacking, no_nuts
from bayesnb.families.rows import (
    CountRows,
    LevelCounts,
    Multinomial,
    OneHot,
    Ratio,
    Term,
    as_rows,
    rows_of_levels,
    with_counts,
)
from bayesnb.families.special import log_rising

# == Families of levels whose structure is unknown: averages over cuts, contexts or trees, given the counts


class AveragedStructures(Family):
    """Bayesian average over structures (cuts, contexts or trees), stored as prior concentrations and counts alone.

    Fields are `concentration` (C, L), of the prior, `count` (C, L), 0 for a prior, and `group` (L,) of each level.
    """

    statistics: ClassVar[type] = LevelCounts
    likelihood: ClassVar[type] = Multinomial
    least: ClassVar[dict[str, float]] = {"concentration": 0.0}

    concentration: Array
    count: Array
    group: np.ndarray
    num_groups: Any

    def update(self, statistics: LevelCounts) -> Self:
        """Posterior with the counts of the rows added; probabilities of structures are functions of the counts."""
        return self.with_fields(self.concentration, self.count + statistics.count)

    def scale(self, factor: float | Array) -> Self:
        """Prior with α and n multiplied by `factor`; prior odds of structures stay."""
        return self.with_fields(self.concentration * factor, self.count * factor)

    def log_base(self, x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row."""
        return self.rows(x).log_base()

    def with_fields(self: Any, concentration: Array, count: Array) -> Any:
        """Copy with other concentrations and counts, (C, L) each."""
        return replace(self, concentration=concentration, count=count)

    def posterior_concentration(self) -> jax.Array:
        """(C, L) α + n of each level."""
        return xp.asarray(self.concentration) + self.count

    def rows(self, x: object) -> CountRows:
        """Rows x as `CountRows`; an (N, G) array is read as codes of levels, an (N, L) array as counts."""
        return rows_of_levels(x, self.group, self.num_groups)


class AveragedTables(AveragedStructures):
    """Average over structures whose predictive is one table of levels: a row has one level in each group."""

    def predictive(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood with parameters integrated out, equal to `mean` because a row has one level per feature.

        With `multiplicity` (C,) each row is first added to each class's data that many times.
        """
        return self.mean(multiplicity)

    def improper(self) -> Dirichlet:
        """Improper Dirichlet prior with α = 0 of the finest structure, full tables."""
        return Dirichlet(xp.zeros(xp.shape(self.concentration)), self.group, self.num_groups)

    def n_free(self) -> int:
        """Number of free parameters of the finest structure, with a probability for every level in full tables."""
        return n_free_levels(self.concentration, self.group)

    def pseudo_count(self) -> dict[str, jax.Array]:
        """NaN for each level, {"theta": (C, L)}: the posterior mean is not linear in the counts."""
        return {"theta": xp.full(xp.shape(self.concentration), xp.nan)}

    def simulate(self, likelihood: Multinomial, rng: np.random.Generator, total: int | np.ndarray = 1) -> np.ndarray:
        """(S, L) of 0 and 1: one level drawn from each group, for each of S rows of level probabilities.

        `total` is not used.
        """
        return simulate_levels(np.asarray(likelihood.log_theta), self.group, rng)


# == Rows of a network with missing cells, scored by sums over the values that these cells may have

MISSING = -1
BARREN = -2
"""Code of a missing cell without an observed descendant: the factors behind it sum to one, whatever it is."""

_MOST_CELLS = 2**20

Scope = tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """Tables p(x_child | x_parents) of a Bayesian network, and the order in which features are summed out.

    Parameters
    ----------
    scopes : tuple of tuples
        Features of each table: parents, outermost first, then the child.
    at : tuple of int
        Position of each table among the tables of the rows.
    start : tuple of int
        First position of each table on the axis of all levels; -1 for a uniform one, as some parent has no level.
    sizes : tuple of int
        Number of levels of each feature.
    order : tuple of int
        Features in the order in which they are summed out.
    """

    scopes: tuple[Scope, ...]
    at: tuple[int, ...]
    start: tuple[int, ...]
    sizes: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def from_nodes(cls, nodes: Sequence[Scope], sizes: Sequence[int]) -> Network:
        """Network of `nodes` (child, *parents) for features with `sizes` levels; summed out smallest tables first."""
        scopes, at, starts, start = [], [], [], 0
        for i, (child, *parents) in enumerate(nodes):
            known = all(sizes[j] for j in parents)
            if sizes[child]:
                scopes.append((*parents, child) if known else (child,))
                at.append(i)
                starts.append(start if known else -1)
            start += math.prod(sizes[j] for j in nodes[i])
        return cls(tuple(scopes), tuple(at), tuple(starts), tuple(sizes), _elimination_order(scopes, sizes))

    def cliques(self) -> Iterator[Scope]:
        """Yield, per eliminated feature v in order, the features of the product that is summed over v; v last."""
        scopes = [set(scope) for scope in self.scopes]
        for v in self.order:
            joined = set().union(*(s for s in scopes if v in s)) - {v}
            scopes = [s for s in scopes if v not in s] + [joined]
            yield (*sorted(joined), v)

    def room(self) -> int:
        """Number of entries of all intermediate tables of the elimination, for one row and one class."""
        return sum(math.prod(self.sizes[j] for j in clique) for clique in self.cliques())

    def split(self, flat: jax.Array, unknown: float) -> list[jax.Array]:
        """Tables (C, *numbers of levels) of the scopes, cut from flat tables (C, L); uniform ones sum to `unknown`."""
        shapes = [tuple(self.sizes[j] for j in scope) for scope in self.scopes]
        return [
            xp.broadcast_to(unknown / shape[-1], (len(flat), *shape))
            if at < 0
            else flat[:, at : at + math.prod(shape)].reshape(len(flat), *shape)
            for at, shape in zip(self.start, shapes, strict=True)
        ]


@pytree
class NetworkCells(CountRows):
    """Rows of a Bayesian network, some with missing cells that are summed out.

    A cell that is observed together with all its parents scores by itself, and counts: `observed`. For the rows `which`
    the other tables are added: log Σ over the missing cells of their product.

    Parameters
    ----------
    observed : OneHot
        Codes of the tables; -1 where the child or a parent is missing.
    which : (M,) int array
        Rows to be summed over; padded by the number of rows.
    code : (M, F) int array
        Cells of these rows: level, `MISSING` or `BARREN`.
    network : Network
    """

    observed: OneHot
    which: Array
    code: Array
    network: Network = static()

    def layout(self, table: Array) -> tuple[Array, jax.Array]:
        """Return the two tables that `dot` reads: log probabilities (C, L) in the layout of `OneHot`, and their exp.

        The first is for observed cells, the second (C, L) for sums over missing cells.
        """
        return self.observed.layout(table), xp.exp(table)

    def dot(self, tables: tuple[Array, jax.Array]) -> jax.Array:
        """(N, C) log p(row | class): table entries of observed cells, plus log sums over the missing cells."""
        of_observed, theta = tables
        score = self.observed.dot(of_observed)
        of_missing, of_seen = self._log_sums(theta), _rows_of(score, self.which, 0.0)
        impossible = xp.isneginf(of_missing) | xp.isneginf(of_seen)
        summed = xp.where(impossible, -xp.inf, of_missing + of_seen)
        return set_at(score, self.which, summed)

    def contrast_layout(self, ratio: Ratio) -> tuple[Array, jax.Array]:
        """Return contrasts of observed cells, and probabilities of the other cells, in the form that `dot` reads."""
        return self.observed.layout(ratio.single()), _unseen_levels(ratio)

    def contrast(self, term: Term, tables: tuple[Array, jax.Array]) -> jax.Array:
        """(N, C) log p(row | class), given the tables that `contrast_layout` returns; `term` is not used."""
        return self.dot(tables)

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) terms of log p(row | class), one per table, given log probabilities (C, L)."""
        return self._terms(table, xp.exp(table))

    def contrast_terms(self, ratio: Ratio) -> jax.Array:
        """(N, C, G) terms of log p(row | class), one per table, given the parameters of a ratio."""
        return self._terms(ratio.single(), _unseen_levels(ratio))

    def _terms(self, table: Array, theta: jax.Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) terms of log p(row | class): `table` (C, L) entries of observed cells, and log sums of `theta`.

        The log of a sum is divided equally among the tables that are summed over.
        """
        cells, tables = self._rows()
        at, child = (np.array(v, np.int32) for v in (self.network.at, [s[-1] for s in self.network.scopes]))
        summed = (tables[:, at] < 0) & (cells[:, child] != BARREN)
        open_ = set_at(xp.zeros(tables.shape[::-1], bool), at, summed.T).T
        share = self._log_sums(theta) / xp.maximum(xp.sum(open_, axis=1), 1)[:, None]
        shared = xp.where(open_[:, None], share[..., None], 0.0)
        return add_at(self.observed.dot_terms(table), self.which, shared)

    def _log_sums(self, theta: jax.Array) -> Float[jax.Array, "M C"]:
        """(M, C) log sums over the missing cells of the rows `which`, given probabilities `theta` (C, L)."""
        return self._map_rows(lambda row: _log_sum(self.network, theta, *row), theta.shape[0])

    def _map_rows(
        self, f: Callable[[tuple[jax.Array, jax.Array]], jax.Array], n_classes: int
    ) -> Float[jax.Array, "M ..."]:
        """(M, …) results of f for (cells, table codes) of each row `which`, in batches that fit into memory."""
        rows, padded = self._rows(), len(self.which)
        if is_host(rows):  # rows that are padding take as long as others
            some = min(padded, max(1, int(np.sum(np.asarray(self.which) < len(self.observed.code)))))
            results = map_leading_axis(f, jax.tree.map(lambda v: v[:some], rows))
            return xp.pad(results, [(0, padded - some), *[(0, 0)] * (results.ndim - 1)])
        most = max(1, _MOST_CELLS // max(1, n_classes * self.network.room()))
        return map_leading_axis(f, rows, batch_size=most)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> jax.Array:
        """`count` (C, L) with the cells observed together with all parents added, by class indices and weights (N,)."""
        return self.observed.weighted_counts(count, label, weight)

    def log_base(self) -> jax.Array:
        """(N,) zeros: log multinomial coefficients of categorical rows."""
        return self.observed.log_base()

    def draw_with_row(self, family: Any, variates: Variates, n: int, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ), θ given the data and `multiplicity` copies of the row."""
        # θ | data, row is a mixture over what the missing cells are: they are drawn given the observed ones, from the
        # network at the posterior means, and the tables are updated with the completed row.
        observed = self.observed.draw_with_row(family, variates, n, multiplicity)
        width = len(self.network.sizes)
        row_gamma = variates.log_gamma(xp.full(width, multiplicity), n)
        uniform = xp.exp(-xp.exp(variates.log_gamma(xp.ones(width), n)))
        log_gamma, mean = variates.log_gamma(family.concentration, n), family.mean().theta
        log_total = family.log_total(log_gamma)

        def of_row(row: tuple[jax.Array, jax.Array]) -> jax.Array:
            """(n, C) draws of the log sum over the missing cells of one row."""
            given = list(_eliminate(self.network, mean, *row))

            def of_draw(draw: tuple[jax.Array, ...]) -> jax.Array:
                """(C,) log sum over the missing cells for one draw of the variates and of the completed row."""
                log_gamma, log_total, row_gamma, uniform = draw
                cells = _draw_levels(self.network, [clique for clique, *_ in given], uniform)
                theta = xp.exp(log_gamma - log_total)
                tables = _tables_with_cells(self.network, theta, log_total, row_gamma, cells)
                return _log_sum(self.network, tables, *row)

            return map_leading_axis(of_draw, (log_gamma, log_total, row_gamma, uniform))

        log_sums = self._map_rows(of_row, mean.shape[0])
        return add_at(observed.swapaxes(0, 1), self.which, log_sums).swapaxes(0, 1)

    def _rows(self) -> tuple[jax.Array, jax.Array]:
        """Cells (M, F), and codes of the tables (M, G), of the rows with cells to be summed out."""
        code = xp.asarray(self.observed.code)
        return xp.asarray(self.code), _rows_of(code, self.which, MISSING)


def _rows_of(values: Array, which: Array, fill: float) -> jax.Array:
    """Rows `which` of `values`; `fill` for those past the end."""
    return gather(xp.concatenate([values, xp.full((1, *values.shape[1:]), fill, values.dtype)]), which)


def _unseen_levels(ratio: Ratio) -> jax.Array:
    """(C, L) predictive probabilities of levels for rows that are not among the data.

    Raise ValueError for functions, such as cumulants, that are not logarithms of probabilities.
    """
    if (unseen := ratio.f.unseen) is None:
        raise ValueError(
            "Moments of rows with a missing cell that is summed out have no closed form. Use method='draws'."
        )
    return xp.exp(unseen(xp.asarray(ratio.concentration).T, xp.asarray(ratio.total)[:, ratio.group].T).T)


def _elimination_order(scopes: Sequence[Scope], sizes: Sequence[int]) -> tuple[int, ...]:
    """Elimination order of the features by the greedy rule: least intermediate table first."""
    neighbours = {j: {k for scope in scopes if j in scope for k in scope} - {j} for j in {j for s in scopes for j in s}}
    order = []
    while neighbours:
        v = min(neighbours, key=lambda j: (math.prod(sizes[k] for k in neighbours[j]), j))
        around = neighbours.pop(v)
        order.append(v)
        for j in around:
            neighbours[j] = (neighbours[j] | around) - {j, v}
    return tuple(order)


def _log_sum(
    network: Network, theta: jax.Array | list[jax.Array], code: jax.Array, observed: jax.Array
) -> Float[jax.Array, "C"]:
    """(C,) log Σ, over the missing cells of one row, of the product of the tables that are not observed."""
    return sum((log_scale for _, log_scale in _eliminate(network, theta, code, observed)), xp.zeros(()))


def _eliminate(
    network: Network, theta: jax.Array | list[jax.Array], code: jax.Array, observed: jax.Array
) -> Iterator[tuple[tuple[Scope, jax.Array], jax.Array]]:
    """Yield, per eliminated feature: (clique, product (C, *clique) before its sum), and log scale (C,) of the sum.

    `theta` is (C, L), or one table for each scope. The log scales add up to the log of the total sum.
    """
    factors = []
    tables = theta if isinstance(theta, list) else network.split(theta, 1.0)
    for i, scope, table in zip(network.at, network.scopes, tables, strict=True):
        table = xp.where(code[scope[-1]] == BARREN, 1.0 / network.sizes[scope[-1]], table)
        factors.append((scope, xp.where(observed[i] >= 0, 1.0, table)))
    for clique in network.cliques():
        *rest, v = clique
        seen = (code[v] < 0) | (xp.arange(network.sizes[v]) == code[v])
        product = xp.where(seen, 1.0, 0.0).reshape(1, *[1] * len(rest), -1)
        for scope, factor in factors:
            if v in scope:
                factor = _align_axes(factor, scope, clique)
                product = xp.where((product == 0) | (factor == 0), 0.0, product * factor)  # 0 · NaN is 0 here
        message = xp.sum(product, axis=-1)
        factors = [(s, f) for s, f in factors if v not in s]
        if not rest:
            yield (clique, product), xp.log(message)
            continue
        top = xp.max(xp.where(xp.isnan(message), 0.0, message), tuple(range(1, message.ndim)), keepdims=True)
        scale = xp.where(top == 0, 1.0, top)
        factors.append((tuple(rest), message / scale))
        yield (clique, product), xp.log(scale.reshape(-1))


def _align_axes(factor: jax.Array, scope: Scope, clique: Scope) -> jax.Array:
    """Broadcastable copy of `factor` (C, *scope) with one axis per feature of `clique`, length 1 where absent."""
    order = [scope.index(j) for j in clique if j in scope]
    shape = [factor.shape[1 + scope.index(j)] if j in scope else 1 for j in clique]
    return xp.transpose(factor, (0, *(1 + k for k in order))).reshape(factor.shape[0], *shape)


def _draw_levels(network: Network, cliques: list[tuple[Scope, jax.Array]], uniform: jax.Array) -> dict[int, jax.Array]:
    """Draw a row's levels (C,) by feature, backwards through the products of `_eliminate`; observed levels stay."""
    levels: dict[int, jax.Array] = {}
    for (*rest, v), product in reversed(cliques):
        each = xp.arange(product.shape[0])
        full = xp.broadcast_to(product, (product.shape[0], *(network.sizes[j] for j in rest), network.sizes[v]))
        below = xp.cumsum(gather(full, (each, *(levels[j] for j in rest))), axis=-1)
        levels[v] = xp.sum(uniform[v] * below[:, -1:] >= below[:, :-1], axis=-1)
    return levels


def _tables_with_cells(
    network: Network, theta: jax.Array, log_total: jax.Array, row_gamma: jax.Array, cells: dict[int, jax.Array]
) -> list[jax.Array]:
    """Tables of θ after one more count at the completed cells, whose Gamma(1) variates are `row_gamma` (F,)."""
    counted = []
    tables = network.split(theta, 1.0), network.split(log_total, xp.inf)
    for scope, table, log_mass in zip(network.scopes, *tables, strict=True):
        *parents, child = (_align_axes(cells[j][:, None] == xp.arange(network.sizes[j]), (j,), scope) for j in scope)
        chosen = math.prod(parents, start=xp.ones((), bool))
        share = sigmoid(row_gamma[scope[-1]] - log_mass)
        counted.append(xp.where(chosen, (1.0 - share) * table + share * child, table))
    return counted


# == Sums over all spanning trees of a graph, and draws of trees, in logarithms, so that weights may span any range

NEVER = -1e300
_AT_ONCE = 8


def pair_index(n: int) -> Int[np.ndarray, "n n"]:
    """(n, n) index of each pair of vertices in the order (0, 1), (0, 2), …, (n - 2, n - 1); 0 on the diagonal."""
    index = np.zeros((n, n), np.int32)
    index[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
    return index + index.T


def log_sum(log_weight: Float[Array, "n n *B"]) -> Float[jax.Array, "*B"]:
    """Log Σ over all spanning trees of the product of edge weights, given symmetric log weights (n, n, *batch)."""

    def without(state: tuple[jax.Array, jax.Array], k: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        """Eliminate vertex k from the weights, and add the log of its factor Σ_m w_km to the total."""
        w, factor, _ = eliminate(state[0], k)
        return (w, state[1] + factor), None

    w, total = xp.asarray(log_weight), xp.zeros(xp.shape(log_weight)[2:])
    # Of the vertices that are left some are taken out at once, as each size is compiled anew.
    for size in range(len(w), 1, -_AT_ONCE):
        vertices = xp.arange(size - 1, max(0, size - 1 - _AT_ONCE), -1)
        (w, total), _ = scan(without, (w[:size, :size], total), vertices)
    return total


def edge_probability(log_weight: Float[Array, "n n"]) -> Float[jax.Array, "n n"]:
    """(n, n) probability of each edge in a random spanning tree with probability ∝ Π w, given symmetric log weights.

    These are the derivatives of `log_sum` by the log weights.
    """
    n = len(xp.asarray(log_weight))

    def put_back(probability: jax.Array, step: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        """Insert vertex k into the graph of the vertices below k: an edge there may stand for the way through k."""
        k, w, _, factor, row = step
        # Rounded as in `eliminate`, so that small probabilities keep their digits.
        excess = row[:, None] + (row - factor) - w
        through, direct = probability * sigmoid(excess), probability * sigmoid(-excess)
        more = xp.sum(through, axis=1)
        of_vertex = xp.maximum(more + xp.exp(row - factor) * (1.0 - 0.5 * xp.sum(more)), 0.0)  # rounding may be below 0
        is_k = xp.arange(n) == k
        return xp.where(is_k, of_vertex[:, None], xp.where(is_k[:, None], of_vertex, direct)), None

    return scan(put_back, xp.zeros((n, n)), _eliminations(log_weight))[0]


def eliminate(w: jax.Array, k: int | jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Eliminate vertex k: log weights (n, n, …) of vertices below k, log Σ_m w_km, log w_km (`NEVER` from k on)."""
    below = (xp.arange(len(w)) < k).reshape(-1, *[1] * (w.ndim - 2))
    row = xp.where(below, w[k], NEVER)
    top = xp.max(row, axis=0)
    factor = top + xp.log(xp.sum(xp.exp(row - top), axis=0))
    mesh = row[:, None] + (row - factor)[None]
    return xp.maximum(w, mesh) + xp.log1p(xp.exp(-xp.abs(w - mesh))), factor, row


def _eliminations(log_weight: Float[Array, "n n"]) -> tuple[jax.Array, ...]:
    """Vertices k = 1 … n - 1, the log weights before each is eliminated, and what `eliminate` returns."""

    def take_out(w: jax.Array, k: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        """Eliminate vertex k; return the remaining weights, and what is needed to put k back."""
        after, factor, row = eliminate(w, k)
        return after, (k, w, after, factor, row)

    w = xp.asarray(log_weight)
    return scan(take_out, w, xp.arange(1, len(w)), reverse=True)[1]


def draw(log_weight: Float[Array, "n n"], log_uniform: Array, gumbel: Array) -> Int[jax.Array, "n"]:
    """(n,) parent of each vertex in a random spanning tree with probability ∝ Π w; the root, vertex n - 1, has itself.

    Parameters
    ----------
    log_weight : (n, n) array
        Logarithms of the weights of the edges.
    log_uniform, gumbel : (n, n) arrays
        Logarithms of uniform variates, and standard Gumbel variates: one row for each step, one column for each vertex.
    """
    n = len(xp.asarray(log_weight))
    vertex = xp.arange(n)

    def put_back(parent: jax.Array, step: tuple[Array, ...]) -> tuple[jax.Array, None]:
        """Insert vertex k into the random tree of the vertices below k, given by `parent` (n,)."""
        k, _, after, factor, row, log_u, noise = step
        # With the share of k in its weight an edge stands for the way through k, and is not an edge of its own.
        through = (parent != vertex) & (log_u < row + row[parent] - factor - after[vertex, parent])
        parent = xp.where(through, vertex, parent)
        above = _ancestors(parent)
        tree = xp.argmax(above & (parent == vertex), axis=1)
        score = xp.where(vertex < k, row + noise, -xp.inf)
        chosen = (score == segment_max(score, tree, n)[tree]) & (vertex < k)
        # Each tree hangs from k by the vertex that is chosen in it: what leads there from its root is turned round.
        turned = xp.any(above & chosen[:, None], axis=0) & (parent != vertex)
        parent = set_at(parent, xp.where(turned, parent, n), vertex)
        return xp.where(chosen, k, parent), None

    return scan(put_back, vertex, (*_eliminations(log_weight), log_uniform[1:], gumbel[1:]))[0]


def _ancestors(parent: jax.Array) -> jax.Array:
    """(n, n) of bool: whether the second vertex is the first or one of its ancestors."""
    n = len(parent)
    reach = xp.eye(n) + (parent[:, None] == xp.arange(n))
    for _ in range(math.ceil(math.log2(max(n, 2)))):
        reach = xp.minimum(reach @ reach, 1.0)
    return reach > 0


# == Features that depend on each other along the arcs of an unknown tree: averages over all trees =

_ROOM = 2**20
Noise = tuple[jax.Array, jax.Array, jax.Array]
"""Log uniforms and Gumbels (F, F), and log uniforms (F,), of which a random tree is made; of n with a leading axis."""


@pytree
class TreeAveraged(AveragedStructures):
    r"""Levels of features that depend on each other along the arcs of an unknown tree: average over all trees.

    All trees are equally probable, and are shared by the classes; each arc of a tree is real with probability ½, and
    else void. The levels of a feature are Dirichlet(S/L_u) in each class, those of a pair Dirichlet(S/(L_u L_v)), which
    agree on the features, so that the evidence of a tree is a product over its arcs,

        p(D) = Π_u E_u · Σ_T Π_{uv ∈ T} W_uv / F^(F - 2),    W_uv = ½ + ½ B_uv,    B_uv = Π_c E_uv / (E_u E_v),

    and the sum over all trees is a determinant. A cell counts for an arc where both features are observed; in a row
    where one is missing the arc says nothing.

    Parameters
    ----------
    concentration : (C, K) array
        S/L_u of the levels of each feature, one feature after the other, then S/(L_u L_v) of those of each pair.
    count : (C, K) array
        Rows with each; 0 for a prior.
    group : (K,) int array
        Number of the feature, or of the pair: pairs are numbered behind the features.
    levels : pair of (K,) int arrays
        Level of the first and of the second feature of a pair; for a feature its own level, twice.
    n_features : int

    References
    ----------
    Meilă & Jaakkola, *Tractable Bayesian learning of tree belief networks*, Stat. Comput. 16 (2006). Cerquides & López
    de Mántaras, *TAN classifiers based on decomposable distributions*, Machine Learning 59 (2005).
    """

    nonnegative: ClassVar[bool] = True
    classes_share_parameters: ClassVar[bool] = True
    tunable: ClassVar[dict[str, str]] = {"alpha": "concentration"}
    mean = mode = improper = variance = pseudo_count = lacking(
        "The model is an average over trees with different parameters, so that there are no tables of posterior means. "
        "Use posterior_draws for trees with their parameters, or TAN for the tables of one tree."
    )
    simulate = lacking("Rows of an average over trees cannot be simulated. Use TAN, which simulates rows of one tree.")
    program = no_nuts("The tree")
    log_odds_of_terms = lacking(
        "The moments of the log odds have no closed form under an average over trees. Use predict_interval or "
        "decompose_uncertainty, which compute from draws."
    )

    concentration: Array
    count: Array
    group: np.ndarray = static()
    levels: tuple[np.ndarray, np.ndarray] = static()
    n_features: int = static()

    @classmethod
    def from_sizes(cls, sizes: Sequence[int], n_classes: int, total: float) -> Self:
        """Prior of F features with `sizes` (F,) levels, the same in all classes.

        The concentrations of the levels of each feature, and of each pair, are equal and sum to `total`.
        """
        n, size = len(sizes), np.asarray(sizes)
        levels = [(np.arange(size), np.arange(size)) for size in sizes]
        pairs = zip(*np.triu_indices(n, 1), strict=True)
        levels += [np.divmod(np.arange(size[u] * size[v]), max(size[v], 1)) for u, v in pairs]
        group = np.repeat(np.arange(len(levels)), [len(first) for first, _ in levels])
        alpha = np.concatenate([np.full(len(first), total / max(len(first), 1)) for first, _ in levels])
        first, second = (np.concatenate(part).astype(np.int32) for part in zip(*levels, strict=True))
        alpha = np.tile(alpha, (n_classes, 1))
        return cls(alpha, np.zeros(alpha.shape), group.astype(np.int32), (first, second), n)

    @property
    def num_groups(self) -> int:
        """Number of features plus number of pairs of features."""
        return self.n_features * (self.n_features + 1) // 2

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Prior with concentrations multiplied by values["alpha"], 1 by default."""
        return self.with_fields(self.concentration * values.get("alpha", 1.0), self.count)

    def groups_refusal(self) -> str:
        """Reason why groups of rows have no tables with a common distribution."""
        return "the tree is not known, and all classes share it. Use TAN(), which learns one tree."

    def proper(self) -> Bool[jax.Array, "*C K"]:
        """(C, K) of bool: whether the concentration is positive."""
        return xp.asarray(self.concentration) > 0

    def n_free(self) -> int:
        """Number of free parameters of the model without arcs, naive Bayes."""
        n_classes = np.shape(self.concentration)[0]
        groups = self.group[self.group < self.n_features]
        return int(n_classes * (len(groups) - len(np.unique(groups))))

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "1 1"]:
        """(1, 1) log marginal likelihood of the counted levels, averaged over all trees."""
        log_evidence = self.update(statistics)._log_partition() - self._log_partition()
        return xp.where(xp.all(self.proper()), log_evidence, -xp.inf).reshape(1, 1)

    def arc_probability(self) -> Float[jax.Array, "P"]:
        """(P,) posterior probability that each pair (0, 1), (0, 2), …, (F - 2, F - 1) is joined by a real arc."""
        log_bayes = self._log_bayes()
        if self.n_features < 2:
            return log_bayes
        in_tree = edge_probability(log_arc_weight(log_bayes)[pair_index(self.n_features)])
        return in_tree[np.triu_indices(self.n_features, 1)] * sigmoid(log_bayes)

    def predictive(self, multiplicity: Array | None = None) -> TreePredictive:
        """Predictive likelihood averaged over trees and parameters, each row added `multiplicity` (C,) times."""
        before = xp.zeros(()) if multiplicity is None else xp.asarray(multiplicity)[:, None]
        level, _, _, total = (with_counts(*margin, before) for margin in self._margins())
        alone = xp.log(level / total[:, self._positions()[2]])
        gain = self._log_gain(before)
        now = xp.where(self._is_pair(), self._log_gain(before + 1.0) - gain, alone)
        known = None if multiplicity is None else xp.where(self._is_pair(), gain, 0.0)
        return TreePredictive(now, known, self._log_bayes(), self.n_features)

    def pad(self, extra: int) -> Self:
        """Copy with `extra` unused levels appended, in a group to which no row refers."""
        wide, tail = ((0, 0), (0, extra)), (0, extra)
        return type(self)(
            np.pad(self.concentration, wide, constant_values=1.0),
            np.pad(self.count, wide),
            np.pad(self.group, tail, constant_values=self.num_groups),
            (np.pad(self.levels[0], tail), np.pad(self.levels[1], tail)),
            self.n_features,
        )

    def draws_refusal(self) -> str | None:
        """Reason why parameter draws would contradict the predictive if cells were missing; None: they agree.

        Tables of pairs then do not agree with those of their features.
        """
        group, size = self.group, self.num_groups
        total = np.stack([np.bincount(group, count, size)[:size] for count in np.asarray(self.count)])
        alone, pairs = np.split(total, [self.n_features], axis=1)
        ends = np.triu_indices(self.n_features, 1)
        if all(np.allclose(pairs, alone[:, end], rtol=1e-9) for end in ends):
            return None
        return (
            "cells were missing in the counted rows, so that the tables of pairs and of their features do not agree: "
            "the mean over parameter draws would differ from predict_proba. Give missing cells a level of their own, "
            "or drop the rows with missing cells."
        )

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """n draws (n, C, K): log θ of each feature, and the log factors of the real arcs of a random tree."""
        noise = self._tree_variates(variates, n)
        log_gamma = variates.log_gamma(self.posterior_concentration(), n, attrgetter("count"))
        return Multinomial(_draw_tables(self, noise, log_gamma))

    def draw_trees(self, variates: Variates, n: int) -> Int[jax.Array, "n F"]:
        """(n, F) posterior draws of the parent of each feature; -1 at the root, and where the arc is void."""
        log_bayes = self._log_bayes()

        def draw_parents(noise: Noise) -> jax.Array:
            """(F,) parents of one random tree, -1 at the root and where the arc is void."""
            parent, real = self._draw_tree(log_bayes, noise)
            return xp.where(real, parent, -1)

        return map_leading_axis(draw_parents, self._tree_variates(variates, n))

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ, tree), given the data and the row in class `counted_in`.

        `counted_in` (n, N, C) is true for the class in which the row is counted; None: the row is counted in no class.
        """
        rows = self.rows(x)
        if counted_in is None:
            return rows.dot_each(self.draw(variates, n).log_theta)
        n_classes, n_groups = len(xp.asarray(self.concentration)), self.num_groups
        noise, log_gamma = self._tree_variates(variates, n), variates.log_gamma(self.posterior_concentration(), n)
        extra = variates.log_gamma(xp.ones(n_groups), n)
        gain = xp.where(self._is_pair(), self._log_gain(1.0), 0.0)
        log_bayes = self._log_bayes()
        each = xp.eye(n_classes + 1, n_classes)  # the last one: the row is in none

        seen = rows.dot_terms(xp.ones((1, gain.shape[1])))[:, 0] > 0
        gains = xp.concatenate([rows.dot_terms(gain), xp.zeros((len(seen), 1, n_groups))], axis=1)

        def draw_rows(draw: tuple[Noise, jax.Array, jax.Array, Array]) -> jax.Array:
            """(N, C) log likelihoods of all rows for one draw of the variates."""
            noise, log_gamma, extra, counted_in = draw
            # (N, C, G) logarithms of gamma variates of each row's cells, and of their sums by both features.
            tables = xp.concatenate([log_gamma, *self._log_margins(log_gamma)])
            of_cells = tuple(xp.split(rows.dot_terms(tables), 3, axis=1))
            index = xp.where(xp.any(counted_in, axis=1), xp.argmax(counted_in, axis=1), n_classes)

            def of_row(row: tuple[tuple[jax.Array, ...], jax.Array, jax.Array, jax.Array]) -> jax.Array:
                """(C,) log likelihood of one row, under a tree drawn given the row."""
                cells, gains, seen, index = row
                added = gains[index]
                parent, real = self._draw_tree(log_bayes + added[self.n_features :], noise)
                counted = gather(each, index).astype(bool)[:, None]
                cell, first, second = (xp.where(counted, xp.logaddexp(v, extra), v) for v in cells)
                pair, from_first = self._arcs(parent)
                alone = (cell - first)[:, : self.n_features]
                given = xp.where(from_first, cell[:, pair] - first[:, pair], cell[:, pair] - second[:, pair])
                used = xp.where(real & seen[pair], given, alone)
                return xp.sum(xp.where(seen[: self.n_features], used, 0.0), axis=1)

            return map_leading_axis(of_row, (of_cells, gains, seen, index))

        return map_leading_axis(draw_rows, (noise, log_gamma, extra, counted_in))

    # -- features and pairs ----------------------------------------------------------------------

    def _is_pair(self) -> Array:
        """(K,) of bool: whether the position belongs to a pair of features."""
        return self.group >= self.n_features

    def _positions(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Three (K,) indices by which positions of a group are summed: same first level, same second level, all."""
        group = self.group
        begin = xp.searchsorted(group, group)
        first, second = self.levels
        return begin + first, begin + second, begin

    def _margins(self) -> list[tuple[jax.Array, jax.Array]]:
        """Pairs (α, n), (C, K) each: of each position, then summed over positions with equal `_positions`."""
        parts = xp.asarray(self.concentration), xp.asarray(self.count)
        n = parts[0].shape[1]
        return [parts, *((segment_sum(parts[0], at, n), segment_sum(parts[1], at, n)) for at in self._positions())]

    def _log_gain(self, multiplicity: float | jax.Array) -> jax.Array:
        """(C, K) change of the log Bayes factor log B when `multiplicity` copies of each pair's levels are added."""
        size, sign = xp.abs(multiplicity), xp.sign(multiplicity)

        def rising(alpha: jax.Array, count: jax.Array) -> jax.Array:
            """Change of log Γ(α + n) when `multiplicity` is added to n."""
            return sign * log_rising(with_counts(alpha, count, xp.minimum(multiplicity, 0.0)), size)

        level, *sums = (rising(*margin) for margin in self._margins())
        first, second, total = (value[:, at] for value, at in zip(sums, self._positions(), strict=True))
        return level - first - second + total

    def _log_evidences(self) -> Float[jax.Array, "C G"]:
        """(C, G) log E of each feature, and log E_uv/(E_u E_v) of each pair, by the rows that have both."""
        level, first, second, total = (log_rising(*margin) for margin in self._margins())  # 0 where nothing is summed
        value = xp.where(self._is_pair(), level - first - second + total, level - total)
        return segment_sum(value, self.group, self.num_groups)

    def _log_bayes(self) -> Float[jax.Array, "P"]:
        """(P,) log Bayes factor of dependence of each pair of features, summed over the classes."""
        return xp.sum(self._log_evidences()[:, self.n_features :], axis=0)

    def _log_partition(self) -> jax.Array:
        """Scalar log Π_u E_u + log Σ over trees of Π W, up to the log number of trees."""
        log_evidences = self._log_evidences()
        log_weight = log_arc_weight(xp.sum(log_evidences[:, self.n_features :], axis=0))
        trees = log_sum_of_trees(log_weight, self.n_features)
        return xp.sum(log_evidences[:, : self.n_features]) + trees

    def _log_margins(self, log_gamma: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Two (C, K) log sums of gamma variates: over pairs with the same first, and the same second level.

        In the first one, positions of features have the log sum over the feature's levels.
        """
        first, second, begin = self._positions()
        places = xp.where(self._is_pair(), first, begin), second
        of_first, of_second = (log_segment_sum(log_gamma, at, log_gamma.shape[-1])[..., at] for at in places)
        return of_first, of_second

    def _tree_variates(self, variates: Variates, n: int) -> Noise:
        """Variates of n random trees: log uniforms and Gumbels (n, F, F), and log uniforms (n, F) for real arcs.

        `spanning_trees.draw` takes the first two.
        """
        square = xp.zeros((self.n_features, self.n_features))
        uniform, log_gumbel = variates.log_uniform(square, n), variates.log_gamma(square + 1.0, n)
        return uniform, -log_gumbel, variates.log_uniform(square[0], n)

    def _draw_tree(self, log_bayes: jax.Array, noise: Noise) -> tuple[jax.Array, jax.Array]:
        """Random tree given log B (P,): parent of each feature (F,), the root its own; whether the arc is real."""
        if self.n_features == 1:
            return xp.zeros(1, int), xp.zeros(1, bool)
        index, (log_uniform, gumbel, real) = pair_index(self.n_features), noise
        parent = draw(log_arc_weight(log_bayes)[index], log_uniform, gumbel)
        feature = xp.arange(self.n_features)
        pair = gather(index, (feature, parent))
        return parent, (parent != feature) & (real < log_sigmoid(gather(log_bayes, pair)))

    def _arcs(self, parent: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(F,) group of the pair of each feature and its `parent`, and (F,) whether the parent is its first feature."""
        feature = xp.arange(self.n_features)
        return self.n_features + gather(pair_index(self.n_features), (feature, parent)), parent < feature

    def _log_factors(self, log_gamma: jax.Array, parent: jax.Array, real: jax.Array) -> jax.Array:
        """(C, K) log θ of each feature's levels; for pairs with a real arc the log factor of the arc, else 0."""
        group, (pair, from_first) = self.group, self._arcs(parent)
        # 1 for pairs whose first feature is the parent of the second, 2 for the other way, and else 0.
        toward = xp.zeros(self.num_groups, int)
        toward = set_at(toward, xp.where(real, pair, self.num_groups), xp.where(from_first, 1, 2))
        toward = gather(toward, group)
        first, second = self._log_margins(log_gamma)
        alone, from_second = log_gamma - first, log_gamma - second
        # Positions of the level of a pair's first and second feature by itself.
        features = (np.append(np.arange(self.n_features), ends) for ends in np.triu_indices(self.n_features, 1))
        at = [xp.searchsorted(group, gather(f, group)) + v for f, v in zip(features, self.levels, strict=True)]
        of_arc = xp.where(toward == 1, alone - alone[:, at[1]], from_second - alone[:, at[0]])
        return xp.where(self._is_pair(), xp.where(toward > 0, of_arc, 0.0), alone)


@pytree
class TreePredictive(ReadyLikelihood):
    """Predictive likelihood log p(row | class, D), averaged over all trees and parameters.

    Parameters
    ----------
    now : (C, K) array
        Log probability of each feature's level; increase of log B by one more row with the levels of a pair.
    before : (C, K) array, optional
        Increase of log B of pairs by the row itself, if it stands more times among the data; 0 for features.
    log_bayes : (P,) array
        log B of each pair.
    n_features : int
    """

    now: jax.Array
    before: jax.Array | None
    log_bayes: jax.Array
    n_features: int = static()

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class, D), the sum of the terms."""
        return xp.sum(self.terms(x), axis=-1)

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, F + 1) terms of the features alone, as in naive Bayes, and the term that the arcs add to their sum."""
        rows = as_rows(x)
        now = rows.dot_terms(self.now)
        alone, added = now[..., : self.n_features], now[..., self.n_features :]
        log_bayes = xp.broadcast_to(self.log_bayes, (len(now), len(self.log_bayes)))
        if self.before is not None:
            log_bayes = log_bayes + xp.sum(rows.dot_terms(self.before)[..., self.n_features :], axis=1)
        without = self.log_bayes[None] if self.before is None else log_bayes
        arcs = self._log_sum(log_bayes[:, None] + added) - self._log_sum(without)[:, None]
        return xp.concatenate([alone, arcs[..., None]], axis=-1)

    def _log_sum(self, log_bayes: Float[jax.Array, "*B P"]) -> Float[jax.Array, "*B"]:
        """(…) log Σ over the trees, given log B (…, P), some entries at a time so that matrices fit the cache."""
        n, *before = self.n_features, *log_bayes.shape[:-1]
        flat = log_bayes.reshape(math.prod(before), log_bayes.shape[-1])  # of one feature there are no arcs
        size = max(1, _ROOM // (n * n * 8))
        return map_parts(lambda part: log_sum_of_trees(log_arc_weight(part.T), n), flat, size).reshape(before)


@kernel
def _draw_tables(family: TreeAveraged, noise: Noise, log_gamma: jax.Array) -> Float[jax.Array, "n C K"]:
    """(n, C, K) log θ and log arc factors for n draws of the variates: of random trees, and log gamma variates."""
    log_bayes = family._log_bayes()

    def draw_table(draw: tuple[Noise, jax.Array]) -> jax.Array:
        """(C, K) log θ and log arc factors for one draw of the variates."""
        noise, log_gamma = draw
        return family._log_factors(log_gamma, *family._draw_tree(log_bayes, noise))

    return map_leading_axis(draw_table, (noise, log_gamma))


def log_arc_weight(log_bayes: jax.Array) -> jax.Array:
    """Compute log(½ + ½ B) elementwise from log B."""
    return xp.logaddexp(0.0, log_bayes) - np.log(2.0)


def log_sum_of_trees(log_weight: Float[jax.Array, "P *B"], n: int) -> jax.Array:
    """(…) log Σ over spanning trees of n features of Π w, given log weights (P, …) of pairs (0, 1), (0, 2), …."""
    if n < 2:
        return xp.zeros(log_weight.shape[1:])
    return log_sum(log_weight[pair_index(n)])
