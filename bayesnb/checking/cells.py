"""Cells of features, levels or numbers, with rows sorted by class, for the comparison of pairs of features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp

from bayesnb._util.arguments import shown
from bayesnb._util.arrays import count_pairs, sort_by_class
from bayesnb._util.precision import float64
from bayesnb.encoding import Columns
from bayesnb.families import Complete, Dirichlet, offers
from bayesnb.fitted.state import Fitted
from bayesnb.uncertainty import ImproperPosteriorError

_TABLE = 2**26


@dataclass(frozen=True, eq=False)
class LevelCells:
    """Encoded levels of F features that have the same number of levels, L, with rows sorted by class.

    Parameters
    ----------
    index : (F,) columns of X
    code : (N, F) level of each cell, -1 where missing; a sparse matrix for presences of words
    alpha : (C, F, L) concentrations of the prior
    """

    index: np.ndarray
    code: Any
    alpha: np.ndarray

    def take(self, at: np.ndarray) -> LevelCells:
        """Return a copy with the features at the positions `at`."""
        return LevelCells(self.index[at], self.code[:, at], self.alpha[:, at])

    def one_hot(self, rows: slice, dtype: type = np.float32) -> np.ndarray:
        """(n, F · L) indicators of the levels in these rows; the indicators of a missing cell are zero."""
        code = self.code[rows]
        hot = (code.toarray() if sp.issparse(code) else code)[:, :, None] == np.arange(self.alpha.shape[2])
        return np.asarray(hot.reshape(hot.shape[0], -1), dtype)

    def count_pairs(self, other: LevelCells, bounds: np.ndarray) -> np.ndarray:
        """(C, F₁, L₁, F₂, L₂) number of rows of each class with each pair of levels.

        Rows in which either cell is missing are not counted. `bounds` (C + 1,) are the first row of each class, and the
        number of rows.
        """
        shape = (len(bounds) - 1, *self.alpha.shape[1:], *other.alpha.shape[1:])
        if not (sp.issparse(self.code) and sp.issparse(other.code)):
            flat = shape[1] * shape[2], shape[3] * shape[4]
            return count_pairs(self.one_hot, other.one_hot, bounds, flat).reshape(shape)
        counts = np.empty(shape)
        for c, (start, stop) in enumerate(pairwise(bounds)):
            x, y = self.code[start:stop], other.code[start:stop]
            n_x, n_y, both = x.sum(axis=0)[:, None], y.sum(axis=0), (x.T @ y).toarray()
            table = np.array([[stop - start - n_x - n_y + both, n_y - both], [n_x - both, both]])
            counts[c] = table.transpose(2, 0, 3, 1)
        return counts


@dataclass(frozen=True, eq=False)
class NumberCells:
    """Values of F features that are numbers, with rows sorted by class, their class means, and their prior.

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
    prior: Any

    def take(self, at: np.ndarray) -> NumberCells:
        """Return a copy with the features at the positions `at`."""
        prior = jax.tree.map(lambda field: np.asarray(field)[:, at], self.prior)
        return NumberCells(self.index[at], self.values[:, at], self.centre[:, at], prior)

    def above_median(self, bounds: np.ndarray) -> LevelCells:
        """Return numbers as two levels: 1 above the median of the feature in the row's class, 0 not, -1 missing.

        `bounds` (C + 1,) are the first row of each class, and the number of rows. The concentrations of both levels are
        1.
        """
        code = np.full(self.values.shape, -1, np.int8)
        for start, stop in pairwise(bounds):
            values = self.values[start:stop]
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # A column may have no cell.
                median = np.nanmedian(values, axis=0) if len(values) else 0.0
            code[start:stop] = np.where(np.isnan(values), -1, values > median)
        return LevelCells(self.index, code, np.ones((len(bounds) - 1, len(self.index), 2)))


Cells = LevelCells | NumberCells


