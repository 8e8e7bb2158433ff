"""Reading of tables: missing cells, numbers, levels and labels are the same for all commands, and kept in the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from bayesnb._util.arrays import to_pandas
from bayesnb._util.table_files import MISSING
from bayesnb.cli.document import InputError
from bayesnb.cli.tables import TableFile

# == Marks of missing cells ========================================================================

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
        Marks of `MISSING` that are values in this table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from bayesnb.cli.reading import Marks
    >>> marks = Marks(within={"bmi": frozenset(["0"])})
    >>> [marks.are_missing(name, pa.array(["0.0", "1", "NA"])).to_pylist() for name in ("bmi", "age")]
    [[True, False, True], [False, False, True]]
    """

    everywhere: frozenset[str] = frozenset()
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    values: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Flags of the command line that name the marks."""
        within = [f"--missing-in {mark} {name}" for name, marks in self.within.items() for mark in sorted(marks)]
        flags = {"--missing": self.everywhere, "--not-missing": self.values}
        return " ".join([*(f"{flag} {mark}" for flag, marks in flags.items() for mark in sorted(marks)), *within])

    def numbers(self, column: str) -> set[float]:
        """Return the marks of a column that are numbers."""
        numbers = map(_plain_number, self.everywhere | self.within.get(column, frozenset()))
        return {number for number in numbers if number is not None}

    def are_missing(self, column: str, texts: pa.Array) -> pa.Array:
        """Return whether each text (N,) marks a missing cell of the column; null is no mark."""
        within = self.within.get(column, frozenset())
        values = self.values - within
        marks = (MISSING | self.everywhere | within) - values
        if numbers := self.numbers(column):
            distinct = set(texts.unique().drop_null().to_pylist())
            marks |= {text for text in distinct - values if _plain_number(text) in numbers}
        return compute.is_in(texts, pa.array(marks, pa.string()))


def _plain_number(text: str) -> float | None:
    """Parse a number in the usual spelling, with decimal point or comma; None for 007 (a code) or 1_0."""
    return float(text.replace(",", ".")) if _PLAIN_NUMBER.fullmatch(text) else None


# == Types of columns, and the values of cells =====================================================

CellType = Literal["boolean", "number", "time", "level"]

_PATTERNS: dict[CellType, str] = {
    "boolean": r"^(?i:true|false)$",
    "number": r"^[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|(?i:inf|infinity))$",
    "time": r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[-+]\d\d:?\d\d)?)?$",
}
"""Regular expressions of the texts of each type. The first that fits all cells of a column is its type."""
_WHOLE, _CODE = r"^[-+]?\d{1,18}$", r"^[-+]?0\d"
_DECIMAL_COMMA = r"^([-+]?\d+),(\d+)$"
_ZONE = re.compile(r"(Z|[-+]\d\d:?\d\d)$")
_WORDS = {"boolean": "true or false", "number": "a finite number", "time": "a date", "level": "a text"}
_ADVICE = "Correct the cell, mark it with --missing, or fit with --categorical or --drop for the column"
_LEAVE_OUT = "Name the column in --categorical, to read texts, or in --drop"
_TIMES = pa.timestamp("us"), pa.timestamp("us", "UTC")
_FEW = 100
_FIELDS = ("missing", "missing_in", "not_missing", "types", "remarks")


class _OddCellError(Exception):
    """Error of a cell that does not have the type of its column; the argument is its position."""


@dataclass(frozen=True)
class Reading:
    """Marks of missing cells and types of columns, by which the cells of a table become values.

    Texts lose the blanks around them. A level is a text; a number that is a level is spelled as Arrow does, "1" for
    1.0. Numbers are integers in a batch without fractions.

    Parameters
    ----------
    marks : Marks or None
        Marks of missing cells. None: texts are values as they stand in the table, and only null is missing.
    types : dict {column: type}
        Types of columns: "boolean", "number", "time" (dates and durations) or "level".
    remarks : dict {column: remark}
        Remarks on suspicious columns of the table that was fitted.
    """

    marks: Marks | None = field(default_factory=Marks)
    types: Mapping[str, CellType] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    def with_types(self, types: Mapping[str, CellType]) -> Reading:
        """Return the reading with other types of some columns."""
        return replace(self, types={**self.types, **types})

    def to_dict(self) -> dict[str, object]:
        """Return the reading as dictionaries and lists of texts, which a fitted classifier has as `reading_`."""
        marks = self.marks or Marks()
        within = {name: sorted(marks.within[name]) for name in sorted(marks.within)}
        stated = {"missing": sorted(marks.everywhere), "missing_in": within, "not_missing": sorted(marks.values)}
        return {**stated, "types": dict(self.types), "remarks": dict(self.remarks)}

    @classmethod
    def from_dict(cls, given: Any) -> Self:
        """Return the reading that `to_dict` describes; raise InputError for anything else."""
        try:
            everywhere, within, values, types, remarks = (given[name] for name in _FIELDS)
            marks = Marks(frozenset(everywhere), {name: frozenset(m) for name, m in within.items()}, frozenset(values))
            texts = [*everywhere, *values, *within, *chain(*within.values()), *types, *remarks, *remarks.values()]
            if all(isinstance(text, str) for text in texts) and {*types.values()} <= {*get_args(CellType)}:
                return cls(marks, types, remarks)
        except (AttributeError, KeyError, TypeError):
            pass
        raise InputError("--model: reading_, the reading of the fitted table, is damaged. Fit the model again.")

    def frame(self, batch: pa.RecordBatch, table: TableFile, rows: np.ndarray) -> pd.DataFrame:
        """Return the values of a batch of a table as a DataFrame, whose index is the numbers `rows` (N,) of its rows.

        Raises
        ------
        InputError
            If a cell does not have the type of its column; the message names the row and the column.
        """
        columns = []
        for name, cells in zip(batch.schema.names, batch.columns, strict=True):
            try:
                columns.append(self.read(name, cells, table))
            except _OddCellError as error:
                (position,) = error.args
                place = f"{table.path.name}, row {rows[position] + 2}, column {name!r}"
                problem = f"{cells[position].as_py()!r} is not {_WORDS[self.types[name]]}"
                raise InputError(f"{place}: {problem}. {_ADVICE}.") from None
        frame = to_pandas(pa.record_batch(columns, batch.schema.names), "table")
        frame.index = pd.Index(rows)
        return frame

    def read(self, name: str, cells: pa.Array, table: TableFile) -> pa.Array:
        """Return the values of cells of a column: Booleans, numbers, times or texts.

        Raises
        ------
        _OddCellError
            If a cell is not of the type of the column, or is infinite.
        """
        kind = self.types[name]
        texts = as_texts(cells)
        if texts is None and kind == "level":
            texts = _spell(cells)
        if texts is not None:
            values = _parse(self.present(name, texts, table), kind)
        elif (values := _convert(cells, kind)) is None:
            raise _type_error(table, name, cells.type, _WORDS[kind])
        elif self.marks is not None and kind == "number" and (marks := self.marks.numbers(name)):
            is_mark = compute.is_in(values.cast(pa.float64(), safe=False), pa.array(marks, pa.float64()))
            values = compute.if_else(is_mark, pa.scalar(None, values.type), values)
        if kind == "number" and (odd := compute.index(compute.is_inf(values), True).as_py()) >= 0:
            raise _OddCellError(odd)
        return values

    def present(self, name: str, texts: pa.Array, table: TableFile) -> pa.Array:
        """Return the texts of a column without blanks around them, numbers with decimal points, null where missing."""
        if self.marks is None:
            return texts
        texts = compute.utf8_trim_whitespace(texts)
        texts = compute.if_else(self.marks.are_missing(name, texts), pa.scalar(None, pa.string()), texts)
        has_commas = table.delimiter not in ("", ",") and self.types.get(name) != "level"
        return compute.replace_substring_regex(texts, _DECIMAL_COMMA, r"\1.\2") if has_commas else texts


def _type_error(table: TableFile, name: str, stored: pa.DataType, wanted: str) -> InputError:
    """Return the error of a column of Parquet whose cells are none of the `wanted`."""
    place = f"{table.path.name}, column {name!r}"
    return InputError(f"{place}: a cell of type {stored} is not {wanted}. {_LEAVE_OUT}.")


def as_texts(cells: pa.Array) -> pa.Array | None:
    """Return an array of texts, or of a dictionary of texts, as pa.string(); None for an array of other values."""
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return cells.cast(pa.string()) if is_text else None


def _spell(cells: pa.Array) -> pa.Array | None:
    """Return values as texts, such as "1" for 1.0; None for values that have no spelling."""
    cells = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
    try:
        return (cells.cast(pa.float64(), safe=False) if pa.types.is_decimal(cells.type) else cells).cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _convert(cells: pa.Array, kind: CellType) -> pa.Array | None:
    """Return values that are no texts as numbers, Booleans or times; None if they are of another type."""
    if kind != "number" and not pa.types.is_null(cells.type):
        return cells if infer_type(cells.type) == kind else None
    try:
        if pa.types.is_integer(cells.type):
            with suppress(pa.ArrowInvalid):  # beyond 2^63
                return cells.cast(pa.int64())
        return cells.cast(pa.float64(), safe=False)
    except pa.ArrowNotImplementedError:
        return None


def infer_type(kind: pa.DataType) -> CellType | None:
    """Return the type of a column whose file gives its cells an Arrow type; None if these are no numbers nor texts.

    Dictionaries are levels, whatever their values.
    """
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return "time"
    is_level = pa.types.is_null(kind) or pa.types.is_dictionary(kind) or as_texts(pa.nulls(0, kind)) is not None
    return "level" if is_level else None


def _parse(texts: pa.Array, kind: CellType) -> pa.Array:
    """Return the values of texts; raise _OddCellError for the first one that is not of a type."""
    if kind == "level":
        return texts
    if (odd := _find_odd(texts, _PATTERNS[kind])) >= 0:
        raise _OddCellError(odd)
    if kind == "boolean":
        return compute.equal(compute.utf8_lower(texts), "true")
    if kind == "time":
        return _parse_times(texts)
    are_whole = all(_find_odd(part, _WHOLE) < 0 for part in (texts[:_FEW], texts))
    return compute.utf8_ltrim(texts, "+").cast(pa.int64()) if are_whole else texts.cast(pa.float64())


def _find_odd(texts: pa.Array, pattern: str) -> int:
    """Return the position of the first text that a regular expression does not match, -1 if it matches all."""
    return int(compute.index(compute.match_substring_regex(texts, pattern), False).as_py())


def _parse_times(texts: pa.Array) -> pa.Array:
    """Return times, in UTC if the first one has a time zone; raise _OddCellError for the first that does not fit."""
    for target in _TIMES:
        with suppress(pa.ArrowInvalid):
            return texts.cast(target)
    (has_zone,) = {bool(_ZONE.search(text)) for text in texts.drop_null()[:1].to_pylist()}
    for position, text in enumerate(texts):
        try:
            text.cast(_TIMES[has_zone])
        except pa.ArrowInvalid:
            raise _OddCellError(position) from None
    raise AssertionError("each time can be converted, but not all")


def have_form(texts: pa.Array, kind: CellType) -> bool:
    """Return whether all texts, of which null ones do not matter, can be read as values of a type."""
    try:
        return _find_odd(texts, _PATTERNS[kind]) < 0 and (kind != "time" or _parse_times(texts) is not None)
    except _OddCellError:
        return False


def read_frames(
    table: TableFile, reading: Reading, columns: Sequence[str], total: int | None = None
) -> Iterator[pd.DataFrame]:
    """Yield the values of columns of a table, of `total` rows if known; the index is the numbers of the rows."""
    n = 0
    for batch in table.batches(columns, total):
        yield reading.frame(batch, table, np.arange(n, n + batch.num_rows))
        n += batch.num_rows


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    return re.fullmatch(_PATTERNS["number"], text) is not None


# == One pass over a table: types of columns, counts of labels, and a random sample of the rows ====

MOST_CLASSES = 1000
_SEED = 0x9E3779B97F4A7C15


class Reservoir:
    """Random sample of at most `size` rows of batches, all equally probable: those with the smallest random keys."""

    def __init__(self, size: float) -> None:
        # Simulated rows are often drawn by the seed 0, from which keys would not be independent.
        self._size, self._rng, self._largest, self._n_rows = size, np.random.default_rng(_SEED), 1.0, 0
        self._kept: list[tuple[pa.Table, np.ndarray, np.ndarray]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Draw from further rows."""
        key = self._rng.random(batch.num_rows)
        (kept,) = np.nonzero(key <= self._largest)
        self._kept.append((pa.table(batch).take(kept), self._n_rows + kept, key[kept]))
        self._n_rows += batch.num_rows
        if sum(len(key) for *_, key in self._kept) > 2 * self._size:
            self.sample()

    def sample(self) -> tuple[pa.RecordBatch, np.ndarray]:
        """Return the sample of the rows so far, in their order, and their numbers from 0 on."""
        tables, numbers, keys = zip(*self._kept, strict=True)
        rows, number, key = pa.concat_tables(tables), np.concatenate(numbers), np.concatenate(keys)
        if len(key) > self._size:
            keep = np.sort(np.argpartition(key, int(self._size) - 1)[: int(self._size)])
            rows, number, key = rows.take(keep), number[keep], key[keep]
            self._largest = key.max()
        self._kept = [(rows, number, key)]
        return rows.combine_chunks().to_batches()[0], number


