"""Special functions: log-gamma ratios, polygammas, and evidence of a symmetric Dirichlet by distinct counts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.scipy.special import digamma
from jax.typing import ArrayLike

from bayesnb.families.arrays import Array, apply_where, gammaln, is_host, pytree, xp

# == Ratios of gamma functions without cancellation ================================================

_LARGE = 16.0


def log_rising(a: ArrayLike, x: ArrayLike) -> Array:
    r"""Log of the rising factorial, :math:`\log\Gamma(a + x) - \log\Gamma(a)`, for a, x >= 0.

    Two log-gammas of size 1e10 differ by a number with nine digits lost. From `a = 16` on, Stirling's
    series is subtracted term by term instead (DiDonato & Morris 1992, eq. 6):
    :math:`(a - ½)\,\log(1 + x/a) + x\,[\log(a + x) - 1] + δ(a + x) - δ(a)`.
    `log_rising(0, 0)` is 0 and `log_rising(0, x)` is -inf: the limits of an improper prior.
    """
    if isinstance(x, float) and x == 1.0:
        return xp.log(xp.asarray(a, float))
    a, x = xp.broadcast_arrays(xp.asarray(a, float), xp.asarray(x, float))
    return (_log_rising if is_host(a, x) else _differentiable_log_rising)(a, x)


def _log_rising(a: Array, x: Array) -> jax.Array:
    """Elementwise `log_rising` of arrays of the same shape."""
    some, proper, large = x != 0, a > 0, a >= _LARGE
    value = apply_where(some & ~proper, _without_prior, 0.0, a, x)
    value = apply_where(some & proper & ~large, _by_log_gamma, value, a, x)
    return apply_where(some & large, _by_series, value, a, x)


_differentiable_log_rising = jax.custom_jvp(_log_rising)
Tangents = tuple[jax.Array | SymbolicZero, jax.Array | SymbolicZero]


def _without_prior(a: Array, x: Array) -> jax.Array:
    """Elementwise limit of log Γ(a + x) - log Γ(a) for a = 0 and x > 0, -inf; NaN for other arguments."""
    return xp.where((a == 0) & (x > 0), -xp.inf, xp.nan)


def _by_log_gamma(a: Array, x: Array) -> jax.Array:
    """Elementwise log Γ(a + x) - log Γ(a) for 0 < a < 16."""
    return gammaln(a + x) - gammaln(a)


def _by_series(a: jax.Array, x: jax.Array) -> jax.Array:
    """Elementwise log Γ(a + x) - log Γ(a) for a >= 16, by Stirling's series."""
    return (a - 0.5) * xp.log1p(x / a) + x * (xp.log(a + x) - 1.0) + _stirling(a + x) - _stirling(a)


@partial(_differentiable_log_rising.defjvp, symbolic_zeros=True)
def _log_rising_jvp(primals: tuple[jax.Array, jax.Array], tangents: Tangents) -> tuple[jax.Array, jax.Array]:
    """Value and directional derivative of `log_rising`, by ∂a = ψ(a + x) - ψ(a) and ∂x = ψ(a + x)."""
    (a, x), (da, dx) = primals, tangents
    proper, positive = a > 0, jnp.where(a > 0, a, 1.0)
    slope = jnp.zeros_like(a)
    if not isinstance(da, SymbolicZero):
        slope = slope + jnp.where(proper, _digamma_difference(positive, x), 0.0) * da
    if not isinstance(dx, SymbolicZero):
        slope = slope + jnp.where(proper, digamma(positive + x), 0.0) * dx
    return _differentiable_log_rising(a, x), slope


def _digamma_difference(a: jax.Array, x: jax.Array) -> jax.Array:
    r"""Compute ψ(a + x) - ψ(a) by the series of `polygammas`, term by term."""
    sums = sum(x / ((a + k) * (a + x + k)) for k in range(16))
    low, high = a + 16.0, a + x + 16.0
    return sums + jnp.log1p(x / low) + _digamma_tail(high) - _digamma_tail(low)


def _digamma_tail(z: jax.Array) -> jax.Array:
    """Compute ψ(z) - log z by its asymptotic series, accurate to 1e-16 for z >= 16."""
    r = 1.0 / (z * z)
    return -0.5 / z - r * (1.0 / 12 + r * (-1.0 / 120 + r * (1.0 / 252 + r * (-1.0 / 240 + r * 1.0 / 132))))


