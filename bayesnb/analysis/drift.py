"""Drift: new rows compared with the training statistics, column by column."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import jax
import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import stats
from scipy.special import betainc, fdtr, fdtrc, gammaincc

from bayesnb._util.arguments import shown
from bayesnb._util.warnings import UnknownLevelWarning, internal_fits
from bayesnb.encoding import Columns, Encoding, Levels, RealColumns, Rows, check_labels, ignore_unknown, numeric_columns
from bayesnb.estimators import WeightedNB
from bayesnb.estimators.from_counts import COLUMNS, count_table, has_base_measure, read_frame
from bayesnb.families import Moments, NormalInverseGamma, Totals, pooled
from bayesnb.fitted import counting
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import Classifier, Fitted, NotOfferedError, is_mixture, require_fitted
from bayesnb.model import Statistics

# == Tests whether two samples come from one population, by their counts and moments in each class =

# Least expected count of a group of levels, and number of groups of the cells of a number.
_FEWEST_EXPECTED, _MOST_GROUPS = 5.0, 10
# Kurtosis of exponential numbers, with which that of a batch is averaged, and the number of rows that it counts as.
_KURTOSIS, _KURTOSIS_ROWS = 9.0, 30.0
_RARE = 0.002  # probability of numbers, however large, that a batch may lack by chance


class Finding(NamedTuple):
    """Result of a test: statistic, effect, the change in words, and p-value."""

    statistic: float = np.nan
    effect: float = np.nan
    change: str = ""
    p: float = np.nan


def most_significant(tests: Iterable[Finding]) -> Finding:
    """Return the test with the smallest p-value, multiplied by the number of tests (Bonferroni)."""
    tests = [test for test in tests if not np.isnan(test.p)]
    if not tests:
        return Finding()
    least = min(tests, key=lambda test: test.p)
    return least._replace(p=min(1.0, len(tests) * least.p))


def compare_levels(
    train: np.ndarray, batch: np.ndarray, levels: Sequence[str], where: Sequence[str], *, ordered: bool = False
) -> Finding:
    """Test whether counts (C, K) of levels of a batch come from the same distributions as those of the training rows.

    Pearson's chi-squared of groups of levels is summed over the classes. Its null distribution is the gamma
    distribution with the exact mean and variance given the margins of the tables. Each level is also tested by itself,
    by the binomial probability of a count as extreme given the sum of both counts, with Bonferroni's factor.

    Parameters
    ----------
    train, batch : (C, K) arrays
        Counts, which may be fractional.
    levels : (K,) sequence of str
        Names of the levels.
    where : (C,) sequence of str
        Names of the classes, as the end of a sentence.
    ordered : bool
        Whether the levels are cells of a number, so that groups are of adjacent cells.
    """
    n, m = train.sum(axis=1, keepdims=True), batch.sum(axis=1, keepdims=True)
    (classes,) = np.nonzero(((n > 0) & (m > 0) & (n + m >= 4))[:, 0])
    if not len(classes):
        return Finding()
    train, batch, n, m = train[classes], batch[classes], n[classes], m[classes]
    both, total = train + batch, n + m
    group = _group_levels((both * np.minimum(n, m) / total).sum(axis=0), ordered=ordered)
    member = np.eye(group.max() + 1)[group]
    count, drawn = both @ member, batch @ member
    inverse = np.divide(1.0, count, out=np.zeros_like(count), where=count > 0)
    chi2 = ((drawn - m * count / total) ** 2 * inverse * total**2 / (m * n)).sum(axis=1)
    moments = _chi2_moments(n[:, 0], m[:, 0], (count > 0).sum(axis=1), inverse.sum(axis=1))
    tail = _tail_probabilities(train, batch, m / total)
    together = int(chi2.argmax()), None, float(_gamma_tail(chi2.sum(), *moments))
    single = *divmod(int(tail.argmin()), len(levels)), min(1.0, 2.0 * (both > 0).sum() * tail.min())
    findings = []
    for c, level, p in (together, single):
        before, after, names = train[c] / n[c], batch[c] / m[c], list(levels)
        if level is None and ordered:
            before, after = before @ member, after @ member
            cells = [[levels[k] for k in np.flatnonzero(group == g).tolist()] for g in range(len(before))]
            # "(1, 2]" and "(2, 5]" are "(1, 5]".
            names = [f"{cell[0].partition(',')[0]},{cell[-1].partition(',')[2]}" for cell in cells]
        k = int(abs(after - before).argmax()) if level is None else level
        change = f"{names[k]} {before[k]:.3g} -> {after[k]:.3g}{where[classes[c]]}"
        findings.append(Finding(float(chi2.sum()), float(after[k] - before[k]), change, p))
    return most_significant(findings)


def compare_numbers(
    train: Any, batch: Any, fourth: np.ndarray, where: Sequence[str], *, measured: bool = True
) -> list[list[Finding]]:
    """Test for each of F numbers whether mean and spread are those of the training rows.

    The mean: squares of z by the variance of all rows, summed over the classes. Their null distribution is the gamma
    distribution with the same mean and variance, which depends on the kurtosis. The spread: the mean square about the
    training means, by the F distribution with 2 n/(kurtosis - 1) degrees of freedom (Shoemaker 2003). A smaller
    spread is significant only if rare numbers, which the batch lacks by chance, cannot explain the difference.

    Parameters
    ----------
    train, batch : Moments
        Count, mean and centred sum of squares, (C, F) each.
    fourth : (F,) array
        Sum of the fourth powers of the numbers of the batch less the training mean of their class; NaN if it is not
        known, without a test of the spread.
    where : (C,) sequence of str
        Names of the classes, as the end of a sentence.
    measured : bool
        Whether the training variance is known. Otherwise it is that of a family such as Poisson, times a factor that
        the spread of the batch determines, and there is no test of the spread.
    """
    n, m, total = train.count, batch.count, train.count + batch.count
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shift, centre = batch.mean - train.mean, (n * train.mean + m * batch.mean) / total
        within = np.where((m > 0) & (n > 1) & (train.m2 > 0), train.m2 / (n - 1), 0.0)
        sums = (m, m * (1 + 1 / n) * within, (m * within) ** 2 / n, batch.m2 + m * shift**2)
        rows, expected, noise, square = (np.where(within > 0, v, 0.0).sum(axis=0) for v in sums)
        ratio = square / expected
        own = np.where(rows > 0, rows * fourth / square**2, np.nan)
        kurtosis = np.maximum(1.5, (rows * own + _KURTOSIS_ROWS * _KURTOSIS) / (rows + _KURTOSIS_ROWS))
        spread_p = _spread_p_value(ratio, rows, expected**2 / noise, kurtosis)
        scale = np.ones(len(rows)) if measured else np.fmax(1.0, ratio)
        variance = (scale * train.m2 + batch.m2 + shift**2 * n * m / total) / (total - 1)
        varies = (n > 0) & (m > 0) & (total >= 3) & (variance > 0)
        tail = np.where(np.isnan(own), _KURTOSIS, kurtosis) if measured else 3 + 6 * variance / centre**2
        chi2 = np.where(varies, shift**2 / (variance * (1 / m + 1 / n)), 0.0)
        normal, heavy = 2 * (total - 2) / (total + 1), np.maximum(tail - 3, 0.0) / np.minimum(m, n)
        if not measured:
            heavy = heavy + varies.sum(axis=0) * (tail - 1) / np.maximum(rows, 1.0)
        # A gamma distribution of very large variance is concentrated at 0, so that a small statistic would be rare.
        variances = (np.where(varies, v, 0.0).sum(axis=0) for v in (normal, normal + heavy))
        mean_p = np.maximum(*(_gamma_tail(chi2.sum(axis=0), varies.sum(axis=0), v) for v in variances))
        mean_p = np.where(((n > 0) & (m > 0)).any(axis=0), mean_p, np.nan)
        changed = shift / np.sqrt(np.where(within > 0, within, variance))
        sd = np.sqrt(expected / rows)
        findings = []
        for f, c in enumerate(chi2.argmax(axis=0)):
            words = f"mean {train.mean[c, f]:.4g} -> {batch.mean[c, f]:.4g}{where[c]}"
            tests = [Finding(float(chi2[:, f].sum()), float(changed[c, f]), words, float(mean_p[f]))]
            if measured:
                words = f"sd {sd[f]:.4g} -> {sd[f] * np.sqrt(ratio[f]):.4g}"
                tests.append(Finding(float(ratio[f]), float(np.log(ratio[f]) / 2), words, float(spread_p[f])))
            findings.append(tests)
    return findings


def _group_levels(expected: np.ndarray, *, ordered: bool) -> np.ndarray:
    """(K,) group of each level such that groups have expected counts of at least five, if there is more than one.

    Rare levels are together; if the levels are `ordered`, neighbours are, in at most ten groups.
    """
    least = max(_FEWEST_EXPECTED, expected.sum() / _MOST_GROUPS) if ordered else _FEWEST_EXPECTED
    group, current, mass = np.zeros(len(expected), np.int64), 0, 0.0
    for level in range(len(expected)) if ordered else np.argsort(expected, kind="stable").tolist():
        group[level], mass = current, mass + expected[level]
        if mass >= least:
            current, mass = current + 1, 0.0
    return np.minimum(group, max(current - 1, 0))


def _chi2_moments(n: np.ndarray, m: np.ndarray, k: np.ndarray, inverse: np.ndarray) -> tuple[float, float]:
    """Mean and variance of the sum of chi-squared of C tables (2, k) with fixed margins (Haldane 1940).

    `n` and `m` (C,) are the numbers of rows, and `inverse` (C,) the sums of 1/t over the levels, t the sum of both
    counts.
    """
    total = n + m
    rows, columns = (total / m + total / n - 4) / (total - 2), (total * inverse - k**2) / (total - 2)
    free_rows, free_columns = (total - 2) / (total - 1), (k - 1) * (total - k) / (total - 1)
    variance = 2 * total / (total - 3) * (free_rows - rows) * (free_columns - columns)
    variance = variance + total**2 / (total - 1) * rows * columns
    return float(np.sum(total / (total - 1) * (k - 1))), float(np.maximum(variance, 0.0).sum())


def _tail_probabilities(train: np.ndarray, batch: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(C, K) smaller of both tail probabilities of the batch's counts, if each cell is in the batch with P `share`."""
    tails = (batch, train, share), (train, batch, 1 - share)
    return np.minimum(*(np.where(a > 0, betainc(np.where(a > 0, a, 1.0), b + 1, p), 1.0) for a, b, p in tails))


