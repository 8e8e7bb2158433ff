"""Drift: new rows compared with the training statistics, column by column."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple, Self

import jax
import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import stats
from scipy.special import betainc, chdtrc, gammaincc, ndtri

from bayesnb._util.arguments import shown
from bayesnb._util.warnings import UnknownLevelWarning, internal_fits
from bayesnb.encoding import (
    Columns,
    Encoding,
    Levels,
    RealColumns,
    Rows,
    check_labels,
    ignore_unknown,
    number_columns,
    numeric_columns,
)
from bayesnb.estimators import WeightedNB
from bayesnb.estimators.from_counts import COLUMNS, count_table, has_base_measure, read_frame
from bayesnb.families import Moments, NormalInverseGamma, Totals, pooled
from bayesnb.fitted import counting
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.number_cells import NumberCells
from bayesnb.fitted.state import Classifier, Fitted, NotOfferedError, is_mixture, require_fitted
from bayesnb.model import Statistics

# == Tests whether two samples come from one population, by their counts and moments in each class =

_FEWEST_EXPECTED = 5.0  # least expected count of a group of levels
_KURTOSIS = 9.0  # kurtosis of exponential numbers


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
    return next(_compare_tables(train[None], batch[None], [levels], where, ordered=ordered))


def _compare_tables(
    train: np.ndarray, batch: np.ndarray, levels: Iterable[Sequence[str]], where: Sequence[str], *, ordered: bool
) -> Iterator[Finding]:
    """Yield the result of `compare_levels` for each of F columns by counts (F, C, K), of which the last may be empty.

    `levels` are the names of the levels of each column.
    """
    n, m, both = train.sum(axis=2, keepdims=True), batch.sum(axis=2, keepdims=True), train + batch
    tested = (n > 0) & (m > 0) & (n + m >= 4)
    n, m = np.where(tested, n, 2.0), np.where(tested, m, 2.0)
    total, both = n + m, np.where(tested, both, 0.0)
    expected = (both * np.minimum(n, m) / total).sum(axis=1)
    if ordered:
        # Edges at quantiles of few training rows make chi-squared larger than given its margins.
        expected = np.minimum(expected, train.sum(axis=1) / 4)
    group = np.stack([(_group_cells if ordered else _group_levels)(row) for row in expected])
    shape = (*n.shape[:2], int(group.max()) + 1)
    cell = np.arange(shape[0] * shape[1]).reshape(n.shape) * shape[2] + group[:, None]
    count, drawn = (np.bincount(cell.ravel(), of.ravel(), np.prod(shape)).reshape(shape) for of in (both, batch))
    inverse = np.divide(1.0, count, out=np.zeros_like(count), where=count > 0)
    chi2 = ((drawn - m * count / total) ** 2 * inverse * total**2 / (m * n)).sum(axis=2)
    # A class without test counts as a table of one level.
    n_groups = np.where(tested[..., 0], (count > 0).sum(axis=2), 1)
    moments = _chi2_moments(n[..., 0], m[..., 0], n_groups, np.where(tested[..., 0], inverse.sum(axis=2), 0.25))
    together = _gamma_tail(chi2.sum(axis=1), *moments)
    # Of a level of most rows, the rows without the level are compared, which are fewer.
    rare_train, rare_batch = np.where(both > total / 2, (n - train, m - batch), (train, batch))
    tail = np.where(tested, _tail_probabilities(rare_train, rare_batch, m / total), 1.0)
    single = np.minimum(1.0, 2 * (both > 0).sum(axis=(1, 2)) * tail.min(axis=(1, 2)))
    for f, names in enumerate(levels):
        if not tested[f].any():
            yield Finding()
            continue
        is_single = single[f] < together[f]
        c, k = divmod(int(tail[f].argmin()), tail.shape[2]) if is_single else (int(chi2[f].argmax()), 0)
        part = group[f] if ordered and not is_single else np.arange(tail.shape[2])
        before, after = (np.bincount(part, share) for share in (train[f, c] / n[f, c], batch[f, c] / m[f, c]))
        k = k if is_single else int(abs(after - before).argmax())
        name = _join([name for name, g in zip(names, part, strict=False) if g == k])
        change = f"{name} {before[k]:.3g} -> {after[k]:.3g}{where[c]}"
        p = min(1.0, 2 * float(min(single[f], together[f])))
        yield Finding(float(chi2[f].sum()), float(after[k] - before[k]), change, p)


def compare_missing(rows: Sequence[np.ndarray], present: Sequence[np.ndarray], where: Sequence[str]) -> list[Finding]:
    """Test the share of missing cells, if there are any, by the weights (C,) of training rows and of the batch.

    Parameters
    ----------
    rows, present : pairs of (C,) arrays
        Weight of all rows, and of those whose cell is present.
    where : (C,) sequence of str
        Names of the classes, as the end of a sentence.
    """
    # Sums of fractional weights have rounding errors.
    missing = [np.where(n - x > 1e-9 * n, n - x, 0.0) for n, x in zip(rows, present, strict=True)]
    before, after = (np.column_stack(pair) for pair in zip(missing, present, strict=True))
    if not (before[:, 0].any() or after[:, 0].any()):
        return []
    return [compare_levels(before, after, ["missing", "observed"], where)]


def compare_cells(train: NumberCells, batch: NumberCells, where: Sequence[str]) -> Iterator[Finding]:
    """Test for each column of numbers whether counts in the same cells come from the same distributions.

    Ranks test the location, and squares of ranks about the median the spread. A frequent value between others has a
    test of its share. Squares of `_normal_deviates` are summed over the classes. The location, that value and the rest
    have equal parts of the level of significance; the spread, the numbers outside the range of training, the shares of
    all cells (`compare_levels`) and that of missing cells have equal parts of the rest.

    Parameters
    ----------
    train, batch : NumberCells
        Counts of the training rows and of the batch, by the same C classes.
    where : (C,) sequence of str
        Names of the classes, as the end of a sentence.
    """
    old, new = train.count[..., :-1], batch.count[..., :-1]
    both = old + new
    rank, rows, present = _ranks(both) - 0.5, (train.count.sum(axis=-1), batch.count.sum(axis=-1)), (old, new)
    scores = {"location": rank, "value": _score_frequent_value(both, rank), "spread": rank**2}
    describe = {"location": _describe_location, "value": _describe_frequent_value, "spread": _describe_spread}
    n_classes = np.maximum(((old.sum(axis=-1) > 0) & (new.sum(axis=-1) > 0)).sum(axis=0), 1)
    deviates = {test: _normal_deviates(both, new, score, 0.5 / n_classes) for test, score in scores.items()}
    ranked = {test: _sum_squares(z) for test, z in deviates.items()}
    cells = [train.describe(f) for f in range(both.shape[1])]
    all_names = [names for _, names in cells]
    shares = _compare_tables(old.swapaxes(0, 1), new.swapaxes(0, 1), all_names, where, ordered=True)
    for f, ((ends, names), of_shares) in enumerate(zip(cells, shares, strict=True)):
        location, value, spread = (Finding(chi2[f], change=test, p=p[f]) for test, (chi2, p) in ranked.items())
        counts = np.stack([n[:, f, : len(names)] for n in present])
        missing = compare_missing([n[:, f] for n in rows], counts.sum(axis=2), where)
        outside = _compare_ranges(counts, ends, where)
        found = most_significant([location, value, most_significant([spread, outside, of_shares, *missing])])
        if found.change in describe:  # Only the test that is shown is described.
            c = int(np.nanargmax(abs(deviates[found.change][:, f])))
            effect, change = describe[found.change](counts[:, c], ends, names)
            found = found._replace(effect=effect, change=change + where[c])
        yield found


def _score_frequent_value(both: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the scores (…, K) 1 of the fullest cell and 0 of others, by ranks about 0; NaN if the ranks suffice.

    The ranks test the share of a value at an end, such as 0 of amounts. A value of less than a quarter of the rows has
    no test besides that of all cells.
    """
    is_fullest = np.arange(both.shape[-1]) == both.argmax(axis=-1)[..., None]
    total = np.maximum(both.sum(axis=-1), 1.0)
    share, at, variance = (np.sum(both * score, axis=-1) / total for score in (is_fullest, is_fullest * rank, rank**2))
    is_between = (share >= 0.25) & (at**2 < 0.8 * share * (1 - share) * variance)  # squared correlation
    return np.where(is_between[..., None], is_fullest, np.nan)


