"""Sparse rows of words, cut into blocks of entries that the kernels read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from bayesnb._util.terminal import rows_progress
from bayesnb.encoding.row_blocks import FEWEST_ROWS, Rows, pad_rows, padded_size
from bayesnb.families import Counts, LevelCounts, Pairs, Presence

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
        Whether blocks of counts have the distinct (word, count) pairs with count ≥ 2, for kernels that are not linear
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
        """Return these rows without distinct pairs in their blocks."""
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

    def block(self, start: int, stop: int, size: int) -> Counts | Presence:
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
    """Return the row of each entry, from the bounds of the rows; in blocks as 16 bits, which hold their rows."""
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
