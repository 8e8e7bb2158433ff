"""Validated columns, cut into blocks of rows that the kernels read.

Blocks are padded to a few sizes, so that the number of compilations does not depend on the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import jax
import numpy as np

from bayesnb.encoding.levels import MISSING, Factors
from bayesnb.encoding.table import StackedColumns
from bayesnb.families import Complete, LevelCounts, OneHot, PackedCounts, empty_counts
from bayesnb.families.statistics import no_rows

CELLS = 2**20
_MOST_ROWS = 2**14  # Results of larger blocks fragment memory, so that a stream would take ever more of it.
FEWEST_ROWS = 16


class Rows(ABC):
    """Rows of one block of features."""

    @abstractmethod
    def empty(self, n_classes: int) -> Any:
        """Return statistics of no rows over C classes, to which the kernels add rows."""

    @abstractmethod
    def width(self) -> float:
        """Number of cells of a row, on average, by which the number of rows of a block is chosen."""

    @abstractmethod
    def block(self, start: int, stop: int, size: int) -> Any:
        """Return rows start … stop - 1 as an object that the kernels read, padded to `size` rows."""

    @abstractmethod
    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""

    def stored(self) -> Rows:
        """Return equal rows that can be read many times without coding cells anew; default: these rows."""
        return self

    def linear_rows(self) -> Rows:
        """Return rows for kernels that read plug-in parameters, which are linear in the counts; default: these rows."""
        return self

    def counting_rows(self) -> Rows:
        """Return rows for kernels that count them; default: these rows."""
        return self

    def count_on_host(self, label: np.ndarray, weight: np.ndarray, n_classes: int) -> tuple[Any, float] | None:
        """Statistics of all rows, and Σ weight · log base measure, by NumPy; default: None, as kernels count blocks."""
        return None

    def require_finite(self) -> None:  # noqa: B027
        """Raise ValueError naming the first infinite cell, if blocks for counting do not check this; default: pass."""

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


def blocks(
    rows: tuple[Rows, ...], n: int, *arrays: np.ndarray, cells: float = 0.0
) -> Iterator[tuple[slice, tuple[Any, ...], list[np.ndarray]]]:
    """Yield blocks of n rows: the slice, padded rows of each of `rows`, and `arrays` cut alike and padded by zeros.

    `cells` is the number of cells of a row's result, if that is more than the row itself has. The size of a block is
    16 · 4^k rows: the largest with at most 2^20 cells and 2^14 rows, less for the last block; it is 16 at least.
    """
    width = max(1.0, cells, sum(r.width() for r in rows))
    largest = min(_MOST_ROWS, power_of_four(CELLS / width, down=True))
    for start in range(0, n, largest):
        stop = min(start + largest, n)
        size = min(largest, power_of_four(stop - start))
        x = tuple(r.block(start, stop, size) for r in rows)
        yield slice(start, stop), x, [pad_rows(a[start:stop], size) for a in arrays]


@dataclass(frozen=True, eq=False)
class RealRows(Rows):
    """Numbers, NaN where missing.

    Parameters
    ----------
    values : (N, F) array
    statistics : type
        Class of the sufficient statistics, with (C, F) arrays.
    check : function
        Refuses infinite cells of a block, and returns whether no cell is missing; takes the block, and its first row as
        `start`. It is called block by block, as another pass over all rows would take longer.
    """

    values: np.ndarray | StackedColumns
    statistics: type
    check: Callable[..., bool]

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, values=take_rows(self.values, index))

    def select(self, features: Sequence[int]) -> Self:
        """Return the rows of the features at these positions."""
        values = self.values
        if isinstance(values, StackedColumns):
            return replace(self, values=StackedColumns(tuple(values.columns[f] for f in features)))
        return replace(self, values=values[:, features])

    def empty(self, n_classes: int) -> Any:
        """Return zero statistics, (C, F) arrays."""
        return no_rows(self.statistics, (n_classes, self.values.shape[1]))

    def width(self) -> float:
        """Number of features."""
        return float(self.values.shape[1])

    @property
    def missing(self) -> np.ndarray:
        """(N, F) whether each number is NaN."""
        return np.asarray(np.isnan(np.asarray(self.values)))

    def feature(self, f: int) -> np.ndarray:
        """Return (N,) the numbers of feature f."""
        values = self.values
        return np.asarray(values.columns[f] if isinstance(values, StackedColumns) else values[:, f], np.float64)

    def counting_rows(self) -> RealRows:
        """Return these rows in blocks without the check for infinite cells."""
        return UncheckedRows(self.values, self.statistics, self.check)

    def require_finite(self) -> None:
        """Raise ValueError naming the first infinite cell."""
        self.check(np.asarray(self.values))

    def block(self, start: int, stop: int, size: int) -> np.ndarray | Complete:
        """(size, F) numbers of rows start … stop - 1, `Complete` if none is NaN; an infinite one raises ValueError."""
        values = self.values[start:stop]
        complete = self.check(values, start=start)
        return Complete(pad_rows(values, size)) if complete else pad_rows(values, size)


@dataclass(frozen=True, eq=False)
class UncheckedRows(RealRows):
    """Numbers for kernels that count: an infinite cell makes the statistics infinite, so that blocks need no check."""

    def block(self, start: int, stop: int, size: int) -> np.ndarray:
        """(size, F) numbers of rows start … stop - 1, whether or not they are finite."""
        return pad_rows(self.values[start:stop], size)


class LevelRows(Rows):
    """Rows with one level, or none, of each of G groups of levels: a feature, or a feature and its parents.

    `sizes` (G,) are the numbers of levels of the groups.
    """

    sizes: np.ndarray

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def code(self, start: int, stop: int, size: int) -> np.ndarray | jax.Array:
        """(size, G) codes of the levels of rows start … stop - 1, `MISSING` for missing cells and padding."""

    def stored(self) -> Any:
        """Return rows of the same groups with one code stored for each cell, for reading them many times."""
        return CodedRows.from_codes(np.asarray(self.code(0, len(self), len(self))), self.sizes)

    @property
    def complete(self) -> bool:
        """Whether it is known that no cell is missing; default: it is not."""
        return False

    @cached_property
    def _level_width(self) -> int:
        """Power of two by `level_capacity`, a bound on the levels of a group; it decides how many are packed."""
        return level_capacity(self.sizes, complete=self.complete)

    def empty(self, n_classes: int) -> LevelCounts | PackedCounts:
        """Return zero counts over C classes: `PackedCounts` if `packing` joins groups, else `LevelCounts`."""
        return empty_counts(n_classes, len(self), self.sizes, self._level_width, padded_levels(self.sizes))

    def width(self) -> float:
        """Number of groups."""
        return len(self.sizes)

    @property
    def missing(self) -> np.ndarray:
        """(N, G) whether the cell of each group is missing."""
        return np.asarray(self.code(0, len(self), len(self))) < 0

    def block(self, start: int, stop: int, size: int) -> Any:
        """Return rows start … stop - 1 as `OneHot`, padded to `size` rows with missing cells."""
        first = np.cumsum(self.sizes) - self.sizes
        code = self.code(start, stop, size)
        return OneHot(code, first.astype(np.int32), self.sizes.astype(np.int32), self._level_width)


@dataclass(frozen=True, eq=False)
class CodedRows(LevelRows):
    """Categorical cells as codes of their level within the feature.

    Parameters
    ----------
    factors : Factors
        Distinct values of each column, and the index of each cell's value among these.
    codes : tuple of int arrays
        For each column the code of each distinct value.
    sizes : (F,) int array
        Number of levels of each feature.
    """

    factors: Factors
    codes: tuple[np.ndarray, ...]
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.factors.raw)

    @property
    def complete(self) -> bool:
        """Whether it is known without reading the cells that none is missing."""
        return self.factors.complete and all((c >= 0).all() for c in self.codes)

    @cached_property
    def _dtype(self) -> np.dtype:
        """Smallest signed integer type that holds every code."""
        return np.min_scalar_type(-1 - max((int(c.max(initial=0)) for c in self.codes), default=0))

    @cached_property
    def _shift(self) -> np.ndarray | None:
        """(F,) difference between `raw` and the codes, if it is the same for all values of each column; else None."""
        if not all(_is_range(c) and (self.factors.complete or c[0] == 0) for c in self.codes):
            return None
        low = [int(low) - int(c[0]) for low, c in zip(self.factors.low, self.codes, strict=True)]
        return np.array(low).astype(self._dtype)

    @cached_property
    def _code_table(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes of all columns in one array, `MISSING` before each column, and (F,) offsets of `raw` in the array."""
        sizes = [len(c) + 1 for c in self.codes]
        table = np.concatenate([np.append(MISSING, c) for c in self.codes]).astype(self._dtype)
        return table, np.cumsum([0, *sizes[:-1]]) + 1 - self.factors.low.astype(np.int64)

    def code(self, start: int, stop: int, size: int) -> np.ndarray:
        """(size, F) level codes of rows start … stop - 1, `MISSING` for missing cells and padding."""
        raw = self.factors.raw[start:stop]
        if self._shift is not None:
            # Codes fit the small type, so that narrowing first is exact (modular arithmetic), and cheaper.
            return pad_rows(_subtract(raw.astype(self._dtype), self._shift), size, MISSING)
        table, offset = self._code_table
        return pad_rows(table.take(raw.astype(np.int64) + offset), size, MISSING)

    @classmethod
    def from_codes(cls, code: np.ndarray, sizes: np.ndarray) -> Self:
        """Return rows whose cells have these codes (N, F) of levels, `sizes` (F,) in number."""
        codes, values = tuple(map(np.arange, sizes)), tuple(map(range, sizes.tolist()))
        factors = Factors(code, np.zeros(len(codes), np.int64), values, complete=not (code < 0).any())
        return cls(factors, codes, sizes)

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, factors=replace(self.factors, raw=self.factors.raw[index]))

    def select(self, features: Sequence[int]) -> Self:
        """Return the rows of the features at these positions."""
        index, every = np.asarray(features, int), self.factors
        factors = Factors(every.raw[:, index], every.low[index], tuple(every.values[j] for j in index), every.complete)
        return replace(self, factors=factors, codes=tuple(self.codes[j] for j in index), sizes=self.sizes[index])

    def replace_cells(self, rows: np.ndarray, j: int, code: np.ndarray) -> CodedRows:
        """Return M rows: those at the positions `rows` (M,), with the level codes `code` (M,) in column j."""
        cells = self.code(0, len(self), len(self))[rows].astype(np.int32)
        cells[:, j] = code
        return self.from_codes(cells, self.sizes)


