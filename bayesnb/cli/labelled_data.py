"""Labelled tables with a kind for each column, from a CSV file or of a run without a file, and tables of losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesnb import datasets, families
from bayesnb._util.kinds import KINDS
from bayesnb.cli.column_types import ColumnCounts, Label, Marks, guess, to_levels, to_numbers
from bayesnb.cli.csv_cells import larger_than_memory, read_cells, require_columns, title
from bayesnb.cli.fitting import Batch, InMemory, Streamed, concatenate
from bayesnb.cli.output_folder import BUILT_IN
from bayesnb.cli.table_files import blamed_on
from bayesnb.cli.terminal import InputError
from bayesnb.decision import loss_table

NUMBERS = {family.kind: family for family in (*families.OF_NUMBERS, families.Binned)}
UNDECIDED = "numbers"
"""Kind of a column of numbers whose density is chosen when a classifier is fitted."""
_NONNEGATIVE = ("multinomial", *(kind for kind, family in NUMBERS.items() if family.nonnegative))
_MOST_LEVELS = 100_000
MOST_CLASSES = 1000
_NO_NAMES = "read as the names of the columns; if it is a row of data, add a line of names above it"
_MANY_CLASSES = f"Classes need two rows or more on average, and at most {MOST_CLASSES:,} are allowed. Merge classes."
_ZEROS = "some cells are 0 and no other value is near 0; if 0 means “not measured”, add --missing-in 0 COLUMNS"


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
    levels: Mapping[str, Sequence[Label]]
    class_count: Mapping[Label, int]
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
    """Load the two data sets that are analysed without a file: breast cancer and watermelon."""
    from sklearn.datasets import load_breast_cancer

    cancer, melon = load_breast_cancer(as_frame=True), datasets.load_watermelon(language="en")
    first, second = BUILT_IN
    wisconsin = "scikit-learn's copy of the Wisconsin diagnostic data"
    zhou = "Zhou Zhihua, Machine Learning (2016), table 4.3"
    return [
        _from_frame(first, cancer.data, cancer.target_names[cancer.target], "diagnosis", wisconsin),
        _from_frame(second, melon.data, melon.target.to_numpy(), "ripe", zhou),
    ]


def _from_frame(name: str, X: pd.DataFrame, y: np.ndarray, target: str, about: str) -> Dataset:
    """Make a data set of a frame: columns of numbers with the density undecided, all others categorical."""
    levels = {str(column): X[column].unique().tolist() for column in X.select_dtypes(exclude="number")}
    kinds = {column: "categorical" if column in levels else UNDECIDED for column in map(str, X)}
    return Dataset(name, InMemory(X, y), kinds, levels, Counter(y.tolist()), target, about=about)


def load_csv(
    path: Path, target: str, marks: Marks, kinds: Mapping[str, str], default: str | None, drop: Sequence[str]
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
        If the file cannot be read or is not a table, a column does not exist, the labels are not classes, or a
        cell is not a number where one is needed.
    """
    streamed = larger_than_memory(path)
    pieces: Iterable[Any] = read_cells(path) if streamed else list(read_cells(path))
    counts: dict[str, ColumnCounts] = {}
    for cells in pieces:
        if not counts:
            require_columns(path, list(cells), (target, *kinds, *drop, *marks.within))
            limit = _MOST_LEVELS if streamed else np.inf
            counts = {name: ColumnCounts(name, marks, limit) for name in cells if name not in drop}
        for name, column in counts.items():
            column.add(cells[name])
    labels = counts.pop(target)
    require_classes(path, labels)
    chosen, left_out, notes = _choose_kinds(path, counts, kinds, default)
    names = [target, *counts]
    if np.isfinite(to_numbers(names)).all() and sorted(names) != sorted(map(str, range(len(names)))):
        notes["the first line"] = _NO_NAMES
    if not chosen:
        reasons = ", ".join(f"{name} ({reason})" for name, reason in list(left_out.items())[:3])
        keep = f"Left out: {reasons}. To keep a column, name it in --categorical or another flag."
        advice = keep if reasons else "Add columns of features, or drop fewer."
        raise InputError(f"{path.name}: no column is left besides the target {target!r}. {advice}")
    levels = {name: to_levels(counts[name].values) for name, kind in chosen.items() if kind == "categorical"}
    classes = to_levels(labels.values)
    class_count = {classes[cell]: n for cell, n in labels.values.items()}
    typed = partial(_type_cells, path, target, list(chosen), levels | {target: classes}, marks)
    rows: InMemory | Streamed
    if streamed:
        rows = Streamed(path, lambda: map(typed, read_cells(path)), class_count, len(chosen))
    else:
        rows = InMemory(*concatenate(list(map(typed, pieces))))
    return Dataset(
        title(path),
        rows,
        chosen,
        {name: list(cells.values()) for name, cells in levels.items()},
        class_count,
        target,
        {name: counts[name].missing for name in chosen if counts[name].missing},
        left_out | dict.fromkeys(drop, "by --drop"),
        notes,
        f"from {path.name}" + ", read in pieces because it does not fit into memory" * streamed,
        guessed=default is None,
    )


