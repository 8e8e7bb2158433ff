"""Levels: the values that a categorical feature, or a label, can take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.threads import in_threads
from bayesnb._util.warnings import warn

MISSING = -1
UNKNOWN = -2
_WIDEST_RANGE = 4096
_FIRST_CELLS = 2**15
_MOST_OF_ONE_HASH = 64
_SALT = "level"  # not a random number: keys are pickled, and read by other processes


@dataclass(frozen=True, eq=False)
class Levels:
    """Distinct values in order: by name of their type, then by value.

    Values that are equal in Python (1, 1.0, True) are one level.
    """

    values: tuple[Hashable, ...]

    @classmethod
    def of(cls, values: Iterable[Any]) -> Levels:
        """Distinct values of `values`, sorted; of equal ones the type whose name comes first is kept."""
        distinct: dict[Hashable, Hashable] = {}
        for value in map(plain, values):
            key = _key(value)
            kept = distinct.get(key, value)
            distinct[key] = min(kept, value, key=lambda v: type(v).__name__)
        return cls(tuple(_ordered(distinct.values())))

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, value: Any) -> bool:
        return _key(value) in self._index

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {_key(value): i for i, value in enumerate(self.values)}

    def check(self) -> None:
        """Raise ValueError unless the values are distinct and hashable."""
        try:
            distinct = len(self._index)
        except TypeError as error:
            raise ValueError(f"levels must be hashable: {error}.") from None
        if distinct < len(self.values) or sum(v != v for v in self.values) > 1:
            raise ValueError("a level stands twice in the list of levels.")

    def union(self, other: Levels, what: str = "labels") -> Levels:
        """The levels of both; `what` they are called in the warning that 0 and '0' are two."""
        same = self.values == other.values and list(map(type, self.values)) == list(map(type, other.values))
        if same:
            return self
        self._warn_of_lookalikes(other, what)
        return Levels.of((*self.values, *other.values))

    def _warn_of_lookalikes(self, other: Levels, what: str) -> None:
        """Of levels of `other` that print as one of these, and are none of them."""
        new = [value for value in other.values if value not in self]
        if not new or not self.values or {type(v) for v in new} == {type(v) for v in self.values}:
            return
        printed = {str(value): value for value in self.values}
        alike = [(printed[str(value)], value) for value in new if str(value) in printed]
        if alike:
            mine, theirs = alike[0]
            warn(
                f"{what}: {shown(theirs)} ({type(theirs).__name__}) came after {shown(mine)} ({type(mine).__name__}), "
                f"which prints alike and is another one ({len(alike)} in all do so). Give all batches one type."
            )

    def index(self, values: Iterable[Any]) -> np.ndarray:
        """Position of each value, `UNKNOWN` where it is not a level."""
        return np.fromiter((self._index.get(_key(v), UNKNOWN) for v in values), np.int64)

    def array(self) -> np.ndarray:
        """The values as an array, of their own dtype where they have one type."""
        if len({type(v) for v in self.values}) == 1 and isinstance(self.values[0], bool | int | float | str):
            array = np.array(self.values)
            exact = array.dtype.kind in "biufU" and array.tolist() == list(self.values)
            if exact and isinstance(array.tolist()[0], type(self.values[0])):  # no float64 for -1 and 2**63
                return array
        array = np.empty(len(self.values), dtype=object)
        array[:] = self.values
        return array


@dataclass(frozen=True, eq=False)
class Factors:
    """Columns of any type as integers: cell (i, j) is `values[j][raw[i, j] - low[j]]`.

    `raw` keeps the dtype of integer input, so nothing is copied. A missing cell has `raw - low == -1`.
    Some `values` of an integer column, the whole range from its least to its largest, may not occur.
    `complete` says that no cell is missing.
    """

    raw: np.ndarray
    low: np.ndarray
    values: tuple[Sequence[Any], ...]
    complete: bool

    def occurrences(self, column: int) -> np.ndarray:
        """How often each of `values[column]` occurs."""
        code = self.raw[:, column].astype(np.int64) - int(self.low[column]) + 1
        return np.bincount(code, minlength=len(self.values[column]) + 1)[1:]

    def first_row(self, column: int, code: int) -> int:
        """First row in which `values[column][code]` stands."""
        return int(np.argmax(self.raw[:, column].astype(np.int64) - int(self.low[column]) == code))


def factorize_integers(raw: np.ndarray) -> Factors | None:
    """A 2-D integer or Boolean array as it is, or None if some column's range is too wide to tabulate."""
    kind = bool if raw.dtype == bool else int
    raw = raw.view(np.uint8) if kind is bool else raw
    low, high = _bounds(raw)
    ranges = [range(int(a), int(b) + 1) for a, b in zip(low, high, strict=True)]
    if any(r.stop - r.start > _WIDEST_RANGE or r.stop > 2**63 for r in ranges):
        return None
    return Factors(raw, low, tuple(tuple(map(kind, r)) for r in ranges), complete=True)