def _spread_p_value(ratio: np.ndarray, rows: np.ndarray, training_rows: np.ndarray, kurtosis: np.ndarray) -> np.ndarray:
    """(F,) two-sided p-values of ratios of a batch's mean squares to those of training."""
    lower, upper = np.maximum(kurtosis, kurtosis * ratio**2 + (1 - ratio) ** 2 / _RARE) - 1, kurtosis - 1
    # Degrees of freedom of the batch, and of the training rows.
    below = np.maximum(fdtr(2 * rows / lower, 2 * training_rows / lower, ratio), (1 - _RARE) ** rows)
    p = 2 * np.where(ratio < 1, below, fdtrc(2 * rows / upper, 2 * training_rows / upper, ratio))
    return np.asarray(np.minimum(1.0, p))


def _gamma_tail(statistic: Any, mean: Any, variance: Any) -> Any:
    """Probability that a gamma variate of this mean and variance exceeds a statistic; 1 if it does not vary."""
    varies = (mean > 0) & (variance > 0)
    mean, variance = np.where(varies, mean, 1.0), np.where(varies, variance, 1.0)
    return np.where(varies, gammaincc(mean**2 / variance, statistic * mean / variance), 1.0)


# == Drift: tests of each column of new rows against the sufficient statistics of the training rows