def _compare_ranges(counts: np.ndarray, ends: np.ndarray, where: Sequence[str]) -> Finding:
    """Test whether more rows of a batch than of training are in the first and the last cell, by counts (2, C, K).

    If the ends are the least and the greatest number of training, the number of such rows of the batch has a negative
    binomial distribution, whatever that of the numbers.
    """
    (n, m), (old, new) = counts.sum(axis=2), counts[..., [0, -1]].sum(axis=2)
    (tested,) = np.nonzero((n > 0) & (m > 0))
    if not len(tested) or not len(ends):
        return Finding()
    p = np.where(new > 0, betainc(np.where(new > 0, new, 1.0), old + 2, m / np.maximum(n + m, 1.0)), 1.0)
    c = tested[p[tested].argmin()]
    before, after = old[c] / n[c], new[c] / m[c]
    change = f"outside {ends[0]:.4g} to {ends[-1]:.4g} {before:.3g} -> {after:.3g}{where[c]}"
    return Finding(float(new[c]), float(after - before), change, min(1.0, len(tested) * float(p[c])))


def _sum_squares(z: np.ndarray) -> tuple[list[float], list[float]]:
    """Return the sums of squares of normal deviates (C, F) over the classes, and their p-values; NaN without a test."""
    tested, chi2 = np.isfinite(z).sum(axis=0), np.nansum(z**2, axis=0)
    return chi2.tolist(), np.where(tested > 0, chdtrc(np.maximum(tested, 1), chi2), np.nan).tolist()


