"""Weights of terms as a NumPyro program, given exact leave-one-out scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist  # not `import numpyro.distributions as dist`: see `run_nuts`
from numpyro.infer import init_to_value

from bayesnb.prediction.weight_draws import CLASS_BIAS, TEMPERATURE, WEIGHT
from bayesnb.prediction.weight_optimum import LeaveOneOutTerms, fit_weights

_DEVIATION = "deviation"


@dataclass(frozen=True, eq=False)
class WeightsGiven:
    """The generalised posterior of the weights given leave-one-out scores, as what NUTS samples from.

    b ~ N(0, 1), T ~ N(1, 1), d ~ N(0, 1), w = T + τ d, and for a likelihood the leave-one-out score
    Π_i P(y_i | x_i; b, w).

    Parameters
    ----------
    scores : LeaveOneOutTerms
        (n, C, T) terms, or of their sum, (n, C, 1), under τ = 0.
    shrinkage : float
        τ.
    biased : bool
        Whether classes have a bias.
    """

    scores: LeaveOneOutTerms
    shrinkage: float
    biased: bool

    def program(self) -> None:
        """Sites "temperature", and where they are free "class_bias" and "weight"."""
        _, n_classes, n_terms = self.scores.terms.shape
        bias = numpyro.sample(CLASS_BIAS, _normal(n_classes)) if self.biased else 0.0
        weight = numpyro.sample(TEMPERATURE, dist.Normal(1.0, 1.0))
        if self.shrinkage:
            away = numpyro.sample(_DEVIATION, _normal(n_terms))
            weight = numpyro.deterministic(WEIGHT, weight + self.shrinkage * away)
        joint = bias + self.scores.log_class + self.scores.terms @ jnp.broadcast_to(weight, n_terms)
        own = jnp.asarray(self.scores.label)[:, None] == jnp.arange(n_classes)
        log_proba = jnp.sum(jnp.where(own, joint, 0.0), axis=1) - jax.nn.logsumexp(joint, axis=1)
        numpyro.factor("leave_one_out", jnp.dot(self.scores.weight, log_proba))

    def options(self) -> dict[str, Any]:
        """Of NUTS: it begins at the optimum, and takes the covariance there for its inverse mass matrix."""
        _, n_classes, n_terms = self.scores.terms.shape
        found = fit_weights(
            lambda: [self.scores], n_classes, n_terms, of_draws=False, shrinkage=(self.shrinkage,), biased=self.biased
        )
        at: dict[str, Any] = {CLASS_BIAS: found.bias} if self.biased else {}
        at[TEMPERATURE] = found.temperature
        if self.shrinkage:
            at[_DEVIATION] = (found.weight - found.temperature) / self.shrinkage
        sites = tuple(at)
        return {
            "init_strategy": init_to_value(values=at),
            "dense_mass": [sites],
            "inverse_mass_matrix": {sites: np.linalg.inv(found.precision)},
            "target_accept_prob": 0.95,  # where labels are told nearly without error the density has a steep side
        }

    def finish(self, samples: Mapping[str, np.ndarray], n_terms: int) -> dict[str, np.ndarray]:
        """Draws of the temperature, and of the biases and all weights, whether they are free or not."""
        temperature = np.asarray(samples[TEMPERATURE])
        shape = temperature.shape
        bias = samples[CLASS_BIAS] if self.biased else np.zeros((*shape, self.scores.terms.shape[1]))
        weight = samples.get(WEIGHT, np.broadcast_to(temperature[..., None], (*shape, n_terms)))
        return {TEMPERATURE: temperature, CLASS_BIAS: np.asarray(bias), WEIGHT: np.asarray(weight)}


def _normal(n: int) -> dist.Distribution:
    return dist.Normal().expand([n]).to_event(1)
