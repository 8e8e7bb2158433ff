"""The simulation study of the kernels, against scikit-learn, exact probabilities, and the truth of the simulation."""

import jax
import numpy as np
import pytest
from scipy.special import beta, comb

from bayesnb import kernels
from examples import simulation_study
from examples.simulation_study import N_COLUMNS, N_TRAINING, coverage, losses_by_alpha, prior

KEYS = jax.random.split(jax.random.key(0), 2_000)


@pytest.fixture(scope="module")
def data():
    return jax.jit(jax.vmap(simulation_study.simulate))(KEYS)


@pytest.fixture(scope="module")
def statistics(data):
    return jax.jit(jax.vmap(simulation_study.count))(data)


@pytest.fixture(scope="module")
def losses(data):
    return np.asarray(jax.jit(jax.vmap(simulation_study.score))(data))


def test_losses_are_those_of_scikit_learn(x64):
    data = jax.jit(jax.vmap(simulation_study.simulate))(KEYS[:200])
    losses = jax.jit(jax.vmap(simulation_study.score))(data)[:, 2]
    np.testing.assert_allclose(losses, simulation_study.scikit_learn_losses(data), rtol=0, atol=1e-10)


def test_maximum_likelihood_finds_rows_impossible_as_often_as_dirichlet_tables_imply(losses):
    # n training rows of a new row's class have the distribution Beta-binomial(12, 2, 2), as there are three classes; a
    # level of a new row is absent from n rows with probability 3 E[θ (1 - θ)^n], θ ~ Beta(1, 2).
    n = np.arange(N_TRAINING + 1)
    weight = comb(N_TRAINING, n) * beta(n + 2, N_TRAINING - n + 2) / beta(2, 2)
    possible = (1 - 3 * beta(2, n + 2) / beta(1, 2)) ** N_COLUMNS
    impossible = (~np.isfinite(losses[:, 0])).mean(axis=1)
    standard_error = impossible.std() / len(impossible) ** 0.5
    assert abs(impossible.mean() - (1 - weight @ possible)) < 4 * standard_error
    assert np.isfinite(losses[:, 1:]).all()


@pytest.mark.slow("compiles kernels of its own")
def test_the_mode_is_the_mean_under_a_concentration_that_is_smaller_by_one(data):
    alpha = np.array([0.5, 1.0, 2.0])
    mode, mean = losses_by_alpha(alpha + 1.0, data, "map"), losses_by_alpha(alpha, data, "mean")
    np.testing.assert_allclose(mode, mean, rtol=1e-5)


@pytest.mark.slow("compiles kernels of its own")
def test_the_predictive_is_the_mean_and_best_under_the_prior_of_the_simulation(data):
    alpha = np.array([0.5, 1.0, 2.0])
    mean, predictive = (np.asarray(losses_by_alpha(alpha, data, name)) for name in ("mean", "predictive"))
    np.testing.assert_allclose(predictive, mean, rtol=1e-5)
    worse = mean[[0, 2]] - mean[1]
    assert (worse.mean(axis=1) > 4 * worse.std(axis=1) / len(KEYS) ** 0.5).all()


@pytest.mark.slow("compiles kernels of its own")
def test_the_gradient_of_the_log_evidence_is_zero_on_average_at_the_truth(statistics):
    gradient = jax.grad(lambda alpha, one: kernels.log_evidence(prior(alpha), one))
    slope = np.asarray(jax.jit(jax.vmap(gradient, in_axes=(None, 0)))(1.0, statistics))
    assert abs(slope.mean()) < 4 * slope.std() / len(KEYS) ** 0.5
    assert simulation_study.best_alpha(statistics) == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow("compiles kernels of its own")
def test_posterior_intervals_cover_and_bootstrap_intervals_do_not(data, statistics):
    lower, upper = jax.jit(jax.vmap(simulation_study.bootstrap_interval, out_axes=1))(KEYS, data)
    assert coverage(lower, upper, data) < 0.6
    assert coverage(*simulation_study.posterior_interval(statistics), data) == pytest.approx(0.9, abs=0.03)
