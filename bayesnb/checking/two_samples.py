"""Tests whether two samples come from one population, by their counts and moments in each class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, fdtr, fdtrc, gammaincc

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
