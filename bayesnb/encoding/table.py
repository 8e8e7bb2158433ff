"""Tables, labels and vectors of users: checked, and put in order, whatever container they come in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from bayesnb._util.arguments import GREATEST, ZERO_WEIGHTS, bad_argument, no_column_error, shown, to_numbers
from bayesnb._util.arrays import to_pandas
from bayesnb.encoding.levels import (
    MISSING,
    UNITS,
    CellKind,
    Column,
    Levels,
    cell_kind,
    count_as_numbers,
    exact_numbers,
    factorize,
    is_missing,
    is_pandas,
    time_kind,
    times_to_numbers,
    to_array,
    to_objects,
    to_python,
)

if TYPE_CHECKING:
    import pandas as pd

    from bayesnb.encoding.columns import Columns

# == Check of a user's X, and access to its columns ================================================

_CELLS: dict[str | None, str] = {None: "no dates or durations", "days": "dates", "seconds": "durations"}
"""Names of cells by the unit in which they are numbers."""


@dataclass(frozen=True)
class Positions(Sequence[str]):
    """Names "0", "1", … of n columns without names; they are not stored, as there may be many."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, j: Any) -> Any:
        position = range(self.n)[j]
        return str(position) if isinstance(position, int) else tuple(map(str, position))


@dataclass(frozen=True, eq=False)
class StackedColumns:
    """Columns as a 2-D array whose rows are copied when they are read, while the kernels read the rows before."""

    columns: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.columns[0]), len(self.columns)

    def __getitem__(self, index: slice | tuple[slice, Sequence[int]] | np.ndarray) -> Any:
        """Return a slice of the rows as an array; the rows at some positions, or some columns `[:, index]`, stacked."""
        if isinstance(index, tuple):
            return StackedColumns(tuple(self.columns[j] for j in index[1]))
        if isinstance(index, slice):
            return row_major([column[index] for column in self.columns])
        return StackedColumns(tuple(column[index] for column in self.columns))

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return row_major(self.columns, dtype)


