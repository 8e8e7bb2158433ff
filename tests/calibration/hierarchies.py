"""Hierarchical naive Bayes in NumPy: hyperparameters, parameters given them, statistics of rows given these.

Everything has a leading axis of N independent worlds, and the names of the sites of the programs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from typing import Any, Protocol

import jax
import numpy as np
import numpyro
from numpyro import distributions as dist
from scipy.special import logsumexp, xlogy

from bayesnb import Dirichlet, NaiveBayes, NormalInverseGamma
from bayesnb.families import LevelCounts, Moments
from bayesnb.families.protocol import HyperpriorKind
from bayesnb.model import Statistics
from bayesnb.sampling.programs import Hierarchy
from bayesnb.uncertainty.draws import draw_sites, stack_as_classes

Values = dict[str, np.ndarray]

CLASSES = 3
CENTRE, SPREAD = -1.0, 1.5  # of log α, by default


class Features(Protocol):
    """One block of features in three classes, and how `Hierarchy` says that it comes about."""

    def family(self) -> tuple[Any, dict[str, str]]:
        """The prior to put into a `Hierarchy`, and the sites of its parameters."""
        ...

    def hyperparameters(self, rng: np.random.Generator, n: int) -> Values: ...

    def parameters(self, rng: np.random.Generator, hyper: Values) -> Values: ...

    def count(self, rng: np.random.Generator, parameters: Values, own: np.ndarray) -> Any:
        """Statistics of rows; `own` (N, C, R) says which are in which class."""
        ...

    def log_likelihood(self, parameters: Values, statistics: Any) -> np.ndarray:
        """(N,) up to what no parameter changes."""
        ...


@dataclass(frozen=True)
class Levels:
    """Simplexes of the given sizes, from each of which a row draws so many times."""

    sizes: tuple[int, ...]
    draws: int = 1

    def family(self) -> tuple[Any, dict[str, str]]:
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return Dirichlet(np.ones((CLASSES, len(group))), group, len(self.sizes)), {"theta": "theta"}

    def hyperparameters(self, rng: np.random.Generator, n: int) -> Values:
        return {"alpha": rng.lognormal(CENTRE, SPREAD, n)}

    def concentration(self, hyper: Values) -> np.ndarray:
        """(N, L) of each class: α."""
        return np.tile(hyper["alpha"][:, None], sum(self.sizes))

    def parameters(self, rng: np.random.Generator, hyper: Values) -> Values:
        alpha = np.repeat(self.concentration(hyper)[:, None], CLASSES, axis=1)
        return {"theta": np.concatenate([_dirichlet(rng, group) for group in self.groups(alpha)], axis=-1)}

    def count(self, rng: np.random.Generator, parameters: Values, own: np.ndarray) -> Any:
        times = self.draws * own.sum(axis=-1)
        counts = [rng.multinomial(times, theta) for theta in self.groups(parameters["theta"])]
        return LevelCounts(np.concatenate(counts, axis=-1).astype(float))

    def log_likelihood(self, parameters: Values, statistics: Any) -> np.ndarray:
        return xlogy(statistics.count, parameters["theta"]).sum(axis=(-2, -1))

    def groups(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, np.cumsum(self.sizes)[:-1], axis=-1)


class PooledLevels(Levels):
    """Categorical features whose classes share a base measure."""

    def hyperparameters(self, rng: np.random.Generator, n: int) -> Values:
        weight = rng.exponential(size=(n, sum(self.sizes)))
        base = np.concatenate([w / w.sum(axis=1, keepdims=True) for w in self.groups(weight)], axis=1)
        return super().hyperparameters(rng, n) | {"base_measure_weight": weight, "base_measure": base}

    def concentration(self, hyper: Values) -> np.ndarray:
        """(N, L) of each class: α L m."""
        return super().concentration(hyper) * np.repeat(self.sizes, self.sizes) * hyper["base_measure"]


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Two features around the prior of each."""

    loc = np.array([1.0, -2.0])
    rate = np.array([3.0, 0.7])
    kappa, concentration = 0.5, 2.5

    def family(self) -> tuple[Any, dict[str, str]]:
        fields = (np.broadcast_to(v, (CLASSES, 2)) for v in (self.loc, self.kappa, self.concentration, self.rate))
        return NormalInverseGamma(*fields), {"mu": "mu", "sigma2": "sigma2"}

    def hyperparameters(self, rng: np.random.Generator, n: int) -> Values:
        """Location around the prior's with the scale of μ, and log rate with standard deviation one."""
        scale = np.sqrt(self.rate / (self.concentration * self.kappa))
        return {"loc": rng.normal(self.loc, scale, (n, 2)), "rate": rng.lognormal(np.log(self.rate), 1.0, (n, 2))}

    def parameters(self, rng: np.random.Generator, hyper: Values) -> Values:
        sigma2 = hyper["rate"][:, None] / rng.gamma(self.concentration, size=(len(hyper["rate"]), CLASSES, 2))
        return {"mu": rng.normal(hyper["loc"][:, None], np.sqrt(sigma2 / self.kappa)), "sigma2": sigma2}

    def count(self, rng: np.random.Generator, parameters: Values, own: np.ndarray) -> Any:
        """Each class has a value of each row, of which its own count."""
        mu, sigma2, own = parameters["mu"][:, :, None], parameters["sigma2"][:, :, None], own[..., None]
        x = rng.normal(mu, np.sqrt(sigma2), np.broadcast_shapes(mu.shape, own.shape))  # (N, C, R, F)
        n = np.broadcast_to(own, x.shape).sum(axis=2)
        mean = (own * x).sum(axis=2) / np.maximum(n, 1.0)
        return Moments(n, mean, (own * (x - mean[:, :, None]) ** 2).sum(axis=2))

    def log_likelihood(self, parameters: Values, statistics: Any) -> np.ndarray:
        n, sigma2 = statistics.count, parameters["sigma2"]
        square = statistics.m2 + n * (statistics.mean - parameters["mu"]) ** 2
        return -0.5 * (n * np.log(sigma2) + square / sigma2).sum(axis=(-2, -1))


