"""Normal-inverse-gamma family of numbers with a normal distribution, and its moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families.arrays import Array, cond, gammaln, pytree, square_limit, static, xp, zero_with_derivative
from bayesnb.families.numbers import (
    Cellwise,
    EmpiricalPrior,
    IndependentCells,
    hyperparameters_of_numbers,
    map_each_row,
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
    Cumulants,
    Distribution,
    Hyperparameter,
    HyperpriorKind,
    OfPredictive,
    Site,
    TermDraws,
    Unit,
    Variates,
    Words,
    no_rows,
    pooled,
)
from bayesnb.families.special import log_rising, polygammas

# == Count, mean and centred sum of squares: the sufficient statistics of Gaussian features ========


@pytree
class Moments:
    """Count, mean and centred sum of squares M2 of each feature in each class, (C, F) each.

    References
    ----------
    Chan, Golub & LeVeque, *Algorithms for computing the sample variance*, Am. Stat. 37 (1983).
    """

    count: Array
    mean: Any
    m2: Array

    def merge(self, other: Self) -> Self:
        """Statistics of both sets of rows: n = n₁ + n₂, δ = x̄₂ - x̄₁, x̄ = x̄₁ + δ n₂/n, M2 = M2₁ + M2₂ + δ² n₁n₂/n."""
        n = self.count + other.count
        share = other.count / (n + (n == 0))
        delta = other.mean - self.mean
        spread = delta * delta * self.count * share
        return type(self)(n, self.mean + delta * share, self.m2 + other.m2 + spread)

    def remove(self, other: Self) -> Self:
        """Statistics without the rows of `other`: the inverse of `merge`; zeros where no weight is left."""
        n = self.count - other.count
        some = n != 0
        mean = (self.mean - (other.mean - self.mean) * other.count / (n + ~some)) * some
        # A mean that rounding could have left of zero is zero: a constant feature stays constant.
        mean = mean * (abs(mean * n) > 16 * 2.2e-16 * (abs(self.mean) + self._sd()) * self.count) + 0.0
        delta = other.mean - mean
        spread = delta * delta * n * other.count / (self.count + (self.count == 0))
        return type(self)(n, mean, (self.m2 - other.m2 - spread) * some)

    def without(self, cells: Array, weight: Array) -> Moments:
        """Moments without one row's `cells` (F,) of `weight` (C, 1) per class; rounding errors are set to 0.

        So a feature that is constant in the other rows has M2 = 0.
        """
        count = self.count - weight
        some = count > ROUNDING * self.count
        share = xp.where(some, weight, 0.0) / xp.where(some, count, 1.0)
        delta = cells - self.mean
        m2 = self.m2 - delta * delta * (share * self.count)
        varies = some & (m2 > ROUNDING * (self.m2 + abs(self.mean) * self._sd() * self.count))
        return type(self)(count * some, self.mean * some - delta * share, xp.where(varies, m2, 0.0))

    def scale(self, factor: float) -> Self:
        """Moments of the same rows with all weights multiplied by `factor`: n and M2 scale, the mean stays."""
        return type(self)(self.count * factor, self.mean, self.m2 * factor)

    def possible(self) -> Array:
        """(C, F) of bool: n and M2 are non-negative, and M2 is at most 1e-100 (residue of decay) where n is 0."""
        return (self.count >= 0) & (self.m2 >= 0) & ((self.count > 0) | (self.m2 < 1e-100))

    def rounding(self) -> Moments:
        """Tolerated rounding error below zero of n and M2 after `remove`; None for the mean.

        It is 1e-10 of M2, and more where the mean is large against the standard deviation: rounding leaves eps · x̄ of
        a mean, and so eps · x̄/sd of M2. Where rows were forgotten before, rounding may have left more, which shows when
        the cells that remain are equal.
        """
        from_mean = 64 * 2.2e-16 * abs(self.mean) * self._sd() * self.count
        from_equal = (1e-9 * self.mean) ** 2 * self.count
        return Moments(self.count * 1e-9, None, self.m2 * 1e-10 + from_mean + from_equal)

    def scales(self) -> np.ndarray:
        """(C, F) root mean square of the cells, as NumPy array; 0 without a cell."""
        size = np.hypot(self.mean, np.sqrt(self.m2 / np.where(self.count > 0, self.count, 1.0)))
        return np.asarray(np.where(self.count > 0, size, 0.0))

    def values(self) -> jax.Array:
        """(N, F) cells of rows that were each counted as their own class: the means."""
        return self.mean

    @classmethod
    def from_cells(cls, x: Array, weight: Any = 1.0) -> Self:
        """Moments of single cells x (…, F) as arrays of the shape of x, each cell with weight `weight`."""
        return cls(weight, x, xp.zeros_like(x))

    @classmethod
    def from_moments(cls, count: Array, mean: jax.Array, m2: Array) -> Self:
        """Build statistics (C, F) from count, mean and centred sum of squares."""
        return cls(count, mean, m2)

    def units(self) -> dict[str, Unit]:
        """Display units: for μ the feature's mean and sd over all rows, for σ² the variance; 1 where that is 0."""
        mean = (self.count * self.mean).sum(axis=0) / np.maximum(self.count.sum(axis=0), np.finfo(float).tiny)
        sd = self.spread()
        sd = np.where(sd > 0, sd, 1.0)
        return {
            "mu": Unit("(μ - feature's mean) / feature's sd", mean, sd),
            "sigma2": Unit("σ² / feature's variance", 0.0 * mean, sd**2),
        }

    def spread(self) -> np.ndarray:
        """(F,) standard deviation of each feature over all rows, classes pooled, with divisor n."""
        return np.asarray(pooled(self)._sd()[0])

    def _sd(self) -> Any:
        """(C, F) standard deviation of each feature in each class, with divisor n; 0 without a cell."""
        return (self.m2 / (self.count + (self.count == 0))) ** 0.5

    @staticmethod
    def log_base(x: object) -> jax.Array:
        """(N,) zeros: the normal density has no factor that is left out."""
        return xp.zeros(numbers(x).shape[0])

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> Moments:
        """Moments merged with those of rows x (N, F), given class indices and weights (N,); NaN is a missing cell.

        Deviations are taken from the means so far, and again from the means of the block where their squares cancel.
        The derivatives by the weights are those of the moments, or 0 in a class without weight, which has no mean.
        """

        def centred(centre: Array) -> tuple[Moments, jax.Array, jax.Array]:
            """Moments of the block computed about `centre` (C, F), and the sums of deviations and of their squares."""
            count, total, square = sum_by_class(x, label, weight, centre)
            shift = total / xp.where(count > 0, count, 1.0)
            m2 = square - shift * shift * count
            return Moments(count, xp.where(count > 0, centre + shift, 0.0), m2), total, square

        def again(block: Moments) -> Moments:
            """Moments of the block, computed again about its own means, with M2 = 0 where the cells are equal."""
            block, _, square = centred(block.mean)
            # Where all deviations are the rounding error of the mean, the cells are equal.
            return replace(block, m2=xp.where(block.m2 > 1e-9 * square, block.m2, zero_with_derivative(block.m2)))

        if xp.ndim(weight) == 2:  # All weightings have deviations from the means of the rows by their average weights.
            average = xp.mean(xp.abs(weight), axis=0)
            return self.merge(centred(no_rows(Moments, xp.shape(self.mean)[-2:]).observe(x, label, average).mean)[0])
        block, total, square = centred(xp.asarray(self.mean))
        cancelled = xp.any(~(block.m2 >= 1e-4 * square))  # also where squares overflow
        merged = self.merge(cond(cancelled, again, lambda same: same, block))
        # A block without weight has no mean, but sums about the mean so far, which are 0, have derivatives.
        some, weightless = merged.count > 0, block.count == 0
        mean = xp.where(weightless, self.mean + total / xp.where(some, merged.count, 1.0), merged.mean)
        m2 = xp.where(weightless, self.m2 + square, merged.m2)
        return Moments(*(xp.where(some, field, 0.0) for field in (merged.count, mean, m2)))