_NO_CLASS = Levels((None,))


def check_drift(nb: Classifier, X: Any, y: object = None, reference: object = None) -> pd.DataFrame:
    """Test whether new rows come from the population of the training rows, column by column.

    New rows are compared with the training statistics of the classifier, not with its fitted densities, which no column
    has exactly. P-values are valid for 30 rows and for millions. With many rows the smallest change is significant:
    the effect shows whether it matters.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose training statistics are the basis. It is not changed.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        New rows, with the columns of `fit`; or their counts, the DataFrame that the query of `bayesnb.sql.counts`
        returns, without classes for `target=None`.
    y : array-like of shape (N,), optional
        Labels of the new rows, new classes included. Rows are then compared within their class, so that changed shares
        of the classes have no effect on the rows of the columns. Default: classes are merged.
    reference : array-like, sparse matrix or DataFrame of shape (M, F), optional
        Rows that are known to be stationary, such as those of last month, for the rows "joint" and "labels".

    Returns
    -------
    DataFrame
        One row per column of X, by its name, then "labels", and with `reference` "joint". "p" is that of the most
        significant test of the row, times the number of its tests. "q" is p adjusted for the number of rows of this
        table (Benjamini and Hochberg): among the rows with q ≤ .05 at most 5% are false, on average. "change" says what
        has changed most, in which class. "effect" is the difference of the shares of that level, of the means in
        standard deviations of training, or of the logs of the standard deviations. "statistic" is chi-squared, or the
        ratio of the variances. A row that cannot be tested is NaN.

    Raises
    ------
    ValueError
        If the rows or labels cannot be used: columns other than those of `fit`, texts among numbers, no rows, labels
        of another number; if the table of counts is incomplete.
    NotFittedError
        If the classifier is not fitted.
    NotImplementedError
        If X holds counts, and the classifier needs more than counts, as structures do.

    See Also
    --------
    estimate_prevalence : Shares of the classes among rows without labels.
    bayesnb.analysis.drift.DriftStatistics : The same in two steps, for batches that are merged.

    Notes
    -----
    - *Levels*, cells of binned numbers, and the classes: Pearson's chi-squared, with its exact mean and variance given
      both margins, for which rare levels are merged; and each level by itself, whether or not the training rows have
      it. A column of a structure is compared without its parents; in `TAN` and others with one table for all values of
      the parents, a cell counts as missing where a parent is.
    - *Numbers*: mean and spread. The test of the spread holds up to the kurtosis of exponential numbers, 9, and beyond
      if the batch shows a larger one. Where rare numbers have most of the variance, it is too sensitive: log-normal
      numbers with σ = 1.5, after 5,000 training rows, had p ≤ .05 in 7% of 400 stationary batches of 30 rows, and in
      13% of 5,000 rows; numbers of which 92% are 0, after 60 training rows, in 16% of batches of 30 rows. A smaller
      spread is detected from about 3,000 rows on, because fewer may lack rare large numbers by chance. Counts of a
      database have no fourth moment, and their spread is not tested.
    - *Poisson, exponential and multinomial columns*: the mean only, because their training statistics have no variance.
      That of the family is multiplied by the overdispersion of the batch: negative binomial counts of mean 3 and size 1
      had p ≤ .05 in 6% of batches of 30 rows.
    - *Missing cells*: their share.
    - *labels*: the shares of the classes. Without y the mean predicted probabilities of X and `reference` are compared,
      which does not assume that the classifier is right; without both the row is NaN, because predicted shares are as
      wrong as the model: see `estimate_prevalence`.
    - *joint*: a classifier two-sample test (Lopez-Paz & Oquab 2017). A `WeightedNB` learns to distinguish X from
      `reference` on every other row; the effect is the area under its ROC curve on the other rows, less ½. The test
      also detects changes of the dependence between columns.

    Weights of training rows count as numbers of rows. All batches are compared with the same training rows, so that the
    p-values of batches that are larger than the training set depend on each other.

    References
    ----------
    Haldane, *The mean and variance of χ², when used as a test of homogeneity*, Biometrika 31 (1940). Shoemaker, *Fixing
    the F test for equal variances*, Am. Stat. 57 (2003). Lopez-Paz & Oquab, *Revisiting classifier two-sample tests*,
    ICLR 2017.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> nb = bnb.CategoricalNB().fit([["red"], ["green"]] * 50, ["ripe", "raw"] * 50)
    >>> drift = bnb.check_drift(nb, [["red"]] * 20 + [["blue"]] * 10)
    >>> drift.loc["0", "change"], bool(drift.loc["0", "q"] < 0.001)
    ("'blue' 0 -> 0.333", True)
    """
    if set(COLUMNS) == set(getattr(X, "column_names", getattr(X, "columns", ()))):  # the former in Arrow
        if y is not None or reference is not None:
            raise ValueError("X is a table of counts, which takes neither y nor reference. Pass rows, or X alone.")
        return DriftStatistics.from_counts(nb, X).compare(nb)
    batch = DriftStatistics.from_rows(nb, X, y)
    if reference is None:
        return batch.compare(nb)
    findings = batch._findings(nb)
    if y is None:
        findings[-1] = "labels", _compare_predictions(nb, reference, X)
    return _to_frame([*findings, ("joint", _compare_jointly(_state(nb), reference, X))])


