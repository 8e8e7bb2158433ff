"""A skewed normal variate (a cubic) against SciPy's gamma distribution, quadrature and mixtures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from bayesnb.families.protocol import Cumulants
from bayesnb.uncertainty.score_moments import probability_interval, skewed, skewness, unskewed

SKEWS = np.array([0.0, 1e-9, -1e-4, 0.1, -0.5, 1.0, -1.0, 1.5, -2.0, 3.0])


@pytest.mark.parametrize(("largest", "bounds"), [(1.0, (1e-4, 3e-4, 0.01)), (2.0, (0.002, 0.004, 0.07))])
def test_mean_variance_and_skewness_are_near_enough(largest, bounds):
    """The bounds that the module states; the cubic's moments are integrals of polynomials, so quadrature is exact."""
    z, weight = hermegauss(20)
    weight = weight / weight.sum()
    for skew in SKEWS[abs(SKEWS) <= largest]:
        y = skewed(z, skew)
        mean, variance = weight @ y, weight @ (y - weight @ y) ** 2
        third = weight @ (y - mean) ** 3 / variance**1.5
        assert (abs(np.array([mean, variance - 1, third - skew])) <= np.array(bounds) + 1e-12).all()


@pytest.mark.parametrize("skew", SKEWS[abs(SKEWS) <= 2])
def test_quantiles_are_near_those_of_a_gamma_variate(skew):
    q = np.array([0.005, 0.05, 0.25, 0.5, 0.75, 0.95, 0.995])
    exact = stats.pearson3.ppf(q, skew)
    np.testing.assert_allclose(skewed(stats.norm.ppf(q), skew), exact, rtol=0, atol=0.03 * abs(skew) ** 1.5 + 1e-6)


def test_without_skewness_it_is_normal():
    z = np.linspace(-9, 9, 19)
    np.testing.assert_array_equal(skewed(z, 0.0), z)
    np.testing.assert_array_equal(unskewed(z, 0.0), z)


@given(st.floats(-8, 8), st.floats(-3, 3))
def test_the_inverse_is_the_inverse(z, skew):
    y = skewed(z, skew)
    flat = abs(1 + skew * (z / 6 - skew / 36))  # where the cubic is flat, y does not tell z
    assert abs(unskewed(y, skew) - z) <= 1e-12 * (1 + abs(z)) + 1e-15 / max(flat, 1e-5) ** 2


@given(st.floats(-9, 9), st.floats(0, 1), st.floats(-3, 3))
def test_it_is_monotone(z, step, skew):
    assert skewed(z, skew) <= skewed(z + step, skew) + 1e-12


def test_skewness_of_a_constant_is_none_and_of_anything_at_most_three():
    variance = np.array([0.0, 1.0, 4.0, 1e-8, 1.0])
    third = np.array([0.0, 1.0, -4.0, 1e-3, -50.0])
    np.testing.assert_allclose(skewness(variance, third), [0.0, 1.0, -0.5, 3.0, -3.0])


def test_quantiles_of_mixtures_are_those_of_brent_also_where_the_density_has_a_pole():
    """At a skewness of 3 the cubic is flat, and the density of a component is infinite there."""
    rng = np.random.default_rng(0)
    n, q = 300, np.array([0.05, 0.95])
    weight, mean = rng.dirichlet([0.5, 0.5], n), rng.normal(0, 5, (n, 2))
    variance, skew = rng.gamma(1.0, 1.0, (n, 2)), rng.choice([-3.0, -1.0, 0.0, 3.0], (n, 2))
    zero = np.zeros((n, 2))
    scores = Cumulants(*(np.stack(m, axis=2) for m in ((zero, mean), (zero, variance), (zero, skew * variance**1.5))))
    found = probability_interval(weight, scores, q)
    for i in range(n):

        def excess(x, q, i=i):
            return weight[i] @ stats.norm.cdf(unskewed((x - mean[i]) / variance[i] ** 0.5, skew[i])) - q

        expected = [expit(brentq(excess, -60, 60, args=(end,), xtol=1e-13)) for end in q]
        np.testing.assert_allclose(found[i, :, 1], expected, rtol=0, atol=1e-9)


def test_a_component_without_a_finite_logit_leaves_the_quantile_to_the_other():
    """With .26 of the mass at an impossible class, the .95 quantile is the .93 quantile of the other component."""
    weight, zero = np.array([[0.26, 0.74]]), np.zeros((1, 2))
    scores = Cumulants(
        *(np.stack(m, 2) for m in ((zero, np.array([[-np.inf, 0.4]])), (zero, zero + 0.64), (zero, zero)))
    )
    found = probability_interval(weight, scores, np.array([0.05, 0.95]))
    expected = expit(0.4 + 0.8 * stats.norm.ppf((0.95 - 0.26) / 0.74))
    np.testing.assert_allclose(found[0, :, 1], [0.0, expected], rtol=0, atol=1e-9)
