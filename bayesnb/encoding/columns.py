"""Blocks of columns, which encode cells of a table for a conjugate family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from bayesnb._util.arguments import bad_argument
from bayesnb.encoding.levels import MISSING, Levels, to_python
from bayesnb.encoding.priors import prior_of_levels, prior_of_numbers
from bayesnb.encoding.row_blocks import CodedRows, RealRows, Rows, code_in_pieces
from bayesnb.encoding.sparse_rows import WordRows
from bayesnb.encoding.table import Table, check_finite
from bayesnb.families import Dirichlet, LevelCounts, PackedCounts


class Unknown(NamedTuple):
    """Cells of a feature whose values are not levels: their number, and the first value with its row."""

    feature: int
    cells: int
    value: object
    row: int


UnknownPolicy = Callable[[Any, list[Unknown]], None]
"""Called with the categorical columns and their unknown values, before these become missing cells or a level."""


def ignore_unknown(columns: Any, unknown: list[Unknown]) -> None:
    """Do nothing, for rows whose unknown levels were reported before."""


class Columns(ABC):
    """One block of columns of a table, and how their cells become rows of a conjugate family.

    `index` and `names` are positions and names of the columns in the table, which has `n_features` columns in all.
    `kind` is the user's word for such columns, as in `MixedNB(gaussian=...)`, and `family` their conjugate family.
    """

    index: Sequence[int]
    names: Sequence[str]
    n_features: int
    kind: Any
    family: Any = Dirichlet
    base: Any
    """Columns of the same features without parents."""
    nodes: Any
    """Positions in `base` of each feature, then of its parents."""
    sums_missing: ClassVar[bool] = False
    """Whether rows score with missing cells summed out, where these have parents or children."""
    role: ClassVar[Literal["root", "margin"] | None] = None
    """Role of columns that another block has given their parents; None for columns of no other block."""
    one_simplex = False
    """Whether a row is several draws from one simplex, so that its cells are counts."""
    hyperparameter: Any = "alpha"
    """Name of the estimators' argument with the prior of such columns."""
    may_be_suspicious = True
    """Whether `fit` remarks on such columns; False for indicators and counts, many of which may be equal."""

    @property
    def network(self) -> Any:
        """Columns that may have parents, as `NodeColumns`; default: None, as these columns have no parents."""
        return None

    @property
    def term_names(self) -> Sequence[str]:
        """Names of the terms of a row's log-likelihood: the columns, or the kind for all draws from a simplex."""
        return [self.kind] if self.one_simplex else self.names

    @abstractmethod
    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> Rows:
        """Check these columns of a table and return their rows.

        `policy` is called with values that are not levels; None: `report_unknown`. Columns without levels ignore it.
        """

    def learn(self, table: Table, policy: UnknownPolicy | None = None) -> tuple[Self, Rows]:
        """Return columns with the levels that may occur in a table, and the rows of the table under these columns.

        Default: these columns, which have no levels, and their rows.
        """
        return self, self.rows(table, policy)

    def texts_among_numbers(self) -> dict[int, tuple[str, str]]:
        """Return {position in the table: (name, text)} of features that are levels by few texts; default: none."""
        return {}

    def levels_now_numbers(self, before: Self, *, whole: bool) -> dict[int, tuple[str, int]]:
        """Return {position in the table: (name, number of levels)} of features that have become numbers; default: none.

        They had at most two levels in `before`, and have more now: see `count_as_numbers` for `whole`.
        """
        return {}

    def with_declared(self, known: Mapping[int, Levels]) -> Self:
        """Return columns whose levels are those in `known`, by position in the table, for good; default: unchanged."""
        return self

    def keep_levels(self, named: Mapping[int, Sequence[Hashable]]) -> Self:
        """Return columns that also have the levels in `named`, by position in the table; default: unchanged.

        These levels stay without rows, and others may be added. Declared levels are not changed.
        """
        return self

    def check(self) -> None:  # noqa: B027
        """Raise ValueError if the fields of these columns contradict each other; default: do nothing.

        `Encoding.check` checks the fields that all columns have.
        """

    def prior(self, given: object, argument: str, n_classes: int) -> Any:
        """Return the prior that a user has `given` for an `argument`: a family, or a function of the statistics to it.

        Default: the Dirichlet of `prior_of_levels`. Raises ValueError if the prior does not suit these columns.
        """
        return prior_of_levels(given, self, n_classes)

    # -- positions on the last axis of the statistics --------------------------------------------

    def sizes(self) -> np.ndarray:
        """(F,) number of positions of each feature on the last axis: its levels, or 1 for numbers."""
        return self._sizes

    @cached_property
    def _sizes(self) -> np.ndarray:
        """(F,) number of positions of each feature on the last axis; default: 1."""
        return np.ones(len(self.index), np.int64)

    def start(self) -> np.ndarray:
        """(F,) first position of each feature on the last axis."""
        return np.asarray(np.cumsum(self.sizes()) - self.sizes(), np.int32)

    def groups(self) -> np.ndarray:
        """(L,) number of the simplex of each position; default: one simplex a feature."""
        return np.repeat(np.arange(len(self.sizes()), dtype=np.int32), self.sizes())

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the feature (L,) and the level of each position; default: None in place of the levels."""
        return self.groups(), None

    def are_numbers(self) -> np.ndarray:
        """(F,) whether each feature is read as numbers; default: all are."""
        return np.ones(len(self.index), bool)

    def are_cells(self) -> np.ndarray:
        """(F,) whether the levels of each feature are cells of a number, in ascending order; default: none are."""
        return np.zeros(len(self.index), bool)

    def decode(self, cells: np.ndarray) -> np.ndarray:
        """(S, F) values of the features, from simulated cells (S, K) on the last axis; the inverse of one-hot codes.

        Numbers and counts are returned unchanged; of levels, 0 and 1, the position of the one of each feature, -1 for
        a feature without levels.
        """
        return cells if self.axis()[1] is None else level_positions(cells, self.sizes(), self.start())

    @property
    def capacity(self) -> int:
        """Number of positions in the kernels' arrays of counts; default: those of all features, without padding."""
        return int(self.sizes().sum())

    # -- statistics ------------------------------------------------------------------------------

    def finish(self, statistics: Any, class_count: np.ndarray) -> Any:
        """Return the final statistics from those that the kernels have summed; default: the same.

        `class_count` (C,) is the weight of the rows of each class.
        """
        return statistics

    def prune(self, statistics: Any) -> tuple[Self, Any]:
        """Return columns and statistics without the undeclared levels that did not occur; default: both unchanged."""
        return self, statistics

    def union(self, other: Self) -> Self:
        """Return columns with the levels of both; default: these columns, which have no levels."""
        return self

    def positions_in(self, joint: Self) -> np.ndarray:
        """(L,) positions of these levels on the last axis of `joint`; default: 0 … L - 1, as both have the same."""
        return np.arange(int(self.sizes().sum()))

    # -- structure: by default no feature has parents --------------------------------------------

    def require_memory(self, n_classes: int) -> None:  # noqa: B027
        """Raise ValueError if there are too many counts of combinations of levels; default: pass."""

    def counts_without_parents(self, statistics: Any) -> Any:
        """Return the statistics of the features given the class alone."""
        return statistics

    def prior_without_parents(self, prior: Any) -> Any:
        """Return the prior of the features given the class alone."""
        return prior

    def features_missing_on_arcs(self, statistics: Any, class_count: np.ndarray) -> list[str]:
        """Return the names of the features with parents such that in some row the feature or a parent is missing."""
        return []

    def features_never_counted(self, statistics: Any, class_count: np.ndarray) -> list[tuple[int, str]]:
        """Return pairs (index of a class, name of a feature) such that no row has the feature and all its parents."""
        return []

    def select_realized(self, drawn: np.ndarray) -> np.ndarray:
        """Return the drawn cells (S, L) that come true: levels of a feature given the values drawn for its parents."""
        return drawn


