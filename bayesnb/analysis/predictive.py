"""Checks of a model by its predictive distribution, before and after the data, and its sensitivity to the prior."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.special import gammaincc, logsumexp

from bayesnb._util.arguments import Seed, read_seed, require_integer, require_interval, shown
from bayesnb._util.arrays import require_draws, require_memory
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb.analysis.dependence import require_pair
from bayesnb.encoding import Encoding
from bayesnb.encoding.levels import to_python
from bayesnb.families import Exposed
from bayesnb.families.arrays import kernel, map_leading_axis, xp
from bayesnb.families.protocol import Prior, Variates
from bayesnb.fitted.scoring import map_rows, pad, pad_statistics
from bayesnb.fitted.state import Classifier, Fitted, Tunable, require_posterior
from bayesnb.model import Estimate, NaiveBayes, Statistics, log_normalize, undefined
from bayesnb.uncertainty import ImproperPosteriorError, require_proper
from bayesnb.uncertainty.draws import draw_posterior
from bayesnb.uncertainty.replicates import (
    CellBlock,
    read_cell_blocks,
    reason_against_replicates,
    replicate_rows,
)
from bayesnb.uncertainty.tables import locate_parameters
from bayesnb.uncertainty.variates import ask, run

# == Statistics of labelled tables that a model may fail to replicate, for many tables of the same rows at a time

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
            matrix[:, n_numbers:, n_numbers:] = _cramers_v(hot, member)
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


def _cramers_v(hot: np.ndarray, member: np.ndarray) -> np.ndarray:
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


# == Posterior predictive checks: does the model replicate what the table shows? ===================

_MOST_VALUES = 2**25
_TIE = 1e-9
_SMALL_P = 0.05


@dataclass(frozen=True, eq=False)
class PredictiveCheck:
    """Quantities of a table beside those of tables that the fitted model replicates.

    Attributes
    ----------
    table : DataFrame
        One row for each quantity, largest discrepancy first.

        statistic : name of the quantity, such as "correlation"
        class : label of the class; None for a user's function
        feature_1, feature_2 : names of the columns, or None
        observed : value in the table
        mean, sd : mean and standard deviation over the replicates
        lower, upper : 5% and 95% quantiles of the replicates
        discrepancy : (observed - mean) / sd, both over all tables; of the surprise for "association" (see the notes of
        `posterior_predictive_check`)
        p : P(replicate > observed) + P(replicate = observed) / 2, a position among the replicates
    p : float
        P(largest discrepancy of a table >= that of the observed table), whichever quantity has it: no correction for
        many quantities is needed.
    statistic : str
        Argument of `posterior_predictive_check`, or the name of the user's function.
    draws : int
        Number of replicates.
    excluded : int
        Number of quantities that are undefined in the observed table and in all replicates, and left out.
    note : str
        Sentence that names columns of Poisson counts that vary more than in the model, and the classifier to try; "" if
        there are none.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["sun", "hot"], ["rain", "cold"]] * 20, ["out", "in"] * 10 + ["in", "out"] * 10
    >>> check = bnb.posterior_predictive_check(bnb.CategoricalNB().fit(X, y), X, y)
    >>> check.p < 0.01, check.table["observed"].tolist()
    (True, [1.0, 1.0])
    """

    table: pd.DataFrame
    p: float
    statistic: str
    draws: int
    excluded: int = 0
    note: str = ""

    def __repr__(self) -> str:
        first = self.table.iloc[0]
        features = [shown(first[name]) for name in ("feature_1", "feature_2") if first[name] is not None]
        where = f" of {' and '.join(features)}" if features else ""
        where += f" in class {shown(to_python(first['class']))}" if features else ""
        excluded = f"; {self.excluded} undefined and left out" if self.excluded else ""
        note = self.note and f"\n{self.note}"
        return (
            f"PredictiveCheck({self.statistic}: p = {self.p:.3g}, largest of {len(self.table)} discrepancies: "
            f"{first['statistic']}{where}; {self.draws} draws{excluded}){note}"
        )


def posterior_predictive_check(
    nb: Classifier,
    X: object,
    y: object,
    statistic: str | Callable[[pd.DataFrame, np.ndarray], object] = "association",
    draws: int = 500,
    seed: Seed = 0,
    features: Iterable[object] | None = None,
) -> PredictiveCheck:
    """Compare a statistic of a labelled table with its values in tables that the fitted model replicates.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with a proper posterior whose rows can be drawn.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows, usually those that `nb` was fitted to. Each has the weight 1.
    y : array-like of shape (N,)
        Labels of the rows.
    statistic : {"association", "frequency", "extremes"} or function
        Statistic that is compared.

        "association"
            Dependence of each pair of features in each class, from 0 to 1: absolute correlation of two numbers,
            Cramér's V of two features of levels, correlation ratio η of a number at the levels of the other. The
            check of the assumption of naive Bayes, or of the structure of a `TAN`.
        "frequency"
            Proportion of each level, mean and standard deviation of numbers, in each class.
        "extremes"
            Least and greatest number, and number of rows with the rarest level, in each class. Here, and in
            "association", a binned number is the position of its cell.
        function f(table, labels)
            Function that returns a number, or a sequence or dict of numbers, the same ones for each table. `table` is a
            DataFrame with levels as categoricals, present as 1 and absent as 0, NaN where missing; `labels` is an
            array.
    draws : int
        Number of replicates, S. The overall p is at least 1 / (S + 1).
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same result.
    features : iterable of column names or indices, optional
        Features that are compared; default: all. Those that a `KDB` leaves out are not compared.

    Returns
    -------
    PredictiveCheck
        With `table`, one row for each quantity, and the overall `p`. Under "frequency", `note` names Poisson columns
        whose counts vary more than the model does (see the notes), and says to try `NegativeBinomialNB`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If `nb` has no posterior (`AODE`), has weighted terms (`WeightedNB`), or its rows cannot be drawn.
    TypeError, ValueError
        If X and y do not match, an argument is unknown, no quantity is defined, there are too many of them, or the
        function returns something else than finite numbers.

    Notes
    -----
    For each draw θ from the posterior a table is drawn, x_i ~ p(x | y_i, θ), with the labels, the missing cells and the
    numbers of words of the observed rows. With T a quantity,

        p = P(T(X_rep) > T(X)) + P(T(X_rep) = T(X)) / 2,

    a mid-p, in which the observed table counts as one of the replicates. If p is near 0, the model seldom replicates a
    value as large as the observed one. For "frequency" and "extremes", p near 1 is evidence against the model as well.
    Of many quantities some have a p near 0 or 1 by chance.

    The overall p tests the model. It is P(D(X_rep) ≥ D(X)), D the largest discrepancy of a table, in standard
    deviations: positive discrepancies for "association", absolute values for the other statistics. It is valid for any
    number of quantities, because the observed table and the replicates are treated alike: labels and missing cells
    alone decide which quantities a table has, one that is undefined in some tables counts as 0 in these, and mean and
    standard deviation include all tables.

    For "association" the discrepancy is that of the surprise -log P(dependence ≥ observed one | cells of both features
    in random order), which is large for two equal columns, and small for two rare levels that meet in one row, though
    the dependence is 1 in both cases. The probability is that of the gamma distribution with the exact mean and
    variance of the squared dependence. If features are independent, the surprise has about an exponential distribution
    with standard deviation 1; smaller standard deviations count as 1. Where a feature is constant, there is no
    dependence to measure, and both dependence and surprise count as 0. A pair is left out, and counted in `excluded`,
    if fewer than three rows have values of both features, or one is constant in all tables.

    These are posterior predictive p-values: the data are used twice, for θ and for D. If prior and model hold,
    P(p ≤ α) ≤ 2α for any statistic, and in general p is conservative, because replicates differ from each other by the
    uncertainty of θ, too, while θ is fitted to the observed table. "association" depends little on the parameters of
    naive Bayes, and its p is nearly uniform: of 200 tables each with parameters from the prior, p < .05 in 4.5% (30
    rows × 20 binary columns, θ ~ Beta(.3, .3)), 5% (60 × 50 such columns), 5.5% (30 × 6 columns of three levels, 30% of
    the cells missing), 3.5% (30 × 4 Poisson columns) and 6% (30 × 50 normal columns). The parameters are fitted to
    "frequency": there the overall p is close to 1 where the model holds, and detected are priors that contradict the
    data, and standard deviations that the model does not fit, such as those of overdispersed counts under `PoissonNB`.
    `note` advises if the p of the standard deviations of all Poisson columns alone, for large ones, is below .05, and
    names the columns with a discrepancy that the largest one of a replicate exceeds in 5% of the replicates.
    The default prior of `GaussianNB` is detected, too, where standard deviations differ much between classes, although
    normal distributions are right: it expects variances near their mean over the classes. Of 400 tables of 40 rows × 4
    columns in two classes with standard deviations e^N(0, 1), p ≤ .05 in 14% (200 rows: 28%), of tables with equal
    standard deviations in none; under `prior=EmpiricalNormal("within", concentration=0.2)` in 2%.
    "extremes" lies between these two. A structure that was chosen on the same rows makes p larger. A small p means that
    class probabilities are overconfident, or wrong for some rows, not that the predicted labels are wrong.

    References
    ----------
    Rubin, *Bayesianly justifiable and relevant frequency calculations*, Ann. Stat. 12 (1984). Meng, *Posterior
    predictive p-values*, Ann. Stat. 22 (1994). Gelman, Meng & Stern, *Posterior predictive assessment of model fitness
    via realized discrepancies*, Stat. Sinica 6 (1996). Robins, van der Vaart & Ventura, *Asymptotic distribution of P
    values in composite null models*, JASA 95 (2000). Kazi-Aoual, Hitier, Sabatier & Lebreton, *Refined approximations
    to permutation tests for multivariate inference*, Comput. Stat. Data Anal. 20 (1995).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> check = bnb.posterior_predictive_check(bnb.GaussianNB().fit(X, y), X, y)
    >>> check.table[["class", "feature_1", "feature_2", "observed", "upper"]].head(2).round(2)
       class          feature_1          feature_2  observed  upper
    0      2  sepal length (cm)  petal length (cm)      0.86   0.29
    1      1  petal length (cm)   petal width (cm)      0.79   0.29
    """
    fitted = require_posterior(nb, "posterior_predictive_check")
    require_integer("draws", draws)
    seed = read_seed(seed)
    if not callable(statistic) and (not isinstance(statistic, str) or statistic not in STATISTICS):
        raise ValueError(
            f"statistic={shown(statistic)} is unknown; use {', '.join(map(repr, STATISTICS))} or a function."
        )
    if reason := reason_against_replicates(fitted):
        raise NotImplementedError(f"posterior_predictive_check: {reason}")
    encoding = fitted.encoding
    chosen = set(range(encoding.n_features)) if features is None else encoding.positions(features)
    table = fitted.table(X)
    label = fitted.label_index(y, table.n_rows)
    blocks = read_cell_blocks(encoding, fitted.rows(table, alone=True))
    if callable(statistic):
        name = str(getattr(statistic, "__name__", "function"))
        known = _of_function(name, statistic, encoding)
    else:
        name, known = statistic, STATISTICS[statistic]

    def select(values: Sequence[np.ndarray]) -> Tables:
        """Return the chosen features of tables, from arrays (S, N, F) for each block."""
        return _select_features(blocks, values, label, chosen, by_position=name in ("association", "extremes"))

    def measure(tables: Tables) -> np.ndarray:
        """Compute (2, S, T) values and scores of the quantities of each class, or of a user's function."""
        measured = map(known.measure, [tables] if callable(statistic) else tables.split_by_class())
        return np.concatenate([np.broadcast_to(part, (2, *part.shape[-2:])) for part in measured], axis=2)

    observed = select([block.values[None] for block in blocks])
    _require_quantities(name, observed, draws)
    measured = [measure(observed)]
    classes = [None] if callable(statistic) else [encoding.classes.values[c] for c in observed.classes]
    quantities = [(c, *quantity) for c in classes for quantity in known.quantities(observed)]
    drawn = draw_posterior(fitted, int(draws), seed)
    rng = np.random.default_rng([seed, 1])
    with progress("Replicates", draws) as tick:
        for part, values in replicate_rows(fitted, drawn, label, blocks, rng):
            measured.append(measure(select(values)))
            tick(part.stop - part.start)
    value, score = np.concatenate(measured, axis=1)
    defined = ~np.isnan(value).all(axis=0)
    if not defined.any():
        raise ValueError(
            f"statistic={name!r} is undefined in every class. In each pair of features, one feature is constant, or "
            "fewer than three rows have values of both. Pass more rows, or other features."
        )
    value, score = (np.nan_to_num(array[:, defined], nan=0.0) for array in (value, score))
    z = _standardize(score, known.least_sd)
    size = z if known.one_sided else np.abs(z)
    labels, names, *pairs = map(list, zip(*compress(quantities, defined), strict=True))
    pairs = [[None if j is None else encoding.feature_names[j] for j in positions] for positions in pairs]
    columns = dict(zip(("statistic", "class", "feature_1", "feature_2"), (names, labels, *pairs), strict=True))
    frame = pd.DataFrame(columns).join(_compare(value, z[0]))
    frame = frame.iloc[np.argsort(-size[0], kind="stable")].reset_index(drop=True)
    # Counts with exposures are left out, which the advised classifiers do not take.
    of_numbers = [c for c in encoding.blocks if hasattr(c.family, "words") and not c.auxiliary]
    advised = {name: better for c in of_numbers for name in c.names if (better := c.family.words.if_overdispersed)}
    is_sd = np.array([name == "sd" and column in advised for name, column in zip(names, pairs[0], strict=True)])
    note = _advise_on_counts(z[:, is_sd], np.array(pairs[0], object)[is_sd], advised)
    return PredictiveCheck(frame, _overall_p(size), name, int(draws), int((~defined).sum()), note)


