"""Hierarchical programs: densities with θ integrated out, their gradients, and θ given the hyperparameters."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpyro import distributions as dist
from numpyro.infer.util import log_density
from scipy import stats
from scipy.special import digamma, gammaln

from bayesnb import Dirichlet, GammaPoisson, NaiveBayes, NormalInverseGamma
from bayesnb._util.precision import float64
from bayesnb.families import LevelCounts
from bayesnb.families.protocol import HyperpriorKind
from bayesnb.families.special import Histogram, Symmetric
from bayesnb.sampling.programs import Hierarchy
from bayesnb.uncertainty.given_draws import hyperparameter_sites, posteriors_given
from tests.laws import test_bayes_identity as by_scipy
from tests.sampling.problem import Fitted, ordinary

pytestmark = pytest.mark.slow("NumPyro compiles for seconds")

KINDS = ("symmetric", "pooled")
POINTS = 5
ALPHA = stats.lognorm(1.5, scale=np.exp(-1.0))

Hyper = dict[str, np.ndarray]

# -- the histogram of counts -----------------------------------------------------------------------


@st.composite
def counts(draw: Any) -> tuple[np.ndarray, np.ndarray]:
    """Counts (C, L), some of them fractions, and the number of levels of each group; some groups have none."""
    sizes = [*draw(st.lists(st.integers(0, 4), max_size=5)), 1]
    cell = st.one_of(st.integers(0, 5).map(float), st.integers(0, 40).map(lambda i: i / 8), st.just(2e6))
    return draw(arrays(float, (draw(st.integers(1, 3)), sum(sizes)), elements=cell)), np.array(sizes)


def evidence(count: np.ndarray, sizes: np.ndarray) -> Callable[[Any], Any]:
    """Evidence of a symmetric Dirichlet as a function of α, from the histogram of the counts."""
    counted = Histogram.from_counts(count, np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    return lambda alpha: Symmetric(alpha).log_evidence(counted)


def groups(count: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Counts of each group of each class."""
    return [part for row in count for part in np.split(row, np.cumsum(sizes)[:-1]) if part.size]


@given(counts=counts(), log_alpha=st.floats(-6, 6))
def test_the_histogram_has_the_evidence_of_all_cells(counts, log_alpha):
    alpha, expected, scale = np.exp(log_alpha), 0.0, 1.0
    for n in groups(*counts):
        total = n.size * alpha
        terms = [gammaln(alpha + n), -gammaln(alpha) * np.ones(n.size), [gammaln(total), -gammaln(total + n.sum())]]
        expected, scale = expected + sum(map(np.sum, terms)), max(scale, *(np.max(np.abs(t)) for t in terms))
    found = float64(evidence(*counts))(alpha)
    assert abs(found - expected) <= 1e-13 * scale * counts[0].size


@given(counts=counts(), log_alpha=st.floats(-6, 6))
def test_its_gradient_is_the_mean_gradient_of_the_complete_density(counts, log_alpha):
    """Fisher's identity: E d/dα log p(θ | α) over θ | α, D; E log θ is a difference of digammas."""
    alpha = np.exp(log_alpha)
    terms = [0.0]
    for n in groups(*counts):
        log_theta = digamma(alpha + n) - digamma(n.size * alpha + n.sum())
        terms += [n.size * digamma(n.size * alpha), -n.size * digamma(alpha), *log_theta]
    found = float64(jax.grad(evidence(*counts)))(alpha)
    assert abs(found - sum(terms)) <= 1e-10 * max(1.0, np.abs(terms).sum())


# -- the whole program -----------------------------------------------------------------------------


