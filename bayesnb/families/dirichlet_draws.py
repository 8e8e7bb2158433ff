"""Draws of log p(row | class, θ) under a Dirichlet posterior, with or without the row itself among the data."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesnb.families.count_matrix import Dense
from bayesnb.families.network_cells import NetworkCells
from bayesnb.families.one_hot import OneHot
from bayesnb.families.sparse_counts import Counts, PairedCounts, Presence
from bayesnb.families.terms import linear
from bayesnb.families.variates import Variates


def draw_log_likelihood(
    family: Any, variates: Variates, n: int, x: Any, multiplicity: float
) -> Float[jax.Array, "n N C"]:
    """(n, N, C) draws of Σ x_l log θ_l with θ ~ Dirichlet(α + multiplicity · x), of each group and class its own.

    A Gamma(α + x) variate is a Gamma(α) one, shared by all rows, plus a row's own Gamma(x).
    """
    if not multiplicity:
        return jax.lax.map(lambda log_theta: x.dot(x.layout(log_theta)), family.draw(variates, n).log_theta)
    if isinstance(x, OneHot | Presence):
        return _one_each(family, variates, n, x, multiplicity)
    if isinstance(x, NetworkCells):
        found = _one_each(family, variates, n, x.observed, multiplicity)
        return found.at[:, x.which].add(x.draw_with_row(variates, n, family, multiplicity), mode="drop")
    alpha = jnp.asarray(family.concentration)
    log_gamma = variates.log_gamma(alpha, n)
    if isinstance(x, Dense):
        own = variates.log_gamma(multiplicity * jnp.asarray(x.count), n)
        return jax.lax.map(lambda draw: _dense(x, family, *draw), (log_gamma, own))
    entries = x.entries if isinstance(x, PairedCounts) else x
    own = variates.log_gamma(multiplicity * _stored_counts(entries), n)
    return jax.lax.map(lambda draw: _sparse(entries, *draw), (log_gamma, own))


def _one_each(family: Any, variates: Variates, n: int, x: OneHot | Presence, multiplicity: float) -> jax.Array:
    chosen, others = draw_marginals(family, variates, n, multiplicity)
    return jax.lax.map(lambda draw: x.dot(x.layout(draw[0] - jnp.logaddexp(*draw))), (chosen, others))


def draw_marginals(family: Any, variates: Variates, n: int, multiplicity: float) -> tuple[jax.Array, jax.Array]:
    """Logarithms of gamma variates (n, C, L) of each level and of the others of its group, the level added.

    Of one draw from each group only the marginal matters, θ_l ~ Beta(α_l + multiplicity, α₀ - α_l): a table.
    """
    alpha = jnp.asarray(family.concentration)
    rest = jnp.maximum(family.total()[:, family.group] - alpha, 0.0)
    return variates.log_gamma(alpha + multiplicity, n), variates.log_gamma(rest, n)


def _dense(x: Dense, family: Any, log_gamma: jax.Array, own: jax.Array) -> jax.Array:
    count = jnp.asarray(x.count)
    totals = jax.ops.segment_sum(count.T, x.group, x.num_groups).T

    def one_class(levels: jax.Array) -> jax.Array:
        drawn = jnp.logaddexp(levels, own)
        top = jax.ops.segment_max(drawn.T, x.group, x.num_groups)
        mass = jax.ops.segment_sum(jnp.exp(drawn.T - top[x.group]), x.group, x.num_groups)
        return jnp.sum(linear(count, drawn), axis=-1) - jnp.sum(linear(totals, (top + jnp.log(mass)).T), axis=-1)

    return jax.vmap(one_class, out_axes=1)(log_gamma)


def _sparse(x: Counts, log_gamma: jax.Array, own: jax.Array) -> jax.Array:
    """`own` (E,) is the row's own variate of each stored entry."""
    n = x.indptr.shape[0] - 1
    count = _stored_counts(x)
    drawn = jnp.logaddexp(log_gamma.T[x.level], own[:, None])

    def over_rows(values: jax.Array) -> jax.Array:
        return jax.ops.segment_sum(values, x.row, n)

    total, extra = over_rows(count), over_rows(jnp.exp(own))
    log_mass = jnp.logaddexp(jax.nn.logsumexp(log_gamma, axis=1), jnp.log(extra)[:, None])
    return over_rows(linear(count[:, None], drawn)) - linear(total[:, None], log_mass)


def _stored_counts(x: Counts) -> jax.Array:
    return jnp.where(jnp.arange(x.level.shape[0]) < x.indptr[-1], x.count, 0.0)
