"""SQL that counts and scores rows in the database, for SQLite, DuckDB and PostgreSQL alike."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, ClassVar, Literal

import numpy as np

from bayesnb import kernels
from bayesnb._util import arguments
from bayesnb._util.arguments import bad_argument, require_choice, require_iterable, shown
from bayesnb._util.precision import float64
from bayesnb.encoding import BinaryColumns, CellColumns, Columns, LevelColumns
from bayesnb.encoding.levels import is_missing, to_python
from bayesnb.families.protocol import Likelihood
from bayesnb.families.rows import OneHot, weighted
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import Estimate, JointLikelihood, TermWeights

# == Names, texts, numbers and sums as SQL that SQLite, DuckDB and PostgreSQL share ================

_LONGEST_NAME = 63  # PostgreSQL cuts longer names without an error.
# Comments nest in DuckDB and PostgreSQL, which read the collation "C", and do not in SQLite, which reads BINARY.
_BY_CODE_POINTS = 'COLLATE /* /* */ BINARY --*/ "C"\n'


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


def to_text(value: str) -> str:
    """Return the SQL of a value as a text, which compares by code points whatever the collation of its column."""
    return f"CAST({value} AS VARCHAR) {_BY_CODE_POINTS}"


_GREATEST_REAL = float(np.finfo(float).max)
GREATEST, LEAST = number(_GREATEST_REAL), number(-_GREATEST_REAL)
_NANS = ("'nan'", "'-nan'")
"""Texts of NaN in lower case."""


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


# == Query that counts rows in the database: sufficient statistics of a table, for `bayesnb.from_counts`


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
    Texts are grouped by code points, whatever the collation of their column: 'a' and 'A' are two levels, and two
    classes, in a column with COLLATE NOCASE, too. A cast takes the blanks at the end of a CHAR(n) of PostgreSQL away:
    the level of ``'a   '`` is 'a'.

    Every column is qualified by its table, as in ``r."colour"``. SQLite reads an unknown unqualified name such as
    ``"color"`` as a text, and would count that text instead of refusing the query.

    Examples
    --------
    >>> import sqlite3
    >>> from bayesnb import sql
    >>> database = sqlite3.connect(":memory:")
    >>> query = "CREATE TABLE melons AS SELECT 'yes' AS ripe, 'dark' AS colour UNION ALL SELECT 'no', 'light'"
    >>> _ = database.execute(query)
    >>> for row in database.execute(sql.counts("melons", "ripe", ["colour"])):
    ...     print(row)
    ('no', None, None, None, 1, None, None)
    ('yes', None, None, None, 1, None, None)
    ('no', 'colour', 'str', 'light', 1, None, None)
    ('yes', 'colour', 'str', 'dark', 1, None, None)
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
    by_label = f"GROUP BY {label}, {to_text(label)}"  # Labels may be equal by the collation of their column.
    times, counted, total = "1", labelled, "SUM(1)"
    if weight is not None:
        times = quote_column(weight)
        counted = f"{labelled} AND {times} > 0"
        total = _null_unless_all(f"{times} >= 0 AND {times} <= {GREATEST}", f"SUM({times})")
    # PostgreSQL takes the types of the columns of a UNION from its first two queries, and NULL alone for a text.
    text, double = "CAST(NULL AS VARCHAR)", "CAST(NULL AS DOUBLE PRECISION)"
    queries = [
        f'SELECT {label} AS "class", {text} AS "feature", {text} AS "type", {text} AS "level", {total} AS "count", '
        f'{double} AS "mean", {double} AS "m2" {source} WHERE {labelled} {by_label}'
    ]
    for name, kind in types.items():
        query = _query_of_numbers if kind is float else _query_of_levels
        queries.append(query(name, kind.__name__, label, times, source, counted, by_label))
    statement = "\nUNION ALL ".join(queries)
    others = '"feature", "type", "level", "count", "mean", "m2"'
    return statement if target is not None else f'SELECT {text} AS "class", {others} FROM ({statement}) AS c'


def _query_of_levels(name: str, kind: str, label: str, times: str, source: str, counted: str, by_label: str) -> str:
    """Return the query of the weight of each level of the column `name` in each class.

    The other arguments are SQL: label, weight, FROM clause, condition for a row to count, and GROUP BY clause.
    """
    cell = quote_column(name)
    text = f"CAST({cell} AS VARCHAR)"
    nan = "" if kind == "str" else f" AND LOWER({text}) NOT IN ({', '.join(_NANS)})"
    if kind == "str":
        text = cell = to_text(cell)
    elif kind == "int":  # SQLite casts a real to 15 digits, and writes 1.0e+15.
        text = f"CASE WHEN {text} LIKE '%e+15' THEN CAST(CAST({cell} AS BIGINT) AS VARCHAR) ELSE {text} END"
    return (
        f"SELECT {label}, {quote_text(name)}, '{kind}', {text}, SUM({times}), NULL, NULL {source} "
        f"WHERE {counted} AND {cell} IS NOT NULL{nan} {by_label}, {cell}"
    )


def _query_of_numbers(name: str, kind: str, label: str, times: str, source: str, counted: str, by_label: str) -> str:
    """Return the query of the weight, the mean and the sum of squares about the mean of a column in each class.

    The difference of raw sums would lose digits. So does a plain sum of many cells far from 0: deviations from the mean
    that follows from this sum correct mean and squares. The mean is NULL if a cell is greater than every number: a text
    is, in SQLite, whose sums would take a text for 0.
    """
    cell = quote_column(name)
    value, is_nan = number_and_nan(name)
    observed = f"{counted} AND {cell} IS NOT NULL AND NOT ({is_nan})"
    mean = _null_unless_all(f"{cell} <= {GREATEST}", f"SUM({times} * {value}) / SUM({times} * 1.0)")
    means = f'SELECT {label} AS "label", {mean} AS "mean" {source} WHERE {observed} GROUP BY {label}'
    deviation = f'({value} - m."mean")'
    shift = f"SUM({times} * {deviation}) / SUM({times} * 1.0)"
    m2 = f"SUM({times} * {deviation} * {deviation}) - SUM({times} * {deviation}) * {shift}"
    return (
        f"SELECT {label}, {quote_text(name)}, '{kind}', NULL, SUM({times}), MAX(m.\"mean\") + {shift}, "
        f"CASE WHEN MIN({value}) < MAX({value}) THEN {m2} ELSE 0 END "
        f'{source} JOIN ({means}) AS m ON {label} = m."label" WHERE {observed} {by_label}'
    )


def _null_unless_all(condition: str, value: str) -> str:
    """Return the SQL of an aggregate: `value`, or NULL unless every row of the group meets `condition`."""
    return f"CASE WHEN MIN(CASE WHEN {condition} THEN 1 ELSE 0 END) = 1 THEN {value} END"


# == Terms of a fitted classifier as tables of levels and as densities, for SQL: log p(c, row) is the sum of these

UNIT = 2.0**-64
"""Scores are in units of 1 / UNIT nats, so that thousands of terms as large as float64 has do not overflow in sum."""
IMPOSSIBLE, CERTAIN = -1e304, 1e299
"""Scores, in these units, in place of -inf and +inf, which SQL has no literal for."""
_MOST_NUMBERS = 2**18
_PREDICTIVE = "Use estimate='predictive'"


@dataclass(frozen=True)
class NumberCell:
    """Interval between `edges` in which a number lies."""

    feature: int
    edges: tuple[float, ...]
    condition: str = ""
    """SQL of what a finite number `{x}` must also meet."""
    has_reserved: ClassVar[bool] = False

    @property
    def size(self) -> int:
        """Number of intervals."""
        return len(self.edges) + 1

    def source(self) -> str:
        """Return the SQL of what keys are compared with, the number of the interval; NULL for a missing cell."""
        return f"CASE WHEN p.x{self.feature} IS NOT NULL THEN {cell_number(f'p.x{self.feature}', self.edges)} END"

    def keys(self, where: object) -> Iterator[tuple[str, int]]:
        """Yield the number of each interval, as SQL and as code; `where` is not used."""
        yield from ((str(code), code) for code in range(self.size))


@dataclass(frozen=True)
class LevelCell:
    """Text of a level of a feature."""

    feature: int
    known: tuple[Hashable, ...]
    """Levels but the reserved one."""
    marks: tuple[Hashable, ...]
    """Values that mark a missing cell."""
    has_reserved: bool
    """Whether a last level stands for all unknown texts."""

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.known) + self.has_reserved

    def source(self) -> str:
        """Return the SQL of what keys are compared with, the text of the cell; NULL for a missing cell."""
        return f"p.s{self.feature}"

    def read(self, name: object) -> tuple[str, str]:
        """Return the SQL of the text of a level in the column `name`, NULL if missing, and of whether it is infinite.

        The second is "" if some levels are texts, as "inf" may be one.
        """
        column, texts = quote_column(name), [level for level in self.known if isinstance(level, str)]
        text, is_infinite = to_text(column), ""
        marks = [quote_text(text) for mark in self.marks for text in _texts(mark, name)]
        if not texts:
            is_infinite = f"LOWER({text}) IN ('inf', '-inf', 'infinity', '-infinity')"
            # The level 1 is the text '1.0' in columns of reals, and '1.00' in some of decimals.
            digits = "'0123456789'"
            is_decimal = f"{text} LIKE '%_._%' AND RTRIM(LTRIM(LTRIM({text}, '-'), {digits}), {digits}) = '.'"
            real = f"CAST(CAST({text} AS DOUBLE PRECISION) AS VARCHAR)"
            text, marks = f"CASE WHEN {is_decimal} THEN {real} ELSE {text} END", [*marks, *_NANS, "'NaN'"]
        elif width := max((len(level) for level in texts if level.endswith(" ")), default=0):
            # The cast takes the blanks at the end of a CHAR(n) of PostgreSQL away.
            is_cut = f"{column} {_BY_CODE_POINTS} LIKE '% ' AND {text} NOT LIKE '% '"
            text = f"CASE WHEN {is_cut} THEN SUBSTR({text} || '{' ' * width}', 1, {width}) ELSE {text} END"
        return f"CASE WHEN {text} NOT IN ({', '.join(marks)}) THEN {text} END" if marks else text, is_infinite

    def keys(self, where: object) -> Iterator[tuple[str, int]]:
        """Yield SQL literals to compare with `source`, each with the code of its level; `where` names the column."""
        texts = [_texts(level, where) for level in self.known]
        first: dict[str, Hashable] = {}
        for level, (text, *_) in zip(self.known, texts, strict=True):
            if text in first:
                both = f"The levels {shown(first[text])} and {shown(level)} of column {shown(where)}"
                raise ValueError(f"{both} are the same text in SQL. Make all levels texts, or all numbers.")
            first[text] = level
        codes = {text: code for code, (_, *others) in reversed(list(enumerate(texts))) for text in others}
        codes |= {text: code for code, (text, *_) in enumerate(texts)}
        yield from ((quote_text(text), code) for text, code in codes.items())


Cell = NumberCell | LevelCell


@singledispatch
def read_cells(columns: Columns) -> list[Cell]:
    """Return the cell of each feature of a block without parents; default: none, as the terms of numbers are densities.

    A kind of columns whose terms are tables registers a function.
    """
    return []


@read_cells.register(BinaryColumns)
def _(columns: BinaryColumns) -> list[Cell]:
    edge, condition = (0.5, " AND {x} IN (0, 1)") if columns.threshold is None else (columns.threshold, "")
    return [NumberCell(int(j), (float(edge),), condition) for j in columns.index]


@read_cells.register(CellColumns)
def _(columns: CellColumns) -> list[Cell]:
    edges = ([] if of_feature is None else of_feature.tolist() for of_feature in columns.edges)
    return [NumberCell(int(j), tuple(of_feature)) for j, of_feature in zip(columns.index, edges, strict=True)]


@read_cells.register(LevelColumns)
def _(columns: LevelColumns) -> list[Cell]:
    if columns.unknown == "error":
        raise NotImplementedError("sql.score cannot raise errors. Fit with handle_unknown='ignore' or 'level'.")
    marks = tuple(mark for mark in columns.missing_values if not is_missing(mark))
    cuts, has_reserved = columns.cuts or [None] * len(columns.index), columns.unknown == "level"
    features = zip(map(int, columns.index), columns.levels, cuts, strict=True)
    return [
        LevelCell(j, levels.values, marks, has_reserved) if edges is None else NumberCell(j, tuple(edges.tolist()))
        for j, levels, edges in features
    ]


@dataclass(frozen=True, eq=False)
class Arc:
    """Terms of a feature given its parents: a row (C,) for each combination of the parents' values and the child's."""

    cells: tuple[Cell, ...]
    """Parents, outermost first, then the child."""
    sizes: tuple[int, ...]
    terms: np.ndarray
    weight: float
    missing_is_value: bool
    """Whether a missing parent is its last value; else missing cells are summed out."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Log p(c, row) of a classifier as a sum: log P(c), one row of each table, and densities of numbers."""

    log_class: np.ndarray
    tables: dict[Cell, np.ndarray] = field(default_factory=dict)
    """Sum (size, C) of all terms that depend on this cell alone."""
    arcs: list[Arc] = field(default_factory=list)
    densities: list[tuple[int, list[str]]] = field(default_factory=list)
    """Feature, and the SQL of its term in each class, a function of `p.x<feature>`."""
    levels: dict[int, LevelCell] = field(default_factory=dict)
    """Cell of each feature that has levels, in or outside of the model."""
    numbers: dict[int, str] = field(default_factory=dict)
    """Each feature that is a number, in or outside of the model, with the SQL of what a finite `{x}` must also meet."""
    exposures: set[int] = field(default_factory=set)
    """Columns of exposures, which are among `numbers` and must not be missing."""

    def add_table(self, cell: Cell, terms: np.ndarray) -> None:
        """Add terms (size, C) of a cell to its table."""
        self.tables[cell] = self.tables.get(cell, 0.0) + terms


