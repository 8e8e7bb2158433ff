"""Files of any size: fitted, scored and tested for drift in pieces."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

import bayesnb
from bayesnb._util.atomic_files import replaced
from bayesnb._util.terminal import shorten
from bayesnb._util.warnings import internal_fits
from bayesnb.analysis.drift import DriftStatistics, check_drift
from bayesnb.cli.document import InputError, enumerate_names, grid
from bayesnb.cli.labelled_data import Batch, describe_columns, load, most_rows
from bayesnb.cli.reading import CellType, Marks, Reading, Reservoir, as_texts, have_form, read_frames
from bayesnb.cli.tables import TableFile, blamed_on, quote_formula, require_columns
from bayesnb.encoding import numeric_columns
from bayesnb.estimators.predictions import FittedClassifier

# == Fit to a file of any size: a sample teaches weights, structure and densities, and all rows are counted


def fit_file(
    table: TableFile,
    target: str,
    reading: Reading,
    kinds: Mapping[str, str],
    drop: Collection[str],
    estimator: str,
) -> tuple[Any, list[str]]:
    """Fit a classifier to the rows of a file; return it with lines that describe the fit.

    The classifier has an attribute `reading_`, by which other files are read like this one.

    Parameters
    ----------
    table : TableFile
    target : str
        Column of the labels.
    reading : Reading
        Marks of missing cells.
    kinds : dict
        "categorical" or "numbers" for columns whose type the user decided, by name.
    drop : collection of str
        Columns to leave out. Identifiers that `kinds` does not name are left out, too.
    estimator : str
        "weighted", "mixed", or a kind of columns.

    Raises
    ------
    InputError
        If the file cannot be read, or the classifier cannot use it.
    """
    begin = time.perf_counter()
    data = load(table, target, reading, kinds, None, drop, whole=False)
    rows, n, n_sampled, missing = data.rows, data.n_rows, len(data.rows.y), 0

    def others() -> Iterator[Batch]:
        """Yield the rows that are not in memory, and count their missing cells."""
        nonlocal missing
        for X, y in rows.others():
            missing += int(X.isna().sum().sum())
            yield X, y

    with internal_fits(), blamed_on(table.path.name):
        unfitted = getattr(bayesnb, f"{estimator.title()}NB")()
        (nb,) = replace(rows, others=others).fit(unfitted, [np.arange(n_sampled)], table.path.name)
    missing += int(rows.X.isna().sum().sum())
    for part in (nb, getattr(nb, "model_", nb)):  # A WeightedNB takes all that is known of the columns from its model.
        part.reading_ = data.reading.to_dict()
    counts = ", ".join(f"{c}: {k:,.0f}" for c, k in zip(nb.classes_.tolist(), nb.class_count_, strict=True))
    how = f" a random sample of {n_sampled:,} rows chose weights, structure and densities;" if n_sampled < n else ""
    by_value = ["numbers" if is_number else "levels" for is_number in numeric_columns(nb.encoding_.blocks)]
    of_column = pd.Series(getattr(nb, "kinds_", dict(zip(data.kinds, by_value, strict=True))))
    by_kind = of_column.groupby(of_column, sort=False).groups
    return nb, [
        f"{type(nb).__name__} of {target}: {n:,} rows, {len(nb.classes_):,} classes ({counts})",
        *(f"{kind}: {enumerate_names([*columns], 12)}" for kind, columns in by_kind.items()),
        *(f"left out: {name} ({reason})" for name, reason in data.left_out.items() if name not in drop),
        f"missing cells: {missing:,} of {n * len(data.kinds):,};{how} {time.perf_counter() - begin:.1f} seconds",
        *(f"note: {note}" for note in describe_columns(data.notes)),
    ]


# == Class probabilities and decisions for the rows of a file of any size ==========================


def load_model(path: Path) -> Any:
    """Load a classifier that was fitted to columns with names; raise InputError for any other file."""
    with blamed_on("--model"):
        nb = bayesnb.load(path)
    for attribute, words in {"fitted_": "classes", "feature_names_in_": "names of columns"}.items():
        if not hasattr(nb, attribute):
            advice = "Pass a classifier that was fitted to a DataFrame and labels, or by the command fit."
            raise InputError(f"--model {path} holds a {type(nb).__name__} without {words}. {advice}")
    return nb


def known_levels(nb: FittedClassifier) -> dict[str, list[Hashable]]:
    """Return the levels of each column of levels of a fitted classifier."""
    blocks = nb.fitted_.encoding.blocks
    numeric = numeric_columns(blocks)
    levels = defaultdict[str, list[Hashable]](list)
    for base in (block.base for block in blocks):
        feature, values = base.axis()
        for f, value in zip(feature.tolist(), values or (), strict=False):
            if not numeric[base.index[f]]:
                levels[base.names[f]].append(value)
    return levels


def find_reading(nb: FittedClassifier, table: TableFile, marks: Marks) -> Reading:
    """Return the reading by which the cells of a table become values of the columns of a classifier.

    It is that of the file to which the command `fit` has fitted the classifier. For another classifier the levels give
    the types of columns, and the texts of a Parquet file are values as they stand.

    Parameters
    ----------
    nb : fitted classifier
    table : TableFile
    marks : Marks
        Marks of missing cells that the user names, if any.

    Raises
    ------
    InputError
        If the table lacks a column of the classifier; if the user's marks are not those of the fit.
    """
    names = list(nb.feature_names_in_)
    require_columns(table, names)
    if (stored := getattr(nb, "reading_", None)) is not None:
        reading = Reading.from_dict(stored)
        if missing := [name for name in names if name not in reading.types]:
            raise InputError(f"--model: reading_ of the model has no type of the column {missing[0]!r}. Fit it again.")
        if marks not in (Marks(), reading.marks):
            flags = "--missing, --missing-in and --not-missing"
            problem = f"The model was fitted to a table with other marks of missing cells: {reading.marks or 'none'}"
            raise InputError(f"{problem}. The model holds its marks; leave out {flags}.")
        return reading
    blocks, levels = nb.fitted_.encoding.blocks, known_levels(nb)
    of_value: dict[type, CellType] = {str: "level", bool: "boolean", pd.Timestamp: "time"}
    types: dict[str, CellType] = {name: "number" for name in names}
    types |= {name: of_value.get(type(values[0]), "number") for name, values in levels.items()}
    types |= dict.fromkeys(getattr(nb, "time_units_", {}), "time")
    reading = Reading(marks if table.delimiter or marks != Marks() else None, types)
    if binary := [name for block in blocks if block.kind == "bernoulli" for name in block.names]:
        first = next(table.batches(binary))
        cells = {name: as_texts(first.column(name)) for name in binary}
        present = {name: reading.present(name, texts, table) for name, texts in cells.items() if texts is not None}
        are_words = [name for name, texts in present.items() if have_form(texts, "boolean")]
        reading = reading.with_types(dict.fromkeys(are_words, "boolean"))
    return reading


@dataclass(frozen=True)
class Scoring:
    """Class probabilities, and what else is computed for each row.

    Parameters
    ----------
    nb : classifier
        Fitted classifier.
    keep : sequence of str
        Columns to copy from the rows, as they stand in the file.
    losses : DataFrame or None
        Losses, actions × classes, of which decisions minimise the mean; None: no decisions.
    prob : float or None
        Probability of intervals of the class probabilities; None: no intervals.
    counts : Counter
        Number of "rows", and of cells that are "missing" or have "unknown" levels, in the batches so far.
    """

    nb: FittedClassifier
    keep: Sequence[str]
    losses: pd.DataFrame | None
    prob: float | None
    counts: Counter[str] = field(default_factory=Counter)

    def tables(self, table: TableFile, reading: Reading) -> Iterator[pa.Table]:
        """Yield tables with the kept columns and the scores of the rows of a file."""
        names, levels = list(self.nb.feature_names_in_), known_levels(self.nb)
        for batch in table.batches(list(dict.fromkeys([*names, *self.keep]))):
            n = self.counts["rows"]
            X = reading.frame(batch.select(names), table, np.arange(n, n + batch.num_rows))
            with blamed_on(f"{table.path.name}, rows {n + 2:,} to {n + 1 + len(X):,}"):
                scores = {name: pa.array(values, from_pandas=True) for name, values in self.score(X).items()}
            if repeated := [name for name in self.keep if name in scores]:
                raise InputError(f"--keep {repeated[0]}: scores have a column of this name, too. Rename the column.")
            unknown = sum(int((X[name].notna() & ~X[name].isin(known)).sum()) for name, known in levels.items())
            self.counts.update(rows=len(X), missing=int(X.isna().sum().sum()), unknown=unknown)
            yield pa.table({name: batch.column(name) for name in self.keep} | scores)

    def score(self, X: pd.DataFrame) -> dict[str, Sequence[object] | np.ndarray]:
        """Return the scores of rows by column of the output."""
        proba, labels = self.nb.predict_proba(X), self.nb.classes_.tolist()
        known = np.where(np.isnan(proba), np.exp(self.nb.class_log_prior_), proba)
        columns: dict[str, Sequence[object] | np.ndarray] = {"prediction": [labels[c] for c in known.argmax(axis=1)]}
        if self.losses is not None:
            risk = known @ self.losses.to_numpy().T
            columns["decision"] = self.losses.index[risk.argmin(axis=1)].tolist()
            columns["expected loss"] = risk.min(axis=1)
        ends = {"": proba}
        if self.prob is not None:
            ends |= zip((" lower", " upper"), bayesnb.predict_interval(self.nb, X, self.prob), strict=True)
        return columns | {f"P({c}){end}": p[:, j] for j, c in enumerate(labels) for end, p in ends.items()}


def write_tables(tables: Iterable[pa.Table | pd.DataFrame], path: Path, *, excel_safe: bool) -> None:
    """Write tables of Arrow or DataFrames of the same columns to the file of --out, CSV or Parquet, as a whole.

    With `excel_safe` the texts of a CSV file that a spreadsheet would compute begin with an apostrophe.
    """
    is_csv = path.suffix.lower() == ".csv"
    with blamed_on("--out", OSError), replaced(path) as temporary, ExitStack() as stack:
        writer = None
        for table in tables:
            table = _quote_formulas(pa.table(table)) if is_csv and excel_safe else pa.table(table)
            if writer is None:
                make_writer = csv.CSVWriter if is_csv else parquet.ParquetWriter
                writer = stack.enter_context(make_writer(temporary, table.schema))
            writer.write_table(table)


def _quote_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe before the texts of a table, and names of columns, that a spreadsheet would compute."""
    for i, name in enumerate(table.column_names):
        texts = as_texts(table.column(i).combine_chunks())
        quoted = table.column(i) if texts is None else pa.array(map(quote_formula, texts.to_pylist()), pa.string())
        table = table.set_column(i, str(quote_formula(name)), quoted)
    return table


