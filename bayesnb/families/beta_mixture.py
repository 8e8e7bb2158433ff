"""Probabilities that are mixtures of Beta variates: of levels whose context is not known."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jax.scipy.stats import norm
from jaxtyping import Float

from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.terms import with_counts
from bayesnb.families.variates import Variates


class Betas(NamedTuple):
    """θ ~ Beta(α, α₀ - α)."""

    alpha: Any
    total: Any

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return {"theta": ("beta", {"a": self.alpha, "b": self.total - self.alpha})}


class Paths(NamedTuple):
    """For each level the contexts that it may be drawn in, (D, C, L): log weights, and α, α₀, n and N in each of them.

    A level that stands w more times among the data multiplies the weight of a context by Γ ratios,
    Γ(α + n + w)/Γ(α + n) · Γ(α₀ + N)/Γ(α₀ + N + w).
    """

    log_weight: Any
    alpha: Any
    total: Any
    count: Any
    of_all: Any

    def log_mean(self, multiplicity: Any = 0.0) -> Float[jax.Array, "C L"]:
        """log E θ of each level, it `multiplicity` more times among the data."""
        weight, betas = self._with(multiplicity)
        return logsumexp(weight + jnp.log(betas.alpha / betas.total), axis=0)

    def variance(self) -> Float[jax.Array, "C L"]:
        weight, betas = self._with(0.0)
        each = betas.alpha / betas.total
        within = each * (1.0 - each) / (betas.total + 1.0)
        return _average(weight, within + (each - _average(weight, each)) ** 2)

    def cumulants(self, multiplicity: Any = 0.0) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(C, L) mean, variance and third central moment of log θ, the level `multiplicity` more times in the data."""
        weight, betas = self._with(multiplicity)
        first, second, third = (a - b for a, b in zip(polygammas(betas.alpha), polygammas(betas.total), strict=True))
        mean = _average(weight, first)
        away = first - mean
        spread = _average(weight, second + away**2)
        return mean, spread, _average(weight, third + 3.0 * second * away + away**3)

    def components(self) -> list[tuple[jax.Array, Betas]]:
        """Weights (C, L) and distributions, a context each."""
        weight, betas = self._with(0.0)
        return [(jnp.exp(w), Betas(a, t)) for w, a, t in zip(weight, *betas, strict=True)]

    def draw(self, variates: Variates, n: int, multiplicity: float) -> Float[jax.Array, "n C L"]:
        """Draws of log θ of each level alone, it `multiplicity` more times among the data: a context, then θ there."""
        weight, (alpha, total) = self._with(multiplicity)
        below = jnp.cumsum(jnp.exp(weight), axis=0)[:-1]
        own, rest = (variates.log_gamma(a, n) for a in (alpha, total - alpha))
        uniform = jnp.exp(norm.logcdf(variates.normal(jnp.zeros(alpha.shape[1:]), n)))

        def one(draw: tuple[jax.Array, ...]) -> jax.Array:
            own, rest, uniform = draw
            context = jnp.sum(uniform > below, axis=0)[None]
            return jnp.take_along_axis(own - jnp.logaddexp(own, rest), context, axis=0)[0]

        return jax.lax.map(one, (own, rest, uniform))

    def _with(self, multiplicity: Any) -> tuple[jax.Array, Betas]:
        """Normalised log weights, and distributions, the level `multiplicity` more times among the data."""
        sign, size = jnp.sign(multiplicity), jnp.abs(multiplicity)

        def gain(alpha: jax.Array, count: jax.Array) -> jax.Array:
            return sign * log_rising(with_counts(alpha, count, jnp.minimum(multiplicity, 0.0)), size)

        weight = self.log_weight + gain(self.alpha, self.count) - gain(self.total, self.of_all)
        own, total = with_counts(self.alpha, self.count, multiplicity), with_counts(self.total, self.of_all, multiplicity)
        return weight - logsumexp(weight, axis=0), Betas(own, total)


def _average(log_weight: jax.Array, values: jax.Array) -> jax.Array:
    return jnp.sum(jnp.exp(log_weight) * values, axis=0)
