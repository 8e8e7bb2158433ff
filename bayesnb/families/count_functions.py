"""Functions of counts and concentrations that all kinds of rows share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayesnb.families._namespace import namespace
from bayesnb.families._pytree import Array
from bayesnb.families.special import log_rising


class Term(NamedTuple):
    """Function f(x, a) of a count and a parameter, zero at x = 0.

    `once` is f(1, a), and `single` f(1, a) - f(1, a₀[group]). Classes are the last axis of a; several functions may be
    concatenated there, to share one product. `unseen` is the log probability, given a and its a₀, of a level for which
    the row is not among the data; None where f is no logarithm of a probability.
    """

    f: Callable[[jax.Array, jax.Array], jax.Array]
    once: Callable[[jax.Array], jax.Array]
    single: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    unseen: Callable[[jax.Array, jax.Array], jax.Array] | None = None


class Contrast(NamedTuple):
    """Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g) over levels l and totals t_g of groups: f, a (C, L), a₀ (C, G), and groups."""

    term: Term
    level: Array
    total: Array
    group: Array

    def single(self) -> jax.Array:
        """(C, L) contrast of one draw for each level."""
        return self.term.single(jnp.asarray(self.level).T, jnp.asarray(self.total).T, jnp.asarray(self.group)).T


def linear(x: Array | float, table: Array) -> jax.Array:
    """Compute x · table with 0 · (-inf) = 0."""
    return jnp.where(x == 0, 0.0, x * table)


def rising(multiplicity: Any) -> Term:
    """Term log Γ(a + x)/Γ(a); with a `multiplicity` (C,) of the row a has α in C columns, and counts in C more."""
    return _logarithm(multiplicity, log_rising)


def plugged_in(multiplicity: Any) -> Term:
    """Term x log a; with a `multiplicity` (C,) of the row a has α in C columns, and counts in C more."""
    return _logarithm(multiplicity, lambda a, x: linear(x, jnp.log(a)))


def _logarithm(multiplicity: Any, f: Callable[[jax.Array, Any], Any]) -> Term:
    """Term of a logarithm; that of one draw, log a - log a₀, is the logarithm of the quotient."""

    def with_row(a: jax.Array, x: object) -> jax.Array:
        if multiplicity is None:
            return a
        alpha, count = jnp.split(a, 2, axis=-1)
        table: jax.Array = with_counts(alpha, count, multiplicity * x)
        return table

    return Term(
        lambda x, a: f(with_row(a, x), x),
        lambda a: jnp.log(with_row(a, 1.0)),
        lambda a, total, group: jnp.log(with_row(a, 1.0) / with_row(total, 1.0)[group]),
        lambda a, total: jnp.log(with_row(a, 0.0) / with_row(total, 0.0)),
    )


def with_counts(alpha: Any, count: Any, multiplicity: Any) -> Any:
    """Compute α + max(n + multiplicity, 0): a small α would be lost in α + n, and rounding may leave counts below 0."""
    return alpha + namespace(count, multiplicity).maximum(count + multiplicity, 0.0)


def weighted(weight: Array, log_prob: Array) -> jax.Array:
    """Compute w log p: 0 without weight, and else -inf for the impossible, whatever its weight."""
    impossible = jnp.isneginf(log_prob)
    return jnp.where(weight == 0, 0.0, jnp.where(impossible, -jnp.inf, weight * jnp.where(impossible, 0.0, log_prob)))


def level_offset(count: Array, label: Array) -> jax.Array:
    """(N,) flat index of the first level of each row's class."""
    return jnp.asarray(label, jnp.int32 if 2 * count.size < 2**31 else jnp.int64) * count.shape[1]


def add_at(count: Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """Add values at flat indices of counts (C, L); those past the end are dropped."""
    return jnp.asarray(count).reshape(-1).at[index].add(value, mode="drop").reshape(count.shape)
