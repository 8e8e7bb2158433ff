"""Which cells of a file are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bayesnb.streaming import MISSING


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
    >>> "0" in marks.of("bmi"), "0" in marks.of("age"), "NA" in marks.of("age")
    (True, False, True)
    """

    everywhere: frozenset[str] = frozenset()
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def of(self, column: str) -> frozenset[str]:
        """What marks a missing cell of this column."""
        return (MISSING | self.everywhere) - self.values | self._within(column)

    def assumed(self, column: str, marked: Iterable[str]) -> list[str]:
        """Those of these marks that the user did not name, but an empty cell."""
        return sorted(MISSING.intersection(marked) - self.everywhere - self._within(column) - {""})

    def unseen(self, column: str, marked: Iterable[str]) -> list[str]:
        """Those that the user named of this column, if only these occur."""
        return sorted(self._within(column).difference(marked))

    def _within(self, column: str) -> frozenset[str]:
        return self.within.get(column, frozenset())


__all__ = ["Marks"]