@float64
def _read(fitted: Fitted, estimate: Estimate | None) -> tuple[TermWeights | None, np.ndarray, tuple[Likelihood, ...]]:
    """Return the weights of the posterior or None, log P(c) (C,), and the blocks' likelihoods without weights."""
    model, reading = fitted.read(estimate)
    likelihoods = scoring.read(fitted.encoding, replace(model, weights=None), reading).likelihoods
    return model.weights, scoring.log_class(model, reading), likelihoods


def read_terms(fitted: Fitted, estimate: Estimate | None) -> Terms:
    """Return the terms of a fitted classifier under an estimate of its parameters.

    Raises
    ------
    NotImplementedError
        If a block is no sum of tables and of densities that SQL can write.
    ValueError
        If an estimate does not exist, or there are more than 2^18 numbers.
    """
    weights, log_class, likelihoods = _read(fitted, estimate)
    terms = Terms(_in_units(log_class))
    blocks = fitted.encoding.blocks
    for b, (columns, likelihood) in enumerate(zip(blocks, likelihoods, strict=True)):
        if columns.one_simplex or len(columns.term_names) != len(columns.index):
            term = f"{shown(columns.term_names[0])} is a single term of several columns"
            raise NotImplementedError(f"sql.score cannot write {fitted.name}: {term}. Use predict_proba.")
        weight = np.broadcast_to(1.0 if weights is None else weights.blocks[b], len(columns.index))
        if cells := read_cells(columns.base):
            _add_tables(terms, columns, cells, likelihood, weight)
        else:
            _add_densities(terms, columns, likelihood, weight)
    sizes = [cell.size for cell in terms.tables] + [math.prod(arc.sizes) for arc in terms.arcs]
    if (n_numbers := len(log_class) * sum(sizes)) > _MOST_NUMBERS:
        most = f"the limit is {_MOST_NUMBERS:,}. Use predict_proba for so many levels and classes"
        raise ValueError(f"The query would have {n_numbers:,} numbers; {most}.")
    return terms