@dataclass(frozen=True, eq=False)
class DriftStatistics:
    """Sufficient statistics of new rows for `check_drift`, which can be merged: rows are counted batch by batch.

    Parameters
    ----------
    counted : Counted
        Counts of levels, and moments of numbers, by class, or together for the single class None.
    fourth : (F,) array
        For each column of numbers the sum of the fourth powers of the differences from the training mean; NaN if it is
        not known, 0 for other columns.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from bayesnb.analysis.drift import DriftStatistics
    >>> nb = bnb.CategoricalNB().fit([["red"], ["green"]] * 50, ["ripe", "raw"] * 50)
    >>> batches = [["red"]] * 20, [["green"]] * 10
    >>> first, second = (DriftStatistics.from_rows(nb, batch) for batch in batches)
    >>> first.merge(second).compare(nb).loc["0", "change"]
    "'green' 0.5 -> 0.333"
    """

    counted: Counted
    fourth: np.ndarray

    @classmethod
    def from_rows(cls, nb: Classifier, X: object, y: object = None) -> Self:
        """Count rows with the kinds of columns of a fitted classifier.

        Parameters
        ----------
        nb : fitted classifier of bayesnb
            Classifier, which must be the same for all statistics that are merged.
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows with the columns of `fit`.
        y : array-like of shape (N,), optional
            Labels of the rows, new classes included. Default: rows have no labels.

        Raises
        ------
        ValueError
            If the rows or labels cannot be used; if the classifier is a mixture, and y is given.
        """
        fitted = _state(nb)
        table = replace(fitted.table(X), numeric=numeric_columns(fitted.encoding.blocks))
        classes, label = _NO_CLASS, np.zeros(table.n_rows, np.int32)
        if y is not None:
            if is_mixture(nb):
                raise ValueError("y was passed, but the classes of a NaiveBayesMixture are latent. Leave out y.")
            labels, index = check_labels(y, table.n_rows, "check_drift")
            classes = fitted.encoding.classes.union(labels)
            label = classes.index(labels.values).astype(np.int32)[index]
        training, used, _ = _read_training(fitted, labelled=y is not None)
        stratum = training.encoding.classes.index(classes.values)[label]
        known = stratum >= 0
        weight, fourth = np.ones(len(label)), np.zeros(fitted.encoding.n_features)
        class_count = np.bincount(label, minlength=len(classes)).astype(float)
        encoded: list[tuple[Columns, Any]] = []
        rows: Any
        for columns, kind, moments in zip(used, training.encoding.blocks, training.statistics.blocks, strict=True):
            if columns.one_simplex:
                rows = columns.rows(table)
                encoded.append((kind, _count_words(rows.matrix, label, class_count)))
                continue
            learned, rows = kind.learn(table, ignore_unknown)
            counted = counting.count_rows(Encoding(classes, (learned,)), (rows,), label, weight)
            encoded.append((learned, counted.blocks[0]))
            if _has_moments(columns):
                centres = moments.mean[stratum[known]].T
                sums = (np.nansum((rows.feature(f)[known] - centre) ** 4) for f, centre in enumerate(centres))
                fourth[list(kind.index)] = list(sums)
        learned_columns, blocks = zip(*encoded, strict=True)
        return cls(Counted(Encoding(classes, learned_columns), Statistics(class_count, blocks, np.zeros(()))), fourth)

    @classmethod
    def from_counts(cls, nb: Classifier, table: pd.DataFrame) -> Self:
        """Read the counts of a database in place of rows.

        Parameters
        ----------
        nb : fitted classifier of bayesnb
            Classifier, which must be the same for all statistics that are merged.
        table : DataFrame, or list of tuples
            Table of counts, see `bayesnb.from_counts`. If all classes are missing, the rows have no labels.

        Raises
        ------
        ValueError
            If the table is incomplete or contradicts itself; if its columns are not those of `fit`.
        NotImplementedError
            If the classifier needs more than counts.

        Examples
        --------
        >>> import bayesnb as bnb
        >>> import pandas as pd
        >>> from bayesnb.analysis.drift import DriftStatistics
        >>> nb = bnb.CategoricalNB().fit(pd.DataFrame({"colour": ["red", "green"] * 50}), ["ripe", "raw"] * 50)
        >>> rows = [(None, None, None, None, 30, None, None), (None, "colour", "str", "red", 30, None, None)]
        >>> names = ["class", "feature", "type", "level", "count", "mean", "m2"]
        >>> DriftStatistics.from_counts(nb, pd.DataFrame(rows, columns=names)).compare(nb).loc["colour", "change"]
        "'green' 0.5 -> 0"
        """
        fitted = _state(nb)
        if (reason := getattr(nb, "no_counts", None)) is not None:
            raise NotOfferedError(f"check_drift of counts: {reason}")
        names, frame = fitted.encoding.feature_names, read_frame(table)
        is_unlabelled = bool(frame["class"].isna().all())

        def learn(classes: Levels, sample: pd.DataFrame, numeric: list[bool]) -> tuple[Encoding, tuple[Rows, ...]]:
            """Return the encoding of the columns that are compared, and the rows of the sample under it."""
            others = [name for name in sample if name not in names]
            if others and not hasattr(nb, "feature_names_in_"):
                raise ValueError(f"table has {shown(others[0])}, but nb was fitted to columns without names.")
            checked = fitted.table(sample[[name for name in names if name in sample] + others])
            columns = _read_training(fitted, labelled=True)[0].encoding.blocks
            blocks, rows = zip(*(c.learn(checked, ignore_unknown) for c in columns), strict=True)
            return Encoding(classes, blocks), rows

        counted = count_table(frame.assign(**{"class": ""}) if is_unlabelled else frame, "check_drift", learn)
        if is_unlabelled:
            counted = counted._replace(encoding=replace(counted.encoding, classes=_NO_CLASS))
        return cls(counted, np.full(len(names), np.nan))

    def merge(self, other: Self) -> Self:
        """Return the statistics of the rows of both batches; ValueError if one lacks labels or has other columns."""
        if self._is_labelled != other._is_labelled:
            raise ValueError("One batch has labels, and the other has none. Pass y for all batches, or for none.")
        _require_same_columns(self.counted.encoding, other.counted.encoding)
        return type(self)(counting.merge(self.counted, other.counted), self.fourth + other.fourth)

    def compare(self, nb: Classifier) -> pd.DataFrame:
        """Return the table of `check_drift` for the counted rows, without the row "joint".

        Parameters
        ----------
        nb : fitted classifier of bayesnb
            Classifier of `from_rows` or `from_counts`.

        Raises
        ------
        ValueError
            If the classifier has other columns.
        """
        return _to_frame(self._findings(nb))

    @property
    def _is_labelled(self) -> bool:
        """Whether rows were counted by class."""
        return self.counted.encoding.classes.values != _NO_CLASS.values

    def _findings(self, nb: Classifier) -> list[tuple[str, Finding]]:
        """Return the name and the finding of each column of X, and at the end those of the labels."""
        training, used, is_measured = _read_training(_state(nb), labelled=self._is_labelled)
        _require_same_columns(self.counted.encoding, training.encoding)
        train, batch = _align(training, self.counted), _align(self.counted, training)
        n, m = train.statistics.class_count, batch.statistics.class_count
        classes = [shown(c) for c in train.encoding.classes.values]
        where = [f" in class {c}" for c in classes] if self._is_labelled else [""]
        names = _state(nb).encoding.feature_names
        found = dict.fromkeys(range(len(names)), Finding())
        blocks = zip(train.encoding.blocks, train.statistics.blocks, batch.statistics.blocks, strict=True)
        for columns, measured, (kind, a, b) in zip(used, is_measured, blocks, strict=True):
            tests: Iterable[tuple[int, list[Finding], np.ndarray, np.ndarray]]
            if _has_moments(columns):
                moments = compare_numbers(a, b, self.fourth[list(kind.index)], where, measured=measured)
                tests = zip(kind.index, moments, a.count.T, b.count.T, strict=True)
            else:
                tests = _compare_level_columns(kind, a.count, b.count, where)
            for j, of_column, x, y in tests:
                # Sums of fractional weights have rounding errors.
                missing = (np.where(v - seen > 1e-9 * v, v - seen, 0.0) for v, seen in ((n, x), (m, y)))
                before, after = (np.column_stack(pair) for pair in zip(missing, (x, y), strict=True))
                if before[:, 0].any() or after[:, 0].any():
                    of_column.append(compare_levels(before, after, ["missing", "observed"], where))
                found[j] = most_significant(of_column)
        labels = compare_levels(n[None], m[None], classes, [""]) if self._is_labelled else Finding()
        return [*zip(names, found.values(), strict=True), ("labels", labels)]


