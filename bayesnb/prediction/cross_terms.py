"""Terms of rows by fits that do not know the rows, and the log score of weights of the terms.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s)

Terms are reference values r of each fit plus differences δ, ℓ = r + δ. Up to 500 terms δ is an array and r = 0. For
thousands of terms δ is sparse: in most rows most words are absent, so that a term mostly has the value of an absent
word, and scores and gradients cost as many operations as δ has entries. `Contrasts` are dense terms less those of one
class, D = C - 1 numbers in place of C.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int, Num
from scipy.special import logsumexp

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
        by_fit = np.stack([np.bincount(self.fit, r, len(self.reference)) for r in rest.T], axis=-1)
        slope = np.einsum("kc,kct->t", by_fit, self.reference)
        slope += sum(matrix.T @ rest[:, c] for c, matrix in enumerate(self.difference))
        return float(self.weight @ log_proba[is_label]), np.concatenate([rest.sum(axis=0), slope])

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
