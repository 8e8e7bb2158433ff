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

from bayesnb.families._pytree import pytree, static
from bayesnb.families._typed import map_leading_axis, map_leaves
from bayesnb.families.count_rows import as_rows
from bayesnb.families.dirichlet import Dirichlet, PriorAndCounts, keep_counts
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.independent_cells import CellReduction
from bayesnb.families.multinomial import Multinomial
from bayesnb.families.number_rows import observed, only, sum_cells
from bayesnb.families.protocol import Cumulants, Family, Likelihood, PenalizedLikelihood, ReadyLikelihood
from bayesnb.families.special import log_rising
from bayesnb.families.statistics import pooled
from bayesnb.families.variates import Recorder, Replayer, Variates


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
    log_odds: Any

    @property
    def statistics(self) -> Any:
        """Type of the sufficient statistics."""
        return self.dependent.statistics

    @property
    def likelihood(self) -> Any:
        """Type of the likelihood with parameters plugged in."""
        return self.dependent.likelihood

    @abstractmethod
    def mean(self, multiplicity: Any = None) -> Likelihood:
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

    def scale(self, factor: Any) -> Self:
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

    def log_base(self, x: Any) -> jax.Array:
        """(N,) log base measure of each row."""
        log_base: jax.Array = self.dependent.log_base(x)
        return log_base

    def log_odds_of_terms(self, x: Any, of: Any, against: Any) -> Cumulants:
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

    def simulate(self, likelihood: Any, rng: Any, total: int = 1) -> np.ndarray:
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

    def restrict(self, keep: np.ndarray) -> Self:
        """Distribution of the levels `keep` (L,)."""
        features = np.unique(np.asarray(self.group)[keep])
        return type(self)(self.dependent.restrict(keep), self.shared.restrict(keep), self.log_odds[features])

    def pad(self, extra: int) -> Self:
        """Add `extra` levels that no row refers to."""
        return type(self)(self.dependent.pad(extra), self.shared.pad(extra), np.pad(self.log_odds, (0, 1)))

    def update_keeping_prior(self, statistics: Any) -> Self:
        """Posterior whose models keep their priors and counts separate."""
        dependent = self.dependent.update_keeping_prior(statistics)
        shared = self.shared.update_keeping_prior(pooled(statistics))
        return type(self)(dependent, shared, self.update(statistics).log_odds)

    def mean(self, multiplicity: Any = None) -> Multinomial:
        """Means ρ E θ_cl + (1 - ρ) E θ_l; with a `multiplicity` (C,) of each row the odds change with its level too."""
        log_odds = self._spread(self.log_odds)
        if multiplicity is None:
            dependent, shared = self.dependent.mean().log_theta, self.shared.mean().log_theta
        else:
            dependent, gains = _with_level(self.dependent, multiplicity[:, None])
            shared, gain = _with_level(self.shared, jnp.sum(multiplicity)[None, None])
            log_odds = log_odds + jnp.sum(gains, axis=0) - gain[0]
        return Multinomial(_log_average(log_odds, dependent, shared))

    def predictive(self, multiplicity: Any = None) -> Multinomial:
        """Likelihood with parameters integrated out: the mean, as a row has one level a feature."""
        return self.mean(multiplicity)

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, counted_in: Any = None) -> jax.Array:
        """(n, N, C) draws, inclusion first, of Σ_f γ_f log p(x_f | class, θ_f).

        The odds of inclusion are those given the row and its class, `counted_in`: log odds_f + log p(x_f | class, D)
        - log p(x_f | D). A row has one level a feature, so that there is a table of levels for each class it may be in.
        """
        rows = as_rows(x, self.group, self.dependent.num_groups)
        score = variates.normal(jnp.asarray(self.log_odds), n)
        log_theta = self.dependent.draw(variates, n).log_theta

        if counted_in is None:
            included = self._spread(_included(score, jnp.asarray(self.log_odds)))
            return rows.dot_each(jnp.where(included[:, None], log_theta, 0.0))
        gain = self.dependent.mean().log_theta - self.shared.mean().log_theta
        log_odds, each = self._spread(self.log_odds) + gain, jnp.eye(gain.shape[0], dtype=bool)[:, :, None]

        def draw_rows(draw: tuple[jax.Array, ...]) -> jax.Array:
            score, log_theta, level, others, counted_in = draw
            informed = jnp.where(each, level - jnp.logaddexp(level, others), log_theta)
            tables = jnp.where(_included(self._spread(score), log_odds)[:, None], informed, 0.0)
            scores = rows.dot(rows.layout(tables.reshape(-1, tables.shape[-1]))).reshape(-1, *each.shape[:2])
            return jnp.sum(jnp.where(counted_in[:, :, None], scores, 0.0), axis=1)

        marginals = self.dependent.draw_level_marginals(variates, n, 1.0)
        return map_leading_axis(draw_rows, (score, log_theta, *marginals, counted_in))

    def _spread(self, values: Any) -> jax.Array:
        return jnp.asarray(values)[..., self.group]


