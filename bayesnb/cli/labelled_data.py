"""Labelled tables with a kind for each column: from a CSV file, or those of a run without a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import datasets, families
from bayesnb.cli.column_types import ColumnCounts, Marks, guess, to_levels, to_numbers
from bayesnb.cli.csv_cells import InputError, larger_than_memory, read_cells, title
from bayesnb.cli.fitting import Batch, InMemory, Streamed, concatenate
from bayesnb.cli.terminal import enumerate_names
from bayesnb.estimators.mixed import KINDS

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = {family.kind: family for family in (*families.OF_NUMBERS, families.Binned)}
UNDECIDED = "numbers"
"""Kind of a column of numbers whose density is chosen when a classifier is fitted."""
_NONNEGATIVE = ("multinomial", *(kind for kind, family in NUMBERS.items() if family.nonnegative))
_MOST_LEVELS = 100_000
_MANY_CLASSES = 20
_MOST_CLASSES = 1000
_ZEROS = "some cells are 0, and no other is near it; if 0 means “not measured”: --missing-in 0 COLUMNS"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled rows whose columns have a kind.

    Parameters
    ----------
    name : str
    rows : InMemory or Streamed
        The rows, which a classifier can be fitted to.
    kinds : dict
        Kind of each column; `UNDECIDED` for numbers before a classifier was fitted.
    levels : dict
        Values of each categorical column.
    class_count : dict
        Number of rows of each label.
    target : str
        Name of the column of labels.
    missing : dict
        Number of missing cells of each column that has missing cells.
    left_out : dict
        Columns that are not used, and why.
    notes : dict
        Notes for the user by column.
    about : str
        Origin of the rows, in words.
    guessed : bool
        Whether `kinds` are guesses.
    """

    name: str
    rows: InMemory | Streamed
    kinds: Mapping[str, str]
    levels: Mapping[str, Sequence[Any]]
    class_count: Mapping[Any, int]
    target: str
    missing: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    guessed: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.class_count.values())


def built_in_datasets() -> list[Dataset]:
    """Data sets of a run without a file."""
    from sklearn.datasets import load_breast_cancer

    cancer, melon = load_breast_cancer(as_frame=True), datasets.load_watermelon(language="en")
    diagnosis, ripe = cancer.target_names[cancer.target], melon.target.to_numpy()
    levels = {name: melon.data[name].unique().tolist() for name in melon.data.select_dtypes(exclude="number")}
    return [
        Dataset(
            "breast_cancer",
            InMemory(cancer.data, diagnosis),
            dict.fromkeys(cancer.data, UNDECIDED),
            {},
            Counter(diagnosis.tolist()),
            "diagnosis",
            about="scikit-learn's copy of the Wisconsin diagnostic data",
        ),
        Dataset(
            "watermelon",
            InMemory(melon.data, ripe),
            {name: "categorical" if name in levels else UNDECIDED for name in melon.data},
            levels,
            Counter(ripe.tolist()),
            "ripe",
            about="Zhou Zhihua, Machine Learning (2016), table 4.3",
        ),
    ]


