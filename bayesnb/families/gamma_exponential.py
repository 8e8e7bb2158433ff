"""Gamma–exponential: durations."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float

from bayesnb.families._namespace import cond, xp
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.gamma import EmpiricalGamma, Gamma, Rates, Sums
from bayesnb.families.independent_cells import reduce_cells, sum_with_points
from bayesnb.families.number_rows import sum_cells
from bayesnb.families.protocol import Distribution, Unit, Words


@pytree
class Durations(Sums):
    """Number of durations and their sum, for each class and feature, (C, F) each."""

    def gamma_increments(self) -> tuple[Any, Any]:
        """Exponents (A, B) of the likelihood λ^A exp(-Bλ): number of cells n, and their sum Σx."""
        return self.count, self.total

    def units(self) -> dict[str, Unit]:
        """Display unit of the rate: one over the feature's mean over all rows, or 1 where that mean is 0."""
        spread = self.spread()
        return {"rate": Unit("rate · feature's mean", 0.0 * spread, spread)}

    def spread(self) -> np.ndarray:
        """(F,) one over the feature's mean over all rows, classes pooled; 1 where that mean is 0."""
        mean = self.mean()
        return 1.0 / np.where(mean > 0, mean, 1.0)

    @staticmethod
    def log_base(x: Any) -> jax.Array:
        """(N,) zeros: the exponential density has no factor that is left out."""
        return xp.zeros(x.shape[0])


@pytree
class EmpiricalDuration(EmpiricalGamma):
    """Gamma(a, a · mean) priors of exponential rates, with the mean over all rows; Gamma(a, a) where that is 0.

    Parameters
    ----------
    concentration : float
        Concentration a, the number of durations that the prior counts as.

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

    statistics: ClassVar[type] = Durations

    def prior(self, concentration: Array, rate: Array) -> GammaExponential:
        """`GammaExponential` family with concentration a and rate b, (C, F) each."""
        return GammaExponential(concentration, rate)


@pytree
class Exponential(Rates):
    """Exponential likelihood of durations with rates plugged in: `rate` (C, F), or draws (n, C, F)."""

    statistics: ClassVar[type[Durations]] = Durations
    cell: ClassVar[str] = "Exponential(rate, validate_args=False)"  # the support of NumPyro's leaves 0 out
    sql: ClassVar[tuple[str, str]] = ("LN({rate}) - {rate} * {x}", "{impossible}")

    def simulate(self, rng: np.random.Generator) -> np.ndarray:
        """Random durations in the shape of the rates, one for each, drawn by a NumPy generator."""
        return rng.exponential(1.0 / self.rate)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log Exponential(x_f; λ_f); at an infinite rate +inf for x = 0, and -inf for x > 0."""
        some_point = xp.any(xp.isinf(self.rate))
        return cond(some_point, lambda: sum_with_points(self.terms(x)), lambda: reduce_cells(self, sum_cells, x))


@pytree
class GammaExponential(Gamma):
    r"""Gamma distribution of the rates of exponential features, one for each class and feature.

    .. math::

        \lambda \sim \mathrm{Gamma}(a, b), \qquad p(\lambda) \propto \lambda^{a - 1} e^{-b\lambda}

    The distribution is conjugate to durations x ~ Exponential(λ): `update` returns the posterior Gamma(a + n, b + Σx),
    which is of the same type. As `prior=` of a classifier, each field may also be a scalar, (F,),
    or a dict or Series by column.

    Parameters
    ----------
    concentration : (C, F) array
        Shape a: the number of durations that the distribution counts as.
    rate : (C, F) array
        Rate b: the total of these durations, in the units of the feature. The mean is a/b.

    See Also
    --------
    ExponentialNB : Classifier with this prior.
    bayesnb.families.EmpiricalDuration : Prior of this type that is derived from the data.

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
    words: ClassVar[Words] = Words(spread="one over the feature's mean")
    statistics: ClassVar[type] = Durations
    likelihood: ClassVar[type] = Exponential
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalDuration()}
    infinite_rates: ClassVar[bool] = True
    rate_rounding: ClassVar[float] = 4e-16

    def pseudo_count(self) -> dict[str, Any]:
        """Number a of pseudo-observations that the distribution of each rate is worth, {"rate": (C, F)}."""
        return {"rate": self.concentration}

    def predictive_distribution(self) -> Distribution:
        """Posterior predictive Lomax distribution of a cell, as name and arguments (C, F) in `scipy.stats`."""
        return "lomax", {"c": self.concentration, "scale": self.rate}
