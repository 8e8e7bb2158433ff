"""Terms of rows as one dense array, whose weights Newton's method finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax, logsumexp

from bayesnb.prediction.weight_optimum import CrossTerms, Groups, Optimum, Point, Prior

MOST_TERMS = 500
"""Number of terms up to which Newton's method is taken, whose steps solve systems of that many equations."""
_STEPS = 100
_DECREMENT = 1e-8  # of the log score, by a step; the next one, which is not taken, would be of the order of its square
_SMALLEST_STEP = 1e-10
_CELLS_IN_CACHE = 2**17


class Slopes(NamedTuple):
    """A log score, its gradient (P,) and minus its Hessian (P, P)."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray


@dataclass(frozen=True, eq=False)
class DenseTerms(CrossTerms):
    """Terms of N rows, each by S fits that do not know the row.

    Parameters
    ----------
    values : (A, C, T) array
        log p(x_t | class) in nats.
    """

    values: Float[np.ndarray, "A C T"]

    def take(self, index: np.ndarray | slice) -> Self:
        return replace(self, **{each.name: getattr(self, each.name)[index] for each in fields(self)})

    def scores(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        return bias + self.log_class + self.values @ weight

    def with_exponent(self, exponent: float, of_draws: np.ndarray) -> Self:
        if not exponent:
            return self
        power = np.where(of_draws, np.exp(-exponent * self.log_length)[:, None], 1.0)
        return replace(self, values=self.values * power[:, None])

    def sum_groups(self, groups: Groups) -> Self:
        return replace(self, values=groups.sum_terms(self.values))

    def averaged(self) -> Self:
        """Replace terms, each of a model, by the logarithm of their models' mean probability."""
        n_terms = self.values.shape[-1]
        return replace(self, values=logsumexp(self.values, axis=-1, keepdims=True) - np.log(n_terms))

    def find_parameters(self, prior: Prior, start: Point | None = None) -> Float[np.ndarray, "P"]:
        """Find the penalised optimum by Newton's method, with steps that are halved until the objective rises."""
        theta = prior.mean if start is None else prior.parameters(*start)
        objective, gradient, precision = self._slopes_of(prior, theta)
        for _ in range(_STEPS):
            step, size = np.linalg.solve(precision, gradient), 1.0
            after = self._slopes_of(prior, theta + step)
            while after[0] < objective - 1e-13 * abs(objective) and size > _SMALLEST_STEP:
                size /= 2
                after = self._slopes_of(prior, theta + size * step)
            if size <= _SMALLEST_STEP:
                break
            decrement, theta = float(gradient @ step), theta + size * step
            objective, gradient, precision = after
            if decrement < _DECREMENT:
                break
        return theta

    def optimum_at(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Optimum:
        (bias, weight), (objective, _, precision) = prior.point(theta), self._slopes_of(prior, theta)
        into, covariance = prior.into.toarray()[len(bias) :], np.linalg.inv(precision)
        return Optimum(
            shrinkage=prior.shrinkage,
            bias=bias,
            temperature=theta[prior.temperatures],
            weight=weight,
            sd=np.sqrt(np.einsum("tp,pq,tq->t", into, covariance, into)),
            temperature_sd=np.sqrt(np.diagonal(covariance)[prior.temperatures]),
            log_evidence=float(objective - np.linalg.slogdet(precision)[1] / 2),
        )

    def covariance(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Float[np.ndarray, "P P"]:
        """Return the covariance of the free parameters: the inverse of minus the Hessian of the penalised score."""
        return np.linalg.inv(self._slopes_of(prior, theta).hessian)

    def _slopes_of(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Slopes:
        """Compute the penalised log score of free parameters, its gradient and minus its Hessian."""
        away, into = theta - prior.mean, prior.into.toarray()
        value, gradient, hessian = self.slopes(*prior.point(theta))
        hessian = into.T @ hessian @ into + np.eye(len(theta))
        return Slopes(float(value - away @ away / 2), into.T @ gradient - away, hessian)

    def slopes(self, bias: np.ndarray, weight: np.ndarray) -> Slopes:
        """Compute the log score at (b, w), and its first and second derivatives."""
        _, n_classes, n_terms = self.values.shape
        value, gradient = 0.0, np.zeros(n_classes + n_terms)
        hessian = np.zeros((n_classes + n_terms, n_classes + n_terms))
        for block in self._blocks():
            values, row_weight = block.values, block.weight
            log_proba = log_softmax(block.scores(bias, weight), axis=-1)
            own, proba = block.label[:, None] == np.arange(n_classes), np.exp(log_proba)
            value += float(row_weight @ log_proba[own])
            rest, mass = row_weight[:, None] * (own - proba), row_weight[:, None] * proba
            gradient += np.concatenate([rest.sum(axis=0), rest.ravel() @ values.reshape(-1, n_terms)])
            # Covariances under P(c | x) of the indicators of the classes and of the terms.
            centered = values - np.einsum("nc,nct->nt", proba, values)[:, None]
            root = (np.sqrt(mass)[..., None] * centered).reshape(-1, n_terms)
            mixed = np.einsum("nc,nct->ct", mass, centered)
            hessian[:n_classes, :n_classes] += np.diag(mass.sum(axis=0)) - mass.T @ proba
            hessian[:n_classes, n_classes:] += mixed
            hessian[n_classes:, :n_classes] += mixed.T
            hessian[n_classes:, n_classes:] += root.T @ root
        return Slopes(value, gradient, hessian)

    def _blocks(self) -> Iterator[Self]:
        """Yield blocks of rows whose terms fit into a processor's cache."""
        size = max(1, _CELLS_IN_CACHE // max(1, self.values[:1].size))
        for start in range(0, len(self.values), size):
            yield self.take(slice(start, start + size))


class DenseCollector:
    """Array of the terms of A scored rows, filled block by block."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self._values = np.zeros(shape)

    def add(self, index: np.ndarray, fit: int, values: Float[np.ndarray, "n C T"]) -> None:
        """Add the terms of some scored rows, by one fit."""
        self._values[index] = values

    def finish(self, **scored: np.ndarray) -> DenseTerms:
        """Return all terms; `scored` are the other fields of `CrossTerms`."""
        return DenseTerms(**scored, values=self._values)