@dataclass(frozen=True, eq=False)
class PlainColumns(Columns):
    """Columns without parents, at positions `index` of a table with `n_features` columns."""

    index: Sequence[int]
    names: Sequence[str]
    n_features: int

    by_feature: ClassVar[tuple[str, ...]] = ("index", "names")
    """Fields with an entry for each feature, or without entries."""

    @property
    def base(self) -> Self:
        """The columns themselves."""
        return self

    @property
    def nodes(self) -> list[tuple[int, ...]]:
        """Position of each feature, which has no parents."""
        return [(f,) for f in range(len(self.index))]

    def select(self, features: Sequence[int], kind: type[PlainColumns] | None = None) -> Any:
        """Return the features at these positions, as columns of the type `kind`; default: of the same type."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {name: tuple(values[name][j] for j in features) for name in self.by_feature if len(values[name])}
        return (kind or type(self))(**values)


class OneLevelColumns(Columns):
    """Columns each of whose cells has one level, so that kernels may count levels in packs and with padding."""

    def finish(self, statistics: LevelCounts | PackedCounts, class_count: np.ndarray) -> LevelCounts:
        """Return counts (C, L) of single levels, without padding."""
        return statistics.level_counts(self.sizes())


@dataclass(frozen=True, eq=False)
class RealColumns(PlainColumns):
    """Numbers for a family with one parameter set a feature; NaN is a missing cell."""

    family: Any = field()

    @property
    def kind(self) -> str:
        """Kind of the family, such as "gaussian"."""
        return self.family.kind

    @property
    def hyperparameter(self) -> str:
        """Name of the argument with the prior, such as "gaussian_prior"."""
        return f"{self.kind}_prior"

    def prior(self, given: object, argument: str, n_classes: int) -> Any:
        """Return the prior that is `given`: a family with parameters (C, F), or an empirical prior."""
        return prior_of_numbers(given, self, n_classes, argument)

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> RealRows:
        """Return the numbers as rows; raise ValueError for a negative one if the family has none.

        Infinite numbers are refused later, when blocks of rows are read or counted. `policy` is not used.
        """
        values = table.numbers(self.index)
        if self.family.nonnegative:
            values = np.asarray(values)
            table.check_nonnegative(values, self.index)
        return RealRows(values, self.names, self.family.statistics)

    def check(self) -> None:
        """Raise ValueError unless the family is one of numbers."""
        if not hasattr(self.family.statistics, "values"):
            raise ValueError(f"Columns of numbers must have a family of numbers; it is {self.family.__name__}.")


@dataclass(frozen=True, eq=False)
class CountColumns(PlainColumns):
    """Counts of words, all of them draws from one simplex."""

    kind = "multinomial"
    one_simplex = True
    may_be_suspicious = False

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> WordRows:
        """Return the counts as sparse rows; raise ValueError if one is negative, missing or infinite.

        `policy` is not used.
        """
        if table.is_sparse:
            return WordRows(table.matrix(nonnegative=True))
        values = np.asarray(table.numbers(self.index))
        check_finite(values, self.names, missing=False)
        table.check_nonnegative(values, self.index)
        return WordRows(sp.csr_array(values))

    def groups(self) -> np.ndarray:
        """(F,) zeros: all columns are in one simplex."""
        return np.zeros(len(self.index), np.int32)

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the column (F,) of each position, which is the column itself, and None."""
        return np.arange(len(self.index)), None


