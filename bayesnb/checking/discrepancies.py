"""Statistics of labelled tables that a model may fail to replicate, for many tables of the same rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

_MOST_NUMBERS = 2**22
_FEWEST_ROWS, _ROUNDING = 3, 1e-12


@dataclass(frozen=True, eq=False)
class Tables:
    """S tables of the same N labelled rows, with the same missing cells.

    Parameters
    ----------
    label : (N,) int array
        Position of the class of each row.
    numbers : (S, N, F) array
        Cells of the features that are numbers; NaN where missing.
    codes : (S, N, G) int array
        Positions of the levels of the other features; -1 where missing.
    number_index, level_index : (F,), (G,) int arrays
        Positions of the features among the columns of X.
    levels : tuple of G sequences
        Levels of each feature.
    """

    label: np.ndarray
    numbers: np.ndarray
    codes: np.ndarray
    number_index: np.ndarray
    level_index: np.ndarray
    levels: tuple[Sequence[Hashable], ...]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def classes(self) -> np.ndarray:
        """Positions of the classes that have rows."""
        return np.unique(self.label)

    @cached_property
    def index(self) -> np.ndarray:
        """(F + G,) positions of all features among the columns of X: those of numbers, then those of levels."""
        return np.concatenate([self.number_index, self.level_index])

    @property
    def feature_of_level(self) -> np.ndarray:
        """(L,) number of the feature, among those of levels, of each level."""
        return np.repeat(np.arange(len(self.levels)), [len(levels) for levels in self.levels])

    def split_by_class(self) -> Iterator[Tables]:
        """Yield the rows of each class."""
        for rows in (self.label == c for c in self.classes):
            yield replace(self, label=self.label[rows], numbers=self.numbers[:, rows], codes=self.codes[:, rows])

    def one_hot(self) -> np.ndarray:
        """(S, N, L) indicators of the levels of all features; those of a missing cell are zero."""
        start = np.cumsum([0, *map(len, self.levels)])
        hot = np.empty((*self.codes.shape[:2], start[-1]))
        for g, levels in enumerate(self.levels):
            hot[:, :, start[g] : start[g + 1]] = self.codes[:, :, g, None] == np.arange(len(levels))
        return hot


# Name of each quantity, and positions of its features among the columns of X; None where there is none.
Quantities = Sequence[tuple[str, int | None, int | None]]


class Statistic(NamedTuple):
    """A statistic of the rows of each class, or of a table as a whole.

    Parameters
    ----------
    quantities : function of tables
        Names and features of T quantities.
    measure : function of S tables
        (2, S, T) values of the quantities, NaN where undefined, and scores to compare; (S, T) if these are equal.
    one_sided : bool
        Whether only large scores speak against the model.
    least_sd : float
        Least number by which scores are divided in place of their standard deviation.
    """

    quantities: Callable[[Tables], Quantities]
    measure: Callable[[Tables], np.ndarray]
    one_sided: bool = False
    least_sd: float = 0.0


# -- association ---------------------------------------------------------------------------------


def association_quantities(tables: Tables) -> Quantities:
    """Return the quantities of `associations`: each pair of features, in the order of the columns."""
    n_numbers, names = len(tables.number_index), ("Cramér's V", "correlation ratio", "correlation")
    pairs = zip(*_pairs(tables), strict=True)
    kinds_and_pairs = ((names[int(i < n_numbers) + int(j < n_numbers)], sorted(tables.index[[i, j]])) for i, j in pairs)
    return [(name, int(first), int(second)) for name, (first, second) in kinds_and_pairs]


def associations(tables: Tables) -> np.ndarray:
    """Compute (2, S, T): the dependence of each pair of features, and its surprise given the margins.

    A dependence is computed on the rows with both features observed, from 0 to 1: |r| of two numbers, Cramér's V =
    √(χ² / (n (k - 1))) of two features of levels with at least k levels that occur, and the correlation ratio η =
    √(squares between levels / all squares) of a number and a feature of levels. NaN if fewer than three rows have
    values of both, or one of the two is constant there.

    The surprise is -log P(dependence at least as large | cells of both features, in random order). Two rare levels in
    one row, and two equal columns, can have the same dependence of 1; only the surprise tells them apart.
    """
    pair = _pairs(tables)
    n_numbers, n_features = len(tables.number_index), len(tables.index)
    n_levels = sum(map(len, tables.levels))
    size = len(tables.label) * (n_numbers + n_levels) + (n_numbers + n_levels) ** 2
    step = max(1, _MOST_NUMBERS // max(1, size))
    result = np.empty((2, len(tables), len(pair[0])))
    for start in range(0, len(tables), step):
        part = slice(start, start + step)
        some = replace(tables, numbers=tables.numbers[part], codes=tables.codes[part])
        matrix = np.empty((len(some), n_features, n_features))
        x, seen = _centred(some.numbers)
        hot, observed = some.one_hot(), (some.codes[0] >= 0).astype(float)
        member = (some.feature_of_level[:, None] == np.arange(len(some.levels))).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            matrix[:, :n_numbers, :n_numbers] = _correlations(x, seen)
            matrix[:, n_numbers:, n_numbers:] = _cramer(hot, member)
            matrix[:, n_numbers:, :n_numbers] = _correlation_ratios(x, seen, hot, observed, member)
            matrix[:, :n_numbers, n_numbers:] = matrix[:, n_numbers:, :n_numbers].swapaxes(1, 2)
            margins = _margins(x, hot, np.concatenate([seen, observed], axis=1), member)
            value = matrix[:, *pair]
            result[:, part] = value, _surprises(value, margins, pair)
    return result


def _pairs(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions in `tables.index` of both features of each pair, pairs in the order of the columns."""
    order = np.argsort(tables.index)
    first, second = np.triu_indices(len(order), 1)
    return order[first], order[second]


