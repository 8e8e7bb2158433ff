"""Law 2: log p(D | θ) + log p(θ) - log p(θ | D) is log p(D) for any θ, with densities from SciPy and the raw rows."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesnb import BetaNegativeBinomial, Dirichlet, GammaExponential, GammaPoisson, NormalInverseGamma
from bayesnb.families import Known
from tests.strategies import CLASSES, KINDS, Problem, problems

# -- θ, and its densities ------------------------------------------------------------------------


def draw_theta(family: Any, rng: np.random.Generator) -> Any:
    """Any θ will do; near the posterior is where densities do not underflow."""
    if isinstance(family, Known):
        return np.exp(family.log_prob[0])
    if isinstance(family, Dirichlet):
        theta = np.empty(family.concentration.shape)
        for c, j in np.ndindex(len(theta), family.num_groups):
            group = np.asarray(family.group) == j
            theta[c, group] = rng.dirichlet(family.concentration[c, group] + 1.0) if group.any() else []
        return theta
    if isinstance(family, NormalInverseGamma):
        sigma2 = family.rate / rng.gamma(family.concentration)
        return rng.normal(family.loc, np.sqrt(sigma2 / family.kappa)), sigma2
    if isinstance(family, BetaNegativeBinomial):
        r = rng.choice(np.unique(family.dispersions), family.rate.shape)
        return rng.gamma(family.concentration + 0.5) / family.rate, r
    assert isinstance(family, GammaPoisson | GammaExponential)
    return rng.gamma(family.concentration + 0.5) / family.rate


def log_density(family: Any, theta: Any) -> float:
    if isinstance(family, Known):
        return 0.0
    if isinstance(family, Dirichlet):
        pieces = [
            (family.concentration[c, group], theta[c, group])
            for c in range(len(theta))
            for group in (np.asarray(family.group) == j for j in range(family.num_groups))
            if group.sum() > 1
        ]
        return sum(stats.dirichlet.logpdf(t / t.sum(), a) for a, t in pieces)
    if isinstance(family, NormalInverseGamma):
        mu, sigma2 = theta
        normal = stats.norm.logpdf(mu, family.loc, np.sqrt(sigma2 / family.kappa))
        return float(np.sum(normal + stats.invgamma.logpdf(sigma2, family.concentration, scale=family.rate)))
    if isinstance(family, BetaNegativeBinomial):
        rate, r = theta
        log_prob = np.asarray(family.log_prob())[r[..., None] == family.dispersions].reshape(r.shape)
        density = stats.betaprime.logpdf(rate, family.concentration, 1 + family.rate * r, scale=r)
        return float(np.sum(log_prob + density))
    return float(np.sum(stats.gamma.logpdf(theta, family.concentration, scale=1 / family.rate)))


# -- the likelihood, row by row and cell by cell ---------------------------------------------------


def log_categorical(levels: list, theta: np.ndarray, cells: np.ndarray) -> float:
    """`theta` (L,) of one class, features one after the other; None is a missing cell."""
    total, start = 0.0, 0
    for values, cell in zip(levels, cells, strict=True):
        if cell is not None and cell == cell:
            total += np.log(theta[start + list(values).index(cell)])
        start += len(values)
    return total


def log_bernoulli(theta: np.ndarray, cells: np.ndarray) -> float:
    present = theta[1::2]
    return sum(stats.bernoulli.logpmf(int(x), p) for x, p in zip(cells, present, strict=True) if not np.isnan(x))


def log_normal(theta: Any, cells: np.ndarray) -> float:
    mu, sigma2 = theta
    return float(np.nansum(stats.norm.logpdf(cells, mu, np.sqrt(sigma2))))


def log_poisson(theta: np.ndarray, cells: np.ndarray) -> float:
    return sum(stats.poisson.logpmf(int(x), rate) for x, rate in zip(cells, theta, strict=True) if not np.isnan(x))


def log_counts(theta: Any, cells: np.ndarray) -> float:
    rates, dispersions = theta
    columns = zip(cells, rates, dispersions, strict=True)
    return sum(stats.nbinom.logpmf(int(x), r, r / (r + rate)) for x, rate, r in columns if not np.isnan(x))


def log_exponential(theta: np.ndarray, cells: np.ndarray) -> float:
    return float(np.nansum(stats.expon.logpdf(cells, scale=1 / theta)))


def log_multinomial(theta: np.ndarray, cells: np.ndarray) -> float:
    return float(stats.multinomial.logpmf(cells, int(cells.sum()), theta / theta.sum()))


def log_likelihood(problem: Problem, nb: Any, pi: np.ndarray, thetas: list) -> float:
    """log p(X, y | π, θ), the weight of a row being its number of copies."""
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    total = 0.0
    for i, (label, weight) in enumerate(zip(problem.y, problem.weight, strict=True)):
        c = CLASSES.index(label)
        of_class = [tuple(part[c] for part in t) if isinstance(t, tuple) else t[c] for t in thetas]
        total += weight * (
            np.log(pi[c]) + log_row(problem.kind, nb, of_class, X.iloc[i] if hasattr(X, "iloc") else X[i])
        )
    return total


def log_row(kind: str, nb: Any, thetas: list, row: Any) -> float:
    if kind == "mixed":
        by_kind = dict(zip(("categorical", "gaussian", "bernoulli", "poisson", "multinomial"), thetas, strict=True))
        levels = [list(v.values) for v in nb.encoding_.blocks[0].levels]
        return (
            log_categorical(levels, by_kind["categorical"], [row["colour"], row["sort"]])
            + log_normal(by_kind["gaussian"], np.array([row["size"], row["weight"]], float))
            + log_bernoulli(by_kind["bernoulli"], [row["heads"]])
            + log_poisson(by_kind["poisson"], [row["visits"]])
            + log_multinomial(by_kind["multinomial"], np.array([row["word"], row["other"]], float))
        )
    if kind == "categorical":
        return log_categorical(nb.categories_, thetas[0], row)
    density = {
        "bernoulli": log_bernoulli,
        "multinomial": log_multinomial,
        "gaussian": log_normal,
        "poisson": log_poisson,
        "overdispersed": log_counts,
        "dispersed": log_counts,
        "exponential": log_exponential,
    }
    return density[kind.split()[-1]](thetas[0], row)


# of "binned", whose parameters are cuts and heights: tests/families/test_binned.py
@pytest.mark.slow("other variants compile kernels of their own", but=["categorical", "gaussian"])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "binned"])
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_likelihood_times_prior_over_posterior_is_the_evidence(kind, data, seed):
    problem = data.draw(problems(kind))
    rng = np.random.default_rng(seed)
    nb = problem.fit()
    prior, posterior = nb.prior_, nb.posterior_
    pi = draw_theta(posterior.class_prior, rng)
    pi = pi if pi.ndim == 1 else pi[0]
    thetas = [draw_theta(block, rng) for block in posterior.blocks]
    with_pi = [pi[None], *thetas]
    log_prior = sum(log_density(f, t) for f, t in zip([prior.class_prior, *prior.blocks], with_pi, strict=True))
    log_posterior = sum(
        log_density(f, t) for f, t in zip([posterior.class_prior, *posterior.blocks], with_pi, strict=True)
    )
    identity = log_likelihood(problem, nb, pi, thetas) + log_prior - log_posterior
    assert abs(identity - nb.log_evidence_) <= 1e-9 * max(1.0, abs(nb.log_evidence_))
