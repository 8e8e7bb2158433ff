"""Which cells of a file are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bayesnb.streaming import MISSING

_PLAIN = re.compile(r"[-+]?(0|[1-9]\d*)([.,]\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True)
class ColumnMarks:
    """The marks of one column: these texts, and all spellings of those that are numbers, as 0.0 is 0; but no values."""

    texts: frozenset[str]
    numbers: frozenset[float] = frozenset()
    values: frozenset[str] = frozenset()

    def __contains__(self, cell: object) -> bool:
        if cell in self.values:
            return False
        return cell in self.texts or (bool(self.numbers) and _number(str(cell)) in self.numbers)


def column_marks(assumed: Iterable[str], named: Iterable[str], values: frozenset[str] = frozenset()) -> ColumnMarks:
    """Marks of which those that the user named are meant as numbers, where they are some."""
    named = frozenset(named)
    numbers = frozenset(number for number in map(_number, named) if number is not None)
    return ColumnMarks(named.union(assumed), numbers, values)


@dataclass(frozen=True)
class Marks:
    """Marks of missing cells.

    Parameters
    ----------
    everywhere : set of str
        Those of all columns, besides `bayesnb.streaming.MISSING`.
    within : dict {column: set of str}
        Those of one column only, as a 0 that stands for "not measured".
    values : set of str
        Those of `MISSING` that are values in this file.

    Examples
    --------
    >>> from bayesnb.cli.marks import Marks
    >>> marks = Marks(within={"bmi": frozenset(["0"])})
    >>> "0" in marks.of("bmi"), "0.0" in marks.of("bmi"), "0" in marks.of("age"), "NA" in marks.of("age")
    (True, True, False, True)
    """

    everywhere: frozenset[str] = frozenset()
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def of(self, column: str) -> ColumnMarks:
        """What marks a missing cell of this column."""
        named = self.everywhere | self._within(column)
        return column_marks(MISSING, named, self.values - self._within(column))

    def assumed(self, column: str, marked: Iterable[str]) -> list[str]:
        """Those of these marks that the user did not name, but an empty cell."""
        return sorted(MISSING.intersection(marked) - self.everywhere - self._within(column) - {""})

    def unseen(self, column: str, marked: Iterable[str]) -> list[str]:
        """Those that the user named of this column, if only these occur."""
        seen = list(marked)
        return sorted(m for m in self._within(column) if not any(map(column_marks((), [m]).__contains__, seen)))

    def _within(self, column: str) -> frozenset[str]:
        return self.within.get(column, frozenset())


def _number(text: str) -> float | None:
    """The number that a text spells as numbers are written; 007 is a code, and 1_0 none."""
    return float(text.replace(",", ".")) if _PLAIN.fullmatch(text) else None


__all__ = ["ColumnMarks", "Marks"]
