"""Blocks of columns: how raw cells become what a family of distributions observes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from bayesnb.encoding.levels import MISSING, UNKNOWN, Factors, Levels, factorize, factorize_integers, plain
from bayesnb.encoding.rows import BinaryRows, CodedRows, CountRows, PresenceRows, RealRows, Rows
from bayesnb.encoding.table import Table
from bayesnb.families import LevelCounts
from bayesnb.reporting import warn

HandleUnknown = Literal["ignore", "error", "level"]
RESERVED = "<unknown>"


class Columns(Protocol):
    """One block of columns: `index` says which of the table's `n_features`, `names` what they are called."""

    @property
    def index(self) -> Sequence[int]: ...

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def n_features(self) -> int: ...

    @property
    def kind(self) -> str:
        """What the user calls such columns, as in `MixedNB(gaussian=...)`."""
        ...

    def open(self, table: Table) -> Any:
        """Check this block's columns and bring them into a common form."""
        ...

    def learn(self, opened: Any) -> Self:
        """Take in the levels that occur."""
        ...

    def rows(self, opened: Any, policy: UnknownPolicy | None = None) -> Rows: ...

    def finish(self, statistics: Any, class_count: np.ndarray) -> Any:
        """Statistics as the kernels left them, in their final shape."""
        ...

    def union(self, other: Self) -> Self: ...

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """For each position of the last axis of the statistics its feature, and its level where there are."""
        ...


class FixedColumns:
    """Columns that learn nothing from the data."""

    index: Sequence[int]

    def learn(self, opened: Any) -> Self:
        return self

    def finish(self, statistics: Any, class_count: np.ndarray) -> Any:
        return statistics

    def union(self, other: Self) -> Self:
        return self

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return np.arange(len(self.index)), None


@dataclass(frozen=True, eq=False)
class RealColumns(FixedColumns):
    """Numbers for a family with one parameter set a feature; NaN is a missing cell."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    statistics: type
    nonnegative: bool = False

    @property
    def kind(self) -> str:
        return {"Moments": "gaussian", "Totals": "poisson"}.get(self.statistics.__name__, self.statistics.__name__)

    def open(self, table: Table) -> RealRows:
        values = table.numbers(self.index)
        if self.nonnegative:
            table.check_nonnegative(values, self.index)
        return RealRows(values, self.statistics, partial(table.check_finite, index=self.index, missing=True))

    def rows(self, opened: RealRows, policy: UnknownPolicy | None = None) -> Rows:
        return opened


@dataclass(frozen=True, eq=False)
class CountColumns(FixedColumns):
    """Counts over one simplex."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    kind: ClassVar[str] = "multinomial"

    def open(self, table: Table) -> sp.csr_array:
        if table.is_sparse:
            return table.matrix(nonnegative=True)
        values = table.numbers(self.index)
        table.check_finite(values, self.index, missing=False)
        table.check_nonnegative(values, self.index)
        return sp.csr_array(values)

    def rows(self, opened: sp.csr_array, policy: UnknownPolicy | None = None) -> Rows:
        return CountRows(opened)

    def sizes(self) -> np.ndarray:
        """Number of levels of each feature."""
        return np.ones(len(self.index), np.int64)

    def groups(self) -> np.ndarray:
        """Group of each level."""
        return np.zeros(len(self.index), np.int32)


