"""Encoded rows of blocks of columns, cut into pieces of rows that the kernels read.

There are five kinds of storage: numbers (`RealRows`), counts with exposures (`ExposedRows`), codes of levels
(`CodedRows`), codes with the parents of each feature (`NodeRows`), and sparse words (`WordRows`). Pieces are padded to
a few sizes, so that the number of compilations does not depend on the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, Self

import jax
import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.special import gammaln

from bayesnb._util.arrays import require_memory
from bayesnb._util.precision import map_in_threads
from bayesnb._util.terminal import rows_progress
from bayesnb.encoding.levels import MISSING
from bayesnb.encoding.table import SparseNumbers, StackedColumns, aligned, check_finite
from bayesnb.families import (
    Complete,
    Counts,
    Exposed,
    LevelCounts,
    OneHot,
    PackedCounts,
    Pairs,
    Presence,
    empty_counts,
)
from bayesnb.families.protocol import no_rows
from bayesnb.families.rows import joint_code
from bayesnb.families.structures import BARREN, Network, NetworkCells

if TYPE_CHECKING:
    from bayesnb.encoding.structure import NodeColumns

# == Encoded rows of blocks of columns, cut into pieces of rows that the kernels read ==============

CELLS = 2**20
_MOST_TAILS = 2**27  # tail counts of all columns and classes
_MOST_ROWS = 2**14  # Results of larger pieces fragment memory, so that a stream would take ever more of it.
FEWEST_ROWS = 16


class Rows(ABC):
    """Rows of one block of features."""

    @abstractmethod
    def empty(self, n_classes: int) -> Any:
        """Return statistics of no rows over C classes, to which the kernels add rows."""

    @abstractmethod
    def width(self) -> float:
        """Number of cells of a row, on average, by which the number of rows of a piece is chosen."""

    @abstractmethod
    def piece(self, start: int, stop: int, size: int) -> Any:
        """Return rows start … stop - 1 as an object that the kernels read, padded to `size` rows."""

    @abstractmethod
    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""

    def linear_rows(self) -> Self:
        """Return rows for kernels that read plug-in parameters, which are linear in the counts; default: these rows."""
        return self

    def counting_rows(self) -> Self:
        """Return rows for kernels that count them; default: these rows."""
        return self

    def count_on_host(self, label: np.ndarray, weight: np.ndarray, n_classes: int) -> tuple[Any, float] | None:
        """Statistics of all rows, and Σ weight · log base measure, by NumPy; default: None, as kernels count pieces."""
        return None

    def require_finite(self) -> None:  # noqa: B027
        """Raise ValueError naming the first infinite cell, if pieces for counting do not check this; default: pass."""

    def log_base(self, start: int, stop: int) -> np.ndarray | float:
        """Log base measures of the rows start … stop - 1 by the host; default: 0, as the kernels compute them."""
        return 0.0

    @property
    def summed(self) -> np.ndarray | bool:
        """(N,) whether a row has a missing cell that is summed out; default: False, as no row has one."""
        return False

    @property
    def missing(self) -> np.ndarray | bool:
        """(N, K) whether each cell is missing; default: False, as no cell is."""
        return False


def row_pieces(
    rows: tuple[Rows, ...], n: int, *arrays: np.ndarray, cells: float = 0.0
) -> Iterator[tuple[slice, tuple[Any, ...], list[np.ndarray]]]:
    """Yield pieces of n rows: the slice, padded rows of each of `rows`, and `arrays` cut alike and padded by zeros.

    `cells` is the number of cells of a row's result, if that is more than the row itself has. The size of a piece is
    16 · 4^k rows: the largest with at most 2^20 cells and 2^14 rows, less for the last piece; it is 16 at least, or a
    single row if this has more cells.
    """
    for piece, size in piece_slices(n, max(cells, sum(r.width() for r in rows))):
        x = tuple(r.piece(piece.start, piece.stop, size) for r in rows)
        yield piece, x, [pad_rows(a[piece], size) for a in arrays]


def piece_slices(n: int, width: float) -> Iterator[tuple[slice, int]]:
    """Yield pieces of n rows with `width` cells each: the slice, and the number of rows with padding."""
    largest = 1 if width > CELLS else min(_MOST_ROWS, power_of_four(CELLS / max(1.0, width), down=True))
    for start in range(0, n, largest):
        stop = min(start + largest, n)
        yield slice(start, stop), min(largest, power_of_four(stop - start))


@dataclass(frozen=True, eq=False)
class RealRows(Rows):
    """Numbers, NaN where missing.

    Parameters
    ----------
    values : (N, F) array
    names : sequence of str
        Names of the features, for the message about an infinite cell.
    statistics : type
        Class of the sufficient statistics, with (C, F) arrays.
    checked : bool
        Whether pieces refuse infinite cells. Kernels that count need no check, as an infinite cell makes the statistics
        infinite. Blocks are checked one by one, as another pass over all rows would take longer.
    """

    values: np.ndarray | StackedColumns | SparseNumbers
    names: Sequence[str]
    statistics: type
    checked: bool = True

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, values=self.values[index])

    def select(self, features: Sequence[int]) -> Self:
        """Return the rows of the features at these positions."""
        return replace(self, values=self.values[:, features], names=[self.names[f] for f in features])

    def empty(self, n_classes: int) -> Any:
        """Return zero statistics, (C, F) arrays, with room for these numbers."""
        empty = no_rows(self.statistics, (n_classes, self.values.shape[1]))
        if not hasattr(empty, "with_room"):
            return empty
        shape = n_classes, self.values.shape[1], self._room
        what = f"Counts up to {self._room:,} in {shape[1]:,} columns and {n_classes:,} classes"
        advice = "Divide large counts by a unit, or model their logarithms as Gaussian."
        require_memory(math.prod(shape), what, advice, _MOST_TAILS)
        return empty.with_room(self._room)

    @cached_property
    def _room(self) -> int:
        """Number of tail counts of each feature that the greatest number needs."""
        slices = piece_slices(*self.values.shape)
        room_for: Callable[[Any], int] = self.statistics.room_for  # type: ignore[attr-defined]
        return max((room_for(self.values[rows]) for rows, _ in slices), default=0)

    def width(self) -> float:
        """Number of features."""
        return float(self.values.shape[1])

    @property
    def missing(self) -> np.ndarray:
        """(N, F) whether each number is NaN."""
        return np.isnan(np.asarray(self.values))

    def feature(self, f: int) -> np.ndarray:
        """Return (N,) the numbers of feature f."""
        return np.asarray(self.values[:, [f]], np.float64)[:, 0]

    def counting_rows(self) -> Self:
        """Return these rows in pieces without the check for infinite cells."""
        return replace(self, checked=False)

    def require_finite(self) -> None:
        """Raise ValueError naming the first infinite cell."""
        check_finite(np.asarray(self.values), self.names)

    def piece(self, start: int, stop: int, size: int) -> Any:
        """(size, F) numbers of rows start … stop - 1, `Complete` if `checked` has found that none is NaN."""
        values = self.values[start:stop]
        complete = self.checked and check_finite(values, self.names, start=start)
        return Complete(pad_rows(values, size)) if complete else pad_rows(values, size)


@dataclass(frozen=True, eq=False)
class ExposedRows(RealRows):
    """Counts, NaN where missing, with the positive exposure of each row, (N, 1)."""

    exposure: np.ndarray = field(kw_only=True)

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(super().take(index), exposure=self.exposure[index])

    def piece(self, start: int, stop: int, size: int) -> Exposed:
        """Return rows start … stop - 1, padded to `size` rows by those of exposure 1."""
        return Exposed(super().piece(start, stop, size), pad_rows(self.exposure[start:stop], size, 1.0))


class LevelRows(Rows):
    """Rows with one level, or none, of each of G groups of levels: a feature, or a feature and its parents."""

    sizes: Any
    """(G,) numbers of levels of the groups."""
    complete: Any
    """Whether it is known that no cell is missing."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def code(self, start: int, stop: int, size: int) -> np.ndarray | jax.Array:
        """(size, G) codes of the levels of rows start … stop - 1, `MISSING` for missing cells and padding."""

    @cached_property
    def _level_width(self) -> int:
        """Bound on the levels of a group, and a missing one: a power of two, which seldom grows, to share kernels."""
        return 1 << max(1, int(self.sizes.max() - self.complete).bit_length())

    def empty(self, n_classes: int) -> LevelCounts | PackedCounts:
        """Return zero counts over C classes: `PackedCounts` if `packing` joins groups, else `LevelCounts`."""
        return empty_counts(n_classes, len(self), self.sizes, self._level_width, padded_levels(self.sizes))

    def width(self) -> float:
        """Number of groups."""
        return len(self.sizes)

    def piece(self, start: int, stop: int, size: int) -> Any:
        """Return rows start … stop - 1 as `OneHot`, padded to `size` rows with missing cells."""
        first, sizes = np.cumsum(self.sizes) - self.sizes, self.sizes.astype(np.int32)
        return OneHot(self.code(start, stop, size), first.astype(np.int32), sizes, self._level_width)