# == Tests whether the rows of a file of any size differ from those that a classifier has counted ==

_LONG = 48


def measure_drift(
    nb: FittedClassifier, table: TableFile, target: str | None, reference: TableFile | None, marks: Marks
) -> pd.DataFrame:
    """Test each column of a file, and the labels in the column `target`, against the rows that a classifier counted.

    With a reference file the tests are those of `check_drift` on random samples of both files. `marks` are those that
    the user names, see `find_reading`.

    Raises
    ------
    InputError
        If a file cannot be read or lacks a column, or a label is missing.
    """
    reading, total = find_reading(nb, table, marks), None
    if target is not None:
        reading = reading.with_types({target: "level"})
    columns = [*nb.feature_names_in_, *([] if target is None else [target])]
    if reference is not None:
        X, y = _split(nb, _sample(table, reading, columns), target)
        rows = _sample(reference, find_reading(nb, reference, marks), columns[: nb.n_features_in_])
        with blamed_on(table.path.name):
            return check_drift(nb, X, y, rows)
    for rows in read_frames(table, reading, columns):
        X, y = _split(nb, rows, target)
        with blamed_on(f"{table.path.name}, rows {rows.index[0] + 2:,} to {rows.index[-1] + 2:,}"):
            part = DriftStatistics.from_rows(nb, X, y)
        total = part if total is None else total.merge(part)
    assert total is not None
    return total.compare(nb)