def _in_units(terms: np.ndarray) -> np.ndarray:
    """Return terms in nats as scores in units of 1 / UNIT nats, with `IMPOSSIBLE` and `CERTAIN` in place of ±inf."""
    return np.asarray(np.clip(UNIT * terms, IMPOSSIBLE, CERTAIN))


def _add_tables(terms: Terms, columns: Columns, cells: list[Cell], likelihood: Likelihood, weight: np.ndarray) -> None:
    """Add the tables of a block of levels, of cells of numbers, or of features with parents; `weight` (F,).

    `cells` are those of all features of the block, and features outside of its terms are read, too.
    """
    terms.levels.update((cell.feature, cell) for cell in cells if isinstance(cell, LevelCell))
    terms.numbers.update((cell.feature, cell.condition) for cell in cells if isinstance(cell, NumberCell))
    sizes = columns.sizes()
    code = np.arange(sizes.max(initial=1))[:, None]
    probe = OneHot(np.where(code < sizes, code, -1), columns.start(), sizes, len(code) + 1)
    reading = JointLikelihood(terms.log_class, (likelihood,))
    values = float64(lambda: kernels.terms(reading, (probe,)))()
    parents, sums = {p for _, *given in columns.nodes for p in given}, columns.sums_missing
    for f, (child, *given) in enumerate(columns.nodes):
        if not sizes[f] or (weight[f] == 0 and not sums):
            continue
        table, where = values[: sizes[f], :, f], f"column {shown(columns.names[f])}"
        if np.isnan(table).any():
            raise ValueError(f"{where}: a class has no rows for this estimate of a probability. {_PREDICTIVE}.")
        if given or (sums and child in parents):
            of_arc = tuple(cells[j] for j in (*given, child))
            for cell in of_arc:
                terms.add_table(cell, np.zeros((cell.size, len(terms.log_class))))
            arc_sizes = columns.network.shape((child, *given))
            if weight[f] < 0 and np.isinf(table).any():
                raise NotImplementedError(f"sql.score cannot weigh zero probabilities of {where}. {_PREDICTIVE}.")
            terms.arcs.append(Arc(of_arc, arc_sizes, _in_units(table), float(weight[f]), not sums))
        else:
            terms.add_table(cells[child], _in_units(np.asarray(weighted(weight[f], table))))


