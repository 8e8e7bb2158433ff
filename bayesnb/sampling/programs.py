"""Naive Bayes as a NumPyro program of sufficient statistics, made from the same prior objects as the closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist  # Not `import numpyro.distributions as dist`: see `run_nuts`.

from bayesnb._util.precision import float64
from bayesnb.families import LevelCounts
from bayesnb.families.protocol import Expression
from bayesnb.families.rows import Multinomial
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.sampling.chains import NumpyroProgram
from bayesnb.uncertainty.draws import CLASS_PROB

Sites = Sequence[Mapping[str, str]]
"""For each block of columns the name of the NumPyro site of each parameter, by the name of the parameter."""


def naive_bayes_of_statistics(model: NaiveBayes, statistics: Statistics, sites: Sites) -> None:
    """NumPyro program: sample π and θ from the prior, and add log p(X, y | π, θ) by sufficient statistics.

    The joint density is that of `numpyro_model`; the cost does not grow with the number of rows.
    """
    log_class, likelihoods = sample_all_parameters(model, sites)
    counted = LevelCounts(statistics.class_count[None]), *statistics.blocks
    every = zip((Multinomial(log_class[None]), *likelihoods), counted, strict=True)
    numpyro.factor("rows", sum((jnp.sum(p.log_likelihood(s)) for p, s in every), jnp.asarray(statistics.log_base)))


@dataclass(frozen=True, eq=False)
class Fixed:
    """NUTS target: posterior of the parameters under a prior without unknown hyperparameters.

    Parameters
    ----------
    prior : NaiveBayes
        Prior of the parameters.
    sites : sequence of dict
        For each block the site of each parameter.
    """

    prior: NaiveBayes
    sites: Sites
    kind = "none"

    def program(self, statistics: Statistics) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """NumPyro program whose density is the posterior of the parameters, up to a constant, and its data."""
        return NumpyroProgram.from_data(naive_bayes_of_statistics, self.prior, statistics, self.sites)

    @float64
    def start(self, statistics: Statistics) -> dict[str, Any]:
        """Values of the sites at the mode of the posterior; raise NotImplementedError if a block has no program."""
        for family in self.prior.blocks:
            family.program()  # raises the reason if there is none
        mode = self.prior.update(statistics).penalized_mle()
        values: dict[str, Any] = {CLASS_PROB: np.exp(mode.log_class)}
        for likelihood, names in zip(mode.likelihoods, self.sites, strict=True):
            values |= {names[name]: value for name, value in likelihood.parameters().items()}
        return to_site_values(self.prior, values, self.sites)

    def finish(
        self, samples: Mapping[str, np.ndarray], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Return draws of the parameters by the names of `posterior_draws`; hyperparameters have no draws.

        Parameters
        ----------
        samples : dict of (S, …) arrays
            Draws of each site.
        statistics : Statistics
            Statistics of the rows; not needed.
        masks : sequence of (K,) arrays of bool
            For each block, which positions of the last axis to keep.
        seed : int
            Seed; not needed.

        Returns
        -------
        parameters : dict of (S, …) arrays
        hyperparameters : list of dict
            Empty for the classes and for each block.
        """
        parameters: dict[str, Any] = {CLASS_PROB: samples[CLASS_PROB]} if CLASS_PROB in samples else {}
        for block_sites, keep in zip(self.sites, masks, strict=True):
            parameters |= {site: samples[site][..., keep] for site in block_sites.values() if keep.any()}
        classes: Any = self.prior.class_prior
        if classes.fixed:
            n_draws = len(next(iter(samples.values())))
            parameters[CLASS_PROB] = np.repeat(np.exp(np.asarray(classes.log_prob)), n_draws, axis=0)
        return parameters, [{} for _ in range(1 + len(self.sites))]


def sample_all_parameters(model: NaiveBayes, sites: Sites) -> tuple[jax.Array, list[Any]]:
    """Sample π and θ at NumPyro sites; return log π (C,), and the plug-in likelihood of each block."""
    classes: Any = model.class_prior
    if classes.fixed:
        log_class = jnp.asarray(classes.log_prob)[0]
    else:
        log_class = jnp.log(numpyro.sample(CLASS_PROB, dist.Dirichlet(jnp.asarray(classes.concentration)[0])))
    return log_class, [sample_parameters(family, names) for family, names in zip(model.blocks, sites, strict=True)]


def sample_parameters(family: Any, sites: Mapping[str, str]) -> Any:
    """Sample the parameters of one block, (C, K) each, at the given NumPyro sites; return the plug-in likelihood."""
    n_classes = jax.tree.leaves(family)[0].shape[0]
    values: dict[str, Any] = {}
    for site in family.program():
        name = f"{sites[site.parameter]}{site.suffix}"
        with numpyro.plate("classes", n_classes, dim=-2), numpyro.plate(f"{name}_plate", site.size):
            values[site.parameter + site.suffix] = numpyro.sample(name, evaluate(site.distribution, values))
    parameters = family.from_sites(values)
    for parameter in parameters.keys() - values.keys():
        numpyro.deterministic(sites[parameter], parameters[parameter])
    return family.likelihood.from_parameters(**parameters)


def evaluate(expression: Expression, sampled: Mapping[str, Any] | None = None) -> dist.Distribution:
    """NumPyro distribution that an expression of a family stands for, given values of parameters sampled before."""
    names = {**expression.arguments, **(sampled or {})}
    return eval(f"dist.{expression.text}", {"dist": dist, "jnp": jnp}, names)


def to_site_values(model: NaiveBayes, drawn: Mapping[str, Any], sites: Sites) -> dict[str, Any]:
    """Convert draws by `posterior_draws`, with or without a leading axis, to values of the programs' NumPyro sites."""
    site_values = dict(drawn)
    for family, names in zip(model.blocks, sites, strict=True):
        values = family.to_sites({parameter: site_values.pop(site) for parameter, site in names.items()})
        for site in family.program():
            site_values[f"{names[site.parameter]}{site.suffix}"] = values[site.parameter + site.suffix]
    if model.class_prior.fixed:
        del site_values[CLASS_PROB]
    return site_values
