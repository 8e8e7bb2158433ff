"""Priors with unknown hyperparameters: θ is integrated out, and the hyperparameters are sampled.

A hyperprior is a NumPyro program that samples hyperparameters and returns a prior, a `NaiveBayes`. The evidence of that
prior is the likelihood of the hyperparameters, and updating the prior gives the posterior of θ given the draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import numpyro
from numpyro import distributions as dist

from bayesnb._util.precision import float64
from bayesnb.families import offers
from bayesnb.families.protocol import Hyperparameter, HyperpriorKind
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.sampling.chains import NumpyroProgram
from bayesnb.sampling.programs import Sites, evaluate
from bayesnb.uncertainty import class_probabilities
from bayesnb.uncertainty.class_probabilities import hyperparameter_sites
from bayesnb.uncertainty.draws import draw_sites

_MOST_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """NUTS target: posterior of the unknown hyperparameters of a prior, with the parameters θ integrated out.

    Parameters
    ----------
    prior : NaiveBayes
        Prior of all parameters without a hyperprior: κ and a of Gaussian features, Poisson blocks, a fixed class prior.
        The scales of hyperpriors are derived from it, too.
    kind : {"symmetric", "pooled", "grouped"}
        Dirichlet(α, …, α), or Dirichlet(α L m) with a base measure m that the classes share: α is the mean
        concentration of a level, and m = 1/L is the symmetric prior. Under "grouped" each class has a base measure
        that groups of rows share; statistics then have a leading axis of groups.
    alpha : distribution
        Hyperprior of α, one for each Dirichlet block, and of the concentration of the classes.
    sites : sequence of dict
        For each block the site of each parameter.
    """

    prior: NaiveBayes
    kind: HyperpriorKind
    alpha: dist.Distribution
    sites: Sites

    def sample_prior(self, into: NaiveBayes | None = None) -> NaiveBayes:
        """Sample hyperparameters at NumPyro sites; return `into` (default: `prior.unit()`) with these values."""
        every = [pair for part in self.hyperparameters() for pair in part.items()]
        values = {site: _sample_hyperparameter(site, hyperparameter, self.alpha) for site, hyperparameter in every}
        names = hyperparameter_sites(self.prior, self.kind, self.sites)
        return class_probabilities.prior_given(self.prior.unit() if into is None else into, names, values)

    def hyperparameters(self) -> list[dict[str, Hyperparameter]]:
        """Hyperparameters of the classes and of each block, by site."""
        return class_probabilities.sampled_hyperparameters(self.prior, self.kind, self.sites)

    def program(self, statistics: Statistics) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """NumPyro program with the posterior density of the hyperparameters, up to a constant, and its data.

        θ is integrated out.
        """
        condensed = self.condense(statistics)
        return NumpyroProgram.from_data(_collapsed, self.prior, self.alpha, condensed, self.kind, self.sites)

    @float64
    def start(self, statistics: Statistics) -> dict[str, Any]:
        """Values of the sites in the middle of their priors: the median of α, the means of others."""
        alpha = np.median(self.alpha.sample(jax.random.key(0), (1000,)))
        values = {}
        for part in self.hyperparameters():
            for site, parameter in part.items():
                mean = alpha if parameter.distribution is None else evaluate(parameter.distribution).mean
                values[_sampled_site(site, parameter)] = np.broadcast_to(mean, parameter.shape)
        return values

    def condense(self, statistics: Statistics) -> Statistics:
        """Statistics that `collapsed` needs: histograms of the counts under "symmetric", else unchanged."""
        return self.prior.unit().condense(statistics) if self.kind == "symmetric" else statistics

    def collapsed(self, condensed: Statistics) -> None:
        """NumPyro program: sample hyperparameters, and add the log evidence of the condensed statistics."""
        prior = self.sample_prior(self.prior.unit().condensed() if self.kind == "symmetric" else None)
        log_evidence = _log_evidence_of_groups if self.kind == "grouped" else _log_evidence
        numpyro.factor("rows", log_evidence(prior, condensed))

    def finish(
        self, samples: Mapping[str, np.ndarray], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """Draw the parameters exactly from their conjugate posterior given each draw of the hyperparameters.

        They are drawn batch by batch, and for G groups they are (S · G, …).

        Parameters
        ----------
        samples : dict of (S, …) arrays
            Draws of the hyperparameters.
        statistics : Statistics
            Statistics of the rows.
        masks : sequence of (K,) arrays of bool
            For each block, which positions of the last axis to keep; blocks without one are left out.
        seed : int
            Seed of the draws of the parameters.

        Returns
        -------
        parameters : dict of (S, …) arrays
        hyperparameters : list of dict
            Draws of the hyperparameters of the classes, and of each block.
        """
        prior, names = self.prior.unit(), hyperparameter_sites(self.prior, self.kind, self.sites)
        every = zip(prior.blocks, statistics.blocks, masks, self.sites, names, strict=True)
        drawn_from = [(*self._restrict(*block[:3]), *block[3:]) for block in every if block[2].any()]
        families, blocks, masks, sites, names = map(list, zip(*drawn_from, strict=True)) if drawn_from else ([],) * 5
        prior, counted = replace(prior, blocks=tuple(families)), replace(statistics, blocks=tuple(blocks))
        n_draws, n_groups = len(next(iter(samples.values()))), math.prod(np.shape(statistics.class_count)[:-1])
        size = max(1, _MOST_CELLS // sum(np.size(leaf) for leaf in jax.tree.leaves(counted)))
        drawn: dict[str, np.ndarray] = {}
        for start in range(0, n_draws, size):
            part = {site: values[start : start + size] for site, values in samples.items()}
            models = class_probabilities.posteriors_given(prior, counted, names, part)
            for site, values in draw_sites(models, sites, masks, 1, (seed, start)).items():
                if site not in drawn:
                    drawn[site] = np.empty((n_draws * n_groups, *values.shape[1:]))
                drawn[site][start * n_groups :][: len(values)] = values
        return drawn, [{site: samples[site] for site in part} for part in self.hyperparameters()]

    def _restrict(self, family: Any, statistics: Any, keep: np.ndarray) -> tuple[Any, Any, np.ndarray]:
        """Family and statistics of one block, without levels of which no draw is needed, and which positions to keep.

        Under "pooled" and "grouped" hyperparameters have a value for each level, and nothing is left out.
        """
        if self.kind != "symmetric" or keep.all() or not offers(family, "restrict_with_counts"):
            return family, statistics, keep
        family, statistics = family.restrict_with_counts(statistics, keep)
        return family, statistics, np.arange(statistics.count.shape[-1]) < keep.sum()


def _collapsed(prior: NaiveBayes, alpha: Any, condensed: Statistics, kind: HyperpriorKind, sites: Sites) -> None:
    """NumPyro program `Hierarchy.collapsed`."""
    Hierarchy(prior, kind, alpha, sites).collapsed(condensed)


@jax.jit
def _log_evidence(prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    """Scalar log marginal likelihood of the statistics, compiled once for all runs of a NumPyro program."""
    return prior.log_evidence(statistics)


@jax.jit
def _log_evidence_of_groups(prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    """Scalar log marginal likelihood of the statistics of groups, whose arrays have a leading axis."""
    return jax.vmap(prior.log_evidence)(statistics).sum()


def _sample_hyperparameter(site: str, hyperparameter: Hyperparameter, alpha: dist.Distribution) -> Any:
    """Sample a hyperparameter at NumPyro site `site` and return its value; without its own distribution, from `alpha`.

    Normalised weights are sampled at "<site>_weight", and `site` is deterministic.
    """
    shape, to_weights = hyperparameter.shape, hyperparameter.of_weights
    prior = alpha if hyperparameter.distribution is None else evaluate(hyperparameter.distribution)
    value = numpyro.sample(_sampled_site(site, hyperparameter), prior.expand(shape).to_event(len(shape)))
    return value if to_weights is None else numpyro.deterministic(site, to_weights(value))


def _sampled_site(site: str, hyperparameter: Hyperparameter) -> str:
    """NumPyro site at which a hyperparameter named `site` is sampled: its own, or that of its weights."""
    return site if hyperparameter.of_weights is None else f"{site}_weight"