@dataclass(frozen=True, eq=False)
class SparseNumbers:
    """Sparse matrix whose rows are made dense when they are read, while the kernels read the rows before."""

    matrix: sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.matrix.shape

    def __getitem__(self, index: object) -> Any:
        """Return a slice of the rows as an array; rows at some positions, or some columns `[:, index]`, as sparse."""
        part = self.matrix[index]
        return part.toarray() if isinstance(index, slice) else SparseNumbers(part)

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return self.matrix.toarray().astype(dtype or np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Table:
    """Two-dimensional input: an array, a CSR matrix, or the columns of a DataFrame.

    Parameters
    ----------
    data : ndarray, csr_array or list of column objects
    names : sequence of str
        Names of the columns, for messages and reports.
    n_rows : int
    owner : str
        Name of the estimator, for messages.
    numeric : sequence of bool, optional
        Whether each column is treated as numbers, where other rows have decided this. Default: these rows decide.
    time_units : dict {name: unit}, optional
        Units of the columns that must be dates or durations if they are read as numbers; other columns must not be.
        Default: columns may be either.
    """

    data: Any
    names: Sequence[str]
    n_rows: int
    owner: str
    numeric: Sequence[bool] | None = None
    time_units: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def is_frame(self) -> bool:
        """Whether the input is a DataFrame."""
        return isinstance(self.data, list)

    @property
    def is_sparse(self) -> bool:
        """Whether the input is a sparse matrix."""
        return not isinstance(self.data, np.ndarray | list)

    def columns_at(self, index: Sequence[int]) -> tuple[Sequence[int], Sequence[str], int]:
        """Return positions and names of the columns `index`, and the number of all columns, as `Columns` take them."""
        n_columns = len(self.names)
        if len(index) == n_columns:
            return index, self.names, n_columns
        return tuple(index), tuple(self.names[j] for j in index), n_columns

    def take(self, mask: np.ndarray) -> Table:
        """Return the table of the rows where `mask` (N,) is true."""
        return self.part(np.flatnonzero(mask), range(len(self.names)))

    def part(self, rows: np.ndarray | None, index: Sequence[int]) -> Table:
        """Return the table of the rows at some positions, None for all rows, and of the columns `index`."""
        data, names, numeric = self.data, self.names, self.numeric
        if len(index) < len(names):
            data = [data[j] for j in index] if self.is_frame else data[:, list(index)]
            names, numeric = [names[j] for j in index], numeric and [numeric[j] for j in index]
        if rows is None:
            return replace(self, data=data, names=names, numeric=numeric)
        if self.is_frame:
            # Cells of NumPy's types are taken faster from an array.
            columns = [np.asarray(c) if isinstance(c.dtype, np.dtype) else c for c in data]
            data = [column.take(rows) for column in columns]
        else:
            data = data[rows]
        return replace(self, data=data, names=names, n_rows=len(rows), numeric=numeric)

    def column(self, j: int) -> Column:
        """Return column j as the user gave it: a Series, or a 1-D array."""
        column: Column = self.data[j] if self.is_frame else self.data[:, j]
        return column

    def kind(self, j: int) -> CellKind:
        """Return the kind of the cells of column j of a dense table."""
        return cell_kind(self.column(j))

    def is_numeric(self, j: int, *, whole: bool) -> bool:
        """Return whether column j is treated as numbers, not as levels; see `count_as_numbers` for `whole`.

        Dates and durations are numbers. Decided before, where the table has `numeric`.
        """
        if self.numeric is not None:
            return self.numeric[j]
        if self.is_sparse or (kind := self.kind(j)) == "level":
            return False
        return kind in UNITS or count_as_numbers(exact_numbers(self.column(j), self.column_numbers(j)), whole=whole)

    def find_time_units(self, index: Iterable[int]) -> dict[str, str]:
        """Return {name: unit} of the columns among `index` that are dates or durations."""
        if not self.is_frame and (self.is_sparse or self.data.dtype.kind in "biuf"):
            return {}
        kinds = {self.names[j]: time_kind(self.column(j)) for j in index}
        return {name: UNITS[kind] for name, kind in kinds.items() if kind is not None}

    def column_numbers(self, j: int) -> np.ndarray:
        """Return the numbers (N,) of column j, NaN where missing; see `numbers`."""
        column, where = self.column(j), self.label(j)
        array, kind = _series_to_array(column), time_kind(column)
        numbers = _to_float(array, where) if kind is None else times_to_numbers(array, kind, where)
        if self.time_units is not None:
            unit, known = None if kind is None else UNITS[kind], self.time_units.get(self.names[j])
            if unit != known and (numbers == numbers).any():  # Missing cells have no unit.
                raise ValueError(
                    f"{where}: the cells are {_CELLS[unit]}, but the classifier was fitted to {_CELLS[known]}."
                )
        return numbers

    def objects(self, index: Sequence[int]) -> np.ndarray:
        """(N, K) cells of the columns at the positions `index` as Python objects."""
        cells = np.empty((self.n_rows, len(index)), object)
        for k, j in enumerate(index):
            column = self.data[:, [j]].toarray()[:, 0] if self.is_sparse else to_array(self.column(j))
            cells[:, k] = _to_dates(column) if column.dtype.kind in "mM" else column
        return cells

    def position(self, column: object, argument: str) -> int:
        """Return the position of a column that the argument `argument` gives by name or by index.

        A negative index counts from the end.

        Raises
        ------
        ValueError
            If there is no such column, or an integer is the index of one column and the name of another.
        """
        return find_column(argument, count_from_start(column, len(self.names)), self.names, self._position)

    @cached_property
    def _position(self) -> dict[str, int]:
        """Position of each column by name."""
        return {name: j for j, name in enumerate(self.names)}

    def label(self, j: int) -> str:
        """Name of column j for messages."""
        return f"Input X, column {shown(self.names[j])}"

    def require_dense(self) -> None:
        """Raise TypeError if the table is sparse."""
        if self.is_sparse:
            raise TypeError(f"Sparse data was passed for X, but {self.owner} needs dense data. Use X.toarray().")

    def integers(self, index: Sequence[int]) -> np.ndarray | None:
        """(N, K) cells of columns of integers, or of an array of Booleans; None if a column is of another type."""
        if not self.is_frame:
            data = self.data if len(index) == self.data.shape[1] else self.data[:, list(index)]
            return data if data.dtype.kind in "biu" else None
        if any(not isinstance(self.data[j].dtype, np.dtype) or self.data[j].dtype.kind not in "iu" for j in index):
            return None
        columns = [np.asarray(self.data[j]) for j in index]
        bounds = [bound for column in columns for bound in (column.min(), column.max())]
        narrowest = np.result_type(*map(np.min_scalar_type, bounds))
        return row_major(columns, narrowest) if narrowest.kind in "iu" else None

    def numbers(self, index: Sequence[int], sparse: bool = False) -> np.ndarray | StackedColumns | SparseNumbers:
        """Return (N, K) numbers of the columns `index`, which may be infinite: `check_finite` checks this.

        Dates are days since 1970 in UTC, durations are seconds. With `sparse` numbers of a sparse table, not negative.

        Raises
        ------
        ValueError
            If a cell is not a number; the message names the first one. If a column is of dates or durations, and was
            not in `fit`, or conversely.
        """
        if self.is_sparse and sparse:
            return SparseNumbers(self.matrix(nonnegative=True)[:, list(index)])
        self.require_dense()
        if self.is_frame:
            return StackedColumns(tuple(map(self.column_numbers, index)))
        if self.data.dtype.kind in "biuf" and not self.time_units:
            data: np.ndarray = self.data
            return data if len(index) == data.shape[1] else data[:, list(index)]
        return row_major(list(map(self.column_numbers, index)))

    def matrix(self, *, nonnegative: bool = False) -> sp.csr_array:
        """Return all columns of a sparse table in canonical format, finite and without stored zeros.

        With `nonnegative` negative entries raise ValueError, as infinite and missing ones always do.
        """
        # The user's matrix caches whether its format is canonical; a copy would check again.
        canonical = self.data.has_canonical_format
        matrix = sp.csr_array(self.data, copy=not canonical)
        if not canonical:
            matrix = _widen_numbers(matrix)
            matrix.sum_duplicates()
        if matrix.nnz and not (matrix.data.min() > 0 and matrix.data.max() < np.inf):
            bad = ~np.isfinite(matrix.data) | (nonnegative & (matrix.data < 0))
            if bad.any():
                entry, (rows, columns) = int(np.argmax(bad)), matrix.tocoo().coords
                self._refuse(matrix.data[entry], int(rows[entry]), int(columns[entry]))
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        return matrix

    def check_nonnegative(self, values: np.ndarray, index: Sequence[int]) -> None:
        """Raise ValueError naming the first negative number, if `values` (N, K) of the columns `index` have one."""
        if values.dtype.kind in "if" and np.nanmin(values, initial=0) < 0:
            row, j = np.argwhere(values < 0)[0].tolist()
            self._refuse(values[row, j], row, index[j])

    def _refuse(self, value: np.generic, row: int, j: int) -> NoReturn:
        """Raise ValueError for a number that is negative, infinite or NaN."""
        if np.isfinite(value):
            raise ValueError(
                f"Negative values in data passed to {self.owner} (input X): {shown(to_python(value))} at row {row}, "
                f"column {shown(self.names[j])}. It must be at least 0; or model the column as Gaussian."
            )
        _refuse_number(value, row, self.names[j])


def check_finite(values: np.ndarray, names: Sequence[str], *, missing: bool = True, start: int = 0) -> bool:
    """Return whether none of `values` (M, K), rows from `start` on of columns with these names, is NaN.

    Raises
    ------
    ValueError
        If a cell is infinite, or NaN unless cells may be `missing`; the message names the first one.
    """
    if values.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):
            return True
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        row, j = np.argwhere(bad)[0].tolist()
        _refuse_number(values[row, j], start + row, names[j])
    return not np.isnan(values).any()