def _ranks(count: np.ndarray) -> np.ndarray:
    """Middle rank (…, K) of the rows in each cell among all rows, from 0 to 1; 0 without a row."""
    total = count.sum(axis=-1, keepdims=True)
    return (np.cumsum(count, axis=-1) - count / 2) / np.where(total > 0, total, 1.0)


def _normal_deviates(
    both: np.ndarray, drawn: np.ndarray, score: np.ndarray, correction: float | np.ndarray = 0.5
) -> np.ndarray:
    """Sums (…) of the scores of the rows of a batch as normal deviates, given the sums of both counts; NaN untested.

    If each row is equally likely to be in the batch, a sum has the moments of samples without replacement. Its tails
    are those of the Pearson type III distribution of the same skewness, or of a larger one if the sum has a larger
    kurtosis, which is made normal as by Wilson & Hilferty (1931).

    Parameters
    ----------
    both, drawn : (…, K) arrays
        Counts of all rows, and of those of the batch, in each cell.
    score : (…, K) array
        Score of the rows in each cell.
    correction : (…) array
        Correction for continuity: the part of the greatest difference between neighbouring cells by which a sum is
        moved towards its mean. A sum over several classes is smoother than that of one.
    """
    total, m = both.sum(axis=-1), drawn.sum(axis=-1)
    occupied = both > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        score = score - ((both * score).sum(axis=-1) / total)[..., None]
        second, third, fourth = ((both * score**k).sum(axis=-1) for k in (2, 3, 4))
        share = m * (total - m) / total**2
        variance = share * total / (total - 1) * second
        skewness = share * (total - 2 * m) * total / ((total - 1) * (total - 2)) * third / variance**1.5
        cumulant = share * ((1 - 6 * share) * fourth - 3 * (1 - 4 * share) * second**2 / total)
        more = np.maximum(np.sqrt(np.maximum(cumulant, 0.0) / 1.5) / variance - abs(skewness), 0.0)
        last = np.maximum.accumulate(np.where(occupied, np.arange(both.shape[-1]), 0), axis=-1)
        filled = np.take_along_axis(score, np.maximum(last, occupied.argmax(axis=-1)[..., None]), axis=-1)
        step = abs(np.diff(filled, axis=-1)).max(axis=-1, initial=0.0)
        sums = (drawn * score).sum(axis=-1)
        x = np.maximum(abs(sums) - step * correction, 0.0) / np.sqrt(variance)
        tail = np.sign(sums) * skewness + more
        root = np.cbrt(np.maximum(1 + tail * x / 2, 1e-9))
        z = np.where(abs(tail) < 1e-6, x, np.maximum(6 / tail * (root - 1) + tail / 6, 0.0))
        tested = (variance > 0) & (second > 1e-12 * total)  # Equal scores may differ by rounding.
        return np.where(tested, np.sign(sums) * z, np.nan)


