"""Tables in CSV and Parquet files, read in pieces."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import sys
import zlib
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from bayesnb._util.warnings import require
from bayesnb.cli.document import InputError, enumerate_names, printable

# == CSV files: cells as text, some rows at a time, need of memory, and refusals of what is no table

_GZIP = b"\x1f\x8b"
_DECIMAL_COMMA = r"^([-+]?\d+),(\d+)$"
_NO_TEXT = re.compile("[\0\udc80-\udcff]")  # Bytes that could not be decoded become the latter characters.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""First characters of texts that spreadsheets compute."""
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_SEPARATORS = "Columns of a CSV file are separated by commas, semicolons or tabs. Quote a name that contains a comma: "
_SEPARATORS += "--drop '\"width, cm\",height'."
_FIRST_ROWS = 1000
_MOST_CELLS = 500_000
_MOST_COLUMNS = 10_000
_LONGEST_LINE = 2**24  # characters
_ROWS = 20_000
# Peak memory of an analysis that holds the whole table, in bytes a byte of the file. Measured: 10 to 45, most where
# cells are short.
_BYTES_A_BYTE = 45
_MEMORY_FILES = {"/proc/meminfo": (r"MemAvailable:\s+(\d+)", 1024), "/sys/fs/cgroup/memory.max": (r"^(\d+)", 1)}


def require_readable(*paths: Path | None) -> None:
    """Raise InputError if a file cannot be opened; do not open a pipe, which can be read only once."""
    for path in filter(None, paths):
        with suppress(OSError):  # `_opened` says what is wrong with a path such as one that is too long.
            if path.is_fifo():
                continue
        with _opened(path):
            pass


def require_columns(path: Path, columns: Sequence[str], named: Iterable[str]) -> None:
    """Raise InputError that names the columns among `named` which a file with `columns` does not have."""
    if absent := [repr(name) for name in named if name not in columns]:
        there = f"Its columns are {enumerate_names(columns, 12)}"
        raise InputError(f"{path.name} has no column {enumerate_names(absent, 8)}. {there}. {_SEPARATORS}")


