"""Sums over all binnings of G cells in a row, that is, over every way to cut them into bins.

Leading axes of the arguments, such as features, are kept.

A binning is weighted by the product over its bins of exp(weight[i, k]), i and k the first and the last cell of the bin.
The 2^(G - 1) of them are summed by dynamic programming (Endres & Földiák, *Bayesian bin distribution inference and
mutual information*, IEEE Trans. Inf. Theory 51 (2005)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families._namespace import cumlogsumexp, gather, is_host, log_sigmoid, logsumexp, scan, set_at, xp
from bayesnb.families._pytree import Array

Values = Float[jax.Array, "*F G"]
"""Numbers of the cells of each feature."""
BinValues = Float[jax.Array, "*F G G"]
"""Numbers of the bins i … k of each feature."""
NEVER = -1e30
"""Log weight of the impossible: sums of infinities have no derivatives."""
LEAST = -700.0
"""Least logarithm whose exponential is computed: underflow takes NumPy four times as long."""


class Bins(NamedTuple):
    """Sums over all binnings of one row of cells, by which probabilities of cuts and bins are computed.

    `before` (…, G) is the log sum over the binnings of the cells before i, `log_total` the log sum over all binnings,
    and `log_prob` (…, G, G) the log probability that the cells i … k are a bin.
    """

    weight: BinValues
    before: Values
    log_total: Float[jax.Array, "*F"]
    log_prob: BinValues

    @classmethod
    def from_weights(cls, weight: BinValues) -> Bins:
        """Sums over binnings, given log weights (…, G, G) of the bins i … k, `NEVER` below the diagonal."""
        ending, beginning = _ending_with(weight), xp.moveaxis(weight, (-2, -1), (0, 1))[::-1, ::-1]
        left, right = xp.moveaxis(_sums_before(xp.stack([ending, beginning], axis=2)), (1, 0), (0, -1))
        before, total, after = left[..., :-1], left[..., -1], right[..., -2::-1]
        log_prob = (before - total[..., None])[..., None] + weight + after[..., None, :]
        return cls(weight, before, total, log_prob)


def log_prior(log_odds: Float[Array, "*F G"]) -> BinValues:
    """(…, G, G) log weights of bins i … k when cuts before cells are independent, with log odds (…, G).

    There always is a cut before the first cell; the weights of all binnings sum to one.
    """
    cut, none = log_sigmoid(xp.asarray(log_odds)), log_sigmoid(-xp.asarray(log_odds))
    first = np.arange(cut.shape[-1]) == 0
    cut, uncut = xp.where(first, 0.0, cut), xp.cumsum(xp.where(first, 0.0, none), axis=-1)
    return xp.where(is_bin(cut.shape[-1]), (cut - uncut)[..., None] + uncut[..., None, :], NEVER)


def is_bin(n: int) -> np.ndarray:
    """(n, n) of bool: whether cells i … k are a bin, i <= k."""
    return np.triu(np.ones((n, n), bool))


def over_cells(cells: Values, fill: float) -> BinValues:
    """(…, G, G) sums of `cells` (…, G) over i … k; `fill` where k < i, and in place of sums that are not positive."""
    until = xp.cumsum(cells, axis=-1)
    sums = until[..., None, :] - (until - cells)[..., :, None]
    return xp.where(is_bin(cells.shape[-1]) & (sums > 0), sums, fill)


def sum_covering(bins: BinValues) -> Values:
    """(…, G) for each cell, sum of the values (…, G, G) of all bins that contain the cell."""
    within = np.tri(bins.shape[-1])
    return xp.sum((within @ bins) * within.T, axis=-1)


def sum_covering_pairs(bins: BinValues) -> BinValues:
    """(…, G, G) for each pair of cells, sum of the values (…, G, G) of all bins that contain both."""
    within: Any = np.tri(bins.shape[-1])
    sums = within @ bins @ within
    return xp.where(within, sums.swapaxes(-1, -2), sums)


def log_sum_covering(bins: BinValues) -> Values:
    """(…, G) for each cell, log Σ exp of the log values (…, G, G) of all bins that contain the cell."""
    return xp.diagonal(BinSums.from_weights(bins).begun, axis1=-2, axis2=-1)


def log_hazard(bins: Bins) -> BinValues:
    """(…, G, G) log posterior probability of a cut before cell i, given cells i … k in a bin that ends with k."""
    begins = bins.before[..., None] + bins.weight
    return xp.minimum(begins - cumlogsumexp(begins, axis=begins.ndim - 2), 0.0)


def draw_cuts(log_hazard: BinValues, log_uniform: Float[jax.Array, "n *F G"]) -> Bool[jax.Array, "n *F G"]:
    """(n, …, G) of bool: cuts before cells of n binnings drawn backwards by `log_hazard` (…, G, G).

    `log_uniform` are log uniform variates (n, …, G).
    """
    cells = xp.arange(log_uniform.shape[-1])

    def step(end: jax.Array, at: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Decide on cuts before one cell; return the last cells of the current bins, and whether there are cuts."""
        cell, hazard, variate = at
        hazard = xp.broadcast_to(hazard, (*end.shape, len(cells)))
        cut = (variate < xp.take_along_axis(hazard, end[..., None], axis=-1)[..., 0]) | (cell == 0)
        return xp.where(cut, cell - 1, end), cut

    at = cells, xp.moveaxis(log_hazard, -2, 0), xp.moveaxis(log_uniform, -1, 0)
    last = xp.full(log_uniform.shape[:-1], len(cells) - 1)
    return xp.moveaxis(scan(step, last, at, reverse=True)[1], 0, -1)


