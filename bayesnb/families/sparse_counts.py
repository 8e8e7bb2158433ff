"""Sparse rows: bags of words, by count and by presence."""

from __future__ import annotations

from typing import Any

import jax
from jaxtyping import Float, Int

from bayesnb.families._namespace import (
    cond,
    csr_product,
    gammaln,
    gather,
    logsumexp,
    map_leading_axis,
    segment_sum,
    set_at,
    xp,
)
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.count_functions import Contrast, Term, add_at_flat, level_offset, linear, weighted
from bayesnb.families.count_rows import CountRows, OneDrawEach
from bayesnb.families.variates import Variates


@pytree
class Pairs:
    """Distinct pairs (level, count) of sparse rows, by which the exact predictive is a matrix product.

    Parameters
    ----------
    pair : (M,) int array
        For entries whose count is not 1, or for all entries: index of the pair of level and count below.
    indptr : (N + 1,) int array
        Bounds of the rows among these entries.
    level, count : (P,) arrays
        The distinct pairs.
    total, total_count : (N,) int array, (T,) array
        Index of the total of each row, and the distinct totals.
    """

    pair: Array
    indptr: Array
    level: Array
    count: Array
    total: Array
    total_count: Array


@pytree
class Counts(CountRows):
    """Sparse count vectors over one simplex: a bag of words.

    Compressed rows as in SciPy's CSR, without stored zeros; entries behind `indptr[-1]` are padding.

    Parameters
    ----------
    count, level, row : (E,) arrays
        Entries, their level and their row.
    indptr : (N + 1,) int array
        Bounds of the rows.
    pairs : Pairs, optional
        Distinct pairs of a level and a count; default: every entry is a pair of its own.
    """

    count: Array
    level: Array
    row: Array
    indptr: Array
    pairs: Pairs | None = None

    @property
    def known_base(self) -> bool:
        """Whether log multinomial coefficients are computed on the host and not in the kernel: if `pairs` is None."""
        return self.pairs is None

    def layout(self, table: Array) -> jax.Array:
        """Return the table (C, L) transposed, as `dot` reads it."""
        return xp.asarray(table).T

    def dot(self, table: Array) -> jax.Array:
        """(N, C) products Σ_l x_l · table_cl, given the transposed table (L, C)."""
        return _sparse_product(self.count, self.level, self.indptr, table)

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C 1"]:
        """(N, C, 1) products Σ_l x_l · table_cl with a table (C, L): a single term, as there is one simplex."""
        return self.dot(self.layout(table))[..., None]

    def contrast_layout(self, contrast: Contrast) -> Any:
        """Return f(1, a) (L, C), a (L, C) and a₀ (C,); raise ValueError if there is more than one group."""
        if contrast.total.shape[1] != 1:
            raise ValueError(f"Counts must be of one simplex, num_groups=1; there are {contrast.total.shape[1]}.")
        table = xp.asarray(contrast.level).T
        return contrast.term.once(table), table, xp.asarray(contrast.total)[:, 0]

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        """(N, C) Σ_l f(x_l, a_l) - f(t, a₀): every entry as a count of 1, corrected for pairs with another count."""
        pairs, (single, level, total) = self._pairs(), tables
        once = gather(single, pairs.level)
        often = term.f(xp.asarray(pairs.count)[:, None], gather(level, pairs.level))
        correction = xp.where(xp.isneginf(once), 0.0, often - once)
        totals = xp.asarray(pairs.total_count)[:, None]
        loss = xp.where(totals == 0, 0.0, term.f(totals, total))
        # Picking rows by a product: a gather would be fused with `loss`, and compute it anew for every row.
        one_each = xp.arange(pairs.total.shape[0] + 1, dtype=xp.int32)
        return (
            _sparse_product(1.0, self.level, self.indptr, single)
            + _sparse_product(1.0, pairs.pair, pairs.indptr, correction)
            - _sparse_product(1.0, pairs.total, one_each, loss)
        )

    def contrast_terms(self, contrast: Contrast) -> Float[jax.Array, "N C 1"]:
        """(N, C, 1) Σ_l f(x_l, a_l) - f(t, a₀): a single term, as there is one simplex."""
        return self.contrast(contrast.term, self.contrast_layout(contrast))[..., None]

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "N"]) -> jax.Array:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,)."""
        return _add_entries(count, self, label, weight, xp.asarray(self.count, count.dtype))

    def log_base(self) -> jax.Array:
        """(N,) log multinomial coefficient log t! - Σ log x_l! of each row."""
        pairs = self._pairs()
        coefficient = gammaln(xp.asarray(pairs.count) + 1.0)[:, None]
        per_row = _sparse_product(1.0, pairs.pair, pairs.indptr, coefficient)[:, 0]
        return gammaln(xp.asarray(pairs.total_count) + 1.0)[pairs.total] - per_row

    def length(self) -> Float[jax.Array, "N"]:
        """(N,) total count of each row (document length)."""
        if self.pairs is not None:
            return xp.asarray(self.pairs.total_count)[self.pairs.total]
        return _sparse_product(self.count, xp.zeros_like(self.level), self.indptr, xp.ones((1, 1)))[:, 0]

    def draw_with_row(self, family: Any, variates: Variates, n: int, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ x_l log θ_l, θ ~ Dirichlet(α + multiplicity · x) for each row and class."""
        count = xp.where(xp.arange(self.level.shape[0]) < self.indptr[-1], self.count, 0.0)
        log_gamma = variates.log_gamma(xp.asarray(family.concentration), n)
        row_gamma = variates.log_gamma(multiplicity * count, n)

        def over_rows(values: jax.Array) -> jax.Array:
            """(N, …) sums of values of the stored entries (E, …) over each row."""
            return segment_sum(values.T, self.row, self.indptr.shape[0] - 1).T

        def draw_rows(draw: tuple[jax.Array, jax.Array]) -> jax.Array:
            """(N, C) Σ x_l log θ_l for one draw of the variates."""
            log_gamma, row_gamma = draw
            drawn = xp.logaddexp(gather(log_gamma.T, self.level), row_gamma[:, None])
            total, extra = over_rows(count), over_rows(xp.exp(row_gamma))
            log_mass = xp.logaddexp(logsumexp(log_gamma, axis=1), xp.log(extra)[:, None])
            return over_rows(linear(count[:, None], drawn)) - linear(total[:, None], log_mass)

        return map_leading_axis(draw_rows, (log_gamma, row_gamma))

    def _pairs(self) -> Pairs:
        """`pairs`, or without them a pair for every stored entry."""
        if self.pairs is not None:
            return self.pairs
        every, rows = xp.arange(self.level.shape[0]), xp.arange(self.indptr.shape[0] - 1)
        return Pairs(every, self.indptr, self.level, self.count, rows, self.length())


