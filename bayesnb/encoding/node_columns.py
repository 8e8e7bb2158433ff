"""A structure as an encoding: a feature with parents has the levels (parents, feature), grouped by the parents."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.level_pair_counts import require_memory
from bayesnb.encoding.columns import UnknownPolicy
from bayesnb.encoding.level_columns import GrowingColumns, LevelColumns
from bayesnb.encoding.levels import Factors, Levels
from bayesnb.encoding.node_rows import NetworkRows, NodeRows, parents_first
from bayesnb.encoding.priors import require_structures
from bayesnb.encoding.row_blocks import CodedRows
from bayesnb.encoding.table import Table
from bayesnb.families import Dirichlet, LevelCounts

Node = tuple[int, ...]
"""A feature, then its parents, as positions within the columns."""


@dataclass(frozen=True)
class Conditional:
    """A level of a feature given a level of each parent."""

    level: Hashable
    given: tuple[tuple[str, Hashable], ...]

    def __str__(self) -> str:
        return f"{self.level} | " + ", ".join(f"{name}={value}" for name, value in self.given)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class NodeColumns(GrowingColumns):
    """Categorical features, each given its parents: p(x_j | x_parents, class) is a simplex for each of their values.

    A cell counts only if the feature and all its parents are observed; rows score with missing cells summed out.

    Parameters
    ----------
    base : LevelColumns
        The features without structure.
    nodes : tuple of Node
        What is distributed given what. All levels of the parents are laid out before those of the feature, which
        vary fastest.
    """

    base: LevelColumns
    nodes: tuple[Node, ...]
    kind: ClassVar[str] = "categorical"

    @property
    def network(self) -> Self:
        return self

    def known_levels(self) -> dict[int, Levels]:
        """Return the levels of each column."""
        return self.base.known_levels()

    def with_levels(self, known: Mapping[int, Levels]) -> Self:
        """Return columns whose levels are these, and do not grow."""
        return replace(self, base=self.base.with_levels(known))

    @classmethod
    def without_parents(cls, base: LevelColumns) -> Self:
        return cls(base, tuple((j,) for j in range(len(base.index))))

    def one_parent(self, parent: int) -> tuple[Node, ...]:
        """Nodes of a network in which one feature is the parent of all others."""
        return tuple((j,) if j == parent else (j, parent) for j in range(len(self.base.index)))

    @property
    def index(self) -> Sequence[int]:
        return [self.base.index[child] for child, *_ in self.nodes]

    @property
    def names(self) -> Sequence[str]:
        return [self.base.names[child] for child, *_ in self.nodes]

    @property
    def n_features(self) -> int:
        return self.base.n_features

    def check(self) -> None:
        """Raise ValueError unless arcs are between different features that there are."""
        self.base.check()
        many = len(self.base.index)
        for node in self.nodes:
            if not node or len(set(node)) < len(node) or not all(0 <= j < many for j in node):
                raise ValueError(f"an arc of its network is {node}, and there are {many} columns.")

    def open(self, table: Table) -> Factors:
        return self.base.open(table)

    def learn(self, opened: Factors) -> Self:
        """Levels of an undeclared feature are the values that occur, with or without their parents."""
        base = self.base
        levels = tuple(
            known
            if fixed
            else Levels.of(v for v, n in zip(values, opened.occurrences(j), strict=True) if n and v not in base.marks)
            for j, (known, fixed, values) in enumerate(zip(base.levels, base.declared, opened.values, strict=True))
        )
        return replace(self, base=replace(base, levels=levels))

    def coded(self, base: CodedRows) -> NodeRows:
        """Rows as they count."""
        return NodeRows(base, self.nodes, self.capacity)

    def rows(self, opened: Factors, policy: UnknownPolicy | None = None) -> NodeRows:
        return NetworkRows(self.base.rows(opened, policy), self.nodes, self.capacity)

    def prune(self, statistics: LevelCounts) -> tuple[Self, LevelCounts]:
        """Nothing: all levels occurred, if not in every class and with every parent."""
        return self, statistics

    def union(self, other: Self) -> Self:
        if self.nodes != other.nodes:
            raise ValueError("Counts of different structures do not add up.")
        return replace(self, base=self.base.union(other.base))

    def levels_in(self, joint: Self) -> np.ndarray:
        own, found = self.base.codes_in(joint.base), []
        for (child, *parents), start in zip(self.nodes, joint.start(), strict=True):
            at = [self._as_parent(own[p], joint.base.sizes()[p]) for p in parents]
            shape = joint.shape((child, *parents))
            found.append(start + np.ravel_multi_index(np.ix_(*at, own[child]), shape).ravel())
        return np.concatenate(found)

    def _as_parent(self, code: np.ndarray, n_levels: int) -> np.ndarray:
        """Positions of a parent's values, given those of its levels."""
        return code

    def given(self) -> np.ndarray:
        """Number of values of each feature as a parent."""
        return self.base.sizes()

    def values_of(self, j: int) -> list[Hashable]:
        """Those of a feature as a parent."""
        return self.base.level_names(j)

    def shape(self, node: Node) -> tuple[int, ...]:
        """Numbers of levels of the parents, then of the feature."""
        child, *parents = node
        return (*(int(n) for n in self.given()[parents]), int(self.base.sizes()[child]))

    def sizes(self) -> np.ndarray:
        """Number of levels of each feature together with its parents."""
        return self._sizes

    @cached_property
    def _sizes(self) -> np.ndarray:
        # Beyond 2⁶³ these are objects, and `require_memory` says how many.
        return np.array([math.prod(self.shape(node)) for node in self.nodes])

    def require_memory(self, n_classes: int) -> None:
        """Refuse combinations of levels whose counts would not fit into memory."""
        sizes = self._sizes.tolist()
        widest = max(range(len(sizes)), key=sizes.__getitem__, default=0)
        require_memory(
            n_classes * sum(sizes),
            f"Counts of {sum(sizes):,} combinations of levels in {n_classes} classes",
            f"Column {shown(self.names[widest])} and its parents have {sizes[widest]:,}: leave out arcs, or group "
            "levels.",
        )

    def groups(self) -> np.ndarray:
        found, first = [], 0
        for *parents, own in map(self.shape, self.nodes):
            n_groups = int(np.prod(parents, dtype=np.int64))
            found.append(np.repeat(np.arange(first, first + n_groups, dtype=np.int32), own))
            first += n_groups
        return np.concatenate(found)

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        levels: list[Hashable] = []
        for child, *parents in self.nodes:
            own = self.base.level_names(child)
            if not parents:
                levels += own
                continue
            names = [self.base.names[p] for p in parents]
            for given in product(*map(self.values_of, parents)):
                levels += [Conditional(level, tuple(zip(names, given, strict=True))) for level in own]
        return np.repeat(np.arange(len(self.nodes)), self.sizes()), levels

    def tables(self, flat: np.ndarray) -> list[np.ndarray]:
        """(C, *parents, levels) of each node, from (C, L)."""
        parts = np.split(flat, self.start()[1:], axis=1)
        return [part.reshape(len(flat), *self.shape(node)) for part, node in zip(parts, self.nodes, strict=True)]

    def margins(self, statistics: LevelCounts) -> LevelCounts:
        """Counts of the features without structure, from those cells whose parents are observed."""
        tables = self.tables(statistics.count)
        found = [t.sum(axis=tuple(range(1, t.ndim - 1))) for t in tables]
        return LevelCounts(np.concatenate([found[i] for i in np.argsort(self.index)], axis=1))

    def missing_on_arcs(self, statistics: LevelCounts, class_count: np.ndarray) -> list[str]:
        """Features that, in some rows, are missing or have a parent that is."""
        missing = self._counted(statistics) < class_count[:, None] * (1 - 1e-9)
        return [self.base.names[self.nodes[i][0]] for i in np.flatnonzero(self._has_parents & missing.any(axis=0))]

    def never_together(self, statistics: LevelCounts, class_count: np.ndarray) -> list[tuple[int, str]]:
        """Classes and features such that no row of the class has the feature and all of its parents."""
        never = self._has_parents & (self._counted(statistics) == 0) & (class_count[:, None] > 0)
        return [(int(c), self.base.names[self.nodes[i][0]]) for c, i in np.argwhere(never)]

    @property
    def _has_parents(self) -> np.ndarray:
        """(G,) whether each node has parents."""
        return np.array([len(node) > 1 for node in self.nodes], bool)

    def _counted(self, statistics: LevelCounts) -> np.ndarray:
        """(C, G) weight of the rows that have the feature and its parents."""
        tables = [t.reshape(len(t), -1).sum(axis=1) for t in self.tables(statistics.count)]
        return np.stack(tables, axis=1) if tables else np.zeros((len(statistics.count), 0))

    def without_arcs(self, prior: Dirichlet) -> Dirichlet:
        """The prior of the features given the class alone: of each what it is given the first value of its parents."""

        def given_first(table: np.ndarray) -> np.ndarray:
            if not table.size:
                return np.ones((len(table), table.shape[-1]))
            return table.reshape(len(table), -1, table.shape[-1])[:, 0]

        alpha = np.concatenate(list(map(given_first, self.tables(np.asarray(prior.concentration)))), axis=1)
        return Dirichlet(alpha, self.base.groups(), len(self.base.index))

    def order(self) -> list[int]:
        """Positions of the nodes, parents before children."""
        at = {node[0]: i for i, node in enumerate(self.nodes)}
        return [at[child] for child, *_ in parents_first(self.nodes)]

    def realized(self, chosen: np.ndarray) -> np.ndarray:
        """Of one level drawn from every group, (S, L) of 0 and 1, those that come true: where parents are as given."""
        true = np.zeros_like(chosen)
        start, sizes, own, given = self.start(), self.sizes(), self.base.sizes(), self.given()
        draws = np.arange(len(chosen))
        level = np.zeros((len(chosen), len(own)), np.int64)
        for i in self.order():
            child, *parents = self.nodes[i]
            if not sizes[i]:
                continue
            of_node = chosen[:, start[i] : start[i] + sizes[i]].reshape(len(chosen), -1, own[child])
            group = np.ravel_multi_index([level[:, p] for p in parents], given[parents]) if parents else 0
            level[:, child] = of_node[draws, group].argmax(axis=1)
            true[draws, start[i] + group * own[child] + level[:, child]] = 1
        return true


@dataclass(frozen=True, eq=False)
class AveragedColumns(NodeColumns):
    """Categorical features under an average of structures: rows score as they count, with nothing summed out."""

    def rows(self, opened: Factors, policy: UnknownPolicy | None = None) -> NodeRows:
        return self.coded(self.base.rows(opened, policy))

    def check_prior(self, given: Any, n_classes: int, name: str) -> None:
        require_structures(given, self.prior(1.0, "alpha", n_classes), name)


__all__ = ["AveragedColumns", "Conditional", "Node", "NodeColumns"]
