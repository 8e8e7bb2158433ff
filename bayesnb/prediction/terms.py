"""Terms: what each feature says of each class, of new rows and, leave-one-out, of the rows that were counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesnb import scoring
from bayesnb._util.level_pair_counts import require_memory
from bayesnb.fitted import Classifier, Fitted
from bayesnb.model import Estimate, NaiveBayes
from bayesnb.selection.left_out import (
    TERMS,
    CountedRows,
    PriorOf,
    counted_rows,
    left_out,
    log_class_without,
    members_left_out,
    of_the_others,
    require_leave_one_out,
)

AVERAGE = "average"
"""What an average of models is called as one term."""


@dataclass(frozen=True, eq=False)
class Terms:
    """log p(x_t | class, D) of each row, class and term: what the class probabilities of a row are made of.

    Attributes
    ----------
    values : (N, C, T) array
        In nats, without what no class changes; 0 where the cell is missing.
    log_class_prior : (N, C) array
        log P(class | D): with the sum of the terms it is log p(class, row | D).
    names : tuple of str
        Of the terms: a column; of a structure a column given its parents; of counts that share a simplex all of them;
        of an average of models a member.
    classes : (C,) array

    Examples
    --------
    The terms of a row and the class prior are its class probabilities.

    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, terms
    >>> nb = CategoricalNB().fit([["sun", "dry"], ["sun", "dry"], ["rain", "dry"]], ["out", "out", "in"])
    >>> found = terms(nb, [["sun", "dry"]])
    >>> found
    Terms(1 rows, 2 classes, 2 terms: 0, 1)
    >>> joint = np.exp(found.joint())
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
        """(N, C) log p(class, row | D), without what no class changes; of an average of models the members' product."""
        return self.log_class_prior + self.values.sum(axis=2)

    def __repr__(self) -> str:
        n, n_classes, n_terms = self.values.shape
        names = ", ".join(self.names[:6]) + ", …" * (n_terms > 6)
        return f"Terms({n} rows, {n_classes} classes, {n_terms} terms: {names})"


def terms(nb: Classifier, X: Any, *, estimate: Estimate | None = None) -> Terms:
    """The terms of log p(row | class, D) of new rows.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        One that `loo` takes.
    X : (N, F) rows
    estimate : {"predictive", "mean", "map", "mle"}, optional
        Reading of the posterior; default: the estimator's.

    Returns
    -------
    Terms
        Of a `WeightedNB` they are weighted, and the log class prior has the bias of the classes in it.

    Notes
    -----
    Features are independent given the class, or given the class and their parents, so that log-likelihoods add. Where
    missing cells of a structure are summed out, the logarithm of the sum is shared equally by the columns in it.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, terms
    >>> nb = CategoricalNB().fit([["sun", "dry"], ["sun", "dry"], ["rain", "dry"]], ["out", "out", "in"])
    >>> found = terms(nb, [["sun", "dry"]])
    >>> found.values.round(2)
    array([[[-1.1 ,  0.  ],
            [-0.29,  0.  ]]])
    """
    fitted = require_leave_one_out(nb, "terms")
    if fitted.average is not None:
        joint = fitted.score_members(X, estimate, each=True)
        return _of_members(fitted, joint, np.broadcast_to(fitted.log_class(estimate), joint.shape[:2]))
    model, reading = fitted.read(estimate)
    rows, n = fitted.encode(X)
    _require_memory(n, fitted)
    values = scoring.terms_of_rows(fitted.encoding, _by_blocks(fitted, model), rows, n, reading)
    log_class = np.broadcast_to(scoring.log_class(model, reading), values.shape[:2])
    return Terms(_combined(fitted, values), log_class, fitted.encoding.term_map.names, fitted.encoding.classes.array())


def loo_terms(
    nb: Classifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    estimate: Estimate | None = None,
    prior: PriorOf = "derived",
) -> Terms:
    """Exact leave-one-out terms: log p(x_t | class, D without the row) of the rows that `nb` was fitted on.

    Parameters
    ----------
    nb, X, y, sample_weight, estimate, prior
        As for `bayesnb.loo`.

    Returns
    -------
    Terms
        The terms of the row's own class are those of the posterior without it; those of other classes too, where
        classes share parameters or a prior that is derived from the data.

    Raises
    ------
    ValueError
        As `bayesnb.loo`.
    MemoryError
        If the array would not fit into memory.

    Notes
    -----
    They are the terms of N refits. Weights, temperatures and calibration are functions of this array, and so is
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
    estimate = of_the_others(fitted.estimate if estimate is None else estimate)
    counted = counted_rows(fitted, X, y, sample_weight, "loo_terms")
    _require_memory(len(counted.label), fitted)
    return loo_terms_of(fitted, counted, estimate, prior)


def loo_terms_of(fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf = "derived") -> Terms:
    """Compute `loo_terms` of rows that are known to be counted."""
    log_class, average, encoding = log_class_without(fitted, counted), fitted.average, fitted.encoding
    if average is not None:
        return _of_members(fitted, members_left_out(average, counted, estimate, prior, each=True), log_class)
    by_blocks = replace(fitted, empirical_prior=_by_blocks(fitted, fitted.empirical_prior))
    values = left_out(by_blocks, counted, estimate, prior, TERMS)
    classes = encoding.classes.array()
    return Terms(_combined(fitted, values), _biased(fitted, log_class), encoding.term_map.names, classes)


def term_names(fitted: Fitted) -> tuple[str, ...]:
    """Return (T,) what each term of a classifier is about: columns, or the members of an average of models."""
    return fitted.encoding.term_map.names if fitted.average is None else fitted.average.names


def _by_blocks(fitted: Fitted, model: NaiveBayes) -> NaiveBayes:
    """Return the model without weights, where terms of its blocks are combined before they are weighted."""
    return model if fitted.encoding.term_map.is_identity else replace(model, weights=None)


def _combined(fitted: Fitted, values: np.ndarray) -> np.ndarray:
    """Return (N, C, T) weighted terms of the classifier from those of `_by_blocks`."""
    terms_of, weights = fitted.encoding.term_map, fitted.prior.weights
    if terms_of.is_identity or weights is None:
        return terms_of.combine(values)
    sizes = [len(columns.term_names) for columns in fitted.encoding.blocks]
    return terms_of.combine(values) * terms_of.gather(weights.term_weights(sizes))


def _of_members(fitted: Fitted, joint: np.ndarray, log_class: np.ndarray) -> Terms:
    """Return the terms of an average of models, from log p(class, row) of each (N, C, M)."""
    values = joint - log_class[..., None]
    if fitted.weights is not None:
        values = values * fitted.weights.blocks[0]
    return Terms(values, _biased(fitted, log_class), term_names(fitted), fitted.encoding.classes.array())


def _biased(fitted: Fitted, log_class: np.ndarray) -> np.ndarray:
    """With the bias of the weights, if there are any."""
    return log_class if fitted.prior.weights is None else log_class + fitted.prior.weights.class_bias


def _require_memory(n_rows: int, fitted: Fitted) -> None:
    n_classes, n_terms = len(fitted.encoding.classes), fitted.encoding.n_terms
    require_memory(
        n_rows * n_classes * n_terms,
        f"Terms of {n_rows:,} rows, {n_classes} classes and {n_terms:,} columns",
        "Take some of the rows at a time.",
    )
