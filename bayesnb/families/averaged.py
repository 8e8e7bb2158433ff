"""Averages over whether a feature depends on the class, and weighted likelihoods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Float

from bayesnb.families.arrays import (
    Array,
    kernel,
    log_ndtr,
    log_sigmoid,
    map_leading_axis,
    map_leaves,
    pytree,
    sigmoid,
    static,
    xp,
)
from bayesnb.families.dirichlet import Dirichlet, PriorAndCounts, keep_counts
from bayesnb.families.numbers import EmpiricalPrior, IndependentCells, observed, only
from bayesnb.families.protocol import Cumulants, Family, Increments, ReadyLikelihood, Variates, no_em, no_nuts, pooled
from bayesnb.families.rows import Multinomial, OneDrawEach, Ratio, Tabulated, as_rows, weighted, with_counts
from bayesnb.families.special import log_rising

# == Features that may not depend on the class: averages of the model in which they do and the one in which not


@pytree
class Averaged(Family):
    """Family of features that may or may not depend on the class: Bayesian average of both models, feature by feature.

    A mixture of two conjugate families is conjugate: data update both, and the odds of dependence by the Bayes factor.
    Over F features that is the average over all 2^F sets of features that depend on the class.

    Parameters
    ----------
    dependent, shared : families
        Family over C classes, and family over one class.
    log_odds : (K,) array
        Log odds that each feature depends on the class.

    References
    ----------
    Dash & Cooper, *Exact model averaging with naive Bayesian classifiers*, ICML 2002.
    """

    classes_share_parameters: ClassVar[bool] = True
    penalized_mle = no_em("two models", "Use the classifier without FeatureAveragedNB.")
    program = no_nuts("Whether a feature depends on the class")

    dependent: Any
    shared: Any
    log_odds: Array

    @property
    def statistics(self) -> type:
        """Type of the sufficient statistics, that of the dependent model."""
        return self.dependent.statistics

    @property
    def likelihood(self) -> type:
        """Type of the plug-in likelihood, that of the dependent model."""
        return self.dependent.likelihood

    @abstractmethod
    def _to_positions(self, values: Array) -> jax.Array:
        """Repeat values of the features (…, F) at each position (…, K) of the last axis of the parameters."""

    def update(self, statistics: object) -> Self:
        """Posterior: both models updated, log odds' = log odds + log p(D | dependent) - log p(D | shared)."""
        together = pooled(statistics)
        evidence, shared_evidence = _log_evidences(self.dependent, self.shared, statistics, together)
        log_odds = self.log_odds + evidence - shared_evidence
        return type(self)(self.dependent.update(statistics), self.shared.update(together), log_odds)

    def log_evidence(self, statistics: object) -> jax.Array:
        """(1, F) log[ρ p(D | dependent) + (1 - ρ) p(D | shared)] of each feature, ρ the probability of dependence."""
        evidences = _log_evidences(self.dependent, self.shared, statistics, pooled(statistics))
        return _log_average(self.log_odds, *evidences)[None]

    def scale(self, factor: float | Array) -> Self:
        """Prior with both models worth `factor` times as many rows; the odds of dependence stay."""
        return type(self)(self.dependent.scale(factor), self.shared.scale(factor), self.log_odds)

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Return the prior unchanged: the average has no tunable hyperparameters."""
        return self

    def groups_refusal(self) -> str:
        """Reason why groups of rows have no parameters with a common distribution."""
        return "whether features depend on the class is not known. Use the classifier without FeatureAveragedNB."

    def n_free(self) -> int:
        """Number of free parameters of the dependent model, in which every feature depends on the class."""
        return self.dependent.n_free()

    def proper(self) -> jax.Array:
        """Array of bool: whether the distributions of both models are proper."""
        return self.dependent.proper() & self.shared.proper()

    def inclusion(self) -> Float[jax.Array, "K"]:
        """(K,) probability that the feature depends on the class, at each position of the parameters' last axis."""
        return self._to_positions(sigmoid(xp.asarray(self.log_odds)))

    def improper(self) -> Family:
        """Improper prior of the dependent model, whose posterior mean is the maximum likelihood estimate."""
        return self.dependent.improper()

    def mode(self) -> Any:
        """NaN for all parameters: densities over different numbers of parameters have no common mode."""
        return jax.tree.map(lambda v: xp.full_like(v, xp.nan), self.dependent.mode())

    def pseudo_count(self) -> dict[str, jax.Array]:
        """NaN (C, K) for each parameter: the average's posterior mean is not linear in the counts."""
        return {name: xp.full_like(v, xp.nan) for name, v in self.variance().items()}

    def components(self) -> list[tuple[jax.Array, Family]]:
        """Pairs (probability (K,), family) of the dependent and of the shared model."""
        share = self.inclusion()
        return [(share, self.dependent), (1.0 - share, self.shared)]

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances ρ V + (1 - ρ) V_shared + ρ (1 - ρ) (E - E_shared)² of each parameter, (C, K), by name."""
        share = self.inclusion()
        variance, shared_variance = self.dependent.variance(), self.shared.variance()
        mean, shared_mean = self.dependent.mean().parameters(), self.shared.mean().parameters()
        return {
            name: share * variance[name]
            + (1.0 - share) * shared_variance[name]
            + share * (1.0 - share) * (mean[name] - shared_mean[name]) ** 2
            for name in variance
        }

    def log_base(self, x: object) -> jax.Array:
        """(N,) log base measure of each row, that of the dependent model."""
        return self.dependent.log_base(x)

    def log_odds_of_terms(self, x: object, of: Array, against: Array) -> Cumulants:
        """(N, T) posterior cumulants of γ d, d the log odds of the term in the class `of` (N,) over `against` (N,).

        γ ~ Bernoulli(ρ) is whether the feature depends on the class, and d is taken under the dependent model.
        """
        dependent = self.dependent.log_odds_of_terms(x, of, against)
        m, v, third = dependent.mean, dependent.variance, dependent.third
        share = sigmoid(xp.asarray(self.log_odds))[: m.shape[-1]]
        between = share * (1.0 - share)
        third = share * third + between * m * (3.0 * v + (1.0 - 2.0 * share) * m**2)
        return Cumulants(share * m, share * v + between * m**2, third)

    def draw(self, variates: Variates, n: int) -> Any:
        """Likelihood with n draws (n, C, K): whether each feature depends on the class, then its parameters."""
        score = variates.normal(xp.asarray(self.log_odds), n)
        included = self._to_positions(_draw_inclusion(score, xp.asarray(self.log_odds)))[:, None]
        dependent, shared = self.dependent.draw(variates, n), self.shared.draw(_OfAllClasses(variates), n)
        return jax.tree.map(lambda a, b: xp.where(included, a, b), dependent, shared)

    def simulate(self, likelihood: object, rng: np.random.Generator, total: int | np.ndarray = 1) -> np.ndarray:
        """(S, K) simulated cells of one row for each of the S parameters in `likelihood`, which are of one class.

        `total` is the number of draws from a single group of levels; other rows do not depend on it.
        """
        return self.dependent.simulate(likelihood, rng, total)


@dataclass(frozen=True)
class _OfAllClasses(Variates):
    """Variates of a family over one class, to which the rows of all classes have added."""

    variates: Variates

    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of Gamma(a, 1) variates."""
        return self.variates.log_gamma(a, n, added and _of_all_classes(added))

    def normal(self, like: Array, n: int, added: Increments | None = None) -> jax.Array:
        """(n, *shape of like) standard normal variates."""
        return self.variates.normal(like, n, added and _of_all_classes(added))

    def log_gamma_ratio(self, a: Array, b: Array, n: int, index: Array, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of ratios of Gamma(a) to Gamma(b_k) variates, k the `index`."""
        return self.variates.log_gamma_ratio(a, b, n, index, added and _of_all_classes(added))


def _of_all_classes(added: Increments) -> Increments:
    """Increments by statistics (…, C, K) of all classes together."""
    return lambda statistics: added(map_leaves(lambda v: xp.sum(v, axis=-2, keepdims=True), statistics))


@pytree
class AveragedLevels(Averaged):
    """Average of dependent and shared Dirichlet models, for rows with one level per group."""

    @property
    def group(self) -> np.ndarray:
        """Group of each level, (L,)."""
        return self.dependent.group

    @property
    def concentration(self) -> Array:
        """Concentrations (C, L) of the dependent model."""
        return self.dependent.concentration

    def pad(self, extra: int) -> Self:
        """Copy with `extra` unused levels appended, in a group to which no row refers."""
        return type(self)(self.dependent.pad(extra), self.shared.pad(extra), np.pad(self.log_odds, (0, 1)))

    def update_keeping_prior(self, statistics: object) -> Self:
        """Posterior whose two models store prior and counts separately, so that rows can be left out without loss."""
        dependent = self.dependent.update_keeping_prior(statistics)
        shared = self.shared.update_keeping_prior(pooled(statistics))
        return type(self)(dependent, shared, self.update(statistics).log_odds)

    def mean(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood at the posterior means ρ E θ_cl + (1 - ρ) E θ_l.

        With `multiplicity` (C,) each row is first added to the data that many times, which changes the odds of
        dependence, too.
        """
        log_odds = self._to_positions(self.log_odds)
        if multiplicity is None:
            dependent, shared = self.dependent.mean().log_theta, self.shared.mean().log_theta
        else:
            dependent, gains = _log_proba_and_gain(self.dependent, multiplicity[:, None])
            shared, gain = _log_proba_and_gain(self.shared, xp.sum(multiplicity)[None, None])
            log_odds = log_odds + xp.sum(gains, axis=0) - gain[0]
        return Multinomial(_log_average(log_odds, dependent, shared))

    def predictive(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood with parameters integrated out, equal to `mean` because a row has one level per feature.

        With `multiplicity` (C,) each row is first added to each class's data that many times.
        """
        return self.mean(multiplicity)

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of Σ_f γ_f log p(x_f | class, θ_f), given the data and the row in class `counted_in`.

        γ_f is whether feature f depends on the class. Its odds are those given the row and its class: log odds_f + log
        p(x_f | class, D) - log p(x_f | D). `counted_in` (n, N, C) is true in the row's class; None: in no class.
        """
        rows = as_rows(x, self.group, self.dependent.num_groups)
        score = variates.normal(xp.asarray(self.log_odds), n)
        log_theta = self.dependent.draw(variates, n).log_theta
        if counted_in is None:
            included = self._to_positions(_draw_inclusion(score, xp.asarray(self.log_odds)))
            return rows.dot_each(xp.where(included[:, None], log_theta, 0.0))
        # As a row has one level per feature, one table for each class that a row may be in serves all rows; terms of
        # each row and feature would take five times longer.
        gain = self.dependent.mean().log_theta - self.shared.mean().log_theta
        log_odds, is_own = self._to_positions(self.log_odds) + gain, xp.eye(gain.shape[0], dtype=bool)[:, :, None]

        def draw_rows(draw: tuple[jax.Array, jax.Array, jax.Array, Array]) -> jax.Array:
            """(N, C) log likelihoods of all rows for one draw of the variates."""
            score, log_theta, with_row, counted_in = draw
            included = _draw_inclusion(self._to_positions(score), log_odds)
            tables = xp.where(included[:, None], xp.where(is_own, with_row, log_theta), 0.0)
            scores = rows.dot(rows.layout(tables.reshape(-1, tables.shape[-1]))).reshape(-1, *is_own.shape[:2])
            return xp.sum(xp.where(counted_in[:, :, None], scores, 0.0), axis=1)

        with_row = self.dependent.draw_level_marginals(variates, n, 1.0)
        return map_leading_axis(draw_rows, (score, log_theta, with_row, counted_in))

    def _to_positions(self, values: Array) -> jax.Array:
        """Repeat values of the features (…, F) at each of their levels, (…, L)."""
        return xp.asarray(values)[..., self.group]


@pytree
class AveragedCells(Averaged):
    """Average of dependent and shared models of numbers."""

    def restrict(self, keep: np.ndarray) -> Self:
        """Distribution of the parameters of the features `keep` (F,) of bool."""
        return type(self)(self.dependent.restrict(keep), self.shared.restrict(keep), np.asarray(self.log_odds)[keep])

    def mean(self, multiplicity: Array | None = None) -> Mixture:
        """Mixture of both models at their means; -1 in `multiplicity` (C,) leaves each scored row out."""
        return Mixture(self, "mean", multiplicity)

    def predictive(self, multiplicity: Array | None = None) -> Mixture:
        """Mixture of both models' predictives; -1 in `multiplicity` (C,) leaves each scored row out."""
        return Mixture(self, "predictive", multiplicity)

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of Σ_f γ_f log p(x_f | class, θ_f), given the data and the row in class `counted_in`.

        γ_f is whether feature f depends on the class. Its odds are those given the row and its class: log odds_f + log
        p(x_f | class, D) - log p(x_f | D). `counted_in` (n, N, C) is true in the row's class; None: in no class.
        """
        score = variates.normal(xp.asarray(self.log_odds), n)
        drawn, terms = self.dependent.draw_terms(variates, n, x, 0.0)
        with_row, terms_with_row = drawn, terms
        if counted_in is not None:
            with_row, terms_with_row = self.dependent.draw_terms(variates, n, x, 1.0)
            gain = self.dependent.predictive().terms(x) - self.shared.predictive().terms(x)

        def draw_rows(draw: tuple[jax.Array, tuple[Array, ...], tuple[Array, ...], Array | None]) -> jax.Array:
            """(N, C) log likelihoods of all rows for one draw of the variates."""
            score, drawn, with_row, counted_in = draw
            of_cells = terms(*drawn)
            log_odds = xp.asarray(self.log_odds)[None]
            if counted_in is not None:
                counted = counted_in[:, :, None]
                of_cells = xp.where(counted, terms_with_row(*with_row), of_cells)
                log_odds = log_odds + xp.sum(xp.where(counted, gain, 0.0), axis=1)
            included = _draw_inclusion(score, log_odds)
            return xp.sum(xp.where(included[:, None], of_cells, 0.0), axis=-1)

        return map_leading_axis(draw_rows, (score, drawn, with_row, counted_in))

    def _to_positions(self, values: Array) -> jax.Array:
        """Return the values unchanged: a feature of numbers has one position."""
        return xp.asarray(values)


@pytree
class EmpiricalAveraged(EmpiricalPrior):
    """Empirical-Bayes prior of `AveragedCells`: `prior` of both models, `log_odds` (F,) of dependence."""

    prior: EmpiricalPrior
    log_odds: Array

    def __call__(self, statistics: object, together: object) -> AveragedCells:
        """Prior derived from the statistics of each class (C, F), and of all classes together (1, F)."""
        family = self.prior(statistics, together)
        return AveragedCells(family, jax.tree.map(lambda field: field[:1], family), self.log_odds)


def averaged(family: Family | EmpiricalPrior, log_odds: np.ndarray) -> Averaged | EmpiricalAveraged:
    """Average of a family over C classes and of the same family over one class, with `log_odds` (F,) of dependence.

    The average of a prior that is derived from data is a prior of that type, too.

    Raises
    ------
    ValueError
        If the family is not the same in all classes.
    """
    if any(np.ndim(leaf) >= 2 and (leaf != leaf[:1]).any() for leaf in jax.tree.leaves(family)):
        raise ValueError(
            "The prior differs between classes; FeatureAveragedNB needs the same prior in all. Pass alpha, or the "
            "parameters of the prior, without a class axis."
        )
    if isinstance(family, EmpiricalPrior):
        return EmpiricalAveraged(family, log_odds)
    kind = AveragedLevels if isinstance(family, Dirichlet) else AveragedCells
    return kind(family, jax.tree.map(lambda v: v[:1], family), log_odds)


@pytree
class Mixture(ReadyLikelihood):
    """Likelihood Σ_f log[ρ_f p(x_f | class) + (1 - ρ_f) p(x_f)] of numbers, averaged over both models of each feature.

    `reading` is "mean" or "predictive". With `multiplicity` (C,) each row is first added to the data of each class that
    many times, which changes ρ, too.
    """

    posterior: AveragedCells
    reading: str = static()
    multiplicity: Array | None = None

    def parameters(self) -> dict[str, jax.Array]:
        """Posterior means ρ E + (1 - ρ) E_shared of each parameter, (C, F), by name."""
        share = self.posterior.inclusion()
        mean, shared_mean = (f.mean().parameters() for f in (self.posterior.dependent, self.posterior.shared))
        return {name: share * mean[name] + (1.0 - share) * shared_mean[name] for name in mean}

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class), the sum of the terms, without the base measure."""
        return xp.sum(self.terms(x), axis=-1)

    def terms(self, x: object) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log[ρ_f p(x_f | class) + (1 - ρ_f) p(x_f)]; 0 for missing cells."""
        dependent, shared, log_odds = self.posterior.dependent, self.posterior.shared, self.posterior.log_odds
        more = self.multiplicity
        readings = (dependent, more), (shared, None if more is None else xp.sum(more)[None])
        by_class, of_all = (getattr(family, self.reading)(copies).terms(x) for family, copies in readings)
        seen, x = observed(x)
        if more is not None:
            gain = xp.sum(_gain_of_cells(dependent, x, more), axis=0)
            log_odds = log_odds + gain - _gain_of_cells(shared, x, xp.sum(more)[None])[0]
        return only(seen[:, None], _log_average(xp.broadcast_to(log_odds, x.shape)[:, None], by_class, of_all))


def _gain_of_cells(family: IndependentCells, x: jax.Array, multiplicity: Array) -> jax.Array:
    """(C, N, F) change of the log evidence when `multiplicity` (C,) <= 0 copies of each cell of x (N, F) are added."""
    more = multiplicity[:, None, None]
    return -family.with_row(x, more).log_evidence_of_cell(x, -more)


def _log_proba_and_gain(posterior: Dirichlet | PriorAndCounts, multiplicity: Array) -> tuple[jax.Array, jax.Array]:
    """(C, L) log probability of each level after `multiplicity` <= 0 copies of it, and change of log evidence."""
    kept = keep_counts(posterior)
    left, total_left = (with_counts(*counted, multiplicity) for counted in kept.levels_and_totals())
    total_left = total_left[:, kept.group]
    possible = left > 0  # a level that stands fewer times among the data is of no row
    log_proba = xp.log(xp.where(possible, left, 0.0) / total_left)
    present = xp.where(possible, left, 1.0)
    gain = xp.subtract(log_rising(total_left, -multiplicity), log_rising(present, -multiplicity))
    return log_proba, gain


def _log_average(log_odds: Array, dependent: jax.Array, shared: jax.Array) -> jax.Array:
    """Compute log[ρ exp(dependent) + (1 - ρ) exp(shared)] elementwise, ρ the sigmoid of `log_odds`."""
    log_odds = xp.asarray(log_odds)
    return xp.logaddexp(log_sigmoid(log_odds) + dependent, log_sigmoid(-log_odds) + shared)


def _draw_inclusion(score: jax.Array, log_odds: jax.Array) -> jax.Array:
    """Array of bool: Bernoulli draws with the given log odds, computed from standard normal variates `score`."""
    return log_ndtr(score) < log_sigmoid(log_odds)


@kernel
def _log_evidences(dependent: Family, shared: Family, counted: object, together: object) -> tuple[jax.Array, jax.Array]:
    """(F,) log evidence of the dependent model, summed over the classes, and of the shared model.

    `counted` are the statistics of each class, and `together` those of all classes pooled.
    """
    return xp.sum(dependent.log_evidence(counted), axis=0), shared.log_evidence(together)[0]


# == Weighted likelihoods: each term, or the whole of a row, to a power ============================


@pytree
class Raised:
    """Likelihood Π_t p(x_t | class)^(w_t) with a weight per term, `weight` (T,), or per class and term, (C, T)."""

    likelihood: Any
    weight: Array

    def prepare(self, x: object) -> Self | Tabulated:
        """Return an equal likelihood as one table if rows encoded like `x` have one draw per group; else itself."""
        if isinstance(x, OneDrawEach) and isinstance(self.likelihood, Multinomial | Ratio):
            return Tabulated(x.layout(x.weigh(self.likelihood.single(), self.weight)), None, None)
        return self

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) Σ_t w_t log p(x_t | class); -inf if any term is -inf, even beside +inf or NaN."""
        terms = self.terms(x)
        return xp.where(xp.any(xp.isneginf(terms), axis=-1), -xp.inf, xp.sum(terms, axis=-1))

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, T) w_t log p(x_t | class); 0 where w_t = 0, and -inf where log p is -inf, also for w_t < 0."""
        weight, terms = xp.asarray(self.weight), self.likelihood.terms(x)
        return weighted(weight, _for_each_draw(terms, len(weight)) if weight.ndim == 2 else terms)


@pytree
class Tempered:
    """Likelihood p(row | class)^w with w = `power` · (t + 1)^(-`exponent`) for a row of t draws; None: w = `power`.

    `power` is a number, or (C,) one per class.
    """

    likelihood: Any
    power: Array
    exponent: float | Array | None = None

    def prepare(self, x: object) -> Tempered:
        """Return an equal likelihood with tables rearranged for rows encoded like `x`."""
        return Tempered(self.likelihood.prepare(x), self.power, self.exponent)

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) w log p(row | class)."""
        weight = self._row_weight(x)
        return weighted(weight, _for_each_draw(self.likelihood.log_prob(x), weight.shape[1]))

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, T) w log p(x_t | class), w the weight of the row by its number of draws; 0 where w = 0."""
        return weighted(self._row_weight(x)[..., None], self.likelihood.terms(x))

    def _row_weight(self, x: object) -> Float[jax.Array, "#N #C"]:
        """(N, C) exponent w of each row and class; axes have length 1 along which it does not vary."""
        weight = length_power(x, self.power, self.exponent)
        return weight.reshape(len(weight), -1)


def _for_each_draw(values: Array, n_classes: int) -> Array:
    """Repeat values (N, C, …) that all draws share to `n_classes` = S · C classes, those of S draws of weights."""
    n_draws = max(1, n_classes // values.shape[1])
    return values if n_draws == 1 else xp.tile(values, (1, n_draws, *[1] * (values.ndim - 2)))


def length_power(x: object, power: Array, exponent: float | Array | None) -> Float[jax.Array, "#N ..."]:
    """(N, …) weight power · (t + 1)^(-exponent) of each row x, t its number of draws; (1, …) power without exponent."""
    if exponent is None:
        return xp.asarray(power)[None]
    rows: Any = as_rows(x)
    return power_of_length(rows.length().reshape(-1, *(1,) * xp.ndim(power)), power, exponent)


def power_of_length(length: Array, power: float | Array, exponent: float | Array | None) -> Any:
    """(N,) weight power · (t + 1)^(-exponent), given the numbers of draws t `length` (N,); exponent None: power."""
    return power + 0.0 * length if exponent is None else power * (length + 1.0) ** -exponent
