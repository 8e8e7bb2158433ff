"""Terms of a fitted classifier as tables of levels and as densities, for SQL: log p(c, row) is the sum of these."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesnb import kernels
from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb.encoding.levels import to_python
from bayesnb.families.rows import OneHot, weighted
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Fitted
from bayesnb.model import Estimate, JointLikelihood
from bayesnb.sql.text import cell_number, number, quote_text

IMPOSSIBLE, CERTAIN = -1e304, 1e299
"""Scores in place of -inf and +inf, which SQL has no literal for; sums of thousands of them do not overflow."""
_MOST_NUMBERS = 2**18
_PREDICTIVE = "Use estimate='predictive'"


@dataclass(frozen=True)
class Cell:
    """Cell of a feature: the text of a level, or the number of the interval between `edges` in which a number lies."""

    feature: int
    levels: tuple[Hashable, ...] = ()
    edges: tuple[float, ...] | None = None
    marks: tuple[Hashable, ...] = ()
    """Values that mark a missing cell."""
    has_reserved: bool = False
    """Whether the last level stands for all unknown texts."""

    @property
    def size(self) -> int:
        """Number of levels or of intervals."""
        return len(self.levels) if self.edges is None else len(self.edges) + 1

    @property
    def known(self) -> tuple[Hashable, ...]:
        """Levels but the reserved one."""
        return self.levels[: len(self.levels) - self.has_reserved]

    def source(self) -> str:
        """Return the SQL of what keys are compared with: the text or the interval; NULL for a missing cell."""
        if self.edges is None:
            return f"p.s{self.feature}"
        return f"CASE WHEN p.x{self.feature} IS NOT NULL THEN {cell_number(f'p.x{self.feature}', self.edges)} END"

    def keys(self, where: object) -> Iterator[tuple[str, int]]:
        """Yield SQL literals to compare with `source`, each with the code of its level; `where` names the column."""
        if self.edges is not None:
            yield from ((str(code), code) for code in range(self.size))
            return
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

    def add_table(self, cell: Cell, terms: np.ndarray) -> None:
        """Add terms (size, C) of a cell to its table."""
        self.tables[cell] = self.tables.get(cell, 0.0) + terms


@float64
def _read(fitted: Fitted, estimate: Estimate | None) -> tuple[Any, np.ndarray, tuple[Any, ...]]:
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
    terms = Terms(log_class)
    blocks = fitted.encoding.blocks
    for b, (columns, likelihood) in enumerate(zip(blocks, likelihoods, strict=True)):
        if columns.one_simplex or len(columns.term_names) != len(columns.index):
            term = f"{shown(columns.term_names[0])} is a single term of several columns"
            raise NotImplementedError(f"sql.score cannot write {fitted.name}: {term}. Use predict_proba.")
        weight = np.broadcast_to(1.0 if weights is None else weights.blocks[b], len(columns.index))
        if not hasattr(columns, "tables") and not hasattr(columns, "edges") and columns.kind != "bernoulli":
            _add_densities(terms, columns, likelihood, weight)
            continue
        if getattr(columns.base, "unknown", "ignore") == "error":
            raise NotImplementedError("sql.score cannot raise errors. Fit with handle_unknown='ignore' or 'level'.")
        _add_tables(terms, columns, likelihood, weight)
    sizes = [cell.size for cell in terms.tables] + [math.prod(arc.sizes) for arc in terms.arcs]
    if (n_numbers := len(log_class) * sum(sizes)) > _MOST_NUMBERS:
        most = f"the limit is {_MOST_NUMBERS:,}. Use predict_proba for so many levels and classes"
        raise ValueError(f"The query would have {n_numbers:,} numbers; {most}.")
    return terms


def _add_tables(terms: Terms, columns: Any, likelihood: Any, weight: np.ndarray) -> None:
    """Add the tables of a block of levels, of cells of numbers, or of features with parents; `weight` (F,)."""
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
            cells = tuple(_cell(columns.base, j) for j in (*given, child))
            for cell in cells:
                terms.add_table(cell, np.zeros((cell.size, len(terms.log_class))))
            arc_sizes = (*(int(columns.parent_sizes()[p]) for p in given), cells[-1].size)
            if weight[f] < 0 and np.isinf(table).any():
                raise NotImplementedError(f"sql.score cannot weigh zero probabilities of {where}. {_PREDICTIVE}.")
            finite = np.where(np.isneginf(table), IMPOSSIBLE, table)
            terms.arcs.append(Arc(cells, arc_sizes, finite, float(weight[f]), not sums))
        else:
            table = np.asarray(weighted(weight[f], table))
            terms.add_table(_cell(columns.base, child), np.where(np.isneginf(table), IMPOSSIBLE, table))


def _cell(columns: Any, f: int) -> Cell:
    """Return the cell of feature f of a block of columns without parents."""
    feature = int(columns.index[f])
    if columns.kind == "bernoulli":
        return Cell(feature, edges=(0.5 if columns.threshold is None else float(columns.threshold),))
    edges = columns.edges[f] if hasattr(columns, "edges") else (columns.cuts or {f: None})[f]
    if edges is not None or hasattr(columns, "edges"):
        return Cell(feature, edges=tuple(map(float, () if edges is None else edges)))
    reserved = columns.unknown == "level"
    return Cell(feature, tuple(columns.level_names(f)), None, tuple(columns.missing_values), reserved)


def _add_densities(terms: Terms, columns: Any, likelihood: Any, weight: np.ndarray) -> None:
    """Add the densities of a block of numbers; `weight` (F,)."""
    if not hasattr(likelihood, "sql"):
        kind = f"the distribution of {columns.kind} columns under this estimate"
        raise NotImplementedError(f"sql.score cannot write {kind}. Use estimate='mean', or predict_proba.")
    limits = {"impossible": number(IMPOSSIBLE), "certain": number(CERTAIN)}
    parameters = {name: np.asarray(value) for name, value in likelihood.parameters().items()}
    for f, (j, name) in enumerate(zip(columns.index, columns.names, strict=True)):
        of_class = []
        for c in range(len(terms.log_class)):
            values = {key: float(value[c, f]) for key, value in parameters.items()}
            last = list(values.values())[-1]
            if not np.isfinite(list(values.values())).all() or (last == 0 and weight[f] < 0):
                raise ValueError(f"column {shown(name)}: a class has no such estimate of a density. {_PREDICTIVE}.")
            names = {key: number(value) for key, value in values.items()} | limits
            density = likelihood.sql[last == 0].format(x=f"p.x{j}", **names)
            of_class.append(density if weight[f] == 1 or last == 0 else f"{number(weight[f])} * ({density})")
        if weight[f]:
            terms.densities.append((int(j), of_class))


def _texts(level: Any, where: object) -> tuple[str, ...]:
    """Return the texts that databases cast a level to; the first is the level's own."""
    value = to_python(level)
    if isinstance(value, bool):
        return ("true", "1") if value else ("false", "0")
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, int | float):
        level = f"the level {shown(value)} of column {shown(where)}, a {type(value).__name__}"
        raise NotImplementedError(f"sql.score cannot compare {level}. Fit with the text of such cells.")
    texts = [str(value).removesuffix(".0"), *(["0", "-0"] if value == 0 else [])]
    if isinstance(value, float):
        texts.append(f"{value:.15g}")  # SQLite has 15 digits, and writes 1.0e+15; PostgreSQL writes 1e+15.
        if "e" in texts[-1]:
            texts.append(np.format_float_scientific(value, trim="-"))
        texts += [re.sub(r"^(-?\d)e", r"\1.0e", text) for text in texts]
    return tuple(dict.fromkeys(texts))


__all__ = ["CERTAIN", "IMPOSSIBLE", "Arc", "Cell", "Terms", "read_terms"]
