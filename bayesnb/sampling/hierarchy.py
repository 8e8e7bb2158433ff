"""Priors whose hyperparameters are unknown: θ is integrated out, and what is left is sampled.

A hyperprior is a NumPyro program that samples hyperparameters and returns a prior, a `NaiveBayes` as any other. Its
evidence is the likelihood of the hyperparameters, and updated it is the posterior of θ given them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro
from numpyro import distributions as dist

from bayesnb._util.precision import float64
from bayesnb.families import hyperprior_of
from bayesnb.families.protocol import Hyperparameter
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.sampling.programs import Sites
from bayesnb.uncertainty.draws import draw_stacked
from bayesnb.uncertainty.given_draws import CLASS_ALPHA, Kind, hyperparameter_sites, prior_given

_MOST_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A prior of which the families know that hyperparameters are unknown, `Hierarchical`, and how.

    Parameters
    ----------
    prior : NaiveBayes
        What has no hyperprior, such as κ and a of Gaussian features, Poisson blocks and a fixed class prior, is of it;
        so are the scales of hyperpriors.
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

    def sample_prior(self, into: NaiveBayes | None = None) -> NaiveBayes:
        """The program of the hyperparameters, put `into` a prior: by default one over the parameters."""
        values: dict[str, Any] = {}
        if not self.prior.class_prior.fixed:
            values[CLASS_ALPHA] = numpyro.sample(CLASS_ALPHA, self.alpha)
        names = hyperparameter_sites(self.prior, self.kind, self.sites)
        for family, own in zip(self.prior.blocks, names, strict=True):
            for name, said in hyperprior_of(family, self.kind == "pooled").items():
                values[own[name]] = _sample(own[name], said, self.alpha)
        return prior_given(self.prior.unit() if into is None else into, names, values)

    @property
    def hyperprior(self) -> Kind:
        return self.kind

    def program(self, statistics: Statistics) -> Callable[[], None]:
        """The posterior of the hyperparameters alone: θ is integrated out."""
        return partial(self.collapsed, self.condense(statistics))

    def condense(self, statistics: Statistics) -> Statistics:
        """What the evidence needs of the statistics: under "symmetric" levels are counted by their counts."""
        return statistics if self.kind == "pooled" else self.prior.unit().condense(statistics)

    def collapsed(self, condensed: Statistics) -> None:
        """The program over such statistics, which may be traced."""
        prior = self.sample_prior(None if self.kind == "pooled" else self.prior.unit().condensed())
        numpyro.factor("rows", _log_evidence(prior, condensed))

    def finish(
        self, samples: Mapping[str, np.ndarray], statistics: Statistics, masks: Sequence[np.ndarray], seed: int
    ) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
        """The parameters of S draws, exact given the hyperparameters; and these, of the classes and each block."""
        drawn = self._draw(samples, statistics, masks, seed)
        names = hyperparameter_sites(self.prior, self.kind, self.sites)
        ours = [[CLASS_ALPHA], *(own.values() for own in names)]
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
        size = max(1, _MOST_CELLS // (1 + sum(v.size for b in wanted for v in jax.tree.leaves(statistics.blocks[b]))))
        parts = []
        for start in range(0, n_draws, size):
            models = posteriors({site: v[start : start + size] for site, v in samples.items()}, statistics)
            own = [self.sites[b] for b in wanted], [masks[b] for b in wanted]
            parts.append(draw_stacked(models, *own, (seed, start)))
        return {site: np.concatenate([part[site] for part in parts]) for site in parts[0]}


@jax.jit
def _log_evidence(prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    """Traced and compiled once, however often a program is run to look at it."""
    return prior.log_evidence(statistics)


def _sample(site: str, said: Hyperparameter, alpha: dist.Distribution) -> Any:
    if said.distribution is None:
        return numpyro.sample(site, alpha)
    name, arguments = said.distribution
    drawn = site if said.of_weights is None else f"{site}_weight"
    with numpyro.plate(f"{site}_plate", *said.shape) if said.shape else nullcontext():
        value = numpyro.sample(drawn, getattr(dist, name)(**arguments))
    return value if said.of_weights is None else numpyro.deterministic(site, said.of_weights(value))
