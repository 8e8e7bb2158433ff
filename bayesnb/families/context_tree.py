"""Levels given the values of parents: of the parents as many as the rows speak for, all prunings averaged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_sigmoid
from jax.scipy.stats import norm
from jaxtyping import Bool, Float, Int

from bayesnb.families._pytree import pytree
from bayesnb.families.beta_mixture import Paths
from bayesnb.families.conjugate import Conjugate
from bayesnb.families.count_matrix import as_rows
from bayesnb.families.dirichlet import Dirichlet
from bayesnb.families.multinomial import LevelCounts, Multinomial
from bayesnb.families.protocol import Cumulants
from bayesnb.families.special import log_rising
from bayesnb.families.variates import Variates


@pytree
class ContextTree(Conjugate):
    """Each feature given contexts, the values of its first few parents; of how many differs from context to context.

    The contexts of a feature are a tree: the class alone, then that and a value of the first parent, and so on. A priori
    a context is the last one with probability γ, and else splits by the next parent; in the last ones the levels have a
    Dirichlet each, under which B(n_s) is the evidence of their rows. All prunings of the tree sum up from its leaves,

        P(s) = γ B(n_s) + (1 - γ) Π_v P(s v),    P = B at the leaves,

    and a level is distributed as a mixture over the contexts on its path, s the last with probability γ B(n_s)/P(s) if
    those before it are not. A context without rows has P = 1.

    Parameters
    ----------
    concentration : (C, L) array
        α of each level given all parents, and so in each shorter context.
    count : (C, L) array
        Rows with each level given all parents; those of a posterior, and 0 of a prior.
    log_odds : scalar
        Prior log odds of a context being the last, log γ/(1 - γ).
    group : (L,) int array
        Context of all parents that each level is in, contiguous.
    level, parents : (L,) int arrays
        Position of each level among those of its context, and number of parents of its feature.
    shorter : tuple of (L,) int arrays
        For contexts of no parent, of the first one, …, of all but one: which position is the first with the same level
        in the same context.

    References
    ----------
    Willems, Shtarkov & Tjalkens, *The context-tree weighting method*, IEEE Trans. Inf. Theory 41 (1995).
    Papageorgiou & Kontoyiannis, *Posterior representations for Bayesian context trees*, Bayesian Analysis 19 (2024).
    """

    statistics: ClassVar[type] = LevelCounts
    likelihood: ClassVar[type] = Multinomial
    nonnegative: ClassVar[bool] = True
    least: ClassVar[dict[str, float]] = {"concentration": 0.0}
    tunable: ClassVar[dict[str, str]] = {"alpha": "concentration"}

    concentration: Any
    count: Any
    log_odds: Any
    group: Any
    level: Any
    parents: Any
    shorter: tuple[Any, ...]

    @classmethod
    def of_tables(cls, shapes: Sequence[tuple[int, ...]], alpha: Any, log_odds: float = 0.0) -> Self:
        """The prior of features, given for each how many values its parents have, outermost first, and it itself.

        `alpha` (C, F) is of all levels of a feature together, in every context; they have equal shares of it.
        """
        most = max((len(shape) for shape in shapes), default=1) - 1
        parts, first, before = [], 0, 0
        for feature, (*parents, own) in enumerate(shapes):
            contexts = math.prod(parents)
            context, level = np.divmod(np.arange(contexts * own), max(own, 1))
            below = [math.prod(parents[d:]) for d in range(most)]  # how many contexts of all parents one of d has
            shorter = [first + context // max(1, n) * n * own + level for n in below]
            width = np.full(len(level), len(parents))
            parts.append((np.full(len(level), feature), before + context, level, width, *shorter))
            first, before = first + len(level), before + contexts
        none = [np.zeros(0, int)] * (4 + most)
        feature_, group, level_, width_, *paths = (
            np.concatenate(part).astype(np.int32) for part in zip(none, *parts, strict=True)
        )
        share = np.asarray(alpha, float) / [max(1, shape[-1]) for shape in shapes]
        concentration = share[:, feature_]
        return cls(
            concentration, np.zeros(concentration.shape), np.asarray(float(log_odds)), group, level_, width_, tuple(paths)
        )

    @property
    def num_groups(self) -> int:
        """A bound."""
        return jnp.shape(self.concentration)[-1]

    def update(self, statistics: LevelCounts) -> Self:
        """n' = n + n(rows); which contexts are the last ones follows."""
        return self._with(self.concentration, self.count + statistics.count)

    def scale(self, factor: Any) -> Self:
        """factor · α and factor · n; the odds as they are a priori."""
        return self._with(self.concentration * factor, self.count * factor)

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """α as a factor."""
        return self._with(self.concentration * values.get("alpha", 1.0), self.count)

    def limit(self, most: int) -> Self:
        """No context has more than so many parents."""
        parents = jnp.minimum(jnp.asarray(self.parents), most)
        return type(self)(
            self.concentration, self.count, self.log_odds, self.group, self.level, parents, self.shorter
        )

    def pad(self, extra: int) -> Self:
        """With so many more levels, in a context that no row refers to."""
        size = np.shape(self.concentration)[1]
        added, wide = np.arange(extra, dtype=np.int32), ((0, 0), (0, extra))
        return type(self)(
            np.pad(self.concentration, wide, constant_values=1.0),
            np.pad(self.count, wide),
            self.log_odds,
            np.append(self.group, np.full(extra, np.max(self.group, initial=-1) + 1, np.int32)),
            np.append(self.level, added),
            np.append(self.parents, 0 * added),
            tuple(np.append(own, size + added) for own in self.shorter),
        )

    def improper(self) -> Dirichlet:
        """α = 0, and every context has all parents."""
        return Dirichlet(jnp.zeros(jnp.shape(self.concentration)), self.group, self.num_groups)

    def n_free(self) -> int:
        """Those of the full tables."""
        n_classes, n_levels = np.shape(self.concentration)
        return n_classes * (n_levels - np.unique(self.group).size)

    def proper(self) -> Bool[jax.Array, "*C L"]:
        """(C, L) whether all concentrations of a context are positive."""
        return self.improper().scale(0.0).update(LevelCounts(self.concentration)).proper()

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "C L"]:
        """(C, L) log p(levels) of each feature at its first level, all prunings averaged; 0 at the others."""
        return self.update(statistics)._choices().log_evidence - self._choices().log_evidence

    def last_probability(self) -> Float[jax.Array, "D C L"]:
        """(D, C, L) for each level the probability that the first 0, 1, … parents are the context that it is drawn in."""
        return jnp.exp(self._paths().log_weight)

    def mean(self) -> Multinomial:
        """Σ over the contexts of a path of P(it is the last) (α + n)/(α₀ + N)."""
        return Multinomial(self._paths().log_mean())

    def predictive(self) -> Multinomial:
        """The mean: a row has one level a feature."""
        return self.mean()

    def mean_with_row(self, multiplicity: Any) -> Multinomial:
        """Levels as a row that stands `multiplicity` (C,) more times has them: only its own path changes."""
        return Multinomial(self._paths().log_mean(jnp.asarray(multiplicity)[:, None]))

    predictive_with_row = mean_with_row

    def mode(self) -> Multinomial:
        """The most probable pruning, and given it the mode in the softmax basis, the mean.

        Densities over more and fewer contexts do not compare.
        """
        return Multinomial(self._paths(best=True).log_mean())

    def penalized_mle(self) -> Any:
        raise NotImplementedError(
            "Tables with more and with fewer contexts are averaged, and no density compares them: EM needs full "
            "tables, tables='full'."
        )

    def variance(self) -> dict[str, jax.Array]:
        """Of mixtures of Beta variates."""
        return {"theta": self._paths().variance()}

    def components(self) -> list[tuple[Any, Any]]:
        """For each number of parents the share of the paths that end there, and what has their Beta marginals."""
        return self._paths().components()

    def pseudo_count(self) -> dict[str, Any]:
        """NaN: the mean is not linear in the counts."""
        return {"theta": jnp.full(jnp.shape(self.concentration), jnp.nan)}

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """Which contexts are the last; then a Dirichlet in each of them."""
        each, paths, stop = self._depths(), self._paths(), self._choices().stop
        log_gamma = variates.log_gamma(paths.alpha + paths.count, n)
        uniform = norm.logcdf(variates.normal(jnp.zeros(stop.shape), n))

        def one(draw: tuple[jax.Array, jax.Array]) -> jax.Array:
            def deeper(state: tuple[jax.Array, jax.Array], of: tuple[Any, ...]) -> tuple[Any, None]:
                (found, ended), (depth, gamma, u, stop) = state, of
                own = jnp.where(depth.first, gamma, -jnp.inf)
                theta = own - Dirichlet(own, depth.context, self.num_groups).log_total(own)
                found = jnp.where(ended, found, theta[:, depth.at])
                return (found, ended | (u <= stop)[:, depth.context]), None

            shape = jnp.shape(self.count)
            return jax.lax.scan(deeper, (jnp.zeros(shape), jnp.zeros(shape, bool)), (each, *draw, stop))[0][0]

        return Multinomial(jax.lax.map(one, (log_gamma, uniform)))

    def draw_log_likelihood(
        self, variates: Variates, n: int, x: Any, multiplicity: float = 0.0
    ) -> Float[jax.Array, "n N C"]:
        """(n, N, C) draws; of a row that is counted only the marginals matter, mixtures of Beta variates."""
        x = self._rows(x)
        drawn = self._paths().draw(variates, n, multiplicity) if multiplicity else self.draw(variates, n).log_theta
        return jax.lax.map(lambda log_theta: x.dot(x.layout(log_theta)), drawn)

    def log_likelihood_cumulants(self, x: Any, multiplicity: float = 0.0) -> Cumulants:
        """Those of independent mixtures of logarithms of Beta variates."""
        x, table = self._rows(x), jnp.concatenate(self._paths().cumulants(multiplicity))
        return Cumulants(*jnp.split(x.dot(x.layout(table)), 3, axis=1))

    def cumulants_of_terms(self, x: Any) -> Cumulants:
        found = self._rows(x).dot_terms(jnp.concatenate(self._paths().cumulants()))
        return Cumulants(*jnp.split(found, 3, axis=1))

    def program(self) -> Any:
        raise NotImplementedError(
            "Which contexts are the last is discrete, and NUTS does not sample it; posterior_draws are exact without "
            "it. NUTS takes full tables, tables='full'."
        )

    def simulate(self, likelihood: Multinomial, rng: Any, total: int = 1) -> np.ndarray:
        """(S, L) of 0 and 1: a level in each context of all parents."""
        return Dirichlet(self.concentration, self.group, max(2, self.num_groups)).simulate(likelihood, rng)

    def log_base(self, x: Any) -> jax.Array:
        return self._rows(x).log_base()

    def log_predictive(self, x: Any) -> jax.Array:
        return super().log_predictive(self._rows(x))

    # -- the tree --------------------------------------------------------------------------------

    def _with(self, concentration: Any, count: Any) -> Self:
        return type(self)(concentration, count, self.log_odds, self.group, self.level, self.parents, self.shorter)

    def _rows(self, x: Any) -> Any:
        return as_rows(x, self.group, self.num_groups)

    def _depths(self) -> Depth:
        """Contexts of 0, 1, … parents, each field (D, L)."""
        here = jnp.arange(jnp.shape(self.concentration)[-1])
        at = jnp.stack([*(jnp.asarray(own, here.dtype) for own in self.shorter), here])
        splits = jnp.arange(len(at))[:, None] < jnp.asarray(self.parents)
        return Depth(at, at - jnp.asarray(self.level), at == here, splits)

    def _sum(self, values: jax.Array, at: jax.Array) -> jax.Array:
        """(C, L) sums over the levels that are at the same position, at that position."""
        return jax.ops.segment_sum(values.T, at, values.shape[-1]).T

    def _counted(self, depth: Depth) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(C, L) n, N and α₀ of the contexts of one depth, at each level."""
        count, alpha = jnp.asarray(self.count), jnp.asarray(self.concentration)
        own, of_all = self._sum(count, depth.at), self._sum(count, depth.context)
        total = self._sum(jnp.where(depth.first, alpha, 0.0), depth.context)
        return own[:, depth.at], of_all[:, depth.context], total[:, depth.context]

    def _choices(self, best: bool = False) -> Choices:
        """What there is to say of each context, from the leaves to the root; `best`: of the most probable pruning."""
        alpha, here = jnp.asarray(self.concentration), jnp.arange(jnp.shape(self.concentration)[-1])

        def shorter(log_sum: jax.Array, depth: Depth) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            """log P of contexts, at their first levels, from those of one parent more; 0 at other levels."""
            own, of_all, total = self._counted(depth)
            is_first = depth.context == here
            evidence = self._sum(jnp.where(depth.first, log_rising(alpha, own), 0.0), depth.context)
            evidence = evidence - jnp.where(is_first, log_rising(total, of_all), 0.0)
            stop = log_sigmoid(self.log_odds) + evidence
            go = log_sigmoid(-self.log_odds) + self._sum(log_sum, depth.context)
            both = jnp.maximum(stop, go) if best else jnp.logaddexp(stop, go)
            found = jnp.where(is_first, jnp.where(depth.splits, both, evidence), 0.0)
            if best:
                stop, go = (jnp.where(chosen, both, -jnp.inf) for chosen in (stop >= go, stop < go))
            ends, goes = jnp.where(depth.splits, stop - both, 0.0), jnp.where(depth.splits, go - both, -jnp.inf)
            return found, (ends[:, depth.context], goes[:, depth.context])

        root, (stop, go) = jax.lax.scan(shorter, jnp.zeros_like(alpha), self._depths(), reverse=True)
        return Choices(root, stop, go)

    def _paths(self, best: bool = False) -> Paths:
        """Of each level the contexts on its path."""
        choices = self._choices(best)
        reached = jnp.cumsum(jnp.concatenate([jnp.zeros_like(choices.go[:1]), choices.go[:-1]]), axis=0)
        count, of_all, total = jax.lax.map(self._counted, self._depths())
        alpha = jnp.broadcast_to(jnp.asarray(self.concentration), count.shape)
        return Paths(reached + choices.stop, alpha, total, count, of_all)


class Depth(NamedTuple):
    """Contexts of the first so many parents, (L,) or (D, L).

    Of each level the first position that has it in the same context, and the first one of that context; whether it is
    the first; whether its context has a further parent.
    """

    at: Int[jax.Array, "*D L"]
    context: Int[jax.Array, "*D L"]
    first: Bool[jax.Array, "*D L"]
    splits: Bool[jax.Array, "*D L"]


class Choices(NamedTuple):
    """Log P of each feature at its first level, (C, L).

    (D, C, L) for contexts of 0, 1, … parents log P(the last | reached) and log P(not the last | reached).
    """

    log_evidence: jax.Array
    stop: jax.Array
    go: jax.Array
