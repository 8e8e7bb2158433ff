"""Cross-fitted terms as differences from reference values, most of them 0, for thousands of weights.

In most rows most words are absent, so that a term mostly has the value of an absent word. With a reference r of the
terms for each fit, ℓ = r + δ with δ sparse: scores and gradients cost as many operations as δ has entries. L-BFGS finds
the weights. In their evidence the deviations d are taken for independent of each other and of biases and temperatures:
minus the Hessian consists of a block for biases and temperatures, and of a diagonal. By Fischer's inequality the
determinant of that matrix is not below the exact one, so that τ is chosen too small rather than too large.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.special import log_softmax

from bayesnb.prediction.dense_terms import DenseTerms
from bayesnb.prediction.weight_optimum import CrossTerms, Groups, Optimum, Point, Prior, TermBlock

# The curvature of the objective is at least 1, so that the optimum is not farther away than the gradient is large.
_GRADIENT = 1e-6


@dataclass(frozen=True, eq=False)
class SparseTerms(CrossTerms):
    """Cross-fitted terms of rows as sparse differences from reference values.

    Parameters
    ----------
    reference : (K, C, T) array
        Values in nats that most rows have, for each of the K fits; 0 of terms of draws.
    difference : tuple of C (A, T) sparse arrays
        log p(x_t | class) minus the reference, with entries at the same places in all classes.
    """

    reference: Float[np.ndarray, "K C T"]
    difference: tuple[sp.csr_array, ...]

    @staticmethod
    def cells_per_row(n_terms: int, n_deviating: int) -> int:
        """Return the number of cells that differ from what most rows have."""
        return n_deviating

    @classmethod
    def from_blocks(cls, blocks: Iterable[TermBlock], groups: Groups, n_classes: int, **row_fields: np.ndarray) -> Self:
        """Take the median of the first block of each fit for the reference, and keep the entries that differ."""
        n_scored, n_terms, reference = len(row_fields["label"]), len(groups.index), dict[int, np.ndarray]()
        log_class, rows, columns, differences = np.empty((n_scored, n_classes)), [], [], []
        for block in blocks:
            log_class[block.position] = block.log_class
            if block.fit not in reference:
                middle = len(block.values) // 2
                median = np.partition(block.values, middle, axis=0)[middle]
                reference[block.fit] = np.where(groups.of_draws, 0.0, median)
            difference = np.moveaxis(block.values - reference[block.fit], 1, -1)
            row, column = np.nonzero(difference.any(axis=-1))
            rows.append(block.position[row])
            columns.append(column)
            differences.append(difference[row, column])
        entries = np.concatenate(rows), np.concatenate(columns)
        zeros = np.zeros((n_classes, n_terms))  # A fit has no reference if it scores no rows.
        return cls(
            **row_fields,
            log_class=log_class,
            reference=np.stack([reference.get(k, zeros) for k in range(1 + max(reference))]),
            difference=tuple(
                sp.csr_array((difference, entries), (n_scored, n_terms)) for difference in np.concatenate(differences).T
            ),
        )

    def take(self, index: np.ndarray | slice) -> Self:
        """Return some of the scored rows."""
        rows = {field.name: getattr(self, field.name)[index] for field in fields(CrossTerms)}
        return replace(self, **rows, difference=tuple(matrix[index] for matrix in self.difference))

    def scores(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        """Compute s_c(x) at (b, w)."""
        differences = np.stack([matrix @ weight for matrix in self.difference], axis=-1)
        return np.asarray(bias + self.log_class + (self.reference @ weight)[self.fit] + differences)

    def with_exponent(self, exponent: float, of_draws: np.ndarray) -> Self:
        """Return a copy whose terms of draws are multiplied by ((t + 1)/(t₀ + 1))^-β: differences alone, as r = 0."""
        if not exponent:
            return self
        row, term = self.difference[0].tocoo().coords
        power = np.where(of_draws[term], np.exp(-exponent * self.log_length)[row], 1.0)
        scaled = tuple(sp.csr_array((d.data * power, d.indices, d.indptr), d.shape) for d in self.difference)
        return replace(self, difference=scaled)

    def sum_groups(self, groups: Groups) -> DenseTerms:
        """Return G dense terms, each the sum of the terms of a group."""
        indicator = np.eye(len(groups.mean))[groups.index]
        differences = np.stack([matrix @ indicator for matrix in self.difference], axis=1)
        rows = {field.name: getattr(self, field.name) for field in fields(CrossTerms)}
        return DenseTerms(**rows, values=(self.reference @ indicator)[self.fit] + differences)

    def find_parameters(self, prior: Prior, start: Point | None = None) -> Float[np.ndarray, "P"]:
        """Find the penalised optimum by L-BFGS."""
        from scipy.optimize import minimize

        is_label = self.label[:, None] == np.arange(self.log_class.shape[-1])
        fits = sp.csr_array(
            (np.ones(len(self.fit)), (self.fit, np.arange(len(self.fit)))), (len(self.reference), len(self.fit))
        )
        transposed = [matrix.T.tocsr() for matrix in self.difference]

        def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
            """Return minus the penalised log score, and minus its gradient."""
            (bias, weight), deviation = prior.point(theta), theta - prior.mean
            log_proba = log_softmax(self.scores(bias, weight), axis=-1)
            rest = self.weight[:, None] * (is_label - np.exp(log_proba))
            by_weight = np.einsum("kc,kct->t", fits @ rest, self.reference)
            by_weight += sum(matrix @ rest[:, c] for c, matrix in enumerate(transposed))
            gradient = prior.design.T @ np.concatenate([rest.sum(axis=0), by_weight]) - deviation
            return -float(self.weight @ log_proba[is_label]) + deviation @ deviation / 2, -gradient

        result = minimize(
            evaluate,
            prior.mean if start is None else prior.parameters(*start),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 10_000, "maxfun": 20_000, "maxcor": 20, "ftol": 0.0, "gtol": _GRADIENT},
        )
        return np.asarray(result.x)

    def optimum_at(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Optimum:
        """Return the optimum, its standard deviations and evidence by the block-diagonal Hessian (see the module)."""
        groups, temperature, (bias, weight) = prior.groups, theta[prior.temperatures], prior.point(theta)
        scores = self.scores(bias, weight)
        # The block of biases and temperatures needs the probabilities at the optimum: the scores of the deviations are
        # moved into log P(class).
        common = self.sum_groups(groups)
        common = replace(common, log_class=scores - bias - common.values @ temperature)
        common_prior = Prior.from_groups(
            groups.collapse(), np.zeros(len(temperature)), len(bias), biased=prior.temperatures.start > 0
        )
        covariance = common.covariance(common_prior, common_prior.parameters(bias, temperature))
        variance = np.diagonal(covariance)[common_prior.temperatures]
        tau = prior.shrinkage[groups.index]
        precision = 1 + tau**2 * self.curvature(scores)
        deviation = theta - prior.mean
        log_determinant = np.log(precision).sum() - np.linalg.slogdet(covariance)[1]
        return Optimum(
            shrinkage=prior.shrinkage,
            bias=bias,
            temperature=temperature,
            weight=weight,
            sd=np.sqrt(variance[groups.index] + tau**2 / precision),
            temperature_sd=np.sqrt(variance),
            log_evidence=self.log_score(bias, weight) - float(deviation @ deviation + log_determinant) / 2,
        )

    def curvature(self, scores: Float[np.ndarray, "A C"]) -> Float[np.ndarray, "T"]:
        """Compute Σ_i v_i Var(ℓ_ct) over classes c ~ P(c | x_i): minus the second derivative of the score by w_t."""
        proba, fit, row_weight = np.exp(log_softmax(scores, axis=-1)), self.fit, self.weight
        curvature = np.zeros(self.reference.shape[-1])
        for k, reference in enumerate(self.reference):  # At first, all rows are taken to have the reference.
            p, v = proba[fit == k], row_weight[fit == k]
            covariance = np.diag(v @ p) - (p.T * v) @ p
            curvature += np.einsum("ct,cd,dt->t", reference, covariance, reference)
        entries = self.difference[0].tocoo()
        row, term = entries.coords
        reference = self.reference[fit[row], :, term]
        values = reference + np.stack([matrix.data for matrix in self.difference], axis=-1)
        excess = _variance(proba[row], values) - _variance(proba[row], reference)
        return np.asarray(curvature + np.bincount(term, row_weight[row] * excess, minlength=len(curvature)))


def _variance(proba: Float[np.ndarray, "E C"], values: Float[np.ndarray, "E C"]) -> Float[np.ndarray, "E"]:
    mean = (proba * values).sum(axis=-1, keepdims=True)
    return np.asarray((proba * (values - mean) ** 2).sum(axis=-1))
