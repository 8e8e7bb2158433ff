"""Fits to a table of counts, the result of a grouping query in a database."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sized
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bayesnb import counting
from bayesnb._util.arguments import require_iterable, require_number, shown
from bayesnb.counting import Counted
from bayesnb.encoding import Columns, check_labels
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.families import LevelCounts
from bayesnb.fitted import NotOfferedError
from bayesnb.model import Statistics

if TYPE_CHECKING:
    import pandas as pd

NB = TypeVar("NB", bound=NaiveBayesClassifier)

_COLUMNS = ("class", "feature", "type", "level", "count", "mean", "m2")
_BOOLEANS = dict.fromkeys(("true", "t", "1", "1.0"), True) | dict.fromkeys(("false", "f", "0", "0.0"), False)
_EXACT = 2**53
"""Largest integer up to which float64 represents every integer."""


def from_counts(nb: NB, table: Any, *, log_base: float | None = None) -> NB:
    """Fit a classifier to a table of counts, such as the result of the query `bayesnb.sql.counts`.

    Parameters
    ----------
    nb : naive Bayes classifier
        Classifier whose features are independent given the class. It is fitted anew.
    table : DataFrame, or list of tuples
        Columns class, feature, type, level, count, mean, m2, in this order if they have no names. A row without a
        feature has as count the weight of all rows of its class. A row with a level has the weight of the rows with
        this level. A row without a level is about a feature of numbers: their weight, mean and centred sum of squares;
        for a word (`MultinomialNB`) the count is the number of occurrences, and mean and m2 are empty. `type` is the
        type of the level, str, int or bool, where a query has made text of it, or float for numbers; a level without a
        type is taken as it is. Rows of the same class, feature and level are added up, and their moments merged, so
        that tables of partitions can be concatenated.
    log_base : float, optional
        Sum of the log multinomial coefficients of the rows, or of -log x! (Poisson). It is part of `log_evidence_`,
        cannot be computed from counts, and is required for such classifiers; 0 suffices to compare priors on the same
        rows.

    Returns
    -------
    nb : the classifier
        Its posterior is that of `fit` on the rows themselves.

    Raises
    ------
    ValueError
        If a column is absent; if a count is no number; if a class has no weight, or less weight than its cells; if a
        level is not of its type, or a row has a level and no feature; if `log_base` is needed. `nb` is left as it was.
    NotOfferedError
        If the posterior of the classifier needs more than these counts; a NotImplementedError.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesnb import CategoricalNB, from_counts
    >>> rows = [("ripe", None, None, None, 3, None, None), ("raw", None, None, None, 2, None, None)]
    >>> rows += [("ripe", "colour", "str", "dark", 3, None, None), ("raw", "colour", "str", "light", 2, None, None)]
    >>> from_counts(CategoricalNB(), rows).predict_proba(pd.DataFrame({"colour": ["dark"]})).round(2)
    array([[0.19, 0.81]])
    """
    import pandas as pd

    if getattr(nb, "no_counts", None) is not None:
        raise NotOfferedError(f"{type(nb).__name__}: {nb.no_counts}")
    if not isinstance(nb, NaiveBayesClassifier):
        raise TypeError(f"from_counts fits the classifiers of this package, and nb is {shown(nb)}.")
    frame = _read_frame(table)
    of_class = frame["feature"].isna().to_numpy()
    class_rows, cells = frame[of_class], frame[~of_class]
    if not len(class_rows) or not len(cells):
        lacks = "feature" if len(class_rows) else "class by itself (a row whose feature is empty)"
        raise ValueError(f"table has no row of a {lacks}; see bayesnb.sql.counts.")
    classes, label = check_labels(class_rows["class"], len(class_rows), type(nb).__name__, "table['class']")
    try:
        cell_label = classes.index(cells["class"])
    except TypeError as error:
        raise ValueError(f"table: a class is not hashable: {error}.") from None
    if (cell_label < 0).any():
        row = cells.iloc[int(np.argmax(cell_label < 0))]
        raise ValueError(
            f"table: class {shown(row['class'])} of feature {shown(row['feature'])} has no row of its own, whose "
            "feature is empty; its count is the weight of all rows of the class."
        )
    for name in ("type", "level", "mean", "m2"):
        if (given := class_rows[name].notna().to_numpy()).any():
            row = class_rows.iloc[int(np.argmax(given))]
            raise ValueError(
                f"table: a row of class {shown(row['class'])} has the {name} {shown(row[name])} and no feature. A row "
                "without a feature has the weight of its class. Name the feature, or leave that cell empty."
            )
    class_count = np.bincount(label, _read_numbers(class_rows, "count"), minlength=len(classes))
    level, count = _read_levels(cells), _read_numbers(cells, "count")
    feature, names = pd.factorize(cells["feature"])
    with_level = np.array([value is not None for value in level])
    rows: dict[str, np.ndarray] = {}
    missing = np.full(len(cells), None)
    for j, name in enumerate(map(str, names)):
        # A row of levels has one cell, and the others are missing. Numbers and words are counted below.
        rows[name] = np.where(feature == j, level, missing) if with_level[feature == j].any() else np.zeros(len(cells))
    unfitted = classifier_state.copy_unfitted(nb)
    table_of_rows = unfitted._table(pd.DataFrame(rows), reset=True)
    columns = unfitted._columns(table_of_rows)
    for block in columns:
        wrong = np.isin(feature, block.index) & (with_level != _counts_levels(block))
        if wrong.any():
            row = cells.iloc[int(np.argmax(wrong))]
            has, wanted = ("no levels", "levels") if _counts_levels(block) else ("a level", "numbers or words")
            raise ValueError(
                f"table: a row of class {shown(row['class'])}, feature {shown(row['feature'])} has {has}. Columns that "
                f"are {block.kind} count {wanted}. Give all rows of the feature one form, or choose another classifier."
            )
    encoding, statistics = classifier_state.count_table(unfitted, classes, table_of_rows, cell_label, count, columns)
    blocks = []
    for block, counted_levels in zip(encoding.blocks, statistics.blocks, strict=True):
        of_block = np.isin(feature, block.index)
        where = cell_label[of_block], np.searchsorted(block.index, feature[of_block])
        n = np.zeros((len(classes), len(block.index)))
        np.add.at(n, where, count[of_block])
        if _counts_levels(block):
            observed = np.bincount(block.axis()[0], counted_levels.count.sum(axis=0), minlength=n.shape[1])
            if (lost := ~np.isclose(observed, n.sum(axis=0))).any():
                name = shown(block.names[int(np.argmax(lost))])
                raise ValueError(
                    f"table: feature {name} has a level that the classifier does not count: it is a mark of missing "
                    "cells, or not among the declared levels."
                )
            blocks.append(counted_levels)
        elif block.one_simplex:
            blocks.append(LevelCounts(n))
        else:
            blocks.append(_sum_moments(block, cells[of_block], n, where))
    if any(map(_has_base_measure, encoding.blocks)):
        if log_base is None:
            raise ValueError(
                f"{type(nb).__name__}: log_evidence_ has the base measures of the rows, Σ log multinomial coefficients "
                "or -log x!, and counts do not tell them. Give log_base=; 0 suffices for comparisons on the same rows."
            )
        require_number("log_base", log_base, "a number", np.isfinite)
    counted = Counted(encoding, Statistics(class_count, tuple(blocks), np.array(float(log_base or 0.0))))
    try:
        counting.check(counted)
    except ValueError as error:
        raise ValueError(f"table: {error}") from None
    return classifier_state.commit(nb, unfitted, counted)


def _counts_levels(columns: Columns) -> bool:
    """Return whether the statistics of a block are counts of levels, and not of words or moments of numbers."""
    return not columns.one_simplex and not hasattr(columns.family.statistics, "from_moments")


def _sum_moments(columns: Columns, cells: pd.DataFrame, n: np.ndarray, where: tuple[np.ndarray, np.ndarray]) -> Any:
    """Return the block's statistics (C, F), with the moments of all table rows of the same class and feature merged.

    `n` (C, F) has the summed counts, and `where` the class and feature of each row of `cells`.
    """
    count, mean, m2 = (_read_numbers(cells, name) for name in ("count", "mean", "m2"))
    total, within = np.zeros(n.shape), np.zeros(n.shape)
    with np.errstate(over="ignore", invalid="ignore"):  # `counting.check` refuses moments that overflow.
        np.add.at(total, where, count * mean)
        means = total / np.where(n, n, 1.0)
        np.add.at(within, where, m2 + count * (mean - means[where]) ** 2)
        return columns.family.statistics.from_moments(n, means, within)


def _read_frame(table: Any) -> pd.DataFrame:
    """Return the table of counts as a DataFrame with the columns `_COLUMNS`, features as str; ValueError for others."""
    import pandas as pd

    require_iterable("table", table, "a DataFrame or a list of tuples")
    table = table.to_pandas() if hasattr(table, "to_pandas") else table
    if not isinstance(table, pd.DataFrame):
        rows = list(table)
        for i, row in enumerate(rows):
            if not isinstance(row, Sized) or len(row) != len(_COLUMNS):
                raise ValueError(f"table: row {i} is {shown(row)}; it must have the cells {', '.join(_COLUMNS)}.")
        table = pd.DataFrame(rows, columns=list(_COLUMNS), dtype=object)
    names = list(table.columns)
    for name in _COLUMNS:
        if names.count(name) > 1 or (name not in names and name in ("class", "feature", "level", "count")):
            raise ValueError(f"table has {names.count(name) or 'no'} column {shown(name)}, only {shown(names)}.")
    table = table.reindex(columns=list(_COLUMNS)).reset_index(drop=True)
    feature = table["feature"].astype(object)
    frame: pd.DataFrame = table.assign(feature=feature.where(feature.isna(), feature.map(str)))
    return frame


def _read_numbers(frame: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column of the table as a float array (n,); ValueError for a cell not finite, or negative and no mean."""
    values = np.array([_to_float(value) for value in frame[column]], np.float64)
    bad = ~np.isfinite(values) | ((column != "mean") & (values < 0))
    if bad.any():
        row = frame.iloc[int(np.argmax(bad))]
        least = "" if column == "mean" else " of at least 0"
        raise ValueError(
            f"table: {column} of class {shown(row['class'])}, feature {shown(row['feature'])}, level "
            f"{shown(row['level'])} is {shown(row[column])}, and must be a number{least}. A query leaves it empty "
            "where a weight or a cell is no number."
        )
    return values


