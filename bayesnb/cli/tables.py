"""A CSV file as a typed table: the kinds of its columns, and refusing what cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import families
from bayesnb.cli.holdout import InMemory
from bayesnb.cli.marks import Marks
from bayesnb.cli.reading import Cells, InputError, read, title
from bayesnb.cli.stream import Batch, Streamed, join, larger_than_memory, room
from bayesnb.cli.survey import Survey, as_levels, as_numbers, guess, too_many, zeros_stand_apart
from bayesnb.cli.text import enumerate_names
from bayesnb.estimators.mixed import KINDS

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = {family.kind: family for family in (*families.OF_NUMBERS, families.Binned)}
UNDECIDED = "numbers"
"""Kind of a column of numbers whose density the rows are to decide."""
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
        Where the rows are.
    kinds : dict
        Kind of each column, `UNDECIDED` of numbers before a classifier was fitted.
    levels : dict
        Values of each categorical column.
    class_count : dict
        Number of rows of each label.
    target : str
        What the labels are called.
    missing : dict
        Number of missing cells of each column that has some.
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
        return sum(self.class_count.values())


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
    target : str
        Column with the labels.
    marks : Marks
        Cells that are missing.
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
    pieces: Iterable[Cells] = read(path) if streamed else list(read(path))
    named, limit = (target, *kinds, *drop, *marks.within), _MOST_LEVELS if streamed else np.inf
    surveys = _survey(path, pieces, named, drop, marks, limit)
    classes = _classes(path, target, surveys[target])
    chosen, left_out, notes = _kinds(path, {n: s for n, s in surveys.items() if n != target}, kinds, default, marks)
    if said := _odd_classes(surveys[target]):
        notes[target] = said
    if _all_numbers(list(surveys)):
        notes["the first line"] = "taken for the columns' names; if it is a row of data, add a line of names above it"
    if not chosen:
        why = "".join(f" {name}: {reason}." for name, reason in list(left_out.items())[:3])
        raise InputError(f"{path.name}: no column is left to learn from beside the target {target!r}.{why}")
    left_out |= dict.fromkeys(drop, "by --drop")
    levels = {name: as_levels(surveys[name].values) for name, kind in chosen.items() if kind == "categorical"}
    meant = {name: {**of, **dict.fromkeys(surveys[name].marked)} for name, of in levels.items()} | {target: classes}
    typed = partial(_typed, path, target, list(chosen), meant, marks)
    class_count = {classes[cell]: n for cell, n in surveys[target].values.items()}
    rows: InMemory | Streamed
    if streamed:
        rows = Streamed(path, lambda: map(typed, read(path)), class_count, room(len(chosen)))
    else:
        rows = InMemory(*join(list(map(typed, pieces))))
    about = f"from {path.name}" + ", read in pieces as it does not fit into memory" * streamed
    values = {name: list(of.values()) for name, of in levels.items()}
    missing = {name: surveys[name].missing for name in chosen if surveys[name].missing}
    guessed = default is None
    return Dataset(title(path), rows, chosen, values, class_count, target, missing, left_out, notes, about, guessed)


def _typed(
    path: Path,
    target: str,
    names: Sequence[str],
    meant: Mapping[str, Mapping[str, Any]],
    marks: Marks,
    piece: Cells,
) -> Batch:
    """Features of these names, and labels.

    `meant` is what the strings of a column stand for, None if a missing cell; where it is not said they are numbers.
    """
    import pandas as pd

    rows, cells = piece
    columns = {name: as_numbers(cells[name], marks.of(name)) for name in names if name not in meant}
    for name, values in meant.items():
        code, found = pd.factorize(cells[name])
        new = [cell for cell in found if cell not in values]
        if new:
            raise InputError(f"{path.name} has changed while it was read: column {name!r} has a new {new[0]!r}.")
        columns[name] = np.array([values[cell] for cell in found], object)[code]
    X = pd.DataFrame({name: pd.Series(columns[name], rows, columns[name].dtype) for name in names})
    return X, np.array(columns[target].tolist())


def from_frame(name: str, X: pd.DataFrame, y: np.ndarray, kinds: Mapping[str, str], target: str, about: str) -> Dataset:
    """A data set that is in memory already, without missing cells."""
    levels = {name: X[name].dropna().unique().tolist() for name, kind in kinds.items() if kind == "categorical"}
    labels, counts = np.unique(y, return_counts=True)
    class_count = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    return Dataset(name, InMemory(X, y), kinds, levels, class_count, target, about=about)


def _survey(
    path: Path,
    pieces: Iterable[Cells],
    named: Sequence[str],
    drop: Sequence[str],
    marks: Marks,
    limit: float,
) -> dict[str, Survey]:
    surveys: dict[str, Survey] = {}
    for rows, cells in pieces:
        if not surveys:
            unknown = [name for name in named if name not in cells]
            if unknown:
                meant = _meant(unknown[0], [*cells])
                raise InputError(f"{path.name} has no column {unknown[0]!r}{meant}; {_header([*cells])}")
            surveys = {name: Survey(marks.of(name), limit) for name in cells if name not in drop}
        for name, survey in surveys.items():
            survey.add(cells[name], rows + 2)
    return surveys


def _meant(name: str, names: Sequence[str]) -> str:
    """The name that was perhaps meant."""
    alike = get_close_matches(name.lower(), dict.fromkeys(map(str.lower, names)), 1)
    return f" (is {next(own for own in names if own.lower() == alike[0])!r} meant?)" if alike else ""


def _header(names: Sequence[str]) -> str:
    """What a file's first line names, and how it may have been misread, or its flags."""
    said = f"its first line names {enumerate_names(names, 12)}."
    if len(names) == 1:
        said += " Commas, semicolons or tabs separate columns."
    if any("," in name for name in names):
        said += " A name with a comma is quoted within its flag: --drop '\"width, cm\",height'."
    if np.isfinite(as_numbers(names)).any():
        said += " If that is a row of data, add a line of names above it."
    return said


