"""Blocks of columns without parents, which encode cells of a table for a conjugate family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from bayesnb._util.arguments import GREATEST, bad_argument, shown
from bayesnb._util.precision import float64
from bayesnb._util.warnings import UnknownLevelWarning, warn
from bayesnb.encoding.edges import are_edges, cell_names, merge_edges, quantile_edges
from bayesnb.encoding.encoded_rows import (
    CodedRows,
    ExposedRows,
    RealRows,
    Rows,
    WordRows,
    code_in_pieces,
    pad_rows,
    padded_levels,
    piece_slices,
    subtract_row,
)
from bayesnb.encoding.levels import (
    MISSING,
    UNKNOWN,
    Column,
    Factors,
    Levels,
    factorize,
    factorize_integers,
    is_pandas,
    to_python,
)
from bayesnb.encoding.priors import BlockPrior, prior_of_cells, prior_of_levels, prior_of_numbers
from bayesnb.encoding.table import (
    SparseNumbers,
    StackedColumns,
    Table,
    aligned,
    check_finite,
    is_number,
    row_major,
)
from bayesnb.families import Binned, Dirichlet, LevelCounts, PackedCounts
from bayesnb.families.protocol import Family
from bayesnb.families.rows import cell_code

# == Blocks of columns, which encode cells of a table for a conjugate family =======================


class Unknown(NamedTuple):
    """Cells of a feature whose values are not levels: their number, and the first value with its row."""

    feature: int
    cells: int
    value: object
    row: int


UnknownPolicy = Callable[["LevelColumns", list[Unknown]], None]
"""Called with the categorical columns and their unknown values, before these become missing cells or a level."""
NamedLevels = Mapping[int, Sequence[Hashable]]
"""Levels by position of their column in the table."""


def ignore_unknown(columns: LevelColumns, unknown: list[Unknown]) -> None:
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
    network: Any = None
    """Columns that may have parents, as `NodeColumns`; None if they have no parents."""
    sums_missing: ClassVar[bool] = False
    """Whether rows score with missing cells summed out, where these have parents or children."""
    role: ClassVar[Literal["root", "margin"] | None] = None
    """Role of columns that another block has given their parents; None for columns of no other block."""
    one_simplex = False
    """Whether a row is several draws from one simplex, so that its cells are counts."""
    hyperparameter: Any = "alpha"
    """Name of the estimators' argument with the prior of such columns."""
    auxiliary: Mapping[int, str] = MappingProxyType({})
    """Names, by position in the table, of further columns that rows are read with, and that are no features."""
    may_be_suspicious = True
    """Whether `fit` remarks on such columns; False for indicators and counts, many of which may be equal."""

    @property
    def statistics(self) -> type[Any]:
        """Type of the sufficient statistics."""
        return self.family.statistics

    @property
    def unlearned(self) -> list[str]:
        """Names of the features that need levels and have none yet; default: none."""
        return []

    @property
    def uncut(self) -> list[str]:
        """Names of the numbers that have a single cell by the rows that were counted first; default: none."""
        return []

    @property
    def term_names(self) -> Sequence[str]:
        """Names of the terms of a row's log-likelihood: the columns, or the kind for all draws from a simplex."""
        return [self.kind] if self.one_simplex else self.names

    @abstractmethod
    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> Rows:
        """Check these columns of a table and return their rows.

        `policy` is called with values that are not levels; None: `report_unknown`. Columns without levels ignore it.
        """

    def learn(
        self, table: Table, policy: UnknownPolicy | None = None, named: NamedLevels | None = None
    ) -> tuple[Self, Rows]:
        """Return columns with the levels that may occur in a table, and the rows of the table under these columns.

        `named` has further levels of undeclared features, by position in the table. Default: these columns, which have
        no levels, and their rows.
        """
        return self, self.rows(table, policy)

    def with_declared(self, known: Mapping[int, Levels]) -> Self:
        """Return columns whose levels are those in `known`, by position in the table, for good; default: unchanged."""
        return self

    def keep_levels(self, named: NamedLevels) -> Self:
        """Return columns that also have the levels in `named`, by position in the table; default: unchanged.

        These levels stay without rows, and others may be added. Declared levels are not changed.
        """
        return self

    def fix_levels(self, fixed: bool) -> Self:
        """Return columns in which all levels, or only declared ones, stay without rows; default: unchanged."""
        return self

    def level_weights(self, statistics: Any) -> dict[int, np.ndarray]:
        """Return {position in the table: weight (L,) of the rows with each level} of features whose levels may leave.

        Default: none.
        """
        return {}

    def forget(self, rows: Self, weights: Mapping[int, np.ndarray]) -> Self:
        """Return columns without the levels of `rows` that have weight 0, and do not stay without rows.

        `rows` are the columns of rows that were removed, `weights` those of `level_weights`. Default: unchanged.
        """
        return self

    def check(self) -> None:  # noqa: B027
        """Raise ValueError if the fields of these columns contradict each other; default: do nothing.

        `Encoding.check` checks the fields that all columns have.
        """

    def prior(self, given: object, argument: str, classes: Levels) -> BlockPrior:
        """Return the prior that a user has `given` for an `argument`: a family, or a function of the statistics to it.

        Default: the Dirichlet of `prior_of_levels`. Raises ValueError if the prior does not suit these columns.
        """
        return prior_of_levels(given, self, classes)

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

    def prior(self, given: object, argument: str, classes: Levels) -> BlockPrior:
        """Return the prior that is `given`: a family with parameters (C, F), or an empirical prior."""
        return prior_of_numbers(given, self, classes, argument)

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> RealRows:
        """Return the numbers as rows; raise ValueError for a negative one if the family has none.

        Infinite numbers are refused later, when pieces of rows are read or counted. `policy` is not used.
        """
        values = table.numbers(self.index, sparse=self.family.sparse)
        if self.family.nonnegative and not table.is_sparse:
            values = np.asarray(values)
            table.check_nonnegative(values, self.index)
        return RealRows(values, self.names, self.statistics)

    def check(self) -> None:
        """Raise ValueError unless the family is one of numbers."""
        if not hasattr(self.family.statistics, "values"):
            raise ValueError(f"Columns of numbers must have a family of numbers; it is {self.family.__name__}.")