@dataclass(frozen=True, eq=False)
class BinaryColumns(FixedColumns):
    """Absent or present; in a dense array NaN is a missing cell, looked at before `threshold`."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    threshold: float | None = 0.0
    kind: ClassVar[str] = "bernoulli"

    def open(self, table: Table) -> Any:
        if table.is_sparse:
            matrix = table.matrix()
            if self.threshold is None:
                _check_binary(matrix.data, lambda i: self._entry(matrix, i))
                return matrix
            if self.threshold < 0:
                raise ValueError(f"binarize={self.threshold} is negative: on sparse data every cell would be present.")
            if matrix.nnz and matrix.data.min() <= self.threshold:
                matrix = sp.csr_array((matrix.data > self.threshold, matrix.indices, matrix.indptr), matrix.shape)
                matrix = matrix.copy()
                matrix.eliminate_zeros()
            return matrix
        values = table.numbers(self.index)
        table.check_finite(values, self.index, missing=True)
        if self.threshold is None:
            _check_binary(values, lambda i: (i // values.shape[1], self.names[i % values.shape[1]]))
        return values

    def rows(self, opened: Any, policy: UnknownPolicy | None = None) -> Rows:
        if sp.issparse(opened):
            return PresenceRows(opened)
        return BinaryRows(opened, 0.5 if self.threshold is None else self.threshold)

    def finish(self, statistics: LevelCounts, class_count: np.ndarray) -> LevelCounts:
        """Of a sparse matrix only presences were counted: the rest of each class is absent."""
        count = statistics.count
        if count.shape[1] == 2 * len(self.index):
            return statistics
        levels = np.stack([class_count[:, None] - count, count], axis=2)
        return LevelCounts(levels.reshape(count.shape[0], -1))

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return self.groups(), ["absent", "present"] * len(self.index)

    def sizes(self) -> np.ndarray:
        return np.full(len(self.index), 2)

    def groups(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.index), dtype=np.int32), 2)

    def _entry(self, matrix: sp.csr_array, i: int) -> tuple[int, str]:
        return int(np.searchsorted(matrix.indptr, i, side="right")) - 1, self.names[int(matrix.indices[i])]


@dataclass(frozen=True, eq=False)
class LevelColumns:
    """Categorical features.

    Parameters
    ----------
    levels : tuple of Levels
        Those known so far, a feature each.
    declared : tuple of bool
        Features whose levels were declared, and so do not grow.
    unknown : {"ignore", "error", "level"}
        What an undeclared value is: a missing cell, an error, or the reserved last level.
    missing_values : tuple
        Values that mark a missing cell, besides None, NaN, NaT and pd.NA.
    """

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    levels: tuple[Levels, ...]
    declared: tuple[bool, ...]
    unknown: HandleUnknown = "ignore"
    missing_values: tuple[Hashable, ...] = ()
    kind: ClassVar[str] = "categorical"

    def open(self, table: Table) -> Factors:
        if table.is_sparse:
            raise TypeError(
                f"Sparse data was passed for X, but {table.owner} takes categorical data dense; use X.toarray()."
            )
        whole = self._integers(table)
        if whole is not None and (factors := factorize_integers(whole)) is not None:
            return factors
        coded = [self._factorize(table, j) for j in self.index]
        top = max(len(values) for _, values in coded)
        raw = np.stack([codes.astype(np.min_scalar_type(-1 - top)) for codes, _ in coded], axis=1)
        return Factors(raw, np.zeros(len(coded), np.int64), tuple(v for _, v in coded), complete=not (raw < 0).any())

    def learn(self, opened: Factors) -> Self:
        """Levels of an undeclared feature are the values that may occur; see `prune`."""
        levels = tuple(
            known if fixed else Levels.of(v for v in values if v not in self.missing_values)
            for known, fixed, values in zip(self.levels, self.declared, opened.values, strict=True)
        )
        return replace(self, levels=levels)

    def rows(self, opened: Factors, policy: UnknownPolicy | None = None) -> Rows:
        """Coded cells. `policy` is called with the values that are no level, if there are any."""
        coded = [self._codes(opened, j) for j in range(len(self.index))]
        unknown = [found for _, found in coded if found is not None]
        if unknown:
            (policy or report_unknown)(self, unknown)
        codes = tuple(codes for codes, _ in coded)
        return CodedRows(opened, codes, self.sizes().astype(np.int32), self.start(), self.capacity)

    def finish(self, statistics: LevelCounts, class_count: np.ndarray) -> LevelCounts:
        return LevelCounts(statistics.count[:, : self.sizes().sum()])

    def prune(self, statistics: LevelCounts) -> tuple[Self, LevelCounts]:
        """Drop the levels of undeclared features that did not occur."""
        declared = np.repeat(self.declared, self.sizes())
        keep = declared | (statistics.count.sum(axis=0) > 0)
        if self.unknown == "level":
            keep[np.cumsum(self.sizes()) - 1] = True
        if keep.all():
            return self, statistics
        flags = np.split(keep, np.cumsum(self.sizes())[:-1])
        levels = tuple(
            Levels(tuple(v for v, kept in zip(known.values, flag, strict=False) if kept))
            for known, flag in zip(self.levels, flags, strict=True)
        )
        return replace(self, levels=levels), LevelCounts(statistics.count[:, keep])

    def union(self, other: Self) -> Self:
        levels = tuple(a.union(b) for a, b in zip(self.levels, other.levels, strict=True))
        declared = tuple(a or b for a, b in zip(self.declared, other.declared, strict=True))
        return replace(self, levels=levels, declared=declared)

    def levels_in(self, joint: Self) -> np.ndarray:
        """Where each of these levels stands in `joint`, which knows more."""
        starts = joint.start()
        positions = []
        for mine, theirs, start in zip(self.levels, joint.levels, starts, strict=True):
            position = theirs.index(mine.values)
            positions.append(start + (np.append(position, len(theirs)) if self.unknown == "level" else position))
        return np.concatenate(positions)

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return self.groups(), [name for j in range(len(self.levels)) for name in self.level_names(j)]

    def sizes(self) -> np.ndarray:
        """Number of levels of each feature, the reserved one included."""
        return np.array([len(levels) + (self.unknown == "level") for levels in self.levels])

    def start(self) -> np.ndarray:
        return np.cumsum([0, *self.sizes()[:-1]]).astype(np.int32)

    def groups(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.levels), dtype=np.int32), self.sizes())

    @property
    def capacity(self) -> int:
        """Levels that the kernels make room for: a power of two, so that growth seldom compiles anew."""
        return 1 << max(4, int(self.sizes().sum()).bit_length())

    def level_names(self, j: int) -> list[Hashable]:
        """Levels of feature j as they stand in arrays."""
        return [*self.levels[j].values, *([RESERVED] if self.unknown == "level" else [])]

    def _integers(self, table: Table) -> np.ndarray | None:
        if table.is_frame:
            dtypes = {str(table.column(j).dtype) for j in self.index}
            if len(dtypes) != 1 or not dtypes <= {f"{k}{b}" for k in ("int", "uint") for b in (8, 16, 32, 64)}:
                return None
            return np.stack([np.asarray(table.column(j)) for j in self.index], axis=1)
        if table.data.dtype.kind not in "biu" or self.missing_values:
            return None
        return table.data if len(self.index) == table.data.shape[1] else table.data[:, list(self.index)]

    def _factorize(self, table: Table, j: int) -> tuple[np.ndarray, list[Any]]:
        column, where = table.column(j), table.where(j)
        categories = declared_categories(column)
        if categories is not None and hasattr(column, "cat") and hasattr(column.cat, "codes"):
            return np.asarray(column.cat.codes), list(categories)
        return factorize(column, where)

    def _codes(self, opened: Factors, j: int) -> tuple[np.ndarray, Unknown | None]:
        """Level of each value of feature j: `MISSING` for marks, and what `unknown` says for the rest."""
        values = opened.values[j]
        codes = self.levels[j].index(values)
        for i, value in enumerate(values if self.missing_values else ()):
            if value in self.missing_values:
                codes[i] = MISSING
        strange = codes == UNKNOWN
        if not strange.any():
            return codes, None
        codes[strange] = len(self.levels[j]) if self.unknown == "level" else MISSING
        occurs = opened.occurrences(j) * strange
        if not occurs.any():
            return codes, None
        first = int(np.argmax(occurs > 0))
        return codes, Unknown(j, int(occurs.sum()), opened.values[j][first], opened.first_row(j, first))


class Unknown(NamedTuple):
    """Cells of a feature whose values are no level: how many, and the first."""

    feature: int
    cells: int
    value: Any
    row: int


UnknownPolicy = Callable[[LevelColumns, list[Unknown]], None]


def describe_unknown(columns: LevelColumns, unknown: list[Unknown]) -> str:
    """Say how many cells have unknown levels, and where the first is."""
    first, cells = unknown[0], sum(u.cells for u in unknown)
    name = f"column {columns.names[first.feature]!r}"
    many = f"{cells} cell{'' if cells == 1 else 's'} of {name if len(unknown) == 1 else f'{len(unknown)} columns'}"
    return f"{many} with levels that the model does not know, first {first.value!r} at row {first.row} of {name}"


def report_unknown(columns: LevelColumns, unknown: list[Unknown], note: str = "") -> None:
    """Warn of values that are no level, or refuse them, as the columns say."""
    found = describe_unknown(columns, unknown) + note
    if columns.unknown == "error":
        raise ValueError(
            f"Found unknown categories: {found}. Declare them in `categories`, or set handle_unknown='ignore' or "
            "'level'."
        )
    meaning = "counts as missing" if columns.unknown == "ignore" else f"counts as the reserved level {RESERVED}"
    warn(f"{found}; each {meaning}.")


def declared_categories(column: Any) -> Sequence[Any] | None:
    """Categories of a pandas categorical or a polars enumeration."""
    dtype = getattr(column, "dtype", None)
    if hasattr(dtype, "categories") and dtype is not None:
        categories = dtype.categories
        return None if categories is None or type(dtype).__name__ == "Categorical" else list(categories)
    return None


def _check_binary(values: np.ndarray, locate: Any) -> None:
    bad = (
        ~((values == 0) | (values == 1) | np.isnan(values))
        if values.dtype.kind == "f"
        else (values != 0) & (values != 1)
    )
    if bad.any():
        i = int(np.argmax(bad))
        row, name = locate(i)
        raise ValueError(
            f"Input X, column {name!r}, row {row}: {plain(values.ravel()[i])!r} is neither 0 nor 1; with binarize=None "
            "cells must be 0, 1 or missing. Set `binarize` to a threshold."
        )
