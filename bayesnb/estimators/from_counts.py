"""An estimator from a table of counts: what a grouping query leaves of rows that stay where they lie."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence, Sized
from decimal import Decimal
from numbers import Integral, Real
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
_TRUE, _FALSE = ("true", "t", "1", "1.0"), ("false", "f", "0", "0.0")
_TYPES: dict[str, Any] = {"str": str, "int": lambda level: _integer(level), "bool": lambda level: _boolean(level)}
_WHOLE = re.compile(r"\s*([+-]?\d{1,1000})(\.0*)?\s*", re.ASCII)
_EXACT = 2**53  # up to which every integer is a number of float64


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
        level is where a query made text of it, and float that the row is of numbers; without a type a level is taken
        as it is. Rows of the same class, feature and level are added up, and their moments merged: tables of
        partitions may stand one after the other.
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
        If a column is absent, a count is none, a class has no weight of its own or less than its cells; if a level is
        not of its type, or a row has a level and no feature; if `log_base` is needed. `nb` is left as it was.
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
    try:
        own = classes.index(of_feature["class"])
    except TypeError as error:
        raise ValueError(f"table: a class is not hashable: {error}.") from None
    if (own < 0).any():
        i = int(np.argmax(own < 0))
        row = of_feature.iloc[i]
        raise ValueError(
            f"table: class {shown(row['class'])} of feature {shown(row['feature'])} has no row of its own, whose "
            "feature is empty; its count is the weight of all rows of the class."
        )
    for name in ("type", "level", "mean", "m2"):
        given = of_class[name].notna().to_numpy()
        if given.any():
            row = of_class.iloc[int(np.argmax(given))]
            raise ValueError(
                f"table: a row of class {shown(row['class'])} has the {name} {shown(row[name])} and no feature. A row "
                "without a feature has the weight of its class. Name the feature, or leave that cell empty."
            )
    class_count = np.bincount(label, _numbers(of_class, "count"), minlength=len(classes))
    draft = drafts.blank(nb)
    cells = _Cells(of_feature, own)
    levels = cells.levels()
    sample = drafts.checked(draft, _rows_with(levels))
    encoding, rows = Encoding(classes, draft._columns(sample)).learn(sample)
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
    """Rows of the table that are about features: classes, levels as their types say, and weights."""

    def __init__(self, frame: pd.DataFrame, own: np.ndarray) -> None:
        self.level = _typed(frame)
        self.count = _numbers(frame, "count")
        self.frame, self.own = frame, own
        self._at = frame.groupby("feature", sort=False).indices

    def rows_of(self, name: str, *, with_levels: bool, kind: str) -> np.ndarray:
        """Positions of the rows about a feature, all of which must have a level, or none."""
        at = np.asarray(self._at[name])
        other = np.array([(level is not None) != with_levels for level in self.level[at]])
        if other.any():
            label = self.frame["class"].iloc[at[int(np.argmax(other))]]
            has, wanted = ("no level", "levels") if with_levels else ("a level", "numbers or words, which have none")
            raise ValueError(
                f"table: a row of class {shown(label)}, feature {shown(name)} has {has}. Columns that are {kind} count "
                f"{wanted}. Give all rows of the feature one form, or choose another classifier."
            )
        return at

    def levels(self) -> dict[str, list[Hashable]]:
        """Levels of each feature, each once; empty for features of numbers."""
        return {
            str(name): list(dict.fromkeys(level for level in self.level[at] if level is not None))
            for name, at in self._at.items()
        }

    def moments(self, family: Any, names: Sequence[str], kind: str, n_classes: int) -> Any:
        """Statistics of features of numbers; rows of the same class and feature are merged."""
        total = family.from_moments(*np.zeros((3, n_classes, len(names))))
        at = [self.rows_of(name, with_levels=False, kind=kind) for name in names]
        rows, feature = np.concatenate(at), np.repeat(np.arange(len(names)), list(map(len, at)))
        frame = self.frame.iloc[rows]
        given = np.stack([self.count[rows], _numbers(frame, "mean"), _numbers(frame, "m2")])
        part = frame.groupby([self.own[rows], feature]).cumcount().to_numpy()
        for k in range(int(part.max()) + 1):
            fields, chosen = np.zeros((3, n_classes, len(names))), part == k
            fields[:, self.own[rows[chosen]], feature[chosen]] = given[:, chosen]
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused as not finite
                total = total.merge(family.from_moments(*fields))
        return total


def _statistics(columns: Columns, rows: Rows, levels: dict[str, list[Hashable]], cells: _Cells, n_classes: int) -> Any:
    kind = columns.kind
    if columns.one_simplex:
        count = np.zeros((n_classes, len(columns.names)))
        for j, name in enumerate(columns.names):
            at = cells.rows_of(name, with_levels=False, kind=kind)
            np.add.at(count, (cells.own[at], j), cells.count[at])
        return LevelCounts(count)
    if hasattr(columns.family.statistics, "from_moments"):
        return cells.moments(columns.family.statistics, columns.names, kind, n_classes)
    for name in columns.names:
        if not levels[name]:
            raise ValueError(
                f"table: feature {shown(name)} has no levels, and {columns.kind} columns count levels; numbers are of "
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
        at = cells.rows_of(name, with_levels=True, kind=kind)
        row, position = np.nonzero(single.count[: len(index)] * (feature == j))
        place = np.full(len(index), -1)
        place[row] = position
        if (place < 0).any():
            level = levels[name][int(np.argmax(place < 0))]
            raise ValueError(
                f"table: level {shown(level)} of feature {shown(name)} is none that the classifier counts: it is "
                "missing, or not among the declared ones."
            )
        np.add.at(count, (cells.own[at], place[[index[level] for level in cells.level[at]]]), cells.count[at])
    return LevelCounts(count)


def _require_countable(nb: Any) -> None:
    if getattr(nb, "no_counts", None) is not None:
        raise NotOfferedError(f"{type(nb).__name__}: {nb.no_counts}")
    if not isinstance(nb, NaiveBayesClassifier):
        raise TypeError(f"from_counts fits the classifiers of this package, and nb is {shown(nb)}.")


def _frame(table: Any) -> pd.DataFrame:
    import pandas as pd

    require_iterable("table", table, "a DataFrame or a list of tuples")
    table = table.to_pandas() if hasattr(table, "to_pandas") else table
    if not isinstance(table, pd.DataFrame):
        rows = list(table)
        for i, row in enumerate(rows):
            if isinstance(row, str | bytes) or not isinstance(row, Sized) or len(row) != len(_COLUMNS):
                n = f"{len(row)} cells" if isinstance(row, Sized) else f"no cells, but is {shown(row)}"
                raise ValueError(f"table: row {i} has {n}; they are {', '.join(_COLUMNS)}.")
        table = pd.DataFrame(rows, columns=list(_COLUMNS), dtype=object)
    names = list(table.columns)
    for name in _COLUMNS:
        if names.count(name) != 1 and (name in names or name in ("class", "feature", "level", "count")):
            times = f"{names.count(name)} columns" if name in names else "no column"
            raise ValueError(f"table has {times} {shown(name)}, only {shown(names)}.")
    table = table.reindex(columns=list(_COLUMNS)).reset_index(drop=True)
    feature = table["feature"].astype(object)
    return table.assign(feature=feature.where(feature.isna(), feature.map(str)))


def _numbers(frame: pd.DataFrame, column: str) -> np.ndarray:
    series = frame[column]
    fast = isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf"
    values = series.to_numpy(np.float64) if fast else np.array([_number(value) for value in series], np.float64)
    bad = ~np.isfinite(values) | ((column != "mean") & (values < 0))
    if bad.any():
        row = frame.iloc[int(np.argmax(bad))]
        least = "" if column == "mean" else " of at least 0"
        hint = " A query leaves it empty where a weight or a cell is no number." if _is_missing(row[column]) else ""
        raise ValueError(
            f"table: {column} of class {shown(row['class'])}, feature {shown(row['feature'])}, level "
            f"{shown(row['level'])} is {shown(row[column])}, and must be a number{least}.{hint}"
        )
    return values


def _number(value: Any) -> float:
    """The number that a cell of the table has; NaN if it has none."""
    try:
        return float(value) if isinstance(value, Real | Decimal | str) else float("nan")
    except (ValueError, OverflowError):
        return float("nan")


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _typed(frame: pd.DataFrame) -> np.ndarray:
    """Levels as their types say, None for rows without one."""
    levels = np.empty(len(frame), object)
    for i, (feature, kind, level) in enumerate(zip(frame["feature"], frame["type"], frame["level"], strict=True)):
        empty = _is_missing(level)
        typed = not _is_missing(kind)
        if typed and (not isinstance(kind, str) or kind not in ("float", *_TYPES)):
            raise ValueError(
                f"table: type {shown(kind)} of feature {shown(feature)} is unknown; use {', '.join(_TYPES)}, float, or "
                "leave it empty."
            )
        if typed and empty != (kind == "float"):
            state = "is empty" if empty else f"is {shown(level)}"
            raise ValueError(
                f"table: level of feature {shown(feature)}, type {kind}, {state}. A row of type str, int or bool has a "
                "level; one of type float has numbers: count, mean and m2."
            )
        try:
            levels[i] = None if empty else _TYPES[kind](level) if typed else level
            hash(levels[i])
        except ValueError as error:
            raise ValueError(
                f"table: level {shown(level)} of feature {shown(feature)} is not of its type, {kind}{error}."
            ) from None
        except TypeError:
            raise ValueError(f"table: level {shown(level)} of feature {shown(feature)} is not hashable.") from None
    return levels


def _integer(level: Any) -> int:
    """The integer that a level is, or is written as: exactly."""
    if isinstance(level, Integral):
        return int(level)
    text = str(level)
    whole = _WHOLE.fullmatch(text)
    if not whole or (whole[2] and abs(int(whole[1])) > _EXACT):
        lost = "e" in text.lower() or whole is not None
        raise ValueError("; as a floating-point number it may have lost digits: cast it to BIGINT in the query" * lost)
    return int(whole[1])


def _boolean(level: Any) -> bool:
    text = str(level).lower()
    if text not in (*_TRUE, *_FALSE):
        raise ValueError
    return text in _TRUE


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
    return hasattr(family, "from_moments") and bool(np.any(np.asarray(family.log_base(np.full((1, 1), 2.0)))))


__all__ = ["from_counts"]
