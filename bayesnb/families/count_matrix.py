"""Rows of counts, as the Dirichlet sees them: an implicit (N, L) matrix with a few products.

Counting is `weighted_counts`, weights times rows; scoring is `dot`, rows times a table of log probabilities. What is
not linear in the counts (predictives, moments) has the form Σ_l f(x_l, a_l) - Σ_g f(t_g, a0_g) over levels
l and group totals t_g: `contrast`. A table is first laid out for its kind of rows, once for many blocks. `dot_terms`
and `contrast_terms` are the same group by group, of tables as they are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Float, Int

from bayesnb.families._pytree import pytree, static
from bayesnb.families._types import Array
from bayesnb.families.terms import Term, linear


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

    def dot_terms(self, table: jax.Array) -> Float[jax.Array, "N C G"]:
        return self._by_group(jax.vmap(lambda row: linear(self.count, row), out_axes=1)(table))

    def contrast_terms(
        self, term: Term, table: jax.Array, total: jax.Array, group: jax.Array
    ) -> Float[jax.Array, "N C G"]:
        def apart(x: jax.Array, a: jax.Array) -> jax.Array:
            x = jnp.asarray(x)[..., None]
            return jnp.where(x == 0, 0.0, term.f(x, jnp.asarray(a).T)).swapaxes(1, 2)

        return self._by_group(apart(self.count, table)) - apart(self._totals(), total)

    def _by_group(self, values: jax.Array) -> jax.Array:
        return jnp.moveaxis(jax.ops.segment_sum(jnp.moveaxis(values, -1, 0), self.group, self.num_groups), 0, -1)

    def length(self) -> Float[jax.Array, "N"]:
        """(N,) how many draws a row is."""
        return jnp.sum(self._totals(), axis=-1)

    def weighted_counts(self, count: jax.Array, label: Int[Array, "N"], weight: Float[Array, "N"]) -> jax.Array:
        return count + jax.ops.segment_sum(self.count * weight[:, None], label, count.shape[0])

    def log_base(self) -> jax.Array:
        """Σ_g log t_g! - Σ_l log x_l!"""
        return jnp.sum(gammaln(self._totals() + 1.0), axis=-1) - jnp.sum(gammaln(self.count + 1.0), axis=-1)

    def _totals(self) -> jax.Array:
        return jax.ops.segment_sum(jnp.asarray(self.count).T, self.group, self.num_groups).T


@partial(jax.jit, static_argnames="dtype")
def joint_code(
    code: jax.Array, column: jax.Array, stride: jax.Array, missing: jax.Array, dtype: str
) -> Int[jax.Array, "N G"]:
    """(N, G) codes of several features taken as one: Σ_k stride_kg · code[:, column_kg]; -1 where one is missing.

    Parameters
    ----------
    code : (N, F) int array
        -1 where a cell is missing.
    column, stride : (K, G) int arrays
    missing : (K, G) int array
        What a missing cell counts as; -1: it is missing.
    """
    joint, absent = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    for columns, strides, instead in zip(column, stride, missing, strict=True):
        own = jnp.take(code, columns, axis=1).astype(jnp.int32)
        own = jnp.where(own < 0, instead, own)
        joint, absent = joint + own * strides, absent | (own < 0)
    return jnp.where(absent, -1, joint).astype(dtype)


_STRIDE = 8


@partial(jax.jit, static_argnames="dtype")
def cell_code(values: jax.Array, edges: Float[Array, "F K"], dtype: str) -> Int[jax.Array, "N F"]:
    """(N, F) how many of the edges of each feature, which increase to infinity, lie below its values; -1 of a NaN.

    Each eighth edge is compared with all values, which vectorizes, and those between by bisection.
    """
    x, (n_features, n_edges) = jnp.asarray(values), edges.shape
    edges = jnp.pad(jnp.asarray(edges), ((0, 0), (0, -n_edges % _STRIDE)), constant_values=jnp.inf)
    flat, below = edges.reshape(-1), jnp.zeros(x.shape, jnp.int32)
    for coarse in edges.T[_STRIDE - 1 : -1 : _STRIDE]:
        below = below + (x > coarse)
    first = (jnp.arange(n_features) * edges.shape[1]).astype(jnp.int32)
    code, step = below * _STRIDE + first, _STRIDE // 2
    while step:
        code = jnp.where(x > flat.at[code + (step - 1)].get(mode="promise_in_bounds"), code + step, code)
        step //= 2
    return jnp.where(x == x, code - first, -1).astype(dtype)


def as_rows(x: Any, group: Any = None, num_groups: int = 1) -> Any:
    """Take an (N, L) array of counts for `Dense` rows over the given groups (default: one)."""
    if hasattr(x, "contrast"):
        return x
    x = jnp.asarray(x, float)
    return Dense(x, jnp.zeros(x.shape[-1], jnp.int32) if group is None else group, num_groups)
