"""Remarks on columns that are probably not what they are treated as: identifiers, numbers as text, copies."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import gammaln

from bayesnb._util.arguments import shown
from bayesnb._util.warnings import SuspiciousColumnWarning, warn
from bayesnb.encoding.columns import declared_categories
from bayesnb.encoding.levels import MOST_EXACT, UNITS, Column, Levels, factorize, to_objects
from bayesnb.encoding.table import Table, check_labels, to_table

if TYPE_CHECKING:
    import pandas as pd

_SAMPLE = 2**11
"""Rows of the first sample, in which a value of 1% of all rows is on five rows or more with probability .99998."""
_GROWTH = 2**5
_MOST_NAMES = 6
LABEL = -1
"""Position of the label, beside those of the columns."""
_FEWEST_CELLS = 20
_CHANCE = 1e-3
"""Probability with which columns may be equal by chance alone, for all pairs of columns together."""
_BLOCK = 2**22
"""Cells of numbers that are inspected at once."""
_IQR_OF_NORMAL = 1.349

_SIGNS = re.compile(r"[$¢-¥฿₠-⃀＄￠￡￥元円%‰％]")
_NUMBER = re.compile(
    r"\(?[-+−]?(\d{1,3}([.,'’\s\u00a0\u2009\u202f])\d{3}(\2\d{3})*([.,]\d+)?|\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\)?",
    re.ASCII,
)
_WHOLE = re.compile(r"[-+]?\d+(\.0*)?", re.ASCII)
_CODE = re.compile(r"0\d+", re.ASCII)

NUMBERS_AS_TEXT = (
    "The cells are numbers written as text, so that each is a level of its own. Remove separators, signs of currency "
    "and percent, and convert the column to numbers."
)
_DISTINCT_TEXTS = (
    "More than half of the cells are distinct texts, as in identifiers, free text, and dates written as text. Drop the "
    "column, convert it by pandas.to_datetime, or count its words by bayesnb.text.BagOfWords."
)
_MARK = (
    "One value{} is on many rows, and far from all others. If the value marks missing cells, replace it by NaN: means "
    "and variances would count it as a number."
)
_TWO_TYPES = (
    "Values of two types print alike or mean the same, but count as different ones: {}. Convert the values to one type."
)
_MOST_PAIRS = 3
_COPY = "The column is equal to column {}, and the same evidence would count twice. Drop one of the two."
_COPY_OF_LABEL = "The column is equal to the label. Drop the column, unless it is known before the label is."


class Remark(NamedTuple):
    """Description of a suspicious column, with advice: `text` without numbers of the data, `detail` with them."""

    text: str
    detail: str


class Limits(NamedTuple):
    """Limits of the rules.

    Parameters
    ----------
    distinct : float
        Proportion of distinct texts among the present cells, which suspicious columns exceed.
    numbers, signs : float
        Least proportions of texts that are written as numbers, and of those among them that are not whole numbers.
    mark_rows, mark_share : float
        Least number and proportion of the rows with the smallest or the largest number.
    distance : float
        Distance of this number from all others, in robust standard deviations of the others, which marks exceed.
    values : int
        Least number of distinct values among the others; and number of distinct texts, which columns of whole numbers
        exceed.
    """

    distinct: float = 0.5
    numbers: float = 0.9
    signs: float = 0.01
    mark_rows: float = 10
    mark_share: float = 0.01
    distance: float = 10.0
    values: int = 10


_RULES = Limits()
_SCREEN = Limits(distinct=0.4, numbers=0.8, signs=0.0, mark_rows=5, mark_share=0.0, distance=5.0, values=5)
"""Limits in samples of rows: a column that reaches the limits of the rules in all rows hardly ever misses these."""

_Check = Callable[[Table, "np.ndarray | None", Limits], Mapping[int, Remark]]
"""Remarks on columns of a table, which has the rows of X at the given positions (None: all rows)."""


def check_table(X: object, y: object = None) -> pd.DataFrame:
    """Describe each column of a table: its kind, its values, and what looks suspicious.

    `fit` issues a `SuspiciousColumnWarning` with the same remarks. The remarks do not depend on the container or on the
    order of the rows. Columns with fewer than 20 present cells have none but those on two types.

    - *Numbers written as text*: at least 90% of the cells are texts that are numbers apart from separators, signs of
      currency and percent. Whole numbers of at most ten distinct values, and those that begin with 0, such
      as "02139", count as codes and have no remark.
    - *Distinct texts*: more than half of the present cells are distinct texts, as in identifiers, free text, and dates
      written as text. Columns of a declared categorical type have no remark on their texts.
    - *Mark of missing cells*: the smallest or the largest number, such as -999, is on at least ten rows and 1% of them,
      and more than ten robust standard deviations away from all other numbers, which have at least ten distinct values.
    - *Two types*: values of different types print alike or mean the same, such as "1" and 1, "1.0" and 1, or "yes" and
      True, however few the cells are. `fit` and `partial_fit` warn of labels of two types, too.
    - *Copy*: the column is equal to an earlier column, or to the label. Equality of few or nearly constant cells, which
      chance produces in some pair of columns with a probability above .001, has no remark.

    Parameters
    ----------
    X : array-like or DataFrame of shape (N, F)
        Rows of features.
    y : array-like of shape (N,), optional
        Labels of the rows.

    Returns
    -------
    DataFrame
        One row per column of X, by its name, with the columns "kind" ("numbers", "levels", "dates (days)" or "durations
        (seconds)", as `MixedNB` and `WeightedNB` treat the column), "levels" (number of distinct values), "missing"
        (number of missing cells) and "remarks" (text, empty if there are none). Structures such as `TAN` treat whole
        numbers as levels by default, and `CategoricalNB` all values.

    Raises
    ------
    ValueError
        If X is not a table, or y has not one label for each row.
    TypeError
        If X is sparse, or a cell is not hashable.

    See Also
    --------
    SuspiciousColumnWarning : Warning of `fit`, and how to silence it.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31, 42, 53, 64] * 6, "price": ["$1,200", "$950", "$80", "$75"] * 6})
    >>> table = bnb.check_table(X)
    >>> table[["kind", "levels", "missing"]]
              kind  levels  missing
    column
    age    numbers       4        0
    price   levels       4        0
    >>> print(table.loc["price", "remarks"])
    The cells are numbers written as text, so that each is a level of its own. Remove separators, signs of currency and
    percent, and convert the column to numbers.
    """
    import pandas as pd

    table = to_table(X, "check_table")
    table.require_dense()
    labels = None if y is None else check_labels(y, table.n_rows, "check_table")
    index = range(len(table.names))
    numeric = [table.is_numeric(j, whole=True) for j in index]
    table = replace(table, numeric=numeric)
    remarks = find_remarks(table, index, labels)
    levels = {j: Levels.from_values(factorize(table.column(j), table.label(j))[1]) for j in index if not numeric[j]}
    types = find_types(levels)
    rows = []
    for j in index:
        cells, kind = exact_cells(table, j), table.kind(j)
        present = cells[~pd.isna(cells)]
        rows.append(
            {
                "column": table.names[j],
                "kind": f"{kind}s ({UNITS[kind]})" if kind in UNITS else "numbers" if numeric[j] else "levels",
                "levels": len(pd.unique(present)),
                "missing": len(cells) - len(present),
                "remarks": " ".join(remark.detail for remark in (*remarks.get(j, ()), *types.get(j, ()))),
            }
        )
    return pd.DataFrame(rows).set_index("column")


def warn_of_remarks(names: Sequence[str], remarks: Mapping[int, Sequence[Remark]]) -> None:
    """Issue one `SuspiciousColumnWarning` that names all columns with remarks; none if there are no remarks.

    `names` are those of the columns of X. Remarks at the position `LABEL` are on the labels.
    """
    columns: dict[str, list[str]] = defaultdict(list)
    for j, column_remarks in sorted(remarks.items()):
        for remark in column_remarks:
            columns[remark.text].append("labels" if j == LABEL else shown(names[j]))
    described = [
        f"{', '.join(named[:_MOST_NAMES])}{' and others' * (len(named) > _MOST_NAMES)}: {text}"
        for text, named in columns.items()
    ]
    if described:
        what = "y has suspicious labels" if {*remarks} == {LABEL} else "X has suspicious columns"
        warn(
            f"{what}, which were counted unchanged. {' '.join(described)} bayesnb.check_table(X, y) lists all. To "
            "silence: warnings.filterwarnings('ignore', category=bayesnb.SuspiciousColumnWarning).",
            SuspiciousColumnWarning,
        )


def find_types(levels: Mapping[int, Levels], known: Mapping[int, Levels] | None = None) -> dict[int, list[Remark]]:
    """Return {position: remarks} on levels of different types that print alike or mean the same, see `pair_alike`.

    `levels` and `known` have the levels of columns by position, and the classes at `LABEL`. Pairs of two `known` levels
    have no remark.
    """
    remarks: dict[int, list[Remark]] = {}
    for j, column_levels in levels.items():
        before = (known or {}).get(j)
        if before is not column_levels and (pairs := column_levels.pair_alike(before)):
            written = [" and ".join(f"{shown(value)} ({type(value).__name__})" for value in pair) for pair in pairs]
            text = _TWO_TYPES.format(", ".join(written[:_MOST_PAIRS]) + " and others" * (len(pairs) > _MOST_PAIRS))
            remarks[j] = [Remark(text, text)]
    return remarks


def find_remarks(
    table: Table, index: Iterable[int], labels: tuple[Levels, np.ndarray] | None
) -> dict[int, list[Remark]]:
    """Return {position: remarks} of the suspicious columns among those at the positions `index`.

    The time is that of some thousand rows, unless a column is suspicious there.

    Parameters
    ----------
    table : Table
        Dense table whose `numeric` tells which columns are treated as numbers.
    index : iterable of int
        Positions of the columns to inspect.
    labels : (Levels, (N,) array) or None
        Classes, and the index of the class of each row.
    """
    if table.is_sparse or table.n_rows < _FEWEST_CELLS:
        return {}
    index = list(index)
    numbers = [j for j in index if table.is_numeric(j, whole=True)]
    others = sorted(set(index).difference(numbers))
    texts = [j for j in others if table.column(j).dtype.kind not in "biufcmM"]
    copies = partial(_check_copies, labels=labels, n_pairs=len(index) * (len(index) + 1) / 2)
    remarks: dict[int, list[Remark]] = defaultdict(list)
    for found in (
        _narrow(table, texts, _check_texts, _SAMPLE),
        _narrow(table, numbers, _check_marks, _SAMPLE),
        _narrow(table, index, copies, _SAMPLE // _GROWTH),
    ):
        for j, remark in found.items():
            remarks[j].append(remark)
    return dict(remarks)


def _narrow(table: Table, candidates: list[int], check: _Check, size: int) -> dict[int, Remark]:
    """Return the remarks of `check` on the columns in which it finds something in growing samples, and in all rows.

    The first sample has `size` rows.
    """
    remarks: dict[int, Remark] = {}
    for rows, limits in _samples(table.n_rows, size):
        found = check(table.part(rows, candidates), rows, limits) if candidates else {}
        remarks = {candidates[k]: remark for k, remark in found.items()}
        if not (candidates := sorted(remarks)):
            break
    return remarks


def _samples(n_rows: int, size: int) -> Iterator[tuple[np.ndarray | None, Limits]]:
    """Yield positions of growing random samples of rows with the limits for samples, and at last None for all rows."""
    rng = np.random.default_rng(0)
    while 2 * size < n_rows:
        yield np.sort(rng.choice(n_rows, size, replace=False)), _SCREEN
        size *= _GROWTH
    yield None, _RULES


def _check_texts(table: Table, rows: np.ndarray | None, limits: Limits) -> dict[int, Remark]:
    """Find columns of numbers written as text, and of distinct texts."""
    remarks = {}
    for j in range(len(table.names)):
        column = table.column(j)
        if table.kind(j) != "level" or declared_categories(column) is not None:
            continue
        codes, values = factorize(column, table.label(j))
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        is_text = np.array([isinstance(value, str) for value in values], bool)
        n, n_texts = counts.sum(), counts[is_text].sum()
        if n < _FEWEST_CELLS or n_texts < min(limits.distinct, limits.numbers) * n:
            continue
        is_number, has_sign = _read_numbers([v for v in values if isinstance(v, str)])
        are_numbers = counts[is_text][is_number].sum() >= limits.numbers * n
        n_distinct, n_signs = (counts[is_text] > 0).sum(), counts[is_text][has_sign].sum()
        if are_numbers and n_signs > 0 and n_signs >= limits.signs * n:
            remarks[j] = Remark(NUMBERS_AS_TEXT, NUMBERS_AS_TEXT)
        elif n_distinct > limits.distinct * n:
            remarks[j] = Remark(_DISTINCT_TEXTS, _DISTINCT_TEXTS)
        elif are_numbers and n_distinct > limits.values:
            remarks[j] = Remark(NUMBERS_AS_TEXT, NUMBERS_AS_TEXT)
    return remarks


def _read_numbers(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return (T,) whether each text is a number, and whether it is a number that is not written as a whole one.

    Whole numbers that begin with 0, such as "02139", are codes.
    """
    plain = [_SIGNS.sub("", text).strip() for text in texts]
    is_number = [_NUMBER.fullmatch(text) is not None and _CODE.fullmatch(text) is None for text in plain]
    has_sign = [is_one and _WHOLE.fullmatch(text) is None for is_one, text in zip(is_number, texts, strict=True)]
    return np.array(is_number, bool), np.array(has_sign, bool)


