"""Cells of a CSV file as text, some rows at a time, and refusals of files that are no table."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bayesnb._util.progress import progress
from bayesnb.cli.terminal import printable

if TYPE_CHECKING:
    import pandas as pd

_GZIP = b"\x1f\x8b"
_DECIMAL_COMMA = r"^([-+]?\d+),(\d+)$"
_NOT_UTF8 = "[\udc80-\udcff]"  # Bytes that could not be decoded become these characters.
_NO_TEXT = f"\0|{_NOT_UTF8}"
_MOST_CELLS = 500_000
_MOST_COLUMNS = 10_000
_LONGEST_LINE = 2**24  # characters
_ROWS = 20_000
# Peak memory of an analysis that holds the whole table, in bytes a byte of the file. Measured: 10 to 45, most where
# cells are short.
_BYTES_A_BYTE = 45
_MEMORY_FILES = {
    "/proc/meminfo": r"MemAvailable:\s+",
    "/sys/fs/cgroup/memory.max": "",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "",
}


class InputError(Exception):
    """Input that cannot be used; the message is one line for the user."""


def read_cells(path: Path) -> Iterator[pd.DataFrame]:
    """Rows of a CSV file in pieces: cells as text without surrounding blanks; the index counts rows from 0.

    Commas, semicolons or tabs separate cells; beside semicolons and tabs 1,5 is read as 1.5. Gzip is recognized by the
    content of the file, whatever its name.

    Raises
    ------
    InputError
        If the file is missing, empty, damaged, not UTF-8, ragged, without rows, has more than 10,000 columns, or a NUL
        character.
    """
    import pandas as pd

    name, longest_field = path.name, csv.field_size_limit(_LONGEST_LINE)
    try:
        with opened(path) as content, progress("reading", None, "rows") as advance:
            last_line: deque[str] = deque([""], 1)
            text = io.TextIOWrapper(content, "utf-8-sig", "surrogateescape", newline="")
            lines = _lines(name, text, last_line)
            first = next(lines, "")
            delimiter = max(",;\t", key=first.count)
            records = filter(None, csv.reader(chain([first], lines), delimiter=delimiter, skipinitialspace=True))
            names = _column_names(name, next(records, []), first)
            n = 0
            while rows := list(islice(records, max(1, min(_ROWS, _MOST_CELLS // len(names))))):
                for row, cells in enumerate(rows, n + 2):
                    if len(cells) != len(names):
                        raise InputError(f"{name}, row {row}: {len(cells)} cells, but the first line has {len(names)}.")
                columns = [[cell.strip() for cell in column] for column in zip(*rows, strict=True)]
                frame = pd.DataFrame(
                    dict(zip(names, columns, strict=True)), pd.RangeIndex(n, n + len(rows)), dtype=object
                )
                n += len(rows)
                _require_text(name, frame)
                if delimiter != ",":
                    frame = frame.apply(lambda column: column.str.replace(_DECIMAL_COMMA, r"\1.\2", regex=True))
                yield frame
                advance(len(rows))
            if not n:
                raise InputError(f"{name} has a header but no rows.")
            if "\n" in cells[-1] and not last_line[0].rstrip().endswith('"'):
                raise InputError(f"{name}, row {n + 1}: a quote is opened, and not closed.")
    finally:
        csv.field_size_limit(longest_field)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file for its unpacked content.

    Raises
    ------
    InputError
        If the file is missing or damaged, or is a device.
    """
    try:
        if not (stat.S_ISREG(mode := os.stat(path).st_mode) or stat.S_ISFIFO(mode) or stat.S_ISDIR(mode)):
            raise InputError(f"{path} is a device. Name a file or a pipe.")
        with path.open("rb") as file:
            yield gzip.GzipFile(fileobj=file) if file.peek(len(_GZIP)).startswith(_GZIP) else file
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: {reason.rstrip('.')}.") from None


def title(path: Path) -> str:
    """Name of a file without its suffixes."""
    return printable(Path(path.name.removesuffix(".gz")).stem)


def larger_than_memory(path: Path) -> bool:
    """Whether an analysis that holds the whole file would need more memory than is available."""
    if not os.path.isfile(path):
        return False  # A pipe can be read only once.
    with opened(path) as content:
        content.seek(int(min(available_memory() / _BYTES_A_BYTE, sys.maxsize)))
        return bool(content.read(1))


def available_memory() -> float:
    """Bytes that a process may take: what the system calls available, or a container's limit if that is less."""
    limits = [_bytes_in(Path(name), before) for name, before in _MEMORY_FILES.items()]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=np.inf)


def _bytes_in(path: Path, before: str) -> float:
    """Number of bytes after a pattern in a file of the system; infinity if the file or the number is not there."""
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return np.inf
    match = re.search(rf"^{before}(\d+)( kB)?", text, re.MULTILINE)
    return int(match[1]) * (1024 if match[2] else 1) if match else np.inf


def _lines(name: str, text: IO[str], last: deque[str]) -> Iterator[str]:
    """Lines of a text; `last` keeps the last line that is not blank."""
    for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), 1):
        if len(line) == _LONGEST_LINE:
            which = "the first line" if number == 1 else f"line {number}"
            raise InputError(f"{name}: {which} has more than {_LONGEST_LINE:,} characters. Is it a table?")
        if line.strip():
            last.append(line)
        yield line


def _column_names(file: str, cells: list[str], first_line: str) -> list[str]:
    if not first_line.strip():
        raise InputError(f"{file} is empty." if not first_line else f"{file}: the first line is blank.")
    if re.search(_NOT_UTF8, "".join(cells)):
        raise InputError(f"{file}: the first line is not text in UTF-8. Save the table as CSV in UTF-8.")
    if "\0" in "".join(cells):
        raise InputError(f"{file}, the first line: {_NUL}")
    if len(cells) > _MOST_COLUMNS:
        raise InputError(
            f"{file} has {len(cells):,} columns, and this command takes {_MOST_COLUMNS:,}. Cut the file to fewer "
            "columns, or fit a classifier of bayesnb in Python."
        )
    names = [cell.strip() or f"column {i}" for i, cell in enumerate(cells, 1)]
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise InputError(f"{file}: the first line must name the columns, and names {repeated[0]!r} twice.")
    return names


def _require_text(file: str, frame: pd.DataFrame) -> None:
    for name, column in frame.items():
        if re.search(_NO_TEXT, "".join(column)):
            cells = enumerate(column, frame.index[0] + 2)
            row, cell = next((row, cell) for row, cell in cells if re.search(_NO_TEXT, cell))
            problem = _NUL if "\0" in cell else "the file is not in UTF-8; convert it first."
            raise InputError(f"{file}, row {row}, column {name!r}: {problem}")


_NUL = "there is a NUL character, which no text has. Save the table as CSV in UTF-8."