def _refuse_number(value: np.generic, row: int, name: str) -> NoReturn:
    """Raise ValueError for a number that is infinite or NaN."""
    kind, advice = "infinity or a value too large for float64", "Remove or rescale the value"
    if np.isnan(value):
        kind, advice = "NaN", "Impute the missing cell, or drop the row"
    where = f"{shown(to_python(value))} at row {row}, column {shown(name)}"
    raise ValueError(f"Input X contains {kind}: {where}. {advice}.")


def to_table(X: Any, owner: str, *, least_rows: int = 1) -> Table:
    """Return a table of two-dimensional input: array, list, sparse matrix, or table of any library (see `to_pandas`).

    A table has at least one column, and `least_rows` rows, 0 or 1.

    Raises
    ------
    ValueError
        If X is empty, complex, ragged or not two-dimensional, or if two columns of a DataFrame have one name.
    TypeError
        If X is a masked array with a masked cell, or a dask collection.
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype in (np.float64, np.float32, np.int64):
        return Table(X, Positions(X.shape[1]), X.shape[0], owner)
    X = to_pandas(X, "X")
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        names = tuple(map(str, X.columns))
        _check_size(len(X), len(names), owner, least_rows)
        _require_distinct(names)
        return Table([column for _, column in X.items()], names, len(X), owner)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        row = tuple(int(i[0]) for i in np.nonzero(np.ma.getmaskarray(X)))
        raise TypeError(f"Input X is masked at {row}. {owner} takes NaN: use X.astype(float).filled(numpy.nan).")
    if not (sp.issparse(X) or isinstance(X, np.ndarray)) and not hasattr(X, "__array__"):
        X = from_sequence(X)
    if sp.issparse(X) and X.ndim == 2 and X.dtype.kind in "biuf":
        _check_size(X.shape[0], X.shape[1], owner, least_rows)
        X = (_widen_numbers(X) if X.format == "coo" else X).tocsr()  # adds up the duplicates of a COO matrix
        X = X if _is_native(X.dtype) else X.astype(np.float64)
        return Table(X, Positions(X.shape[1]), X.shape[0], owner)
    if (n_axes := X.ndim if sp.issparse(X) else np.asarray(X).ndim) < 2:
        kind = f"{n_axes}D" if n_axes else "scalar"
        raise ValueError(
            f"Expected 2D array, got {kind} array instead: X={shown(X)}. {owner} takes a table, a row of features for "
            "each sample. Reshape your data: X.reshape(1, -1) is a row. Count the words of texts by text.BagOfWords."
        )
    array = check_array(
        X, dtype=None, accept_sparse="csr", ensure_all_finite=False, ensure_min_samples=least_rows, estimator=owner
    )
    return Table(_to_native(array), Positions(array.shape[1]), array.shape[0], owner)


def row_major(columns: Sequence[np.ndarray], dtype: np.dtype | None = None) -> np.ndarray:
    """Return columns as a (N, K) array in row-major order, filled by tiles that fit the cache, faster than np.stack.

    `dtype` is the type of the array; None: the common type of the columns.
    """
    dtype = np.result_type(*columns) if dtype is None else dtype
    out = aligned((len(columns[0]), len(columns)), np.dtype(dtype))
    step = max(256, 2**16 // len(columns))
    for start in range(0, len(out), step):
        piece = slice(start, start + step)
        out[piece] = np.array([column[piece] for column in columns], dtype).T
    return out


def _widen_numbers(matrix: sp.csr_array) -> sp.csr_array:
    """Return a sparse matrix of numbers in float64, in which sums of duplicates neither wrap nor round to float32."""
    return matrix if matrix.dtype == bool else matrix.astype(np.float64, copy=False)


def aligned(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return an empty array that begins at a multiple of 64 bytes, as JAX copies arrays that do not."""
    size = shape[0] * shape[1] * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def _require_distinct(names: Sequence[str]) -> None:
    """Raise ValueError if two columns have the same name."""
    for j, name in enumerate(names if len(set(names)) < len(names) else ()):
        if (first := names.index(name)) < j:
            raise ValueError(f"Input X: columns {first} and {j} are both named {shown(name)}. Rename one.")


