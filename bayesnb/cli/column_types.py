"""Types of CSV columns: missing cells, numbers or levels, and columns to leave out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from bayesnb.cli.terminal import enumerate_names
from bayesnb.streaming import MISSING

Label = str | int
"""Label of a class, or level of a categorical column."""
_FEW_LEVELS = 10
_ROWS_A_LEVEL = 5
_STEPS_APART = 5
_FEW_ZEROS = 5
IDENTIFIER = "every value is different; is this an identifier?"
ROW_NUMBERS = "consecutive integers; are these row numbers?"
"""Reasons to leave out a column."""
_PLAIN_NUMBER = re.compile(r"[-+]?(0|[1-9]\d*)([.,]\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Marks:
    """Marks of missing cells in a table; a mark that is a number stands for all its spellings, as 0 for 0.0.

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
    >>> marks.are_missing("bmi", ["0.0", "1"]), marks.are_missing("age", ["0", "NA"])
    (array([ True, False]), array([False,  True]))
    """

    everywhere: frozenset[str] = frozenset()
    within: Mapping[str, Set[str]] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def are_missing(self, column: str, texts: Iterable[str]) -> np.ndarray:
        """Return (T,) whether each text marks a missing cell of the column."""
        within = self.within.get(column, frozenset())
        named, values = self.everywhere | within, self.values - within
        marks, numbers = (MISSING | named) - values, {_plain_number(mark) for mark in named} - {None}

        def is_missing(text: str) -> bool:
            return text in marks or (bool(numbers) and text not in values and _plain_number(text) in numbers)

        return np.fromiter(map(is_missing, texts), bool)


def _plain_number(text: str) -> float | None:
    """Parse a number in the usual spelling, with decimal point or comma; None for 007 (a code) or 1_0."""
    return float(text.replace(",", ".")) if _PLAIN_NUMBER.fullmatch(text) else None


class ColumnCounts:
    """Counts of a column's cells, in constant memory.

    Parameters
    ----------
    name : str
        Name of the column.
    marks : Marks
        Marks of missing cells.
    limit : number
        Most distinct values that are remembered, about.

    Attributes
    ----------
    present, missing, numbers : int
        Number of cells that have a value, that are missing, and that are numbers.
    values : Counter
        Frequency of each distinct value, in order of appearance; of more than `limit` values, the first ones, counted
        up to there.
    whole : bool
        Whether all numbers are integers.
    low, high : float
        The least and the greatest number.
    first : dict {str: (str, int)}
        The first cell that is "missing", "odd" (no number), "infinite" or "negative", and its row, of which the line
        of names is 1.
    """

    def __init__(self, name: str = "", marks: Marks | None = None, limit: float = np.inf) -> None:
        self.name, self.marks, self.limit = name, marks or Marks(), limit
        self.present = self.missing = self.numbers = 0
        self.values: Counter[str] = Counter()
        self.whole = True
        self.low, self.high = np.inf, -np.inf
        self.first: dict[str, tuple[str, int]] = {}

    def add(self, cells: pd.Series) -> Self:
        """Count further cells, a Series of text whose index counts rows from 0; return self."""
        code, texts = pd.factorize(cells.to_numpy())
        _, at, count = np.unique(code, return_index=True, return_counts=True)
        missing = self.marks.are_missing(self.name, texts)
        number = np.where(missing, np.nan, to_numbers(texts))
        is_number = ~np.isnan(number)
        odd, infinite = ~(missing | is_number), np.isinf(number)
        masks = {"missing": missing, "odd": odd, "infinite": infinite, "negative": number < 0}
        for problem, mask in masks.items():
            if problem not in self.first and mask.any():
                self.first[problem] = texts[mask.argmax()], int(cells.index[at[mask.argmax()]]) + 2
        if not self.beyond:
            self.values.update(dict(zip(texts[~missing], count[~missing].tolist(), strict=True)))
        self.missing += int(count[missing].sum())
        self.present += int(count[~missing].sum())
        self.numbers += int(count[is_number].sum())
        with np.errstate(invalid="ignore"):  # Infinity is not an integer.
            self.whole &= bool((number[is_number] % 1 == 0).all())
        self.low = min(self.low, number[is_number].min(initial=np.inf))
        self.high = max(self.high, number[is_number].max(initial=-np.inf))
        return self

    @property
    def beyond(self) -> bool:
        """Whether there are more than `limit` distinct values."""
        return len(self.values) > self.limit

    @property
    def distinct(self) -> bool:
        """Whether several values are remembered, and all are different."""
        return self.values.total() == len(self.values) > 1

    @property
    def zeros_stand_apart(self) -> bool:
        """Whether five cells or more are 0 and no other number is near, as where 0 stands for "not measured".

        Near is within five times the least step between two positive values, so that counts 0, 1, 2 … are not meant.
        False if a number is negative, a cell is not a number, or more than `limit` values were met.
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
        return f"more than {self.limit:,} levels, too many for a file that does not fit into memory"


def guess(column: ColumnCounts) -> tuple[str | None, str]:
    """Guess the kind of a column, "categorical", "numbers" or None to leave it out; return it with a note.

    Numbers are "numbers", but integers of at most 10 distinct values, and numbers of at most two, with five rows a
    value or more are categorical, and consecutive integers without repetition number the rows: they are left out.
    Other strings are categorical, and left out if every one is different, or if there are too many to remember. A
    column of a single value without missing cells is left out.
    """
    n, levels, unique = column.present, len(column.values), column.distinct and not column.beyond
    if not n:
        return None, "no cell has a value"
    if levels == 1 < n and not column.missing:
        return None, f"every cell is {next(iter(column.values))!r}"
    if column.numbers < n:
        note = ""
        if unique:
            return None, IDENTIFIER
        if column.numbers >= 0.5 * n and levels > _FEW_LEVELS:
            odd = column.first["odd"][0]
            note = f"numbers except {odd!r}; if {odd!r} marks a missing cell, add --missing {odd!r}"
        elif "?" in column.values:
            note = "has the level '?'; if '?' marks a missing cell, add --missing '?'"
        return (None, f"{column.too_many}; {note}".rstrip("; ")) if column.beyond else ("categorical", note)
    if column.whole and column.distinct and column.high - column.low == n - 1:
        return None, ROW_NUMBERS
    if levels <= (_FEW_LEVELS if column.whole else 2) and levels * _ROWS_A_LEVEL <= n:
        return "categorical", ""
    return "numbers", IDENTIFIER if column.whole and unique else ""


def to_numbers(cells: Iterable[str]) -> np.ndarray:
    """Convert cells to floats (n,), NaN for a text that is not a number."""
    return pd.to_numeric(pd.Series(list(cells), dtype=object), errors="coerce").to_numpy(float, copy=True)


def to_levels(cells: Iterable[str]) -> dict[str, Label]:
    """Map each cell to its level: integers if all cells are integers in plain spelling, else the text itself."""
    texts: dict[str, Label] = {text: text for text in cells}
    try:
        numbers: dict[str, Label] = {text: int(text) for text in texts}
    except ValueError:
        return texts
    return numbers if all(str(number) == text for text, number in numbers.items()) else texts


def describe_columns(notes: Mapping[str, str] | pd.Series) -> list[str]:
    """Return a line for each note in {column: note} that is not empty, with the columns that have it."""
    about = pd.Series(notes, dtype=object)
    about = about[about != ""]
    groups = about.groupby(about, sort=False).groups
    return [f"{enumerate_names([*names], 8)}: {note}" for note, names in groups.items()]
