"""Numbers of which is counted in which cell they lie; the ends of the cells are frozen, as declared levels are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from bayesnb.encoding.cell_edges import are_edges, cell_names, quantiles, same_edges
from bayesnb.encoding.columns import FixedColumns, UnknownPolicy, cells_by_feature
from bayesnb.encoding.priors import prior_of_cells
from bayesnb.encoding.row_blocks import PlainRows, pad_rows, room
from bayesnb.encoding.table import SideBySide, Table
from bayesnb.families import Binned, LevelCounts, OneHot, PackedCounts, empty_counts
from bayesnb.families.count_rows import cell_code

_ROWS = 2**14
"""Of a first batch, evenly spread, that quantiles are taken of."""


@dataclass(frozen=True, eq=False)
class CellColumns(FixedColumns):
    """Numbers in cells; NaN is a missing cell.

    Parameters
    ----------
    edges : tuple of arrays
        For each feature where a cell ends and the next begins, increasing; a number on an edge is in the lower one.
        None: not known yet, for want of an observed cell.
    most : int
        At most how many cells there are, where their ends are taken from the rows that are counted first.
    """

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    edges: tuple[np.ndarray | None, ...]
    most: int
    kind: ClassVar[str] = "binned"
    family: ClassVar[type] = Binned
    hyperparameter: ClassVar[str] = "binned_prior"

    def check(self) -> None:
        """Raise ValueError unless there are increasing edges of each feature."""
        if len(self.edges) != len(self.index):
            raise ValueError(f"there are edges of {len(self.edges)} columns, and there are {len(self.index)}.")
        for edges in self.edges:
            if edges is not None and not are_edges(edges):
                raise ValueError("the edges of its cells do not increase.")

    def prior(self, given: Any, argument: str, n_classes: int) -> Binned:
        return prior_of_cells(given, argument, n_classes, self.sizes())

    def open(self, table: Table) -> CellRows:
        check = partial(table.check_finite, index=self.index, missing=True)
        return CellRows(table.numbers(self.index), self._ends, self.sizes(), check)

    def learn(self, opened: CellRows) -> Self:
        """Quantiles of the first rows are edges for good."""
        if all(edges is not None for edges in self.edges):
            return self
        values = np.asarray(opened.values[:: max(1, len(opened) // _ROWS)])
        found = (quantiles(values[:, j], self.most) if edges is None else edges for j, edges in enumerate(self.edges))
        return replace(self, edges=tuple(found))

    def rows(self, opened: CellRows, policy: UnknownPolicy | None = None) -> CellRows:
        return replace(opened, ends=self._ends, sizes=self.sizes())

    def finish(self, statistics: LevelCounts | PackedCounts, class_count: np.ndarray) -> LevelCounts:
        return statistics.level_counts(self.sizes())

    def union(self, other: Self) -> Self:
        pairs = zip(self.names, self.edges, other.edges, strict=True)
        return replace(self, edges=tuple(same_edges(name, mine, theirs) for name, mine, theirs in pairs))

    def levels_in(self, joint: Self) -> np.ndarray:
        """Of a feature that had no edges yet nothing was counted."""
        at = joint.start()
        sizes = self.sizes()
        return np.concatenate([s + np.arange(n) for s, n in zip(at, sizes, strict=True)])

    def cells(self, statistics: LevelCounts) -> np.ndarray:
        """(C, F) weight of the rows of each class in which each feature is observed."""
        return cells_by_feature(statistics.count, self.sizes())

    def sizes(self) -> np.ndarray:
        """Number of cells of each feature."""
        return self._sizes

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.array([1 if edges is None else len(edges) + 1 for edges in self.edges])

    @cached_property
    def _ends(self) -> np.ndarray:
        """(F, K) edges, infinite behind the last one of a feature."""
        ends = np.full((len(self.edges), int(self.sizes().max(initial=1))), np.inf)
        for own, edges in zip(ends, self.edges, strict=True):
            if edges is not None:
                own[: len(edges)] = edges
        return ends

    def start(self) -> np.ndarray:
        """Position of the first cell of each feature."""
        return np.cumsum([0, *self.sizes()[:-1]]).astype(np.int32)

    def groups(self) -> np.ndarray:
        """Feature of each cell."""
        return np.repeat(np.arange(len(self.edges), dtype=np.int32), self.sizes())

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return self.groups(), [name for edges in self.edges for name in cell_names(edges)]


@dataclass(frozen=True, eq=False)
class CellRows(PlainRows):
    """Numbers, NaN where missing, as codes of the cells that they lie in; `check` is as for `RealRows`."""

    values: np.ndarray | SideBySide
    ends: np.ndarray
    sizes: np.ndarray
    check: Callable[..., bool]

    def __len__(self) -> int:
        return self.values.shape[0]

    @cached_property
    def _width(self) -> int:
        columns = self.values.columns if isinstance(self.values, SideBySide) else (self.values,)
        with np.errstate(over="ignore", invalid="ignore"):
            return room(self.sizes, complete=not any(np.isnan(np.sum(column)) for column in columns))

    def empty(self, n_classes: int) -> LevelCounts | PackedCounts:
        return empty_counts(n_classes, len(self), self.sizes, self._width, int(self.sizes.sum()))

    def width(self) -> float:
        return self.values.shape[1]

    @property
    def missing(self) -> np.ndarray:
        return np.isnan(np.asarray(self.values))

    def block(self, start: int, stop: int, size: int) -> OneHot:
        values = self.values[start:stop]
        self.check(values, start=start)
        dtype = str(np.min_scalar_type(-int(self.sizes.max(initial=1))))
        code = cell_code(pad_rows(values, size), self.ends, dtype=dtype)
        first = np.cumsum(self.sizes) - self.sizes
        return OneHot(code, first.astype(np.int32), self.sizes.astype(np.int32), self._width)


__all__ = ["CellColumns", "CellRows"]
