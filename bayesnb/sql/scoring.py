"""Query that scores rows in the database: the class probabilities of a fitted classifier as one SELECT."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from bayesnb._util.arguments import bad_argument, require_choice, require_iterable, shown
from bayesnb.encoding.levels import to_python
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import Estimate
from bayesnb.sql.terms import Arc, Cell, Terms, read_terms
from bayesnb.sql.text import GREATEST, LEAST, add, number, number_and_nan, quote_column, quote_name, quote_text

_MOST_COLUMNS = 1500  # PostgreSQL has at most 1,664 columns in a SELECT.
_FEW_CLASSES = 8
_TABLES_AT_ONCE = 60  # SQLite joins at most 64 tables.
_PREFIX = "bayesnb_"
"""Beginning of the names of the query's parts, which must not hide a table of the database."""
_IMPOSSIBLE, _CERTAIN = number(-1e298), number(1e298)
"""Bounds of the scores of finite terms."""
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
    is NULL for rows whose probabilities are undefined, and for rows with an infinite number, or in SQLite with a text
    in place of a number. Where `predict_joint_log_proba` is infinite, "joint" is ±1.797e308. Levels are compared as
    texts, after the cast of `sql.counts`, so that the number 1 matches the text '1'. SQLite casts a number to 15
    digits, and cannot distinguish levels that share these. In a query as `table`, cast levels of type REAL to DOUBLE
    PRECISION, and a BOOLEAN that is a number to the model, as for `BernoulliNB`, to INTEGER. Probabilities agree with
    `predict_proba` to 1e-9.

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
    query = _Query(terms, len(keep))
    query.write_scores(table, features, keep)
    n_classes = range(len(classes))
    certain = add([f"CASE WHEN p.s{c} > {_CERTAIN} THEN 1 ELSE 0 END" for c in n_classes])
    undefined = f"CASE WHEN p.top < {_IMPOSSIBLE} OR {certain} > 1 THEN 1 ELSE 0 END AS undefined"
    # PostgreSQL raises an error for exp of less than -745.
    odds = [f"CASE WHEN p.s{c} - p.top < -700 THEN 0 ELSE EXP(p.s{c} - p.top) END AS e{c}" for c in n_classes]
    query.select("odds", ["p.*", undefined, *odds])
    query.select("totals", ["p.*", f"{add([f'p.e{c}' for c in n_classes])} AS total"])
    if output == "proba":
        results = [f"CASE WHEN p.no_number + p.undefined = 0 THEN p.e{c} / p.total END" for c in n_classes]
    elif output == "joint":
        bounds = f"{{0}} < {_IMPOSSIBLE} THEN -{GREATEST} WHEN {{0}} > {_CERTAIN} THEN {GREATEST} ELSE {{0}} END"
        results = [f"CASE WHEN p.no_number > 0 THEN NULL WHEN {bounds.format(f'p.s{c}')}" for c in n_classes]
    else:
        are_texts = any(isinstance(label, str) for label in classes)
        labels = [quote_text(label) if are_texts else str(label) for label in classes]
        choices = " ".join(f"WHEN p.s{c} = p.top THEN {labels[c]}" for c in n_classes)
        first = labels[int(np.argmax(fitted.class_log_prior))]
        results = [f"CASE WHEN p.no_number > 0 THEN NULL WHEN p.undefined > 0 THEN {first} {choices} END"]
    results = [*query.kept, *results]
    return query.finish([f"{value} AS {quote_name(name)}" for value, name in zip(results, names, strict=True)])


