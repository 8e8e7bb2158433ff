"""Gamma priors of rates, for families of non-negative numbers with one rate a class and feature."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Bool, Float, Int

from bayesnb.families._pytree import pytree
from bayesnb.families._types import Array
from bayesnb.families.count_functions import linear
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.independent_cells import Cellwise, IndependentCells
from bayesnb.families.number_rows import observed, sum_by_class
from bayesnb.families.protocol import Distribution, Site
from bayesnb.families.statistics import ROUNDING, Additive
from bayesnb.families.variates import Variates


@pytree
class Sums(Additive):
    """Number of cells and their sum, for each class and feature, (C, F) each."""

    count: Any
    total: Any

    def without(self, cells: Any, weight: Any) -> Self:
        """Remove one row's `cells` (F,) of a `weight` (C, 1); what rounding leaves of nothing is 0."""
        left = self.remove(type(self)(weight, weight * cells))
        some_count, some_total = left.count > ROUNDING * self.count, left.total > ROUNDING * self.total
        return type(self)(left.count * some_count, left.total * some_total)

    def values(self) -> Any:
        """Cells, of statistics of single rows: the totals."""
        return self.total

    @classmethod
    def from_moments(cls, count: Any, mean: Any, m2: Any) -> Self:
        """Statistics of numbers with these moments."""
        return cls(count, count * mean)

    def mean(self) -> np.ndarray:
        """(F,) mean over all rows; 0 where no cell was observed."""
        count = np.maximum(np.sum(self.count, axis=0), np.finfo(float).tiny)
        return np.asarray(np.sum(self.total, axis=0) / count)

    def observe(self, x: Any, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Self:
        """Add a block of rows x (N, F) with class indices and weights; NaN is a missing cell."""

        def of_row(row: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
            seen, row = observed(row)
            return weight * seen, weight * row

        count, total = sum_by_class(self.count.shape[0], label, of_row, (x, weight))
        return type(self)(self.count + count, self.total + total)


@pytree
class Rates(Cellwise):
    """Rates plugged in: `rate` (C, F)."""

    rate: Any


@pytree
class EmpiricalGamma(EmpiricalPrior):
    """Gamma(a, b) with b such that a/b is the rate of all rows; Gamma(a, a) where all cells are 0."""

    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: Any = 1.0

    @abstractmethod
    def prior(self, concentration: Any, rate: Any) -> Gamma:
        """Prior with these fields."""

    def __call__(self, statistics: Any, together: Any) -> Gamma:
        """Prior of rates, given the statistics of each class and of all classes together."""
        xp = together.total.__array_namespace__()
        more_concentration, more_rate = together.gamma_increments()
        some = together.total > 0
        inverse = xp.where(some, more_rate / xp.where(some, more_concentration, 1.0), 1.0)
        a = self.concentration * xp.ones_like(statistics.count)
        return self.prior(a, inverse * a)


@pytree
class Gamma(IndependentCells):
    """Rates with Gamma(concentration a, rate b) priors; each field (C, F).

    Its statistics say by `gamma_increments` how much they add to a and to b.
    """

    nonnegative: ClassVar[bool] = True
    location: ClassVar[str] = "rate"
    least: ClassVar[dict[str, float]] = {"concentration": 0.0, "rate": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}
    infinite_rates: ClassVar[bool] = False
    """Whether a rate may be infinite, as cells are 0 then."""

    concentration: Any
    rate: Any

    def update(self, statistics: Any) -> Self:
        """Add the increments of the statistics to a and b."""
        more_concentration, more_rate = statistics.gamma_increments()
        return type(self)(self.concentration + more_concentration, self.rate + more_rate)

    def scale(self, factor: Any) -> Self:
        """Prior with a and b times a factor."""
        return type(self)(self.concentration * factor, self.rate * factor)

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Prior with another a, and b with it: a/b is kept."""
        if "a" not in values:
            return self
        a = values["a"] * (0.0 * self.concentration + 1.0)
        return type(self)(a, self.rate / self.concentration * a)

    def improper(self) -> Self:
        """Improper prior with a = 0, b = 0."""
        return self.scale(0.0)

    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log Γ(a) - a log b."""
        proper = self.proper()
        a, b = jnp.where(proper, self.concentration, 1.0), jnp.where(proper, self.rate, 1.0)
        return jnp.where(proper, gammaln(a) - a * jnp.log(b), jnp.inf)

    def proper(self) -> Bool[jax.Array, "*C F"]:
        """(C, F) whether a and b are positive."""
        return (jnp.asarray(self.concentration) > 0) & (jnp.asarray(self.rate) > 0)

    def plug_in_mean(self) -> Any:
        """Mean rates a/b; where b = 0 NaN, or infinite if rates may be and a > 0."""
        a, b = jnp.asarray(self.concentration), jnp.asarray(self.rate)
        defined = (b > 0) | (a > 0) if self.infinite_rates else b > 0
        return self.likelihood(jnp.where(defined, a / b, jnp.nan))

    def mode(self) -> Any:
        """Modes (a - 1)/b; NaN where a < 1 (the density has no mode inside) or b = 0."""
        a = jnp.asarray(self.concentration)
        return self.likelihood(jnp.where(a < 1, jnp.nan, a - 1.0) / self._positive_rate())

    def penalized_mle(self) -> Any:
        """Mode of log λ, which exists for every a > 0: the mean."""
        return self.mean()

    def log_penalty(self, parameters: Rates) -> Float[jax.Array, "*C F"]:
        """(C, F) a log λ - b λ: the log density of log λ."""
        log_density: jax.Array = linear(self.concentration, jnp.log(parameters.rate)) - self.rate * parameters.rate
        return log_density

    def variance(self) -> dict[str, jax.Array]:
        """Variances a/b²."""
        return {"rate": self.concentration / self._positive_rate() ** 2}

    def marginals(self) -> dict[str, Distribution]:
        """Gamma distributions in `scipy.stats`."""
        return {"rate": ("gamma", {"a": self.concentration, "scale": 1.0 / self._positive_rate()})}

    def program(self) -> list[Site]:
        """One site: λ ~ Gamma(a, b)."""
        a, b = jnp.asarray(self.concentration), jnp.asarray(self.rate)
        return [Site("rate", "", a.shape[1], lambda _: ("Gamma", {"concentration": a, "rate": b}))]

    def draw(self, variates: Variates, n: int) -> Any:
        """n draws of the rates."""
        return self.likelihood(jnp.exp(variates.log_gamma(self.concentration, n)) / self.rate)

    def _positive_rate(self) -> jax.Array:
        rate = jnp.asarray(self.rate)
        return jnp.where(rate > 0, rate, jnp.nan)
