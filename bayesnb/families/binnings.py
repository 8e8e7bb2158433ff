"""All binnings of G cells in a row: sums over every way to cut them into bins.

A binning is weighted by the product over its bins of exp(weight[i, k]), i and k the first and the last cell of the bin.
The 2^(G - 1) of them are summed by dynamic programming (Endres & Földiák, *Bayesian bin distribution inference and
mutual information*, IEEE Trans. Inf. Theory 51 (2005)).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid, logsumexp
from jaxtyping import Bool, Float, Int


class Bins(NamedTuple):
    """Sums over the binnings of one row of cells.

    `before` (G,) is the log sum over those of the cells before i, `log_total` that over all, and `log_prob` (G, G) the
    log of the share of those in which the cells i … k are a bin.
    """

    weight: Float[jax.Array, "G G"]
    before: Float[jax.Array, "G"]
    log_total: Float[jax.Array, ""]
    log_prob: Float[jax.Array, "G G"]

    @classmethod
    def of(cls, weight: Float[jax.Array, "G G"]) -> Bins:
        """From the log weights of the bins; -inf below the diagonal."""
        both = jnp.stack([weight, weight[::-1, ::-1].T])
        left, right = jax.vmap(_sums_before)(both)
        total, after = left[-1], right[-2::-1]
        return cls(weight, left[:-1], total, left[:-1, None] + weight + after - total)


def log_prior(log_odds: Float[jax.Array, "G"]) -> Float[jax.Array, "G G"]:
    """(G, G) log weights of bins where there is a cut before each cell, independently, with these log odds.

    Before the first cell there always is one; the weights of all binnings sum to one.
    """
    cut, none = log_sigmoid(jnp.asarray(log_odds)), log_sigmoid(-jnp.asarray(log_odds))
    uncut = jnp.concatenate([jnp.zeros(1), jnp.cumsum(none[1:])])
    found = cut.at[0].set(0.0)[:, None] + uncut - uncut[:, None]
    return jnp.where(is_bin(len(uncut)), found, -jnp.inf)


def is_bin(n: int) -> np.ndarray:
    """(n, n) whether a bin can begin at the cell i and end with the cell k."""
    return np.triu(np.ones((n, n), bool))


def over_cells(cells: Float[jax.Array, "*C G"]) -> Float[jax.Array, "*C G G"]:
    """(…, G, G) sums of values of cells over the cells of each bin; what stands below the diagonal is no bin."""
    until = jnp.cumsum(cells, axis=-1)
    return until[..., None, :] - (until - cells)[..., :, None]


def covering(bins: Float[jax.Array, "*C G G"]) -> Float[jax.Array, "*C G"]:
    """(…, G) sums of values of bins over those that each cell is in."""
    within = np.tri(bins.shape[-1])
    return jnp.sum((within @ bins) * within.T, axis=-1)


def log_covering(bins: Float[jax.Array, "*C G G"]) -> Float[jax.Array, "*C G"]:
    """(…, G) log sums of exponentials of values of bins over those that each cell is in."""

    def add(total: jax.Array, more: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = jnp.logaddexp(total, more)
        return total, total

    nothing = jnp.full(bins.shape[:-1], -jnp.inf)
    _, ending_later = jax.lax.scan(add, nothing, jnp.moveaxis(bins, -1, 0), reverse=True)  # (G of k, …, G of i)
    _, begun = jax.lax.scan(add, jnp.moveaxis(nothing, -1, 0), jnp.moveaxis(ending_later, -1, 0))  # of i, of k, …
    return jnp.diagonal(begun, axis1=0, axis2=1)


def log_hazard(bins: Bins) -> Float[jax.Array, "G G"]:
    """(G, G) log probability of a cut before the cell i, given that the cells i … k are in a bin that ends with k."""
    begins = bins.before[:, None] + bins.weight
    return jnp.minimum(begins - jax.lax.cumlogsumexp(begins, axis=0), 0.0)


def draw_cuts(log_hazard: Float[jax.Array, "G G"], log_uniform: Float[jax.Array, "G"]) -> Bool[jax.Array, "G"]:
    """(G,) whether there is a cut before each cell: a draw of binnings, as a function of log uniform variates."""
    cells = jnp.arange(len(log_uniform))

    def step(end: jax.Array, at: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        cell, hazard, variate = at
        cut = (variate < hazard[end]) | (cell == 0)
        return jnp.where(cut, cell - 1, end), cut

    return jax.lax.scan(step, cells[-1], (cells, log_hazard, log_uniform), reverse=True)[1]


def best_cuts(weight: Float[jax.Array, "G G"]) -> Bool[jax.Array, "G"]:
    """(G,) whether there is a cut before each cell, of the binning with the largest weight."""
    cells = jnp.arange(len(weight))

    def extend(best: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        cell, ending = at
        scores = best[:-1] + ending
        return best.at[cell + 1].set(jnp.max(scores)), jnp.argmax(scores)

    empty = jnp.full(len(weight) + 1, -jnp.inf).at[0].set(0.0)
    _, first = jax.lax.scan(extend, empty, (cells, weight.T))

    def trace(end: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
        cut = cell == first[end]
        return jnp.where(cut, cell - 1, end), cut

    return jax.lax.scan(trace, cells[-1], cells, reverse=True)[1]


def draw_bin(log_weight: Float[jax.Array, "G G"], log_uniform: Float[jax.Array, "2 G"]) -> Int[jax.Array, "2 G"]:
    """(2, G) first and last cell of a bin drawn in proportion to the weights of those that each cell is in."""
    n = log_weight.shape[-1]
    ending_later = jax.lax.cumlogsumexp(log_weight, axis=1, reverse=True)  # (i, g), of k >= g
    begun = jax.lax.cumlogsumexp(jnp.where(is_bin(n), ending_later, -jnp.inf), axis=0)  # (i, g), of those up to i

    def first_of(sums: jax.Array, variate: jax.Array) -> jax.Array:
        """The first position at which the cumulative sums pass a share of their last one."""
        return jnp.minimum(jnp.searchsorted(sums, sums[-1] + variate, side="right"), n - 1)

    cells = jnp.arange(n)
    first = jnp.minimum(jax.vmap(first_of)(begun.T, log_uniform[0]), cells)
    own = log_weight[first]  # (g, k)
    until = jax.lax.cumlogsumexp(jnp.where(is_bin(n), own, -jnp.inf), axis=1)
    return jnp.stack([first, jnp.maximum(jax.vmap(first_of)(until, log_uniform[1]), cells)])


def log_sums_over(log_values: Float[jax.Array, "G"], first: Int[jax.Array, "*K"], last: Int[jax.Array, "*K"]) -> tuple:
    """Log sums of exponentials over the cells first … last, and over the others; without subtractions."""
    n = log_values.shape[-1]
    padded = jnp.concatenate([log_values, jnp.full((1,), -jnp.inf)])
    inside, at, left = jnp.full(jnp.shape(first), -jnp.inf), first, last - first + 1
    span, doubled = 1, padded
    while span <= n:
        take = (left & span) > 0
        inside = jnp.where(take, jnp.logaddexp(inside, doubled[jnp.minimum(at, n)]), inside)
        at = jnp.where(take, at + span, at)
        later = jnp.concatenate([doubled[span:], jnp.full((min(span, n + 1),), -jnp.inf)])[: n + 1]
        span, doubled = 2 * span, jnp.logaddexp(doubled, later)
    nothing = jnp.full((1,), -jnp.inf)
    before = jnp.concatenate([nothing, jax.lax.cumlogsumexp(log_values)])
    after = jnp.concatenate([jax.lax.cumlogsumexp(log_values, reverse=True), nothing])
    return inside, jnp.logaddexp(before[first], after[last + 1])


def _sums_before(weight: jax.Array) -> Float[jax.Array, "E"]:
    """(E,) = (G + 1,) log sums over the binnings of the first cells."""

    def extend(sums: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        cell, ending = at
        return sums.at[cell + 1].set(logsumexp(sums[:-1] + ending)), None

    empty = jnp.full(len(weight) + 1, -jnp.inf).at[0].set(0.0)
    return jax.lax.scan(extend, empty, (jnp.arange(len(weight)), weight.T))[0]