def _describe_location(counts: np.ndarray, ends: np.ndarray, names: list[str]) -> tuple[float, str]:
    """Return the shift, in standard deviations of normal numbers with the same ranks, and the medians in words.

    `counts` (2, K) are those of the training rows and of the batch, here and in the next three functions.
    """
    n, m = counts.sum(axis=1)
    higher = np.clip(counts[1] @ _ranks(counts[0]) / m, 0.25 / (n * m + 1), 1 - 0.25 / (n * m + 1))
    first = 1 + int(abs(_rise(counts)).argmax())
    return float(np.sqrt(2) * ndtri(higher)), _describe_quantiles(counts, ends, names, "median", [0.5], first, None)


def _describe_frequent_value(counts: np.ndarray, ends: np.ndarray, names: list[str]) -> tuple[float, str]:
    """Return the difference of the shares of the fullest cell, and both shares in words."""
    k = int(counts.sum(axis=0).argmax())
    old, new = counts[:, k] / counts.sum(axis=1)
    return float(new - old), f"{names[k]} {old:.3g} -> {new:.3g}"


def _describe_spread(counts: np.ndarray, ends: np.ndarray, names: list[str]) -> tuple[float, str]:
    """Return the log ratio of the standard deviations of normal numbers with the same ranks, and quartiles in words."""
    square = (2 * _ranks(counts[0]) - 1) ** 2
    # Normal numbers of standard deviation r have the mean square 2/π asin(r² / (1 + r²)).
    sine = np.clip(np.sin(np.pi / 2 * counts @ square / counts.sum(axis=1)), 1e-4, 1 - 1e-4)
    old, new = np.log(sine / (1 - sine)) / 2
    middle = sorted([1 + int(_rise(counts).argmin()), 1 + int(_rise(counts).argmax())])
    return float(new - old), _describe_quantiles(counts, ends, names, "quartiles", [0.25, 0.75], *middle)


def _rise(counts: np.ndarray) -> np.ndarray:
    """(K,) share of the batch in the first cells, less that of the training rows."""
    return np.diff(np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True), axis=0)[0]


def _describe_quantiles(
    counts: np.ndarray, ends: np.ndarray, names: list[str], word: str, levels: list[float], start: int, stop: int | None
) -> str:
    """Return quantiles at `levels` of both counts in words, or if these are equal the shares of cells from `start`."""
    texts = []
    for count in counts:
        total, quantiles = np.cumsum(count), list[str]()
        for rows in total[-1] * np.array(levels):
            k = int(np.searchsorted(total, rows))
            part = (rows - total[k] + count[k]) / count[k]
            if 0 < k < len(ends):
                quantiles.append(f"{(1 - part) * ends[k - 1] + part * ends[k]:.4g}")
            else:
                quantiles.append(f"<{ends[0]:.4g}" if k == 0 else f">{ends[-1]:.4g}")
        texts.append(", ".join(quantiles))
    if texts[0] != texts[1]:
        return f"{word} {texts[0]} -> {texts[1]}"
    cells = slice(start, stop) if names[start:stop] else slice(None)
    old, new = counts[:, cells].sum(axis=1) / counts.sum(axis=1)
    return f"{_join(names[cells])} {old:.3g} -> {new:.3g}"


