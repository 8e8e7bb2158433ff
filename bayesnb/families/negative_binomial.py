"""Beta–negative binomial family: overdispersed counts, averaged over their dispersion by exact evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Float, Int, Real

from bayesnb.families.arrays import (
    Array,
    cond,
    cumlogsumexp,
    gammaln,
    is_host,
    logsumexp,
    map_leaves,
    pytree,
    segment_sum,
    xp,
)
from bayesnb.families.gamma import CountSums, EmpiricalGamma, RatePrior
from bayesnb.families.numbers import (
    EmpiricalPrior,
    PriorByColumn,
    SumOfCells,
    map_in_pieces,
    numbers,
    observed,
    only,
    with_axis_of_rows,
)
from bayesnb.families.protocol import (
    Cumulants,
    Distribution,
    Expression,
    Hyperparameter,
    HyperpriorKind,
    Site,
    TermDraws,
    Variates,
    Words,
    lacking,
    no_nuts,
)
from bayesnb.families.rows import linear, log_or_minus_infinity
from bayesnb.families.special import log_rising, polygammas

DISPERSIONS = 2.0 ** np.arange(-4.0, 10.5, 0.5)
"""Dispersions r that are averaged over; the last differs from a Poisson distribution by 1/1024 of the mean."""

_LOG_PRIOR = np.log(DISPERSIONS**0.5 / (1.0 + DISPERSIONS) / np.sum(DISPERSIONS**0.5 / (1.0 + DISPERSIONS)))
_MOST_TABULATED = 2**10
_LEAST_SHARE = 1e-12
_EM_STEPS, _CELLS_OF_PRIOR = 5, 2.0

_SCALED_BETA_PRIME = (
    "TransformedDistribution(dist.Beta(concentration, 1.0 + dispersion * rate), "
    "[dist.transforms.SigmoidTransform().inv, dist.transforms.AffineTransform(jnp.log(dispersion), 1.0), "
    "dist.transforms.ExpTransform()])"
)
"""NumPyro's distribution of the rate given the dispersion."""


# == Tail counts: the sufficient statistics of negative binomial counts under every dispersion =====


@pytree
class Tails(CountSums):
    """Number of cells, their sum, and the number of cells above k = 0 … K - 1, for each class and feature.

    Σ_i [log Γ(x_i + r) - log Γ(r)] is Σ_k N(x > k) log(r + k) for every r, so that tail counts suffice for all
    dispersions, and are added and removed without rounding. A number x between two whole ones counts as the share x - k
    in the tail above k = ⌊x⌋.

    Parameters
    ----------
    count, total : (C, F) arrays
        Number of cells, and sum of the counts in them.
    tail : (C, F, K) array
        Number of cells above k = 0 … K - 1; no count exceeds K.
    """

    tail: Any = None

    @classmethod
    def no_rows(cls, shape: tuple[int, ...]) -> Self:
        """Statistics of no rows, (C, F), with room for no count."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((*shape, 0)))

    def with_room(self, size: int) -> Self:
        """Copy with tails above k = 0 … K - 1 for at least `size` k."""
        extra = max(0, size - self.tail.shape[-1])
        widths = [(0, 0)] * (xp.ndim(self.tail) - 1) + [(0, extra)]
        return replace(self, tail=xp.pad(self.tail, widths)) if extra else self

    @staticmethod
    def room_for(x: object) -> int:
        """Number of tail counts that NumPy's counts x (N, F) need, rounded up to a power of two; 0 if all are 0."""
        most = np.max(np.asarray(numbers(x)), initial=0.0, where=np.isfinite(numbers(x)))
        return 1 << int(np.ceil(most) - 1).bit_length() if most > 0 else 0

    def aligned(self, other: Self) -> tuple[Self, Self]:
        """Both statistics with tails of the same number of k."""
        return self.with_room(other.tail.shape[-1]), other.with_room(self.tail.shape[-1])

    def observe(self, x: object, label: Int[Array, "N"], weight: Float[Array, "*S N"]) -> Self:
        """Statistics with rows x (N, F) added, given class indices and weights (N,); NaN is a missing cell.

        Where JAX traces the rows, a count above K makes `count` and the tails of its column NaN.
        """
        known = self.with_room(self.room_for(x)) if is_host(x, self.tail) else self
        counted = super().observe(x, label, weight)
        n_classes, n_features, size = known.tail.shape[-3:]
        seen, cells = observed(x)
        below = xp.clip(xp.floor(cells), 0.0, size)
        share = cells - below
        position = label[:, None] * n_features + xp.arange(n_features)
        position = position * (size + 1) + below.astype(xp.int32)

        def count(offset: int, part: Array) -> jax.Array:
            """(…, C, F, K + 1) weight of the cells at each whole number, of each cell `part`."""
            weights = only(seen, xp.asarray(weight)[..., None] * part)
            flat = weights.reshape(*weights.shape[:-2], -1)
            sums = segment_sum(flat, xp.ravel(position + offset), n_classes * n_features * (size + 1))
            return sums.reshape(*sums.shape[:-1], n_classes, n_features, size + 1)

        some = xp.any(share > 0)
        at = cond(some, lambda: count(0, 1.0 - share) + count(1, share), lambda: count(0, 1.0 + 0.0 * share))
        tail = xp.flip(xp.cumsum(xp.flip(at, -1), -1), -1)[..., 1:]
        exceeds = xp.any(seen & (cells > size), axis=0)[:, None]
        wrong = xp.where(exceeds[:, 0], xp.nan, 0.0)
        return replace(counted, count=counted.count + wrong, tail=known.tail + xp.where(exceeds, xp.nan, tail))

    def without(self, cells: Array, weight: Array) -> TailsWithout:
        """Statistics without one row's `cells` (N, F) of `weight` (C, 1, 1) per class; rounding errors are set to 0."""
        left = CountSums(self.count, self.total).without(cells, weight)
        cells, weight = (xp.broadcast_to(v, left.total.shape) for v in (cells, weight))
        return TailsWithout(left.count, left.total, self, cells, weight)

    def log_rising(self, dispersion: Float[Array, "... R"]) -> Float[jax.Array, "*C F R"]:
        """(C, F, R) Σ_i log Γ(x_i + r)/Γ(r) of the counted cells, for each dispersion r."""
        k = xp.arange(self.tail.shape[-1])
        return xp.einsum("...k,...rk->...r", self.tail, xp.log(xp.asarray(dispersion)[..., None] + k))

    def possible(self) -> Array:
        """(C, F) of bool: no field is negative, none is positive where `count` is 0, and the tails sum to the total."""
        falls = xp.all(xp.diff(self.tail, axis=-1, prepend=self.count[..., None], append=0.0) <= 1e-9, axis=-1)
        difference = xp.abs(xp.sum(self.tail, axis=-1) - self.total)
        return CountSums(self.count, self.total).possible() & falls & (difference <= 1e-9 * self.total + 1e-9)


