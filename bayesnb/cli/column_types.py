"""Types of CSV columns: missing cells, numbers or levels, and columns to leave out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bayesnb.streaming import MISSING

if TYPE_CHECKING:
    import pandas as pd

_FEW_LEVELS = 10
_ROWS_A_LEVEL = 5
_STEPS_APART = 5
_FEW_ZEROS = 5
_DIFFERENT = ("every value is different, an identifier?", "no value was seen twice, an identifier?")
_PLAIN_NUMBER = re.compile(r"[-+]?(0|[1-9]\d*)([.,]\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class ColumnMarks:
    """Marks of missing cells in one column.

    Parameters
    ----------
    named : set of str
        Marks that the user gave; a mark that is a number stands for all its spellings, as 0 for 0.0.
    values : set of str
        Cells that are values although they look like marks.
    assumed : set of str
        Marks that hold without being named.
    """

    named: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    assumed: frozenset[str] = MISSING

    @cached_property
    def _numbers(self) -> set[float | None]:
        return {_plain_number(mark) for mark in self.named} - {None}

    def __contains__(self, cell: object) -> bool:
        if cell in self.values:
            return False
        return (
            cell in self.assumed or cell in self.named or (bool(self._numbers) and _plain_number(cell) in self._numbers)
        )


@dataclass(frozen=True)
class Marks:
    """Marks of missing cells in a table.

    Parameters
    ----------
    everywhere : set of str
        Marks of all columns, besides `bayesnb.streaming.MISSING`.
    within : dict {column: set of str}
        Marks of one column only, as a 0 that stands for "not measured".
    values : set of str
        Marks of `MISSING` that are values in this file.

    Examples
    --------
    >>> from bayesnb.cli.column_types import Marks
    >>> marks = Marks(within={"bmi": frozenset(["0"])})
    >>> ["0" in marks.column_marks(column) for column in ("bmi", "age")], "0.0" in marks.column_marks("bmi")
    ([True, False], True)
    >>> "NA" in marks.column_marks("age")
    True
    """

    everywhere: frozenset[str] = frozenset()
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def column_marks(self, column: str) -> ColumnMarks:
        """Marks of missing cells in this column."""
        within = self.within.get(column, frozenset())
        return ColumnMarks(self.everywhere | within, self.values - within)

    def unseen(self, column: str, seen: Iterable[str]) -> list[str]:
        """Marks that the user gave for this column only, but for those that occur."""
        marks = {mark: ColumnMarks(frozenset([mark]), assumed=frozenset()) for mark in self.within.get(column, ())}
        return sorted(mark for mark, of_column in marks.items() if not any(cell in of_column for cell in seen))


def _plain_number(text: Any) -> float | None:
    """Number that a text spells in the usual way; 007 is a code, and 1_0 is no number."""
    return float(text.replace(",", ".")) if _PLAIN_NUMBER.fullmatch(text) else None


class ColumnCounts:
    """Counts of a column's cells, in constant memory.

    Parameters
    ----------
    marks : container of str
        Marks of missing cells.
    limit : number
        Most distinct values that are remembered, about.

    Attributes
    ----------
    present, missing, numbers : int
        Number of cells that have a value, that are missing, and that are numbers.
    values : Counter
        Frequency of each distinct value, in order of appearance.
    beyond : bool
        Whether there are more than `limit` distinct values; `values` are then the first ones, counted up to there.
    repeated : bool
        Whether some value is known to occur twice. Beyond the limit a value is compared with the first `limit` and
        with those near it, so that repetition is missed only where it is both late and far apart.
    whole : bool
        Whether all numbers are integers.
    low, high : float
        The least and the greatest number.
    marked : set of str
        Marks that occur.
    first : dict {str: (str, int)}
        The first cell that is "missing", "odd" (no number), "infinite" or "negative", and its row, of which the line
        of names is 1.
    """

    def __init__(self, marks: Container[str] = ("",), limit: float = np.inf) -> None:
        self.marks, self.limit = marks, limit
        self.present = self.missing = self.numbers = 0
        self.values: Counter[str] = Counter()
        self.marked: set[str] = set()
        self.beyond = self.repeated = False
        self.whole = True
        self.low, self.high = np.inf, -np.inf
        self.first: dict[str, tuple[str, int]] = {}

    def add(self, cells: pd.Series) -> Self:
        """Count further cells; their index counts rows from 0."""
        import pandas as pd

        code, texts = pd.factorize(cells.to_numpy())
        _, at, count = np.unique(code, return_index=True, return_counts=True)
        missing = np.array([text in self.marks for text in texts], bool)
        number = np.where(missing, np.nan, to_numbers(texts))
        odd = np.isnan(number) & ~missing
        problems = {"missing": missing, "odd": odd, "infinite": np.isinf(number), "negative": number < 0}
        for problem, mask in problems.items():
            if problem not in self.first and mask.any():
                i = mask.argmax()
                self.first[problem] = texts[i], int(cells.index[at[i]]) + 2
        self.marked.update(texts[missing])
        self.missing += int(count[missing].sum())
        self.present += int(count[~missing].sum())
        self.numbers += int(count[~(missing | odd)].sum())
        number = number[~(missing | odd)]
        with np.errstate(invalid="ignore"):
            self.whole &= bool((number % 1 == 0).all())
        self.low, self.high = number.min(initial=self.low), number.max(initial=self.high)
        values = Counter(dict(zip(texts[~missing], count[~missing].tolist(), strict=True)))
        if not self.beyond:
            self.values.update(values)
            self.repeated = len(self.values) < self.present
            self.beyond = len(self.values) > self.limit
        elif not self.repeated:
            self.repeated = max(values.values(), default=0) > 1 or not self.values.keys().isdisjoint(values)
        return self

    @property
    def distinct(self) -> bool:
        """Whether every value is different, as far as is known."""
        return self.present > 0 and not self.repeated

    @property
    def constant(self) -> str | None:
        """The value of all cells, if there are several cells and none is missing; else None."""
        return next(iter(self.values)) if len(self.values) == 1 < self.present and not self.missing else None

    @property
    def zeros_stand_apart(self) -> bool:
        """Whether several cells are 0 and no other number is near, as where 0 stands for "not measured".

        Near is within five times the least step between two values, so that counts 0, 1, 2 … are not meant.
        """
        if self.beyond or self.low != 0 or self.numbers < self.present:
            return False
        number, count = to_numbers(self.values), np.array(list(self.values.values()))
        above = np.unique(number[number > 0])
        often = count[number == 0].sum() >= _FEW_ZEROS
        return bool(often and len(above) > 1 and above[0] > _STEPS_APART * np.diff(above).min())

    @property
    def too_many(self) -> str:
        """Reason why a column beyond the limit cannot be categorical."""
        return f"more than {self.limit:,} levels, too many to remember of a file that does not fit into memory"


def guess(column: ColumnCounts) -> tuple[str | None, str]:
    """Kind of a column, or None to leave it out, and a note.

    Numbers are "numbers", but integers of at most 10 distinct values with five rows a value or more are categorical,
    and consecutive integers without repetition number the rows: they are left out. Other strings are categorical, and
    left out if every one is different, or if there are too many to remember.
    """
    n, levels = column.present, len(column.values)
    several = column.distinct and n > 1
    if not n:
        return None, "no cell has a value"
    if column.numbers < n:
        if several:
            return None, _DIFFERENT[column.beyond]
        note = ""
        if column.numbers >= 0.5 * n and levels > _FEW_LEVELS:
            odd = column.first["odd"][0]
            note = f"numbers but for {odd!r}; if that marks a missing cell: --missing {odd!r}"
        elif "?" in column.values:
            note = "has the level '?'; if that marks a missing cell: --missing '?'"
        elif levels > max(_FEW_LEVELS, n / _ROWS_A_LEVEL) and not column.beyond:
            note = f"{levels:,} levels in {n:,} rows, of which rare ones tell little: make coarser ones, or --drop it"
        return (None, "; ".join(filter(None, [column.too_many, note]))) if column.beyond else ("categorical", note)
    if column.whole:
        if several and column.high - column.low == n - 1:
            return None, "consecutive integers, row numbers?"
        if levels <= _FEW_LEVELS and levels * _ROWS_A_LEVEL <= n:
            return "categorical", ""
        return "numbers", _DIFFERENT[column.beyond] if column.distinct else ""
    return "numbers", ""


def to_numbers(cells: Iterable[str]) -> np.ndarray:
    """Numbers that cells spell, NaN for a cell that spells none."""
    import pandas as pd

    return pd.to_numeric(pd.Series(list(cells), dtype=object), errors="coerce").to_numpy(float, copy=True)


def to_levels(cells: Iterable[str]) -> dict[str, Any]:
    """Level of each cell: integers if all cells spell integers without signs or zeros that would get lost, or text."""
    texts = list(cells)
    try:
        numbers = [int(text) for text in texts]
    except ValueError:
        return dict(zip(texts, texts, strict=True))
    same = all(str(number) == text for number, text in zip(numbers, texts, strict=True))
    return dict(zip(texts, numbers if same else texts, strict=True))
