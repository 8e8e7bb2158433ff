"""Encoding of user data for the kernels: tables, labels and weights are checked here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.warnings import are_fits_internal, warn
from bayesnb.encoding import priors
from bayesnb.encoding.columns import (
    BinaryColumns,
    CellColumns,
    Columns,
    CountColumns,
    ExposedColumns,
    LevelColumns,
    RealColumns,
    Unknown,
    UnknownPolicy,
    declared_categories,
    describe_unknown,
    ignore_unknown,
    report_unknown,
)
from bayesnb.encoding.encoded_rows import Rows, row_pieces
from bayesnb.encoding.levels import Levels, is_missing
from bayesnb.encoding.structure import (
    Conditional,
    ContextColumns,
    MarginColumns,
    Node,
    NodeColumns,
    PairColumns,
    RootColumns,
    TermMap,
    declare_levels,
    find_level_columns,
    levels_by_position,
)
from bayesnb.encoding.suspicious_columns import LABEL, check_table, find_remarks, find_types, warn_of_remarks
from bayesnb.encoding.table import (
    Table,
    as_list,
    check_labels,
    check_partial_labels,
    check_weights,
    find_column,
    index_of_labels,
    is_labelled,
    match_columns,
    named_levels,
    to_table,
)


@dataclass(frozen=True, eq=False)
class Encoding:
    """Names behind the axes of arrays: the classes, and blocks of columns with their levels.

    Parameters
    ----------
    classes : Levels
    blocks : tuple of Columns
        Blocks of columns, each for one conjugate family.
    """

    classes: Levels
    blocks: tuple[Columns, ...]

    @property
    def n_features(self) -> int:
        """Number of columns of the table."""
        return self.blocks[0].n_features

    def check(self) -> None:
        """Raise ValueError unless there are classes, each column is in a block, and the blocks are consistent."""
        self.classes.check()
        if not len(self.classes) or not self.blocks:
            raise ValueError(f"The encoding has {len(self.classes)} classes and {len(self.blocks)} blocks of columns.")
        alone = [j for b in self.blocks if b.network is None and b.role is None for j in (*b.index, *b.auxiliary)]
        if len(set(alone)) < len(alone):
            twice = next(j for j in alone if alone.count(j) > 1)
            raise ValueError(f"Each column of X must be in one block of columns. Column {twice} is in two blocks.")
        bases = self._bases()
        index = sorted({j for base in bases for j in (*base.index, *base.auxiliary)})
        if index != list(range(len(index))) or len(index) != self.n_features:
            raise ValueError(f"X has {self.n_features} columns, and its blocks have {len(index)}. Put each in a block.")
        for block, base in zip(self.blocks, bases, strict=True):
            n, n_distinct = len(base.index), len(set(base.index))
            if base.n_features != self.n_features or not n_distinct == n == len(base.names):
                raise ValueError(
                    f"A block must have distinct columns of {self.n_features}, each with a name; it has {n} columns of "
                    f"{base.n_features}, {n_distinct} of them distinct, and {len(base.names)} names."
                )
            block.check()

    def blank(self, owner: str) -> Table:
        """Return a table without rows that has these columns; `owner` is the name of the estimator for messages."""
        data = [np.empty(0)] * self.n_features
        return Table(data, self.feature_names, 0, owner, numeric_columns(self.blocks))

    def _bases(self) -> list[Columns]:
        """Return the columns of each block; for a structure the same columns without parents."""
        return [block.base for block in self.blocks]

    def warn_of_texts_among_numbers(self, named: Iterable[object] = ()) -> None:
        """Warn of columns that are categorical only because a text, such as "?", stands among numbers.

        `named` are names or indices of columns that the user has called categorical, which are left out.
        """
        found: dict[int, tuple[str, str]] = {}
        for columns in find_level_columns(self.blocks):
            found |= columns.texts_among_numbers()
        for j in sorted(found.keys() - self.positions(named)):
            name, text = found[j]
            warn(
                f"Column {shown(name)} has the text {shown(text)} among numbers, and counts as categorical. Pass "
                "pandas.to_numeric(column, errors='coerce') for numbers, or column.astype('category') for levels."
            )

    def warn_of_numbers_as_levels(self, before: Encoding, named: Iterable[object], *, whole: bool) -> None:
        """Warn of columns that are categorical as they had few distinct numbers in the rows that were counted first.

        These columns have more levels than in the encoding `before`, and would now be treated as numbers: see
        `count_as_numbers` for `whole`. `named` are names or indices of columns that the user has called categorical.
        """
        kept = self.positions(named)
        for columns, known in zip(find_level_columns(self.blocks), find_level_columns(before.blocks), strict=True):
            for j, (name, n_levels) in columns.levels_now_numbers(known, whole=whole).items():
                if j not in kept:
                    warn(
                        f"Column {shown(name)} counts as categorical, as the first rows had at most two of its "
                        f"{n_levels} values. To count it as numbers, name it in `gaussian`."
                    )

    def warn_of_suspicious_columns(self, table: Table, label: np.ndarray) -> None:
        """Warn of the suspicious columns of the rows that were counted, unless the fit is internal.

        `label` (N,) are the indices of the classes of the rows.
        """
        if are_fits_internal():
            return
        index = sorted({j for base in self._bases() if base.may_be_suspicious for j in base.index})
        table = replace(table, numeric=numeric_columns(self.blocks), time_units=None)
        remarks, types = find_remarks(table, index, (self.classes, label)), find_types(self._all_levels())
        warn_of_remarks(table.names, {j: [*remarks.get(j, ()), *types.get(j, ())] for j in (remarks | types)})

    def warn_of_types(self, known: Encoding | None = None) -> None:
        """Warn of classes and levels of different types that print alike or mean the same, unless both are `known`."""
        if not are_fits_internal():
            before = None if known is None else known._all_levels()
            warn_of_remarks(self.feature_names, find_types(self._all_levels(), before))

    def warn_of_uncut_numbers(self, before: Encoding | None) -> None:
        """Warn of numbers that have got a single cell by the first rows, and had none in the encoding `before`."""
        known = [name for base in before._bases() for name in base.uncut] if before else []
        if names := [name for base in self._bases() for name in base.uncut if name not in known]:
            warn(
                f"Column {shown(names[0])}{' and others' * (len(names) > 1)}: the first numbers gave no end of a cell. "
                "All numbers, also those of later batches, are in one cell, which tells nothing of the class. Begin "
                "with a larger batch, with fit, or with given `edges`."
            )

    def _all_levels(self) -> dict[int, Levels]:
        """Return {position in the table: levels} of columns of levels, and the classes at `LABEL`."""
        return {LABEL: self.classes} | levels_by_position(self.blocks)

    def union(self, other: Encoding) -> Encoding:
        """Return the encoding with the classes and levels of both encodings, which have the same blocks.

        A warning names levels of different types that print alike or mean the same.
        """
        pairs = zip(self.blocks, other.blocks, strict=True)
        joint = Encoding(self.classes.union(other.classes), tuple(columns.union(more) for columns, more in pairs))
        joint.warn_of_types(self)
        return joint

    def learn(self, table: Table, alpha: object = None) -> tuple[Encoding, tuple[Rows, ...]]:
        """Return the encoding of a batch, and the coded rows of each block.

        The levels are those that may occur in the batch, and those that a labelled `alpha` names.
        """
        named = self._named_levels(alpha)
        blocks, rows = zip(*(block.learn(table, named=named) for block in self.blocks), strict=True)
        return Encoding(self.classes, blocks), rows

    def rows(self, table: Table, policy: UnknownPolicy | None = None) -> tuple[Rows, ...]:
        """Return the checked and coded rows of each block.

        `policy` is called with values that are not levels; None: `report_unknown`, which warns or raises.
        """
        return tuple(block.rows(table, policy) for block in self.blocks)

    def label_index(self, y: object, n_rows: int, owner: str) -> np.ndarray:
        """Return the (N,) index of the class of each label in y.

        Raises
        ------
        ValueError
            If a label is not a class; the message names the first one.
        """
        return index_of_labels(self.classes, *check_labels(y, n_rows, owner))

    def sort_columns(self, values: Iterable[np.ndarray]) -> np.ndarray:
        """Return (F,) values in the order of the columns of X, from those of the columns of each block."""
        index = np.concatenate([np.asarray(block.index) for block in self.blocks])
        return np.asarray(np.concatenate(list(values))[np.argsort(index)])

    @property
    def n_terms(self) -> int:
        """Number of terms of a row's log-likelihood: one a column, or one for all draws from a simplex."""
        return len(self.term_names)

    @property
    def term_names(self) -> list[str]:
        """Names of the terms of each block, one block after the other: a column, or all columns of a kind."""
        return [name for block in self.blocks for name in block.term_names]

    @property
    def repeats(self) -> list[bool]:
        """For each block whether all of its columns are in earlier blocks, so that their cells were counted there."""
        known: set[int] = set()
        repeats = []
        for base in self._bases():
            repeats.append(known.issuperset(base.index) and bool(known))
            known.update(base.index)
        return repeats

    @cached_property
    def term_map(self) -> TermMap:
        """Map that makes the terms of the classifier as sums and differences of the terms of its blocks."""
        return TermMap.from_blocks(self.blocks)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X, in their order."""
        named = {j: name for base in self._bases() for j, name in zip(base.index, base.names, strict=True)}
        for base in self._bases():
            named |= base.auxiliary
        return [named[j] for j in sorted(named)]

    def positions(self, features: Iterable[object], argument: str = "features") -> set[int]:
        """Return the positions of columns of X that are given by name or index, in an argument of the name `argument`.

        Raises
        ------
        ValueError
            If X has no such column; the message names the first one.
        """
        names = self.feature_names
        position = {name: j for j, name in enumerate(names)}
        return {find_column(argument, feature, names, position) for feature in as_list(features)}

    def keep_levels(self, alpha: object) -> Encoding:
        """Return the encoding in which undeclared columns have the levels that a labelled `alpha` names.

        These levels stay without rows. Raises ValueError if `alpha` names a column that X does not have.
        """
        named = self._named_levels(alpha)
        blocks = tuple(columns.keep_levels(named) for columns in self.blocks) if named else self.blocks
        return self if all(a is b for a, b in zip(blocks, self.blocks, strict=True)) else replace(self, blocks=blocks)

    def _named_levels(self, alpha: object) -> dict[int, list[Hashable]]:
        """Return {position in the table: levels} that a labelled `alpha` names; see `keep_levels`."""
        if alpha is None or isinstance(alpha, int | float):
            return {}
        names, known = self.feature_names, self._all_levels()
        named = {
            j: named_levels(f"alpha[{names[j]!r}]", entry, self.classes, known[j].values if j in known else ())
            for j, entry in match_columns("alpha", alpha, names).items()
        }
        return {j: levels for j, levels in named.items() if levels}

    def fix_levels(self, fixed: bool) -> Encoding:
        """Return the encoding in which all levels, or only declared ones, stay without rows; see `Columns.forget`."""
        return replace(self, blocks=tuple(columns.fix_levels(fixed) for columns in self.blocks))

    def require_concentrations(self, alpha: object) -> None:
        """Raise ValueError if a labelled `alpha` names a column that X does not have, or one without concentrations.

        A list has an entry for every column, those without concentrations included.
        """
        if not is_labelled(alpha):
            return
        entries = match_columns("alpha", alpha, self.feature_names)
        kinds = {j: columns.kind for columns in self.blocks for j in columns.index}
        counted = {j for columns in self.blocks if columns.hyperparameter == "alpha" for j in columns.base.index}
        if others := sorted(entries.keys() - counted):
            raise ValueError(
                f"alpha names the column {shown(self.feature_names[others[0]])}, whose kind is {kinds[others[0]]}. "
                "Only columns of levels and words have concentrations."
            )

    def require_numbers(self, argument: str, prior: object, kind: str | None) -> None:
        """Raise ValueError if a prior by column names a column that X does not have, or one without such a density.

        `kind` is the kind of columns that the prior is for, None for all numbers. Columns of a network may have a
        density beside it.
        """
        if not is_labelled(prior):
            return
        alone = [block for block in self.blocks if block.network is None and block.role is None]
        kinds = {j: block.kind for block in alone for j in block.index}
        kinds |= {j: "exposure" for base in self._bases() for j in base.auxiliary}
        numeric = numeric_columns(self.blocks)
        for j in sorted(priors.named_columns(argument, prior, self.feature_names)):
            if not numeric[j] or kinds.get(j) == "exposure" or (kind and kinds.get(j, kind) != kind):
                is_kind = kinds.get(j, "categorical")
                raise ValueError(
                    f"{argument} names the column {shown(self.feature_names[j])}, whose kind is {is_kind}. Remove the "
                    "entry, or choose another kind for the column."
                )


def numeric_columns(blocks: Iterable[Columns]) -> list[bool]:
    """(F,) whether each column of X is in a block of numbers, or in a block of levels by its cell, not by its value."""
    blocks = tuple(blocks)
    numeric = [True] * blocks[0].n_features
    for base in find_level_columns(blocks):
        for j, is_cell in zip(base.index, base.are_cells(), strict=True):
            numeric[j] = bool(is_cell)
    return numeric


def number_columns(blocks: Iterable[Columns]) -> list[int]:
    """Return the positions in X of the columns of numbers with a density, or with cells as levels, in order.

    Columns of exposures, by which densities are read, are among these.
    """
    found: set[int] = set()
    for base in (block.base for block in blocks):
        is_real = isinstance(base, RealColumns)
        found.update(base.auxiliary)
        found.update(base.index if is_real else (base.index[f] for f in np.flatnonzero(base.are_cells())))
    return sorted(found)


__all__ = [
    "BinaryColumns",
    "CellColumns",
    "Columns",
    "Conditional",
    "ContextColumns",
    "CountColumns",
    "Encoding",
    "ExposedColumns",
    "LevelColumns",
    "Levels",
    "MarginColumns",
    "Node",
    "NodeColumns",
    "PairColumns",
    "RealColumns",
    "RootColumns",
    "Rows",
    "Table",
    "TermMap",
    "Unknown",
    "UnknownPolicy",
    "check_labels",
    "check_partial_labels",
    "check_table",
    "check_weights",
    "declare_levels",
    "declared_categories",
    "describe_unknown",
    "ignore_unknown",
    "index_of_labels",
    "is_missing",
    "levels_by_position",
    "number_columns",
    "numeric_columns",
    "priors",
    "report_unknown",
    "row_pieces",
    "to_table",
]