def _add_densities(terms: Terms, columns: Columns, likelihood: Any, weight: np.ndarray) -> None:
    """Add the densities of a block of numbers, and the numbers that are read for them; `weight` (F,)."""
    terms.numbers.update(dict.fromkeys(map(int, columns.index), " AND {x} >= 0" * columns.family.nonnegative))
    least, greatest = number(1 / arguments.GREATEST), number(arguments.GREATEST)
    terms.numbers.update(dict.fromkeys(columns.auxiliary, f" AND {{x}} >= {least} AND {{x}} <= {greatest}"))
    terms.exposures.update(columns.auxiliary)
    if not hasattr(likelihood, "sql"):
        kind = f"the distribution of {columns.kind} columns under this estimate"
        other = "estimate='mean', or " * hasattr(columns.family.likelihood, "sql")
        raise NotImplementedError(f"sql.score cannot write {kind}. Use {other}predict_proba.")
    parameters = {name: np.asarray(value) for name, value in likelihood.parameters().items()}
    times_exposure = "".join(f" * p.x{j}" for j in columns.auxiliary)
    for f, (j, name) in enumerate(zip(columns.index, columns.names, strict=True)):
        of_class = []
        for c in range(len(terms.log_class)):
            values = {key: float(value[c, f]) for key, value in parameters.items()}
            last = list(values.values())[-1]
            if not np.isfinite(list(values.values())).all() or (last == 0 and weight[f] < 0):
                raise ValueError(f"column {shown(name)}: a class has no such estimate of a density. {_PREDICTIVE}.")
            names = {key: number(value) for key, value in values.items()}
            limits = sorted((IMPOSSIBLE, CERTAIN), reverse=bool(weight[f] < 0))
            names.update(zip(("unit", "impossible", "certain"), map(number, (weight[f] * UNIT, *limits)), strict=True))
            of_class.append(likelihood.sql[last == 0].format(x=f"p.x{j}", times_exposure=times_exposure, **names))
        if weight[f]:
            terms.densities.append((int(j), of_class))


def _texts(level: Hashable, where: object) -> tuple[str, ...]:
    """Return the texts that databases cast a level to, from columns of any type; the first is the level's own."""
    value = to_python(level)
    if isinstance(value, bool):
        return ("true", "1", "1.0") if value else ("false", "0", "0.0", "-0.0", "-0")
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, int | float):
        level = f"the level {shown(value)} of column {shown(where)}, a {type(value).__name__}"
        raise NotImplementedError(f"sql.score cannot compare {level}. Fit with the text of such cells.")
    texts = [str(value).removesuffix(".0")]
    if abs(value) <= _GREATEST_REAL and (real := float(value)) == value:
        with np.errstate(over="ignore"):
            single = np.float32(real)
        # SQLite has 15 digits, rounded roughly, and PostgreSQL more than Python if these are between two numbers.
        nearby = (real, *np.nextafter(real, [-np.inf, np.inf]))
        written = [*(f"{close:.15g}" for close in nearby), *["0", "-0"] * (real == 0)]
        for rounded in (np.float64(real), single)[: 1 + (float(single) == real)]:
            if 1e-5 < abs(real) < 1e17:
                written.append(np.format_float_positional(rounded, trim="-"))
            if not 1e-3 < abs(real) < 1e6:
                written.append(np.format_float_scientific(rounded, trim="-"))
                written += [np.format_float_scientific(real, n, unique=False, trim="-") for n in (15, 16)]
        texts += written + [re.sub(r"^(-?\d+)(e|$)", r"\1.0\2", text) for text in written]  # SQLite writes 1.0e+15.
    return tuple(dict.fromkeys(texts))


# == Query that scores rows in the database: the class probabilities of a fitted classifier as one SELECT

_MOST_COLUMNS = 1500  # PostgreSQL has at most 1,664 columns in a SELECT.
_FEW_CLASSES = 8
_TABLES_AT_ONCE = 60  # SQLite joins at most 64 tables.
_LOWEST, _HIGHEST = number(-_GREATEST_REAL * UNIT), number(_GREATEST_REAL * UNIT)
"""Bounds of the scores that are finite in nats."""
_NATS = number(1 / UNIT)
Output = Literal["proba", "joint", "label"]


