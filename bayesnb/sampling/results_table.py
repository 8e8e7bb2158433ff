"""Results of diagnostic tests as a table: its populations, tests and levels, checked, and its distinct rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd

from bayesnb._util.arguments import shown

_ALL = "all"


def to_frame(table: Any) -> pd.DataFrame:
    """Return a table as a pandas DataFrame with the names of its columns: pandas, polars and Arrow tables, arrays."""
    if hasattr(table, "get_column"):
        table = table.to_dict(as_series=False)
    elif hasattr(table, "to_pydict"):
        table = table.to_pydict()
    return pd.DataFrame(table)


def read_populations(frame: pd.DataFrame, populations: Any, counted: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return (N,) the population of each row, and the column of the table that has them, or None.

    Only the populations of `counted` (N,) rows must be present.
    """
    if populations is None:
        return np.full(len(frame), _ALL, dtype=object), None
    if np.ndim(populations) == 0:
        if populations not in frame:
            raise ValueError(f"populations={shown(populations)} is not a column; they are {shown(list(frame)[:8])}.")
        values, column = frame[populations].to_numpy(object), populations
    else:
        values, column = np.asarray(populations, dtype=object), None
    if values.shape != (len(frame),):
        raise ValueError(f"populations has shape {values.shape}; it must have one entry for each of {len(frame)} rows.")
    missing = np.asarray(pd.isna(values)) & counted
    if missing.any():
        raise ValueError(f"populations: that of row {int(np.argmax(missing))} is missing. Leave out such rows.")
    return values, column


def read_test_names(frame: pd.DataFrame) -> tuple[Hashable, ...]:
    """Return the names of the tests; raise ValueError if there is none, or two have the same name."""
    tests = tuple(frame)
    if not tests:
        raise ValueError("table has no column of a test. Pass one column of 0 and 1 for each test.")
    twice = [test for test in tests if tests.count(test) > 1]
    if twice:
        raise ValueError(f"table has the test {twice[0]!r} twice. Rename one of its columns.")
    return tests


def read_levels(test: Hashable, column: pd.Series, positive: object) -> tuple[object, object]:
    """Return the negative level of a test, None if it does not occur, and the positive level.

    Raise ValueError if there is no level, there are three, or none is positive.
    """
    levels = list(pd.unique(column.astype(object).dropna()))
    has = f"table: the test {test!r} has the levels {shown(levels[:6])}"
    if not levels:
        raise ValueError(f"table: the test {test!r} has no result in any row. Leave out its column.")
    if len(levels) > 2:
        raise ValueError(f"{has}; a test result has two. Recode them as 0 (negative) and 1 (positive).")
    if positive is None:
        if not all(not isinstance(v, str) and v in (0, 1) for v in levels):
            raise ValueError(f"{has}, which are not 0 and 1. Pass the positive level as positive=.")
        return 0, 1
    if len(levels) == 2 and positive not in levels:
        raise ValueError(f"positive={shown(positive)} is not a level of {test!r}, whose levels are {shown(levels)}.")
    return next((level for level in levels if level != positive), None), positive


def code_results(frame: pd.DataFrame, levels: Mapping[Hashable, tuple[object, object]]) -> np.ndarray:
    """Return (N, T) results, 1 if positive, 0 if negative, NaN if missing; raise ValueError for other levels."""
    results = np.full(frame.shape, np.nan)
    for j, test in enumerate(frame):
        column = frame[test].astype(object)
        done = column.notna().to_numpy()
        code = [levels[test].index(v) if v in levels[test] else -1 for v in column[done]]
        if -1 in code:
            value = column[done].iloc[code.index(-1)]
            raise ValueError(f"rows: the test {test!r} has the result {value!r}, which is not one of {levels[test]}.")
        results[done, j] = code
    return results


def read_dependent(dependent: Any, tests: tuple[Hashable, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the parents of each test, from pairs (parent, child) of names; raise ValueError for other pairs."""
    parents: dict[int, list[int]] = {t: [] for t in range(len(tests))}
    for pair in () if dependent is None else dependent:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"dependent: {shown(pair)} is not a pair of two tests, such as ('elisa', 'pcr').")
        unknown = [test for test in pair if test not in tests]
        if unknown:
            raise ValueError(f"dependent: {unknown[0]!r} is not a test of the table; they are {shown(list(tests))}.")
        parent, child = (tests.index(test) for test in pair)
        if parent in parents[child] or child in parents[parent]:
            raise ValueError(f"dependent has the tests {shown(tuple(pair))} in two pairs. Name each pair once.")
        parents[child].append(parent)
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = " → ".join(str(tests[t]) for t in error.args[1][::-1])
        raise ValueError(f"dependent: the pairs form a cycle, {cycle}. Exchange the tests of a pair.") from None
    return tuple(tuple(sorted(parents[t])) for t in range(len(tests)))


def count_patterns(code: np.ndarray, result: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the distinct rows as populations (K,) and results (K, T), their frequencies, and those of their tables.

    The table of a row has all rows of its population in which the same tests were done.
    """
    first, index = distinct_rows(code, result)
    if len(first) < 2:
        raise ValueError("table: all rows have the same results. Two classes need rows with different results.")
    count = np.bincount(index, weight)
    _, of_table = distinct_rows(code[first], np.isnan(result[first]))
    return code[first], result[first], count, np.bincount(of_table, count)[of_table]


def distinct_rows(code: np.ndarray, result: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each pattern of population and results, and (N,) the pattern of each row."""
    rows = np.column_stack([code, np.nan_to_num(result, nan=-1.0)])
    _, first, index = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, index.ravel()
