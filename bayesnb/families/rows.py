"""Rows of counts, as the Dirichlet sees them: an implicit (N, L) matrix with a few products.

Counting is `tally`, weights times rows; scoring is `dot`, rows times a table of log probabilities. What is
not linear in the counts (predictives, moments) has the form Σ_l f(x_l, a_l) - Σ_g f(t_g, a0_g) over levels
l and group totals t_g: `contrast`. A table is first laid out for its kind of rows, once for many blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.sparse import BCSR
from jax.scipy.special import gammaln

from bayesnb.families._pytree import pytree, static

Elementwise = Callable[[jax.Array, jax.Array], jax.Array]
_UNROLL = 64


def linear(x: jax.Array, table: jax.Array) -> jax.Array:
    """x · table with 0 · (-inf) = 0: what did not occur costs nothing."""
    return jnp.where(x == 0, 0.0, x * table)


@pytree
class Dense:
    """Counts (N, L) of every level: the definition that the other kinds make fast."""

    count: Any
    group: Any
    num_groups: int = static()

    def layout(self, table: jax.Array) -> jax.Array:
        return jnp.asarray(table)

    def dot(self, table: jax.Array) -> jax.Array:
        return jax.vmap(lambda row: jnp.sum(linear(self.count, row), axis=-1), out_axes=1)(table)

    def contrast_layout(self, f: Elementwise, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        return jnp.asarray(table), jnp.asarray(total)

    def contrast(self, f: Elementwise, tables: Any) -> jax.Array:
        totals = self._totals()

        def one_class(level: jax.Array, total: jax.Array) -> jax.Array:
            gain = jnp.where(self.count == 0, 0.0, f(self.count, level))
            loss = jnp.where(totals == 0, 0.0, f(totals, total))
            return jnp.sum(gain, axis=-1) - jnp.sum(loss, axis=-1)

        return jax.vmap(one_class, out_axes=1)(*tables)

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        return count + jax.ops.segment_sum(self.count * weight[:, None], label, count.shape[0])

    def log_base(self) -> jax.Array:
        """Σ_g log t_g! - Σ_l log x_l!"""
        return jnp.sum(gammaln(self._totals() + 1.0), axis=-1) - jnp.sum(gammaln(self.count + 1.0), axis=-1)

    def _totals(self) -> jax.Array:
        return jax.ops.segment_sum(jnp.asarray(self.count).T, self.group, self.num_groups).T


@pytree
class OneHot:
    """One draw from each group: categorical features, and Bernoulli features as (absent, present).

    Parameters
    ----------
    code : (N, G) int array
        Index of the level within its group; -1 where the cell is missing.
    start : (G,) int array
        Flat index of the first level of each group.
    """

    code: Any
    start: Any

    def layout(self, table: jax.Array) -> jax.Array:
        """(L + 1, C): the last row is the neutral level that missing cells point to."""
        return jnp.concatenate([jnp.asarray(table).T, jnp.zeros((1, table.shape[0]))])

    def dot(self, table: jax.Array) -> jax.Array:
        neutral = table.shape[0] - 1

        def add(total: jax.Array, column: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            code, start = column
            index = jnp.where(code < 0, neutral, code.astype(start.dtype) + start)
            return total + table.at[index].get(mode="promise_in_bounds"), None

        zero = jnp.zeros((self.code.shape[0], table.shape[1]), table.dtype)
        columns = (jnp.asarray(self.code).T, jnp.asarray(self.start))
        return jax.lax.scan(add, zero, columns, unroll=min(_UNROLL, max(1, self.code.shape[1])))[0]

    def contrast_layout(self, f: Elementwise, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        """Every count is 1 and so is every total: the contrast is a table itself."""
        one = jnp.ones(())
        return self.layout(f(one, jnp.asarray(table)) - f(one, jnp.asarray(total))[:, group])

    def contrast(self, f: Elementwise, tables: Any) -> jax.Array:
        return self.dot(tables)

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        size = count.size
        index_type = jnp.int32 if size < 2**31 else jnp.int64
        first = label.astype(index_type)[:, None] * count.shape[1] + jnp.asarray(self.start, index_type)
        index = jnp.where(self.code < 0, size, first + self.code)
        weights = jnp.broadcast_to(weight[:, None], index.shape)
        flat = count.reshape(-1).at[index.reshape(-1)].add(weights.reshape(-1), mode="drop")
        return flat.reshape(count.shape)

    def log_base(self) -> jax.Array:
        return jnp.zeros(self.code.shape[0])


@pytree
class Counts:
    """Sparse count vectors over one simplex: a bag of words.

    Compressed rows as in SciPy's CSR, without stored zeros, plus what makes the exact predictive a matrix
    product: the few distinct pairs (level, count >= 2) of the block, and where they occur. Entries behind
    `indptr[-1]` are padding, of count zero.

    Parameters
    ----------
    count, level, row : (E,) arrays
        Entries, their level and their row.
    indptr : (N + 1,) int array
        Bounds of the rows.
    pair : (M,) int array
        For each entry whose count is not 1, the index of its (level, count); `pair_indptr` (N + 1,) bounds
        the rows.
    pair_level, pair_count : (P,) arrays
        The distinct pairs.
    total, total_count : (N,) int array, (T,) array
        Row totals, as an index into the distinct ones.
    """

    count: Any
    level: Any
    row: Any
    indptr: Any
    pair: Any
    pair_indptr: Any
    pair_level: Any
    pair_count: Any
    total: Any
    total_count: Any

    def layout(self, table: jax.Array) -> jax.Array:
        return jnp.asarray(table).T

    def dot(self, table: jax.Array) -> jax.Array:
        return _product(self.count, self.level, self.indptr, table)

    def contrast_layout(self, f: Elementwise, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        if total.shape[1] != 1:
            raise ValueError(f"Counts are draws from one simplex, but the Dirichlet has {total.shape[1]} groups.")
        single = f(jnp.ones(()), jnp.asarray(table))
        return single.T, jnp.asarray(table).T, jnp.asarray(total)[:, 0]

    def contrast(self, f: Elementwise, tables: Any) -> jax.Array:
        """Count every entry as 1, then correct the pairs with a larger count."""
        single, level, total = tables
        once = single.at[self.pair_level].get(mode="clip")
        often = f(jnp.asarray(self.pair_count)[:, None], level.at[self.pair_level].get(mode="clip"))
        correction = jnp.where(jnp.isneginf(once), 0.0, often - once)
        ones = jnp.ones_like(self.count)
        pairs = jnp.ones_like(self.pair, dtype=correction.dtype)
        totals = jnp.asarray(self.total_count)[:, None]
        loss = jnp.where(totals == 0, 0.0, f(totals, total))
        return (
            _product(ones, self.level, self.indptr, single)
            + _product(pairs, self.pair, self.pair_indptr, correction)
            - loss[self.total]
        )

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        return _scatter(count, self.level, self.row, label, weight, self.count)

    def log_base(self) -> jax.Array:
        """log t! - Σ log x_l!, which is 0 for entries of 1."""
        coefficient = gammaln(jnp.asarray(self.pair_count) + 1.0)[:, None]
        ones = jnp.ones(self.pair.shape)
        per_row = _product(ones, self.pair, self.pair_indptr, coefficient)[:, 0]
        return gammaln(jnp.asarray(self.total_count) + 1.0)[self.total] - per_row


@pytree
class Presence:
    """Sparse Bernoulli features: the columns present in each row; all others are absent.

    The levels of the Dirichlet are (absent, present) for each of F features, so `table` is (C, 2F).
    """

    level: Any
    row: Any
    indptr: Any

    def layout(self, table: jax.Array) -> Any:
        """Intercept of an empty row, gain of a presence; impossible absences (p = 1) counted apart."""
        table = jnp.asarray(table)
        absent, present = table[:, 0::2], table[:, 1::2]
        sure = jnp.isneginf(absent)
        absent = jnp.where(sure, 0.0, absent)
        return jnp.sum(absent, axis=1), (present - absent).T, sure.T.astype(table.dtype)

    def dot(self, tables: Any) -> jax.Array:
        intercept, gain, sure = tables
        ones = jnp.ones(self.level.shape, gain.dtype)
        score = intercept + _product(ones, self.level, self.indptr, gain)

        def without_impossible() -> jax.Array:
            lacking = jnp.sum(sure, axis=0) - _product(ones, self.level, self.indptr, sure)
            return jnp.where(lacking > 0.5, -jnp.inf, score)

        return jax.lax.cond(jnp.any(sure > 0), without_impossible, lambda: score)

    def contrast_layout(self, f: Elementwise, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        one = jnp.ones(())
        return self.layout(f(one, jnp.asarray(table)) - f(one, jnp.asarray(total))[:, group])

    def contrast(self, f: Elementwise, tables: Any) -> jax.Array:
        return self.dot(tables)

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        """Presences only, (C, F): absences are what is left of the class counts, once, at the end."""
        stored = jnp.arange(self.level.shape[0]) < self.indptr[-1]
        return _scatter(count, self.level, self.row, label, weight, stored.astype(count.dtype))

    def log_base(self) -> jax.Array:
        return jnp.zeros(self.indptr.shape[0] - 1)


def _product(data: Any, index: Any, indptr: Any, table: jax.Array) -> jax.Array:
    shape = (indptr.shape[0] - 1, table.shape[0])
    matrix = BCSR((jnp.asarray(data, table.dtype), jnp.asarray(index), jnp.asarray(indptr)), shape=shape)
    return matrix @ table


def _scatter(
    count: jax.Array, level: Any, row: Any, label: jax.Array, weight: jax.Array, value: Any
) -> jax.Array:
    index_type = jnp.int32 if count.size < 2**31 else jnp.int64
    index = label.astype(index_type)[row] * count.shape[1] + level
    flat = count.reshape(-1).at[index].add(weight[row] * value, mode="promise_in_bounds")
    return flat.reshape(count.shape)


def as_rows(x: Any, group: Any = None, num_groups: int = 1) -> Any:
    """Take an (N, L) array of counts for `Dense` rows over the given groups (default: one)."""
    if isinstance(x, Dense | OneHot | Counts | Presence):
        return x
    x = jnp.asarray(x, float)
    return Dense(x, jnp.zeros(x.shape[-1], jnp.int32) if group is None else group, num_groups)


def sum_cells(x: jax.Array, terms: jax.Array) -> jax.Array:
    """Sum over the features of real-valued rows; a missing cell contributes nothing."""
    return jnp.sum(jnp.where(jnp.isnan(x), 0.0, terms), axis=-1)
