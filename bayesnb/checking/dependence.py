"""Evidence that two features depend on each other given the class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.special import gammaln, xlogy

from bayesnb.checking.cells import LevelCells, NumberCells, PresenceCells, above_median, one_hot, tables
from bayesnb.families import GammaPoisson, Moments, NormalInverseGamma, Totals
from bayesnb.pairs import pieces
from bayesnb.precision import float64

_CELLS = 2**21
_SAME = 1e-9
_CONSTANT = 1e-12
# Of a pair picked by a mask: mutual information and p-value, from a number of replicates.
Examine = Callable[[np.ndarray, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Of each pair, (F₁, F₂): rows where both are observed, log Bayes factor of dependence; and what else to ask."""

    rows: np.ndarray
    log_bayes_factor: np.ndarray
    examine: Examine


def compare(first: Any, second: Any, bounds: np.ndarray) -> Evidence:
    """Every feature of `first` against every one of `second`, which has numbers if `first` has."""
    if not isinstance(first, NumberCells):
        if isinstance(second, NumberCells):
            return _levels_and_numbers(first, second, bounds)
        return _levels_and_levels(first, second, bounds)
    if isinstance(first.prior, NormalInverseGamma):
        return _gaussian_pairs(first, second, bounds)
    evidence = _levels_and_numbers(above_median(first, bounds), second, bounds)
    log_bayes_factor = evidence.log_bayes_factor
    if isinstance(second.prior, GammaPoisson):
        other = _levels_and_numbers(above_median(second, bounds), first, bounds).log_bayes_factor
        log_bayes_factor = np.logaddexp(log_bayes_factor, other.T) - np.log(2.0)
    return Evidence(evidence.rows, log_bayes_factor, _correlation(_moments(first, second, bounds)))


