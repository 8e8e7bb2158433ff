"""Terms log p(x_t | class, D) of each feature and class: of new rows, and exact leave-one-out terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesnb._util.arrays import require_memory
from bayesnb.encoding import Rows
from bayesnb.fitted.state import (
    Classifier,
    Fitted,
    PriorOf,
    counted_rows,
    leave_one_out,
    log_class_without,
    require_average,
    require_leave_one_out,
)
from bayesnb.model import Estimate, JointLikelihood

AVERAGE = "average"
"""Name of the one term that an average of models is."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Log-likelihoods log p(x_t | class, D) of each row, class and term; their sum gives the class probabilities.

    Attributes
    ----------
    values : (N, C, T) array
        Terms in nats, without summands that all classes have in common; 0 where the cell is missing.
    log_class_prior : (N, C) array
        log P(class | D). Together with the sum of the terms it is log p(class, row | D).
    names : tuple of str
        Names of the terms. A term belongs to one column, or in a structure to a column given its parents. All word
        counts together are one term, and so is each member of an average of models.
    classes : (C,) array
        Labels of the classes.

    Examples
    --------
    The terms of a row and the class prior are its class probabilities.

    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, terms
    >>> nb = CategoricalNB().fit([["sun", "dry"], ["sun", "dry"], ["rain", "dry"]], ["out", "out", "in"])
    >>> row_terms = terms(nb, [["sun", "dry"]])
    >>> row_terms
    Terms(1 rows, 2 classes, 2 terms: 0, 1)
    >>> joint = np.exp(row_terms.joint())
    >>> np.allclose(joint / joint.sum(), nb.predict_proba([["sun", "dry"]]))
    True
    """

    values: np.ndarray
    log_class_prior: np.ndarray
    names: tuple[str, ...]
    classes: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def joint(self) -> np.ndarray:
        """Return (N, C) log p(class, row | D): `log_class_prior` plus the sum of the terms, up to a number per row.

        For an average of models, the members' probabilities are multiplied.
        """
        return np.asarray(self.log_class_prior + self.values.sum(axis=2))

    def __repr__(self) -> str:
        n, n_classes, n_terms = self.values.shape
        names = ", ".join(self.names[:6]) + ", …" * (n_terms > 6)
        return f"Terms({n} rows, {n_classes} classes, {n_terms} terms: {names})"


def terms(nb: Classifier, X: object, *, estimate: Estimate | None = None) -> Terms:
    """Compute the terms of log p(row | class, D) of new rows.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with exact leave-one-out scores, see `loo`.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows.
    estimate : {"predictive", "mean", "map", "mle"}, optional
        Estimate of the parameters: integrated out ("predictive"), or plugged in. Default: `nb.estimate`.

    Returns
    -------
    Terms
        Terms of a `WeightedNB` are weighted, and its log class prior includes the bias of the classes.

    Notes
    -----
    Features are independent given the class, or given the class and their parents, so that log-likelihoods add. Where
    missing cells of a structure are summed out, the logarithm of the sum is shared equally by the columns in it.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, terms
    >>> nb = CategoricalNB().fit([["sun", "dry"], ["sun", "dry"], ["rain", "dry"]], ["out", "out", "in"])
    >>> terms(nb, [["sun", "dry"]]).values.round(2)
    array([[[-1.1 ,  0.  ],
            [-0.29,  0.  ]]])
    """
    fitted = require_leave_one_out(nb, "terms")
    rows, n_rows = fitted.encode(X)
    return terms_of_rows(fitted, rows, n_rows, estimate)


def terms_of_rows(fitted: Fitted, rows: tuple[Rows, ...], n_rows: int, estimate: Estimate | None = None) -> Terms:
    """Compute the terms of encoded rows; see `terms`. The reading `estimate` is by default that of the state."""
    _require_memory(n_rows, fitted)
    return _label_terms(fitted, fitted.terms(rows, n_rows, estimate), fitted.log_class(estimate))


def loo_terms(
    nb: Classifier,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    estimate: Estimate | None = None,
    prior: PriorOf = "derived",
) -> Terms:
    """Compute exact leave-one-out terms log p(x_t | class, the other rows) of the rows that `nb` was fitted on.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with exact leave-one-out scores, see `loo`.
    X, y, sample_weight : array-likes
        Rows that `nb` has counted, all or some of them, with the labels and weights with which they were counted.
    estimate : {"predictive", "mean"}, optional
        Estimate of the parameters: integrated out ("predictive"), or plugged in. Default: `nb.estimate`.
    prior : {"derived", "fixed"}
        Treatment of a prior that is derived from the data: "derived" derives it from the other rows, as a refit does;
        "fixed" keeps `nb.prior_`.

    Returns
    -------
    Terms
        The terms of the row's class are those of the posterior without the row. So are the terms of the other classes
        where classes share parameters or a prior that is derived from the data.

    Raises
    ------
    ValueError
        If the counts show that the rows were not counted; if `estimate` is a mode or the MLE.
    MemoryError
        If the array would not fit into memory.

    Notes
    -----
    The terms are those of N refits. Weights, temperatures and calibration can be computed from this array, and so can
    `loo(nb, X, y).log_proba`, the normalised sum of the terms and the log class prior.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, loo, loo_terms
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["out", "out", "in", "out"]
    >>> nb = CategoricalNB().fit(X, y)
    >>> joint = loo_terms(nb, X, y).joint()
    >>> bool(np.allclose(np.exp(loo(nb, X, y).log_proba), np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)))
    True
    """
    fitted = require_leave_one_out(nb, "loo_terms")
    estimate = require_average(fitted.estimate if estimate is None else estimate)
    counted = counted_rows(fitted, X, y, sample_weight, "loo_terms")
    _require_memory(len(counted.label), fitted)
    by_blocks = replace(fitted, empirical_prior=fitted.by_blocks(fitted.empirical_prior))
    log_class = log_class_without(fitted, counted)
    values = fitted.weigh_terms(leave_one_out(by_blocks, counted, estimate, prior, JointLikelihood.terms), log_class)
    return _label_terms(fitted, values, log_class)


def _label_terms(fitted: Fitted, values: np.ndarray, log_class: np.ndarray) -> Terms:
    """Return weighted terms (N, C, T) with their names, and with log P(class) plus the biases of weights."""
    log_class = log_class if fitted.weights is None else log_class + fitted.weights.class_bias
    log_class = np.broadcast_to(log_class, values.shape[:2])
    return Terms(values, log_class, fitted.term_names, fitted.encoding.classes.array())


def _require_memory(n_rows: int, fitted: Fitted) -> None:
    """Raise MemoryError if the (n_rows, C, T) terms of a classifier would not fit into memory."""
    n_classes, members = len(fitted.encoding.classes), fitted.member_names
    n_terms = fitted.encoding.n_terms if members is None else len(members)
    require_memory(
        n_rows * n_classes * n_terms,
        f"Terms of {n_rows:,} rows, {n_classes} classes and {n_terms:,} columns",
        "Pass fewer rows at a time.",
    )
