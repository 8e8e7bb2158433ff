"""What a column of strings is: counted in one pass, then judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Any

import numpy as np

_FEW_LEVELS = 10
_ROWS_A_LEVEL = 5
_APART = 5  # steps between the values of a column
_FEW_ZEROS = 5
_DIFFERENT = ("every value is different, an identifier?", "no value was seen twice, an identifier?")


class Survey:
    """Counts of a column's cells, in constant memory.

    Parameters
    ----------
    marks : container of str
        Cells that are missing.
    limit : number
        Most distinct values that are remembered, about.

    Attributes
    ----------
    present, missing, numbers : int
        Number of cells that have a value, that have none, and that are numbers.
    values : Counter
        How often each distinct value occurs, in order of appearance.
    beyond : bool
        Whether there are more than `limit` of them; `values` are then the first ones, counted only up to there.
    repeated : bool
        Whether some value is known to occur twice. Beyond the limit a value is compared with the first `limit` and
        with those near it, so that repetition is missed only where it is both late and far apart.
    whole : bool
        Whether all numbers are integers.
    low, high : float
        The least and the greatest number.
    marked : set of str
        The marks that occur.
    first : dict {str: (str, int)}
        The first cell that is "missing", "odd" (no number), "infinite" or "negative", and its row.
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

    def add(self, cells: Any, rows: Any) -> Survey:
        """Count further cells: n strings, and the number of each one's row."""
        import pandas as pd

        code, values = pd.factorize(cells)
        found = np.asarray(values, object)
        count = np.bincount(code, minlength=len(found))
        missing = np.array([value in self.marks for value in found], bool)
        number = as_numbers(found, self.marks)
        odd = np.isnan(number) & ~missing
        kinds = {"missing": missing, "odd": odd, "infinite": np.isinf(number), "negative": number < 0}
        for kind, those in kinds.items():
            if kind not in self.first and those.any():
                at = int(np.argmax(code == np.argmax(those)))
                self.first[kind] = found[code[at]], int(rows[at])
        self.marked.update(found[missing])
        n_missing, n_odd = int(count[missing].sum()), int(count[odd].sum())
        self.present += len(cells) - n_missing
        self.missing += n_missing
        self.numbers += len(cells) - n_missing - n_odd
        number = number[~(missing | odd)]
        if len(number):
            with np.errstate(invalid="ignore"):
                self.whole &= bool((number % 1 == 0).all())
            self.low, self.high = min(self.low, number.min()), max(self.high, number.max())
        if not self.beyond:
            self.values.update(dict(zip(found[~missing], count[~missing].tolist(), strict=True)))
            self.repeated = len(self.values) < self.present
            self.beyond = len(self.values) > self.limit
        elif not self.repeated:
            found, count = found[~missing], count[~missing]
            self.repeated = bool((count > 1).any()) or not self.values.keys().isdisjoint(found.tolist())
        return self

    @property
    def distinct(self) -> bool:
        """Whether every value is different, as far as is known."""
        return self.present > 0 and not self.repeated

    @property
    def constant(self) -> str | None:
        """The value that several cells have, and no other is there, nor a missing one."""
        return next(iter(self.values)) if len(self.values) == 1 < self.present and not self.missing else None


def guess(column: Survey) -> tuple[str | None, str]:
    """Kind of a column (None: leave it out), and a note.

    Numbers are numbers, but integers of at most 10 distinct values with five rows a value or more are
    categorical, and a run of consecutive integers without repetition numbers the rows: it is left out. Other
    strings are categorical, and left out where every one is different, or where there are too many to remember.
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
        return (None, "; ".join(filter(None, [too_many(column), note]))) if column.beyond else ("categorical", note)
    if column.whole:
        if several and column.high - column.low == n - 1:
            return None, "consecutive integers, row numbers?"
        if levels <= _FEW_LEVELS and levels * _ROWS_A_LEVEL <= n:
            return "categorical", ""
        return "numbers", _DIFFERENT[column.beyond] if column.distinct else ""
    return "numbers", ""


def zeros_stand_apart(column: Survey) -> bool:
    """Whether some cells are 0 and none is near, as where 0 stands for "not measured".

    Near is within five times the least step between two values, so that counts 0, 1, 2 … are not meant.
    """
    if column.beyond or column.low != 0 or column.numbers < column.present:
        return False
    values = as_numbers(column.values)
    above = np.unique(values[values > 0])
    often = sum(n for n, value in zip(column.values.values(), values, strict=True) if value == 0)
    return often >= _FEW_ZEROS and len(above) > 1 and above[0] > _APART * np.diff(above).min()


def too_many(column: Survey) -> str:
    """Why a column beyond its limit cannot be categorical."""
    return f"more than {column.limit:,} levels, too many to remember of a file that does not fit into memory"


def as_numbers(cells: Iterable[str], marks: Container[str] = ()) -> np.ndarray:
    """Strings as numbers, NaN where one is none, or a mark of a missing cell."""
    import pandas as pd

    texts = pd.Series([None if cell in marks else cell for cell in cells], dtype=object)
    return pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float, copy=True)


def as_levels(values: Iterable[str]) -> dict[str, Any]:
    """What each string stands for: an integer if all spell one, without signs or zeros that would get lost."""
    cells = list(values)
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        return dict(zip(cells, cells, strict=True))
    same = all(str(v) == cell for v, cell in zip(numbers, cells, strict=True))
    return dict(zip(cells, numbers if same else cells, strict=True))