# == Normal–inverse-gamma: Gaussian features with unknown mean and variance ========================

LOG_2PI = 1.8378770664093453


@pytree
class Normal(Cellwise):
    """Normal likelihood with `mu` and `sigma2` (C, F) plugged in, or draws (n, C, F); variance 0 is a point mass."""

    cell: ClassVar[str] = "Normal(mu, jnp.sqrt(sigma2))"
    sql: ClassVar[tuple[str, str]] = (
        "CASE WHEN ABS({x} - {mu}) > 1.34e154 * SQRT({sigma2}) THEN {impossible} ELSE "
        "-0.5 * {unit} * (LN(6.283185307179586 * {sigma2}) + {z} * {z}) END".replace(
            "{z}", "(({x} - {mu}) / SQRT({sigma2}))"
        ),
        "CASE WHEN {x} = {mu} THEN {certain} ELSE {impossible} END",
    )

    mu: Array
    sigma2: Array

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log Normal(x_f; μ, σ²); at variance 0 +inf for x = μ, else -inf, which outweighs +inf."""
        mu, sigma2 = xp.asarray(self.mu), xp.asarray(self.sigma2)
        if mu.ndim == 3:  # each row has its own parameters
            return sum_with_points(self.terms(x))
        point, unknown = sigma2 == 0, xp.isnan(sigma2)
        root = 1.0 / xp.sqrt(xp.where(point | unknown, 1.0, sigma2))
        constant = xp.where(unknown, xp.nan, xp.log(root) - 0.5 * LOG_2PI)

        def regular(row: jax.Array) -> jax.Array:
            """(C,) log density of one row where no variance is 0."""
            seen, row = observed(row)
            z = (row - mu) * root
            return sum_cells(seen, constant - 0.5 * z * z)

        return cond(xp.any(point), lambda x: sum_with_points(self.terms(x)), partial(map_each_row, regular), numbers(x))

    def simulate(self, rng: np.random.Generator) -> np.ndarray:
        """Random numbers in the shape of the parameters, one for each, drawn by a NumPy generator."""
        return rng.normal(self.mu, np.sqrt(self.sigma2))

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log normal density of each cell for one class; at variance 0 +inf for x = μ, else -inf."""
        point, square = xp.asarray(self.sigma2) == 0, (x - self.mu) ** 2
        sigma2 = xp.where(point, 1.0, self.sigma2)
        density = -0.5 * (LOG_2PI + xp.log(sigma2) + square / sigma2)
        return xp.where(point, xp.where(square > 0, -xp.inf, xp.inf), density)

    def log_likelihood(self, statistics: Moments) -> Float[jax.Array, "*C F"]:
        """(C, F) log likelihood -½ [n log 2πσ² + (M2 + n (x̄ - μ)²)/σ²] of all counted cells."""
        n, square = statistics.count, statistics.m2 + statistics.count * (statistics.mean - self.mu) ** 2
        return xp.where(n > 0, -0.5 * (n * (LOG_2PI + xp.log(self.sigma2)) + square / self.sigma2), 0.0)


