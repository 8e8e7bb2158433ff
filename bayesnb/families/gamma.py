"""Gamma families of counts (Poisson) and durations (exponential)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families.arrays import Array, cond, gammaln, map_leaves, pytree, square_limit, xp
from bayesnb.families.numbers import (
    Cellwise,
    EmpiricalPrior,
    Exposed,
    IndependentCells,
    SumOfCells,
    numbers,
    observed,
    only,
    reduce_cells,
    sites_of_numbers,
    sum_by_class,
    sum_cells,
    sum_with_points,
)
from bayesnb.families.protocol import (
    ROUNDING,
    Additive,
    Cumulants,
    Distribution,
    Expression,
    Hyperparameter,
    HyperpriorKind,
    Likelihood,
    OfPredictive,
    Site,
    TermDraws,
    Unit,
    Variates,
    Words,
    overridable,
)
from bayesnb.families.rows import linear, log_or_minus_infinity
from bayesnb.families.special import log_rising, polygammas

# == Gamma priors of rates, for families of non-negative numbers with one rate a class and feature =


def _pooled_ratio(total: Array, size: Array) -> np.ndarray:
    """(F,) sum of `total` (C, F) over the classes, divided by that of `size` (C, F); 0 where `size` is 0."""
    return np.asarray(np.sum(total, axis=0) / np.maximum(np.sum(size, axis=0), np.finfo(float).tiny))


@pytree
class Sums(Additive, ABC):
    """Number of cells and their sum, for each class and feature, (C, F) each."""

    count: Array
    total: Array

    @abstractmethod
    def gamma_increments(self) -> tuple[Array, Array]:
        """Exponents (A, B) of the likelihood λ^A exp(-Bλ) of a rate λ, (C, F) each."""

    @classmethod
    def from_cells(cls, x: Array, weight: Any = 1.0) -> Any:
        """Statistics of single cells x (…, F) as arrays of the shape of x, each cell with weight `weight`."""
        return cls(weight, weight * x)

    def without(self, cells: Array, weight: Array) -> Any:
        """Statistics without one row's `cells` (F,) of `weight` (C, 1) per class; rounding errors are set to 0.

        A count or sum of which at most 1.4e-14 is left counts as a rounding error.
        """
        left = self.remove(self.from_cells(cells, weight))
        return map_leaves(lambda now, before: now * (now > ROUNDING * before), left, self)

    def scales(self) -> np.ndarray:
        """(C, F) mean of the cells, as NumPy array; 0 without a cell."""
        return np.asarray(np.where(self.count > 0, self.total / np.where(self.count > 0, self.count, 1.0), 0.0))

    def values(self) -> Array:
        """(N, F) cells of rows that were each counted as their own class: the totals."""
        return self.total

    def mean(self) -> np.ndarray:
        """(F,) mean of each feature over all rows, classes pooled; 0 where no cell was observed."""
        return _pooled_ratio(self.total, self.count)

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> Self:
        """Statistics with rows x (N, F) added, given class indices and weights (N,); NaN is a missing cell."""
        count, total, _ = sum_by_class(x, label, weight, xp.zeros(self.count.shape[-2:]))
        return type(self)(self.count + count, self.total + total)


@pytree
class Rates(Cellwise):
    """Likelihood of numbers with rates λ plugged in: `rate` (C, F), or draws (n, C, F)."""

    statistics: ClassVar[type[Sums]]

    rate: Array

    def log_likelihood(self, statistics: Sums) -> Float[jax.Array, "*C F"]:
        """(C, F) log likelihood A log λ - Bλ of all counted cells, without base measure.

        At λ = ∞ the cells have a point mass at 0: +inf if all of them are 0, else -inf.
        """
        more_a, more_b = statistics.gamma_increments()
        log_density = linear(more_a, log_or_minus_infinity(self.rate)) - linear(more_b, self.rate)
        return xp.where(xp.isinf(self.rate) & (more_b > 0), -xp.inf, log_density)

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log p(x_f | λ) of each cell at the rates of one class, without the base measure."""
        return self.log_likelihood(self.statistics.from_cells(x))


