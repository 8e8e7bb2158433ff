"""A CSV file as a typed table: reading, guessing the kinds of columns, and refusing what cannot be used."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.cli.text import enumerate_names
from bayesnb.progress import progress

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("categorical", "gaussian", "bernoulli", "poisson", "multinomial")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_FEW_LEVELS = 10
_ROWS_A_LEVEL = 5


class InputError(Exception):
    """Input that cannot be used; the message is one line for the user."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled rows whose columns have a kind.

    Parameters
    ----------
    X : DataFrame (N, F)
    y : (N,) array
    kinds : dict
        Kind of each column of X.
    left_out : dict
        Columns that are not used, and why.
    notes : dict
        What the user should know of a column.
    about : str
        A line on the origin.
    guessed : bool
        Whether `kinds` are guesses.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    kinds: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    guessed: bool = False


@dataclass(frozen=True, eq=False)
class RawTable:
    """The cells of a file; `lines` says in which line of the file each row ends."""

    path: Path
    names: list[str]
    cells: dict[str, np.ndarray]
    lines: np.ndarray

    def at(self, name: str, row: int) -> str:
        return f"{self.path.name}, line {self.lines[row]}, column {name!r}"


def load_csv(
    path: Path, target: str, missing: Sequence[str], kinds: Mapping[str, str], default: str | None, drop: Sequence[str]
) -> Dataset:
    """Read a file and type its columns.

    Parameters
    ----------
    target : str
        Column with the labels.
    missing : sequence of str
        Marks of a missing cell, besides the empty one.
    kinds : dict
        Kinds that the user decided, by column.
    default : str or None
        Kind of all other columns; None: guess.
    drop : sequence of str
        Columns to leave out.

    Raises
    ------
    InputError
        If the file cannot be read or is no table, a column does not exist, the labels are no classes, or a
        cell is no number where one is needed.
    """
    import pandas as pd

    raw = read(path)
    for name in (target, *kinds, *drop):
        if name not in raw.cells:
            raise InputError(
                f"{path.name} has no column {name!r}; its first line names {enumerate_names(raw.names, 12)}."
            )
    absent = {name: np.isin(cells, ["", *missing]) for name, cells in raw.cells.items()}
    y = _labels(raw, target, absent[target])
    columns, chosen, left_out, notes = {}, {}, {}, {}
    with progress("columns", len(raw.names)) as advance:
        for name in raw.names:
            advance()
            if name == target or name in drop:
                continue
            kind, note = guess(pd.Series(raw.cells[name][~absent[name]], dtype=object))
            kind = kinds.get(name, kind if kind is None or default is None else default)
            if kind is None:
                left_out[name] = note
                continue
            if note:
                notes[name] = note
            chosen[name] = kind
            columns[name] = _typed(raw, name, absent[name], kind)
    if not columns:
        raise InputError(f"{path.name}: no column is left to learn from beside the target {target!r}.")
    X = pd.DataFrame(columns)
    return Dataset(path.stem, X, y, chosen, left_out, notes, f"from {path.name}", default is None)


def guess(present: pd.Series) -> tuple[str | None, str]:
    """Kind of a column from the strings of its cells that are not missing (None: leave it out), and a note.

    Numbers are Gaussian, but integers of at most 10 distinct values with five rows a value or more are
    categorical, and a run of consecutive integers without repetition numbers the rows: it is left out. Other
    strings are categorical, and left out where every one is different.
    """
    import pandas as pd

    counts = present.value_counts(sort=False)
    n, distinct = len(present), len(counts)
    if not n:
        return None, "no cell has a value"
    numbers = pd.to_numeric(pd.Series(counts.index, dtype=object), errors="coerce")
    share = counts.to_numpy()[numbers.notna()].sum() / n
    if share < 1:
        if distinct == n and n > 1:
            return None, "every value is different, an identifier?"
        if share >= 0.5 and distinct > _FEW_LEVELS:
            odd = str(counts.index[int(np.argmax(numbers.isna()))])
            return "categorical", f"numbers but for {odd!r}; if that marks a missing cell: --missing {odd!r}"
        if "?" in counts.index:
            return "categorical", "has the level '?'; if that marks a missing cell: --missing '?'"
        many = distinct > max(_FEW_LEVELS, n / _ROWS_A_LEVEL)
        return "categorical", f"{distinct:,} levels in {n:,} rows" if many else ""
    if bool((numbers % 1 == 0).all()):
        if distinct == n and n > 1 and numbers.max() - numbers.min() == n - 1:
            return None, "consecutive integers, row numbers?"
        if distinct <= _FEW_LEVELS and distinct * _ROWS_A_LEVEL <= n:
            return "categorical", ""
        return "gaussian", "every value is different, an identifier?" if distinct == n else ""
    return "gaussian", ""


