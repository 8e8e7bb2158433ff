"""The Dirichlet against SciPy, quadrature and numerical optima."""

from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, special, stats

from bayesnb.families import Dirichlet, Known, LevelCounts
from tests.families.oracles import DRAWS, assert_moments, jitted

GROUP = np.array([0, 0, 0, 1, 1, 2])
ALPHA = np.array([[0.4, 1.3, 2.5, 1.0, 7.5, 3.0], [5.0, 0.2, 1.0, 30.0, 2.0, 0.1]])
GROUPS = [(0, 1, 2), (3, 4), (5,)]
concentrations = arrays(float, (2, 6), elements=st.floats(0.05, 50))
log_evidence, log_predictive = map(jitted, ("log_evidence", "log_predictive"))
mean_of, variance_of, log_base, observe = map(jitted, ("mean", "variance", "log_base", "observe"))
log_prob, mode_of, update = map(jitted, ("log_prob", "mode", "update"))
count_vectors = arrays(float, (5, 6), elements=st.integers(0, 9).map(float))


def dirichlet(alpha=ALPHA) -> Dirichlet:
    return Dirichlet(alpha, GROUP, 3)


FIRST = dirichlet(ALPHA[:1])


@cache
def draws() -> np.ndarray:
    """(S, 1, L) log θ of the first class."""
    return np.asarray(jax.jit(lambda key: FIRST.sample(key, DRAWS))(jax.random.key(0)).log_theta)


def each_group(alpha):
    """(class, group, levels, α of the group), groups of one level left out."""
    for c in range(len(alpha)):
        for g, levels in enumerate(GROUPS):
            if len(levels) > 1:
                yield c, g, list(levels), alpha[c, list(levels)]


# -- evidence --------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_an_improper_prior_has_no_evidence():
    counts = LevelCounts(np.ones((2, 6)))
    alpha = ALPHA.copy()
    alpha[0, 1] = 0.0
    evidence = np.asarray(dirichlet(alpha).log_evidence(counts))
    assert evidence[0, 0] == -np.inf
    assert np.isfinite(np.delete(evidence.ravel(), 0)).all()
    assert (np.asarray(dirichlet().improper().log_evidence(counts)) == -np.inf).all()


@given(alpha=concentrations, x=count_vectors)
def test_update_adds_counts(alpha, x):
    label = np.array([0, 1, 1, 0, 1])
    weight = np.array([1.0, 2.0, 0.5, 3.0, 0.0])
    counts = observe(LevelCounts(np.zeros((2, 6))), x, label, weight)
    expected = [(weight * (label == c)) @ x for c in (0, 1)]
    np.testing.assert_allclose(counts.count, expected, rtol=1e-14)
    np.testing.assert_allclose(update(dirichlet(alpha), counts).concentration, alpha + expected, rtol=1e-14)


# -- the estimates -----------------------------------------------------------------------------------


@given(alpha=concentrations)
def test_mean_and_variance_are_scipys(alpha):
    prior = dirichlet(alpha)
    mean, variance = np.asarray(mean_of(prior).theta), np.asarray(variance_of(prior)["theta"])
    for c, _, levels, a in each_group(alpha):
        np.testing.assert_allclose(mean[c, levels], stats.dirichlet.mean(a), rtol=1e-13)
        np.testing.assert_allclose(variance[c, levels], stats.dirichlet.var(a), rtol=1e-11)
    np.testing.assert_array_equal(mean[:, 5], 1.0)
    np.testing.assert_allclose(variance[:, 5], 0.0, atol=1e-16)


@pytest.mark.parametrize("alpha", [[1.5, 2.0, 4.0], [30.0, 2.0, 1.1], [1.0, 2.0, 3.0]])
def test_mode_is_where_the_density_on_the_simplex_is_greatest(alpha):
    def loss(z):
        theta = np.exp(z - np.logaddexp.reduce(z))
        return -((np.array(alpha) - 1) @ np.log(theta))

    best = optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-10}).x
    theta = np.exp(best - np.logaddexp.reduce(best))
    found = mode_of(dirichlet(np.tile([*alpha, 1.0, 1.0, 1.0], (2, 1)))).theta
    np.testing.assert_allclose(np.asarray(found)[:, :3], [theta, theta], atol=2e-6)


def test_mode_does_not_exist_below_one_or_where_the_density_is_flat():
    alpha = np.array([[0.9, 2.0, 3.0, 1.0, 1.0, 4.0], [1.0, 1.0, 1.0, 1.0, 2.5, 1.0]])
    theta = np.asarray(mode_of(dirichlet(alpha)).theta)
    assert np.isnan(theta[0, :5]).all()
    assert theta[0, 5] == 1
    assert np.isnan(theta[1, :3]).all()
    np.testing.assert_array_equal(theta[1, 3:5], [0.0, 1.0])


def test_mle_of_an_empty_group_does_not_exist_and_log_zero_is_an_answer():
    counts = LevelCounts(np.array([[0.0, 0, 0, 3, 0, 2], [1.0, 1, 2, 0, 0, 0]]))
    log_theta = np.asarray(mean_of(update(dirichlet().improper(), counts)).log_theta)
    assert np.isnan(log_theta[0, :3]).all()
    np.testing.assert_array_equal(log_theta[0, 3:], [0.0, -np.inf, 0.0])
    np.testing.assert_allclose(log_theta[1, :3], np.log([0.25, 0.25, 0.5]), rtol=1e-15)
    assert np.isnan(log_theta[1, 3:]).all()


