"""Blocks of columns: how raw cells become what a family of distributions observes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self, cast

import numpy as np
import scipy.sparse as sp

from bayesnb.encoding.levels import plain
from bayesnb.encoding.priors import prior_of_levels, prior_of_numbers
from bayesnb.encoding.row_blocks import BinaryRows, RealRows, Rows
from bayesnb.encoding.sparse_rows import CountRows, PresenceRows
from bayesnb.encoding.table import Table
from bayesnb.families import Dirichlet, LevelCounts, PackedCounts


class Unknown(NamedTuple):
    """Cells of a feature whose values are no level: how many, and the first."""

    feature: int
    cells: int
    value: Any
    row: int


# Told the categorical columns, and what is unknown of them.
UnknownPolicy = Callable[[Any, list[Unknown]], None]


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

    @property
    def family(self) -> Any:
        """How the cells are distributed, a conjugate family: `family.statistics` is what the rows are counted in."""
        ...

    @property
    def hyperparameter(self) -> str:
        """What estimators call the prior of such columns."""
        ...

    @property
    def base(self) -> Columns:
        """The same columns without parents."""
        ...

    @property
    def network(self) -> Any:
        """These columns, if they may have parents, as `NodeColumns`; else None."""
        ...

    @property
    def beside(self) -> str | None:
        """What these columns are to those of a network that they repeat: "root" or "margin"; else None."""
        ...

    def known_levels(self) -> dict[int, Any]:
        """Levels of each column that has some."""
        ...

    def with_levels(self, known: Mapping[int, Any]) -> Self:
        """Return columns whose levels are these, and do not grow."""
        ...

    @property
    def one_simplex(self) -> bool:
        """Whether a row is several draws from one simplex, so that its cells are counts."""
        ...

    @property
    def term_names(self) -> Sequence[str]:
        """What the terms of a row's log-likelihood are about: a column each, or all draws from a simplex."""
        ...

    @property
    def mirrored(self) -> Hashable:
        """A level of each feature that is one minus the other; None: there is none."""
        ...

    @property
    def capacity(self) -> int:
        """How many positions of the last axis the kernels make room for."""
        ...

    def prior(self, given: Any, argument: str, n_classes: int) -> Any:
        """The prior that a user has `given` for an `argument`: a family, or a function of the statistics to it.

        Raises
        ------
        ValueError
            If it is none for these columns; the message says which is right.
        """
        ...

    def prune(self, statistics: Any) -> tuple[Self, Any]:
        """Drop the levels of undeclared features that did not occur."""
        ...

    def levels_in(self, joint: Self) -> np.ndarray:
        """Where each position of the last axis stands in `joint`, which knows more levels."""
        ...

    def require_memory(self, n_classes: int) -> None:
        """Refuse statistics that would not fit into memory."""
        ...

    def without_arcs(self, prior: Any) -> Any:
        """The prior of the same features given the class alone."""
        ...

    def margins(self, statistics: Any) -> Any:
        """The statistics of the same features, those of parents summed out."""
        ...

    def check(self) -> None:
        """Raise ValueError unless the parts fit together; `Encoding.check` looks at what all columns have."""
        ...

    def sizes(self) -> np.ndarray:
        """Number of positions of each feature on the last axis of the statistics."""
        ...

    def cells(self, statistics: Any) -> np.ndarray:
        """(C, F) weight of the rows of each class in which each feature is observed."""
        ...

    def total_count(self, statistics: Any, n_rows: float) -> int:
        """How many draws a simulated row has from one simplex: the mean length of documents, rounded; else one."""
        ...

    def realized(self, chosen: np.ndarray) -> np.ndarray:
        """Of simulated cells (S, K) those that come true: of features with parents, given what these are."""
        ...

    def union(self, other: Self) -> Self: ...

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """For each position of the last axis of the statistics its feature, and its level where there are."""
        ...


class PlainColumns:
    """Columns that do not depend on each other, with one cell a row."""

    network: ClassVar[Any] = None
    beside: ClassVar[str | None] = None
    one_simplex: ClassVar[bool] = False
    mirrored: ClassVar[Hashable] = None

    @property
    def term_names(self) -> Sequence[str]:
        own: Any = self
        return [own.kind] if self.one_simplex else own.names

    def known_levels(self) -> dict[int, Any]:
        """Return levels of each column that has some; default: none has."""
        return {}

    def with_levels(self, known: Mapping[int, Any]) -> Self:
        """Return columns whose levels are these, and do not grow; default: these columns."""
        return self

    def require_memory(self, n_classes: int) -> None:
        """There is."""

    def check_prior(self, given: Any, n_classes: int, name: str) -> None:
        """Raise ValueError if a complete prior is none for these columns, beyond what all families have."""

    def without_arcs(self, prior: Any) -> Any:
        return prior

    def margins(self, statistics: Any) -> Any:
        return statistics

    def total_count(self, statistics: Any, n_rows: float) -> int:
        return 1

    def realized(self, chosen: np.ndarray) -> np.ndarray:
        return chosen


class OfLevels:
    """Columns whose cells are levels, counted in simplexes."""

    family: ClassVar[type] = Dirichlet
    hyperparameter: ClassVar[str] = "alpha"

    def prior(self, given: Any, argument: str, n_classes: int) -> Dirichlet:
        return prior_of_levels(given, cast(Any, self), n_classes)