def _standardize(score: np.ndarray, least_sd: float) -> np.ndarray:
    """Return (S + 1, T) scores less their mean, in standard deviations of at least `least_sd`; 0 if constant."""
    sd = score.std(axis=0)
    varies = sd > _TIE * np.abs(score).max(axis=0)
    return np.where(varies, (score - score.mean(axis=0)) / np.where(varies, np.maximum(sd, least_sd), 1.0), 0.0)


def _overall_p(size: np.ndarray) -> float:
    """Return the fraction of tables whose largest discrepancy (S + 1, T) is at least that of the first table."""
    largest = size.max(axis=1)
    return float((largest >= largest[0] - _TIE * (1.0 + largest[0])).mean())


def _advise_on_counts(z: np.ndarray, columns: np.ndarray, advised: Mapping[str, str]) -> str:
    """Return the advice for `columns` (T,) of counts by the z-scores (S + 1, T) of their standard deviations, or "".

    `advised` has the classifier to try for each column.
    """
    if not z.size or (p := _overall_p(z)) >= _SMALL_P:
        return ""
    over = list(dict.fromkeys(map(to_python, columns[z[0] >= np.quantile(z.max(axis=1), 1 - _SMALL_P)])))
    better = " or ".join(sorted({advised[column] for column in over}))
    return f"Counts of {shown(over)} vary more than in the model (p = {p:.2g}): try {better}."


