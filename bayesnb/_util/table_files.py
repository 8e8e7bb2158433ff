"""Tables in CSV and Parquet files, read in batches of Arrow and in constant memory."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bayesnb._util.warnings import warn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import dataset, parquet

# == Rows of a CSV file, parsed by Arrow in pieces that end where a row ends =======================

MISSING = frozenset(["", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None"]) | {
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")
}
"""Cells of a text file that are missing by default: the strings that pandas reads as missing."""

_GZIP, _BOM = b"\x1f\x8b", b"\xef\xbb\xbf"
_CSV_PIECE = 2**20
"""Bytes of a CSV file that are parsed at once."""
_LONGEST_ROW = 2**24
"""Most bytes of a row."""
_MOST_LINES = 5
"""Most lines of a cell without a warning."""
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (.*?): invalid value '(.*)'", re.S)
_NO_TEXT = re.compile(r"In CSV column #(\d+): Row #(\d+): .*invalid UTF8", re.S)


@contextmanager
def unpacked(file: BinaryIO, where: str) -> Iterator[BinaryIO]:
    """Yield an open file from its beginning, decompressed if its content is gzipped, and close the file at the end.

    Raises
    ------
    ValueError
        If the compressed content is damaged; the message begins with `where`.
    """
    with file:
        file.seek(0)
        is_packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        try:
            yield gzip.GzipFile(fileobj=file) if is_packed else file  # type: ignore[misc]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{where} cannot be read: {str(error).rstrip('.')}. Copy the file again.") from None


def read_csv(
    file: BinaryIO, where: str, names: Sequence[str] | None, delimiter: str, size: int | None = None, **options: object
) -> Iterator[pa.Table]:
    """Yield the rows of an open CSV file in tables of Arrow, without threads, which could outlive an error.

    Parameters
    ----------
    file : binary file
        File in UTF-8, whose first row names the columns.
    where : str
        Name of the file, for messages.
    names : sequence of str, optional
        Names of the columns, in place of those in the first row.
    delimiter : str
        Character between the cells of a row.
    size : int, optional
        Number of bytes that are parsed at once; default: 1 MiB.
    **options
        Arguments of `pyarrow.csv.ConvertOptions`.

    Raises
    ------
    ValueError
        If a row has more or fewer cells than the first, a cell is not of the type of its column, a quote is not closed,
        or the text has NUL characters or is not UTF-8. The message names the row; row 1 is that of the names.

    Warns
    -----
    UserWarning
        If a cell has more than five lines, which may be the work of a stray quote. Only the first such cell is named.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    n_before, has_long_cell = 0, False
    for text in _split_rows(file, where, delimiter, size or _CSV_PIECE):
        if names is None:
            lines = io.StringIO(text.decode("utf-8", "surrogateescape"), newline="")
            names = next(csv.reader(lines, delimiter=delimiter), [])
        reading = arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1)
        reading.skip_rows_after_names = int(n_before == 0)
        parsing = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        try:
            rows = arrow_csv.read_csv(pa.py_buffer(text), reading, parsing, arrow_csv.ConvertOptions(**options))
        except pa.ArrowInvalid as error:
            raise ValueError(_describe_error(str(error), where, n_before, names)) from None
        n_before = max(n_before, 1)
        if not has_long_cell and text.count(b"\n") > len(rows) + _MOST_LINES:
            has_long_cell = _warn_of_long_cell(rows, where, n_before)
        n_before += len(rows)
        yield rows


def _split_rows(file: BinaryIO, where: str, delimiter: str, size: int) -> Iterator[bytes]:
    """Yield the content of a CSV file in pieces of about `size` bytes, each of which ends where a row ends."""
    text = file.read(size).removeprefix(_BOM)
    n_lines, is_last = len(text) - len(text := text.lstrip(b"\r\n")), False
    while text:
        end, quote = _find_end_of_rows(text, delimiter)
        problem, position = "", end
        if (nul := text.find(b"\0")) >= 0:
            problem, position = "the text has a NUL character. Save the table as CSV in UTF-8", nul
        elif quote is not None and (is_last or len(text) > _LONGEST_ROW):
            problem, position = "the quote that opens here is not closed. Close or remove the quote", quote
        elif len(text) - end > _LONGEST_ROW:
            problem = f"the row has more than {_LONGEST_ROW:,} bytes. Check that the file is a table"
        if problem:
            line = n_lines + text.count(b"\n", 0, position) + 1
            raise ValueError(f"{where}, line {line}: {problem}.")
        end = len(text) if is_last else end
        if end:
            yield text[:end]
        n_lines += text.count(b"\n", 0, end)
        block = file.read(size)
        text, is_last = text[end:] + block, not block