def score(
    nb: Classifier,
    table: str,
    columns: Mapping[Hashable, str] | Sequence[str] | None = None,
    keep: Sequence[str] = (),
    estimate: Estimate | None = None,
    output: Output = "proba",
) -> str:
    r"""Return one SELECT by which a database computes the class probabilities of the rows of a table.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with an exact posterior, such as `CategoricalNB`, `GaussianNB`, `MixedNB`, `KDB`, `TAN`, or a
        `WeightedNB` of these.
    table : str
        Text after FROM, which is not quoted: a name, ``"read_parquet('rows.parquet')"``, or a query in parentheses.
    columns : list of str, or dict {feature: str}, optional
        Names of the table's columns, of all features in the order of `fit`, or of those features whose column has
        another name than in `fit`. Default: the names of `fit`.
    keep : list of str, optional
        Columns of the table that the result has, too, before those of the classes, such as a key: the order of the
        rows is not that of the table.
    estimate : {"predictive", "mean", "map", "mle"}, optional
        Estimate of the parameters, see `predict_proba`. Default: `nb.estimate`.
    output : {"proba", "joint", "label"}
        "proba": a column P(class | row) for each class, named by the class, in the order of `nb.classes_`; "joint":
        columns log p(class, row), as `predict_joint_log_proba`; "label": one column, ``label``, as `predict`.

    Returns
    -------
    str
        Query in the SQL that SQLite (3.35 or later), DuckDB and PostgreSQL (12 or later) share. SQLAlchemy's `text()`
        takes ``:name`` for a parameter: write a colon within a name as ``\:`` there.

    Raises
    ------
    NotImplementedError
        If SQL cannot write the score as a sum: of averages of models, mixtures, counts of words, predictive
        distributions of counts (use ``estimate="mean"``), or under ``handle_unknown="error"``.
    TypeError
        If `keep` is one name and no list of names.
    ValueError
        If a column is not known; if a name is empty, has a NUL, or more than 63 bytes, which PostgreSQL would cut; if
        two levels of a column are the same text; if an estimate does not exist, such as the MLE of a class without
        rows; or if the query would have more than 2^18 numbers or 1,500 columns.

    Notes
    -----
    Rows score as in `predict_proba`: NULL, NaN, and levels that the model does not know are missing cells. The result
    is NULL for rows whose probabilities are undefined, and for rows that `predict_proba` refuses: with an infinite
    number, also in a column that is not in the model, such as one that `KDB` leaves out of its network; with a negative
    number for a family that has none; or in SQLite with a text in place of a number. Where `predict_joint_log_proba` is
    infinite, "joint" is ±1.797e308. Probabilities agree with `predict_proba` to 1e-9.

    Levels are compared as texts by code points, whatever the collation of their column, after a cast, so that the
    number 1 matches the text '1' and the decimal 1.00. SQLite casts a number to 15 digits, and cannot distinguish
    levels that share these. In a query as `table`, cast a BOOLEAN that is a number to the model, as for `BernoulliNB`,
    to INTEGER. Labels are numbers or Booleans in the result if all are, and texts otherwise.

    Examples
    --------
    >>> import sqlite3
    >>> from bayesnb import CategoricalNB, sql
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"], ["rain"]], ["out", "out", "out", "in"])
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE days AS SELECT 1 AS day, 'rain' AS sky UNION ALL SELECT 2, NULL")
    >>> rows = database.execute(sql.score(nb, "days", columns=["sky"], keep=["day"])).fetchall()
    >>> [(day, round(p, 3), round(q, 3)) for day, p, q in rows]  # in, out
    [(1, 0.455, 0.545), (2, 0.333, 0.667)]
    """
    require_choice("output", output, ("proba", "joint", "label"))
    fitted = require_posterior(nb, "sql.score")
    features = _column_names(nb, fitted, columns)
    require_iterable("keep", keep, 'a list of names, such as ["id"]')
    terms = read_terms(fitted, estimate)
    classes = [to_python(label) for label in fitted.encoding.classes.values]
    names = [*keep, *(["label"] if output == "label" else map(str, classes))]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        problem = f"two columns {shown(twice[0])}, among `keep` and the classes"
        raise ValueError(f"The result would have {problem}. Rename the one to keep, by a query as `table`.")
    query = _Query(terms, len(keep), _choose_prefix(table))
    query.write_scores(table, features, keep)
    n_classes = range(len(classes))
    certain = add([f"CASE WHEN p.s{c} > {_HIGHEST} THEN 1 ELSE 0 END" for c in n_classes])
    undefined = f"CASE WHEN p.top < {_LOWEST} OR {certain} > 1 THEN 1 ELSE 0 END AS undefined"
    odds = [f"{_exp(f'p.s{c} - p.top')} AS e{c}" for c in n_classes]
    query.select("odds", ["p.*", undefined, *odds])
    query.select("totals", ["p.*", f"{add([f'p.e{c}' for c in n_classes])} AS total"])
    if output == "proba":
        results = [f"CASE WHEN p.refused + p.undefined = 0 THEN p.e{c} / p.total END" for c in n_classes]
    elif output == "joint":
        bounds = f"{{0}} < {_LOWEST} THEN -{GREATEST} WHEN {{0}} > {_HIGHEST} THEN {GREATEST} ELSE {{0}} * {_NATS} END"
        results = [f"CASE WHEN p.refused > 0 THEN NULL WHEN {bounds.format(f'p.s{c}')}" for c in n_classes]
    else:
        are_numbers = all(isinstance(label, bool | int | float) for label in classes)
        labels = [str(label) if are_numbers else quote_text(label) for label in classes]
        choices = " ".join(f"WHEN p.s{c} = p.top THEN {labels[c]}" for c in n_classes)
        first = labels[int(np.argmax(fitted.class_log_prior))]
        results = [f"CASE WHEN p.refused > 0 THEN NULL WHEN p.undefined > 0 THEN {first} {choices} END"]
    results = [*query.kept, *results]
    return query.finish([f"{value} AS {quote_name(name)}" for value, name in zip(results, names, strict=True)])