def _column_names(nb: Classifier, fitted: Fitted, columns: Any) -> list[str]:
    """Return the name of the table's column for each feature; raise ValueError for other names than the features'."""
    features: list[Any] = list(fitted.encoding.feature_names)
    named: Any = {} if columns is None else columns
    if not isinstance(named, Mapping):
        if isinstance(named, str) or not hasattr(named, "__len__") or len(named) != len(features):
            raise bad_argument("columns", columns, f"the names of all {len(features)} features, in the order of fit")
        named = dict(zip(features, named, strict=True))
    elif not named and not hasattr(nb, "feature_names_in_"):
        raise ValueError(
            f"The model was fitted without names. Pass those of the {len(features)} features as `columns`."
        )
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
            self._add_table(f"{_PREFIX}a{g}", [(str(i), i) for i in range(len(arc.terms))], arc.terms)
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
        self.last = _PREFIX + name
        self.parts.append(f"{self.last} AS {hint}(SELECT {', '.join(columns)}\nFROM {source}{more})")

    @property
    def kept(self) -> list[str]:
        """Kept columns of the part before."""
        return [f"p.keep{i}" for i in range(self.n_kept)]

    @property
    def _row(self) -> list[str]:
        """Columns of the part before that all parts have."""
        return [*self.kept, "p.no_number"]

    @property
    def _codes(self) -> dict[Cell, str]:
        """SQL of the code of each cell that is in an arc, NULL for a missing one."""
        in_arcs = {cell for arc in self.terms.arcs for cell in arc.cells}
        return {cell: f"p.k{t}" for t, cell in enumerate(self.terms.tables) if cell in in_arcs}

    def _read_cells(self, table: str, features: Sequence[str], keep: Sequence[str]) -> None:
        """Append the part that reads the table: kept columns, texts s<feature> and numbers x<feature> of its cells.

        Numbers are NULL if missing; `no_number` counts the cells that are infinite, or no numbers.
        """
        columns = [f"{quote_column(name)} AS keep{i}" for i, name in enumerate(keep)]
        texts = {cell.feature: cell for cell in self.terms.tables if cell.edges is None}
        numbers = {cell.feature for cell in self.terms.tables if cell.edges is not None}
        for j, cell in sorted(texts.items()):
            text, marks = f"CAST({quote_column(features[j])} AS VARCHAR)", list(map(quote_text, cell.marks))
            if not any(isinstance(level, str) for level in cell.known):
                # The level 1 is the text '1.0' in columns of reals, and '1.00' in some of decimals.
                is_decimal = f"{text} LIKE '%.%' AND {text} NOT LIKE '%e%'"
                text = f"CASE WHEN {is_decimal} THEN RTRIM(RTRIM({text}, '0'), '.') ELSE {text} END"
                marks += ["'NaN'", "'nan'"]
            known = f"CASE WHEN {text} NOT IN ({', '.join(marks)}) THEN {text} END" if marks else text
            columns.append(f"{known} AS s{j}")
        odd = []
        for j in sorted(numbers | {feature for feature, _ in self.terms.densities}):
            cell_, (value, is_nan) = quote_column(features[j]), number_and_nan(features[j])
            # SQLite compares the text '-1.5' as a number with a CAST, and as a text with the negative of one.
            is_finite = f"{cell_} <= {GREATEST} AND {cell_} >= {LEAST}"
            columns.append(f"CASE WHEN {is_finite} THEN {value} END AS x{j}")
            odd.append(f"CASE WHEN {cell_} IS NULL OR ({is_finite}) OR ({is_nan}) THEN 0 ELSE 1 END")
        self.select("cells", [*columns, f"{add(odd)} AS no_number"], source=f"{table} AS r")

    def _look_up(self, features: Sequence[str]) -> None:
        """Append the parts that find the codes k<table> of cells in arcs, and the sums s<class> of all other terms."""
        joins, codes = [], self._codes
        for t, (cell, values) in enumerate(self.terms.tables.items()):
            name = f"{_PREFIX}t{t}"
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
            name = f"{_PREFIX}a{g}"
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
        complete, self.last = self.last, f"{_PREFIX}marked"
        # Its rows are read twice, and must have the same numbers.
        self.select("numbered", ["p.*", "ROW_NUMBER() OVER () AS id"], f" WHERE {n_summed} > 0", hint="MATERIALIZED ")
        joins, filled = [], dict(codes)
        for cell, flag in flags.items():
            name = f"{_PREFIX}v{flag}"
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
            f"MIN(p.s{c}) + MIN(p.weight) * (MIN(h.m{c}) + "
            f"LN(SUM(CASE WHEN p.o{c} - h.m{c} < -700 THEN 0 ELSE EXP(p.o{c} - h.m{c}) END))) AS s{c}"
            for c in classes
        ]
        source = f"{_PREFIX}completed AS p JOIN {_PREFIX}highest AS h ON h.id = p.id"
        self.select("summed", ["p.id", *scores], " GROUP BY p.id", source)
        every = [*self._row, *(f"q.s{c}" for c in classes)]
        more = f" UNION ALL SELECT * FROM {complete}"
        source = f"{_PREFIX}numbered AS p JOIN {_PREFIX}summed AS q ON q.id = p.id"
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
