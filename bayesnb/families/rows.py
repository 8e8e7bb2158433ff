"""Rows of levels as kernels read them (one-hot codes, sparse counts, presence), and their counts and likelihoods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, final

import jax
import numpy as np
from jaxtyping import Float, Int

from bayesnb.families.arrays import (
    FEW,
    Array,
    add_at,
    cond,
    csr_product,
    gammaln,
    gather,
    is_host,
    kernel,
    log_segment_sum,
    logsumexp,
    map_leading_axis,
    pytree,
    scan,
    segment_sum,
    set_at,
    static,
    sum_rows,
    sum_weightings,
    xp,
)
from bayesnb.families.protocol import Additive, ReadyLikelihood, Variates
from bayesnb.families.special import log_rising

# == Functions of counts and concentrations that all kinds of rows share ===========================


class Term(NamedTuple):
    """Function f(x, a) of a count x and a parameter a, zero at x = 0, and special cases of f that are cheaper.

    `single` is f(1, a) - f(1, a₀[group]). Classes are the last axis of a; several functions may be concatenated there,
    to share one product. `unseen` is the log probability, given a and its a₀, of a level for which the row is not among
    the data; None where f is not a logarithm of a probability.
    """

    f: Callable[[float | jax.Array, Array], Array]
    single: Callable[[jax.Array, jax.Array, Array], jax.Array]
    unseen: Callable[[jax.Array, jax.Array], jax.Array] | None = None


def log_or_minus_infinity(x: Array) -> jax.Array:
    """Compute log x elementwise, -inf at 0, where the derivative is 0 so that it does not spoil those of others."""
    x = xp.asarray(x)
    return xp.where(x == 0, -xp.inf, xp.log(xp.where(x == 0, 1.0, x)))


def linear(x: Array | float, table: Array) -> jax.Array:
    """Compute x · table elementwise, with 0 · (-inf) = 0."""
    return xp.multiply(x, xp.where((x == 0) & ~xp.isfinite(table), 0.0, table))


def rising(multiplicity: Array | None) -> Term:
    """`Term` log Γ(a + x)/Γ(a), the Dirichlet-multinomial predictive; `multiplicity` None: at a as it is.

    With `multiplicity` w (C,) the last axis of a has α, then the counts n, and f is taken at a = α + max(n + w x, 0).
    """
    return _log_probability_term(multiplicity, log_rising)


def plugged_in(multiplicity: Array | None) -> Term:
    """`Term` x log a, the plug-in likelihood at the posterior mean; `multiplicity` None: at a as it is.

    With `multiplicity` w (C,) the last axis of a has α, then the counts n, and f is taken at a = α + max(n + w x, 0).
    """
    return _log_probability_term(multiplicity, lambda a, x: linear(x, xp.log(a)))


def _log_probability_term(multiplicity: Array | None, f: Callable[..., Array]) -> Term:
    """`Term` of a function f(a, x) that is the log of a probability factor of a count x.

    With `multiplicity` w (C,) the last axis of a has α, then the counts n, and f is taken at a = α + max(n + w x, 0);
    None: at a as it is.
    """

    def with_row(a: Array, x: float | jax.Array) -> Array:
        """Concentration a after `multiplicity` · x was added to its counts: α + max(n + w x, 0); a itself without w."""
        if multiplicity is None:
            return a
        alpha, count = xp.split(a, 2, axis=-1)
        return with_counts(alpha, count, multiplicity * x)

    return Term(
        lambda x, a: f(with_row(a, x), x),
        lambda a, total, group: xp.log(with_row(a, 1.0) / with_row(total, 1.0)[group]),
        lambda a, total: xp.log(with_row(a, 0.0) / with_row(total, 0.0)),
    )


def with_counts(alpha: Array, count: Array, multiplicity: float | Array) -> jax.Array:
    """Compute α + max(n + multiplicity, 0): a small α would be lost in α + n, and rounding may leave counts below 0."""
    return xp.asarray(alpha) + xp.maximum(count + multiplicity, 0.0)


def weighted(weight: Array, log_prob: Array) -> jax.Array:
    """Compute w log p elementwise: 0 where w = 0, and else -inf where log p = -inf, whatever the sign of w."""
    impossible, counts = xp.isneginf(log_prob), xp.asarray(weight) != 0
    usable = xp.isfinite(log_prob) | (counts & ~impossible)
    return xp.where(impossible & counts, -xp.inf, weight * xp.where(usable, log_prob, 0.0))


def add_at_levels(count: Array, label: Array, level: Array, value: Array) -> jax.Array:
    """Copy of `count` (C, L) with values added at classes and levels; a level of C · L or more is dropped."""
    start = xp.asarray(label, xp.int32 if 2 * count.size < 2**31 else xp.int64) * count.shape[1]
    index = (start + level).reshape(-1)
    return add_at(xp.asarray(count).reshape(-1), index, xp.ravel(value)).reshape(count.shape)


# == Rows of counts as Dirichlet families need them: an implicit (N, L) matrix with a few products =


class CountRows(ABC):
    """Rows of counts of levels, in groups: an implicit (N, L) matrix with a few products.

    Scoring is `dot`: rows times a table of log probabilities. Predictive probabilities and cumulants, which are not
    linear in the counts, are `contrast`: Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g) over levels l and totals t_g of groups, f
    and its parameters those of a `Ratio`. A table is first rearranged for one kind of rows, once for many blocks.
    `dot_terms` and `contrast_terms` give the sums group by group, from plain tables (C, L) and (C, G).
    """

    @abstractmethod
    def layout(self, table: Array) -> object:
        """Return a table (C, L) of log probabilities in the form that `dot` reads for this kind of rows."""

    @abstractmethod
    def dot(self, table: Any) -> Float[jax.Array, "N C"]:
        """(N, C) products Σ_l x_l · table_cl, given a table in the form that `layout` returns."""

    @abstractmethod
    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) sums Σ x_l · table_cl over the levels of each group, given a plain table (C, L)."""

    @abstractmethod
    def contrast_layout(self, ratio: Ratio) -> object:
        """Return the parameters of a ratio in the form that the method `contrast` reads for this kind of rows."""

    @abstractmethod
    def contrast(self, term: Term, tables: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g), given f and the tables that `contrast_layout` returns."""

    @abstractmethod
    def contrast_terms(self, ratio: Ratio) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ_l f(x_l, a_l) - f(t_g, a₀_g) of each group g, given f and plain tables by a ratio."""

    @abstractmethod
    def weighted_counts(
        self, count: Array, label: Int[Array, "N"], weight: Float[Array, "*S N"]
    ) -> Float[jax.Array, "*S C L"]:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,), or S weightings (S, N)."""

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

    @abstractmethod
    def weigh(self, table: Array, weight: Array) -> jax.Array:
        """Table (C, L) of log probabilities multiplied by the weight, (G,) or (C, G), of each level's group."""

    @final
    def contrast_layout(self, ratio: Ratio) -> object:
        """Return the table f(1, a) - f(1, a₀) in the form that `dot` reads."""
        return self.layout(ratio.single())

    @final
    def contrast(self, term: Term, tables: object) -> jax.Array:
        """(N, C) sums over the groups of f(1, a_l) - f(1, a₀_g) at the row's level l.

        `tables` is what `contrast_layout` returns; `term` is not used.
        """
        return self.dot(tables)

    @final
    def contrast_terms(self, ratio: Ratio) -> jax.Array:
        """(N, C, G) f(1, a_l) - f(1, a₀_g) at the row's level l in each group."""
        return self.dot_terms(ratio.single())

    @final
    def draw_with_row(self, family: Any, variates: Variates, n: int, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ log θ of a row's levels, given `multiplicity` more copies of the row.

        Only the Beta marginals of θ matter, so that one table of draws serves all rows.
        """
        return self.dot_each(family.draw_level_marginals(variates, n, multiplicity))


@pytree
class Dense(CountRows):
    """Dense counts (N, L) of all levels: the reference implementation of `CountRows`."""

    count: Array
    group: np.ndarray = static()
    num_groups: int = static()

    def layout(self, table: Array) -> jax.Array:
        """Return the table (C, L) unchanged."""
        return xp.asarray(table)

    def dot(self, table: Array) -> jax.Array:
        """(N, C) products Σ_l x_l · table_cl with a table (C, L)."""
        return xp.sum(self.dot_terms(table), axis=-1)

    def contrast_layout(self, ratio: Ratio) -> tuple[Array, Array]:
        """Return level parameters (C, L) and group parameters (C, G) of the ratio."""
        return ratio.concentration, ratio.total

    def contrast(self, term: Term, tables: tuple[Array, Array]) -> jax.Array:
        """(N, C) Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g), given f and the tables that `contrast_layout` returns."""
        return xp.sum(self._contrast_terms(term, *tables), axis=-1)

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) sums Σ x_l · table_cl over the levels of each group, given a table (C, L)."""
        return self._by_group(linear(xp.asarray(self.count)[:, None], table))

    def contrast_terms(self, ratio: Ratio) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ_l f(x_l, a_l) - f(t_g, a₀_g) of each group g, given f and plain tables by a ratio."""
        return self._contrast_terms(ratio.f, ratio.concentration, ratio.total)

    def _contrast_terms(self, term: Term, level: Array, total: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ_l f(x_l, a_l) - f(t_g, a₀_g) of each group g, given a (C, L) and a₀ (C, G)."""

        def apply(x: Array, a: Array) -> jax.Array:
            """(N, C, K) f(x, a) of counts x (N, K) and parameters a (C, K), 0 where x = 0."""
            x = xp.asarray(x)[..., None]
            return xp.where(x == 0, 0.0, term.f(x, xp.asarray(a).T)).swapaxes(1, 2)

        return self._by_group(apply(self.count, level)) - apply(self._totals(), total)

    def _by_group(self, values: Array) -> jax.Array:
        """(…, G) sums over each group of values (…, L) of the levels."""
        return segment_sum(values, self.group, self.num_groups)

    def length(self) -> Float[jax.Array, "N"]:
        """(N,) number of draws of each row."""
        return xp.sum(self._totals(), axis=-1)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> jax.Array:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,), or S weightings (S, N)."""
        if weight.ndim == 2:
            return xp.asarray(count) + sum_weightings(self.count, label, weight, count.shape[-2])
        return xp.asarray(count) + sum_rows(self.count * weight[:, None], label, count.shape[0])

    def draw_with_row(self, family: Any, variates: Variates, n: int, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ x_l log θ_l, θ ~ Dirichlet(α + multiplicity · x) for each row and class."""
        log_gamma = variates.log_gamma(xp.asarray(family.concentration), n)
        row_gamma = variates.log_gamma(multiplicity * xp.asarray(self.count), n)
        count, totals = (v[:, None] for v in (xp.asarray(self.count), self._totals()))

        def draw_rows(draw: tuple[jax.Array, jax.Array]) -> jax.Array:
            """(N, C) Σ x_l log θ_l for one draw of the variates of levels (C, L) and of rows (N, L)."""
            drawn = xp.logaddexp(draw[0], draw[1][:, None])
            log_mass = log_segment_sum(drawn, self.group, self.num_groups)
            return xp.sum(linear(count, drawn), axis=-1) - xp.sum(linear(totals, log_mass), axis=-1)

        return map_leading_axis(draw_rows, (log_gamma, row_gamma))

    def log_base(self) -> jax.Array:
        """(N,) log multinomial coefficient of each row."""
        return xp.sum(gammaln(self._totals() + 1.0), axis=-1) - xp.sum(gammaln(self.count + 1.0), axis=-1)

    def _totals(self) -> jax.Array:
        """(N, G) number of draws of each row in each group."""
        return self._by_group(self.count)


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