def _choose_prefix(table: str) -> str:
    """Return the beginning of the names of the query's parts, which must not hide a table that the query reads."""
    prefix = "bayesnb_"
    while prefix in table.lower():
        prefix += "x_"
    return prefix


def _exp(score: str) -> str:
    """Return the SQL of exp of a difference of scores; PostgreSQL raises an error for exp of less than -745."""
    return f"CASE WHEN {score} < {number(-700 * UNIT)} THEN 0 ELSE EXP(({score}) * {_NATS}) END"


def _column_names(nb: Classifier, fitted: Fitted, columns: object) -> list[str]:
    """Return the name of the table's column for each feature; raise ValueError for other names than the features'."""
    features = fitted.encoding.feature_names
    named = dict(columns) if isinstance(columns, Mapping) else {}
    if not isinstance(columns, Mapping | None):
        if isinstance(columns, str) or not isinstance(columns, Collection) or len(columns) != len(features):
            raise bad_argument("columns", columns, f"the names of all {len(features)} features, in the order of fit")
        named = dict(zip(features, columns, strict=True))
    elif not named and not hasattr(nb, "feature_names_in_"):
        names = f"those of the {len(features)} features"
        raise ValueError(f"The model was fitted without names. Pass {names} as `columns`.")
    if unknown := [name for name in named if name not in features]:
        raise ValueError(f"columns has {shown(unknown[0])}, which is no feature. Features are {shown(features[:12])}.")
    if times := [name for name in getattr(nb, "time_units_", {}) if name not in named]:
        numbers = f"which count as days or seconds. Name a column of these: columns={{{shown(times[0])}: ...}}"
        raise ValueError(f"Column {shown(times[0])} holds dates or times, {numbers}.")
    return [str(named.get(name, name)) for name in features]


@dataclass(frozen=True)
class _Join:
    """Table to join: name, SQL of the key, columns to select, and the SQL of its terms in each class."""

    table: str
    key: str
    columns: Sequence[str] = ()
    terms: Sequence[str] = ()