def load_csv(
    path: Path,
    target: str,
    marks: Marks,
    kinds: Mapping[str, str],
    default: str | None,
    drop: Sequence[str],
) -> Dataset:
    """Read a file and type its columns; a file larger than memory is read in pieces, now and whenever rows are needed.

    Parameters
    ----------
    path : Path
        File to read.
    target : str
        Column of labels.
    marks : Marks
        Marks of missing cells.
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
    streamed = larger_than_memory(path)
    pieces: Iterable[pd.DataFrame] = read_cells(path) if streamed else list(read_cells(path))
    limit = _MOST_LEVELS if streamed else np.inf
    counts = _count_cells(path, pieces, (target, *kinds, *drop, *marks.within), drop, marks, limit)
    labels = counts.pop(target)
    classes = _classes(path, target, labels)
    chosen, left_out, notes = _kinds(path, counts, kinds, default, marks)
    if note := _doubts_about_classes(labels):
        notes[target] = note
    names = [target, *counts]
    if np.isfinite(to_numbers(names)).all() and sorted(names) != sorted(map(str, range(len(names)))):
        notes["the first line"] = "taken for the columns' names; if it is a row of data, add a line of names above it"
    if not chosen:
        reasons = "".join(f" {name}: {reason}." for name, reason in list(left_out.items())[:3])
        raise InputError(f"{path.name}: no column is left to learn from beside the target {target!r}.{reasons}")
    left_out |= dict.fromkeys(drop, "by --drop")
    levels = {name: to_levels(counts[name].values) for name, kind in chosen.items() if kind == "categorical"}
    meanings = {name: {**cells, **dict.fromkeys(counts[name].marked)} for name, cells in levels.items()}
    typed = partial(_type_cells, path, target, list(chosen), {**meanings, target: classes}, marks)
    class_count = {classes[cell]: n for cell, n in labels.values.items()}
    rows: InMemory | Streamed
    if streamed:
        rows = Streamed(path, lambda: map(typed, read_cells(path)), class_count, len(chosen))
    else:
        rows = InMemory(*concatenate(list(map(typed, pieces))))
    about = f"from {path.name}" + ", read in pieces as it does not fit into memory" * streamed
    values = {name: list(cells.values()) for name, cells in levels.items()}
    missing = {name: counts[name].missing for name in chosen if counts[name].missing}
    guessed = default is None
    return Dataset(title(path), rows, chosen, values, class_count, target, missing, left_out, notes, about, guessed)


def _type_cells(
    path: Path,
    target: str,
    names: Sequence[str],
    meanings: Mapping[str, Mapping[str, Any]],
    marks: Marks,
    cells: pd.DataFrame,
) -> Batch:
    """Return features of these names, and labels.

    `meanings` has the value of each text by column, None for a missing cell; all other columns are numbers.
    """
    import pandas as pd

    columns = {}
    for name in (*names, target):
        code, texts = pd.factorize(cells[name].to_numpy())
        if name not in meanings:
            of_column = marks.column_marks(name)
            columns[name] = np.where([text in of_column for text in texts], np.nan, to_numbers(texts))[code]
            continue
        if new := [text for text in texts if text not in meanings[name]]:
            raise InputError(f"{path.name} has changed while it was read: column {name!r} has a new {new[0]!r}.")
        columns[name] = np.array([meanings[name][text] for text in texts], object)[code]
    y = np.array(columns.pop(target).tolist())
    return pd.DataFrame({name: pd.Series(column, cells.index, column.dtype) for name, column in columns.items()}), y


def _count_cells(
    path: Path,
    pieces: Iterable[pd.DataFrame],
    named: Sequence[str],
    drop: Sequence[str],
    marks: Marks,
    limit: float,
) -> dict[str, ColumnCounts]:
    counts: dict[str, ColumnCounts] = {}
    for cells in pieces:
        if not counts:
            names = [str(name) for name in cells]
            if unknown := [name for name in named if name not in names]:
                raise InputError(_unknown_column(path, unknown[0], names))
            counts = {name: ColumnCounts(marks.column_marks(name), limit) for name in names if name not in drop}
        for name, of_column in counts.items():
            of_column.add(cells[name])
    return counts


def _unknown_column(path: Path, name: str, names: Sequence[str]) -> str:
    """Message that names the columns, the one that was perhaps meant, and how the first line may have been misread."""
    spellings = {other.lower(): other for other in reversed(names)}
    alike = get_close_matches(name.lower(), list(spellings), 1)
    meant = f" (is {spellings[alike[0]]!r} meant?)" if alike else ""
    message = f"{path.name} has no column {name!r}{meant}; its first line names {enumerate_names(names, 12)}."
    if len(names) == 1:
        message += " Commas, semicolons or tabs separate columns."
    if any("," in other for other in names):
        message += " A name with a comma is quoted within its flag: --drop '\"width, cm\",height'."
    if np.isfinite(to_numbers(names)).any():
        message += " If that is a row of data, add a line of names above it."
    return message


def _classes(path: Path, target: str, labels: ColumnCounts) -> dict[str, Any]:
    """Label of each text in the target."""
    n, classes = labels.present + labels.missing, sorted(labels.values)
    if labels.missing:
        raise InputError(
            f"{_place(path, target, labels, 'missing')}: the label is missing ({labels.missing} of {n} rows); "
            f"remove such rows{_unless_value(labels.first['missing'][0])}."
        )
    if len(classes) == 1:
        raise InputError(f"{path.name}: the target {target!r} has one class only, {classes[0]!r}.")
    if labels.beyond or len(classes) > n / 2:
        many = f"more than {labels.limit}" if labels.beyond else len(classes)
        raise InputError(
            f"{path.name}: the target {target!r} has {many} distinct values in {n} rows; these are no classes."
        )
    if len(classes) > _MOST_CLASSES:
        raise InputError(
            f"{path.name}: the target {target!r} has {len(classes):,} classes, and this command takes "
            f"{_MOST_CLASSES:,}. Merge classes, or fit a classifier of bayesnb in Python."
        )
    return to_levels(labels.values)


def _doubts_about_classes(labels: ColumnCounts) -> str:
    """Note on labels that the user may not have meant."""
    notes = []
    if labels.numbers == labels.present and len(labels.values) > _MANY_CLASSES:
        count = len(labels.values)
        notes.append(f"each of its {count} numbers is a class; of a number cut into ranges each range is one")
    spellings: dict[str, list[str]] = {}
    for cell in labels.values:
        spellings.setdefault(cell.casefold(), []).append(cell)
    if several := [cells for cells in spellings.values() if len(cells) > 1]:
        notes.append(f"{' and '.join(map(repr, several[0]))} are different classes, as they are spelt")
    return "; ".join(notes)


def _kinds(
    path: Path, counts: Mapping[str, ColumnCounts], kinds: Mapping[str, str], default: str | None, marks: Marks
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return kinds of the columns that are used, reasons for columns left out, and notes."""
    chosen, left_out, notes = {}, {}, {}
    for name, column in counts.items():
        if default is None and name not in kinds and (value := column.constant) is not None:
            left_out[name] = f"every cell is {value!r}"
            continue
        kind, note = guess(column)
        kind = kinds.get(name, kind if kind is None or default is None else default)
        if kind == "categorical" and column.beyond:
            if name in kinds:
                raise InputError(f"{path.name}, column {name!r}: {column.too_many}; --drop it.")
            kind, note = None, column.too_many
        if kind is None:
            left_out[name] = note
            continue
        remarks = [note]
        if kind == "categorical":
            assumed = sorted((column.marked & marks.column_marks(name).assumed) - marks.column_marks(name).named - {""})
            if assumed:
                texts = enumerate_names([*map(repr, assumed)], 5)
                remarks.append(f"{texts} marks missing cells{_unless_value(assumed[0])}")
        else:
            _require_numbers(path, name, column, kind if kind in KINDS else "numeric")
            remarks.append(_ZEROS if name not in kinds and column.zeros_stand_apart else "")
        unseen = marks.unseen(name, column.marked)
        remarks += [f"no cell is {mark!r}, which is to mark its missing cells" for mark in unseen]
        if any(remarks):
            notes[name] = "; ".join(filter(None, remarks))
        chosen[name] = kind
    return chosen, left_out, notes


def _require_numbers(path: Path, name: str, column: ColumnCounts, kind: str) -> None:
    advice = "mark it with --missing, or use --categorical or --drop for the column."
    odd = column.present - column.numbers
    problems = {
        "odd": f"is not a number ({odd} such cells), as {kind} columns need; {advice}",
        "infinite": f"is infinity or too large, and {kind} columns need finite numbers; {advice}",
    }
    if kind in _NONNEGATIVE:
        problems["negative"] = f"is negative, and {kind} columns hold numbers from 0 on; {advice}"
    if kind == "multinomial":
        problems["missing"] = (
            f"is missing ({column.missing} such cells), and a multinomial column takes none; fill in a count, or "
            "--drop the column."
        )
    for problem, message in problems.items():
        if problem in column.first:
            cell = column.first[problem][0]
            raise InputError(f"{_place(path, name, column, problem)}: {repr(cell) if cell else 'the cell'} {message}")


def _unless_value(mark: str) -> str:
    return f"; if {mark!r} is a value: --not-missing {mark!r}" if mark else ""


def _place(path: Path, name: str, column: ColumnCounts, problem: str) -> str:
    return f"{path.name}, row {column.first[problem][1]}, column {name!r}"