@dataclass(frozen=True, eq=False)
class CodedRows(LevelRows):
    """Cells as codes of their level within the feature.

    Parameters
    ----------
    codes : (N, F) int array
        Code of the level of each cell; `MISSING` where it is missing.
    sizes : (F,) int array
        Number of levels of each feature.
    complete : bool
        Whether it is known that no cell is missing.
    """

    codes: np.ndarray
    sizes: np.ndarray
    complete: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def code(self, start: int, stop: int, size: int) -> np.ndarray:
        """(size, F) level codes of rows start … stop - 1, `MISSING` for missing cells and padding."""
        return pad_rows(self.codes[start:stop], size, MISSING)

    @property
    def missing(self) -> np.ndarray:
        """(N, F) whether each cell is missing."""
        return self.codes < 0

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, codes=self.codes[index])

    def select(self, features: Sequence[int]) -> Self:
        """Return the rows of the features at these positions."""
        index = np.asarray(features, int)
        return replace(self, codes=self.codes[:, index], sizes=self.sizes[index])

    def replace_cells(self, rows: np.ndarray, j: int, code: np.ndarray) -> Self:
        """Return M rows: those at the positions `rows` (M,), with the level codes `code` (M,) in column j."""
        codes = self.codes[rows].astype(np.int32)
        codes[:, j] = code
        return replace(self, codes=codes)


