"""The cells of a CSV file, some rows at a time, and what is said of a file that is no table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bayesnb.progress import progress

_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_CELLS = 500_000
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

    Raises
    ------
    InputError
        If the file is missing, empty, not UTF-8, ragged or without rows.
    """
    try:
        with path.open("rb") as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
            yield from _parse(path, file, text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from None


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
        size = max(1, min(_ROWS, _CELLS // len(header)))
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
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
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
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InputError(f"{path.name}: the first line must name the columns, and names {repeated[0]!r} twice.")
    return names