@dataclass(frozen=True, eq=False)
class Scan:
    """Result of one pass over a table.

    Parameters
    ----------
    table : TableFile
    reading : Reading
        Types of all columns, and marks of missing cells.
    labels : Counter
        Number of rows of each label, in order of appearance; not all labels if these are more than 1,000.
    unlabelled : int
        Number of rows without a label.
    first_unlabelled : (int, object) or None
        Number of the first row without a label, from 0 on, and the cell in place of the label.
    n_rows : int
        Number of rows.
    rows : (n,) int array
        Numbers of the rows of a random sample, from 0 on.
    cells : pa.RecordBatch
        Cells of the sample, as they stand in the table.
    codes : list of str
        Columns of numbers that are levels, as some of their cells begin with a zero.
    """

    table: TableFile
    reading: Reading
    labels: Counter[str]
    unlabelled: int
    first_unlabelled: tuple[int, object] | None
    n_rows: int
    rows: np.ndarray
    cells: pa.RecordBatch
    codes: Sequence[str]

    def sample(self, reading: Reading) -> pd.DataFrame:
        """Return the values of the sample in columns that have a type; the index is the numbers of the rows."""
        names = [name for name in self.cells.schema.names if name in reading.types]
        return reading.frame(self.cells.select(names), self.table, self.rows)