def _sample(table: TableFile, reading: Reading, columns: Sequence[str]) -> pd.DataFrame:
    """Return the values of a random sample of the rows of a file."""
    reservoir = Reservoir(most_rows(len(columns)))
    for batch in table.batches(columns):
        reservoir.add(batch)
    cells, rows = reservoir.sample()
    return reading.frame(cells, table, rows)


def _split(nb: FittedClassifier, rows: pd.DataFrame, target: str | None) -> tuple[pd.DataFrame, pd.Series | None]:
    """Return the features of rows, and their labels in the type of the classes; None without a target."""
    X = rows[list(nb.feature_names_in_)]
    if target is None:
        return X, None
    known: dict[str, object] = {}
    for label in reversed(nb.classes_.tolist()):  # The command fit reads 1.0 as '1', and True as 'true'.
        text = str(label)
        known |= dict.fromkeys([text, text.removesuffix(".0"), *([text.lower()] * isinstance(label, bool))], label)
    return X, pd.Series([known.get(str(label), label) for label in rows[target]], dtype=object)


def describe_remarks(nb: FittedClassifier) -> list[str]:
    """Return a line for each remark on suspicious columns of the table to which the command `fit` fitted a model."""
    notes = defaultdict[str, list[str]](list)
    if (stored := getattr(nb, "reading_", None)) is not None:
        for name, remark in Reading.from_dict(stored).remarks.items():
            notes[remark].append(name)
    return describe_columns(notes)


def format_drift(tests: pd.DataFrame, level: float) -> str:
    """Write the table of `check_drift` for a terminal, and a line that names what has drifted at the level."""
    tests = tests.dropna(subset="p")
    numbers = [[f"{value:.2g}" for value in row] for row in tests[["effect", "p", "q"]].to_numpy()]
    changes = [shorten(str(change), _LONG) for change in tests["change"]]
    rows = [[str(name), change, *row] for name, change, row in zip(tests.index, changes, numbers, strict=True)]
    drifted = [str(name) for name in tests.index[tests["q"] < level]]
    verdict = f"q < {level:g}: {enumerate_names(drifted, 12)}" if drifted else f"No q-value is below {level:g}."
    return f"{grid(['column', 'change', 'effect', 'p', 'q'], rows)}\n\n{verdict}"