def _margins(
    x: np.ndarray, hot: np.ndarray, observed: np.ndarray, member: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of rows (F, F), and rank and sum of squared leverages (S, F, F), for all pairs of features.

    Rank and leverages are those of the first feature of a pair, as a design matrix of its numbers or levels without
    their mean, on the rows with both.
    """
    n, n_numbers = observed.T @ observed, x.shape[2]
    # Moments of the numbers about their mean in all rows.
    first, second, third, fourth = ((x**k).swapaxes(1, 2) @ observed / n[:n_numbers] for k in range(1, 5))
    variance = second - first**2
    kurtosis = (fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4) / variance**2
    count = hot.swapaxes(1, 2) @ observed
    occurring = member.T @ (count > 0)
    of_levels = member.T @ np.where(count > 0, 1 / count, 0.0) - (2 * occurring - 1) / n[n_numbers:]
    rank = np.concatenate([np.ones_like(kurtosis), occurring - 1], axis=1)
    return n, rank, np.concatenate([kurtosis / n[:n_numbers], of_levels], axis=1)


def _surprises(
    association: np.ndarray, margins: tuple[np.ndarray, np.ndarray, np.ndarray], pair: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """(S, T) -log P(association as large | margins) of T pairs of features, from the `_margins` of all features.

    min(p, q) · association² = r², η² or χ²/n is the trace of a product of two projections, whose mean and variance in
    random order are exact (Kazi-Aoual et al. 1995). Its distribution is approximated by the gamma distribution that has
    these moments. Where the margins leave one value only, the surprise is 0.
    """
    n = margins[0][pair]
    p, q = (margins[1][:, *order] for order in (pair, pair[::-1]))
    of_both = (margins[2][:, *pair], p), (margins[2][:, *pair[::-1]], q)
    excess, other_excess = (n * (n + 1) * v - (n - 1) * (rank**2 + 2 * rank) for v, rank in of_both)
    mean = p * q / (n - 1)
    spread = 2 * ((n - 1) * p - p**2) * ((n - 1) * q - q**2) / ((n - 1) ** 2 * (n + 1) * (n - 2))
    # The excess of three rows is 0.
    variance = spread + excess * other_excess / ((n + 1) * n * (n - 1) * (n - 2) * np.maximum(n - 3, 1))
    shape = mean**2 / variance
    tail = gammaincc(shape, shape * np.minimum(p, q) * association**2 / mean)
    surprise = np.where(variance > 1e-9 * mean**2, -np.log(np.maximum(tail, np.finfo(float).tiny)), 0.0)
    return np.where(np.isnan(association), np.nan, surprise)


def _centred(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers (S, N, F) from their mean, 0 where missing, and whether each cell is observed (N, F), as 0 and 1.

    A constant column becomes exactly 0; others are divided by their largest deviation from the first number.
    """
    seen = ~np.isnan(numbers[0])
    count = np.maximum(seen.sum(axis=0), 1)
    first = np.take_along_axis(numbers, seen.argmax(axis=0)[None, None], axis=1)
    shifted = np.where(seen, numbers - first, 0.0)
    largest = np.abs(shifted).max(axis=1, keepdims=True, initial=0.0)
    shifted = shifted / np.where(largest > 0, largest, 1.0)
    return np.where(seen, shifted - shifted.sum(axis=1, keepdims=True) / count, 0.0), seen.astype(float)


def _correlations(x: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(S, F, F) absolute correlations of centred numbers (S, N, F), for each pair on the rows with both."""
    n = seen.T @ seen
    total, square = x.swapaxes(1, 2) @ seen, (x**2).swapaxes(1, 2) @ seen  # of the first where the second is observed
    covariance = x.swapaxes(1, 2) @ x - total * total.swapaxes(1, 2) / n
    variance = square - total**2 / n
    varies = variance > _ROUNDING * square
    r = np.abs(covariance) / np.sqrt(variance * variance.swapaxes(1, 2))
    defined = (n >= _FEWEST_ROWS) & varies & varies.swapaxes(1, 2)
    return np.where(defined, np.minimum(r, 1.0), np.nan)


def _cramer(hot: np.ndarray, member: np.ndarray) -> np.ndarray:
    """(S, G, G) Cramér's V of features of levels, from indicators (S, N, L) and the feature (L, G) of each level."""
    pair = hot.swapaxes(1, 2) @ hot
    margin = pair @ member  # of each level, in the rows in which the other feature is observed
    spread = margin @ member.T
    share = np.where(pair > 0, pair**2 / (spread * spread.swapaxes(1, 2)), 0.0)
    phi2 = member.T @ share @ member - 1.0
    n, occurring = member.T @ pair @ member, member.T @ (margin > 0)
    fewest = np.minimum(occurring, occurring.swapaxes(1, 2))
    v = np.sqrt(np.clip(phi2 / (fewest - 1.0), 0.0, 1.0))
    return np.where((n >= _FEWEST_ROWS) & (fewest > 1), v, np.nan)


def _correlation_ratios(
    x: np.ndarray, seen: np.ndarray, hot: np.ndarray, observed: np.ndarray, member: np.ndarray
) -> np.ndarray:
    """(S, G, F) correlation ratios of centred numbers (S, N, F) at the levels of other features."""
    of_level = hot.swapaxes(1, 2)
    count, total = of_level @ seen, of_level @ x
    n, mean_part = member.T @ count, (member.T @ total) ** 2
    between = member.T @ np.where(count > 0, total**2 / count, 0.0) - mean_part / n
    square = observed.T @ x**2
    all_squares = square - mean_part / n
    eta = np.sqrt(np.clip(between / all_squares, 0.0, 1.0))
    defined = (n >= _FEWEST_ROWS) & (member.T @ (count > 0) > 1) & (all_squares > _ROUNDING * square)
    return np.where(defined, eta, np.nan)


# -- frequency and extremes ----------------------------------------------------------------------


def frequency_quantities(tables: Tables) -> Quantities:
    """Return the quantities of `frequencies`."""
    of_levels = zip(tables.level_index, tables.levels, strict=True)
    levels = [(f"proportion of {level}", int(j), None) for j, of_feature in of_levels for level in of_feature]
    return [*((name, int(j), None) for name in ("mean", "sd") for j in tables.number_index), *levels]


def frequencies(tables: Tables) -> np.ndarray:
    """Compute (S, T) mean and standard deviation (n - 1) of numbers and proportion of each level.

    NaN without an observed cell; standard deviations are NaN with fewer than two.
    """
    x, n = tables.numbers, (~np.isnan(tables.numbers)).sum(axis=1)
    size = (tables.codes >= 0).sum(axis=1)[:, tables.feature_of_level]
    count = [(tables.codes[:, :, g] == k).sum(axis=1) for g, of_g in enumerate(tables.levels) for k in range(len(of_g))]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nansum(x, axis=1) / n
        sd = np.sqrt(np.nansum((x - mean[:, None]) ** 2, axis=1) / (n - 1))
        proportion = np.reshape(count, (-1, len(tables))).T / size
    return np.concatenate([mean, np.where(n > 1, sd, np.nan), proportion], axis=1)


def extreme_quantities(tables: Tables) -> Quantities:
    """Return the quantities of `extremes`."""
    rarest = [("rows with the rarest level", int(j), None) for j in tables.level_index]
    return [*((name, int(j), None) for name in ("min", "max") for j in tables.number_index), *rarest]


def extremes(tables: Tables) -> np.ndarray:
    """Compute (S, T) least and greatest number, and number of rows with the rarest level.

    NaN without an observed cell. A level that is known and does not occur has 0 rows.
    """
    x = tables.numbers
    absent = np.isnan(x)
    low, high = np.where(absent, np.inf, x).min(axis=1), np.where(absent, -np.inf, x).max(axis=1)
    ends = [np.where(np.isinf(end), np.nan, end) for end in (low, high)]
    rarest = np.full((len(tables), len(tables.levels)), np.nan)
    for g, levels in enumerate(tables.levels):
        if (tables.codes[0, :, g] >= 0).any():
            rarest[:, g] = np.min([(tables.codes[:, :, g] == k).sum(axis=1) for k in range(len(levels))], axis=0)
    return np.concatenate([*ends, rarest], axis=1)


STATISTICS = {
    # Surprises of independent features have an exponential distribution, whose standard deviation is 1.
    "association": Statistic(association_quantities, associations, True, 1.0),
    "frequency": Statistic(frequency_quantities, frequencies),
    "extremes": Statistic(extreme_quantities, extremes),
}
