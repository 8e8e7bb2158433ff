"""Dependence of pairs of columns given the class: Bayes factors and permutation tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import xlogy
from scipy.stats import random_table

from bayesnb._util.arguments import Seed, read_seed, require_integer, shown
from bayesnb._util.arrays import count_pairs, pieces, require_draws, require_memory, sort_by_class
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb.encoding import Columns
from bayesnb.families import Complete, Dirichlet, offers
from bayesnb.families.special import log_rising
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.uncertainty import ImproperPosteriorError

# == Cells of features, levels or numbers, with rows sorted by class, for the comparison of pairs of features

_TABLE = 2**26


@dataclass(frozen=True, eq=False)
class LevelCells:
    """Encoded levels of F features that have the same number of levels, L, with rows sorted by class.

    Parameters
    ----------
    index : (F,) columns of X
    code : (N, F) level of each cell, -1 where missing; a sparse matrix for presences of words
    alpha : (C, F, L) concentrations of the prior
    """

    index: np.ndarray
    code: Any
    alpha: np.ndarray

    def take(self, at: np.ndarray) -> LevelCells:
        """Return a copy with the features at the positions `at`."""
        return LevelCells(self.index[at], self.code[:, at], self.alpha[:, at])

    def one_hot(self, rows: slice, dtype: type = np.float32) -> np.ndarray:
        """(n, F · L) indicators of the levels in these rows; the indicators of a missing cell are zero."""
        code = self.code[rows]
        hot = (code.toarray() if sp.issparse(code) else code)[:, :, None] == np.arange(self.alpha.shape[2])
        return np.asarray(hot.reshape(hot.shape[0], -1), dtype)

    def count_pairs(self, other: LevelCells, bounds: np.ndarray) -> np.ndarray:
        """(C, F₁, L₁, F₂, L₂) number of rows of each class with each pair of levels.

        Rows in which either cell is missing are not counted. `bounds` (C + 1,) are the first row of each class, and the
        number of rows.
        """
        shape = (len(bounds) - 1, *self.alpha.shape[1:], *other.alpha.shape[1:])
        if not (sp.issparse(self.code) and sp.issparse(other.code)):
            flat = shape[1] * shape[2], shape[3] * shape[4]
            return count_pairs(self.one_hot, other.one_hot, bounds, flat).reshape(shape)
        counts = np.empty(shape)
        for c, (start, stop) in enumerate(pairwise(bounds)):
            x, y = self.code[start:stop], other.code[start:stop]
            n_x, n_y, both = x.sum(axis=0)[:, None], y.sum(axis=0), (x.T @ y).toarray()
            table = np.array([[stop - start - n_x - n_y + both, n_y - both], [n_x - both, both]])
            counts[c] = table.transpose(2, 0, 3, 1)
        return counts


@dataclass(frozen=True, eq=False)
class NumberCells:
    """Values of F features that are numbers, with rows sorted by class, their class means, and their prior.

    Parameters
    ----------
    index : (F,) columns of X
    values : (N, F) numbers, NaN where missing
    centre : (C, F) means of each class
    prior : Family
    """

    index: np.ndarray
    values: np.ndarray
    centre: np.ndarray
    prior: Any

    def take(self, at: np.ndarray) -> NumberCells:
        """Return a copy with the features at the positions `at`."""
        prior = jax.tree.map(lambda field: np.asarray(field)[:, at], self.prior)
        return NumberCells(self.index[at], self.values[:, at], self.centre[:, at], prior)

    def above_median(self, bounds: np.ndarray) -> LevelCells:
        """Return numbers as two levels: 1 above the median of the feature in the row's class, 0 not, -1 missing.

        `bounds` (C + 1,) are the first row of each class, and the number of rows. The concentrations of both levels are
        1.
        """
        code = np.full(self.values.shape, -1, np.int8)
        for start, stop in pairwise(bounds):
            values = self.values[start:stop]
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # A column may have no cell.
                median = np.nanmedian(values, axis=0) if len(values) else 0.0
            code[start:stop] = np.where(np.isnan(values), -1, values > median)
        return LevelCells(self.index, code, np.ones((len(bounds) - 1, len(self.index), 2)))


Cells = LevelCells | NumberCells


def read_cells(fitted: Fitted, X: object, y: object, chosen: set[int]) -> tuple[list[Cells], np.ndarray]:
    """Read the cells of the chosen features, with rows sorted by class.

    Returns
    -------
    cells : list
        Features with levels, then features with numbers; features of one kind stand together.
    bounds : (C + 1,) int array
        First row of each class, and the number of rows.

    Raises
    ------
    ImproperPosteriorError
        If the prior of a feature is improper.
    """
    table = fitted.table(X)
    order, bounds = sort_by_class(fitted.label_index(y, table.n_rows), len(fitted.encoding.classes))
    # Features with parents are compared without them: the model to check is naive Bayes.
    rows = fitted.rows(table, alone=True)
    cells: list[Cells] = []
    blocks = zip(fitted.encoding.blocks, fitted.prior.blocks, rows, fitted.encoding.repeats, strict=True)
    for block, family, block_rows, repeats in blocks:
        index = np.asarray(block.base.index)
        at = np.flatnonzero(np.isin(index, list(chosen)))
        if repeats or not len(at):  # A number in a network has cells in another block, which are compared.
            continue
        # Features that are averaged over have the prior of the model in which they depend on the class.
        prior = fitted.prior_alone(block, family)
        prior = getattr(prior, "dependent", prior)
        improper = np.asarray(block.base.axis()[0])[~float64(prior.proper)().all(axis=0)]
        if not block.base.one_simplex and len(improper := np.intersect1d(improper, at)):
            raise ImproperPosteriorError(
                f"The prior of feature {shown(block.base.names[improper[0]])} is improper, as one of its parameters is "
                "zero. A Bayes factor needs a proper prior, such as alpha=0.5."
            )
        if hasattr(block_rows, "matrix"):
            present = (sp.csc_array(block_rows.matrix) != 0).astype(np.float64)
            cells += _cells_of_levels(block.base, prior, present.tocsr()[order].tocsc(), at)
        elif hasattr(x := block_rows.piece(0, table.n_rows, table.n_rows), "code"):
            cells += _cells_of_levels(block.base, prior, np.asarray(x.code)[order], at)
        elif block.auxiliary:
            raise NotImplementedError(
                "check_independence does not read exposures, by which counts of a row depend on each other. Use "
                'posterior_predictive_check(statistic="association"), which replicates rows at their exposures.'
            )
        elif hasattr(prior.statistics, "from_moments"):
            values = np.asarray(x.values if isinstance(x, Complete) else x)[order].astype(np.float64)
            cells.append(NumberCells(index, values, _class_means(values, bounds), prior).take(at))
        else:
            raise NotImplementedError(
                f"check_independence cannot compare {block.kind} columns: {prior.statistics.__name__} lacks the method "
                "`from_moments`. Name other columns in features=."
            )
    # Numbers whose pairs have a closed-form Bayes factor come last.
    cells.sort(key=lambda c: isinstance(c, NumberCells) and 1 + offers(c.prior, "log_bayes_factor_of_pairs"))
    return cells, bounds


def require_pair(n_features: int) -> None:
    """Raise ValueError if there are fewer than two columns."""
    if n_features < 2:
        raise ValueError(f"features: a pair needs two columns, {n_features} can be compared. A KDB leaves some out.")


def _require_small_tables(cells: list[Cells], n_classes: int, names: Sequence[str]) -> None:
    """Raise ValueError if the table of counts of the two features with most levels has more than 2^26 entries."""
    sizes = sorted((c.alpha.shape[2], int(j)) for c in cells if not isinstance(c, NumberCells) for j in c.index)
    if len(sizes) > 1:
        (b, j), (a, i) = sizes[-2:]
        of = f"{shown(names[i])} ({a} levels) and {shown(names[j])} ({b} levels) for {n_classes} classes"
        require_memory(n_classes * a * b, f"The table of {of}", "Leave one of them out of features=.", _TABLE)


def _cells_of_levels(columns: Columns, family: Dirichlet, code: np.ndarray, at: np.ndarray) -> list[LevelCells]:
    """Group the features at positions `at` of a block by number of levels; words are two levels, absent and present."""
    alpha, index = np.asarray(family.concentration), np.asarray(columns.index)
    if columns.one_simplex:  # Words are absent or present.
        return [LevelCells(index[at], code[:, at], np.ones((len(alpha), len(at), 2)))]
    sizes = np.asarray(columns.sizes())
    start = np.cumsum(sizes) - sizes
    groups = []
    for size in np.unique(sizes[at]):
        same = at[sizes[at] == size]
        concentration = alpha[:, start[same][:, None] + np.arange(size, dtype=np.intp)]
        groups.append(LevelCells(index[same], code[:, same], concentration))
    return groups


def _class_means(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """(C, F) means of the observed cells; zero where no cell is observed."""
    centre = np.zeros((len(bounds) - 1, values.shape[1]))
    for c, (start, stop) in enumerate(pairwise(bounds)):
        count = np.maximum((~np.isnan(values[start:stop])).sum(axis=0), 1)
        # The second pass corrects the rounding of the first mean.
        for _ in range(2):
            centre[c] += np.nansum(values[start:stop] - centre[c], axis=0) / count
    return centre


# == Evidence that two features depend on each other given the class ===============================

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
    gain = np.asarray(log_rising(a0 * p * q, count).sum(axis=(2, 4)) + log_rising(a0[:, :, 0, :, 0], rows))
    for alone, axis in ((p, 4), (q, 2)):
        gain = gain - log_rising(a0 * alone, count.sum(axis=axis, keepdims=True)).sum(axis=(2, 4))

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
    return information_of_tables(count), p_value


def _draw_entropy_sums(table: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw (S,) sums Σ n log n of random tables with the margins of `table` (L, M), rows paired at random."""
    row, column = (margin[margin > 0].astype(np.int64) for margin in (table.sum(axis=1), table.sum(axis=0)))
    if min(len(row), len(column)) < 2:
        return np.full(draws, xlogy(table, table).sum())
    at_once = max(1, _MOST_CELLS // (len(row) * len(column)))
    sizes = (min(at_once, draws - done) for done in range(0, draws, at_once))
    drawn = (random_table.rvs(row, column, size=size, random_state=rng) for size in sizes)
    return np.concatenate([xlogy(count, count).sum(axis=(1, 2)) for count in drawn])


def information_of_tables(count: np.ndarray) -> np.ndarray:
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


# == Pairs of features that depend on each other given the class ===================================

_MOST_PAIRS, _A_PAIR = 2_000_000, 8  # numbers
_LEVELS, _NUMBERS = 512, 128


def check_independence(
    nb: Classifier,
    X: object,
    y: object,
    *,
    features: Iterable[object] | None = None,
    top: int | None = None,
    draws: int = 200,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Compare dependence and independence given the class for each pair of features.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier whose levels and prior are used.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows, usually those that `nb` was fitted to.
    y : array-like of shape (N,)
        Labels of the rows.
    features : iterable of column names or indices, optional
        Features to compare; default: all.
    top : int, optional
        Number of pairs to return, those with the largest Bayes factors; all pairs are compared. Default: all.
    draws : int
        Number of replicates for each p-value, which is never below 1/(draws + 1).
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same p-values.

    Returns
    -------
    DataFrame
        One row for each pair, sorted by log_bayes_factor, largest first; feature_1 precedes feature_2 in X.

        feature_1, feature_2
            names of the features
        rows
            number of rows in which both features are observed; only these rows are used.
        log_bayes_factor
            log p(both | class, dependent) - log p(both | class, independent), in nats.
        mutual_information
            estimate of the mutual information given the class, in nats.
        p_value
            probability, under independence, of at least this mutual information; for levels, over all permutations of
            the rows within each class, so that P(p_value ≤ u) ≤ u for any frequencies and any number of rows.

    Raises
    ------
    ValueError
        If there are fewer than two features, or more than two million pairs and no `top`; if the data cannot be
        used.
    ImproperPosteriorError
        If the prior of a feature is improper: it has no Bayes factors.
    NotImplementedError
        For Gaussian features whose priors differ in a; for classifiers without an exact posterior, whose prior is
        not that of one model.

    Notes
    -----
    Every row has the weight 1. Each feature by itself has the same prior under both hypotheses (numbers beside levels:
    their mean over the rows, and their variance), so the Bayes factor measures dependence alone:

    - *Levels and levels*: a Dirichlet over the table of each class with concentrations A_lm = α_l α'_m / α₀, against
      the product of the Dirichlets that are its marginals, Σ_c log B(A + n)/B(A) - log B(A₁ + n₁)/B(A₁) -
      log B(A₂ + n₂)/B(A₂). Where α and α' have one total, α₀, the marginals are the prior of `nb`, A₁ = α and A₂ = α'.
      No Dirichlet over pairs has marginals of two totals: then α₀ is their geometric mean, for both hypotheses. Mutual
      information: that of the observed tables, which is positive even under independence; p-values from random tables
      with the margins of each class.
    - *Gaussian and Gaussian*: an inverse Wishart with ν = 2a + 1 and Ψ = diag(2b, 2b') (Geiger & Heckerman 2002),
      against the two inverse gammas that are its marginals, of the deviations from the mean of the class (n_c - 1
      contrasts): the location of the class carries no information. Mutual information: Σ_c n_c/n · (-½ log(1 - r_c²));
      r² ~ Beta(½, (n_c - 2)/2) under independence, exactly.
    - *Levels and Gaussian*: analysis of variance: means of the levels, N(μ, σ² n_c/(κ n_cl)) with one σ² (the g-prior
      with g = n_c/κ; Liang et al. 2008), against one mean, of the same contrasts. Mutual information: -½ log(1 - η²),
      η² the share of the squares between levels; η² ~ Beta((L - 1)/2, (n_c - L)/2), exactly if Gaussian.
    - *Levels and Poisson*: rates Gamma(a s, b s) of levels that have the share s = n_cl/n_c of the rows, whose mean
      over the rows is Gamma(a, b), against one rate with this prior. Mutual information as for Gaussian features.
    - *Poisson and Gaussian*: the Poisson feature becomes a level, above its median in the class or not.
    - *Poisson and Poisson*: either may become the level; both alternatives have probability ½. The mutual information
      of Poisson features is that of the correlation, and their p-values are approximate where counts are small.
    - *Binned columns*: their cells are the levels. There are many, so the Bayes factor detects strong dependence only;
      `MixedNB(gaussian=...)` compares such columns as numbers.
    - *Words* (multinomial features): whether each occurs in a row, as two levels with concentration 1. Words of a row
      share its length, and this too makes them dependent.

    The check detects means, rates and correlations that depend on the other feature, but not variances that do.
    Overdispersed counts (variance above the Poisson variance) seem to depend on any other feature.

    A Bayes factor compares these two hypotheses only. Strong evidence of dependence means that P(class | row) is
    overconfident, not that the predicted labels are wrong.

    References
    ----------
    Gunel & Dickey, *Bayes factors for independence in contingency tables*, Biometrika 61 (1974). Geiger & Heckerman,
    *Parameter priors for directed acyclic graphical models*, Ann. Stat. 30 (2002). Liang et al., *Mixtures of g priors
    for Bayesian variable selection*, JASA 103 (2008). Patefield, *An efficient method of generating random R × C tables
    with given row and column totals*, Appl. Stat. 30 (1981).

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb import check_independence
    >>> X, y = [["sun", "hot"], ["rain", "cold"]] * 20, ["out", "in"] * 10 + ["in", "out"] * 10
    >>> check_independence(CategoricalNB().fit(X, y), X, y)[["feature_1", "feature_2", "log_bayes_factor"]].round(1)
      feature_1 feature_2  log_bayes_factor
    0         0         1              23.4
    """
    fitted = require_posterior(nb, "check_independence")
    if top is not None:
        require_integer("top", top)
    require_draws(draws, 4, "a random table")
    seed = read_seed(seed)
    names = fitted.encoding.feature_names
    chosen = set(range(len(names))) if features is None else fitted.encoding.positions(features)
    n_features = len(chosen)
    require_pair(n_features)
    n_pairs = n_features * (n_features - 1) // 2
    if top is None:
        advice = "Set top=1000 for the strongest pairs, or name some columns in features=."
        require_memory(n_pairs * _A_PAIR, f"The table of {n_pairs:,} pairs of columns", advice, _MOST_PAIRS * _A_PAIR)
    cells, bounds = read_cells(fitted, X, y, chosen)
    _require_small_tables(cells, len(bounds) - 1, names)
    for group in cells:
        if isinstance(group, NumberCells) and (
            refusal := group.prior.pairs_refusal([names[int(j)] for j in group.index])
        ):
            raise NotImplementedError(refusal)
    rng = np.random.default_rng(seed)
    parts: list[pd.DataFrame] = []
    with progress("Pairs of features", n_pairs) as tick:
        for first, second, mask in _pair_blocks(cells):
            evidence = compare(first, second, bounds)
            i, j = np.nonzero(mask)
            lower, upper = np.sort([first.index[i], second.index[j]], axis=0)
            part = pd.DataFrame({"first": lower, "second": upper, "rows": evidence.rows[mask].astype(np.int64)})
            part["log_bayes_factor"] = evidence.log_bayes_factor[mask]
            if top is None:
                part["mutual_information"], part["p_value"] = evidence.examine(mask, draws, rng)
            parts = [*parts, part] if top is None else [_strongest(pd.concat([*parts, part]), top)]
            tick(len(part))
    table = _strongest(pd.concat(parts), top)
    if top is not None:
        table["mutual_information"], table["p_value"] = _examine(cells, bounds, table, draws, rng)
    pairs = [[names[j] for j in table.pop(column)] for column in ("first", "second")]
    return pd.DataFrame({"feature_1": pairs[0], "feature_2": pairs[1]}).join(table)


def _strongest(pairs: pd.DataFrame, top: int | None) -> pd.DataFrame:
    """Return the `top` pairs with the largest Bayes factors, sorted by these; None: all pairs, sorted."""
    order = np.lexsort((pairs["second"], pairs["first"], -pairs["log_bayes_factor"]))
    return pairs.iloc[order[:top]].reset_index(drop=True)


def _examine(
    cells: list[Cells], bounds: np.ndarray, pairs: pd.DataFrame, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Compute (P,) mutual information in nats, and p-values by `draws` replicates, of P pairs of columns.

    `bounds` (C + 1,) are the first row of each class, and the number of rows.
    """
    position = {int(j): (group, at) for group, c in enumerate(cells) for at, j in enumerate(c.index)}
    information, p_value = np.empty(len(pairs)), np.empty(len(pairs))
    with progress("Replicates", len(pairs)) as tick:
        for row, pair in enumerate(zip(pairs["first"], pairs["second"], strict=True)):
            (g, a), (h, b) = sorted(position[j] for j in pair)
            evidence = compare(cells[g].take(np.array([a])), cells[h].take(np.array([b])), bounds)
            information[row : row + 1], p_value[row : row + 1] = evidence.examine(np.ones((1, 1), bool), draws, rng)
            tick()
    return information, p_value


def _pair_blocks(cells: list[Cells]) -> Iterator[tuple[Cells, Cells, np.ndarray]]:
    """Yield blocks (first, second, mask (F₁, F₂)) of features; each pair of features is once in a mask."""
    blocks = []
    for group in cells:
        size = _NUMBERS if isinstance(group, NumberCells) else max(1, _LEVELS // max(1, group.alpha.shape[2]))
        blocks += [(group, at) for at in np.split(np.arange(len(group.index)), range(size, len(group.index), size))]
    for a, (group, at) in enumerate(blocks):
        first = group.take(at)
        for b, (other, positions) in enumerate(blocks[a:], a):
            mask = np.ones((len(at), len(positions)), bool)
            mask = np.triu(mask, 1) if a == b else mask
            if mask.any():
                yield first, other.take(positions), mask
