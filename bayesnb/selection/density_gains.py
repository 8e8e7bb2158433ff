"""Comparison of two densities of columns of numbers by how well they predict the class, by fits to random halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesnb import scoring
from bayesnb.encoding import Encoding, Rows
from bayesnb.model import NaiveBayes
from bayesnb.selection.halves import number_of_splits, random_halves
from bayesnb.selection.leave_one_out import FEWEST_EVENTS

MOST_ROWS = 10_000
_WORST = -1e3


class Density(NamedTuple):
    """Encoded rows of F columns in one block, and the posterior of their parameters by weights (N,) of the rows."""

    encoding: Encoding
    rows: Rows
    fit: Callable[[np.ndarray], NaiveBayes]


def compute_gains(first: Density, second: Density, label: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Compute (F,) gains in log P(class) of each column's second density over its first, in nats per row.

    The score of a density is log P(y | x_j), by that column alone, of each row by fits to halves without the row. The
    gains of the columns are shrunk to a common gain, so that few rows give little reason to choose. Where fewer than
    ten rows are outside the largest class the gains are 0. Rows of classes with a single row are not scored.

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
    n_columns = int(first.rows.width())
    if weight.sum() - np.bincount(label, weight).max(initial=0.0) < FEWEST_EVENTS:
        return np.zeros(n_columns)
    scored = np.flatnonzero(np.bincount(label)[label] > 1)
    scored = scored[:: -(-len(scored) // MOST_ROWS)]
    gain = np.zeros((len(label), n_columns))
    halves = random_halves(label, number_of_splits(len(label)), seed=0)
    for half in (side for first_half in halves for side in (first_half, ~first_half)):
        others = scored[~half[scored]]
        for density, sign in ((second, 1), (first, -1)):
            gain[others] += sign * _label_scores(density, weight * half, others, label)
    return shrink(gain[scored] / len(halves), weight[scored])


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


def _label_scores(density: Density, weight: np.ndarray, index: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Compute (n, F) log P(y | x_j) of the rows at `index` (n,) from each column j alone, at least -1000 nats.

    The fit is to the rows under these weights (N,). A row that all classes exclude has -log C.
    """
    model, rows = density.fit(weight), (density.rows.take(index),)
    terms = scoring.terms_of_rows(density.encoding, model, rows, len(index), "predictive")
    joint = terms + scoring.log_class(model, "predictive")[:, None]
    of_label = np.take_along_axis(joint, label[index, None, None], axis=1)[:, 0]
    # A cell that is impossible in every class, or too far out for float64, leaves all classes equally probable.
    with np.errstate(invalid="ignore"):
        score = of_label - np.logaddexp.reduce(joint, axis=1)
    return np.asarray(np.maximum(np.where(np.isnan(score), -np.log(joint.shape[1]), score), _WORST))


__all__ = ["Density", "compute_gains", "shrink"]