def _read_training(fitted: Fitted, *, labelled: bool) -> tuple[Counted, list[Columns], list[bool]]:
    """Return the statistics of a fitted classifier, by class or those of all classes together.

    A column that is in several blocks is compared by its density, else by its table given the class alone, else by
    the sum of its table over its parents. With the statistics are returned, for each block, the columns of the
    classifier, and whether their variances were measured.
    """
    blocks, statistics = fitted.encoding.blocks, fitted.statistics
    rank = [(c.network is None) * (1 + (c.role is None)) for c in blocks]
    order = np.argsort(rank, kind="stable").tolist()
    owners = {j: b for b in order for j in blocks[b].index}.values()
    used = [b for b in order if b in owners]
    kinds, counts, class_count, classes = [], [], statistics.class_count, fitted.encoding.classes
    for columns, block in ((blocks[b], statistics.blocks[b]) for b in used):
        if _has_moments(columns):
            block = block if hasattr(block, "m2") else _model_moments(columns, block, class_count)
            columns = RealColumns(columns.index, columns.names, columns.n_features, NormalInverseGamma)
        kinds.append(columns)
        counts.append(block if labelled else pooled(block))
    if not labelled:
        classes, class_count = _NO_CLASS, class_count.sum(keepdims=True)
    counted = Counted(Encoding(classes, tuple(kinds)), Statistics(class_count, tuple(counts), np.zeros(())))
    return counted, [blocks[b] for b in used], [hasattr(statistics.blocks[b], "m2") for b in used]


