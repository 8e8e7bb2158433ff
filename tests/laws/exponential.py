"""A family that bayesnb does not have: exponential waiting times with Gamma rates.

This one file is all that a new family needs; `test_house.py` shows that everything works on it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln, polygamma

from bayesnb.families._pytree import pytree
from bayesnb.families.cells import observed, sum_cells
from bayesnb.families.protocol import Additive, Conjugate, Cumulants
from bayesnb.families.terms import linear
from bayesnb.families.variates import Variates
from bayesnb.families.with_row import CellByCell, SumOfCells


@pytree
class WaitingTimes(Additive):
    """Number of cells and their sum, (C, F) each."""

    count: Any
    total: Any

    def observe(self, x: Any, label: jax.Array, weight: jax.Array) -> WaitingTimes:
        seen, x = observed(x)
        one_hot = (label[:, None] == jnp.arange(self.count.shape[0])) * weight[:, None]
        return WaitingTimes(self.count + one_hot.T @ seen.astype(x.dtype), self.total + one_hot.T @ x)

    def values(self) -> Any:
        return self.total

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        return jnp.zeros(x.shape[0])


@pytree
class ExponentialGamma(CellByCell, Conjugate):
    """Exponential rates with Gamma(concentration a, rate b) priors."""

    statistics: ClassVar[type] = WaitingTimes

    concentration: Any
    rate: Any

    def update(self, statistics: WaitingTimes) -> Self:
        return type(self)(self.concentration + statistics.count, self.rate + statistics.total)

    def limit(self) -> Self:
        return type(self)(self.concentration * 0.0, self.rate * 0.0)

    def log_partition(self) -> jax.Array:
        return gammaln(self.concentration) - self.concentration * jnp.log(self.rate)

    def proper(self) -> jax.Array:
        return (jnp.asarray(self.concentration) > 0) & (jnp.asarray(self.rate) > 0)

    def with_cell(self, x: jax.Array, added: Any) -> Self:
        return self.update(WaitingTimes(added, added * x))

    def sample_size(self) -> dict[str, Any]:
        return {"rate": self.concentration}

    def mean(self) -> Exponential:
        return Exponential(self.concentration / self.rate)

    def mode(self) -> Exponential:
        return Exponential(jnp.where(self.concentration < 1, jnp.nan, self.concentration - 1.0) / self.rate)

    def log_penalty(self, parameters: Exponential) -> jax.Array:
        return (self.concentration - 1.0) * jnp.log(parameters.rate) - self.rate * parameters.rate

    def predictive(self) -> Lomax:
        return Lomax(self.concentration, self.rate)

    def variance(self) -> dict[str, jax.Array]:
        return {"rate": self.concentration / self.rate**2}

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return {"rate": ("gamma", {"a": self.concentration, "scale": 1.0 / self.rate})}

    def program(self) -> dict[str, Any]:
        return {"rate": lambda _: ("Gamma", {"concentration": self.concentration, "rate": self.rate})}

    def draw(self, variates: Variates, n: int) -> Exponential:
        return Exponential(jnp.exp(variates.log_gamma(self.concentration, n)) / self.rate)

    def log_likelihood_cumulants(self, x: Any, added: float = 0.0) -> Cumulants:
        seen, x = observed(jnp.asarray(x)[:, None])
        a, b = self.concentration + added, self.rate + added * x
        mean = digamma(a) - jnp.log(b) - x * a / b
        variance = polygamma(1, a) + (x / b) ** 2 * a - 2 * x / b
        third = polygamma(2, a) - 2 * a * (x / b) ** 3 + 3 * (x / b) ** 2
        return Cumulants(*(sum_cells(seen, cumulant) for cumulant in (mean, variance, third)))

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, added: float = 0.0) -> jax.Array:
        log_gamma = variates.log_gamma(self.concentration + added, n)[:, None]
        seen, x = observed(jnp.asarray(x)[:, None])
        log_rate = log_gamma - jnp.log(self.rate + added * x)
        return sum_cells(seen, log_rate - jnp.exp(log_rate) * x)

    log_base = staticmethod(WaitingTimes.log_base)


@pytree
class Exponential(SumOfCells):
    rate: Any

    def parameters(self) -> dict[str, jax.Array]:
        return {"rate": self.rate}

    def distribution(self) -> tuple[str, dict[str, Any]]:
        return "Exponential", {"rate": self.rate}

    def simulate(self, rng: Any) -> Any:
        return rng.exponential(1.0 / self.rate)

    def cells(self, x: jax.Array) -> jax.Array:
        return jnp.log(self.rate) - self.rate * x

    def log_likelihood(self, statistics: WaitingTimes) -> jax.Array:
        return linear(statistics.count, jnp.log(self.rate)) - self.rate * statistics.total


@pytree
class Lomax(SumOfCells):
    concentration: Any
    rate: Any

    def cells(self, x: jax.Array) -> jax.Array:
        a, b = self.concentration, self.rate
        return jnp.log(a) - jnp.log(b) - (a + 1.0) * jnp.log1p(x / b)
