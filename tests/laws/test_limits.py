"""Law 5: limits in which the four estimates agree; Laplace smoothing as a posterior mean."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from bayesnb import GammaPoisson, GaussianNB, NormalInverseGamma
from bayesnb.fitted.scoring import pad
from tests.strategies import CLASSES, ESTIMATES, KINDS, LEVELS, Problem, problems, quarters, thorough

mean, mode = jax.jit(lambda family: family.mean()), jax.jit(lambda family: family.mode())
DIRICHLET = ("categorical", "bernoulli", "sparse bernoulli", "multinomial", "sparse multinomial")


def relative_frequencies(nb) -> tuple[np.ndarray, np.ndarray]:
    """Counts (C, L) of the flat levels, and the total of each level's group, by plain loops."""
    count, group = nb.statistics_.blocks[0].count, np.asarray(nb.prior_.blocks[0].group)
    total = np.stack([[count[c, group == g].sum() for g in group] for c in range(len(count))])
    return count, total.reshape(count.shape)


def theta(nb, estimate: str) -> np.ndarray:
    """Level probabilities (C, L); padded for the kernels, so that all examples have one shape."""
    posterior = nb.posterior_ if estimate != "mle" else nb.prior_.improper().update(nb.statistics_)
    log_theta = (mode if estimate == "map" else mean)(pad(nb.encoding_, posterior).blocks[0]).log_theta
    return np.exp(np.asarray(log_theta))[:, : nb.statistics_.blocks[0].count.shape[1]]


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", DIRICHLET)
@given(data=st.data(), smoothing=st.sampled_from([0.1, 0.5, 1.0, 3.0]))
def test_laplace_smoothing_with_lambda_is_the_posterior_mean_under_dirichlet_lambda(kind, data, smoothing, x64):
    problem = data.draw(problems(kind))
    nb = problem.fit(clone(problem.nb).set_params(alpha=smoothing))
    count, total = relative_frequencies(nb)
    group = np.asarray(nb.prior_.blocks[0].group)
    size = np.bincount(group, minlength=1)[group]
    np.testing.assert_allclose(theta(nb, "mean"), (count + smoothing) / (total + smoothing * size), rtol=1e-13)
    # ... and the mode on the simplex under Dirichlet(λ + 1)
    above = problem.fit(clone(problem.nb).set_params(alpha=smoothing + 1))
    np.testing.assert_allclose(theta(above, "map"), theta(nb, "mean"), rtol=1e-12)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", DIRICHLET)
@given(data=st.data())
def test_mle_is_the_relative_frequency_and_the_limit_of_the_mean_as_alpha_vanishes(kind, data, x64):
    problem = data.draw(problems(kind))
    nb = problem.fit(clone(problem.nb).set_params(alpha=1e-13))
    count, total = relative_frequencies(nb)
    with np.errstate(invalid="ignore"):
        frequency = count / total
    np.testing.assert_allclose(theta(nb, "mle"), frequency, rtol=1e-14)
    seen = total > 0  # elsewhere the MLE does not exist
    np.testing.assert_allclose(theta(nb, "mean")[seen], frequency[seen], rtol=1e-11, atol=1e-11)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", DIRICHLET)
@given(data=st.data())
def test_map_is_the_mle_at_alpha_one(kind, data, x64):
    problem = data.draw(problems(kind))
    nb = problem.fit(clone(problem.nb).set_params(alpha=1.0))
    np.testing.assert_allclose(theta(nb, "map"), theta(nb, "mle"), rtol=1e-13)


