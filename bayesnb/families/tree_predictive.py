"""Predictive probability of rows, averaged over all trees."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesnb.families import spanning_trees
from bayesnb.families._pytree import pytree, static
from bayesnb.families._typed import map_leading_axis
from bayesnb.families.protocol import ReadyLikelihood

_ROOM = 2**20


@pytree
class TreePredictive(ReadyLikelihood):
    """Likelihood log p(row | class, D), averaged over all trees.

    Parameters
    ----------
    now : (C, K) array
        Log probability of each feature's level; increase of log B by one more row with the levels of a pair.
    before : (C, K) array, optional
        Increase of log B of pairs by the row itself, if it stands more times among the data; 0 for features.
    log_bayes : (P,) array
        log B of each pair.
    n_features : int
    """

    now: Any
    before: Any
    log_bayes: Any
    n_features: int = static()

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ of the terms."""
        return jnp.sum(self.terms(x), axis=-1)

    def terms(self, x: Any) -> Float[jax.Array, "N C T"]:
        """(N, C, F + 1) terms of the features alone, as in naive Bayes, and the term that the arcs add to their sum."""
        now = x.dot_terms(self.now)
        alone, added = now[..., : self.n_features], now[..., self.n_features :]
        log_bayes = jnp.broadcast_to(self.log_bayes, (len(now), len(self.log_bayes)))
        if self.before is not None:
            log_bayes = log_bayes + jnp.sum(x.dot_terms(self.before)[..., self.n_features :], axis=1)
        without = self.log_bayes[None] if self.before is None else log_bayes
        arcs = self._log_sum(log_bayes[:, None] + added) - self._log_sum(without)[:, None]
        return jnp.concatenate([alone, arcs[..., None]], axis=-1)

    def _log_sum(self, log_bayes: Float[jax.Array, "*B P"]) -> Float[jax.Array, "*B"]:
        """Log Σ over the trees for some weights at a time, so that they fit the cache."""
        n, *before = self.n_features, *log_bayes.shape[:-1]
        flat = log_bayes.reshape(math.prod(before), log_bayes.shape[-1])  # of one feature there are no arcs
        size = max(1, _ROOM // (n * n * 8))
        log_sums = map_leading_axis(lambda log_b: log_sum_of_trees(log_arc_weight(log_b), n), flat, batch_size=size)
        return log_sums.reshape(before)


def log_arc_weight(log_bayes: jax.Array) -> jax.Array:
    """Compute log(½ + ½ B)."""
    log_weight: jax.Array = jnp.logaddexp(0.0, log_bayes) - np.log(2.0)
    return log_weight


def log_sum_of_trees(log_weight: Float[jax.Array, "P"], n: int) -> jax.Array:
    """Log Σ over the spanning trees of n features, given weights of the pairs (0, 1), (0, 2), …, (n - 2, n - 1)."""
    return spanning_trees.log_sum(log_weight[spanning_trees.pair_index(n)]) if n > 1 else jnp.zeros(())
