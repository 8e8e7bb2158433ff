"""Tests whether the rows of a file of any size differ from those that a classifier has counted."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bayesnb._util.terminal import shorten
from bayesnb.analysis.drift import DriftStatistics, check_drift
from bayesnb.cli.fitting import most_rows
from bayesnb.cli.scoring_files import read_rows
from bayesnb.cli.streamed_fit import Reservoir
from bayesnb.cli.table_files import TableFile, blamed_on
from bayesnb.cli.terminal import enumerate_names, grid
from bayesnb.encoding.table import from_arrow
from bayesnb.estimators.predictions import FittedClassifier

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
