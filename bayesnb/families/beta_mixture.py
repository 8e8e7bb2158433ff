"""Mixtures of Beta distributions: probabilities of levels whose context is unknown."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesnb.families._namespace import logsumexp, namespace
from bayesnb.families._pytree import Array, map_leading_axis
from bayesnb.families.special import polygammas
from bayesnb.families.variates import Variates, draw_log_uniform


class Betas(NamedTuple):
    """Beta(α, α₀ - α) distributions."""

    alpha: Array
    total: Array

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Beta distributions in `scipy.stats`."""
        return {"theta": ("beta", {"a": self.alpha, "b": self.total - self.alpha})}


class BetaMixture(NamedTuple):
    """Distribution of θ of each level, drawn in one of D contexts: log P(context), and α and α₀ there, (D, C, L)."""

    log_weight: Any
    alpha: Array
    total: Array

    @classmethod
    def from_weights(cls, log_weight: Any, alpha: Any, total: Any) -> Self:
        """Mixture with weights that may have any sum."""
        return cls(log_weight - logsumexp(log_weight, axis=0), alpha, total)

    def log_mean(self) -> Float[Any, "C L"]:
        """(C, L) log E θ."""
        log_each = namespace(self.alpha, self.total).log(self.alpha / self.total)
        return logsumexp(self.log_weight + log_each, axis=0)

    def variance(self) -> Float[jax.Array, "C L"]:
        """(C, L) Var θ: within contexts, and between them."""
        each = self.alpha / self.total
        within = each * (1.0 - each) / (self.total + 1.0)
        return self._average(within + (each - self._average(each)) ** 2)

    def cumulants(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(C, L) mean, variance and third central moment of log θ."""
        first, second, third = (a - b for a, b in zip(polygammas(self.alpha), polygammas(self.total), strict=True))
        mean = self._average(first)
        away = first - mean
        spread = self._average(second + away**2)
        return mean, spread, self._average(third + 3.0 * second * away + away**3)

    def components(self) -> list[tuple[jax.Array, Betas]]:
        """Weights (C, L) and distributions of the contexts."""
        return [(jnp.exp(w), Betas(a, t)) for w, a, t in zip(*self, strict=True)]

    def draw(self, variates: Variates, n: int) -> Float[jax.Array, "n C L"]:
        """(n, C, L) draws of log θ of each level by itself: a context, then θ there."""
        below = jnp.cumsum(jnp.exp(self.log_weight), axis=0)[:-1]
        level, others = (variates.log_gamma(a, n) for a in (self.alpha, self.total - self.alpha))
        uniform = jnp.exp(draw_log_uniform(variates, jnp.zeros(jnp.shape(self.alpha)[1:]), n))

        def draw_levels(draw: tuple[jax.Array, ...]) -> jax.Array:
            level, others, uniform = draw
            context = jnp.sum(uniform > below, axis=0)[None]
            return jnp.take_along_axis(level - jnp.logaddexp(level, others), context, axis=0)[0]

        return map_leading_axis(draw_levels, (level, others, uniform))

    def _average(self, values: Array) -> jax.Array:
        return jnp.sum(jnp.exp(self.log_weight) * values, axis=0)
