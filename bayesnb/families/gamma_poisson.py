"""Gamma–Poisson: counts that do not share a total."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
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
class Totals(Sums):
    """Number of cells and sum of the counts in them, for each class and feature, (C, F) each."""

    def units(self) -> dict[str, Unit]:
        """Of a rate the mean over all rows; 1 where that is 0."""
        mean = self.mean()
        return {"rate": Unit("rate / feature's mean", 0.0 * mean, np.where(mean > 0, mean, 1.0))}

    def spread(self) -> np.ndarray:
        """(F,) root of the mean over all rows, the standard deviation of a Poisson variate."""
        return np.sqrt(self.mean())

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        """-Σ log x!"""
        seen, x = observed(x)
        return -sum_cells(seen, gammaln(x + 1.0))


@pytree
class EmpiricalRate(EmpiricalPrior):
    """Of Poisson rates: Gamma(a, a/mean), with the mean over all rows; Gamma(a, a) where that is 0.

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

    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: Any = 1.0

    def __call__(self, statistics: Totals, together: Totals) -> GammaPoisson:
        xp = together.total.__array_namespace__()
        some = together.total > 0
        rate = xp.where(some, together.count / xp.where(some, together.total, 1.0), 1.0)
        a = self.concentration * xp.ones_like(statistics.count)
        return GammaPoisson(a, rate * a)


@pytree
class Poisson(Rates):
    """Poisson rates plugged in: `rate` (C, F)."""

    def distribution(self) -> Distribution:
        return "Poisson", {"rate": self.rate}

    def simulate(self, rng: Any) -> np.ndarray:
        """A count for each of the rates, by a NumPy generator."""
        return rng.poisson(self.rate)

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) x log λ - λ of one class."""
        return linear(x, jnp.log(self.rate)) - self.rate

    def log_likelihood(self, statistics: Totals) -> Float[jax.Array, "*C F"]:
        """(C, F) Σx log λ - n λ."""
        return linear(statistics.total, jnp.log(self.rate)) - statistics.count * self.rate


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

    def update(self, statistics: Totals) -> Self:
        """a' = a + Σx, b' = b + n."""
        return type(self)(self.concentration + statistics.total, self.rate + statistics.count)

    def pseudo_count(self) -> dict[str, Any]:
        """b."""
        return {"rate": self.rate}

    def with_cell(self, x: jax.Array, multiplicity: Any) -> Self:
        """The posterior after each cell of x (N, F) was seen `multiplicity` more times."""
        found = self.update(Totals(multiplicity, multiplicity * x))
        return type(self)(jnp.maximum(found.concentration, 0.0), found.rate)

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        """log p of each cell of x (N, F) counted `weight` times, of one class, without -log x!"""
        a, b = self.concentration, self.rate
        return log_rising(a, weight * x) - a * jnp.log1p(weight / b) - weight * x * jnp.log(b + weight)

    def predictive(self) -> NegativeBinomial:
        """The negative binomial distribution, of a count more."""
        rate = self._rate()
        return NegativeBinomial(jnp.asarray(self.concentration) + 0.0 * rate, rate)

    def predictive_distribution(self) -> tuple[str, dict[str, Any]]:
        """Negative binomial."""
        return "nbinom", {"n": self.concentration, "p": self.rate / (self.rate + 1.0)}

    def cumulants_of_terms(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """x[ψ(a) - log b] - a/b - log x!, x²ψ₁(a) + a/b² - 2x/b and x³ψ₂(a) - 2a/b³ + 3x/b²."""
        seen, x = observed(x)

        def one_class(a: jax.Array, b: jax.Array) -> Cumulants:
            a, b = a + multiplicity * x, b + multiplicity
            psi, psi1, psi2 = polygammas(a)
            mean = linear(x, psi - jnp.log(b)) - a / b - gammaln(x + 1.0)
            variance = linear(x * x, psi1) + (a / b - 2.0 * x) / b
            third = linear(x**3, psi2) - (2.0 * a / b - 3.0 * x) / b**2
            return Cumulants(*(only(seen, cumulant) for cumulant in (mean, variance, third)))

        return jax.vmap(one_class, out_axes=1)(jnp.asarray(self.concentration), self._rate())

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0) -> jax.Array:
        """x log λ - λ; a Gamma(a + x) variate is a Gamma(a) one, shared by the rows, plus a row's own Gamma(x)."""
        seen, x = observed(x)
        log_gamma = variates.log_gamma(self.concentration, n)
        own = variates.log_gamma(multiplicity * x, n) if multiplicity else jnp.full((n, *x.shape), -jnp.inf)

        def one_class(log_gamma: jax.Array, rate: jax.Array, own: jax.Array) -> jax.Array:
            log_rate = jnp.logaddexp(log_gamma, own) - jnp.log(rate + multiplicity)
            return sum_cells(seen, linear(x, log_rate) - jnp.exp(log_rate))

        over_classes = jax.vmap(one_class, in_axes=(0, 0, None), out_axes=1)
        return jax.lax.map(lambda draw: over_classes(draw[0], self._rate(), draw[1]), (log_gamma, own))

    log_base = staticmethod(Totals.log_base)


@pytree
class NegativeBinomial(SumOfCells):
    """Rates integrated out."""

    concentration: Any
    rate: Any

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log Γ(a + x)/Γ(a) - a log(1 + 1/b) - x log(1 + b) of one class."""
        a, b = self.concentration, self.rate
        return log_rising(a, x) - a * jnp.log1p(1.0 / b) - x * jnp.log1p(b)
