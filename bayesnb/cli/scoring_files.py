"""Class probabilities and decisions for the rows of a file of any size."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
from bayesnb.cli.csv_cells import FORMULA, quote_formula, require_columns
from bayesnb.cli.table_files import TableFile, blamed_on
from bayesnb.cli.terminal import InputError
from bayesnb.encoding import numeric_columns
from bayesnb.encoding.table import from_arrow
from bayesnb.estimators.predictions import FittedClassifier

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