def read_cells(path: Path) -> Iterator[Any]:
    """Yield the rows of a CSV file as DataFrames: stripped text, with decimal points; the index counts rows from 0.

    A piece has at most 20,000 rows and 500,000 cells.
    Commas, semicolons or tabs separate cells; beside semicolons and tabs 1,5 is read as 1.5. Gzip is recognized by the
    content of the file, whatever its name.

    Raises
    ------
    InputError
        If the file is missing, empty, damaged, not UTF-8, ragged, without rows, has more than 10,000 columns, or a NUL
        character.
    """
    import pandas as pd

    from bayesnb._util.terminal import progress

    with _opened_table(path) as (names, delimiter, _, records), progress("reading", None, "rows") as advance:
        n = 0
        while rows := list(islice(records, max(1, min(_ROWS, _MOST_CELLS // len(names))))):
            for row, cells in enumerate(rows, n + 2):
                if len(cells) != len(names):
                    many = f"{len(cells)} cells, but the first line has {len(names)}"
                    raise InputError(f"{path.name}, row {row}: {many}. Correct the row.")
                _require_text(f"{path.name}, row {row}", cells)
            frame = pd.DataFrame(rows, pd.RangeIndex(n, n + len(rows)), names, dtype=object)
            frame = frame.apply(lambda column: column.str.strip())
            if delimiter != ",":
                frame = frame.apply(lambda column: column.str.replace(_DECIMAL_COMMA, r"\1.\2", regex=True))
            n += len(rows)
            yield frame
            advance(len(rows))


def read_header(path: Path) -> tuple[list[str], str, str]:
    """Return the names of the columns of a CSV file, the character between cells, and the one before decimals.

    Decimal commas are recognized beside semicolons and tabs, in the first 1,000 rows.

    Raises
    ------
    InputError
        If the file is missing, empty, not UTF-8 or without rows, or has gzipped content and no name in .gz, or two
        columns of one name.
    """
    with _opened_table(path) as (names, delimiter, is_packed, records):
        if is_packed != (path.suffix.lower() == ".gz"):
            raise InputError(f"{path}: the name of a gzipped file, and of no other, must end in .gz. Rename the file.")
        rows = list(islice(records, _FIRST_ROWS))
    has_commas = delimiter != "," and any(re.match(_DECIMAL_COMMA, cell.strip()) for row in rows for cell in row)
    return names, delimiter, "," if has_commas else "."


@contextmanager
def _opened_table(path: Path) -> Iterator[tuple[list[str], str, bool, Iterator[list[str]]]]:
    """Open a CSV file; yield its columns, the character between cells, whether it is gzipped, and the other rows."""
    with _opened(path) as content:
        lines = io.TextIOWrapper(content, "utf-8-sig", "surrogateescape", newline="")
        first = lines.readline(_LONGEST_LINE)
        delimiter = max(",;\t", key=first.count)
        reader = csv.reader(chain([first], lines), delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            names = _column_names(path.name, next(reader) if first.strip() else [])
            rows = filter(None, reader)
            if not (row := next(rows, None)):
                raise InputError(f"{path.name} has a header but no rows. Add rows of data.")
            yield names, delimiter, isinstance(content, gzip.GzipFile), chain([row], rows)
        except csv.Error as error:
            where = f"{path.name}, line {reader.line_num}"
            raise InputError(f"{where}: {error}. Check the quotes up to this line.") from None


def quote_formula(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would compute; return all other cells unchanged.

    Such a text begins with =, +, -, @, a tab or a line end, and is not a number as spreadsheets write it; -inf is none.

    References
    ----------
    OWASP, *CSV injection*.
    """
    is_formula = isinstance(cell, str) and cell.startswith(FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file for reading bytes, unpacked if gzipped; raise InputError in place of errors of the file."""
    try:
        if path.is_char_device() or path.is_block_device():
            raise InputError(f"{path} is a device. Use a file or a pipe.")
        with path.open("rb") as file:
            packed = file.peek(len(_GZIP)).startswith(_GZIP)
            yield gzip.GzipFile(fileobj=file) if packed else file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read: {reason.rstrip('.')}.") from None


def title(path: Path) -> str:
    """Return the name of a file without its suffixes, with control characters escaped."""
    return printable(Path(path.name.removesuffix(".gz")).stem)


def larger_than_memory(path: Path) -> bool:
    """Return whether an analysis that holds the whole file would need more memory than is available.

    The need is taken for 45 times the size of the unpacked file. False for a pipe, which can be read only once.
    """
    if not os.path.isfile(path):
        return False  # A pipe can be read only once.
    with _opened(path) as content:
        content.seek(int(min(available_memory() / _BYTES_A_BYTE, sys.maxsize)))
        return bool(content.read(1))


def available_memory() -> float:
    """Return the bytes that a process may take: available memory, or a container's limit if less; inf if unknown."""
    limits = [math.inf]
    for name, (pattern, unit) in _MEMORY_FILES.items():
        with suppress(OSError):
            match = re.search(pattern, Path(name).read_text(encoding="ascii"))
            limits += [int(match[1]) * unit] if match else []
    return min(limits)


def _column_names(file: str, cells: Sequence[str]) -> list[str]:
    """Return names from the first line's cells, blank ones numbered; raise InputError if a name stands twice."""
    if not cells:
        raise InputError(f"{file} is empty, or its first line is blank. The first line must name the columns.")
    _require_text(f"{file}, the first line", cells)
    if len(cells) > _MOST_COLUMNS:
        many = f"{len(cells):,} columns, and this command takes at most {_MOST_COLUMNS:,}"
        raise InputError(f"{file} has {many}. Keep fewer columns, or fit a bayesnb classifier in Python.")
    names = [cell.strip() or f"column {i}" for i, cell in enumerate(cells, 1)]
    for name, n in Counter(names).items():
        if n > 1:
            raise InputError(f"{file}: the first line names the column {name!r} twice. Rename one of the two.")
    return names


def _require_text(place: str, cells: Sequence[str]) -> None:
    """Raise InputError that names `place` if a cell has a NUL character, or bytes that are not UTF-8."""
    if _NO_TEXT.search("".join(cells)):
        raise InputError(f"{place}: the text has a NUL character or is not UTF-8. Save the table as CSV in UTF-8.")


# == CSV and Parquet files of any size, read in batches of rows for the commands `fit`, `score` and `drift`

_BATCH_ROWS = 2**14
_ERRORS = (ValueError, TypeError, NotImplementedError, OSError, ImportError)
_CONVERSION = re.compile(r"column (['\"])(.*)\1: Row #(\d+): CSV conversion error .*?: invalid value '(.*)' Give", re.S)
_ADVICE = "Correct the cell, mark it with --missing, or fit with --numeric, --categorical or --drop for the column."


@dataclass(frozen=True)
class TableFile:
    """CSV file, or Parquet file or folder, whose columns have names.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        Names of the columns.
    format : {"csv", "parquet"}
    missing, not_missing : sequence of str
        Marks of missing cells of a CSV file besides the usual ones, and usual ones that are values in this file.
    form : dict
        Arguments of `bayesnb.streaming.read_batches` that say how a CSV file is written.
    """

    path: Path
    columns: Sequence[str]
    format: str
    missing: Sequence[str] = ()
    not_missing: Sequence[str] = ()
    form: Mapping[str, Any] = field(default_factory=dict)

    def batches(self, columns: Sequence[str], types: Mapping[str, str], total: int | None = None) -> Iterator[Any]:
        """Yield record batches of Arrow with these columns, without blanks around the texts of a CSV file.

        A progress bar shows the number of rows.

        Parameters
        ----------
        columns : sequence of str
            Names of columns.
        types : dict
            Types of columns by name; the file determines those of all others.
        total : int or None
            Number of rows, if it is known.

        Raises
        ------
        InputError
            If the file cannot be read or has no rows, or a cell does not have the type of its column.
        """
        from bayesnb._util.terminal import progress
        from bayesnb.streaming import MISSING, read_batches

        marks = MISSING.difference(self.not_missing).union(self.missing)
        marks |= {f" {mark}" for mark in marks}
        used = {name: kind for name, kind in types.items() if name in columns}
        options: dict[str, Any] = {"batch_rows": _BATCH_ROWS, "dictionaries": False, **self.form}
        batch = None
        try:
            with progress(self.path.name, total, "rows") as advance:
                for batch in read_batches(self.path, columns, (), self.format, used, marks, **options):
                    yield _strip(batch) if self.form else batch
                    advance(batch.num_rows)
        except _ERRORS as error:
            message = str(error)
            if conversion := _CONVERSION.search(message):
                _, column, row, cell = conversion.groups()
                problem = f"{cell!r} is not of the type of the cells before, or of the type in the model"
                message = f"{self.path.name}, row {row}, column {column!r}: {problem}. {_ADVICE}"
            raise InputError(" ".join(message.split())) from None
        if batch is None:
            raise InputError(f"{self.path.name} has no rows. Add rows of data.")


def open_table(args: Namespace, named: Iterable[str], other: Path | None = None) -> TableFile:
    """Return the file of --csv or --parquet, or another file in the same format, which has the columns `named`.

    Raises
    ------
    InputError
        If there is no such file or column, the beginning of a CSV file is no table, or there are marks for a Parquet
        file.
    """
    path = other or args.csv or args.parquet
    if args.csv is not None:
        names, delimiter, decimal = read_header(path)
        form = {"names": names, "delimiter": delimiter, "decimal": decimal}
        table = TableFile(path, names, "csv", args.missing, args.not_missing, form)
    elif args.missing or args.not_missing:
        raise InputError("--missing and --not-missing need --csv: a Parquet file itself marks missing cells.")
    else:
        with blamed_on(f"{path} cannot be read"):
            os.stat(path)
            require("Reading a Parquet file", "files", "pyarrow")
            from pyarrow import dataset

            files = dataset.dataset(path, format="parquet")
            if not files.files:
                raise FileNotFoundError("the folder has no files. Pass a Parquet file, or a folder of these.")
            table = TableFile(path, files.schema.names, "parquet")
    require_columns(path, table.columns, named)
    return table


def _strip(batch: Any) -> Any:
    """Return a record batch of Arrow without blanks around its texts."""
    from pyarrow import compute, record_batch, string

    columns = [compute.utf8_trim_whitespace(c) if c.type == string() else c for c in batch.columns]
    return record_batch(columns, batch.schema)


@contextmanager
def blamed_on(place: str, errors: Any = _ERRORS) -> Iterator[None]:
    """Raise InputError that begins with the place in place of `errors` inside the block."""
    try:
        yield
    except errors as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{place}: {' '.join(reason.split())}") from None