@dataclass(frozen=True, eq=False)
class BinaryColumns(PlainColumns, OneLevelColumns):
    """Bernoulli features, absent or present: present above `threshold`; NaN in a dense array is a missing cell."""

    threshold: float | None = 0.0
    kind = "bernoulli"
    may_be_suspicious = False

    def check(self) -> None:
        """Raise ValueError unless the threshold is finite or None."""
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise ValueError(f"binarize={self.threshold} must be a finite number, or None for cells of 0 and 1.")

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> Rows:
        """Return rows of absent and present cells; raise ValueError for an infinite cell.

        Without a threshold, a cell that is neither 0, 1 nor missing raises ValueError, too. A sparse table may have no
        NaN, and no threshold below 0.
        """
        if table.is_sparse:
            return WordRows(self._select_present(table.matrix()), presence=True)
        values = np.asarray(table.numbers(self.index))
        complete = check_finite(values, self.names)
        if self.threshold is None:
            _require_binary(values, self.names, lambda i: divmod(i, values.shape[1]))
        threshold = 0.5 if self.threshold is None else self.threshold

        def code(rows: slice) -> np.ndarray:
            """(n, F) codes: 1 present, 0 absent, `MISSING` for NaN."""
            present = (values[rows] > threshold).view(np.int8)
            return present if complete else np.where(np.isnan(values[rows]), np.int8(MISSING), present)

        # Batches of floats share kernels, whether or not a cell is missing.
        return CodedRows(code_in_pieces(code, values.shape, np.int8), self.sizes(), values.dtype.kind != "f")

    def _select_present(self, matrix: sp.csr_array) -> sp.csr_array:
        """Return a matrix whose stored entries are the cells above the threshold, which must not be negative."""
        if self.threshold is None:
            row, column = matrix.tocoo().coords
            _require_binary(matrix.data, self.names, lambda i: (int(row[i]), int(column[i])))
        elif self.threshold < 0:
            raise bad_argument("binarize", self.threshold, "at least 0 for a sparse X, whose absent cells are 0")
        elif matrix.nnz and matrix.data.min() <= self.threshold:
            present = matrix.data > self.threshold
            matrix = sp.csr_array((present, matrix.indices, matrix.indptr), matrix.shape, copy=True)
            matrix.eliminate_zeros()
        return matrix

    def finish(self, statistics: LevelCounts | PackedCounts, class_count: np.ndarray) -> LevelCounts:
        """Return counts (C, 2 F) of absent and present cells, from counts of both or of present ones only.

        `class_count` (C,) gives the number of absent cells.
        """
        levels = super().finish(statistics, class_count)
        if (count := levels.count).shape[1] == 2 * len(self.index):
            return levels
        # With fractional weights the difference of two equal sums may be negative.
        both = np.stack([np.maximum(class_count[:, None] - count, 0.0), count], axis=2)
        return LevelCounts(both.reshape(len(count), -1))

    @cached_property
    def _sizes(self) -> np.ndarray:
        """(F,) number of levels of each feature, which is 2."""
        return np.full(len(self.index), 2)

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the feature (2 F,) of each position, and "absent" or "present" for each."""
        return self.groups(), ["absent", "present"] * len(self.index)


def level_positions(cells: np.ndarray, sizes: np.ndarray, start: np.ndarray) -> np.ndarray:
    """(S, F) position of the one within each feature, whose levels begin at `start` (F,); -1 without levels."""
    positions = np.full((len(cells), len(sizes)), -1)
    positions[:, sizes > 0] = np.nonzero(cells)[1].reshape(len(cells), -1) - start[sizes > 0]
    return positions


def _require_binary(values: np.ndarray, names: Sequence[str], locate: Callable[[int], tuple[int, int]]) -> None:
    """Raise ValueError naming the first cell that is neither 0, 1 nor missing; `locate` finds its row and column."""
    bad = (values != 0) & (values != 1) & (values == values)
    if bad.any():
        i = int(np.argmax(bad))
        row, j = locate(i)
        cell = f"Input X, column {names[j]!r}, row {row}: {to_python(values.ravel()[i])!r}"
        raise ValueError(f"{cell} is neither 0, 1 nor missing. Set `binarize` to a threshold.")


def require_entries(what: str, n: int, n_columns: int) -> None:
    """Raise ValueError unless there are as many entries of a kind, such as "levels", as columns."""
    if n != n_columns:
        raise ValueError(f"Every column needs {what}. There are {what} for {n} of {n_columns} columns.")
