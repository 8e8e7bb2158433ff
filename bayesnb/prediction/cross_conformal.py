"""Cross-conformal ranks: candidates are compared with the rows of each fold by a fit without that fold."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesnb import scoring
from bayesnb._util.progress import progress
from bayesnb._util.rows import take_rows
from bayesnb.fitted import Classifier, Fitted
from bayesnb.model import Estimate
from bayesnb.prediction.conformity import log_odds_against
from bayesnb.selection.leave_one_out import CountedRows

N_FOLDS = 10
GUARANTEE = (
    "Cross-conformal: weights and structure are fitted again without each of ten folds. A set for coverage 1 - ε "
    "misses the label with a probability of at most 2ε, and of about ε in simulations (Vovk 2015)."
)
_EQUAL = 1e-9


class Fold(NamedTuple):
    """Fit without the rows of one fold, and the scores of the n rows of the fold.

    Parameters
    ----------
    fitted : Fitted
        State of the fit.
    position : (C,) int array
        Positions of the classifier's classes among the classes of the fit; -1 if the fit does not know a class.
    against : (n,) array
        Log odds against the label of each row of the fold, in descending order.
    label : (n,) int array
        Index of the class of each row, in the same order.
    weight : (n,) array
        Replication count of each row, in the same order.
    """

    fitted: Fitted
    position: np.ndarray
    against: np.ndarray
    label: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, eq=False)
class CrossRanks:
    """Ranks of candidates among the rows of all folds, by the fits without each fold.

    Parameters
    ----------
    folds : sequence of Fold
        Fits, and scores of the rows that the fits do not know.
    estimate : {"predictive", "mean", "map", "mle"}
        Plug-in estimate of the parameters, or predictive.
    by_class : bool
        Whether a candidate is compared with rows of its own class only.
    """

    folds: Sequence[Fold]
    estimate: Estimate
    by_class: bool

    @classmethod
    def from_rows(
        cls,
        nb: Classifier,
        X: object,
        y: object,
        counted: CountedRows,
        estimate: Estimate,
        seed: int,
        *,
        by_class: bool,
    ) -> CrossRanks:
        """Fit a weighted classifier without each of ten folds of the rows, stratified by class.

        Parameters
        ----------
        nb : fitted WeightedNB
            Classifier of which copies are fitted.
        X, y : array-likes
            Rows and labels.
        counted : CountedRows
            The same rows, with the index of the class, and the replication count, of each row.
        estimate : {"predictive", "mean", "map", "mle"}
            Plug-in estimate of the parameters, or predictive.
        seed : int
            Seed of the folds.
        by_class : bool
            Whether a candidate is compared with rows of its own class only.
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
                folds.append(Fold(fitted, position, against[order], label[rows[order]], weight[rows[order]]))
                tick()
        return cls(folds, estimate, by_class)

    def ranks(self, X: object) -> np.ndarray:
        """Count (2, M, C) held-out rows whose label is at most as probable as label c of row m, and less probable.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (M, F)
            Candidate rows.
        """
        ranks = np.zeros(())
        for fold in self.folds:
            candidates = _log_odds(fold.fitted, fold.position, X, self.estimate)
            margin = _EQUAL * np.maximum(1.0, abs(np.where(np.isfinite(candidates), candidates, 0.0)))
            class_ranks = []
            for c in range(candidates.shape[1]):
                weight = np.where(fold.label == c, fold.weight, 0.0) if self.by_class else fold.weight
                total = np.concatenate([[0.0], np.cumsum(weight)])
                at_most = np.searchsorted(-fold.against, margin[:, c] - candidates[:, c], side="right")
                less = np.searchsorted(-fold.against, -margin[:, c] - candidates[:, c], side="left")
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
    joint = fitted.score(X, scoring.joint, estimate)
    return log_odds_against(np.where(position < 0, -np.inf, joint[:, position]))