def _join(cells: list[str]) -> str:
    """Return the name of adjacent cells of a number together: "(1, 2]", "2" and "(2, 5]" are "(1, 5]"."""
    if len(cells) == 1:
        return cells[0]
    low = cells[0].partition(",")[0] if "," in cells[0] else f"[{cells[0]}"
    high = cells[-1].partition(",")[2] if "," in cells[-1] else f" {cells[-1]}]"
    return f"{low},{high}"


def compare_means(train: Moments, batch: Moments, where: Sequence[str], *, measured: bool = True) -> list[Finding]:
    """Test for each of F numbers whether the mean is that of the training rows.

    Squares of z by the variance of all rows are summed over the classes. Their null distribution is the gamma
    distribution with the same mean and variance, which depends on the kurtosis: 9, that of exponential numbers.

    Parameters
    ----------
    train, batch : Moments
        Count, mean and centred sum of squares, (C, F) each.
    where : (C,) sequence of str
        Names of the classes, as the end of a sentence.
    measured : bool
        Whether the training variance is known. Otherwise it is that of a family such as Poisson, times a factor that
        the spread of the batch determines.
    """
    n, m, total = train.count, batch.count, train.count + batch.count
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shift, centre = batch.mean - train.mean, (n * train.mean + m * batch.mean) / total
        within = np.where((m > 0) & (n > 1) & (train.m2 > 0), train.m2 / (n - 1), 0.0)
        sums = (m, m * (1 + 1 / n) * within, batch.m2 + m * shift**2)
        rows, expected, square = (np.where(within > 0, v, 0.0).sum(axis=0) for v in sums)
        scale = np.ones(len(rows)) if measured else np.fmax(1.0, square / expected)
        variance = (scale * train.m2 + batch.m2 + shift**2 * n * m / total) / (total - 1)
        varies = (n > 0) & (m > 0) & (total >= 3) & (variance > 0)
        tail = _KURTOSIS if measured else 3 + 6 * variance / centre**2
        chi2 = np.where(varies, shift**2 / (variance * (1 / m + 1 / n)), 0.0)
        normal, heavy = 2 * (total - 2) / (total + 1), np.maximum(tail - 3, 0.0) / np.minimum(m, n)
        if not measured:
            heavy = heavy + varies.sum(axis=0) * (tail - 1) / np.maximum(rows, 1.0)
        # A gamma distribution of very large variance is concentrated at 0, so that a small statistic would be rare.
        variances = (np.where(varies, v, 0.0).sum(axis=0) for v in (normal, normal + heavy))
        p = np.maximum(*(_gamma_tail(chi2.sum(axis=0), varies.sum(axis=0), v) for v in variances))
        p = np.where(((n > 0) & (m > 0)).any(axis=0), p, np.nan)
        changed = shift / np.sqrt(np.where(within > 0, within, variance))
        findings = []
        for f, c in enumerate(chi2.argmax(axis=0)):
            words = f"mean {train.mean[c, f]:.4g} -> {batch.mean[c, f]:.4g}{where[c]}"
            findings.append(Finding(float(chi2[:, f].sum()), float(changed[c, f]), words, float(p[f])))
    return findings


def _group_levels(expected: np.ndarray) -> np.ndarray:
    """(K,) group of each level, such that groups have expected counts of at least five, if there is more than one.

    Rare levels are together.
    """
    group, current, mass = np.zeros(len(expected), np.int64), 0, 0.0
    for level in np.argsort(expected, kind="stable").tolist():
        group[level], mass = current, mass + expected[level]
        if mass >= _FEWEST_EXPECTED:
            current, mass = current + 1, 0.0
    return np.minimum(group, max(current - 1, 0))


