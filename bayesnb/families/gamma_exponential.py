"""Gamma–exponential: durations."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesnb.families._pytree import pytree
from bayesnb.families.cells import observed, only, sum_cells
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.gamma import Gamma, Rates, Sums
from bayesnb.families.leave_one_out import SumOfCells
from bayesnb.families.protocol import Cumulants, Distribution, Unit, Words
from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.terms import linear
from bayesnb.families.variates import Variates


@pytree
class Durations(Sums):
    """Number of durations and their sum, for each class and feature, (C, F) each."""

    def units(self) -> dict[str, Unit]:
        """Of a rate the inverse of the mean over all rows; 1 where that is 0."""
        spread = self.spread()
        return {"rate": Unit("rate · feature's mean", 0.0 * spread, spread)}

    def spread(self) -> np.ndarray:
        """(F,) one over the mean over all rows; 1 where that is 0."""
        mean = self.mean()
        return 1.0 / np.where(mean > 0, mean, 1.0)

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        return jnp.zeros(x.shape[0])


@pytree
class EmpiricalDuration(EmpiricalPrior):
    """Of exponential rates: Gamma(a, a · mean), with the mean over all rows; Gamma(a, a) where that is 0.

    Parameters
    ----------
    concentration : float
        a, the number of durations that the prior is worth.

    Examples
    --------
    >>> from bayesnb import ExponentialNB
    >>> from bayesnb.families import EmpiricalDuration
    >>> nb = ExponentialNB(prior=EmpiricalDuration(3.0)).fit([[0.2], [0.4], [3.0]], ["fast", "fast", "slow"])
    >>> nb.rate_.round(2)  # drawn to each other more than under the default, 1
    array([[1.19],
           [0.61]])
    >>> ExponentialNB().fit([[0.2], [0.4], [3.0]], ["fast", "fast", "slow"]).rate_.round(2)
    array([[1.67],
           [0.48]])
    """

    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: Any = 1.0

    def __call__(self, statistics: Durations, together: Durations) -> GammaExponential:
        xp = together.total.__array_namespace__()
        some = together.total > 0
        mean = xp.where(some, together.total / xp.where(some, together.count, 1.0), 1.0)
        a = self.concentration * xp.ones_like(statistics.count)
        return GammaExponential(a, mean * a)


@pytree
class Exponential(Rates):
    """Exponential rates plugged in: `rate` (C, F)."""

    def distribution(self) -> Distribution:
        return "Exponential", {"rate": self.rate}

    def simulate(self, rng: Any) -> np.ndarray:
        """A duration for each of the rates, by a NumPy generator."""
        return rng.exponential(1.0 / self.rate)

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log Exponential(x; λ); on the point mass of an infinite rate +inf, off it -inf."""
        seen, x = observed(x)

        def one_class(rate: jax.Array) -> jax.Array:
            infinite = jnp.isinf(rate)
            point, other = seen & infinite, Exponential(jnp.where(infinite, 1.0, rate))
            score = sum_cells(seen & ~infinite, other.cells(x))
            at_zero = jnp.where(jnp.any(point, axis=-1) & ~jnp.isnan(score), jnp.inf, score)
            return jnp.where(jnp.any(point & (x > 0), axis=-1), -jnp.inf, at_zero)

        return jax.vmap(one_class, out_axes=1)(jnp.asarray(self.rate))

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log λ - λx of one class; of an infinite rate, a point mass at 0, +inf on it and -inf off it."""
        point = jnp.isinf(jnp.asarray(self.rate))
        rate = jnp.where(point, 1.0, self.rate)
        return jnp.where(point, jnp.where(x > 0, -jnp.inf, jnp.inf), jnp.log(rate) - rate * x)

    def log_likelihood(self, statistics: Durations) -> Float[jax.Array, "*C F"]:
        """(C, F) n log λ - λ Σx."""
        return linear(statistics.count, jnp.log(self.rate)) - linear(statistics.total, self.rate)


@pytree
class GammaExponential(Gamma):
    """Exponential rates with Gamma(concentration a, rate b) priors; each field (C, F).

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A.

    Examples
    --------
    Waiting times of 2, 3 and 7 minutes, and a prior worth one of 4: the rate a minute.

    >>> import jax.numpy as jnp
    >>> from bayesnb import GammaExponential
    >>> from bayesnb.families import Durations
    >>> prior = GammaExponential(jnp.array([[1.0]]), jnp.array([[4.0]]))
    >>> posterior = prior.update(Durations(jnp.array([[3.0]]), jnp.array([[12.0]])))
    >>> posterior.mean().rate, posterior.variance()["rate"]
    (Array([[0.25]], dtype=float32), Array([[0.015625]], dtype=float32))
    """

    kind: ClassVar[str] = "exponential"
    words: ClassVar[Words] = Words(
        "columns of durations, each with a rate of its own", spread="one over the feature's mean"
    )
    statistics: ClassVar[type] = Durations
    likelihood: ClassVar[type] = Exponential
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalDuration()}

    def update(self, statistics: Durations) -> Self:
        """a' = a + n, b' = b + Σx."""
        return type(self)(self.concentration + statistics.count, self.rate + statistics.total)

    def pseudo_count(self) -> dict[str, Any]:
        """a."""
        return {"rate": self.concentration}

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """The posterior after each cell of x (N, F) was seen `multiplicity` more times.

        Leaving out the longest takes b' for the difference of two large numbers: it is not below their rounding.
        """
        found = self.update(Durations(multiplicity, multiplicity * x))
        return type(self)(jnp.maximum(found.concentration, 0.0), jnp.maximum(found.rate, 4e-16 * self.rate))

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        """log p of each cell of x (N, F) counted `weight` times, of one class."""
        a, b = self.concentration, self.rate
        return log_rising(a, weight + 0.0 * x) - a * jnp.log1p(weight * x / b) - weight * jnp.log(b + weight * x)

    def mean(self) -> Exponential:
        """a/b; infinite, a point mass, where all durations are 0 under an improper prior; NaN where there are none."""
        a, b = jnp.asarray(self.concentration), jnp.asarray(self.rate)
        return Exponential(jnp.where((a > 0) | (b > 0), a / b, jnp.nan))

    def predictive(self) -> Lomax:
        """The Lomax distribution, of a duration more."""
        rate = self._rate()
        return Lomax(jnp.asarray(self.concentration) + 0.0 * rate, rate)

    def predictive_distribution(self) -> tuple[str, dict[str, Any]]:
        """Lomax: Pareto's, from 0 on."""
        return "lomax", {"c": self.concentration, "scale": self.rate}

    def cumulants_of_terms(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """ψ(a) - log b - x a/b, ψ₁(a) + x²a/b² - 2x/b and ψ₂(a) - 2x³a/b³ + 3x²/b²."""
        seen, x = observed(x)

        def one_class(a: jax.Array, b: jax.Array) -> Cumulants:
            a, b = a + multiplicity, b + multiplicity * x
            (psi, psi1, psi2), share = polygammas(a), x / b
            mean = psi - jnp.log(b) - a * share
            variance = psi1 + (a * share - 2.0) * share
            third = psi2 - (2.0 * a * share - 3.0) * share**2
            return Cumulants(*(only(seen, cumulant) for cumulant in (mean, variance, third)))

        return jax.vmap(one_class, out_axes=1)(jnp.asarray(self.concentration), self._rate())

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0) -> jax.Array:
        """log λ - λx; after the row λ is a Gamma(a + 1) variate, which rows share, over b + x."""
        seen, x = observed(x)
        log_gamma = variates.log_gamma(jnp.asarray(self.concentration) + multiplicity, n)

        def one_class(log_gamma: jax.Array, rate: jax.Array) -> jax.Array:
            log_rate = log_gamma - jnp.log(rate + multiplicity * x)
            return sum_cells(seen, log_rate - jnp.exp(log_rate) * x)

        return jax.lax.map(lambda draw: jax.vmap(one_class, out_axes=1)(draw, self._rate()), log_gamma)

    log_base = staticmethod(Durations.log_base)


@pytree
class Lomax(SumOfCells):
    """Rates integrated out."""

    concentration: Any
    rate: Any

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log a - log b - (a + 1) log(1 + x/b) of one class."""
        a, b = self.concentration, self.rate
        far = x > 1e100 * b  # where x/b may overflow
        near = jnp.where(far, 0.0, x)
        growth = jnp.where(far, jnp.log(jnp.where(far, x, 1.0)) - jnp.log(b), jnp.log1p(near / b))
        return jnp.log(a) - jnp.log(b) - (a + 1.0) * growth