@dataclass(frozen=True, eq=False)
class ExposedColumns(RealColumns):
    """Counts whose means are rates times the exposure of the row, which the column at the position `exposure` holds."""

    exposure: int
    exposure_name: str

    @classmethod
    def from_table(cls, table: Table, family: type[Family], exposure: object) -> Self:
        """Return all columns of a table but the one that a user's argument `exposure` gives by name or position.

        Raises ValueError if the table has no such column, or no other one.
        """
        at = table.position(exposure, "exposure")
        if not (index := [j for j in range(len(table.names)) if j != at]):
            raise ValueError(f"X has no column besides the exposure, {shown(table.names[at])}. Add columns of counts.")
        return cls(*table.columns_at(index), family, at, table.names[at])

    @property
    def auxiliary(self) -> Mapping[int, str]:  # type: ignore[override]
        """Name, by its position in the table, of the column with the exposures."""
        return {self.exposure: self.exposure_name}

    @property
    def statistics(self) -> type[Any]:
        """Type of the sufficient statistics, which sum exposures."""
        return self.family.exposed_statistics

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> ExposedRows:
        """Return counts and exposures as rows; raise ValueError for a negative count. `policy` is not used."""
        rows = super().rows(table)
        return ExposedRows(rows.values, self.names, self.statistics, exposure=self.read_exposure(table))

    def read_exposure(self, table: Table) -> np.ndarray:
        """Return the exposures (N, 1); raise ValueError naming the first one that is missing, infinite or not positive.

        As for numbers, the limits are 1e-75 and 1e75.
        """
        exposure = np.asarray(table.numbers([self.exposure], sparse=True), np.float64)
        if (wrong := ~((exposure >= 1 / GREATEST) & (exposure <= GREATEST))[:, 0]).any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"Input X, column {shown(self.exposure_name)}: the exposure of row {row} is {exposure[row, 0]:g}. It "
                f"must be a positive number, from {1 / GREATEST:g} to {GREATEST:g}. Correct the cell, or drop the row."
            )
        return exposure

    def check(self) -> None:
        """Raise ValueError unless the family sums exposures."""
        super().check()
        if not hasattr(self.family, "exposed_statistics"):
            raise ValueError(f"Columns with exposure must have a family of counts; it is {self.family.__name__}.")


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
        if (count := levels.count).shape[-1] == 2 * len(self.index):
            return levels
        # With fractional weights the difference of two equal sums may be negative.
        both = np.stack([np.maximum(class_count[..., None] - count, 0.0), count], axis=-1)
        return LevelCounts(both.reshape(*count.shape[:-1], -1))

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


