"""Query that counts rows in the database: sufficient statistics of a table, for `bayesnb.from_counts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayesnb._util.arguments import require_iterable, shown
from bayesnb.sql.text import GREATEST, number_and_nan, quote_column, quote_text


def counts(
    table: str, target: str | None, columns: Mapping[str, type] | Sequence[str], *, weight: str | None = None
) -> str:
    """Return one SQL statement that counts the rows of a table for `bayesnb.from_counts` and `bayesnb.check_drift`.

    The statement groups rows by the class, and by the class and the level of each column; a column of numbers gives
    count, mean and centred sum of squares. Cells that are NULL, or NaN among numbers, are missing and are not counted;
    rows whose class is NULL are left out.

    Parameters
    ----------
    table : str
        Text after FROM, which is not quoted: a name, ``"read_parquet('rows.parquet')"``, or a query in parentheses.
    target : str or None
        Name of the column of classes. None: all rows are counted together, whatever their class, and the class is NULL
        in the result, which `bayesnb.check_drift` takes.
    columns : dict {column: type} or list of str
        Features. A column of type str, int or bool has levels; a column of type float has numbers. The columns of a
        list are of type str, so that a NaN is the level 'nan', in PostgreSQL 'NaN'.
    weight : str, optional
        Name of the column of replication counts; default: every row counts once. If a weight is negative, missing or
        not a number, the count of the class is NULL, and `bayesnb.from_counts` refuses the result.

    Returns
    -------
    str
        Query with the columns class, feature, type, level, count, mean, m2, in the SQL that SQLite, DuckDB and
        PostgreSQL share. Rows of the result with NULL for the feature hold the total weight of each class.

    Raises
    ------
    ValueError
        If `columns` is empty, has the target or the weight, or has another type than str, int, bool and float.
    TypeError
        If `columns` is one name and no list of names.

    Notes
    -----
    Every column is qualified by its table, as in ``r."colour"``. SQLite reads an unknown unqualified name such as
    ``"color"`` as a text, and would count that text instead of refusing the query.

    Examples
    --------
    >>> from bayesnb import sql
    >>> print(sql.counts("melons", "ripe", ["colour"]))
    SELECT r."ripe" AS "class", CAST(NULL AS VARCHAR) AS "feature", CAST(NULL AS VARCHAR) AS "type", \
CAST(NULL AS VARCHAR) AS "level", SUM(1) AS "count", CAST(NULL AS DOUBLE PRECISION) AS "mean", \
CAST(NULL AS DOUBLE PRECISION) AS "m2" FROM melons AS r WHERE r."ripe" IS NOT NULL GROUP BY r."ripe"
    UNION ALL SELECT r."ripe", 'colour', 'str', CAST(r."colour" AS VARCHAR), SUM(1), NULL, NULL FROM melons AS r WHERE \
r."ripe" IS NOT NULL AND r."colour" IS NOT NULL GROUP BY r."ripe", r."colour"
    """
    require_iterable("columns", columns, 'a list of names, such as ["colour"], or a dict of names and types')
    types = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, str)
    if not types:
        raise ValueError("columns is empty. Name the features.")
    for name, kind in types.items():
        if name in (target, weight):
            other = "target" if name == target else "weight"
            raise ValueError(f"columns has {shown(name)}, which is the {other}. Leave it out.")
        if kind not in (str, int, bool, float):
            raise ValueError(f"columns[{shown(name)}] is {shown(kind)}; it must be str, int, bool or float.")
    label = "CAST('' AS VARCHAR)" if target is None else quote_column(target)
    source, labelled = f"FROM {table} AS r", f"{label} IS NOT NULL"
    times, counted, total = "1", labelled, "SUM(1)"
    if weight is not None:
        times = quote_column(weight)
        counted = f"{labelled} AND {times} > 0"
        total = _null_unless_all(f"{times} >= 0 AND {times} <= {GREATEST}", f"SUM({times})")
    # PostgreSQL takes the types of the columns of a UNION from its first two queries, and NULL alone for a text.
    text, number = "CAST(NULL AS VARCHAR)", "CAST(NULL AS DOUBLE PRECISION)"
    queries = [
        f'SELECT {label} AS "class", {text} AS "feature", {text} AS "type", {text} AS "level", {total} AS "count", '
        f'{number} AS "mean", {number} AS "m2" {source} WHERE {labelled} GROUP BY {label}'
    ]
    for name, kind in types.items():
        query = _count_numbers if kind is float else _count_levels
        queries.append(query(name, kind.__name__, label, times, source, counted))
    statement = "\nUNION ALL ".join(queries)
    others = '"feature", "type", "level", "count", "mean", "m2"'
    return statement if target is not None else f'SELECT {text} AS "class", {others} FROM ({statement}) AS c'


def _count_levels(name: str, kind: str, label: str, times: str, source: str, counted: str) -> str:
    """Return the query of the weight of each level of the column `name` in each class.

    The other arguments are SQL: label, weight, FROM clause, and condition for a row to count.
    """
    cell = quote_column(name)
    text = f"CAST({cell} AS VARCHAR)"
    nan = "" if kind == "str" else f" AND LOWER({text}) <> 'nan'"
    return (
        f"SELECT {label}, {quote_text(name)}, '{kind}', {text}, SUM({times}), NULL, NULL {source} "
        f"WHERE {counted} AND {cell} IS NOT NULL{nan} GROUP BY {label}, {cell}"
    )


def _count_numbers(name: str, kind: str, label: str, times: str, source: str, counted: str) -> str:
    """Return the query of the weight, the mean and the sum of squares about the mean of a column in each class.

    The difference of raw sums would lose digits. So does a plain sum of many cells far from 0: deviations from the mean
    that follows from this sum correct mean and squares. The mean is NULL if a cell is greater than every number: a text
    is, in SQLite, whose sums would take a text for 0.
    """
    cell = quote_column(name)
    number, is_nan = number_and_nan(name)
    observed = f"{counted} AND {cell} IS NOT NULL AND NOT ({is_nan})"
    mean = _null_unless_all(f"{cell} <= {GREATEST}", f"SUM({times} * {number}) / SUM({times} * 1.0)")
    means = f'SELECT {label} AS "label", {mean} AS "mean" {source} WHERE {observed} GROUP BY {label}'
    deviation = f'({number} - m."mean")'
    shift = f"SUM({times} * {deviation}) / SUM({times} * 1.0)"
    m2 = f"SUM({times} * {deviation} * {deviation}) - SUM({times} * {deviation}) * {shift}"
    return (
        f"SELECT {label}, {quote_text(name)}, '{kind}', NULL, SUM({times}), MAX(m.\"mean\") + {shift}, "
        f"CASE WHEN MIN({number}) < MAX({number}) THEN {m2} ELSE 0 END "
        f'{source} JOIN ({means}) AS m ON {label} = m."label" WHERE {observed} GROUP BY {label}'
    )


def _null_unless_all(condition: str, value: str) -> str:
    """Return the SQL of an aggregate: `value`, or NULL unless every row of the group meets `condition`."""
    return f"CASE WHEN MIN(CASE WHEN {condition} THEN 1 ELSE 0 END) = 1 THEN {value} END"


__all__ = ["counts"]
