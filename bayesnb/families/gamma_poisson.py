"""Gamma–Poisson: counts that do not share a total."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
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
class Totals(Sums):
    """Number of cells and sum of the counts in them, for each class and feature, (C, F) each."""

    def gamma_increments(self) -> tuple[Any, Any]:
        """Increments of a and b: Σx and n."""
        return self.total, self.count

    def units(self) -> dict[str, Unit]:
        """Unit of a rate: the mean over all rows, or 1 where that is 0."""
        mean = self.mean()
        return {"rate": Unit("rate / feature's mean", 0.0 * mean, np.where(mean > 0, mean, 1.0))}

    def spread(self) -> np.ndarray:
        """(F,) root of the mean over all rows, the standard deviation of a Poisson variate."""
        return np.asarray(np.sqrt(self.mean()))

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        """(N,) -Σ log x!"""
        seen, x = observed(x)
        return -sum_cells(seen, gammaln(x + 1.0))


@pytree
class EmpiricalRate(EmpiricalGamma):
    """Gamma(a, a/mean) priors of Poisson rates, with the mean over all rows; Gamma(a, a) where that is 0.

    Parameters
    ----------
    concentration : float
        a.

    Examples
    --------
    >>> from bayesnb import PoissonNB
    >>> from bayesnb.families import EmpiricalRate
    >>> nb = PoissonNB(prior=EmpiricalRate(2.0)).fit([[0], [1], [5]], ["quiet", "quiet", "busy"])
    >>> nb.rate_, nb.feature_count_  # with a mean of 2 over all rows, worth one row
    (array([[3.5],
           [1. ]]), array([[5.],
           [1.]]))
    """

    def prior(self, concentration: Any, rate: Any) -> GammaPoisson:
        """Prior with these fields."""
        return GammaPoisson(concentration, rate)


@pytree
class Poisson(Rates, SumOfCells):
    """Poisson rates plugged in: `rate` (C, F)."""

    def distribution(self) -> Distribution:
        """Distribution of a count."""
        return "Poisson", {"rate": self.rate}

    def simulate(self, rng: Any) -> np.ndarray:
        """One count for each of the rates, drawn by a NumPy generator."""
        cells: np.ndarray = rng.poisson(self.rate)
        return cells

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) x log λ - λ for one class."""
        scores: jax.Array = linear(x, jnp.log(self.rate)) - self.rate
        return scores

    def log_likelihood(self, statistics: Totals) -> Float[jax.Array, "*C F"]:
        """(C, F) Σx log λ - n λ."""
        scores: jax.Array = linear(statistics.total, jnp.log(self.rate)) - statistics.count * self.rate
        return scores


@pytree
class GammaPoisson(Gamma):
    """Poisson rates with Gamma(concentration a, rate b) priors; each field (C, F).

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A.

    Examples
    --------
    Four calls in three hours, and a prior worth one hour with two: the rate an hour.

    >>> import jax.numpy as jnp
    >>> from bayesnb import GammaPoisson
    >>> from bayesnb.families import Totals
    >>> prior = GammaPoisson(jnp.array([[2.0]]), jnp.array([[1.0]]))
    >>> posterior = prior.update(Totals(jnp.array([[3.0]]), jnp.array([[4.0]])))
    >>> posterior.mean().rate, posterior.variance()["rate"]
    (Array([[1.5]], dtype=float32), Array([[0.375]], dtype=float32))
    """

    kind: ClassVar[str] = "poisson"
    words: ClassVar[Words] = Words(
        "columns of counts, each with a rate of its own", spread="the root of the feature's mean"
    )
    statistics: ClassVar[type] = Totals
    likelihood: ClassVar[type] = Poisson
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalRate()}

    def pseudo_count(self) -> dict[str, Any]:
        """Number of cells that the prior is worth: b."""
        return {"rate": self.rate}

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """Posterior after each cell of x (N, F) was seen `multiplicity` more times, for one class."""
        posterior = self.update(Totals(multiplicity, multiplicity * x))
        return type(self)(jnp.maximum(posterior.concentration, 0.0), posterior.rate)

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        """(N, F) log p of each cell of x counted `weight` times, for one class, without -log x!"""
        a, b = self.concentration, self.rate
        log_evidence: jax.Array = (
            log_rising(a, weight * x) - a * jnp.log1p(weight / b) - weight * x * jnp.log(b + weight)
        )
        return log_evidence

    def predictive_of_cell(self) -> NegativeBinomial:
        """Negative binomial distribution of one more count."""
        rate = self._positive_rate()
        return NegativeBinomial(jnp.asarray(self.concentration) + 0.0 * rate, rate)

    def predictive_distribution(self) -> Distribution:
        """Negative binomial distribution in `scipy.stats`."""
        return "nbinom", {"n": self.concentration, "p": self.rate / (self.rate + 1.0)}

    def cumulants_of_terms(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) x[ψ(a) - log b] - a/b - log x!, x²ψ₁(a) + a/b² - 2x/b and x³ψ₂(a) - 2a/b³ + 3x/b²."""
        seen, x = observed(x)

        def one_class(a: jax.Array, b: jax.Array) -> Cumulants:
            a, b = a + multiplicity * x, b + multiplicity
            psi, psi1, psi2 = polygammas(a)
            mean = linear(x, psi - jnp.log(b)) - a / b - gammaln(x + 1.0)
            variance = linear(x * x, psi1) + (a / b - 2.0 * x) / b
            third = linear(x**3, psi2) - (2.0 * a / b - 3.0 * x) / b**2
            return Cumulants(*(only(seen, cumulant) for cumulant in (mean, variance, third)))

        return jax.vmap(one_class, out_axes=1)(jnp.asarray(self.concentration), self._positive_rate())

    def draw_with_multiplicity(self, variates: Variates, n: int, x: Any, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ x log λ - λ.

        A Gamma(a + x) variate is the sum of a Gamma(a) variate, which rows share, and of a Gamma(x) variate of the row.
        """
        seen, x = observed(x)
        log_gamma = variates.log_gamma(self.concentration, n)
        row_gamma = variates.log_gamma(multiplicity * x, n) if multiplicity else jnp.full((n, *x.shape), -jnp.inf)

        def one_class(log_gamma: jax.Array, rate: jax.Array, row_gamma: jax.Array) -> jax.Array:
            log_rate = jnp.logaddexp(log_gamma, row_gamma) - jnp.log(rate + multiplicity)
            return sum_cells(seen, linear(x, log_rate) - jnp.exp(log_rate))

        over_classes = jax.vmap(one_class, in_axes=(0, 0, None), out_axes=1)
        return map_leading_axis(
            lambda draw: over_classes(draw[0], self._positive_rate(), draw[1]), (log_gamma, row_gamma)
        )


@pytree
class NegativeBinomial(SumOfCells):
    """Negative binomial distributions: Poisson rates integrated out."""

    concentration: Any
    rate: Any

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log Γ(a + x)/Γ(a) - a log(1 + 1/b) - x log(1 + b) for one class."""
        a, b = self.concentration, self.rate
        scores: jax.Array = log_rising(a, x) - a * jnp.log1p(1.0 / b) - x * jnp.log1p(b)
        return scores