def _group_cells(expected: np.ndarray) -> np.ndarray:
    """(K,) group of each cell of a number: the rarest group joins its rarer neighbour until all expect five rows."""
    mass, size = expected.tolist(), [1] * len(expected)
    while len(mass) > 1 and (least := min(mass)) < _FEWEST_EXPECTED:
        g = mass.index(least)
        other = min((h for h in (g - 1, g + 1) if 0 <= h < len(mass)), key=lambda h: mass[h])
        for sums in (mass, size):
            sums[min(g, other)] += sums.pop(max(g, other))
    return np.repeat(np.arange(len(size)), size)


def _chi2_moments(n: np.ndarray, m: np.ndarray, k: np.ndarray, inverse: np.ndarray) -> tuple[Any, Any]:
    """Mean and variance (…) of the sum of chi-squared of C tables (2, k) with fixed margins (Haldane 1940).

    `n` and `m` (…, C) are the numbers of rows, and `inverse` (…, C) the sums of 1/t over the levels, t the sum of both
    counts.
    """
    total = n + m
    rows, columns = (total / m + total / n - 4) / (total - 2), (total * inverse - k**2) / (total - 2)
    free_rows, free_columns = (total - 2) / (total - 1), (k - 1) * (total - k) / (total - 1)
    variance = 2 * total / (total - 3) * (free_rows - rows) * (free_columns - columns)
    variance = variance + total**2 / (total - 1) * rows * columns
    return np.sum(total / (total - 1) * (k - 1), axis=-1), np.maximum(variance, 0.0).sum(axis=-1)