def _compare(value: np.ndarray, discrepancy: np.ndarray) -> pd.DataFrame:
    """Return the table of T quantities of values (S + 1, T), the observed ones first, and their discrepancies (T,).

    The p of a quantity is the fraction of the S + 1 values above the first, and half of those that are equal to it.
    """
    difference, replicated = value - value[0], value[1:]
    equal = np.abs(difference) <= _TIE * (1.0 + np.abs(value[0]))
    table = pd.DataFrame({"observed": value[0], "mean": replicated.mean(axis=0), "sd": replicated.std(axis=0)})
    table["lower"], table["upper"] = np.quantile(replicated, [0.05, 0.95], axis=0)
    table["discrepancy"] = discrepancy
    table["p"] = ((difference > 0) & ~equal).mean(axis=0) + equal.mean(axis=0) / 2
    return table


def _select_features(
    blocks: Sequence[CellBlock], values: Sequence[np.ndarray], label: np.ndarray, chosen: set[int], *, by_position: bool
) -> Tables:
    """Return the chosen features of S tables, from arrays (S, N, F) for each block of columns.

    With `by_position` cells of binned numbers are numbers, their positions.
    """
    numbers: dict[int, np.ndarray] = {}
    codes: dict[int, np.ndarray] = {}
    levels: list[Sequence[Hashable]] = []
    for block, table in zip(blocks, values, strict=True):
        for f, j in ((f, int(j)) for f, j in enumerate(block.index) if j in chosen):
            cells = table[:, :, f]
            if block.levels is None:
                numbers[j] = cells
            elif by_position and block.ordered[f]:
                numbers[j] = np.where(cells < 0, np.nan, cells)
            else:
                codes[j] = cells
                levels.append(block.levels[f])
    shape = len(values[0]), len(label), 0
    x, code = (np.stack([*part.values()], axis=2) if part else np.zeros(shape, int) for part in (numbers, codes))
    return Tables(label, x, code, np.array([*numbers], int), np.array([*codes], int), tuple(levels))