@pytree
class StudentT(Cellwise):
    """Predictive Student t likelihood of normal data: log density constant - exponent · log(1 + ((x - loc)/width)²)."""

    # The digits of z² that 1 + z² loses are added: many rows multiply the logarithm by a large exponent.
    sql: ClassVar[tuple[str, str]] = 2 * (
        "{unit} * ({constant} - {exponent} * (CASE WHEN ABS({x} - {loc}) > 1e140 * {width} "
        "THEN 2 * (LN(ABS({x} - {loc})) - LN({width})) "
        "ELSE LN(1 + {square}) + ({square} - ((1 + {square}) - 1)) / (1 + {square}) END))".replace(
            "{square}", "(({x} - {loc}) / {width}) * (({x} - {loc}) / {width})"
        ),
    )

    loc: Array
    width: Array
    exponent: Array
    constant: Array

    def log_prob(self, x: object) -> jax.Array:
        """(N, C) Σ_f log Student t density of the cells; missing cells contribute nothing."""
        if self.loc.ndim == 3:  # each row has its own parameters: to look at all of them first would take as long again
            return reduce_cells(self, sum_cells, x)
        seen, x = observed(x)
        farthest = xp.max(abs(x), initial=0.0) + xp.max(xp.abs(self.loc), initial=0.0)

        def sum_log_densities(log1p_square: Callable[[jax.Array], jax.Array]) -> jax.Array:
            """(N, C) sums of the log densities, with a given function for log(1 + z²)."""
            return sum_cells(seen[:, None], self.cells(x[:, None], log1p_square))

        return cond(
            farthest < square_limit(self.width) * xp.min(self.width, initial=1.0),
            lambda: sum_log_densities(lambda z: xp.log1p(z * z)),
            lambda: sum_log_densities(_log1p_square),
        )

    def cells(
        self, x: jax.Array, log1p_square: Callable[[jax.Array], jax.Array] | None = None
    ) -> Float[jax.Array, "... F"]:
        """(N, F) log Student t density of each cell for one class; `log1p_square` may replace log(1 + z²)."""
        growth = (log1p_square or _log1p_square)((x - self.loc) / self.width)
        return xp.asarray(self.constant - self.exponent * growth)


