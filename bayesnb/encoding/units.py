"""Units of rows, which random halves and folds keep whole: groups that users name, and copies of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.warnings import CopiedRowsWarning, warn
from bayesnb.encoding.levels import factorize
from bayesnb.encoding.suspicious_columns import exact_cells
from bayesnb.encoding.table import Table, labels_to_array

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd factor, 2^64 divided by the golden ratio, by which hashes of several cells become one."""
_SAMPLE = 2**11
"""Rows of the sample in which the column of the most distinct numbers is found."""
_FEWEST_VALUES, _MOST_COPIES = 20, 20
"""Fewest distinct numbers of a column that tells copies, and most rows for each of them; others are like levels."""
_TIMES_CHANCE = 10
"""Least ratio of the pairs of equal rows to those which chance explains, from which equal rows are copies."""
_LEAST_SHARE = 0.01
"""Share of copies among the rows of a class from which on a warning is due."""


def check_groups(groups: object, n_rows: int) -> np.ndarray:
    """Return the (N,) index of the group of each row, in the order in which the groups first occur.

    Raises
    ------
    ValueError
        If there is not one group for each row, if a row has no group, or if all rows are in one group.
    TypeError
        If a group is not hashable.
    """
    import pandas as pd

    values = labels_to_array(groups, "groups")
    if values.shape != (n_rows,):
        raise ValueError(
            f"groups has shape {tuple(values.shape)}, but X has {n_rows} rows. Pass an array of shape ({n_rows},) with "
            "the group of each row."
        )
    codes, names = factorize(values, "groups")
    if (codes < 0).any():
        raise ValueError(
            f"groups: the group of row {int(np.argmax(codes < 0))} is missing. Give every row a group; a row that "
            "belongs to no other row is a group of its own."
        )
    index = pd.factorize(codes)[0]
    if n_rows > 1 and not index.any():
        raise ValueError(
            f"groups: all {n_rows} rows are in one group, {shown(names[codes[0]])}, but a group counts as one row, and "
            "two groups or more are needed. Pass a group for each set of rows that belong together, or leave groups "
            "out."
        )
    return index


def find_copies(table: Table) -> np.ndarray:
    """Return the (N,) index of the unit of each row: copies of a row are one unit, and all other rows are alone.

    Copies are rows that are equal in every cell, one of which is in the column with the most distinct numbers: its
    numbers must be more than half as many as the distinct rows, a twentieth of the rows or more, and 20 or more.
    Otherwise equal rows are as natural as in tables of levels. Where chance explains more than a tenth of the pairs of
    equal rows, as in a table of one rounded number, there are no copies; nor are there any in sparse tables. Labels are
    not compared, because rows with the same measurements are one case, whatever a join or two raters have made of the
    label.

    The time is that of a sample of rows and of sorting one column, unless numbers occur in it more than once.

    Parameters
    ----------
    table : Table
        Rows, whose cells are valid.

    Notes
    -----
    Of the pairs of rows that differ in another column, the share with one number in the column of the most distinct
    numbers is what chance produces. The same share of the pairs that are equal in all other columns is expected to be
    equal in every cell by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb.encoding.table import to_table
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> find_copies(to_table(np.concatenate([X, X[:4]]), "an example"))[48:]
    array([48, 49,  0,  1,  2,  3])
    """
    import pandas as pd

    unit = np.arange(table.n_rows)
    table = replace(table, numeric=None, time_units=None)
    if (j := _most_distinct_column(table)) is None:
        return unit
    numbers = table.column_numbers(j)
    ordered = np.sort(numbers)
    n_repeated, present = np.count_nonzero(ordered[1:] == ordered[:-1]), np.flatnonzero(numbers == numbers)
    n_values = len(present) - n_repeated
    if not n_repeated or n_values < max(_FEWEST_VALUES, len(present) / _MOST_COPIES):
        return unit
    others = [k for k in range(len(table.names)) if k != j]
    rows, copies = _equal_rows(table, present, [j, *others])
    if 2 * n_values <= len(present) - len(rows) + int(copies.max(initial=-1)) + 1:
        return unit
    equal, equal_numbers = _count_pairs(copies), _count_pairs(pd.factorize(numbers[present])[0])
    equal_others, pairs = _count_pairs(_equal_rows(table, present, others)[1]), len(present) * (len(present) - 1) / 2
    by_chance = equal_others * (equal_numbers - equal + 1) / (pairs - equal_others + 1)
    if not equal or equal < _TIMES_CHANCE * by_chance:
        return unit
    unit[rows] = rows[np.unique(copies, return_index=True)[1]][copies]
    return np.asarray(pd.factorize(unit)[0])