def _check_marks(table: Table, rows: np.ndarray | None, limits: Limits) -> dict[int, Remark]:
    """Find columns of numbers whose smallest or largest value is on many rows, and far from all others."""
    remarks = {}
    width = max(1, _BLOCK // table.n_rows)
    for start in range(0, len(table.names), width):
        index = range(start, min(start + width, len(table.names)))
        numbers = _numbers_by_column(table, index)
        are_often = [
            (numbers == extreme.reduce(numbers, axis=1)[:, None]).sum(axis=1) >= limits.mark_rows
            for extreme in (np.fmin, np.fmax)
        ]
        often = np.flatnonzero(np.logical_or(*are_often))
        for k, values in _find_marks(numbers[often], limits).items():
            j = index[int(often[k])]
            marks = " or ".join(_write_number(value, table.kind(j)) for value in values)
            remarks[j] = Remark(_MARK.format(""), _MARK.format(f" ({marks})"))
    return remarks


def _numbers_by_column(table: Table, index: Sequence[int]) -> np.ndarray:
    """Return the numbers of some columns as an array (K, N) in row-major order."""
    if table.is_frame:
        return np.array([table.column_numbers(j) for j in index], np.float64)
    return np.ascontiguousarray(np.asarray(table.numbers(index)).T, np.float64)


def _find_marks(numbers: np.ndarray, limits: Limits) -> dict[int, list[float]]:
    """Return {k: extremes on many rows, far from the others} of columns k of numbers (K, N), NaN where missing."""
    numbers, rows = np.sort(numbers, axis=1), np.arange(len(numbers))
    n = (numbers == numbers).sum(axis=1)
    lowest, highest = numbers[:, 0], numbers[rows, n - 1]
    n_lowest, n_highest = ((numbers == value[:, None]).sum(axis=1) for value in (lowest, highest))
    marks: dict[int, list[float]] = defaultdict(list)
    for value, count, start in ((lowest, n_lowest, n_lowest), (highest, n_highest, np.zeros_like(n))):
        n_others = n - count
        first, lower, upper, last = (
            numbers[rows, np.clip(start + n_others * quarter // 4 - (quarter == 4), 0, n - 1)]
            for quarter in (0, 1, 3, 4)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            spread = (upper - lower) / _IQR_OF_NORMAL
            is_far = (spread > 0) & (np.minimum(abs(first - value), abs(last - value)) > limits.distance * spread)
        is_often = (count >= limits.mark_rows) & (count >= limits.mark_share * numbers.shape[1])
        for k in np.flatnonzero(is_far & is_often & (n >= _FEWEST_CELLS)).tolist():
            if len(np.unique(numbers[k, : n[k]])) > limits.values:
                marks[k].append(float(value[k]))
    return marks


def _write_number(value: float, kind: str) -> str:
    """Write a number, or the date or the duration for which it stands."""
    if kind == "date":
        return str(np.datetime64(round(value * 86400), "s")).removesuffix("T00:00:00")
    return f"{value:.15g}" + " seconds" * (kind == "duration")


def _check_copies(
    table: Table, rows: np.ndarray | None, limits: Limits, *, labels: tuple[Levels, np.ndarray] | None, n_pairs: float
) -> dict[int, Remark]:
    """Find columns that are equal to each other or to the labels; in all rows, only those that chance cannot explain.

    In a sample every column of a group of equal ones is found, and in all rows those after the first.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    if labels is not None:
        classes, label = labels
        groups[_hash(_comparable_cells(classes.array()[label if rows is None else label[rows]], "y"))].append(LABEL)
    for j, cells in enumerate(_all_cells(table)):
        groups[_hash(cells)].append(j)
    remarks: dict[int, Remark] = {}
    for first, *others in groups.values():
        if limits is _SCREEN:
            remarks |= dict.fromkeys([j for j in (first, *others) if others and j != LABEL], Remark("", ""))
        elif others and _cannot_be_chance(exact_cells(table, others[0]), n_pairs):
            text = _COPY_OF_LABEL if first == LABEL else _COPY.format(shown(table.names[first]))
            remarks |= dict.fromkeys(others, Remark(text, text))
    return remarks


def _all_cells(table: Table) -> Iterable[np.ndarray]:
    """Return the cells (N,) of each column; see `exact_cells`."""
    if not table.is_frame and table.data.dtype.kind in "biuf" and _are_exact(table.data):
        return _exact_numbers(np.ascontiguousarray(table.data.T))
    return (exact_cells(table, j) for j in range(len(table.names)))


def exact_cells(table: Table, j: int) -> np.ndarray:
    """Return the cells (N,) of a column that can be compared with others: numbers with NaN, or objects with None."""
    column, is_numeric = table.column(j), table.is_numeric(j, whole=True)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return _exact_numbers(column)
    return _exact_numbers(table.column_numbers(j)) if is_numeric else _comparable_cells(column, table.label(j))


def _comparable_cells(column: Column, where: str) -> np.ndarray:
    """Return the cells (N,) of a column of levels as numbers with NaN if all are numbers, else as objects with None."""
    codes, values = factorize(column, where)
    cells = to_objects([*values, None])
    if values and all(isinstance(value, bool | int | float) and abs(value) <= MOST_EXACT for value in values):
        cells = cells.astype(np.float64)
    return np.asarray(cells[codes])


def _exact_numbers(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as float64 with one NaN, or as objects if float64 does not represent them; see `_are_exact`."""
    if not _are_exact(numbers):
        return numbers.astype(object)
    numbers = numbers.astype(np.float64) + 0.0  # -0.0 becomes 0.0, with the same bytes.
    numbers[numbers != numbers] = np.nan
    return numbers


def _are_exact(numbers: np.ndarray) -> bool:
    """Return whether numbers are floats, Booleans, or integers up to 2^53, which float64 represents."""
    return numbers.dtype.kind not in "iu" or bool(numbers.max() <= MOST_EXACT and numbers.min() >= -MOST_EXACT)


def _hash(cells: np.ndarray) -> int:
    """Return the same integer for equal cells; that of others is as good as never the same."""
    return hash(tuple(cells.tolist()) if cells.dtype == object else cells.tobytes())


def _cannot_be_chance(cells: np.ndarray, n_pairs: float) -> bool:
    """Return whether a column is present often enough, and has so many arrangements, that equality is no chance.

    Among `n_pairs` pairs of columns with these cells in random order, some are equal with a probability of at most
    `n_pairs` / N! · Π_v n_v!, where value v has n_v cells.
    """
    import pandas as pd

    counts = np.bincount(pd.factorize(cells, use_na_sentinel=False)[0])
    log_arrangements = gammaln(len(cells) + 1) - gammaln(counts + 1).sum()
    is_present = np.count_nonzero(~pd.isna(cells)) >= _FEWEST_CELLS
    return bool(is_present and log_arrangements >= np.log(n_pairs / _CHANCE))