@pytree
class EmpiricalGamma(EmpiricalPrior):
    """Empirical-Bayes prior Gamma(a, b) with prior mean a/b the rate of all rows.

    If all cells are 0, it is Gamma(a, a), or a/b one count per average exposure.
    """

    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: float | Array = 1.0

    @abstractmethod
    def prior(self, concentration: Array, rate: Array) -> RatePrior:
        """Family of rates with concentration a and rate b, (C, F) each."""

    def __call__(self, statistics: Sums, together: Sums) -> RatePrior:
        """Prior derived from the statistics of each class (C, F), and of all classes together (1, F)."""
        xp = together.total.__array_namespace__()
        more_concentration, more_rate = together.gamma_increments()
        cells = xp.where(together.total > 0, more_concentration, together.count)
        inverse = more_rate / xp.where(together.count > 0, cells, 1.0)
        inverse = xp.where(inverse > 0, inverse, 1.0)  # The mean of the least durations underflows.
        a = self.concentration * xp.ones_like(statistics.count)
        return self.prior(a, inverse * a)


@pytree
class RatePrior(IndependentCells):
    """Distribution of rates with the mean a/b: concentration a and rate b of each class and feature, (C, F) each."""

    nonnegative: ClassVar[bool] = True
    location: ClassVar[str] = "rate"
    least: ClassVar[dict[str, float]] = {"concentration": 0.0, "rate": 0.0}
    tunable: ClassVar[dict[str, str]] = {"a": "concentration"}

    concentration: Array
    rate: Array

    def scale(self, factor: float | Array) -> Self:
        """Prior with a and b multiplied by `factor`."""
        return replace(self, concentration=self.concentration * factor, rate=self.rate * factor)

    @overridable
    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Prior with a = values["a"], times values["a_ratio"] if given, and with the mean a/b = values["rate_mean"].

        Unchanged without "a". Without "rate_mean" the mean stays.
        """
        if "a" not in values:
            return self
        a = values["a"] * values.get("a_ratio", 1.0) * (0.0 * self.concentration + 1.0)
        rate = a / values["rate_mean"] if "rate_mean" in values else self.rate / self.concentration * a
        return replace(self, concentration=a, rate=rate)

    @overridable
    def hyperprior(self, kind: HyperpriorKind) -> dict[str, Hyperparameter]:
        """Hyperparameters "a", "a_ratio" (F,) and "rate_mean" (C, F), if grouped; else {}.

        Groups differ by a, of which features have multiples: many features together tell whether groups differ at all.
        The mean rates have this prior, so that groups that do not differ (a → ∞) are one group under it.
        """
        if kind != "grouped":
            return {}
        shape, fields = np.shape(self.concentration), {"concentration": self.concentration, "rate": self.rate}
        mean = Hyperparameter("rate", shape, Expression("Gamma(concentration, rate)", fields))
        ratio = Hyperparameter("rate", shape[1:], Expression("LogNormal(0.0, 1.0)", {}))
        return {"a": Hyperparameter("rate"), "a_ratio": ratio, "rate_mean": mean}

    def improper(self) -> Self:
        """Improper prior with a = 0 and b = 0, whose posterior mean is the maximum likelihood estimate."""
        return self.scale(0.0)

    def proper(self) -> Bool[jax.Array, "*C F"]:
        """(C, F) of bool: whether a and b are positive."""
        return (xp.asarray(self.concentration) > 0) & (xp.asarray(self.rate) > 0)

    def _positive_rate(self) -> jax.Array:
        """(C, F) rate b, with NaN where b is not positive."""
        rate = xp.asarray(self.rate)
        return xp.where(rate > 0, rate, xp.nan)


@pytree
class Gamma(RatePrior):
    """Gamma(concentration a, rate b) prior or posterior of rates, of each class and feature; each field (C, F).

    A cell has the density λ^A exp(-Bλ) times a base measure, and A and B add up over cells: all formulas follow from
    the integral of that density, Γ(a + A)/Γ(a) · b^a/(b + B)^(a + A). The statistics compute (A, B) by the method
    `gamma_increments()`, and those of single cells by the class method `from_cells(x, weight)`.
    """

    statistics: ClassVar[type[Sums]]
    likelihood: ClassVar[type[Rates]]
    infinite_rates: ClassVar[bool] = False
    """Whether a rate may be infinite, because all cells may be 0 then."""
    rate_rounding: ClassVar[float] = 0.0
    """Rounding error of b, relative to b, where it is a sum of cells."""

    def update(self, statistics: Sums) -> Self:
        """Posterior Gamma(a + A, b + B), A and B the `gamma_increments` of the statistics."""
        more_a, more_b = statistics.gamma_increments()
        return type(self)(self.concentration + more_a, self.rate + more_b)

    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log normaliser log Γ(a) - a log b; +inf where the distribution is improper."""
        proper = self.proper()
        a, b = xp.where(proper, self.concentration, 1.0), xp.where(proper, self.rate, 1.0)
        return xp.where(proper, gammaln(a) - a * xp.log(b), xp.inf)

    def plug_in_mean(self) -> Rates:
        """Likelihood at the mean rates a/b; where b = 0 NaN, or infinite if `infinite_rates` and a > 0."""
        a, b = xp.asarray(self.concentration), xp.asarray(self.rate)
        defined = (b > 0) | (a > 0) if self.infinite_rates else b > 0
        rate = xp.where(b > 0, a / xp.where(b > 0, b, 1.0), xp.inf)
        return self.likelihood(xp.where(defined, rate, xp.nan))

    def mode(self) -> Rates:
        """Likelihood at the modes (a - 1)/b; NaN where a < 1 (no interior mode) or b = 0."""
        a, b = xp.asarray(self.concentration), xp.asarray(self.rate)
        exists = (a >= 1) & (b > 0)
        return self.likelihood(xp.where(exists, (a - 1.0) / xp.where(exists, b, 1.0), xp.nan))

    def penalized_mle(self) -> Likelihood:
        """Likelihood at the mode of the density of log λ, which exists for every a > 0 and equals the mean a/b."""
        return self.mean()

    def log_penalty(self, parameters: Rates) -> Float[jax.Array, "*C F"]:
        """(C, F) a log λ - b λ: the log density of log λ at given rates, up to a constant."""
        return linear(self.concentration, xp.log(parameters.rate)) - self.rate * parameters.rate

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances a/b² of the rates, {"rate": (C, F)}; NaN where b = 0."""
        return {"rate": xp.asarray(self.concentration) / self._positive_rate() ** 2}

    def marginals(self) -> dict[str, Distribution]:
        """Gamma distributions of the rates, as name and arguments in `scipy.stats`."""
        return {"rate": ("gamma", {"a": self.concentration, "scale": 1.0 / self._positive_rate()})}

    def program(self) -> list[Site]:
        """Sample site λ ~ Gamma(a, b) of all features."""
        return sites_of_numbers(self, rate="Gamma(concentration, rate)")

    def draw(self, variates: Variates, n: int) -> Rates:
        """Likelihood with n independent draws of the rates, (n, C, F)."""
        return self.likelihood(xp.exp(variates.log_gamma(self.concentration, n, self._added)) / self.rate)

    def _added(self, statistics: Sums) -> Float[Array, "*C F"]:
        """Increments of a, net of those of b: A - B a/b."""
        more_a, more_b = statistics.gamma_increments()
        return more_a - more_b * (self.concentration / self.rate)

    def with_cell(self, x: jax.Array, multiplicity: float | Array) -> Self:
        """Posterior, one per cell of x (…, F), after that cell was added `multiplicity` times; b is kept positive.

        b is at least `rate_rounding` of its value before, and a at least 0, as rounding may leave less after a removal.
        """
        posterior = self.update(self.statistics.from_cells(x, multiplicity))
        rate = xp.maximum(posterior.rate, self.rate_rounding * self.rate)
        return type(self)(xp.maximum(posterior.concentration, 0.0), rate)

    def log_evidence_of_cell(self, x: jax.Array, weight: float | Array) -> jax.Array:
        """(…, F) log predictive probability of each cell of x counted `weight` times, without base measure.

        The value is log Γ(a + A)/Γ(a) - (a + A) log(1 + B/b) - A log b.
        """
        a, b = self.concentration, self.rate
        more_a, more_b = self.statistics.from_cells(x, weight).gamma_increments()
        is_far = more_b > square_limit(xp.asarray(b)) * b  # where B/b may overflow
        log_ratio = xp.log(xp.where(is_far, more_b, 1.0)) - xp.log(b)
        growth = xp.where(is_far, log_ratio, xp.log1p(xp.where(is_far, 0.0, more_b) / b))
        return log_rising(a, more_a) - (a + more_a) * growth - more_a * xp.log(b)

    def predictive_of_cell(self) -> IntegratedRates:
        """Likelihood with the rates integrated out; NaN where b = 0."""
        return IntegratedRates(type(self)(xp.asarray(self.concentration), self._positive_rate()))

    def cumulants_of_terms(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) posterior cumulants of A log λ - Bλ of each cell, λ given `multiplicity` more copies of the cell.

        A [ψ(a) - log b] - B a/b, A² ψ₁(a) + B² a/b² - 2AB/b and A³ ψ₂(a) - 2B³ a/b³ + 3AB²/b².
        """
        seen, x = observed(x)
        more_a, more_b = self.statistics.from_cells(x[:, None]).gamma_increments()
        a, b = self.concentration + multiplicity * more_a, self._positive_rate() + multiplicity * more_b
        (psi, psi1, psi2), share = polygammas(a), more_b / b
        mean = linear(more_a, psi - xp.log(b)) - a * share
        variance = linear(more_a**2, psi1) + (a * share - 2.0 * more_a) * share
        third = linear(more_a**3, psi2) - (2.0 * a * share - 3.0 * more_a) * share**2
        return Cumulants(*(only(seen[:, None], cumulant) for cumulant in (mean, variance, third)))

    def draw_terms(self, variates: Variates, n: int, x: object, multiplicity: float) -> TermDraws:
        """Variates of n draws, and the function of one draw's to the terms A log λ - Bλ of the cells, (N, C, F).

        λ is drawn given the data and `multiplicity` more copies of each cell. A Gamma(a + A) variate is the sum of a
        Gamma(a) variate, which rows share, and of a Gamma(A) variate of the row, unless A is the same for all rows.
        """
        seen, x = observed(x)
        more_a, more_b = self.statistics.from_cells(x[:, None]).gamma_increments()
        row_a, of_rows = multiplicity * more_a, xp.ndim(more_a) > 0
        shared = variates.log_gamma(self.concentration if of_rows else self.concentration + row_a, n)
        of_row = variates.log_gamma(row_a, n) if of_rows and multiplicity else xp.full((n, 1, 1, 1), -xp.inf)

        def terms(shared: jax.Array, of_row: jax.Array) -> jax.Array:
            """(N, C, F) terms for one draw of the variates; 0 for missing cells."""
            log_rate = xp.logaddexp(shared, of_row) - xp.log(self._positive_rate() + multiplicity * more_b)
            return only(seen[:, None], linear(more_a, log_rate) - more_b * xp.exp(log_rate))

        return (shared, of_row), terms


