"""Context trees: averages over the number of parents that matter, by tables of all contexts or by the rows.

A `ContextTree` has an entry for each level given each combination of the parents' values. Rows have few of these, and a
context without rows has evidence 1, so that sums over prunings need only the contexts that rows have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families.arrays import (
    Array,
    log_segment_sum,
    log_sigmoid,
    logsumexp,
    pytree,
    scan,
    segment_sum,
    static,
    xp,
)
from bayesnb.families.protocol import Cumulants, Distribution, IndependentClasses, Variates, no_em, no_nuts
from bayesnb.families.rows import LevelCounts, Multinomial, with_counts
from bayesnb.families.special import log_rising, polygammas
from bayesnb.families.structures import AveragedTables

# == Context trees by rows: predictive probabilities of the levels of rows, without tables of all contexts

_HALF = np.log(0.5)
_LARGEST_COUNT = 2**20


class Depth(NamedTuple):
    """Contexts of d parents of n rows, for the first G columns, which have d parents or more.

    Parameters
    ----------
    context, entry : (n, G) int arrays
        Number of the context of each row and column, and of its pair (context, level), among those that rows have.
    first_child : (X,) int array
        First of the contexts with one parent more within each of the first X contexts; none at the greatest depth.
    log_evidence : (X', C) array
        Log probability of the counted levels of each context.
    mean : (E, C) array
        Posterior mean probability of the level of each pair.
    """

    context: Int[np.ndarray, "n G"]
    entry: Int[np.ndarray, "n G"]
    first_child: Int[np.ndarray, "X"]
    log_evidence: Float[np.ndarray, "Y C"]
    mean: Float[np.ndarray, "E C"]


@dataclass(frozen=True, eq=False)
class ContextsOfRows:
    """Contexts of the cells of n rows, with the counts of other rows in them.

    Parameters
    ----------
    observed : (n, H) bool array
        Whether the cell of each column with parents is observed.
    depths : list of Depth
        Contexts of 0, 1, … parents.
    """

    observed: Bool[np.ndarray, "n H"]
    depths: list[Depth]

    @classmethod
    def from_rows(
        cls,
        level: Int[np.ndarray, "N G"],
        given: Sequence[Int[np.ndarray, "N _"]],
        sizes: Int[np.ndarray, "G"],
        values: Sequence[Int[np.ndarray, "_"]],
        alpha: Float[np.ndarray, "G"],
        label: Int[np.ndarray, "N"],
        weight: Float[np.ndarray, "N"],
        n_classes: int,
        rows: Int[np.ndarray, "n"],
    ) -> Self:
        """Number the contexts of N rows, and count the rows in them.

        Parameters
        ----------
        level : (N, G) int array
            Level of each column, -1 where it is missing. Columns are sorted by their number of parents, most first.
        given : sequence of (N, G_d) int arrays
            Values of the first, second, … parent of the columns that have so many parents.
        sizes : (G,) int array
            Number of levels of each column.
        values : sequence of (G_d,) int arrays
            Number of values of each parent, missing included.
        alpha : (G,) array
            Concentration of all levels of a column together, in each context.
        label, weight : (N,) arrays
            Index of the class of each row, and its replication count; 0 for a row that is not counted.
        n_classes : int
            Number of classes, C.
        rows : (n,) int array
            Positions of the rows whose contexts are kept.
        """
        column = np.arange(level.shape[1])
        context, depths = np.broadcast_to(column, level.shape), []
        for parent, n_values in zip([*given, None], [*values, None], strict=True):
            entry, of = _number(context, np.maximum(level[:, : context.shape[1]], 0), sizes[column])
            counted = (level[:, : context.shape[1]] >= 0) & (weight > 0)[:, None]
            cell = (entry * n_classes + label[:, None])[counted]
            count = np.bincount(cell, np.broadcast_to(weight[:, None], entry.shape)[counted], len(of) * n_classes)
            log_evidence, mean = _read(count.reshape(-1, n_classes), of, alpha[column], sizes[column])
            kept, first_child = context[rows], np.zeros(0, int)
            if parent is not None and n_values is not None:
                splits = column < parent.shape[1]
                context, above = _number(context[:, : parent.shape[1]], parent, n_values[column[splits]])
                first_child, column = np.searchsorted(above, np.arange(splits.sum())), column[above]
            depths.append(Depth(kept, entry[rows], first_child, log_evidence, mean))
        n_children = given[0].shape[1] if given else 0
        return cls(level[rows, :n_children] >= 0, depths)

    def log_dependences(self, index: Int[np.ndarray, "n"], most: int) -> list[Float[np.ndarray, "n C H"]]:
        """(n, C, H) log p(level | class, contexts) - log p(level | class) for up to 1, 2, … `most` parents.

        H columns have parents; the value is 0 where a level is missing. Probabilities are averages over all prunings of
        the trees of contexts, as those of a `ContextTree` with log odds 0 that has so many parents.
        """
        means = [depth.mean[depth.entry[index]] for depth in self.depths]  # (n, G, C)
        n, last = self.observed.shape[1], len(means) - 1
        alone, observed = np.log(means[0][:, :n]), self.observed[index, :, None]
        found = [np.log(self._mix(index, means[: d + 1])[:, :n]) - alone for d in range(1, min(most, last) + 1)]
        differences = [np.swapaxes(difference * observed, 1, 2) for difference in found]
        return [differences[min(d, last - 1)] for d in range(most)] if n else []

    def _mix(self, rows: np.ndarray, means: list[np.ndarray]) -> np.ndarray:
        """(n, G, C) averages of the means (n, G, C) in the contexts of 0, 1, … parents of each row."""
        depths = self.depths[: len(means)]
        log_sum, mean = depths[-1].log_evidence, means[-1]
        for depth, shorter in zip(depths[-2::-1], means[-2::-1], strict=True):
            n, n_contexts = mean.shape[1], len(depth.first_child)
            stop = _HALF + depth.log_evidence[:n_contexts]
            both = np.logaddexp(stop, _HALF + np.add.reduceat(log_sum, depth.first_child, axis=0))
            last = np.exp(stop - both)[depth.context[rows, :n]]
            log_sum = np.concatenate([both, depth.log_evidence[n_contexts:]])
            mean = np.concatenate([mean + last * (shorter[:, :n] - mean), shorter[:, n:]], axis=1)
        return mean


def _number(context: np.ndarray, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the pairs (context, value) that occur, in their order; return these (N, G) and the context of each pair.

    `sizes` are the numbers of values in each context.
    """
    start = np.cumsum(sizes) - sizes
    pair = start[context] + value
    occurs = np.zeros(int(sizes.sum()), bool)
    occurs[pair] = True
    return (np.cumsum(occurs) - 1)[pair], np.repeat(np.arange(len(sizes)), sizes)[occurs]


def _read(
    count: np.ndarray, of: np.ndarray, alpha: np.ndarray, sizes: np.ndarray
) -> tuple[Float[np.ndarray, "X C"], Float[np.ndarray, "E C"]]:
    """Log evidence (X, C) of contexts, and means (E, C) of their entries, from counts (E, C); `of` are the contexts."""
    start, each = np.searchsorted(of, np.arange(len(alpha))), (alpha / sizes)[of]
    total = np.add.reduceat(count, start, axis=0)
    evidence = np.add.reduceat(_log_rising(each, count), start, axis=0) - _log_rising(alpha, total)
    return evidence, (count + each[:, None]) / (total + alpha[:, None])[of]


def _log_rising(alpha: np.ndarray, count: np.ndarray) -> Float[np.ndarray, "E C"]:
    """(E, C) log Γ(α + n)/Γ(α) for α (E,) and counts n (E, C); of whole counts from a table."""
    most = int(count.max(initial=0))
    if most > _LARGEST_COUNT or (count != np.round(count)).any():
        return np.asarray(log_rising(alpha[:, None], count))
    distinct, which = np.unique(alpha, return_inverse=True)
    table = np.zeros((len(distinct), most + 1))
    table[:, 1:] = np.cumsum(np.log(distinct[:, None] + np.arange(most)), axis=1)
    return np.asarray(table[which[:, None], count.astype(np.int64)])


# == Levels given the values of some of their parents: averages over all prunings of a tree of contexts

_FULL_TABLES = "use full tables, as TAN() has them."


@pytree
class ContextTree(AveragedTables, IndependentClasses):
    """Levels given the values of the first few parents (contexts), averaged over all prunings of a tree of contexts.

    The contexts of a feature are a tree: the class alone, then the class and a value of the first parent, and so on. A
    priori a context is the last one with probability γ, and else splits by the next parent; in each last context the
    levels have a Dirichlet prior, under which B(n_s) is the evidence of their rows. The sum over all prunings of the
    tree goes from its leaves to its root,

        P(s) = γ B(n_s) + (1 - γ) Π_v P(s v),    P = B at the leaves,

    and a level is distributed as a mixture over the contexts on its path: s is the last context with probability
    γ B(n_s)/P(s) if the contexts before it are not. A context without rows has P = 1.

    Parameters
    ----------
    concentration : (C, L) array
        α of each level given all parents, and so in each shorter context.
    count : (C, L) array
        Rows with each level given all parents; 0 for a prior.
    log_odds : scalar
        Prior log odds of a context being the last, log γ/(1 - γ).
    group : (L,) int array
        Context of all parents that each level is in.
    paths : tuple of (L,) int arrays
        Entry of each level in the context of no parent, of the first one, …, of all but one. Entries are the levels in
        all contexts: first those given all parents, then R others.
    leaf : (R,) int array
        First level given all parents that each of the other entries is on the path of.
    context : (R,) int array
        Context that each of the other entries is in.
    above : (G,) int array
        Context with one parent less than each context; the context itself where there is none.
    splits : (G,) bool array
        Whether there is one more parent.

    References
    ----------
    Willems, Shtarkov & Tjalkens, *The context-tree weighting method*, IEEE Trans. Inf. Theory 41 (1995).
    Papageorgiou & Kontoyiannis, *Posterior representations for Bayesian context trees*, Bayesian Analysis 19 (2024).
    """

    unread: ClassVar[tuple[str, ...]] = ("log_odds",)
    nonnegative: ClassVar[bool] = True
    tunable: ClassVar[dict[str, str]] = {"alpha": "concentration"}
    penalized_mle = no_em("sets of contexts", f"For EM {_FULL_TABLES}")
    program = no_nuts("The set of contexts", f"For NUTS {_FULL_TABLES}")

    concentration: Array
    count: Array
    log_odds: Array
    group: np.ndarray = static()
    paths: tuple[np.ndarray, ...] = static()
    leaf: np.ndarray = static()
    context: np.ndarray = static()
    above: np.ndarray = static()
    splits: np.ndarray = static()

    @classmethod
    def from_shapes(cls, shapes: Sequence[tuple[int, ...]], alpha: float | Array, log_odds: float = 0.0) -> Self:
        """Prior of features with tables of given shapes: numbers of values of the parents, then of the feature.

        `alpha` (C, F) is the concentration of all levels of a feature together, in every context, spread evenly;
        `log_odds` the log odds that a context is the last.
        """
        sizes, tables = [math.prod(shape) for shape in shapes], [math.prod(shape[:-1]) for shape in shapes]
        most = max((len(shape) for shape in shapes), default=1) - 1
        n_entries, n_contexts = sum(sizes), sum(tables)
        every = n_contexts + sum(math.prod(shape[:d]) for shape in shapes for d in range(len(shape) - 1))
        above, splits = np.arange(every), np.arange(every) >= n_contexts
        paths = np.tile(np.arange(n_entries), (most, 1))
        group = np.repeat(np.arange(n_contexts), np.repeat([shape[-1] for shape in shapes], tables).astype(int))
        leaf, context, start, first = [], [], 0, 0
        for (*parents, n_levels), size, n_tables in zip(shapes, sizes, tables, strict=True):
            given, level = np.divmod(np.arange(size), max(n_levels, 1))
            deeper = first + np.arange(n_tables)
            for d in reversed(range(len(parents))):
                n, below = math.prod(parents[:d]), math.prod(parents[d:])
                shorter = n_contexts + np.arange(n)
                above[deeper] = np.repeat(shorter, parents[d])
                paths[d, start : start + size] = n_entries + given // max(below, 1) * n_levels + level
                leaf.append((start + np.arange(n)[:, None] * below * n_levels + np.arange(n_levels)).ravel())
                context.append(np.repeat(shorter, n_levels))
                deeper, n_entries, n_contexts = shorter, n_entries + n * n_levels, n_contexts + n
            start, first = start + size, first + n_tables
        alpha = np.repeat(np.asarray(alpha, float) / [max(1, shape[-1]) for shape in shapes], sizes, axis=1)
        none = np.zeros(0, int)
        leaf_, context_ = np.concatenate([none, *leaf]), np.concatenate([none, *context])
        group, leaf_, context_, above, *of_paths = (v.astype(np.int32) for v in (group, leaf_, context_, above, *paths))
        odds = np.asarray(float(log_odds))
        return cls(alpha, np.zeros(alpha.shape), odds, group, tuple(of_paths), leaf_, context_, above, splits)

    @property
    def num_groups(self) -> int:
        """Upper bound on the number of contexts of all parents, used as the number of groups."""
        return xp.shape(self.concentration)[-1]

    def with_hyperparameters(self, values: Mapping[str, float | Array]) -> Self:
        """Prior with concentrations multiplied by values["alpha"], 1 by default."""
        return self.with_fields(self.concentration * values.get("alpha", 1.0), self.count)

    def groups_refusal(self) -> str:
        """Reason why groups of rows have no tables with a common distribution."""
        return f"which parents matter is not known. To pool groups {_FULL_TABLES}"

    def pad(self, extra: int) -> Self:
        """Copy with `extra` unused levels, and with unused shorter contexts, so that models share compiled kernels.

        The entries of shorter contexts, and all contexts, are padded to the next power of two, at least 16.
        """
        n, n_others, n_contexts = np.shape(self.concentration)[1], len(self.leaf), len(self.above)
        more, spare = _power_of_two(n_others) - n_others, _power_of_two(n_contexts + 1) - n_contexts
        wide = ((0, 0), (0, extra))
        return type(self)(
            np.pad(self.concentration, wide, constant_values=1.0),
            np.pad(self.count, wide),
            self.log_odds,
            np.pad(self.group, (0, extra), constant_values=n_contexts),
            tuple(np.append(np.where(path < n, path, path + extra), n + np.arange(extra)) for path in self.paths),
            np.pad(self.leaf, (0, more)),
            np.pad(self.context, (0, more), constant_values=n_contexts),
            np.append(self.above, n_contexts + np.arange(spare)),
            np.pad(self.splits, (0, spare)),
        )

    def proper(self) -> Bool[jax.Array, "*C L"]:
        """(C, L) of bool: whether all concentrations of the level's context are positive."""
        return self.improper().update(LevelCounts(self.concentration)).proper()

    def log_evidence(self, statistics: LevelCounts) -> Float[jax.Array, "C G"]:
        """(C, G) log probability of the counted levels, averaged over all prunings of each feature's tree.

        The value stands at the context without parents of each feature, with 0 at all other contexts.
        """
        after, before = (tree._choices().log_sum for tree in (self.update(statistics), self))
        return xp.where(self.above == xp.arange(after.shape[1]), after - before, 0.0)

    def last_probability(self) -> Float[jax.Array, "D C L"]:
        """(D, C, L) posterior probability that 0, 1, … parents are used where each level is drawn."""
        return xp.exp(self._mixture().log_weight)

    def mean(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood at the posterior means Σ_s P(s is last) (α + n_s)/(α₀ + N_s) over the contexts on a level's path.

        With `multiplicity` (C,) each row is first added to the data that many times, which changes only the path of its
        level.
        """
        return Multinomial(self._mixture(None if multiplicity is None else multiplicity[:, None]).log_mean())

    def mode(self) -> Multinomial:
        """Likelihood at the posterior means of θ under the most probable pruning of each feature's tree.

        Densities over more and fewer contexts do not compare.
        """
        return Multinomial(self._mixture(best=True).log_mean())

    def variance(self) -> dict[str, jax.Array]:
        """Posterior variances of θ, {"theta": (C, L)}, of the mixture over the contexts on each level's path."""
        return {"theta": self._mixture().variance()}

    def components(self) -> list[tuple[jax.Array, Any]]:
        """Pairs (probability (C, L) that 0, 1, … parents are used, `Betas` marginals of θ given that)."""
        return [(xp.exp(weight), Betas(alpha, total)) for weight, alpha, total in zip(*self._mixture(), strict=True)]

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """Likelihood with n draws of log θ (n, C, L): the last contexts first, then a Dirichlet variate in each."""
        alpha, count, stop = map(xp.asarray, (self._alpha(), self._to_entries(self.count), self._choices().stop))
        log_gamma = variates.log_gamma(alpha + count, n, lambda statistics: self._to_entries(statistics.count))
        uniform = variates.log_uniform(stop, n)
        paths, context = xp.asarray(self._all_paths()), xp.asarray(self._contexts())
        log_theta = log_gamma - log_segment_sum(log_gamma, context, len(self.above))[..., context]
        ends = uniform <= stop

        def deeper(state: tuple[jax.Array, jax.Array], at: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
            """Move one parent down each level's path: set log θ in the context unless the path has ended."""
            log_level, ended = state
            return (xp.where(ended, log_level, log_theta[..., at]), ended | ends[..., context[at]]), None

        shape = (n, *xp.shape(self.count))
        return Multinomial(scan(deeper, (xp.zeros(shape), xp.zeros(shape, bool)), paths)[0][0])

    def draw_with_multiplicity(self, variates: Variates, n: int, x: object, multiplicity: float) -> jax.Array:
        """(n, N, C) draws of Σ log θ of a row's levels, given `multiplicity` more copies of the row.

        With copies each level is drawn from its own marginal, a mixture of Beta variates, as only marginals matter.
        """
        rows = self.rows(x)
        drawn = self._mixture(multiplicity).draw(variates, n) if multiplicity else self.draw(variates, n).log_theta
        return rows.dot_each(drawn)

    def log_likelihood_cumulants(self, x: object, multiplicity: float = 0.0) -> Cumulants:
        """(N, C) cumulants of log p(row | class, θ), θ given the data and `multiplicity` copies of the row."""
        x, table = self.rows(x), xp.concatenate(self._mixture(multiplicity).cumulants())
        return Cumulants(*xp.split(x.dot(x.layout(table)), 3, axis=1))

    def cumulants_of_terms(self, x: object) -> Cumulants:
        """(N, C, T) posterior cumulants of log θ of the row's level in each context; 0 for other contexts."""
        cumulants = self.rows(x).dot_terms(xp.concatenate(self._mixture().cumulants()))
        return Cumulants(*xp.split(cumulants, 3, axis=1))

    # -- the tree --------------------------------------------------------------------------------

    def _all_paths(self) -> Int[jax.Array, "D L"]:
        """(D, L) index of the entry of each level in its contexts of 0, 1, … parents, all parents last."""
        leaves = xp.arange(np.shape(self.concentration)[-1])
        return xp.stack([*self.paths, leaves])

    def _contexts(self) -> Int[jax.Array, "E"]:
        """(E,) context of each entry: of the levels given all parents, then of the other entries."""
        return xp.concatenate([self.group, self.context])

    def _alpha(self) -> Float[jax.Array, "C E"]:
        """(C, E) prior concentration α of each entry (a level in a context)."""
        alpha = self.concentration
        return xp.concatenate([alpha, alpha[:, self.leaf]], axis=1)

    def _to_entries(self, levels: Array) -> Float[jax.Array, "*C E"]:
        """(…, E) counts of each entry, summed from counts (…, L) of the levels given all parents."""
        *leading, n = np.shape(levels)
        n_entries = n + len(self.leaf)
        count: jax.Array = xp.concatenate([xp.asarray(levels), xp.zeros((*leading, len(self.leaf)))], axis=-1)
        for path in self.paths:
            count = count + segment_sum(levels, xp.where(path < n, n_entries, path), n_entries)
        return count

    def _sum(self, entries: Array) -> Float[jax.Array, "C G"]:
        """(C, G) sums of values of entries (C, E) over the levels of each context."""
        return segment_sum(entries, self._contexts(), len(self.above))

    def _choices(self, best: bool = False) -> Choices:
        """Posterior probabilities that each context is the last, by recursion from the leaves; `best`: 0 or 1.

        With `best` they are those of the most probable pruning.
        """
        alpha, count, n = self._alpha(), self._to_entries(self.count), len(self.above)
        evidence = self._sum(log_rising(alpha, count)) - log_rising(self._sum(alpha), self._sum(count))
        stop, root = log_sigmoid(self.log_odds) + evidence, self.above == xp.arange(n)
        above = xp.where(root, n, self.above)

        log_sum = evidence  # log P(s) of the contexts of most parents, and then of contexts with one parent less
        for _ in self.paths:
            go = log_sigmoid(-self.log_odds) + segment_sum(log_sum, above, n)
            both = xp.maximum(stop, go) if best else xp.logaddexp(stop, go)
            log_sum = xp.where(self.splits, both, evidence)
        log_stop = stop - log_sum
        log_go = log_sigmoid(-self.log_odds) + segment_sum(log_sum, above, n) - log_sum
        if best:
            log_stop, log_go = (xp.where(chosen, 0.0, -xp.inf) for chosen in (log_stop >= log_go, log_stop < log_go))
        return Choices(log_sum, xp.where(self.splits, log_stop, 0.0), xp.where(self.splits, log_go, -xp.inf), root)

    def _mixture(self, multiplicity: Array | float | None = None, best: bool = False) -> BetaMixture:
        """Posterior mixture of θ over the contexts on each level's path, after `multiplicity` copies of the level.

        Copies multiply the probability that a context is the last by Γ ratios, up to a constant: Γ(α + n + w)/Γ(α + n)
        · Γ(α₀ + N)/Γ(α₀ + N + w). With `best` only the most probable pruning has weight.
        """
        choices, context = self._choices(best), self._contexts()

        reached = xp.zeros_like(choices.stop)
        for _ in self.paths:
            reached = xp.where(choices.root, 0.0, (reached + choices.go)[:, self.above])
        log_weight = (reached + choices.stop)[:, context]
        alpha, count = self._alpha(), self._to_entries(self.count)
        parts = (alpha, count), (self._sum(alpha)[:, context], self._sum(count)[:, context])
        if multiplicity is None:
            level, total = (prior + n for prior, n in parts)
        else:
            size, sign, less = xp.abs(multiplicity), xp.sign(multiplicity), xp.minimum(multiplicity, 0.0)
            gain, of_all = (sign * log_rising(with_counts(*part, less), size) for part in parts)
            log_weight = log_weight + gain - of_all
            level, total = (with_counts(*part, multiplicity) for part in parts)
        paths = self._all_paths()
        log_weight, level, total = (xp.moveaxis(v[:, paths], 1, 0) for v in (log_weight, level, total))
        # Where a feature has fewer parents its last context comes again.
        again = xp.concatenate([xp.zeros_like(paths[:1], bool), paths[1:] == paths[:-1]])[:, None]
        log_weight = xp.where(again, -xp.inf, log_weight)
        return BetaMixture(log_weight - logsumexp(log_weight, axis=0), level, total)


class Betas(NamedTuple):
    """Beta(α, α₀ - α) distributions of level probabilities."""

    alpha: Array
    total: Array

    def marginals(self) -> dict[str, Distribution]:
        """Beta distributions as name and arguments in `scipy.stats`, {"theta": …}."""
        return {"theta": ("beta", {"a": self.alpha, "b": self.total - self.alpha})}


class BetaMixture(NamedTuple):
    """Mixture over D contexts of Beta distributions of each θ: normalised log weights, α and α₀, (D, C, L) each."""

    log_weight: Array
    alpha: Array
    total: Array

    def log_mean(self) -> Float[jax.Array, "C L"]:
        """(C, L) log E θ of the mixture."""
        log_each = xp.log(self.alpha / self.total)
        return logsumexp(self.log_weight + log_each, axis=0)

    def variance(self) -> Float[jax.Array, "C L"]:
        """(C, L) Var θ of the mixture: within contexts plus between contexts."""
        each = self.alpha / self.total
        within = each * (1.0 - each) / (self.total + 1.0)
        return self._average(within + (each - self._average(each)) ** 2)

    def cumulants(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Mean, variance and third central moment of log θ under the mixture, (C, L) each."""
        first, second, third = (a - b for a, b in zip(polygammas(self.alpha), polygammas(self.total), strict=True))
        mean = self._average(first)
        away = first - mean
        spread = self._average(second + away**2)
        return mean, spread, self._average(third + 3.0 * second * away + away**3)

    def draw(self, variates: Variates, n: int) -> Float[jax.Array, "n C L"]:
        """(n, C, L) draws of log θ, independent for each level: first a context, then a Beta variate."""
        below = xp.cumsum(xp.exp(self.log_weight), axis=0)[:-1]
        log_theta = variates.log_beta(self.alpha, self.total - self.alpha, n)
        uniform = xp.exp(variates.log_uniform(xp.zeros(xp.shape(self.alpha)[1:]), n))
        context = xp.sum(uniform[:, None] > below, axis=1, keepdims=True)
        return xp.take_along_axis(log_theta, context, axis=1)[:, 0]

    def _average(self, values: Array) -> jax.Array:
        """(C, L) averages of `values` (D, C, L) over the contexts, by the mixture weights."""
        return xp.sum(xp.exp(self.log_weight) * values, axis=0)


class Choices(NamedTuple):
    """Per context: log P(data below s), log P(s is last | reached), log P(s splits | reached), (C, G); roots (G,)."""

    log_sum: jax.Array
    stop: jax.Array
    go: jax.Array
    root: jax.Array


def _power_of_two(n: int) -> int:
    """Least power of two that is at least n and at least 16; 0 for n = 0."""
    return 1 << max(4, (n - 1).bit_length()) if n else 0