@pytree
class Presence(OneDrawEach):
    """Sparse Bernoulli rows: the features that are present in each row; all others are absent.

    The levels of the Dirichlet are (absent, present) for each of F features, so `table` is (C, 2F).
    """

    level: Array
    row: Array
    indptr: Array

    def layout(self, table: Array) -> Any:
        """Return log p(empty row | class) (C,), log odds of presence (F, C), and where absence has probability 0."""
        table = xp.asarray(table)
        absent, present = table[:, 0::2], table[:, 1::2]
        sure = xp.isneginf(absent)
        absent = xp.where(sure, 0.0, absent)
        return xp.sum(absent, axis=1), (present - absent).T, sure.T, xp.any(sure)

    def dot(self, tables: Any) -> jax.Array:
        """(N, C) log p(row | class), given the tables that `layout` returns."""
        intercept, gain, sure, any_sure = tables
        score = intercept + _sparse_product(1.0, self.level, self.indptr, gain)

        def without_impossible() -> jax.Array:
            """(N, C) scores with -inf where a row lacks a feature that is present with probability 1."""
            lacking = xp.sum(sure, axis=0) - _sparse_product(1.0, self.level, self.indptr, sure.astype(score.dtype))
            return xp.where(lacking > 0.5, -xp.inf, score)

        scores: jax.Array = cond(any_sure, without_impossible, lambda: score)
        return scores

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log probability of presence or absence of each feature, given a table (C, 2F)."""
        absent, present = (xp.asarray(table)[:, level::2] for level in (0, 1))
        n = self.indptr.shape[0] - 1
        row = xp.where(xp.arange(self.level.shape[0]) < self.indptr[-1], self.row.astype(xp.int32), n)
        there = set_at(xp.zeros((n, absent.shape[1]), bool), (row, self.level), True)
        return xp.where(there[:, None], present, absent)

    def weigh(self, table: Array, weight: jax.Array) -> jax.Array:
        """Table (C, 2F) of log probabilities multiplied by the weight (F,) of each feature."""
        return weighted(xp.repeat(weight, 2), table)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "N"]) -> jax.Array:
        """`count` (C, F) of presences with the rows added; absences are derived from class counts at the end."""
        return _add_entries(count, self, label, weight, xp.ones((), count.dtype))

    def log_base(self) -> jax.Array:
        """(N,) zeros: log multinomial coefficients of Bernoulli rows."""
        return xp.zeros(self.indptr.shape[0] - 1)


def _sparse_product(data: Any, index: Any, indptr: Any, table: Array) -> jax.Array:
    """(N, C) product of the sparse matrix (data, index, indptr) in CSR form with a dense `table` (L, C)."""
    shape = indptr.shape[0] - 1, table.shape[0]
    return csr_product((xp.broadcast_to(xp.asarray(data, table.dtype), index.shape), index, indptr), shape, table)


def _add_entries(count: Array, x: Counts | Presence, label: Array, weight: Array, value: jax.Array) -> jax.Array:
    """`count` with `value` times the row's weight added at the class and level of each stored entry of sparse rows."""
    stored = xp.arange(x.level.shape[0]) < x.indptr[-1]
    index = gather(level_offset(count, label), x.row) + x.level
    return add_at_flat(count, index, xp.where(stored, gather(weight, x.row) * value, 0.0))