def _require_quantities(name: str, tables: Tables, draws: int) -> None:
    """Raise ValueError if a known statistic has no quantity, or S replicates of all of them are more than 2^25."""
    n_rows, n_features = len(tables.label), len(tables.index)
    if not n_rows or not n_features:
        raise ValueError(f"X has {n_rows} rows and {n_features} features; a check needs one or more of each.")
    if name == "association":
        require_pair(n_features)
    n_pairs, n_levels = n_features * (n_features - 1) // 2, sum(map(len, tables.levels))
    counts = {"association": n_pairs, "frequency": 2 * n_features + n_levels, "extremes": 2 * n_features}
    needed = counts.get(name, 0) * len(tables.classes) * draws
    what = f"{draws:,} replicates of the statistics of {n_features:,} columns"
    require_memory(needed, what, "Name some columns in features=, or set fewer draws.", _MOST_VALUES)


# -- functions of users --------------------------------------------------------------------------


def _of_function(name: str, function: Callable[[pd.DataFrame, np.ndarray], object], encoding: Encoding) -> Statistic:
    """Return a user's function of a table and labels as a statistic."""
    names: list[str] = []  # Known from the observed table, which is measured first.

    def measure(tables: Tables) -> np.ndarray:
        """(S, T) results of the function; the first call names the quantities."""
        labels = encoding.classes.array()[tables.label]
        results = []
        for i in range(len(tables)):
            result = _read_result(name, function(_to_frame(tables, i, encoding), labels.copy()))
            names.extend(() if names else result)
            if result.keys() != set(names):
                raise ValueError(
                    f"statistic: the function returned {shown(list(result))} for a replicate, but {shown(names)} for "
                    "the observed table. Return the same numbers, under the same names, for each table."
                )
            results.append([result[name] for name in names])
        return np.array(results)

    return Statistic(lambda _: [(name, None, None) for name in names], measure)


