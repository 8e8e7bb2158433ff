"""Features that may not depend on the class: averages of the model in which they do and the one in which not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid
from jaxtyping import Float

from bayesnb.families._pytree import Array, map_leading_axis, map_leaves, pytree, static
from bayesnb.families.count_functions import with_counts
from bayesnb.families.dirichlet import Dirichlet, PriorAndCounts, keep_counts
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.independent_cells import IndependentCells, with_axis_of_rows
from bayesnb.families.multinomial import Multinomial
from bayesnb.families.number_rows import observed, only
from bayesnb.families.protocol import Cumulants, Family, Likelihood, PenalizedLikelihood, ReadyLikelihood
from bayesnb.families.special import log_rising
from bayesnb.families.statistics import pooled
from bayesnb.families.variates import Variates


@pytree
class Averaged(Family):
    """Features with parameters for each class, or with the same parameters in all classes: both models, averaged.

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
    reasons: ClassVar[dict[type, str]] = {
        PenalizedLikelihood: (
            "Two models of unlike number of parameters are averaged, and no density compares them: give EM the plain "
            "classifier, without the average."
        )
    }

    dependent: Any
    shared: Any
    log_odds: Array

    @property
    def statistics(self) -> Any:
        """Type of the sufficient statistics."""
        return self.dependent.statistics

    @property
    def likelihood(self) -> Any:
        """Type of the likelihood with parameters plugged in."""
        return self.dependent.likelihood

    @abstractmethod
    def mean(self, multiplicity: Array | None = None) -> Likelihood:
        """Likelihood at the posterior means, of each row's own posterior with a `multiplicity` (C,)."""

    @abstractmethod
    def _spread(self, values: Any) -> Any:
        """Values of features (…, F) at each position of the last axis of the parameters."""

    def update(self, statistics: Any) -> Self:
        """Posterior: log odds' = log odds + log p(D | dependent) - log p(D | shared)."""
        together = pooled(statistics)
        evidence, shared_evidence = _log_evidences(self.dependent, self.shared, statistics, together)
        log_odds = self.log_odds + evidence - shared_evidence
        return type(self)(self.dependent.update(statistics), self.shared.update(together), log_odds)

    def log_evidence(self, statistics: Any) -> jax.Array:
        """(1, K) log[ρ p(D | dependent) + (1 - ρ) p(D | shared)]."""
        evidences = _log_evidences(self.dependent, self.shared, statistics, pooled(statistics))
        return _log_average(self.log_odds, *evidences)[None]

    def scale(self, factor: float | Array) -> Self:
        """Prior worth `factor` times as many rows; the odds stay."""
        return type(self)(self.dependent.scale(factor), self.shared.scale(factor), self.log_odds)

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Return the prior as it is: it has no tunable hyperparameters."""
        return self

    def n_free(self) -> int:
        """Number of free parameters of the model in which each feature depends on the class."""
        n_free: int = self.dependent.n_free()
        return n_free

    def proper(self) -> jax.Array:
        """Whether the distributions of both models are proper."""
        proper: jax.Array = self.dependent.proper() & self.shared.proper()
        return proper

    def inclusion(self) -> Float[jax.Array, "K"]:
        """(K,) probability of dependence, at each position of the last axis of the parameters."""
        inclusion: jax.Array = self._spread(jax.nn.sigmoid(jnp.asarray(self.log_odds)))
        return inclusion

    def improper(self) -> Any:
        """Improper prior of the model in which each feature depends on the class."""
        return self.dependent.improper()

    def mode(self) -> Any:
        """NaN: densities over parameters of unlike number have no common maximum."""
        return jax.tree.map(lambda v: jnp.full_like(v, jnp.nan), self.dependent.mode())

    def pseudo_count(self) -> dict[str, Any]:
        """NaN: the mean is not linear in the counts."""
        return {name: jnp.full_like(v, jnp.nan) for name, v in self.variance().items()}

    def components(self) -> list[tuple[Any, Any]]:
        """Both models, with their probabilities (K,)."""
        share = self.inclusion()
        return [(share, self.dependent), (1.0 - share, self.shared)]

    def variance(self) -> dict[str, jax.Array]:
        """Variances ρ V + (1 - ρ) V_shared + ρ (1 - ρ) (E - E_shared)²."""
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
        """(N,) log base measure of each row."""
        log_base: jax.Array = self.dependent.log_base(x)
        return log_base

    def log_odds_of_terms(self, x: object, of: Any, against: Any) -> Cumulants:
        """(N, T) cumulants of γ d, γ ~ Bernoulli(ρ) and d the log odds if the feature depends on the class."""
        dependent = self.dependent.log_odds_of_terms(x, of, against)
        m, v, third = dependent.mean, dependent.variance, dependent.third
        share = jax.nn.sigmoid(jnp.asarray(self.log_odds))[: m.shape[-1]]
        between = share * (1.0 - share)
        third = share * third + between * m * (3.0 * v + (1.0 - 2.0 * share) * m**2)
        return Cumulants(share * m, share * v + between * m**2, third)

    def draw(self, variates: Variates, n: int) -> Any:
        """n draws: inclusion first, then parameters of that model."""
        score = variates.normal(jnp.asarray(self.log_odds), n)
        included = self._spread(_included(score, jnp.asarray(self.log_odds)))[:, None]
        dependent, shared = self.dependent.draw(variates, n), self.shared.draw(variates, n)
        return jax.tree.map(lambda a, b: jnp.where(included, a, b), dependent, shared)

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws, inclusion first, of Σ_f γ_f log p(x_f | class, θ_f), the row counted in class `counted_in`.

        The odds of inclusion are those given the row and its class: log odds_f + log p(x_f | class, D)
        - log p(x_f | D).
        """
        score = variates.normal(jnp.asarray(self.log_odds), n)
        drawn, terms = self.dependent.draw_terms(variates, n, x, 0.0)
        with_row, terms_with_row = drawn, terms
        if counted_in is not None:
            with_row, terms_with_row = self.dependent.draw_terms(variates, n, x, 1.0)
            gain = self.dependent.predictive().terms(x) - self.shared.predictive().terms(x)

        def draw_rows(draw: tuple[jax.Array, Any, Any, jax.Array | None]) -> jax.Array:
            score, drawn, with_row, counted_in = draw
            of_cells = terms(*drawn)
            n_terms = of_cells.shape[-1]
            log_odds = jnp.asarray(self.log_odds)[None, :n_terms]
            if counted_in is not None:
                counted = counted_in[:, :, None]
                of_cells = jnp.where(counted, terms_with_row(*with_row), of_cells)
                log_odds = log_odds + jnp.sum(jnp.where(counted, gain, 0.0), axis=1)
            included = _included(score[:n_terms], log_odds)
            return jnp.sum(jnp.where(included[:, None], of_cells, 0.0), axis=-1)

        return map_leading_axis(draw_rows, (score, drawn, with_row, counted_in))

    def simulate(self, likelihood: Any, rng: np.random.Generator, total: int = 1) -> np.ndarray:
        """(S, K) cells of one row for each of S parameters of one class."""
        cells: np.ndarray = self.dependent.simulate(likelihood, rng, total)
        return cells