@cache
def hierarchy(kind: HyperpriorKind, features: str) -> tuple[Fitted, Hierarchy, Hyper]:
    """A program over the ordinary rows, and hyperparameters from their priors, (S, …) each."""
    fitted, _ = ordinary(features)
    target = Hierarchy(fitted.nb.prior_, kind, dist.LogNormal(-1.0, 1.5), fitted.sites)
    rng, hyper = np.random.default_rng(5), {}
    for family, names in zip([fitted.nb.prior_.class_prior, *fitted.nb.prior_.blocks], names_of(fitted), strict=True):
        if isinstance(family, Dirichlet):
            hyper[names[0]] = ALPHA.rvs(POINTS, random_state=rng)
        if isinstance(family, Dirichlet) and kind == "pooled" and names[0] != "class_alpha":
            hyper[f"{names[1]}_weight"] = rng.exponential(size=(POINTS, family.concentration.shape[1]))
        if isinstance(family, NormalInverseGamma):
            loc, scale, rate = ends(family)
            hyper[names[0]] = rng.normal(loc, scale, (POINTS, len(loc)))
            hyper[names[1]] = rate * rng.lognormal(size=(POINTS, len(loc)))
    return fitted, target, hyper


def names_of(fitted: Fitted) -> list[list[str]]:
    """Hyperparameters of the classes and of each block."""
    mixed = fitted.problem.kind == "mixed"
    ending = {Dirichlet: ["alpha", "base_measure"], NormalInverseGamma: ["loc", "rate"], GammaPoisson: []}
    found = [["class_alpha"]]
    for columns, family in zip(fitted.nb.encoding_.blocks, fitted.nb.prior_.blocks, strict=True):
        own = ending[type(family)]
        found.append([f"{name}_{columns.kind}" for name in own] if mixed and isinstance(family, Dirichlet) else own)
    # A Poisson block beside has a parameter "rate".
    return [["loc", "rate_of_sigma2"] if mixed and own == ["loc", "rate"] else own for own in found]


