"""Binned densities of numbers: averages over every way to cut G cells in a row into bins.

A binning is weighted by the product over its bins of exp(weight[i, k]), i and k the first and the last cell of the bin.
The 2^(G - 1) of them are summed by dynamic programming (Endres & Földiák, *Bayesian bin distribution inference and
mutual information*, IEEE Trans. Inf. Theory 51 (2005)). Leading axes of the arguments, such as features, are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families.arrays import (
    Array,
    T,
    cumlogsumexp,
    gather,
    is_host,
    log_segment_sum,
    log_sigmoid,
    logsumexp,
    map_leading_axis,
    map_parts,
    pytree,
    scan,
    segment_sum,
    set_at,
    static,
    xp,
)
from bayesnb.families.protocol import Cumulants, Distribution, Variates, no_em, no_nuts
from bayesnb.families.rows import CountRows, LevelCounts, Multinomial
from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.structures import AveragedTables

# == Sums over all binnings of G cells in a row, that is, over every way to cut them into bins =====

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
    """(…, G, G) sums of `cells` (…, G) over i … k; `fill` where k < i, and in place of sums below 0.

    A `fill` other than 0 is also in place of sums that are 0. Otherwise sums of 0 have derivatives.
    """
    until = xp.cumsum(cells, axis=-1)
    sums = until[..., None, :] - (until - cells)[..., :, None]
    return xp.where(is_bin(cells.shape[-1]) & (sums > 0 if fill else sums >= 0), sums, fill)


def sum_covering(bins: BinValues) -> Values:
    """(…, G) for each cell, sum of the values (…, G, G) of all bins that contain the cell."""
    within = np.tri(bins.shape[-1])
    return xp.sum((within @ bins) * within.T, axis=-1)


def sum_covering_pairs(bins: BinValues) -> BinValues:
    """(…, G, G) for each pair of cells, sum of the values (…, G, G) of all bins that contain both."""
    within = np.tri(bins.shape[-1])
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


def log_sums_of_bins(log_values: jax.Array, cuts: Bool[jax.Array, "... G"]) -> Float[jax.Array, "... G"]:
    """(…, G) log Σ exp of `log_values` (…, G) over the bin of each cell, given whether there are cuts before cells.

    There must be a cut before the first cell.
    """
    values, cut = xp.broadcast_arrays(log_values, cuts)
    index = xp.cumsum(cut.reshape(-1)) - 1
    return log_segment_sum(values.reshape(-1), index, values.size)[index].reshape(values.shape)


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

    def draw(self, log_uniform: Float[jax.Array, "2 *N F K"], cells: Int[Array, "F K"]) -> tuple[jax.Array, jax.Array]:
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


def take_last(values: jax.Array, row: Array, column: Array) -> jax.Array:
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


def log_sums_inside_and_outside(log_values: jax.Array, first: Array, last: Array) -> tuple[jax.Array, jax.Array]:
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


# == Piecewise constant densities with unknown cuts: averages over all binnings of a feature's cells

_AT_A_TIME = 2**20  # bins of several features, so that they fit the cache


@pytree
class Binned(AveragedTables):
    """Piecewise constant densities on G cells of a feature, averaged over all ways to cut the cells into bins.

    Cuts are between cells, each independently there, and shared by the classes; given the cuts the probabilities of the
    bins are Dirichlet in each class, a bin's α the sum of its cells', and within a bin cells have the shares of their
    α. So α is, up to a factor, the base measure: with equal α a density is constant on the scale of the cells' ranks.

    Parameters
    ----------
    concentration : (C, L) array
        Prior concentration α of each cell.
    count : (C, L) array
        Rows in each cell; 0 for a prior.
    log_odds : (L,) array
        Log prior odds of a cut before each cell; without effect for the first cell of a feature.
    group : (L,) int array
        Feature of each cell, contiguous.
    num_groups, width : int
        Number of features, and the largest number of cells of a feature.

    Notes
    -----
    Features are independent of each other given the class, so K posteriors of F features are one with K·F features: its
    tables are computed at once.

    References
    ----------
    Endres & Földiák, *Bayesian bin distribution inference and mutual information*, IEEE Trans. Inf. Theory 51 (2005).
    Lustgarten et al., *Application of an efficient Bayesian discretization method to biomedical data*, BMC
    Bioinformatics 12 (2011).
    """

    kind: ClassVar[str] = "binned"
    unread: ClassVar[tuple[str, ...]] = ("log_odds",)
    location: ClassVar[str] = ""
    classes_share_parameters: ClassVar[bool] = True
    draws_on_host: ClassVar[bool] = True
    tunable: ClassVar[dict[str, str]] = {"a": "strength"}
    penalized_mle = no_em("binnings", 'Use MixedNB(numbers="gaussian").')
    program = no_nuts("The set of cuts", 'For NUTS use MixedNB(numbers="gaussian").')

    concentration: Array
    count: Array
    log_odds: Array
    group: np.ndarray = static()
    num_groups: int = static()
    width: int = static()

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Prior with total concentration α₀ = values["a"] in each class and feature; unchanged without "a"."""
        if "a" not in values:
            return self
        return self.with_fields(self.concentration * (values["a"] / self.strength), self.count)

    def groups_refusal(self) -> str:
        """Reason why groups of rows have no densities with a common distribution."""
        return "the cuts are not known, and all classes share them. Use MixedNB(numbers='gaussian')."

    @property
    def strength(self) -> Array:
        """(C, L) total concentration α₀ of the feature of each cell."""
        return self._sum(self.concentration)

    def proper(self) -> Bool[jax.Array, "*C L"]:
        """(C, L) of bool: whether all cells of the feature have positive concentration."""
        return self._sum((self.concentration <= 0).astype(float)) == 0

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "1 F"]:
        """(1, F) log probability of the counted cells of each feature in all classes, averaged over all binnings."""
        log_evidence = self.update(statistics)._log_partition() - self._log_partition()
        proper = self._to_features(self.proper().all(axis=0), True).all(axis=-1)
        return xp.where(proper, log_evidence, -xp.inf)[None]

    def _log_partition(self) -> Float[jax.Array, "F"]:
        """(F,) log probability of the cells counted so far, averaged over all binnings."""
        return xp.asarray(self._map(Cells.log_partition))

    def cut_probability(self) -> Float[jax.Array, "L"]:
        """(L,) posterior probability of a cut before each cell; 1 before the first cell of a feature."""
        return self._to_cells(self._map(lambda cells: xp.sum(cells.probability(), axis=-1)))

    def best_cuts(self) -> Bool[jax.Array, "L"]:
        """(L,) of bool: whether the most probable binning of the feature has a cut before each cell."""
        return self._to_cells(self._map(lambda cells: best_cuts(cells.bins().weight)))

    def mean(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood at the posterior means E θ_g = Σ_b P(b) (α_b + n_b)/(α₀ + N) · α_g/α_b, over bins b with cell g.

        With `multiplicity` (C,) each row is first added to the data that many times. The cuts then change with its
        cell, too: the weights of the bins with the cell change by Γ ratios, and those of the cells before and behind
        them stay.
        """
        if multiplicity is not None:
            return Multinomial(self._to_cells(self._map(Cells.log_predictive, multiplicity)))
        means = self._map(Cells.mean)
        return Multinomial(xp.where(self.proper(), xp.log(self._to_cells(means)), xp.nan))

    def mode(self) -> Multinomial:
        """Likelihood at the most probable cuts, and at the posterior means of the bins' probabilities given these cuts.

        Densities over more and fewer bins do not compare; on the simplex there is no mode where α + n < 1 in a bin.
        """
        bins = xp.cumsum(self.best_cuts()) - 1
        counted, alpha = self.posterior_concentration(), xp.asarray(self.concentration)
        log_theta = xp.log(self._sum(counted, bins) / self._sum(counted)) + xp.log(alpha / self._sum(alpha, bins))
        return Multinomial(xp.where(self.proper(), log_theta, xp.nan))

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances Σ P(b) E θ_g² - (E θ_g)² of the cells' probabilities, {"theta": (C, L)}."""
        square, mean = self._to_cells(self._map(Cells.mean_square)), self.mean().theta
        return {"theta": xp.maximum(square - mean**2, 0.0)}

    def marginals(self) -> dict[str, Distribution]:
        """Beta distributions with the exact posterior means and variances of θ, as arguments of `scipy.stats`.

        They approximate the exact marginals, which are mixtures over the bins with a cell.
        """
        mean, variance = self.mean().theta, self.variance()["theta"]
        some = (variance > 0) & (variance < mean * (1.0 - mean))
        size = xp.where(some, mean * (1.0 - mean) / xp.where(some, variance, 1.0) - 1.0, 1e300)
        return {"theta": ("beta", {"a": mean * size, "b": (1.0 - mean) * size})}

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """Likelihood with n draws of log θ (n, C, L): cuts first, then gamma variates of the bins given the cuts."""
        log_gamma = variates.log_gamma(self.posterior_concentration(), n, attrgetter("count"))
        uniform = variates.log_uniform(xp.asarray(self.log_odds), n)
        hazard = self._map(lambda cells: log_hazard(cells.bins()))
        cuts = draw_cuts(hazard, self._to_features(uniform))[:, None]
        log_alpha = xp.log(xp.asarray(self.concentration))
        log_gamma, log_alpha = (self._to_features(v, NEVER) for v in (log_gamma, log_alpha))
        of_feature = logsumexp(log_gamma, axis=-1, keepdims=True)
        log_theta = log_sums_of_bins(log_gamma, cuts) - of_feature
        log_theta = log_theta + log_alpha - log_sums_of_bins(log_alpha, cuts)
        return Multinomial(self._to_cells(xp.moveaxis(log_theta, -2, 0)))

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of Σ log θ of a row's cells, given the data and the row in class `counted_in` (n, N, C).

        Only the bins that its cells are in matter then, θ_b ~ Beta(α_b + n_b + 1, rest).
        """
        rows, n_classes = self.rows(x), len(xp.asarray(self.concentration))
        if counted_in is None:
            return rows.dot_each(self.draw(variates, n).log_theta)
        shape = (self.num_groups, self.width)
        log_gamma = variates.log_gamma(self.posterior_concentration(), n)
        extra = variates.log_gamma(xp.ones(shape), n)
        uniform = variates.log_uniform(xp.zeros((2, *shape)), n)
        sums, log_share = self._map(Cells.sums_with_row)
        (cells, place), is_own = self._cells_of(rows), xp.eye(n_classes, dtype=bool)[:, :, None]
        log_cell = take_last(log_share, cells[:, None], cells[:, None])[:, None]

        def draw_rows(draws: tuple[jax.Array, jax.Array, jax.Array, Array]) -> jax.Array:
            """(n, N, C) log likelihoods of all rows for n draws of the variates.

            Tables are (n, F, C, C, K): third axis the class in which the row is counted, fourth the class of θ.
            """
            gamma, extra, uniform, counted_in = draws
            gamma = xp.moveaxis(self._to_features(gamma, NEVER), -2, 1)[:, :, None]
            at_cells = xp.take_along_axis(uniform, cells[None, None], axis=-1)
            first, last = sums.draw(xp.moveaxis(at_cells, 1, 0), cells)
            inside, outside = log_sums_inside_and_outside(gamma, first, last)
            more = xp.take_along_axis(extra, cells[None], axis=-1)[:, :, None, None]
            inside = xp.where(is_own, xp.logaddexp(inside, more), inside)
            share = take_last(log_share[:, None], first[:, :, :, None], last[:, :, :, None]) - log_cell
            tables = xp.moveaxis(inside - xp.logaddexp(inside, outside) + share, 1, -2)[..., self.group, place]
            scores = rows.dot_each(tables.reshape(len(gamma), n_classes**2, -1))
            scores = scores.reshape(*scores.shape[:2], n_classes, n_classes)
            return xp.sum(xp.where(counted_in[..., None], scores, 0.0), axis=2)

        size = max(1, _AT_A_TIME // max(1, sums.begun[:, :, 0].size * cells.shape[-1]))
        return map_parts(draw_rows, (log_gamma, extra, uniform, counted_in), size)

    def log_odds_of_terms(self, x: object, of: Int[Array, "N"], against: Int[Array, "N"]) -> Cumulants:
        """(N, T) posterior cumulants of log θ_of - log θ_against of the row's cell of each feature.

        `of` and `against` (N,) are class indices; cuts and parameters are averaged over.
        """
        x, n_classes = self.rows(x), len(xp.asarray(self.concentration))
        pair = xp.asarray(of) * n_classes + xp.asarray(against)
        # Moments of the pairs that are asked for, a few; of all pairs where JAX does not know them.
        pairs, index = np.unique(pair, return_inverse=True) if is_host(pair) else (jnp.arange(n_classes**2), pair)
        moments = self._to_cells(self._map(Cells.moments_of_odds, pairs // n_classes, pairs % n_classes))
        pairwise = x.dot_terms(moments.reshape(3 * len(pairs), -1))  # (N, 3 · pairs, T)
        pairwise = pairwise.reshape(pairwise.shape[0], 3, len(pairs), -1)
        of_row = xp.take_along_axis(pairwise, index[:, None, None, None], axis=2)[:, :, 0]
        first, second, third = xp.moveaxis(of_row, 1, 0)
        return Cumulants(first, second - first**2, third - 3.0 * first * second + 2.0 * first**3)

    def _cells_of(self, rows: CountRows) -> tuple[Array, jax.Array]:
        """(F, K) cells of each feature in which rows lie, and (L,) position of each cell among these.

        Cells of no row are padding. All cells are returned if JAX does not know the rows.
        """
        if not is_host(rows, self.group):
            all_cells = jnp.broadcast_to(jnp.arange(self.width), (self.num_groups, self.width))
            return all_cells, self._to_cells(all_cells)
        n_rows = len(rows.log_base())
        count = rows.weighted_counts(np.zeros((1, len(self.group))), np.zeros(n_rows, int), np.ones(n_rows))
        is_used = self._to_features(count[0]) > 0
        cells = np.argsort(~is_used, axis=-1, kind="stable")[:, : max(1, is_used.sum(axis=-1).max(initial=0))]
        place = np.minimum(np.cumsum(is_used, axis=-1) - is_used, cells.shape[-1] - 1)
        return cells, self._to_cells(place)

    @staticmethod
    def read_together(posteriors: Sequence[Binned]) -> list[Multinomial]:
        """Likelihoods at the posterior means of several posteriors of the same features, in less time than one by one.

        The features of all posteriors are features of one, as these are independent of each other.
        """
        n, first = len(posteriors), posteriors[0]
        every = Binned(
            np.concatenate([p.concentration for p in posteriors], axis=1),
            np.concatenate([p.count for p in posteriors], axis=1),
            np.tile(first.log_odds, n),
            np.concatenate([first.group + k * first.num_groups for k in range(n)]),
            n * first.num_groups,
            first.width,
        )
        return [Multinomial(log_theta) for log_theta in np.split(np.asarray(every.mean().log_theta), n, axis=1)]

    # -- features side by side -------------------------------------------------------------------

    def _to_features(self, values: Array, fill: float = 0.0) -> jax.Array:
        """(…, F, G) values of cells (…, L), one row for each feature, filled with `fill` behind its last cell."""
        size = segment_sum(xp.ones(len(self.group)), self.group, self.num_groups).astype(int)
        start, cell = xp.cumsum(size) - size, xp.arange(self.width)
        at = start[:, None] + xp.minimum(cell, size[:, None] - 1)
        return xp.where(cell < size[:, None], xp.asarray(values)[..., at], fill)

    def _to_cells(self, values: Array) -> jax.Array:
        """(…, L) values of cells from (F, …, G), one feature after the other: the inverse of `_to_features`."""
        start = xp.searchsorted(self.group, xp.arange(self.num_groups))
        return xp.moveaxis(values, 0, -2)[..., self.group, xp.arange(len(self.group)) - start[self.group]]

    def _map(self, of: Callable[..., T], *shared: Array) -> T:
        """(F, …) results of `of(cells, *shared)` for the `Cells` of each feature, some features at a time."""
        cells = self._cells()
        size = max(1, _AT_A_TIME // max(1, cells.alpha.shape[1] * self.width**2))
        return map_parts(lambda some: of(some, *shared), cells, size)

    def _cells(self) -> Cells:
        """`Cells` of all features, stacked on a leading axis (F,)."""
        alpha, count = (xp.moveaxis(self._to_features(v), -2, 0) for v in (self.concentration, self.count))
        return Cells(alpha, count, self._to_features(self.log_odds, NEVER))

    def _sum(self, values: Array, index: Array | None = None) -> Array:
        """(C, L) sum of `values` (C, L) over the cells with the same index as each cell; default index: the feature."""
        index = self.group if index is None else index
        return segment_sum(values, index, len(index))[:, index]


@pytree
class IndependentCuts:
    """Prior of `Binned` densities: equal concentrations of the cells, and independent cuts of equal probability.

    Parameters
    ----------
    concentration : float
        Concentration α₀, the number of rows of each class that the prior counts as; divided evenly among the cells.
    cuts : float
        Approximate prior expectation of the number of cuts: each of the G - 1 has the odds cuts/(G - 1).

    Examples
    --------
    >>> from bayesnb import BinnedNB
    >>> from bayesnb.families import IndependentCuts
    >>> X, y = [[0.1], [0.5], [0.7], [2.5]], ["a", "a", "a", "b"]
    >>> for cuts in (0.1, 1.0, 2.0):  # few cuts: densities that are alike
    ...     nb = BinnedNB(prior=IndependentCuts(cuts=cuts), edges=[[0, 1, 2, 3]]).fit(X, y)
    ...     print(cuts, nb.predict_proba([[2.5]]).round(2))
    0.1 [[0.66 0.34]]
    1.0 [[0.58 0.42]]
    2.0 [[0.53 0.47]]
    """

    least: ClassVar[dict[str, float]] = {"concentration": 0.0, "cuts": 0.0}

    concentration: float | Array = 4.0
    cuts: float | Array = 1.0

    def prior(self, n_classes: int, sizes: np.ndarray) -> Binned:
        """`Binned` prior, the same in each of `n_classes` classes, of F features with `sizes` (F,) cells."""
        sizes = np.asarray(sizes)
        group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        log_cuts = np.log(self.cuts) if self.cuts > 0 else NEVER
        odds = log_cuts - np.log(np.maximum(sizes - 1.0, 1.0))
        alpha = np.broadcast_to((self.concentration / np.maximum(sizes, 1))[group], (n_classes, len(group)))
        width = int(sizes.max(initial=1))
        return Binned(alpha, np.zeros(alpha.shape), odds[group], group, len(sizes), width)


class Cells(NamedTuple):
    """Cells of features: prior α and counts n of each, (…, C, G), and prior log odds of a cut before each, (…, G).

    Behind the last cell these are 0, 0 and `NEVER`.
    """

    alpha: jax.Array
    count: Any
    log_odds: jax.Array

    def bins(self) -> Bins:
        """Sums over all binnings of the feature, each weighted by its prior times the evidence of all classes' rows."""
        return Bins.from_weights(log_prior(self.log_odds) + self.log_evidence())

    def log_evidence(self) -> Array:
        """(…, G, G) log probability of the rows' cells if i … k are a bin, but for factors that all binnings share."""
        total, has_alpha = xp.sum(self.alpha, axis=-1), self.alpha > 0
        if is_host(self.alpha, self.count) and (self.count % 1.0 == 0).all():
            # Of whole counts, and cells of equal α, the evidence of a bin depends on its length and its count alone.
            alpha = self.alpha[..., :1]
            cell, index = np.unique(np.stack([alpha[..., 0], total], -1).reshape(-1, 2), axis=0, return_inverse=True)
            length, most = np.arange(self.alpha.shape[-1] + 1), np.sum(self.count, axis=-1).max(initial=0.0)
            is_small = len(cell) * (most + 1.0) < self.count.size
            if is_small and (~has_alpha | (self.alpha == alpha)).all():
                count = np.arange(most + 1.0)
                alphas = np.where(length > 0, cell[:, :1] * length, 1.0)[..., None]
                table = _log_evidence(alphas, count, cell[:, 1, None, None])
                step = (self.count + len(count) * has_alpha).astype(int)
                until, start = np.cumsum(step, axis=-1), index.reshape(*total.shape, 1) * table[0].size
                classes = zip(*(np.moveaxis(v, -2, 0) for v in (until - step, until + start)), strict=True)
                i, k = np.triu_indices(self.alpha.shape[-1])
                evidence = np.zeros((*self.log_odds.shape, self.alpha.shape[-1]))
                evidence[..., i, k] = sum(table.ravel()[last[..., k] - first[..., i]] for first, last in classes)
                return evidence
        return xp.sum(_log_evidence(*self.over_bins(), total[..., None, None]), axis=-3)

    def over_bins(self) -> tuple[jax.Array, jax.Array]:
        """(…, C, G, G) α and n of each bin i … k of cells; 1 and 0 where k < i."""
        return over_cells(self.alpha, 1.0), over_cells(self.count, 0.0)

    def total(self) -> Float[jax.Array, "*F C 1 1"]:
        """(…, C, 1, 1) total posterior concentration α₀ + N of each class."""
        return xp.sum(self.alpha + self.count, axis=-1)[..., None, None]

    def mean(self) -> Float[jax.Array, "*F C G"]:
        """(…, C, G) posterior mean probability of each cell.

        As (α + n) of a bin is the sum over its cells, each cell has a weight for each other one: the sum of P/α over
        the bins with both. By these weights the α of all cells add up to 1, but for rounding.
        """
        alpha = self.alpha
        if is_host(alpha) and (alpha == alpha[..., :1, :]).all():
            alpha = alpha[..., :1, :]
        weight = sum_covering_pairs(self.probability()[..., None, :, :] / over_cells(alpha, 1.0))
        counted, prior = ((weight @ v[..., None])[..., 0] for v in (self.alpha + self.count, alpha))
        # Behind the last cell α is 0, and 0/0 would have no derivative.
        return self.alpha * counted / (xp.where(prior > 0, prior, 1.0) * self.total()[..., 0])

    def probability(self) -> Float[jax.Array, "*F G G"]:
        """(…, G, G) posterior probability that the cells i … k are a bin."""
        return xp.exp(xp.maximum(self.bins().log_prob, LEAST))

    def log_partition(self) -> Float[jax.Array, "*F"]:
        """(…,) log probability of the cells counted so far, averaged over all binnings."""
        total = xp.sum(self.alpha, axis=-1)
        share = xp.where(self.alpha > 0, xp.divide(self.alpha, total[..., None]), 1.0)
        within = xp.sum(self.count * xp.log(share), axis=(-2, -1))
        return self.bins().log_total + within - xp.sum(log_rising(total, xp.sum(self.count, axis=-1)), axis=-1)

    def log_predictive(self, multiplicity: jax.Array) -> Float[jax.Array, "*F C G"]:
        """(…, C, G) log predictive probability of each cell given `multiplicity` (C,) more copies of that cell."""
        (alpha, count), more = self.over_bins(), multiplicity[:, None, None]
        least = alpha + xp.maximum(count + xp.minimum(more, 0.0), 0.0)
        log_share = xp.log(xp.divide(alpha, xp.sum(self.alpha, axis=-1)[..., None, None]))
        gain = xp.sign(more) * log_rising(least, abs(more) * xp.ones_like(count)) - more * log_share
        weight = (self.bins().log_prob + xp.sum(gain, axis=-3))[..., None, :, :]
        mean = (alpha + xp.maximum(count + more, 0.0)) / (alpha * (self.total() + more))
        sums = log_sum_covering(xp.concatenate([weight, weight + xp.log(mean)], axis=-3))
        return sums[..., 1:, :] - sums[..., :1, :] + xp.log(self.alpha)

    def sums_with_row(self) -> tuple[BinSums, jax.Array]:
        """`BinSums` (…, C, G, G) to draw the bin of one further cell of each class, and -log α of bins, same shape."""
        alpha, count = self.over_bins()
        weight = self.bins().log_prob[..., None, :, :] + xp.log((alpha + count) / alpha)
        return BinSums.from_weights(weight), -xp.log(alpha)

    def mean_square(self) -> Float[jax.Array, "*F C G"]:
        """(…, C, G) posterior mean of the squared probability of each cell."""
        alpha, count = self.over_bins()
        counted, total = alpha + count, self.total()
        square = counted * (counted + 1.0) / (total * (total + 1.0)) / alpha**2
        probability = self.probability()[..., None, :, :]
        # These sum to 1 for each cell, but for rounding, which is large where counts are.
        return self.alpha**2 * sum_covering(probability * square) / sum_covering(probability)

    def moments_of_odds(self, one: jax.Array, other: jax.Array) -> jax.Array:
        """(…, 3 · P, G) raw moments E d, E d², E d³ of d = log θ_one - log θ_other, for P pairs of classes."""
        alpha, count = self.over_bins()
        probability = self.probability()
        (mean, variance, third), total = polygammas(alpha + count), polygammas(self.total())
        mean, variance, third = mean - total[0] - xp.log(alpha), variance - total[1], third - total[2]
        log_share = xp.log(xp.maximum(self.alpha, np.finfo(float).tiny))

        def of_pair(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
            """(3, …, G) raw moments of the log odds of each cell, for one pair of class indices."""
            a, b = pair
            m, v, t = (u[..., a, :, :] + sign * u[..., b, :, :] for u, sign in ((mean, -1), (variance, 1), (third, -1)))
            shift = log_share[..., a, :] - log_share[..., b, :]
            first, second, third_ = (
                sum_covering(probability * moment) for moment in (m, v + m**2, t + 3.0 * m * v + m**3)
            )
            shifted = first + shift, second + 2.0 * shift * first + shift**2
            return xp.stack([*shifted, third_ + 3.0 * shift * second + 3.0 * shift**2 * first + shift**3])

        pairs = (one, other) if is_host(self.count) else (jnp.asarray(one), jnp.asarray(other))
        moments = xp.moveaxis(map_leading_axis(of_pair, pairs), (1, 0), (-3, -2))  # (…, 3, pairs, G)
        moments = xp.where((one == other)[:, None], 0.0, moments)
        return moments.reshape(*moments.shape[:-3], -1, moments.shape[-1])


def _log_evidence(alpha: Array, count: Array, total: Array) -> Array:
    """Log probability of the cells of `count` rows in a bin with `alpha` of the α `total` of all bins, elementwise."""
    return log_rising(alpha, count) - count * xp.log(xp.divide(alpha, total))