@pytree
class TailsWithout:
    """Statistics (C, N, F) of the rows of `tails` (C, 1, F), without `weight` copies of one row's `cells` each.

    `count` and `total` are the number and the sum of the cells that are left; like `cells` and `weight` they are
    (C, N, F), or broadcast to this shape.
    """

    count: Array
    total: Array
    tails: Tails
    cells: Array
    weight: Array

    def gamma_increments(self) -> tuple[Array, Array]:
        """Sum of the counts and number of cells, as those of `CountSums`."""
        return self.total, self.count

    def merge(self, other: Self) -> Self:
        """Statistics of several classes together, without the same row."""
        count, total, weight = self.count + other.count, self.total + other.total, self.weight + other.weight
        return type(self)(count, total, self.tails.merge(other.tails), self.cells, weight)

    def log_rising(self, dispersion: Float[Array, "... R"]) -> Float[jax.Array, "... R"]:
        """(C, N, F, R) Σ_i log Γ(x_i + r)/Γ(r) of the remaining cells."""
        removed = log_rising_of_cells(dispersion, self.cells)
        return self.tails.log_rising(dispersion) - xp.asarray(self.weight)[..., None] * removed


def log_rising_of_cells(dispersion: Float[Array, "... R"], x: Real[Array, "... F"]) -> Float[jax.Array, "... R"]:
    """Log Γ(x + r)/Γ(r) of each cell x; linear in x between two whole numbers, as `Tails` count."""
    whole = xp.floor(x)
    r, below, share = xp.asarray(dispersion), whole[..., None], (x - whole)[..., None]
    return xp.asarray(log_rising(r, below) + share * xp.log(r + below))


# == The family ====================================================================================


@pytree
class NegativeBinomial(SumOfCells):
    """Negative binomial likelihood of counts with mean `rate` λ and `dispersion` r, (C, F) each, or draws (n, C, F).

    p(x | λ, r) = Γ(x + r)/(Γ(r) x!) · (λ/(r + λ))^x (r/(r + λ))^r, of variance λ + λ²/r.
    """

    cell: ClassVar[str] = "NegativeBinomial2(rate, dispersion)"

    rate: Array
    dispersion: Array

    def cells(self, x: jax.Array) -> Float[jax.Array, "... F"]:
        """(N, F) log p(x_f | λ, r) of each cell for one class, without the base measure."""
        rising = log_rising_of_cells(xp.asarray(self.dispersion)[..., None], x)[..., 0]
        return self._log_prob(1.0, x, rising)

    def log_likelihood(self, statistics: Tails) -> Float[jax.Array, "*C F"]:
        """(C, F) log likelihood of all counted cells, without base measure."""
        rising = statistics.log_rising(xp.asarray(self.dispersion)[..., None])[..., 0]
        return self._log_prob(statistics.count, statistics.total, rising)

    def _log_prob(self, count: float | Array, total: Array, rising: jax.Array) -> jax.Array:
        """Log probability of `count` cells with sum `total` and Σ log Γ(x + r)/Γ(r) `rising`."""
        rate, r = xp.asarray(self.rate), xp.asarray(self.dispersion)
        return rising + linear(total, log_or_minus_infinity(rate) - xp.log(r + rate)) - count * r * xp.log1p(rate / r)

    def simulate(self, rng: np.random.Generator) -> np.ndarray:
        """Random counts in the shape of the rates, one for each, drawn by a NumPy generator."""
        return rng.negative_binomial(self.dispersion, self.dispersion / (self.dispersion + self.rate))


