"""Fits to a table of counts, the result of a grouping query in a database."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Sized
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bayesnb import counting
from bayesnb._util.arguments import require_iterable, require_number, shown
from bayesnb.counting import Counted
from bayesnb.encoding import Columns, Encoding, Levels, Rows, check_labels
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.families import LevelCounts
from bayesnb.fitted import NotOfferedError
from bayesnb.model import Statistics

if TYPE_CHECKING:
    import pandas as pd

NB = TypeVar("NB", bound=NaiveBayesClassifier)

Learn = Callable[[Levels, "pd.DataFrame", list[bool]], tuple[Encoding, tuple[Rows, ...]]]
"""Function of the classes, of rows in which each level occurs, and of whether each of their columns is of numbers.

It returns the encoding, and the rows under it.
"""
COLUMNS = ("class", "feature", "type", "level", "count", "mean", "m2")
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
        If a column is absent; if a count is not a number; if a class has no weight, or less weight than its cells; if a
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
    if getattr(nb, "no_counts", None) is not None:
        raise NotOfferedError(f"{type(nb).__name__}: {nb.no_counts}")
    if not isinstance(nb, NaiveBayesClassifier):
        raise TypeError(f"nb={shown(nb)} must be a classifier of bayesnb, such as CategoricalNB().")
    unfitted = classifier_state.copy_unfitted(nb)

    def learn(classes: Levels, sample: pd.DataFrame, numeric: list[bool]) -> tuple[Encoding, tuple[Rows, ...]]:
        """Return the encoding of the classifier's columns, and the rows of the sample under it."""
        checked = replace(unfitted._table(sample, reset=True), numeric=numeric)
        return Encoding(classes, unfitted._columns(checked)).learn(checked)

    encoding, statistics = count_table(table, type(nb).__name__, learn)
    if depends := [columns for columns in encoding.blocks if has_base_measure(columns)]:
        if log_base is None:
            sums = [
                "the log multinomial coefficients of the rows" if c.one_simplex else "-log x! of the cells"
                for c in depends
            ]
            raise ValueError(
                f"{type(nb).__name__}: counts do not determine one term of log_evidence_, the sum of "
                f"{' and '.join(dict.fromkeys(sums))}. Pass this sum as log_base; "
                "log_base=0 is enough to compare models of the same rows."
            )
        require_number("log_base", log_base, "a number", np.isfinite)
    counted = Counted(encoding, replace(statistics, log_base=np.array(float(log_base or 0.0))))
    try:
        counting.check(counted)
    except ValueError as error:
        raise ValueError(f"table: {error}") from None
    return classifier_state.commit(nb, unfitted, counted)


def count_table(table: Any, owner: str, learn: Learn) -> Counted:
    """Return the encoding and the statistics of a table of counts, without log base measures.

    Parameters
    ----------
    table : DataFrame, or list of tuples
        Table of counts, see `from_counts`.
    owner : str
        Name of the estimator or function, for messages.
    learn : Learn
        Function that makes the columns.
    """
    frame = read_frame(table)
    class_rows, cells = frame[frame["feature"].isna()], frame[frame["feature"].notna()]
    if not len(class_rows) or not len(cells):
        empty = "every row has" if len(class_rows) else "no row has"
        raise ValueError(
            f"table: {empty} an empty feature. A table needs one row for each class, with an empty feature and the "
            "total weight of the class, and further rows for each feature. bayesnb.sql.counts writes a query that "
            "returns such a table."
        )
    classes, label = check_labels(class_rows["class"], len(class_rows), owner, "table['class']")
    try:
        cell_label = classes.index(cells["class"])
    except TypeError as error:
        raise ValueError(f"table: a class is not hashable: {error}. Use strings or numbers as classes.") from None
    if (cell_label < 0).any():
        row = cells.iloc[int(np.argmax(cell_label < 0))]
        raise ValueError(
            f"table: class {shown(row['class'])} has a row for feature {shown(row['feature'])}, but no row with an "
            "empty feature. Add that row, with the total weight of the class as its count."
        )
    for name in ("type", "level", "mean", "m2"):
        if (given := class_rows[name].notna().to_numpy()).any():
            row = class_rows.iloc[int(np.argmax(given))]
            raise ValueError(
                f"table: a row of class {shown(row['class'])} has the {name} {shown(row[name])}, but no feature. A row "
                "with an empty feature states the total weight of its class and must leave type, level, mean and m2 "
                f"empty. Name the feature, or leave {name} empty."
            )
    class_count = np.bincount(label, _read_numbers(class_rows, "count"), minlength=len(classes))
    table_cells = _Cells(cells, cell_label)
    levels = table_cells.levels()
    encoding, rows = learn(classes, _make_sample(levels), [not found for found in levels.values()])
    blocks = [
        _block_statistics(columns, block_rows, levels, table_cells, len(classes))
        for columns, block_rows in zip(encoding.blocks, rows, strict=True)
    ]
    return Counted(encoding, Statistics(class_count, tuple(blocks), np.zeros(())))


