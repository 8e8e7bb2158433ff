"""Terms of rows as differences from reference values, most of them 0, for thousands of weights.

In most rows most words are absent, so that a term mostly has the value of an absent word. With a reference r of the
terms for each fit, ℓ = r + δ with δ sparse: scores and gradients cost as many operations as δ has entries. L-BFGS finds
the weights. In their evidence the deviations d are independent of all else: minus the Hessian is taken to be that of
biases and temperatures, and a diagonal. By Fischer's inequality that determinant is not below the exact one, so that τ
is chosen too small rather than too large.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.special import log_softmax

from bayesnb.prediction.dense_terms import DenseTerms
from bayesnb.prediction.weight_optimum import CrossTerms, Groups, Optimum, Point, Prior

_GRADIENT = 1e-6  # the objective is strongly concave, curvature at least 1: the optimum is as near as the gradient is


@dataclass(frozen=True, eq=False)
class SparseTerms(CrossTerms):
    """Terms of N rows, each by S fits that do not know the row.

    Parameters
    ----------
    reference : (K, C, T) array
        Values in nats that most rows have, for each fit.
    difference : tuple of C (A, T) sparse arrays
        log p(x_t | class) minus the reference, with entries at the same places in all classes.
    """

    reference: Float[np.ndarray, "K C T"]
    difference: tuple[sp.csr_array, ...]

    def take(self, index: np.ndarray | slice) -> Self:
        rows = {each.name: getattr(self, each.name)[index] for each in fields(CrossTerms)}
        return replace(self, **rows, difference=tuple(each[index] for each in self.difference))

    def scores(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        differences = np.stack([each @ weight for each in self.difference], axis=-1)
        return bias + self.log_class + (self.reference @ weight)[self.fit] + differences

    def with_exponent(self, exponent: float, of_draws: np.ndarray) -> Self:
        if not exponent:
            return self
        row, term = self.difference[0].tocoo().coords
        power = np.where(of_draws[term], np.exp(-exponent * self.log_length)[row], 1.0)  # of draws the reference is 0
        scaled = (sp.csr_array((each.data * power, each.indices, each.indptr), each.shape) for each in self.difference)
        return replace(self, difference=tuple(scaled))

    def sum_groups(self, groups: Groups) -> DenseTerms:
        indicator = np.eye(len(groups.mean))[groups.of_terms]
        differences = np.stack([each @ indicator for each in self.difference], axis=1)
        rows = {each.name: getattr(self, each.name) for each in fields(CrossTerms)}
        return DenseTerms(**rows, values=(self.reference @ indicator)[self.fit] + differences)

    def find_parameters(self, prior: Prior, start: Point | None = None) -> Float[np.ndarray, "P"]:
        """Find the penalised optimum by L-BFGS."""
        from scipy.optimize import minimize

        own = self.label[:, None] == np.arange(self.log_class.shape[-1])
        fits = sp.csr_array(
            (np.ones(len(self.fit)), (self.fit, np.arange(len(self.fit)))), (len(self.reference), len(self.fit))
        )
        transposed = [each.T.tocsr() for each in self.difference]

        def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
            """Return minus the penalised log score, and minus its gradient."""
            (bias, weight), away = prior.point(theta), theta - prior.mean
            log_proba = log_softmax(self.scores(bias, weight), axis=-1)
            rest = self.weight[:, None] * (own - np.exp(log_proba))
            of_weight = np.einsum("kc,kct->t", fits @ rest, self.reference)
            of_weight += sum(each @ rest[:, c] for c, each in enumerate(transposed))
            gradient = prior.into.T @ np.concatenate([rest.sum(axis=0), of_weight]) - away
            return -float(self.weight @ log_proba[own]) + away @ away / 2, -gradient

        found = minimize(
            evaluate,
            prior.mean if start is None else prior.parameters(*start),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 10_000, "maxfun": 20_000, "maxcor": 20, "ftol": 0.0, "gtol": _GRADIENT},
        )
        return np.asarray(found.x)

    def optimum_at(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Optimum:
        groups, temperature, (bias, weight) = prior.groups, theta[prior.temperatures], prior.point(theta)
        scores = self.scores(bias, weight)
        # Biases and temperatures, at the probabilities of the optimum: the deviations are part of the constant.
        common = self.sum_groups(groups)
        common = replace(common, log_class=scores - bias - common.values @ temperature)
        of_common = Prior.of(
            groups.summed(), np.zeros(len(temperature)), len(bias), biased=prior.temperatures.start > 0
        )
        covariance = common.covariance(of_common, of_common.parameters(bias, temperature))
        variance = np.diagonal(covariance)[of_common.temperatures]
        tau = prior.shrinkage[groups.of_terms]
        precision = 1 + tau**2 * self.curvature(scores)
        away = theta - prior.mean
        log_determinant = np.log(precision).sum() - np.linalg.slogdet(covariance)[1]
        return Optimum(
            shrinkage=prior.shrinkage,
            bias=bias,
            temperature=temperature,
            weight=weight,
            sd=np.sqrt(variance[groups.of_terms] + tau**2 / precision),
            temperature_sd=np.sqrt(variance),
            log_evidence=self.log_score(bias, weight) - float(away @ away + log_determinant) / 2,
        )

    def curvature(self, scores: Float[np.ndarray, "A C"]) -> Float[np.ndarray, "T"]:
        """Compute Σ_i v_i Var(ℓ_ct) over classes c ~ P(c | x_i): minus the second derivative of the score by w_t."""
        proba, fit, row_weight = np.exp(log_softmax(scores, axis=-1)), self.fit, self.weight
        curvature = np.zeros(self.reference.shape[-1])
        for k, reference in enumerate(self.reference):  # as if all rows had the reference
            p, v = proba[fit == k], row_weight[fit == k]
            covariance = np.diag(v @ p) - (p.T * v) @ p
            curvature += np.einsum("ct,cd,dt->t", reference, covariance, reference)
        entries = self.difference[0].tocoo()
        row, term = entries.coords
        reference = self.reference[fit[row], :, term]
        values = reference + np.stack([each.data for each in self.difference], axis=-1)
        excess = _variance(proba[row], values) - _variance(proba[row], reference)
        return curvature + np.bincount(term, row_weight[row] * excess, minlength=len(curvature))


def _variance(proba: Float[np.ndarray, "E C"], values: Float[np.ndarray, "E C"]) -> Float[np.ndarray, "E"]:
    return (proba * (values - (proba * values).sum(axis=-1, keepdims=True)) ** 2).sum(axis=-1)


class SparseCollector:
    """Terms of A scored rows, collected block by block as differences from the values that most rows have.

    Parameters
    ----------
    n_fits : int
    of_draws : (T,) array of bool
        Terms of rows of several draws, whose reference is 0.
    """

    def __init__(self, n_fits: int, of_draws: np.ndarray) -> None:
        self._of_draws = of_draws
        self._reference: list[np.ndarray | None] = [None] * n_fits
        self._entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, index: np.ndarray, fit: int, values: Float[np.ndarray, "n C T"]) -> None:
        """Add the terms of some scored rows, by one fit."""
        if (reference := self._reference[fit]) is None:  # the value of most rows is their median
            middle = np.partition(values, len(values) // 2, axis=0)[len(values) // 2]
            self._reference[fit] = reference = np.where(self._of_draws, 0.0, middle)
        difference = np.moveaxis(values - reference, 1, -1)
        row, term = np.nonzero(difference.any(axis=-1))
        self._entries.append((index[row], term, difference[row, term]))

    def finish(self, **scored: np.ndarray) -> SparseTerms:
        """Return all terms; `scored` are the other fields of `CrossTerms`."""
        row, term, difference = (np.concatenate(each) for each in zip(*self._entries, strict=True))
        known = next(each for each in self._reference if each is not None)
        reference = np.stack([np.zeros_like(known) if each is None else each for each in self._reference])
        shape = len(scored["label"]), reference.shape[-1]
        by_class = tuple(sp.csr_array((each, (row, term)), shape) for each in difference.T)
        return SparseTerms(**scored, reference=reference, difference=by_class)