@pytree
class EmpiricalCounts(EmpiricalGamma):
    """Priors of overdispersed counts whose mean rate is that of all rows, with a = b · mean; 1 where that is 0.

    All classes and features share the probabilities of the dispersions, which are estimated by EM.

    Parameters
    ----------
    concentration : float
        Concentration a; the prior of the rate counts as a/mean rows.
    dispersion : (F,) array, optional
        Known dispersions. Default: averages over 29 values.
    log_weight : (R,) array, optional
        Log weights of these values. Default: estimated from the data.

    Examples
    --------
    >>> from bayesnb import NegativeBinomialNB
    >>> from bayesnb.families import EmpiricalCounts
    >>> nb = NegativeBinomialNB(prior=EmpiricalCounts(2.0)).fit([[0], [1], [5]], ["quiet", "quiet", "busy"])
    >>> nb.rate_  # with a mean of 2 over all rows, worth one row
    array([[3.5],
           [1. ]])
    """

    statistics: ClassVar[type] = Tails

    dispersion: Array | None = None
    log_weight: Array | None = None

    def of_unknown_classes(self) -> EmpiricalCounts:
        """Copy of this prior with the weights of dispersions of `BetaNegativeBinomial`, which need no class labels."""
        return replace(self, log_weight=_LOG_PRIOR) if self.log_weight is None else self

    def __call__(self, statistics: Any, together: Any) -> BetaNegativeBinomial:
        """Prior derived from the statistics of each class (C, F), and of all classes together (1, F)."""
        family: Any = super().__call__(statistics, together)
        if self.dispersion is not None:
            return family
        if self.log_weight is not None:
            return replace(family, log_weight=self.log_weight + 0.0 * family.log_weight)
        return family.with_common_weights(statistics)

    def prior(self, concentration: Array, rate: Array) -> BetaNegativeBinomial:
        """`BetaNegativeBinomial` family with concentration a and rate b, (C, F) each."""
        family = BetaNegativeBinomial(concentration, rate)
        return family if self.dispersion is None else with_dispersion(family, self.dispersion)