@dataclass(frozen=True, eq=False)
class BinaryRows(LevelRows):
    """Bernoulli cells of a dense array: present above `threshold`, missing where NaN, else absent."""

    values: np.ndarray
    threshold: float
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def complete(self) -> bool:
        """Whether cells are of a type without NaN."""
        return self.values.dtype.kind != "f"

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions, or for which a mask (N,) is true."""
        return replace(self, values=self.values[index])

    def code(self, start: int, stop: int, size: int) -> np.ndarray:
        """(size, F) codes of rows start … stop - 1: 1 present, 0 absent, `MISSING` for NaN and padding."""
        values = self.values[start:stop]
        code = (values > self.threshold).astype(np.int8)
        if not self.complete:
            code[np.isnan(values)] = MISSING
        return pad_rows(code, size, MISSING)


def take_rows(values: np.ndarray | StackedColumns, index: np.ndarray) -> np.ndarray | StackedColumns:
    """Return the rows of numbers at these positions, or for which a mask (N,) is true."""
    if isinstance(values, StackedColumns):
        return StackedColumns(tuple(column[index] for column in values.columns))
    return np.asarray(values[index])


def _subtract(rows: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return rows - row; 64 rows are subtracted as one, because NumPy's loop over a short last axis is slow."""
    if not row.any():
        return rows
    n_joined = 64
    if len(rows) % n_joined or not rows.flags.c_contiguous:
        return np.asarray(rows - row)
    joined = rows.reshape(len(rows) // n_joined, -1) - np.tile(row, n_joined)
    return np.asarray(joined).reshape(rows.shape)


def level_capacity(sizes: np.ndarray, *, complete: bool = False) -> int:
    """Least power of two, from 2 on, of at least the levels of the largest feature, plus one unless `complete`.

    Levels that grow by a few seldom change this size, for which kernels are compiled.
    """
    return 1 << max(1, int(sizes.max() - complete).bit_length())


def padded_levels(sizes: np.ndarray) -> int:
    """Padded total of levels: the least power of two above Σ sizes, at least 16; growth seldom recompiles kernels."""
    return 1 << max(4, int(sizes.sum()).bit_length())


def _is_range(code: np.ndarray) -> bool:
    """Return whether codes are consecutive and at least 0."""
    return len(code) > 0 and code[0] >= 0 and np.array_equal(code, code[0] + np.arange(len(code)))


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
