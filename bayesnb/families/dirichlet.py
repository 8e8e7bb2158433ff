"""Dirichlet family of groups of levels, and known class probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from bayesnb.families.arrays import Array, log_segment_sum, pytree, segment_sum, static, xp
from bayesnb.families.protocol import (
    Cumulants,
    Distribution,
    Expression,
    Hyperparameter,
    HyperpriorKind,
    IndependentClasses,
    Prior,
    Site,
    Variates,
)
from bayesnb.families.rows import (
    CountRows,
    LevelCounts,
    Multinomial,
    Ratio,
    Term,
    linear,
    log_or_minus_infinity,
    plugged_in,
    rising,
    rows_of_levels,
    with_counts,
)
from bayesnb.families.special import Histogram, Symmetric, log_rising, polygammas

# == Dirichlet: the class prior, categorical, Bernoulli and multinomial features, and every structure

_NOTHING = LevelCounts(0.0)


@pytree
class Dirichlet(IndependentClasses):
    r"""Dirichlet distributions of the probabilities of levels, one for each class and group of levels.

    .. math::

        p(\theta) \propto \prod_l \theta_l^{\alpha_l - 1}

    The distribution is conjugate to counts of the levels: `update` returns the posterior with α' = α + n, which is of
    the same type (docs/derivations/conjugate.md, "Dirichlet probabilities"). The class probabilities are
    one group of C levels, multinomial features one group of all words, F Bernoulli features are F groups of two levels,
    and F categorical features are F groups of any size.

    Parameters
    ----------
    concentration : (C, L) array
        Concentration α of each level of a prior, or α' = α + n of a posterior.
    group : (L,) int array
        Group of each level, 0 … num_groups - 1. The levels of a group are contiguous; zeros mean one group.
    num_groups : int
        Number of groups G.

    See Also
    --------
    CategoricalNB : Classifier with this prior of the levels.
    NaiveBayes : Distribution of all parameters of a classifier.

    Notes
    -----
    Results have the precision of the arguments *and* of JAX's configuration. For float64 call inside
    `jax.enable_x64(True)`, as the estimators of bayesnb do.

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A; Murphy, *Machine Learning* (2012), ch. 3.

    Examples
    --------
    Six throws of a die with four faces, and a prior worth one of each: the posterior, and its mean.

    >>> import jax.numpy as jnp
    >>> from bayesnb import Dirichlet
    >>> from bayesnb.families import LevelCounts
    >>> prior = Dirichlet(jnp.ones((1, 4)), jnp.zeros(4, int), num_groups=1)
    >>> posterior = prior.update(LevelCounts(jnp.array([[3, 1, 0, 2]])))
    >>> posterior.concentration
    Array([[4., 2., 1., 3.]], dtype=float32)
    >>> jnp.exp(posterior.mean().log_theta).round(3)
    Array([[0.4, 0.2, 0.1, 0.3]], dtype=float32)
    """

    statistics: ClassVar[type] = LevelCounts
    likelihood: ClassVar[type] = Multinomial
    nonnegative: ClassVar[bool] = True
    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"alpha": "concentration"}

    concentration: Array
    group: np.ndarray = static()
    num_groups: int = static()

    def update(self, statistics: LevelCounts) -> Self:
        """Posterior with concentrations α + n, n the counts (C, L) of the levels."""
        return type(self)(self.concentration + statistics.count, self.group, self.num_groups)

    def update_keeping_prior(self, statistics: LevelCounts) -> PriorAndCounts:
        """Posterior that stores α and the counts n separately, so that leaving rows out loses nothing of a small α."""
        return PriorAndCounts(self, statistics.count)

    def scale(self, factor: float | Array) -> Self:
        """Prior with all concentrations α multiplied by `factor`."""
        return type(self)(self.concentration * factor, self.group, self.num_groups)

    def unit(self) -> Self:
        """Prior with all concentrations set to 1."""
        return replace(self, concentration=xp.ones(xp.shape(self.concentration)))

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Prior with concentrations times values["alpha"], and times values["base_measure"] (L,) · size of the group.

        A factor that is not in `values` is 1. In place of both, values["total"] (G,) of each group of levels and
        values["theta_mean"] (C, L) give the concentrations total · mean.
        """
        if "total" in values:
            return replace(self, concentration=self.to_levels(values["total"]) * values["theta_mean"])
        scaled = self.scale(values.get("alpha", 1.0))
        if "base_measure" not in values:
            return scaled
        group = self.group
        size = segment_sum(xp.ones(len(group)), group, self.num_groups)[group]
        return replace(scaled, concentration=scaled.concentration * (size * values["base_measure"]))

    def hyperprior(self, kind: HyperpriorKind) -> dict[str, Hyperparameter]:
        """Hyperparameter "alpha" and, if pooled, "base_measure" (L,), uniform on the simplex of each group of levels.

        If grouped, "total" concentrations of each group of levels, which all classes share, and "theta_mean" (C, L),
        uniform on each simplex.
        """
        shape, weight = np.shape(self.concentration), Expression("Exponential(1.0)", {})
        if kind == "grouped":
            mean = Hyperparameter("theta", shape, weight, self._normalized)
            return {"total": Hyperparameter("theta", (self.num_groups,)), "theta_mean": mean}
        hyperparameters = {"alpha": Hyperparameter("theta")}
        if kind == "pooled":
            hyperparameters["base_measure"] = Hyperparameter("theta", shape[1:], weight, self._normalized)
        return hyperparameters

    def condensed(self) -> Symmetric:
        """`Symmetric` prior with the factor α = 1 on the concentrations, for `log_evidence` from a histogram."""
        return Symmetric(np.ones(()))

    def condense(self, statistics: LevelCounts) -> Histogram:
        """Histogram of pairs (concentration, count) of the levels, all that `condensed().log_evidence` needs."""
        return Histogram.from_counts(statistics.count, self.group, self.num_groups, np.asarray(self.concentration))

    def n_free(self) -> int:
        """Number of free parameters of all classes: L - 1 for each simplex of L levels."""
        return n_free_levels(self.concentration, self.group)

    def pad(self, extra: int) -> Self:
        """Copy with `extra` unused levels of concentration 1, in an additional group to which no row refers."""
        alpha = np.pad(self.concentration, ((0, 0), (0, extra)), constant_values=1.0)
        group = np.pad(self.group, (0, extra), constant_values=self.num_groups)
        return type(self)(alpha, group, self.num_groups + 1)

    def restrict(self, keep: np.ndarray) -> Self:
        """Marginal Dirichlet of the levels `keep` (L,) of bool.

        Levels of their groups that are left out are merged into one more level, and all are then put into one group.
        """
        alpha, group = np.asarray(self.concentration), self.group
        chosen, index = np.unique(group[keep], return_inverse=True)
        others = ~keep & np.isin(group, chosen)
        if not others.any():
            return type(self)(alpha[:, keep], index, len(chosen))
        return type(self)(np.column_stack([alpha[:, keep], alpha @ others]), np.zeros(keep.sum() + 1, np.int32), 1)

    def restrict_with_counts(self, statistics: LevelCounts, keep: np.ndarray) -> tuple[Self, LevelCounts]:
        """`restrict(keep)`, and the counts of its levels: the posterior is that of all levels, restricted.

        A factor α on all concentrations may be applied before or after, as the concentration of merged levels is a sum.
        """
        counts = self.improper().update(statistics).restrict(keep).concentration
        return self.restrict(keep), LevelCounts(counts)

    def improper(self) -> Self:
        """Improper prior with all concentrations 0, whose posterior mean is the maximum likelihood estimate."""
        return self.scale(0.0)

    def total(self) -> Float[jax.Array, "*C G"]:
        """(C, G) total concentration α₀ of each group of levels."""
        return self.sum_groups(self.concentration)

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "*C G"]:
        """(C, G) log marginal likelihood Σ log Γ(α + n)/Γ(α) - log Γ(α₀ + t)/Γ(α₀) of the counts of each group.

        The value is -inf where a concentration is not positive. Ratios avoid the cancellation of large log partitions.
        """
        alpha, n = xp.asarray(self.concentration), xp.asarray(statistics.count)
        value = xp.subtract(self.sum_groups(log_rising(alpha, n)), log_rising(self.total(), self.sum_groups(n)))
        return xp.where(self.sum_groups(alpha <= 0) == 0, value, -xp.inf)

    def proper(self) -> Bool[jax.Array, "*C L"]:
        """(C, L) of bool: whether all concentrations of the level's group are positive."""
        proper: jax.Array = self.sum_groups(xp.asarray(self.concentration) <= 0) == 0
        return self.to_levels(proper)

    def pseudo_count(self) -> dict[str, jax.Array]:
        """Total concentration α₀ of each level's group, {"theta": (C, L)}."""
        return {"theta": self.to_levels(self.total())}

    def mean(self, multiplicity: Array | None = None) -> Any:
        """Likelihood with θ plugged in at the posterior mean α_l/α₀.

        With `multiplicity` w (C,) each row x is first added w times to the data: Σ x log[(α + w x)/(α₀ + w t)].
        """
        if multiplicity is not None:
            return keep_counts(self).mean(multiplicity)
        return Multinomial(log_or_minus_infinity(self._mean()))

    def mode(self) -> Multinomial:
        """Likelihood at the mode on the simplex, (α_l - 1)/(α₀ - L); NaN where some α < 1 or all are 1."""
        alpha = xp.asarray(self.concentration)
        excess = self.sum_groups(alpha - 1.0)
        exists = (self.sum_groups(alpha < 1.0) == 0) & (excess > 0)
        theta = (alpha - 1.0) / self.to_levels(xp.where(exists, excess, 1.0))
        return Multinomial(xp.where(self.to_levels(exists), log_or_minus_infinity(theta), xp.nan))

    def penalized_mle(self) -> Multinomial:
        """Likelihood at the mode in the softmax basis, which exists for every α > 0 and equals the mean α_l/α₀."""
        return self.mean()

    def log_penalty(self, parameters: Multinomial) -> Float[jax.Array, "*C L"]:
        """(C, L) α log θ: the log density in the softmax basis at the given θ, up to a constant."""
        return linear(self.concentration, parameters.log_theta)

    def predictive(self, multiplicity: Array | None = None) -> Ratio:
        """Dirichlet-multinomial likelihood log B(α + x) - log B(α), with θ integrated out.

        With `multiplicity` w (C,) each row x is first added w times to the data: log B(α + (w + 1) x) - log B(α + w x).
        """
        if multiplicity is not None:
            return keep_counts(self).predictive(multiplicity)
        return Ratio(xp.asarray(self.concentration), self.total(), None, self.group, rising)

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances m (1 - m)/(α₀ + 1) of θ, {"theta": (C, L)}, with m the posterior mean."""
        mean = self._mean()
        return {"theta": mean * (1.0 - mean) / (self.to_levels(self.total()) + 1.0)}

    def marginals(self) -> dict[str, Distribution]:
        """Marginals Beta(α_l, α₀ - α_l) of each θ_l, as name and arguments in `scipy.stats`."""
        rest = self.to_levels(self.total()) - self.concentration
        return {"theta": ("beta", {"a": self.concentration, "b": rest})}

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """Likelihood with n draws of log θ (n, C, L), as normalised gamma variates in log space, without underflow."""
        alpha = xp.asarray(self.concentration)
        log_gamma = variates.log_gamma(alpha, n, attrgetter("count"))
        return Multinomial(log_gamma - self.log_total(log_gamma))

    def program(self) -> list[Site]:
        """Sites θ ~ Dirichlet(α), one site for all groups of the same size; groups of one level have none."""
        alpha = xp.asarray(self.concentration)
        return [
            Site("theta", f"_of_{n}", len(at), Expression("Dirichlet(alpha)", {"alpha": alpha[:, at]}))
            for n, at in self._levels_by_size()
        ]

    def to_sites(self, parameters: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Values (…, C, G, size) of the sites, by group size, that correspond to level probabilities (…, C, L)."""
        return {f"theta_of_{n}": parameters["theta"][..., at] for n, at in self._levels_by_size()}

    def from_sites(self, values: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Level probabilities {"theta": (C, L)} from the values of the sites; θ = 1 for the level of a group of one."""
        theta = xp.ones(xp.shape(self.concentration))
        for n, at in self._levels_by_size():
            theta = jnp.asarray(theta).at[:, at].set(values[f"theta_of_{n}"])
        return {"theta": theta}

    def _levels_by_size(self) -> list[tuple[int, np.ndarray]]:
        """Pairs (size, positions (G, size) of the levels) of all groups with that size, for sizes from two on."""
        sizes = np.bincount(self.group, minlength=self.num_groups)
        start = np.cumsum(sizes) - sizes
        return [(int(n), start[sizes == n][:, None] + np.arange(n)) for n in np.unique(sizes[sizes > 1])]

    def simulate(self, likelihood: Multinomial, rng: np.random.Generator, total: int | np.ndarray = 1) -> np.ndarray:
        """(S, L) simulated counts of one row for each of S level probabilities.

        A single group has `total` draws, several groups have one draw each.
        """
        log_theta = np.asarray(likelihood.log_theta)
        if self.num_groups == 1 and log_theta.shape[-1]:
            return rng.multinomial(total, np.exp(log_theta))
        return simulate_levels(log_theta, self.group, rng)

    def log_total(self, log_gamma: jax.Array) -> Float[jax.Array, "*C L"]:
        """(…, L) log sum of gamma variates over the group of each level, given logarithms (…, L) of the variates."""
        return self.to_levels(log_segment_sum(log_gamma, self.group, self.num_groups))

    def log_likelihood_cumulants(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) cumulants of log p(row | class, θ), θ given the data and `multiplicity` copies of the row.

        With α = α' + multiplicity · x the k-th is Σ xᵏ ψₖ₋₁(α) - Σ tᵏ ψₖ₋₁(α₀); the mean includes the base measure.
        """
        mean, variance, third = xp.split(self._cumulant_ratio(multiplicity).log_prob(x), 3, axis=1)
        return Cumulants(mean + self.log_base(x)[:, None], variance, third)

    def cumulants_of_terms(self, x: object) -> Cumulants:
        """(N, C, G) posterior cumulants of Σ x_l log θ_l over the levels of each group."""
        return Cumulants(*xp.split(self._cumulant_ratio(0.0).terms(x), 3, axis=1))

    def _cumulant_ratio(self, multiplicity: float) -> Ratio:
        """Table function of the first three cumulants of Σ x_l log θ_l, concatenated on the class axis to (…, 3 C)."""
        return Ratio(xp.asarray(self.concentration), self.total(), multiplicity, self.group, _cumulants)

    def cumulants_of_levels(self) -> Cumulants:
        """(C, L) posterior cumulants ψₖ₋₁(α_l) - ψₖ₋₁(α₀) of log θ_l; within a group the covariance is -ψ₁(α₀)."""
        pairs = zip(polygammas(self.concentration), polygammas(self.total()), strict=True)
        return Cumulants(*(level - self.to_levels(total) for level, total in pairs))

    def draw_with_multiplicity(self, variates: Variates, n: int, x: object, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ x_l log θ_l, θ given the data and `multiplicity` copies of the row."""
        rows = self.rows(x)
        if multiplicity:
            return rows.draw_with_row(self, variates, n, multiplicity)
        return rows.dot_each(self.draw(variates, n).log_theta)

    def draw_level_marginals(self, variates: Variates, n: int, multiplicity: float) -> Float[jax.Array, "n *C L"]:
        """(n, C, L) draws of log θ_l, θ_l ~ Beta(α_l + multiplicity, α₀ - α_l), independently of other levels.

        A row of one draw from each group needs these marginals only.
        """
        alpha = xp.asarray(self.concentration)
        rest = xp.maximum(self.to_levels(self.total()) - alpha, 0.0)
        return variates.log_beta(alpha + multiplicity, rest, n)

    def log_base(self, x: object) -> jax.Array:
        """(N,) log multinomial coefficient of each row, 0 for categorical rows."""
        return self.rows(x).log_base()

    def rows(self, x: object) -> CountRows:
        """Rows x as `CountRows`; an (N, G) array is read as codes of levels, an (N, L) array as counts."""
        return rows_of_levels(x, self.group, self.num_groups)

    def _mean(self) -> jax.Array:
        """(C, L) posterior means α_l/α₀."""
        total = self.to_levels(self.total())
        return xp.where(total == 0, xp.nan, self.concentration / xp.where(total == 0, 1.0, total))

    def _normalized(self, weight: jax.Array) -> jax.Array:
        """Non-negative weights (…, L) divided by their sum over each group."""
        return weight / self.to_levels(self.sum_groups(weight))

    def sum_groups(self, values: Array) -> jax.Array:
        """(…, G) sums over each group of values (…, L) of the levels."""
        if self.num_groups == 1:
            return xp.sum(values, axis=-1, keepdims=True)
        values = xp.asarray(values)
        values = values.astype(xp.asarray(self.concentration).dtype) if values.dtype == bool else values
        return segment_sum(values, self.group, self.num_groups)

    def to_levels(self, values: float | Array) -> jax.Array:
        """(…, L) values of groups (…, G), each at all levels of its group."""
        values = xp.asarray(values)
        if self.num_groups == 1:
            return xp.broadcast_to(values, (*values.shape[:-1], len(self.group)))
        return values[..., self.group]


def _cumulants(multiplicity: float) -> Term:
    """Term of three cumulants: Σ xᵏ ψₖ₋₁(α + multiplicity · x), k = 1, 2, 3, concatenated on the last axis."""

    def all_three(x: float | Array, a: Array) -> jax.Array:
        """xᵏ ψₖ₋₁(a + multiplicity · x) for k = 1, 2, 3, concatenated on the last axis."""
        return xp.concatenate([linear(x**k, psi) for k, psi in enumerate(polygammas(a + multiplicity * x), 1)], axis=-1)

    return Term(all_three, lambda a, total, group: all_three(1.0, a) - all_three(1.0, total)[group])


@pytree
class PriorAndCounts:
    """Dirichlet posterior that stores prior and counts n (C, L) separately, so that rows can be left out without loss.

    α' = α + n rounds, and α' - x would lose α.
    """

    classes_share_parameters: ClassVar[bool] = False

    prior: Dirichlet
    count: Array

    @property
    def group(self) -> np.ndarray:
        """Group of each level, (L,)."""
        return self.prior.group

    def update(self, statistics: LevelCounts) -> Dirichlet:
        """Dirichlet posterior with α + max(n + further counts, 0); further counts may be negative."""
        return replace(self.prior, concentration=with_counts(self.prior.concentration, self.count, statistics.count))

    def pad(self, extra: int) -> PriorAndCounts:
        """Copy with `extra` unused levels, in an additional group to which no row refers."""
        return PriorAndCounts(self.prior.pad(extra), np.pad(self.count, ((0, 0), (0, extra))))

    def mean(self, multiplicity: Array | None = None) -> Any:
        """Likelihood at the posterior mean of θ, each row added `multiplicity` (C,) times to each class's data."""
        return self.update(_NOTHING).mean() if multiplicity is None else self._ratio(plugged_in, multiplicity)

    def predictive(self, multiplicity: Array | None = None) -> Ratio:
        """Likelihood with θ integrated out, each row added `multiplicity` (C,) times to each class's data."""
        return self.update(_NOTHING).predictive() if multiplicity is None else self._ratio(rising, multiplicity)

    def levels_and_totals(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Pairs (α, n) of the levels, (C, L) each, and (α₀, n₀) of their groups, (C, G) each."""
        level = self.prior.concentration, self.count
        return level, (self.prior.sum_groups(level[0]), self.prior.sum_groups(level[1]))

    def _ratio(self, term: Callable[..., Term], multiplicity: Array) -> Ratio:
        """Likelihood given `multiplicity` (C,) more copies of each row; `term` is `plugged_in` or `rising`."""
        level, total = map(xp.concatenate, self.levels_and_totals())
        return Ratio(level, total, multiplicity, self.group, term)


def keep_counts(posterior: Dirichlet | PriorAndCounts) -> PriorAndCounts:
    """Convert a Dirichlet posterior to prior 0 and counts α, to leave rows out; return `PriorAndCounts` unchanged."""
    if isinstance(posterior, PriorAndCounts):
        return posterior
    return PriorAndCounts(posterior.improper(), posterior.concentration)


def n_free_levels(table: Array, group: np.ndarray) -> int:
    """Number of free parameters of tables (C, L) of levels in groups: in each class, L less the number of groups."""
    n_classes, n_levels = np.shape(table)
    return int(n_classes * (n_levels - np.unique(group).size))


def simulate_levels(log_theta: np.ndarray, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(S, L) of 0 and 1: one level drawn from each group, for each of S rows of log probabilities (S, L)."""
    noisy = log_theta + rng.gumbel(size=log_theta.shape)
    first = np.diff(group, prepend=-1) != 0  # groups without levels have none
    best = np.maximum.reduceat(noisy, np.flatnonzero(first), axis=-1) if first.any() else noisy
    return (noisy == best[..., np.cumsum(first) - 1]).astype(np.int64)


# == Class probabilities that are known, so that data do not change them ===========================


@pytree
class Known(Prior):
    """Known class probabilities: a class prior that data do not change.

    Parameters
    ----------
    log_prob : (1, C) array
        Log probability of each class.
    """

    fixed: ClassVar[bool] = True

    log_prob: Array

    def update(self, statistics: LevelCounts) -> Self:
        """Return the known probabilities unchanged."""
        return self

    def improper(self) -> Self:
        """Return the known probabilities unchanged, as nothing is estimated."""
        return self

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Return the known probabilities unchanged, as there are no hyperparameters."""
        return self

    def log_evidence(self, statistics: LevelCounts) -> jax.Array:
        """(1,) log probability Σ_c n_c log π_c of the counted labels."""
        seen = statistics.count > 0
        return xp.sum(xp.where(seen, statistics.count * xp.where(seen, self.log_prob, 0.0), 0.0), axis=-1)

    def proper(self) -> jax.Array:
        """(1, C) of True: a point mass is proper."""
        return xp.ones_like(xp.asarray(self.log_prob), bool)

    def n_free(self) -> int:
        """Number of free parameters: 0."""
        return 0

    def mean(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood with the known probabilities plugged in."""
        return Multinomial(self.log_prob)

    mode = mean
    penalized_mle = mean

    def log_penalty(self, parameters: object) -> jax.Array:
        """(1, C) zeros: no penalty."""
        return xp.zeros_like(xp.asarray(self.log_prob))

    def variance(self) -> dict[str, jax.Array]:
        """Variances 0, {"theta": (1, C)}."""
        return {"theta": xp.zeros_like(self.log_prob)}

    def marginals(self) -> dict[str, Distribution]:
        """Point masses at the known probabilities, as name and arguments in `scipy.stats`."""
        return {"theta": ("uniform", {"loc": xp.exp(self.log_prob), "scale": 0.0})}

    def pseudo_count(self) -> dict[str, jax.Array]:
        """Infinite weight, {"theta": (1, C)}: no data change the probabilities."""
        return {"theta": xp.full_like(xp.asarray(self.log_prob), xp.inf)}

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """Likelihood with n copies (n, 1, C) of the known probabilities."""
        log_prob = xp.asarray(self.log_prob)
        return Multinomial(xp.broadcast_to(log_prob, (n, *log_prob.shape)))
