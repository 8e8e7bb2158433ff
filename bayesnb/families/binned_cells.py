"""Cells of one feature of a `Binned` density, and averages over all binnings of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesnb.families import binnings
from bayesnb.families._pytree import Array
from bayesnb.families.binnings import Bins, over_cells
from bayesnb.families.special import log_rising, polygammas


class Cells(NamedTuple):
    """Cells of one feature: α and n of each, (C, G), and log odds of a cut before each, (G,).

    Behind the last cell these are 0, 0 and `NEVER`.
    """

    alpha: Array
    count: Any  # a tuple has a method of this name
    log_odds: Array

    def bins(self) -> Bins:
        """Sums over all binnings, each weighted by its prior and by the evidence of the rows of all classes."""
        alpha, count = self.over_bins()
        evidence = log_rising(alpha, count) - count * jnp.log(alpha / self._total(self.alpha))
        return Bins.from_weights(binnings.log_prior(self.log_odds) + jnp.sum(evidence, axis=0))

    def over_bins(self) -> tuple[jax.Array, jax.Array]:
        """(C, G, G) α and n of each bin; 1 and 0 where there is no bin."""
        alpha, count = over_cells(jnp.asarray(self.alpha)), over_cells(jnp.asarray(self.count))
        some = binnings.is_bin(alpha.shape[-1]) & (alpha > 0)
        return jnp.where(some, alpha, 1.0), jnp.where(some, jnp.maximum(count, 0.0), 0.0)

    def total(self) -> Float[jax.Array, "C 1 1"]:
        """(C, 1, 1) α₀ + N."""
        return self._total(self.alpha) + self._total(self.count)

    def expected(self, of_bins: Float[jax.Array, "C G G"]) -> Float[jax.Array, "C G"]:
        """(C, G) averages of values of bins over the bins that each cell may be in."""
        probability = jnp.exp(self.bins().log_prob)
        # These sum to 1 for each cell, but for rounding, which is large where counts are.
        sums = binnings.sum_covering(jnp.concatenate([probability * of_bins, probability[None]]))
        return sums[:-1] / sums[-1]

    def mean(self) -> Float[jax.Array, "C G"]:
        """(C, G) expected probabilities of the cells."""
        alpha, count = self.over_bins()
        return self.expected((alpha + count) / (alpha * self.total())) * self.share()

    def log_partition(self) -> Float[jax.Array, ""]:
        """Log p(cells counted so far)."""
        n, alpha = jnp.asarray(self.count), jnp.asarray(self.alpha)
        total = jnp.sum(alpha, axis=-1)
        share = jnp.where(alpha > 0, alpha / total[:, None], 1.0)
        return self.bins().log_total + jnp.sum(n * jnp.log(share)) - jnp.sum(log_rising(total, jnp.sum(n, axis=-1)))

    def share(self) -> Float[jax.Array, "C G"]:
        """(C, G) α_g: within a bin cells have probabilities in proportion to α."""
        return jnp.asarray(self.alpha)

    def _total(self, cells: Any) -> jax.Array:
        return jnp.sum(jnp.asarray(cells), axis=-1)[:, None, None]


def _change(cells: Cells, multiplicity: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(C, G, G) changes of the log weights of bins by further rows in them, and α + n of the bins with these rows."""
    alpha, count = cells.over_bins()
    share = alpha / jnp.sum(jnp.asarray(cells.alpha), axis=-1)[:, None, None]
    more = multiplicity[:, None, None]
    least = alpha + jnp.maximum(count + jnp.minimum(more, 0.0), 0.0)
    gain = jnp.sign(more) * log_rising(least, abs(more) * jnp.ones_like(count)) - more * jnp.log(share)
    return gain, alpha + jnp.maximum(count + more, 0.0)


def predictive_with_row(cells: Cells, multiplicity: jax.Array) -> jax.Array:
    """(C, G) log predictive of each cell, with the cell `multiplicity` (C,) more times among the data."""
    gain, counted = _change(cells, multiplicity)
    weight = cells.bins().log_prob + jnp.sum(gain, axis=0)
    alpha, total = cells.over_bins()[0], cells.total() + multiplicity[:, None, None]
    sums = binnings.log_sum_covering(jnp.concatenate([weight[None], weight + jnp.log(counted / (alpha * total))]))
    return sums[1:] - sums[0] + jnp.log(cells.share())


def weights_with_row(cells: Cells) -> jax.Array:
    """(own, G, G) log weights of bins with one more row in the class `own`, up to a constant."""
    alpha, count = cells.over_bins()
    return cells.bins().log_prob + jnp.log((alpha + count) / alpha)


def moments_of_odds(cells: Cells, one: jax.Array, other: jax.Array) -> jax.Array:
    """(3 · pairs, G) moments E d, E d², E d³ of d = log θ_one - log θ_other."""
    alpha, count = cells.over_bins()
    probability = jnp.exp(cells.bins().log_prob)
    (mean, variance, third), total = polygammas(alpha + count), polygammas(cells.total())
    mean, variance, third = mean - total[0] - jnp.log(alpha), variance - total[1], third - total[2]
    log_share = jnp.log(jnp.maximum(cells.share(), np.finfo(float).tiny))

    def of_pair(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
        a, b = pair
        m, v, t = mean[a] - mean[b], variance[a] + variance[b], third[a] - third[b]
        shift = log_share[a] - log_share[b]
        first, second, third_ = (
            binnings.sum_covering(probability * moment) for moment in (m, v + m**2, t + 3.0 * m * v + m**3)
        )
        shifted = first + shift, second + 2.0 * shift * first + shift**2
        return jnp.stack([*shifted, third_ + 3.0 * shift * second + 3.0 * shift**2 * first + shift**3])

    moments = jnp.moveaxis(jax.lax.map(of_pair, (one, other)), 1, 0)  # (3, pairs, G)
    same = (one == other)[:, None]
    return jnp.where(same, 0.0, moments).reshape(-1, moments.shape[-1])