@dataclass(eq=False)
class _Query:
    """Query as parts of a WITH clause, of which each reads the one before under the alias p."""

    terms: Terms
    n_kept: int
    prefix: str
    tables: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    last: str = ""

    def finish(self, columns: Sequence[str]) -> str:
        """Return the whole query, whose result has these columns."""
        parts = ",\n".join([*self.tables, *self.parts])
        return f"WITH {parts}\nSELECT {', '.join(columns)}\nFROM {self.last} AS p"

    def write_scores(self, table: str, features: Sequence[str], keep: Sequence[str]) -> None:
        """Append the parts for log p(c, row), s<class>, and the greatest of these, top; `keep` become keep<i>."""
        n_classes = len(self.terms.log_class)
        n_columns = len(keep) + 2 * len(features) + len(self.terms.tables) + 3 * n_classes
        if n_columns > _MOST_COLUMNS:
            most = f"the limit is {_MOST_COLUMNS:,}. Use predict_proba for so many columns and classes"
            raise ValueError(f"The query would have {n_columns:,} columns; {most}.")
        self._read_cells(table, features, keep)
        self._look_up(features)
        for g, arc in enumerate(self.terms.arcs):
            self._add_table(f"{self.prefix}a{g}", [(str(i), i) for i in range(len(arc.terms))], arc.terms)
        if any(not arc.missing_is_value for arc in self.terms.arcs):
            self._sum_over_missing(self.terms.arcs)
        elif self.terms.arcs:
            self._add_arcs()
        scores = [f"p.s{c}" for c in range(n_classes)]
        # Without the hint SQLite and PostgreSQL compute a score wherever it is used: 12 times the time.
        self.select("joint", [*self._row, *scores], hint="MATERIALIZED ")
        top, step = scores, 0
        while len(top) > 1:  # SQL has no common name for the greatest of several numbers.
            pairs = list(zip(top[::2], top[1::2], strict=False))
            greater = [f"CASE WHEN {a} >= {b} THEN {a} ELSE {b} END AS m{step}_{i}" for i, (a, b) in enumerate(pairs)]
            self.select(f"greater{step}", ["p.*", *greater], hint="MATERIALIZED " * (n_classes > _FEW_CLASSES))
            top, step = [f"p.m{step}_{i}" for i in range(len(pairs))] + top[2 * len(pairs) :], step + 1
        self.select("scores", [*self._row, *scores, f"{top[0]} AS top"])

    def select(self, name: str, columns: Sequence[str], more: str = "", source: str = "", hint: str = "") -> None:
        """Append a part: a SELECT of `columns` from the part before, or from `source`, with clauses in `more`."""
        source = source or f"{self.last} AS p"
        self.last = self.prefix + name
        self.parts.append(f"{self.last} AS {hint}(SELECT {', '.join(columns)}\nFROM {source}{more})")

    @property
    def kept(self) -> list[str]:
        """Kept columns of the part before."""
        return [f"p.keep{i}" for i in range(self.n_kept)]

    @property
    def _row(self) -> list[str]:
        """Columns of the part before that all parts have."""
        return [*self.kept, "p.refused"]

    @property
    def _codes(self) -> dict[Cell, str]:
        """SQL of the code of each cell that is in an arc, NULL for a missing one."""
        in_arcs = {cell for arc in self.terms.arcs for cell in arc.cells}
        return {cell: f"p.k{t}" for t, cell in enumerate(self.terms.tables) if cell in in_arcs}

    def _read_cells(self, table: str, features: Sequence[str], keep: Sequence[str]) -> None:
        """Append the part that reads the table: kept columns, texts s<feature> and numbers x<feature> of its cells.

        Missing cells are NULL; `refused` counts the cells for which `predict_proba` raises an error: infinite numbers,
        texts in place of numbers, negative numbers if the family has none.
        """
        columns, refused = [f"{quote_column(name)} AS keep{i}" for i, name in enumerate(keep)], []
        used = {cell.feature for cell in self.terms.tables}
        for j, cell in sorted(self.terms.levels.items()):
            text, is_infinite = cell.read(features[j])
            columns += [f"{text} AS s{j}"] * (j in used)
            refused += [f"CASE WHEN {is_infinite} THEN 1 ELSE 0 END"] * bool(is_infinite)
        for j, condition in sorted(self.terms.numbers.items()):
            name, (value, is_nan) = quote_column(features[j]), number_and_nan(features[j])
            # SQLite compares the text '-1.5' as a number with a CAST, and as a text with the negative of one.
            is_right = f"{name} <= {GREATEST} AND {name} >= {LEAST}{condition.format(x=value)}"
            columns.append(f"CASE WHEN {is_right} THEN {value} END AS x{j}")
            may_lack = "" if j in self.terms.exposures else f"{name} IS NULL OR ({is_nan}) OR "
            refused.append(f"CASE WHEN {may_lack}({is_right}) THEN 0 ELSE 1 END")
        self.select("cells", [*columns, f"{add(refused)} AS refused"], source=f"{table} AS r")

    def _look_up(self, features: Sequence[str]) -> None:
        """Append the parts that find the codes k<table> of cells in arcs, and the sums s<class> of all other terms."""
        joins, codes = [], self._codes
        for t, (cell, values) in enumerate(self.terms.tables.items()):
            name = f"{self.prefix}t{t}"
            self._add_table(name, list(cell.keys(features[cell.feature])), values)
            columns = [_otherwise(cell, f"{name}.code", str(cell.size - 1), "NULL") + f" AS k{t}"] * (cell in codes)
            terms = [_otherwise(cell, f"{name}.c{c}", number(v), "0") for c, v in enumerate(values[-1])]
            joins.append(_Join(name, cell.source(), columns, terms if np.any(values) else ()))
        sums = self._join("found", joins)
        for c, log_class in enumerate(self.terms.log_class):
            sums[c] += [f"CASE WHEN p.x{j} IS NULL THEN 0 ELSE {d[c]} END" for j, d in self.terms.densities]
            sums[c].append(number(log_class))
        self.select("alone", [*self._row, *codes.values(), *_named("s", sums)])

    def _join(self, name: str, joins: Sequence[_Join]) -> list[list[str]]:
        """Append parts that join tables, some at a time; return the SQL of the sums of their terms in each class."""
        sums: list[list[str]] = [[] for _ in self.terms.log_class]
        for i in range(0, len(joins), _TABLES_AT_ONCE):
            some = joins[i : i + _TABLES_AT_ONCE]
            columns = [column for join in some for column in join.columns]
            for c, total in enumerate(sums):
                if terms := [join.terms[c] for join in some if join.terms]:
                    columns.append(f"{add(terms)} AS {name}{i}_{c}")
                    total.append(f"p.{name}{i}_{c}")
            tables = "".join(f"\nLEFT JOIN {join.table} ON {join.table}.level = {join.key}" for join in some)
            is_last = i + _TABLES_AT_ONCE >= len(joins)
            self.select(f"{name}{i}", ["p.*", *columns], tables, hint="" if is_last else "MATERIALIZED ")
        return sums

    def _add_table(self, name: str, keys: Sequence[tuple[str, int]], terms: np.ndarray) -> None:
        """Append the part of a table of terms (size, C), with a row for each key: key, code, terms."""
        classes = "".join(f", c{c}" for c in range(terms.shape[1]))
        rows = [f"({', '.join([key, str(code), *(f'{v:.16e}' for v in terms[code])])})" for key, code in keys]
        rows = rows or [f"({', '.join(['NULL'] + ['0'] * (1 + terms.shape[1]))})"]
        # In PostgreSQL these numbers are decimals, which the second part converts once.
        doubles = "".join(f", CAST(c{c} AS DOUBLE PRECISION) AS c{c}" for c in range(terms.shape[1]))
        self.tables.append(f"{name}_text(level, code{classes}) AS (VALUES\n" + ",\n".join(rows) + ")")
        self.tables.append(f"{name} AS (SELECT level, code{doubles} FROM {name}_text)")

    def _arc_joins(self, codes: Mapping[Cell, str]) -> list[_Join]:
        """Return the joins of the tables of arcs, given the SQL of the codes of cells; terms are without weights."""
        joins = []
        for g, arc in enumerate(self.terms.arcs):
            key = ""
            for cell, size in zip(arc.cells, arc.sizes, strict=True):
                code = codes[cell]
                if arc.missing_is_value and cell is not arc.cells[-1]:
                    code = f"COALESCE({code}, {size - 1})"
                key = f"({key}) * {size} + {code}" if key else code
            name = f"{self.prefix}a{g}"
            joins.append(_Join(name, key, (), [f"COALESCE({name}.c{c}, 0)" for c in range(arc.terms.shape[1])]))
        return joins

    def _add_arcs(self) -> None:
        """Append the parts that add the weighted terms of arcs to the scores, without a sum over missing cells."""
        joins = zip(self.terms.arcs, self._arc_joins(self._codes), strict=True)
        weighted = [replace(join, terms=[_weigh(arc.weight, term) for term in join.terms]) for arc, join in joins]
        sums = self._join("arcs", weighted)
        scores = _named("s", [[f"p.s{c}", *terms] for c, terms in enumerate(sums)])
        self.select("arcs_added", [*self._row, *scores])

    def _sum_over_missing(self, arcs: Sequence[Arc]) -> None:
        """Append the parts that add the terms of a network, with a row's missing cells summed out.

        A missing cell with an observed descendant takes each of its levels in turn. Tables whose cells are all observed
        are closed; the logarithm of the summed product of the others, open, is weighted by their mean weight.
        """
        codes, classes = self._codes, range(len(self.terms.log_class))
        below: dict[Cell, set[Cell]] = {cell: set() for cell in codes}
        for _ in arcs:  # as many steps as the longest path can have
            for *parents, child in (arc.cells for arc in arcs):
                for parent in parents:
                    below[parent] |= {child, *below[child]}
        flags = {cell: f"u{i}" for i, cell in enumerate(codes) if below[cell]}
        columns = []
        for cell, flag in flags.items():
            seen = add([f"{codes[other]} IS NOT NULL" for other in codes if other in below[cell]], "OR")
            columns.append(f"CASE WHEN {codes[cell]} IS NULL AND {seen} THEN 1 ELSE 0 END AS {flag}")
        self.select("marked", ["p.*", *columns])
        n_summed = add([f"p.{flag}" for flag in flags.values()])
        self.select("complete", ["p.*"], f" WHERE {n_summed} = 0")
        self._add_arcs()
        complete, self.last = self.last, f"{self.prefix}marked"
        # Its rows are read twice, and must have the same numbers.
        self.select("numbered", ["p.*", "ROW_NUMBER() OVER () AS id"], f" WHERE {n_summed} > 0", hint="MATERIALIZED ")
        joins, filled = [], dict(codes)
        for cell, flag in flags.items():
            name = f"{self.prefix}v{flag}"
            self._add_table(name, [("1", i) for i in range(cell.size)], np.zeros((cell.size, 0)))
            joins.append(_Join(name, f"p.{flag}", [f"COALESCE({codes[cell]}, {name}.code) AS f{flag}"]))
            filled[cell] = f"p.f{flag}"
        self._join("filled", joins)
        closed, opened, weight, n_open = [], [], [], []
        for arc, join in zip(arcs, self._arc_joins(filled), strict=True):
            seen = add([f"{codes[cell]} IS NOT NULL" for cell in arc.cells], "AND")
            weighted = [f"CASE WHEN {seen} THEN {_weigh(arc.weight, term)} ELSE 0 END" for term in join.terms]
            closed.append(replace(join, terms=weighted))
            opened.append(replace(join, terms=[f"CASE WHEN {seen} THEN 0 ELSE {term} END" for term in join.terms]))
            is_open = f"{join.key} IS NOT NULL AND NOT ({seen})"
            weight.append(f"CASE WHEN {is_open} THEN {number(arc.weight)} ELSE 0 END")
            n_open.append(f"CASE WHEN {is_open} THEN 1 ELSE 0 END")
        self.select("weighed", ["p.*", f"{add(weight)} / {add(n_open)} AS weight"])
        of_closed, of_open = self._join("closed", closed), self._join("opened", opened)
        sums = [*_named("s", [[f"p.s{c}", *terms] for c, terms in enumerate(of_closed)]), *_named("o", of_open)]
        self.select("completed", ["p.id", "p.weight", *sums], hint="MATERIALIZED ")
        self.select("highest", ["p.id", *(f"MAX(p.o{c}) AS m{c}" for c in classes)], " GROUP BY p.id")
        scores = [
            f"MIN(p.s{c}) + MIN(p.weight) * (MIN(h.m{c}) + {number(UNIT)} * "
            f"LN(SUM({_exp(f'p.o{c} - h.m{c}')}))) AS s{c}"
            for c in classes
        ]
        source = f"{self.prefix}completed AS p JOIN {self.prefix}highest AS h ON h.id = p.id"
        self.select("summed", ["p.id", *scores], " GROUP BY p.id", source)
        every = [*self._row, *(f"q.s{c}" for c in classes)]
        more = f" UNION ALL SELECT * FROM {complete}"
        source = f"{self.prefix}numbered AS p JOIN {self.prefix}summed AS q ON q.id = p.id"
        self.select("all_rows", every, more, source)


def _named(prefix: str, sums: Sequence[Sequence[str]]) -> list[str]:
    """Return the SQL of the sums of some terms in each class, named by the class."""
    return [f"{add(terms)} AS {prefix}{c}" for c, terms in enumerate(sums)]


def _weigh(weight: float, term: str) -> str:
    """Return the SQL of a weight times a term."""
    return term if weight == 1 else f"{number(weight)} * {term}"


def _otherwise(cell: Cell, value: str, reserved: str, missing: str) -> str:
    """Return the SQL of a value of a cell's table, or another for unknown texts, if these are a level, and missing."""
    if cell.has_reserved:
        return f"COALESCE({value}, CASE WHEN {cell.source()} IS NOT NULL THEN {reserved} ELSE {missing} END)"
    return value if missing == "NULL" else f"COALESCE({value}, {missing})"


__all__ = ["counts", "score"]
