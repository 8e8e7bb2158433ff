"""Cross-fitted terms as one dense array, whose weights Newton's method finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax, logsumexp

from bayesnb.prediction.weight_optimum import CrossTerms, Groups, Optimum, Point, Prior, TermBlock

MOST_TERMS = 500
"""Number of terms up to which Newton's method is taken, whose steps solve systems of that many equations."""
_STEPS = 100
# Gain of a step, in nats, below which no further step is taken: that one would gain about the square of this gain.
_DECREMENT = 1e-8
_SMALLEST_STEP = 1e-10
_CELLS_IN_CACHE = 2**17


class Slopes(NamedTuple):
    """Value of a log score, its gradient (P,) and minus its Hessian (P, P)."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray


@dataclass(frozen=True, eq=False)
class DenseTerms(CrossTerms):
    """Cross-fitted terms of rows as one dense array.

    Parameters
    ----------
    values : (A, C, T) array
        log p(x_t | class) in nats.
    """

    values: Float[np.ndarray, "A C T"]

    @staticmethod
    def cells_per_row(n_terms: int, n_deviating: int) -> int:
        """Return T."""
        return n_terms

    @classmethod
    def from_blocks(cls, blocks: Iterable[TermBlock], groups: Groups, n_classes: int, **row_fields: np.ndarray) -> Self:
        """Write the terms of each block into one array."""
        log_class = np.empty((len(row_fields["label"]), n_classes))
        values = np.empty((*log_class.shape, len(groups.index)))
        for block in blocks:
            log_class[block.position] = block.log_class
            values[block.position] = block.values
        return cls(**row_fields, log_class=log_class, values=values)

    def take(self, index: np.ndarray | slice) -> Self:
        """Return some of the scored rows."""
        return replace(self, **{field.name: getattr(self, field.name)[index] for field in fields(self)})

    def scores(self, bias: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "A C"]:
        """Compute s_c(x) at (b, w)."""
        return np.asarray(bias + self.log_class + self.values @ weight)

    def with_exponent(self, exponent: float, of_draws: np.ndarray) -> Self:
        """Return a copy whose terms of draws are multiplied by ((t + 1)/(t₀ + 1))^-β."""
        if not exponent:
            return self
        power = np.where(of_draws, np.exp(-exponent * self.log_length)[:, None], 1.0)
        return replace(self, values=self.values * power[:, None])

    def sum_groups(self, groups: Groups) -> Self:
        """Return a copy with G terms, each the sum of the terms of a group."""
        return replace(self, values=groups.sum_terms(self.values))

    def averaged(self) -> Self:
        """Return a copy with one term, the log mean of the probabilities whose logarithms the T terms are."""
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
        """Return the optimum, its standard deviations and evidence by the Hessian of all free parameters."""
        (bias, weight), (objective, _, precision) = prior.point(theta), self._slopes_of(prior, theta)
        of_weights, covariance = prior.design.toarray()[len(bias) :], np.linalg.inv(precision)
        return Optimum(
            shrinkage=prior.shrinkage,
            bias=bias,
            temperature=theta[prior.temperatures],
            weight=weight,
            sd=np.sqrt(np.einsum("tp,pq,tq->t", of_weights, covariance, of_weights)),
            temperature_sd=np.sqrt(np.diagonal(covariance)[prior.temperatures]),
            log_evidence=float(objective - np.linalg.slogdet(precision)[1] / 2),
        )

    def covariance(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Float[np.ndarray, "P P"]:
        """Return the covariance of the free parameters: the inverse of minus the Hessian of the penalised score."""
        return np.linalg.inv(self._slopes_of(prior, theta).hessian)

    def _slopes_of(self, prior: Prior, theta: Float[np.ndarray, "P"]) -> Slopes:
        """Compute the penalised log score of free parameters, its gradient and minus its Hessian."""
        deviation, design = theta - prior.mean, prior.design.toarray()
        value, gradient, hessian = self.slopes(*prior.point(theta))
        hessian = design.T @ hessian @ design + np.eye(len(theta))
        return Slopes(float(value - deviation @ deviation / 2), design.T @ gradient - deviation, hessian)

    def slopes(self, bias: np.ndarray, weight: np.ndarray) -> Slopes:
        """Compute the log score at (b, w), and its first and second derivatives."""
        _, n_classes, n_terms = self.values.shape
        value, gradient = 0.0, np.zeros(n_classes + n_terms)
        hessian = np.zeros((n_classes + n_terms, n_classes + n_terms))
        for block in self._blocks():
            values, row_weight = block.values, block.weight
            log_proba = log_softmax(block.scores(bias, weight), axis=-1)
            is_label, proba = block.label[:, None] == np.arange(n_classes), np.exp(log_proba)
            value += float(row_weight @ log_proba[is_label])
            rest, mass = row_weight[:, None] * (is_label - proba), row_weight[:, None] * proba
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
