"""Files of any size: fitted, scored and tested for drift in pieces."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute, csv, parquet

import bayesnb
from bayesnb._util.atomic_files import replaced
from bayesnb._util.terminal import shorten
from bayesnb._util.warnings import internal_fits
from bayesnb.analysis.drift import DriftStatistics, check_drift
from bayesnb.cli.document import InputError, enumerate_names, grid
from bayesnb.cli.labelled_data import (
    IDENTIFIER,
    MOST_CLASSES,
    ROW_NUMBERS,
    ColumnCounts,
    Marks,
    describe_columns,
    most_rows,
    require_classes,
    to_levels,
)
from bayesnb.cli.tables import FORMULA, TableFile, blamed_on, quote_formula, require_columns
from bayesnb.encoding import check_table, numeric_columns
from bayesnb.encoding.table import from_arrow
from bayesnb.estimators.predictions import FittedClassifier

# == Fit to a file of any size: a sample teaches weights, structure and densities, and all rows are counted

_CHANGED = "The file changed while it was read. Run the command again."
_READ_TEXTS = "Name the column in --categorical, to read texts, or in --drop."
_NO_COLUMN = "no column is left to learn from. Name identifiers to keep in --categorical."
_SEED = 0x9E3779B97F4A7C15


class Reservoir:
    """Random sample of at most `size` rows of batches, all equally probable: those with the smallest random keys."""

    def __init__(self, size: int) -> None:
        # Simulated rows are often drawn by the seed 0, from which keys would not be independent.
        self._size, self._rng, self._largest = size, np.random.default_rng(_SEED), 1.0
        self._kept: list[tuple[pd.DataFrame, np.ndarray]] = []

    def add(self, rows: pd.DataFrame) -> None:
        """Draw from further rows."""
        key = self._rng.random(len(rows))
        keep = key <= self._largest
        self._kept.append((rows[keep], key[keep]))
        if sum(len(key) for _, key in self._kept) > 2 * self._size:
            self.sample()

    def sample(self) -> pd.DataFrame:
        """Return the sample of the rows so far, in their order."""
        rows, key = pd.concat([rows for rows, _ in self._kept]), np.concatenate([key for _, key in self._kept])
        if len(key) > self._size:
            keep = np.sort(np.argpartition(key, self._size - 1)[: self._size])
            rows, key = rows.iloc[keep], key[keep]
            self._largest = key.max()
        self._kept = [(rows, key)]
        return rows


def fit_file(
    table: TableFile, names: Sequence[str], target: str, types: Mapping[str, str], estimator: str
) -> tuple[Any, list[str]]:
    """Fit a classifier to the rows of a file; return it with lines that describe the fit.

    Parameters
    ----------
    table : TableFile
        File.
    names : sequence of str
        Columns of features. Identifiers among them are left out, unless they are in `types`.
    target : str
        Column of the labels.
    types : dict
        Types of columns that the file does not determine; that of the labels is "string".
    estimator : str
        "weighted", "mixed", or a kind of columns.

    Raises
    ------
    InputError
        If the file cannot be read, or the classifier cannot use it.
    """
    begin, marks = time.perf_counter(), Marks(frozenset(table.missing), {}, frozenset(table.not_missing))
    labels, reservoir = ColumnCounts(target, marks, MOST_CLASSES), Reservoir(most_rows(len(names) + 1))
    missing = Counter[str]()
    for rows in _frames(table, [*names, target], types):
        labels.add(rows[target].astype(object).fillna(""))
        missing.update({name: int(rows[name].isna().sum()) for name in names})
        reservoir.add(rows)
    n = labels.present + labels.missing
    require_classes(table.path, labels)
    classes, sample = to_levels(labels.values), reservoir.sample()
    y = _labels(sample, target, classes)
    left_out = _identifiers(sample[names], types) if names else {}
    names = [name for name in names if name not in left_out]
    if not names:
        raise InputError(f"{table.path.name}: {_NO_COLUMN}")
    nb = getattr(bayesnb, f"{estimator.title()}NB")()
    with internal_fits(), blamed_on(table.path.name):
        nb.fit(sample[names], y)
    for rows in _frames(table, [*names, target], types, n) if len(sample) < n else ():
        others = rows[~rows.index.isin(sample.index)]
        with blamed_on(f"{table.path.name}, rows {rows.index[0] + 2:,} to {rows.index[-1] + 2:,}"):
            if len(others):
                nb.partial_fit(others[names], _labels(others, target, classes), list(classes.values()))
    if nb.class_count_.sum() != n:
        raise InputError(_CHANGED)
    counts = ", ".join(f"{c}: {k:,.0f}" for c, k in zip(nb.classes_.tolist(), nb.class_count_, strict=True))
    n_missing = sum(missing[name] for name in names)
    how = f" a random sample of {len(sample):,} rows chose weights, structure and densities;" if len(sample) < n else ""
    kinds = ["numbers" if is_number else "levels" for is_number in numeric_columns(nb.encoding_.blocks)]
    of_column = pd.Series(getattr(nb, "kinds_", dict(zip(names, kinds, strict=True))))
    by_kind = of_column.groupby(of_column, sort=False).groups
    return nb, [
        f"{type(nb).__name__} of {target}: {n:,} rows, {len(classes):,} classes ({counts})",
        *(f"{kind}: {enumerate_names([*columns], 12)}" for kind, columns in by_kind.items()),
        *(f"left out: {name} ({reason})" for name, reason in left_out.items()),
        f"missing cells: {n_missing:,} of {n * len(names):,};{how} {time.perf_counter() - begin:.1f} seconds",
        *(f"note: {remark}" for remark in describe_columns(check_table(sample[names], y)["remarks"])),
    ]


def _frames(
    table: TableFile, columns: Sequence[str], types: Mapping[str, str], total: int | None = None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a file, of which there are `total`, in DataFrames, whose index counts rows from 0."""
    n = 0
    for batch in table.batches(columns, types, total):
        for name, kind in zip(batch.schema.names, batch.schema.types, strict=True):
            if pa.types.is_time(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
                problem = f"column {name!r}: cells of type {kind} are neither numbers nor texts"
                raise InputError(f"{table.path.name}, {problem}. {_READ_TEXTS}")
        frame = from_arrow(batch)
        frame.index = pd.RangeIndex(n, n + len(frame))
        n += len(frame)
        yield frame


def _labels(rows: pd.DataFrame, target: str, classes: dict[str, Any]) -> np.ndarray:
    """Return the labels of rows as an array of integers or of texts; raise InputError if one is not in `classes`."""
    code, texts = pd.factorize(rows[target], use_na_sentinel=False)
    if not classes.keys() >= set(texts):
        raise InputError(_CHANGED)
    return np.array([classes[text] for text in texts])[code]


def _identifiers(sample: pd.DataFrame, named: Iterable[str]) -> dict[str, str]:
    """Return the columns of a sample whose texts are all different, or whose numbers count rows, with the reasons."""
    described = check_table(sample)
    unique = (described["levels"] == len(sample) - described["missing"]) & (described["levels"] > 1)
    found = {}
    for name in described.index[unique].difference(list(named), sort=False):
        if described.loc[name, "kind"] == "levels":
            found[name] = IDENTIFIER
        elif sample[name].dtype.kind in "iu" and (sample[name] - sample.index).nunique() == 1:
            found[name] = ROW_NUMBERS
    return found


# == Class probabilities and decisions for the rows of a file of any size ==========================

_FORMULA = f"^[{re.escape(''.join(FORMULA))}]"


def load_model(path: Path) -> Any:
    """Load a classifier that was fitted to columns with names; raise InputError for any other file."""
    with blamed_on("--model"):
        nb = bayesnb.load(path)
    for attribute, words in {"fitted_": "classes", "feature_names_in_": "names of columns"}.items():
        if not hasattr(nb, attribute):
            advice = "Pass a classifier that was fitted to a DataFrame and labels, or by the command fit."
            raise InputError(f"--model {path} holds a {type(nb).__name__} without {words}. {advice}")
    return nb


def known_levels(nb: FittedClassifier) -> dict[str, list[Any]]:
    """Return the levels of each column of levels of a fitted classifier."""
    blocks = nb.fitted_.encoding.blocks
    numeric = numeric_columns(blocks)
    levels: dict[str, list[Any]] = defaultdict(list)
    for base in (block.base for block in blocks):
        feature, values = base.axis()
        for f, value in zip(feature.tolist(), values or (), strict=False):
            if not numeric[base.index[f]]:
                levels[base.names[f]].append(value)
    return levels


def read_rows(
    table: TableFile, nb: FittedClassifier, others: Sequence[str] = (), *, as_texts: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield record batches of Arrow with the columns of a classifier, in its order, and of other columns.

    Columns have the types of the classifier: numbers, texts or Booleans. The types of dates, durations and Bernoulli
    columns are inferred from the file. Other columns are texts in a CSV file, and in each file if `as_texts`.

    Raises
    ------
    InputError
        If the file lacks a column.
    """
    names = list(nb.feature_names_in_)
    require_columns(table.path, table.columns, [*names, *others])
    others = [name for name in dict.fromkeys(others) if name not in names]
    blocks = nb.fitted_.encoding.blocks
    inferred = {name for block in blocks if block.kind == "bernoulli" for name in block.names}
    inferred |= getattr(nb, "time_units_", {}).keys()
    types = {name: "double" for name, numeric in zip(names, numeric_columns(blocks), strict=True) if numeric}
    types = {name: kind for name, kind in types.items() if name not in inferred}
    of_type = {str: "string", bool: "bool"}
    types |= {name: of_type.get(type(levels[0]), "double") for name, levels in known_levels(nb).items()}
    types |= dict.fromkeys(others if table.form or as_texts else [], "string")
    yield from table.batches([*names, *others], types)


@dataclass(frozen=True)
class Scoring:
    """Class probabilities, and what else is computed for each row.

    Parameters
    ----------
    nb : classifier
        Fitted classifier.
    keep : sequence of str
        Columns to copy from the rows.
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

    def tables(self, table: TableFile) -> Iterator[pa.Table]:
        """Yield tables with the kept columns and the scores of the rows of a file."""
        names, levels = list(self.nb.feature_names_in_), known_levels(self.nb)
        for batch in read_rows(table, self.nb, self.keep):
            X, n = from_arrow(batch.select(names)), self.counts["rows"]
            with blamed_on(f"{table.path.name}, rows {n + 2:,} to {n + 1 + len(X):,}"):
                scores = {name: pa.array(values, from_pandas=True) for name, values in self.score(X).items()}
            if repeated := [name for name in self.keep if name in scores]:
                raise InputError(f"--keep {repeated[0]}: scores have a column of this name, too. Rename the column.")
            unknown = sum(int((X[name].notna() & ~X[name].isin(known)).sum()) for name, known in levels.items())
            self.counts.update(rows=len(X), missing=int(X.isna().sum().sum()), unknown=unknown)
            yield pa.table({name: batch.column(name) for name in self.keep} | scores)

    def score(self, X: pd.DataFrame) -> dict[str, Any]:
        """Return the scores of rows by column of the output."""
        proba, labels = self.nb.predict_proba(X), self.nb.classes_.tolist()
        known = np.where(np.isnan(proba), np.exp(self.nb.class_log_prior_), proba)
        columns = {"prediction": [labels[c] for c in known.argmax(axis=1)]}
        if self.losses is not None:
            risk = known @ self.losses.to_numpy().T
            columns["decision"] = self.losses.index[risk.argmin(axis=1)].tolist()
            columns["expected loss"] = risk.min(axis=1)
        ends = {"": proba}
        if self.prob is not None:
            ends |= zip((" lower", " upper"), bayesnb.predict_interval(self.nb, X, self.prob), strict=True)
        return columns | {f"P({c}){end}": p[:, j] for j, c in enumerate(labels) for end, p in ends.items()}


def write_tables(tables: Iterable[Any], path: Path) -> None:
    """Write tables of Arrow or DataFrames of the same columns to the file of --out, CSV or Parquet, as a whole.

    Texts of a CSV file that a spreadsheet would compute begin with an apostrophe.
    """
    as_text = path.suffix.lower() == ".csv"
    with blamed_on("--out", OSError), replaced(path) as temporary, ExitStack() as stack:
        writer = None
        for table in tables:
            table = pa.table(table)
            if as_text:
                names = [str(quote_formula(name)) for name in table.column_names]
                table = pa.table([_quote_formulas(column.combine_chunks()) for column in table.columns], names)
            if writer is None:
                make_writer = csv.CSVWriter if as_text else parquet.ParquetWriter
                writer = stack.enter_context(make_writer(temporary, table.schema))
            writer.write_table(table)


def _quote_formulas(column: pa.Array) -> pa.Array:
    """Put an apostrophe before the texts of a column that a spreadsheet would compute."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    is_text = column.type in (pa.string(), pa.large_string())
    if not is_text or not compute.any(compute.match_substring_regex(column, _FORMULA)).as_py():
        return column
    return pa.array([quote_formula(cell) for cell in column.to_pylist()], column.type)


# == Tests whether the rows of a file of any size differ from those that a classifier has counted ==

_LONG = 48


def measure_drift(
    nb: FittedClassifier, table: TableFile, target: str | None, reference: TableFile | None
) -> pd.DataFrame:
    """Test each column of a file, and the labels in the column `target`, against the rows that a classifier counted.

    With a reference file the tests are those of `check_drift` on random samples of both files.

    Raises
    ------
    InputError
        If a file cannot be read or lacks a column, or a label is missing.
    """
    others, total, n = [] if target is None else [target], None, 0
    if reference is not None:
        X, y = _split(nb, _sample(nb, table, others), target)
        with blamed_on(table.path.name):
            return check_drift(nb, X, y, _sample(nb, reference, []))
    for batch in read_rows(table, nb, others, as_texts=True):
        X, y = _split(nb, from_arrow(batch), target)
        with blamed_on(f"{table.path.name}, rows {n + 2:,} to {n + 1 + len(X):,}"):
            part = DriftStatistics.from_rows(nb, X, y)
        total, n = part if total is None else total.merge(part), n + len(X)
    assert total is not None
    return total.compare(nb)


def _sample(nb: FittedClassifier, table: TableFile, others: Sequence[str]) -> pd.DataFrame:
    """Return a random sample of the rows of a file, with the columns of a classifier and others."""
    reservoir = Reservoir(most_rows(nb.n_features_in_))
    for batch in read_rows(table, nb, others, as_texts=True):
        reservoir.add(from_arrow(batch))
    return reservoir.sample()


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


def format_drift(tests: pd.DataFrame, level: float) -> str:
    """Write the table of `check_drift` for a terminal, and a line that names what has drifted at the level."""
    tests = tests.dropna(subset="p")
    numbers = [[f"{value:.2g}" for value in row] for row in tests[["effect", "p", "q"]].to_numpy()]
    changes = [shorten(str(change), _LONG) for change in tests["change"]]
    rows = [[str(name), change, *row] for name, change, row in zip(tests.index, changes, numbers, strict=True)]
    drifted = [str(name) for name in tests.index[tests["q"] < level]]
    verdict = f"q < {level:g}: {enumerate_names(drifted, 12)}" if drifted else f"No q-value is below {level:g}."
    return f"{grid(['column', 'change', 'effect', 'p', 'q'], rows)}\n\n{verdict}"