def log_sums_of_bins(log_values: Any, cuts: Bool[jax.Array, "... G"]) -> Float[jax.Array, "... G"]:
    """(…, G) log Σ exp of `log_values` (…, G) over the bin of each cell, given whether there are cuts before cells."""
    values, cut = (xp.moveaxis(v, -1, 0) for v in xp.broadcast_arrays(log_values, cuts))

    def add(total: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Running log sum since the last cut, twice as `scan` needs it."""
        total = xp.where(at[0], at[1], xp.logaddexp(total, at[1]))
        return total, total

    def keep(total: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Log sum of the bin, which its last cell has, twice as `scan` needs it."""
        total = xp.where(at[0], at[1], total)
        return total, total

    sums = scan(add, xp.full_like(values[0], NEVER), (cut, values))[1]
    is_last = xp.concatenate([cut[1:], xp.ones_like(cut[:1])])
    return xp.moveaxis(scan(keep, sums[-1], (is_last, sums), reverse=True)[1], 0, -1)


def best_cuts(weight: BinValues) -> Bool[jax.Array, "*F G"]:
    """(…, G) of bool: whether the binning of largest weight has a cut before each cell, by dynamic programming."""
    cells = xp.arange(weight.shape[-1])

    def extend(best: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Append a cell: store the best log weight of the cells so far, and return the first cell of the last bin."""
        cell, ending = at
        scores = best[:-1] + ending
        return set_at(best, cell + 1, xp.max(scores, axis=0)), xp.argmax(scores, axis=0)

    ending = _ending_with(weight)
    _, first = scan(extend, _no_cell(ending), (cells, ending))
    last = cells[-1] + 0 * first[-1]

    def trace(end: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Go back one cell: return the last cell of the current bin, and whether there is a cut."""
        cut = cell == xp.take_along_axis(first, end[None], axis=0)[0]
        return xp.where(cut, cell - 1, end), cut

    return xp.moveaxis(scan(trace, last, cells, reverse=True)[1], 0, -1)


class BinSums(NamedTuple):
    """Cumulative log sums of the weights of bins, by which a bin that contains a given cell is drawn.

    `ending_later` (i, g) is over the bins that begin with the cell i and end with g or later, `begun` (i, g) over the
    bins with the cell g that begin with i or before.
    """

    ending_later: BinValues
    begun: BinValues

    @classmethod
    def from_weights(cls, log_weight: BinValues) -> BinSums:
        """Cumulative log sums over bins, given log weights (…, G, G) of the bins i … k."""
        axis = log_weight.ndim - 1
        later = cumlogsumexp(log_weight[..., ::-1], axis=axis)[..., ::-1]
        return cls(later, cumlogsumexp(xp.where(is_bin(log_weight.shape[-1]), later, NEVER), axis=axis - 1))

    def draw(self, log_uniform: Float[jax.Array, "2 *N F K"], cells: Int[jax.Array, "F K"]) -> tuple[Any, Any]:
        """First and last cell, (…, F, C, K) each, of bins drawn in proportion to their weights among those with a cell.

        The sums are (F, C, G, G); the C draws for a cell use the same two log uniform variates.
        """
        cells, n = xp.broadcast_to(cells[:, None], (*self.begun.shape[:2], cells.shape[-1])), self.begun.shape[-1]
        of_first, of_last = log_uniform[..., None, :]
        target = take_last(self.begun, cells, cells) + of_first
        first = _last_true(lambda i: take_last(self.begun, i, cells) < target, cells * 0 - 1, n) + 1
        first = xp.minimum(first, cells)
        least = take_last(self.ending_later, first, cells) + of_last
        return first, _last_true(lambda k: take_last(self.ending_later, first, k) >= least, cells, n)


def take_last(values: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
    """(…, K) entries of the matrices `values` (…, G, G) at K rows and columns each, (…, K)."""
    *shape, n = values.shape[:-1]
    matrix = xp.arange(math.prod(shape)).reshape(*shape, 1)
    return gather(values.reshape(-1), (matrix * n + row) * n + column)


def _last_true(holds: Callable[[jax.Array], jax.Array], start: jax.Array, n: int) -> jax.Array:
    """Last position below n, per entry of `start`, up to which the monotone predicate `holds` is true, by bisection.

    The result is `start` where the predicate fails at once.
    """
    position, step = start, 1 << max(0, n - 1).bit_length()
    while step:
        farther = position + step
        position = xp.where((farther < n) & holds(xp.minimum(farther, n - 1)), farther, position)
        step //= 2
    return position


def log_sums_inside_and_outside(log_values: Any, first: Any, last: Any) -> tuple[jax.Array, jax.Array]:
    """(…, K) log Σ exp of `log_values` (…, C, G) over cells first … last, and over all other cells, K intervals.

    Sums below e⁻⁷⁰⁰ of the largest value are not distinguished.
    """
    cells, top = xp.arange(log_values.shape[-1]), xp.max(log_values, axis=-1, keepdims=True)
    within = ((cells >= first[..., None]) & (cells <= last[..., None])).astype(log_values.dtype).swapaxes(-1, -2)
    values = xp.exp(log_values - top)
    tiny = np.finfo(values.dtype).tiny
    inside, outside = (xp.maximum(values @ mask, tiny) for mask in (within, 1.0 - within))
    return top + xp.log(inside), top + xp.log(outside)


def _sums_before(ending: Float[jax.Array, "G G *F"]) -> Float[jax.Array, "E *F"]:
    """(G + 1, …) log sums of binning weights of the first 0, 1, …, G cells, given log weights (k, i, …) of the bins."""
    if is_host(ending):
        sums_of_cells = np.zeros((len(ending) + 1, *ending.shape[2:]))
        for k, log_weight in enumerate(ending):
            log_values = sums_of_cells[: k + 1] + log_weight[: k + 1]
            top = log_values.max(axis=0)
            sums_of_cells[k + 1] = top + np.log(np.exp(np.maximum(log_values - top, LEAST)).sum(axis=0))
        return xp.asarray(sums_of_cells)

    def extend(sums: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        """Append a cell: set the log sum over all binnings that end with the cell."""
        cell, log_weight = at
        return set_at(sums, cell + 1, logsumexp(sums[:-1] + log_weight, axis=0)), None

    return scan(extend, _no_cell(ending), (xp.arange(len(ending)), ending))[0]


def _ending_with(weight: BinValues) -> Float[jax.Array, "G G *F"]:
    """(G, G, …) log weights of bins by their last cell k, then by their first cell i."""
    return xp.moveaxis(weight, (-1, -2), (0, 1))


def _no_cell(ending: Float[jax.Array, "G G *F"]) -> Float[jax.Array, "E *F"]:
    """(G + 1, …) log sums of binnings of the first 0, 1, …, G cells before any cell is added: 0, then `NEVER`."""
    return xp.stack([xp.zeros_like(ending[0, 0]), *[xp.full_like(ending[0, 0], NEVER)] * len(ending)])