def _require_same_columns(counted: Encoding, other: Encoding) -> None:
    """Raise ValueError if the columns of two encodings differ in kind or name."""
    first, second = ([f"{name} ({c.kind})" for c in e.blocks for name in c.names] for e in (counted, other))
    if first != second:
        raise ValueError(f"Rows were counted as {shown(first)}, the others as {shown(second)}. Use one classifier.")


def _state(nb: Classifier) -> Fitted:
    """Return the state of a fitted classifier; of a mixture that of its estimator, whose classes are the components."""
    require_fitted(nb, "check_drift")
    return getattr(nb, "estimator_", nb).fitted_ if is_mixture(nb) else nb.fitted_


def _has_moments(columns: Columns) -> bool:
    """Return whether columns are compared by their moments: numbers, and counts of words."""
    return columns.one_simplex or hasattr(columns.family.statistics, "from_moments")


def _model_moments(columns: Columns, statistics: Any, class_count: np.ndarray) -> Moments:
    """Return the moments (C, F) of sums of numbers or of words, with a variance that the means imply.

    It is that of Poisson counts, and of exponential numbers if the family has no base measure.
    """
    if columns.one_simplex:
        statistics = Totals(np.broadcast_to(class_count[:, None], statistics.count.shape), statistics.count)
    mean = statistics.values() / np.maximum(statistics.count, np.finfo(float).tiny)
    return Moments(statistics.count, mean, statistics.count * (mean if has_base_measure(columns) else mean**2))