def _find_end_of_rows(text: bytes, delimiter: str) -> tuple[int, int | None]:
    """Return the position behind the last row that ends in a text, and that of the quote that is open at its end.

    The text begins with a row; None if no quote is open. A quote opens a cell only at the beginning of the cell. In the
    cell an even number of quotes stands for half as many, and an odd number closes the cell.
    """
    import numpy as np

    characters = np.frombuffer(text, np.uint8)
    (quote,) = np.nonzero(characters == ord('"'))
    (first,) = np.nonzero(np.diff(quote, prepend=-2) > 1)
    start, length = quote[first], np.diff(first, append=len(quote))
    begins_cell = np.isin(characters[start - 1], np.frombuffer(f"{delimiter}\r\n".encode(), np.uint8)) | (start == 0)
    # A run of an odd number of quotes opens or closes a cell where a cell may begin, and elsewhere can only close one.
    is_odd = length % 2 == 1
    changes = np.cumsum(is_odd & begins_cell)
    is_open = (changes - np.maximum.accumulate(np.where(is_odd & ~begins_cell, changes, 0))) % 2 == 1
    was_open = np.append(False, is_open)
    open_quote = int(start[is_open & ~was_open[:-1]][-1]) if was_open[-1] else None
    outside = np.flatnonzero(~was_open)[::-1]
    begins, ends = np.append(0, start + length)[outside].tolist(), np.append(start, len(text))[outside].tolist()
    # A carriage return that is the last character may be the first half of a line end.
    for line_end, most in ((b"\n", len(text)), (b"\r", len(text) - 1)):
        for begin, end in zip(begins, ends, strict=True):
            if (position := text.rfind(line_end, begin, min(end, most))) >= 0:
                return position + 1, open_quote
    return 0, open_quote


def _describe_error(message: str, where: str, n_before: int, names: Sequence[str]) -> str:
    """Return the text of an error in a piece of a CSV file, before which there are `n_before` rows.

    `message` is that of Arrow.
    """
    if found := _RAGGED.search(message):
        row, expected, cells = map(int, found.groups())
        return f"{where}, row {n_before + row}: {cells} cells, but the first line has {expected}. Correct the row."
    if found := _NO_TEXT.search(message):
        place = f"{where}, row {n_before + int(found[2])}, column {names[int(found[1])]!r}"
        return f"{place}: the text is not UTF-8. Save the table as CSV in UTF-8."
    if found := _CONVERSION.search(message):
        place = f"{where}, row {n_before + int(found[2])}, column {names[int(found[1])]!r}"
        return f"{place}: {found[4]!r} is no {found[3]}, the type of the column. Give the type of the column in types=."
    return f"{where}: {message}"


def _warn_of_long_cell(rows: pa.Table, where: str, n_before: int) -> bool:
    """Warn of the first cell of more than five lines in a table of Arrow; return whether there is one."""
    import numpy as np
    from pyarrow import compute, string

    for name, column in zip(rows.column_names, rows.columns, strict=True):
        n_lines = compute.count_substring(column, "\n").to_numpy() + 1 if column.type == string() else np.zeros(1)
        if (at := int(np.argmax(n_lines > _MOST_LINES))) or n_lines[0] > _MOST_LINES:
            warn(
                f"{where}, row {n_before + 1 + at}: the cell of column {name!r} has {n_lines[at]:.0f} lines. If a "
                "quote is missing or stands alone, the cell swallows rows; correct the quote."
            )
            return True
    return False


# == Batches of CSV and Parquet files ==============================================================

_BATCH = 65_536
_CSV_BLOCK = 2**23
"""Bytes of a CSV file from which the types of its columns are inferred."""


