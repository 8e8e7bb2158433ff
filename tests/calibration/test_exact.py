"""Simulation-based calibration of the exact sampler: from rows through an estimator to draws.

Ranks are those of every parameter, and of the log-likelihood of the data (Modrak et al., *Simulation-based calibration
checking for Bayesian computation: the choice of test quantities shapes sensitivity*, 2023).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bayesnb as bnb
from bayesnb.families import IndependentCuts
from tests.calibration.bands import LEVEL, Ranks, rank, smallest_p_value
from tests.calibration.fixed_priors import ALPHA, CLASSES, FIXED, log_likelihood
from tests.uncertainty.simulated import Parameters, Simulated

pytestmark = pytest.mark.calibration

SETS, FEWER, DRAWS, ROWS = 2_000, 1_000, 99, 20  # fewer data sets where a mistake is to be found

# The case, rows and labels to a fitted estimator, and this to draws.
Fit = Callable[[Simulated, Any, np.ndarray], Any]
Draw = Callable[[Any, int], Parameters]


def fit(case: Simulated, X: Any, y: np.ndarray) -> Any:
    return case.fit(X, y)


def draw(nb: Any, seed: int) -> Parameters:
    return bnb.posterior_draws(nb, draws=DRAWS, seed=seed)


def simulate(family: str, fit: Fit = fit, draw: Draw = draw, sets: int = SETS, missing: float = 0.0) -> Ranks:
    """Ranks in many data sets; in every other one a cell is missing with the given probability."""
    case, found = FIXED[family], []
    for s in range(sets):
        rng = np.random.default_rng([s, 3])
        truth = case.truth(rng)
        X, y = case.draw(rng, truth, ROWS)
        if missing and s % 2:
            seen = rng.random(X.shape) >= missing
            X = X.where(seen) if hasattr(X, "where") else np.where(seen, X, np.nan)
        drawn = draw(fit(case, X, y), s)
        truth, drawn = ({**p, "log_likelihood": log_likelihood(case, p, X, y)} for p in (truth, drawn))
        found.append({name: rank(rng, truth[name][0], drawn[name]) for name in truth})
    return {name: np.stack([ranks[name] for ranks in found]) for name in found[0]}


@pytest.mark.parametrize("family", FIXED)
def test_ranks_are_uniform(family):
    """Words are counted or they are not there: a document has no missing cells."""
    ranks = simulate(family, missing=0.0 if family == "multinomial" else 0.2)
    assert smallest_p_value(ranks, DRAWS) > LEVEL


def distinct_rows(power: int) -> Fit:
    """Distinct rows, with weights that are powers of their multiplicities."""

    def fit(case: Simulated, X: np.ndarray, y: np.ndarray) -> Any:
        distinct, times = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
        weight = times.astype(float) ** power
        return case.make().partial_fit(distinct[:, :-1], distinct[:, -1].astype(int), CLASSES, sample_weight=weight)

    return fit


@pytest.mark.parametrize("family", ["categorical", "bernoulli", "poisson"])
def test_ranks_are_uniform_from_distinct_rows_and_their_multiplicities(family):
    assert smallest_p_value(simulate(family, fit=distinct_rows(1)), DRAWS) > LEVEL


def binned_ranks(sets: int, fitted: Callable[[np.ndarray, np.ndarray], Any]) -> Ranks:
    """Ranks of cuts, heights and the log-likelihood, for rows drawn from the prior."""
    import jax

    cells = np.array([6, 4])
    with jax.enable_x64(True):
        prior = IndependentCuts(concentration=3.0, cuts=1.5).prior(2, cells)
        truths = np.asarray(prior.sample(jax.random.key(0), sets).theta)
    start, found = np.cumsum(cells) - cells, []

    def quantities(theta: np.ndarray, count: np.ndarray) -> dict[str, np.ndarray]:
        jumps = [
            ~np.isclose(np.diff(theta[..., s : s + n]), 0.0, atol=1e-12).all(axis=-2)
            for s, n in zip(start, cells, strict=True)
        ]
        return {
            "theta": theta,
            "cuts": np.concatenate(jumps, axis=-1).sum(axis=-1),
            "log_likelihood": (count * np.log(np.maximum(theta, 1e-300))).sum(axis=(-2, -1)),
        }

    for s, theta in enumerate(truths):
        rng = np.random.default_rng([s, 4])
        y = rng.integers(0, 2, 30)
        X = np.column_stack(
            [
                np.array([rng.choice(n, p=theta[c, a : a + n] / theta[c, a : a + n].sum()) for c in y])
                for a, n in zip(start, cells, strict=True)
            ]
        )
        nb = fitted(X.astype(float), y)
        count = nb.statistics_.blocks[0].count
        drawn = bnb.posterior_draws(nb, draws=DRAWS, seed=s)["theta"]
        true, draws = quantities(theta, count), quantities(drawn, count)
        found.append({name: rank(rng, true[name], draws[name]) for name in true})
    return {name: np.stack([ranks[name] for ranks in found]) for name in found[0]}


def binned(prior: IndependentCuts) -> Callable[[np.ndarray, np.ndarray], Any]:
    edges = [np.arange(5) + 0.5, np.arange(3) + 0.5]
    return lambda X, y: bnb.BinnedNB(edges=edges, prior=prior).partial_fit(X, y, [0, 1])


def test_ranks_are_uniform_of_densities_with_unknown_cuts():
    ranks = binned_ranks(FEWER, binned(IndependentCuts(concentration=3.0, cuts=1.5)))
    assert smallest_p_value(ranks, DRAWS) > LEVEL


# -- mistakes that must be found -----------------------------------------------------------------


@pytest.mark.parametrize("family", ["categorical", "bernoulli", "poisson"])
def test_squared_weights_are_found(family):
    assert smallest_p_value(simulate(family, fit=distinct_rows(2), sets=FEWER), DRAWS) < LEVEL


@pytest.mark.parametrize("step", [1, -1], ids=["alpha+1", "alpha-1"])
@pytest.mark.parametrize("family", ALPHA)
def test_a_concentration_off_by_one_is_found(family, step):
    """Where α - 1 would not be positive, α is used."""
    wrong = ALPHA[family] + step
    wrong = np.where(wrong > 0, wrong, ALPHA[family])
    ranks = simulate(family, fit=lambda case, X, y: case.fit(X, y, alpha=wrong), sets=FEWER)
    assert smallest_p_value(ranks, DRAWS) < LEVEL


def sd_as_variance(nb: Any, seed: int) -> Parameters:
    drawn = draw(nb, seed)
    return {**drawn, "sigma2": np.sqrt(drawn["sigma2"])}


def variance_as_sd_of_the_mean(nb: Any, seed: int) -> Parameters:
    """μ with standard deviation σ²/√κ in place of σ/√κ."""
    drawn, loc = draw(nb, seed), nb.posterior_.blocks[0].loc
    return {**drawn, "mu": loc + (drawn["mu"] - loc) * np.sqrt(drawn["sigma2"])}


@pytest.mark.parametrize("mistaken", [sd_as_variance, variance_as_sd_of_the_mean])
def test_sigma_for_sigma_squared_is_found(mistaken):
    assert smallest_p_value(simulate("gaussian", draw=mistaken, sets=FEWER), DRAWS) < LEVEL


def test_too_many_cuts_are_found():
    ranks = binned_ranks(FEWER, binned(IndependentCuts(concentration=3.0, cuts=6.0)))
    assert smallest_p_value(ranks, DRAWS) < LEVEL
