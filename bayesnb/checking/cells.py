"""Cells of features, levels or numbers, with rows sorted by class, for the comparison of pairs of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp

from bayesnb._util.arguments import shown
from bayesnb._util.level_pair_counts import count_pairs, pieces, sort_by_class
from bayesnb._util.precision import float64
from bayesnb.encoding import Columns
from bayesnb.families import Complete, Dirichlet, Family, supports
from bayesnb.families.protocol import PairDependence
from bayesnb.fitted import Fitted
from bayesnb.uncertainty import ImproperPosteriorError

_TABLE = 2**26


@dataclass(frozen=True, eq=False)
class LevelCells:
    """Levels of features that have the same number of levels.

    Parameters
    ----------
    index : (F,) columns of X
    code : (N, F) level of each cell, -1 where missing
    alpha : (C, F, L) concentrations of the prior
    """

    index: np.ndarray
    code: np.ndarray
    alpha: np.ndarray


@dataclass(frozen=True, eq=False)
class PresenceCells:
    """Features that are absent or present, in a sparse matrix.

    Parameters
    ----------
    index : (F,) columns of X
    matrix : (N, F) ones where a feature is present
    alpha : (C, F, 2) concentrations of the prior
    """

    index: np.ndarray
    matrix: sp.csc_array
    alpha: np.ndarray


@dataclass(frozen=True, eq=False)
class NumberCells:
    """Numbers.

    Parameters
    ----------
    index : (F,) columns of X
    values : (N, F) numbers, NaN where missing
    centre : (C, F) means of each class
    prior : Family
    """

    index: np.ndarray
    values: np.ndarray
    centre: np.ndarray
    prior: Family


Cells = LevelCells | PresenceCells | NumberCells


def read_cells(fitted: Fitted, X: object, y: object, chosen: set[int] | None) -> tuple[list[Cells], np.ndarray]:
    """Read the cells of the chosen features (None: all), with rows sorted by class.

    Returns
    -------
    cells : list
        Features with levels, then features with numbers; features of one kind stand together.
    bounds : (C + 1,) int array
        First row of each class, and the number of rows.

    Raises
    ------
    ImproperPosteriorError
        If the prior of a feature is improper.
    """
    table = fitted.table(X)
    order, bounds = sort_by_class(fitted.label_index(y, table.n_rows), len(fitted.encoding.classes))
    # Features with parents are compared without them: the model to check is naive Bayes.
    rows = fitted.rows(table, alone=True)
    cells: list[Cells] = []
    blocks = zip(fitted.encoding.blocks, fitted.prior.blocks, rows, fitted.encoding.repeats, strict=True)
    for block, family, x, repeats in blocks:
        if repeats:  # A number in a network has cells in another block, which are compared.
            continue
        family, columns = fitted.prior_alone(block, family), block.base
        index = np.asarray(columns.index)
        at = np.arange(len(index)) if chosen is None else np.flatnonzero(np.isin(index, list(chosen)))
        if not len(at):
            continue
        # Features that are averaged over have the prior of the model in which they depend on the class.
        family = getattr(family, "dependent", family)
        if not columns.one_simplex:
            _require_proper(columns, family, at)
        if hasattr(x, "matrix"):
            cells.append(_presences(columns, family, x.matrix, order, at))
            continue
        x = x.block(0, table.n_rows, table.n_rows)
        if hasattr(x, "code"):
            cells += _levels(columns, family, x.code, order, at)
            continue
        if not hasattr(family.statistics, "from_moments"):
            raise NotImplementedError(
                f"check_independence compares numbers by their moments, and {family.statistics.__name__}, the "
                f"statistics of {columns.kind} columns, has no `from_moments`. Choose other columns by features=."
            )
        values = np.asarray(x.values if isinstance(x, Complete) else x)[np.ix_(order, at)].astype(np.float64)
        prior = jax.tree.map(lambda field, at=at: np.asarray(field)[:, at], family)
        cells.append(NumberCells(index[at], values, _class_means(values, bounds), prior))
    return sorted(cells, key=_rank), bounds


def take(cells: Any, at: np.ndarray) -> Any:
    """Return the cells of some of the features, by their positions."""
    if isinstance(cells, LevelCells):
        return LevelCells(cells.index[at], cells.code[:, at], cells.alpha[:, at])
    if isinstance(cells, PresenceCells):
        return PresenceCells(cells.index[at], cells.matrix[:, at], cells.alpha[:, at])
    prior = jax.tree.map(lambda field: field[:, at], cells.prior)
    return NumberCells(cells.index[at], cells.values[:, at], cells.centre[:, at], prior)


def above_median(cells: NumberCells, bounds: np.ndarray) -> LevelCells:
    """Return numbers as two levels: above the median of the feature in its class, or not."""
    code = np.full(cells.values.shape, -1, np.int8)
    for _, rows in pieces(bounds, 1, whole=True):
        values = cells.values[rows]
        seen = ~np.isnan(values)
        middle = [np.median(column[s]) if s.any() else 0.0 for column, s in zip(values.T, seen.T, strict=True)]
        code[rows] = np.where(seen, values > middle, -1)
    return LevelCells(cells.index, code, np.ones((len(bounds) - 1, len(cells.index), 2)))


def one_hot(cells: LevelCells | PresenceCells, rows: slice, dtype: Any = np.float32) -> np.ndarray:
    """(n, F · L) indicators of the levels; the indicators of a missing cell are zero."""
    if isinstance(cells, PresenceCells):
        present = cells.matrix[rows].toarray()
        hot = np.stack([1 - present, present], axis=2)
    else:
        hot = cells.code[rows][:, :, None] == np.arange(cells.alpha.shape[2])
    return hot.reshape(hot.shape[0], -1).astype(dtype)


def tables(first: Any, second: Any, bounds: np.ndarray) -> np.ndarray:
    """(C, F₁, L₁, F₂, L₂) number of rows of each class with each pair of levels."""
    shape = (len(bounds) - 1, *first.alpha.shape[1:], *second.alpha.shape[1:])
    flat = shape[1] * shape[2], shape[3] * shape[4]
    if isinstance(first, PresenceCells) and isinstance(second, PresenceCells):
        counts = np.zeros((shape[0], *flat))
        for c, rows in pieces(bounds, max(flat)):
            counts[c] += _co_occurrences(first.matrix[rows], second.matrix[rows])
    else:
        counts = count_pairs(partial(one_hot, first), partial(one_hot, second), bounds, flat)
    return counts.reshape(shape)


def require_memory(cells: list[Cells], n_classes: int, names: Any) -> None:
    """Raise ValueError if the table of two features would not fit into memory."""
    sizes = sorted((c.alpha.shape[2], int(j)) for c in cells if not isinstance(c, NumberCells) for j in c.index)
    if len(sizes) > 1 and (need := n_classes * sizes[-1][0] * sizes[-2][0]) > _TABLE:
        (a, i), (b, j) = sizes[-1], sizes[-2]
        raise ValueError(
            f"features: column {shown(names[i])} has {a} levels and column {shown(names[j])} {b}; their table for "
            f"{n_classes} classes would take {need * 8 / 1e9:.1f} GB. Leave one of them out of `features`."
        )


def _co_occurrences(first: sp.csc_array, second: sp.csc_array) -> np.ndarray:
    """(2 F₁, 2 F₂) counts of (absent, present) × (absent, present)."""
    together = (first.T @ second).toarray().astype(np.float64)
    rows, columns = (np.asarray(m.sum(axis=0), np.float64).ravel() for m in (first, second))
    counts = np.empty((len(rows), 2, len(columns), 2))
    counts[:, 1, :, 1] = together
    counts[:, 1, :, 0] = rows[:, None] - together
    counts[:, 0, :, 1] = columns - together
    counts[:, 0, :, 0] = first.shape[0] - rows[:, None] - columns + together
    return counts.reshape(2 * len(rows), -1)


def _presences(columns: Columns, family: Dirichlet, matrix: Any, order: np.ndarray, at: np.ndarray) -> PresenceCells:
    present = sp.csc_array(sp.csr_array(matrix)[order][:, at])
    present = sp.csc_array((np.ones(present.nnz, np.float32), present.indices, present.indptr), present.shape)
    n_classes = np.shape(family.concentration)[0]
    alpha = np.broadcast_to(1.0, (n_classes, len(at), 2))
    if not columns.one_simplex:
        alpha = np.asarray(family.concentration).reshape(n_classes, -1, 2)[:, at]
    return PresenceCells(np.asarray(columns.index)[at], present, alpha)


def _levels(columns: Any, family: Dirichlet, code: Any, order: np.ndarray, at: np.ndarray) -> list[LevelCells]:
    """Group features by their number of levels, so that the tables of a group are one array."""
    sizes = np.asarray(columns.sizes())
    start = np.cumsum(sizes) - sizes
    alpha, index, code = np.asarray(family.concentration), np.asarray(columns.index), np.asarray(code)
    groups = []
    for size in np.unique(sizes[at]):
        same = at[sizes[at] == size]
        concentration = alpha[:, start[same][:, None] + np.arange(size, dtype=np.intp)]
        groups.append(LevelCells(index[same], code[np.ix_(order, same)], concentration))
    return groups


def _class_means(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """(C, F) means of the observed cells; zero where no cell is observed."""
    centre = np.zeros((len(bounds) - 1, values.shape[1]))
    for c, rows in pieces(bounds, 1, whole=True):
        seen = ~np.isnan(values[rows])
        count = np.maximum(seen.sum(axis=0), 1)
        # The second pass corrects the rounding of the first mean.
        for _ in range(2):
            centre[c] += np.where(seen, values[rows] - centre[c], 0.0).sum(axis=0) / count
    return centre


def _rank(cells: Cells) -> int:
    """Order of comparison: levels, then numbers, of which those whose pairs have a closed form come last."""
    if not isinstance(cells, NumberCells):
        return 0
    return 2 if supports(cells.prior, PairDependence) else 1


def _require_proper(columns: Columns, family: Family, at: np.ndarray) -> None:
    proper = float64(family.proper)()
    improper = np.asarray(columns.axis()[0])[~proper.all(axis=0)]
    improper = improper[np.isin(improper, at)]
    if len(improper):
        raise ImproperPosteriorError(
            f"The prior of feature {shown(columns.names[int(improper[0])])} is improper: a parameter of it is zero. A "
            "Bayes factor needs a proper prior, such as alpha=0.5."
        )


__all__ = [
    "Cells",
    "LevelCells",
    "NumberCells",
    "PresenceCells",
    "above_median",
    "one_hot",
    "read_cells",
    "require_memory",
    "tables",
    "take",
]