def read(path: Path) -> RawTable:
    """The cells of a CSV file, separated by commas, semicolons or tabs, without the blanks around them.

    Raises
    ------
    InputError
        If the file is missing, empty, not UTF-8, ragged or without rows.
    """
    try:
        with path.open("rb") as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
            return _parse(path, file, text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from None


def _parse(path: Path, file: Any, text: io.TextIOWrapper) -> RawTable:
    rows: list[list[str]] = []
    lines: list[int] = []
    reader: Any = None
    try:
        first = text.readline()
        if not first.strip():
            raise InputError(f"{path.name} is empty." if not first else f"{path.name}: the first line is blank.")
        delimiter = max(",;\t", key=first.count)
        decimal_comma = delimiter != ","
        reader = csv.reader(_chain(first, text), delimiter=delimiter, skipinitialspace=True, strict=True)
        header = _header(path, next(reader))
        position = 0
        with progress("reading", path.stat().st_size, "B") as advance:
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise InputError(
                        f"{path.name}, line {reader.line_num}: {len(row)} cells, but the first line has {len(header)}."
                    )
                rows.append([_cell(cell, decimal_comma) for cell in row])
                lines.append(reader.line_num)
                if len(rows) % 20_000 == 0:
                    advance(file.tell() - position)
                    position = file.tell()
    except UnicodeDecodeError as error:
        where = f"after line {lines[-1]}" if lines else "near its beginning"
        bad = error.object[error.start]
        raise InputError(f"{path.name} is not UTF-8 text: byte 0x{bad:02x} {where}.") from None
    except csv.Error as error:
        raise InputError(f"{path.name}, line {reader.line_num}: {error}.") from None
    if not rows:
        raise InputError(f"{path.name} has a header but no rows.")
    cells = {name: np.array(column, dtype=object) for name, column in zip(header, zip(*rows, strict=True), strict=True)}
    return RawTable(path, header, cells, np.array(lines))


def _cell(text: str, decimal_comma: bool) -> str:
    text = text.strip()
    return text.replace(",", ".") if decimal_comma and _DECIMAL_COMMA.fullmatch(text) else text


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip() or f"column {i + 1}" for i, cell in enumerate(cells)]
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InputError(f"{path.name}: the first line must name the columns, and names {repeated[0]!r} twice.")
    return names


def _labels(raw: RawTable, target: str, absent: np.ndarray) -> np.ndarray:
    labels = raw.cells[target]
    if absent.any():
        row = int(np.argmax(absent))
        raise InputError(
            f"{raw.at(target, row)}: the label is missing ({int(absent.sum())} of {len(labels)} rows); "
            "a row needs a label."
        )
    classes = sorted(set(labels))
    if len(classes) == 1:
        raise InputError(f"{raw.path.name}: the target {target!r} has one class only, {classes[0]!r}.")
    if len(classes) > len(labels) / 2:
        raise InputError(
            f"{raw.path.name}: the target {target!r} has {len(classes)} distinct values in {len(labels)} rows; "
            "these are no classes."
        )
    return np.array(_integers(labels) or labels.tolist())


def _typed(raw: RawTable, name: str, absent: np.ndarray, kind: str) -> pd.Series:
    import pandas as pd

    cells = raw.cells[name]
    if kind == "categorical":
        present = cells[~absent]
        values = np.full(len(cells), None, dtype=object)
        values[~absent] = _integers(present) or present
        return pd.Series(values, dtype=object)
    numbers = pd.to_numeric(pd.Series(cells, dtype=object).where(~absent), errors="coerce").astype(float)
    wrong = numbers.isna().to_numpy() & ~absent
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{raw.at(name, row)}: {cells[row]!r} is not a number ({int(wrong.sum())} such cells), as {kind} "
            f"columns need; mark it with --missing, or use --categorical or --drop for the column."
        )
    return numbers


def _integers(cells: np.ndarray) -> list[int] | None:
    """The cells as integers, if that is what they spell, without signs or zeros that would get lost."""
    try:
        values = [int(cell) for cell in cells]
    except ValueError:
        return None
    return values if all(str(v) == cell for v, cell in zip(values, cells, strict=True)) else None
