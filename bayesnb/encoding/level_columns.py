"""Categorical columns, whose levels grow as data come, and the policy for values that are not levels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.warnings import UnknownLevelWarning, warn
from bayesnb.encoding.cell_edges import are_edges, cell_names, merge_edges
from bayesnb.encoding.columns import OneLevelColumns, PlainColumns, Unknown, UnknownPolicy, require_entries
from bayesnb.encoding.levels import MISSING, UNKNOWN, Factors, Levels, factorize, factorize_integers
from bayesnb.encoding.row_blocks import CodedRows, code_in_pieces, padded_levels, subtract_row
from bayesnb.encoding.table import Table, check_finite, is_number, row_major
from bayesnb.families import LevelCounts

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
        Empty if no feature is a number.
    kept : tuple of Levels
        For each feature the levels that a prior names, which stay without rows; empty if there are none.
    """

    levels: tuple[Levels, ...]
    declared: tuple[bool, ...]
    unknown: HandleUnknown = "ignore"
    missing_values: tuple[Hashable, ...] = ()
    cuts: tuple[np.ndarray | None, ...] = ()
    kept: tuple[Levels, ...] = ()
    kind = "categorical"
    by_feature = ("index", "names", "levels", "declared", "cuts", "kept")

    def select(self, features: Sequence[int], kind: type[PlainColumns] | None = None) -> Any:
        """Return the features at these positions, as columns of the type `kind`; default: of the same type."""
        chosen = super().select(features, kind)
        return chosen if chosen.are_cells().any() else replace(chosen, cuts=())

    def learn(self, table: Table, policy: UnknownPolicy | None = None) -> tuple[Self, CodedRows]:
        """Return columns with the values that may occur as levels of undeclared features, and the coded rows.

        Of integers within a range of 4,096 these are all from least to greatest; `prune` drops those that do not occur.
        `policy` (default: `report_unknown`) is called with values that are not levels.
        """
        factors = self.factors(table)
        learned = self.with_values(factors.values)
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
        cells = None if self.cuts else table.integers(self.index)
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

    def keep_levels(self, named: Mapping[int, Sequence[Hashable]]) -> Self:
        """Return columns in which undeclared features have the levels in `named`, which stay without rows.

        `named` has labels by position in the table. Those of missing cells and of the reserved level are left out.
        """
        kept, levels = list(self.kept or (Levels(()),) * len(self.index)), list(self.levels)
        reserved, changed = [RESERVED] if self.unknown == "level" else [], False
        for j, (position, declared) in enumerate(zip(self.index, self.declared, strict=True)):
            wanted = [] if declared else named.get(position, [])
            more = [v for v in wanted if v not in kept[j] and v not in self.marks and v not in reserved]
            if more:
                kept[j] = Levels.from_values((*kept[j].values, *more))
                levels[j] = Levels.from_values((*levels[j].values, *more))
                changed = True
        return replace(self, levels=tuple(levels), kept=tuple(kept)) if changed else self

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
            require_entries("levels of a prior", len(self.kept), len(self.index))
        for kept, levels in zip(self.kept, self.levels, strict=False):
            kept.check()
            if lacking := [level for level in kept.values if level not in levels]:
                raise ValueError(f"Levels that a prior names must be levels of the column; {shown(lacking[0])} is not.")
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
        kept = dict(zip(self.index, self.kept, strict=False))
        all_kept = tuple(kept.get(j, Levels(())) for j in positions) if kept else ()
        return replace(
            self, index=positions, names=all_names, levels=levels, declared=declared, cuts=all_cuts, kept=all_kept
        )

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
        """Return columns whose undeclared features have these values and those `kept` as levels.

        `missing_values` are no levels.
        """
        levels = [
            known if fixed else Levels.from_values(v for v in new if v not in self.marks)
            for known, fixed, new in zip(self.levels, self.declared, values, strict=True)
        ]
        for j, kept in enumerate(self.kept):
            if len(kept):
                levels[j] = levels[j].union(kept, f"levels of column {shown(self.names[j])} that alpha names")
        return replace(self, levels=tuple(levels))

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
        """Return columns and counts (C, L) without undeclared levels whose count is 0.

        The reserved level and the levels that a prior names stay.
        """
        declared = np.repeat(self.declared, self.sizes())
        keep = declared | (statistics.count.sum(axis=0) > 0)
        if self.unknown == "level":
            keep[np.cumsum(self.sizes()) - 1] = True
        for first, known, kept in zip(self.start(), self.levels, self.kept, strict=False):
            keep[first + known.index(kept.values)] = True
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
        columns = zip(self.names, self.levels, other.levels, strict=True)
        levels = tuple(known.union(more, f"levels of column {shown(name)}") for name, known, more in columns)
        declared = tuple(a or b for a, b in zip(self.declared, other.declared, strict=True))
        return replace(self, levels=levels, declared=declared, kept=self.kept or other.kept)

    def positions_in(self, joint: Self) -> np.ndarray:
        """(L,) positions of these levels on the last axis of `joint`, which has these levels and more."""
        return np.concatenate(list(map(np.add, joint.start(), self.codes_in(joint))))

    def codes_in(self, joint: Self) -> list[np.ndarray]:
        """Return for each feature the codes of its levels in `joint`, which has these levels and more."""
        codes = [more.index(known.values) for known, more in zip(self.levels, joint.levels, strict=True)]
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

    def are_numbers(self) -> np.ndarray:
        """(F,) whether each feature is a number whose levels are the intervals between its cuts."""
        return self.are_cells()

    def tables(self, flat: np.ndarray) -> list[np.ndarray]:
        """Return the (C, levels) table of each feature, from the (C, L) array of all features."""
        return np.split(flat, self.start()[1:], axis=1)

    def level_names(self, j: int) -> list[Hashable]:
        """Return the levels of feature j in the order of arrays, the reserved one included."""
        return [*self.levels[j].values, *([RESERVED] if self.unknown == "level" else [])]

    def _factorize(self, table: Table, j: int, cuts: np.ndarray | None) -> tuple[np.ndarray, list[Any]]:
        """Return the codes of column j of a table and its distinct values; those of a number are its intervals."""
        if cuts is not None:
            values = np.asarray(table.numbers([j]))
            check_finite(values, [table.names[j]])
            codes = np.where(np.isnan(values), MISSING, np.searchsorted(cuts, values, side="left"))[:, 0]
            return codes, list(cell_names(cuts))
        column, where = table.column(j), table.label(j)
        categories = declared_categories(column)
        if categories is not None and hasattr(column, "cat") and hasattr(column.cat, "codes"):
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


def declared_categories(column: Any) -> Sequence[Any] | None:
    """Return the categories of a pandas categorical or a polars Enum; None for others, polars Categorical included."""
    dtype = getattr(column, "dtype", None)
    if hasattr(dtype, "categories") and dtype is not None:
        categories = dtype.categories
        return None if categories is None or type(dtype).__name__ == "Categorical" else list(categories)
    return None
