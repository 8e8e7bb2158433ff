"""Features of which it is not known whether they depend on the class: both models, averaged."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid
from jaxtyping import Float

from bayesnb.families._pytree import pytree, static
from bayesnb.families.cells import observed, only, sum_cells
from bayesnb.families.conjugate import Conjugate
from bayesnb.families.conjugate import pooled as _pooled
from bayesnb.families.count_matrix import as_rows
from bayesnb.families.dirichlet import Dirichlet
from bayesnb.families.dirichlet_draws import draw_marginals
from bayesnb.families.empirical import EmpiricalPrior
from bayesnb.families.leave_one_out import OfCells
from bayesnb.families.multinomial import Multinomial
from bayesnb.families.protocol import Cumulants
from bayesnb.families.special import log_rising
from bayesnb.families.variates import Recorder, Replayer, Variates


@pytree
class Averaged(Conjugate):
    """Each feature has parameters of its own in every class, or the same in all of them.

    A mixture of two conjugate families is conjugate: data update both, and the odds of dependence by the Bayes factor.
    Over F features that is the average over all 2^F sets of features that depend on the class.

    Parameters
    ----------
    dependent, shared : families
        Over C classes, and over one.
    log_odds : (K,) array
        Of dependence, for each feature.

    References
    ----------
    Dash & Cooper, *Exact model averaging with naive Bayesian classifiers*, ICML 2002.
    """

    classes_share_parameters: ClassVar[bool] = True

    dependent: Any
    shared: Any
    log_odds: Any

    @property
    def statistics(self) -> type:
        return self.dependent.statistics

    @property
    def likelihood(self) -> type:
        return self.dependent.likelihood

    def update(self, statistics: Any) -> Self:
        """log odds' = log odds + log p(D | dependent) - log p(D | shared)."""
        pooled = _pooled(statistics)
        apart, together = self._log_evidences(statistics, pooled)
        return type(self)(
            self.dependent.update(statistics), self.shared.update(pooled), self.log_odds + apart - together
        )

    def log_evidence(self, statistics: Any) -> jax.Array:
        """(1, K) log[ρ p(D | dependent) + (1 - ρ) p(D | shared)]."""
        return self._mixed(self.log_odds, *self._log_evidences(statistics, _pooled(statistics)))[None]

    def scale(self, factor: Any) -> Self:
        """Priors that count for `factor` times as many rows; the odds stay."""
        return type(self)(self.dependent.scale(factor), self.shared.scale(factor), self.log_odds)

    def n_free(self) -> int:
        """Those of the model in which each feature depends on the class."""
        return self.dependent.n_free()

    def proper(self) -> jax.Array:
        return self.dependent.proper() & self.shared.proper()

    def inclusion(self) -> Float[jax.Array, "K"]:
        """(K,) probability of dependence, at each position of the last axis of the parameters."""
        return self._spread(jax.nn.sigmoid(jnp.asarray(self.log_odds)))

    def improper(self) -> Any:
        """That of the model in which each feature depends on the class."""
        return self.dependent.improper()

    def mode(self) -> Any:
        """NaN: densities over parameters of unlike number have no common maximum."""
        return jax.tree.map(lambda v: jnp.full_like(v, jnp.nan), self.dependent.mode())

    def penalized_mle(self) -> Any:
        raise NotImplementedError(
            "Two models of unlike number of parameters are averaged, and no density compares them: give EM the plain "
            "classifier, without the average."
        )

    def pseudo_count(self) -> dict[str, Any]:
        """NaN: the mean is not linear in the counts."""
        return {name: jnp.full_like(v, jnp.nan) for name, v in self.variance().items()}

    def components(self) -> list[tuple[Any, Any]]:
        share = self.inclusion()
        return [(share, self.dependent), (1.0 - share, self.shared)]

    def variance(self) -> dict[str, jax.Array]:
        """ρ V + (1 - ρ) V_shared + ρ (1 - ρ) (E - E_shared)²."""
        share = self.inclusion()
        apart, together = self.dependent.variance(), self.shared.variance()
        mean, other = self.dependent.mean().parameters(), self.shared.mean().parameters()
        return {
            name: share * apart[name]
            + (1.0 - share) * together[name]
            + share * (1.0 - share) * (mean[name] - other[name]) ** 2
            for name in apart
        }

    def log_base(self, x: Any) -> jax.Array:
        return self.dependent.log_base(x)

    def log_odds_of_terms(self, x: Any, of: Any, against: Any) -> Cumulants:
        """(N, T) those of γ d, γ ~ Bernoulli(ρ): what is not included says the same of all classes."""
        found = self.dependent.log_odds_of_terms(x, of, against)
        m, v, third = found.mean, found.variance, found.third
        share = jax.nn.sigmoid(jnp.asarray(self.log_odds))[: m.shape[-1]]
        between = share * (1.0 - share)
        third = share * third + between * m * (3.0 * v + (1.0 - 2.0 * share) * m**2)
        return Cumulants(share * m, share * v + between * m**2, third)

    def draw(self, variates: Variates, n: int) -> Any:
        """Inclusion first; then parameters of that model."""
        score = variates.normal(jnp.asarray(self.log_odds), n)
        included = self._spread(_included(score, jnp.asarray(self.log_odds)))[:, None]
        apart, together = self.dependent.draw(variates, n), self.shared.draw(variates, n)
        return jax.tree.map(lambda a, b: jnp.where(included, a, b), apart, together)

    def simulate(self, likelihood: Any, rng: Any, total: int = 1) -> np.ndarray:
        return self.dependent.simulate(likelihood, rng, total)

    def draw_log_likelihood(
        self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0
    ) -> Float[jax.Array, "n N C"]:
        """(n, N, C) draws, inclusion first, of Σ_f γ_f log p(x_f | class, θ_f): of other features no class knows.

        A row that is counted in one class changes what all of them draw, see `draw_log_likelihood_with_row`.
        """
        if multiplicity:
            raise NotImplementedError("A row informs the inclusion that classes share: say of which class it is.")
        return self._draw_included(variates, n, x, None)

    def draw_log_likelihood_with_row(self, variates: Variates, n: int, x: Any, own: jax.Array) -> jax.Array:
        """The same, with the odds of inclusion given the row and its class: one set of features for all classes.

        log odds_f + log p(x_f | own class, D) - log p(x_f | D).
        """
        return self._draw_included(variates, n, x, own)

    def _draw_included(self, variates: Variates, n: int, x: Any, own: jax.Array | None) -> jax.Array:
        raise NotImplementedError

    def _log_evidences(self, statistics: Any, pooled: Any) -> tuple[jax.Array, jax.Array]:
        """(K,) each."""
        return _log_evidences(self.dependent, self.shared, statistics, pooled)

    def _mixed(self, log_odds: Any, apart: jax.Array, together: jax.Array) -> jax.Array:
        """log[ρ exp(apart) + (1 - ρ) exp(together)]."""
        log_odds = jnp.asarray(log_odds)
        return jnp.logaddexp(log_sigmoid(log_odds) + apart, log_sigmoid(-log_odds) + together)

    def _spread(self, values: jax.Array) -> jax.Array:
        """Values of features at each position of the last axis of the parameters."""
        return values