def ends(family: NormalInverseGamma) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Location and scale of the prior of the location, and the median rate."""
    loc, kappa, a, b = (v[0] for v in (family.loc, family.kappa, family.concentration, family.rate))
    return loc, np.sqrt(b / (a * kappa)), b


def at(hyper: Hyper, s: int) -> Hyper:
    return {site: values[s] for site, values in hyper.items()}


def base_measure(weight: np.ndarray, group: np.ndarray) -> np.ndarray:
    return weight / np.bincount(group, weights=weight)[group]


def with_base_measures(fitted: Fitted, samples: Hyper) -> Hyper:
    """Samples (S, …) with the base measure of each pooled block, which its weights determine."""
    measures = {}
    for names, family in zip(names_of(fitted)[1:], fitted.nb.prior_.blocks, strict=True):
        if isinstance(family, Dirichlet) and f"{names[1]}_weight" in samples:
            group = np.asarray(family.group)
            measures[names[1]] = np.stack([base_measure(w, group) for w in samples[f"{names[1]}_weight"]])
    return {**samples, **measures}


def prior_given(fitted: Fitted, hyper: Hyper) -> NaiveBayes:
    """The prior that one draw of the hyperparameters means."""
    families = []
    for family, names in zip([fitted.nb.prior_.class_prior, *fitted.nb.prior_.blocks], names_of(fitted), strict=True):
        if isinstance(family, Dirichlet):
            group, alpha = np.asarray(family.group), np.full(family.concentration.shape, hyper[names[0]])
            if f"{names[-1]}_weight" in hyper:
                size = np.bincount(group)[group]
                alpha = alpha * size * base_measure(hyper[f"{names[-1]}_weight"], group)
            families.append(replace(family, concentration=alpha))
        elif isinstance(family, NormalInverseGamma):
            loc, rate = (hyper[name] * np.ones_like(family.loc) for name in names)
            families.append(replace(family, loc=loc, rate=rate))
        else:
            families.append(family)
    return NaiveBayes(families[0], tuple(families[1:]))


def log_hyperprior(fitted: Fitted, hyper: Hyper) -> float:
    total = 0.0
    for family, names in zip([fitted.nb.prior_.class_prior, *fitted.nb.prior_.blocks], names_of(fitted), strict=True):
        if isinstance(family, Dirichlet):
            total += ALPHA.logpdf(hyper[names[0]])
            if f"{names[-1]}_weight" in hyper:
                weight = hyper[f"{names[-1]}_weight"]
                total += np.sum(10.0 * np.log(weight / base_measure(weight, np.asarray(family.group))) - weight)
        elif isinstance(family, NormalInverseGamma):
            loc, scale, rate = ends(family)
            total += stats.norm.logpdf(hyper[names[0]], loc, scale).sum()
            total += stats.lognorm.logpdf(hyper[names[1]], 1.0, scale=rate).sum()
    return total


@float64
def collapsed(target: Hierarchy, statistics: Any, hyper: Hyper) -> tuple[np.ndarray, Hyper]:
    """(S,) log densities, and their gradients."""
    program, data = target.program(statistics)
    return jax.jit(jax.vmap(jax.value_and_grad(lambda values: log_density(program, (data,), {}, values)[0])))(hyper)


@cache
def found(kind: HyperpriorKind, features: str) -> tuple[np.ndarray, Hyper]:
    fitted, target, hyper = hierarchy(kind, features)
    return collapsed(target, fitted.nb.statistics_, hyper)


each = pytest.mark.parametrize(
    ("kind", "features"),
    [
        *((kind, features) for kind in KINDS for features in ("categorical", "bernoulli", "multinomial", "mixed")),
        ("symmetric", "gaussian"),
    ],
)


@each
def test_law_2(kind, features):
    """log p(D, α) + log p(θ | α, D) == log p(α) + log p(θ | α) + log p(D | θ); all but the first term from SciPy."""
    fitted, _, hyper = hierarchy(kind, features)
    value, _ = found(kind, features)
    rng = np.random.default_rng(8)
    for s in range(POINTS):
        prior = prior_given(fitted, at(hyper, s))
        posterior = prior.update(fitted.nb.statistics_)
        pi, *thetas = [by_scipy.draw_theta(f, rng) for f in (posterior.class_prior, *posterior.blocks)]
        log_prior, log_posterior = (
            sum(
                by_scipy.log_density(f, theta)
                for f, theta in zip([m.class_prior, *m.blocks], [pi, *thetas], strict=True)
            )
            for m in (prior, posterior)
        )
        complete = log_hyperprior(fitted, at(hyper, s)) + log_prior
        complete += by_scipy.log_likelihood(fitted.problem, fitted.nb, pi[0], thetas)
        assert abs(value[s] + log_posterior - complete) <= 1e-9 * max(1.0, abs(value[s]))


@each
def test_gradient_is_the_mean_gradient_of_the_complete_density(kind, features):
    """Fisher's identity: d log p(D | α)/dα = E d log p(θ | α)/dα over θ | α, D, with E log θ and E 1/σ² by hand."""
    fitted, _, hyper = hierarchy(kind, features)
    _, gradient = found(kind, features)
    statistics = [LevelCounts(fitted.nb.statistics_.class_count[None]), *fitted.nb.statistics_.blocks]
    for s in range(POINTS):
        values, prior = at(hyper, s), prior_given(fitted, at(hyper, s))
        expected: Hyper = {}
        families = zip([prior.class_prior, *prior.blocks], names_of(fitted), statistics, strict=True)
        for family, names, counted in families:
            if isinstance(family, Dirichlet):
                expected |= dirichlet_gradient(family, counted.count, names, values)
            elif isinstance(family, NormalInverseGamma):
                hyperprior = ends(next(f for f in fitted.nb.prior_.blocks if isinstance(f, NormalInverseGamma)))
                expected |= normal_gradient(family, counted, names, values, hyperprior)
        assert set(expected) == set(gradient)
        for site, slope in expected.items():
            np.testing.assert_allclose(gradient[site][s], slope, rtol=1e-8, atol=1e-8)


