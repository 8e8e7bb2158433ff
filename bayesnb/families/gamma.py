"""Gamma: what families of non-negative numbers share whose one parameter is a rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Bool, Float, Int

from bayesnb.families._pytree import pytree
from bayesnb.families._types import Array
from bayesnb.families.cells import observed, sum_by_class
from bayesnb.families.conjugate import ROUNDING, Additive, Conjugate
from bayesnb.families.leave_one_out import CellByCell, SumOfCells
from bayesnb.families.protocol import Site
from bayesnb.families.terms import linear
from bayesnb.families.variates import Variates


@pytree
class Sums(Additive):
    """Number of cells and their sum, for each class and feature, (C, F) each."""

    count: Any
    total: Any

    def possible(self) -> Any:
        """There is no total where nothing was counted; 1e-100 is what fading may leave of it."""
        return (self.count >= 0) & (self.total >= 0) & ((self.count > 0) | (self.total < 1e-100))

    def without(self, cells: Any, weight: Any) -> Self:
        """As `remove`, of one row's `cells` (F,) of a `weight` (C, 1); what rounding may have left is 0."""
        left = self.remove(type(self)(weight, weight * cells))
        there, some = left.count > ROUNDING * self.count, left.total > ROUNDING * self.total
        return type(self)(left.count * there, left.total * some)

    def values(self) -> Any:
        """Of single rows the cells are the totals."""
        return self.total

    @classmethod
    def of_moments(cls, count: Any, mean: Any, m2: Any) -> Self:
        """Of numbers with these moments."""
        return cls(count, count * mean)

    def mean(self) -> np.ndarray:
        """(F,) mean over all rows; 0 where none was observed."""
        return np.sum(self.total, axis=0) / np.maximum(np.sum(self.count, axis=0), np.finfo(float).tiny)

    def observe(self, x: Any, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Self:
        def of_row(row: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
            seen, row = observed(row)
            return weight * seen, weight * row

        count, total = sum_by_class(self.count.shape[0], label, of_row, (x, weight))
        return type(self)(self.count + count, self.total + total)


@pytree
class Rates(SumOfCells):
    """Rates plugged in: `rate` (C, F)."""

    rate: Any

    def parameters(self) -> dict[str, jax.Array]:
        return {"rate": self.rate}


@pytree
class Gamma(CellByCell, Conjugate):
    """Rates with Gamma(concentration a, rate b) priors; each field (C, F)."""

    nonnegative: ClassVar[bool] = True
    location: ClassVar[str] = "rate"
    likelihood: ClassVar[type]
    least: ClassVar[dict[str, float]] = {"concentration": 0.0, "rate": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: Any
    rate: Any

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """a, and b with it, a/b kept."""
        if "a" not in values:
            return self
        a = values["a"] * (0.0 * self.concentration + 1.0)
        return type(self)(a, self.rate / self.concentration * a)

    def improper(self) -> Self:
        """a = 0, b = 0."""
        return self.scale(0.0)

    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log Γ(a) - a log b."""
        proper = self.proper()
        a, b = jnp.where(proper, self.concentration, 1.0), jnp.where(proper, self.rate, 1.0)
        return jnp.where(proper, gammaln(a) - a * jnp.log(b), jnp.inf)

    def proper(self) -> Bool[jax.Array, "*C F"]:
        """(C, F) whether a and b are positive."""
        return (jnp.asarray(self.concentration) > 0) & (jnp.asarray(self.rate) > 0)

    def mean(self) -> Any:
        """a/b; NaN where b = 0."""
        return self.likelihood(self.concentration / self._rate())

    def mode(self) -> Any:
        """(a - 1)/b; NaN where a < 1 (the density has no mode inside) or b = 0."""
        a = jnp.asarray(self.concentration)
        return self.likelihood(jnp.where(a < 1, jnp.nan, a - 1.0) / self._rate())

    def penalized_mle(self) -> Any:
        """The mean: the mode of log λ, which exists for every a > 0."""
        return self.mean()

    def log_penalty(self, parameters: Rates) -> Float[jax.Array, "*C F"]:
        """(C, F) a log λ - b λ: the log density of log λ."""
        return linear(self.concentration, jnp.log(parameters.rate)) - self.rate * parameters.rate

    def variance(self) -> dict[str, jax.Array]:
        """a/b²."""
        return {"rate": self.concentration / self._rate() ** 2}

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return {"rate": ("gamma", {"a": self.concentration, "scale": 1.0 / self._rate()})}

    def program(self) -> list[Site]:
        """λ ~ Gamma(a, b)."""
        a, b = jnp.asarray(self.concentration), jnp.asarray(self.rate)
        return [Site("rate", "", a.shape[1], lambda _: ("Gamma", {"concentration": a, "rate": b}))]

    def draw(self, variates: Variates, n: int) -> Any:
        return self.likelihood(jnp.exp(variates.log_gamma(self.concentration, n)) / self.rate)

    def _rate(self) -> jax.Array:
        rate = jnp.asarray(self.rate)
        return jnp.where(rate > 0, rate, jnp.nan)
