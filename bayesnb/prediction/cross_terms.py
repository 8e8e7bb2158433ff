"""Terms of rows by fits that do not know the rows, and the log score of weights of the terms.

    s_c(x) = b_c + log π_c + Σ_t w_t ℓ_ct(x),    P(c | x) = softmax(s)

Terms are reference values r of each fit plus differences δ, ℓ = r + δ. Up to 500 terms δ is an array and r = 0. For
thousands of terms δ is sparse: in most rows most words are absent, so that a term mostly has the value of an absent
word, and scores and gradients cost as many operations as δ has entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int, Num
from scipy.special import logsumexp

MOST_TERMS = 500
"""Number of terms up to which terms are arrays, and Newton's method solves systems of that many equations."""
_CELLS_IN_CACHE = 2**17
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
    difference : tuple of C arrays or sparse arrays (A, T)
        log p(x_t | class) minus the reference. Sparse arrays have entries at the same places in all classes.
    """

    log_class: Float[np.ndarray, "A C"]
    log_length: Float[np.ndarray, "A"]
    label: Int[np.ndarray, "A"]
    weight: Num[np.ndarray, "A"]
    row: Int[np.ndarray, "A"]
    fit: Int[np.ndarray, "A"]
    reference: Float[np.ndarray, "K C T"]
    difference: tuple[sp.csr_array, ...]

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[TermBlock],
        of_draws: Bool[np.ndarray, "T"],
        n_classes: int,
        *,
        is_sparse: bool,
        **row_fields: np.ndarray,
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
        log_class = np.empty((len(row_fields["label"]), n_classes))
        reference = np.zeros((int(row_fields["fit"].max()) + 1, n_classes, len(of_draws)))
        has_reference, positions, by_block = set[int](), [], []
        for block in blocks:
            log_class[block.position] = block.log_class
            if is_sparse and block.fit not in has_reference:
                has_reference.add(block.fit)
                middle = len(block.values) // 2
                median = np.partition(block.values, middle, axis=0)[middle]
                reference[block.fit] = np.where(of_draws, 0.0, median)
            difference = block.values - reference[block.fit]
            matrices, differs = difference.swapaxes(0, 1), difference.any(axis=1)
            if is_sparse:
                matrices = [sp.csr_array((d[differs], np.nonzero(differs)), d.shape) for d in matrices]
            positions.append(block.position)
            by_block.append(matrices)
        stack, order = sp.vstack if is_sparse else np.concatenate, np.argsort(np.concatenate(positions))
        by_class = tuple(stack(matrices)[order] for matrices in zip(*by_block, strict=True))
        return cls(**row_fields, log_class=log_class, reference=reference, difference=by_class)

    @property
    def is_sparse(self) -> bool:
        """Whether the terms are stored as sparse differences from a reference row of each fit."""
        return bool(sp.issparse(self.difference[0]))

    @property
    def values(self) -> Float[np.ndarray, "A C T"]:
        """(A, C, T) terms as one array; only where terms are dense."""
        return np.stack(self.difference, axis=1)

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return int(self.row.max()) + 1

    def take(self, index: np.ndarray | slice) -> Self:
        """Return a copy that has only the scored rows at the positions `index`."""
        rows = {name: getattr(self, name)[index] for name in _ROW_FIELDS}
        return replace(self, **rows, difference=tuple(matrix[index] for matrix in self.difference))

    def with_exponent(self, exponent: float, of_draws: Bool[np.ndarray, "T"]) -> Self:
        """Return a copy whose terms in `of_draws`, of count rows, are multiplied by ((t + 1)/(t₀ + 1))^-`exponent`.

        With exponent 0 the object itself is returned.
        """
        if not exponent:
            return self
        power = np.exp(-exponent * self.log_length)
        if self.is_sparse:
            row, term = self.difference[0].tocoo().coords
            factor = np.where(of_draws[term], power[row], 1.0)
            scaled = [sp.csr_array((d.data * factor, d.indices, d.indptr), d.shape) for d in self.difference]
        else:
            scaled = [d * np.where(of_draws, power[:, None], 1.0) for d in self.difference]
        return replace(self, difference=tuple(scaled))

    def sum_groups(self, group: Int[np.ndarray, "T"]) -> Self:
        """Return a copy with dense terms, each the sum of the terms of one group; `group` is the group of each term."""
        indicator = np.eye(group.max() + 1)[group]
        reference = self.reference @ indicator
        sums = [reference[self.fit, c] + matrix @ indicator for c, matrix in enumerate(self.difference)]
        return replace(self, reference=np.zeros_like(reference), difference=tuple(sums))

    def averaged(self) -> Self:
        """Return a copy with one dense term, the log of the mean over the T terms of exp(term): averaged models."""
        means = logsumexp(self.values, axis=-1, keepdims=True) - np.log(len(self.reference[0, 0]))
        return replace(self, reference=self.reference[..., :1], difference=tuple(means.swapaxes(0, 1)))

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

    def curvature(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "P P"]:
        """Compute minus the (C + T, C + T) Hessian of the log score by biases and weights, for dense terms."""
        n_classes, n_terms = len(bias), len(weight)
        curvature = np.zeros((n_classes + n_terms, n_classes + n_terms))
        for block in self._blocks():
            values, proba = block.values, np.exp(block.log_proba(bias, weight))
            mass = block.weight[:, None] * proba
            # Covariances under P(c | x) of the indicators of the classes and of the terms.
            centered = values - np.einsum("nc,nct->nt", proba, values)[:, None]
            root = (np.sqrt(mass)[..., None] * centered).reshape(-1, n_terms)
            mixed = np.einsum("nc,nct->ct", mass, centered)
            curvature[:n_classes, :n_classes] += np.diag(mass.sum(axis=0)) - mass.T @ proba
            curvature[:n_classes, n_classes:] += mixed
            curvature[n_classes:, :n_classes] += mixed.T
            curvature[n_classes:, n_classes:] += root.T @ root
        return curvature

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

    def _blocks(self) -> Iterator[Self]:
        """Yield copies with some scored rows each, whose dense terms fit into a processor's cache."""
        size = max(1, _CELLS_IN_CACHE // max(1, self.reference[0].size))
        for start in range(0, len(self.label), size):
            yield self.take(slice(start, start + size))


def _variance(proba: Float[np.ndarray, "E C"], values: Float[np.ndarray, "E C"]) -> Float[np.ndarray, "E"]:
    """Compute (E,) variances over the classes of `values` under the class probabilities `proba`."""
    mean = (proba * values).sum(axis=-1, keepdims=True)
    return np.asarray((proba * (values - mean) ** 2).sum(axis=-1))
