"""Gamma–exponential: durations."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesnb.families._pytree import pytree
from bayesnb.families._typed import map_leading_axis
from bayesnb.families.count_functions import linear
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.gamma import EmpiricalGamma, Gamma, Rates, Sums
from bayesnb.families.independent_cells import SumOfCells
from bayesnb.families.number_rows import observed, only, sum_cells
from bayesnb.families.protocol import Cumulants, Distribution, Unit, Words
from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.variates import Variates


@pytree
class Durations(Sums):
    """Number of durations and their sum, for each class and feature, (C, F) each."""

    def gamma_increments(self) -> tuple[Any, Any]:
        """Increments of a and b: n and Σx."""
        return self.count, self.total

    def units(self) -> dict[str, Unit]:
        """Unit of a rate: one over the mean over all rows, or 1 where that is 0."""
        spread = self.spread()
        return {"rate": Unit("rate · feature's mean", 0.0 * spread, spread)}

    def spread(self) -> np.ndarray:
        """(F,) one over the mean over all rows; 1 where that is 0."""
        mean = self.mean()
        return 1.0 / np.where(mean > 0, mean, 1.0)

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        """(N,) zeros."""
        return jnp.zeros(x.shape[0])


@pytree
class EmpiricalDuration(EmpiricalGamma):
    """Gamma(a, a · mean) priors of exponential rates, with the mean over all rows; Gamma(a, a) where that is 0.

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

    def prior(self, concentration: Any, rate: Any) -> GammaExponential:
        """Prior with these fields."""
        return GammaExponential(concentration, rate)


@pytree
class Exponential(Rates):
    """Exponential rates plugged in: `rate` (C, F)."""

    def distribution(self) -> Distribution:
        """Distribution of a duration."""
        return "Exponential", {"rate": self.rate}

    def simulate(self, rng: Any) -> np.ndarray:
        """One duration for each of the rates, drawn by a NumPy generator."""
        cells: np.ndarray = rng.exponential(1.0 / self.rate)
        return cells

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
        """(N, F) log λ - λx for one class; an infinite rate is a point mass at 0, with +inf on it and -inf off it."""
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
    infinite_rates: ClassVar[bool] = True

    def pseudo_count(self) -> dict[str, Any]:
        """Number of cells that the prior is worth: a."""
        return {"rate": self.concentration}

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """Posterior after each cell of x (N, F) was seen `multiplicity` more times, for one class.

        Without the longest duration b' is the difference of two large numbers: it is kept above their rounding.
        """
        posterior = self.update(Durations(multiplicity, multiplicity * x))
        return type(self)(jnp.maximum(posterior.concentration, 0.0), jnp.maximum(posterior.rate, 4e-16 * self.rate))

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        """(N, F) log p of each cell of x counted `weight` times, for one class."""
        a, b = self.concentration, self.rate
        log_evidence: jax.Array = (
            log_rising(a, weight + 0.0 * x) - a * jnp.log1p(weight * x / b) - weight * jnp.log(b + weight * x)
        )
        return log_evidence

    def predictive_of_cell(self) -> Lomax:
        """Lomax distribution of one more duration."""
        rate = self._positive_rate()
        return Lomax(jnp.asarray(self.concentration) + 0.0 * rate, rate)

    def predictive_distribution(self) -> Distribution:
        """Lomax distribution in `scipy.stats`."""
        return "lomax", {"c": self.concentration, "scale": self.rate}

    def cumulants_of_terms(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) ψ(a) - log b - x a/b, ψ₁(a) + x²a/b² - 2x/b and ψ₂(a) - 2x³a/b³ + 3x²/b²."""
        seen, x = observed(x)

        def one_class(a: jax.Array, b: jax.Array) -> Cumulants:
            a, b = a + multiplicity, b + multiplicity * x
            (psi, psi1, psi2), share = polygammas(a), x / b
            mean = psi - jnp.log(b) - a * share
            variance = psi1 + (a * share - 2.0) * share
            third = psi2 - (2.0 * a * share - 3.0) * share**2
            return Cumulants(*(only(seen, cumulant) for cumulant in (mean, variance, third)))

        return jax.vmap(one_class, out_axes=1)(jnp.asarray(self.concentration), self._positive_rate())

    def draw_with_multiplicity(self, variates: Variates, n: int, x: Any, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ log λ - λx; after the row λ is a Gamma(a + 1) variate, which rows share, over b + x."""
        seen, x = observed(x)
        log_gamma = variates.log_gamma(jnp.asarray(self.concentration) + multiplicity, n)

        def one_class(log_gamma: jax.Array, rate: jax.Array) -> jax.Array:
            log_rate = log_gamma - jnp.log(rate + multiplicity * x)
            return sum_cells(seen, log_rate - jnp.exp(log_rate) * x)

        return map_leading_axis(lambda draw: jax.vmap(one_class, out_axes=1)(draw, self._positive_rate()), log_gamma)


@pytree
class Lomax(SumOfCells):
    """Lomax distributions: exponential rates integrated out."""

    concentration: Any
    rate: Any

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log a - log b - (a + 1) log(1 + x/b) for one class."""
        a, b = self.concentration, self.rate
        far = x > 1e100 * b  # where x/b may overflow
        near = jnp.where(far, 0.0, x)
        growth = jnp.where(far, jnp.log(jnp.where(far, x, 1.0)) - jnp.log(b), jnp.log1p(near / b))
        scores: jax.Array = jnp.log(a) - jnp.log(b) - (a + 1.0) * growth
        return scores