def as_rows(x: object, group: np.ndarray | None = None, num_groups: int = 1) -> CountRows:
    """Convert x to `CountRows`: an (N, L) array becomes `Dense` counts of levels in `group` (L,), default one group."""
    if isinstance(x, CountRows):
        return x
    x = xp.asarray(x, float)
    return Dense(x, np.zeros(x.shape[-1], np.int32) if group is None else group, num_groups)


# == Levels of one simplex or several: their counts, and their likelihood, plugged in or integrated out


@pytree
class LevelCounts(Additive):
    """Number of times that each level occurred in each class: `count` (C, L)."""

    count: Any

    def pad(self, extra: int) -> LevelCounts:
        """Copy with `extra` levels of count 0 appended."""
        return LevelCounts(np.pad(self.count, ((0, 0), (0, extra))))

    def level_counts(self, sizes: np.ndarray) -> LevelCounts:
        """Counts of the first `sizes.sum()` levels, without the unused levels that pad the table."""
        return LevelCounts(self.count[..., : sizes.sum()])

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> LevelCounts:
        """Counts with a piece of rows added, given class indices (N,) and weights (N,)."""
        return LevelCounts(as_rows(x).weighted_counts(self.count, label, weight))

    @staticmethod
    def log_base(x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row, 0 for categorical rows."""
        return as_rows(x).log_base()


@pytree
class Multinomial:
    """Likelihood of counts of levels with level probabilities plugged in: `log_theta` (C, L), or draws (n, C, L)."""

    log_theta: Array

    @classmethod
    def from_parameters(cls, theta: Array) -> Self:
        """Likelihood with level probabilities `theta` (…, C, L)."""
        return cls(xp.log(theta))

    @property
    def theta(self) -> jax.Array:
        """Level probabilities (…, C, L)."""
        return xp.exp(self.log_theta)

    def parameters(self) -> dict[str, jax.Array]:
        """Level probabilities by name, {"theta": (…, C, L)}."""
        return {"theta": self.theta}

    def prepare(self, x: object) -> Tabulated:
        """Likelihood with the table rearranged for rows encoded like `x`, to score many blocks of such rows."""
        return Tabulated(as_rows(x).layout(self.log_theta), None, None)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ x_l log θ_l, without the multinomial coefficient."""
        return self.prepare(x).log_prob(x)

    def terms(self, x: object) -> Float[jax.Array, "N C G"]:
        """(N, C, G) Σ x_l log θ_l over the levels of each group, without the multinomial coefficient."""
        return as_rows(x).dot_terms(self.log_theta)

    def single(self) -> jax.Array:
        """(C, L) log θ: what one draw of each level adds to `log_prob`."""
        return xp.asarray(self.log_theta)

    def cells(self, x: jax.Array) -> jax.Array:
        """(…, L) x_l log θ_l of each level, for counts x (…, L) and the parameters of one class."""
        return linear(x, self.log_theta)

    def log_likelihood(self, statistics: LevelCounts) -> Float[jax.Array, "*C L"]:
        """(C, L) Σ n log θ of all counted rows, by class and level."""
        return linear(statistics.count, self.log_theta)


@pytree
class Tabulated(ReadyLikelihood):
    """Likelihood whose tables are rearranged for one kind of rows: Σ x_l log θ_l, or a `Ratio` if it has a `term`."""

    tables: object
    multiplicity: Array | float | None
    term: Callable[..., Term] | None = static()

    def log_prob(self, x: object) -> jax.Array:
        """(N, C) log p(row | class) of rows of the kind of the tables, without the multinomial coefficient."""
        rows = as_rows(x)
        return rows.dot(self.tables) if self.term is None else rows.contrast(self.term(self.multiplicity), self.tables)


@pytree
class Ratio:
    """Dirichlet-multinomial likelihood Σ_l f(x_l, α_l) - Σ_g f(t_g, α₀_g): integrated out, or plugged in for each row.

    `multiplicity` (C,) is the number of times that the row stands among the data already, and `term` makes f of it;
    then `concentration` and `total` have α of the prior in the first C rows, and counts in the C rows below. None: f of
    the posterior as it is.
    """

    concentration: Array
    total: Array
    multiplicity: Array | float | None
    group: np.ndarray = static()
    term: Callable[..., Term] = static()

    def prepare(self, x: object) -> Tabulated:
        """Likelihood with the tables rearranged for rows encoded like `x`, to score many blocks of such rows."""
        return Tabulated(self._rows(x).contrast_layout(self), self.multiplicity, self.term)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), integrated out or plugged in by `term`, without multinomial coefficient."""
        return self.prepare(x).log_prob(self._rows(x))

    def terms(self, x: object) -> Float[jax.Array, "N C G"]:
        """(N, C, G) log p(levels of each group | class), without the multinomial coefficient."""
        return self._rows(x).contrast_terms(self)

    def _rows(self, x: object) -> CountRows:
        """Rows x as `CountRows`; an (N, L) array is read as counts of the levels."""
        return as_rows(x, self.group, self.total.shape[1])

    @property
    def f(self) -> Term:
        """Function f of this ratio, at its multiplicity."""
        return self.term(self.multiplicity)

    def single(self) -> jax.Array:
        """(C, L) f(1, a) - f(1, a₀[group]): what one draw of each level adds to `log_prob`."""
        return self.f.single(xp.asarray(self.concentration).T, xp.asarray(self.total).T, self.group).T


# == Categorical rows: one level for each of several groups, counted and scored for several groups at once, in packs

_UNROLL = 64
_SPARSE = 32  # Levels a group, from which on a sparse product takes less time than a dense one.
_MOST_INDICATORS = 2**23  # in memory as an array
_BITS = 12
"""Most bits of the code of a pack: a table of 4,096 positions for each class fits the cache."""
_LARGEST = 2**18
_SMALLEST = 2**8


@pytree
class OneHot(OneDrawEach):
    """Categorical rows: one level per group; Bernoulli features are groups of (absent, present).

    Groups with few levels are packed: p of them become one group with all combinations of their levels, so that one
    scatter or gather serves p groups.

    Parameters
    ----------
    code : (N, G) int array
        Index of the level within its group; -1 where the cell is missing.
    start, size : (G,) int arrays
        Flat index of the first level of each group, and its number of levels.
    width : int
        Bound on `size`, or on `size` + 1 if a cell may be missing.
    """

    sums_table_entries: ClassVar[bool] = True
    """Whether a score is a sum of table entries, which SciPy computes for many classes as a product with the table."""

    code: Array
    start: Array
    size: Array
    width: int = static()

    def layout(self, table: Array) -> jax.Array:
        """Return log probabilities (C, L) summed into packs' tables (P, 2^(bits · p), C), or (L + 1, C) unpacked.

        Missing cells point to a zero.
        """
        table = xp.concatenate([xp.asarray(table).T, xp.zeros((1, table.shape[0]))])
        p = packing(self.width, table.shape[1], self.code.shape[1], self.code.size)
        if p == 1:
            return table
        grouped = gather(table, self._levels_of_codes(p, table.shape[0] - 1))
        packs = grouped[:, 0]
        for i in range(1, p):
            packs = (grouped[:, i, :, None] + packs[:, None]).reshape(packs.shape[0], -1, packs.shape[-1])
        return packs

    def dot(self, table: Array) -> jax.Array:
        """(N, C) sums of the table entries of each row's levels, given the tables that `layout` returns."""
        table = xp.asarray(table)
        if table.ndim == 3:
            start = (xp.arange(table.shape[0]) * table.shape[1]).astype(xp.int32)
            p = (table.shape[1].bit_length() - 1) // _n_bits(self.width)
            index, table = self.packed(p) + start, table.reshape(-1, table.shape[-1])
        else:
            index = self._flat_level(table.shape[0] - 1)

        if is_host(index, table):
            if index.size * table.shape[1] <= FEW:
                return gather(table, index).sum(axis=1)
            level = np.minimum(index, len(table) - 1).ravel()  # as `gather` reads padding
            rows = np.ones(level.size), level, np.arange(len(index) + 1) * index.shape[1]
            return csr_product(rows, (len(index), len(table)), table)

        def add(total: jax.Array, column: jax.Array) -> tuple[jax.Array, None]:
            return total + gather(table, column), None

        # Zeros made from the rows, as they are spread over devices inside of `shard_map`.
        zero = (0 * xp.sum(index, axis=1, keepdims=True)).astype(table.dtype) * xp.ones(table.shape[1], table.dtype)
        return scan(add, zero, index.T, unroll=max(1, min(_UNROLL, index.shape[1])))[0]

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C G"]:
        """(N, C, G) table entry of the row's level in each group, given a table (C, L); 0 for missing cells."""
        table = xp.concatenate([xp.asarray(table).T, xp.zeros((1, table.shape[0]))])
        return gather(table, self._flat_level(table.shape[0] - 1)).swapaxes(1, 2)

    def weigh(self, table: Array, weight: Array) -> jax.Array:
        """Table (C, L) of log probabilities multiplied by the weight, (G,) or (C, G), of each level's group."""
        group = xp.searchsorted(xp.asarray(self.start), xp.arange(table.shape[1]), side="right") - 1
        return weighted(weight[..., group], table)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> jax.Array:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,), or S weightings (S, N)."""
        if weight.ndim == 2:
            n_classes, width = count.shape[-2:]
            return xp.asarray(count) + sum_weightings(self._indicators(width), label, weight, n_classes, width)
        level = self._flat_level(count.size)
        return add_at_levels(count, label[:, None], level, xp.broadcast_to(weight[:, None], level.shape))

    def _indicators(self, n_levels: int) -> Array | tuple[Array, Array, Array]:
        """(N, L) indicators of the levels of each row; of NumPy rows in CSR form if few of many levels are present."""
        level = self._flat_level(n_levels)
        (n, groups), is_level = level.shape, level < n_levels
        if is_host(level) and n_levels > min(_SPARSE * groups, _MOST_INDICATORS // max(1, n)):
            indptr = np.append(0, np.cumsum(is_level.sum(axis=1)))
            return np.ones(indptr[-1]), level[is_level], indptr
        place = xp.where(is_level, xp.arange(n)[:, None] * n_levels + level, n * n_levels)
        return set_at(xp.zeros(n * n_levels), place.reshape(-1), 1.0).reshape(n, n_levels)

    def log_base(self) -> jax.Array:
        """(N,) zeros: log multinomial coefficients of categorical rows."""
        return xp.zeros(self.code.shape[0])

    def packed(self, p: int) -> Int[jax.Array, "N P"]:
        """(N, P) joint codes of p groups, Σ_i code_i · 2^(bits · i); all bits of a missing cell are set.

        p codes of a byte each are read as one word, in which neighbours are moved next to each other, then pairs, …
        """
        n, groups = self.code.shape
        code = xp.pad(xp.asarray(self.code).astype(xp.int8), ((0, 0), (0, -groups % p)), constant_values=-1)
        word: jax.Array = code.astype(xp.uint8)
        if p > 1:
            word = code.reshape(n, -1, p).view(f"uint{8 * p}")[..., 0]
        kind, bits, room = word.dtype.type, _n_bits(self.width), 8
        word = word & kind(_mask_of_lowest_bits(bits, room, 8 * p))
        while room < 8 * p:
            lower = _mask_of_lowest_bits(bits, 2 * room, 8 * p)
            word = (word & kind(lower)) | (word >> kind(room - bits) & kind(lower << bits))
            bits, room = 2 * bits, 2 * room
        return word.astype(xp.int32)

    def _flat_level(self, missing: int) -> Int[jax.Array, "N G"]:
        """(N, G) index of each cell's level on the axis of all levels; `missing` for missing cells."""
        start = xp.asarray(self.start)
        return xp.where(self.code < 0, missing, xp.asarray(self.code, start.dtype) + start)

    def _levels_of_codes(self, p: int, missing: int) -> Int[jax.Array, "P p W"]:
        """(P, p, 2^bits) index on the axis of all levels of each code of each group; `missing` where none exists."""
        fill = (0, -self.code.shape[1] % p)
        start, size = (xp.pad(xp.asarray(v), fill) for v in (self.start, self.size))
        code = xp.arange(1 << _n_bits(self.width), dtype=start.dtype)
        return xp.where(code < size[:, None], start[:, None] + code, missing).reshape(-1, p, len(code))


