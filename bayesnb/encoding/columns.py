"""Blocks of columns, which encode cells of a table for a conjugate family."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from bayesnb.encoding.levels import to_python
from bayesnb.encoding.priors import prior_of_levels, prior_of_numbers
from bayesnb.encoding.row_blocks import BinaryRows, RealRows, Rows
from bayesnb.encoding.sparse_rows import CountRows, PresenceRows
from bayesnb.encoding.table import Table
from bayesnb.families import Dirichlet, LevelCounts, PackedCounts


class Unknown(NamedTuple):
    """Cells of a feature whose values are no level: their number, and the first value with its row."""

    feature: int
    cells: int
    value: object
    row: int


UnknownPolicy = Callable[[Any, list[Unknown]], None]
"""Called with the categorical columns and their unknown values, before these become missing cells or a level."""


class Columns(Protocol):
    """One block of columns of a table, and how their cells become rows of a conjugate family."""

    @property
    def index(self) -> Sequence[int]:
        """Positions of the columns in the table."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    @property
    def n_features(self) -> int:
        """Number of columns of the whole table."""
        ...

    @property
    def kind(self) -> str:
        """User's word for such columns, as in `MixedNB(gaussian=...)`."""
        ...

    @property
    def family(self) -> Any:
        """Conjugate family of the cells; rows are counted in its `statistics`."""
        ...

    @property
    def hyperparameter(self) -> str:
        """Name of the estimators' argument with the prior of such columns."""
        ...

    @property
    def base(self) -> Columns:
        """Columns of the same features without parents."""
        ...

    @property
    def network(self) -> Any:
        """The columns as `NodeColumns` if they may have parents; else None."""
        ...

    @property
    def role(self) -> Literal["root", "margin"] | None:
        """Role of columns that another block has given their parents; None for columns of no other block."""
        ...

    @property
    def one_simplex(self) -> bool:
        """Whether a row is several draws from one simplex, so that its cells are counts."""
        ...

    @property
    def term_names(self) -> Sequence[str]:
        """Names of the terms of a row's log-likelihood: the columns, or the kind for all draws from a simplex."""
        ...

    @property
    def capacity(self) -> int:
        """Number of positions on the last axis of the kernels' arrays, padding included."""
        ...

    def check(self) -> None:
        """Raise ValueError unless the fields fit together; `Encoding.check` checks what all columns have."""
        ...

    def open(self, table: Table) -> Any:
        """Check this block's columns of a table and return them in a common form."""
        ...

    def learn(self, opened: Any) -> Self:
        """Return columns with the levels that may occur in opened columns."""
        ...

    def rows(self, opened: Any, policy: UnknownPolicy | None = None) -> Rows:
        """Encode opened columns; `policy` is called if there are unknown levels."""
        ...

    def finish(self, statistics: Any, class_count: np.ndarray) -> Any:
        """Return statistics of the kernels in their final shape."""
        ...

    def prune(self, statistics: Any) -> tuple[Self, Any]:
        """Return columns and statistics without the undeclared levels that did not occur."""
        ...

    def union(self, other: Self) -> Self:
        """Return columns with the levels of both."""
        ...

    def positions_in(self, joint: Self) -> np.ndarray:
        """Positions of these levels on the last axis of `joint`, which has more levels."""
        ...

    def prior(self, given: object, argument: str, n_classes: int) -> Any:
        """Return the prior that a user has `given` for an `argument`: a family, or a function of the statistics to it.

        Raises
        ------
        ValueError
            If the prior does not suit these columns; the message says which does.
        """
        ...

    def sizes(self) -> np.ndarray:
        """Number of positions of each feature on the last axis of the statistics."""
        ...

    def observed_weight(self, statistics: Any) -> np.ndarray:
        """(C, F) weight of the rows of each class in which each feature is observed."""
        ...

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Feature and level of each position on the last axis of the statistics; None for the levels of numbers."""
        ...


class PlainColumns:
    """Columns that do not depend on each other, with one cell a row."""

    network: ClassVar[Any] = None
    role: ClassVar[Literal["root", "margin"] | None] = None
    one_simplex: ClassVar[bool] = False

    @property
    def term_names(self) -> Sequence[str]:
        """Names of the columns, or the kind if all draws from one simplex are one term."""
        columns: Any = self
        return [columns.kind] if self.one_simplex else columns.names


class SimplexColumns:
    """Columns whose cells are levels, with Dirichlet probabilities."""

    family: ClassVar[type] = Dirichlet
    hyperparameter: ClassVar[str] = "alpha"

    def prior(self, given: object, argument: str, n_classes: int) -> Dirichlet:
        return prior_of_levels(given, self, n_classes)


class MultiLevelColumns(PlainColumns):
    """Columns with one position a level on the last axis of the statistics, feature after feature."""

    def sizes(self) -> np.ndarray:
        """Number of levels of each feature."""
        raise NotImplementedError

    def start(self) -> np.ndarray:
        """Position of the first level of each feature on the last axis."""
        return np.cumsum([0, *self.sizes()[:-1]]).astype(np.int32)

    def observed_weight(self, statistics: LevelCounts) -> np.ndarray:
        """(C, F) weight of the rows of each class in which each feature is observed."""
        return sum_levels(statistics.count, self.sizes())

    def finish(self, statistics: LevelCounts | PackedCounts, class_count: np.ndarray) -> LevelCounts:
        return statistics.level_counts(self.sizes())


class FixedColumns(PlainColumns):
    """Columns whose levels do not depend on the data."""

    index: Sequence[int]

    @property
    def base(self) -> Self:
        return self

    def check(self) -> None:
        """Raise nothing: no fields can contradict each other."""

    def sizes(self) -> np.ndarray:
        """(F,) ones: each feature has one position."""
        return np.ones(len(self.index), np.int64)

    def observed_weight(self, statistics: Any) -> np.ndarray:
        """(C, F) weight of the rows of each class in which each feature is observed."""
        return np.asarray(statistics.count)

    def learn(self, opened: Any) -> Self:
        return self

    def finish(self, statistics: Any, class_count: np.ndarray) -> Any:
        return statistics

    def prune(self, statistics: Any) -> tuple[Self, Any]:
        return self, statistics

    def union(self, other: Self) -> Self:
        return self

    def positions_in(self, joint: Self) -> np.ndarray:
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
    family: Any

    @property
    def kind(self) -> str:
        return str(self.family.kind)

    @property
    def hyperparameter(self) -> str:
        return f"{self.kind}_prior"

    def prior(self, given: object, argument: str, n_classes: int) -> Any:
        return prior_of_numbers(given, self.family, (n_classes, len(self.index)), argument)

    def open(self, table: Table) -> RealRows:
        values = table.numbers(self.index)
        if self.family.nonnegative:
            values = np.asarray(values)
            table.check_nonnegative(values, self.index)
        return RealRows(values, self.family.statistics, partial(table.check_finite, index=self.index, missing=True))

    def check(self) -> None:
        if not hasattr(getattr(self.family, "statistics", None), "values"):
            raise ValueError(f"columns of numbers have the family {self.family.__name__}.")

    def rows(self, opened: RealRows, policy: UnknownPolicy | None = None) -> Rows:
        return opened


@dataclass(frozen=True, eq=False)
class CountColumns(SimplexColumns, FixedColumns):
    """Counts of words, all of them draws from one simplex."""

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

    def observed_weight(self, statistics: LevelCounts) -> np.ndarray:
        """(C, 0) no weights: the number of rows with a word is not counted."""
        return np.asarray(statistics.count)[:, :0]

    def groups(self) -> np.ndarray:
        """Group of each level: all are in one simplex."""
        return np.zeros(len(self.index), np.int32)


@dataclass(frozen=True, eq=False)
class BinaryColumns(SimplexColumns, FixedColumns):
    """Bernoulli features, absent or present: present above `threshold`; NaN in a dense array is a missing cell."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    threshold: float | None = 0.0
    kind: ClassVar[str] = "bernoulli"

    def check(self) -> None:
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise ValueError(f"the threshold of its columns is {self.threshold}.")

    def observed_weight(self, statistics: LevelCounts) -> np.ndarray:
        return sum_levels(statistics.count, self.sizes())

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
        """Return counts of absent and present cells; a sparse matrix has counts of present ones only."""
        count = statistics.level_counts(self.sizes()).count
        if count.shape[1] == 2 * len(self.index):
            return LevelCounts(count)
        # With fractional weights the difference of two equal sums may be negative.
        levels = np.stack([np.maximum(class_count[:, None] - count, 0.0), count], axis=2)
        return LevelCounts(levels.reshape(count.shape[0], -1))

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        return self.groups(), ["absent", "present"] * len(self.index)

    def sizes(self) -> np.ndarray:
        """(F,) twos: each feature is absent or present."""
        return np.full(len(self.index), 2)

    def groups(self) -> np.ndarray:
        """Feature of each level."""
        return np.repeat(np.arange(len(self.index), dtype=np.int32), 2)

    def _entry(self, matrix: sp.csr_array, i: int) -> tuple[int, str]:
        return int(np.searchsorted(matrix.indptr, i, side="right")) - 1, self.names[int(matrix.indices[i])]


def sum_levels(count: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(C, F) sums of (C, L) counts over the levels of each feature that has any."""
    start = (np.cumsum(sizes) - sizes)[sizes > 0].astype(np.int64)
    return np.asarray(np.add.reduceat(count, start, axis=1)) if len(start) else count


def _check_binary(values: np.ndarray, locate: Callable[[int], tuple[int, str]]) -> None:
    """Raise ValueError naming the first cell, located by its flat index, that is neither 0 nor 1 nor missing."""
    bad = (
        ~((values == 0) | (values == 1) | np.isnan(values))
        if values.dtype.kind == "f"
        else (values != 0) & (values != 1)
    )
    if bad.any():
        i = int(np.argmax(bad))
        row, name = locate(i)
        raise ValueError(
            f"Input X, column {name!r}, row {row}: {to_python(values.ravel()[i])!r} is neither 0 nor 1; with "
            "binarize=None cells must be 0, 1 or missing. Set `binarize` to a threshold."
        )