class _Cells:
    """Rows of the table about features: index of the class, level of the stated type, and weight of each."""

    def __init__(self, frame: pd.DataFrame, class_index: np.ndarray) -> None:
        self.level = _read_levels(frame)
        self.count = _read_numbers(frame, "count")
        self.frame, self.class_index = frame, class_index
        self._rows_by_feature = frame.groupby("feature", sort=False).indices

    def rows_of(self, name: str, *, with_levels: bool, kind: str) -> np.ndarray:
        """Return the positions of the rows about a feature; raise ValueError unless all have a level, or none has."""
        rows = np.asarray(self._rows_by_feature[name])
        wrong = np.array([(level is not None) != with_levels for level in self.level[rows]])
        if wrong.any():
            label = self.frame["class"].iloc[rows[int(np.argmax(wrong))]]
            has, wanted = ("no level", "levels") if with_levels else ("a level", "numbers or words without levels")
            raise ValueError(
                f"table: a row of class {shown(label)} and feature {shown(name)} has {has}, but {kind} columns hold "
                f"{wanted}. Give every row of this feature a level, or none of them, or choose another classifier."
            )
        return rows

    def levels(self) -> dict[str, list[Hashable]]:
        """Return the distinct levels of each feature, by name, of count 0 too; none for features of numbers."""
        return {
            str(name): list(dict.fromkeys(level for level in self.level[rows] if level is not None))
            for name, rows in self._rows_by_feature.items()
        }

    def moments(self, family: Any, names: Sequence[str], kind: str, n_classes: int) -> Any:
        """Compute the statistics (C, F) of features of numbers.

        Rows of the same class and feature are merged one by one, by which a constant feature keeps the variance 0.
        """
        total = family.from_moments(*np.zeros((3, n_classes, len(names))))
        positions = [self.rows_of(name, with_levels=False, kind=kind) for name in names]
        rows, feature = np.concatenate(positions), np.repeat(np.arange(len(names)), list(map(len, positions)))
        frame = self.frame.iloc[rows]
        given = np.stack([self.count[rows], _read_numbers(frame, "mean"), _read_numbers(frame, "m2")])
        repetition = frame.groupby([self.class_index[rows], feature]).cumcount().to_numpy()
        for k in range(int(repetition.max()) + 1):
            fields, chosen = np.zeros((3, n_classes, len(names))), repetition == k
            fields[:, self.class_index[rows[chosen]], feature[chosen]] = given[:, chosen]
            with np.errstate(over="ignore", invalid="ignore"):  # `counting.check` refuses moments that overflow.
                total = total.merge(family.from_moments(*fields))
        return total