def _count_words(matrix: sp.csr_array, label: np.ndarray, class_count: np.ndarray) -> Moments:
    """Return the moments (C, F) of sparse counts of words (N, F)."""
    hot = sp.csr_array((np.ones(len(label)), (label, np.arange(len(label)))), (len(class_count), len(label)))
    total, square = ((hot @ counts).toarray() for counts in (matrix, matrix.multiply(matrix)))
    count = np.broadcast_to(class_count[:, None], total.shape)
    mean = total / np.maximum(count, 1.0)
    return Moments(count, mean, np.maximum(square - count * mean**2, 0.0))


def _align(counted: Counted, other: Counted) -> Counted:
    """Return statistics on the axes of the union of two encodings."""
    return counting.merge(other._replace(statistics=jax.tree.map(np.zeros_like, other.statistics)), counted)


def _compare_level_columns(
    columns: Columns, train: np.ndarray, batch: np.ndarray, where: Sequence[str]
) -> Iterator[tuple[int, list[Finding], np.ndarray, np.ndarray]]:
    """Yield the position in X, the test and both numbers of observed cells (C,) of each column of a block of levels.

    Counts of a column with parents are summed over these. A column that is in several tables has the first as the last.
    """
    base, (feature, levels) = columns.base, columns.base.axis()
    children = [child for child, *_ in columns.nodes]
    cells = base.are_cells()
    names: list[list[str]] = [[] for _ in base.index]
    for f, level in zip(feature, levels, strict=True):
        names[f].append(str(level) if cells[f] else shown(level))
    parts = (np.split(count, columns.start()[1:], axis=1) for count in (train, batch))
    for f, *counts in reversed(list(zip(children, *parts, strict=True))):
        x, y = (c.reshape(len(c), -1, max(1, len(names[f]))).sum(axis=1) for c in counts)
        test = [compare_levels(x, y, names[f], where, ordered=bool(cells[f]))]
        yield base.index[f], test, x.sum(axis=1), y.sum(axis=1)