def _most_distinct_column(table: Table) -> int | None:
    """Return the position of the column with the most distinct numbers in a sample of rows; None if these are few.

    Few are half as many as the distinct rows of the sample.
    """
    if table.is_sparse:
        return None
    n_rows, index = min(table.n_rows, _SAMPLE), range(len(table.names))
    drawn = np.random.default_rng(0).choice(table.n_rows, n_rows, replace=False) if n_rows < table.n_rows else None
    sample, best, most = table.part(drawn, index), None, 0
    for j in index:
        if not sample.is_numeric(j, whole=True):
            continue
        if (n_values := len(np.unique(sample.column_numbers(j)))) > most:
            best, most = j, n_values
        if n_values == n_rows:
            break
    if 2 * most > n_rows:
        return best
    rows, copies = _equal_rows(sample, np.arange(n_rows), index)
    return best if 2 * most > n_rows - len(rows) + int(copies.max(initial=-1)) + 1 else None


def _equal_rows(table: Table, rows: np.ndarray, index: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (n,) of those among `rows` that equal another one in the columns `index`, and their sets (n,).

    Sets of equal rows have numbers from 0 on, in the order in which they first occur. Rows are compared by a hash of 64
    bits. Rows without an equal are left out after 1, 2, 4, … columns.
    """
    import pandas as pd

    hashed = np.zeros(len(rows), np.uint64)
    for n_columns, j in enumerate(index, 1):
        part = table.part(rows, [j])
        is_number = part.is_numeric(0, whole=True)
        cells = exact_cells(part, 0) if is_number else factorize(part.column(0), part.label(0))[0]
        hashed = _FACTOR * hashed + pd.util.hash_array(cells)
        if n_columns & (n_columns - 1) and n_columns < len(index):
            continue
        found = pd.factorize(hashed)[0]
        is_repeated = np.bincount(found)[found] > 1
        rows, hashed = rows[is_repeated], hashed[is_repeated]
        if not len(rows):
            break
    return rows, pd.factorize(hashed)[0]


def _count_pairs(sets: np.ndarray) -> float:
    """Return the number of pairs of members of the same set, for the (n,) index of each member's set."""
    sizes = np.bincount(sets).astype(float)
    return float((sizes * (sizes - 1)).sum() / 2)


def describe_copies(unit: np.ndarray, label: np.ndarray) -> str:
    """Return a clause with the number of copies of rows, or "" if less than 1% of the rows of every class are copies.

    `unit` and `label` (N,) are the unit, as `find_copies` returns it, and the class of each row.
    """
    n_rows, n_units = len(unit), int(unit.max(initial=-1)) + 1
    if n_units == n_rows:
        return ""
    is_copy = np.ones(n_rows, bool)
    is_copy[np.unique(unit, return_index=True)[1]] = False
    n_copies = np.bincount(label[is_copy], minlength=int(label.max()) + 1)
    if (n_copies < _LEAST_SHARE * np.maximum(np.bincount(label), 1)).all():
        return ""
    return f"{n_rows - n_units:,} of {n_rows:,} rows are equal to an earlier row in every cell"


def warn_of_copies(unit: np.ndarray, label: np.ndarray) -> None:
    """Issue a `CopiedRowsWarning` if `describe_copies` finds copies among rows with these units and classes (N,)."""
    if copies := describe_copies(unit, label):
        warn(
            f"X has copied rows: {copies}. Copies of a row are kept together in the random halves of the rows by which "
            "weights, structures and densities are chosen, because a copy in the other half would tell the label. If "
            "the number of copies is the weight of a row, pass the row once, with sample_weight. If rows belong "
            "together, such as those of a patient, pass groups. Folds of scikit-learn and leave-one-out scores take "
            "copies for different rows. To silence: warnings.filterwarnings('ignore', "
            "category=bayesnb.CopiedRowsWarning).",
            CopiedRowsWarning,
            key="X has copied rows",
        )
