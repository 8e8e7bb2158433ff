"""Evidence that two features depend on each other given the class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy
from scipy.stats import random_table

from bayesnb._util.arrays import pieces
from bayesnb._util.precision import float64
from bayesnb.checking.cells import Cells, LevelCells, NumberCells
from bayesnb.families import offers

_MOST_CELLS = 2**21
_SAME, _ROUNDING, _CONSTANT = 1e-9, 1e-12, 1e-12
# A function of a mask of pairs, the number of replicates and a generator: mutual information and p-value of each pair.
Examine = Callable[[np.ndarray, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


class Evidence(NamedTuple):
    """Evidence of dependence between each of F₁ and each of F₂ features.

    Parameters
    ----------
    rows : (F₁, F₂) number of rows where both are observed
    log_bayes_factor : (F₁, F₂) of dependence against independence, in nats, summed over the classes
    examine : function that computes mutual information, in nats, and p-values
    """

    rows: np.ndarray
    log_bayes_factor: np.ndarray
    examine: Examine


@float64
def compare(first: Cells, second: Cells, bounds: np.ndarray) -> Evidence:
    """Return the evidence of dependence between each feature of `first` and of `second`, as `read_cells` orders them.

    Of two numbers without a closed form, one becomes a level: above its median in the class or not. If that may be
    either, Bayes factors are averaged. `bounds` (C + 1,) are the first row of each class, and the number of rows.
    """
    if isinstance(second, LevelCells):
        assert isinstance(first, LevelCells)
        return _levels_and_levels(first, second, bounds)
    if isinstance(first, LevelCells):
        return _levels_and_numbers(first, second, bounds)
    x, y, cross = _pair_moments(first, second, bounds)
    if offers(first.prior, "log_bayes_factor_of_pairs"):  # By the order of comparison `second` has it, too.
        counted = (c.prior.statistics.from_moments(m.n, m.mean, m.m2) for c, m in ((first, x), (second, y)))
        terms = first.prior.log_bayes_factor_of_pairs(second.prior, *counted, cross)
        return Evidence(x.n.sum(axis=0), terms.sum(axis=0), _correlation_test(x, y, cross))
    evidence = _levels_and_numbers(first.above_median(bounds), second, bounds)
    log_bayes_factor = evidence.log_bayes_factor
    if not offers(second.prior, "log_bayes_factor_of_pairs"):
        other = _levels_and_numbers(second.above_median(bounds), first, bounds).log_bayes_factor
        log_bayes_factor = np.logaddexp(log_bayes_factor, other.T) - np.log(2.0)
    return Evidence(evidence.rows, log_bayes_factor, _correlation_test(x, y, cross))


def _levels_and_levels(first: LevelCells, second: LevelCells, bounds: np.ndarray) -> Evidence:
    """Evidence Σ_c log B(A + n)/B(A) - log B(A₁ + n₁)/B(A₁) - log B(A₂ + n₂)/B(A₂), A₁ and A₂ the marginals of A.

    A_lm = α_l α'_m / α₀, with α₀ the geometric mean of the totals of α and α': where these are the same, A₁ = α and
    A₂ = α'.
    """
    count = first.count_pairs(second, bounds)
    alpha, other = first.alpha[:, :, :, None, None], second.alpha[:, None, None]
    # A feature without any observed cell has no levels, and its sums are empty.
    sums = alpha.sum(axis=2, keepdims=True), other.sum(axis=4, keepdims=True)
    total, other_total = (np.where(a0 > 0, a0, 1.0) for a0 in sums)
    p, q, a0 = alpha / total, other / other_total, np.sqrt(total * other_total)
    rows = count.sum(axis=(2, 4))
    gain = _log_rising(a0 * p * q, count).sum(axis=(2, 4)) + _log_rising(a0[:, :, 0, :, 0], rows)
    for alone, axis in ((p, 4), (q, 2)):
        gain = gain - _log_rising(a0 * alone, count.sum(axis=axis, keepdims=True)).sum(axis=(2, 4))

    def examine(pick: np.ndarray, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        i, j = np.nonzero(pick)
        return _examine_tables(np.moveaxis(count, 3, 2)[:, i, j].swapaxes(0, 1), draws, rng)

    return Evidence(rows.sum(axis=0), gain.sum(axis=0), examine)


def _examine_tables(count: np.ndarray, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(P,) mutual information in nats and p-value of P pairs with counts (P, C, L, M), by `draws` random tables.

    The tables of each class have the margins of the observed table.

    Given its margins, the mutual information of a table depends on Σ n log n alone.
    """
    observed, p_value = xlogy(count, count).sum(axis=(1, 2, 3)), np.empty(len(count))
    for pair, of_classes in enumerate(count):
        drawn = sum(_draw_entropy_sums(table, draws, rng) for table in of_classes)
        p_value[pair] = (1 + np.sum(drawn >= observed[pair] * (1.0 - _ROUNDING))) / (1 + draws)
    return _table_information(count), p_value