@pytree
class BetaNegativeBinomial(RatePrior):
    r"""Distribution of the rates and dispersions of overdispersed counts, one of each for each class and feature.

    .. math::

        & x \mid p, r \sim \mathrm{NegativeBinomial}(r, p), \qquad p \mid r \sim \mathrm{Beta}(1 + b r, a), \\
        & P(r) \propto e^{w_r}, \qquad \lambda = r (1 - p)/p

    r is the number of successes and p their probability; λ is the mean of the counts, and λ + λ²/r their variance. The
    prior mean of λ is a/b for every r, and as r grows the model becomes that of `GammaPoisson` with the same a and b.
    Given r the prior is conjugate, with a' = a + Σx and b' = b + n, and r has finitely many values, whose probabilities
    are updated by the exact evidence: `update` returns the posterior, which is of the same type
    (docs/derivations/counts.md).

    Parameters
    ----------
    concentration : (C, F) array
        Shape a: the total count that the distribution counts as.
    rate : (C, F) array
        Rate b: the number of rows that the distribution counts as. The mean of λ is a/b, in counts per row.
    dispersion : (C, F, R) array, optional
        Values of r that are possible. Default: 29 values from 1/16 to 1024, each √2 times the one before.
    log_weight : (C, F, R) array, optional
        Log weights w of these values, up to a constant. Default: equal for values that are given, else √r/(1 + r), so
        that 1/√r, the coefficient of variation of the rate between rows, is half-Cauchy distributed.

    See Also
    --------
    NegativeBinomialNB : Classifier with this prior.
    GammaPoisson : Counts without overdispersion.

    Notes
    -----
    In ecology r is the dispersion parameter k, in R's `glm.nb` it is `theta`; edgeR and DESeq2 call 1/r the dispersion.

    References
    ----------
    Johnson, Kemp & Kotz, *Univariate Discrete Distributions* (2005), section 6.2.3, for the predictive distribution.

    Examples
    --------
    Counts of 0, 0, 9 and 3, whose variance exceeds their mean, are more probable under a small r:

    >>> import numpy as np
    >>> from bayesnb.families import BetaNegativeBinomial, Tails
    >>> prior = BetaNegativeBinomial(np.array([[1.0]]), np.array([[0.5]]))
    >>> counts = Tails.no_rows((1, 1)).observe(np.array([[0.0], [0.0], [9.0], [3.0]]), np.zeros(4, int), np.ones(4))
    >>> posterior = prior.update(counts)
    >>> posterior.mean().rate.round(2)
    array([[2.89]])
    >>> np.exp(posterior.log_prob())[0, 0, :9].sum().round(2)  # P(r <= 1)
    np.float64(0.79)
    """

    kind: ClassVar[str] = "counts"
    sparse: ClassVar[bool] = True
    words: ClassVar[Words] = Words(spread="the root of the feature's mean")
    least: ClassVar[dict[str, float]] = {**RatePrior.least, "dispersion": 1e-75, "log_weight": -np.inf}
    axes: ClassVar[Mapping[str, str]] = {"dispersion": "CFR", "log_weight": "CFR"}
    statistics: ClassVar[type] = Tails
    likelihood: ClassVar[type] = NegativeBinomial
    empirical: ClassVar[dict[str, EmpiricalPrior]] = {"pooled": EmpiricalCounts()}
    predictive_distribution = lacking(
        "The predictive distribution of counts with an unknown dispersion is not one of SciPy's. Use predict_proba, or "
        "prior_predictive and posterior_predictive_check, which simulate counts."
    )
    program = no_nuts("The dispersion", "Or give a dispersion, as NegativeBinomialNB(dispersion=1.0).")

    dispersion: Array | None = None
    log_weight: Any = None

    def __post_init__(self) -> None:
        """Set the log weights of the dispersions to those of a half-Cauchy distribution of 1/√r, if none are given."""
        if self.log_weight is None and self.concentration is not None:
            log_prior = _LOG_PRIOR if self.dispersion is None else 0.0 * xp.asarray(self.dispersion)
            object.__setattr__(self, "log_weight", log_prior + 0.0 * xp.asarray(self.concentration)[..., None])

    @property
    def dispersions(self) -> Array:
        """Possible dispersions r, (C, F, R), or (R,) if all have the same."""
        return DISPERSIONS if self.dispersion is None else xp.asarray(self.dispersion)

    def log_prob(self) -> Float[jax.Array, "*C F R"]:
        """(C, F, R) log probability of each dispersion."""
        log_weight = self.log_weight
        return log_weight - logsumexp(log_weight, axis=-1, keepdims=True)

    def update(self, statistics: Tails | TailsWithout) -> Self:
        """Posterior: a' = a + Σx, b' = b + n, and the log evidence given r is added to the log weight of each r.

        Under an improper prior the dispersion of largest likelihood, at the rate Σx/n, has all the weight.
        """
        count, total = statistics.count, statistics.total
        rising = statistics.log_rising(self.dispersions)
        gain, fit = self._log_evidences(count, total, rising), self._profile_log_likelihoods(count, total, rising)
        is_best = fit == xp.max(fit, axis=-1, keepdims=True)
        gain = xp.where(self.proper()[..., None], gain, xp.where(is_best, 0.0, -xp.inf))
        log_weight = self.log_weight + gain
        return replace(self, concentration=self.concentration + total, rate=self.rate + count, log_weight=log_weight)

    def _profile_log_likelihoods(self, count: Array, total: Array, rising: jax.Array) -> Float[jax.Array, "*C F R"]:
        """(…, F, R) log likelihood of counted cells at each r and the rate Σx/n; arguments as of `_log_evidences`."""
        n, x, r = xp.asarray(count)[..., None], xp.asarray(total)[..., None], self.dispersions
        some_n, some_x = xp.where(n > 0, n, 1.0), xp.where(x > 0, x, 1.0)
        log_sum = xp.log(some_n * r + x)
        return rising - x * (log_sum - xp.log(some_x)) - n * r * (log_sum - xp.log(some_n * r))

    def _log_evidences(self, count: float | Array, total: Array, rising: Array) -> Float[jax.Array, "*C F R"]:
        """(…, F, R) log evidence, given each r, of `count` cells with sum `total` and Σ log Γ(x + r)/Γ(r) `rising`.

        With A = 1 + b r and rising factorials it is rising + log a^(Σx) + log A^(s) - log (A + l)^(s + Σx), where s and
        l are the smaller and the larger one of a and r n: so the value stays exact as r grows, and as rows do.
        """
        a, b = (xp.where(self.proper(), v, 1.0)[..., None] for v in (self.concentration, self.rate))
        r, n, x = self.dispersions, xp.asarray(count)[..., None], xp.asarray(total)[..., None]
        successes = 1.0 + r * b
        # In one call: three would compile the gamma functions three times.
        small, large = xp.minimum(a, r * n), xp.maximum(a, r * n)
        arguments = xp.broadcast_arrays(a, successes, successes + large, x, small, small + x)
        of_total, of_prior, of_posterior = log_rising(xp.stack(arguments[:3]), xp.stack(arguments[3:]))
        return rising + of_total + of_prior - of_posterior

    def for_groups(self) -> BetaNegativeBinomial:
        """Prior whose dispersion of each class and feature, if not known, is sampled for all groups together."""
        if self.dispersions.shape[-1] == 1:
            return self
        a, log_r = xp.asarray(self.concentration), xp.log(self.dispersions)
        mean = self._average(log_r)
        sd = self._average((log_r - mean[..., None]) ** 2) ** 0.5
        return CommonDispersion(a, self.rate, xp.ones((*a.shape, 1)), log_mean=mean, log_sd=sd)

    def with_common_weights(self, statistics: Tails) -> Self:
        """Prior whose weights of dispersions, the same for all classes and features, are estimated by EM.

        In each of a few steps the weights are the average of the posterior probabilities in all classes and features,
        and of the weights of this prior, which count as much as two of them.
        """
        gain = self._log_evidences(statistics.count, statistics.total, statistics.log_rising(self.dispersions))
        log_weight, n = self.log_weight, float(gain.shape[0] * gain.shape[-2])
        prior = common = xp.exp(log_weight[:1, ..., :1, :])
        for _ in range(_EM_STEPS):
            joint = xp.log(common) + gain
            share = xp.exp(joint - logsumexp(joint, axis=-1, keepdims=True))
            common = (_CELLS_OF_PRIOR * prior + xp.sum(share, axis=(0, -2), keepdims=True)) / (_CELLS_OF_PRIOR + n)
        return replace(self, log_weight=xp.log(common) + 0.0 * log_weight)

    def log_partition(self) -> Float[jax.Array, "*C F"]:
        """(C, F) log Σ_r exp(w_r): for a posterior the log evidence; +inf where the distribution is improper."""
        return xp.where(self.proper(), logsumexp(self.log_weight, axis=-1), xp.inf)

    def plug_in_mean(self) -> NegativeBinomial:
        """Negative binomial likelihood at E λ = a/b, NaN where b = 0, and E r."""
        return NegativeBinomial(xp.asarray(self.concentration) / self._positive_rate(), self._average(self.dispersions))

    def mode(self) -> NegativeBinomial:
        """Negative binomial likelihood at the most probable r, and at the mode of λ given r, r (a - 1)/(2 + b r).

        NaN where a < 1 (no interior mode) or b = 0.
        """
        best = xp.argmax(self.log_weight, axis=-1)
        r = _take(xp.broadcast_to(self.dispersions, xp.shape(self.log_weight)), best)
        a, b = xp.asarray(self.concentration), self._positive_rate()
        return NegativeBinomial(xp.where(a >= 1, (a - 1.0) / (b + 2.0 / r), xp.nan), xp.where(a >= 1, r, xp.nan))

    def penalized_mle(self) -> NegativeBinomial:
        """Likelihood at the joint mode of r and of log p/(1 - p): λ = a/(b + 1/r) given r."""
        a, b, r = xp.asarray(self.concentration)[..., None], self._positive_rate()[..., None], self.dispersions
        log_odds = log_or_minus_infinity(a) - xp.log(1.0 + b * r)
        best = xp.argmax(self.log_weight + self._log_density(log_odds), axis=-1)
        rate = r * xp.exp(log_odds)
        return NegativeBinomial(_take(rate, best), _take(xp.broadcast_to(r, rate.shape), best))

    def log_penalty(self, parameters: NegativeBinomial) -> Float[jax.Array, "*C F"]:
        """(C, F) log P(r), plus the log density of log p/(1 - p) given r, at possible r and at rates."""
        rate, r = xp.asarray(parameters.rate), xp.asarray(parameters.dispersion)
        log_odds = log_or_minus_infinity(rate) - xp.log(r)
        at = xp.argmin(xp.abs(self.dispersions - r[..., None]), axis=-1)
        return _take(self.log_prob() + self._log_density(log_odds[..., None]), at)

    def _log_density(self, log_odds: Array) -> Float[jax.Array, "*C F R"]:
        """(C, F, R) log density of `log_odds`, log (1 - p)/p, given each r, with p ~ Beta(1 + b r, a)."""
        a, b = xp.asarray(self.concentration)[..., None], self._positive_rate()[..., None]
        successes = 1.0 + b * self.dispersions
        constant = log_rising(successes, a) - gammaln(xp.where(a > 0, a, 1.0))
        return linear(a, log_odds) - (successes + a) * xp.logaddexp(0.0, log_odds) + constant

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances (C, F) of the rate, Σ_r P(r) a(a + b r)/((b r - 1) b²), and of r.

        The first is infinite if b r <= 1 for an r with a probability above 0.
        """
        a, b, r = xp.asarray(self.concentration)[..., None], self._positive_rate()[..., None], self.dispersions
        exists, some = b * r > 1, self.log_prob() > -700.0
        rate = xp.where(exists, a * (a + b * r) / (xp.where(exists, b * r - 1.0, 1.0) * b**2), xp.inf)
        mean = self._average(r)
        return {
            "rate": self._average(xp.where(some, rate, 0.0)),
            "dispersion": self._average((r - mean[..., None]) ** 2),
        }

    def pseudo_count(self) -> dict[str, Array]:
        """Number b of pseudo-observations that the distribution of each rate is worth; NaN for the dispersion."""
        return {"rate": self.rate, "dispersion": xp.full_like(self.rate, xp.nan)}

    def components(self) -> list[tuple[jax.Array, Self]]:
        """Pairs (probability (C, F), family given r) of the dispersions: the marginals are mixtures of theirs."""
        share, r = xp.exp(self.log_prob()), xp.broadcast_to(self.dispersions, xp.shape(self.log_weight))
        every = list(range(r.shape[-1]))
        if is_host(share):  # Quantiles of many components take long.
            every = [k for k in every if not (share[..., k] < _LEAST_SHARE).all()]
        given = (replace(self, dispersion=r[..., k : k + 1], log_weight=None) for k in every)
        return [(share[..., k], family) for k, family in zip(every, given, strict=True)]

    def marginals(self) -> dict[str, Distribution]:
        """Beta prime distribution of the rate, and the narrow range about r that stands for the dispersion.

        Names and arguments are those of `scipy.stats`; they are exact if r has one possible value, see `components`.
        """
        r = self._average(self.dispersions)
        rate = {"a": self.concentration, "b": 1.0 + r * self._positive_rate(), "scale": r}
        return {"rate": ("betaprime", rate), "dispersion": ("loguniform", {"a": r * 2**-0.25, "b": r * 2**0.25})}

    def draw(self, variates: Variates, n: int) -> NegativeBinomial:
        """Likelihood with n independent draws (n, C, F) of the dispersions, and of the rates given these."""
        index = _draw_index(variates.log_uniform(self.concentration, n), self.log_prob())
        r, b = xp.broadcast_to(self.dispersions, xp.shape(self.log_weight)), self._positive_rate()[..., None]
        log_ratio = variates.log_gamma_ratio(self.concentration, 1.0 + r * b, n, index, self._added)
        drawn = _take(r[None], index)
        return NegativeBinomial(drawn * xp.exp(log_ratio), drawn)

    def _added(self, statistics: Tails) -> Float[Array, "*C F"]:
        """Increments of a, net of those of b: Σx - n a/b."""
        return statistics.total - statistics.count * (self.concentration / self.rate)

    def with_cell(self, x: jax.Array, multiplicity: float | Array) -> Self:
        """Posterior, one per cell of x (…, F), after that cell was added `multiplicity` times; b is kept positive.

        b is at least 4e-16 of its value before, and a at least 0, as rounding may leave less after a removal.
        """
        total = multiplicity * x
        rate = xp.maximum(self.rate + multiplicity, 4e-16 * self.rate)
        after = replace(self, concentration=xp.maximum(self.concentration + total, 0.0), rate=rate)
        fewer = map_leaves(xp.minimum, self, after)
        rising = log_rising_of_cells(self.dispersions, x) * xp.abs(xp.asarray(multiplicity))[..., None]
        gain = fewer._log_evidences(xp.abs(multiplicity), xp.abs(total), rising)
        sign = xp.sign(xp.asarray(multiplicity) * xp.ones(()))[..., None]
        return replace(after, log_weight=self.log_weight + sign * gain)

    def log_evidence_of_cell(self, x: jax.Array, weight: float | Array) -> jax.Array:
        """(…, F) log predictive probability of each cell of x counted `weight` times, without base measure."""
        rising = xp.asarray(weight)[..., None] * log_rising_of_cells(self.dispersions, x)
        return logsumexp(self.log_prob() + self._log_evidences(weight, weight * x, rising), axis=-1)

    def predictive_of_cell(self) -> IntegratedDispersions:
        """Likelihood with rates and dispersions integrated out; NaN where b = 0."""
        return IntegratedDispersions(replace(self, rate=self._positive_rate()))

    def cumulants_of_terms(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C, F) posterior cumulants of log p(cell | λ, r), given `multiplicity` more copies of the cell.

        Given r the term is rising + r log p + x log(1 - p), p ~ Beta(A, a) with A = 1 + b r, whose cumulants are sums
        of r^k ψ^(k-1)(A) + x^k ψ^(k-1)(a) - (r + x)^k ψ^(k-1)(A + a); the moments are averaged over r.
        """
        cumulants = _by_value(lambda cells: self._stacked_cumulants(cells, multiplicity), x, self.log_weight)
        return Cumulants(*xp.moveaxis(cumulants, -1, 0))

    def _stacked_cumulants(self, x: jax.Array, multiplicity: float) -> Float[jax.Array, "N C F 3"]:
        """(N, C, F, 3) `cumulants_of_terms` of cells (N, F) that are observed."""
        given = with_axis_of_rows(self).with_cell(x, multiplicity)
        r, cells, a = given.dispersions, x[..., None], given.concentration[..., None]
        successes = 1.0 + r * given.rate[..., None]
        of_sum, of_failures, of_successes = polygammas(successes + a), polygammas(a), polygammas(successes)
        mean, variance, third = (
            linear(r**k, s) + linear(cells**k, f) - linear((r + cells) ** k, t)
            for k, s, f, t in zip((1, 2, 3), of_successes, of_failures, of_sum, strict=True)
        )
        mean = mean + log_rising_of_cells(r, x)
        centre = given._average(mean)
        shift = mean - centre[..., None]
        moments = variance + shift**2, third + 3.0 * shift * variance + shift**3
        return xp.moveaxis(xp.stack([centre, *map(given._average, moments)], axis=-1), 0, 1)

    def draw_terms(self, variates: Variates, n: int, x: object, multiplicity: float) -> TermDraws:
        """Variates of n draws, and the function of one draw's to log p(cell | λ, r), (N, C, F).

        (λ, r) is drawn given the data and `multiplicity` more copies of each cell. With p the ratio of two gamma
        variates the terms are rising + x log(1 - p) + r log p; adding cells to the data adds a Gamma(x) variate.
        """
        seen, x = observed(x)
        given, row_a = with_axis_of_rows(self).with_cell(x, multiplicity), multiplicity * x
        r, log_prob = given.dispersions, given.log_prob()
        rising = xp.broadcast_to(log_rising_of_cells(r, x), log_prob.shape)
        r_of_cells = xp.broadcast_to(r, log_prob.shape)
        successes = 1.0 + self.dispersions * (self._positive_rate() + multiplicity)[..., None]
        of_row = variates.log_gamma(row_a, n) if multiplicity else xp.full((n, 1, 1), -xp.inf)
        drawn = (
            variates.log_uniform(self.concentration, n),
            variates.log_gamma(self.concentration, n),
            of_row,
            variates.log_gamma(successes, n),
        )

        def terms(log_uniform: Array, failures: Array, of_row: Array, successes: Array) -> jax.Array:
            """(N, C, F) terms for one draw of the variates; 0 for missing cells."""
            index = _draw_index(log_uniform[:, None], log_prob)
            log_odds = xp.logaddexp(failures[:, None], of_row) - _take(successes[:, None], index)
            fails, r = xp.logaddexp(0.0, log_odds), _take(r_of_cells, index)
            value = _take(rising, index) + linear(x, log_odds - fails) - r * fails
            return only(seen[:, None], xp.moveaxis(value, 0, 1))

        return drawn, terms

    def _average(self, values: Array) -> Float[jax.Array, "*C F"]:
        """(…, F) average of values (…, F, R) over the dispersions, by their probabilities."""
        return xp.sum(xp.exp(self.log_prob()) * values, axis=-1)


