"""Sums over all binnings of G cells in a row, that is, over every way to cut them into bins.

A binning is weighted by the product over its bins of exp(weight[i, k]), i and k the first and the last cell of the bin.
The 2^(G - 1) of them are summed by dynamic programming (Endres & Földiák, *Bayesian bin distribution inference and
mutual information*, IEEE Trans. Inf. Theory 51 (2005)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid, logsumexp
from jaxtyping import Bool, Float, Int

from bayesnb.families._pytree import Array

NEVER = -1e30
"""Log weight of the impossible: sums of infinities have no derivatives."""


class Bins(NamedTuple):
    """Sums over all binnings of one row of cells, by which probabilities of cuts and bins are computed.

    `before` (G,) is the log sum over the binnings of the cells before i, `log_total` the log sum over all binnings, and
    `log_prob` (G, G) the log probability that the cells i … k are a bin.
    """

    weight: Float[jax.Array, "G G"]
    before: Float[jax.Array, "G"]
    log_total: Float[jax.Array, ""]
    log_prob: Float[jax.Array, "G G"]

    @classmethod
    def from_weights(cls, weight: Float[jax.Array, "G G"]) -> Bins:
        """Sums over binnings, given log weights (G, G) of the bins i … k, `NEVER` below the diagonal."""
        both = jnp.stack([weight, weight[::-1, ::-1].T])
        left, right = jax.vmap(_sums_before)(both)
        total, after = left[-1], right[-2::-1]
        return cls(weight, left[:-1], total, left[:-1, None] + weight + after - total)


def log_prior(log_odds: Float[Array, "G"]) -> Float[jax.Array, "G G"]:
    """(G, G) log weights of bins i … k when cuts before cells are independent, with log odds (G,).

    There always is a cut before the first cell; the weights of all binnings sum to one.
    """
    cut, none = log_sigmoid(jnp.asarray(log_odds)), log_sigmoid(-jnp.asarray(log_odds))
    uncut = jnp.concatenate([jnp.zeros(1), jnp.cumsum(none[1:])])
    log_weight = cut.at[0].set(0.0)[:, None] + uncut - uncut[:, None]
    return jnp.where(is_bin(len(uncut)), log_weight, NEVER)


def is_bin(n: int) -> np.ndarray:
    """(n, n) of bool: whether cells i … k are a bin, i <= k."""
    return np.triu(np.ones((n, n), bool))


def over_cells(cells: Float[jax.Array, "*C G"]) -> Float[jax.Array, "*C G G"]:
    """(…, G, G) sums of `cells` (…, G) over i … k; entries below the diagonal, k < i, are no bins."""
    until = jnp.cumsum(cells, axis=-1)
    return until[..., None, :] - (until - cells)[..., :, None]


def sum_covering(bins: Float[jax.Array, "*C G G"]) -> Float[jax.Array, "*C G"]:
    """(…, G) for each cell, sum of the values (…, G, G) of all bins that contain the cell."""
    within = np.tri(bins.shape[-1])
    return jnp.sum((within @ bins) * within.T, axis=-1)


def log_sum_covering(bins: Float[jax.Array, "*C G G"]) -> Float[jax.Array, "*C G"]:
    """(…, G) for each cell, log Σ exp of the log values (…, G, G) of all bins that contain the cell."""
    log_sums: jax.Array = jnp.diagonal(BinSums.from_weights(bins).begun, axis1=-2, axis2=-1)
    return log_sums


def log_hazard(bins: Bins) -> Float[jax.Array, "G G"]:
    """(G, G) log posterior probability of a cut before cell i, given that cells i … k are in a bin that ends with k."""
    begins = bins.before[:, None] + bins.weight
    return jnp.minimum(begins - jax.lax.cumlogsumexp(begins, axis=0), 0.0)


def draw_cuts(log_hazard: Float[jax.Array, "G G"], log_uniform: Float[jax.Array, "G"]) -> Bool[jax.Array, "G"]:
    """(G,) of bool: cuts before cells of a binning drawn backwards by `log_hazard`, with log uniform variates (G,)."""
    cells = jnp.arange(len(log_uniform))

    def step(end: jax.Array, at: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Decide on a cut before one cell; return the last cell of the current bin, and whether there is a cut."""
        cell, hazard, variate = at
        cut = (variate < hazard[end]) | (cell == 0)
        return jnp.where(cut, cell - 1, end), cut

    return jax.lax.scan(step, cells[-1], (cells, log_hazard, log_uniform), reverse=True)[1]