@dataclass(frozen=True)
class World:
    """Classes, and features that know them."""

    kind: HyperpriorKind
    features: Features

    def hierarchy(self, make: Callable[..., Hierarchy] = Hierarchy) -> Hierarchy:
        family, sites = self.features.family()
        class_prior = Dirichlet(np.ones((1, CLASSES)), np.zeros(CLASSES, np.int32), 1)
        return make(NaiveBayes(class_prior, (family,)), self.kind, dist.LogNormal(CENTRE, SPREAD), [sites])

    def hyperparameters(self, rng: np.random.Generator, n: int) -> Values:
        return {"class_alpha": rng.lognormal(CENTRE, SPREAD, n), **self.features.hyperparameters(rng, n)}

    def parameters(self, rng: np.random.Generator, hyper: Values) -> Values:
        class_prob = _dirichlet(rng, np.tile(hyper["class_alpha"][:, None], CLASSES))
        return {"class_prob": class_prob, **self.features.parameters(rng, hyper)}

    def statistics(self, rng: np.random.Generator, parameters: Values, rows: int) -> Statistics:
        """Sufficient statistics of simulated labelled rows in each world."""
        below = np.cumsum(parameters["class_prob"], axis=1)[:, None, :-1]
        label = (rng.random((len(below), rows, 1)) > below).sum(axis=-1)
        own = label[:, None] == np.arange(CLASSES)[:, None]
        counted = self.features.count(rng, parameters, own)
        return Statistics(own.sum(axis=-1).astype(float), (counted,), np.zeros(len(own)))

    def log_likelihood(self, parameters: Values, statistics: Statistics) -> np.ndarray:
        """(N,) log p(D | θ), up to what no parameter changes."""
        of_classes = xlogy(statistics.class_count, parameters["class_prob"]).sum(axis=-1)
        return of_classes + self.features.log_likelihood(parameters, statistics.blocks[0])


WORLDS = {
    "pooled": World("pooled", PooledLevels((2, 3), draws=2)),
    "symmetric": World("symmetric", Levels((3, 2, 4))),
    "gaussian": World("symmetric", Gaussians()),
}


class OffByOne(Hierarchy):
    """Mistaken: the concentrations of the features are one too large."""

    def sample_prior(self, into: NaiveBayes | None = None) -> NaiveBayes:
        model = super().sample_prior(into)
        (family,) = model.blocks
        name = "alpha" if hasattr(family, "alpha") else "concentration"  # condensed, or not
        return replace(model, blocks=(replace(family, **{name: getattr(family, name) + 1.0}),))


def condensed(hierarchy: Hierarchy, statistics: Statistics) -> Statistics:
    """Condensed statistics of each world; histograms are padded with entries of count zero."""

    def stacked(*leaves: Any) -> np.ndarray:
        out = np.zeros((len(leaves), *np.max([np.shape(leaf) for leaf in leaves], axis=0).astype(int)))
        for i, leaf in enumerate(leaves):
            out[(i, *map(slice, np.shape(leaf)))] = leaf
        return out

    worlds = [jax.tree.map(itemgetter(i), statistics) for i in range(len(statistics.log_base))]
    return jax.tree.map(stacked, *map(hierarchy.condense, worlds))


def draw_parameters(hierarchy: Hierarchy, hyper: Values, statistics: Statistics, seed: int) -> Values:
    """One exact draw in each world, given its hyperparameters and data."""
    with jax.enable_x64(True):
        models = jax.tree.map(np.asarray, _posteriors(hierarchy)(hyper, statistics))
    everything = [np.ones(np.shape(block.concentration)[-1], bool) for block in models.blocks]
    stacked = stack_as_classes(jax.tree.map(itemgetter(0), models), models, (len(statistics.log_base),))
    return draw_sites(stacked, hierarchy.sites, everything, 1, seed)


@cache
def _posteriors(hierarchy: Hierarchy) -> Callable[[Values, Statistics], NaiveBayes]:
    def posterior(hyper: Values, statistics: Statistics) -> NaiveBayes:
        prior = numpyro.handlers.substitute(numpyro.handlers.seed(hierarchy.sample_prior, 0), data=hyper)()
        return prior.update(statistics)

    return jax.jit(jax.vmap(posterior))


def _dirichlet(rng: np.random.Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma(a) = Gamma(a + 1) · U^(1/a), in logarithms, since concentrations are tiny."""
    log_gamma = np.log(rng.standard_gamma(alpha + 1.0)) - rng.exponential(size=alpha.shape) / alpha
    return np.exp(log_gamma - logsumexp(log_gamma, axis=-1, keepdims=True))