def _block_statistics(
    columns: Columns, rows: Rows, levels: dict[str, list[Hashable]], cells: _Cells, n_classes: int
) -> Any:
    """Return the sufficient statistics of one block; `rows` are those of the sample."""
    kind = columns.kind
    if columns.one_simplex:
        count = np.zeros((n_classes, len(columns.names)))
        for j, name in enumerate(columns.names):
            positions = cells.rows_of(name, with_levels=False, kind=kind)
            np.add.at(count, (cells.class_index[positions], j), cells.count[positions])
        return LevelCounts(count)
    if hasattr(columns.family.statistics, "from_moments"):
        return cells.moments(columns.family.statistics, columns.names, kind, n_classes)
    for name in columns.names:
        if not levels[name]:
            raise ValueError(
                f"table: feature {shown(name)} has no levels, but {columns.kind} columns need levels. For numbers use "
                "a classifier of numbers, such as GaussianNB, ExponentialNB or MixedNB."
            )
    # Each row of the sample is counted separately, so that its counts show the positions of its levels.
    encoding = Encoding(Levels((0,)), (columns,))
    n = max(map(len, levels.values()))
    (single,) = counting.single_rows(encoding, (rows,), n).blocks
    feature = columns.axis()[0]
    count = np.zeros((n_classes, single.count.shape[1]))
    for j, name in enumerate(columns.names):
        index = {level: i for i, level in enumerate(levels[name])}
        positions = cells.rows_of(name, with_levels=True, kind=kind)
        row, position = np.nonzero(single.count[: len(index)] * (feature == j))
        place = np.full(len(index), -1)
        place[row] = position
        if (place < 0).any():
            level = levels[name][int(np.argmax(place < 0))]
            raise ValueError(
                f"table: the classifier cannot count level {shown(level)} of feature {shown(name)}. The level marks "
                "missing cells, or is not among the declared levels. Leave out its row, or change the hyperparameters "
                "of the classifier."
            )
        level_positions = place[[index[level] for level in cells.level[positions]]]
        np.add.at(count, (cells.class_index[positions], level_positions), cells.count[positions])
    return LevelCounts(count)


def _make_sample(levels: dict[str, list[Hashable]]) -> pd.DataFrame:
    """Make rows in which each level occurs, and two numbers in each column of numbers."""
    import pandas as pd

    n = max(2, *map(len, levels.values()))
    cells: dict[str, Any] = {}
    for name, values in levels.items():
        if values:
            column = np.empty(n, object)
            column[:] = [values[i % len(values)] for i in range(n)]
            cells[name] = column
        else:
            cells[name] = np.arange(n) % 2 + 0.0
    return pd.DataFrame(cells)


def read_frame(table: Any) -> pd.DataFrame:
    """Return the table of counts as a DataFrame with the columns `COLUMNS`, features as str; ValueError for others."""
    import pandas as pd

    require_iterable("table", table, "a DataFrame or a list of tuples")
    table = table.to_pandas() if hasattr(table, "to_pandas") else table
    if not isinstance(table, pd.DataFrame):
        rows = list(table)
        for i, row in enumerate(rows):
            if not isinstance(row, Sized) or len(row) != len(COLUMNS):
                raise ValueError(
                    f"table: row {i} is {shown(row)}; it must have {len(COLUMNS)} entries: {', '.join(COLUMNS)}."
                )
        table = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    names = list(table.columns)
    for name in COLUMNS:
        if names.count(name) > 1 or (name not in names and name in ("class", "feature", "level", "count")):
            raise ValueError(
                f"table must have one column {shown(name)}, but has {names.count(name) or 'none'}. Its columns are "
                f"{shown(names)}."
            )
    table = table.reindex(columns=list(COLUMNS)).reset_index(drop=True)
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
            f"{shown(row['level'])} is {shown(row[column])}; it must be a number{least}. A query of bayesnb.sql.counts "
            "returns an empty cell if a weight or a value in the database is not finite, or a weight is negative; "
            "correct that row of the database."
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
                f"table: level {shown(level)} of feature {shown(feature)} does not fit the type of its row, {kind}. A "
                "row of type str, int or bool needs a hashable level of that type, and a row of type float needs "
                "count, mean and m2 in place of a level. If an integer beyond 2**53 became a floating-point number, "
                "cast it to BIGINT in the query."
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


def has_base_measure(columns: Columns) -> bool:
    """Return whether the likelihood of a block has a base measure that depends on the rows, such as 1/x!."""
    if columns.one_simplex:
        return True
    family: Any = columns.family.statistics
    return hasattr(family, "from_moments") and bool(np.any(np.asarray(family.log_base(np.full((1, 1), 2.0)))))


__all__ = ["from_counts"]
