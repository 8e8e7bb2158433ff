"""Weights of terms as a NumPyro program, given cross-fitted terms of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist  # Not `import numpyro.distributions as dist`: see `run_nuts`.

from bayesnb.sampling.chains import NumpyroProgram
from bayesnb.weights.optimum import Expansion, Groups, Prior, find_parameters
from bayesnb.weights.terms import CLASS_BIAS, TEMPERATURES, WEIGHT, CrossTerms

_DEVIATION = "deviation"


@dataclass(frozen=True, eq=False)
class WeightsGiven:
    """NUTS target: generalised posterior of the weights of terms, given cross-fitted terms of rows.

    b ~ N(0, 1), T_g ~ N(μ_g, 1), d ~ N(0, 1), w_t = T_g + τ_g d_t for t in group g, and the
    likelihood is Π_i P(y_i | x_i; b, w)^v_i.

    Parameters
    ----------
    terms : CrossTerms
        Dense terms of rows of typical length, or under τ = 0 the sum of those of each group.
    groups : Groups
        Groups of these terms.
    shrinkage : (G,) array
        τ.
    biased : bool
        Whether classes have a bias.
    """

    terms: CrossTerms
    groups: Groups
    shrinkage: np.ndarray
    biased: bool

    def program(self) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """NumPyro program `weights_of_terms` of these terms, and its data."""
        terms, groups = self.terms, self.groups
        # Labels as numbers: integers are compiled into a program.
        data = terms.values, terms.log_class, terms.label.astype(float), terms.weight, groups.mean, self._scale
        return NumpyroProgram.from_data(weights_of_terms, *data, groups.index, self._free, np.asarray(self.biased))

    @property
    def _scale(self) -> np.ndarray:
        """(T,) τ of each term."""
        return np.asarray(self.shrinkage, float)[self.groups.index]

    @property
    def _free(self) -> np.ndarray:
        """(T,) of bool: whether the weight of a term may differ from the temperature of its group (τ > 0)."""
        return self._scale > 0

    def start(self) -> tuple[dict[str, Any], dict[tuple[str, ...], np.ndarray]]:
        """Values of the sites at the optimum, and Laplace's covariance there as an inverse mass matrix."""
        prior = Prior(self.groups, self.shrinkage, self.terms.log_class.shape[-1], self.biased)
        theta = find_parameters(self.terms, prior)
        start: dict[str, Any] = {CLASS_BIAS: prior.point(theta)[0]} if self.biased else {}
        start |= dict(zip(TEMPERATURES, theta[prior.temperatures], strict=False))
        if self._free.any():
            start[_DEVIATION] = theta[prior.temperatures.stop :][self._free]
        is_sampled = prior.design(np.eye(prior.n_classes)).any(axis=0)
        _, covariance = Expansion.around(self.terms, *prior.point(theta)).posterior(prior)
        return start, {tuple(start): covariance[np.ix_(is_sampled, is_sampled)]}

    def finish(self, samples: Mapping[str, np.ndarray], dependence: np.ndarray) -> dict[str, np.ndarray]:
        """Draws of the temperatures, biases and all weights, also of weights that equal their temperature.

        Parameters
        ----------
        samples : dict of (chains, draws, …) arrays
            Draws of each site.
        dependence : (T,) array of bool
            Whether a term is a dependence.
        """
        temperatures = {name: np.asarray(samples[name]) for name in TEMPERATURES if name in samples}
        stacked = np.stack(list(temperatures.values()), axis=-1)
        bias = samples[CLASS_BIAS] if self.biased else np.zeros((*stacked.shape[:-1], self.terms.log_class.shape[-1]))
        weight = samples.get(WEIGHT, stacked[..., dependence.astype(int)])
        return temperatures | {CLASS_BIAS: np.asarray(bias), WEIGHT: np.asarray(weight)}


def weights_of_terms(
    values: Any, log_class: Any, label: Any, row_weight: Any, mean: Any, scale: Any, index: Any, free: Any, biased: Any
) -> None:
    """NumPyro program: sample temperatures, class biases and deviations, and add the weighted label log-likelihood.

    Sites are "temperature", and where the model has them "class_bias", "dependence_temperature", "deviation" and
    "weight".

    Parameters
    ----------
    values, log_class : (N, C, T) and (N, C) or (C,) arrays
        Terms, and log class probabilities.
    label, row_weight : (N,) arrays
        Class index and weight of each row.
    mean : (G,) array
        Prior mean of the temperature of each group.
    scale, index, free : (T,) arrays
        τ and group of each term, and whether its weight may differ from the temperature of the group.
    biased : bool
        Whether classes have a bias.
    """
    _, n_classes, n_terms = values.shape
    bias = numpyro.sample(CLASS_BIAS, _normal(n_classes)) if biased else 0.0
    names = zip(TEMPERATURES, mean, strict=False)
    temperature = jnp.stack([numpyro.sample(name, dist.Normal(m, 1.0)) for name, m in names])
    weight = temperature[index]
    if free.any():
        deviation = numpyro.sample(_DEVIATION, _normal(int(free.sum())))
        weight = numpyro.deterministic(WEIGHT, weight + jnp.zeros(n_terms).at[free].set(scale[free] * deviation))
    joint = bias + log_class + values @ weight
    is_label = label[:, None] == jnp.arange(n_classes)
    log_proba = jnp.sum(jnp.where(is_label, joint, 0.0), axis=-1) - jax.nn.logsumexp(joint, axis=-1)
    numpyro.factor("labels", log_proba @ row_weight)


def _normal(n: int) -> dist.Distribution:
    """NumPyro distribution of n independent standard normal variates as one event."""
    return dist.Normal().expand([n]).to_event(1)
