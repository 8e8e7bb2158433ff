"""Rows of counts, as the Dirichlet sees them: an implicit (N, L) matrix with a few products.

Counting is `tally`, weights times rows; scoring is `dot`, rows times a table of log probabilities. What is
not linear in the counts (predictives, moments) has the form Σ_l f(x_l, a_l) - Σ_g f(t_g, a0_g) over levels
l and group totals t_g: `contrast`. A table is first laid out for its kind of rows, once for many blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental.sparse import BCSR
from jax.scipy.special import gammaln

from bayesnb.families._pytree import pytree, static
from bayesnb.families.special import log_rising

_UNROLL = 64


class Term(NamedTuple):
    """A function f(x, a) of a count and a parameter, zero at x = 0.

    `once` is f(1, a), and `single` f(1, a) - f(1, a0[group]). Classes are the last axis of a; several functions may be
    concatenated there, to share one product.
    """

    f: Callable[[jax.Array, jax.Array], jax.Array]
    once: Callable[[jax.Array], jax.Array]
    single: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def linear(x: jax.Array, table: jax.Array) -> jax.Array:
    """x · table with 0 · (-inf) = 0: what did not occur costs nothing."""
    return jnp.where(x == 0, 0.0, x * table)


def rising(added: Any) -> Term:
    """log Γ(a + x)/Γ(a), the row `added` times among the data already: (C,), or one number."""
    return _logarithm(added, lambda x, a: log_rising(_plus(a, added * x), x))


def plugged_in(added: Any) -> Term:
    """x log a, the row `added` times among the data already."""
    return _logarithm(added, lambda x, a: linear(x, jnp.log(_plus(a, added * x))))


def _logarithm(added: Any, f: Callable[[jax.Array, jax.Array], jax.Array]) -> Term:
    """One draw: log a - log a0, as the logarithm of the quotient."""
    return Term(
        f,
        lambda a: jnp.log(_plus(a, added)),
        lambda a, total, group: jnp.log(_plus(a, added) / _plus(total, added)[group]),
    )


def _plus(a: jax.Array, added: Any) -> jax.Array:
    """What is left of a count is not below zero, but for rounding."""
    return jnp.maximum(a + added, 0.0)


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

    def contrast_layout(self, term: Term, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        return jnp.asarray(table).T, jnp.asarray(total).T

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        def summed(x: jax.Array, a: jax.Array) -> jax.Array:
            x = jnp.asarray(x)[..., None]
            return jnp.sum(jnp.where(x == 0, 0.0, term.f(x, a)), axis=1)

        level, total = tables
        return summed(self.count, level) - summed(self._totals(), total)

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

    Groups with few levels are packed: p of them become one with all combinations of their levels, so that
    one scatter or gather does for p.

    Parameters
    ----------
    code : (N, G) int array
        Index of the level within its group; -1 where the cell is missing.
    start, size : (G,) int arrays
        Flat index of the first level of each group, and its number of levels.
    width : int
        A bound of `size` + 1.
    """

    code: Any
    start: Any
    size: Any
    width: int = static()

    def layout(self, table: jax.Array) -> jax.Array:
        """(P, width^p, C) tables of the packs, or (L + 1, C); a missing cell points to a zero."""
        table = jnp.concatenate([jnp.asarray(table).T, jnp.zeros((1, table.shape[0]))])
        p = self._packing(table.shape[1])
        if p == 1:
            return table
        grouped = table[self._level(p, table.shape[0] - 1)]
        packs = grouped[:, 0]
        for i in range(1, p):
            packs = (packs[:, :, None] + grouped[:, i, None]).reshape(packs.shape[0], -1, packs.shape[-1])
        return packs

    def dot(self, table: jax.Array) -> jax.Array:
        if table.ndim == 3:
            packed = self._packed(_packing(self.width))
            start = jnp.arange(table.shape[0]) * table.shape[1]
            index, table = packed + start.astype(packed.dtype), table.reshape(-1, table.shape[-1])
        else:
            start = jnp.asarray(self.start)
            index = jnp.where(self.code < 0, table.shape[0] - 1, jnp.asarray(self.code, start.dtype) + start)

        def add(total: jax.Array, column: jax.Array) -> tuple[jax.Array, None]:
            return total + table.at[column].get(mode="promise_in_bounds"), None

        zero = jnp.zeros((index.shape[0], table.shape[1]), table.dtype)
        return jax.lax.scan(add, zero, index.T, unroll=max(1, min(_UNROLL, index.shape[1])))[0]

    def contrast_layout(self, term: Term, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        """Every count is 1 and so is every total: the contrast is a table itself."""
        return self.layout(_single(term, table, total, group))

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        return self.dot(tables)

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        n_classes, n_levels = count.shape
        p = self._packing(n_classes)
        if p == 1:
            start = jnp.asarray(self.start)
            code = jnp.where(self.code < 0, count.size, jnp.asarray(self.code, start.dtype) + start)
            return _scatter_rows(count, code, label, weight)
        packed = self._packed(p)
        size = self.width**p
        start = (jnp.arange(packed.shape[1]) * size).astype(packed.dtype)
        counts = _scatter_rows(jnp.zeros((n_classes, packed.shape[1] * size)), packed + start, label, weight)
        counts = counts.reshape(n_classes, packed.shape[1], *[self.width] * p)
        axes = range(2, 2 + p)
        margins = [jnp.sum(counts, axis=tuple(a for a in axes if a != i)) for i in axes]
        return count.at[:, self._level(p, n_levels)].add(jnp.stack(margins, axis=2), mode="drop")

    def log_base(self) -> jax.Array:
        return jnp.zeros(self.code.shape[0])

    def _packing(self, n_classes: int) -> int:
        """Groups a pack; 1 where the tables of the packs would be larger than the rows."""
        p = _packing(self.width)
        tables = n_classes * -(-self.code.shape[1] // p) * self.width**p
        return p if tables <= max(self.code.size, 2**14) else 1

    def _packed(self, p: int) -> jax.Array:
        """(N, P) codes of the packs; a missing cell is the last of `width` levels."""
        n, groups = self.code.shape
        code = jnp.where(self.code < 0, self.width - 1, jnp.asarray(self.code, jnp.int32))
        code = jnp.pad(code, ((0, 0), (0, -groups % p)), constant_values=self.width - 1).reshape(n, -1, p)
        packed = code[:, :, 0]
        for i in range(1, p):
            packed = packed * self.width + code[:, :, i]
        return packed

    def _level(self, p: int, missing: int) -> jax.Array:
        """(P, p, width) flat level of each code of each group; `missing` where there is none."""
        fill = (0, -self.code.shape[1] % p)
        start, size = (jnp.pad(jnp.asarray(v), fill) for v in (self.start, self.size))
        code = jnp.arange(self.width, dtype=start.dtype)
        return jnp.where(code < size[:, None], start[:, None] + code, missing).reshape(-1, p, self.width)


@pytree
class Counts:
    """Sparse count vectors over one simplex: a bag of words.

    Compressed rows as in SciPy's CSR, without stored zeros; entries behind `indptr[-1]` are of no account.

    Parameters
    ----------
    count, level, row : (E,) arrays
        Entries, their level and their row.
    indptr : (N + 1,) int array
        Bounds of the rows.
    """

    count: Any
    level: Any
    row: Any
    indptr: Any

    def layout(self, table: jax.Array) -> jax.Array:
        return jnp.asarray(table).T

    def dot(self, table: jax.Array) -> jax.Array:
        return _product(self.count, self.level, self.indptr, table)

    def contrast_layout(self, term: Term, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        if total.shape[1] != 1:
            raise ValueError(f"Counts are draws from one simplex, but the Dirichlet has {total.shape[1]} groups.")
        table = jnp.asarray(table).T
        return term.once(table), table, jnp.asarray(total)[:, 0]

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        return self._paired().contrast(term, tables)

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        return _scatter(count, self, label, weight, jnp.asarray(self.count, count.dtype))

    def log_base(self) -> jax.Array:
        return self._paired().log_base()

    def _paired(self) -> PairedCounts:
        """Every entry as a pair of its own."""
        every = jnp.arange(self.level.shape[0])
        rows = jnp.arange(self.indptr.shape[0] - 1)
        total = _product(self.count, jnp.zeros_like(self.level), self.indptr, jnp.ones((1, 1)))[:, 0]
        return PairedCounts(self, every, self.indptr, self.level, self.count, rows, total)


@pytree
class PairedCounts:
    """`Counts` with what makes the exact predictive a matrix product: few distinct (level, count).

    Parameters
    ----------
    entries : Counts
    pair : (M,) int array
        For each entry whose count is not 1 (or each), the index of its level and count below;
        `pair_indptr` (N + 1,) bounds the rows.
    pair_level, pair_count : (P,) arrays
        The distinct pairs.
    total, total_count : (N,) int array, (T,) array
        Row totals, as an index into the distinct ones.
    """

    entries: Counts
    pair: Any
    pair_indptr: Any
    pair_level: Any
    pair_count: Any
    total: Any
    total_count: Any

    def layout(self, table: jax.Array) -> jax.Array:
        return self.entries.layout(table)

    def dot(self, table: jax.Array) -> jax.Array:
        return self.entries.dot(table)

    def contrast_layout(self, term: Term, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        return self.entries.contrast_layout(term, table, total, group)

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        """Count every entry as 1, then correct the pairs with another count."""
        single, level, total = tables
        once = single.at[self.pair_level].get(mode="clip")
        often = term.f(jnp.asarray(self.pair_count)[:, None], level.at[self.pair_level].get(mode="clip"))
        correction = jnp.where(jnp.isneginf(once), 0.0, often - once)
        totals = jnp.asarray(self.total_count)[:, None]
        loss = jnp.where(totals == 0, 0.0, term.f(totals, total))
        # Picking rows by a product: a gather would be fused with `loss`, and compute it anew for every row.
        one_each = jnp.arange(self.total.shape[0] + 1, dtype=jnp.int32)
        return (
            _product(1.0, self.entries.level, self.entries.indptr, single)
            + _product(1.0, self.pair, self.pair_indptr, correction)
            - _product(1.0, self.total, one_each, loss)
        )

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        return self.entries.tally(count, label, weight)

    def log_base(self) -> jax.Array:
        """log t! - Σ log x_l!"""
        coefficient = gammaln(jnp.asarray(self.pair_count) + 1.0)[:, None]
        per_row = _product(1.0, self.pair, self.pair_indptr, coefficient)[:, 0]
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
        return jnp.sum(absent, axis=1), (present - absent).T, sure.T, jnp.any(sure)

    def dot(self, tables: Any) -> jax.Array:
        intercept, gain, sure, any_sure = tables
        score = intercept + _product(1.0, self.level, self.indptr, gain)

        def without_impossible() -> jax.Array:
            lacking = jnp.sum(sure, axis=0) - _product(1.0, self.level, self.indptr, sure.astype(score.dtype))
            return jnp.where(lacking > 0.5, -jnp.inf, score)

        return jax.lax.cond(any_sure, without_impossible, lambda: score)

    def contrast_layout(self, term: Term, table: jax.Array, total: jax.Array, group: jax.Array) -> Any:
        return self.layout(_single(term, table, total, group))

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        return self.dot(tables)

    def tally(self, count: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
        """Presences only, (C, F): absences are what is left of the class counts, once, at the end."""
        return _scatter(count, self, label, weight, jnp.ones((), count.dtype))

    def log_base(self) -> jax.Array:
        return jnp.zeros(self.indptr.shape[0] - 1)


def _single(term: Term, table: jax.Array, total: jax.Array, group: jax.Array) -> jax.Array:
    """The contrast of one draw, a table of the levels."""
    return term.single(jnp.asarray(table).T, jnp.asarray(total).T, group).T


def _product(data: Any, index: Any, indptr: Any, table: jax.Array) -> jax.Array:
    shape, columns = (indptr.shape[0] - 1, table.shape[0]), table.shape[1]
    data = jnp.broadcast_to(jnp.asarray(data, table.dtype), index.shape)
    matrix = BCSR((data, jnp.asarray(index), jnp.asarray(indptr)), shape=shape)
    # In fours: two columns take longer than four, and six than eight.
    return (matrix @ jnp.pad(table, ((0, 0), (0, -columns % 4))))[:, :columns]


def _scatter(count: jax.Array, x: Any, label: jax.Array, weight: jax.Array, value: jax.Array) -> jax.Array:
    """Add value times weight for each stored entry of sparse rows."""
    stored = jnp.arange(x.level.shape[0]) < x.indptr[-1]
    index = _index(count, label)[x.row] + x.level
    return _add(count, index, jnp.where(stored, weight[x.row] * value, 0.0))


def _scatter_rows(count: jax.Array, level: jax.Array, label: jax.Array, weight: jax.Array) -> jax.Array:
    """Add the weight of each row to its levels (N, G); levels past the end are missing cells."""
    index = _index(count, label)[:, None] + level
    return _add(count, index.reshape(-1), jnp.broadcast_to(weight[:, None], index.shape).reshape(-1))


def _index(count: jax.Array, label: jax.Array) -> jax.Array:
    """Flat index of the first level of each row's class."""
    return jnp.asarray(label, jnp.int32 if 2 * count.size < 2**31 else jnp.int64) * count.shape[1]


def _add(count: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    return count.reshape(-1).at[index].add(value, mode="drop").reshape(count.shape)


def _packing(width: int) -> int:
    """How many groups of `width` codes make a pack of about a thousand: few enough for the cache."""
    p = 1
    while width ** (p + 1) <= 1100:
        p += 1
    return p


def as_rows(x: Any, group: Any = None, num_groups: int = 1) -> Any:
    """Take an (N, L) array of counts for `Dense` rows over the given groups (default: one)."""
    if isinstance(x, Dense | OneHot | Counts | PairedCounts | Presence):
        return x
    x = jnp.asarray(x, float)
    return Dense(x, jnp.zeros(x.shape[-1], jnp.int32) if group is None else group, num_groups)


@pytree
class Complete:
    """Real-valued rows (N, F) of which no cell is missing: kernels need not look."""

    values: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __jax_array__(self) -> jax.Array:
        return jnp.asarray(self.values)


def observed(x: Any) -> tuple[jax.Array, jax.Array]:
    """Which cells of real-valued rows are observed, and the rows with 0 in the others.

    A NaN must not enter a formula even where its result is not used: its gradient would be NaN.
    """
    complete, x = isinstance(x, Complete), jnp.asarray(x) * jnp.ones(())
    if complete:
        return jnp.ones(x.shape, bool), x  # a constant, which the compiler takes out again
    seen = ~jnp.isnan(x)
    return seen, jnp.where(seen, x, 0.0)


def sum_cells(seen: jax.Array, terms: jax.Array) -> jax.Array:
    """Sum over the features of real-valued rows; a missing cell contributes nothing."""
    return jnp.sum(jnp.where(seen, terms, 0.0), axis=-1)