@pytree
class AveragedLevels(Averaged):
    """Average for Dirichlet blocks in which a row has one level a group."""

    @property
    def group(self) -> Any:
        """Group of each level."""
        return self.dependent.group

    @property
    def concentration(self) -> Any:
        """Concentrations of the model in which each feature depends on the class."""
        return self.dependent.concentration

    def pad(self, extra: int) -> Self:
        """Add `extra` levels that no row refers to."""
        return type(self)(self.dependent.pad(extra), self.shared.pad(extra), np.pad(self.log_odds, (0, 1)))

    def update_keeping_prior(self, statistics: Any) -> Self:
        """Posterior whose models keep their priors and counts separate."""
        dependent = self.dependent.update_keeping_prior(statistics)
        shared = self.shared.update_keeping_prior(pooled(statistics))
        return type(self)(dependent, shared, self.update(statistics).log_odds)

    def mean(self, multiplicity: Array | None = None) -> Multinomial:
        """Means ρ E θ_cl + (1 - ρ) E θ_l; with a `multiplicity` (C,) of each row the odds change with its level too."""
        log_odds = self._spread(self.log_odds)
        if multiplicity is None:
            dependent, shared = self.dependent.mean().log_theta, self.shared.mean().log_theta
        else:
            dependent, gains = _with_level(self.dependent, multiplicity[:, None])
            shared, gain = _with_level(self.shared, jnp.sum(multiplicity)[None, None])
            log_odds = log_odds + jnp.sum(gains, axis=0) - gain[0]
        return Multinomial(_log_average(log_odds, dependent, shared))

    def predictive(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood with parameters integrated out: the mean, as a row has one level a feature."""
        return self.mean(multiplicity)

    def _spread(self, values: Any) -> jax.Array:
        return jnp.asarray(values)[..., self.group]


@pytree
class AveragedCells(Averaged):
    """Average for blocks of numbers."""

    def restrict(self, keep: np.ndarray) -> Self:
        """Distribution of the features `keep` (F,)."""
        return map_leaves(lambda field: np.asarray(field)[..., keep], self)

    def mean(self, multiplicity: Array | None = None) -> Mixture:
        """Mixture of both models at their means, with a `multiplicity` (C,) of each row."""
        return Mixture(self, "mean", multiplicity)

    def predictive(self, multiplicity: Array | None = None) -> Mixture:
        """Mixture of both models with parameters integrated out, with a `multiplicity` (C,) of each row."""
        return Mixture(self, "predictive", multiplicity)

    def _spread(self, values: Any) -> Any:
        return values


@pytree
class EmpiricalAveraged(EmpiricalPrior):
    """Average of a `prior` for each class and for all classes: `log_odds` (F,) that features depend on the class."""

    prior: Any
    log_odds: Array

    def __call__(self, statistics: Any, together: Any) -> AveragedCells:
        """Prior, given the statistics of each class and of all classes together."""
        family = self.prior(statistics, together)
        return AveragedCells(family, jax.tree.map(lambda field: field[:1], family), self.log_odds)


def averaged(family: Any, log_odds: np.ndarray) -> Averaged:
    """Average of a family over all classes and of the same family over one class.

    Raises
    ------
    ValueError
        If the family is not the same in all classes.
    """
    values = [np.asarray(getattr(family, field.name)) for field in fields(family)]
    if any((v != v[:1]).any() for v in values if v.ndim == 2):
        raise ValueError(
            "The prior differs between classes, and FeatureAveragedNB needs one for all classes together: give alpha, "
            "or the prior's fields, without a class axis."
        )
    if isinstance(family, Dirichlet):
        return AveragedLevels(family, Dirichlet(family.concentration[:1], family.group, family.num_groups), log_odds)
    return AveragedCells(family, jax.tree.map(lambda v: v[:1], family), log_odds)


@pytree
class Mixture(ReadyLikelihood):
    """Likelihood Σ_f log[ρ_f p(x_f | class) + (1 - ρ_f) p(x_f)], each row `multiplicity` more times among the data."""

    posterior: AveragedCells
    reading: str = static()
    multiplicity: Array | None = None

    def parameters(self) -> dict[str, jax.Array]:
        """Means ρ E + (1 - ρ) E_shared by name."""
        share = self.posterior.inclusion()
        mean, shared_mean = (f.mean().parameters() for f in (self.posterior.dependent, self.posterior.shared))
        return {name: share * mean[name] + (1.0 - share) * shared_mean[name] for name in mean}

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class)."""
        return jnp.sum(self.terms(x), axis=-1)

    def terms(self, x: object) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log[ρ_f p(x_f | class) + (1 - ρ_f) p(x_f)]."""
        dependent, shared, log_odds = self.posterior.dependent, self.posterior.shared, self.posterior.log_odds
        multiplicity = self.multiplicity
        total = None if multiplicity is None else jnp.sum(multiplicity)[None]
        readings = ((dependent, multiplicity), (shared, total))
        by_class, of_all = (getattr(family, self.reading)(more).terms(x) for family, more in readings)
        seen, x = observed(x)
        if multiplicity is not None and total is not None:
            gain = jnp.sum(_gain_of_cells(dependent, x, multiplicity), axis=0)
            log_odds = log_odds + gain - _gain_of_cells(shared, x, total)[0]
        return only(seen[:, None], _log_average(jnp.broadcast_to(log_odds, x.shape)[:, None], by_class, of_all))


def _gain_of_cells(family: IndependentCells, x: jax.Array, multiplicity: Array) -> jax.Array:
    """(C, N, F) increase of the log evidence by each cell `multiplicity` (C,) <= 0 more times among the data."""
    more = multiplicity[:, None, None]
    return -with_axis_of_rows(family).with_cell(x, more).log_evidence_of_cell(x, -more)


def _with_level(posterior: Dirichlet | PriorAndCounts, multiplicity: Array) -> tuple[jax.Array, jax.Array]:
    """(C, L) log probability of each level `multiplicity` <= 0 more times among the data; increase of the evidence."""
    kept = keep_counts(posterior)
    left, total_left = (with_counts(*counted, multiplicity) for counted in kept.levels_and_totals())
    total_left = total_left[:, kept.group]
    possible = left > 0  # a level that stands fewer times among the data is of no row
    log_proba = jnp.log(jnp.where(possible, left, 0.0) / total_left)
    present = jnp.where(possible, left, 1.0)
    gain: Any = log_rising(total_left, -multiplicity) - log_rising(present, -multiplicity)
    return log_proba, gain


def _log_average(log_odds: Any, dependent: jax.Array, shared: jax.Array) -> jax.Array:
    """Compute log[ρ exp(dependent) + (1 - ρ) exp(shared)]."""
    log_odds = jnp.asarray(log_odds)
    return jnp.logaddexp(log_sigmoid(log_odds) + dependent, log_sigmoid(-log_odds) + shared)


def _included(score: jax.Array, log_odds: jax.Array) -> jax.Array:
    """Inclusion with given log odds, as a function of standard normal variates."""
    return jax.scipy.stats.norm.logcdf(score) < log_sigmoid(log_odds)


@jax.jit
def _log_evidences(dependent: Any, shared: Any, statistics: Any, together: Any) -> tuple[jax.Array, jax.Array]:
    return jnp.sum(dependent.log_evidence(statistics), axis=0), shared.log_evidence(together)[0]
