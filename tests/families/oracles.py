"""Exact but slow reference functions."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb
from typing import Any

import jax
import numpy as np

DRAWS = 200_000


def jitted(method: str) -> Callable:
    """A family's method as a function that compiles once for all examples of one shape."""
    return jax.jit(lambda family, *arguments: getattr(family, method)(*arguments))


def bernoulli_numbers(n: int) -> list[Fraction]:
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum(comb(m + 1, k) * numbers[k] for k in range(m)) / Fraction(m + 1))
    return numbers


_BERNOULLI = bernoulli_numbers(40)
_HALF_LOG_2PI = Decimal("0.91893853320467274178032973640561763986139747363778341281715")


def log_rising(a: float, x: float, digits: int = 50) -> Decimal:
    """log Γ(a + x) - log Γ(a), to about 45 digits."""
    with localcontext() as context:
        context.prec = digits + 20
        a_, x_ = Decimal(a), Decimal(x)
        return log_gamma(a_ + x_) - log_gamma(a_)


def log_gamma(z: Decimal) -> Decimal:
    """Stirling's series, from z = 60 on; below by the recurrence Γ(z + 1) = z Γ(z)."""
    product = Decimal(1)
    while z < 60:
        product *= z
        z += 1
    series = sum(
        Decimal(b.numerator) / Decimal(b.denominator) / (2 * k * (2 * k - 1)) / z ** (2 * k - 1)
        for k, b in ((k, _BERNOULLI[2 * k]) for k in range(1, 20))
    )
    return (z - Decimal("0.5")) * z.ln() - z + _HALF_LOG_2PI + series - product.ln()


def assert_moments(draws: np.ndarray, mean: Any, variance: Any, third: Any = None) -> None:
    """Moments of independent draws (S, …) within five standard errors of what they should be."""
    draws = np.asarray(draws)
    n = len(draws)
    centred = draws - draws.mean(axis=0)
    second = (centred**2).mean(axis=0)
    fourth = (centred**4).mean(axis=0)
    assert (abs(draws.mean(axis=0) - mean) <= 5 * np.sqrt(second / n) + 1e-12).all()
    assert (abs(second - variance) <= 5 * np.sqrt(np.maximum(fourth - second**2, 0) / n) + 1e-12).all()
    if third is not None:
        # The influence function of the third central moment is d³ - 3 second d - third.
        error = np.sqrt((centred**3 - 3 * second * centred).var(axis=0) / n)
        assert (abs((centred**3).mean(axis=0) - third) <= 5 * error + 1e-12).all()


def gradient(f: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Central differences."""
    out = np.empty(at.shape)
    for i in np.ndindex(at.shape):
        h = 1e-5 * max(1.0, abs(at[i]))
        up, down = at.copy(), at.copy()
        up[i] += h
        down[i] -= h
        out[i] = (float(f(up)) - float(f(down))) / (2 * h)
    return out
