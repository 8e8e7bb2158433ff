"""Columns with parents, and the terms of a log-likelihood that blocks make."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, product
from typing import Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float, Int

from bayesnb._util.arguments import shown
from bayesnb._util.arrays import require_memory
from bayesnb.encoding.columns import (
    Columns,
    LevelColumns,
    NamedLevels,
    OneLevelColumns,
    UnknownPolicy,
    ignore_unknown,
    level_positions,
)
from bayesnb.encoding.encoded_rows import CodedRows, NodeRows, padded_levels, sort_parents_first
from bayesnb.encoding.levels import Factors, Levels
from bayesnb.encoding.priors import context_concentrations, prior_of_trees
from bayesnb.encoding.table import Table
from bayesnb.families import ContextsOfRows, ContextTree, Dirichlet, LevelCounts, TreeAveraged

# == Structures as encodings: a feature with parents has the levels (parents, feature), grouped by the parents

NOT_OBSERVED = "<missing>"
"""Value of a parent whose cell is missing, where this is one more value of the parent."""

Node = tuple[int, ...]
"""Positions of a feature, then of its parents, within the columns."""


@dataclass(frozen=True)
class Conditional:
    """Level of a feature given a level of each parent, as pairs (name, level), for the names of parameters."""

    level: Hashable
    given: tuple[tuple[str, Hashable], ...]

    def __str__(self) -> str:
        return f"{self.level} | " + ", ".join(f"{name}={value}" for name, value in self.given)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class NodeColumns(OneLevelColumns):
    """Categorical features, each given its parents: p(x_j | parents, class) is a simplex for each value of the parents.

    A cell counts only if the feature and all its parents are observed; rows score with missing cells summed out.

    Parameters
    ----------
    base : LevelColumns
        The features without parents.
    nodes : tuple of Node
        Each feature with its parents. On the last axis of the statistics the parents' levels vary slowly, in their
        order, and the feature's levels fastest.
    """

    base: LevelColumns
    nodes: tuple[Node, ...]
    index: Sequence[int] = field(init=False)
    names: Sequence[str] = field(init=False)
    n_features: int = field(init=False)
    kind = "categorical"
    missing_is_value: ClassVar[bool] = False
    """Whether a missing parent is one more value of the parent, so that a cell counts whenever it is observed."""
    sums_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set_columns([child for child, *_ in self.nodes])

    def _set_columns(self, features: Sequence[int]) -> None:
        """Set `index`, `names` and `n_features` to those of the features at these positions in the base."""
        object.__setattr__(self, "index", [self.base.index[j] for j in features])
        object.__setattr__(self, "names", [self.base.names[j] for j in features])
        object.__setattr__(self, "n_features", self.base.n_features)

    @property
    def network(self) -> Self:
        """The columns themselves, which may have parents."""
        return self

    @classmethod
    def from_base(cls, base: LevelColumns) -> Self:
        """Return columns of these features in which no feature has a parent."""
        return cls(base, tuple((j,) for j in range(len(base.index))))

    def superparent_nodes(self, parent: int) -> tuple[Node, ...]:
        """Return the nodes of a network in which the feature `parent` is the parent of all others."""
        return tuple((j,) if j == parent else (j, parent) for j in range(len(self.base.index)))

    def check(self) -> None:
        """Raise ValueError unless the nodes name different features of the base."""
        self.base.check()
        n_columns = len(self.base.index)
        for node in self.nodes:
            if not node or len(set(node)) < len(node) or not all(0 <= j < n_columns for j in node):
                raise ValueError(
                    f"The node {node} must be a column and its parents, distinct, from 0 to {n_columns - 1}."
                )

    def learn(
        self, table: Table, policy: UnknownPolicy | None = None, named: NamedLevels | None = None
    ) -> tuple[Self, NodeRows]:
        """Return columns with the values that occur, with or without parents, as levels of undeclared features.

        The rows for scoring are returned, too. `policy` (default: `report_unknown`) is called with values that are no
        level. Levels in `named`, by position in the table, are added.
        """
        factors = self.base.factors(table)
        occurring = [list(compress(values, factors.occurrences(j))) for j, values in enumerate(factors.values)]
        base = self.base.with_values(occurring).keep_levels(named or {})
        learned = replace(self, base=base)
        return learned, learned.rows_of_base(base.code_rows(factors, policy))

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> NodeRows:
        """Return the rows of a table for scoring: missing cells are summed out, or are one more value of a parent."""
        return self.rows_of_base(self.base.rows(table, policy))

    def rows_of_base(self, base: CodedRows) -> NodeRows:
        """Return coded rows of the base as rows of this structure for scoring."""
        return NodeRows(base, self, self.sums_missing)

    def with_declared(self, known: Mapping[int, Levels]) -> Self:
        """Return columns whose levels are those in `known`, by position in the table, and do not grow."""
        return replace(self, base=self.base.with_declared(known))

    def keep_levels(self, named: NamedLevels) -> Self:
        """Return columns in which undeclared features have the levels in `named`, which stay without rows."""
        base = self.base.keep_levels(named)
        return self if base is self.base else replace(self, base=base)

    def fix_levels(self, fixed: bool) -> Self:
        """Return columns in which all levels, or only declared ones, stay without rows."""
        return replace(self, base=self.base.fix_levels(fixed))

    def level_weights(self, statistics: LevelCounts) -> dict[int, np.ndarray]:
        """Return {position in the table: weight (L,) of the cells with each level} of features whose levels may leave.

        Cells count that are in any table.
        """
        may_leave = self.base.may_leave
        if not any(may_leave):
            return {}
        weights = [np.zeros(n) for n in self.base.sizes()]
        for node, (table,) in zip(self.nodes, self.tables(statistics.count.sum(axis=0)[None]), strict=True):
            child, *parents = node
            for axis, j in enumerate((*parents, child)):
                others = tuple(k for k in range(len(node)) if k != axis)
                weights[j] += table.sum(axis=others)[: len(weights[j])]  # A missing parent may be the last value.
        return dict(compress(zip(self.base.index, weights, strict=True), may_leave))

    def forget(self, rows: Self, weights: Mapping[int, np.ndarray]) -> Self:
        """Return columns without the undeclared levels of `rows` that have weight 0, and do not stay without rows."""
        return replace(self, base=self.base.forget(rows.base, weights))

    def union(self, other: Self) -> Self:
        """Return columns with the levels of both; raise ValueError if the structures differ."""
        if self.nodes != other.nodes:
            raise ValueError(
                "Counts of different structures cannot be added. Fix the parents by NetworkNB(parents=...)."
            )
        return replace(self, base=self.base.union(other.base))

    def positions_in(self, joint: Self) -> np.ndarray:
        """(L,) positions of these combinations of levels on the last axis of `joint`, which has more of them."""
        codes, positions = self.base.codes_in(joint.base), []
        parent_codes = codes
        if self.missing_is_value:
            parent_codes = list(map(np.append, codes, joint.base.sizes()))
        for (child, *parents), start in zip(self.nodes, joint.start(), strict=True):
            axes = np.ix_(*(parent_codes[p] for p in parents), codes[child])
            positions.append(start + np.ravel_multi_index(axes, joint.shape((child, *parents))).ravel())
        return np.concatenate(positions)

    def parent_sizes(self) -> np.ndarray:
        """(F,) number of values of each feature as a parent."""
        return self.base.sizes() + self.missing_is_value

    def parent_values(self, j: int) -> list[Hashable]:
        """Return the values of feature j as a parent; if a missing parent is a value, `NOT_OBSERVED` is the last."""
        return [*self.base.level_names(j), *([NOT_OBSERVED] if self.missing_is_value else [])]

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the numbers of values of the parents of a node, then the number of levels of its feature."""
        child, *parents = node
        return (*(int(n) for n in self.parent_sizes()[parents]), int(self.base.sizes()[child]))

    @property
    def capacity(self) -> int:
        """Number of combinations of levels in the kernels' arrays of counts, padding included."""
        return padded_levels(self.sizes())

    @cached_property
    def _sizes(self) -> np.ndarray:
        """(G,) number of combinations of levels of each node."""
        # Beyond 2⁶³ these are objects, and `require_memory` says how many.
        return np.array([math.prod(self.shape(node)) for node in self.nodes])

    def require_memory(self, n_classes: int) -> None:
        """Raise ValueError if there are more than 2^27 counts of all combinations of levels in `n_classes` classes."""
        sizes = self._sizes.tolist()
        widest = max(range(len(sizes)), key=sizes.__getitem__, default=0)
        name = shown(self.base.names[self.nodes[widest][0]])
        require_memory(
            n_classes * sum(sizes),
            f"Counts of {sum(sizes):,} combinations of levels in {n_classes} classes",
            f"Column {name} and its parents have {sizes[widest]:,} combinations. Leave out columns or arcs, or group "
            "levels.",
        )

    def groups(self) -> np.ndarray:
        """(L,) number of the simplex of each position: one simplex for each node and value of its parents."""
        groups, first = [], 0
        for *parents, n_levels in map(self.shape, self.nodes):
            n_groups = int(np.prod(parents, dtype=np.int64))
            groups.append(np.repeat(np.arange(first, first + n_groups, dtype=np.int32), n_levels))
            first += n_groups
        return np.concatenate(groups)

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the node (L,) of each position, and its level: a `Conditional` if the node has parents."""
        levels: list[Hashable] = []
        for child, *parents in self.nodes:
            child_levels = self.base.level_names(child)
            if not parents:
                levels += child_levels
                continue
            names = [self.base.names[p] for p in parents]
            for values in product(*map(self.parent_values, parents)):
                levels += [Conditional(level, tuple(zip(names, values, strict=True))) for level in child_levels]
        return np.repeat(np.arange(len(self.nodes)), self.sizes()), levels

    def tables(self, flat: np.ndarray) -> list[np.ndarray]:
        """Return the (C, *parents, levels) table of each node, from the (C, L) array of all nodes."""
        columns = np.split(flat, self.start()[1:], axis=1)
        return [part.reshape(len(flat), *self.shape(node)) for part, node in zip(columns, self.nodes, strict=True)]

    def counts_without_parents(self, statistics: LevelCounts) -> LevelCounts:
        """Return counts of the features given the class alone, from the cells whose parents are observed."""
        counts = [table.sum(axis=tuple(range(1, table.ndim - 1))) for table in self.tables(statistics.count)]
        return LevelCounts(np.concatenate([counts[i] for i in np.argsort(self.index)], axis=1))

    def features_missing_on_arcs(self, statistics: LevelCounts, class_count: np.ndarray) -> list[str]:
        """Return the names of the features with parents such that in some row the feature or a parent is missing.

        The list is empty if a missing parent is one more value (`missing_is_value`).
        """
        if self.missing_is_value:
            return []
        missing = self._node_weight(statistics) < class_count[:, None] * (1 - 1e-9)
        return [self.base.names[self.nodes[i][0]] for i in np.flatnonzero(self._has_parents & missing.any(axis=0))]

    def features_never_counted(self, statistics: LevelCounts, class_count: np.ndarray) -> list[tuple[int, str]]:
        """Return pairs (index of a class, name of a feature) such that no row has the feature and all its parents.

        Classes without rows are left out. The list is empty if a missing parent is one more value (`missing_is_value`).
        """
        if self.missing_is_value:
            return []
        never = self._has_parents & (self._node_weight(statistics) == 0) & (class_count[:, None] > 0)
        return [(int(c), self.base.names[self.nodes[i][0]]) for c, i in np.argwhere(never)]

    @property
    def _has_parents(self) -> np.ndarray:
        """(G,) whether each node has parents."""
        return np.array([len(node) > 1 for node in self.nodes], bool)

    def _node_weight(self, statistics: LevelCounts) -> np.ndarray:
        """(C, G) weight of the rows that have the feature and the parents of each node."""
        tables = [t.reshape(len(t), -1).sum(axis=1) for t in self.tables(statistics.count)]
        return np.stack(tables, axis=1) if tables else np.zeros((len(statistics.count), 0))

    def prior_without_parents(self, prior: Any, *, divided: bool = False) -> Dirichlet:
        """Return the prior of the features given the class alone: concentrations given the parents' first values.

        With `divided` concentrations are divided among the values of the parents, see `share_among_parents`, and are
        summed. A feature with a parent that has no values has concentrations 1.
        """
        alone = {}
        for (child, *_), table in zip(self.nodes, self.tables(np.asarray(prior.concentration)), strict=True):
            n_classes, *_, n_levels = table.shape
            given = table.reshape(n_classes, -1, n_levels) if table.size else np.ones((n_classes, 1, n_levels))
            alone[child] = given.sum(axis=1) if divided else given[:, 0]
        alpha = np.concatenate([alone[child] for child in sorted(alone)], axis=1)
        return Dirichlet(alpha, self.base.groups(), len(self.base.index))

    def order(self) -> list[int]:
        """Return the positions of the nodes in `nodes`, parents before children."""
        position = {node[0]: i for i, node in enumerate(self.nodes)}
        return [position[child] for child, *_ in sort_parents_first(self.nodes)]

    def select_realized(self, drawn: np.ndarray) -> np.ndarray:
        """Return the drawn levels, (S, L) of 0 and 1, that come true: those given the values drawn for the parents.

        `drawn` (S, L) has one level of each feature for every value of its parents.
        """
        realized = np.zeros_like(drawn)
        start, sizes, n_levels, parent_sizes = self.start(), self.sizes(), self.base.sizes(), self.parent_sizes()
        draws = np.arange(len(drawn))
        code = np.zeros((len(drawn), len(n_levels)), np.int64)
        for i in self.order():
            child, *parents = self.nodes[i]
            if not sizes[i]:
                continue
            table = drawn[:, start[i] : start[i] + sizes[i]].reshape(len(drawn), -1, n_levels[child])
            group = np.ravel_multi_index([code[:, p] for p in parents], parent_sizes[parents]) if parents else 0
            code[:, child] = table[draws, group].argmax(axis=1)
            realized[draws, start[i] + group * n_levels[child] + code[:, child]] = 1
        return realized

    def decode(self, cells: np.ndarray) -> np.ndarray:
        """(S, G) position of the level of the feature of each node, from realized levels (S, L) of 0 and 1."""
        joint = level_positions(cells, self.sizes(), self.start())
        n_levels = self.base.sizes()[[child for child, *_ in self.nodes]]
        return np.where(joint < 0, -1, joint % np.maximum(1, n_levels))


def find_level_columns(blocks: Iterable[Columns]) -> list[LevelColumns]:
    """Return the columns of the blocks of levels; for a structure the same columns without parents."""
    return [base for base in (columns.base for columns in blocks) if hasattr(base, "levels")]


def levels_by_position(blocks: Iterable[Columns]) -> dict[int, Levels]:
    """Return {position in the table: levels} of the columns of levels."""
    return {j: known for base in find_level_columns(blocks) for j, known in zip(base.index, base.levels, strict=True)}


def declare_levels(blocks: Iterable[Columns], known: Iterable[Columns]) -> tuple[Columns, ...]:
    """Return blocks of columns with the levels of the `known` blocks, which do not grow; numbers stay as they are."""
    levels = levels_by_position(known)
    return tuple(columns.with_declared(levels) for columns in blocks)


# == Features under an average over the number of their parents that matter (context trees) ========

_CELLS_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class ContextColumns(NodeColumns):
    """Categorical features, each given its first parents, averaged over how many of them matter in each context.

    A missing parent is one more value of the parent, so that a cell counts whenever the feature is observed.
    """

    family = ContextTree
    missing_is_value = True
    sums_missing = False

    def prior(self, given: object, argument: str, classes: Levels) -> ContextTree:
        """Return the prior over context trees; `given`, scalar or (F,), is the total concentration of a feature."""
        total = np.tile(context_concentrations(given, self), (len(classes), 1))
        return ContextTree.from_shapes([self.shape(node) for node in self.nodes], total)

    def contexts_of_rows(
        self, base: CodedRows, alpha: object, label: np.ndarray, weight: np.ndarray, n_classes: int, rows: np.ndarray
    ) -> list[ContextsOfRows]:
        """Return the contexts of some rows, with the counts of others, of a few nodes at a time, most parents first.

        Parameters
        ----------
        base : CodedRows
            Coded cells of the features without parents.
        alpha : scalar, (F,) array, or mapping or Series by column
            Total concentration of a feature.
        label, weight : (N,) arrays
            Index of the class of each row, and its replication count; 0 for a row that is not counted.
        n_classes : int
            Number of classes.
        rows : (n,) int array
            Positions of the rows whose contexts are kept, in ascending order.
        """
        used = weight > 0
        used[rows] = True
        rows = (np.cumsum(used) - 1)[rows]
        base, label, weight = base.take(used), label[used], weight[used]
        code, values, sizes = base.codes, self.parent_sizes(), self.base.sizes()
        nodes, total = self.nodes, context_concentrations(alpha, self)
        size, found = max(1, _CELLS_AT_ONCE // max(1, len(base))), []
        for block in (slice(start, start + size) for start in range(0, len(nodes), size)):
            children, given, n_values = np.array([node[0] for node in nodes[block]]), [], []
            for d in range(1, max(map(len, nodes[block]))):
                parents = np.array([node[d] for node in nodes[block] if len(node) > d])
                given.append(np.where(code[:, parents] < 0, values[parents] - 1, code[:, parents]))
                n_values.append(values[parents])
            level, levels = code[:, children].astype(np.int64), np.maximum(sizes[children], 1)
            counted = total[block], label, weight, n_classes, rows
            found.append(ContextsOfRows.from_rows(level, given, levels, n_values, *counted))
        return found

    def sorted_by_parents(self) -> ContextColumns:
        """Return the columns with parents alone, sorted by their number of parents, most first."""
        nodes = [node for node in self.nodes if len(node) > 1]
        return type(self)(self.base, tuple(sorted(nodes, key=len, reverse=True)))


# == Features and all pairs of them, for the average over all trees ================================


@dataclass(frozen=True, eq=False)
class PairColumns(NodeColumns):
    """Categorical features that a tree joins: each by itself, and all pairs of them.

    The nodes are the features, then the pairs: the second feature given the first. A pair counts where both are
    observed.
    """

    family = TreeAveraged
    sums_missing = False

    def __post_init__(self) -> None:
        self._set_columns(range(len(self.base.index)))

    @classmethod
    def from_base(cls, base: LevelColumns) -> Self:
        """Return columns of these features and of all pairs of them."""
        pairs = zip(*np.triu_indices(len(base.index), 1), strict=True)
        alone = tuple((j,) for j in range(len(base.index)))
        return cls(base, alone + tuple((int(second), int(first)) for first, second in pairs))

    def check(self) -> None:
        """Raise ValueError unless the nodes are the features and all pairs of them."""
        super().check()
        if self.nodes != self.from_base(self.base).nodes:
            raise ValueError("The nodes of TreeAveragedNB must be all columns and all pairs of columns. Fit again.")

    @property
    def term_names(self) -> list[str]:
        """Names of the features, each of whose cells is a term, and "(arcs)" for the term of all arcs of the trees."""
        return [*self.base.names, "(arcs)"]

    def prior(self, given: object, argument: str, classes: Levels) -> TreeAveraged:
        """Return the prior over trees whose total concentration of a class, one number, is `given`."""
        return prior_of_trees(given, self, len(classes))

    def groups(self) -> np.ndarray:
        """(L,) number of the feature or pair, the node, of each position."""
        return Columns.groups(self)

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the feature (L,) of each position, of a pair the second, and the level, a `Conditional` for a pair."""
        return np.repeat([node[0] for node in self.nodes], self.sizes()), super().axis()[1]

    def counts_without_parents(self, statistics: LevelCounts) -> LevelCounts:
        """Return counts of the features given the class alone."""
        return LevelCounts(statistics.count[:, : self.base.sizes().sum()])

    def prior_without_parents(self, prior: Any, *, divided: bool = False) -> Dirichlet:
        """Return the prior of the features given the class alone: concentrations in `prior` before those of pairs."""
        group = self.base.groups()
        return Dirichlet(prior.concentration[:, : len(group)], group, len(self.index))

    def features_missing_on_arcs(self, statistics: LevelCounts, class_count: np.ndarray) -> list[str]:
        """Return the names of the features that are missing in some rows; none if there is a single feature."""
        if len(self.index) < 2:
            return []
        weight = self._node_weight(statistics)[:, : len(self.index)]
        missing = (weight < class_count[:, None] * (1 - 1e-9)).any(axis=0)
        return [self.names[int(j)] for j in np.flatnonzero(missing)]