@pytree
class AveragedCells(Averaged):
    """Average for blocks of numbers."""

    def restrict(self, keep: np.ndarray) -> Self:
        """Distribution of the features `keep` (F,)."""
        return map_leaves(lambda field: np.asarray(field)[..., keep], self)

    def mean(self, multiplicity: Any = None) -> Mixture:
        """Mixture of both models at their means, with a `multiplicity` (C,) of each row."""
        return Mixture(self, "mean", multiplicity)

    def predictive(self, multiplicity: Any = None) -> Mixture:
        """Mixture of both models with parameters integrated out, with a `multiplicity` (C,) of each row."""
        return Mixture(self, "predictive", multiplicity)

    def draw_log_likelihood(self, variates: Variates, n: int, x: Any, counted_in: Any = None) -> jax.Array:
        """(n, N, C) draws, inclusion first, of Σ_f γ_f log p(x_f | class, θ_f), the row counted in class `counted_in`.

        For the dependent model a feature that is not included is a missing cell.
        """
        score, noted = variates.normal(jnp.asarray(self.log_odds), n), Recorder(variates)
        self.dependent.draw_log_likelihood(noted, n, x, counted_in)  # to record which variates it takes
        seen, values = observed(x)
        gain = self._log_predictive(self.dependent, values) - self._log_predictive(self.shared, values)

        def draw_rows(draw: tuple[jax.Array, Any, jax.Array | None]) -> jax.Array:
            score, given, counted_in = draw
            log_odds = jnp.asarray(self.log_odds)
            if counted_in is not None:
                log_odds = log_odds + jnp.sum(jnp.where(counted_in.T[:, :, None], gain, 0.0), axis=0)
            included = _included(score, log_odds)
            given, counted_in = jax.tree.map(lambda v: v[None], (given, counted_in))
            cells = jnp.where(seen & included, values, jnp.nan)
            scores: jax.Array = self.dependent.draw_log_likelihood(Replayer(given), 1, cells, counted_in)[0]
            return scores

        return map_leading_axis(draw_rows, (score, noted.given, counted_in))

    def _log_predictive(self, family: Any, x: jax.Array) -> Float[jax.Array, "C N F"]:
        """(C, N, F) log p(x_f | class, D)."""
        classes = jax.tree.map(jnp.asarray, family)
        log_predictive: jax.Array = jax.vmap(lambda of_class: of_class.predictive().cells(x))(classes)
        return log_predictive

    def _spread(self, values: Any) -> Any:
        return values


@pytree
class EmpiricalAveraged(EmpiricalPrior):
    """Average of a `prior` for each class and for all classes: `log_odds` (F,) that features depend on the class."""

    prior: Any
    log_odds: Any

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
    multiplicity: Any = None

    def parameters(self) -> dict[str, jax.Array]:
        """Means ρ E + (1 - ρ) E_shared by name."""
        share = self.posterior.inclusion()
        mean, shared_mean = (f.mean().parameters() for f in (self.posterior.dependent, self.posterior.shared))
        return {name: share * mean[name] + (1.0 - share) * shared_mean[name] for name in mean}

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class)."""
        return self._reduce(sum_cells, x)

    def terms(self, x: Any) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log[ρ_f p(x_f | class) + (1 - ρ_f) p(x_f)]."""
        return self._reduce(only, x)

    def _reduce(self, reduce: CellReduction, x: Any) -> jax.Array:
        seen, x = observed(x)
        log_odds, dependent = self.posterior.log_odds, self.posterior.dependent
        shared = _take_class(0, self.posterior.shared)
        if self.multiplicity is not None:
            n_classes = self.multiplicity.shape[0]
            gains = [_gain_of_cell(_take_class(c, dependent), x, self.multiplicity[c]) for c in range(n_classes)]
            log_odds = log_odds + sum(gains) - _gain_of_cell(shared, x, jnp.sum(self.multiplicity))
            shared = shared.with_cell(x, jnp.sum(self.multiplicity))
        shared_cells = getattr(shared, self.reading)().cells(x)

        def one_class(family: Any, multiplicity: Any) -> jax.Array:
            family = family if multiplicity is None else family.with_cell(x, multiplicity)
            cells = getattr(family, self.reading)().cells(x)
            return reduce(seen, _log_average(log_odds, cells, shared_cells))

        return jax.vmap(one_class, in_axes=(0, None if self.multiplicity is None else 0), out_axes=1)(
            dependent, self.multiplicity
        )


def _gain_of_cell(family: Any, x: jax.Array, multiplicity: jax.Array) -> jax.Array:
    """(N, F) increase of the log evidence of a class by each cell `multiplicity` <= 0 more times among its data."""
    gain: jax.Array = -family.with_cell(x, multiplicity).log_evidence_of_cell(x, -multiplicity)
    return gain


def _with_level(posterior: Dirichlet | PriorAndCounts, multiplicity: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(C, L) log probability of each level `multiplicity` <= 0 more times among the data; increase of the evidence."""
    left, total_left = keep_counts(posterior).with_level(multiplicity)
    possible = left > 0  # a level that stands fewer times among the data is of no row
    log_proba = jnp.log(jnp.where(possible, left, 0.0) / total_left)
    present = jnp.where(possible, left, 1.0)
    gain: Any = log_rising(total_left, -multiplicity) - log_rising(present, -multiplicity)
    return log_proba, gain


def _take_class(c: int, family: Any) -> Any:
    return jax.tree.map(lambda field: jnp.asarray(field)[c], family)


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