def _bounds(raw: np.ndarray) -> list[np.ndarray]:
    """Least and greatest of each column.

    Where it is 0 in the first rows, one reduction may tell both: taken for unsigned, a negative number is large.
    """
    low = raw[: max(1, _FIRST_CELLS // raw.shape[1])].min(axis=0)
    if not low.any():
        (high,) = _reduced(raw.view(f"u{raw.itemsize}"), np.max)
        if (high <= np.iinfo(np.int8).max).all():
            return [low, high.astype(raw.dtype)]
    return _reduced(raw, np.min, np.max)


def _reduced(raw: np.ndarray, *reductions: Callable[..., np.ndarray]) -> list[np.ndarray]:
    """Reductions of each column, such as `np.min`, while some rows are in the cache.

    NumPy's loop over a short last axis is slow, so many rows are taken as one.
    """
    n, width = raw.shape
    many = max(1, 2048 // width)
    step = many * max(1, 2**19 // (many * width))

    def of_piece(start: int) -> list[np.ndarray]:
        piece = raw[start : start + step]
        if len(piece) == step and piece.flags.c_contiguous:
            piece = piece.reshape(-1, many * width)
        return [reduce(reduce(piece, axis=0).reshape(-1, width), axis=0) for reduce in reductions]

    found = zip(*in_threads(of_piece, range(0, n, step)), strict=True)
    return [reduce(each, axis=0) for reduce, each in zip(reductions, found, strict=True)]


def factorize(column: Any, where: str) -> tuple[np.ndarray, list[Any]]:
    """Codes of a 1-D column and its distinct values; -1 where it is None, NaN, NaT or pd.NA.

    Raises
    ------
    TypeError
        If a value is not hashable.
    ValueError
        If a value is infinite or complex.
    """
    encoded = _encoded_text(column)
    if encoded is not None:
        return encoded
    column = nullable(column)
    if column.dtype.kind in "biu":
        factors = factorize_integers(column[:, None])
        if factors is not None:
            codes, low = factors.raw[:, 0].astype(np.int64, copy=False), int(factors.low[0])
            return codes - low if low else codes, list(factors.values[0])
        distinct, codes = np.unique(column, return_inverse=True)
        return codes, distinct.tolist()
    if column.dtype.kind == "c":
        raise ValueError(f"{where}: Complex data not supported.")
    import pandas as pd

    if column.dtype.kind in "mM":
        column = pd.Index(column)  # whose values are dates, not the integers behind them
    try:
        codes, distinct = pd.factorize(column.astype(object) if column.dtype.kind in "US" else column)
    except TypeError:
        row = next(i for i, v in enumerate(column) if not isinstance(v, Hashable))
        raise TypeError(
            f"{where}, row {row}: {shown(column[row])} is not hashable; each argument must be a string, a number or "
            "another hashable value."
        ) from None
    values = [plain(v) for v in distinct.tolist()]
    if column.dtype == object and pd.api.types.infer_dtype(column).startswith("mixed"):
        values = _named_alike(values, column)
    for code, value in enumerate(values):
        if isinstance(value, complex) or (isinstance(value, float) and not np.isfinite(value)):
            row = int(np.argmax(codes == code))
            raise ValueError(f"{where} contains infinity or a complex number: {shown(value)} at row {row}; remove it.")
    return codes, values


def _encoded_text(column: Any) -> tuple[np.ndarray, list[Any]] | None:
    """Codes and values of text that Arrow has: as its dictionary has them, if it has one; else None."""
    dtype = getattr(column, "dtype", None)
    of_arrow: Any = getattr(dtype, "pyarrow_dtype", None)
    if hasattr(of_arrow, "value_type") and str(of_arrow.value_type) in ("string", "large_string"):
        array = column.array.__arrow_array__().unify_dictionaries().combine_chunks()
        there = np.array([value is not None for value in array.dictionary.to_pylist()] + [False])
        position = np.where(there, np.cumsum(there) - 1, MISSING)  # of a missing cell the last one
        return position[array.indices.fill_null(MISSING).to_numpy()], array.dictionary.drop_null().to_pylist()
    if hasattr(column, "iloc") and not isinstance(dtype, np.dtype) and str(dtype) in ("str", "string"):
        import pandas as pd

        found, distinct = pd.factorize(column)
        return found, distinct.tolist()
    return None


def _named_alike(values: list[Any], column: Any) -> list[Any]:
    """Of equal values in a column (1, 1.0, True) take the same one in whatever order they stand there."""
    kept: dict[Any, Any] = {}
    for value in map(plain, column):
        kept[value] = min(kept.get(value, value), value, key=lambda v: type(v).__name__)
    return [kept[value] for value in values]


def nullable(column: Any) -> np.ndarray:
    """A column as an array; integers beside missing cells stay integers."""
    if hasattr(column, "null_count") and hasattr(column, "to_list"):  # polars
        missing = column.null_count() > 0
    else:  # pandas' own types, in which NumPy would see floats
        missing = hasattr(column, "iloc") and not isinstance(column.dtype, np.dtype) and column.hasnans
    return np.array(column.to_list(), dtype=object) if missing else np.asarray(column)


def require_distinct_hashes(values: Collection[Any]) -> None:
    """Raise ValueError if so many values have the same hash that a dictionary of them takes quadratic time.

    Python takes numbers modulo 2^61 - 1: any number of integers can be chosen that have the same hash, and some two
    hundred floats. Values that print alike count once.
    """
    if len(values) <= _MOST_OF_ONE_HASH:
        return
    hashes = np.array(list(_foreseeable_hashes(values).values()), np.int64)
    if len(hashes) and (most := int(np.unique(hashes, return_counts=True)[1].max())) > _MOST_OF_ONE_HASH:
        raise ValueError(f"{most:,} of {len(values):,} values have the same hash; at most {_MOST_OF_ONE_HASH} may.")


def _foreseeable_hashes(values: Iterable[Any]) -> dict[str, int]:
    """Hashes by what values print; without strings, whose hashes Python salts, and values that have no hash."""
    hashes = {}
    for value in values:
        if type(value) is not str:
            with suppress(TypeError):
                hashes[repr(value)] = hash(value)
    return hashes


def _key(value: Any) -> Any:
    """Key of a value in a dictionary: equal where values are, with a hash that nobody can foresee.

    Python salts the hashes of strings anew in every process. Those of numbers can be foreseen, and a file may hold
    numbers that all look for the same places of a dictionary.
    """
    value = plain(value)
    return value if type(value) is str else (_SALT, value)


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value it holds."""
    return value.item() if isinstance(value, np.generic) else value


def _ordered(values: Iterable[Any]) -> list[Any]:
    values = list(values)
    try:
        return sorted(values, key=lambda v: (type(v).__name__, v))
    except TypeError:
        return sorted(values, key=lambda v: (type(v).__name__, repr(v)))
