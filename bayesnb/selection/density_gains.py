"""Comparison of two densities of a column of numbers by how well they predict the class, by exact leave-one-out."""

from __future__ import annotations

import numpy as np

from bayesnb.encoding import Table
from bayesnb.fitted import Fitted
from bayesnb.model import JointLikelihood
from bayesnb.selection.leave_one_out import FEWEST_EVENTS, CountedRows, leave_one_out, log_class_without

MOST_ROWS = 10_000
_MOST_SCORES = 2**25
_WORST = -1e3


def compute_gains(first: Fitted, second: Fitted, table: Table, label: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Compute (F,) gains in leave-one-out log P(class) of each column's second density over its first, in nats per row.

    The score of a density is log P(y | x_j, the other rows), by that column alone. The gains of the columns are shrunk
    to a common gain, so that few rows give little reason to choose. Where fewer than ten rows are outside the largest
    class the gains are 0.

    Parameters
    ----------
    first, second : Fitted
        Models of the rows with the same columns, each in one block.
    table : Table
        Rows. If they are many, an evenly spread part is used.
    label, weight : (N,) arrays
        Index of the class, and replication count, of each row.

    References
    ----------
    DerSimonian & Laird, *Meta-analysis in clinical trials*, Controlled Clinical Trials 7 (1986), for the shrinkage.
    """
    n_classes, n_columns = len(first.encoding.classes), len(first.encoding.blocks[0].index)
    if weight.sum() - np.bincount(label, weight).max(initial=0.0) < FEWEST_EVENTS:
        return np.zeros(n_columns)
    most = min(MOST_ROWS, max(1, _MOST_SCORES // (n_classes * n_columns)))
    mask = np.zeros(table.n_rows, bool)
    mask[:: -(-table.n_rows // most)] = True
    sample = table.take(mask), label[mask], weight[mask]
    gain = _label_scores(second, *sample) - _label_scores(first, *sample)
    return shrink(gain, weight[mask])


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


def _label_scores(fitted: Fitted, table: Table, label: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Compute (N, F) leave-one-out log P(y | x_j) of each row from each column j alone, at least -1000 nats.

    Of a row of weight above 1 only one replication is left out. A row that all classes exclude has -log C.
    """
    rows = fitted.encoding.rows(table)
    counted = CountedRows(table, rows, label, np.minimum(weight, 1.0))
    terms = leave_one_out(fitted, counted, "predictive", "derived", JointLikelihood.terms)
    joint = terms + log_class_without(fitted, counted)[..., None]
    of_label = np.take_along_axis(joint, label[:, None, None], axis=1)[:, 0]
    # A cell that is impossible in every class, or too far out for float64, leaves all classes equally probable.
    with np.errstate(invalid="ignore"):
        score = of_label - np.logaddexp.reduce(joint, axis=1)
    return np.asarray(np.maximum(np.where(np.isnan(score), -np.log(joint.shape[1]), score), _WORST))


__all__ = ["compute_gains", "shrink"]