def _check_size(n_rows: int, n_columns: int, owner: str, least_rows: int) -> None:
    """Raise ValueError unless there are `least_rows` rows, 0 or 1, and a column."""
    for count, least, what in ((n_rows, least_rows, "sample"), (n_columns, 1, "feature")):
        if count < least:
            shape = (n_rows, n_columns)
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required by {owner}."
            )


def from_sequence(X: Any, name: str = "X") -> np.ndarray:
    """Return a list as an array, of objects if there are strings, Booleans in a table of numbers, or large integers.

    NumPy would turn Booleans beside numbers into 0 and 1, and round integers that float64 does not represent.
    """
    try:
        array = np.asarray(X)
    except ValueError:
        lengths = [np.size(row) for row in X]
        ragged = next((i for i, n in enumerate(lengths) if n != lengths[0]), None)
        if ragged is None:
            raise
        found = f"row {ragged} has {lengths[ragged]} entries, and row 0 has {lengths[0]}"
        raise ValueError(f"Input {name} is ragged: {found}. Pass None for a missing one.") from None
    is_mixed = array.dtype.kind in "US" or (array.dtype.kind in "iuf" and _has_converted(array, X))
    return np.asarray(X, dtype=object) if is_mixed else array


def _has_converted(array: np.ndarray, X: object) -> bool:
    """Return whether NumPy may have rounded integers of X, or turned Booleans of a table X into 0 and 1, in `array`."""
    may_round = array.dtype.kind == "f" and bool((abs(array) >= 2**53).any())
    may_be_bool = array.ndim == 2 and bool(((array == 0) | (array == 1)).any())
    return (may_round or may_be_bool) and any(
        (may_be_bool and isinstance(v, bool | np.bool_))
        or (may_round and isinstance(v, Integral) and abs(int(v)) >= 2**53)
        for v in np.asarray(X, dtype=object).flat
    )


def _series_to_array(column: Column) -> np.ndarray:
    """Return a column as an array, in which missing numbers of pandas' nullable types are NaN, and dates NumPy's."""
    if is_pandas(column) and (dtype := str(column.dtype)).startswith("date32"):
        return np.asarray(column.array.__arrow_array__().cast("timestamp[s]"))  # NumPy would see objects.
    if is_pandas(column) and dtype[:1] in "UIF" and column.dtype.kind in "iuf" and column.hasnans:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column)


def _is_native(dtype: np.dtype) -> bool:
    """Return whether the kernels can read a type: native byte order, and floats of 32 or 64 bits."""
    return dtype.isnative and (dtype.kind != "f" or dtype.itemsize in (4, 8))


def _to_native(array: np.ndarray) -> np.ndarray:
    """Return an array in a type that the kernels can read: integers in native byte order, floats as float64.

    Native integers, float32, float64 and arrays that are not numbers are returned unchanged.
    """
    if array.dtype.kind not in "iuf" or _is_native(array.dtype):
        return array
    return array.astype(np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("="))


def _to_float(column: np.ndarray, where: str) -> np.ndarray:
    """Return a column as float64, NaN where missing; Boolean, integer and float columns keep their kind.

    A ValueError or TypeError names the first cell that cannot be read as a number; strings such as "3.5" can.
    """
    if column.dtype.kind in "biuf":
        return _to_native(column)
    if not any(map(_is_complex, column)):
        with suppress(TypeError, ValueError, OverflowError):
            return np.array([np.nan if is_missing(v) else v for v in column], dtype=np.float64)
    row = next((i for i, v in enumerate(column) if _is_complex(v) or not is_number(v)), 0)
    value = column[row]
    if _is_complex(value):
        raise ValueError(f"{where}: {shown(value)} at row {row}. Complex data not supported. Pass real numbers.")
    problem = (
        f"could not convert {shown(value)} at row {row} to a number, or it is too large for float64. Correct the cell, "
        "or encode the column. MixedNB and WeightedNB also take categorical columns."
    )
    if isinstance(value, str | bytes | int | np.generic):
        raise ValueError(f"{where}: {problem}")
    raise TypeError(f"{where}: each cell of this argument must be a string or a number; {problem}")


