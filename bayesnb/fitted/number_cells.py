"""Cells of numbers: counts of a sample of the rows by class and by cell, for tests whether other rows differ."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from bayesnb._util.arguments import GREATEST
from bayesnb.encoding import Levels, Table
from bayesnb.encoding.table import check_finite

_MOST_ROWS = 2**14
"""Number of rows of a first batch up to which every row is counted."""
_EDGE_ROWS = 2**12
"""Number of rows, evenly spread, of which quantiles are taken."""
_ROWS_A_CELL, _CELLS, _FEWEST_CELLS = 4, 32, 8
_MOST_CELLS = 2**18
"""Number of cells of all columns and classes up to which a column may have 32 cells."""
_FULLEST = 0.25
"""Greatest share of the numbers of a column in a cell of several values."""
_PIECE = 2**16
"""Number of cells of a table that are counted at a time, which stay in a core's cache."""
_NUMBERS_AT_ONCE = 2**20
"""Number of cells of a table that are read at a time, as those of a sparse one become dense."""
_LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class NumberCells:
    """Counts of a sample of rows by class, and by the cell in which each of their numbers lies.

    Parameters
    ----------
    classes : Levels
        Names of the C classes; the class None stands for rows whose class is not known.
    edges : (F, K) array
        Increasing edges between the cells of each column of numbers, infinite behind the last one. A number on an edge
        is in the lower cell. A value that many rows have is alone in its cell: an edge is just below the value, and the
        next edge is the value.
    every : int
        One of this many rows is counted.
    count : (C, F, K + 2) array
        Weight of the counted rows in each cell, and at the end of those without a number.

    Examples
    --------
    >>> from bayesnb import GaussianNB
    >>> X = [[0.0], [0.0], [0.0], [1.0], [2.0], [3.0]] * 2
    >>> cells = GaussianNB().fit(X, ["dry", "dry", "dry", "wet", "wet", "wet"] * 2).fitted_.cells
    >>> cells.describe(0)[1]
    ['(-inf, 0)', '0', '(0, 1.5]', '(1.5, 3]', '(3, inf)']
    """

    classes: Levels
    edges: np.ndarray
    every: int
    count: np.ndarray

    @classmethod
    def from_rows(
        cls,
        table: Table,
        index: Sequence[int],
        classes: Levels,
        label: np.ndarray,
        weight: np.ndarray,
        known: NumberCells | None = None,
    ) -> Self:
        """Count the numbers of rows.

        Parameters
        ----------
        table : Table
            N rows.
        index : sequence of int
            Positions of the columns of numbers.
        classes : Levels
            Names of the classes.
        label : (N,) int array
            Index of the class of each row.
        weight : (N,) array
            Replication count of each row.
        known : NumberCells, optional
            Cells of earlier rows. Default: edges are quantiles of these rows, and one of several rows is counted if
            there are more than 16,384.
        """
        every = -(-table.n_rows // _MOST_ROWS) if known is None else known.every
        if every > 1:
            # The draw depends on nothing but the rows.
            first_row = _read_numbers(table.take(np.arange(table.n_rows) == 0), index)
            rng, first = np.random.default_rng(zlib.crc32(first_row.tobytes())), np.arange(0, table.n_rows, every)
            rows = first + rng.integers(every, size=len(first))
            rows = rows[rows < table.n_rows]
            table, label, weight = table.part(rows, range(len(table.names))), label[rows], weight[rows]
        if known is None:
            most = max(_FEWEST_CELLS, _MOST_CELLS // (len(index) * len(classes)))
            edges = np.full((len(index), 1 + max(2, min(_CELLS, most, table.n_rows // _ROWS_A_CELL))), np.inf)
        else:
            edges = known.edges.copy()
        counts, step = [], max(1, _NUMBERS_AT_ONCE // max(1, table.n_rows))
        for start in range(0, len(index), step):
            numbers, of_columns = _read_numbers(table, index[start : start + step]), edges[start : start + step]
            if len(numbers) and (empty := of_columns[:, 0] == np.inf).any():
                some = numbers[:: 1 + len(numbers) // _EDGE_ROWS, empty]
                of_columns[empty] = _quantile_edges(some, edges.shape[1] - 1)
            counts.append(_count(numbers, of_columns, label, weight, len(classes)))
        return cls(classes, edges, every, np.concatenate(counts, axis=1))

    def describe(self, f: int) -> tuple[np.ndarray, list[str]]:
        """Return the finite ends of the cells of column f, and the names of the cells between these.

        A name is such as "(1.5, 2]", or "0" for a cell of one value, both ends of which are the value.
        """
        edges = self.edges[f][self.edges[f] < np.inf]
        is_included = np.append(_just_below(edges[1:]) == edges[:-1], [False] * len(edges[:1]))
        is_included[:1] = True  # The first edge is just below the least number.
        with np.errstate(over="ignore"):
            above = np.where(edges == -_LEAST, 0.0, np.nextafter(edges, np.inf))
        ends = np.where(is_included, above, edges)
        values, includes = ends.tolist(), is_included.tolist()
        digits = next((d for d in range(3, 18) if len({f"{v:.{d}g}" for v in values}) == len(set(values))), 17)
        texts = ["-inf", *(f"{v:.{digits}g}" for v in values), "inf"]
        opening = ["(", *("[" if included else "(" for included in includes)]
        closing = [*(")" if included else "]" for included in includes), ")"]
        cells = zip(opening, pairwise(texts), closing, strict=True)
        return ends, [low if low == high else f"{start}{low}, {high}{end}" for start, (low, high), end in cells]

    def resolve(self) -> np.ndarray:
        """Return (F,) whether the cells of each column show where its counted numbers lie.

        They do not if more than a quarter lie in one cell that has more than one value, as when later rows have numbers
        beyond those of the rows that gave the edges; or if fewer than two rows were counted.
        """
        edges, count = self.edges, self.count.sum(axis=0)[:, :-1]
        wide = np.ones(count.shape, bool)
        wide[:, 1 : edges.shape[1]] = _just_below(edges[:, 1:]) != edges[:, :-1]
        fullest = np.where(wide, count, 0.0).max(axis=1)
        return np.asarray((fullest <= _FULLEST * count.sum(axis=1)) & (self.count.sum(axis=(0, 2)) >= 2))

    def matches(self, other: NumberCells | None) -> np.ndarray:
        """Return (F,) whether the cells of each column are those of `other`, or have no edges in one of the two."""
        if other is None or self.edges.shape != other.edges.shape:
            return np.zeros(len(self.edges), bool)
        has_none = (self.edges[:, :1] == np.inf) | (other.edges[:, :1] == np.inf)
        return np.asarray(((self.edges == other.edges) | has_none).all(axis=1))

    def merge(self, other: NumberCells | None) -> Self | None:
        """Return the counts of the rows of both; of a column with other cells, those of more rows.

        None without `other`.
        """
        if other is None or self.edges.shape != other.edges.shape:
            return None
        classes = Levels.from_values((*self.classes.values, *other.classes.values))
        ours, theirs = self._counts_of(classes), other._counts_of(classes)
        is_same = self.matches(other)[:, None]
        has_more = (ours.sum(axis=(0, 2)) >= theirs.sum(axis=(0, 2)))[:, None]
        edges = np.where(has_more, self.edges, other.edges)
        # Without edges all of them are infinite.
        edges = np.where(is_same, np.minimum(self.edges, other.edges), edges)
        count = np.where(is_same, ours + theirs, np.where(has_more, ours, theirs))
        return replace(self, classes=classes, edges=edges, count=count)

    def remove(self, other: NumberCells | None) -> Self | None:
        """Return the counts without the rows of `other`, 0 where fewer were counted; none of a column with other cells.

        None without `other`, or if the counts are those of a sample: that of the rows to remove need not be a part of
        it.
        """
        if other is None or self.edges.shape != other.edges.shape or (self.every > 1 and other.count.any()):
            return None
        classes = Levels.from_values((*self.classes.values, *other.classes.values))
        ours = self._counts_of(classes)
        left = ours - other._counts_of(classes)
        count = np.where(self.matches(other)[:, None] & (left > 1e-9 * ours), left, 0.0)
        return replace(self, classes=classes, count=count)

    def _counts_of(self, classes: Levels) -> np.ndarray:
        """Return the counts by `classes`, which has those of these counts, (C', F, K + 2)."""
        count = np.zeros((len(classes), *self.count.shape[1:]))
        count[classes.index(self.classes.values)] = self.count
        return count

    def scale(self, factor: float) -> Self:
        """Return the counts of the same rows with weights multiplied by `factor`."""
        return replace(self, count=self.count * factor)

    def pooled(self) -> Self:
        """Return the counts of all classes together, as those of the class None."""
        return replace(self, classes=Levels((None,)), count=self.count.sum(axis=0, keepdims=True))

    def check(self, n_columns: int) -> None:
        """Raise ValueError unless rows of a table with `n_columns` columns of numbers can have produced the counts."""
        self.classes.check()
        edges, count = self.edges, self.count
        is_table = edges.ndim == 2 and len(edges) == n_columns and 1 <= edges.shape[1] <= _CELLS + 1
        rises = is_table and ((edges[:, 1:] > edges[:, :-1]) | (edges[:, 1:] == np.inf)).all()
        if edges.dtype != np.float64 or not rises or np.isnan(edges).any():
            problem = f"must increase, at most 33 of each of {n_columns} columns; they are {edges.dtype} {edges.shape}"
            raise ValueError(f"The edges of cells of numbers {problem}. Fit again.")
        if self.every < 1:
            raise ValueError(
                f"Cells of numbers count one of {self.every} rows; it must be one of at least 1. Fit again."
            )
        shape = (len(self.classes), n_columns, edges.shape[1] + 2)
        if count.dtype != np.float64 or count.shape != shape or not ((count >= 0) & (count <= GREATEST)).all():
            raise ValueError(f"The counts in cells of numbers must be at least 0, of shape {shape}. Fit again.")


def _read_numbers(table: Table, index: Sequence[int]) -> np.ndarray:
    """(N, F) numbers of some columns of a table, NaN where missing."""
    numbers = np.asarray(table.numbers(index, sparse=True), np.float64)
    check_finite(numbers, table.columns_at(index)[1])
    return numbers


def _just_below(values: np.ndarray) -> np.ndarray:
    """Next smaller number of each value; processors may read subnormal numbers as 0, so that 0 has -2.2e-308."""
    with np.errstate(over="ignore"):
        return np.where(values == 0, -_LEAST, np.nextafter(values, -np.inf))


def _quantile_edges(numbers: np.ndarray, n_cells: int) -> np.ndarray:
    """(F, n_cells + 1) edges of each column of numbers (N, F): just below the least, at quantiles, at the greatest.

    Edges at quantiles are halfway to the next number, so that the ranks of these rows are not biased in their cells. Of
    equal quantiles the first edge is just below the value, the last is the value, and others are removed.
    """
    ordered, n_present = np.sort(numbers, axis=0), np.count_nonzero(~np.isnan(numbers), axis=0)
    last = np.maximum(n_present - 1, 0)
    position = np.clip(np.arange(n_cells + 1)[:, None] * n_present // n_cells - 1, 0, last)
    values, following = (np.take_along_axis(ordered, np.minimum(position + k, last), axis=0) for k in (0, 1))
    equal = np.pad(values[1:] == values[:-1], ((1, 1), (0, 0)))
    edges = values / 2 + following / 2
    edges = np.where(equal[1:] | equal[:-1] | (edges >= following), values, edges)
    is_first = equal[1:] & ~equal[:-1]
    is_first[0] = True
    edges = np.where(is_first, _just_below(values), edges)
    edges[1:][edges[1:] == edges[:-1]] = np.inf
    return np.sort(np.where(np.isnan(edges), np.inf, edges), axis=0).T


def _count(numbers: np.ndarray, edges: np.ndarray, label: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """(C, F, K + 2) weight of the rows in each cell of numbers (N, F), and at the end of those without a number."""
    n_columns, size = len(edges), edges.shape[1] + 2
    count, step = np.empty((n_classes, n_columns, size)), max(1, _PIECE // max(1, len(numbers)))
    for start in range(0, n_columns, step):
        columns = np.ascontiguousarray(numbers[:, start : start + step].T)
        code = np.zeros(columns.shape, np.int8)
        for edge in edges[start : start + step].T[..., None]:
            code += columns > edge
        code[np.isnan(columns)] = size - 1
        shape = (n_classes, len(columns), size)
        first = np.arange(len(columns))[:, None] * size
        cell = label.astype(np.int64) * (len(columns) * size) + first + code
        weights = np.broadcast_to(weight, columns.shape).ravel()
        count[:, start : start + step] = np.bincount(cell.ravel(), weights, np.prod(shape)).reshape(shape)
    return count
