"""Fit to a file of any size: a sample teaches weights, structure and densities, and all rows are counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import bayesnb
from bayesnb._util.warnings import internal_fits
from bayesnb.cli.column_types import IDENTIFIER, ROW_NUMBERS, ColumnCounts, Marks, describe_columns, to_levels
from bayesnb.cli.fitting import most_rows
from bayesnb.cli.labelled_data import MOST_CLASSES, require_classes
from bayesnb.cli.table_files import TableFile, blamed_on
from bayesnb.cli.terminal import InputError, enumerate_names
from bayesnb.encoding import check_table, numeric_columns
from bayesnb.encoding.table import from_arrow

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
