"""Rows of counts as Dirichlet families need them: an implicit (N, L) matrix with a few products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import jax
from jaxtyping import Float, Int

from bayesnb.families._namespace import (
    gammaln,
    gather,
    kernel,
    log_segment_sum,
    map_leading_axis,
    segment_sum,
    vmap,
    xp,
)
from bayesnb.families._pytree import Array, pytree, static
from bayesnb.families.count_functions import Contrast, Term, linear
from bayesnb.families.variates import Variates


class CountRows(ABC):
    """Rows of counts of levels, in groups: an implicit (N, L) matrix with a few products.

    Scoring is `dot`: rows times a table of log probabilities. Predictive probabilities and cumulants, which are not
    linear in the counts, are `contrast`: Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g) over levels l and totals t_g of groups. A
    table is first rearranged for one kind of rows, once for many blocks. `dot_terms` and `contrast_terms` give the sums
    group by group, from plain tables (C, L) and (C, G).
    """

    @abstractmethod
    def layout(self, table: Array) -> Any:
        """Return a table (C, L) of log probabilities in the form that `dot` reads for this kind of rows."""

    @abstractmethod
    def dot(self, table: Any) -> Float[jax.Array, "N C"]:
        """(N, C) products Σ_l x_l · table_cl, given a table in the form that `layout` returns."""

    @abstractmethod
    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) sums Σ x_l · table_cl over the levels of each group, given a plain table (C, L)."""

    @abstractmethod
    def contrast_layout(self, contrast: Contrast) -> Any:
        """Return the tables of a contrast in the form that the method `contrast` reads for this kind of rows."""

    @abstractmethod
    def contrast(self, term: Term, tables: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g), given f and the tables that `contrast_layout` returns."""

    @abstractmethod
    def contrast_terms(self, contrast: Contrast) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ_l f(x_l, a_l) - f(t_g, a₀_g) of each group g, given plain tables."""

    @abstractmethod
    def weighted_counts(
        self, count: Array, label: Int[Array, "N"], weight: Float[Array, "N"]
    ) -> Float[jax.Array, "C L"]:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,)."""

    @abstractmethod
    def log_base(self) -> Float[jax.Array, "N"]:
        """(N,) log multinomial coefficient Σ_g log t_g! - Σ_l log x_l! of each row."""

    @abstractmethod
    def draw_with_row(self, family: Any, variates: Variates, n: int, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ x_l log θ_l, θ ~ Dirichlet(α + multiplicity · x) for each row and class.

        A Gamma(α + x) variate is the sum of a Gamma(α) variate, which rows share, and of a Gamma(x) variate of the row.
        """

    @final
    def dot_each(self, tables: Float[Array, "n C L"]) -> Float[jax.Array, "n N C"]:
        """(n, N, C) products Σ_l x_l · table_cl with each of n plain tables."""
        return map_leading_axis(lambda table: self.dot(self.layout(table)), tables)