# == Terms of a classifier as sums and differences of the terms of its blocks ======================

DEPENDENCE = "{} | parents"
"""Name of the term of a column's dependence on its parents."""


@dataclass(frozen=True, eq=False)
class RootColumns(LevelColumns):
    """Features given the class alone, whose terms are subtracted from the terms of the same features given parents.

    The difference is the dependence of each feature on its parents.
    """

    role: ClassVar[Literal["root", "margin"] | None] = "root"

    def code_rows(self, factors: Factors, policy: UnknownPolicy | None = None) -> CodedRows:
        """Return coded cells; unknown values are reported by the block of the features given parents, not here."""
        return super().code_rows(factors, ignore_unknown)


class MarginColumns(RootColumns):
    """Features given the class alone, with the prior of naive Bayes, beside a block of the features given parents."""

    role: ClassVar[Literal["root", "margin"] | None] = "margin"


@dataclass(frozen=True, eq=False)
class TermMap:
    """T terms of a classifier, each a sum of terms of its blocks minus others.

    A column without parents is one term, its margin log p(x_j | c). A column whose parents' table stands beside a
    margin has two: the margin, which is the density of a number and the table given the class alone of a level, and
    the dependence log p(q_j | c, parents) - log p(q_j | c), q_j the cell or the level.

    Parameters
    ----------
    names : tuple of str
        Names of the T terms.
    dependence : (T,) bool array
        Whether each term is a dependence on parents.
    plus, minus : (R,) int arrays
        For each of the R terms of the blocks the term of the classifier that it is added to, and the one that it is
        subtracted from; -1 for none.
    """

    names: tuple[str, ...]
    dependence: np.ndarray
    plus: Int[np.ndarray, "R"]
    minus: Int[np.ndarray, "R"]

    @classmethod
    def from_blocks(cls, blocks: Sequence[Columns]) -> TermMap:
        """Return the map from the terms of these blocks to a classifier's: margins, then dependences on parents."""
        alone = [columns for columns in blocks if columns.network is None]
        roots = {j for columns in alone if columns.role == "root" for j in columns.index}
        margins = {j for columns in alone if columns.role != "root" for j in columns.index}
        names, dependences, further = dict[Hashable, str](), dict[Hashable, str](), dict[Hashable, str]()
        plus, minus = list[Hashable | None](), list[Hashable | None]()
        for b, columns in enumerate(blocks):
            # All draws from a simplex are one term, and all arcs of trees are one more. Experts have no columns.
            if columns.one_simplex or len(columns.term_names) != len(columns.index):
                of_block = names if len(columns.index) else further
                of_block |= {(b, t): name for t, name in enumerate(columns.term_names)}
                plus += [(b, t) for t in range(len(columns.term_names))]
                minus += [None] * len(columns.term_names)
                continue
            for j, name in zip(columns.index, columns.names, strict=True):
                margin, dependence, is_root = j, ("dependence", j), columns.role == "root"
                if columns.network is not None and j in roots:
                    dependences[dependence] = DEPENDENCE.format(name)
                    plus.append(dependence)
                elif j in margins and (is_root or columns.network is not None):
                    plus.append(None)
                else:
                    names[margin] = name
                    plus.append(margin)
                minus.append(dependence if is_root else None)
        if dependences:  # in the order of the table
            names, dependences = dict(sorted(names.items())), dict(sorted(dependences.items()))
        position = {key: t for t, key in enumerate([*names, *dependences, *further])}
        terms = [np.array([-1 if key is None else position[key] for key in keys], int) for keys in (plus, minus)]
        is_dependence = np.repeat([False, True, False], [len(names), len(dependences), len(further)])
        return cls((*names.values(), *dependences.values(), *further.values()), is_dependence, *terms)

    @property
    def is_identity(self) -> bool:
        """Whether each term of the blocks is, unchanged, a term of the classifier."""
        return bool((self.minus < 0).all() and (self.plus >= 0).all())

    def combine(self, values: Float[np.ndarray, "... R"]) -> Float[np.ndarray, "... T"]:
        """Return the T terms of the classifier from the R terms of the blocks, on the last axis.

        A term of -inf that is subtracted counts as 0.
        """
        if self.is_identity:
            return values
        terms = np.zeros((*values.shape[:-1], len(self.names)))
        for r in range(values.shape[-1]):
            if self.plus[r] >= 0:
                terms[..., self.plus[r]] += values[..., r]
            if self.minus[r] >= 0:
                terms[..., self.minus[r]] -= np.where(np.isneginf(values[..., r]), 0.0, values[..., r])
        return terms

    def spread(self, weight: Float[np.ndarray, "*S T"]) -> Float[np.ndarray, "*S R"]:
        """Return R weights of the blocks' terms, which give the same sum as T `weight` of the classifier's terms."""
        padded = np.concatenate([weight, np.zeros((*weight.shape[:-1], 1))], axis=-1)
        return np.asarray(padded[..., self.plus] - padded[..., self.minus])

    def gather(self, weight: Float[np.ndarray, "R"]) -> Float[np.ndarray, "T"]:
        """Return T weights of the classifier's terms from R of the blocks' terms: the inverse of `spread`."""
        terms = np.zeros(len(self.names))
        for r in np.argsort(self.minus >= 0, kind="stable"):
            if self.plus[r] >= 0:
                terms[self.plus[r]] = weight[r] + (terms[self.minus[r]] if self.minus[r] >= 0 else 0.0)
        return terms