def _compare_predictions(nb: Classifier, reference: object, X: object) -> Finding:
    """Test whether the mean predicted probabilities of new rows are those of reference rows."""
    classes = _state(nb).encoding.classes.values
    first = int(len(classes) == 2)  # The probabilities of two classes change alike.
    with warnings.catch_warnings(action="ignore", category=UnknownLevelWarning):
        before, after = (p[~np.isnan(p).any(axis=1), first:] for p in map(nb.predict_proba, (reference, X)))
    if not len(before) or not len(after):
        return Finding()
    moments = ([np.full(p.shape[1], len(p)), p.mean(axis=0), len(p) * p.var(axis=0)] for p in (before, after))
    train, batch = (Moments(*np.array(three)[:, None]) for three in moments)
    tests = []
    for c, (test, _) in enumerate(compare_numbers(train, batch, np.full(batch.mean.size, np.nan), [""])):
        x, y = train.mean[0, c], batch.mean[0, c]
        change = f"{shown(classes[first + c])} {x:.3g} -> {y:.3g}"
        tests.append(test._replace(effect=y - x, change=change))
    return most_significant(tests)


def _compare_jointly(fitted: Fitted, reference: object, X: object) -> Finding:
    """Test whether a classifier, fitted to half of the rows, tells new rows from reference rows in the other half."""
    tables = [fitted.table(rows) for rows in (reference, X)]
    if min(table.n_rows for table in tables) < 4:
        return Finding()
    origin = np.repeat([0, 1], [table.n_rows for table in tables])
    rows: Any
    if all(table.is_sparse for table in tables):
        rows = sp.vstack([table.data for table in tables], "csr")
    else:
        tables = [replace(t, data=t.data.toarray()) if t.is_sparse else t for t in tables]
        frames = [pd.DataFrame({str(j): t.column(j) for j in range(len(t.names))}) for t in tables]
        rows = pd.concat(frames, ignore_index=True)
    with internal_fits(), warnings.catch_warnings(action="ignore", category=UserWarning):
        score = WeightedNB().fit(rows[::2], origin[::2]).predict_proba(rows[1::2])[:, 1]
    new = origin[1::2] == 1
    test = stats.mannwhitneyu(score[new], score[~new], alternative="greater", method="asymptotic")
    area = float(test.statistic) / (new.sum() * (~new).sum())
    return Finding(float(test.statistic), area - 0.5, f"area under the ROC curve 0.5 -> {area:.3g}", float(test.pvalue))


def _to_frame(findings: Sequence[tuple[str, Finding]]) -> pd.DataFrame:
    """Return the table of the findings, with the q-values of Benjamini and Hochberg."""
    names, tests = zip(*findings, strict=True)
    table = pd.DataFrame(list(tests), pd.Index(names, name="column"), Finding._fields)
    q, known = table["p"].to_numpy(copy=True), table["p"].notna().to_numpy()
    q[known] = stats.false_discovery_control(q[known])
    return table.assign(q=q)


__all__ = ["DriftStatistics", "check_drift"]
