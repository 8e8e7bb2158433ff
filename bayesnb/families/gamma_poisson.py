"""Gamma–Poisson: counts that do not share a total."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import numpy as np

from bayesnb.families._namespace import gammaln
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.gamma import EmpiricalGamma, Gamma, Rates, Sums
from bayesnb.families.independent_cells import SumOfCells
from bayesnb.families.number_rows import observed, sum_cells
from bayesnb.families.protocol import Distribution, Unit, Words


@pytree
class Totals(Sums):
    """Number of cells and sum of the counts in them, for each class and feature, (C, F) each."""

    def gamma_increments(self) -> tuple[Any, Any]:
        """Exponents (A, B) of the likelihood λ^A exp(-Bλ): sum of the counts Σx, and number of cells n."""
        return self.total, self.count

    def units(self) -> dict[str, Unit]:
        """Display unit of the rate: the feature's mean over all rows, or 1 where that mean is 0."""
        mean = self.mean()
        return {"rate": Unit("rate / feature's mean", 0.0 * mean, np.where(mean > 0, mean, 1.0))}

    def spread(self) -> np.ndarray:
        """(F,) root of the feature's mean over all rows: the standard deviation of a Poisson variate with that mean."""
        return np.asarray(np.sqrt(self.mean()))

    @staticmethod
    def log_base(x: object) -> jax.Array:
        """(N,) -Σ_f log x_f!, the factor of the Poisson probability that is left out."""
        seen, x = observed(x)
        return -sum_cells(seen, gammaln(x + 1.0))


@pytree
class EmpiricalRate(EmpiricalGamma):
    """Gamma(a, a/mean) priors of Poisson rates, with the mean over all rows; Gamma(a, a) where that is 0.

    Parameters
    ----------
    concentration : float
        Concentration a; the prior counts as a/mean rows.

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

    statistics: ClassVar[type] = Totals

    def prior(self, concentration: Array, rate: Array) -> GammaPoisson:
        """`GammaPoisson` family with concentration a and rate b, (C, F) each."""
        return GammaPoisson(concentration, rate)


@pytree
class Poisson(Rates, SumOfCells):
    """Poisson likelihood of counts with rates plugged in: `rate` (C, F), or draws (n, C, F)."""

    statistics: ClassVar[type[Totals]] = Totals
    cell: ClassVar[str] = "Poisson(rate)"
    sql: ClassVar[tuple[str, str]] = ("{x} * LN({rate}) - {rate}", "CASE WHEN {x} = 0 THEN 0 ELSE {impossible} END")

    def simulate(self, rng: np.random.Generator) -> np.ndarray:
        """Random counts in the shape of the rates, one for each, drawn by a NumPy generator."""
        return rng.poisson(self.rate)


@pytree
class GammaPoisson(Gamma):
    r"""Gamma distribution of the rates of Poisson features, one for each class and feature.

    .. math::

        \lambda \sim \mathrm{Gamma}(a, b), \qquad p(\lambda) \propto \lambda^{a - 1} e^{-b\lambda}

    The distribution is conjugate to counts x ~ Poisson(λ): `update` returns the posterior, which is of the same type
    (docs/derivations/conjugate.md, "Poisson counts"). As `prior=` of a classifier, each field may also be a scalar,
    (F,), or a dict or Series by column.

    Parameters
    ----------
    concentration : (C, F) array
        Shape a: the total count that the distribution counts as.
    rate : (C, F) array
        Rate b: the number of rows that the distribution counts as. The mean is a/b, in counts per row.

    See Also
    --------
    PoissonNB : Classifier with this prior.
    bayesnb.families.EmpiricalRate : Prior of this type that is derived from the data.

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
    words: ClassVar[Words] = Words(spread="the root of the feature's mean")
    statistics: ClassVar[type] = Totals
    likelihood: ClassVar[type] = Poisson
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalRate()}

    def pseudo_count(self) -> dict[str, Any]:
        """Number b of pseudo-observations that the distribution of each rate is worth, {"rate": (C, F)}."""
        return {"rate": self.rate}

    def predictive_distribution(self) -> Distribution:
        """Posterior predictive negative binomial of a cell, as name and arguments (C, F) in `scipy.stats`."""
        return "nbinom", {"n": self.concentration, "p": self.rate / (self.rate + 1.0)}
