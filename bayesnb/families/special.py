"""Ratios of gamma functions without cancellation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.typing import ArrayLike

_LARGE = 16.0


def log_rising(a: ArrayLike, x: ArrayLike) -> jax.Array:
    r"""Log of the rising factorial, :math:`\log\Gamma(a + x) - \log\Gamma(a)`, for a, x >= 0.

    Two log-gammas of size 1e10 differ by a number with nine digits lost. From `a = 16` on, Stirling's
    series is subtracted term by term instead (DiDonato & Morris 1992, eq. 6):
    :math:`(a - ½)\,\log(1 + x/a) + x\,[\log(a + x) - 1] + δ(a + x) - δ(a)`.
    `log_rising(0, 0)` is 0 and `log_rising(0, x)` is -inf: the limits of an improper prior.
    """
    a, x = jnp.broadcast_arrays(jnp.asarray(a, float), jnp.asarray(x, float))
    large = a >= _LARGE
    big = jnp.where(large, a, _LARGE)
    small = jnp.where(large | (a <= 0), 1.0, a)
    stirling = (big - 0.5) * jnp.log1p(x / big) + x * (jnp.log(big + x) - 1.0) + _stirling(big + x) - _stirling(big)
    direct = gammaln(small + x) - gammaln(small)
    improper = jnp.where((a == 0) & (x > 0), -jnp.inf, jnp.where(x == 0, 0.0, jnp.nan))
    return jnp.where(large, stirling, jnp.where(a > 0, direct, improper))


def polygammas(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    r"""ψ(x), ψ₁(x) and ψ₂(x) for x > 0, the first three derivatives of log Γ.

    :math:`\psi(x) = \psi(x + 16) - \sum_{k<16} (x+k)^{-1}` and its derivatives, each with its asymptotic series
    (DLMF 5.11.2, 5.15.8). JAX's `polygamma(1, x)` is a Hurwitz zeta function, more than ten times slower, and all
    the time that cumulants take.
    """
    x = jnp.asarray(x, float)
    psi, psi1, psi2 = (jnp.zeros_like(x) for _ in range(3))
    for k in range(16):
        inverse = 1.0 / (x + k)
        square = inverse * inverse
        psi, psi1, psi2 = psi - inverse, psi1 + square, psi2 - 2.0 * inverse * square
    z = x + 16.0
    i, r = 1.0 / z, 1.0 / (z * z)
    tail = 1.0 / 12 + r * (-1.0 / 120 + r * (1.0 / 252 + r * (-1.0 / 240 + r * 1.0 / 132)))
    tail1 = 1.0 / 6 + r * (-1.0 / 30 + r * (1.0 / 42 + r * (-1.0 / 30 + r * 5.0 / 66)))
    tail2 = 1.0 / 2 + r * (-1.0 / 6 + r * (1.0 / 6 + r * (-3.0 / 10 + r * 5.0 / 6)))
    return (
        psi + jnp.log(z) - 0.5 * i - tail * r,
        psi1 + (1.0 + (0.5 + tail1 * i) * i) * i,
        psi2 - (1.0 + (1.0 + tail2 * i) * i) * r,
    )


def _stirling(z: jax.Array) -> jax.Array:
    """Remainder δ(z) of Stirling's series for log Γ(z); 1e-16 from z = 16 on."""
    r = 1.0 / (z * z)
    return (
        1.0 / 12 + r * (-1.0 / 360 + r * (1.0 / 1260 + r * (-1.0 / 1680 + r * (1.0 / 1188 - r * 691.0 / 360360))))
    ) / z