@given(alpha=concentrations, x=count_vectors)
def test_plug_in_likelihood_and_coefficient_are_scipys_multinomials(alpha, x):
    prior = dirichlet(alpha)
    theta = np.asarray(mean_of(prior).theta)
    actual = np.asarray(log_prob(mean_of(prior), x)) + np.asarray(log_base(prior, x))[:, None]
    expected = np.zeros((5, 2))
    for c, _, levels, _ in each_group(alpha):
        expected[:, c] += [stats.multinomial.logpmf(row, row.sum(), theta[c, levels]) for row in x[:, levels]]
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@given(alpha=concentrations, x=count_vectors)
def test_predictive_is_scipys_dirichlet_multinomial(alpha, x):
    actual = np.asarray(log_predictive(dirichlet(alpha), x))
    expected = np.zeros((5, 2))
    for c, _, levels, a in each_group(alpha):
        expected[:, c] += [
            stats.dirichlet_multinomial.logpmf(row.astype(int), a, int(row.sum())) for row in x[:, levels]
        ]
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def test_predictive_of_improper_levels_is_impossible_only_where_they_occur():
    x = np.zeros((5, 6))
    x[:2, :3] = [[0, 1, 1], [1, 1, 0]]
    found = np.asarray(log_predictive(dirichlet(np.tile([0.0, 2.0, 1.0, 1.0, 1.0, 1.0], (2, 1))), x))[:, 0]
    np.testing.assert_allclose(found, [np.log(2 * 2 * 1 / (3 * 4)), -np.inf, 0.0, 0.0, 0.0])


# -- marginals, draws and moments ----------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_marginals_have_the_mean_and_variance_of_the_parameters():
    name, arguments = dirichlet().marginals()["theta"]
    assert name == "beta"
    several = np.flatnonzero(GROUP < 2)
    marginal = stats.beta(**{k: np.asarray(v)[:, several] for k, v in arguments.items()})
    np.testing.assert_allclose(marginal.mean(), dirichlet().mean().theta[:, several], rtol=1e-12)
    np.testing.assert_allclose(marginal.var(), dirichlet().variance()["theta"][:, several], rtol=1e-12)


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_have_the_marginals_and_moments_and_sum_to_one():
    prior = FIRST
    theta = np.exp(draws())
    np.testing.assert_allclose(theta[:, :, :3].sum(axis=2), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(theta[:, :, 5], 1.0)
    assert_moments(theta, prior.mean().theta, prior.variance()["theta"])
    _, arguments = prior.marginals()["theta"]
    for c, j in np.ndindex(1, 5):
        marginal = stats.beta(*(arguments[k][c, j] for k in "ab"))
        assert stats.kstest(theta[:5000, c, j], marginal.cdf).pvalue > 1e-3
    covariance = np.cov(theta[:, 0, :3].T)
    np.testing.assert_allclose(covariance, stats.dirichlet.cov(ALPHA[0, :3]), atol=1e-3)


@pytest.mark.slow("compiles kernels of its own")
def test_draws_under_tiny_concentrations_do_not_underflow_to_nan():
    prior = Dirichlet(np.full((1, 4), 1e-3), np.zeros(4, int), 1)
    log_theta = np.asarray(prior.sample(jax.random.key(1), 1000).log_theta)
    assert np.isfinite(log_theta).all()
    np.testing.assert_allclose(np.exp(log_theta).sum(axis=2), 1.0, rtol=1e-12)


def test_cumulants_of_log_probabilities_are_polygammas():
    alpha, group = np.array([[0.5, 2.0, 3.0, 1.0, 7.0]]), np.array([0, 0, 0, 1, 1])
    total = np.array([[5.5, 5.5, 5.5, 8.0, 8.0]])
    with jax.enable_x64(True):
        found = Dirichlet(alpha, group, 2).cumulants_of_levels()
    for k, cumulant in enumerate((found.mean, found.variance, found.third)):
        np.testing.assert_allclose(cumulant, special.polygamma(k, alpha) - special.polygamma(k, total), rtol=1e-10)


SHARES = np.array([0.2, 0.5, 0.3])
KNOWN = Known(np.log(SHARES)[None])
THREE_COUNTS = LevelCounts(np.array([[3.0, 0.0, 2.5]]))


def test_nothing_changes_known_probabilities():
    for reading in (KNOWN.update(THREE_COUNTS), KNOWN.improper(), KNOWN.improper().update(THREE_COUNTS)):
        for estimate in (reading.mean(), reading.mode(), reading.penalized_mle()):
            np.testing.assert_allclose(estimate.theta[0], SHARES, rtol=1e-14)
    np.testing.assert_array_equal(KNOWN.variance()["theta"], 0.0)


def test_draws_of_known_probabilities_are_all_the_same():
    np.testing.assert_allclose(KNOWN.sample(jax.random.key(0), 7).theta, np.broadcast_to(SHARES, (7, 1, 3)), rtol=1e-14)


def test_known_probabilities_obey_the_chain_rule():
    total = 0.0
    counts = LevelCounts(np.zeros((1, 3)))
    for label in (0, 2, 2, 1, 0):
        more = counts.merge(LevelCounts(np.eye(3)[[label]]))
        gain = float(np.sum(KNOWN.log_evidence(more) - KNOWN.log_evidence(counts)))
        assert gain == pytest.approx(np.log(SHARES[label]), abs=1e-14)
        total += gain
        counts = more
    assert float(KNOWN.log_evidence(counts)[0]) == pytest.approx(total, abs=1e-14)


def test_a_class_of_probability_zero_costs_nothing_until_it_occurs():
    with np.errstate(divide="ignore"):
        known = Known(np.log([[0.0, 1.0]]))
    assert float(known.log_evidence(LevelCounts(np.array([[0.0, 5.0]])))[0]) == 0
    assert float(known.log_evidence(LevelCounts(np.array([[1.0, 5.0]])))[0]) == -np.inf
