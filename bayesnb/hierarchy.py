"""Priors whose hyperparameters are unknown: θ is integrated out, and what is left is sampled.

A hyperprior is a NumPyro program that samples hyperparameters and returns a prior, a `NaiveBayes` as any other. Its
evidence is the likelihood of the hyperparameters, and updated it is the posterior of θ given them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro
from numpyro import distributions as dist

from bayesnb.condensed import condense, log_evidence, one_level
from bayesnb.families import Dirichlet, NormalInverseGamma
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.precision import float64
from bayesnb.programs import Sites
from bayesnb.uncertainty.draws import draw_stacked
from bayesnb.uncertainty.hyperparameters import CLASS_ALPHA, Kind, hyperparameter_sites, prior_given

_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A prior whose concentrations, and whose Gaussian locations and rates, are unknown.

    Parameters
    ----------
    prior : NaiveBayes
        Its κ and a, and the scales of the hyperpriors of Gaussian blocks, are those of the hierarchy; Poisson blocks
        and a known class prior stay as they are.
    kind : {"symmetric", "pooled"}
        Dirichlet(α, …, α), or Dirichlet(α L m) with a base measure m that the classes share: α is what a level has on
        average, and m = 1/L is the symmetric prior.
    alpha : distribution
        Of α, one for each Dirichlet block, and of the concentration of the classes.
    sites : for each block the site of each parameter
    """

    prior: NaiveBayes
    kind: Kind
    alpha: dist.Distribution
    sites: Sites

    def sample_prior(self) -> NaiveBayes:
        """The program of the hyperparameters."""
        values: dict[str, Any] = {}
        if isinstance(self.prior.class_prior, Dirichlet):
            values[CLASS_ALPHA] = numpyro.sample(CLASS_ALPHA, self.alpha)
        for family, sites in zip(self.prior.blocks, hyperparameter_sites(self.sites), strict=True):
            if isinstance(family, Dirichlet):
                values[sites[0]] = numpyro.sample(sites[0], self.alpha)
            if isinstance(family, Dirichlet) and self.kind == "pooled":
                values[sites[1]] = _base_measure(family, sites[1])
            if isinstance(family, NormalInverseGamma):
                values |= zip(sites, _location_and_rate(family, *sites), strict=True)
        return prior_given(self.prior, self.kind, hyperparameter_sites(self.sites), values)

    @property
    def hyperprior(self) -> Kind:
        return self.kind

    def program(self, statistics: Statistics) -> Callable[[], None]:
        """The posterior of the hyperparameters alone: θ is integrated out."""
        return partial(self.collapsed, self.condense(statistics))

    def condense(self, statistics: Statistics) -> Statistics:
        """What the evidence needs of the statistics: under "symmetric" levels are counted by their counts."""
        if self.kind == "pooled":
            return statistics
        flat = [
            replace(f, concentration=np.ones(np.shape(f.concentration))) if isinstance(f, Dirichlet) else f
            for f in self.prior.blocks
        ]
        return condense(replace(self.prior, blocks=tuple(flat)), statistics)

    def collapsed(self, condensed: Statistics) -> None:
        """The program over such statistics, which may be traced."""
        one = self if self.kind == "pooled" else replace(self, prior=one_level(self.prior))
        numpyro.factor("rows", log_evidence(one.sample_prior(), condensed))

    def finish(
        self, samples: Mapping[str, np.ndarray], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """The parameters of S draws, exact given the hyperparameters; and these, of the classes and each block."""
        drawn = self._draw(samples, statistics, masks, seed)
        ours = [[CLASS_ALPHA], *hyperparameter_sites(self.sites)]
        return drawn, [{site: samples[site] for site in sites if site in samples} for sites in ours]

    def posterior(self, hyperparameters: Mapping[str, Any], statistics: Statistics) -> NaiveBayes:
        """The exact posterior of the parameters given one draw of the hyperparameters."""
        prior = numpyro.handlers.substitute(numpyro.handlers.seed(self.sample_prior, 0), data=hyperparameters)()
        return prior.update(statistics)

    @float64
    def _draw(
        self, samples: Mapping[str, Any], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> dict[str, np.ndarray]:
        """Some draws at a time, of the blocks of which anything is asked."""
        wanted = [b for b, keep in enumerate(masks) if keep.any()]

        def posterior(hyperparameters: Mapping[str, Any], statistics: Statistics) -> NaiveBayes:
            model = self.posterior(hyperparameters, statistics)
            return replace(model, blocks=tuple(model.blocks[b] for b in wanted))

        posteriors = jax.jit(jax.vmap(posterior, (0, None)))
        n_draws = len(next(iter(samples.values())))
        size = max(1, _CELLS // (1 + sum(v.size for b in wanted for v in jax.tree.leaves(statistics.blocks[b]))))
        parts = []
        for start in range(0, n_draws, size):
            models = posteriors({site: v[start : start + size] for site, v in samples.items()}, statistics)
            own = [self.sites[b] for b in wanted], [masks[b] for b in wanted]
            parts.append(draw_stacked(models, *own, (seed, start)))
        return {site: np.concatenate([part[site] for part in parts]) for site in parts[0]}


def _base_measure(family: Dirichlet, site: str) -> Any:
    """(L,) uniform on the simplex of each group, as normalised exponential variates."""
    with numpyro.plate(f"{site}_levels", np.shape(family.concentration)[1]):
        weight = numpyro.sample(f"{site}_weight", dist.Exponential(1.0))
    group = np.asarray(family.group)
    total = jax.ops.segment_sum(weight, group, family.num_groups)
    return numpyro.deterministic(site, weight / total[group])


def _location_and_rate(family: NormalInverseGamma, loc_site: str, rate_site: str) -> tuple[Any, Any]:
    """Of each feature, the same in all classes.

    Location ~ Normal around the prior's with the scale of its μ, b/(aκ); log rate ~ Normal(log b, 1).
    """
    loc, kappa, a, b = (np.asarray(v) for v in (family.loc, family.kappa, family.concentration, family.rate))
    with numpyro.plate(f"{loc_site}_features", loc.shape[1]):
        shared_loc = numpyro.sample(loc_site, dist.Normal(loc[0], np.sqrt(b / (a * kappa))[0]))
        return shared_loc, numpyro.sample(rate_site, dist.LogNormal(np.log(b[0]), 1.0))