@pytree
class IntegratedRates(SumOfCells):
    """Predictive likelihood with rates integrated out: negative binomial for counts, Lomax for durations."""

    posterior: Gamma

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log predictive probability of each cell for one class, without the base measure."""
        return self.posterior.log_evidence_of_cell(x, 1.0)


# == Gamma–Poisson: counts that do not share a total ===============================================


@pytree
class CountSums(Sums):
    """Number of cells and sum of the counts in them, for each class and feature, (C, F) each."""

    def gamma_increments(self) -> tuple[Array, Array]:
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
        """(N,) Σ_f (x_f log t - log x_f!), the factor of the Poisson probability that is left out; t the exposure."""
        cells: Array
        seen, cells = observed(x)
        if isinstance(cells, Exposed):
            return sum_cells(seen, cells.counts * xp.log(cells.exposure) - gammaln(cells.counts + 1.0))
        return -sum_cells(seen, gammaln(cells + 1.0))


@pytree
class Totals(CountSums):
    """Number of cells and sum of the counts in them, sufficient for Poisson counts, (C, F) each."""

    @classmethod
    def from_cells(cls, x: Array, weight: Any = 1.0) -> Any:
        """Statistics of single cells x (…, F), each with weight `weight`; `ExposedTotals` of `Exposed` cells."""
        if isinstance(x, Exposed):
            return ExposedTotals(weight, weight * x.counts, weight * x.exposure)
        return super().from_cells(x, weight)

    @classmethod
    def from_moments(cls, count: Array, mean: Array, m2: Array) -> Self:
        """Build statistics (C, F) from count and mean; M2 is not used."""
        return cls(count, count * mean)


@pytree
class ExposedTotals(Totals):
    """Number of cells, sum of the counts in them, and sum of the exposures of their rows, (C, F) each.

    Rates are per unit of exposure: counts are x ~ Poisson(λt) in a row of exposure t.
    """

    exposure: Array

    def gamma_increments(self) -> tuple[Array, Array]:
        """Exponents (A, B) of the likelihood λ^A exp(-Bλ): sums of the counts Σx and of the exposures Σt."""
        return self.total, self.exposure

    def mean(self) -> np.ndarray:
        """(F,) counts of each feature per unit of exposure, classes pooled; 0 where no cell was observed."""
        return _pooled_ratio(self.total, self.exposure)

    def spread(self) -> np.ndarray:
        """(F,) standard deviation of x/t, a count of the feature by its exposure, in a row of average exposure t."""
        return np.asarray(np.sqrt(self.mean() * _pooled_ratio(self.count, self.exposure)))

    def observe(self, x: Any, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> Self:
        """Statistics with `Exposed` rows x (N, F) added, given class indices and weights (N,); NaN is missing."""
        zeros = xp.zeros(self.count.shape[-2:])
        count, total, _ = sum_by_class(x.counts, label, weight, zeros)
        # The sum of exposures is a number of cells, each of which counts as its exposure.
        exposure, *_ = sum_by_class(x.counts, label, weight * x.exposure[:, 0], zeros)
        return type(self)(self.count + count, self.total + total, self.exposure + exposure)


@pytree
class EmpiricalRate(EmpiricalGamma):
    """Gamma(a, a/mean) priors of Poisson rates, with the mean over all rows; Gamma(a, a) where that is 0.

    Where rows have an exposure, the mean is that per unit of exposure, Σx/Σt.

    Parameters
    ----------
    concentration : float
        Concentration a; the prior counts as a/mean rows, or units of exposure.

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
    sql: ClassVar[tuple[str, str]] = (
        "{x} * ({unit} * LN({rate})) - {unit} * {rate}{times_exposure}",
        "CASE WHEN {x} = 0 THEN 0 ELSE {impossible} END",
    )

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
        Rate b: the number of rows that the distribution counts as, or the sum of their exposures. The mean is a/b, in
        counts per row, or per unit of exposure.

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
    sparse: ClassVar[bool] = True
    words: ClassVar[Words] = Words(spread="the root of the feature's mean", if_overdispersed="NegativeBinomialNB")
    statistics: ClassVar[type] = Totals
    exposed_statistics: ClassVar[type] = ExposedTotals
    likelihood: ClassVar[type] = Poisson
    of_predictive: ClassVar[OfPredictive] = {"rate": lambda cell: cell.mean()}
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalRate()}

    def simulate(self, likelihood: Rates, rng: np.random.Generator, total: int | np.ndarray = 1) -> np.ndarray:
        """(S, F) counts of one row for each of S rates of one class, at the exposures `total`, one or (S,)."""
        return Poisson(likelihood.rate * np.reshape(total, (-1, 1))).simulate(rng)

    def pseudo_count(self) -> dict[str, Array]:
        """Number b of pseudo-observations that the distribution of each rate is worth, {"rate": (C, F)}."""
        return {"rate": self.rate}

    def predictive_distribution(self) -> Distribution:
        """Posterior predictive negative binomial of a cell at exposure 1, as name and arguments in `scipy.stats`."""
        return "nbinom", {"n": self.concentration, "p": self.rate / (self.rate + 1.0)}