def _draw_entropy_sums(table: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw (S,) sums Σ n log n of random tables with the margins of `table` (L, M), rows paired at random."""
    row, column = (margin[margin > 0].astype(np.int64) for margin in (table.sum(axis=1), table.sum(axis=0)))
    if min(len(row), len(column)) < 2:
        return np.full(draws, xlogy(table, table).sum())
    at_once = max(1, _MOST_CELLS // (len(row) * len(column)))
    sizes = (min(at_once, draws - done) for done in range(0, draws, at_once))
    drawn = (random_table.rvs(row, column, size=size, random_state=rng) for size in sizes)
    return np.concatenate([xlogy(count, count).sum(axis=(1, 2)) for count in drawn])


def _table_information(count: np.ndarray) -> np.ndarray:
    """Compute mutual information Σ n/N log(n n_c / (n_l n_m)) of tables (…, C, L, M), in nats: an array (…)."""
    total, rows, columns = count.sum(axis=(-1, -2)), count.sum(axis=-1), count.sum(axis=-2)
    parts = xlogy(count, count).sum(axis=(-1, -2)) + xlogy(total, total)
    parts = parts - xlogy(rows, rows).sum(axis=-1) - xlogy(columns, columns).sum(axis=-1)
    # Rounding may leave a value below zero.
    return np.asarray(np.maximum(parts.sum(axis=-1), 0.0) / np.maximum(total.sum(axis=-1), 1.0))


def _levels_and_numbers(first: LevelCells, second: NumberCells, bounds: np.ndarray) -> Evidence:
    """Evidence of numbers that have a mean for each level against one mean for the class.

    The levels share the rows that the prior is worth.
    """
    n_classes, n_first, n_levels = first.alpha.shape
    shape = (n_classes, n_first, n_levels, len(second.index))
    sums = np.zeros((4, n_classes, n_first * n_levels, len(second.index)))  # count, deviations, their squares, values
    for c, rows in pieces(bounds, max(n_first * n_levels, 3 * len(second.index))):
        hot, (seen, deviation) = first.one_hot(rows, np.float64).T, _deviations(second, c, rows)
        for k, values in enumerate((seen, deviation, deviation**2, np.where(seen, second.values[rows], 0.0))):
            sums[k, c] += hot @ values
    n, s, q, total = sums.reshape(4, *shape)
    by_level = _Moments(n, s, q, second.centre[:, None, None])
    by_class = _Moments(n.sum(axis=2), s.sum(axis=2), q.sum(axis=2), second.centre[:, None])
    # Means of levels are not computed from deviations, which cancel where a level is far from the mean of its class.
    means = ((by_level, total), (by_class, total.sum(axis=2)))
    counted = (second.prior.statistics.from_moments(m.n, t / np.maximum(m.n, 1.0), m.m2) for m, t in means)
    gain = np.asarray(second.prior.log_bayes_factor_of_levels(*counted)).sum(axis=0)
    varies = ~by_class.constant
    unexplained = np.where(varies, by_level.m2.sum(axis=2) / np.where(varies, by_class.m2, 1.0), 1.0)
    degrees = np.where(varies, np.maximum((n > 0).sum(axis=2) - 1, 0), 0)
    return Evidence(by_class.n.sum(axis=0), gain, partial(_examine_residual, by_class.n, unexplained, degrees))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Number of some values, and sum and sum of squares of their deviations from `centre`."""

    n: np.ndarray
    s: np.ndarray
    q: np.ndarray
    centre: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Means of the values; `centre` where there are none."""
        return np.asarray(self.centre + self.s / np.maximum(self.n, 1.0))

    @property
    def m2(self) -> np.ndarray:
        """Sums of squared deviations from the mean, at least 0."""
        return np.asarray(np.maximum(self.q - self.s**2 / np.maximum(self.n, 1.0), 0.0))

    @property
    def constant(self) -> np.ndarray:
        """Whether the values vary by no more than rounding error."""
        return self.m2 <= self.n * (_CONSTANT * self.mean) ** 2 + 1e-14 * self.q


def _pair_moments(first: NumberCells, second: NumberCells, bounds: np.ndarray) -> tuple[_Moments, _Moments, np.ndarray]:
    """Moments (C, F₁, F₂) of both features of each pair, on rows that have both; and Σ (x - x̄)(y - ȳ)."""
    sums = np.zeros((6, len(bounds) - 1, len(first.index), len(second.index)))
    for c, rows in pieces(bounds, 3 * max(sums.shape[2:])):
        (a, x), (b, y) = _deviations(first, c, rows), _deviations(second, c, rows)
        for k, (left, right) in enumerate(((a, b), (x, b), (a, y), (x**2, b), (a, y**2), (x, y))):
            sums[k, c] += left.T @ right
    n, s_x, s_y, q_x, q_y, cross = sums
    cross = cross - s_x * s_y / np.maximum(n, 1.0)
    return _Moments(n, s_x, q_x, first.centre[:, :, None]), _Moments(n, s_y, q_y, second.centre[:, None]), cross


def _deviations(cells: NumberCells, c: int, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, F) indicators of observed cells, and deviations from the mean of class c, 0 where missing."""
    deviation = cells.values[rows] - cells.centre[c]
    seen = ~np.isnan(deviation)
    return seen.astype(np.float64), np.where(seen, deviation, 0.0)


def _correlation_test(x: _Moments, y: _Moments, cross: np.ndarray) -> Examine:
    """Return the test of each pair of numbers by their correlation in each class; constant numbers have none."""
    varies = ~(x.constant | y.constant)
    square = np.where(varies, (cross / np.where(varies, np.sqrt(x.m2) * np.sqrt(y.m2), 1.0)) ** 2, 0.0)
    return partial(_examine_residual, x.n, 1.0 - np.minimum(square, 1.0), varies.astype(int))


def _examine_residual(
    n: np.ndarray, unexplained: np.ndarray, degrees: np.ndarray, pick: np.ndarray, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(P,) mutual information in nats and simulated p-value of P pairs in `pick` (F₁, F₂), given 1 - R² of each class.

    Under independence 1 - R² ~ Beta((n - k - 1)/2, k/2), with k degrees of freedom; a class with none left is left out.
    `n`, `unexplained` and `degrees` are (C, F₁, F₂).
    """
    i, j = np.nonzero(pick)
    n, unexplained, degrees = (v[:, i, j].T for v in (n, unexplained, degrees))
    degrees = np.where(n - degrees - 1 > 0, degrees, 0)
    weight = n / np.maximum(n.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(divide="ignore"):
        information = _mutual_information(weight, np.where(degrees > 0, unexplained, 1.0))
    # Pairs with the same n and k have one null distribution: without missing cells, all pairs.
    distinct, which = np.unique(np.hstack([n, degrees]), axis=0, return_inverse=True)
    p_value = np.ones(len(n))
    for u, row in enumerate(distinct):
        size, k = np.split(row, 2)
        null = np.ones((draws, len(size)))
        free = k > 0
        rest = rng.standard_gamma((size - k - 1)[free] / 2, (draws, free.sum()))
        null[:, free] = rest / (rest + rng.standard_gamma(k[free] / 2, rest.shape))
        members = which.ravel() == u
        drawn = np.sort(_mutual_information(size / max(size.sum(), 1.0), null))
        below = np.searchsorted(drawn, information[members] * (1.0 - _SAME))
        p_value[members] = (1 + draws - below) / (1 + draws)
    return information, p_value


def _mutual_information(weight: np.ndarray, unexplained: np.ndarray) -> np.ndarray:
    """Compute Σ_c n_c/n · (-½ log(1 - R²)) over the last axis, from n_c/n and 1 - R² (`unexplained`); never -0."""
    return np.asarray(0.0 - 0.5 * np.sum(np.where(unexplained == 1.0, 0.0, weight * np.log(unexplained)), axis=-1))


def _log_rising(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Log rising factorial log Γ(a + x) - log Γ(a)."""
    return np.asarray(gammaln(a + x) - gammaln(a))