def best_cuts(weight: Float[jax.Array, "G G"]) -> Bool[jax.Array, "G"]:
    """(G,) of bool: whether the binning of largest weight has a cut before each cell, by dynamic programming."""
    cells = jnp.arange(len(weight))

    def extend(best: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Append a cell: store the best log weight of the cells so far, and return the first cell of the last bin."""
        cell, ending = at
        scores = best[:-1] + ending
        return best.at[cell + 1].set(jnp.max(scores)), jnp.argmax(scores)

    empty = jnp.full(len(weight) + 1, NEVER).at[0].set(0.0)
    _, first = jax.lax.scan(extend, empty, (cells, weight.T))

    def trace(end: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Go back one cell: return the last cell of the current bin, and whether there is a cut."""
        cut = cell == first[end]
        return jnp.where(cut, cell - 1, end), cut

    return jax.lax.scan(trace, cells[-1], cells, reverse=True)[1]


class BinSums(NamedTuple):
    """Cumulative log sums of the weights of bins, by which a bin that contains a given cell is drawn.

    `ending_later` (i, g) is over the bins that begin with the cell i and end with g or later, `begun` (i, g) over the
    bins with the cell g that begin with i or before.
    """

    ending_later: Float[jax.Array, "*C G G"]
    begun: Float[jax.Array, "*C G G"]

    @classmethod
    def from_weights(cls, log_weight: Float[jax.Array, "*C G G"]) -> BinSums:
        """Cumulative log sums over bins, given log weights (…, G, G) of the bins i … k."""
        later = jnp.moveaxis(_cumulative_log_sums(jnp.moveaxis(log_weight, -1, 0), reverse=True), 0, -1)
        bins = jnp.where(is_bin(log_weight.shape[-1]), later, NEVER)
        return cls(later, jnp.moveaxis(_cumulative_log_sums(jnp.moveaxis(bins, -2, 0)), 0, -2))

    def draw(self, log_uniform: Float[jax.Array, "2 G"]) -> tuple[jax.Array, jax.Array]:
        """First and last cell, (G,) each, of a bin drawn in proportion to its weight among those with each cell."""
        cells = jnp.arange(log_uniform.shape[1])
        target = jnp.diagonal(self.begun) + log_uniform[0]
        first = _last_true(lambda i: self.begun[i, cells] < target, cells * 0 - 1, len(cells)) + 1
        first = jnp.minimum(first, cells)
        least = self.ending_later[first, cells] + log_uniform[1]
        return first, _last_true(lambda k: self.ending_later[first, k] >= least, cells, len(cells))


def _cumulative_log_sums(values: jax.Array, *, reverse: bool = False) -> jax.Array:
    """Cumulative log Σ exp along the first axis, from the end if `reverse`; same shape as `values`."""

    def add(total: jax.Array, more: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Running log sum with the next entry added, twice as `scan` needs it."""
        total = jnp.logaddexp(total, more)
        return total, total

    return jax.lax.scan(add, jnp.full_like(values[0], NEVER), values, reverse=reverse)[1]


def _last_true(holds: Callable[[jax.Array], jax.Array], start: jax.Array, n: int) -> jax.Array:
    """Last position below n, per entry of `start`, up to which the monotone predicate `holds` is true, by bisection.

    The result is `start` where the predicate fails at once.
    """
    position, step = start, 1 << max(0, n - 1).bit_length()
    while step:
        farther = position + step
        position = jnp.where((farther < n) & holds(jnp.minimum(farther, n - 1)), farther, position)
        step //= 2
    return position


def log_sums_inside_and_outside(
    log_values: Float[jax.Array, "*C G"], first: Int[jax.Array, "K"], last: Int[jax.Array, "K"]
) -> tuple[jax.Array, jax.Array]:
    """(…, K) log Σ exp of `log_values` (…, G) over cells first … last, and over all other cells, K intervals.

    Sums below e⁻⁷⁰⁰ of the largest value are not distinguished.
    """
    cells, top = jnp.arange(log_values.shape[-1]), jnp.max(log_values, axis=-1, keepdims=True)
    within = ((cells >= first[:, None]) & (cells <= last[:, None])).astype(log_values.dtype)
    values = jnp.exp(log_values - top)
    tiny = np.finfo(values.dtype).tiny
    inside, outside = (jnp.maximum(values @ mask.T, tiny) for mask in (within, 1.0 - within))
    return top + jnp.log(inside), top + jnp.log(outside)


def _sums_before(weight: jax.Array) -> Float[jax.Array, "E"]:
    """(G + 1,) log sums of binning weights of the first 0, 1, …, G cells, given log weights (G, G) of bins."""

    def extend(sums: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        """Append a cell: set the log sum over all binnings that end with the cell."""
        cell, ending = at
        return sums.at[cell + 1].set(logsumexp(sums[:-1] + ending)), None

    empty = jnp.full(len(weight) + 1, NEVER).at[0].set(0.0)
    return jax.lax.scan(extend, empty, (jnp.arange(len(weight)), weight.T))[0]
