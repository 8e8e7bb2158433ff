"""Fits to a table of counts, the result of a grouping query in a database."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sized
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bayesnb._util.arguments import require_iterable, require_number, shown
from bayesnb._util.arrays import to_pandas
from bayesnb.encoding import Columns, Encoding, Levels, Rows, check_labels
from bayesnb.encoding.levels import MOST_EXACT
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.families import ExposedTotals, LevelCounts, Totals
from bayesnb.fitted import counting
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import NotOfferedError, read_columns
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


def from_counts(nb: NB, table: object, *, log_base: float | None = None) -> NB:
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
        checked = replace(read_columns(unfitted, sample, reset=True), numeric=numeric)
        return Encoding(classes, unfitted._columns(checked)).learn(checked)

    encoding, statistics, _ = count_table(table, type(nb).__name__, learn)
    if depends := [columns for columns in encoding.blocks if has_base_measure(columns)]:
        if log_base is None:
            word = "the log multinomial coefficients of the rows"
            of_cells = [f"{'x log t ' * bool(c.auxiliary)}-log x! of the cells" for c in depends]
            sums = [word if c.one_simplex else s for c, s in zip(depends, of_cells, strict=True)]
            raise ValueError(
                f"{type(nb).__name__}: counts do not determine a term of log_evidence_, the sum of "
                f"{' and '.join(dict.fromkeys(sums))}. Pass this "
                "sum as log_base; log_base=0 is enough to compare models of the same rows."
            )
        require_number("log_base", log_base, "a number", np.isfinite)
    counted = Counted(encoding, replace(statistics, log_base=np.array(float(log_base or 0.0))))
    try:
        counting.check(counted)
    except ValueError as error:
        raise ValueError(f"table: {error}") from None
    nb._commit(unfitted, counted)
    encoding.warn_of_types()
    return nb


def count_table(table: object, owner: str, learn: Learn) -> Counted:
    """Return the encoding and the statistics of a table of counts, without log base measures.

    Parameters
    ----------
    table : DataFrame, or list of tuples
        See `from_counts`.
    owner : str
        Name of the classifier or function, for messages.
    learn : callable
        See `Learn`.
    """
    frame = read_frame(table)
    states_class = frame["feature"].isna().to_numpy()
    if states_class.all() or not states_class.any():
        raise ValueError(
            f"table: {'every' if states_class.any() else 'no'} row has an empty feature. A table needs a row for each "
            "class, with an empty feature and the total weight of the class, and rows for each feature. "
            "bayesnb.sql.counts writes a query for such a table."
        )
    classes, label = check_labels(frame["class"][states_class], int(states_class.sum()), owner, "table['class']")
    try:
        class_index = classes.index(frame["class"])
    except TypeError as error:
        raise ValueError(f"table: a class is not hashable: {error}. Use strings or numbers as classes.") from None
    _refuse(
        frame,
        np.flatnonzero(class_index < 0),
        "class {class} has a row for feature {feature}, but no row with an empty feature. Add that row, with the total "
        "weight of the class as its count.",
    )
    for name in ("type", "level", "mean", "m2"):
        problem = f"a row of class {{class}} has the {name} {{{name}}}, but no feature. Name the feature, or leave the "
        wrong = np.flatnonzero(states_class & frame[name].notna())
        _refuse(frame, wrong, problem + f"{name} empty, if the count is the weight of the class.")
    cells = _Cells(frame, class_index)
    class_count = np.bincount(label, cells.count[states_class], len(classes))
    encoding, rows = learn(classes, _make_sample(cells.levels), [not levels for levels in cells.levels.values()])
    pairs = zip(encoding.blocks, rows, strict=True)
    blocks = tuple(_block_statistics(*pair, cells, len(classes)) for pair in pairs)
    return Counted(encoding, Statistics(class_count, blocks, np.zeros(())))


def _refuse(frame: pd.DataFrame, wrong: np.ndarray, problem: str) -> None:
    """Raise ValueError about the first of the rows at the positions `wrong`; names in braces stand for its cells."""
    if len(wrong):
        row = frame.iloc[wrong[0]]
        raise ValueError("table: " + problem.format(**{name: shown(row[name]) for name in COLUMNS}))


class _Cells:
    """Rows of a table of counts: index of the class, level of the stated type, and weight of each row.

    `rows` are the positions of the rows about each feature, by name, and `levels` their distinct levels; none for
    features of numbers.
    """

    def __init__(self, frame: pd.DataFrame, class_index: np.ndarray) -> None:
        self.frame, self.class_index = frame, class_index
        self.count, self.level = _read_numbers(frame, "count"), _read_levels(frame)
        self.rows = {str(name): np.asarray(rows) for name, rows in frame.groupby("feature", sort=False).indices.items()}
        present = {name: filter(lambda level: level is not None, self.level[rows]) for name, rows in self.rows.items()}
        self.levels: dict[str, list[Hashable]] = {name: list(dict.fromkeys(found)) for name, found in present.items()}

    def rows_of(self, name: str, *, with_levels: bool, kind: str) -> np.ndarray:
        """Return the positions of the rows about a feature; raise ValueError unless all have a level, or none has."""
        rows = self.rows[name]
        has, wanted = ("no level", "levels") if with_levels else ("a level", "numbers or words without levels")
        wrong = [(level is not None) != with_levels for level in self.level[rows]]
        _refuse(
            self.frame,
            rows[wrong],
            f"a row of class {{class}} and feature {{feature}} has {has}, but {kind} columns hold {wanted}. Give every "
            "row of this feature a level, or none of them, or choose another classifier.",
        )
        return rows

    def moments(self, columns: Columns, n_classes: int) -> Any:
        """Compute the statistics (C, F) of features of numbers; rows of the same class and feature are merged."""
        family = columns.family.statistics
        names = [*columns.names, *columns.auxiliary.values()]
        positions = [self.rows_of(name, with_levels=False, kind=columns.kind) for name in names]
        rows, feature = np.concatenate(positions), np.repeat(np.arange(len(positions)), list(map(len, positions)))
        frame, label = self.frame.iloc[rows], self.class_index[rows]
        given = np.stack([self.count[rows], _read_numbers(frame, "mean"), _read_numbers(frame, "m2")])
        repetition = frame.groupby([label, feature]).cumcount().to_numpy()
        total = family.from_moments(*np.zeros((3, n_classes, len(positions))))
        for k in range(int(repetition.max()) + 1):
            fields, chosen = np.zeros((3, n_classes, len(positions))), repetition == k
            fields[:, label[chosen], feature[chosen]] = given[:, chosen]
            with np.errstate(over="ignore", invalid="ignore"):  # `counting.check` refuses moments that overflow.
                total = total.merge(family.from_moments(*fields))
        return _to_exposed(total, columns) if columns.auxiliary else total


def _to_exposed(totals: Totals, columns: Columns) -> ExposedTotals:
    """Return the statistics of counts from the totals (C, F + 1) of their columns and, last, of the exposures.

    Raises ValueError if cells are missing, as the exposures of the other rows are not known then.
    """
    count, total, exposure = totals.count[:, :-1], totals.total[:, :-1], totals.total[:, -1:]
    differs = ~np.isclose(count, totals.count[:, -1:], rtol=1e-9).all(axis=0)
    if differs.any() or (exposure[totals.count[:, -1] > 0] <= 0).any():
        names = [columns.names[int(np.argmax(differs))], *columns.auxiliary.values()]
        raise ValueError(
            f"table: the counts of features {' and '.join(map(shown, names))} differ, or exposures are not positive. "
            "The sum of the exposures is only known where no cell is missing. Fit to the rows instead."
        )
    return ExposedTotals(count, total, np.broadcast_to(exposure, count.shape).copy())


def _block_statistics(columns: Columns, sample: Rows, cells: _Cells, n_classes: int) -> Any:
    """Return the sufficient statistics of one block of columns, under which `sample` are rows with all levels."""
    kind = columns.kind
    if not columns.one_simplex and hasattr(columns.family.statistics, "from_moments"):
        return cells.moments(columns, n_classes)
    if columns.one_simplex:
        count = np.zeros((n_classes, len(columns.names)))
        for j, name in enumerate(columns.names):
            rows = cells.rows_of(name, with_levels=False, kind=kind)
            np.add.at(count, (cells.class_index[rows], j), cells.count[rows])
        return LevelCounts(count)
    for name in columns.names:
        if not cells.levels[name]:
            raise ValueError(
                f"table: feature {shown(name)} has no levels, but {kind} columns need levels. For numbers use a "
                "classifier of numbers, such as GaussianNB or MixedNB."
            )
    # Each row of the sample is counted separately, so that its counts show the positions of its levels.
    n = max(map(len, cells.levels.values()))
    (single,) = counting.single_rows(Encoding(Levels((0,)), (columns,)), (sample,), n).blocks
    feature, count = columns.axis()[0], np.zeros((n_classes, single.count.shape[1]))
    for j, name in enumerate(columns.names):
        levels, rows = cells.levels[name], cells.rows_of(name, with_levels=True, kind=kind)
        is_level = single.count[: len(levels)] * (feature == j) != 0
        if not (counts := is_level.any(axis=1)).all():
            raise ValueError(
                f"table: the classifier cannot count level {shown(levels[int(np.argmin(counts))])} of feature "
                f"{shown(name)}. The level marks missing cells, or is not among the declared levels. Leave out its "
                "row, or change the hyperparameters of the classifier."
            )
        position = dict(zip(levels, is_level.argmax(axis=1), strict=True))
        place = [position[level] for level in cells.level[rows]]
        np.add.at(count, (cells.class_index[rows], place), cells.count[rows])
    return LevelCounts(count)


def _make_sample(levels: dict[str, list[Hashable]]) -> pd.DataFrame:
    """Make rows in which each level occurs, and two numbers in each column of numbers."""
    import pandas as pd

    n = max(2, *map(len, levels.values()))
    cells: dict[str, np.ndarray] = {}
    for name, values in levels.items():
        column: list[object] = values or [1.0, 2.0]
        cells[name] = np.empty(n, object if values else float)
        cells[name][:] = [column[i % len(column)] for i in range(n)]
    return pd.DataFrame(cells)


def read_frame(table: object) -> pd.DataFrame:
    """Return the table of counts as a DataFrame with the columns `COLUMNS`, features as str; ValueError for others."""
    import pandas as pd

    require_iterable("table", table, "a DataFrame or a list of tuples")
    frame = to_pandas(table, "table")
    if not isinstance(frame, pd.DataFrame):
        rows, n = list(frame), len(COLUMNS)
        for i, row in enumerate(rows):
            if not isinstance(row, Sized) or len(row) != n:
                raise ValueError(f"table: row {i} is {shown(row)}; it must have {n} entries: {', '.join(COLUMNS)}.")
        frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    names = list(frame.columns)
    for name in COLUMNS:
        if names.count(name) > 1 or (name not in names and name in ("class", "feature", "level", "count")):
            has = names.count(name) or "none"
            raise ValueError(f"table must have one column {name!r}, but has {has}. Its columns are {shown(names)}.")
    frame = frame.reindex(columns=list(COLUMNS)).reset_index(drop=True)
    feature = frame["feature"].astype(object)
    return frame.assign(feature=feature.where(feature.isna(), feature.map(str)))


def _read_numbers(frame: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column of the table as a float array (n,); ValueError for a cell not finite, or negative and no mean."""
    values = np.array([_to_float(value) for value in frame[column]], np.float64)
    _refuse(
        frame,
        np.flatnonzero(~np.isfinite(values) | ((column != "mean") & (values < 0))),
        f"{column} of class {{class}}, feature {{feature}}, level {{level}} is {{{column}}}; it must be a number"
        f"{'' if column == 'mean' else ' of at least 0'}. A query of bayesnb.sql.counts returns an empty cell if a "
        "value or weight in the database is not finite, or a weight is negative; correct that row of the database.",
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
                "row of type str, int or bool needs a hashable level of that type, a row of type float none. If an "
                "integer beyond 2**53 became a floating-point number, cast it to BIGINT in the query."
            ) from None
    return levels


def _to_integer(level: object) -> int:
    """Convert a level, an integer or its text, to exactly that integer; raise ValueError for others."""
    text = str(int(level) if isinstance(level, Integral) else level)
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer() or abs(number) > MOST_EXACT:
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
    family = columns.family.statistics
    return hasattr(family, "from_moments") and bool(np.any(np.asarray(family.log_base(np.full((1, 1), 2.0)))))
