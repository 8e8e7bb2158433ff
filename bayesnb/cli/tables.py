"""Files of tables: CSV and Parquet, their columns and batches of rows, pipes, and the memory that they need."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import stat
import sys
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bayesnb.cli.document import InputError, enumerate_names, printable

if TYPE_CHECKING:
    import pyarrow as pa

# == Errors in one line, files that are read, and texts that spreadsheets compute ==================

_ERRORS = (ValueError, TypeError, NotImplementedError, OSError, ImportError)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""First characters of texts that spreadsheets compute."""
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


@contextmanager
def blamed_on(place: str, errors: type[Exception] | tuple[type[Exception], ...] = _ERRORS) -> Iterator[None]:
    """Raise InputError that begins with the place, if that is not "", in place of `errors` inside the block."""
    try:
        yield
    except errors as error:
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())
        raise InputError(f"{place}: {reason}" if place else reason) from None


def require_readable(*paths: Path | None) -> None:
    """Raise InputError if a file cannot be opened; a pipe, which can be read only once, is not opened."""
    for path in filter(None, paths):
        with blamed_on(f"{path} cannot be read", OSError):
            if not path.is_fifo():
                path.open("rb").close()


def title(path: Path) -> str:
    """Return the name of a file without its suffixes, with control characters escaped."""
    return printable(Path(path.name.removesuffix(".gz")).stem)