# == Categorical columns, whose levels grow as data come, and the policy for values that are not levels

HandleUnknown = Literal["ignore", "error", "level"]
RESERVED = "<unknown>"
_TEXTS_TO_NUMBERS = 5
"""Fewest levels that are numbers for each text, where the text is reported."""


@dataclass(frozen=True, eq=False)
class LevelColumns(PlainColumns, OneLevelColumns):
    """Categorical features.

    Parameters
    ----------
    index : sequence of int
        Positions of the features among the columns of the table.
    names : sequence of str
        Names of the features.
    n_features : int
        Number of columns of the whole table.
    levels : tuple of Levels
        Known levels of each feature.
    declared : tuple of bool
        Whether the levels of each feature were declared, and so do not grow.
    unknown : {"ignore", "error", "level"}
        Treatment of a value that is not a level: a missing cell, an error, or the reserved last level.
    missing_values : tuple
        Values that mark a missing cell, besides None, NaN, NaT and pd.NA.
    cuts : tuple of arrays
        For each feature that is a number, the edges of the intervals that are its levels; None for the other features.
        May be empty if no feature is a number.
    kept : tuple of Levels
        For each undeclared feature the levels that stay without rows; the others leave with their last row. Empty if
        all levels stay.
    """

    levels: tuple[Levels, ...]
    declared: tuple[bool, ...]
    unknown: HandleUnknown = "ignore"
    missing_values: tuple[Hashable, ...] = ()
    cuts: tuple[np.ndarray | None, ...] = ()
    kept: tuple[Levels, ...] = ()
    kind = "categorical"
    by_feature = ("index", "names", "levels", "declared", "cuts", "kept")

    def learn(
        self, table: Table, policy: UnknownPolicy | None = None, named: NamedLevels | None = None
    ) -> tuple[Self, CodedRows]:
        """Return columns with the values that may occur as levels of undeclared features, and the coded rows.

        Of integers within a range of 4,096 these are all from least to greatest; `prune` drops those that do not occur.
        `policy` (default: `report_unknown`) is called with values that are not levels. Levels in `named`, by position
        in the table, are added.
        """
        factors = self.factors(table)
        learned = self.with_values(factors.values).keep_levels(named or {})
        return learned, learned.code_rows(factors, policy)

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> CodedRows:
        """Return coded cells; `policy` (default: `report_unknown`) is called with values that are not levels."""
        return self.code_rows(self.factors(table), policy)

    def factors(self, table: Table) -> Factors:
        """Return the cells of these columns of a table as codes of the distinct values of each column.

        The values of a column of integers within a range of 4,096 may be all of that range. Raises TypeError for sparse
        data.
        """
        table.require_dense()
        cells = None if self.are_cells().any() else table.integers(self.index)
        if cells is not None and (factors := factorize_integers(cells)) is not None:
            return factors
        cuts = self.cuts or (None,) * len(self.index)
        coded = [self._factorize(table, j, edges) for j, edges in zip(self.index, cuts, strict=True)]
        top = max(len(values) for _, values in coded)
        raw = row_major([codes for codes, _ in coded], np.min_scalar_type(-1 - top))
        complete = all(codes.min(initial=0) >= 0 for codes, _ in coded)
        return Factors(raw, np.zeros(len(coded), np.int64), tuple(v for _, v in coded), complete)

    def with_declared(self, known: Mapping[int, Levels]) -> Self:
        """Return these columns with the levels of each column of the table in `known`, which do not grow."""
        levels = tuple(known[j] for j in self.index)
        return replace(self, levels=levels, declared=(True,) * len(levels), kept=())

    def keep_levels(self, named: NamedLevels) -> Self:
        """Return columns in which undeclared features have the levels in `named`, which stay without rows.

        `named` has labels by position in the table. Those of missing cells and of the reserved level are left out.
        """
        kept, levels = list(self.kept or self.levels), list(self.levels)
        reserved, changed = [RESERVED] if self.unknown == "level" else [], False
        for j, (position, declared) in enumerate(zip(self.index, self.declared, strict=True)):
            wanted = [] if declared else named.get(position, [])
            more = [v for v in wanted if v not in kept[j] and v not in self.marks and v not in reserved]
            if more:
                kept[j] = Levels.from_values((*kept[j].values, *more))
                levels[j] = Levels.from_values((*levels[j].values, *more))
                changed = True
        return self._with_levels(levels, kept) if changed else self

    def fix_levels(self, fixed: bool) -> Self:
        """Return columns in which all levels, or only declared ones, stay without rows."""
        return self._with_levels(self.levels, self.levels if fixed else [Levels(())] * len(self.index))

    def level_weights(self, statistics: LevelCounts) -> dict[int, np.ndarray]:
        """Return {position in the table: weight (L,) of rows with each level} of features whose levels may leave."""
        weights = zip(self.index, np.split(statistics.count.sum(axis=0), self.start()[1:]), strict=True)
        return dict(compress(weights, self.may_leave))

    @property
    def may_leave(self) -> list[bool]:
        """Whether levels of each feature may leave with their last row."""
        return [bool(self.kept) and not declared for declared in self.declared]

    def forget(self, rows: Self, weights: Mapping[int, np.ndarray]) -> Self:
        """Return columns without the undeclared levels of `rows` that have weight 0 and are not `kept`."""
        levels = list(self.levels)
        for j, (known, kept, declared) in enumerate(zip(self.levels, self.kept, self.declared, strict=False)):
            values = [] if declared else [v for v in rows.levels[j].values if v not in kept]
            weightless = weights[self.index[j]][known.index(values)] == 0 if values else np.zeros(0, bool)
            if weightless.any():
                gone = Levels(tuple(compress(values, weightless)))
                levels[j] = Levels(tuple(v for v in known.values if v not in gone))
        return self._with_levels(levels, self.kept)

    def _with_levels(self, levels: Sequence[Levels], kept: Sequence[Levels]) -> Self:
        """Return columns with these levels, of which those in `kept` stay without rows; an empty `kept` is for all."""
        features = zip(levels, kept, self.declared, strict=False)
        all_stay = all(declared or len(every) == len(stay) for every, stay, declared in features)
        return replace(self, levels=tuple(levels), kept=() if all_stay else tuple(kept))

    @property
    def unlearned(self) -> list[str]:
        """Names of the features that have no level yet."""
        return [name for name, levels in zip(self.names, self.levels, strict=True) if not len(levels)]

    @property
    def uncut(self) -> list[str]:
        """Names of the numbers that have a single cell."""
        return [name for name, cuts in zip(self.names, self.cuts, strict=False) if cuts is not None and not len(cuts)]

    @cached_property
    def marks(self) -> Levels:
        """Distinct `missing_values`, for look-up."""
        return Levels.from_values(self.missing_values)

    def check(self) -> None:
        """Raise ValueError unless each feature has distinct levels, and each number has cuts that increase."""
        require_entries("levels", len(self.levels), len(self.index))
        require_entries("declarations", len(self.declared), len(self.index))
        for levels in self.levels:
            levels.check()
        self.marks.check()
        if self.kept:
            require_entries("levels that stay", len(self.kept), len(self.index))
        for kept, levels in zip(self.kept, self.levels, strict=False):
            kept.check()
            if lacking := [level for level in kept.values if level not in levels]:
                raise ValueError(f"Levels that stay must be levels of the column; {shown(lacking[0])} is not.")
        if self.cuts:
            require_entries("cuts", len(self.cuts), len(self.index))
        for cuts, levels in zip(self.cuts, self.levels, strict=False):
            if cuts is not None and (not are_edges(cuts) or len(cuts) + 1 != len(levels)):
                raise ValueError(
                    f"A column of numbers has {len(cuts)} cuts, which must increase, and {len(levels)} intervals."
                )

    def with_numbers(self, index: Sequence[int], names: Sequence[str], cuts: Sequence[np.ndarray]) -> Self:
        """Return these features and further numbers, which have the intervals between their cuts as levels.

        Features are in the order of the table.
        """
        intervals = [Levels(tuple(cell_names(edges))) for edges in cuts]
        categorical = zip(self.index, self.names, self.levels, self.declared, [None] * len(self.index), strict=True)
        numbers = zip(index, names, intervals, [True] * len(index), cuts, strict=True)
        features: Any = sorted([*categorical, *numbers], key=lambda feature: feature[0])
        positions, all_names, levels, declared, all_cuts = zip(*features, strict=True)
        return replace(self, index=positions, names=all_names, levels=levels, declared=declared, cuts=all_cuts, kept=())

    def texts_among_numbers(self) -> dict[int, tuple[str, str]]:
        """Return {position in the table: (name, text)} of undeclared features with few texts among numbers as levels.

        Features of one text and fewer than five numbers are not among them, as such levels may be names.
        """
        found = {}
        for j, name, levels, declared in zip(self.index, self.names, self.levels, self.declared, strict=True):
            texts = [] if declared else [v for v in levels.values if isinstance(v, str) and not is_number(v)]
            if 0 < _TEXTS_TO_NUMBERS * len(texts) <= len(levels) - len(texts):
                found[j] = name, texts[0]
        return found

    def levels_now_numbers(self, before: Self, *, whole: bool) -> dict[int, tuple[str, int]]:
        """Return {position in the table: (name, number of levels)} of features that have become numbers.

        They had at most two levels in `before`, and have more now: see `count_as_numbers` for `whole`.
        """
        features = zip(self.index, self.names, self.levels, before.levels, strict=True)
        return {
            j: (name, len(levels))
            for j, name, levels, earlier in features
            if len(earlier) <= 2 < len(levels) and levels.count_as_numbers(whole=whole)
        }

    def with_values(self, values: Sequence[Sequence[Hashable]]) -> Self:
        """Return columns whose undeclared features have these values as levels; `missing_values` are no levels."""
        levels = tuple(
            known if fixed else Levels.from_values(v for v in new if v not in self.marks)
            for known, fixed, new in zip(self.levels, self.declared, values, strict=True)
        )
        return replace(self, levels=levels, kept=())

    def code_rows(self, factors: Factors, policy: UnknownPolicy | None = None) -> CodedRows:
        """Return rows of these cells; `policy` (default: `report_unknown`) is called with values without a level."""
        coded = [self._code_values(factors, j) for j in range(len(self.index))]
        unknown = [unknown_cells for _, unknown_cells in coded if unknown_cells is not None]
        if unknown:
            (policy or report_unknown)(self, unknown)
        codes = tuple(codes for codes, _ in coded)
        complete = factors.complete and all((c >= 0).all() for c in codes)
        return CodedRows(_code_cells(factors, codes), self.sizes(), complete)

    def prune(self, statistics: LevelCounts) -> tuple[Self, LevelCounts]:
        """Return columns and counts (C, L) without undeclared levels whose count is 0; the reserved level stays."""
        declared = np.repeat(self.declared, self.sizes())
        keep = declared | (statistics.count.sum(axis=0) > 0)
        if self.unknown == "level":
            keep[np.cumsum(self.sizes()) - 1] = True
        if keep.all():
            return self, statistics
        flags = np.split(keep, self.start()[1:])
        levels = tuple(
            Levels(tuple(v for v, kept in zip(known.values, flag, strict=False) if kept))
            for known, flag in zip(self.levels, flags, strict=True)
        )
        return replace(self, levels=levels), LevelCounts(statistics.count[:, keep])

    def union(self, other: Self) -> Self:
        """Return columns with the levels of both; raise ValueError if a number has different cuts."""
        for name, cuts, other_cuts in zip(self.names, self.cuts, other.cuts, strict=False):
            merge_edges(name, cuts, other_cuts)
        levels = tuple(known.union(more) for known, more in zip(self.levels, other.levels, strict=True))
        declared = tuple(a or b for a, b in zip(self.declared, other.declared, strict=True))
        pairs = zip(self.kept or self.levels, other.kept or other.levels, strict=True)
        kept = [] if not (self.kept or other.kept) else [stay.union(more) for stay, more in pairs]
        return replace(self, declared=declared)._with_levels(levels, kept)

    def positions_in(self, joint: Self) -> np.ndarray:
        """(L,) positions of these levels on the last axis of `joint`, which has these levels and more."""
        return np.concatenate(list(map(np.add, joint.start(), self.codes_in(joint))))

    def codes_in(self, joint: Self) -> list[np.ndarray]:
        """Return for each feature the codes of its levels in `joint`, which has these levels and more."""
        pairs = zip(self.levels, joint.levels, strict=True)
        codes = [np.arange(len(more)) if known is more else more.index(known.values) for known, more in pairs]
        if self.unknown == "level":
            codes = [np.append(code, len(more)) for code, more in zip(codes, joint.levels, strict=True)]
        return codes

    def axis(self) -> tuple[np.ndarray, Sequence[Hashable] | None]:
        """Return the feature (L,) of each position, and the level of each position."""
        return self.groups(), [name for j in range(len(self.levels)) for name in self.level_names(j)]

    @cached_property
    def _sizes(self) -> np.ndarray:
        """(F,) number of levels of each feature, with the reserved level if there is one."""
        return np.array([len(levels) + (self.unknown == "level") for levels in self.levels], np.int64)

    @property
    def capacity(self) -> int:
        """Number of levels in the kernels' arrays of counts, padding included."""
        return padded_levels(self.sizes())

    def are_cells(self) -> np.ndarray:
        """(F,) whether each feature is a number whose levels are the intervals between its cuts."""
        return np.array([cuts is not None for cuts in self.cuts or (None,) * len(self.index)], bool)

    def tables(self, flat: np.ndarray) -> list[np.ndarray]:
        """Return the (C, levels) table of each feature, from the (C, L) array of all features."""
        return np.split(flat, self.start()[1:], axis=1)

    def level_names(self, j: int) -> list[Hashable]:
        """Return the levels of feature j in the order of arrays, the reserved one included."""
        return [*self.levels[j].values, *([RESERVED] if self.unknown == "level" else [])]

    def _factorize(self, table: Table, j: int, cuts: np.ndarray | None) -> tuple[np.ndarray, list[Hashable]]:
        """Return the codes of column j of a table and its distinct values; those of a number are its intervals."""
        if cuts is not None:
            values = np.asarray(table.numbers([j]))
            check_finite(values, [table.names[j]])
            codes = np.where(np.isnan(values), MISSING, np.searchsorted(cuts, values, side="left"))[:, 0]
            return codes, list(cell_names(cuts))
        column, where = table.column(j), table.label(j)
        categories = declared_categories(column)
        if categories is not None and is_pandas(column):
            return np.asarray(column.cat.codes), list(categories)
        return factorize(column, where)

    def _code_values(self, factors: Factors, j: int) -> tuple[np.ndarray, Unknown | None]:
        """Return the code of each of `factors.values[j]`, and the cells whose values are not levels; None for none."""
        values = factors.values[j]
        codes = self.levels[j].index(values)
        if self.missing_values:
            codes[self.marks.index(values) >= 0] = MISSING
        strange = codes == UNKNOWN
        if not strange.any():
            return codes, None
        codes[strange] = len(self.levels[j]) if self.unknown == "level" else MISSING
        occurs = factors.occurrences(j) * strange
        if not occurs.any():
            return codes, None
        first = int(np.argmax(occurs > 0))
        return codes, Unknown(j, int(occurs.sum()), values[first], factors.first_row(j, first))


