"""Levels of columns: what kind of column values make, and the order and codes of values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeGuard

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.precision import map_in_threads

if TYPE_CHECKING:
    import pandas as pd

# == Kinds of columns by the values of their cells: numbers, dates, durations or levels ============

CellKind = Literal["number", "date", "duration", "level"]
UNITS = {"date": "days", "duration": "seconds"}
"""Units in which dates, from 1970 on in UTC, and durations are numbers."""

_FIRST_OBJECTS = 100
_FEWEST_CELLS = 10
MOST_EXACT = 2**53
"""Greatest number up to which float64 has every whole number."""


class Column(Protocol):
    """Column of a table: a Series of pandas, or a one-dimensional array."""

    @property
    def dtype(self) -> Any: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[object]: ...


def is_pandas(value: object) -> TypeGuard[pd.Series]:
    """Return whether a value is a Series, an Index or a DataFrame of pandas."""
    return hasattr(value, "iloc")


def cell_kind(column: Column) -> CellKind:
    """Return the kind of the cells of a column, which does not depend on its container.

    A column of numbers of any type, Decimal included, is of numbers also in an array of objects. A column with a
    Boolean, a text, another value, or numbers beside dates is of levels, as is one of objects without a present cell.
    """
    return kind_of_objects(column) if column.dtype == object else _kind_of_type(column.dtype.type)


def time_kind(column: Column) -> CellKind | None:
    """Return "date" or "duration" for a column of dates or durations; None for others, which may be numbers.

    The first present cell of a column of objects shows that the others need not be looked at.
    """
    if column.dtype == object:
        first = next((cell for cell in column if not is_missing(cell)), None)
        if _kind_of_type(type(first)) not in UNITS:
            return None
    kind = cell_kind(column)
    return kind if kind in UNITS else None


def kind_of_objects(cells: Iterable[object]) -> CellKind:
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


def exact_numbers(column: Column, numbers: np.ndarray) -> np.ndarray:
    """Return `numbers`, the cells of a column in float64, or the present cells if they are objects that are rounded."""
    if column.dtype != object or not (abs(numbers) > MOST_EXACT).any():
        return numbers
    cells = to_objects(column)
    return np.asarray(cells[~_are_missing(cells)])


def _have_two_values(values: np.ndarray) -> bool:
    """Return whether all of some numbers are the least or the greatest of them."""
    return bool(((values == values.min()) | (values == values.max())).all())


def _are_whole(values: np.ndarray) -> bool:
    """Return whether all numbers are integers that float64 represents exactly."""
    if not ((values <= MOST_EXACT) & (values >= -MOST_EXACT)).all():
        return False
    values = values.astype(np.float64)
    return bool((values == np.floor(values)).all())


def times_to_numbers(column: np.ndarray, kind: CellKind, where: str) -> np.ndarray:
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


def _without_zone(time: object) -> object:
    """Return a date and time with a time zone as that in UTC, without zone; other values unchanged."""
    if isinstance(time, datetime) and time.tzinfo is not None:
        return time.astimezone(UTC).replace(tzinfo=None)
    return time


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


# == Levels, the values that a categorical feature or a label can take, and columns as codes of distinct values

MISSING = -1
UNKNOWN = -2
_WIDEST_RANGE = 4096
_FIRST_CELLS = 2**15
_MOST_OF_ONE_HASH = 64
_NUMERIC = {bool, int, float}
_TRUTH_VALUES = dict.fromkeys(("true", "yes", "t", "y"), True) | dict.fromkeys(("false", "no", "f", "n"), False)
_SALT = "level"  # Not a random number, as keys are pickled and read by other processes.


@dataclass(frozen=True, eq=False)
class Levels:
    """Distinct values in order: by name of their type, then by value.

    Values that are equal in Python (1, 1.0, True) are one level.

    Parameters
    ----------
    values : tuple of hashable
    """

    values: tuple[Hashable, ...]

    @classmethod
    def from_values(cls, values: Iterable[object]) -> Levels:
        """Return the distinct values, sorted; among equal values the one whose type's name comes first."""
        distinct: dict[Hashable, Hashable] = {}
        for value in map(to_python, values):
            key = _key(value)
            kept = distinct.get(key, value)
            distinct[key] = min(kept, value, key=lambda v: type(v).__name__)
        return cls(tuple(_sort_values(distinct.values())))

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, value: object) -> bool:
        return _key(value) in self._index

    def __getstate__(self) -> dict[str, object]:
        """Values without the index, whose keys formats such as skops cannot write."""
        return {"values": self.values}

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        """Position of each level by the key of the level, see `_key`."""
        return {_key(value): i for i, value in enumerate(self.values)}

    def check(self) -> None:
        """Raise ValueError unless the values are distinct and hashable."""
        try:
            distinct = len(self._index)
        except TypeError as error:
            raise ValueError(f"Levels must be hashable: {error}.") from None
        if distinct < len(self.values) or sum(v != v for v in self.values) > 1:
            twice = next((v for i, v in enumerate(self.values) if self._index.get(_key(v)) != i), float("nan"))
            raise ValueError(f"Levels must be distinct; {shown(twice)} is listed twice.")

    def count_as_numbers(self, *, whole: bool) -> bool:
        """Return whether a column with these levels as values would be treated as numbers; see `column_kinds`."""
        values = to_objects(self.values)
        kind = kind_of_objects(values)
        return kind in UNITS or (kind == "number" and count_as_numbers(values, whole=whole))

    def union(self, other: Levels) -> Levels:
        """Return the levels of both."""
        if self.values == other.values and list(map(type, self.values)) == list(map(type, other.values)):
            return self
        known = zip(self.index(other.values).tolist(), other.values, strict=True)
        if all(i >= 0 and type(self.values[i]) is type(value) for i, value in known):
            return self
        return Levels.from_values((*self.values, *other.values))

    def pair_alike(self, known: Levels | None = None) -> list[tuple[Hashable, Hashable]]:
        """Return pairs of levels of different types that print alike or mean the same, such as "1.0" and 1.

        Pairs of two `known` levels are left out.
        """
        types = set(map(type, self.values))
        if len(types) < 2 or types <= _NUMERIC:  # Numbers that mean the same are one level.
            return []
        groups: dict[Hashable, list[Hashable]] = defaultdict(list)
        for value in self.values:
            for meaning in _meanings(value):
                groups[meaning].append(value)
        pairs = {}
        for first, *others in groups.values():
            for other in others:
                if type(first) is not type(other) and not (known and first in known and other in known):
                    pairs[_key(first), _key(other)] = first, other
        return list(pairs.values())

    def index(self, values: Iterable[object]) -> np.ndarray:
        """Return the (N,) position of each value, `UNKNOWN` where the value is not a level."""
        return np.fromiter((self._index.get(_key(v), UNKNOWN) for v in values), np.int64)

    def array(self) -> np.ndarray:
        """Return the levels as an array (K,), of objects unless a NumPy type holds all of them exactly."""
        if len({type(v) for v in self.values}) == 1 and isinstance(self.values[0], bool | int | float | str):
            array = np.array(self.values)
            exact = array.dtype.kind in "biufU" and array.tolist() == list(self.values)
            # NumPy turns -1 and 2**63 into float64, whose values equal the integers.
            if exact and isinstance(array.tolist()[0], type(self.values[0])):
                return array
        return to_objects(self.values)