def quote_formula(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would compute; return all other cells unchanged.

    Such a text begins with =, +, -, @, a tab or a line end, and is not a number as spreadsheets write it; -inf is none.

    References
    ----------
    OWASP, *CSV injection*.
    """
    is_formula = isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


# == Tables in files, whose rows are read in batches of Arrow ======================================

_SEPARATORS = "Columns of a CSV file are separated by commas, semicolons or tabs. Quote a name that contains a comma: "
_SEPARATORS += "--drop '\"width, cm\",height'."
_NO_TEXT = re.compile("[\0\udc80-\udcff]")  # Bytes that could not be decoded become the latter characters.
_SEP = re.compile(r"sep=(.)\s*", re.I)
_MOST_COLUMNS = 10_000
_LONGEST_LINE = 2**24  # characters
_BATCH_ROWS, _BATCH_CELLS = 2**14, 2**21
_GZIP, _BLOCK = b"\x1f\x8b", 2**20
# Peak memory of an analysis that holds the whole table, in bytes a byte of a CSV file (measured: 10 to 45, most where
# cells are short), and in bytes a cell of a Parquet file.
_BYTES_A_BYTE, _BYTES_A_CELL = 45, 300
_MEMORY_FILES = {"/proc/meminfo": (r"MemAvailable:\s+(\d+)", 1024), "/sys/fs/cgroup/memory.max": (r"^(\d+)", 1)}


@dataclass(frozen=True, eq=False)
class TableFile:
    """Table in a CSV file, or in a Parquet file or a folder of these.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        Names of the columns.
    files : sequence of Path
        Files that are read.
    delimiter : str
        Character between the cells of a CSV file; "" for Parquet.
    n_cells : int
        Number of cells of a Parquet file, 0 for CSV.
    has_sep : bool
        Whether a line such as "sep=;" precedes the line of names.
    copy : file or None
        Copy of the content of a pipe.
    """

    path: Path
    columns: Sequence[str]
    files: Sequence[Path]
    delimiter: str = ""
    n_cells: int = 0
    has_sep: bool = False
    copy: BinaryIO | None = None

    @property
    def format(self) -> str:
        """Name of the format, as that of the flag: "csv" or "parquet"."""
        return "csv" if self.delimiter else "parquet"

    def batches(self, columns: Sequence[str], total: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield record batches of Arrow with these columns; the cells of a CSV file are texts as they stand there.

        A progress bar shows the number of rows, of which there are `total` if that is known.

        Raises
        ------
        InputError
            If the file cannot be read, is damaged, or has no rows.
        """
        from bayesnb._util.terminal import progress

        n_rows = max(1, min(_BATCH_ROWS, _BATCH_CELLS // max(1, len(columns))))
        n = 0
        with progress(self.path.name, total, "rows") as advance, _refused(self.path):
            for batch in self._read(columns, n_rows):
                yield batch
                n += batch.num_rows
                advance(batch.num_rows)
        if not n:
            raise InputError(f"{self.path.name} has a header but no rows. Add rows of data.")

    def _read(self, columns: Sequence[str], n: int) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most n rows."""
        import pyarrow as pa

        from bayesnb._util.table_files import cut_batches, read_batches, read_csv

        if not self.delimiter:
            yield from read_batches(self.path, columns, format="parquet", batch_rows=n, dictionaries=False)
            return
        types, where = dict.fromkeys(self.columns, pa.string()), self.path.name
        with self.opened() as stream:
            rows = read_csv(stream, where, self.columns, self.delimiter, include_columns=columns, column_types=types)
            yield from cut_batches(rows, n)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Yield the unpacked content of a CSV file from the line of names on."""
        from bayesnb._util.table_files import unpacked

        file = self.path.open("rb") if self.copy is None else os.fdopen(os.dup(self.copy.fileno()), "rb")
        with unpacked(file, self.path.name) as stream:
            if self.has_sep:
                stream.readline()
            yield stream

    def is_larger_than_memory(self) -> bool:
        """Return whether an analysis that holds the whole table would need more memory than is available."""
        most = available_memory()
        if not self.delimiter:
            return self.n_cells * _BYTES_A_CELL > most
        with _refused(self.path), self.opened() as stream:
            stream.seek(int(min(most / _BYTES_A_BYTE, sys.maxsize)))
            return bool(stream.read(1))


def open_table(args: Namespace, named: Iterable[str], other: Path | None = None) -> TableFile:
    """Return the file of --csv or --parquet, or another file in the same format, which has the columns `named`.

    Raises
    ------
    InputError
        If there is no such file or column, or the beginning of a CSV file is no table.
    """
    path = other or args.csv or args.parquet
    table = _open_parquet(path) if args.csv is None else open_csv(path)
    require_columns(table, named)
    return table


def require_columns(table: TableFile, named: Iterable[str]) -> None:
    """Raise InputError that names the columns among `named` which a table does not have."""
    if absent := [repr(name) for name in named if name not in table.columns]:
        there = f"Its columns are {enumerate_names(table.columns, 12)}"
        advice = f" {_SEPARATORS}" if table.delimiter else ""
        raise InputError(f"{table.path.name} has no column {enumerate_names(absent, 8)}. {there}.{advice}")


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Raise InputError in place of the errors of a file, which name the file."""
    with blamed_on(f"{path} cannot be read", OSError), blamed_on("", (ValueError, TypeError, NotImplementedError)):
        yield


def open_csv(path: Path) -> TableFile:
    """Return the table in a CSV file, or in a copy of the content of a pipe; raise InputError if there is none."""
    copy = None
    with blamed_on(f"{path} cannot be read", OSError):
        if stat.S_ISFIFO(mode := path.stat().st_mode):
            copy = _copy_pipe(path)
        elif stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError(f"{path} is a device. Use a file or a pipe.")
    with _refused(path), TableFile(path, (), (), copy=copy).opened() as stream:
        lines = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
        first = lines.readline(_LONGEST_LINE)
        sep = _SEP.fullmatch(first)
        first = lines.readline(_LONGEST_LINE) if sep else first
        delimiter = sep[1] if sep else max(",;\t", key=first.count)
        reader = csv.reader(chain([first], lines), delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            names = _column_names(path.name, next(reader) if first.strip() else [])
        except csv.Error as error:
            raise InputError(
                f"{path.name}, line {reader.line_num}: {error}. Check the quotes up to this line."
            ) from None
    return TableFile(path, names, (path,), delimiter, has_sep=sep is not None, copy=copy)


def _copy_pipe(path: Path) -> BinaryIO:
    """Return an open copy of the content of a pipe, a file without a name."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115
    with path.open("rb") as pipe:
        is_packed = (block := pipe.read(_BLOCK)).startswith(_GZIP)
        while block:
            if b"\0" in block and not is_packed:
                raise InputError(f"{path.name}: the text has a NUL character. Pass a table as CSV in UTF-8.")
            copy.write(block)
            block = pipe.read(_BLOCK)
    copy.flush()
    return copy


def _open_parquet(path: Path) -> TableFile:
    """Return the table in a Parquet file, or in a folder of these; raise InputError if there is none."""
    from pyarrow import dataset

    with blamed_on(f"{path} cannot be read"):
        if not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode)):
            raise OSError("a pipe or a device cannot be read as Parquet. Save the table to a file.")
        files = dataset.dataset(path, format="parquet")
        if not files.files:
            raise FileNotFoundError("the folder has no files. Pass a Parquet file, or a folder of these.")
        n_cells = files.count_rows() * len(files.schema.names)
    return TableFile(path, files.schema.names, list(map(Path, files.files)), n_cells=n_cells)


def _column_names(file: str, cells: Sequence[str]) -> list[str]:
    """Return names from the first line's cells, blank ones numbered; raise InputError if a name stands twice."""
    if not cells:
        raise InputError(f"{file} is empty, or its first line is blank. The first line must name the columns.")
    if _NO_TEXT.search("".join(cells)):
        problem = "the text has a NUL character or is not UTF-8. Save the table as CSV in UTF-8"
        raise InputError(f"{file}, the first line: {problem}.")
    if len(cells) > _MOST_COLUMNS:
        many = f"{len(cells):,} columns, and this command takes at most {_MOST_COLUMNS:,}"
        raise InputError(f"{file} has {many}. Keep fewer columns, or fit a bayesnb classifier in Python.")
    names = [cell.strip() or f"column {i}" for i, cell in enumerate(cells, 1)]
    for name, n in Counter(names).items():
        if n > 1:
            raise InputError(f"{file}: the first line names the column {name!r} twice. Rename one of the two.")
    return names


def available_memory() -> float:
    """Return the bytes that a process may take: available memory, or a container's limit if less; inf if unknown."""
    limits = [math.inf]
    for name, (pattern, unit) in _MEMORY_FILES.items():
        with suppress(OSError):
            match = re.search(pattern, Path(name).read_text(encoding="ascii"))
            limits += [int(match[1]) * unit] if match else []
    return min(limits)
