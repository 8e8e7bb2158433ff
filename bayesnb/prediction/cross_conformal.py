"""Cross-conformal ranks: each row is held against by a fit without its fold, and so are the candidates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesnb import scoring
from bayesnb._util.progress import progress
from bayesnb._util.rows import take_rows
from bayesnb.fitted import Fitted
from bayesnb.model import Estimate
from bayesnb.prediction.conformity import log_odds_against
from bayesnb.prediction.weights import Weighed

N_FOLDS = 10
GUARANTEE = (
    "Cross-conformal: weights and structure are fitted anew without each of ten folds. Where a probability of at most "
    "ε of missing the label is asked for, at most 2ε is guaranteed, and about ε is what simulations show (Vovk 2015)."
)
_EQUAL = 1e-9


class Fold(NamedTuple):
    """A fit without the rows of one fold, and the scores of these rows.

    Parameters
    ----------
    fitted : Fitted
    position : (C,) int array
        Where the classes of the classifier are among those of the fit; -1 if it does not know one.
    against : (n,) array
        Log odds against the labels of the rows of the fold, in descending order.
    label : (n,) int array
        Indices of their labels.
    weight : (n,) array
        Their replication counts.
    """

    fitted: Fitted
    position: np.ndarray
    against: np.ndarray
    label: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, eq=False)
class CrossRanks:
    """How well candidates fit, in the order of the scores of rows in other folds than their fits know.

    Parameters
    ----------
    folds : sequence of Fold
    estimate : {"predictive", "mean", "map", "mle"}
    by_class : bool
        Whether a candidate is held against rows of its own class only.
    """

    folds: Sequence[Fold]
    estimate: Estimate
    by_class: bool

    def ranks(self, X: Any) -> np.ndarray:
        """Count (2, M, C) rows that fit at most as well as row m with label c, and rows that fit worse.

        Parameters
        ----------
        X : (M, F) candidates
        """
        found: Any = 0.0
        for fold in self.folds:
            candidates = _log_odds(fold, X, self.estimate)
            margin = _EQUAL * np.maximum(1.0, abs(np.where(np.isfinite(candidates), candidates, 0.0)))
            of_class = []
            for c in range(candidates.shape[1]):
                weight = np.where(fold.label == c, fold.weight, 0.0) if self.by_class else fold.weight
                total = np.concatenate([[0.0], np.cumsum(weight)])
                at_most = np.searchsorted(-fold.against, margin[:, c] - candidates[:, c], side="right")
                less = np.searchsorted(-fold.against, -margin[:, c] - candidates[:, c], side="left")
                of_class.append((total[at_most], total[less]))
            found = found + np.moveaxis(np.array(of_class), 0, -1)
        return found


def cross_ranks(
    nb: Weighed,
    X: Any,
    y: Any,
    label: np.ndarray,
    weight: np.ndarray,
    estimate: Estimate,
    seed: int,
    *,
    by_class: bool,
) -> CrossRanks:
    """Fit a weighted classifier without each of ten folds of the rows, stratified by class.

    Parameters
    ----------
    nb : fitted WeightedNB
        Copies of it are fitted.
    X, y : rows and labels
    label, weight : (N,) arrays
        Index of the class, and replication count, of each row.
    estimate : {"predictive", "mean", "map", "mle"}
    seed : int
        Of the folds.
    by_class : bool
    """
    fold_of, folds = random_folds(label, seed), []
    with progress("conformal", N_FOLDS) as tick:
        for k in range(N_FOLDS):
            rows = np.flatnonzero((fold_of == k) & (weight > 0))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has told
                again = nb.refit(X, y, weight * (fold_of != k))
                known = {value: c for c, value in enumerate(again.classes_.tolist())}
                position = np.array([known.get(value, -1) for value in nb.classes_.tolist()])
                fold = Fold(again.fitted_, position, np.empty(0), label[rows], weight[rows])
                against = _log_odds(fold, take_rows(X, rows), estimate)[np.arange(len(rows)), label[rows]]
            falling = np.argsort(-against, kind="stable")
            folds.append(
                fold._replace(against=against[falling], label=label[rows][falling], weight=weight[rows][falling])
            )
            tick()
    return CrossRanks(folds, estimate, by_class)


def random_folds(label: np.ndarray, seed: int) -> np.ndarray:
    """Draw (N,) the fold of each row, stratified by class."""
    order = np.random.default_rng(seed).permutation(len(label))
    fold_of = np.empty(len(label), int)
    fold_of[order[np.argsort(label[order], kind="stable")]] = np.arange(len(label)) % N_FOLDS
    return fold_of


def _log_odds(fold: Fold, X: Any, estimate: Estimate) -> np.ndarray:
    """Return (M, C) log odds against each class of the classifier, by the fit without a fold."""
    joint = fold.fitted.score(X, scoring.joint, estimate)
    return log_odds_against(np.where(fold.position < 0, -np.inf, joint[:, fold.position]))