def polygammas(x: Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    r"""Compute ψ(x), ψ₁(x) and ψ₂(x) for x > 0, the first three derivatives of log Γ.

    :math:`\psi(x) = \psi(x + 16) - \sum_{k<16} (x+k)^{-1}` and its derivatives, each with its asymptotic series
    (DLMF 5.11.2, 5.15.8). JAX's `polygamma(1, x)` is a Hurwitz zeta function, more than ten times slower, and all
    the time that cumulants take.
    """
    x = xp.asarray(x, float)
    psi, psi1, psi2 = (xp.zeros_like(x) for _ in range(3))
    for k in range(16):
        inverse = xp.divide(1.0, x + k)
        square = inverse * inverse
        psi, psi1, psi2 = psi - inverse, psi1 + square, psi2 - 2.0 * inverse * square
    z = x + 16.0
    i, r = 1.0 / z, 1.0 / (z * z)
    tail1 = 1.0 / 6 + r * (-1.0 / 30 + r * (1.0 / 42 + r * (-1.0 / 30 + r * 5.0 / 66)))
    tail2 = 1.0 / 2 + r * (-1.0 / 6 + r * (1.0 / 6 + r * (-3.0 / 10 + r * 5.0 / 6)))
    return (
        psi + xp.log(z) + _digamma_tail(z),
        psi1 + (1.0 + (0.5 + tail1 * i) * i) * i,
        psi2 - (1.0 + (1.0 + tail2 * i) * i) * r,
    )


def _stirling(z: jax.Array) -> jax.Array:
    """Compute δ(z) = log Γ(z) - [(z - ½) log z - z + ½ log 2π], accurate to 1e-16 for z >= 16."""
    r = 1.0 / (z * z)
    return (
        1.0 / 12 + r * (-1.0 / 360 + r * (1.0 / 1260 + r * (-1.0 / 1680 + r * (1.0 / 1188 - r * 691.0 / 360360))))
    ) / z


# == Evidence of symmetric Dirichlet priors as a function of α alone, at the cost of the distinct counts


@pytree
class Histogram:
    """Histogram of counts (C, L): sufficient for the Dirichlet evidence as a function of α alone.

    A level has the concentration α times its `share`, mostly 1. `share`, `count` and `times` (U,): the distinct pairs
    of a level's share and its count, and how many levels of all classes have them; `size`, `total` and `groups` (V,):
    those of a group's sum of shares, its number of levels, and its total.
    """

    share: Array
    count: Array
    times: Array
    size: Array
    total: Array
    groups: Array

    @classmethod
    def from_counts(cls, count: Array, group: np.ndarray, num_groups: int, share: float | Array = 1.0) -> Histogram:
        """Histogram of counts (C, L) of levels in groups, with concentrations α times `share`."""
        count, share = np.asarray(count), np.broadcast_to(share, np.shape(count))
        of_groups = (np.stack([np.bincount(group, row, num_groups) for row in values]) for values in (share, count))
        return cls(*_distinct_pairs(share, count), *_distinct_pairs(*of_groups))


def _distinct_pairs(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct pairs (share, positive count) as two arrays (U,), and the number of times each occurs, (U,)."""
    # Complex numbers are sorted by both parts, and far faster than rows of two numbers.
    pairs, times = np.unique((share + 1j * count)[count > 0], return_counts=True)
    return pairs.real, pairs.imag, times.astype(float)


@pytree
class Symmetric:
    """Dirichlet prior reduced to the scalar α that multiplies the shares of the levels, for the evidence alone."""

    tunable: ClassVar[dict[str, str]] = {"alpha": "alpha"}

    alpha: Array

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Copy with α multiplied by values["alpha"], 1 by default."""
        return type(self)(self.alpha * values.get("alpha", 1.0))

    def log_evidence(self, counted: Histogram) -> jax.Array:
        """Scalar log marginal likelihood of the counts in a histogram, at a cost of the number of distinct counts.

        The value is Σ_u m_u log α^(u) - Σ_v m_v log (L α)^(t), with rising factorials.
        """
        # In one call: two would compile the gamma functions twice.
        size = xp.concatenate([counted.share, counted.size])
        times = xp.concatenate([counted.times, -counted.groups])
        return xp.sum(times * log_rising(self.alpha * size, xp.concatenate([counted.count, counted.total])))