@dataclass(frozen=True, eq=False)
class Factors:
    """Columns of any type as integers: cell (i, j) is `values[j][raw[i, j] - low[j]]`.

    Parameters
    ----------
    raw : (N, F) int array
        Integer input as the user gave it, without a copy, or codes. A missing cell has `raw - low == -1`.
    low : (F,) int array
    values : tuple of sequences
        Values of each column. Those of an integer column are its whole range, of which some may not occur.
    complete : bool
        Whether it is known that no cell is missing.
    """

    raw: np.ndarray
    low: np.ndarray
    values: tuple[Sequence[Hashable], ...]
    complete: bool

    def occurrences(self, column: int) -> np.ndarray:
        """Return the number of cells with each of `values[column]`."""
        code = self.raw[:, column].astype(np.int64) - int(self.low[column]) + 1
        return np.bincount(code, minlength=len(self.values[column]) + 1)[1:]

    def first_row(self, column: int, code: int) -> int:
        """Return the first row with `values[column][code]`."""
        return int(np.argmax(self.raw[:, column].astype(np.int64) - int(self.low[column]) == code))


def factorize_integers(raw: np.ndarray) -> Factors | None:
    """Return the factors of a 2-D integer or Boolean array.

    None if a column has more than 4,096 integers from its least to its greatest, or one of 2**63 or more, or no rows.
    """
    if not len(raw):
        return None
    kind = bool if raw.dtype == bool else int
    raw = raw.view(np.uint8) if kind is bool else raw
    low, high = _column_bounds(raw)
    ranges = [range(int(a), int(b) + 1) for a, b in zip(low, high, strict=True)]
    if any(r.stop - r.start > _WIDEST_RANGE or r.stop > 2**63 for r in ranges):
        return None
    return Factors(raw, low, tuple(tuple(map(kind, r)) for r in ranges), complete=True)


