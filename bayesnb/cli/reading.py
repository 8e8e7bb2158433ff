"""The cells of a CSV file, some rows at a time, and what is said of a file that is no table."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bayesnb._util.progress import progress
from bayesnb.cli.text import printable

_GZIP = b"\x1f\x8b"
_UNPACKED = 2**20
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_MOST_CELLS = 500_000
_ROWS = 20_000


class InputError(Exception):
    """Input that cannot be used; the message is one line for the user."""


@dataclass(frozen=True, eq=False)
class RawTable:
    """Some rows of a file.

    Parameters
    ----------
    names : list of str
        The columns.
    cells : dict of (n,) object arrays
        Their strings, by column.
    lines : (n,) array
        In which line of the file each row ends.
    start : int
        Number of rows of the file before these.
    """

    names: list[str]
    cells: dict[str, np.ndarray]
    lines: np.ndarray
    start: int


def read(path: Path) -> Iterator[RawTable]:
    """The rows of a CSV file in pieces; cells are separated by commas, semicolons or tabs, and without blanks around.

    What was packed by gzip is unpacked on the way, whatever the file is called.

    Raises
    ------
    InputError
        If the file is missing, empty, damaged, not UTF-8, ragged or without rows.
    """
    with _opened(path) as (file, content), io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text:
        yield from _parse(path, file, text)


def length_of(path: Path, most: float) -> int:
    """Bytes of a file's content; where they must be unpacked to be counted, only until they are more than `most`.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    if path.exists() and not path.is_file():
        return 0  # a pipe, which can be read only once
    with _opened(path) as (file, content):
        if content is file:
            return os.fstat(file.fileno()).st_size
        length = 0
        while length <= most and (part := content.read(_UNPACKED)):
            length += len(part)
        return length


def title(path: Path) -> str:
    """What a file is called, without what says how it is stored."""
    name = path.name.removesuffix(".gz")
    return printable(Path(name).stem)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """The file as it lies on the disk, and its content."""
    try:
        with path.open("rb") as file:
            packed = file.peek(len(_GZIP)).startswith(_GZIP)
            yield file, gzip.GzipFile(fileobj=file) if packed else file
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: {why.rstrip('.')}.") from None


def _parse(path: Path, file: Any, text: io.TextIOWrapper) -> Iterator[RawTable]:
    reader: Any = None
    start = 0
    try:
        first = text.readline()
        if not first.strip():
            raise InputError(f"{path.name} is empty." if not first else f"{path.name}: the first line is blank.")
        delimiter = max(",;\t", key=first.count)
        reader = csv.reader(chain([first], text), delimiter=delimiter, skipinitialspace=True, strict=True)
        header = _header(path, next(reader))
        size = max(1, min(_ROWS, _MOST_CELLS // len(header)))
        position = 0
        # Of all rows: a list a row would keep the garbage collector busy.
        cells: list[str] = []
        lines: list[int] = []
        with progress("reading", path.stat().st_size, "B") as advance:
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise InputError(
                        f"{path.name}, line {reader.line_num}: {len(row)} cells, but the first line has {len(header)}."
                    )
                cells.extend(row)
                lines.append(reader.line_num)
                if len(lines) == size:
                    yield _table(header, cells, lines, start, delimiter != ",")
                    start += size
                    cells, lines = [], []
                    advance(file.tell() - position)
                    position = file.tell()
        if lines:
            yield _table(header, cells, lines, start, delimiter != ",")
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        raise InputError(f"{path.name}, line {_undecodable(path)}: byte 0x{bad:02x} is not UTF-8 text.") from None
    except csv.Error as error:
        raise InputError(f"{path.name}, line {reader.line_num}: {error}.") from None
    if not start + len(lines):
        raise InputError(f"{path.name} has a header but no rows.")


def _undecodable(path: Path) -> int:
    """The first line that is not UTF-8; a decoder reads ahead, and cannot tell."""
    with _opened(path) as (_, content):
        for number, line in enumerate(content, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _table(names: list[str], cells: list[str], lines: list[int], start: int, decimal_comma: bool) -> RawTable:
    columns = {}
    for j, name in enumerate(names):
        texts = list(map(str.strip, cells[j :: len(names)]))
        if decimal_comma:
            texts = [c.replace(",", ".") if "," in c and _DECIMAL_COMMA.fullmatch(c) else c for c in texts]
        columns[name] = np.array(texts, dtype=object)
    return RawTable(names, columns, np.array(lines), start)


def _header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip() or f"column {i + 1}" for i, cell in enumerate(cells)]
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise InputError(f"{path.name}: the first line must name the columns, and names {repeated[0]!r} twice.")
    return names