def _to_dates(column: np.ndarray) -> np.ndarray:
    """Return an array of dates and times as pandas objects; `astype(object)` would turn nanoseconds into integers."""
    import pandas as pd

    return np.asarray(pd.Index(column).astype(object).to_numpy())


def _is_complex(value: object) -> bool:
    """Return whether a value is a complex number, of which NumPy's would lose their imaginary part as float64."""
    return isinstance(value, complex | np.complexfloating)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, or missing."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return is_missing(value)
    return True


# == Checks of the labels and weights of rows ======================================================

UNLABELED = -1
_AS_TEXT = {str(UNLABELED): f"the integer {UNLABELED}", "nan": "NaN"}
"""How NumPy writes the marks of a row without a label in an array of strings, and their names in messages."""


def check_labels(y: object, n_rows: int | None, owner: str, name: str = "y") -> tuple[Levels, np.ndarray]:
    """Return the classes that occur, and the (N,) index of each row's class, for labels of any hashable type.

    Parameters
    ----------
    y : (N,) array-like
    n_rows : int or None
        Expected number of labels; None for any number.
    owner : str
        Name of the estimator, for messages.
    name : str
        Name of the argument, for messages.

    Raises
    ------
    ValueError
        If y is missing, of the wrong length, continuous, or has missing values.
    """
    classes, index = _read_labels(y, n_rows, owner, name)
    if (missing := index == MISSING).any():
        row = int(np.argmax(missing))
        raise ValueError(f"Input {name} contains NaN: the label of row {row} is missing. Drop the row or label it.")
    return classes, index


def check_partial_labels(y: object, n_rows: int, owner: str) -> tuple[Levels, np.ndarray]:
    """Return the classes that occur, and the (N,) index of each row's class, -1 for a row without a label.

    Such a row has the label -1, None, NaN, NaT or pd.NA.

    Parameters
    ----------
    y : (N,) array-like
    n_rows : int
        Expected number of labels.
    owner : str
        Name of the estimator or function, for messages.

    Raises
    ------
    ValueError
        If y is missing, of the wrong length, or continuous; if there are labels "-1" or "nan", strings, beside others.
    """
    labels, index = _read_labels(y, n_rows, owner, "y")
    for text, mark in _AS_TEXT.items():
        if text in labels.values and len(labels) > 1:
            first = int(np.argmax(index == labels.values.index(text)))
            raise ValueError(
                f"y: row {first} has the string {text!r} as its label, but {mark} marks a row without a label. Pass y "
                f"with dtype=object, as NumPy writes {mark} as {text!r} among strings. If this is a class, rename it."
            )
    classes = Levels(tuple(v for v in labels.values if v != UNLABELED))
    return classes, _map_codes(index, classes.index(labels.values).clip(min=MISSING))