def _column_bounds(raw: np.ndarray) -> list[np.ndarray]:
    """Return the least and the greatest value (F,) of each column.

    If the least values of the first rows are 0, one reduction may give both: read as unsigned, a negative number is
    large.
    """
    low = raw[: max(1, _FIRST_CELLS // raw.shape[1])].min(axis=0)
    if not low.any():
        (high,) = _reduce_columns(raw.view(f"u{raw.itemsize}"), np.max)
        if (high <= np.iinfo(np.int8).max).all():
            return [low, high.astype(raw.dtype)]
    return _reduce_columns(raw, np.min, np.max)


def _reduce_columns(raw: np.ndarray, *reductions: Callable[..., np.ndarray]) -> list[np.ndarray]:
    """Return reductions of each column, such as `np.min`, computed on pieces of rows that fit the cache.

    NumPy's loop over a short last axis is slow, so several rows are reduced as one.
    """
    n, width = raw.shape
    n_joined = max(1, 2048 // width)
    step = n_joined * max(1, 2**19 // (n_joined * width))

    def reduce_piece(start: int) -> list[np.ndarray]:
        piece = raw[start : start + step]
        if len(piece) == step and piece.flags.c_contiguous:
            piece = piece.reshape(-1, n_joined * width)
        return [reduce(reduce(piece, axis=0).reshape(-1, width), axis=0) for reduce in reductions]

    reduced = zip(*map_in_threads(reduce_piece, range(0, n, step)), strict=True)
    return [reduce(values, axis=0) for reduce, values in zip(reductions, reduced, strict=True)]


def factorize(column: Column, where: str) -> tuple[np.ndarray, list[Hashable]]:
    """Return the codes of a 1-D column and its distinct values; the code of None, NaN, NaT and pd.NA is -1.

    The values of a column of integers are all integers from its least to its greatest, if these are 4,096 or fewer.

    Raises
    ------
    TypeError
        If a value is not hashable.
    ValueError
        If a value is infinite or complex.
    """
    encoded = _factorize_text(column)
    if encoded is not None:
        return encoded
    cells = to_array(column)
    if cells.dtype.kind in "biu":
        factors = factorize_integers(cells[:, None])
        if factors is not None:
            codes, low = factors.raw[:, 0].astype(np.int64, copy=False), int(factors.low[0])
            return codes - low if low else codes, list(factors.values[0])
        distinct, codes = np.unique(cells, return_inverse=True)
        return codes, distinct.tolist()
    if cells.dtype.kind == "c":
        raise ValueError(f"{where}: Complex data not supported. Pass real numbers or strings.")
    import pandas as pd

    if cells.dtype.kind in "mM":
        cells = pd.Index(cells)  # Its values are dates, not integers.
    try:
        codes, distinct = pd.factorize(cells.astype(object) if cells.dtype.kind in "US" else cells)
    except TypeError:
        row = next(i for i, v in enumerate(cells) if not isinstance(v, Hashable))
        cell = f"{where}, row {row}: {shown(cells[row])}"
        raise TypeError(f"{cell} is not hashable. This argument must be a string or a number in each cell.") from None
    values = [to_python(v) for v in distinct.tolist()]
    if cells.dtype == object and pd.api.types.infer_dtype(cells).startswith("mixed"):
        known = Levels.from_values(cells[codes >= 0])  # Their types do not depend on the order of the rows.
        values = [known.values[i] for i in known.index(values)]
    for code, value in enumerate(values):
        if isinstance(value, complex) or (isinstance(value, float) and not np.isfinite(value)):
            row = int(np.argmax(codes == code))
            raise ValueError(f"{where} contains infinity or a complex number: {shown(value)} at row {row}. Remove it.")
    return codes, values


def _factorize_text(column: Column) -> tuple[np.ndarray, list[Hashable]] | None:
    """Return the codes and values of a pandas column of text, by Arrow's dictionary if it has one; else None."""
    if not is_pandas(column):
        return None
    arrow_type: object = getattr(column.dtype, "pyarrow_dtype", None)
    if hasattr(arrow_type, "value_type") and str(arrow_type.value_type) in ("string", "large_string"):
        array = column.array.__arrow_array__().unify_dictionaries().combine_chunks()
        present = np.array([value is not None for value in array.dictionary.to_pylist()] + [False])
        position = np.where(present, np.cumsum(present) - 1, MISSING)  # The last entry is that of missing cells.
        # Keys may be unsigned, such as those of DuckDB's enumerations.
        codes = array.indices.cast("int64").fill_null(MISSING).to_numpy()
        return position[codes], array.dictionary.drop_null().to_pylist()
    if not isinstance(column.dtype, np.dtype) and str(column.dtype) in ("str", "string"):
        import pandas as pd

        codes, distinct = pd.factorize(column)
        return codes, distinct.tolist()
    return None


def to_array(column: Column) -> np.ndarray:
    """Return a column as an array, of objects where integers stand beside missing cells, so that they stay integers."""
    # NumPy would see floats in pandas' own types.
    if is_pandas(column) and not isinstance(column.dtype, np.dtype) and column.hasnans:
        return np.array(column.to_list(), dtype=object)
    return np.asarray(column)


def require_distinct_hashes(values: Collection[object]) -> None:
    """Raise ValueError if more than 64 values have the same hash, so that a dictionary of many would be slow.

    Strings are not checked, as their hashes cannot be foreseen.
    Python hashes numbers modulo 2^61 - 1, so that any number of integers, and some two hundred floats, can be chosen
    with the same hash. Values that print alike count once.
    """
    if len(values) <= _MOST_OF_ONE_HASH:
        return
    hashes: dict[str, int] = {}
    for value in values:
        if type(value) is not str:  # Python salts the hashes of strings.
            with suppress(TypeError):
                hashes[repr(value)] = hash(value)
    _, counts = np.unique(np.array(list(hashes.values()), np.int64), return_counts=True)
    if (most := counts.max(initial=0)) > _MOST_OF_ONE_HASH:
        raise ValueError(
            f"{most:,} of {len(values):,} values have the same hash. At most {_MOST_OF_ONE_HASH} values may, "
            "as dictionaries would be slow. Convert the values to strings."
        )


def _meanings(value: Hashable) -> set[Hashable]:
    """Return the text of a level, and the number or truth value that the level may stand for."""
    text = str(value).strip().casefold()
    meanings: set[Hashable] = {text}
    if isinstance(value, str | bool) and text in _TRUTH_VALUES:
        meanings.add(("truth value", _TRUTH_VALUES[text]))
    with suppress(TypeError, ValueError, OverflowError):
        number = float(text if isinstance(value, str) else value)  # type: ignore[arg-type]
        meanings |= {number} if np.isfinite(number) else set()
    return meanings


def _key(value: object) -> Hashable:
    """Return the key of a value in a dictionary: equal for equal values, with a hash that cannot be foreseen.

    Python salts the hashes of strings anew in every process. The hashes of numbers can be foreseen, and a file may have
    numbers that collide in a dictionary.
    """
    value = to_python(value)
    return value if type(value) is str else (_SALT, value)


def to_python(value: object) -> Any:
    """Return a NumPy scalar as a Python value, a Decimal as int or float, and any other value unchanged.

    The level of a Decimal is that of the same number in an array.
    """
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    return value.item() if isinstance(value, np.generic) else value


def _sort_values(values: Iterable[object]) -> list[Hashable]:
    """Return values sorted by the name of their type, then by value, or by text if values cannot be compared."""
    values = list(values)
    try:
        return sorted(values, key=lambda v: (type(v).__name__, v))
    except TypeError:
        return sorted(values, key=lambda v: (type(v).__name__, repr(v)))