@pytree
class AveragedLevels(Averaged):
    """Of a Dirichlet block in which a row has one level a group."""

    @property
    def group(self) -> Any:
        return self.dependent.group

    @property
    def concentration(self) -> Any:
        return self.dependent.concentration

    def restrict(self, keep: np.ndarray) -> Self:
        features = np.unique(np.asarray(self.group)[keep])
        return type(self)(self.dependent.restrict(keep), self.shared.restrict(keep), self.log_odds[features])

    def pad(self, extra: int) -> Self:
        return type(self)(self.dependent.pad(extra), self.shared.pad(extra), np.pad(self.log_odds, (0, 1)))

    def update_apart(self, statistics: Any) -> Self:
        apart = self.dependent.update_apart(statistics), self.shared.update_apart(_pooled(statistics))
        return type(self)(*apart, self.update(statistics).log_odds)

    def mean(self) -> Multinomial:
        """ρ E θ_cl + (1 - ρ) E θ_l."""
        apart, together = self.dependent.mean().log_theta, self.shared.mean().log_theta
        return Multinomial(self._mixed(self._spread(self.log_odds), apart, together))

    def predictive(self) -> Multinomial:
        """The mean: a row has one level a feature."""
        return self.mean()

    def predictive_with_row(self, multiplicity: Any) -> Multinomial:
        """Levels as a row that stands `multiplicity` (C,) more times has them; so the odds change with the level."""
        apart, gains = self._with_level(self.dependent, multiplicity[:, None])
        together, gain = self._with_level(self.shared, jnp.sum(multiplicity)[None, None])
        return Multinomial(self._mixed(self._spread(self.log_odds) + jnp.sum(gains, axis=0) - gain[0], apart, together))

    mean_with_row = predictive_with_row

    def _draw_included(self, variates: Variates, n: int, x: Any, own: jax.Array | None) -> jax.Array:
        """A row has one level a feature, so that with each class for its own there is a table of levels."""
        x = as_rows(x, self.group, self.dependent.num_groups)
        score = variates.normal(jnp.asarray(self.log_odds), n)
        log_theta = self.dependent.draw(variates, n).log_theta

        def of_levels(table: jax.Array) -> jax.Array:
            return x.dot(x.layout(table))

        if own is None:
            included = self._spread(_included(score, jnp.asarray(self.log_odds)))
            return jax.lax.map(of_levels, jnp.where(included[:, None], log_theta, 0.0))
        gain = self.dependent.mean().log_theta - self.shared.mean().log_theta
        log_odds, each = self._spread(self.log_odds) + gain, jnp.eye(gain.shape[0], dtype=bool)[:, :, None]

        def one(score: jax.Array, log_theta: jax.Array, level: jax.Array, others: jax.Array, own: jax.Array) -> Any:
            informed = jnp.where(each, level - jnp.logaddexp(level, others), log_theta)
            tables = jnp.where(_included(self._spread(score), log_odds)[:, None], informed, 0.0)
            found = of_levels(tables.reshape(-1, tables.shape[-1])).reshape(-1, *each.shape[:2])
            return jnp.sum(jnp.where(own[:, :, None], found, 0.0), axis=1)

        drawn = score, log_theta, *draw_marginals(self.dependent, variates, n, 1.0), own
        return jax.lax.map(lambda draw: one(*draw), drawn)

    def _with_level(self, family: Any, multiplicity: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(C, L) log probability of a level seen `multiplicity` <= 0 more times, and what that does to the evidence."""
        left, total_left = family.with_level(multiplicity)
        there = left > 0  # a level that stands fewer times among the data is of no row
        log_proba = jnp.log(jnp.where(there, left, 0.0) / total_left)
        return log_proba, log_rising(total_left, -multiplicity) - log_rising(jnp.where(there, left, 1.0), -multiplicity)

    def _spread(self, values: jax.Array) -> jax.Array:
        return jnp.asarray(values)[..., self.group]


@pytree
class AveragedCells(Averaged):
    """Of a block of numbers."""

    def restrict(self, keep: np.ndarray) -> Self:
        return jax.tree.map(lambda field: np.asarray(field)[..., keep], self)

    def mean(self) -> Mixture:
        return Mixture(self, "mean")

    def predictive(self) -> Mixture:
        return Mixture(self, "predictive")

    def mean_with_row(self, multiplicity: Any) -> Mixture:
        return Mixture(self, "mean", multiplicity)

    def predictive_with_row(self, multiplicity: Any) -> Mixture:
        return Mixture(self, "predictive", multiplicity)

    def _draw_included(self, variates: Variates, n: int, x: Any, own: jax.Array | None) -> jax.Array:
        """To the family a feature that is not included is a cell that is missing."""
        score, noted = variates.normal(jnp.asarray(self.log_odds), n), Recorder(variates)
        self._draw_dependent(noted, n, x, own)  # for which variates
        seen, values = observed(x)

        gain = self._log_predictive(self.dependent, values) - self._log_predictive(self.shared, values)

        def one(draw: tuple[jax.Array, Any, jax.Array | None]) -> jax.Array:
            score, given, own = draw
            of_class = jnp.zeros(()) if own is None else jnp.sum(jnp.where(own.T[:, :, None], gain, 0.0), axis=0)
            included = _included(score, jnp.asarray(self.log_odds) + of_class)
            given, own = jax.tree.map(lambda v: v[None], (given, own))
            return self._draw_dependent(Replayer(given), 1, jnp.where(seen & included, values, jnp.nan), own)[0]

        return jax.lax.map(one, (score, noted.given, own))

    def _draw_dependent(self, variates: Variates, n: int, x: Any, own: jax.Array | None) -> jax.Array:
        if own is None:
            return self.dependent.draw_log_likelihood(variates, n, x)
        return self.dependent.draw_log_likelihood_with_row(variates, n, x, own)

    def _log_predictive(self, family: Any, x: jax.Array) -> Float[jax.Array, "C N F"]:
        """(C, N, F) log p(x_f | class, D)."""
        return jax.vmap(lambda one: one.predictive().cells(x))(jax.tree.map(jnp.asarray, family))


@pytree
class EmpiricalAveraged(EmpiricalPrior):
    """As `prior`, where it is not known whether a feature depends on the class: `log_odds` (F,) that it does."""

    prior: Any
    log_odds: Any

    def __call__(self, statistics: Any, together: Any) -> AveragedCells:
        family = self.prior(statistics, together)
        return AveragedCells(family, jax.tree.map(lambda field: field[:1], family), self.log_odds)


def averaged(family: Any, log_odds: np.ndarray) -> Averaged:
    """The family over all classes beside its like over one.

    Raises
    ------
    ValueError
        If it is not the same in all classes.
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
class Mixture:
    """Σ_f log[ρ_f p(x_f | class) + (1 - ρ_f) p(x_f)], a row `multiplicity` more times among the data."""

    posterior: AveragedCells
    reading: str = static()
    multiplicity: Any = None

    def parameters(self) -> dict[str, jax.Array]:
        """ρ E + (1 - ρ) E_shared."""
        share = self.posterior.inclusion()
        apart, together = (f.mean().parameters() for f in (self.posterior.dependent, self.posterior.shared))
        return {name: share * apart[name] + (1.0 - share) * together[name] for name in apart}

    def prepare(self, x: Any) -> Mixture:
        return self

    def log_prob(self, x: Any) -> Float[jax.Array, "N C"]:
        return self._of_cells(sum_cells, x)

    def terms(self, x: Any) -> Float[jax.Array, "N C F"]:
        """(N, C, F) log[ρ_f p(x_f | class) + (1 - ρ_f) p(x_f)]."""
        return self._of_cells(only, x)

    def _of_cells(self, of: OfCells, x: Any) -> jax.Array:
        seen, x = observed(x)
        log_odds, dependent, shared = (
            self.posterior.log_odds,
            self.posterior.dependent,
            self._one(0, self.posterior.shared),
        )
        if self.multiplicity is not None:
            n_classes = self.multiplicity.shape[0]
            gains = [self._gain(self._one(c, dependent), x, self.multiplicity[c]) for c in range(n_classes)]
            log_odds = log_odds + sum(gains) - self._gain(shared, x, jnp.sum(self.multiplicity))
            shared = shared.with_cell(x, jnp.sum(self.multiplicity))
        together = getattr(shared, self.reading)().cells(x)

        def one_class(family: Any, multiplicity: Any) -> jax.Array:
            family = family if multiplicity is None else family.with_cell(x, multiplicity)
            apart = getattr(family, self.reading)().cells(x)
            return of(seen, self.posterior._mixed(log_odds, apart, together))

        return jax.vmap(one_class, in_axes=(0, None if self.multiplicity is None else 0), out_axes=1)(
            dependent, self.multiplicity
        )

    def _gain(self, family: Any, x: jax.Array, multiplicity: jax.Array) -> jax.Array:
        """What the log evidence of a class loses with a cell that was counted -`multiplicity` times."""
        return -family.with_cell(x, multiplicity).log_evidence_of_cell(x, -multiplicity)

    def _one(self, c: int, family: Any) -> Any:
        return jax.tree.map(lambda field: jnp.asarray(field)[c], family)


def _included(score: jax.Array, log_odds: jax.Array) -> jax.Array:
    """Inclusion with given log odds, as a function of standard normal variates."""
    return jax.scipy.stats.norm.logcdf(score) < log_sigmoid(log_odds)


@jax.jit
def _log_evidences(dependent: Any, shared: Any, statistics: Any, pooled: Any) -> tuple[jax.Array, jax.Array]:
    return jnp.sum(dependent.log_evidence(statistics), axis=0), shared.log_evidence(pooled)[0]