def _read_labels(y: object, n_rows: int | None, owner: str, name: str) -> tuple[Levels, np.ndarray]:
    """Return the classes that occur, and the (N,) index of each row's class, `MISSING` where the label is missing.

    The arguments and the errors are those of `check_labels`, which raises ValueError for missing labels too.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    labels = labels_to_array(y, name)
    if not labels.shape or (len(labels.shape) > 1 and labels.shape[1] != 1):
        raise ValueError(f"{name} should be a 1d array, got an array of shape {tuple(labels.shape)} instead.")
    labels = column_or_1d(labels, warn=True)
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"Found inconsistent numbers of samples: X has {n_rows} rows, y has {len(labels)} labels.")
    if labels.dtype.kind in "fc":
        _check_float_labels(labels, name)
    codes, values = factorize(labels, f"Input {name}")
    if labels.dtype.kind == "O" and any(isinstance(v, float) and not v.is_integer() for v in values):
        check_classification_targets(np.array([v for v in values if isinstance(v, float)]))
    counts = np.bincount(codes + 1, minlength=len(values) + 1)[1:]  # `MISSING` is not counted.
    classes = Levels.from_values(compress(values, counts))
    return classes, _map_codes(codes, classes.index(values))


def check_weights(sample_weight: object, n_rows: int) -> np.ndarray:
    """Return replication counts (N,) in float64: ones for None, and a single number N times.

    Raises
    ------
    ValueError
        If a weight is negative, not finite, or positive and subnormal, naming the first one; if all are zero, or their
        sum is more than `GREATEST`; if the shape is not (N,).
    """
    if sample_weight is None:
        return np.ones(n_rows)
    weight = to_numbers("sample_weight", to_pandas(sample_weight, "sample_weight"))
    if not weight.shape:
        weight = np.full(n_rows, weight)
    if weight.shape != (n_rows,):
        expected = f"one number, or an array of shape {(n_rows,)} with one weight for each row"
        raise ValueError(f"sample_weight has shape {weight.shape}; pass {expected}.")
    tiny = np.finfo(np.float64).tiny
    for bad, problem in (
        (weight < 0, "Negative values in data passed to `sample_weight`"),
        (~np.isfinite(weight), "Input sample_weight contains NaN or infinity"),
        ((weight > 0) & (weight < tiny), f"sample_weight has a positive number below {tiny:.2g}; pass 0 instead"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"{problem}: {weight[row]} at row {row}; a weight must be finite and at least 0.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if total > GREATEST:
        row = int(np.argmax(weight))
        raise ValueError(
            f"sample_weight: the weights sum to {total}, with {weight[row]} at row {row}. Rescale them to a sum of at "
            f"most {GREATEST:g}."
        )
    if n_rows and not weight.any():
        raise ValueError(ZERO_WEIGHTS)
    return weight


def _check_float_labels(y: np.ndarray, name: str) -> None:
    """Raise ValueError if numeric labels are complex, infinite, or continuous; NaN is not checked."""
    if y.dtype.kind == "c":
        raise ValueError(f"Input {name}: Complex data not supported. Convert the labels to strings.")
    if (infinite := np.isinf(y)).any():
        row = int(np.argmax(infinite))
        raise ValueError(
            f"Input {name} contains infinity: the label of row {row} is {y[row]}. Drop the row or label it."
        )
    if (present := ~np.isnan(y)).any():
        check_classification_targets(y[present])


def labels_to_array(y: object, name: str) -> np.ndarray:
    """Return labels as an array, in which a tuple of a list is one label; a table of labels as one of pandas."""
    labels = to_pandas(y, name)
    if hasattr(labels, "shape"):
        return to_array(labels) if hasattr(labels, "to_list") else labels
    has_tuples = isinstance(labels, list | tuple) and any(isinstance(label, tuple) for label in labels)
    return to_objects(labels) if has_tuples else from_sequence(labels, name)


def require_present(y: Any, positions: np.ndarray) -> None:
    """Raise ValueError if a label of y at one of the `positions` is missing; other labels are not checked."""
    labels = list(y) if len(positions) else []
    for i in positions.tolist():
        if is_missing(labels[i]):
            raise ValueError(f"y: the label of row {i} is missing; drop the row or label it.")


def index_of_labels(classes: Levels, labels: Levels, label: np.ndarray) -> np.ndarray:
    """(N,) index of each row's class, from the index of its label among `labels`.

    Raises
    ------
    ValueError
        If a label is not a class.
    """
    position = classes.index(labels.values)
    if (position < 0).any():
        unknown = labels.values[int(np.argmax(position < 0))]
        row = int(np.argmax(position[label] < 0))
        raise ValueError(
            f"The label {shown(unknown)} of row {row} is not among the known classes {shown(list(classes.values))}. "
            "Remove the row, or add the class by partial_fit(X, y, classes=[...]) with all classes, old and new."
        )
    return _map_codes(label, position)


def _map_codes(codes: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Return `position[codes]` as int32, `MISSING` where the code is `MISSING`."""
    return np.asarray(np.append(position, MISSING).astype(np.int32)[codes])


# == Labelled vectors over classes, columns or levels: mappings and pandas Series, whose entries are matched by label

_MOST_SHOWN = 12


def read_labelled(argument: str, given: object) -> dict[Hashable, object] | None:
    """Return a mapping or a pandas Series as a dict from label to entry; None for values that have no labels.

    Raises
    ------
    ValueError
        If a label occurs twice, or the value of `argument` is a DataFrame.
    """
    if isinstance(given, Mapping):
        return {to_python(label): entry for label, entry in given.items()}
    if hasattr(given, "columns") or hasattr(given, "column_names"):
        raise ValueError(f"{argument} is a DataFrame, whose labels are not read. Pass a dict, a Series or to_numpy().")
    if not is_pandas(given):
        return None
    return dict(zip(_index_labels(argument, given), given.tolist(), strict=True))


def as_list(given: object) -> list[object]:
    """Return an argument as a list: [] for None, and a single entry, such as a str, as the only one."""
    if given is None:
        return []
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]


def is_labelled(given: object) -> bool:
    """Return whether a value is matched by label: a mapping, or a Series or DataFrame of pandas."""
    return isinstance(given, Mapping) or is_pandas(given)


def match_classes(argument: str, given: object, classes: Levels) -> object:
    """Return the entries of a labelled vector, numbers, in the order of the classes; other values unchanged.

    Raises
    ------
    ValueError
        If the vector does not name exactly the classes, or an entry is not one number.
    """
    if read_labelled(argument, given) is None:
        return given
    return [_to_number(*entry) for entry in entries_by_class(argument, given, classes)]


