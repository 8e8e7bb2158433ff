"""Comparison of two densities of columns of numbers by how well they predict the class, by fits to random halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, Rows
from bayesnb.fitted import scoring
from bayesnb.fitted.state import FEWEST_EVENTS
from bayesnb.model import JointLikelihood, NaiveBayes
from bayesnb.selection.halves import number_of_splits, random_halves, sample_rows

MOST_ROWS = 10_000
_MOST_TERMS = 2**25
_WORST = -1e3


class Density(NamedTuple):
    """Encoded rows of F columns in one block, and the posterior of their parameters by weights (N,) of the rows."""

    encoding: Encoding
    rows: Rows
    fit: Callable[[np.ndarray], NaiveBayes]

    def likelihoods(self, weights: list[np.ndarray]) -> list[JointLikelihood]:
        """Return the predictive likelihoods of the columns under each of K weights of the rows."""
        fits = [self.fit(weight) for weight in weights]
        family = fits[0].blocks[0]
        if not hasattr(family, "read_together"):
            return [float64(fit.read)("predictive") for fit in fits]
        together = float64(family.read_together)([fit.blocks[0] for fit in fits])
        log_class = [scoring.log_class(fit, "predictive") for fit in fits]
        return [JointLikelihood(v, (likelihood,)) for v, likelihood in zip(log_class, together, strict=True)]


class NumberTerms(NamedTuple):
    """Terms log p(x_j | class) of F columns of numbers, by fits to random halves of the rows without the row.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    halves : (S, N) bool array
        Whether each row is in the first half of each split.
    rows : (n,) int array
        Positions of the rows that have terms, in ascending order.
    values : (S, n, C, F) array
        Terms of each row by the half of each split that lacks the row.
    """

    names: tuple[str, ...]
    halves: Bool[np.ndarray, "S N"]
    rows: Int[np.ndarray, "n"]
    values: Float[np.ndarray, "S n C F"]

    def of_half(self, counted: np.ndarray, rows: np.ndarray) -> Float[np.ndarray, "m C F"] | None:
        """Return the terms of `rows` (m,) by a fit to the rows in the mask `counted` (N,); None if there are none."""
        for half, values in zip(self.halves, self.values, strict=True):
            if np.array_equal(counted, half if counted[0] == half[0] else ~half) and np.isin(rows, self.rows).all():
                return np.asarray(values[np.searchsorted(self.rows, rows)])
        return None


def compare_densities(
    first: Density, second: Density, label: np.ndarray, weight: np.ndarray
) -> tuple[Float[np.ndarray, "F"], Callable[[np.ndarray], NumberTerms] | None]:
    """Compute (F,) gains in log P(class) of each column's second density over its first, in nats per row.

    A function is returned, too, of a mask (F,) of the columns that have the second density, to their `NumberTerms`.

    The score of a density is log P(y | x_j), by that column alone, of each row by fits to halves without the row. The
    gains of the columns are shrunk to a common gain, so that few rows give little reason to choose. Where fewer than
    ten rows are outside the largest class the gains are 0, and there is no such function. Rows of classes with a single
    row are not scored.

    Parameters
    ----------
    first, second : Density
        Densities of the same columns.
    label, weight : (N,) arrays
        Index of the class, and replication count, of each row.

    References
    ----------
    DerSimonian & Laird, *Meta-analysis in clinical trials*, Controlled Clinical Trials 7 (1986), for the shrinkage.
    """
    n_columns, n_classes = int(first.rows.width()), len(first.encoding.classes)
    if weight.sum() - np.bincount(label, weight).max(initial=0.0) < FEWEST_EVENTS:
        return np.zeros(n_columns), None
    rows = sample_rows(label, min(MOST_ROWS, max(1, _MOST_TERMS // (n_classes * n_columns))), seed=0)
    halves = random_halves(label, number_of_splits(len(rows)), seed=0)
    sides = [half for first_half in halves for half in (first_half, ~first_half)]
    gain, terms = np.zeros((len(rows), n_columns)), np.zeros((2, len(halves), len(rows), n_classes, n_columns))
    for density, sign, of_density in ((first, -1, terms[0]), (second, 1, terms[1])):
        for k, likelihood in enumerate(density.likelihoods([weight * half for half in sides])):
            others = np.flatnonzero(~sides[k][rows])
            of_others = (density.rows.take(rows[others]),)
            values = scoring.terms(density.encoding, likelihood, of_others, len(others))
            of_density[k // 2, others] = values
            gain[others] += sign * _label_scores(values, likelihood.log_class, label[rows[others]])

    def choose(is_second: np.ndarray) -> NumberTerms:
        """Return the terms of the columns with the second density where the mask (F,) is true."""
        return NumberTerms(tuple(first.encoding.term_names), halves, rows, np.where(is_second, terms[1], terms[0]))

    return shrink(gain / len(halves), weight[rows]), choose


def shrink(gain: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Shrink the weighted column means of `gain` (N, F) to a common mean by normal empirical Bayes; return (F,)."""
    total = weight.sum()
    mean = weight @ gain / total
    variance = np.maximum(weight @ (gain - mean) ** 2 / total / total, 1e-18)
    precision = 1.0 / variance
    common = precision @ mean / precision.sum()
    excess = precision @ (mean - common) ** 2 - (len(mean) - 1)
    spread = max(0.0, excess / max(precision.sum() - precision @ precision / precision.sum(), 1e-300))
    precision = 1.0 / (spread + variance)
    common = mean @ precision / precision.sum()
    return np.asarray(common + spread / (spread + variance) * (mean - common))


def _label_scores(terms: np.ndarray, log_class: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Compute (n, F) log P(label | x_j) from terms (n, C, F) of each column j alone, at least -1000 nats.

    A row that all classes exclude has -log C.
    """
    joint = terms + np.asarray(log_class)[:, None]
    of_label = np.take_along_axis(joint, label[:, None, None], axis=1)[:, 0]
    # A cell that is impossible in every class, or too far out for float64, leaves all classes equally probable.
    with np.errstate(invalid="ignore"):
        score = of_label - np.logaddexp.reduce(joint, axis=1)
    return np.asarray(np.maximum(np.where(np.isnan(score), -np.log(joint.shape[1]), score), _WORST))