def _code_cells(factors: Factors, codes: tuple[np.ndarray, ...]) -> np.ndarray:
    """(N, F) level code of each cell, in the smallest signed type, from the code of each distinct value of a column."""
    raw, shape = factors.raw, factors.raw.shape
    dtype = np.min_scalar_type(-1 - max((int(c.max(initial=0)) for c in codes), default=0))
    if all(_is_range(c) and (factors.complete or c[0] == 0) for c in codes):
        # Codes fit the small type, so that narrowing first is exact (modular arithmetic), and cheaper.
        low = [int(low) - int(c[0]) for low, c in zip(factors.low, codes, strict=True)]
        if not any(low):
            return raw.astype(dtype, copy=False)
        shift = np.array(low).astype(dtype)
        return code_in_pieces(lambda rows: subtract_row(raw[rows].astype(dtype), shift), shape, dtype)
    # Codes of all columns, with `MISSING` before each column.
    table = np.concatenate([np.append(MISSING, c) for c in codes]).astype(dtype)
    offset = np.cumsum([0, *(len(c) + 1 for c in codes[:-1])]) + 1 - factors.low.astype(np.int64)
    return code_in_pieces(lambda rows: table.take(raw[rows].astype(np.int64) + offset), shape, dtype)


def _is_range(code: np.ndarray) -> bool:
    """Return whether codes are consecutive and at least 0."""
    return len(code) > 0 and code[0] >= 0 and np.array_equal(code, code[0] + np.arange(len(code)))