def entries_by_class(argument: str, given: object, classes: Levels) -> list[tuple[str, object]]:
    """Return name and value of each entry of a labelled vector in the order of the classes.

    Raises
    ------
    ValueError
        If the vector does not name exactly the classes.
    """
    labelled = read_labelled(argument, given) or {}
    label_of = dict(zip(classes.index(labelled).tolist(), labelled, strict=True))
    if label_of.keys() != set(range(len(classes))):
        known = _list(classes.values)
        if _has_default_index(given):
            raise _two_readings(argument, given, f"the classes are {known}", "classes")
        named = f"It names {_list(labelled)}; the classes are {known}"
        raise ValueError(f"{argument} must name exactly the classes. {named}.")
    labels = [label_of[c] for c in range(len(classes))]
    return [(f"{argument}[{shown(label)}]", labelled[label]) for label in labels]


def match_columns(argument: str, given: object, names: Sequence[str]) -> dict[int, object]:
    """Return the entries of a labelled vector by position of the column.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    given : object
        Value of the argument: a mapping or a Series from names or positions of columns, or a list with an entry for
        each column, one of which is labelled by level. Other values have no entries.
    names : sequence of str
        Names of all columns of X.

    Raises
    ------
    ValueError
        If there is no such column, a column is named twice, or the labels of a Series are those of its default index;
        if a list has another length.
    """
    if isinstance(given, list | tuple):
        if not any(map(is_labelled, given)):
            return {}
        if len(given) != len(names):
            found = f"{argument} is a list of {len(given)} entries, and X has {len(names)} columns"
            raise ValueError(f"{found}. Or pass a dict.")
        return dict(enumerate(given))
    labelled = read_labelled(argument, given) or {}
    position = {name: j for j, name in enumerate(names)}
    if _has_default_index(given) and any(position.get(str(j)) != j for j in range(len(labelled))):
        raise _two_readings(argument, given, f"the columns of X are {_list(names)}", "columns")
    entries: dict[int, object] = {}
    for label, entry in labelled.items():
        j = find_column(argument, count_from_start(label, len(names)), names, position)
        if j in entries:
            raise ValueError(f"{argument} names column {shown(names[j])} twice, by name and by position. Name it once.")
        entries[j] = entry
    return entries


def select_columns(argument: str, given: object, columns: Columns) -> dict[int, object]:
    """Return the entries of a labelled vector for a block of columns of X, by position in the block.

    `argument` and `given` are as in `match_columns`, by which labels of other columns and lengths were checked.
    """
    if isinstance(given, list | tuple):
        return {i: given[j] for i, j in enumerate(columns.index)}
    labelled = read_labelled(argument, given) or {}
    by_name = {name: i for i, name in enumerate(columns.names)}
    by_position = {j: i for i, j in enumerate(columns.index)}
    from_start = {label: count_from_start(label, columns.n_features) for label in labelled}
    places = {label: _find_place(argument, key, by_name, by_position.get) for label, key in from_start.items()}
    return {place: labelled[label] for label, place in places.items() if place is not None}


def match_all_columns(argument: str, given: object, columns: Columns) -> object:
    """Return the entries of a labelled vector in the order of a block of columns; other values are returned unchanged.

    Raises
    ------
    ValueError
        If the vector does not name exactly these columns.
    """
    if (labelled := read_labelled(argument, given)) is None:
        return given
    names = columns.names
    if _has_default_index(given) and list(map(str, columns.index)) != list(names):
        raise _two_readings(argument, given, f"the columns are {_list(names)}", "columns")
    entries = select_columns(argument, given, columns)
    if not len(entries) == len(labelled) == len(names):
        named = f"{argument} must name exactly the columns {_list(names)}. It names {_list(labelled)}"
        raise ValueError(f"{named}. For some columns, pass a dict {{column: prior}} in place of the prior.")
    return [entries[i] for i in range(len(names))]


def match_index(argument: str, given: object, names: Sequence[str], index: Sequence[int], wanted: str) -> list[object]:
    """Return the entry for each column at the positions `index`: of a labelled vector by column, or of a list of these.

    Parameters
    ----------
    argument, given, names
        As in `match_columns`; columns that a labelled vector does not name have the entry None.
    index : sequence of int
        Positions of the columns, for each of which a list has an entry.
    wanted : str
        Description of usable values, for the message.

    Raises
    ------
    ValueError
        If `given` is neither; see also `match_columns`.
    """
    if is_labelled(given):
        entries = match_columns(argument, given, names)
        return [entries.get(j) for j in index]
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) == len(index):
        return list(given)
    raise bad_argument(argument, given, wanted)


def find_column(argument: str, column: object, names: Sequence[str], position: Mapping[str, int]) -> int:
    """Return the position of a column that the argument gives by name or position.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    column : object
        Name of a column, or its position from 0 on.
    names : sequence of str
        Names of all columns.
    position : dict {name: int}
        Positions of the names.

    Raises
    ------
    ValueError
        If there is no such column, or an integer is the position of one column and the name of another.
    """
    place = _find_place(argument, column, position, lambda j: j if 0 <= j < len(names) else None)
    if place is None:
        raise no_column_error(argument, column, names)
    return place


def count_from_start(column: object, n_columns: int) -> object:
    """Return the position of a column that a negative integer gives from the end; other values are unchanged."""
    is_negative = isinstance(column, int | np.integer) and -n_columns <= column < 0
    return int(column) + n_columns if is_negative else column  # type: ignore[call-overload]


