"""The Gamma–Poisson against SciPy, quadrature and numerical optima."""

from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, optimize, stats
from scipy.special import gammaln

from bayesnb.families import GammaPoisson, Totals
from tests.families.oracles import DRAWS, assert_moments, jitted

A = np.array([[0.5, 3.0], [12.0, 1.0]])
B = np.array([[0.1, 2.0], [5.0, 1.0]])
X = np.array([[0.0, 3.0], [np.nan, 7.0], [20.0, np.nan], [np.nan, np.nan]])
PRIOR = GammaPoisson(A, B)
log_predictive, count, log_evidence, log_prob = map(jitted, ("log_predictive", "observe", "log_evidence", "log_prob"))
positive = arrays(float, (2, 2), elements=st.floats(0.05, 40))
cells = arrays(float, (6, 2), elements=st.one_of(st.integers(0, 60).map(float), st.just(np.nan)))


def observe(x, label, weight=None) -> Totals:
    zeros = np.zeros((2, 2))
    return count(Totals(zeros, zeros), x, np.asarray(label), np.ones(len(x)) if weight is None else weight)


@cache
def draws():
    return jax.jit(lambda key: PRIOR.sample(key, DRAWS))(jax.random.key(0))


# -- counting, partition and evidence --------------------------------------------------------------


@given(
    x=cells,
    label=arrays(int, 6, elements=st.integers(0, 1)),
    weight=arrays(float, 6, elements=st.sampled_from([0, 1, 2.5])),
)
def test_totals_are_weighted_numbers_of_cells_and_sums_and_update_adds_them(x, label, weight):
    totals = observe(x, label, weight)
    for c in (0, 1):
        w = weight * (label == c)
        np.testing.assert_allclose(totals.count[c], w @ ~np.isnan(x), rtol=1e-14)
        np.testing.assert_allclose(totals.total[c], w @ np.nan_to_num(x), rtol=1e-14)
    posterior = PRIOR.update(totals)
    np.testing.assert_allclose(posterior.concentration, A + totals.total)
    np.testing.assert_allclose(posterior.rate, B + totals.count)


def test_a_rate_without_cells_and_pseudo_cells_has_no_mean():
    improper = GammaPoisson(np.array([[1.0, 0.0]]), np.zeros((1, 2)))
    assert np.isnan(improper.mean().rate).all()


def test_log_partition_normalises_the_density():
    total, _ = integrate.quad(lambda rate: rate ** (2.5 - 1) * np.exp(-0.7 * rate), 0, np.inf)
    np.testing.assert_allclose(
        GammaPoisson(np.array([[2.5]]), np.array([[0.7]])).log_partition()[0, 0], np.log(total), rtol=1e-9
    )


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_an_improper_prior_has_no_evidence(a, b):
    counted = Totals(np.full((2, 2), 2.0), np.full((2, 2), 3.0))
    assert (np.asarray(log_evidence(GammaPoisson(np.full((2, 2), a), np.full((2, 2), b)), counted)) == -np.inf).all()


# -- the estimates -----------------------------------------------------------------------------------


def test_mean_and_variance_are_scipys():
    np.testing.assert_allclose(PRIOR.mean().rate, stats.gamma.mean(A, scale=1 / B), rtol=1e-14)
    np.testing.assert_allclose(PRIOR.variance()["rate"], stats.gamma.var(A, scale=1 / B), rtol=1e-14)


def test_mode_is_where_the_density_is_greatest_and_does_not_exist_below_one():
    mode = np.asarray(PRIOR.mode().rate)
    assert np.isnan(mode[0, 0])
    assert mode[1, 1] == 0
    for c, j in ((0, 1), (1, 0)):
        best = optimize.minimize_scalar(
            lambda r, c=c, j=j: -stats.gamma.logpdf(r, A[c, j], scale=1 / B[c, j]), bounds=(1e-6, 50), method="bounded"
        )
        np.testing.assert_allclose(mode[c, j], best.x, rtol=1e-4)


@given(a=positive, b=positive, x=cells)
def test_predictive_is_scipys_negative_binomial(a, b, x):
    expected = np.nansum(stats.nbinom.logpmf(x[:, None], a, b / (b + 1)), axis=2)
    np.testing.assert_allclose(log_predictive(GammaPoisson(a, b), x), expected, rtol=1e-9, atol=1e-9)


def test_evidence_of_one_cell_counted_three_times_is_scipys_in_sequence():
    x = np.array([[0.0, 3.0], [7.0, 1.0]])
    found = jitted("log_evidence_of_cell")(GammaPoisson(A[0], B[0]), x, 3.0)
    each = [stats.nbinom.logpmf(x, A[0] + i * x, (B[0] + i) / (B[0] + i + 1)) for i in range(3)]
    np.testing.assert_allclose(found, sum(each) + 3 * gammaln(x + 1), rtol=1e-11)


def test_plug_in_likelihood_is_scipys_poisson():
    rate = np.asarray(PRIOR.mean().rate)
    expected = np.nansum(stats.poisson.logpmf(X[:, None], rate), axis=2)
    actual = np.asarray(log_prob(PRIOR.mean(), X)) + np.asarray(jitted("log_base")(PRIOR, X))[:, None]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_mle_of_zeros_makes_a_count_impossible_and_without_cells_does_not_exist():
    x = np.array([[0.0, np.nan], [0.0, np.nan], [2.0, 4.0], *[[np.nan, np.nan]] * 3])
    mle = PRIOR.improper().update(observe(x, [0, 0, 1, 0, 0, 1])).mean()
    np.testing.assert_array_equal(mle.rate, [[0.0, np.nan], [2.0, 4.0]])
    found = log_prob(mle, np.array([[0.0, np.nan], [1.0, np.nan], [np.nan, 1.0], [np.nan, np.nan]]))
    np.testing.assert_array_equal(np.asarray(found)[:, 0], [0.0, -np.inf, np.nan, 0.0])


def test_predictive_without_a_rate_does_not_exist_and_with_no_concentration_expects_zeros():
    prior = GammaPoisson(np.array([[0.0, 1.0]] * 2), np.array([[1.0, 0.0]] * 2))
    x = np.full((6, 2), np.nan)
    x[[0, 1, 2], [0, 0, 1]] = [0.0, 1.0, 0.0]
    found = np.asarray(log_predictive(prior, x))[:4, 0]
    np.testing.assert_array_equal(found, [0.0, -np.inf, np.nan, 0.0])


# -- marginals, draws and moments ----------------------------------------------------------------------


@pytest.mark.slow("simulates many data sets or draws")
def test_draws_have_the_marginals_and_moments():
    rate = np.asarray(draws().rate)
    assert_moments(rate, PRIOR.mean().rate, PRIOR.variance()["rate"])
    name, arguments = PRIOR.marginals()["rate"]
    for c, j in np.ndindex(2, 2):
        marginal = getattr(stats, name)(**{k: np.asarray(v)[c, j] for k, v in arguments.items()})
        assert stats.kstest(rate[:5000, c, j], marginal.cdf).pvalue > 1e-3
