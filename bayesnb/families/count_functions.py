"""Functions of counts and concentrations that all kinds of rows share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from bayesnb.families._namespace import add_at, xp
from bayesnb.families._pytree import Array
from bayesnb.families.special import log_rising


class Term(NamedTuple):
    """Function f(x, a) of a count x and a parameter a, zero at x = 0, and special cases of f that are cheaper.

    `once` is f(1, a), and `single` f(1, a) - f(1, a₀[group]). Classes are the last axis of a; several functions may be
    concatenated there, to share one product. `unseen` is the log probability, given a and its a₀, of a level for which
    the row is not among the data; None where f is not a logarithm of a probability.
    """

    f: Callable[[jax.Array, jax.Array], jax.Array]
    once: Callable[[jax.Array], jax.Array]
    single: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    unseen: Callable[[jax.Array, jax.Array], jax.Array] | None = None


class Contrast(NamedTuple):
    """Arguments of Σ_l f(x_l, a_l) - Σ_g f(t_g, a₀_g): f, a (C, L), a₀ (C, G), and the group of each level (L,)."""

    term: Term
    level: Array
    total: Array
    group: Array

    def single(self) -> jax.Array:
        """(C, L) value f(1, a) - f(1, a₀[group]) for one draw of each level."""
        return self.term.single(xp.asarray(self.level).T, xp.asarray(self.total).T, xp.asarray(self.group)).T


def log_or_minus_infinity(x: Any) -> jax.Array:
    """Compute log x elementwise, -inf at 0, where the derivative is 0 so that it does not spoil those of others."""
    x = xp.asarray(x)
    return xp.where(x == 0, -xp.inf, xp.log(xp.where(x == 0, 1.0, x)))


def linear(x: Array | float, table: Array) -> jax.Array:
    """Compute x · table elementwise, with 0 · (-inf) = 0."""
    return xp.where(x == 0, 0.0, xp.multiply(x, table))


def rising(multiplicity: Any) -> Term:
    """`Term` log Γ(a + x)/Γ(a), the Dirichlet-multinomial predictive; `multiplicity` None: at a as it is.

    With `multiplicity` w (C,) the last axis of a has α, then the counts n, and f is taken at a = α + max(n + w x, 0).
    """
    return _log_probability_term(multiplicity, log_rising)


def plugged_in(multiplicity: Any) -> Term:
    """`Term` x log a, the plug-in likelihood at the posterior mean; `multiplicity` None: at a as it is.

    With `multiplicity` w (C,) the last axis of a has α, then the counts n, and f is taken at a = α + max(n + w x, 0).
    """
    return _log_probability_term(multiplicity, lambda a, x: linear(x, xp.log(a)))


def _log_probability_term(multiplicity: Any, f: Callable[[jax.Array, Any], Any]) -> Term:
    """`Term` of a function f(a, x) that is the log of a probability factor of a count x.

    With `multiplicity` w (C,) the last axis of a has α, then the counts n, and f is taken at a = α + max(n + w x, 0);
    None: at a as it is.
    """

    def with_row(a: jax.Array, x: object) -> jax.Array:
        """Concentration a after `multiplicity` · x was added to its counts: α + max(n + w x, 0); a itself without w."""
        if multiplicity is None:
            return a
        alpha, count = xp.split(a, 2, axis=-1)
        return with_counts(alpha, count, multiplicity * x)

    return Term(
        lambda x, a: f(with_row(a, x), x),
        lambda a: xp.log(with_row(a, 1.0)),
        lambda a, total, group: xp.log(with_row(a, 1.0) / with_row(total, 1.0)[group]),
        lambda a, total: xp.log(with_row(a, 0.0) / with_row(total, 0.0)),
    )


def with_counts(alpha: Any, count: Any, multiplicity: Any) -> Any:
    """Compute α + max(n + multiplicity, 0): a small α would be lost in α + n, and rounding may leave counts below 0."""
    return alpha + xp.maximum(count + multiplicity, 0.0)


def weighted(weight: Array, log_prob: Array) -> jax.Array:
    """Compute w log p elementwise: 0 where w = 0, and else -inf where log p = -inf, whatever the sign of w."""
    impossible = xp.isneginf(log_prob)
    return xp.where(weight == 0, 0.0, xp.where(impossible, -xp.inf, weight * xp.where(impossible, 0.0, log_prob)))


def level_offset(count: Array, label: Array) -> jax.Array:
    """(N,) flat index, in `count` (C, L) as a vector, of the first level of each row's class `label` (N,)."""
    return xp.asarray(label, xp.int32 if 2 * count.size < 2**31 else xp.int64) * count.shape[1]


def add_at_flat(count: Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """Copy of `count` (C, L) with values added at flat indices; indices past the end are dropped."""
    return add_at(xp.asarray(count).reshape(-1), index, value).reshape(count.shape)