def _all_numbers(names: Sequence[str]) -> bool:
    """Whether names look like a row of data: numbers, and not those of the columns."""
    return bool(np.isfinite(as_numbers(names)).all()) and names != [str(i) for i in range(len(names))]


def _classes(path: Path, target: str, labels: Survey) -> dict[str, Any]:
    """The label of each string in the target."""
    n, classes = labels.present + labels.missing, sorted(labels.values)
    if labels.missing:
        raise InputError(
            f"{_at(path, target, labels, 'missing')}: the label is missing ({labels.missing} of {n} rows); "
            f"remove such rows{_unless(labels.first['missing'][0])}."
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
    return as_levels(labels.values)


def _odd_classes(labels: Survey) -> str:
    """What a user may not have meant by the labels."""
    said: list[str] = []
    alike: dict[str, list[str]] = {}
    for cell in labels.values:
        alike.setdefault(cell.casefold(), []).append(cell)
    if labels.numbers == labels.present and len(labels.values) > _MANY_CLASSES:
        said.append(
            f"each of its {len(labels.values)} numbers is a class; of a number cut into ranges each range is one"
        )
    if twice := [cells for cells in alike.values() if len(cells) > 1]:
        said.append(f"{' and '.join(map(repr, twice[0]))} are different classes, as they are spelt")
    return "; ".join(said)


def _kinds(
    path: Path, surveys: Mapping[str, Survey], kinds: Mapping[str, str], default: str | None, marks: Marks
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Kinds of the columns that are used; those left out, and notes."""
    chosen, left_out, notes = {}, {}, {}
    for name, survey in surveys.items():
        if default is None and name not in kinds and (value := survey.constant) is not None:
            left_out[name] = f"every cell is {value!r}"
            continue
        kind, note = guess(survey)
        kind = kinds.get(name, kind if kind is None or default is None else default)
        if kind == "categorical" and survey.beyond:
            if name in kinds:
                raise InputError(f"{path.name}, column {name!r}: {too_many(survey)}; --drop it.")
            kind, note = None, too_many(survey)
        if kind is None:
            left_out[name] = note
            continue
        if kind != "categorical":
            _require_numbers(path, name, survey, kind if kind in KINDS else "numeric")
        marked = marks.assumed(name, survey.marked) if kind == "categorical" else []
        taken = f"{enumerate_names([*map(repr, marked)], 5)} marks missing cells{_unless(marked[0])}" if marked else ""
        unseen = marks.unseen(name, survey.marked)
        nowhere = [f"no cell is {mark!r}, which is to mark its missing cells" for mark in unseen]
        apart = _ZEROS if kind != "categorical" and name not in kinds and zeros_stand_apart(survey) else ""
        if said := [*filter(None, [note, taken, apart, *nowhere])]:
            notes[name] = "; ".join(said)
        chosen[name] = kind
    return chosen, left_out, notes


def _require_numbers(path: Path, name: str, column: Survey, kind: str) -> None:
    mark = "mark it with --missing, or use --categorical or --drop for the column."
    refused = {
        "odd": f"is not a number ({column.present - column.numbers} such cells), as {kind} columns need; {mark}",
        "infinite": f"is infinity or too large, and {kind} columns need finite numbers; {mark}",
    }
    if kind in _NONNEGATIVE:
        refused["negative"] = f"is negative, and {kind} columns hold numbers from 0 on; {mark}"
    if kind == "multinomial":
        refused["missing"] = (
            f"is missing ({column.missing} such cells), and a multinomial column takes none; fill in a count, or "
            "--drop the column."
        )
    for what, why in refused.items():
        if what in column.first:
            cell = column.first[what][0]
            raise InputError(f"{_at(path, name, column, what)}: {repr(cell) if cell else 'the cell'} {why}")


def _unless(mark: str) -> str:
    return f"; if {mark!r} is a value: --not-missing {mark!r}" if mark else ""


def _at(path: Path, name: str, column: Survey, what: str) -> str:
    return f"{path.name}, row {column.first[what][1]}, column {name!r}"


__all__ = ["KINDS", "NUMBERS", "UNDECIDED", "Dataset", "InputError", "from_frame", "load_csv", "title"]