# == Gamma–exponential: durations ==================================================================


@pytree
class Durations(Sums):
    """Number of durations and their sum, for each class and feature, (C, F) each."""

    def gamma_increments(self) -> tuple[Array, Array]:
        """Exponents (A, B) of the likelihood λ^A exp(-Bλ): number of cells n, and their sum Σx."""
        return self.count, self.total

    @classmethod
    def from_moments(cls, count: Array, mean: Array, m2: Array) -> Self:
        """Build statistics (C, F) from count and mean; M2 is not used."""
        return cls(count, count * mean)

    def units(self) -> dict[str, Unit]:
        """Display unit of the rate: one over the feature's mean over all rows, or 1 where that mean is 0."""
        spread = self.spread()
        return {"rate": Unit("rate · feature's mean", 0.0 * spread, spread)}

    def spread(self) -> np.ndarray:
        """(F,) one over the feature's mean over all rows, classes pooled; 1 where that mean is 0."""
        mean = self.mean()
        return 1.0 / np.where(mean > 0, mean, 1.0)

    @staticmethod
    def log_base(x: object) -> jax.Array:
        """(N,) zeros: the exponential density has no factor that is left out."""
        return xp.zeros(numbers(x).shape[0])


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
    sql: ClassVar[tuple[str, str]] = (
        "CASE WHEN {x} > 1e150 AND {x} * 1e-150 > 1.7e158 / {rate} THEN {impossible} "
        "ELSE {unit} * (LN({rate}) - {rate} * {x}) END",
        "{impossible}",
    )

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
    of_predictive: ClassVar[OfPredictive] = {"rate": lambda cell: 1.0 / cell.mean()}
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalDuration()}
    infinite_rates: ClassVar[bool] = True
    rate_rounding: ClassVar[float] = 4e-16

    def pseudo_count(self) -> dict[str, Array]:
        """Number a of pseudo-observations that the distribution of each rate is worth, {"rate": (C, F)}."""
        return {"rate": self.concentration}

    def predictive_distribution(self) -> Distribution:
        """Posterior predictive Lomax distribution of a cell, as name and arguments (C, F) in `scipy.stats`."""
        return "lomax", {"c": self.concentration, "scale": self.rate}