@pytree
class KnownDispersion(BetaNegativeBinomial):
    """`BetaNegativeBinomial` with one possible dispersion of each feature, `dispersion` (C, F, 1)."""

    def n_free(self) -> int:
        """Number of rates of all classes and features."""
        return int(np.size(self.rate))

    def program(self) -> list[Site]:
        """Sample site λ = r odds, odds = (1 - p)/p of p ~ Beta(1 + b r, a), of all features."""
        arguments = {"concentration": self.concentration, "rate": self.rate, "dispersion": self._known()}
        return [Site("rate", "", xp.shape(self.rate)[-1], Expression(_SCALED_BETA_PRIME, arguments))]

    def to_sites(self, parameters: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Rates, which are the only site: dispersions are known."""
        return {"rate": parameters["rate"]}

    def from_sites(self, values: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Rates, and the known dispersions."""
        return {"rate": values["rate"], "dispersion": self._known()}

    def _known(self) -> jax.Array:
        """(C, F) known dispersions."""
        return xp.asarray(self.dispersion)[..., 0]


@pytree
class CommonDispersion(KnownDispersion):
    """`KnownDispersion` of groups of rows, whose dispersions (C, F, 1) are hyperparameters.

    `log_mean` and `log_sd` (C, F) are the mean and the standard deviation of log r under its prior.
    """

    log_mean: Any = None
    log_sd: Any = None

    def hyperprior(self, kind: HyperpriorKind) -> dict[str, Hyperparameter]:
        """Hyperparameters of `RatePrior`, and "common_dispersion" (C, F), of which log r is normal."""
        fields = {"log_mean": self.log_mean, "log_sd": self.log_sd}
        r = Hyperparameter("rate", np.shape(self.concentration), Expression("LogNormal(log_mean, log_sd)", fields))
        return {**super().hyperprior(kind), "common_dispersion": r}

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Prior with the hyperparameters of `RatePrior`, and the dispersions values["common_dispersion"]."""
        prior = super().with_hyperparameters(values)
        r = xp.asarray(values["common_dispersion"])[..., None]
        return replace(prior, dispersion=r, log_weight=0.0 * r)


def with_dispersion(prior: Any, dispersion: Float[Array, "F"]) -> Any:
    """Copy of a prior of counts, or of a prior that is derived from the data, with known dispersions."""
    if isinstance(prior, PriorByColumn):
        derived = (with_dispersion(part, dispersion) for part in prior.derived)
        return replace(prior, given=with_dispersion(prior.given, dispersion), derived=tuple(derived))
    if isinstance(prior, EmpiricalCounts):
        return replace(prior, dispersion=dispersion)
    a = xp.asarray(prior.concentration)
    return KnownDispersion(a, prior.rate, xp.asarray(dispersion)[:, None] + 0.0 * a[..., None])


def _take(values: Float[Array, "... F R"], index: Int[Array, "... F"]) -> Float[jax.Array, "... F"]:
    """(…, F) entries of the last axis of `values` (…, F, R) at an index (…, F) each."""
    return xp.take_along_axis(values, index[..., None], axis=-1)[..., 0]


def _draw_index(log_uniform: Float[Array, "... F"], log_prob: Float[Array, "... F R"]) -> Int[jax.Array, "... F"]:
    """(…, F) index on the last axis, drawn with probabilities given by their logarithms (…, F, R)."""
    log_cumulative = cumlogsumexp(log_prob, axis=xp.ndim(log_prob) - 1)
    return xp.sum(log_cumulative[..., :-1] < log_uniform[..., None], axis=-1)


@pytree
class IntegratedDispersions:
    """Predictive likelihood with rates and dispersions integrated out; `table` (K, C, F) has that of counts below K."""

    posterior: BetaNegativeBinomial
    table: Array | None = None

    def prepare(self, x: object) -> IntegratedDispersions:
        """Return an equal likelihood with a table of the counts up to the power of two above those of rows `x`."""
        if not is_host(x, self.posterior) or xp.ndim(self.posterior.concentration) == 3:
            return self
        values = np.asarray(numbers(x))
        size = 1 << int(min(np.nanmax(values, initial=0.0), _MOST_TABULATED - 1)).bit_length()
        if len(values) <= size:
            return self
        return replace(self, table=self._terms(np.broadcast_to(np.arange(size)[:, None], (size, values.shape[1]))))

    def terms(self, x: object) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log predictive probability of each cell, without the base measure; 0 for missing cells."""
        if self.table is None:
            return _by_value(self._terms, x, self.posterior.log_weight)
        seen, cells = observed(x)
        index = xp.clip(cells, 0, len(self.table) - 1).astype(xp.int32)
        is_tabulated = xp.all(index == cells)
        terms = cond(
            is_tabulated,
            lambda: xp.take_along_axis(xp.asarray(self.table), index[:, None], axis=0),
            lambda: _by_value(self._terms, x, self.posterior.log_weight),
        )
        return only(seen[:, None], terms)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_f log predictive probability of the cells; missing cells contribute nothing."""
        return xp.sum(self.terms(x), axis=-1)

    def _terms(self, x: Array) -> Float[jax.Array, "N C F"]:
        """(N, C, F) terms of cells (N, F) that are observed."""
        posterior = self.posterior if xp.ndim(self.posterior.concentration) == 3 else with_axis_of_rows(self.posterior)
        return xp.moveaxis(posterior.log_evidence_of_cell(xp.asarray(x), 1.0), 0, 1)


def _by_value(of_cells: Callable[[Any], jax.Array], x: object, weights: Array) -> Float[jax.Array, "N C F ..."]:
    """Results (N, C, F, …) of a function of the cells of x (N, F); 0 for missing cells.

    NumPy computes each once for all rows with a count, and JAX those of some rows at a time, by the size of `weights`
    (C, F, R). Cells whose function differs from row to row, as the weights (C, N, F, R) do, are computed one by one.
    """
    seen, cells = observed(x)
    results: Array | None = None
    if xp.ndim(weights) != 3:
        results = of_cells(cells)
    elif not is_host(cells, weights):
        results = map_in_pieces(of_cells, cells, len(weights) * weights.shape[-1])
    elif len((unique := np.unique(cells, return_inverse=True))[0]) >= len(cells):
        results = of_cells(cells)
    else:
        values, index = unique
        table = of_cells(np.broadcast_to(values[:, None], (len(values), cells.shape[1])))
        index = index.reshape(len(cells), 1, -1, *(1,) * (table.ndim - 3))
        results = np.take_along_axis(table, index, axis=0)
    mask = seen[:, None].reshape(len(cells), 1, cells.shape[1], *(1,) * (results.ndim - 3))
    return xp.where(mask, results, 0.0)
