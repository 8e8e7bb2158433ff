"""An estimator from a table of counts: what a grouping query leaves of rows that stay where they lie."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bayesnb import counting
from bayesnb._util.arguments import require_iterable, require_number, shown
from bayesnb.counting import Counted
from bayesnb.encoding import Columns, Encoding, Levels, Rows, check_labels
from bayesnb.estimators import drafts
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.families import LevelCounts
from bayesnb.fitted import NotOfferedError
from bayesnb.model import Statistics

if TYPE_CHECKING:
    import pandas as pd

NB = TypeVar("NB", bound=NaiveBayesClassifier)

_COLUMNS = ("class", "feature", "type", "level", "count", "mean", "m2")
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")
_TYPES: dict[str, Any] = {"str": str, "int": int, "bool": lambda text: _boolean(str(text).lower())}


def from_counts(nb: NB, table: Any, *, log_base: float | None = None) -> NB:
    """Fit a classifier to a table of counts, such as a database makes of `bayesnb.sql.counts`.

    Parameters
    ----------
    nb
        Is fitted anew: a naive Bayes classifier whose features are independent given the class.
    table : DataFrame, or list of tuples
        Columns class, feature, type, level, count, mean, m2, in this order if they have no names. A row without a
        feature has the weight of its class: of all of its rows. A row with a level has the weight of those that have
        it. A row without one is of numbers: their weight, mean and centred sum of squares; of words (`MultinomialNB`)
        the count is how often the word occurred, and mean and m2 are empty. `type` (str, int or bool) says what the
        level is where a query made text of it; without a type it is taken as it is.
    log_base : float, optional
        Σ of the log multinomial coefficients of the rows, or of -log x! (Poisson). Counts do not tell them, and
        `log_evidence_` has them: needed for such classifiers, and 0 will do to compare priors on the same rows.

    Returns
    -------
    nb
        With the posterior of `fit` on the rows themselves.

    Raises
    ------
    ValueError
        If a column is absent, a count is none, a class has no weight of its own or less than its cells; if `log_base`
        is needed. `nb` is left as it was.
    NotOfferedError
        If the classifier needs more of the rows than these counts; a NotImplementedError.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesnb import CategoricalNB, from_counts
    >>> rows = [("ripe", None, None, None, 3, None, None), ("raw", None, None, None, 2, None, None)]
    >>> rows += [("ripe", "colour", "str", "dark", 3, None, None), ("raw", "colour", "str", "light", 2, None, None)]
    >>> from_counts(CategoricalNB(), rows).predict_proba(pd.DataFrame({"colour": ["dark"]})).round(2)
    array([[0.19, 0.81]])
    """
    _require_countable(nb)
    frame = _frame(table)
    of_class = frame[frame["feature"].isna()]
    of_feature = frame[frame["feature"].notna()]
    if not len(of_class) or not len(of_feature):
        lacks = "feature" if len(of_class) else "class by itself (a row whose feature is empty)"
        raise ValueError(f"table has no row of a {lacks}; see bayesnb.sql.counts.")
    classes, label = check_labels(of_class["class"], len(of_class), type(nb).__name__, "table['class']")
    own = classes.index(of_feature["class"])
    if (own < 0).any():
        i = int(np.argmax(own < 0))
        row = of_feature.iloc[i]
        raise ValueError(
            f"table: class {row['class']!r} of feature {row['feature']!r} has no row of its own, whose feature is "
            "empty; its count is the weight of all rows of the class."
        )
    class_count = np.bincount(label, _numbers(of_class, "count"), minlength=len(classes))
    draft = drafts.blank(nb)
    levels = _levels(of_feature)
    sample = drafts.checked(draft, _rows_with(levels))
    encoding, rows = Encoding(classes, draft._columns(sample)).learn(sample)
    cells = _Cells(of_feature, own)
    blocks = tuple(
        _statistics(columns, own_rows, levels, cells, len(classes))
        for columns, own_rows in zip(encoding.blocks, rows, strict=True)
    )
    if any(_has_base(columns) for columns in encoding.blocks):
        if log_base is None:
            raise ValueError(
                f"{type(nb).__name__}: counts do not tell the base measures of the rows, Σ log multinomial "
                "coefficients or -log x!, which log_evidence_ has. Give log_base=; 0 if it is to be compared on the "
                "same rows only."
            )
        require_number("log_base", log_base, "a number", np.isfinite)
    counted = Counted(encoding, Statistics(class_count, blocks, np.array(float(log_base or 0.0))))
    try:
        counting.check(counted)
    except ValueError as error:
        raise ValueError(f"table: {error}") from None
    return drafts.commit(nb, draft, counted)


class _Cells:
    """Rows of the table that are about features, by feature: classes, levels as they are meant, and numbers."""

    def __init__(self, frame: pd.DataFrame, own: np.ndarray) -> None:
        self.level = _typed(frame)
        self.count = _numbers(frame, "count")
        self.frame, self.own = frame, own
        self._at = frame.groupby("feature", sort=False).indices

    def of(self, name: str) -> np.ndarray:
        """Which rows are about a feature."""
        return np.asarray(self._at[name])

    def moments(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and m2 of a feature of numbers, with the rows that they stand in."""
        at = self.of(name)
        part = self.frame.iloc[at]
        return at, _numbers(part, "mean"), _numbers(part, "m2")