@given(data=st.data())
def test_gaussian_mle_is_the_sample_mean_and_population_variance_and_map_is_that_at_a_minus_three_halves(data, x64):
    problem = data.draw(problems("gaussian"))
    flat = NormalInverseGamma(loc=0.0, kappa=0.0, concentration=-1.5, rate=0.0)
    nb = problem.fit(clone(problem.nb).set_params(prior=flat))
    mle = mean(nb.prior_.improper().update(nb.statistics_).blocks[0])
    map_ = mode(nb.posterior_.blocks[0])
    for c, j in np.ndindex(3, 3):
        of_class = problem.y == CLASSES[c]
        x = np.repeat(problem.X[of_class, j], problem.weight[of_class].astype(int))
        x = x[~np.isnan(x)]
        mu, variance = (x.mean(), x.var()) if len(x) else (np.nan, np.nan)
        for normal in (mle, map_):
            np.testing.assert_allclose(normal.mu[c, j], mu, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(
                normal.sigma2[c, j], variance, rtol=1e-9, atol=1e-12 * np.max(abs(x), initial=0) ** 2
            )


@given(data=st.data())
def test_poisson_mle_is_the_sample_mean_and_map_is_that_at_a_one_b_zero(data, x64):
    problem = data.draw(problems("poisson"))
    nb = problem.fit(clone(problem.nb).set_params(prior=GammaPoisson(concentration=1.0, rate=0.0)))
    mle = np.asarray(mean(nb.prior_.improper().update(nb.statistics_).blocks[0]).rate)
    map_ = np.asarray(mode(nb.posterior_.blocks[0]).rate)
    for c, j in np.ndindex(3, 3):
        of_class = problem.y == CLASSES[c]
        x = np.repeat(problem.X[of_class, j], problem.weight[of_class].astype(int))
        x = x[~np.isnan(x)]
        np.testing.assert_allclose([mle[c, j], map_[c, j]], x.mean() if len(x) else np.nan, rtol=1e-13)


@given(data=st.data(), class_prior=st.sampled_from([None, [0.5, 0.25, 0.25]]))
def test_class_probabilities_meet_in_the_same_way(data, class_prior):
    problem = data.draw(problems("gaussian"))
    share = np.array([problem.weight[problem.y == c].sum() for c in CLASSES]) / problem.weight.sum()
    share = share if class_prior is None else np.array(class_prior)
    no_cells = np.full((1, 3), np.nan)
    for class_alpha, estimate in ((1.0, "map"), (0.0, "mean"), (3.7, "mle")):
        nb = problem.fit(GaussianNB(class_alpha=class_alpha, class_prior=class_prior))
        np.testing.assert_allclose(nb.predict_proba(no_cells, estimate=estimate)[0], share, rtol=1e-13)


def of_declared_levels(problem: Problem) -> Any:
    """The problem's estimator with declared levels, so that all examples have equally many."""
    levels = {"categories": [list(dict.fromkeys(v for v in pool if v is not None)) for pool in LEVELS]}
    return clone(problem.nb).set_params(**levels if problem.kind == "categorical" else {})


def whole_numbers(problem: Problem) -> Problem:
    """Cells far enough apart for 1e7 rows to be many."""
    if problem.kind == "gaussian":
        return replace(problem, X=np.round(problem.X))
    return replace(problem, X=problem.X.round()) if problem.kind == "mixed" else problem


# of "binned" the sums over binnings round like n log n: tests/families/test_binned.py; of "overdispersed" the largest
# dispersions are hardly different from each other
@pytest.mark.slow("other variants compile kernels of their own", but=["categorical", "gaussian"])
@pytest.mark.parametrize("kind", thorough([k for k in KINDS if k not in ("binned", "overdispersed")]))
@given(data=st.data())
def test_all_four_estimates_meet_as_the_weights_grow(kind, data):
    """The distance between estimates is O(1/n); rows that the MLE calls impossible or undefined are left out."""
    problem = whole_numbers(data.draw(problems(kind, min_rows=5)))
    distance = []
    for n in (1e7, 1e10):
        nb = problem.fit(of_declared_levels(problem), weight=n * problem.weight)
        joint = np.stack([nb.predict_joint_log_proba(problem.X, estimate=e) for e in ESTIMATES])
        joint = joint[:, np.isfinite(joint).all(axis=0)]
        distance.append(np.ptp(joint, axis=0))
    rounding = 1e-9 * np.maximum(1.0, abs(joint).max(axis=0))
    assert (distance[1] <= 2e-3 * distance[0] + rounding).all()


@given(x=st.lists(quarters, min_size=2, max_size=11))
def test_a_point_mass_is_certain_on_its_point_and_impossible_off_it(x):
    rows, y = np.tile(np.array([*x, 100.0, 100.0, 100.0, 0.0, 1.0])[:, None], 3), [0] * len(x) + [1] * 3 + [2] * 2
    joint = GaussianNB(estimate="mle").fit(rows, y).predict_joint_log_proba(np.full((5, 3), [[100.0]] + [[100.5]] * 4))
    assert joint[0, 1] == np.inf
    assert (joint[1:, 1] == -np.inf).all()
    assert np.isfinite(joint[:, 2]).all()
    assert np.isfinite(joint[:, 0]).all() or len(set(x)) == 1