def describe_unknown(columns: LevelColumns, unknown: list[Unknown]) -> str:
    """Return the object of a sentence about cells with unknown levels: the number of such cells, and the first one."""
    first, n_cells = unknown[0], sum(u.cells for u in unknown)
    name = f"column {shown(columns.names[first.feature])}"
    cells = f"{n_cells} cell{'' if n_cells == 1 else 's'} of {name if len(unknown) == 1 else f'{len(unknown)} columns'}"
    place = f"row {first.row}" if len(unknown) == 1 else f"row {first.row} of {name}"
    return f"levels that the model does not know in {cells}, first {shown(first.value)} at {place}"


def report_unknown(columns: LevelColumns, unknown: list[Unknown], note: str = "") -> None:
    """Warn of values that are not levels, or raise ValueError if `columns.unknown` is "error".

    `note` is a further sentence of the warning.
    """
    description = describe_unknown(columns, unknown)
    if columns.unknown == "error":
        raise ValueError(
            f"Found unknown categories: {description}. Declare them in `categories`, or set handle_unknown='ignore' "
            "(missing cells) or 'level' (one level for all)."
        )
    meaning = "counts as missing" if columns.unknown == "ignore" else f"counts as the reserved level {RESERVED}"
    warn(f"Found {description}. Each such cell {meaning}.{' ' * bool(note)}{note}", UnknownLevelWarning)


