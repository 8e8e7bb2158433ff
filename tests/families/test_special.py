"""The rising factorial, against 50-digit arithmetic; polygamma functions, against SciPy."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from bayesnb.families.special import log_rising, polygammas
from tests.families import oracles

log_rising_jit = jax.jit(log_rising)
derivatives = jax.jit(lambda a, x: (jax.grad(log_rising, (0, 1))(a, x), jax.hessian(log_rising, (0, 1))(a, x)))
positive = st.floats(-8, 15).map(lambda e: 10.0**e)


def assert_exact(a: float, x: float, digits: float = 1e-14) -> None:
    exact = float(oracles.log_rising(a, x))
    for function in (log_rising, log_rising_jit):
        assert abs(float(function(np.float64(a), np.float64(x))) - exact) <= digits * max(1.0, abs(exact))


CANCELLING = [(1e12, 1.0), (1e12, 3.0), (1e15, 0.5), (1e-8, 1.0), (1e-300, 2.0), (0.5, 0.5), (1.0, 1e6)]
CANCELLING += [(15.999999, 1.0), (16.0, 1.0), (16.000001, 1.0), (1e10, 1e10), (3.0, 1e12), (123.25, 0.0)]


@pytest.mark.parametrize(("a", "x"), CANCELLING)
def test_it_is_exact_where_differences_of_log_gamma_are_not(a, x):
    assert_exact(a, x)


@given(a=positive, x=st.one_of(st.integers(0, 10**6).map(float), positive))
def test_it_is_exact_everywhere(a, x):
    assert_exact(a, x)


def test_at_zero_it_has_the_limits_of_an_improper_prior():
    for a, x, expected in ((0.0, 0.0, 0.0), (0.0, 3.0, -np.inf), (5.0, 0.0, 0.0)):
        assert log_rising(a, x) == log_rising_jit(np.float64(a), np.float64(x)) == expected


@pytest.mark.parametrize(("a", "x"), [(1e-6, 3.0), (0.3, 2.5), (15.9, 0.5), (16.1, 40.0), (1e10, 1.0), (2.0, 1e8)])
def test_its_derivatives_are_polygammas(a, x):
    """First and second derivatives in both arguments, where differences of digammas would lose all digits."""
    gradient, ((hessian, _), (mixed, _)) = derivatives(np.float64(a), np.float64(x))
    difference = x / a if a > 1e6 else special.digamma(a + x) - special.digamma(a)
    np.testing.assert_allclose(gradient, [difference, special.digamma(a + x)], rtol=1e-9)
    second = -x / a**2 if a > 1e6 else special.polygamma(1, a + x) - special.polygamma(1, a)
    np.testing.assert_allclose([hessian, mixed], [second, special.polygamma(1, a + x)], rtol=1e-8)


def test_an_improper_prior_has_no_slope():
    """Padding has a = x = 0, and must not spoil the gradient of a sum."""
    assert derivatives(np.float64(0), np.float64(0))[0] == (0.0, 0.0)


def test_polygammas():
    x = np.concatenate([[0.0], np.logspace(-100, 12, 2001), np.arange(1, 40) / 2])
    found = np.array(jax.jit(polygammas)(x))
    np.testing.assert_array_equal(found[:, 0], [-np.inf, np.inf, -np.inf])
    x, (psi, psi1, psi2) = x[1:], found[:, 1:]
    np.testing.assert_allclose(psi, special.digamma(x), rtol=4e-15, atol=4e-15)
    np.testing.assert_allclose(psi1, special.polygamma(1, x), rtol=4e-15)
    np.testing.assert_allclose(psi2, special.polygamma(2, x), rtol=8e-15)
