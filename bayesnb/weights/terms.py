"""Terms of log-likelihoods, of new rows and by fits that do not know the rows, and their fitted weights.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s)

Terms by halves are reference values r of each fit plus differences δ, ℓ = r + δ. Up to 500 terms δ is an array and
r = 0. For thousands of terms δ is sparse: in most rows most words are absent, so that a term mostly has the value of an
absent word, and scores and gradients cost as many operations as δ has entries. `Contrasts` are dense terms less those
of one class, D = C - 1 numbers in place of C.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int, Num
from scipy.special import logsumexp, ndtr, ndtri

from bayesnb import kernels
from bayesnb._util.arguments import GREATEST, Seed, require_probability, shown
from bayesnb._util.arrays import require_memory
from bayesnb._util.warnings import warn
from bayesnb.encoding import Encoding, Levels, Rows
from bayesnb.fitted import scoring
from bayesnb.fitted.counting import require_numbers
from bayesnb.fitted.state import (
    Classifier,
    Fitted,
    PriorOf,
    counted_rows,
    leave_one_out,
    log_class_without,
    require_average,
    require_fitted,
    require_leave_one_out,
    score_new_rows,
)
from bayesnb.kernels import Output
from bayesnb.model import Estimate, JointLikelihood, TermWeights
from bayesnb.uncertainty.given_draws import read_sites, require_sites
from bayesnb.uncertainty.score_moments import mixture_quantiles

# == Terms log p(x_t | class, D) of each feature and class: of new rows, and exact leave-one-out terms

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

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
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
        If the counts show that the rows were not counted; if `estimate` is a mode or the MLE; if the array would not
        fit into memory.

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
    fitted.require_no_experts("loo_terms", "which leave no row out. Use nb.expected_log_loss_.")
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
    """Raise ValueError if the (n_rows, C, T) terms of a classifier would not fit into memory."""
    n_classes, members = len(fitted.encoding.classes), fitted.member_names
    n_terms = fitted.encoding.n_terms if members is None else len(members)
    require_memory(
        n_rows * n_classes * n_terms,
        f"Terms of {n_rows:,} rows, {n_classes} classes and {n_terms:,} columns",
        "Pass fewer rows at a time.",
    )


# == Terms of rows by fits that do not know the rows, and the log score of weights of the terms ====

MOST_TERMS = 500
"""Number of terms up to which terms are arrays, and Hessians have that many rows."""
_CELLS_IN_CACHE = 2**17
# With fewer values a Hessian costs less than a mistake of a quadratic model, which fails where rows are separable.
_MANY_VALUES = 2**17
_ROW_FIELDS = "log_class", "log_length", "label", "weight", "row", "fit"


class TermBlock(NamedTuple):
    """Terms of n scored rows by one fit.

    Parameters
    ----------
    position : (n,) int array
        Positions of the rows among all A scored rows.
    fit : int
        Number of the fit, from 0 on.
    log_class : (C,) array
        log P(class) in nats, by this fit.
    values : (n, C, T) array
        log p(x_t | class) in nats, by this fit.
    """

    position: Int[np.ndarray, "n"]
    fit: int
    log_class: Float[np.ndarray, "C"]
    values: Float[np.ndarray, "n C T"]


@dataclass(frozen=True, eq=False)
class CrossTerms:
    """Terms of N rows, each scored by S fits that do not know the row: A = S·N scored rows, the first split first.

    Parameters
    ----------
    log_class : (A, C) array
        log P(class) in nats.
    log_length : (A,) array
        log((t + 1)/(t₀ + 1)) of a row that is t draws from one simplex, t₀ the length of a typical row; else 0.
    label : (A,) int array
        Index of the class of each row.
    weight : (A,) array
        Replication counts, divided by S.
    row : (A,) int array
        Position of each row among the N rows.
    fit : (A,) int array
        Number of the fit, of 2S, that has scored each row.
    reference : (K, C, T) array
        Values in nats that most rows have, for each of the K fits; 0 of terms of draws, and of dense terms.
    difference : (C, A, T) array, or tuple of C sparse arrays (A, T)
        log p(x_t | class) minus the reference. Sparse arrays have entries at the same places in all classes.
    """

    log_class: Float[np.ndarray, "A C"]
    log_length: Float[np.ndarray, "A"]
    label: Int[np.ndarray, "A"]
    weight: Num[np.ndarray, "A"]
    row: Int[np.ndarray, "A"]
    fit: Int[np.ndarray, "A"]
    reference: Float[np.ndarray, "K C T"]
    difference: Any

    @classmethod
    def from_blocks(
        cls, blocks: Iterable[TermBlock], of_draws: np.ndarray, n_classes: int, *, is_sparse: bool, **row_fields: Any
    ) -> Self:
        """Collect blocks of terms into one object with A scored rows in order of their positions.

        Parameters
        ----------
        blocks : iterable of TermBlock
            Blocks of scored rows, each row in one block.
        of_draws : (T,) bool array
            Whether a term is of rows that are several draws from one simplex.
        n_classes : int
            Number of classes, C.
        is_sparse : bool
            Whether to keep differences from the reference: from the median of the first block of each fit.
        row_fields : (A,) arrays
            The fields `log_length`, `label`, `weight`, `row` and `fit`.
        """
        n_scored, n_terms = len(row_fields["label"]), len(of_draws)
        log_class = np.empty((n_scored, n_classes))
        reference = np.zeros((int(row_fields["fit"].max()) + 1, n_classes, n_terms))
        by_class: Any = np.empty((n_classes, 0 if is_sparse else n_scored, n_terms))
        has_reference, positions, by_block = set[int](), [], []
        for block in blocks:
            log_class[block.position] = block.log_class
            if not is_sparse:
                by_class[:, block.position] = block.values.swapaxes(0, 1)
                continue
            if block.fit not in has_reference:
                has_reference.add(block.fit)
                middle = len(block.values) // 2
                median = np.partition(block.values, middle, axis=0)[middle]
                reference[block.fit] = np.where(of_draws, 0.0, median)
            difference = (block.values - reference[block.fit]).swapaxes(0, 1)
            at = np.nonzero(difference.any(axis=0))
            positions.append(block.position)
            by_block.append([sp.csr_array((d[at], at), d.shape) for d in difference])
        if is_sparse:
            order = np.argsort(np.concatenate(positions))
            by_class = tuple(sp.vstack(matrices)[order] for matrices in zip(*by_block, strict=True))
        return cls(**row_fields, log_class=log_class, reference=reference, difference=by_class)

    @property
    def are_many(self) -> bool:
        """Whether dense terms have 2^17 values or more, so that products with all of them take most of the time."""
        return not self.is_sparse and self.contrasts.values.size >= _MANY_VALUES

    @property
    def is_sparse(self) -> bool:
        """Whether the terms are stored as sparse differences from a reference row of each fit."""
        return isinstance(self.difference, tuple)

    @property
    def values(self) -> Float[np.ndarray, "A C T"]:
        """(A, C, T) terms as one array; only where terms are dense."""
        return np.asarray(self.difference).swapaxes(0, 1)

    @cached_property
    def contrasts(self) -> Contrasts:
        """Dense terms less those of one class; classes without rows, whose log P(class) is -inf, are left out."""
        classes = np.flatnonzero(np.isfinite(self.log_class).all(axis=0))
        indicator, values = np.eye(self.log_class.shape[1])[classes], np.asarray(self.difference)
        return Contrasts(
            of_bias=indicator[1:] - indicator[0],
            base=(self.log_class[:, classes[1:]] - self.log_class[:, classes[:1]]).T,
            values=values[classes[1:]] - values[classes[0]],
            is_label=self.label == classes[1:, None],
            weight=self.weight[:, None],
        )

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return int(self.row.max()) + 1

    def take(self, index: np.ndarray) -> Self:
        """Return a copy of sparse terms that has only the scored rows at the positions `index`."""
        rows = {name: getattr(self, name)[index] for name in _ROW_FIELDS}
        return replace(self, **rows, difference=tuple(matrix[index] for matrix in self.difference))

    def with_exponent(self, exponent: float, of_draws: Bool[np.ndarray, "T"]) -> Self:
        """Return a copy whose terms in `of_draws`, of count rows, are multiplied by ((t + 1)/(t₀ + 1))^-`exponent`.

        With exponent 0 the object itself is returned.
        """
        if not exponent:
            return self
        power = np.exp(-exponent * self.log_length)
        if not self.is_sparse:
            return replace(self, difference=self.difference * np.where(of_draws, power[:, None], 1.0))
        row, term = self.difference[0].tocoo().coords
        factor = np.where(of_draws[term], power[row], 1.0)
        scaled = (sp.csr_array((d.data * factor, d.indices, d.indptr), d.shape) for d in self.difference)
        return replace(self, difference=tuple(scaled))

    def sum_groups(self, group: Int[np.ndarray, "T"]) -> Self:
        """Return a copy with dense terms, each the sum of the terms of one group; `group` is the group of each term."""
        indicator = np.eye(group.max() + 1)[group]
        reference = self.reference @ indicator
        sums = [reference[self.fit, c] + matrix @ indicator for c, matrix in enumerate(self.difference)]
        return replace(self, reference=np.zeros_like(reference), difference=np.stack(sums))

    def averaged(self) -> Self:
        """Return a copy with one dense term, the log of the mean over the T terms of exp(term): averaged models."""
        means = logsumexp(self.difference, axis=-1, keepdims=True) - np.log(self.reference.shape[-1])
        return replace(self, reference=self.reference[..., :1], difference=means)

    def scores(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        """Compute (A, C) scores b_c + log P(c) + Σ_t w_t ℓ_ct from biases b (C,) and weights w (T,)."""
        differences = np.stack([matrix @ weight for matrix in self.difference], axis=-1)
        return np.asarray(bias + self.log_class + (self.reference @ weight)[self.fit] + differences)

    def log_proba(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        """Compute (A, C) log P(c | x), the log-softmax of the scores, from biases (C,) and weights (T,)."""
        scores = self.scores(bias, weight)
        return np.asarray(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))

    def log_proba_of_label(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A"]:
        """Compute (A,) log P(label | row) of each scored row, from biases (C,) and weights (T,)."""
        return np.asarray(self.log_proba(bias, weight)[np.arange(len(self.label)), self.label])

    def log_losses(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "N"]:
        """Compute (N,) losses -log P(label | row), averaged over the S fits, from biases (C,) and weights (T,)."""
        return np.asarray(np.mean(-self.log_proba_of_label(bias, weight).reshape(-1, self.n_rows), axis=0))

    def log_score(self, bias: np.ndarray, weight: np.ndarray) -> tuple[float, Float[np.ndarray, "P"]]:
        """Compute the log score Σ_i v_i log P(y_i | x_i), and its gradient (C + T,) by biases and weights."""
        log_proba = self.log_proba(bias, weight)
        is_label = self.label[:, None] == np.arange(len(bias))
        rest = self.weight[:, None] * (is_label - np.exp(log_proba))
        return float(self.weight @ log_proba[is_label]), self._gradient(rest)

    def _gradient(self, of_scores: Float[np.ndarray, "A C"]) -> Float[np.ndarray, "P"]:
        """Return the gradient (C + T,) by biases and weights, from the gradient by the scores of the rows."""
        by_fit = np.stack([np.bincount(self.fit, r, len(self.reference)) for r in of_scores.T], axis=-1)
        slope = np.einsum("kc,kct->t", by_fit, self.reference)
        slope += sum(matrix.T @ of_scores[:, c] for c, matrix in enumerate(self.difference))
        return np.concatenate([of_scores.sum(axis=0), slope])

    def log_shares(
        self, bias: np.ndarray, weight: np.ndarray, unit: Int[np.ndarray, "N"]
    ) -> tuple[Float[np.ndarray, "C P"], Float[np.ndarray, "C C"]]:
        """Differentiate the log shares of the classes, means of P(c | x), that weights imply for the rows.

        Returns
        -------
        slope : (C, C + T) array
            Derivatives by biases and weights.
        covariance : (C, C) array
            Covariance from the choice of the rows, by their units (N,).
        """
        proba = np.exp(self.log_proba(bias, weight))
        share = np.maximum(self.weight @ proba, 1e-300)
        by_class = (self.weight / share[:, None] * proba.T)[..., None] * (np.eye(len(share))[:, None] - proba)
        excess = np.zeros((unit.max() + 1, len(share)))
        np.add.at(excess, unit[self.row], self.weight[:, None] * (proba / share - 1 / self.weight.sum()))
        return np.stack([self._gradient(of_scores) for of_scores in by_class]), excess.T @ excess

    def curvature_by_term(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "T"]:
        """Compute (T,) Σ_i v_i Var(ℓ_ct) over c ~ P(c | x_i), diagonal entries of `curvature`, for sparse terms."""
        proba, fit, row_weight = np.exp(self.log_proba(bias, weight)), self.fit, self.weight
        curvature = np.zeros(self.reference.shape[-1])
        for k, reference in enumerate(self.reference):  # At first, all rows are taken to have the reference.
            p, v = proba[fit == k], row_weight[fit == k]
            covariance = np.diag(v @ p) - (p.T * v) @ p
            curvature += np.einsum("ct,cd,dt->t", reference, covariance, reference)
        row, term = self.difference[0].tocoo().coords
        reference = self.reference[fit[row], :, term]
        values = reference + np.stack([matrix.data for matrix in self.difference], axis=-1)
        excess = _variance(proba[row], values) - _variance(proba[row], reference)
        return np.asarray(curvature + np.bincount(term, row_weight[row] * excess, minlength=len(curvature)))


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Dense terms and class probabilities less those of class 0: D = C - 1 scores, those of a logistic regression.

        s_d(x) = β_d + log(π_d/π_0) + Σ_t w_t (ℓ_dt(x) - ℓ_0t(x)),    P(d | x) = exp(s_d)/(1 + Σ_e exp(s_e))

    Parameters
    ----------
    of_bias : (D, C) array
        Matrix of contrasts: β = `of_bias` @ b.
    base : (D, A) array
        log(π_d/π_0) in nats.
    values : (D, A, T) array
        Terms less those of class 0, in nats.
    is_label : (D, A) array of bool
        Whether d is the class of the row.
    weight : (A, R) array
        Weights of the rows in R log scores.
    """

    of_bias: Float[np.ndarray, "D C"]
    base: Float[np.ndarray, "D A"]
    values: Float[np.ndarray, "D A T"]
    is_label: Bool[np.ndarray, "D A"]
    weight: Num[np.ndarray, "A R"]

    def take(self, rows: Int[np.ndarray, "n"], weight: Float[np.ndarray, "n R"], dtype: type[np.floating]) -> Self:
        """Return a copy that has only the given rows, with new weights, and with numbers of a type."""
        base, values = self.base[:, rows].astype(dtype), self.values[:, rows].astype(dtype)
        return replace(self, base=base, values=values, is_label=self.is_label[:, rows], weight=weight.astype(dtype))

    def probabilities(self, points: Float[np.ndarray, "Q R"]) -> tuple[np.ndarray, np.ndarray]:
        """Compute (D, A, R) class probabilities and (A, R) log P(label | row), from R columns (β, w)."""
        bias, weight = np.split(points.astype(self.values.dtype, copy=False), [len(self.base)])
        scores = (self.values.reshape(-1, len(weight)) @ weight).reshape(*self.base.shape, -1)
        scores += self.base[..., None]
        scores += bias[:, None]
        of_label = (self.is_label[..., None] * scores).sum(axis=0)
        top = scores.max(axis=0, initial=0.0)
        scores -= top
        np.exp(scores, out=scores)
        total = scores.sum(axis=0) + np.exp(-top)
        scores /= total
        return scores, of_label - top - np.log(total)

    def log_score(self, points: Float[np.ndarray, "Q R"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute (R,) log scores Σ_i v_i log P(y_i | x_i), their (D + T, R) gradients, and class probabilities."""
        proba, log_proba = self.probabilities(points)
        rest = (self.is_label[..., None] - proba) * self.weight
        slope = self.values.reshape(-1, self.values.shape[-1]).T @ rest.reshape(-1, rest.shape[-1])
        return (self.weight * log_proba).sum(axis=0, dtype=float), np.vstack([rest.sum(axis=1), slope]), proba

    def curvature(self, proba: Float[np.ndarray, "D A"]) -> Float[np.ndarray, "Q Q"]:
        """Compute minus the (D + T, D + T) Hessian of the log score by (β, w), for one column of weights."""
        n_scores, n_rows, n_terms = self.values.shape
        curvature = np.zeros((n_scores + n_terms, n_scores + n_terms))
        of_bias, mixed = np.split(curvature[:n_scores], [n_scores], axis=1)
        of_weight = curvature[n_scores:, n_scores:]
        size = 1 + _CELLS_IN_CACHE // (n_scores * n_terms)
        for block in (slice(start, start + size) for start in range(0, n_rows, size)):
            p, v = proba[:, block], self.weight[block, 0]
            mass, mean = v * p, np.einsum("da,dat->at", p, self.values[:, block])
            centered = self.values[:, block] - mean
            of_bias += np.diag(mass.sum(axis=1)) - mass @ p.T
            mixed += np.einsum("da,dat->dt", mass, centered)
            centered *= np.sqrt(mass)[..., None]
            mean *= np.sqrt(v * np.maximum(1 - p.sum(axis=0), 0.0))[:, None]
            of_weight += np.tensordot(centered, centered, ((0, 1), (0, 1))) + mean.T @ mean
        curvature[n_scores:, :n_scores] = mixed.T
        return curvature


def _variance(proba: Float[np.ndarray, "E C"], values: Float[np.ndarray, "E C"]) -> Float[np.ndarray, "E"]:
    """Compute (E,) variances over the classes of `values` under the class probabilities `proba`."""
    mean = (proba * values).sum(axis=-1, keepdims=True)
    return np.asarray((proba * (values - mean) ** 2).sum(axis=-1))


# == Weights of the terms of a classifier, the evidence for them, and draws of them ================

CLASS_BIAS, WEIGHT = "class_bias", "weight"
TEMPERATURES = "temperature", "dependence_temperature"
_LEAST_PROBABILITY = 0.01
_DRAWS_OF_TABLE = 4_000
_OLDER = "are from a file of an older version of bayesnb, without their posterior. Fit them again by nb.weigh(X, y)."
_NUMBERS = (
    "temperature", "shrinkage", "exponent", "log_length", "log_loss", "plain_log_loss",
    "dependence_temperature", "dependence_shrinkage",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class WeightPath:
    """Weights of terms under each τ that was compared.

    Attributes
    ----------
    log_evidence : (K,) array
        Laplace's evidence for each τ.
    shrinkage : (K, G) array
        τ of each group of terms: of margins, and of dependences if there are any.
    temperature, temperature_sd : (K, G) arrays
        Temperatures T of each group, and their posterior standard deviations.
    weight, sd : (K, T) arrays
        Weights T + τ d of rows of typical length, and their posterior standard deviations.
    bias : (K, C) array
        Biases of the classes; empty in files of older versions.
    covariance : (K', C + T, C + T) or (K', C + G, C + G) array
        Posterior covariance of biases and weights under each of the K' τ that are `probable`; or of biases and
        temperatures, from which the deviations of weights are independent, as those of thousands of terms are taken to
        be. Empty in files of older versions.
    log_bound : (K',) array
        Lower bounds of the log evidence by the normal distributions with these covariances, or Laplace's evidence.
        Draws have each τ in proportion to its exponential.
    share_slope : (C, C + T) array
        Derivatives, by biases and weights, of the log shares of the classes that they imply for the rows.
    share_covariance : (C, C) array
        Covariance of the log shares from the choice of the rows.
    """

    shrinkage: np.ndarray
    log_evidence: np.ndarray
    temperature: np.ndarray
    temperature_sd: np.ndarray
    weight: np.ndarray
    sd: np.ndarray
    bias: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    covariance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    log_bound: np.ndarray = field(default_factory=lambda: np.zeros(0))
    share_slope: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    share_covariance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        for name in ("shrinkage", "temperature", "temperature_sd"):
            if np.ndim(values := getattr(self, name)) == 1:  # in files of versions that had one group
                object.__setattr__(self, name, values[:, None])

    def check(self, n_classes: int, n_terms: int, has_dependence: bool) -> None:
        """Raise ValueError unless the arrays have consistent shapes and no standard deviation is negative."""
        n, n_groups = np.size(self.log_evidence), 1 + has_dependence
        shapes = {"log_evidence": (n,), "weight": (n, n_terms), "sd": (n, n_terms)}
        shapes |= {"covariance": (0, 0, 0), "log_bound": (0,)}
        shapes |= dict.fromkeys(("bias", "share_slope", "share_covariance"), (0, 0))
        if np.size(self.covariance):
            size = n_classes + (n_groups if np.shape(self.covariance)[1:2] == (n_classes + n_groups,) else n_terms)
            probable = len(self.probable)
            shapes |= {"bias": (n, n_classes), "covariance": (probable, size, size), "log_bound": (probable,)}
            shapes |= {"share_slope": (n_classes, n_classes + n_terms), "share_covariance": (n_classes, n_classes)}
        for name in (each.name for each in fields(self)):
            require_numbers(f"weights_.path.{name}", getattr(self, name), shapes.get(name, (n, n_groups)))
        if n == 0 or (self.sd < 0).any() or (self.temperature_sd < 0).any():
            raise ValueError("weights_.path must have at least one shrinkage τ, and no negative standard deviation.")

    def probability(self) -> np.ndarray:
        """Return (K,) posterior probabilities of the K values of τ, under equal prior probabilities."""
        odds = np.exp(self.log_evidence - self.log_evidence.max())
        return np.asarray(odds / odds.sum())

    @property
    def probable(self) -> np.ndarray:
        """(K',) positions of the τ of posterior probability .01 or more, at which weights are drawn."""
        return np.flatnonzero(self.probability() >= _LEAST_PROBABILITY)


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of the terms of a classifier, and the bias of its classes.

    Attributes
    ----------
    names : tuple of str
        Name of each term: a column, a dependence of a column on its parents, or a member of an average.
    weight : (T,) array
        Weight of each term.
    classes : Levels
        Classes of `class_bias`.
    class_bias : (C,) array
        Bias of each class, in nats.
    temperature : float
        Common mean of the weights of margins, or of all terms where none is a dependence.
    shrinkage : float
        τ: how far these weights may be from the temperature; 0 is temperature scaling.
    of_draws : (T,) array of bool
        Whether a term is of word counts: the weight is then `weight` · (t + 1)^-`exponent` for a row of t words.
    exponent : float
        Exponent β of the length.
    log_length : float
        Mean of log(t + 1) over the rows that the weights were fitted to; 0 without such terms.
    n_rows : int
        Number of rows that the weights were fitted to.
    log_loss, plain_log_loss : float
        Expected log loss of new rows, in nats: with the weights, corrected for overfitting, and without weights. Both
        come from fits to half of the rows, and are therefore rather too high.
    path : WeightPath or None
        The weights under each τ that was compared; None in files of older versions.
    dependence : (T,) array of bool
        Whether a term is the dependence of a column on its parents; default: none.
    dependence_temperature, dependence_shrinkage : float
        Temperature and τ of the dependences.

    Examples
    --------
    Weights that were fitted on other rows:

    >>> from bayesnb import GaussianNB, WeightedNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> weights = WeightedNB(GaussianNB()).fit(X[::2], y[::2]).weights_
    >>> weights
    Weights(4 terms around 0.679, by halves of 75 rows)
    >>> WeightedNB(GaussianNB(), weights=weights).fit(X[1::2], y[1::2]).weights_ is weights
    True
    """

    names: tuple[str, ...]
    weight: np.ndarray
    classes: Levels
    class_bias: np.ndarray
    temperature: float
    shrinkage: float
    of_draws: np.ndarray
    exponent: float
    log_length: float
    n_rows: int
    log_loss: float
    plain_log_loss: float
    path: WeightPath | None = None
    dependence: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    dependence_temperature: float = 0.0
    dependence_shrinkage: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.dependence):
            object.__setattr__(self, "dependence", np.zeros(len(self.names), bool))

    def __repr__(self) -> str:
        n = len(self.names)
        return f"Weights({n} term{'s' * (n != 1)} around {self.temperature:.3g}, by halves of {self.n_rows} rows)"

    def check(self) -> None:
        """Raise ValueError unless the numbers and the shapes of all arrays agree with the names and classes."""
        self.classes.check()
        n_terms = len(self.names)
        require_numbers("weights_.weight", self.weight, (n_terms,))
        require_numbers("weights_.class_bias", self.class_bias, (len(self.classes),))
        for name in ("of_draws", "dependence"):
            if (mask := getattr(self, name)).dtype != bool or mask.shape != (n_terms,):
                kind = f"{mask.dtype} {mask.shape}"
                raise ValueError(f"weights_.{name} must be bool of shape ({n_terms},); it is {kind}.")
        for name in _NUMBERS:
            require_numbers(f"weights_.{name}", np.float64(getattr(self, name)), ())
        for name in ("weight", "class_bias", *_NUMBERS):
            if (np.abs(getattr(self, name)) > GREATEST).any():
                raise ValueError(f"weights_.{name} must have values between -{GREATEST:g} and {GREATEST:g}.")
        if self.path is not None:
            self.path.check(len(self.classes), n_terms, bool(self.dependence.any()))

    @property
    def biased(self) -> bool:
        """Whether classes have a bias, or `shrinkage` is above 0, so that weights may differ from the temperature."""
        return bool(self.shrinkage) or bool(self.class_bias.any())

    @property
    def has_posterior(self) -> bool:
        """Whether the weights have a posterior to draw from; those in files of older versions have none."""
        return self.path is not None and len(self.path.covariance) > 0

    @property
    def typical(self) -> np.ndarray:
        """(T,) factor that makes `weight` the weight T + τ d of a row of typical length, e^`log_length` - 1 draws.

        It is e^(-`exponent` · `log_length`) for terms of count rows, and 1 for others.
        """
        return np.where(self.of_draws, np.exp(-self.exponent * self.log_length), 1.0)

    def align_bias(self, classes: Levels, bias: np.ndarray) -> np.ndarray:
        """Return biases (…, C') of the given classes from `bias` (…, C) of the weights' classes; 0 of new classes.

        Raises
        ------
        ValueError
            If the weights have biases, and all of the given classes are new.
        """
        position = self.classes.index(classes.values)
        if self.class_bias.any() and (position < 0).all():
            fitted, present = (shown(list(levels.values)[:8]) for levels in (self.classes, classes))
            raise ValueError(
                f"weights were fitted for the classes {fitted}, none of which the classifier has; its classes are "
                f"{present}. Pass weights for the same labels; 1 and '1' are different labels."
            )
        return np.where(position < 0, 0.0, bias[..., np.maximum(position, 0)])

    def draw(self, n: int, seed: int) -> WeightDraws:
        """Draw biases and weights jointly from their posterior, n times; it is a mixture of normals, one for each τ.

        Raises
        ------
        ValueError
            If the weights are from a file of an older version, without the posterior.

        Examples
        --------
        >>> from bayesnb import GaussianNB, WeightedNB
        >>> from sklearn.datasets import load_iris
        >>> weights = WeightedNB(GaussianNB()).fit(*load_iris(return_X_y=True)).weights_
        >>> weights.draw(100, seed=0).weight.shape
        (100, 4)
        """
        if (path := self.path) is None or not self.has_posterior:
            raise ValueError(f"the weights {_OLDER}")
        rng, n_classes = np.random.default_rng([seed, 3]), len(self.classes)
        draw_normal = partial(rng.multivariate_normal, check_valid="ignore", method="eigh")
        below = np.cumsum(np.exp(path.log_bound - path.log_bound.max()))
        # The τ of a draw is that at its place, equally spaced but in random order, among the probabilities.
        place = (rng.permutation(n) + rng.random(n)) / n * below[-1]
        component = np.searchsorted(below, place).clip(max=len(below) - 1)
        bias, weight, log_share = (np.empty((n, size)) for size in (n_classes, len(self.names), n_classes))
        has_weights = path.covariance.shape[1] == n_classes + len(self.names)
        position = n_classes + (np.arange(len(self.names)) if has_weights else self.dependence.astype(int))
        for k, (of_path, covariance) in enumerate(zip(path.probable, path.covariance, strict=True)):
            drawn = np.flatnonzero(component == k)
            excess = draw_normal(np.zeros(len(covariance)), covariance, len(drawn))
            bias[drawn] = path.bias[of_path] + excess[:, :n_classes]
            weight[drawn] = path.weight[of_path] + excess[:, position]
            if not has_weights:
                rest = path.sd[of_path] ** 2 - path.temperature_sd[of_path, position - n_classes] ** 2
                weight[drawn] += np.sqrt(np.maximum(rest, 0.0)) * rng.standard_normal((len(drawn), len(position)))
            excess = np.hstack([bias[drawn] - path.bias[of_path], weight[drawn] - path.weight[of_path]])
            log_share[drawn] = excess @ path.share_slope.T
        log_share += draw_normal(np.zeros(n_classes), path.share_covariance, n)
        return WeightDraws(self, bias, weight, log_share)

    def draw_term_weights(self, fitted: Fitted, n: int, seed: int, *, of_likelihood: bool) -> TermWeights | None:
        """Draw the `TermWeights` for the model of a classifier n times; None, with a warning, if `draw` cannot.

        With `of_likelihood` they are those of p(row | class) up to a factor per row: biases are less the log shares of
        the classes that a draw implies. Class probabilities of another population are then added to the scores.

        Raises
        ------
        ValueError
            If the classifier has other terms.
        """
        if not self.has_posterior:
            warn(f"Intervals of {fitted.name} are given the weights of terms, and so too narrow: the weights {_OLDER}")
            return None
        drawn = self.draw(n, seed)
        bias = drawn.class_bias - drawn.log_share if of_likelihood else drawn.class_bias
        return replace(self, class_bias=bias, weight=drawn.weight / self.typical).to_term_weights(fitted)

    def to_term_weights(self, fitted: Fitted) -> TermWeights:
        """Return the `TermWeights` for the model of a classifier; classes that these weights do not know have bias 0.

        Raises
        ------
        ValueError
            If the classifier has other terms.
        """
        encoding, is_average = fitted.encoding, fitted.member_names is not None
        names = self.names if is_average and self.names == (AVERAGE,) else fitted.term_names
        if names != self.names:
            different = [shown(a) for a, b in zip(names, self.names, strict=False) if a != b]
            first = f", and the first different term is {different[0]}" if different else ""
            raise ValueError(
                f"weights were fitted for {len(self.names)} terms, {self.names[:6]}, but the terms of the classifier "
                f"differ: it has {len(names)} term{'s' * (len(names) != 1)}{first}. Pass weights for the same columns "
                "and structure."
            )
        bias = self.align_bias(encoding.classes, self.class_bias)
        if is_average:
            return TermWeights(bias, (self.weight if names != (AVERAGE,) else self.weight[..., 0],), (None,))
        return self.split(encoding, bias, encoding.term_map.spread(self.weight))

    def split(self, encoding: Encoding, bias: np.ndarray, weight: np.ndarray) -> TermWeights:
        """Return `TermWeights` of biases (…, C) and of the weights (…, R) of an encoding's terms, split by block."""
        sizes = [len(columns.term_names) for columns in encoding.blocks]
        exponents = [np.asarray(self.exponent) if columns.one_simplex else None for columns in encoding.blocks]
        return TermWeights.split(bias, weight, sizes, exponents)


@dataclass(frozen=True, eq=False)
class WeightDraws:
    """S draws of the weights of terms.

    Parameters
    ----------
    weights : Weights
        Weights that were fitted, with the names of terms and classes.
    class_bias : (S, C) array
        Draws of the biases.
    weight : (S, T) array
        Draws of T + τ d: weights of a row of typical length, where rows are several draws from one simplex.
    log_share : (S, C) array, optional
        Log of the shares of the classes that each draw implies for the rows that weights were fitted to, less that at
        the optimum. Default: not known.
    """

    weights: Weights
    class_bias: np.ndarray
    weight: np.ndarray
    log_share: np.ndarray | None = None

    def score(
        self, fitted: Fitted, X: object, output: Output, estimate: Estimate | None = None, class_prior: object = None
    ) -> np.ndarray:
        """Apply `output` to log P(class | row) (N, C), averaged over the draws of the weights, for the rows of X.

        P(c | x) = 1/S Σ_s softmax(b_s + log π + Σ_t w_st ℓ_t(x))_c.
        """
        encoding, bias = fitted.encoding, self.weights.align_bias(fitted.encoding.classes, self.class_bias)
        is_common = (self.weight == self.weight[:, :1]).all()
        weight = self.weight[:, :1] if is_common else self.weight
        (rows, n), log_class = fitted.encode(X), fitted.log_class(estimate, class_prior)
        average = partial(scoring.average_over_weights, log_class=log_class, bias=bias, output=output)
        if fitted.member_names is not None:
            joint = fitted.score_models(rows, n, score_new_rows(estimate, class_prior))
            return average((), n, lambda _, terms: terms, joint - log_class[:, None], weight=weight)
        of_draws = np.repeat([b.one_simplex for b in encoding.blocks], [len(b.term_names) for b in encoding.blocks])
        typical = np.where(of_draws, 1 / self.weights.typical.min(), 1)
        units = self.weights.split(encoding, np.zeros(len(encoding.classes)), typical)
        if not encoding.term_map.is_identity:
            weight = encoding.term_map.spread(self.weight)
        model, reading = fitted.read(estimate, class_prior)
        likelihood = scoring.read(encoding, replace(model, weights=units), reading)
        terms = kernels.terms if weight.shape[1] > 1 else kernels.sum_of_terms
        return average(rows, n, partial(terms, likelihood), weight=weight)


def read_weight_draws(weights: Weights, draws: object) -> WeightDraws | None:
    """Read draws of weights, chains one after the other; None if the draws are of parameters.

    Parameters
    ----------
    weights : Weights
        Weights that were fitted.
    draws : ArviZ data or dict
        Draws by `run_nuts` of a `WeightedNB`, or a dict of its sites "class_bias" (S, C) and "weight" (S, T).

    Raises
    ------
    ValueError
        If the draws are of other terms or classes.
    """
    sites = read_sites(draws)
    if WEIGHT not in sites:
        return None
    shapes = {CLASS_BIAS: (len(weights.classes),), WEIGHT: (len(weights.names),)}
    values = require_sites(sites, shapes)
    return WeightDraws(weights, values[CLASS_BIAS], values[WEIGHT])


class Weighed(Classifier, Protocol):
    """Classifier whose terms are weighted, around a classifier without weights."""

    weights_: Weights
    max_rows: int
    seed: Seed
    random_state: object

    @property
    def weight_(self) -> np.ndarray:
        """(T,) weights of the terms."""

    @property
    def term_names_(self) -> tuple[str, ...]:
        """Names of the terms."""

    @property
    def model_(self) -> Classifier:
        """Fitted classifier whose terms are weighted; columns with parents have a margin and a dependence."""

    @property
    def estimator_(self) -> Classifier:
        """Fitted classifier without weights."""


def require_weights(nb: Classifier, who: str) -> Weights:
    """Return the weights of a `WeightedNB`; `who` is the name of the caller, for messages.

    Raises
    ------
    NotFittedError
        If `nb` is not fitted.
    ValueError
        If `nb` is not a `WeightedNB`, or has no weights yet.
    """
    require_fitted(nb, who)
    if not hasattr(nb, "weigh"):
        raise ValueError(f"{who}: {type(nb).__name__} has no weights of terms; pass a fitted WeightedNB.")
    if (weights := getattr(nb, "weights_", None)) is None:
        raise ValueError(
            f"{who}: all weights of this {type(nb).__name__} are 1, because none were fitted: partial_fit and "
            "fit_stream fit none, and fit needs enough rows. Call nb.weigh(X, y) with rows that were counted."
        )
    return weights


# == Table of the weights of terms, with intervals and the cost of leaving a term out ==============


def weight_table(nb: Classifier, prob: float = 0.9, draws: object = None) -> pd.DataFrame:
    """Return the weights of terms with intervals, and the loss of log score if a term is left out.

    Parameters
    ----------
    nb : fitted WeightedNB
        Classifier whose weights are shown.
    prob : float, default 0.9
        Posterior probability of the intervals, in (0, 1).
    draws : ArviZ data or dict, optional
        Draws of the weights by `run_nuts(nb, X=X, y=y)`, whose quantiles are the intervals. Default: a normal
        approximation of the posterior.

    Returns
    -------
    DataFrame
        One row per term, in the order of `nb.term_names_`; if `nb.shrinkage_`, τ, is 0, all terms share one weight: a
        single row for the temperature, and one for the temperature of dependences if there are any.

        term
            name of the term; "temperature" in the row of all terms.
        weight
            at the optimum; 1 is naive Bayes, 0 leaves the term out. For counts of words, the weight is that of a row of
            typical length: `nb.weight_` times (t + 1)^-`nb.length_exponent_` at the mean of log(t + 1).
        lower, upper
            equal-tailed interval, averaged over τ by its evidence.
        sd
            posterior standard deviation, averaged over τ likewise.
        cost
            fall, in nats, of the penalised log score of the rows that weights were fitted to, if the term is left out
            and biases, temperature and the other weights are optimised again. By Laplace's approximation at τ =
            `nb.shrinkage_` the cost is ½ weight²/Var(weight), which is accurate up to a few nats, and too low for
            larger costs. The cost of the temperature is that of leaving all terms out.

        `attrs` has "temperature", "shrinkage" and "prob".

    Raises
    ------
    NotFittedError
        If `nb` is not fitted.
    ValueError
        If `nb` is not a `WeightedNB` or has no weights yet, `prob` is not in (0, 1), or the draws are of other weights.

    Notes
    -----
    The posterior is that of the weights, not of the parameters θ. Its log-likelihood is Σ_i log softmax(s(x_i))[y_i],
    with the scores s of each half of the rows by a fit to the other half. It is a generalised (Gibbs) posterior,
    because three splits are averaged. For each τ it is approximated by a normal distribution of the class biases b, the
    temperature T and the deviations d, with w = T + τ d; the covariance is the inverse of minus the Hessian of the
    penalised log score, and the exponent of the length is fixed. If the terms predict the labels nearly without error,
    the data bound the weights from below only, and normal intervals are too wide on one side: use `draws` then.

    With experts all terms have a row, the experts last, and sds and intervals are those of 4,000 draws. Weights of
    experts that agree with each other have wide intervals, as each can take the place of another; `nb.gain_` has what
    they add together.

    References
    ----------
    Bissiri, Holmes & Walker, *A general framework for updating belief distributions*, J. R. Stat. Soc. B 78 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import WeightedNB, weight_table
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> first, second = (np.where(rng.random(2000) < 0.8, y, 1 - y) for _ in range(2))
    >>> nb = WeightedNB().fit(np.column_stack([first, first, second]), y)  # the first witness is heard twice
    >>> weight_table(nb)[["term", "weight", "sd"]].round(2)
      term  weight    sd
    0    0    0.50  0.47
    1    1    0.50  0.47
    2    2    0.99  0.05
    """
    weights = require_weights(nb, "weight_table")
    require_probability("prob", prob)
    if (path := weights.path) is None and not weights.has_posterior:
        raise ValueError(
            "weight_table: the weights are from a file of an older version of bayesnb, without standard deviations. "
            "Fit them again by nb.weigh(X, y)."
        )
    if (drawn := None if draws is None else read_weight_draws(weights, draws)) is None and draws is not None:
        raise ValueError("draws must be draws of the weights, as run_nuts(nb, X=X, y=y) returns.")
    tails, names = np.array([(1 - prob) / 2, (1 + prob) / 2]), weights.names
    if path is None:
        weight, drawn = weights.weight * weights.typical, weights.draw(_DRAWS_OF_TABLE, 0)
        cost = 0.5 * (weight / drawn.weight.std(axis=0, ddof=1)) ** 2
    else:
        shrinkage = np.array([weights.shrinkage, weights.dependence_shrinkage])[: path.shrinkage.shape[1]]
        means, sds = path.weight, path.sd
        if not shrinkage.any() and len(names) > 1:
            names, means, sds = TEMPERATURES[: len(shrinkage)], path.temperature, path.temperature_sd
        chosen = int(np.argmax((path.shrinkage == shrinkage).all(axis=1)))
        weight, cost = means[chosen], 0.5 * (means[chosen] / sds[chosen]) ** 2
    if drawn is None:
        probability = cast(WeightPath, path).probability()
        q, (mean, scale) = np.repeat(tails, len(names)), (np.tile(v, len(tails)) for v in (means, sds))
        component = np.broadcast_to(probability[:, None], mean.shape)

        def cdf(x: np.ndarray, at: np.ndarray) -> np.ndarray:
            return np.asarray(ndtr((x - mean[:, at]) / scale[:, at]))

        lower, upper = mixture_quantiles(component, mean + scale * ndtri(q), cdf, q).reshape(2, -1)
        sd = np.sqrt(probability @ (sds**2 + (means - probability @ means) ** 2))
    else:
        first_of_group = np.unique(weights.dependence, return_index=True)[1]
        values = drawn.weight if names is weights.names else drawn.weight[:, first_of_group]
        lower, upper = np.quantile(values, tails, axis=0)
        sd = values.std(axis=0, ddof=1)
    table = pd.DataFrame({"term": names, "weight": weight, "lower": lower, "upper": upper, "sd": sd, "cost": cost})
    table.attrs = {"temperature": weights.temperature, "shrinkage": weights.shrinkage, "prob": float(prob)}
    return table
