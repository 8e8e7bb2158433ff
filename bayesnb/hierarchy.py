"""Priors whose hyperparameters are unknown: θ is integrated out, and what is left is sampled.

A hyperprior is a NumPyro program that samples hyperparameters and returns a prior, a `NaiveBayes` as any other. Its
evidence is the likelihood of the hyperparameters, and updated it is the posterior of θ given them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

from bayesnb.condensed import condense, log_evidence, one_level
from bayesnb.families import Dirichlet, NormalInverseGamma
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.precision import float64
from bayesnb.programs import Sites
from bayesnb.uncertainty.draws import draw_stacked

Kind = Literal["symmetric", "pooled"]
_CELLS = 2**24
# Of the prior of each parameter.
_NAMES = {"theta": ("alpha", "base_measure"), "mu": ("loc",), "sigma2": ("rate",)}


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
        prior = self.prior
        class_prior = prior.class_prior
        if isinstance(class_prior, Dirichlet):
            class_prior = _symmetric(class_prior, self.alpha, "class_alpha")
        blocks = [self._block(family, own) for family, own in zip(prior.blocks, self._hyperparameters(), strict=True)]
        return NaiveBayes(class_prior, tuple(blocks))

    def _hyperparameters(self) -> list[list[str]]:
        """For each block the sites of its hyperparameters, with the ending of those of its parameters.

        A name that a parameter has already says whose prior it belongs to: "rate_of_sigma2" beside Poisson rates.
        """
        taken = {site for own in self.sites for site in own.values()}
        named = [
            [(site.replace(name, h), site) for name, site in own.items() for h in _NAMES.get(name, ())]
            for own in self.sites
        ]
        return [[f"{hyper}_of_{site}" if hyper in taken else hyper for hyper, site in block] for block in named]

    def _block(self, family: Any, sites: Sequence[str]) -> Any:
        if isinstance(family, Dirichlet):
            return (_symmetric if self.kind == "symmetric" else _pooled)(family, self.alpha, *sites)
        return _shared(family, *sites) if isinstance(family, NormalInverseGamma) else family

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
        ours = [["class_alpha"], *self._hyperparameters()]
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


def _symmetric(family: Dirichlet, prior: dist.Distribution, site: str, *_: str) -> Dirichlet:
    alpha = numpyro.sample(site, prior)
    return replace(family, concentration=alpha * jnp.ones_like(jnp.asarray(family.concentration)))


def _pooled(family: Dirichlet, prior: dist.Distribution, site: str, base_site: str) -> Dirichlet:
    """α L m in each class, L levels a group; m is uniform on its simplex, as normalised exponential variates."""
    alpha = numpyro.sample(site, prior)
    n_levels = np.shape(family.concentration)[1]
    with numpyro.plate(f"{base_site}_levels", n_levels):
        weight = numpyro.sample(f"{base_site}_weight", dist.Exponential(1.0))
    group = np.asarray(family.group)
    total = jax.ops.segment_sum(weight, group, family.num_groups)
    base = numpyro.deterministic(base_site, weight / total[group])
    concentration = alpha * np.bincount(group, minlength=family.num_groups)[group] * base
    return replace(family, concentration=jnp.broadcast_to(concentration, np.shape(family.concentration)))


def _shared(family: NormalInverseGamma, loc_site: str, rate_site: str) -> NormalInverseGamma:
    """Location and rate of each feature, the same in all classes.

    Location ~ Normal around the prior's with the scale of its μ, b/(aκ); log rate ~ Normal(log b, 1).
    """
    loc, kappa, a, b = (np.asarray(v) for v in (family.loc, family.kappa, family.concentration, family.rate))
    with numpyro.plate(f"{loc_site}_features", loc.shape[1]):
        shared_loc = numpyro.sample(loc_site, dist.Normal(loc[0], np.sqrt(b / (a * kappa))[0]))
        shared_rate = numpyro.sample(rate_site, dist.LogNormal(np.log(b[0]), 1.0))
    return replace(family, loc=jnp.broadcast_to(shared_loc, loc.shape), rate=jnp.broadcast_to(shared_rate, b.shape))