def _levels_and_levels(
    first: LevelCells | PresenceCells, second: LevelCells | PresenceCells, bounds: np.ndarray
) -> Evidence:
    """Σ_c log B(A + n)/B(A) - log B(a + n₁)/B(a) - log B(b + n₂)/B(b), A the products of a and b."""
    count = tables(first, second, bounds)
    a, b = first.alpha[:, :, :, None, None], second.alpha[:, None, None]
    total = count.sum(axis=(2, 4))
    # A feature of which no cell was ever seen has no levels: nothing to sum.
    a0, b0 = (np.where(v > 0, v, 1.0) for v in (a.sum(axis=(2, 4)), b.sum(axis=(2, 4))))
    joint = _log_rising(a * b, count).sum(axis=(2, 4)) - _log_rising(a0 * b0, total)
    mine = _log_rising(a[..., 0], count.sum(axis=4)).sum(axis=2) - _log_rising(a0, total)
    theirs = _log_rising(b[:, :, 0], count.sum(axis=2)).sum(axis=3) - _log_rising(b0, total)

    def examine(pick: np.ndarray, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        i, j = np.nonzero(pick)
        tables_ = np.moveaxis(count, 3, 2)[:, i, j].swapaxes(0, 1)
        return _examine_tables(tables_, first.alpha[:, i].swapaxes(0, 1), second.alpha[:, j].swapaxes(0, 1), draws, rng)

    return Evidence(total.sum(axis=0), (joint - mine - theirs).sum(axis=0), examine)


def _examine_tables(
    count: np.ndarray, a: np.ndarray, b: np.ndarray, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Of P pairs: counts (P, C, L, M), concentrations (P, C, L) and (P, C, M)."""
    information, p_value = _table_information(count), np.ones(len(count))
    if not count.size:
        return information, p_value
    for start in range(0, len(count), step := max(1, _CELLS // (draws * count[0].size))):
        some = slice(start, start + step)
        theta = _dirichlet(rng, a[some] + count[some].sum(axis=3), draws)
        other = _dirichlet(rng, b[some] + count[some].sum(axis=2), draws)
        prob = theta[..., :, None] * other[..., None, :]
        n = count[some].sum(axis=(2, 3)).astype(np.int64)
        drawn = rng.multinomial(n, prob.reshape(*prob.shape[:3], -1)).reshape(prob.shape)
        p_value[some] = _share_at_least(_table_information(drawn), information[some])
    return information, p_value


def _table_information(count: np.ndarray) -> np.ndarray:
    """Σ n/N log(n n_c / (n_l n_m)) of tables (..., C, L, M)."""
    total = count.sum(axis=(-1, -2))
    parts = _x_log_x(count).sum(axis=(-1, -2)) + _x_log_x(total)
    parts = parts - _x_log_x(count.sum(axis=-1)).sum(axis=-1) - _x_log_x(count.sum(axis=-2)).sum(axis=-1)
    # What rounding leaves below zero is zero.
    return np.maximum(parts.sum(axis=-1), 0.0) / np.maximum(total.sum(axis=-1), 1.0)


def _levels_and_numbers(first: LevelCells | PresenceCells, second: NumberCells, bounds: np.ndarray) -> Evidence:
    """The evidence of the numbers of each class and level against that of each class."""
    n_classes, n_first, n_levels = first.alpha.shape
    shape = (n_classes, n_first, n_levels, len(second.index))
    n, s, q = (np.zeros((n_classes, n_first * n_levels, len(second.index))) for _ in range(3))
    for c, rows in pieces(bounds, max(n_first * n_levels, 3 * len(second.index))):
        hot = one_hot(first, rows, np.float64)
        seen, deviation = _deviations(second, c, rows)
        n[c] += hot.T @ seen
        s[c] += hot.T @ deviation
        q[c] += hot.T @ deviation**2
    n, s, q = (v.reshape(shape) for v in (n, s, q))
    by_level = _Moments(n, s, q, second.centre[:, None, None])
    by_class = _Moments(n.sum(axis=2), s.sum(axis=2), q.sum(axis=2), second.centre[:, None])
    prior = second.prior
    gain = _log_evidence(prior, by_level, (None, None)).sum(axis=2) - _log_evidence(prior, by_class, (None,))
    within, whole = by_level.m2.sum(axis=2), by_class.m2
    varies = ~by_class.constant
    unexplained = np.where(varies, within / np.where(varies, whole, 1.0), 1.0)
    degrees = np.where(varies, np.maximum((n > 0).sum(axis=2) - 1, 0), 0)
    examine = partial(_examine_share, by_class.n, unexplained, degrees)
    return Evidence(by_class.n.sum(axis=0), gain.sum(axis=0), examine)


def _gaussian_pairs(first: NumberCells, second: NumberCells, bounds: np.ndarray) -> Evidence:
    """A normal-inverse-Wishart against the normal-inverse-gammas that are its marginals.

    With a', b' their posteriors and ρ the correlation in the posterior scale matrix, each class adds
    log Γ(a' + ½)/Γ(a') - log Γ(a + ½)/Γ(a) + ½ log(b₁b₂/b₁'b₂') - (a' + ½) log(1 - ρ²).
    """
    moments = _moments(first, second, bounds)
    x, y, cross = moments
    kappa, a = first.prior.kappa[:, :, None], first.prior.concentration[:, :, None]  # type: ignore[union-attr]
    shrink = kappa * x.n / (kappa + x.n)
    to_x = x.mean - first.prior.loc[:, :, None]  # type: ignore[union-attr]
    to_y = y.mean - second.prior.loc[:, None]  # type: ignore[union-attr]
    b_x, b_y = first.prior.rate[:, :, None], second.prior.rate[:, None]
    after_x = b_x + 0.5 * (x.m2 + shrink * to_x**2)
    after_y = b_y + 0.5 * (y.m2 + shrink * to_y**2)
    share = (cross + shrink * to_x * to_y) / (2.0 * np.sqrt(after_x) * np.sqrt(after_y))
    # Below one but for rounding, as the prior rates are positive.
    square = np.minimum(share**2, 1.0 - 1e-16)
    after = a + x.n / 2
    terms = _log_rising(after, 0.5) - _log_rising(a, 0.5) - (after + 0.5) * np.log1p(-square)
    terms = terms - 0.5 * (np.log(after_x / b_x) + np.log(after_y / b_y))
    return Evidence(x.n.sum(axis=0), terms.sum(axis=0), _correlation(moments))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Numbers of some rows: how many, sum and sum of squares of the deviations from `centre`."""

    n: np.ndarray
    s: np.ndarray
    q: np.ndarray
    centre: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.centre + self.s / np.maximum(self.n, 1.0)

    @property
    def m2(self) -> np.ndarray:
        return np.maximum(self.q - self.s**2 / np.maximum(self.n, 1.0), 0.0)

    @property
    def constant(self) -> np.ndarray:
        """Whether what is left of the spread is rounding."""
        return self.m2 <= self.n * (_CONSTANT * self.mean) ** 2 + 1e-14 * self.q


def _moments(first: NumberCells, second: NumberCells, bounds: np.ndarray) -> tuple[_Moments, _Moments, np.ndarray]:
    """Of each pair, (C, F₁, F₂): moments of either on the rows that have both; Σ (x - x̄)(y - ȳ)."""
    shape = (len(bounds) - 1, len(first.index), len(second.index))
    n, s_x, s_y, q_x, q_y, cross = (np.zeros(shape) for _ in range(6))
    for c, rows in pieces(bounds, 3 * max(shape[1:])):
        (seen_x, x), (seen_y, y) = _deviations(first, c, rows), _deviations(second, c, rows)
        n[c] += seen_x.T @ seen_y
        s_x[c] += x.T @ seen_y
        s_y[c] += seen_x.T @ y
        q_x[c] += (x**2).T @ seen_y
        q_y[c] += seen_x.T @ y**2
        cross[c] += x.T @ y
    cross = cross - s_x * s_y / np.maximum(n, 1.0)
    return _Moments(n, s_x, q_x, first.centre[:, :, None]), _Moments(n, s_y, q_y, second.centre[:, None]), cross


def _deviations(cells: NumberCells, c: int, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Which cells are observed, as 0 and 1, and what they deviate from the mean of their class."""
    deviation = cells.values[rows] - cells.centre[c]
    seen = ~np.isnan(deviation)
    return seen.astype(np.float64), np.where(seen, deviation, 0.0)


def _log_evidence(prior: Any, data: _Moments, axes: tuple[None, ...]) -> np.ndarray:
    """Of the numbers that each prior (C, F) is updated with; `axes` stand between C and F."""
    shape = data.n.shape
    size = 1 << (data.n.size - 1).bit_length()  # few lengths, for each of which the kernel is compiled

    def flat(values: Any) -> np.ndarray:
        return np.resize(np.broadcast_to(values, shape), (1, size))

    family = jax.tree.map(lambda field: flat(np.asarray(field)[(slice(None), *axes)]), prior)
    n, mean, m2 = map(flat, (data.n, data.mean, data.m2))
    statistics = Totals(n, n * mean) if isinstance(prior, GammaPoisson) else Moments(n, mean, m2)
    return _evidence(family, statistics)[0, : data.n.size].reshape(shape)


@float64
def _evidence(family: Any, statistics: Any) -> np.ndarray:
    return _evidence_kernel(family, statistics)


@jax.jit
def _evidence_kernel(family: Any, statistics: Any) -> jax.Array:
    return family.log_evidence(statistics)


def _correlation(moments: tuple[_Moments, _Moments, np.ndarray]) -> Examine:
    x, y, cross = moments
    varies = ~(x.constant | y.constant)
    square = np.where(varies, (cross / np.where(varies, np.sqrt(x.m2) * np.sqrt(y.m2), 1.0)) ** 2, 0.0)
    return partial(_examine_share, x.n, 1.0 - np.minimum(square, 1.0), varies.astype(int))


def _examine_share(
    n: np.ndarray,
    unexplained: np.ndarray,
    degrees: np.ndarray,
    pick: np.ndarray,
    draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Of 1 - R² in each class, ~ Beta((n - k - 1)/2, k/2) under independence, k the degrees of freedom.

    A class without degrees of freedom left says nothing. All arrays are (C, F₁, F₂).
    """
    i, j = np.nonzero(pick)
    n, unexplained, degrees = (v[:, i, j].T for v in (n, unexplained, degrees))
    degrees = np.where(n - degrees - 1 > 0, degrees, 0)
    weight = n / np.maximum(n.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(divide="ignore"):
        information = _weighted_log(weight, np.where(degrees > 0, unexplained, 1.0))
    # Where no cell is missing all pairs have one null distribution.
    distinct, which = np.unique(np.hstack([n, degrees]), axis=0, return_inverse=True)
    which, p_value = which.ravel(), np.ones(len(n))
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    for u, row in enumerate(distinct):
        size, k = np.split(row, 2)
        null = np.ones((draws, len(size)))
        free = k > 0
        rest = rng.standard_gamma((size - k - 1)[free] / 2, (draws, free.sum()))
        null[:, free] = rest / (rest + rng.standard_gamma(k[free] / 2, rest.shape))
        members = order[ends[u] : ends[u + 1]]
        drawn = np.sort(_weighted_log(size / max(size.sum(), 1.0), null))
        below = np.searchsorted(drawn, information[members] * (1.0 - _SAME))
        p_value[members] = (1 + draws - below) / (1 + draws)
    return information, p_value


def _weighted_log(weight: np.ndarray, unexplained: np.ndarray) -> np.ndarray:
    """Σ_c n_c/n · (-½ log(1 - R²)), never -0."""
    return 0.0 - 0.5 * np.sum(np.where(unexplained == 1.0, 0.0, weight * np.log(unexplained)), axis=-1)


def _share_at_least(drawn: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Share of (S, P) replicates, the data among them, that are at least what was observed, but for rounding."""
    return (1 + (drawn >= observed * (1.0 - _SAME) - 1e-12).sum(axis=0)) / (1 + len(drawn))


def _dirichlet(rng: np.random.Generator, alpha: np.ndarray, draws: int) -> np.ndarray:
    gamma = rng.standard_gamma(alpha, (draws, *alpha.shape))
    total = gamma.sum(axis=-1, keepdims=True)
    return gamma / np.where(total > 0, total, 1.0)


def _log_rising(a: Any, x: Any) -> np.ndarray:
    """log Γ(a + x) - log Γ(a), by a table where few numbers are asked for often."""
    if np.size(a) and np.size(x) > 4096 and np.ptp(a) == 0:
        largest = np.max(x)
        if largest < np.size(x) and np.array_equal(index := x.astype(np.intp), x):
            first = np.ravel(a)[0]
            return (gammaln(first + np.arange(largest + 1)) - gammaln(first))[index]
    return gammaln(a + x) - gammaln(a)


def _x_log_x(x: np.ndarray) -> np.ndarray:
    largest = int(np.max(x, initial=0))
    if largest < x.size and x.size > 4096:
        grid = np.arange(largest + 1)
        return xlogy(grid, grid)[x.astype(np.intp)]
    return xlogy(x, x)


__all__ = ["Evidence", "compare"]