def read_losses(path: Path, classes: np.ndarray) -> pd.DataFrame:
    """Read a CSV file with the loss of each action (row, named in the first column) for each class (column)."""
    cells = pd.concat(read_cells(path))
    actions, names = cells.iloc[:, 0], {str(label): label for label in classes.tolist()}
    losses = cells.iloc[:, 1:].apply(to_numbers).set_axis(actions.tolist()).rename(columns=names)
    with blamed_on(f"--loss {path}"):
        return loss_table(losses, None, classes)


def _type_cells(
    path: Path, target: str, names: Sequence[str], levels: Mapping[str, Any], marks: Marks, cells: pd.DataFrame
) -> Batch:
    """Convert cells as text to features `names` and labels; columns in `levels` become levels, others floats."""
    columns = {}
    for name in (*names, target):
        code, texts = pd.factorize(cells[name].to_numpy())
        missing = marks.are_missing(name, texts)
        if name in levels:
            values = np.array([levels[name].get(text) for text in texts], object)
            values[missing] = None
        else:
            values = np.where(missing, np.nan, to_numbers(texts))
        if pd.isna(values)[~missing].any() or (name == target and missing.any()):
            raise InputError(f"{path.name} changed while it was read. Run the command again.")
        columns[name] = pd.Series(values[code], cells.index, values.dtype)
    y = np.array(columns.pop(target).tolist())
    return pd.DataFrame(columns), y


def require_classes(path: Path, labels: ColumnCounts) -> None:
    """Raise InputError unless each row has a label, of 2 to 1,000 classes that have two rows or more on average."""
    n, classes, target = labels.present + labels.missing, len(labels.values), repr(labels.name)
    if labels.missing:
        mark, row = labels.first["missing"]
        advice = f", or add --not-missing {mark!r} if {mark!r} is a label" if mark else ""
        problem = f"the label is missing ({labels.missing} of {n} rows)"
        raise InputError(f"{path.name}, row {row}, column {target}: {problem}. Remove these rows{advice}.")
    if classes == 1:
        problem, advice = f"only one class, {next(iter(labels.values))!r}", "Choose a target with two or more classes."
    elif labels.beyond or classes > min(n / 2, MOST_CLASSES):
        many = f"more than {labels.limit}" if labels.beyond else f"{classes:,}"
        problem, advice = f"{many} distinct values in {n} rows", _MANY_CLASSES
    else:
        return
    raise InputError(f"{path.name}: the target {target} has {problem}. {advice}")


def _choose_kinds(
    path: Path, counts: Mapping[str, ColumnCounts], kinds: Mapping[str, str], default: str | None
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return {column: kind} of the columns in use, {column: reason} of those left out, and {column: note}."""
    chosen, left_out, notes = {}, {}, {}
    for name, column in counts.items():
        guessed, note = guess(column)
        kind = kinds.get(name, guessed and (default or guessed))
        if kind == "categorical" and column.beyond:
            if name in kinds:
                raise InputError(f"{path.name}, column {name!r}: {column.too_many}. Leave the column out by --drop.")
            kind, note = None, column.too_many
        if kind is None:
            left_out[name] = note
            continue
        if kind != "categorical":
            _require_numbers(path, column, kind if kind in KINDS else "numeric")
        zeros = _ZEROS if kind != "categorical" and name not in kinds and column.zeros_stand_apart else ""
        if note or zeros:
            notes[name] = "; ".join(filter(None, [note, zeros]))
        chosen[name] = kind
    return chosen, left_out, notes


def _require_numbers(path: Path, column: ColumnCounts, kind: str) -> None:
    """Raise InputError unless all cells of a column are numbers that columns of this kind hold."""
    problems = {"odd": "is not a number", "infinite": "is infinity or too large"}
    if kind in _NONNEGATIVE:
        problems["negative"] = "is negative"
    if kind == "multinomial":
        problems["missing"] = "is missing"
    mark = "" if kind == "multinomial" else "mark it with --missing, "
    advice = f"Correct the cell, {mark}or use --categorical or --drop for the column."
    for problem, text in problems.items():
        if problem in column.first:
            cell, row = column.first[problem]
            what = f"{repr(cell) if cell else 'the cell'} {text}, which {kind} columns do not accept"
            raise InputError(f"{path.name}, row {row}, column {column.name!r}: {what}. {advice}")
