"""Raw user data to what the kernels read: the only place that validates it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding import priors
from bayesnb.encoding.cell_columns import CellColumns
from bayesnb.encoding.class_labels import check_labels, check_weights, index_of_labels
from bayesnb.encoding.columns import BinaryColumns, Columns, CountColumns, RealColumns, Unknown, UnknownPolicy
from bayesnb.encoding.context_columns import ContextColumns
from bayesnb.encoding.level_columns import (
    GrowingColumns,
    LevelColumns,
    declared_categories,
    describe_unknown,
    report_unknown,
)
from bayesnb.encoding.levels import Levels
from bayesnb.encoding.node_columns import Conditional, Node, NodeColumns
from bayesnb.encoding.pair_columns import PairColumns
from bayesnb.encoding.row_blocks import Rows, blocks
from bayesnb.encoding.table import Table, check_table
from bayesnb.encoding.term_map import MarginColumns, RootColumns, TermMap, select_level_columns


@dataclass(frozen=True, eq=False)
class Encoding:
    """Classes, and the columns of each block with their levels; the names behind array axes."""

    classes: Levels
    blocks: tuple[Columns, ...]

    @property
    def n_features(self) -> int:
        """Number of columns of the table."""
        return self.blocks[0].n_features

    def check(self) -> None:
        """Raise ValueError unless the parts fit together: classes, and every column of the table in some block."""
        self.classes.check()
        if not len(self.classes) or not self.blocks:
            raise ValueError(f"there are {len(self.classes)} classes and {len(self.blocks)} blocks of columns.")
        own = self._columns()
        index = own[0].index if len(own) == 1 else sorted({j for columns in own for j in columns.index})
        alone = [j for b in self.blocks if b.network is None and b.beside is None for j in b.index]
        if len(set(alone)) < len(alone) and len(own) > 1:
            raise ValueError("a column of the table is in two of its blocks.")
        if index != range(self.n_features) and list(index) != list(range(min(self.n_features, len(index) + 1))):
            raise ValueError(f"its {len(index)} columns are not the {self.n_features} of the table.")
        for block, columns in zip(self.blocks, own, strict=True):
            if columns.n_features != self.n_features or len(columns.names) != len(columns.index):
                raise ValueError(
                    f"it has {len(columns.index)} columns of {columns.n_features}, and {len(columns.names)} names."
                )
            block.check()

    def blank(self, owner: str) -> Table:
        """A table of these columns, without rows."""
        own = self._columns()
        names: Any = own[0].names
        if len(own) > 1:
            named = {j: name for columns in own for j, name in zip(columns.index, columns.names, strict=True)}
            names = tuple(named[j] for j in range(self.n_features))
        data = [np.empty(0)] * self.n_features
        for columns in own:
            if isinstance(columns, LevelColumns):
                for j, cuts in zip_longest(columns.index, columns.cuts):
                    data[j] = np.empty(0, object if cuts is None else float)
        return Table(data, names, 0, owner)

    def _columns(self) -> list[Any]:
        """The columns of each block, of a structure those below it."""
        return [block.base for block in self.blocks]

    def union(self, other: Encoding) -> Encoding:
        """The encoding that knows the classes and levels of both."""
        columns = tuple(mine.union(theirs) for mine, theirs in zip(self.blocks, other.blocks, strict=True))
        return Encoding(self.classes.union(other.classes), columns)

    def learn(self, table: Table) -> tuple[Encoding, tuple[Rows, ...]]:
        """The encoding of a batch, with the levels that may occur in it, and its rows under that encoding."""
        opened = [block.open(table) for block in self.blocks]
        learned = Encoding(self.classes, tuple(b.learn(o) for b, o in zip(self.blocks, opened, strict=True)))
        return learned, tuple(b.rows(o) for b, o in zip(learned.blocks, opened, strict=True))

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> tuple[Rows, ...]:
        """The columns of a table, checked and coded; `policy` as in `LevelColumns.rows`."""
        return tuple(block.rows(block.open(table), policy) for block in self.blocks)

    def label_index(self, y: Any, n_rows: int, owner: str) -> np.ndarray:
        """(N,) index of the class of each row.

        Raises
        ------
        ValueError
            Naming the first label that is no class.
        """
        return index_of_labels(self.classes, *check_labels(y, n_rows, owner))

    def in_order(self, of_blocks: Iterable[np.ndarray]) -> np.ndarray:
        """(F,) numbers of the columns of each block, in the order of the columns of X."""
        index = np.concatenate([np.asarray(block.index) for block in self.blocks])
        return np.concatenate(list(of_blocks))[np.argsort(index)]

    @property
    def n_terms(self) -> int:
        """How many terms the log-likelihood of a row has: one a column, or one of all draws from a simplex."""
        return sum(len(block.term_names) for block in self.blocks)

    @property
    def term_names(self) -> list[str]:
        """Names of the terms of each block, one block after the other: a column, or all columns of a kind."""
        return [name for block in self.blocks for name in block.term_names]

    @property
    def repeats(self) -> list[bool]:
        """For each block whether its columns are in an earlier one, which has their cells."""
        known: set[int] = set()
        found = []
        for columns in self._columns():
            found.append(known.issuperset(columns.index) and bool(known))
            known.update(columns.index)
        return found

    @cached_property
    def term_map(self) -> TermMap:
        """Terms of the classifier, as sums and differences of the terms of its blocks."""
        return TermMap.of(self.blocks)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X, in their order."""
        named = {j: name for own in self._columns() for j, name in zip(own.index, own.names, strict=True)}
        return [named[j] for j in sorted(named)]

    def positions(self, features: Iterable[Any], argument: str = "features") -> set[int]:
        """Columns of X, named by name or index; `argument` is where.

        Raises
        ------
        ValueError
            Naming the first that there is not.
        """
        names = {name: int(j) for own in self._columns() for j, name in zip(own.index, own.names, strict=True)}
        known = set(names.values())
        found = set()
        one = isinstance(features, str) or not isinstance(features, Iterable)
        for feature in [features] if one else features:
            if isinstance(feature, int | np.integer) and int(feature) in known:
                found.add(int(feature))
            elif isinstance(feature, Hashable) and feature in names:
                found.add(names[feature])
            else:
                some = list(names)[:8]
                raise ValueError(
                    f"{argument}: there is no column {shown(feature)}; X has {shown(some)}{' …' * (len(names) > 8)}."
                )
        return found


__all__ = [
    "BinaryColumns",
    "CellColumns",
    "Columns",
    "Conditional",
    "ContextColumns",
    "CountColumns",
    "Encoding",
    "GrowingColumns",
    "LevelColumns",
    "Levels",
    "MarginColumns",
    "Node",
    "NodeColumns",
    "PairColumns",
    "RealColumns",
    "RootColumns",
    "Rows",
    "Table",
    "TermMap",
    "Unknown",
    "UnknownPolicy",
    "blocks",
    "check_labels",
    "check_table",
    "check_weights",
    "declared_categories",
    "describe_unknown",
    "index_of_labels",
    "priors",
    "report_unknown",
    "select_level_columns",
]