@pytree
class PackedCounts(Additive):
    """Joint counts of packs of p groups: `count` (C, P, 2^(bits · p)), by the joint codes of `OneHot.packed`.

    Many pieces of rows are counted with one entry for a pack, not one for a group; `level_counts` sums them up.
    """

    count: Array
    p: int = static()

    def observe(self, x: OneHot, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> PackedCounts:
        """Joint counts with a piece of rows added, given class indices (N,) and weights (N,)."""
        n_classes, packs, room = self.count.shape
        position = x.packed(self.p) + (xp.arange(packs) * room).astype(xp.int32)
        count, weights = self.count.reshape(n_classes, -1), xp.broadcast_to(weight[:, None], position.shape)
        return PackedCounts(add_at_levels(count, label[:, None], position, weights).reshape(self.count.shape), self.p)

    @staticmethod
    def log_base(x: OneHot) -> jax.Array:
        """(N,) zeros: log multinomial coefficients of categorical rows."""
        return x.log_base()

    def level_counts(self, sizes: np.ndarray) -> LevelCounts:
        """Counts (C, L) of single levels, summed from the joint counts, for groups with these `sizes`."""
        n_classes, packs, room = self.count.shape
        width = round(room ** (1 / self.p))
        count = self.count.reshape(n_classes, packs, *[width] * self.p)
        axes = range(2, 2 + self.p)
        each = [count.sum(axis=tuple(a for a in axes if a != i)) for i in reversed(axes)]
        codes = np.stack(each, axis=2).reshape(n_classes, packs * self.p, width)[:, : len(sizes)]
        return LevelCounts(codes[:, np.arange(width) < np.asarray(sizes)[:, None]])


@pytree
class GroupedCounts(Additive):
    """Counts (C, L) with the number of levels of each group, so that rows may be codes (N, G), see `rows_of_levels`.

    For programs without an estimator; `Statistics.empty` makes these counts.
    """

    count: Array
    sizes: tuple[int, ...] = static()

    @property
    def num_groups(self) -> int:
        """Number of groups G."""
        return len(self.sizes)

    def rows(self, x: object) -> CountRows:
        """Rows of codes or counts as `CountRows`."""
        return rows_of_levels(x, np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes), len(self.sizes))

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> Self:
        """Counts with rows added, given class indices (N,) and weights (N,)."""
        return replace(self, count=self.rows(x).weighted_counts(self.count, label, weight))

    def log_base(self, x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row, 0 for codes."""
        return self.rows(x).log_base()


def rows_of_levels(x: Any, group: np.ndarray, num_groups: int) -> CountRows:
    """Convert x to `CountRows`: an (N, G) array has the codes of the levels within G groups, an (N, L) array counts.

    A code that is not one of 0 … size of the group - 1 is a missing cell. `group` (L,) has the group of each level. If
    L = 1 the array has counts.
    """
    if isinstance(x, CountRows) or xp.shape(x)[-1] != num_groups or len(group) == 1:
        return as_rows(x, group, num_groups)
    size = segment_sum(xp.ones(len(group)), group, num_groups).astype(xp.int32)
    codes, start = xp.asarray(x), (xp.cumsum(size) - size).astype(xp.int32)
    known = (codes >= 0) & (codes < size)
    level = xp.where(known, codes, 0).astype(xp.int32)
    # Packs of groups would pay for many rows only.
    return OneHot(xp.where(known & (level == codes), level, -1), start, size, width=1 << _BITS)


def empty_counts(
    n_classes: int, n_rows: int, sizes: np.ndarray, width: int, capacity: int
) -> LevelCounts | PackedCounts:
    """Zero counts for `n_rows` rows with given group sizes: joint counts of packs, or of `capacity` single levels.

    They are `PackedCounts` if `packing` puts several groups into a pack for this many cells, else `LevelCounts`.
    `width` bounds the codes of a group.
    """
    p = packing(width, n_classes, len(sizes), n_rows * len(sizes))
    if p == 1:
        return LevelCounts(np.zeros((n_classes, capacity)))
    return PackedCounts(np.zeros((n_classes, -(-len(sizes) // p), 1 << p * _n_bits(width))), p)


def packing(width: int, n_classes: int, groups: int, cells: int) -> int:
    """Number p of groups in a pack, 4, 2 or 1: the most for which tables fit the cache and are not larger than rows.

    A pack has at most 12 bits, enough for p codes below `width`. Tables of all packs and classes have at most min(2^18,
    max(`cells`, 2^8)) entries, `cells` the number of cells of the rows. p is less than twice the number of groups.
    """
    bits = _n_bits(width)

    def fits(p: int) -> bool:
        """Whether packs of p groups have at most `_BITS` bits and tables as small as they should be."""
        if p >= 2 * groups or p * bits > _BITS:
            return False
        return n_classes * -(-groups // p) << p * bits <= min(_LARGEST, max(cells, _SMALLEST))

    return next((p for p in (4, 2) if fits(p)), 1)


def _n_bits(width: int) -> int:
    """Number of bits for codes below `width`, at least 1."""
    return max(1, (width - 1).bit_length())


def _mask_of_lowest_bits(bits: int, room: int, length: int) -> int:
    """Integer of `length` bits in which the lowest `bits` bits of every field of `room` bits are set."""
    return sum(((1 << bits) - 1) << at for at in range(0, length, room))


# == Sparse rows: bags of words, by count and by presence ==========================================


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

    def contrast_layout(self, ratio: Ratio) -> tuple[Array, ...]:
        """Return f(1, a) (L, C), a (L, C) and a₀ (C,); raise ValueError if there is more than one group."""
        if ratio.total.shape[1] != 1:
            raise ValueError(f"Counts must be of one simplex, num_groups=1; there are {ratio.total.shape[1]}.")
        table = xp.asarray(ratio.concentration).T
        return ratio.f.f(1.0, table), table, xp.asarray(ratio.total)[:, 0]

    def contrast(self, term: Term, tables: tuple[Array, ...]) -> jax.Array:
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

    def contrast_terms(self, ratio: Ratio) -> Float[jax.Array, "N C 1"]:
        """(N, C, 1) Σ_l f(x_l, a_l) - f(t, a₀): a single term, as there is one simplex."""
        return self.contrast(ratio.f, self.contrast_layout(ratio))[..., None]

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> jax.Array:
        """`count` (C, L) with the rows added, given class indices (N,) and weights (N,), or S weightings (S, N)."""
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
        over_rows = partial(sum_rows, index=self.row, n=self.indptr.shape[0] - 1)

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

    def layout(self, table: Array) -> tuple[jax.Array, ...]:
        """Return log p(empty row | class) (C,), log odds of presence (F, C), and where absence has probability 0."""
        table = xp.asarray(table)
        absent, present = table[:, 0::2], table[:, 1::2]
        sure = xp.isneginf(absent)
        absent = xp.where(sure, 0.0, absent)
        return xp.sum(absent, axis=1), (present - absent).T, sure.T, xp.any(sure)

    def dot(self, tables: tuple[jax.Array, ...]) -> jax.Array:
        """(N, C) log p(row | class), given the tables that `layout` returns."""
        intercept, gain, sure, any_sure = tables
        score = intercept + _sparse_product(1.0, self.level, self.indptr, gain)

        def without_impossible() -> jax.Array:
            """(N, C) scores with -inf where a row lacks a feature that is present with probability 1."""
            lacking = xp.sum(sure, axis=0) - _sparse_product(1.0, self.level, self.indptr, sure.astype(score.dtype))
            return xp.where(lacking > 0.5, -xp.inf, score)

        return cond(any_sure, without_impossible, lambda: score)

    def dot_terms(self, table: Array) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log probability of presence or absence of each feature, given a table (C, 2F)."""
        absent, present = (xp.asarray(table)[:, level::2] for level in (0, 1))
        n = self.indptr.shape[0] - 1
        row = xp.where(xp.arange(self.level.shape[0]) < self.indptr[-1], self.row.astype(xp.int32), n)
        there = set_at(xp.zeros((n, absent.shape[1]), bool), (row, self.level), True)
        return xp.where(there[:, None], present, absent)

    def weigh(self, table: Array, weight: Array) -> jax.Array:
        """Table (C, 2F) of log probabilities multiplied by the weight, (F,) or (C, F), of each feature."""
        return weighted(xp.repeat(weight, 2, axis=-1), table)

    def weighted_counts(self, count: Array, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> jax.Array:
        """`count` (C, F) of presences with the rows added; absences are derived from class counts at the end."""
        return _add_entries(count, self, label, weight, xp.ones((), count.dtype))

    def log_base(self) -> jax.Array:
        """(N,) zeros: log multinomial coefficients of Bernoulli rows."""
        return xp.zeros(self.indptr.shape[0] - 1)


def _sparse_product(data: float | Array, index: Array, indptr: Array, table: Array) -> jax.Array:
    """(N, C) product of the sparse matrix (data, index, indptr) in CSR form with a dense `table` (L, C)."""
    shape = indptr.shape[0] - 1, table.shape[0]
    return csr_product((xp.broadcast_to(xp.asarray(data, table.dtype), index.shape), index, indptr), shape, table)


def _add_entries(count: Array, x: Counts | Presence, label: Array, weight: Array, value: jax.Array) -> jax.Array:
    """`count` with `value` times the row's weight added at the class and level of each stored entry of sparse rows."""
    if weight.ndim == 2 and is_host(count, x, label, weight):
        data, level = (np.broadcast_to(v, x.level.shape)[: x.indptr[-1]] for v in (value, x.level))
        return xp.asarray(count) + sum_weightings((data, level, x.indptr), label, weight, *count.shape[-2:])
    if weight.ndim == 2:
        return map_leading_axis(lambda one: _add_entries(count, x, label, one, value), weight)
    stored = xp.arange(x.level.shape[0]) < x.indptr[-1]
    return add_at_levels(count, gather(label, x.row), x.level, xp.where(stored, gather(weight, x.row) * value, 0.0))
