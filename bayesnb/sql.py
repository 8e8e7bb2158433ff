"""The query that counts where the data lie: its result is all that naive Bayes learns from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NUMBERS = float
_LEVELS = (str, int, bool)


def counts(table: str, target: str, columns: Mapping[str, type] | Sequence[str], *, weight: str | None = None) -> str:
    """SQL of one statement that counts the rows of a table for `bayesnb.from_counts`.

    It groups by the class, and by the class and the level of each column; of numbers it takes count, mean and centred
    sum of squares. Cells that are NULL are missing, and so are not counted; rows whose class is NULL are left out.

    Parameters
    ----------
    table : str
        What stands behind FROM, as it is: a name, ``"read_parquet('rows.parquet')"``, or a query in parentheses.
    target : str
        The column of classes.
    columns : dict {column: type} or list of str
        Features. Of type str, int or bool a column has levels; of type float it has numbers. In a list all are str.
    weight : str, optional
        The column of replication counts, which are not negative; default: every row counts once.

    Returns
    -------
    str
        A query of columns class, feature, type, level, count, mean, m2, in the SQL that SQLite, DuckDB and PostgreSQL
        have in common. A row without a feature has the weight of its class.

    Raises
    ------
    ValueError
        If there are no columns, one is the target or the weight, or a type is none of these.

    Examples
    --------
    >>> from bayesnb import sql
    >>> print(sql.counts("melons", "ripe", ["colour"]))
    SELECT "ripe" AS "class", NULL AS "feature", NULL AS "type", NULL AS "level", SUM(1) AS "count", NULL AS "mean", \
NULL AS "m2" FROM melons AS r WHERE "ripe" IS NOT NULL GROUP BY "ripe"
    UNION ALL SELECT "ripe", 'colour', 'str', CAST("colour" AS VARCHAR), SUM(1), NULL, NULL FROM melons AS r WHERE \
"ripe" IS NOT NULL AND "colour" IS NOT NULL GROUP BY "ripe", "colour"
    """
    kinds = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, str)
    if not kinds:
        raise ValueError("columns is empty: name the features.")
    for name, kind in kinds.items():
        if name in (target, weight):
            raise ValueError(f"columns has {name!r}, which is the {'target' if name == target else 'weight'}.")
        if kind not in (NUMBERS, *_LEVELS):
            raise ValueError(f"columns[{name!r}] is {kind!r}; a column is of type str, int or bool, or float.")
    source = f"{table} AS r"
    w = "1" if weight is None else _name(weight)
    there = f"{_name(target)} IS NOT NULL" + ("" if weight is None else f" AND {w} > 0")
    parts = [_of_classes(source, _name(target), w, there)]
    for name, kind in kinds.items():
        of = _of_numbers if kind is NUMBERS else _of_levels
        parts.append(of(source, _name(target), name, kind.__name__, w, there))
    return "\nUNION ALL ".join(parts)


def _of_classes(source: str, target: str, w: str, there: str) -> str:
    nothing = ", ".join(f'NULL AS "{name}"' for name in ("feature", "type", "level"))
    rest = 'NULL AS "mean", NULL AS "m2"'
    return (
        f'SELECT {target} AS "class", {nothing}, SUM({w}) AS "count", {rest} FROM {source} WHERE {there} '
        f"GROUP BY {target}"
    )


def _of_levels(source: str, target: str, name: str, kind: str, w: str, there: str) -> str:
    cell = _name(name)
    return (
        f"SELECT {target}, {_text(name)}, '{kind}', CAST({cell} AS VARCHAR), SUM({w}), NULL, NULL FROM {source} "
        f"WHERE {there} AND {cell} IS NOT NULL GROUP BY {target}, {cell}"
    )


def _of_numbers(source: str, target: str, name: str, kind: str, w: str, there: str) -> str:
    """About the mean of the class, which a subquery has: sums of squares as they are would cancel."""
    cell, there = _name(name), f"{there} AND {_name(name)} IS NOT NULL"
    mean = f"SUM({w} * {cell}) / SUM({w} * 1.0)"
    means = f'SELECT {target} AS "own", {mean} AS "mean" FROM {source} WHERE {there} GROUP BY {target}'
    square = f'({cell} - m."mean") * ({cell} - m."mean")'
    return (
        f"SELECT {target}, {_text(name)}, '{kind}', NULL, SUM({w}), MAX(m.\"mean\"), SUM({w} * {square}) "
        f'FROM {source} JOIN ({means}) AS m ON {target} = m."own" WHERE {there} GROUP BY {target}'
    )


def _name(column: Any) -> str:
    return '"' + str(column).replace('"', '""') + '"'


def _text(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


__all__ = ["counts"]
