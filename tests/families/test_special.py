"""The rising factorial, against 50-digit arithmetic; polygamma functions, against SciPy."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from bayesnb.families.special import log_rising, polygammas
from tests.families import oracles

log_rising_jit = jax.jit(log_rising)
positive = st.floats(-8, 15).map(lambda e: 10.0**e)


def assert_exact(a: float, x: float, digits: float = 1e-14) -> None:
    exact = float(oracles.log_rising(a, x))
    assert abs(float(log_rising_jit(np.float64(a), np.float64(x))) - exact) <= digits * max(1.0, abs(exact))


CANCELLING = [(1e12, 1.0), (1e12, 3.0), (1e15, 0.5), (1e-8, 1.0), (1e-300, 2.0), (0.5, 0.5), (1.0, 1e6)]
CANCELLING += [(15.999999, 1.0), (16.0, 1.0), (16.000001, 1.0), (1e10, 1e10), (3.0, 1e12), (123.25, 0.0)]


@pytest.mark.parametrize(("a", "x"), CANCELLING)
def test_it_is_exact_where_differences_of_log_gamma_are_not(a, x):
    assert_exact(a, x)


@given(a=positive, x=st.one_of(st.integers(0, 10**6).map(float), positive))
def test_it_is_exact_everywhere(a, x):
    assert_exact(a, x)


def test_at_zero_it_has_the_limits_of_an_improper_prior():
    assert log_rising(0.0, 0.0) == 0
    assert log_rising(0.0, 3.0) == -np.inf
    assert log_rising(5.0, 0.0) == 0


@pytest.mark.parametrize(("a", "x"), [(0.3, 2.0), (7.0, 1.0), (15.9, 3.0), (16.1, 3.0), (1e6, 2.0)])
def test_its_gradient_is_a_difference_of_digammas(a, x):
    from scipy.special import digamma

    by_a, by_x = jax.grad(log_rising, argnums=(0, 1))(a, x)
    np.testing.assert_allclose(by_a, digamma(a + x) - digamma(a), rtol=1e-9)
    np.testing.assert_allclose(by_x, digamma(a + x), rtol=1e-9)


def test_polygammas(x64):
    x = np.concatenate([np.logspace(-100, 12, 2001), np.arange(1, 40) / 2])
    psi, psi1, psi2 = polygammas(x)
    np.testing.assert_allclose(psi, special.digamma(x), rtol=4e-15, atol=4e-15)
    np.testing.assert_allclose(psi1, special.polygamma(1, x), rtol=4e-15)
    np.testing.assert_allclose(psi2, special.polygamma(2, x), rtol=8e-15)
    np.testing.assert_array_equal(polygammas(0.0), [-np.inf, np.inf, -np.inf])