def _read_result(name: str, result: Any) -> dict[str, float]:
    """Return the numbers, by name, that a user's function returned; raise TypeError or ValueError for no numbers."""
    if isinstance(result, dict | pd.Series):
        keys, cells = list(map(str, result.keys())), list(result.values()) if isinstance(result, dict) else result
    else:
        cells = result
        keys = [name] if np.ndim(result) == 0 else [f"{name}[{i}]" for i in range(len(result))]
    try:
        numbers = np.array(cells, float).ravel()
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if len(numbers) != len(set(keys)) or not len(numbers):
        raise TypeError(f"statistic: the function returned {shown(result)}; return a number, or several by name.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"statistic: the function returned {shown(result)}, not finite. Return 0 where undefined.")
    return dict(zip(keys, numbers.tolist(), strict=True))


def _to_frame(tables: Tables, i: int, encoding: Encoding) -> pd.DataFrame:
    """Return table i as a DataFrame with the names of the columns, and levels as categoricals."""
    names = encoding.feature_names
    binary = {int(j) for block in encoding.blocks if block.kind == "bernoulli" for j in block.index}
    columns: dict[int, object] = dict(zip(map(int, tables.number_index), tables.numbers[i].T, strict=True))
    for j, codes, levels in zip(map(int, tables.level_index), tables.codes[i].T, tables.levels, strict=True):
        categories = pd.Index(list(levels), tupleize_cols=False)
        is_binary = j in binary
        columns[j] = np.where(codes < 0, np.nan, codes) if is_binary else pd.Categorical.from_codes(codes, categories)
    return pd.DataFrame({names[j]: columns[j] for j in sorted(columns)})


# == Class probabilities under the prior alone =====================================================

_MOST_CELLS = 2**21


def prior_predictive(nb: Classifier, draws: int = 1000, seed: Seed = 0) -> np.ndarray:
    """Draw P(class | row, θ) of the true class from the prior: how certain naive Bayes is before any data.

    Each draw takes all parameters θ from the prior, a class from its probabilities, a row of all features from
    p(x | class, θ), and returns P(that class | row, θ), by Bayes' rule with these parameters.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier whose prior and levels are used, and for multinomial features the rounded mean total of the rows,
        for counts with an exposure its mean.
    draws : int
        Number of draws.
    seed : int, JAX key, RandomState or Generator
        The same seed gives the same draws.

    Returns
    -------
    (draws,) array
        Probabilities of the true class. Their mean is the accuracy, in the long run, of drawing a label from
        P(class | row, θ).

    Raises
    ------
    ImproperPosteriorError
        If the prior is improper, and so cannot be drawn from.
    ValueError
        If `draws` is not positive, or the prior is so wide that its draws overflow.

    Notes
    -----
    With many features nearly all draws are close to 1, whatever the prior, because the evidence of independent features
    adds up. "Pooled" priors are derived from the data, so draws from them already use some information of the data.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb import prior_predictive
    >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"])
    >>> prior_predictive(nb, draws=5).shape
    (5,)
    """
    fitted = require_posterior(nb, "prior_predictive")
    require_draws(draws, 2, "a probability")
    seed = read_seed(seed)
    encoding, model, statistics = fitted.encoding, fitted.prior, fitted.statistics
    try:
        require_proper(encoding, model)
    except ImproperPosteriorError as error:
        needs = "prior_predictive needs a proper prior, because without data the posterior is the prior"
        raise ImproperPosteriorError(f"{needs}. {error}") from None
    rng = np.random.default_rng(seed)
    width = max(np.size(jax.tree.leaves(block)[0]) for block in model.blocks)
    step = max(1, _MOST_CELLS // max(1, width))
    sizes = [min(step, draws - start) for start in range(0, draws, step)]
    probability = np.concatenate([_draw_label_probability(encoding, model, statistics, n, rng) for n in sizes])
    if np.isnan(probability).any():
        raise ValueError("prior_predictive: draws of a variance overflow float64. Raise `concentration` of its prior.")
    return probability


@float64
def _draw_label_probability(
    encoding: Encoding, model: NaiveBayes, statistics: Statistics, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw (draws,) P(label | row, θ) of the row's label, with θ, label and row drawn from the prior."""
    each = np.arange(draws)
    log_class = np.asarray(_draw_likelihood(model.class_prior, draws, rng).log_theta)[:, 0]
    label = np.argmax(log_class + rng.gumbel(size=log_class.shape), axis=1)
    score, n_rows = log_class, statistics.class_count.sum()
    for columns, family, counted in zip(encoding.blocks, model.blocks, statistics.blocks, strict=True):
        likelihood = jax.tree.map(np.asarray, _draw_likelihood(family, draws, rng))
        of_label = jax.tree.map(lambda parameter: parameter[each, label], likelihood)
        total: Any = round(float(counted.count.sum() / n_rows)) if columns.one_simplex and n_rows else 1
        if columns.auxiliary and n_rows:
            total = counted.exposure.sum() / counted.count.sum()
        cells: Any = columns.select_realized(family.simulate(of_label, rng, total))
        cells = Exposed(cells, np.full((draws, 1), total)) if columns.auxiliary else cells
        score = score + np.asarray(likelihood.cells(cells[:, None])).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(score[each, label] - logsumexp(score, axis=1)))


def _draw_likelihood(family: Prior, draws: int, rng: np.random.Generator) -> Any:
    """Return the likelihood of a family under draws of its parameters, arrays (draws, C, K)."""
    return run(_draw_parameters, ask(_draw_parameters, family), draws, rng, family)


def _draw_parameters(variates: Variates, n: int, family: Prior) -> Any:
    """Return n draws from a family as a likelihood of arrays (n, C, K), a function of the variates."""
    return family.draw(variates, n)


# == Sensitivity of class probabilities to the strength of the prior ===============================


def prior_sensitivity(
    nb: Tunable, X: object, alpha: tuple[float, float] = (0.1, 10), *, steps: int = 21
) -> pd.DataFrame:
    """Range of P(class | row), and changes of labels, as the prior becomes weaker or stronger.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose prior is varied.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows to predict.
    alpha : (float, float)
        Interval of the strength. The strength of a Dirichlet with a scalar `alpha` is `alpha`; that of any other prior
        is a factor on its prior sample size, 1 for the prior of `nb`: on the concentrations of a Dirichlet, on κ, a and
        b of a normal-inverse-gamma, on a and b of a gamma. All blocks of a MixedNB change together.
    steps : int
        Number of strengths, evenly spaced in log; the strength of `nb` is added if it is in the interval.

    Returns
    -------
    DataFrame
        One row for each row of X.

        prediction
            label under the prior of `nb`
        probability
            P(prediction | row) under the prior of `nb`, by the estimate of `nb`; "predictive" in place of "mle",
            which has no prior.
        lower, upper
            least and greatest P(prediction | row) over the interval; NaN if undefined for some strength.
        label_changes
            whether another class is the most probable one for some strength.
        d_logit_d_log_alpha
            derivative of logit P(prediction | row) with respect to the log of the strength, at the prior of `nb`;
            NaN where the logit is not finite.

    Raises
    ------
    ValueError
        If `alpha` is not 0 < lower < upper or `steps` is less than two.

    Notes
    -----
    The prior of the classes is not changed. Rows are not counted again: a prior of another strength is updated with the
    same statistics. The table shows how far predictions depend on the strength of the prior, not which strength is
    right. `parameter_sensitivity` shows the same for parameters.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb import prior_sensitivity
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> prior_sensitivity(nb, [["sun"]])[["prediction", "probability", "lower", "upper"]].round(2)
      prediction  probability  lower  upper
    0        out         0.77   0.63   0.94
    """
    fitted = require_posterior(nb, "prior_sensitivity")
    low, high = require_interval("alpha", alpha, "(0.1, 10)")
    require_integer("steps", steps, least=2)
    unit, strength = _strength(nb, fitted)
    grid = np.repeat(np.geomspace(low, high, steps)[:, None], len(strength), axis=1)
    # A grid of constant length has one compilation: the first strength stands twice if that of `nb` is outside.
    inside = ((low <= strength) & (strength <= high)).all()
    grid = np.vstack([grid, strength if inside else grid[0]])
    rows, n_rows = fitted.encode(X)
    estimate: Estimate = "predictive" if fitted.estimate == "mle" else fitted.estimate
    rows = rows if estimate == "predictive" else tuple(r.linear_rows() for r in rows)
    unit, statistics = pad(fitted.encoding, unit), pad_statistics(fitted.encoding, fitted.statistics)
    # The strength is a JAX array, as JAX differentiates by it.
    at = jnp.asarray(strength)
    values = map_rows(rows, n_rows, lambda x: _vary_strength(unit, statistics, x, at, grid, estimate))
    names = ["prediction", "probability", "lower", "upper", "label_changes", "d_logit_d_log_alpha"]
    frame = pd.DataFrame(values, columns=names)
    # The label of a row without class probabilities is that of `predict`.
    choice = frame["prediction"].where(frame["prediction"] >= 0, np.argmax(fitted.class_log_prior)).astype(int)
    labels = fitted.encoding.classes.array()[choice]
    return frame.assign(prediction=labels, label_changes=frame["label_changes"].astype(bool))


def parameter_sensitivity(
    nb: Tunable,
    alpha: tuple[float, float] = (0.1, 10),
    prob: float = 0.9,
    features: Iterable[object] | None = None,
    *,
    steps: int = 5,
) -> pd.DataFrame:
    """Range of the estimate and interval of each parameter, as the prior becomes weaker or stronger.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose prior is varied.
    alpha : (float, float)
        Interval of the strength, as in `prior_sensitivity`: `alpha` itself if that is a scalar, otherwise a factor on
        the prior sample size, 1 for the prior of `nb`.
    prob : float, default 0.9
        Posterior probability of the intervals, in (0, 1).
    features : iterable of column names or indices, optional
        Describe the parameters of these columns only. Default: all columns.
    steps : int
        Number of strengths, evenly spaced in log.

    Returns
    -------
    DataFrame
        One row for each parameter, in the order of `parameter_table`.

        class, feature, level
            as in `parameter_table`
        mean, sd, lower, upper : float
            posterior mean, standard deviation and interval under the prior of `nb`
        least_mean, greatest_mean : float
            least and greatest posterior mean over the strengths and the prior of `nb`; NaN if a mean does not exist
        least_lower, greatest_upper : float
            ends of the union of the intervals
        shift : float
            largest distance of a mean from `mean`, in units of `sd`; NaN if `sd` or a mean does not exist

    Raises
    ------
    ImproperPosteriorError
        If a level with concentration 0 has no count.
    ValueError
        If `alpha` is not 0 < lower < upper, `steps` is less than two, `prob` is not in (0, 1), or `features` names a
        column that X does not have.

    Notes
    -----
    The prior of the classes is not changed. A `shift` above 1 says that the choice of the prior moves the estimate by
    more than the posterior leaves uncertain. The table does not show which strength is right.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, parameter_sensitivity
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> parameter_sensitivity(nb)[["class", "level", "mean", "least_mean", "greatest_mean", "shift"]].round(2)
      class level  mean  least_mean  greatest_mean  shift
    0    in  rain  0.67        0.52           0.92   1.06
    1    in   sun  0.33        0.08           0.48   1.06
    2   out  rain  0.25        0.05           0.45   1.06
    3   out   sun  0.75        0.55           0.95   1.06
    """
    fitted = require_posterior(nb, "parameter_sensitivity")
    low, high = require_interval("alpha", alpha, "(0.1, 10)")
    require_integer("steps", steps, least=2)
    unit, strength = _strength(nb, fitted)
    table = locate_parameters(fitted, prob, features)
    is_of_column = table["block"] >= 0
    varied = []
    for of_blocks in np.repeat(np.geomspace(low, high, steps)[:, None], len(strength), axis=1):
        prior = _with_strength(unit, of_blocks)
        varied.append(locate_parameters(replace(fitted, empirical_prior=prior), prob, features)[is_of_column])
    table = table[is_of_column].reset_index(drop=True)
    mean, lower, upper = (
        np.stack([table[name], *(other[name] for other in varied)]) for name in ("mean", "lower", "upper")
    )
    ranges = {"least_mean": mean.min(axis=0), "greatest_mean": mean.max(axis=0)}
    ranges |= {"least_lower": lower.min(axis=0), "greatest_upper": upper.max(axis=0)}
    sd, moved = table["sd"].to_numpy(), abs(mean - mean[0]).max(axis=0)
    # Known parameters, such as the probability of the only level, do not move.
    shift = np.where(sd > 0, moved / np.where(np.isfinite(sd) & (sd > 0), sd, np.nan), moved)
    return table[["class", "feature", "level", "mean", "sd", "lower", "upper"]].assign(**ranges, shift=shift)


def _strength(nb: Tunable, fitted: Fitted) -> tuple[NaiveBayes, np.ndarray]:
    """Return the prior for alpha=1, and the strength (B,) of each block: `alpha` if it is one number, else 1."""
    prior = fitted.prior
    alpha: Any = getattr(nb, "alpha", None)
    scalar = isinstance(alpha, Real) or getattr(alpha, "shape", None) == ()
    if not scalar or isinstance(getattr(nb, "prior", None), NaiveBayes):
        return prior, np.ones(len(prior.blocks))
    # Concentrations are a scalar `alpha`, or proportional to it, and so `alpha` is the strength.
    unit = nb.with_priors({"alpha": 1.0}).fitted_
    levels = ["alpha" in block.tunable for block in prior.blocks]
    return unit.prior, np.where(levels, float(alpha), 1.0)


def _with_strength(unit: NaiveBayes, strength: Any) -> NaiveBayes:
    """Return the prior whose blocks have `strength` (B,) times the prior sample size of `unit`."""
    return replace(unit, blocks=tuple(block.scale(by) for block, by in zip(unit.blocks, strength, strict=True)))


@kernel(static_argnames="estimate")
def _vary_strength(
    unit: NaiveBayes, statistics: Statistics, x: Any, strength: jax.Array, grid: jax.Array, estimate: Estimate
) -> jax.Array:
    """Compute (N, 6): most probable class, its probability at `strength`, and the range over the strengths in `grid`.

    Strengths have one entry for each block. Then follow whether the label changes, and the slope of the logit by the
    log of the strength. The class is -1 where the probabilities are undefined.
    """

    def joint(strength: jax.Array) -> jax.Array:
        return _with_strength(unit, strength).update(statistics).read(estimate).prepare(x).log_joint(x)

    scores, slopes = jax.jvp(lambda shift: joint(strength * xp.exp(shift)), (xp.zeros(()),), (xp.ones(()),))
    choice = xp.argmax(scores, axis=1)

    def of_choice(values: jax.Array) -> jax.Array:
        return xp.take_along_axis(values, choice[:, None], axis=1)[:, 0]

    def explore(strength: jax.Array) -> tuple[jax.Array, jax.Array]:
        other_scores = joint(strength)
        changed = ~undefined(other_scores) & (xp.argmax(other_scores, axis=1) != choice)
        return of_choice(xp.exp(log_normalize(other_scores))), changed

    probability = of_choice(xp.exp(log_normalize(scores)))
    explored, changes = map_leading_axis(explore, grid)
    lower, upper, changed = explored.min(axis=0), explored.max(axis=0), changes.any(axis=0)
    others = xp.where(xp.arange(scores.shape[1]) == choice[:, None], -xp.inf, scores)
    weight = jax.nn.softmax(others, axis=1)
    mean_slope = xp.sum(xp.where(weight > 0, weight * slopes, 0.0), axis=1)
    finite = xp.isfinite(of_choice(scores)) & xp.any(xp.isfinite(others), axis=1)
    slope = xp.where(finite, of_choice(slopes) - mean_slope, xp.nan)
    index = xp.where(undefined(scores), -1, choice)
    return xp.stack([index, probability, lower, upper, changed & ~undefined(scores), slope], axis=1)
