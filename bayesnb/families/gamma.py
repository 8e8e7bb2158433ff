"""Gamma priors of rates, for families of non-negative numbers with one rate a class and feature."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Bool, Float, Int

from bayesnb.families._pytree import Array, pytree
from bayesnb.families.count_functions import linear
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.independent_cells import Cellwise, IndependentCells, SumOfCells
from bayesnb.families.number_rows import observed, only, sum_by_class
from bayesnb.families.protocol import Cumulants, Distribution, Site
from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.statistics import ROUNDING, Additive
from bayesnb.families.variates import TermDraws, Variates


class RateStatistics(Protocol):
    """Statistics of cells whose density is λ^A exp(-Bλ) times a base measure, by sums A and B over the cells."""

    @classmethod
    def from_cells(cls, x: object, weight: Any = 1.0) -> Self:
        """Statistics of single cells, each of a weight."""

    def gamma_increments(self) -> tuple[Any, Any]:
        """Exponents A and B of the likelihood: what data add to a and to b."""


@pytree
class Sums(Additive):
    """Number of cells and their sum, for each class and feature, (C, F) each."""

    count: Array
    total: Array

    @classmethod
    def from_cells(cls, x: object, weight: Any = 1.0) -> Self:
        """Statistics of single cells, each of a weight."""
        return cls(weight, weight * x)

    def without(self, cells: Array, weight: Array) -> Self:
        """Remove one row's `cells` (F,) of a `weight` (C, 1); what rounding leaves of nothing is 0."""
        left = self.remove(self.from_cells(cells, weight))
        some_count, some_total = left.count > ROUNDING * self.count, left.total > ROUNDING * self.total
        return type(self)(left.count * some_count, left.total * some_total)

    def values(self) -> Array:
        """Cells, of statistics of single rows: the totals."""
        return self.total

    @classmethod
    def from_moments(cls, count: Array, mean: Array, m2: Array) -> Self:
        """Statistics of numbers with these moments."""
        return cls(count, count * mean)

    def mean(self) -> np.ndarray:
        """(F,) mean over all rows; 0 where no cell was observed."""
        count = np.maximum(np.sum(self.count, axis=0), np.finfo(float).tiny)
        return np.asarray(np.sum(self.total, axis=0) / count)

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "N"]) -> Self:
        """Add a block of rows x (N, F) with class indices and weights; NaN is a missing cell."""

        def of_row(row: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
            seen, row = observed(row)
            return weight * seen, weight * row

        count, total = sum_by_class(self.count.shape[0], label, of_row, (x, weight))
        return type(self)(self.count + count, self.total + total)


@pytree
class Rates(Cellwise):
    """Rates plugged in: `rate` (C, F)."""

    statistics: ClassVar[type[RateStatistics]]

    rate: Array

    def log_likelihood(self, statistics: RateStatistics) -> Float[jax.Array, "*C F"]:
        """(C, F) A log λ - Bλ; at λ = ∞ the cells have a point mass at 0, with +inf on it and -inf off it."""
        more_a, more_b = statistics.gamma_increments()
        log_density = linear(more_a, jnp.log(self.rate)) - linear(more_b, self.rate)
        return jnp.where(jnp.isinf(self.rate) & (more_b > 0), -jnp.inf, log_density)

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log p(x | λ) for one class, without the base measure."""
        return self.log_likelihood(self.statistics.from_cells(x))


@pytree
class EmpiricalGamma(EmpiricalPrior):
    """Gamma(a, b) with b such that a/b is the rate of all rows; Gamma(a, a) where all cells are 0."""

    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: Any = 1.0

    @abstractmethod
    def prior(self, concentration: Array, rate: Array) -> Gamma:
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

    A cell has the density λ^A exp(-Bλ) times a base measure, and A and B of `RateStatistics` add up over cells: all
    formulas follow from the integral of that density, Γ(a + A)/Γ(a) · b^a/(b + B)^(a + A).
    """

    nonnegative: ClassVar[bool] = True
    location: ClassVar[str] = "rate"
    least: ClassVar[dict[str, float]] = {"concentration": 0.0, "rate": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}
    statistics: ClassVar[type[Any]]
    likelihood: ClassVar[type[Any]]
    rate_rounding: ClassVar[float] = 0.0
    """Rounding error of b, relative to b, where it is a sum of cells."""

    concentration: Array
    rate: Array

    def update(self, statistics: RateStatistics) -> Self:
        """Posterior: a' = a + A, b' = b + B."""
        more_a, more_b = statistics.gamma_increments()
        return type(self)(self.concentration + more_a, self.rate + more_b)

    def scale(self, factor: float | Array) -> Self:
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
        """Mean rates a/b; infinite where b = 0 and a > 0, and NaN where both are 0."""
        a, b = jnp.asarray(self.concentration), jnp.asarray(self.rate)
        return self.likelihood(jnp.where((b > 0) | (a > 0), a / b, jnp.nan))

    def mode(self) -> Any:
        """Modes (a - 1)/b; NaN where a < 1 (the density has no mode inside) or b = 0."""
        a = jnp.asarray(self.concentration)
        return self.likelihood(jnp.where(a < 1, jnp.nan, a - 1.0) / self._positive_rate())

    def penalized_mle(self) -> Any:
        """Mode of log λ, which exists for every a > 0: the mean."""
        return self.mean()

    def log_penalty(self, parameters: Rates) -> Float[jax.Array, "*C F"]:
        """(C, F) a log λ - b λ: the log density of log λ."""
        return linear(self.concentration, jnp.log(parameters.rate)) - self.rate * parameters.rate

    def variance(self) -> dict[str, jax.Array]:
        """Variances a/b²."""
        return {"rate": jnp.asarray(self.concentration) / self._positive_rate() ** 2}

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

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """Posterior after each cell of x (…, F) was seen `multiplicity` more times; b is kept above its rounding."""
        posterior = self.update(self.statistics.from_cells(x, multiplicity))
        rate = jnp.maximum(posterior.rate, self.rate_rounding * self.rate)
        return type(self)(jnp.maximum(posterior.concentration, 0.0), rate)

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        """(…, F) log Γ(a + A)/Γ(a) - (a + A) log(1 + B/b) - A log b of each cell of x counted `weight` times."""
        a, b = self.concentration, self.rate
        more_a, more_b = self.statistics.from_cells(x, weight).gamma_increments()
        far = more_b > 1e100 * b  # where B/b may overflow
        log_ratio = jnp.log(jnp.where(far, more_b, 1.0)) - jnp.log(b)
        growth = jnp.where(far, log_ratio, jnp.log1p(jnp.where(far, 0.0, more_b) / b))
        log_evidence: jax.Array = log_rising(a, more_a) - (a + more_a) * growth - more_a * jnp.log(b)
        return log_evidence

    def predictive_of_cell(self) -> IntegratedRates:
        """Likelihood with the rates integrated out; NaN where b = 0."""
        return IntegratedRates(type(self)(jnp.asarray(self.concentration), self._positive_rate()))

    def cumulants_of_terms(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) cumulants of A log λ - Bλ, each cell `multiplicity` times among the data.

        A [ψ(a) - log b] - B a/b, A² ψ₁(a) + B² a/b² - 2AB/b and A³ ψ₂(a) - 2B³ a/b³ + 3AB²/b².
        """
        seen, x = observed(x)
        more_a, more_b = self.statistics.from_cells(x[:, None]).gamma_increments()
        a, b = self.concentration + multiplicity * more_a, self._positive_rate() + multiplicity * more_b
        (psi, psi1, psi2), share = polygammas(a), more_b / b
        mean = linear(more_a, psi - jnp.log(b)) - a * share
        variance = linear(more_a**2, psi1) + (a * share - 2.0 * more_a) * share
        third = linear(more_a**3, psi2) - (2.0 * a * share - 3.0 * more_a) * share**2
        return Cumulants(*(only(seen[:, None], cumulant) for cumulant in (mean, variance, third)))

    def draw_terms(self, variates: Variates, n: int, x: object, multiplicity: float) -> TermDraws:
        """Draws of A log λ - Bλ of each cell, (N, C, F).

        A Gamma(a + A) variate is the sum of a Gamma(a) variate, which rows share, and of a Gamma(A) variate of the row,
        unless A is the same for all rows.
        """
        seen, x = observed(x)
        more_a, more_b = self.statistics.from_cells(x[:, None]).gamma_increments()
        row_a, of_rows = multiplicity * more_a, jnp.ndim(more_a) > 0
        shared = variates.log_gamma(self.concentration if of_rows else self.concentration + row_a, n)
        of_row = variates.log_gamma(row_a, n) if of_rows and multiplicity else jnp.full((n, 1, 1, 1), -jnp.inf)

        def terms(shared: jax.Array, of_row: jax.Array) -> jax.Array:
            log_rate = jnp.logaddexp(shared, of_row) - jnp.log(self._positive_rate() + multiplicity * more_b)
            return only(seen[:, None], linear(more_a, log_rate) - more_b * jnp.exp(log_rate))

        return (shared, of_row), terms

    def _positive_rate(self) -> jax.Array:
        rate = jnp.asarray(self.rate)
        return jnp.where(rate > 0, rate, jnp.nan)


@pytree
class IntegratedRates(SumOfCells):
    """Rates integrated out: negative binomial distributions of counts, Lomax distributions of durations."""

    posterior: Gamma

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log p(x) for one class, without the base measure."""
        return self.posterior.log_evidence_of_cell(x, 1.0)
