"""The query that counts where the data lie: its result is all that naive Bayes learns from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bayesnb._util.arguments import require_iterable, shown

NUMBERS = float
_LEVELS = (str, int, bool)
_GREATEST = "CAST(1.7976931348623157e308 AS DOUBLE PRECISION)"


def counts(table: str, target: str, columns: Mapping[str, type] | Sequence[str], *, weight: str | None = None) -> str:
    """SQL of one statement that counts the rows of a table for `bayesnb.from_counts`.

    It groups by the class, and by the class and the level of each column; of numbers it takes count, mean and centred
    sum of squares. Cells that are NULL, or NaN among numbers, are missing and so are not counted; rows whose class is
    NULL are left out.

    Parameters
    ----------
    table : str
        What stands behind FROM, as it is: a name, ``"read_parquet('rows.parquet')"``, or a query in parentheses.
    target : str
        The column of classes.
    columns : dict {column: type} or list of str
        Features. Of type str, int or bool a column has levels; of type float it has numbers. In a list all are str,
        so that a NaN among them is the text 'nan'.
    weight : str, optional
        The column of replication counts; default: every row counts once. The count of a class is empty where a weight
        is negative, missing or no number, and `bayesnb.from_counts` refuses the result.

    Returns
    -------
    str
        A query of columns class, feature, type, level, count, mean, m2, in the SQL that SQLite, DuckDB and PostgreSQL
        have in common. A row without a feature has the weight of its class.

    Raises
    ------
    ValueError
        If there are no columns, one is the target or the weight, or a type is none of these.
    TypeError
        If `columns` is one name and no list of names.

    Notes
    -----
    Every column is named with its table, as in ``r."colour"``: SQLite takes a name alone that it does not know,
    ``"color"``, for a text, and would count that text instead of refusing the query.

    Examples
    --------
    >>> from bayesnb import sql
    >>> print(sql.counts("melons", "ripe", ["colour"]))
    SELECT r."ripe" AS "class", NULL AS "feature", NULL AS "type", NULL AS "level", SUM(1) AS "count", NULL AS "mean", \
NULL AS "m2" FROM melons AS r WHERE r."ripe" IS NOT NULL GROUP BY r."ripe"
    UNION ALL SELECT r."ripe", 'colour', 'str', CAST(r."colour" AS VARCHAR), SUM(1), NULL, NULL FROM melons AS r WHERE \
r."ripe" IS NOT NULL AND r."colour" IS NOT NULL GROUP BY r."ripe", r."colour"
    """
    require_iterable("columns", columns, 'a list of names, such as ["colour"], or a dict of names and types')
    types = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, str)
    if not types:
        raise ValueError("columns is empty: name the features.")
    for name, kind in types.items():
        if name in (target, weight):
            raise ValueError(f"columns has {shown(name)}, which is the {'target' if name == target else 'weight'}.")
        if kind not in (NUMBERS, *_LEVELS):
            raise ValueError(
                f"columns[{shown(name)}] is {shown(kind)}; a column is of type str, int or bool, or float."
            )
    label = _column(target)
    source, labelled = f"FROM {table} AS r", f"{label} IS NOT NULL"
    times = "1" if weight is None else _column(weight)
    counted = labelled if weight is None else f"{labelled} AND {times} > 0"
    total = f"SUM({times})" if weight is None else _if_all(f"{times} >= 0 AND {times} <= {_GREATEST}", f"SUM({times})")
    empty = ", ".join(f'NULL AS "{name}"' for name in ("feature", "type", "level"))
    queries = [
        f'SELECT {label} AS "class", {empty}, {total} AS "count", NULL AS "mean", NULL AS "m2" {source} '
        f"WHERE {labelled} GROUP BY {label}"
    ]
    for name, kind in types.items():
        query = _count_numbers if kind is NUMBERS else _count_levels
        queries.append(query(name, kind.__name__, label, times, source, counted))
    return "\nUNION ALL ".join(queries)


def _count_levels(name: str, kind: str, label: str, times: str, source: str, counted: str) -> str:
    """The query of the weight of each level in each class."""
    cell = _column(name)
    text = f"CAST({cell} AS VARCHAR)"
    nan = "" if kind == "str" else f" AND LOWER({text}) <> 'nan'"
    return (
        f"SELECT {label}, {_text(name)}, '{kind}', {text}, SUM({times}), NULL, NULL {source} "
        f"WHERE {counted} AND {cell} IS NOT NULL{nan} GROUP BY {label}, {cell}"
    )


def _count_numbers(name: str, kind: str, label: str, times: str, source: str, counted: str) -> str:
    """The query of weight, mean and sum of squares about the mean; raw sums of squares would cancel.

    SQLite adds up a text as 0. The mean is empty where a cell is greater than all numbers, as texts are in SQLite.
    """
    cell = _column(name)
    number = f"CAST({cell} AS DOUBLE PRECISION)"
    # NaN is the greatest number in DuckDB and PostgreSQL, and so is its negative.
    observed = f"{counted} AND {cell} IS NOT NULL AND NOT ({number} > 0 AND -{number} > 0)"
    mean = _if_all(f"{cell} <= {_GREATEST}", f"SUM({times} * {number}) / SUM({times} * 1.0)")
    means = f'SELECT {label} AS "label", {mean} AS "mean" {source} WHERE {observed} GROUP BY {label}'
    deviation = f'({number} - m."mean")'
    return (
        f"SELECT {label}, {_text(name)}, '{kind}', NULL, SUM({times}), MAX(m.\"mean\"), "
        f'SUM({times} * {deviation} * {deviation}) {source} JOIN ({means}) AS m ON {label} = m."label" '
        f"WHERE {observed} GROUP BY {label}"
    )


def _if_all(condition: str, value: str) -> str:
    """An aggregate that is NULL unless every row of the group meets a condition."""
    return f"CASE WHEN MIN(CASE WHEN {condition} THEN 1 ELSE 0 END) = 1 THEN {value} END"


def _column(name: Any) -> str:
    return 'r."' + str(name).replace('"', '""') + '"'


def _text(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


__all__ = ["counts"]
