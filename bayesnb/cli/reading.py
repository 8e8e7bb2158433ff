"""The cells of a CSV file, some rows at a time, and what is said of a file that is no table."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import stat
import tempfile
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bayesnb._util.progress import progress
from bayesnb.cli.text import printable
from bayesnb.streaming import read_table

Cells = tuple[np.ndarray, dict[str, np.ndarray]]

_GZIP = b"\x1f\x8b"
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_MOST_CELLS = 500_000
_MOST_COLUMNS = 10_000
_LONGEST_LINE = 2**24  # characters
_ROWS = 20_000


class InputError(Exception):
    """Input that cannot be used; the message is one line for the user."""


def read(path: Path) -> Iterator[Cells]:
    """The rows of a CSV file in pieces: their numbers, from 0, and the cells of each column, without blanks around.

    Cells are separated by commas, semicolons or tabs. What was packed by gzip is unpacked on the way, whatever the file
    is called.

    Raises
    ------
    InputError
        If the file is missing, empty, damaged, not UTF-8, ragged, without rows, has more than 10,000 columns, or a NUL
        character.
    """
    with _as_arrow_knows_it(path) as source, progress("reading", None, "rows") as advance:
        names, delimiter = _first_line(path.name, source)
        options: dict[str, Any] = {"names": names, "delimiter": delimiter, "types": dict.fromkeys(names, "string")}
        size = max(1, min(_ROWS, _MOST_CELLS // len(names)))
        n, last = 0, ""
        try:
            for X, y in read_table(
                source, names[0], columns=names[1:], format="csv", missing=(), batch_rows=size, **options
            ):
                columns = {names[0]: y, **dict(X.items())}
                cells = {name: _clean(column.tolist(), delimiter != ",") for name, column in columns.items()}
                _require_no_nul(path.name, cells, n)
                yield np.arange(n, n + len(y)), cells
                n, last = n + len(y), cells[names[-1]][-1]
                advance(len(y))
        except (ImportError, ValueError) as error:
            raise InputError(str(error).replace(repr(str(source)), path.name)) from None
        if "\n" in last and not _ends_with_a_quote(source):
            raise InputError(f"{path.name}, row {n + 1}: a quote is opened, and not closed.")


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The content of a file, unpacked.

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
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: {why.rstrip('.')}.") from None


def title(path: Path) -> str:
    """What a file is called, without what says how it is stored."""
    name = path.name.removesuffix(".gz")
    return printable(Path(name).stem)


@contextmanager
def _as_arrow_knows_it(path: Path) -> Iterator[Path]:
    """The file, of which a copy is made where it is a pipe, or where its name does not say whether it is packed."""
    with opened(path) as content:
        if os.path.isfile(path) and isinstance(content, gzip.GzipFile) == (path.suffix == ".gz"):
            yield path.absolute()
            return
        with tempfile.TemporaryDirectory(prefix="bayesnb-") as folder:
            with Path(folder, "table").open("wb") as copy:
                for piece in iter(lambda: content.read(2**20), b""):
                    if b"\0" in piece:
                        raise InputError(_nul(path.name))
                    copy.write(piece)
            yield Path(copy.name)


def _first_line(name: str, source: Path) -> tuple[list[str], str]:
    """Names of the columns, and what stands between them."""
    with opened(source) as content, io.TextIOWrapper(content, "utf-8-sig", "replace", newline="") as text:
        first = text.readline(_LONGEST_LINE)
        if not first.strip():
            raise InputError(f"{name} is empty." if not first else f"{name}: the first line is blank.")
        if len(first) == _LONGEST_LINE:
            raise InputError(f"{name}: the first line has more than {_LONGEST_LINE:,} characters. Is it a table?")
        delimiter = max(",;\t", key=first.count)
        try:
            cells = next(csv.reader(chain([first], text), delimiter=delimiter, skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise InputError(f"{name}, the first line: {error}.") from None
        if any("\ufffd" in cell for cell in cells):
            raise InputError(f"{name}: the first line is not text in UTF-8. Save the table as CSV in UTF-8.")
        if any("\0" in cell for cell in cells):
            raise InputError(_nul(f"{name}, the first line"))
        names = _header(name, cells)
        if not any(map(str.strip, text)):
            raise InputError(f"{name} has a header but no rows.")
    return names, delimiter


def _header(name: str, cells: list[str]) -> list[str]:
    if len(cells) > _MOST_COLUMNS:
        raise InputError(
            f"{name} has {len(cells):,} columns, and this command takes {_MOST_COLUMNS:,}. Cut the file to fewer "
            "columns, or fit a classifier of bayesnb in Python."
        )
    names = [cell.strip() or f"column {i + 1}" for i, cell in enumerate(cells)]
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise InputError(f"{name}: the first line must name the columns, and names {repeated[0]!r} twice.")
    return names


def _clean(cells: list[str], decimal_comma: bool) -> np.ndarray:
    texts = [
        text[1:-1] if text[:1] == '"' == text[-1:] and cell[0] != '"' else text  # quoted after a blank
        for cell, text in zip(cells, map(str.strip, cells), strict=True)
    ]
    if decimal_comma:
        texts = [c.replace(",", ".") if "," in c and _DECIMAL_COMMA.fullmatch(c) else c for c in texts]
    return np.array(texts, object)


def _require_no_nul(name: str, cells: dict[str, np.ndarray], start: int) -> None:
    for column, values in cells.items():
        if "\0" in "".join(values):
            row = start + 2 + next(i for i, cell in enumerate(values) if "\0" in cell)
            raise InputError(_nul(f"{name}, row {row}, column {column!r}"))


def _nul(where: str) -> str:
    return f"{where}: there is a NUL character, which no text has. Save the table as CSV in UTF-8."


def _ends_with_a_quote(source: Path) -> bool:
    with opened(source) as content:
        return bool(deque(filter(bytes.strip, content), 1)[0].rstrip().endswith(b'"'))
