"""Features that depend on each other along the arcs of an unknown tree: averages over all trees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families import spanning_trees
from bayesnb.families._namespace import (
    gather,
    kernel,
    log_segment_sum,
    log_sigmoid,
    map_leading_axis,
    map_parts,
    segment_sum,
    set_at,
    sigmoid,
    xp,
)
from bayesnb.families._pytree import Array, pytree, static
from bayesnb.families.averaged_structures import AveragedStructures
from bayesnb.families.count_functions import with_counts
from bayesnb.families.count_rows import as_rows
from bayesnb.families.multinomial import LevelCounts, Multinomial
from bayesnb.families.protocol import ReadyLikelihood, lacking, no_nuts
from bayesnb.families.spanning_trees import pair_index
from bayesnb.families.special import log_rising
from bayesnb.families.variates import Variates, draw_log_uniform

_ROOM = 2**20


@pytree
class TreeAveraged(AveragedStructures):
    r"""Levels of features that depend on each other along the arcs of an unknown tree: average over all trees.

    All trees are equally probable, and are shared by the classes; each arc of a tree is real with probability ½, and
    else void. The levels of a feature are Dirichlet(S/L_u) in each class, those of a pair Dirichlet(S/(L_u L_v)), which
    agree on the features, so that the evidence of a tree is a product over its arcs,

        p(D) = Π_u E_u · Σ_T Π_{uv ∈ T} W_uv / F^(F - 2),    W_uv = ½ + ½ B_uv,    B_uv = Π_c E_uv / (E_u E_v),

    and the sum over all trees is a determinant. A cell counts for an arc where both features are observed; in a row
    where one is missing the arc says nothing.

    Parameters
    ----------
    concentration : (C, K) array
        S/L_u of the levels of each feature, one feature after the other, then S/(L_u L_v) of those of each pair.
    count : (C, K) array
        Rows with each; 0 for a prior.
    group : (K,) int array
        Number of the feature, or of the pair: pairs are numbered behind the features.
    levels : pair of (K,) int arrays
        Level of the first and of the second feature of a pair; for a feature its own level, twice.
    n_features : int

    References
    ----------
    Meilă & Jaakkola, *Tractable Bayesian learning of tree belief networks*, Stat. Comput. 16 (2006). Cerquides & López
    de Mántaras, *TAN classifiers based on decomposable distributions*, Machine Learning 59 (2005).
    """

    layout: ClassVar[tuple[str, ...]] = ("group", "levels", "n_features")
    nonnegative: ClassVar[bool] = True
    classes_share_parameters: ClassVar[bool] = True
    tunable: ClassVar[dict[str, str]] = {"alpha": "concentration"}
    mean = mode = improper = variance = pseudo_count = lacking(
        "The model is an average over trees with different parameters, so that there are no tables of posterior means. "
        "Use posterior_draws for trees with their parameters, or TAN for the tables of one tree."
    )
    simulate = lacking("Rows of an average over trees cannot be simulated. Use TAN, which simulates rows of one tree.")
    program = no_nuts("The tree")
    log_odds_of_terms = lacking(
        "The moments of the log odds have no closed form under an average over trees. Use predict_interval or "
        "decompose_uncertainty, which compute from draws."
    )

    concentration: Array
    count: Array
    group: Array
    levels: tuple[Array, Array]
    n_features: int = static()

    @classmethod
    def from_sizes(cls, sizes: Sequence[int], n_classes: int, total: float) -> Self:
        """Prior of F features with `sizes` (F,) levels, the same in all classes.

        The concentrations of the levels of each feature, and of each pair, are equal and sum to `total`.
        """
        n, size = len(sizes), np.asarray(sizes)
        levels = [(np.arange(size), np.arange(size)) for size in sizes]
        pairs = zip(*np.triu_indices(n, 1), strict=True)
        levels += [np.divmod(np.arange(size[u] * size[v]), max(size[v], 1)) for u, v in pairs]
        group = np.repeat(np.arange(len(levels)), [len(first) for first, _ in levels])
        alpha = np.concatenate([np.full(len(first), total / max(len(first), 1)) for first, _ in levels])
        first, second = (np.concatenate(part).astype(np.int32) for part in zip(*levels, strict=True))
        alpha = np.tile(alpha, (n_classes, 1))
        return cls(alpha, np.zeros(alpha.shape), group.astype(np.int32), (first, second), n)

    @property
    def num_groups(self) -> int:
        """Number of features plus number of pairs of features."""
        return self.n_features * (self.n_features + 1) // 2

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Prior with concentrations multiplied by values["alpha"], 1 by default."""
        return self.with_fields(self.concentration * values.get("alpha", 1.0), self.count)

    def proper(self) -> Bool[jax.Array, "*C K"]:
        """(C, K) of bool: whether the concentration is positive."""
        return xp.asarray(self.concentration) > 0

    def n_free(self) -> int:
        """Number of free parameters of the model without arcs, naive Bayes."""
        n_classes = np.shape(self.concentration)[0]
        groups = np.asarray(self.group)[np.asarray(self.group) < self.n_features]
        return int(n_classes * (len(groups) - len(np.unique(groups))))

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "1 1"]:
        """(1, 1) log marginal likelihood of the counted levels, averaged over all trees."""
        log_evidence = self.update(statistics)._log_partition() - self._log_partition()
        return xp.where(xp.all(self.proper()), log_evidence, -xp.inf).reshape(1, 1)

    def arc_probability(self) -> Float[jax.Array, "P"]:
        """(P,) posterior probability that each pair (0, 1), (0, 2), …, (F - 2, F - 1) is joined by a real arc."""
        log_bayes = self._log_bayes()
        if self.n_features < 2:
            return log_bayes
        in_tree = spanning_trees.edge_probability(log_arc_weight(log_bayes)[pair_index(self.n_features)])
        return in_tree[np.triu_indices(self.n_features, 1)] * sigmoid(log_bayes)

    def predictive(self, multiplicity: Array | None = None) -> TreePredictive:
        """Predictive likelihood averaged over trees and parameters, each row added `multiplicity` (C,) times."""
        before = xp.zeros(()) if multiplicity is None else xp.asarray(multiplicity)[:, None]
        level, _, _, total = (with_counts(*margin, before) for margin in self._margins())
        alone = xp.log(level / total[:, self._positions()[2]])
        gain = self._log_gain(before)
        now = xp.where(self._is_pair(), self._log_gain(before + 1.0) - gain, alone)
        known = None if multiplicity is None else xp.where(self._is_pair(), gain, 0.0)
        return TreePredictive(now, known, self._log_bayes(), self.n_features)

    def pad(self, extra: int) -> Self:
        """Copy with `extra` unused levels appended, in a group to which no row refers."""
        wide, tail = ((0, 0), (0, extra)), (0, extra)
        return type(self)(
            np.pad(self.concentration, wide, constant_values=1.0),
            np.pad(self.count, wide),
            np.pad(self.group, tail, constant_values=self.num_groups),
            (np.pad(self.levels[0], tail), np.pad(self.levels[1], tail)),
            self.n_features,
        )

    def draws_refusal(self) -> str | None:
        """Reason why parameter draws would contradict the predictive if cells were missing; None: they agree.

        Tables of pairs then do not agree with those of their features.
        """
        group, size = np.asarray(self.group), self.num_groups
        total = np.stack([np.bincount(group, count, size)[:size] for count in np.asarray(self.count)])
        alone, pairs = np.split(total, [self.n_features], axis=1)
        ends = np.triu_indices(self.n_features, 1)
        if all(np.allclose(pairs, alone[:, end], rtol=1e-9) for end in ends):
            return None
        return (
            "cells were missing in the counted rows, so that the tables of pairs and of their features do not agree: "
            "the mean over parameter draws would differ from predict_proba. Give missing cells a level of their own, "
            "or drop the rows with missing cells."
        )

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """n draws (n, C, K): log θ of each feature, and the log factors of the real arcs of a random tree."""
        noise, log_gamma = self._tree_variates(variates, n), variates.log_gamma(self.posterior_concentration(), n)
        return Multinomial(_draw_tables(self, noise, log_gamma))

    def draw_trees(self, variates: Variates, n: int) -> Int[jax.Array, "n F"]:
        """(n, F) posterior draws of the parent of each feature; -1 at the root, and where the arc is void."""
        log_bayes = self._log_bayes()

        def draw_parents(noise: Any) -> jax.Array:
            """(F,) parents of one random tree, -1 at the root and where the arc is void."""
            parent, real = self._draw_tree(log_bayes, noise)
            return xp.where(real, parent, -1)

        return map_leading_axis(draw_parents, self._tree_variates(variates, n))

    def draw_log_likelihood(self, variates: Variates, n: int, x: object, counted_in: Array | None = None) -> jax.Array:
        """(n, N, C) draws of log p(row | class, θ, tree), given the data and the row in class `counted_in`.

        `counted_in` (n, N, C) is true for the class in which the row is counted; None: the row is counted in no class.
        """
        rows = self.rows(x)
        if counted_in is None:
            return rows.dot_each(self.draw(variates, n).log_theta)
        n_classes, n_groups = len(xp.asarray(self.concentration)), self.num_groups
        noise, log_gamma = self._tree_variates(variates, n), variates.log_gamma(self.posterior_concentration(), n)
        extra = variates.log_gamma(xp.ones(n_groups), n)
        gain = xp.where(self._is_pair(), self._log_gain(1.0), 0.0)
        log_bayes = self._log_bayes()
        each = xp.eye(n_classes + 1, n_classes)  # the last one: the row is in none

        seen = rows.dot_terms(xp.ones((1, gain.shape[1])))[:, 0] > 0
        gains = xp.concatenate([rows.dot_terms(gain), xp.zeros((len(seen), 1, n_groups))], axis=1)

        def draw_rows(draw: tuple[Any, ...]) -> jax.Array:
            """(N, C) log likelihoods of all rows for one draw of the variates."""
            noise, log_gamma, extra, counted_in = draw
            # (N, C, G) logarithms of gamma variates of each row's cells, and of their sums by both features.
            tables = xp.concatenate([log_gamma, *self._log_margins(log_gamma)])
            of_cells = tuple(xp.split(rows.dot_terms(tables), 3, axis=1))
            index = xp.where(xp.any(counted_in, axis=1), xp.argmax(counted_in, axis=1), n_classes)

            def of_row(row: tuple[Any, ...]) -> jax.Array:
                """(C,) log likelihood of one row, under a tree drawn given the row."""
                cells, gains, seen, index = row
                added = gains[index]
                parent, real = self._draw_tree(log_bayes + added[self.n_features :], noise)
                counted = gather(each, index).astype(bool)[:, None]
                cell, first, second = (xp.where(counted, xp.logaddexp(v, extra), v) for v in cells)
                pair, from_first = self._arcs(parent)
                alone = (cell - first)[:, : self.n_features]
                given = xp.where(from_first, cell[:, pair] - first[:, pair], cell[:, pair] - second[:, pair])
                used = xp.where(real & seen[pair], given, alone)
                return xp.sum(xp.where(seen[: self.n_features], used, 0.0), axis=1)

            return map_leading_axis(of_row, (of_cells, gains, seen, index))

        return map_leading_axis(draw_rows, (noise, log_gamma, extra, counted_in))

    # -- features and pairs ----------------------------------------------------------------------

    def _is_pair(self) -> jax.Array:
        """(K,) of bool: whether the position belongs to a pair of features."""
        return xp.asarray(self.group) >= self.n_features

    def _positions(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Three (K,) indices by which positions of a group are summed: same first level, same second level, all."""
        group = xp.asarray(self.group)
        begin = xp.searchsorted(group, group)
        first, second = self.levels
        return begin + first, begin + second, begin

    def _margins(self) -> list[tuple[jax.Array, jax.Array]]:
        """Pairs (α, n), (C, K) each: of each position, then summed over positions with equal `_positions`."""
        parts = xp.asarray(self.concentration), xp.asarray(self.count)
        n = parts[0].shape[1]
        return [parts, *((segment_sum(parts[0], at, n), segment_sum(parts[1], at, n)) for at in self._positions())]

    def _log_gain(self, multiplicity: float | jax.Array) -> jax.Array:
        """(C, K) change of the log Bayes factor log B when `multiplicity` copies of each pair's levels are added."""
        size, sign = xp.abs(multiplicity), xp.sign(multiplicity)

        def rising(alpha: jax.Array, count: jax.Array) -> jax.Array:
            """Change of log Γ(α + n) when `multiplicity` is added to n."""
            return sign * log_rising(with_counts(alpha, count, xp.minimum(multiplicity, 0.0)), size)

        level, *sums = (rising(*margin) for margin in self._margins())
        first, second, total = (value[:, at] for value, at in zip(sums, self._positions(), strict=True))
        return level - first - second + total

    def _log_evidences(self) -> Float[jax.Array, "C G"]:
        """(C, G) log E of each feature, and log E_uv/(E_u E_v) of each pair, by the rows that have both."""
        level, first, second, total = (log_rising(*margin) for margin in self._margins())  # 0 where nothing is summed
        value = xp.where(self._is_pair(), level - first - second + total, level - total)
        return segment_sum(value, self.group, self.num_groups)

    def _log_bayes(self) -> Float[jax.Array, "P"]:
        """(P,) log Bayes factor of dependence of each pair of features, summed over the classes."""
        return xp.sum(self._log_evidences()[:, self.n_features :], axis=0)

    def _log_partition(self) -> jax.Array:
        """Scalar log Π_u E_u + log Σ over trees of Π W, up to the log number of trees."""
        log_evidences = self._log_evidences()
        log_weight = log_arc_weight(xp.sum(log_evidences[:, self.n_features :], axis=0))
        trees = log_sum_of_trees(log_weight, self.n_features)
        return xp.sum(log_evidences[:, : self.n_features]) + trees

    def _log_margins(self, log_gamma: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Two (C, K) log sums of gamma variates: over pairs with the same first, and the same second level.

        In the first one, positions of features have the log sum over the feature's levels.
        """
        first, second, begin = self._positions()
        places = xp.where(self._is_pair(), first, begin), second
        of_first, of_second = (log_segment_sum(log_gamma, at, log_gamma.shape[-1])[..., at] for at in places)
        return of_first, of_second

    def _tree_variates(self, variates: Variates, n: int) -> tuple[jax.Array, ...]:
        """Variates of n random trees: log uniforms and Gumbels (n, F, F), and log uniforms (n, F) for real arcs.

        `spanning_trees.draw` takes the first two.
        """
        square = xp.zeros((self.n_features, self.n_features))
        uniform, log_gumbel = draw_log_uniform(variates, square, n), variates.log_gamma(square + 1.0, n)
        return uniform, -log_gumbel, draw_log_uniform(variates, square[0], n)

    def _draw_tree(
        self, log_bayes: jax.Array, noise: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        """Random tree given log B (P,): parent of each feature (F,), the root its own; whether the arc is real."""
        if self.n_features == 1:
            return xp.zeros(1, int), xp.zeros(1, bool)
        index, (log_uniform, gumbel, real) = pair_index(self.n_features), noise
        parent = spanning_trees.draw(log_arc_weight(log_bayes)[index], log_uniform, gumbel)
        feature = xp.arange(self.n_features)
        pair = gather(index, (feature, parent))
        return parent, (parent != feature) & (real < log_sigmoid(gather(log_bayes, pair)))

    def _arcs(self, parent: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(F,) group of the pair of each feature and its `parent`, and (F,) whether the parent is its first feature."""
        feature = xp.arange(self.n_features)
        return self.n_features + gather(pair_index(self.n_features), (feature, parent)), parent < feature

    def _log_factors(self, log_gamma: jax.Array, parent: jax.Array, real: jax.Array) -> jax.Array:
        """(C, K) log θ of each feature's levels; for pairs with a real arc the log factor of the arc, else 0."""
        group, (pair, from_first) = xp.asarray(self.group), self._arcs(parent)
        # 1 for pairs whose first feature is the parent of the second, 2 for the other way, and else 0.
        toward = xp.zeros(self.num_groups, int)
        toward = set_at(toward, xp.where(real, pair, self.num_groups), xp.where(from_first, 1, 2))
        toward = gather(toward, group)
        first, second = self._log_margins(log_gamma)
        alone, from_second = log_gamma - first, log_gamma - second
        # Positions of the level of a pair's first and second feature by itself.
        features = (np.append(np.arange(self.n_features), ends) for ends in np.triu_indices(self.n_features, 1))
        at = [xp.searchsorted(group, gather(f, group)) + v for f, v in zip(features, self.levels, strict=True)]
        of_arc = xp.where(toward == 1, alone - alone[:, at[1]], from_second - alone[:, at[0]])
        return xp.where(self._is_pair(), xp.where(toward > 0, of_arc, 0.0), alone)


@pytree
class TreePredictive(ReadyLikelihood):
    """Predictive likelihood log p(row | class, D), averaged over all trees and parameters.

    Parameters
    ----------
    now : (C, K) array
        Log probability of each feature's level; increase of log B by one more row with the levels of a pair.
    before : (C, K) array, optional
        Increase of log B of pairs by the row itself, if it stands more times among the data; 0 for features.
    log_bayes : (P,) array
        log B of each pair.
    n_features : int
    """

    now: jax.Array
    before: jax.Array | None
    log_bayes: jax.Array
    n_features: int = static()

    def log_prob(self, x: object) -> Float[jax.Array, "N C"]:
        """(N, C) log p(row | class, D), the sum of the terms."""
        return xp.sum(self.terms(x), axis=-1)

    def terms(self, x: object) -> Float[jax.Array, "N C T"]:
        """(N, C, F + 1) terms of the features alone, as in naive Bayes, and the term that the arcs add to their sum."""
        rows = as_rows(x)
        now = rows.dot_terms(self.now)
        alone, added = now[..., : self.n_features], now[..., self.n_features :]
        log_bayes = xp.broadcast_to(self.log_bayes, (len(now), len(self.log_bayes)))
        if self.before is not None:
            log_bayes = log_bayes + xp.sum(rows.dot_terms(self.before)[..., self.n_features :], axis=1)
        without = self.log_bayes[None] if self.before is None else log_bayes
        arcs = self._log_sum(log_bayes[:, None] + added) - self._log_sum(without)[:, None]
        return xp.concatenate([alone, arcs[..., None]], axis=-1)

    def _log_sum(self, log_bayes: Float[jax.Array, "*B P"]) -> Float[jax.Array, "*B"]:
        """(…) log Σ over the trees, given log B (…, P), some entries at a time so that matrices fit the cache."""
        n, *before = self.n_features, *log_bayes.shape[:-1]
        flat = log_bayes.reshape(math.prod(before), log_bayes.shape[-1])  # of one feature there are no arcs
        size = max(1, _ROOM // (n * n * 8))
        return map_parts(lambda part: log_sum_of_trees(log_arc_weight(part.T), n), flat, size).reshape(before)


@kernel
def _draw_tables(family: TreeAveraged, noise: tuple[jax.Array, ...], log_gamma: jax.Array) -> Float[jax.Array, "n C K"]:
    """(n, C, K) log θ and log arc factors for n draws of the variates: of random trees, and log gamma variates."""
    log_bayes = family._log_bayes()

    def draw_table(draw: tuple[Any, jax.Array]) -> jax.Array:
        """(C, K) log θ and log arc factors for one draw of the variates."""
        noise, log_gamma = draw
        return family._log_factors(log_gamma, *family._draw_tree(log_bayes, noise))

    return map_leading_axis(draw_table, (noise, log_gamma))


def log_arc_weight(log_bayes: jax.Array) -> jax.Array:
    """Compute log(½ + ½ B) elementwise from log B."""
    return xp.logaddexp(0.0, log_bayes) - np.log(2.0)


def log_sum_of_trees(log_weight: Float[jax.Array, "P *B"], n: int) -> jax.Array:
    """(…) log Σ over spanning trees of n features of Π w, given log weights (P, …) of pairs (0, 1), (0, 2), …."""
    if n < 2:
        return xp.zeros(log_weight.shape[1:])
    return spanning_trees.log_sum(log_weight[spanning_trees.pair_index(n)])