def code_in_pieces(code: Callable[[slice], np.ndarray], shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
    """(N, F) codes by `code`, in threads, for some rows at a time that fit the cache; 64 of these, or a multiple."""
    codes, step = aligned(shape, np.dtype(dtype)), 64 * max(1, 2**11 // shape[1])

    def fill(start: int) -> None:
        codes[start : start + step] = code(slice(start, start + step))

    for _ in map_in_threads(fill, range(0, shape[0], step)):
        pass
    return codes


def subtract_row(rows: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return rows - row; 64 rows are subtracted as one, because NumPy's loop over a short last axis is slow."""
    n_joined = 64
    if len(rows) % n_joined or not rows.flags.c_contiguous:
        return rows - row
    joined = rows.reshape(len(rows) // n_joined, -1) - np.tile(row, n_joined)
    return joined.reshape(rows.shape)


def padded_levels(sizes: np.ndarray) -> int:
    """Padded total of levels: the least power of two above Σ sizes, at least 16; growth seldom recompiles kernels."""
    return 1 << max(4, int(sizes.sum()).bit_length())


def padded_size(n: int, least: int = 1024) -> int:
    """Smallest number of least · {1, 1.5, 2, 3, 4, 6, …} that is at least n."""
    capacity = least
    while capacity < n:
        capacity = capacity * 3 // 2 if capacity & (capacity - 1) == 0 else capacity * 4 // 3
    return capacity


def power_of_four(n: float, *, down: bool = False) -> int:
    """Smallest `FEWEST_ROWS` · 4^k of at least n; with `down` the greatest of at most n, and at least `FEWEST_ROWS`."""
    size = FEWEST_ROWS
    while size < n:
        size *= 4
    return size // 4 if down and size > max(n, FEWEST_ROWS) else size


def pad_rows(array: np.ndarray, size: int, value: object = 0) -> np.ndarray:
    """Return an array (M, …) with rows of `value` appended until there are `size` rows."""
    if len(array) == size:
        return array
    padded = np.full((size, *array.shape[1:]), value, array.dtype)
    padded[: len(array)] = array
    return padded


# == Sparse rows of words, cut into pieces of entries that the kernels read ========================

_LARGEST_TABLE = 2**22
ENTRIES = 2**17  # that the host reads at a time, so that what is made of them stays in a core's cache
SUMMED_ENTRIES = 2**19  # that the host sums at a time, as each array of sums is as large as all counts


@dataclass(frozen=True, eq=False)
class WordRows(Rows):
    """Sparse rows of words, by count or by presence.

    Parameters
    ----------
    matrix : csr_array
        Counts over one simplex; if `presence`, stored entries are present Bernoulli cells.
    presence : bool
    with_pairs : bool
        Whether pieces have the distinct (word, count) pairs with count ≥ 2, for kernels that are not linear
        in counts.
    """

    matrix: sp.csr_array
    presence: bool = False
    with_pairs: bool = True

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, matrix=self.matrix[index])

    def empty(self, n_classes: int) -> LevelCounts:
        """Return zero counts (C, F)."""
        return LevelCounts(np.zeros((n_classes, self.matrix.shape[1])))

    def width(self) -> float:
        """Number of stored entries of a row, on average."""
        return float(self.matrix.nnz / self.matrix.shape[0])

    def linear_rows(self) -> Self:
        """Return these rows without distinct pairs in their pieces."""
        return replace(self, with_pairs=False)

    counting_rows = linear_rows

    def count_on_host(self, label: np.ndarray, weight: np.ndarray, n_classes: int) -> tuple[LevelCounts, float]:
        """Return counts (C, F) of all rows, and Σ weight · log multinomial coefficient, 0 for presence."""
        log_base, whole = 0.0, True
        for rows in () if self.presence else _pieces(self.matrix, ENTRIES):
            position, repeated, total = self._repeated_words(rows.start, rows.stop)
            of_words, are_whole = log_factorial(repeated)
            if (weight[rows] != 1).any():
                length = np.diff(self.matrix.indptr[rows.start : rows.stop + 1])
                of_words = of_words * np.repeat(weight[rows], length).take(position)
            # The product by @ would depend on threads.
            log_base += np.sum(weight[rows] * log_factorial(total)[0]) - of_words.sum()
            whole &= are_whole
        return LevelCounts(self._sum_by_class(label, weight, n_classes, whole=whole)), float(log_base)

    def _sum_by_class(self, label: np.ndarray, weight: np.ndarray, n_classes: int, *, whole: bool) -> np.ndarray:
        """(C, F) sums of weight · count over the rows of each class; `whole`: all counts are integers."""
        shape = n_classes, self.matrix.shape[1]
        n = shape[0] * shape[1]
        total, first = np.zeros((1, n)), label.astype(sp.get_index_dtype(maxval=n)) * shape[1]
        with rows_progress("counting", len(label)) as step:
            for rows in _pieces(self.matrix, max(SUMMED_ENTRIES, n)):
                bounds = self.matrix.indptr[rows.start : rows.stop + 1]
                entries, length = slice(bounds[0], bounds[-1]), np.diff(bounds)
                index = np.repeat(first[rows], length)
                index += self.matrix.indices[entries]
                counts = self.matrix.data[entries]
                value = np.ones(len(index)) if self.presence else counts.astype(np.float64, copy=False)
                if whole and value.sum() <= 2**24:  # float32 holds these integers exactly, and takes half of the cache
                    value = value.astype(np.float32)
                if (weight[rows] != 1).any():
                    value = value * np.repeat(weight[rows], length)
                # SciPy sums entries of the same index, in half the time of np.add.at.
                total += sp.csr_array((value, index, [0, len(index)]), total.shape).toarray()
                step(rows.stop - rows.start)
        return total.reshape(shape)

    def log_base(self, start: int, stop: int) -> np.ndarray | float:
        """(M,) log multinomial coefficients of the rows start … stop - 1: log t! - Σ log x_l!, t the total of a row."""
        if self.presence:
            return 0.0
        position, count, total = self._repeated_words(start, stop)
        row = _row_of_entry(self.matrix.indptr[start : stop + 1]).take(position)
        return log_factorial(total)[0] - np.bincount(row, log_factorial(count)[0], minlength=stop - start)

    def length(self) -> np.ndarray:
        """(N,) sum of the counts of each row."""
        return _row_sums(self.matrix.data, self.matrix.indptr)

    def _repeated_words(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions and counts of the entries of rows start … stop - 1 that are not 1, and totals (M,) of these rows.

        Most words of a text occur once, so that these entries are few.
        """
        indptr = self.matrix.indptr[start : stop + 1]
        count = self.matrix.data[indptr[0] : indptr[-1]]
        position = np.flatnonzero(count != 1)
        return position, count.take(position), _row_sums(count, indptr - indptr[0])

    def piece(self, start: int, stop: int, size: int) -> Counts | Presence:
        """Return rows start … stop - 1 as `Counts` or `Presence`, padded to `size` rows by empty ones."""
        first, last = self.matrix.indptr[start], self.matrix.indptr[stop]
        indptr = np.full(size + 1, last - first, np.int32)
        indptr[: stop - start + 1] = self.matrix.indptr[start : stop + 1] - first
        row = _row_of_entry(indptr)
        # Entries behind the last bound are padding.
        padded = slice(first, first + padded_size(len(row)))
        capacity = padded.stop - first
        level = pad_rows(self.matrix.indices[padded], capacity).astype(np.int32, copy=False)
        row = pad_rows(row, capacity)
        if self.presence:
            return Presence(level, row, indptr)
        count = pad_rows(self.matrix.data[padded], capacity)
        if not self.with_pairs:
            return Counts(count, level, row, indptr)
        repeated, repeated_count, totals = self._repeated_words(start, stop)
        repeated_row = row.take(repeated)
        pair, pair_level, pair_count = _distinct_pairs(level[repeated], repeated_count, self.matrix.shape[1])
        total_count, total = np.unique(pad_rows(totals, size), return_inverse=True)
        pairs = Pairs(
            pad_rows(pair, padded_size(len(pair))),
            np.concatenate([[0], np.cumsum(np.bincount(repeated_row, minlength=size))]).astype(np.int32),
            pad_rows(pair_level, padded_size(len(pair_level))),
            pad_rows(pair_count, padded_size(len(pair_count)), 1.0),
            total.astype(np.int32),
            pad_rows(total_count, padded_size(len(total_count), least=FEWEST_ROWS)),
        )
        return Counts(count, level, row, indptr, pairs)


def _pieces(matrix: sp.csr_array, entries: int) -> Iterator[slice]:
    """Yield successive slices of rows with about this number of entries, and at most 2^20 rows."""
    n = matrix.shape[0]
    step = min(max(1, entries * n // max(1, matrix.nnz)), 2**20)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _row_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """(M,) sums of the values of the entries of each row."""
    sums, filled = np.zeros(len(indptr) - 1), np.flatnonzero(np.diff(indptr))
    sums[filled] = np.add.reduceat(values, indptr[filled], dtype=np.float64)
    return sums


def log_factorial(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return log x! = log Γ(x + 1), from a table if all values are integers below 4,096, and whether they are."""
    largest = values.max(initial=0)
    if largest < 2**12 and np.array_equal(index := values.astype(np.intp), values):
        return gammaln(np.arange(largest + 1) + 1.0).take(index), True
    return gammaln(values.astype(np.float64) + 1.0), False


def _row_of_entry(indptr: np.ndarray) -> np.ndarray:
    """Return the row of each entry, from the bounds of the rows; in pieces as 16 bits, which hold their rows."""
    dtype = np.uint16 if len(indptr) <= 2**16 else np.int64
    return np.repeat(np.arange(len(indptr) - 1, dtype=dtype), np.diff(indptr))


def _distinct_pairs(level: np.ndarray, count: np.ndarray, n_levels: int) -> tuple[np.ndarray, ...]:
    """Return the index of each (level, count) among the distinct pairs, and the levels and counts of these."""
    n = int(min(count.max(initial=1), _LARGEST_TABLE)) + 1
    if n * n_levels <= _LARGEST_TABLE and np.array_equal(count, np.floor(count)):
        # A table of all pairs of a level and an integer takes a third of the time of sorting the pairs.
        key = level.astype(np.int64) * n + count.astype(np.int64)
        seen = np.zeros(n * n_levels, bool)
        seen[key] = True
        distinct = np.flatnonzero(seen)
        position = np.empty(seen.size, np.int32)
        position[distinct] = np.arange(len(distinct), dtype=np.int32)
        return position[key], (distinct // n).astype(np.int32), (distinct % n).astype(np.float64)
    counts, code = np.unique(count, return_inverse=True)
    n = max(1, len(counts))
    distinct, index = np.unique(level.astype(np.int64) * n + code, return_inverse=True)
    return index.astype(np.int32), (distinct // n).astype(np.int32), counts.astype(np.float64)[distinct % n]


# == Rows of a structure: categorical cells together with those of their parents, as they count and as they score


@dataclass(frozen=True, eq=False)
class NodeRows(LevelRows):
    """Rows of a structure: a cell counts where the feature and all its parents are observed.

    Parameters
    ----------
    base : CodedRows
        Cells of the features without structure.
    columns : NodeColumns
    sums_missing : bool
        Whether rows with a missing cell that has an observed descendant are `NetworkCells`, which sum this cell out.
    """

    base: CodedRows
    columns: NodeColumns
    sums_missing: bool
    complete = False

    def __len__(self) -> int:
        return len(self.base)

    @property
    def sizes(self) -> np.ndarray:
        """(G,) number of levels of each feature together with its parents."""
        return self.columns.sizes()

    def counting_rows(self) -> Self:
        """Return these rows for kernels that count them: a cell counts where it and all its parents are observed."""
        return replace(self, sums_missing=False)

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, base=self.base.take(index))

    def replace_cells(self, rows: np.ndarray, j: int, code: np.ndarray) -> Self:
        """Return M rows: those at the positions `rows` (M,), with the level codes `code` (M,) in column j."""
        return replace(self, base=self.base.replace_cells(rows, j, code))

    @property
    def missing(self) -> np.ndarray:
        """(N, K) whether the cell of each of `columns.names` is missing, whatever its parents are."""
        return self.base.missing[:, [child for child, *_ in self.columns.nodes[: len(self.columns.names)]]]

    @cached_property
    def _joint_code_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Three (K, G) arrays: features of each node, their strides in the joint code, and codes of missing cells."""
        nodes, sizes, parent_sizes = self.columns.nodes, self.base.sizes, self.columns.parent_sizes()
        column = np.empty((max(map(len, nodes)), len(nodes)), np.int32)
        stride, missing = np.zeros(column.shape, np.int32), np.full(column.shape, MISSING, np.int32)
        for g, (child, *parents) in enumerate(nodes):
            inner_first = [child, *reversed(parents)]
            column[:, g] = child  # repeated with stride 0 where a node has fewer parents than others
            column[: len(inner_first), g] = inner_first
            inner = [sizes[child], *parent_sizes[inner_first[1:-1]]]
            stride[: len(inner_first), g] = np.cumprod([1, *inner])[: len(inner_first)]
        if self.columns.missing_is_value:
            missing[1:] = sizes[column[1:]]
        return column, stride, missing

    def code(self, start: int, stop: int, size: int) -> jax.Array:
        """(size, G) code of the combination of levels of each node; `MISSING` if one is missing, and for padding."""
        dtype = str(np.min_scalar_type(-max(1, int(self.sizes.max()))))
        return joint_code(self.base.code(start, stop, size), *self._joint_code_arrays, dtype=dtype)

    @cached_property
    def _cells(self) -> np.ndarray:
        """(N, F) level codes; `MISSING` for a missing cell with an observed descendant, `BARREN` for one without."""
        code = self.base.codes.copy()
        below = np.zeros(code.shape, bool)
        for child, *parents in reversed(sort_parents_first(self.columns.nodes)):
            for parent in parents:
                below[:, parent] |= below[:, child] | (code[:, child] >= 0)
        code[(code < 0) & ~below] = BARREN
        return code

    @cached_property
    def summed(self) -> np.ndarray:
        """(N,) whether a row has a missing cell that is summed out."""
        has_none = not self.sums_missing or self.base.complete
        return np.zeros(len(self.base), bool) if has_none else (self._cells == MISSING).any(axis=1)

    @cached_property
    def _network(self) -> Network:
        """Network over which missing cells are summed; ValueError if that takes over 2^20 numbers per row and class."""
        network = Network.from_nodes(self.columns.nodes, self.base.sizes.tolist())
        if network.room() > CELLS:
            raise ValueError(
                f"Input X has missing cells with observed descendants (first: row {int(np.argmax(self.summed))}). The "
                f"sum over their values takes {network.room():,} numbers for each row and class; at most {CELLS:,} are "
                "allowed. Give missing cells a level of their own, leave out arcs, or group levels."
            )
        return network

    def piece(self, start: int, stop: int, size: int) -> OneHot | NetworkCells:
        """Return rows start … stop - 1, padded to `size`, as `NetworkCells` if any row is summed, else as `OneHot`."""
        observed: OneHot = super().piece(start, stop, size)
        if not np.any(self.summed):
            return observed
        which = np.flatnonzero(self.summed[start:stop])
        n = min(size, power_of_four(len(which)))
        code = self._cells[start:stop][which]
        return NetworkCells(observed, pad_rows(which, n, size), pad_rows(code, n), self._network)


def sort_parents_first(nodes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the nodes of a network, parents before children; raise CycleError if a feature depends on itself."""
    by_child = {node[0]: node for node in nodes}
    return [by_child[j] for j in TopologicalSorter({child: parents for child, *parents in nodes}).static_order()]