class OneDrawEach(CountRows):
    """Rows of one draw per group: counts and totals are 1, so that a contrast is a product with one table."""

    @final
    def contrast_layout(self, contrast: Contrast) -> Any:
        """Return the table f(1, a) - f(1, a₀) in the form that `dot` reads."""
        return self.layout(contrast.single())

    @final
    def contrast(self, term: Term, tables: Any) -> jax.Array:
        """(N, C) sums over the groups of f(1, a_l) - f(1, a₀_g) at the row's level l.

        `tables` is what `contrast_layout` returns; `term` is not used.
        """
        return self.dot(tables)

    @final
    def contrast_terms(self, contrast: Contrast) -> jax.Array:
        """(N, C, G) f(1, a_l) - f(1, a₀_g) at the row's level l in each group."""
        return self.dot_terms(contrast.single())

    @final
    def draw_with_row(self, family: Any, variates: Variates, n: int, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ log θ of a row's levels, given `multiplicity` more copies of the row.

        Only the Beta marginals of θ matter, so that one table of draws serves all rows.
        """
        draws = family.draw_level_marginals(variates, n, multiplicity)
        return map_leading_axis(lambda draw: self.dot(self.layout(draw[0] - xp.logaddexp(*draw))), draws)


@pytree
class Dense(CountRows):
    """Dense counts (N, L) of all levels: the reference implementation of `CountRows`."""

    count: Array
    group: Array
    num_groups: int = static()

    def layout(self, table: Array) -> jax.Array:
        """Return the table (C, L) unchanged."""
        return xp.asarray(table)

    def dot(self, table: Array) -> jax.Array:
        """(N, C) products Σ_l x_l · table_cl with a table (C, L)."""
        return xp.sum(self.dot_terms(table), axis=-1)

    def contrast_layout(self, contrast: Contrast) -> Any:
        """Return level parameters (C, L), group parameters (C, G) and groups (L,) of the contrast."""
        return contrast[1:]

    def contrast(self, term: Term, tables: Any) -> jax.Array:
        """(N, C) Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g), given f and the tables that `contrast_layout` returns."""
        return xp.sum(self.contrast_terms(Contrast(term, *tables)), axis=-1)

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) sums Σ x_l · table_cl over the levels of each group, given a table (C, L)."""
        return self._by_group(vmap(lambda row: linear(self.count, row), out_axes=1)(table))

    def contrast_terms(self, contrast: Contrast) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ_l f(x_l, a_l) - f(t_g, a₀_g) of each group g."""

        def apply(x: Array, a: Array) -> jax.Array:
            """(N, C, K) f(x, a) of counts x (N, K) and parameters a (C, K), 0 where x = 0."""
            x = xp.asarray(x)[..., None]
            return xp.where(x == 0, 0.0, contrast.term.f(x, xp.asarray(a).T)).swapaxes(1, 2)

        return self._by_group(apply(self.count, contrast.level)) - apply(self._totals(), contrast.total)

    def _by_group(self, values: jax.Array) -> jax.Array:
        """(…, G) sums over each group of values (…, L) of the levels."""
        return segment_sum(values, self.group, self.num_groups)

    def length(self) -> Float[jax.Array, "N"]:
        """(N,) number of draws of each row."""
        return xp.sum(self._totals(), axis=-1)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "N"]) -> jax.Array:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,)."""
        return xp.asarray(count) + segment_sum((self.count * weight[:, None]).T, label, count.shape[0]).T

    def draw_with_row(self, family: Any, variates: Variates, n: int, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ x_l log θ_l, θ ~ Dirichlet(α + multiplicity · x) for each row and class."""
        log_gamma = variates.log_gamma(xp.asarray(family.concentration), n)
        row_gamma = variates.log_gamma(multiplicity * xp.asarray(self.count), n)
        count, totals = xp.asarray(self.count), self._totals()

        def one_class(levels: jax.Array, row_gamma: jax.Array) -> jax.Array:
            """(N,) Σ x_l log θ_l of each row in one class, given log gamma variates of levels (L,) and rows (N, L)."""
            drawn = xp.logaddexp(levels, row_gamma)
            log_mass = log_segment_sum(drawn, self.group, self.num_groups)
            return xp.sum(linear(count, drawn), axis=-1) - xp.sum(linear(totals, log_mass), axis=-1)

        over_classes = vmap(one_class, in_axes=(0, None), out_axes=1)
        return map_leading_axis(lambda draw: over_classes(*draw), (log_gamma, row_gamma))

    def log_base(self) -> jax.Array:
        """(N,) log multinomial coefficient of each row."""
        return xp.sum(gammaln(self._totals() + 1.0), axis=-1) - xp.sum(gammaln(self.count + 1.0), axis=-1)

    def _totals(self) -> jax.Array:
        """(N, G) number of draws of each row in each group."""
        return segment_sum(xp.asarray(self.count), self.group, self.num_groups)


@kernel(static_argnames="dtype")
def joint_code(
    code: jax.Array, column: jax.Array, stride: jax.Array, missing: jax.Array, dtype: str
) -> Int[jax.Array, "N G"]:
    """(N, G) joint codes of several features: Σ_k stride_kg · code[:, column_kg]; -1 where one is missing.

    Parameters
    ----------
    code : (N, F) int array
        Levels of the features; -1 where a cell is missing.
    column : (K, G) int array
        Features of each joint code.
    stride : (K, G) int array
        Factors of the codes of these features.
    missing : (K, G) int array
        Code of a missing cell; -1: the joint code is missing.
    dtype : str
        Type of the joint codes.
    """
    joint, absent = xp.zeros((), xp.int32), xp.zeros((), bool)
    for columns, strides, instead in zip(column, stride, missing, strict=True):
        level = xp.take(code, columns, axis=1).astype(xp.int32)
        level = xp.where(level < 0, instead, level)
        joint, absent = joint + level * strides, absent | (level < 0)
    return xp.where(absent, -1, joint).astype(dtype)


_STRIDE = 8


@kernel(static_argnames="dtype")
def cell_code(values: jax.Array, edges: Float[Array, "F K"], dtype: str) -> Int[jax.Array, "N F"]:
    """(N, F) number of edges below each value, as `dtype`; -1 for NaN. A feature's edges (K,) increase to infinity.

    Each eighth edge is compared with all values, which vectorizes; edges between are found by bisection.
    """
    x, (n_features, n_edges) = xp.asarray(values), edges.shape
    edges = xp.pad(xp.asarray(edges), ((0, 0), (0, -n_edges % _STRIDE)), constant_values=xp.inf)
    flat, below = edges.reshape(-1), xp.zeros(x.shape, xp.int32)
    for coarse in edges.T[_STRIDE - 1 : -1 : _STRIDE]:
        below = below + (x > coarse)
    first = (xp.arange(n_features) * edges.shape[1]).astype(xp.int32)
    code, step = below * _STRIDE + first, _STRIDE // 2
    while step:
        code = xp.where(x > gather(flat, code + (step - 1)), code + step, code)
        step //= 2
    return xp.where(x == x, code - first, -1).astype(dtype)


def as_rows(x: object, group: Any = None, num_groups: int = 1) -> CountRows:
    """Convert x to `CountRows`: an (N, L) array becomes `Dense` counts of levels in `group` (L,), default one group."""
    if isinstance(x, CountRows):
        return x
    x = xp.asarray(x, float)
    return Dense(x, xp.zeros(x.shape[-1], xp.int32) if group is None else group, num_groups)