def declared_categories(column: Column) -> Sequence[Hashable] | None:
    """Return the categories of a pandas categorical; None for other columns."""
    categories = getattr(column.dtype, "categories", None)
    return None if categories is None else list(categories)


# == Numbers as the cells in which they lie; the edges of the cells do not change, like declared levels

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
    declared : tuple of bool
        Whether the edges of each feature were given, and so stay without numbers; others leave with the last number.
        Empty if all edges stay.
    """

    edges: tuple[np.ndarray | None, ...]
    most: int
    declared: tuple[bool, ...] = ()
    kind = "binned"
    by_feature = ("index", "names", "edges", "declared")
    family = Binned
    hyperparameter = "binned_prior"

    def check(self) -> None:
        """Raise ValueError unless the edges of each feature increase."""
        require_entries("edges", len(self.edges), len(self.index))
        if self.declared:
            require_entries("declarations", len(self.declared), len(self.index))
        for edges, name in zip(self.edges, self.names, strict=True):
            if edges is not None and not are_edges(edges):
                raise ValueError(f"The edges of column {shown(name)} must be finite numbers that increase.")

    def prior(self, given: object, argument: str, classes: Levels) -> Binned:
        """Return the prior over the cells of each feature; `given` is a Binned, an IndependentCuts or "independent"."""
        return prior_of_cells(given, argument, len(classes), self.sizes())

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> CodedRows:
        """Return rows of the cell of each number; raise ValueError naming an infinite one. `policy` is not used."""
        return self._code(table.numbers(self.index))

    def learn(
        self, table: Table, policy: UnknownPolicy | None = None, named: NamedLevels | None = None
    ) -> tuple[Self, CodedRows]:
        """Return columns in which features without edges have quantiles of these rows as edges, and the rows.

        The quantiles are those of every n-th row, n = N // 16,384 or 1. `policy` and `named` are not used.
        """
        numbers, learned = table.numbers(self.index), self
        if any(edges is None for edges in self.edges):
            quantiles = [quantile_edges(c, self.most) for c in numbers[:: max(1, numbers.shape[0] // _ROWS)].T]
            edges = tuple(new if old is None else old for old, new in zip(self.edges, quantiles, strict=True))
            learned = replace(self, edges=edges)
        return learned, learned._code(numbers)

    def _code(self, numbers: np.ndarray | StackedColumns | SparseNumbers) -> CodedRows:
        """Return rows of the cell of each number (N, F), computed in pieces of rows."""
        dtype, ends, complete = np.min_scalar_type(-int(self.sizes().max(initial=1))), self._ends(), True
        codes, code_block = aligned(numbers.shape, dtype), float64(cell_code)
        for rows, size in piece_slices(len(codes), len(self.index)):
            values = numbers[rows]
            complete &= check_finite(values, self.names, start=rows.start)
            codes[rows] = code_block(pad_rows(values, size), ends, dtype=str(dtype))[: len(values)]
        return CodedRows(codes, self.sizes(), complete)

    def union(self, other: Self) -> Self:
        """Return columns with the edges of both; raise ValueError if a feature has different edges."""
        columns = zip(self.names, self.edges, other.edges, strict=True)
        return replace(self, edges=tuple(merge_edges(*column) for column in columns))

    @property
    def uncut(self) -> list[str]:
        """Names of the numbers that have a single cell, although no edges were given."""
        columns = zip(self.names, self.edges, self.declared, strict=False)
        return [name for name, edges, given in columns if not given and edges is not None and not len(edges)]

    def level_weights(self, statistics: LevelCounts) -> dict[int, np.ndarray]:
        """Return {position in the table: weight (K,) of the rows with a number in each cell}."""
        return dict(zip(self.index, np.split(statistics.count.sum(axis=0), self.start()[1:]), strict=True))

    def forget(self, rows: Self, weights: Mapping[int, np.ndarray]) -> Self:
        """Return columns without the edges of features that have no number left, unless the edges were given."""
        edges = zip(self.index, self.edges, self.declared, strict=False)
        left = [cuts if declared or weights[j].any() else None for j, cuts, declared in edges]
        return replace(self, edges=tuple(left)) if self.declared else self

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
