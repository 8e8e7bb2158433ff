"""Empirical Bayes: priors that are functions of the statistics, and leave-one-out in which they are derived anew."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from bayesnb.families._pytree import pytree, static
from bayesnb.families.averaged import AveragedCells
from bayesnb.families.cells import in_pieces, observed
from bayesnb.families.gamma_poisson import GammaPoisson, Totals
from bayesnb.families.moments import Moments
from bayesnb.families.normal_inverse_gamma import NormalInverseGamma
from bayesnb.families.protocol import Likelihood, pooled


class EmpiricalPrior:
    """A prior as a function of the statistics, each class's and those of all classes as of one.

    It knows no other module than that of its arrays: NumPy's on the host, JAX's in a kernel.
    """

    def __call__(self, statistics: Any, together: Any) -> Any:
        raise NotImplementedError

    def update_apart(self, statistics: Any) -> Empirical:
        """The posterior, for rows that are left out of the prior too."""
        return Empirical(self, statistics)


@pytree
class EmpiricalNormal(EmpiricalPrior):
    """Of Gaussian features: loc = mean over all rows, κ, a and b = a·v, so that the expected precision a/b is 1/v.

    Parameters
    ----------
    variance : {"within", "pooled"}
        What v is, in population form: the variance within classes, Σ_c M2_c/n, or that over all rows. Where it is 0,
        or no more than (10⁻¹² · mean)², v = 1; without an observed cell loc = 0 and v = 1.
    kappa, concentration : float
        κ, the number of rows that loc is worth, and a, half of the number that v is worth.
    """

    variance: str = static()
    kappa: Any = 0.1
    concentration: Any = 1.0

    def __call__(self, statistics: Moments, together: Moments) -> NormalInverseGamma:
        xp = together.mean.__array_namespace__()
        m2 = statistics.m2.sum(axis=0) if self.variance == "within" else together.m2
        variance = m2 / (together.count + (together.count == 0))
        variance = xp.where(variance <= (1e-12 * together.mean) ** 2, 1.0, variance)
        each = xp.ones_like(statistics.count)
        fields = together.mean, self.kappa, self.concentration, self.concentration * variance
        return NormalInverseGamma(*(field * each for field in fields))


@pytree
class EmpiricalRate(EmpiricalPrior):
    """Of Poisson rates: Gamma(1, 1/mean), with the mean over all rows; Gamma(1, 1) where that is 0."""

    def __call__(self, statistics: Totals, together: Totals) -> GammaPoisson:
        xp = together.total.__array_namespace__()
        some = together.total > 0
        rate = xp.where(some, together.count / xp.where(some, together.total, 1.0), 1.0)
        each = xp.ones_like(statistics.count)
        return GammaPoisson(each, rate * each)


@pytree
class EmpiricalAveraged(EmpiricalPrior):
    """As `prior`, where it is not known whether a feature depends on the class: `log_odds` (F,) that it does."""

    prior: Any
    log_odds: Any

    def __call__(self, statistics: Any, together: Any) -> AveragedCells:
        family = self.prior(statistics, together)
        return AveragedCells(family, jax.tree.map(lambda field: field[:1], family), self.log_odds)


@pytree
class Empirical:
    """The posterior under an empirical prior, for rows that are left out of both."""

    prior: Any
    statistics: Any

    def mean_with_row(self, added: Any) -> Likelihood:
        return Refitted(self.prior, self.statistics, added, "mean")

    def predictive_with_row(self, added: Any) -> Likelihood:
        return Refitted(self.prior, self.statistics, added, "predictive")


@pytree
class Refitted:
    """A `reading` of the posterior of the other rows, under the prior of the other rows; `added` (C,) as elsewhere."""

    prior: Any
    statistics: Any
    added: Any
    reading: str = static()

    def prepare(self, x: Any) -> Refitted:
        return self

    def log_prob(self, x: Any) -> jax.Array:
        """(N, C) Σ_f log p(x_f | class)."""
        return in_pieces(self._of_rows, x, self.added.shape[0])

    def _of_rows(self, x: Any) -> jax.Array:
        # Rows are an axis between classes and features, which what is the same for all rows does without.
        statistics = jax.tree.map(lambda field: jnp.asarray(field)[:, None], self.statistics)
        weight, cells = -self.added[:, None, None], observed(x)[1]
        others = statistics.without(cells, weight)
        prior = self.prior(others, pooled(statistics).without(cells, jnp.sum(weight)))
        return getattr(prior.update(others), self.reading)().log_prob(x)
