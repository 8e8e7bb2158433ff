"""Rows of a network with missing cells, scored by sums over the values that these cells may have.

With the parameters integrated out, or plugged in, a row's probability is a product of one table for each feature,
p(x_j | its parents, class). Missing cells are summed out of that product by variable elimination [1]_, which in a tree
is the upward pass. Observed cells are indicators, so that one order of elimination serves all rows.

References
----------
.. [1] Koller & Friedman, *Probabilistic Graphical Models* (2009), ch. 9; for draws of eliminated variables, ch. 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families._namespace import add_at, gather, is_host, map_leading_axis, set_at, sigmoid, vmap, xp
from bayesnb.families._pytree import Array, pytree, static
from bayesnb.families.count_functions import Contrast, Term
from bayesnb.families.count_rows import CountRows
from bayesnb.families.one_hot import OneHot
from bayesnb.families.variates import Variates

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

    def layout(self, table: Array) -> tuple[Any, jax.Array]:
        """Return the two tables that `dot` reads: log probabilities (C, L) in the layout of `OneHot`, and their exp.

        The first is for observed cells, the second (C, L) for sums over missing cells.
        """
        return self.observed.layout(table), xp.exp(table)

    def dot(self, tables: tuple[Any, jax.Array]) -> jax.Array:
        """(N, C) log p(row | class): table entries of observed cells, plus log sums over the missing cells."""
        of_observed, theta = tables
        score = self.observed.dot(of_observed)
        of_missing, of_seen = self._log_sums(theta), _rows_of(score, self.which, 0.0)
        impossible = xp.isneginf(of_missing) | xp.isneginf(of_seen)
        summed = xp.where(impossible, -xp.inf, of_missing + of_seen)
        return set_at(score, self.which, summed)

    def contrast_layout(self, contrast: Contrast) -> Any:
        """Return contrasts of observed cells, and probabilities of the other cells, in the form that `dot` reads."""
        return self.observed.layout(contrast.single()), _unseen_levels(contrast)

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        """(N, C) log p(row | class), given the tables that `contrast_layout` returns; `term` is not used."""
        return self.dot(tables)

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) terms of log p(row | class), one per table, given log probabilities (C, L)."""
        return self._terms(table, xp.exp(table))

    def contrast_terms(self, contrast: Contrast) -> jax.Array:
        """(N, C, G) terms of log p(row | class), one per table, given the parameters of a contrast."""
        return self._terms(contrast.single(), _unseen_levels(contrast))

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

    def _map_rows(self, f: Callable[[Any], jax.Array], n_classes: int) -> Float[jax.Array, "M ..."]:
        """(M, …) results of f for (cells, table codes) of each row `which`, in batches that fit into memory."""
        rows, padded = self._rows(), len(self.which)
        if is_host(rows):  # rows that are padding take as long as others
            some = min(padded, max(1, int(np.sum(np.asarray(self.which) < len(self.observed.code)))))
            results = map_leading_axis(f, jax.tree.map(lambda v: v[:some], rows))
            return xp.pad(results, [(0, padded - some), *[(0, 0)] * (results.ndim - 1)])
        most = max(1, _MOST_CELLS // max(1, n_classes * self.network.room()))
        return map_leading_axis(f, rows, batch_size=most)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "N"]) -> jax.Array:
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
        log_total = vmap(family.log_total)(log_gamma)

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


def _unseen_levels(contrast: Contrast) -> jax.Array:
    """(C, L) predictive probabilities of levels for rows that are not among the data.

    Raise ValueError for functions, such as cumulants, that are not logarithms of probabilities.
    """
    term, level, total, group = contrast
    if term.unseen is None:
        raise ValueError(
            "Moments of rows with a missing cell that is summed out have no closed form. Use method='draws'."
        )
    return xp.exp(term.unseen(xp.asarray(level).T, xp.asarray(total)[:, group].T).T)


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


def _log_sum(network: Network, theta: Any, code: jax.Array, observed: jax.Array) -> Float[jax.Array, "C"]:
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
