"""Cross-conformal ranks: candidates are compared with the rows of each fold by a fit without that fold."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from bayesnb._util.arrays import take_rows
from bayesnb._util.terminal import progress
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Classifier, CountedRows, Fitted
from bayesnb.model import Estimate
from bayesnb.prediction.conformity import Ranking, log_odds_against

N_FOLDS = 10
GUARANTEE = (
    "Cross-conformal: weights and structure are fitted again without each of ten folds. A set for coverage 1 - ε "
    "misses the label with a probability of at most 2ε, and of about ε in simulations (Vovk 2015)."
)
_EQUAL = 1e-9
# Fit without the rows of a fold; positions (C,) of the classifier's classes among those of the fit, -1 for none; log
# odds against the label of each row of the fold, in descending order; class and replication count of each row.
Fold = tuple[Fitted, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def cross_ranking(
    nb: Classifier, X: object, y: object, counted: CountedRows, estimate: Estimate, seed: int, by_class: bool
) -> Ranking:
    """Fit a weighted classifier without each of ten folds of the rows X, stratified by class; return its ranking.

    `counted` are the same rows, with the index of the class, and the replication count, of each row. With `by_class` a
    candidate is compared with rows of its own class only.
    """
    label, weight = counted.label, counted.weight
    fold_of, folds = random_folds(label, seed), []
    with progress("conformal", N_FOLDS) as tick:
        for k in range(N_FOLDS):
            rows = np.flatnonzero((fold_of == k) & (weight > 0))
            # The fit to all rows has given the same warnings.
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                fitted = nb.refit(X, y, weight * (fold_of != k)).fitted_
                position = fitted.encoding.classes.index(nb.classes_.tolist())
                against = _log_odds(fitted, position, take_rows(X, rows), estimate)
            against = against[np.arange(len(rows)), label[rows]]
            order = np.argsort(-against, kind="stable")
            folds.append((fitted, position, against[order], label[rows[order]], weight[rows[order]]))
            tick()
    return partial(_rank, folds, estimate, by_class)


def _rank(folds: list[Fold], estimate: Estimate, by_class: bool, X: object) -> np.ndarray:
    """Compute the `Ranking` of the rows of X among the rows of all folds, by the fits without each fold."""
    ranks = np.zeros(())
    for fitted, position, against, label, weight in folds:
        candidates = _log_odds(fitted, position, X, estimate)
        margin = _EQUAL * np.maximum(1.0, abs(np.where(np.isfinite(candidates), candidates, 0.0)))
        class_ranks = []
        for c in range(candidates.shape[1]):
            total = np.concatenate([[0.0], np.cumsum(np.where(label == c, weight, 0.0) if by_class else weight)])
            at_most = np.searchsorted(-against, margin[:, c] - candidates[:, c], side="right")
            less = np.searchsorted(-against, -margin[:, c] - candidates[:, c], side="left")
            class_ranks.append((total[at_most], total[less]))
        ranks = ranks + np.moveaxis(np.array(class_ranks), 0, -1)
    return ranks


def random_folds(label: np.ndarray, seed: int) -> np.ndarray:
    """Draw for each of N rows the index (N,) of one of ten folds, stratified by class."""
    order = np.random.default_rng(seed).permutation(len(label))
    fold_of = np.empty(len(label), int)
    fold_of[order[np.argsort(label[order], kind="stable")]] = np.arange(len(label)) % N_FOLDS
    return fold_of


def _log_odds(fitted: Fitted, position: np.ndarray, X: object, estimate: Estimate) -> np.ndarray:
    """Return (M, C) log odds against each class by the fit without a fold; +inf for classes unknown to the fit."""
    joint = fitted.score(*fitted.encode(X), scoring.joint, estimate)
    return log_odds_against(np.where(position < 0, -np.inf, joint[:, position]))