def _to_float(value: object) -> float:
    """Convert a number, or text of a number, to float; NaN for anything else."""
    try:
        return float(value) if isinstance(value, Real | Decimal | str) else float("nan")
    except (ValueError, OverflowError):
        return float("nan")


def _read_levels(frame: pd.DataFrame) -> np.ndarray:
    """Return (n,) levels of the rows, converted to their types, None for rows without one; else ValueError."""
    empty, typed = frame["level"].isna().to_numpy(), frame["type"].notna().to_numpy()
    levels = np.empty(len(frame), object)
    for i, (feature, kind, level) in enumerate(zip(frame["feature"], frame["type"], frame["level"], strict=True)):
        try:
            if typed[i] and empty[i] != (kind == "float"):
                raise ValueError
            levels[i] = None if empty[i] else _READ[kind](level) if typed[i] else level
            hash(levels[i])
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"table: level {shown(level)} of feature {shown(feature)} is not of its type, {kind}. A row of type "
                "str, int or bool has a level of this type, and an integer beyond 2**53 no floating-point number: cast "
                "it to BIGINT in the query. A row of type float has count, mean and m2. A level must be hashable."
            ) from None
    return levels


def _to_integer(level: object) -> int:
    """Convert a level, an integer or its text, to exactly that integer; raise ValueError for others."""
    text = str(int(level) if isinstance(level, Integral) else level)
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer() or abs(number) > _EXACT:
            raise
        return int(number)


_READ: dict[str, Callable[[Any], Hashable]] = {
    "str": str,
    "int": _to_integer,
    "bool": lambda level: _BOOLEANS[str(level).lower()],
}
"""Functions from a cell of a query's result to a level of a type."""


def _has_base_measure(columns: Columns) -> bool:
    """Return whether the likelihood of a block has a base measure that depends on the rows, such as 1/x!."""
    if columns.one_simplex:
        return True
    family: Any = columns.family.statistics
    return hasattr(family, "from_moments") and bool(np.any(np.asarray(family.log_base(np.full((1, 1), 2.0)))))


__all__ = ["from_counts"]