def _statistics(columns: Columns, rows: Rows, levels: dict[str, list[Hashable]], cells: _Cells, n_classes: int) -> Any:
    if columns.one_simplex:
        count = np.zeros((n_classes, len(columns.names)))
        for j, name in enumerate(columns.names):
            at = cells.of(name)
            np.add.at(count, (cells.own[at], j), cells.count[at])
        return LevelCounts(count)
    if hasattr(columns.family.statistics, "of_moments"):
        fields = np.zeros((3, n_classes, len(columns.names)))
        for j, name in enumerate(columns.names):
            at, mean, m2 = cells.moments(name)
            fields[:, cells.own[at], j] = cells.count[at], mean, m2
        return columns.family.statistics.of_moments(*fields)
    for name in columns.names:
        if not levels[name]:
            raise ValueError(
                f"table: feature {name!r} has no levels, and {columns.kind} columns count levels; numbers are of "
                "GaussianNB, ExponentialNB and others, or of MixedNB."
            )
    # A row of the sample is a class of its own here: what it counts shows where its levels are.
    encoding = Encoding(Levels((0,)), (columns,))
    n = max(map(len, levels.values()))
    (single,) = counting.single_rows(encoding, (rows,), n).blocks
    feature = columns.axis()[0]
    count = np.zeros((n_classes, single.count.shape[1]))
    for j, name in enumerate(columns.names):
        index = {level: i for i, level in enumerate(levels[name])}
        at = cells.of(name)
        row, position = np.nonzero(single.count[: len(index)] * (feature == j))
        place = np.full(len(index), -1)
        place[row] = position
        if (place < 0).any():
            raise ValueError(
                f"table: level {levels[name][int(np.argmax(place < 0))]!r} of feature {name!r} is none that the "
                "classifier counts: it is missing, or not among the declared ones."
            )
        np.add.at(count, (cells.own[at], place[[index[level] for level in cells.level[at]]]), cells.count[at])
    return LevelCounts(count)


def _require_countable(nb: Any) -> None:
    if not isinstance(nb, NaiveBayesClassifier):
        raise TypeError(f"from_counts fits the classifiers of this package, and nb is {shown(nb)}.")
    if nb.no_counts is not None:
        raise NotOfferedError(f"{type(nb).__name__}: {nb.no_counts}")


def _frame(table: Any) -> pd.DataFrame:
    import pandas as pd

    require_iterable("table", table, "a DataFrame or a list of tuples")
    table = table.to_pandas() if hasattr(table, "to_pandas") else table
    if not isinstance(table, pd.DataFrame):
        rows = list(table)
        odd = next((i for i, row in enumerate(rows) if len(row) != len(_COLUMNS)), None)
        if odd is not None:
            raise ValueError(f"table: row {odd} has {len(rows[odd])} cells; they are {', '.join(_COLUMNS)}.")
        table = pd.DataFrame(rows, columns=list(_COLUMNS), dtype=object)
    absent = [name for name in ("class", "feature", "level", "count") if name not in table.columns]
    if absent:
        raise ValueError(f"table has no column {absent[0]!r}, only {list(table.columns)}.")
    table = table.reindex(columns=list(_COLUMNS)).reset_index(drop=True)
    return table.assign(feature=[name if pd.isna(name) else str(name) for name in table["feature"]])


def _numbers(frame: pd.DataFrame, column: str) -> np.ndarray:
    import pandas as pd

    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if not np.isfinite(values).all() or (column != "mean" and (values < 0).any()):
        i = int(np.argmax(~np.isfinite(values) | ((column != "mean") & (values < 0))))
        row = frame.iloc[i]
        raise ValueError(
            f"table: {column} of class {row['class']!r}, feature {row['feature']!r}, level {row['level']!r} is "
            f"{row[column]!r}, and must be a {'number' if column == 'mean' else 'number of at least 0'}."
        )
    return values


def _typed(frame: pd.DataFrame) -> np.ndarray:
    """Levels as they are meant, None where there is none."""
    found = np.empty(len(frame), object)
    columns = zip(frame["feature"], frame["type"], frame["level"], frame["level"].isna(), strict=True)
    for i, (feature, kind, level, none) in enumerate(columns):
        try:
            found[i] = None if none else _TYPES[kind](level) if kind in _TYPES else level
        except ValueError:
            raise ValueError(f"table: level {level!r} of feature {feature!r} is not of its type, {kind}.") from None
    return found


def _boolean(text: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise ValueError(text)
    return text in _TRUE


def _levels(frame: pd.DataFrame) -> dict[str, list[Hashable]]:
    """The levels of each feature; none of features of numbers."""
    levels: dict[str, dict[Hashable, None]] = {}
    for feature, level in zip(frame["feature"], _typed(frame), strict=True):
        own = levels.setdefault(feature, {})
        if level is not None:
            own[level] = None
    return {name: list(own) for name, own in levels.items()}


def _rows_with(levels: dict[str, list[Hashable]]) -> pd.DataFrame:
    """Rows in which each level stands once or more, and some number in each column of numbers."""
    import pandas as pd

    n = max(2, *map(len, levels.values()))
    cells: dict[str, Any] = {}
    for name, own in levels.items():
        if own:
            column = np.empty(n, object)
            column[:] = [own[i % len(own)] for i in range(n)]
            cells[name] = column
        else:
            cells[name] = np.arange(n) % 2 + 0.0
    return pd.DataFrame(cells)


def _has_base(columns: Columns) -> bool:
    if columns.one_simplex:
        return True
    family: Any = columns.family.statistics
    return hasattr(family, "of_moments") and bool(np.any(np.asarray(family.log_base(np.full((1, 1), 2.0)))))


__all__ = ["from_counts"]