def scan(table: TableFile, columns: Sequence[str], target: str, reading: Reading, size: float) -> Scan:
    """Read a table once: find the types of columns, count the labels, and draw a sample.

    Parameters
    ----------
    table : TableFile
    columns : sequence of str
        Columns of features.
    target : str
        Column of labels.
    reading : Reading
        Marks of missing cells, and types of columns that are known. Other types are found: in a CSV file by all cells,
        in a Parquet file by the type of the column.
    size : number
        Largest number of rows of the sample.

    Raises
    ------
    InputError
        If the table cannot be read, or a column has neither numbers nor texts.
    """
    possible: dict[str, list[CellType]] = {name: [*_PATTERNS] for name in columns if name not in reading.types}
    has_cells, has_zeros = set[str](), set[str]()
    reading = reading.with_types({target: "level"})
    reservoir, labels, first, unlabelled, n_rows = Reservoir(size), Counter[str](), None, 0, 0
    for batch in table.batches([*columns, target]):
        for name, kinds in possible.items() if table.delimiter else ():
            texts = reading.present(name, batch.column(name), table).drop_null()
            possible[name] = [kind for kind in kinds if have_form(texts, kind)]
            if len(texts):
                has_cells.add(name)
            if "number" in possible[name] and compute.any(compute.match_substring_regex(texts, _CODE)).as_py():
                has_zeros.add(name)
        cells = batch.column(target)
        texts = reading.read(target, cells, table)
        if texts.null_count and first is None:
            row = compute.index(texts.is_null(), True).as_py()
            first = n_rows + row, cells[row].as_py()
        unlabelled += texts.null_count
        if len(labels) <= MOST_CLASSES:
            labels.update(texts.drop_null().to_pylist())
        reservoir.add(batch)
        n_rows += batch.num_rows
    codes = [name for name, kinds in possible.items() if name in has_zeros and "number" in kinds]
    for name, kinds in possible.items():
        is_typed = kinds and name in has_cells and name not in codes
        found = (kinds[0] if is_typed else "level") if table.delimiter else infer_type(batch.column(name).type)
        if found is None:
            raise _type_error(table, name, batch.column(name).type, "a number or a text")
        reading = reading.with_types({name: found})
    cells, rows = reservoir.sample()
    return Scan(table, reading, labels, unlabelled, first, n_rows, rows, cells, codes)