def dirichlet_gradient(family: Dirichlet, count: np.ndarray, names: list[str], values: Hyper) -> Hyper:
    a, group = np.asarray(family.concentration), np.asarray(family.group)
    sums = group[:, None] == np.arange(family.num_groups)
    log_theta = digamma(a + count) - digamma((a + count) @ sums)[:, group]
    # With respect to each concentration, over the classes.
    slope = (digamma(a @ sums)[:, group] - digamma(a) + log_theta).sum(axis=0)
    alpha = values[names[0]]
    found = {names[0]: slope @ a[0] / alpha - (1 + (np.log(alpha) + 1.0) / 1.5**2) / alpha}
    if f"{names[-1]}_weight" in values:
        weight = values[f"{names[-1]}_weight"]
        total, size = (np.bincount(group, weights=v)[group] for v in (weight, np.ones(len(group))))
        m = weight / total
        mean = np.bincount(group, weights=slope * size * m)[group]
        found[f"{names[-1]}_weight"] = (alpha * (slope * size - mean) + 10.0 * size) / total - 1.0
    return found


def normal_gradient(
    family: NormalInverseGamma, counted: Any, names: list[str], values: Hyper, hyperprior: Any
) -> Hyper:
    n, mean, m2 = counted.count, counted.mean, counted.m2
    kappa, a, b = family.kappa, family.concentration, family.rate
    posterior_loc = (kappa * family.loc + n * mean) / (kappa + n)
    posterior_rate = b + m2 / 2 + kappa * n * (mean - family.loc) ** 2 / (2 * (kappa + n))
    precision = (a + n / 2) / posterior_rate
    loc, scale, rate = hyperprior
    return {
        names[0]: (kappa * precision * (posterior_loc - family.loc)).sum(axis=0) - (values[names[0]] - loc) / scale**2,
        names[1]: (a / b - precision).sum(axis=0) - (1 + np.log(values[names[1]] / rate)) / values[names[1]],
    }


# -- θ given the hyperparameters -------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_posterior_given_the_hyperparameters(kind):
    fitted, target, hyper = hierarchy(kind, "mixed")
    prior, statistics = target.prior.unit(), fitted.nb.statistics_
    names = hyperparameter_sites(prior, kind, fitted.sites)
    for s in range(POINTS):
        one = with_base_measures(fitted, {site: values[s : s + 1] for site, values in hyper.items()})
        model = posteriors_given(prior, statistics, names, one)
        expected = prior_given(fitted, at(hyper, s)).update(statistics)
        for mine, theirs in zip(
            map(np.ravel, jax.tree.leaves(model)), map(np.ravel, jax.tree.leaves(expected)), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_each_draw_has_its_own_hyperparameters(kind):
    """Means and variances of 2,000 draws of θ for each of two hyperparameter values, against exact moments."""
    fitted, target, hyper = hierarchy(kind, "mixed")
    n, masks = 2_000, [np.ones(len(columns.axis()[0]), bool) for columns in fitted.nb.encoding_.blocks]
    samples = {site: np.tile(values[:2], (n, *[1] * (values.ndim - 1))) for site, values in hyper.items()}
    samples = with_base_measures(fitted, samples)
    drawn, shared = target.finish(samples, fitted.nb.statistics_, masks, seed=3)
    assert [set(own) for own in shared] == [set(names) & set(samples) for names in names_of(fitted)]
    for s in range(2):
        exact = prior_given(fitted, at(hyper, s)).update(fitted.nb.statistics_)
        families = zip([exact.class_prior, *exact.blocks], [{"theta": "class_prob"}, *fitted.sites], strict=True)
        for family, own in families:
            mean, variance = float64(family.mean)().parameters(), float64(family.variance)()
            for parameter, site in own.items():
                values = drawn[site][s::2]
                error = values - np.squeeze(mean[parameter]) if site == "class_prob" else values - mean[parameter]
                assert (abs(error.mean(axis=0)) <= 5 * error.std(axis=0) / np.sqrt(n) + 1e-12).all()
                spread = error**2 - (variance[parameter][0] if site == "class_prob" else variance[parameter])
                if np.isfinite(spread).all():
                    assert (abs(spread.mean(axis=0)) <= 5 * spread.std(axis=0) / np.sqrt(n) + 1e-12).all()
