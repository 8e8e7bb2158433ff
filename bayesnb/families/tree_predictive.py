"""What rows have under an average over all trees."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesnb.families import spanning_trees
from bayesnb.families._pytree import pytree, static

_ROOM = 2**20


@pytree
class TreePredictive:
    """log p(row | class, D), all trees averaged.

    Parameters
    ----------
    now : (C, K) array
        Of each feature's level its log probability; of a pair's what one more row with them adds to log B.
    before : (C, K) array, optional
        What rows that stand among the data some more times have added to log B of pairs; 0 of features.
    log_bayes : (P,) array
        log B of each pair.
    n_features : int
    """

    now: Any
    before: Any
    log_bayes: Any
    n_features: int = static()

    def prepare(self, x: Any) -> TreePredictive:
        return self

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ of the terms."""
        return jnp.sum(self.terms(x), axis=-1)

    def terms(self, x: Any) -> Float[jax.Array, "N C T"]:
        """(N, C, F + 1) those of the features alone, as in naive Bayes, and what the arcs add to their sum."""
        now = x.dot_terms(self.now)
        alone, added = now[..., : self.n_features], now[..., self.n_features :]
        log_bayes = jnp.broadcast_to(self.log_bayes, (len(now), len(self.log_bayes)))
        if self.before is not None:
            log_bayes = log_bayes + jnp.sum(x.dot_terms(self.before)[..., self.n_features :], axis=1)
        without = self.log_bayes[None] if self.before is None else log_bayes
        arcs = self._log_sum(log_bayes[:, None] + added) - self._log_sum(without)[:, None]
        return jnp.concatenate([alone, arcs[..., None]], axis=-1)

    def _log_sum(self, log_bayes: Float[jax.Array, "*B P"]) -> Float[jax.Array, "*B"]:
        """log Σ over the trees, some at a time, so that their weights fit the cache."""
        n, *before = self.n_features, *log_bayes.shape[:-1]
        flat = log_bayes.reshape(math.prod(before), log_bayes.shape[-1])  # of one feature there are no arcs
        size = max(1, _ROOM // (n * n * 8))
        found = jax.lax.map(lambda own: log_sum_of(log_weight_of(own), n), flat, batch_size=size)
        return found.reshape(before)


def log_weight_of(log_bayes: jax.Array) -> jax.Array:
    """log(½ + ½ B)."""
    return jnp.logaddexp(0.0, log_bayes) - np.log(2.0)


def log_sum_of(log_weight: Float[jax.Array, "P"], n: int) -> jax.Array:
    """log Σ over the spanning trees of n features, of weights of (0, 1), (0, 2), …, (n - 2, n - 1)."""
    return spanning_trees.log_sum(log_weight[spanning_trees.pair_index(n)]) if n > 1 else jnp.zeros(())