def _find_place(
    argument: str, column: object, by_name: Mapping[str, int], place_of: Callable[[int], int | None]
) -> int | None:
    """Return the place of the column with this name or position, None for none; an integer may be a name, too."""
    if isinstance(column, str):
        return by_name.get(column)
    if not isinstance(column, int | np.integer) or isinstance(column, bool):
        return None
    at, name = place_of(int(column)), str(column)
    named = by_name.get(name, at)
    if at is not None and named != at:
        raise ValueError(
            f"{argument}: {column} is the name of one column of X, and the position of another one. Pass a name, such "
            f"as {name!r}."
        )
    return named


def match_levels(argument: str, given: object, levels: Sequence[Hashable], column: str) -> list[float]:
    """Return an entry for each level of a column, 1 for those that a labelled vector does not name.

    Raises
    ------
    ValueError
        If the column has no such level, or an entry is not one number.
    """
    labelled = read_labelled(argument, given) or {}
    index = Levels(tuple(levels)).index(labelled)
    if (index < 0).any():
        if _has_default_index(given):
            raise _two_readings(argument, given, f"the levels of column {shown(column)} are {_list(levels)}", "levels")
        label = list(labelled)[int(np.argmax(index < 0))]
        raise ValueError(
            f"{argument} names {shown(label)}, which is not a level of column {shown(column)}. The levels are "
            f"{_list(levels)}. Correct the label, or declare it in `categories`."
        )
    entries = [1.0] * len(levels)
    for i, (label, entry) in zip(index.tolist(), labelled.items(), strict=True):
        entries[i] = _to_number(f"{argument}[{shown(label)}]", entry)
    return entries


def by_rows(argument: str, given: object) -> object:
    """Return a pandas DataFrame as a dict from the label of a row to a Series by column; other values unchanged.

    Raises
    ------
    ValueError
        If two rows have the same label.
    """
    if not (is_pandas(given) and hasattr(given, "columns")):
        return given
    return {label: given.iloc[i] for i, label in enumerate(_index_labels(argument, given))}


def names_classes(argument: str, given: object, classes: Levels, levels: Iterable[Hashable]) -> bool:
    """Return whether the labels of a vector for one column are classes; otherwise the labels are levels.

    They are classes if an entry is a vector by level, or if some are known classes, and none is a known level.
    """
    labelled = read_labelled(argument, given) or {}
    if any(isinstance(e, list | tuple) or is_labelled(e) or np.asarray(e).ndim for e in labelled.values()):
        return True
    is_class, is_level = (known.index(labelled) >= 0 for known in (classes, Levels(tuple(levels))))
    return bool(is_class.any() and not is_level.any())


def named_levels(argument: str, given: object, classes: Levels, levels: Iterable[Hashable] = ()) -> list[Hashable]:
    """Return the labels by which a vector for one column declares levels; none for a value without labels.

    Missing values are no levels. The labels 0, 1, … of a default index need not be meant as levels, and declare none.
    """
    given = by_rows(argument, given)
    labelled = read_labelled(argument, given)
    if labelled is None or _has_default_index(given):
        return []
    if names_classes(argument, given, classes, levels):
        nested = (named_levels(argument, entry, Levels(())) for entry in labelled.values())
        return list(dict.fromkeys(chain.from_iterable(nested)))
    return [label for label in labelled if not is_missing(label)]


def _index_labels(argument: str, given: pd.Series) -> list[Hashable]:
    """Return the labels of a Series or DataFrame of pandas; raise ValueError if a label occurs twice."""
    labels: list[Hashable] = given.index.tolist()
    if twice := [label for label, times in Counter(labels).items() if times > 1]:
        raise ValueError(f"{argument} is a {type(given).__name__} whose index names {shown(twice[0])} more than once.")
    return labels


def _has_default_index(given: object) -> TypeGuard[pd.Series]:
    """Return whether a value of pandas has the labels 0, 1, …, which pandas gives where nobody did."""
    return is_pandas(given) and given.index.tolist() == list(range(len(given))) and len(given) > 0


def _to_number(name: str, entry: object) -> float:
    """Return an entry of a labelled vector as a float; raise ValueError unless it is one number."""
    value = to_numbers(name, entry)
    if value.shape != ():
        raise ValueError(f"{name}={shown(entry)} must be one number.")
    return float(value)


def _two_readings(argument: str, given: pd.Series, known: str, what: str) -> ValueError:
    """Return the ValueError for a Series with a default index whose labels are not the classes, columns or levels."""
    return ValueError(
        f"{argument} is a Series with the default index 0 to {len(given) - 1}, and {known}. Read by label, the index "
        f"does not name the {what}. Read by position, the order is not known. Pass a dict, or to_numpy() of the Series."
    )


def _list(labels: Iterable[object]) -> str:
    """Return the first labels as text, in brackets."""
    labels = list(labels)
    return shown(labels[:_MOST_SHOWN]) + (f" and {len(labels) - _MOST_SHOWN} more" if len(labels) > _MOST_SHOWN else "")