def read_batches(
    source: Any,
    columns: Sequence[str] | None,
    others: Sequence[str] = (),
    format: str | None = None,
    types: Mapping[str, object] | None = None,
    missing: Iterable[str] = MISSING,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    decimal: str = ".",
    batch_rows: int = _BATCH,
    dictionaries: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield record batches of Arrow with the features `columns`, and then the columns `others`.

    The arguments are those of `bayesnb.streaming.read_table`; the default of `columns` is all columns but `others`.
    """
    import pyarrow as pa
    from pyarrow import dataset, parquet

    first = source[0] if isinstance(source, list | tuple) else source
    kind = format or Path(os.fspath(first).lower().removesuffix(".gz")).suffix.lstrip(".") or "parquet"
    if kind not in ("csv", "parquet"):
        raise ValueError(f"format={kind!r} of {os.fspath(first)!r} is unknown; pass format='csv' or 'parquet'.")
    cells = {"null_values": sorted(missing), "strings_can_be_null": True, "decimal_point": decimal}

    def read_schema(file: dataset.Fragment) -> pa.Schema:
        """Return names and types of the columns of a file, for CSV those that Arrow infers from the first 8 MiB."""
        if kind == "parquet":
            return file.physical_schema
        with unpacked(file.filesystem.open_input_file(file.path), repr(file.path)) as stream:
            rows = next(read_csv(stream, repr(file.path), names, delimiter, _CSV_BLOCK, **cells), None)
        if rows is None:
            raise ValueError(f"{file.path!r} is empty. The first row must name the columns.")
        return rows.schema

    # `to_batches` of the data set would read up to 1 GiB ahead of a slow consumer.
    try:
        files = list(dataset.dataset(source, schema=pa.schema([]), format=kind).get_fragments())
        if not files:
            raise ValueError(f"{os.fspath(first)!r} has no files. Pass a file, or a folder of files.")
        schemas = list(map(read_schema, files))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{os.fspath(first)!r}: {error}") from None
    fields = {field.name: field.type for field in schemas[0]}
    chosen = [name for name in fields if name not in others] if columns is None else list(columns)
    wanted = [*chosen, *others]
    _require_columns([file.path for file in files], schemas, wanted, columns is None, os.fspath(first))
    if undecoded := [name for name in wanted if kind == "csv" and fields[name] == pa.binary()]:
        raise ValueError(f"{os.fspath(first)!r}, column {undecoded[0]!r}: the text is not UTF-8. Save it in UTF-8.")
    of_text = (pa.string(), pa.large_string()) if dictionaries and kind == "parquet" else ()
    texts = [name for name in chosen if fields[name] in of_text]
    fields |= {name: pa.dictionary(pa.int32(), fields[name]) for name in texts}
    fields |= types or {}
    schema = pa.schema([(name, fields[name]) for name in wanted])
    for file in files:
        content, where = file.filesystem.open_input_file(file.path), repr(file.path)
        if kind == "csv":
            conversion = {"include_columns": wanted, "column_types": schema, **cells}
            with unpacked(content, where) as stream:
                yield from cut_batches(read_csv(stream, where, names, delimiter, **conversion), batch_rows)
        else:
            with parquet.ParquetFile(content, read_dictionary=texts) as groups:
                yield from cut_batches(_read_groups(groups, schema, where, batch_rows), batch_rows)


def _read_groups(content: parquet.ParquetFile, schema: pa.Schema, where: str, batch_rows: int) -> Iterator[pa.Table]:
    """Yield the rows of an open Parquet file in tables, whose columns have the names and types of a schema."""
    import pyarrow as pa

    # One call for all groups of rows would keep the memory of those that were read.
    for group in range(content.num_row_groups):
        name = ""
        try:
            for batch in content.iter_batches(batch_rows, [group], schema.names):
                columns = []
                for name, kind in zip(schema.names, schema.types, strict=True):
                    columns.append(batch.column(name).cast(kind))
                yield pa.table(columns, schema=schema)
                name = ""
        except (pa.ArrowException, OSError) as error:
            name = name or _find_damaged_column(content, group, schema.names)
            raise ValueError(f"{where}, column {name!r}: {error}") from None


def _find_damaged_column(content: parquet.ParquetFile, group: int, names: Sequence[str]) -> str:
    """Return the name of the first column of a group of rows of a Parquet file that cannot be read."""
    for name in names:
        try:
            content.read_row_group(group, [name])
        except OSError:
            return name
    return names[0]


def cut_batches(tables: Iterable[pa.Table], n: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of tables of Arrow in record batches of at most n rows, while a thread reads the next tables.

    The thread has ended when the iterator ends, also by an error.
    """
    with ThreadPoolExecutor(1) as pool:
        joined = _join_tables(tables, n)
        following = pool.submit(next, joined, None)
        while (table := following.result()) is not None:
            following = pool.submit(next, joined, None)
            for start in range(0, len(table), n):
                yield from table.slice(start, n).to_batches()


def _join_tables(tables: Iterable[pa.Table], n: int) -> Iterator[pa.Table]:
    """Yield the rows of tables of Arrow in tables of one chunk and at least n rows, the last one excepted."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for table in chain(tables, [None]):
        waiting += [] if table is None else [table]
        if waiting and (table is None or sum(map(len, waiting)) >= n):
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []


def _require_columns(
    paths: list[str], schemas: list[pa.Schema], wanted: list[str], all_columns: bool, source: str
) -> None:
    """Raise ValueError if a column is missing in a file, whose schema of Arrow is given, or is requested twice.

    With `all_columns` no later file may have a column that the first has not.
    """
    first, named = schemas[0], set(schemas[0].names)
    if absent := [name for name in wanted if name not in named]:
        raise ValueError(f"{source!r} has no column {absent[0]!r}; its columns are {first.names[:20]}.")
    if repeated := [name for name in wanted if first.names.count(name) > 1]:
        raise ValueError(f"{source!r} has several columns {repeated[0]!r}. Rename all but one of them.")
    if twice := [name for name, times in Counter(wanted).items() if times > 1]:
        raise ValueError(f"column {twice[0]!r} is asked for twice: features, target and weight are {wanted!r}.")
    for path, schema in zip(paths, schemas, strict=True):
        if absent := [name for name in wanted if name not in schema.names]:
            lacks = f"{path!r} has no column {absent[0]!r}, which the first file has"
            raise ValueError(f"{lacks}. Name others in columns=.")
        if all_columns and (more := [name for name in schema.names if name not in named]):
            raise ValueError(f"{path!r} has a column {more[0]!r} beside those of the first file. Pass columns=.")
