"""Names, texts, numbers and sums as SQL that SQLite, DuckDB and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Sequence

from bayesnb._util.arguments import shown

_LONGEST_NAME = 63  # PostgreSQL cuts longer names without an error.


def quote_column(name: object) -> str:
    """Return the name of a column of the table as SQL, r."name", with its quotes doubled."""
    return "r." + quote_name(name)


def quote_name(name: object) -> str:
    """Return a name as SQL, with its quotes doubled; raise ValueError if a database would not keep the name."""
    text = str(name)
    if not text or "\0" in text or len(text.encode()) > _LONGEST_NAME:
        problem = f"it is empty, has a NUL, or more than {_LONGEST_NAME} bytes"
        raise ValueError(f"{shown(text)} cannot be the name of a column in SQL: {problem}. Rename the column or class.")
    return '"' + text.replace('"', '""') + '"'


def quote_text(value: object) -> str:
    """Return a value as a text literal of SQL, with its quotes doubled; raise ValueError if the text has a NUL."""
    text = str(value)
    if "\0" in text:
        raise ValueError(f"{shown(text)} has a NUL, which no text of SQL has. Rename the level or the class.")
    return "'" + text.replace("'", "''") + "'"


def number(value: float) -> str:
    """Return a finite number as SQL, a double from 17 digits; 0.1 alone would be a decimal."""
    return f"CAST('{float(value):.17g}' AS DOUBLE PRECISION)"


GREATEST, LEAST = number(1.7976931348623157e308), number(-1.7976931348623157e308)


def add(terms: Sequence[str], operator: str = "+") -> str:
    """Return the sum of terms, or their conjunction with another operator; brackets nest log2(n) deep.

    Databases limit the depth of expressions: a chain of 1,000 signs is too deep.
    """
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({add(terms[:half], operator)} {operator} {add(terms[half:], operator)})" if terms else "0"


def cell_number(value: str, edges: Sequence[float], first: int = 0) -> str:
    """Return the number of the interval of a value, by bisection; a value on an edge is in the lower interval."""
    if not len(edges):
        return str(first)
    half = len(edges) // 2
    lower, upper = cell_number(value, edges[:half], first), cell_number(value, edges[half + 1 :], first + half + 1)
    return f"CASE WHEN {value} <= {number(edges[half])} THEN {lower} ELSE {upper} END"


def number_and_nan(name: object) -> tuple[str, str]:
    """Return the SQL of a column as a number, and whether the number is NaN.

    DuckDB and PostgreSQL order NaN and -NaN above every number.
    """
    value = f"CAST({quote_column(name)} AS DOUBLE PRECISION)"
    return value, f"{value} > 0 AND -{value} > 0"