def _tail_probabilities(train: np.ndarray, batch: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(…, K) smaller of both tail probabilities of the batch's counts, if each cell is in the batch with P `share`."""
    tails = (batch, train, share), (train, batch, 1 - share)
    return np.minimum(*(np.where(a > 0, betainc(np.where(a > 0, a, 1.0), b + 1, p), 1.0) for a, b, p in tails))


def _gamma_tail(statistic: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
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
        has changed most, in which class: medians, quartiles, or the shares of a level or of an interval. "effect" is
        the difference of shares; of the location of numbers the shift in standard deviations, and of their spread the
        log ratio of standard deviations, both as normal numbers with the same ranks have them. "statistic" is
        chi-squared, or the number of rows outside the range of training. A row that cannot be tested is NaN.

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
    - *Levels*, and the classes: Pearson's chi-squared, with its exact mean and variance given both margins, for which
      rare levels are merged; and each level by itself, whether or not the training rows have it. A column of a
      structure is compared without its parents; in `TAN` and others with one table for all values of the parents, a
      cell counts as missing where a parent is.
    - *Numbers*: counts of the training rows in cells, which the classifier keeps besides its statistics: up to 32
      quantiles of the rows that were counted first. A value of more than a sixteenth of these rows, such as 0, is alone
      in its cell. If there were more than 16,384, a random one of several rows is counted. Half of the level of
      significance is that of the location, by ranks (Mann and Whitney, with ties); the rest is that of the spread, by
      squared ranks (Mood), of numbers outside the range of training, and of the shares of the cells, as for levels. If
      a value between others has a quarter of the rows, its share has a third. No distribution is assumed. Of 14
      distributions, among them log-normal and Cauchy numbers, 97% zeros and 1% indicators, with 60 to 5,000 training
      rows and 400 stationary batches of 30 to 1,000 rows and 20 columns each, at most 4.4% of the p-values were ≤ .05,
      .15% ≤ .001, and in 6% of the batches some q was ≤ .05 (s.e. 1.1%; `python -m benchmarks.drift`).
    - *Numbers without cells*, which are those of files of older versions, of models or batches that a database has
      counted, and with y of fits by EM; those of which a cell of several values has more than a quarter, as when later
      rows lie beyond the first; those of which `forget` has removed rows after more than 16,384 first rows; and counts
      of words: the mean only. Rare large numbers make this test too
      sensitive in small batches: of 20 columns with 97% zeros some had q ≤ .05 in 41% of stationary batches of 30 rows,
      and in 6% of 1,000 rows; of log-normal columns in 16% and in 5%. The variance of Poisson, exponential and
      multinomial columns is that of the family, multiplied by the overdispersion of the batch.
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
    Haldane, *The mean and variance of χ², when used as a test of homogeneity*, Biometrika 31 (1940). Mann & Whitney,
    *On a test of whether one of two random variables is stochastically larger than the other*, Ann. Math. Stat. 18
    (1947). Mood, *On the asymptotic efficiency of certain nonparametric two-sample tests*, Ann. Math. Stat. 25 (1954).
    Lopez-Paz & Oquab, *Revisiting classifier two-sample tests*, ICLR 2017.

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
        Counts of levels, and of cells of numbers, by class, or together for the single class None; moments of numbers
        if the classifier has no cells, or if a database has counted the rows.
    columns : tuple of str
        Name and kind of each column of X.

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
    columns: tuple[str, ...]

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
        weight, class_count = np.ones(len(label)), np.bincount(label, minlength=len(classes)).astype(float)
        training, used, _ = _read_training(fitted, labelled=y is not None)
        cells = training.cells and replace(training.cells, every=1)
        if cells is not None:
            numbers = number_columns(fitted.encoding.blocks)
            cells = NumberCells.from_rows(table, numbers, classes, label, weight, cells)
        encoded: list[tuple[Columns, Any]] = []
        rows: Any
        for columns, kind in zip(used, training.encoding.blocks, strict=True):
            if columns.one_simplex:
                rows = columns.rows(table)
                encoded.append((kind, _count_words(rows.matrix, label, class_count)))
            else:
                learned, rows = kind.learn(table, ignore_unknown)
                of_block = counting.count_rows(Encoding(classes, (learned,)), (rows,), label, weight)
                encoded.append((learned, of_block.blocks[0]))
        blocks, statistics = zip(*encoded, strict=True) if encoded else ((), ())
        counted = Counted(Encoding(classes, blocks), Statistics(class_count, statistics, np.zeros(())), cells)
        return cls(counted, _name_columns(fitted))

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
            columns = _read_training(fitted, labelled=True, by_cells=False)[0].encoding.blocks
            blocks, rows = zip(*(c.learn(checked, ignore_unknown) for c in columns), strict=True)
            return Encoding(classes, blocks), rows

        counted = count_table(frame.assign(**{"class": ""}) if is_unlabelled else frame, "check_drift", learn)
        if is_unlabelled:
            counted = counted._replace(encoding=replace(counted.encoding, classes=_NO_CLASS))
        return cls(counted, _name_columns(fitted))

    def merge(self, other: Self) -> Self:
        """Return the statistics of the rows of both batches; ValueError if one lacks labels or has other columns."""
        if self._is_labelled != other._is_labelled:
            raise ValueError("One batch has labels, and the other has none. Pass y for all batches, or for none.")
        self._require_same_columns(other.columns, other.counted)
        return replace(self, counted=counting.merge(self.counted, other.counted))

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
        fitted, has_cells = _state(nb), self.counted.cells is not None
        training, used, is_measured = _read_training(fitted, labelled=self._is_labelled, by_cells=has_cells)
        self._require_same_columns(_name_columns(fitted), training)
        is_resolved = () if training.cells is None else training.cells.resolve()
        train, batch = _align(training, self.counted), _align(self.counted, training)
        n, m = train.statistics.class_count, batch.statistics.class_count
        classes, names = train.encoding.classes.values, fitted.encoding.feature_names
        found = dict.fromkeys(range(len(names)), Finding())
        where = self._name_classes(classes)
        blocks = zip(train.encoding.blocks, train.statistics.blocks, batch.statistics.blocks, strict=True)
        for columns, measured, (kind, a, b) in zip(used, is_measured, blocks, strict=True):
            tests: Iterable[tuple[int, Finding, np.ndarray, np.ndarray]]
            if _has_moments(columns):
                means = compare_means(a, b, where, measured=measured)
                tests = zip(kind.index, means, a.count.T, b.count.T, strict=True)
            else:
                tests = _compare_level_columns(kind, a.count, b.count, where)
            for j, of_column, x, y in tests:
                found[j] = most_significant([of_column, *compare_missing((n, m), (x, y), where)])
        if train.cells is not None and batch.cells is not None:
            where = self._name_classes(train.cells.classes.values)
            tests_of_cells = compare_cells(train.cells, batch.cells, where)
            of_columns = zip(number_columns(fitted.encoding.blocks), is_resolved, tests_of_cells, strict=True)
            found |= {j: finding for j, is_tested, finding in of_columns if is_tested}
        labels = compare_levels(n[None], m[None], list(map(shown, classes)), [""]) if self._is_labelled else Finding()
        return [*zip(names, found.values(), strict=True), ("labels", labels)]

    def _name_classes(self, classes: Iterable[object]) -> list[str]:
        """Return the names of classes as ends of sentences, empty without labels."""
        return [f" in class {shown(c)}" if self._is_labelled else "" for c in classes]

    def _require_same_columns(self, columns: tuple[str, ...], counted: Counted) -> None:
        """Raise ValueError if other columns, or cells of numbers, were counted."""
        if self.columns != columns:
            names = f"{shown(list(self.columns))}, the others as {shown(list(columns))}"
            raise ValueError(f"Rows were counted as {names}. Use one classifier.")
        ours, theirs = self.counted.cells, counted.cells
        if (ours is None) != (theirs is None) or (ours is not None and not ours.matches(theirs).all()):
            raise ValueError(
                "Rows were counted in cells of numbers that are not those of the others. Use one classifier, and for "
                "all batches either from_rows or from_counts."
            )


def _read_training(
    fitted: Fitted, *, labelled: bool, by_cells: bool = True
) -> tuple[Counted, list[Columns], list[bool]]:
    """Return the statistics of a fitted classifier, by class or those of all classes together.

    Numbers have cells, unless the classifier has none or `by_cells` is false. Of other columns, one that is in several
    blocks is compared by its density, else by its table given the class alone, else by the sum of its table over its
    parents. With the statistics are returned, for each block, the columns of the classifier, and whether their
    variances were measured.
    """
    blocks, statistics, cells = fitted.encoding.blocks, fitted.statistics, fitted.cells if by_cells else None
    if cells is not None:
        # Rows whose class is not known, as in EM, cannot be compared within classes.
        cells = cells.pooled() if not labelled else None if None in cells.classes else cells
    with_cells = set() if cells is None else set(compress(number_columns(blocks), cells.resolve()))
    rank = [(c.network is None) * (1 + (c.role is None)) for c in blocks]
    order = np.argsort(rank, kind="stable").tolist()
    # The variance of counts of unequal exposures is not known from their mean.
    owners = {j: b for b in order for j in blocks[b].index if j not in with_cells and not blocks[b].auxiliary}.values()
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
    counted = Counted(Encoding(classes, tuple(kinds)), Statistics(class_count, tuple(counts), np.zeros(())), cells)
    return counted, [blocks[b] for b in used], [hasattr(statistics.blocks[b], "m2") for b in used]


def _name_columns(fitted: Fitted) -> tuple[str, ...]:
    """Return the name and the kind of each column of X."""
    kinds = {j: c.kind for c in fitted.encoding.blocks for j in c.base.index}
    kinds |= {j: "exposure" for c in fitted.encoding.blocks for j in c.base.auxiliary}
    return tuple(f"{name} ({kinds[j]})" for j, name in enumerate(fitted.encoding.feature_names))


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
    zeros = jax.tree.map(np.zeros_like, other.statistics)
    return counting.merge(Counted(other.encoding, zeros, other.cells and other.cells.scale(0.0)), counted)


def _compare_level_columns(
    columns: Columns, train: np.ndarray, batch: np.ndarray, where: Sequence[str]
) -> Iterator[tuple[int, Finding, np.ndarray, np.ndarray]]:
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
        test = compare_levels(x, y, names[f], where, ordered=bool(cells[f]))
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
    for c, test in enumerate(compare_means(train, batch, [""])):
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
