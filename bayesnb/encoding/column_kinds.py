"""Kinds of columns by the values of their cells: numbers, dates, durations or levels."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np

CellKind = Literal["number", "date", "duration", "level"]
UNITS = {"date": "days", "duration": "seconds"}
"""Units in which dates, from 1970 on in UTC, and durations are numbers."""

_FIRST_OBJECTS = 100
_FEWEST_CELLS = 10
_MOST_EXACT = 2**53
"""Largest number up to which float64 represents every integer."""
_KINDS_OF_DTYPES: dict[str, CellKind] = {"i": "number", "u": "number", "f": "number", "M": "date", "m": "duration"}
_KINDS_OF_TIMES: dict[str, CellKind] = {"Duration": "duration", "Time": "level"}


def cell_kind(column: Any) -> CellKind:
    """Return the kind of the cells of a column, which does not depend on its container.

    A column of numbers of any type, Decimal included, is of numbers also in an array of objects. A column with a
    Boolean, a text, another value, or numbers beside dates is of levels, as is one of objects without a present cell.

    Parameters
    ----------
    column : ndarray, or Series of pandas or polars
    """
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        if dtype.is_numeric():
            return "number"
        if dtype.is_temporal():
            return _KINDS_OF_TIMES.get(str(dtype).partition("(")[0], "date")
        return kind_of_objects(column.to_list()) if str(dtype) == "Object" else "level"
    if dtype.kind != "O":
        return _KINDS_OF_DTYPES.get(dtype.kind, "level")
    arrow_type = getattr(dtype, "pyarrow_dtype", None)
    is_text = str(dtype) in ("str", "string") or str(arrow_type) in ("string", "large_string")
    if is_text or hasattr(dtype, "categories") or hasattr(arrow_type, "value_type"):
        return "level"
    return kind_of_objects(column)


def time_kind(column: Any) -> CellKind | None:
    """Return "date" or "duration" for a column of dates or durations; None for others, which may be numbers.

    The first present cell of a column of objects shows that the others need not be looked at.
    """
    if column.dtype == object:
        first = next((cell for cell in column if not is_missing(cell)), None)
        if _kind_of_type(type(first)) not in UNITS:
            return None
    kind = cell_kind(column)
    return kind if kind in UNITS else None


def kind_of_objects(cells: Any) -> CellKind:
    """Return the kind of Python objects, of which missing ones do not matter."""
    cells = to_objects(cells)
    kinds = {_kind_of_type(cell_type) for cell_type in set(map(type, cells[~_are_missing(cells)].tolist()))}
    return kinds.pop() if len(kinds) == 1 else "level"


def _kind_of_type(cell_type: type) -> CellKind:
    """Return the kind of values of a type; NumPy's durations are a subtype of its integers."""
    if issubclass(cell_type, timedelta | np.timedelta64):
        return "duration"
    if issubclass(cell_type, date | np.datetime64):
        return "date"
    if issubclass(cell_type, bool):
        return "level"
    return "number" if issubclass(cell_type, Real | Decimal) else "level"


def count_as_numbers(values: np.ndarray, *, whole: bool) -> bool:
    """Return whether a column of numbers (N,), NaN where missing, is treated as numbers rather than as levels.

    At most two distinct values in at least ten present cells are levels. Unless `whole`, whole numbers up to 2^53 are
    levels, too.
    """
    present = values[values == values]
    if len(present) >= _FEWEST_CELLS and all(map(_have_two_values, (present[:_FIRST_OBJECTS], present))):
        return False
    return whole or not (len(present) and all(map(_are_whole, (present[:_FIRST_OBJECTS], present))))


def exact_numbers(column: Any, numbers: np.ndarray) -> np.ndarray:
    """Return `numbers`, the cells of a column in float64, or the present cells if they are objects that are rounded."""
    if column.dtype != object or not (abs(numbers) > _MOST_EXACT).any():
        return numbers
    cells = to_objects(column)
    return np.asarray(cells[~_are_missing(cells)])


def _have_two_values(values: np.ndarray) -> bool:
    """Return whether all of some numbers are the least or the greatest of them."""
    return bool(((values == values.min()) | (values == values.max())).all())


def _are_whole(values: np.ndarray) -> bool:
    """Return whether all numbers are integers that float64 represents exactly."""
    if not ((values <= _MOST_EXACT) & (values >= -_MOST_EXACT)).all():
        return False
    values = values.astype(np.float64)
    return bool((values == np.floor(values)).all())


def times_to_numbers(column: Any, kind: CellKind, where: str) -> np.ndarray:
    """Return dates as days since 1970 in UTC, or durations as seconds, in float64 with NaN where missing.

    Parameters
    ----------
    column : (N,) array of dates or durations, also as objects
    kind : {"date", "duration"}
    where : str
        Name of the column, for the message.

    Raises
    ------
    ValueError
        If a date is out of range, or a duration of months or years has no number of seconds.
    """
    try:
        if column.dtype == object:
            cells = [None if missing else v for v, missing in zip(column, _are_missing(column), strict=True)]
            column = np.array(list(map(_without_zone, cells)), "M8[us]" if kind == "date" else "m8[us]")
        elapsed = column - np.datetime64(0, "s") if kind == "date" else column
        return np.asarray(elapsed / np.timedelta64(1, "D" if kind == "date" else "s"), np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{where}: the {kind}s cannot be converted to {UNITS[kind]}: {error}. Convert the column to numbers."
        ) from None


def _without_zone(time: Any) -> Any:
    """Return a date and time with a time zone as that in UTC, without zone; other values unchanged."""
    return time if getattr(time, "tzinfo", None) is None else time.astimezone(UTC).replace(tzinfo=None)


def to_objects(cells: Iterable[object]) -> np.ndarray:
    """Return cells as a one-dimensional array of objects."""
    if isinstance(cells, np.ndarray) and cells.dtype == object:
        return cells
    cells = list(cells)
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


def is_missing(cell: object) -> bool:
    """Return whether a cell is missing: None, NaN, NaT or pd.NA."""
    if isinstance(cell, Decimal):
        return cell.is_nan()
    has_nan = isinstance(cell, float | np.floating | np.datetime64 | np.timedelta64)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (has_nan and bool(cell != cell))


def _are_missing(cells: np.ndarray) -> np.ndarray:
    """(N,) whether each object is None, NaN, NaT or pd.NA."""
    import pandas as pd

    return np.asarray(pd.isna(cells))
