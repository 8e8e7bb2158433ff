"""Weights of terms as a NumPyro program, given the terms of rows by fits to halves of the others."""

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
from bayesnb.prediction.weight_optimum import CrossTerms, Groups, maximize

_DEVIATION = "deviation"


@dataclass(frozen=True, eq=False)
class WeightsGiven:
    """The generalised posterior of the weights given terms by fits to halves, as what NUTS samples from.

    b ~ N(0, 1), T ~ N(1, 1), d ~ N(0, 1), w = T + τ d, and for a likelihood Π_i P(y_i | x_i; b, w)^v_i.

    Parameters
    ----------
    terms : CrossTerms
        Terms of rows of typical length, or under τ = 0 their sum.
    shrinkage : float
        τ.
    biased : bool
        Whether classes have a bias.
    """

    terms: CrossTerms
    shrinkage: float
    biased: bool

    def program(self) -> None:
        """Declare the sites "temperature", and where they are free "class_bias" and "weight"."""
        n_splits, _, n_classes, n_terms = self.terms.values.shape
        bias = numpyro.sample(CLASS_BIAS, _normal(n_classes)) if self.biased else 0.0
        weight = numpyro.sample(TEMPERATURE, dist.Normal(1.0, 1.0))
        if self.shrinkage:
            away = numpyro.sample(_DEVIATION, _normal(n_terms))
            weight = numpyro.deterministic(WEIGHT, weight + self.shrinkage * away)
        joint = bias + self.terms.log_class + self.terms.values @ jnp.broadcast_to(weight, n_terms)
        own = jnp.asarray(self.terms.label)[:, None] == jnp.arange(n_classes)
        log_proba = jnp.sum(jnp.where(own, joint, 0.0), axis=-1) - jax.nn.logsumexp(joint, axis=-1)
        numpyro.factor("labels", jnp.sum(log_proba @ self.terms.weight) / n_splits)

    def options(self) -> dict[str, Any]:
        """Return options of NUTS: it begins at the optimum, with the covariance there for its inverse mass matrix."""
        n_terms = self.terms.values.shape[3]
        groups = Groups(np.zeros(n_terms, int), np.ones(1), np.zeros(n_terms, bool))
        found = maximize(self.terms, groups, np.array([self.shrinkage]), biased=self.biased)
        at: dict[str, Any] = {CLASS_BIAS: found.bias} if self.biased else {}
        at[TEMPERATURE] = found.temperature[0]
        if self.shrinkage:
            at[_DEVIATION] = (found.weight - found.temperature) / self.shrinkage
        sites = tuple(at)
        return {
            "init_strategy": init_to_value(values=at),
            "dense_mass": [sites],
            "inverse_mass_matrix": {sites: found.covariance},
            "target_accept_prob": 0.95,  # where labels are told nearly without error the density has a steep side
        }

    def finish(self, samples: Mapping[str, np.ndarray], n_terms: int) -> dict[str, np.ndarray]:
        """Return draws of the temperature, and of the biases and all weights, whether they are free or not."""
        temperature = np.asarray(samples[TEMPERATURE])
        shape = temperature.shape
        bias = samples[CLASS_BIAS] if self.biased else np.zeros((*shape, self.terms.values.shape[2]))
        weight = samples.get(WEIGHT, np.broadcast_to(temperature[..., None], (*shape, n_terms)))
        return {TEMPERATURE: temperature, CLASS_BIAS: np.asarray(bias), WEIGHT: np.asarray(weight)}


def _normal(n: int) -> dist.Distribution:
    return dist.Normal().expand([n]).to_event(1)