def read_cells(fitted: Fitted, X: object, y: object, chosen: set[int]) -> tuple[list[Cells], np.ndarray]:
    """Read the cells of the chosen features, with rows sorted by class.

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
    for block, family, block_rows, repeats in blocks:
        index = np.asarray(block.base.index)
        at = np.flatnonzero(np.isin(index, list(chosen)))
        if repeats or not len(at):  # A number in a network has cells in another block, which are compared.
            continue
        # Features that are averaged over have the prior of the model in which they depend on the class.
        prior = fitted.prior_alone(block, family)
        prior = getattr(prior, "dependent", prior)
        improper = np.asarray(block.base.axis()[0])[~float64(prior.proper)().all(axis=0)]
        if not block.base.one_simplex and len(improper := np.intersect1d(improper, at)):
            raise ImproperPosteriorError(
                f"The prior of feature {shown(block.base.names[improper[0]])} is improper, as one of its parameters is "
                "zero. A Bayes factor needs a proper prior, such as alpha=0.5."
            )
        if hasattr(block_rows, "matrix"):
            present = (sp.csc_array(block_rows.matrix) != 0).astype(np.float64)
            cells += _level_cells(block.base, prior, present.tocsr()[order].tocsc(), at)
        elif hasattr(x := block_rows.block(0, table.n_rows, table.n_rows), "code"):
            cells += _level_cells(block.base, prior, np.asarray(x.code)[order], at)
        elif hasattr(prior.statistics, "from_moments"):
            values = np.asarray(x.values if isinstance(x, Complete) else x)[order].astype(np.float64)
            cells.append(NumberCells(index, values, _class_means(values, bounds), prior).take(at))
        else:
            raise NotImplementedError(
                f"check_independence cannot compare {block.kind} columns: {prior.statistics.__name__} lacks the method "
                "`from_moments`. Name other columns in features=."
            )
    # Numbers whose pairs have a closed-form Bayes factor come last.
    cells.sort(key=lambda c: isinstance(c, NumberCells) and 1 + offers(c.prior, "log_bayes_factor_of_pairs"))
    return cells, bounds


def require_pair(n_features: int) -> None:
    """Raise ValueError if there are fewer than two columns."""
    if n_features < 2:
        raise ValueError(f"features: a pair needs two columns, {n_features} can be compared. A KDB leaves some out.")


def require_memory(cells: list[Cells], n_classes: int, names: Sequence[str]) -> None:
    """Raise ValueError if the table of counts of the two features with most levels has more than 2^26 entries."""
    sizes = sorted((c.alpha.shape[2], int(j)) for c in cells if not isinstance(c, NumberCells) for j in c.index)
    if len(sizes) > 1 and (need := n_classes * sizes[-1][0] * sizes[-2][0]) > _TABLE:
        (a, i), (b, j) = sizes[-1], sizes[-2]
        raise ValueError(
            f"features: column {shown(names[i])} has {a} levels and column {shown(names[j])} has {b}; their table for "
            f"{n_classes} classes would take {need * 8 / 1e9:.1f} GB. Leave one of them out of `features`."
        )


def _level_cells(columns: Columns, family: Dirichlet, code: Any, at: np.ndarray) -> list[LevelCells]:
    """Group the features at positions `at` of a block by number of levels; words are two levels, absent and present."""
    alpha, index = np.asarray(family.concentration), np.asarray(columns.index)
    if columns.one_simplex:  # Words are absent or present.
        return [LevelCells(index[at], code[:, at], np.ones((len(alpha), len(at), 2)))]
    sizes = np.asarray(columns.sizes())
    start = np.cumsum(sizes) - sizes
    groups = []
    for size in np.unique(sizes[at]):
        same = at[sizes[at] == size]
        concentration = alpha[:, start[same][:, None] + np.arange(size, dtype=np.intp)]
        groups.append(LevelCells(index[same], code[:, same], concentration))
    return groups


def _class_means(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """(C, F) means of the observed cells; zero where no cell is observed."""
    centre = np.zeros((len(bounds) - 1, values.shape[1]))
    for c, (start, stop) in enumerate(pairwise(bounds)):
        count = np.maximum((~np.isnan(values[start:stop])).sum(axis=0), 1)
        # The second pass corrects the rounding of the first mean.
        for _ in range(2):
            centre[c] += np.nansum(values[start:stop] - centre[c], axis=0) / count
    return centre
