"""Encoded rows of blocks of columns, cut into blocks of rows that the kernels read.

There are four kinds of storage: numbers (`RealRows`), codes of levels (`CodedRows`), codes with the parents of each
feature (`NodeRows`), and sparse words (`WordRows`). Blocks are padded to a few sizes, so that the number of
compilations does not depend on the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import jax
import numpy as np

from bayesnb._util.precision import map_in_threads
from bayesnb.encoding.levels import MISSING
from bayesnb.encoding.table import StackedColumns, aligned, check_finite
from bayesnb.families import Complete, LevelCounts, OneHot, PackedCounts, empty_counts
from bayesnb.families.protocol import no_rows

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

    def linear_rows(self) -> Self:
        """Return rows for kernels that read plug-in parameters, which are linear in the counts; default: these rows."""
        return self

    def counting_rows(self) -> Self:
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
    for piece, size in block_slices(n, max(cells, sum(r.width() for r in rows))):
        x = tuple(r.block(piece.start, piece.stop, size) for r in rows)
        yield piece, x, [pad_rows(a[piece], size) for a in arrays]


def block_slices(n: int, width: float) -> Iterator[tuple[slice, int]]:
    """Yield blocks of n rows with `width` cells each: the slice, and the number of rows with padding."""
    largest = min(_MOST_ROWS, power_of_four(CELLS / max(1.0, width), down=True))
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
        Whether blocks refuse infinite cells. Kernels that count need no check, as an infinite cell makes the statistics
        infinite. Blocks are checked one by one, as another pass over all rows would take longer.
    """

    values: np.ndarray | StackedColumns
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
        """Return zero statistics, (C, F) arrays."""
        return no_rows(self.statistics, (n_classes, self.values.shape[1]))

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
        """Return these rows in blocks without the check for infinite cells."""
        return replace(self, checked=False)

    def require_finite(self) -> None:
        """Raise ValueError naming the first infinite cell."""
        check_finite(np.asarray(self.values), self.names)

    def block(self, start: int, stop: int, size: int) -> np.ndarray | Complete:
        """(size, F) numbers of rows start … stop - 1, `Complete` if `checked` has found that none is NaN."""
        values = self.values[start:stop]
        complete = self.checked and check_finite(values, self.names, start=start)
        return Complete(pad_rows(values, size)) if complete else pad_rows(values, size)


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
        """Power of two by `level_capacity`, a bound on the levels of a group; it decides how many are packed."""
        return level_capacity(self.sizes, complete=self.complete)

    def empty(self, n_classes: int) -> LevelCounts | PackedCounts:
        """Return zero counts over C classes: `PackedCounts` if `packing` joins groups, else `LevelCounts`."""
        return empty_counts(n_classes, len(self), self.sizes, self._level_width, padded_levels(self.sizes))

    def width(self) -> float:
        """Number of groups."""
        return len(self.sizes)

    def block(self, start: int, stop: int, size: int) -> Any:
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


def code_in_pieces(code: Callable[[slice], np.ndarray], shape: tuple[int, int], dtype: Any) -> np.ndarray:
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


def level_capacity(sizes: np.ndarray, *, complete: bool = False) -> int:
    """Least power of two, from 2 on, of at least the levels of the largest feature, plus one unless `complete`.

    Levels that grow by a few seldom change this size, for which kernels are compiled.
    """
    return 1 << max(1, int(sizes.max() - complete).bit_length())


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