def _log1p_square(z: jax.Array) -> jax.Array:
    """Compute log(1 + z²) without overflow of z²."""
    is_far = abs(z) > square_limit(z)
    near = xp.where(is_far, 0.0, z)
    return xp.where(is_far, 2.0, 1.0) * xp.log1p(xp.where(is_far, abs(z), near * near))


@pytree
class EmpiricalNormal(EmpiricalPrior):
    """Empirical-Bayes prior of Gaussian features: loc = mean of all rows, κ, a, and b = a·v: expected precision 1/v.

    Parameters
    ----------
    variance : {"within", "pooled"}
        Variance v of a feature, in population form: within the classes, Σ_c M2_c/n, or over all rows. If the variance
        is 0, or at most (10⁻¹² · mean)², v = 1; without an observed cell loc = 0 and v = 1.
    kappa, concentration : float
        κ, the number of rows that loc counts as, and a, half of the number of rows that v counts as.

    Examples
    --------
    >>> from bayesnb import GaussianNB
    >>> from bayesnb.families import EmpiricalNormal
    >>> nb = GaussianNB(prior=EmpiricalNormal("within", kappa=1.0)).fit([[1.0], [2.0], [9.0]], ["low", "low", "high"])
    >>> nb.prior_.blocks[0].loc, nb.theta_  # the mean of all rows, worth one row, draws both means to itself
    (array([[4.],
           [4.]]), array([[6.5       ],
           [2.33333333]]))
    """

    statistics: ClassVar[type] = Moments
    least: ClassVar[dict[str, float]] = {"kappa": 0.0, "concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"kappa": "kappa", "a": "concentration"}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"variance": ("within", "pooled")}

    variance: str = static()
    kappa: float | Array = 0.1
    concentration: float | Array = 1.0

    def of_unknown_classes(self) -> EmpiricalNormal:
        """Copy of this prior with variance="pooled", which can be derived without class labels."""
        return EmpiricalNormal("pooled", self.kappa, self.concentration)

    def __call__(self, statistics: Moments, together: Moments) -> NormalInverseGamma:
        """Prior derived from the moments of each class (C, F), and of all classes together (1, F)."""
        xp = together.mean.__array_namespace__()
        m2 = statistics.m2.sum(axis=0) if self.variance == "within" else together.m2
        variance = m2 / (together.count + (together.count == 0))
        variance = xp.where(variance <= (1e-12 * together.mean) ** 2, 1.0, variance)
        each = xp.ones_like(statistics.count)
        fields = together.mean, self.kappa, self.concentration, self.concentration * variance
        return NormalInverseGamma(*(field * each for field in fields))


@pytree
class NormalInverseGamma(IndependentCells):
    r"""Normal-inverse-gamma distribution of the means and variances of Gaussian features, by class and feature.

    .. math::

        \sigma^2 \sim \mathrm{InverseGamma}(a, b), \qquad \mu \mid \sigma^2 \sim N(m, \sigma^2/\kappa)

    The distribution is conjugate to normal observations x ~ N(μ, σ²): `update` returns the posterior, which is of the
    same type (docs/derivations/conjugate.md, "Normal observations"). As `prior=` of a classifier,
    each field may also be a scalar, (F,), or a dict or Series by column.

    Parameters
    ----------
    loc : (C, F) array
        Location m of the mean μ, in the units of the feature.
    kappa : (C, F) array
        κ, the number of rows that the location counts as.
    concentration : (C, F) array
        Shape a of the inverse gamma distribution; 2a is the number of rows that the variance counts as.
    rate : (C, F) array
        Scale b of the inverse gamma distribution, in squared units of the feature.

    See Also
    --------
    GaussianNB : Classifier with this prior.
    bayesnb.families.EmpiricalNormal : Prior of this type that is derived from the data.

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A; Murphy, *Machine Learning* (2012), §4.6.3.

    Examples
    --------
    Four measurements of mean 10, and a prior mean of 8 that is worth one: the posterior mean is a fifth back.

    >>> import jax.numpy as jnp
    >>> from bayesnb import NormalInverseGamma
    >>> from bayesnb.families import Moments
    >>> prior = NormalInverseGamma(*(jnp.array([[value]]) for value in (8.0, 1.0, 1.0, 1.0)))
    >>> posterior = prior.update(Moments(*(jnp.array([[value]]) for value in (4.0, 10.0, 2.0))))
    >>> posterior.mean().mu, posterior.mean().sigma2
    (Array([[9.6]], dtype=float32), Array([[1.8]], dtype=float32))
    """

    kind: ClassVar[str] = "gaussian"
    words: ClassVar[Words] = Words(parameters={"mu": "mean", "sigma2": "variance"})
    location: ClassVar[str] = "mu"
    of_predictive: ClassVar[OfPredictive] = {
        "mu": lambda cell: cell.mean(),
        "sigma2": lambda cell: cell.var(),
    }
    statistics: ClassVar[type] = Moments
    likelihood: ClassVar[type] = Normal
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {name: EmpiricalNormal(name) for name in ("within", "pooled")}
    tunable: ClassVar[dict[str, str]] = {"kappa": "kappa", "a": "concentration"}
    # a = -3/2 is the improper prior under which MAP is the MLE.
    least: ClassVar[dict[str, float]] = {"loc": -math.inf, "kappa": 0.0, "concentration": -1.5, "rate": 0.0}

    loc: Array
    kappa: Array
    concentration: Array
    rate: Array

    def update(self, statistics: Moments) -> Self:
        """Posterior: κ' = κ + n, m' = (κm + n x̄)/κ', a' = a + n/2, b' = b + M2/2 + κ n (x̄ - m)²/(2κ')."""
        # With shares of κ': n/κ' is 0 where both are, and κm + n x̄ would leave float64 where its mean does not.
        n, mean = statistics.count, statistics.mean
        kappa = self.kappa + n
        share = n / (kappa + (kappa == 0))
        prior_share = 1.0 - share
        delta = mean - self.loc
        return type(self)(
            prior_share * self.loc + share * mean,
            kappa,
            self.concentration + n / 2,
            self.rate + statistics.m2 / 2 + self.kappa * share * (delta * delta) / 2,
        )

    def scale(self, factor: float | Array) -> Self:
        """Prior with κ, a and b multiplied by `factor`; loc stays."""
        return type(self)(self.loc, self.kappa * factor, self.concentration * factor, self.rate * factor)

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Prior with the values of "kappa", "a", "loc", and of "rate" (b) or "variance" (b/a) replaced.

        A new a alone keeps b/a.
        """
        ones = 0.0 * self.loc + 1.0
        a = values.get("a", self.concentration)
        variance = values.get("variance", self.rate / self.concentration)
        rate = variance * a if {"a", "variance"} & values.keys() else self.rate
        fields = values.get("loc", self.loc), values.get("kappa", self.kappa), a, values.get("rate", rate)
        return type(self)(*(field * ones for field in fields))

    def hyperprior(self, kind: HyperpriorKind) -> dict[str, Hyperparameter]:
        """Hyperparameters "loc" and "rate", (F,) each, that all classes share.

        "loc" is normal with mean m and variance b/(aκ); log "rate" is normal with mean log b and variance 1, by the m,
        κ, a and b of this prior's first class. If grouped, "loc" and "variance" (C, F), whose log is normal with mean
        log b/a and variance 1, and "kappa" and "a" (F,), by which groups differ.
        """
        loc = "mu", "Normal(loc, jnp.sqrt(rate / (concentration * kappa)))"
        if kind != "grouped":
            return hyperparameters_of_numbers(self, kind, loc=loc, rate=("sigma2", "LogNormal(jnp.log(rate), 1.0)"))
        variance = "sigma2", "LogNormal(jnp.log(rate / concentration), 1.0)"
        n_features = np.shape(self.loc)[1:]
        strengths = {"kappa": Hyperparameter("mu", n_features), "a": Hyperparameter("sigma2", n_features)}
        return strengths | hyperparameters_of_numbers(self, kind, loc=loc, variance=variance)

    def improper(self) -> Self:
        """Improper prior κ = 0, a = 1, b = 0, whose posterior mean is the maximum likelihood estimate."""
        zero = self.loc * 0.0
        return type(self)(zero, zero, zero + 1.0, zero)

    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log normaliser log Γ(a) - a log b - ½ log κ - a log 2π; +inf where improper.

        The last term is -½ log 2π of every cell.
        """
        proper = self.proper()
        kappa, a, b = (xp.where(proper, v, 1.0) for v in (self.kappa, self.concentration, self.rate))
        value = gammaln(a) - a * xp.log(b) - 0.5 * xp.log(kappa) - a * LOG_2PI
        return xp.where(proper, value, xp.inf)

    def proper(self) -> Bool[jax.Array, "*C F"]:
        """(C, F) of bool: whether κ, a and b are positive."""
        kappa, a, b = (xp.asarray(v) for v in (self.kappa, self.concentration, self.rate))
        return (kappa > 0) & (a > 0) & (b > 0)

    def pseudo_count(self) -> dict[str, Array]:
        """Weight (C, F) of the distribution by parameter: κ rows for μ, and b, half a sum of squares, for σ²."""
        return {"mu": self.kappa, "sigma2": self.rate}

    def plug_in_mean(self) -> Normal:
        """Normal likelihood at E μ = m and E σ² = b/(a - 1); σ² NaN where a <= 1, both NaN where κ = 0."""
        a, known = self.concentration, self.kappa > 0
        variance = self.rate / xp.where(a > 1, a - 1.0, 1.0)
        return Normal(xp.where(known, self.loc, xp.nan), xp.where(known & (a > 1), variance, xp.nan))

    def mode(self) -> Normal:
        """Normal likelihood at the joint posterior mode, μ = m and σ² = b/(a + 3/2); NaN where κ = 0 or a <= -3/2."""
        a = self.concentration + 1.5
        known = (self.kappa > 0) & (a > 0)
        variance = self.rate / xp.where(known, a, 1.0)
        return Normal(xp.where(known, self.loc, xp.nan), xp.where(known, variance, xp.nan))

    penalized_mle = mode

    def log_penalty(self, parameters: Normal) -> Float[jax.Array, "*C F"]:
        """(C, F) log density -(a + 3/2) log σ² - [b + κ (μ - m)²/2]/σ² at given (μ, σ²), up to a constant."""
        spread = self.rate + 0.5 * self.kappa * (parameters.mu - self.loc) ** 2
        a, sigma2 = xp.asarray(self.concentration), xp.asarray(parameters.sigma2)
        return -(a + 1.5) * xp.log(sigma2) - spread / sigma2

    def predictive_of_cell(self) -> StudentT:
        """Posterior predictive Student t: 2a degrees of freedom, location m, scale² = b(κ + 1)/(aκ)."""
        fields = self.concentration, self.rate, self.kappa
        a, b, kappa = (xp.where(v > 0, v, xp.nan) for v in map(xp.asarray, fields))
        width = xp.sqrt(b * (2.0 * (kappa + 1.0) / kappa))
        constant = (log_rising(a, xp.full((), 0.5)) - 0.5 * np.log(np.pi)) - xp.log(width)
        return StudentT(xp.asarray(self.loc), width, a + 0.5, constant)

    def predictive_distribution(self) -> Distribution:
        """Predictive Student t, 2a degrees of freedom, scale² b(κ + 1)/(aκ), as name and arguments in `scipy.stats`."""
        a, kappa = np.asarray(self.concentration), np.asarray(self.kappa)
        scale = np.sqrt(self.rate * (kappa + 1.0) / (a * kappa))
        return "t", {"df": 2.0 * a, "loc": self.loc, "scale": scale}

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances (C, F): μ: b/((a - 1)κ) for a > 1; σ²: b²/((a - 1)²(a - 2)) for a > 2; else inf."""
        a, b = xp.asarray(self.concentration), xp.asarray(self.rate)
        mu = xp.divide(b, xp.where(a > 1, (a - 1.0) * self.kappa, 0.0))
        sigma2 = (b / xp.where(a > 2, a - 1.0, 1.0)) ** 2 / xp.where(a > 2, a - 2.0, 1.0)
        return {
            "mu": xp.where((a > 1) & (xp.asarray(self.kappa) > 0), mu, xp.inf),
            "sigma2": xp.where(a > 2, sigma2, xp.inf),
        }

    def marginals(self) -> dict[str, Distribution]:
        """Marginals in `scipy.stats`: μ ~ t with 2a degrees of freedom, σ² ~ InverseGamma(a, b)."""
        scale = (self.rate / (self.concentration * self.kappa)) ** 0.5
        return {
            "mu": ("t", {"df": 2 * self.concentration, "loc": self.loc, "scale": scale}),
            "sigma2": ("invgamma", {"a": self.concentration, "scale": self.rate}),
        }

    def program(self) -> list[Site]:
        """Sample sites σ² ~ InverseGamma(a, b), then μ | σ² ~ Normal(loc, σ²/κ), of all features."""
        return sites_of_numbers(
            self, sigma2="InverseGamma(concentration, rate)", mu="Normal(loc, jnp.sqrt(sigma2 / kappa))"
        )

    def draw(self, variates: Variates, n: int) -> Normal:
        """Normal likelihood with n independent draws (n, C, F) of σ², and of μ given σ²."""
        sigma2 = self.rate * xp.exp(-variates.log_gamma(self.concentration, n, self._added_to_precision))
        z = variates.normal(self.loc, n, self._added_to_mean)
        return Normal(self.loc + xp.sqrt(sigma2 / self.kappa) * z, sigma2)

    def _added_to_precision(self, statistics: Moments) -> Float[jax.Array, "*C F"]:
        """Increments of a, net of those of b: ½ n - ½ Σ (x - m)² a/b."""
        n, squares = statistics.count, statistics.m2 + statistics.count * (statistics.mean - self.loc) ** 2
        return (n - squares * (self.concentration / self.rate)) / 2

    def _added_to_mean(self, statistics: Moments) -> Float[jax.Array, "*C F"]:
        """Increments of the mean in units of its sd: Σ (x - m) √(a/(bκ))."""
        scale = xp.sqrt(self.concentration / (self.rate * self.kappa))
        return statistics.count * (statistics.mean - self.loc) * scale

    def cumulants_of_terms(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) posterior cumulants of log Normal(x; μ, σ²), (μ, σ²) given `multiplicity` more copies of the cell.

        Mean -½ log 2π + ½[ψ(a) - log b] - ½[a r + 1/κ], variance ¼ψ₁(a) + a r²/4 - r/2 + a r/κ + 1/(2κ²), third
        ⅛ψ₂(a) - a r³/4 + 3r²/8 - 3a r²/(2κ) + 3r/(2κ) - 3a r/κ² - 1/κ³.
        """
        seen, x = observed(x)
        distance, kappa, a, b = self._distance_with_cell(x[:, None], multiplicity)
        ratio, (psi, psi1, psi2) = distance**2 / b, polygammas(a)
        mean = 0.5 * (psi - xp.log(b) - LOG_2PI - a * ratio - 1.0 / kappa)
        # a r²/4 - r/2 is large where r is; a r (r - 2/a)/4 keeps it from cancelling.
        variance = 0.25 * psi1 + 0.25 * a * ratio * (ratio - 2.0 / a) + a * ratio / kappa + 0.5 / kappa**2
        third = 0.125 * psi2 - 0.25 * a * ratio**2 * (ratio - 1.5 / a)
        third = third - 1.5 * a * ratio * (ratio - 1.0 / a) / kappa - 3.0 * a * ratio / kappa**2 - 1.0 / kappa**3
        return Cumulants(*(only(seen[:, None], cumulant) for cumulant in (mean, variance, third)))

    def draw_terms(self, variates: Variates, n: int, x: object, multiplicity: float) -> TermDraws:
        """Variates of n draws, and the function of one draw's to log Normal(x; μ, σ²) of the cells, (N, C, F).

        (μ, σ²) is drawn given the data and `multiplicity` more copies of each cell. The terms are ½ log(g/(2πb)) -
        ½(√(g/b) (x - m) - z/√κ)², g ~ Gamma(a), z standard normal.
        """
        seen, x = observed(x)
        distance, kappa, a, b = self._distance_with_cell(x[:, None], multiplicity)

        def terms(log_gamma: jax.Array, normal: jax.Array) -> jax.Array:
            """(N, C, F) log densities for one draw of the variates; 0 for missing cells."""
            log_precision = log_gamma - xp.log(b)
            z = xp.exp(0.5 * log_precision) * distance - normal / xp.sqrt(kappa)
            return only(seen[:, None], 0.5 * (log_precision - LOG_2PI - z * z))

        return (variates.log_gamma(a, n), variates.normal(self.loc, n)), terms

    def log_bayes_factor_of_levels(self, by_level: Moments, by_class: Moments) -> np.ndarray:
        """(C, G, K) log Bayes factor: a mean for each level of each of G features, against one mean for the class.

        -(a + (n - 1)/2) log[1 - n/(κ + n) · B/(2b')] - (L - 1)/2 · log(1 + n/κ), B the sum of squares between levels.

        It is that of the n - 1 contrasts of the rows, which do not tell where a class lies, under one variance a class
        and a mean of each level with κ n_l/n of the prior's rows.
        """
        kappa, a, b = (np.asarray(field)[:, None] for field in (self.kappa, self.concentration, self.rate))
        n, seen = by_class.count, np.maximum((by_level.count > 0).sum(axis=2), 1)
        between = np.maximum(by_class.m2 - by_level.m2.sum(axis=2), 0.0)
        # Below one but for rounding, as the prior rates are positive.
        explained = np.minimum(n / (kappa + n) * between / (2.0 * b + by_class.m2), 1.0 - 1e-16)
        fit = -(a + np.maximum(n - 1.0, 0.0) / 2) * np.log1p(-explained)
        return np.asarray(fit - (seen - 1) / 2 * np.log1p(n / kappa))

    def pairs_refusal(self, names: Sequence[str]) -> str | None:
        """Reason why two of the features called `names` have no Bayes factor: their a differ; None: all have one.

        An inverse Wishart has one ν for both features.
        """
        a = np.asarray(self.concentration)
        other = (a != a[:, :1]).any(axis=0)
        if not other.any():
            return None
        return (
            f"The priors of {names[0]!r} and {names[int(np.argmax(other))]!r} differ in concentration, and no inverse "
            "Wishart prior has both as marginals. Give both the same concentration, or choose columns by features=."
        )

    def log_bayes_factor_of_pairs(
        self, other: NormalInverseGamma, x: Moments, y: Moments, cross: np.ndarray
    ) -> np.ndarray:
        """(C, K, J) log Bayes factor of correlation between feature k here and j of `other`, by n - 1 row contrasts.

        With a', b' their posteriors and ρ the correlation in the posterior scale matrix it is
        log Γ(a' + ½)/Γ(a') - log Γ(a + ½)/Γ(a) + ½ log(b₁b₂/b₁'b₂') - (a' + ½) log(1 - ρ²).
        """
        a, b_x = (np.asarray(field)[:, :, None] for field in (self.concentration, self.rate))
        b_y = np.asarray(other.rate)[:, None]
        after, after_x, after_y = a + np.maximum(x.count - 1.0, 0.0) / 2, b_x + x.m2 / 2, b_y + y.m2 / 2
        share = cross / (2.0 * np.sqrt(after_x) * np.sqrt(after_y))
        # Below one but for rounding, as the prior rates are positive.
        square = np.minimum(share**2, 1.0 - 1e-16)
        terms = np.asarray(log_rising(after, 0.5)) - np.asarray(log_rising(a, 0.5))
        scales = 0.5 * (np.log(after_x / b_x) + np.log(after_y / b_y))
        return np.asarray(terms - (after + 0.5) * np.log1p(-square) - scales)

    def with_cell(self, x: jax.Array, multiplicity: float | Array) -> Self:
        """Posterior of one class, one per cell of x (N, F), after adding the cell `multiplicity` times; -1 removes.

        b' is at least 4e-16 of b, its rounding error: without an outlier it is the difference of two large numbers.
        """
        posterior = self.update(Moments.from_cells(x, multiplicity))
        return replace(posterior, rate=xp.maximum(posterior.rate, 4e-16 * self.rate))

    def log_evidence_of_cell(self, x: jax.Array, weight: Any) -> jax.Array:
        """(N, F) log predictive density, for one class, of each cell of x counted `weight` times."""
        kappa, a, b = self.kappa, self.concentration, self.rate
        spread = 0.5 * kappa * weight / (kappa + weight) * (x - self.loc) ** 2 / b
        value = log_rising(a, weight / 2) - (a + weight / 2) * xp.log1p(spread) - 0.5 * xp.log1p(weight / kappa)
        return value - weight / 2 * (LOG_2PI + xp.log(b))

    def _distance_with_cell(self, x: jax.Array, multiplicity: float) -> tuple[Array, Array, Array, Array]:
        """(x - m, κ, a, b) of the posterior after each cell of x (…, F) was added `multiplicity` times."""
        distance, kappa, a = x - self.loc, self.kappa + multiplicity, self.concentration + multiplicity / 2
        share = self.kappa / kappa
        return distance * share, kappa, a, self.rate + multiplicity / 2 * share * distance**2
