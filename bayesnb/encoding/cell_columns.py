"""Numbers as the cells in which they lie; the edges of the cells do not change, like declared levels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb.encoding.cell_edges import are_edges, cell_names, merge_edges, quantile_edges
from bayesnb.encoding.columns import OneLevelColumns, PlainColumns, UnknownPolicy, require_entries
from bayesnb.encoding.priors import prior_of_cells
from bayesnb.encoding.row_blocks import CodedRows, block_slices, pad_rows
from bayesnb.encoding.table import StackedColumns, Table, aligned, check_finite
from bayesnb.families import Binned
from bayesnb.families.rows import cell_code

_ROWS = 2**14
"""Number of rows of a first batch, evenly spread, that quantiles are taken of."""


@dataclass(frozen=True, eq=False)
class CellColumns(PlainColumns, OneLevelColumns):
    """Numbers, each counted in the cell in which it lies; NaN is a missing cell.

    Parameters
    ----------
    index : sequence of int
        Positions of the features among the columns of the table.
    names : sequence of str
        Names of the features.
    n_features : int
        Number of columns of the whole table.
    edges : tuple of arrays
        For each feature the increasing edges between its cells; a number on an edge is in the lower cell. None for a
        feature without an observed number yet, which has one cell.
    most : int
        Greatest number of cells of a feature whose edges are taken from the rows that are counted first.
    """

    edges: tuple[np.ndarray | None, ...]
    most: int
    kind = "binned"
    by_feature = ("index", "names", "edges")
    family = Binned
    hyperparameter = "binned_prior"

    def check(self) -> None:
        """Raise ValueError unless the edges of each feature increase."""
        require_entries("edges", len(self.edges), len(self.index))
        for edges, name in zip(self.edges, self.names, strict=True):
            if edges is not None and not are_edges(edges):
                raise ValueError(f"The edges of column {shown(name)} must be finite numbers that increase.")

    def prior(self, given: object, argument: str, n_classes: int) -> Binned:
        """Return the prior over the cells of each feature; `given` is a Binned, an IndependentCuts or "independent"."""
        return prior_of_cells(given, argument, n_classes, self.sizes())

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> CodedRows:
        """Return rows of the cell of each number; raise ValueError naming an infinite one. `policy` is not used."""
        return self._code(table.numbers(self.index))

    def learn(self, table: Table, policy: UnknownPolicy | None = None) -> tuple[Self, CodedRows]:
        """Return columns in which features without edges have quantiles of these rows as edges, and the rows.

        The quantiles are those of every n-th row, n = N // 16,384 or 1. `policy` is not used.
        """
        numbers, learned = table.numbers(self.index), self
        if any(edges is None for edges in self.edges):
            quantiles = [quantile_edges(c, self.most) for c in numbers[:: max(1, numbers.shape[0] // _ROWS)].T]
            edges = tuple(new if old is None else old for old, new in zip(self.edges, quantiles, strict=True))
            learned = replace(self, edges=edges)
        return learned, learned._code(numbers)

    def _code(self, numbers: np.ndarray | StackedColumns) -> CodedRows:
        """Return rows of the cell of each number (N, F), computed in blocks of rows."""
        dtype, ends, complete = np.min_scalar_type(-int(self.sizes().max(initial=1))), self._ends(), True
        codes, code_block = aligned(numbers.shape, dtype), float64(cell_code)
        for rows, size in block_slices(len(codes), len(self.index)):
            values = numbers[rows]
            complete &= check_finite(values, self.names, start=rows.start)
            codes[rows] = code_block(pad_rows(values, size), ends, dtype=str(dtype))[: len(values)]
        return CodedRows(codes, self.sizes(), complete)

    def union(self, other: Self) -> Self:
        """Return columns with the edges of both; raise ValueError if a feature has different edges."""
        columns = zip(self.names, self.edges, other.edges, strict=True)
        return replace(self, edges=tuple(merge_edges(*column) for column in columns))

    def positions_in(self, joint: Self) -> np.ndarray:
        """Positions of these cells on the last axis of `joint`; a feature without edges has an empty first cell."""
        return np.concatenate(list(map(np.add, joint.start(), map(np.arange, self.sizes()))))

    @cached_property
    def _sizes(self) -> np.ndarray:
        """(F,) number of cells of each feature."""
        return np.array([1 if edges is None else len(edges) + 1 for edges in self.edges])

    def are_cells(self) -> np.ndarray:
        """(F,) ones: the levels of all features are cells of numbers."""
        return np.ones(len(self.index), bool)

    def _ends(self) -> np.ndarray:
        """(F, K) edges of each feature, K the greatest number of cells; infinite behind the last edge."""
        ends = np.full((len(self.edges), int(self.sizes().max(initial=1))), np.inf)
        for row, edges in zip(ends, self.edges, strict=True):
            if edges is not None:
                row[: len(edges)] = edges
        return ends

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the feature of each cell (L,), and the name of each cell, such as "(1.5, 2]"."""
        return self.groups(), [name for edges in self.edges for name in cell_names(edges)]
