"""Functions of counts and concentrations, and where counts are added: what all kinds of rows share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayesnb.families.special import log_rising


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


def single(term: Term, table: jax.Array, total: jax.Array, group: jax.Array) -> jax.Array:
    """The contrast of one draw, a table of the levels."""
    return term.single(jnp.asarray(table).T, jnp.asarray(total).T, group).T


def index_of(count: jax.Array, label: jax.Array) -> jax.Array:
    """Flat index of the first level of each row's class."""
    return jnp.asarray(label, jnp.int32 if 2 * count.size < 2**31 else jnp.int64) * count.shape[1]


def add_at(count: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    return count.reshape(-1).at[index].add(value, mode="drop").reshape(count.shape)