class FixedColumns(PlainColumns):
    """Columns that learn nothing from the data."""

    index: Sequence[int]

    @property
    def base(self) -> Self:
        return self

    def check(self) -> None:
        """Raise ValueError unless the parts fit together; `Encoding.check` looks at what all columns have."""

    def sizes(self) -> np.ndarray:
        return np.ones(len(self.index), np.int64)

    def cells(self, statistics: Any) -> np.ndarray:
        """(C, F) weight of the rows of each class in which each feature is observed."""
        return statistics.count

    def learn(self, opened: Any) -> Self:
        return self

    def finish(self, statistics: Any, class_count: np.ndarray) -> Any:
        return statistics

    def prune(self, statistics: Any) -> tuple[Self, Any]:
        return self, statistics

    def union(self, other: Self) -> Self:
        return self

    def levels_in(self, joint: Self) -> np.ndarray:
        return np.arange(self.capacity)

    @property
    def capacity(self) -> int:
        return int(self.sizes().sum())

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return np.arange(len(self.index)), None


@dataclass(frozen=True, eq=False)
class RealColumns(FixedColumns):
    """Numbers for a family with one parameter set a feature; NaN is a missing cell."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    family: type

    @property
    def kind(self) -> str:
        return self._family.kind

    @property
    def hyperparameter(self) -> str:
        return f"{self.kind}_prior"

    def prior(self, given: Any, argument: str, n_classes: int) -> Any:
        return prior_of_numbers(given, self._family, (n_classes, len(self.index)), argument)

    def open(self, table: Table) -> RealRows:
        values = table.numbers(self.index)
        if self._family.nonnegative:
            values = np.asarray(values)
            table.check_nonnegative(values, self.index)
        return RealRows(values, self._family.statistics, partial(table.check_finite, index=self.index, missing=True))

    def check(self) -> None:
        if not hasattr(getattr(self.family, "statistics", None), "values"):
            raise ValueError(f"columns of numbers have the family {self.family.__name__}.")

    @property
    def _family(self) -> Any:
        return self.family

    def rows(self, opened: RealRows, policy: UnknownPolicy | None = None) -> Rows:
        return opened


@dataclass(frozen=True, eq=False)
class CountColumns(OfLevels, FixedColumns):
    """Counts over one simplex."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    kind: ClassVar[str] = "multinomial"
    one_simplex: ClassVar[bool] = True

    def open(self, table: Table) -> sp.csr_array:
        if table.is_sparse:
            return table.matrix(nonnegative=True)
        values = np.asarray(table.numbers(self.index))
        table.check_finite(values, self.index, missing=False)
        table.check_nonnegative(values, self.index)
        return sp.csr_array(values)

    def rows(self, opened: sp.csr_array, policy: UnknownPolicy | None = None) -> Rows:
        return CountRows(opened)

    def cells(self, statistics: LevelCounts) -> np.ndarray:
        """(C, 0): how many rows have so many words is not known."""
        return statistics.count[:, :0]

    def total_count(self, statistics: LevelCounts, n_rows: float) -> int:
        """The mean total, rounded."""
        return round(float(statistics.count.sum() / n_rows)) if n_rows else 0

    def groups(self) -> np.ndarray:
        """Group of each level."""
        return np.zeros(len(self.index), np.int32)


@dataclass(frozen=True, eq=False)
class BinaryColumns(OfLevels, FixedColumns):
    """Absent or present; in a dense array NaN is a missing cell, looked at before `threshold`."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    threshold: float | None = 0.0
    kind: ClassVar[str] = "bernoulli"
    mirrored: ClassVar[Hashable] = "absent"

    def check(self) -> None:
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise ValueError(f"the threshold of its columns is {self.threshold}.")

    def cells(self, statistics: LevelCounts) -> np.ndarray:
        return cells_by_feature(statistics.count, self.sizes())

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
        values = np.asarray(table.numbers(self.index))
        table.check_finite(values, self.index, missing=True)
        if self.threshold is None:
            _check_binary(values, lambda i: (i // values.shape[1], self.names[i % values.shape[1]]))
        return values

    def rows(self, opened: Any, policy: UnknownPolicy | None = None) -> Rows:
        if sp.issparse(opened):
            return PresenceRows(opened)
        return BinaryRows(opened, 0.5 if self.threshold is None else self.threshold)

    def finish(self, statistics: LevelCounts | PackedCounts, class_count: np.ndarray) -> LevelCounts:
        """Of a sparse matrix only presences were counted: the rest of each class is absent."""
        count = statistics.level_counts(self.sizes()).count
        if count.shape[1] == 2 * len(self.index):
            return LevelCounts(count)
        # With fractional weights the difference of two equal sums may be negative.
        levels = np.stack([np.maximum(class_count[:, None] - count, 0.0), count], axis=2)
        return LevelCounts(levels.reshape(count.shape[0], -1))

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return self.groups(), ["absent", "present"] * len(self.index)

    def sizes(self) -> np.ndarray:
        return np.full(len(self.index), 2)

    def groups(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.index), dtype=np.int32), 2)

    def _entry(self, matrix: sp.csr_array, i: int) -> tuple[int, str]:
        return int(np.searchsorted(matrix.indptr, i, side="right")) - 1, self.names[int(matrix.indices[i])]


def cells_by_feature(count: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(C, F) sums of (C, L) counts over the levels of each feature that has any."""
    start = (np.cumsum(sizes) - sizes)[sizes > 0].astype(np.int64)
    return np.add.reduceat(count, start, axis=1) if len(start) else count


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
