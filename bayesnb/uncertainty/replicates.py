"""Tables replicated from draws of the parameters: features of rows given the class of each row."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding import Columns, Encoding, Rows
from bayesnb.families import reason_for_lack
from bayesnb.fitted.state import Fitted
from bayesnb.uncertainty.draws import CLASS_PROB
from bayesnb.uncertainty.given_draws import stacked_likelihood

_MOST_CELLS = 2**21


@dataclass(frozen=True, eq=False)
class CellBlock:
    """Observed cells of the F features of one block of columns.

    Parameters
    ----------
    index : (F,) int array
        Positions of the features among the columns of X.
    names : sequence of str
        Names of the features.
    levels : tuple of lists, or None
        Levels of each feature, in the order of the positions in `values`; None for numbers and counts of words.
    values : (N, F) array
        Numbers or counts, NaN where missing; positions of levels, -1 where missing.
    ordered : (F,) bool array
        Whether the levels of each feature are cells of a number, in ascending order.
    total : (N,) array or None
        Number of words of each row, or exposure of each row; None for other features.
    """

    index: np.ndarray
    names: Sequence[str]
    levels: tuple[list[Hashable], ...] | None
    values: np.ndarray
    ordered: np.ndarray
    total: np.ndarray | None = None

    @property
    def missing(self) -> np.ndarray:
        """(N, F) whether each cell is missing."""
        return np.isnan(self.values) if self.levels is None else self.values < 0

    def select_features(self, index: Sequence[int]) -> CellBlock:
        """Return the features at these positions among the columns of X, in this order."""
        if list(index) == self.index.tolist():
            return self
        position = {j: f for f, j in enumerate(self.index.tolist())}
        at = [position[int(j)] for j in index]
        levels, names = self.levels and tuple(self.levels[f] for f in at), [self.names[f] for f in at]
        return CellBlock(self.index[at], names, levels, self.values[:, at], self.ordered[at], self.total)


def reason_against_replicates(fitted: Fitted) -> str | None:
    """Return the reason why rows of this model cannot be simulated, or None."""
    if fitted.weights is not None:
        return "Weighted terms are not a distribution from which rows can be drawn. Pass nb.estimator_ instead."
    if any(fitted.encoding.term_map.plus < 0):
        return (
            "Rows cannot be drawn: the likelihood of numbers, a density times a ratio of cell probabilities, is not "
            "normalised. Choose numbers='binned', which uses cell probabilities only."
        )
    return next(filter(None, (reason_for_lack(family, "simulate") for family in fitted.posterior.blocks)), None)


def read_cell_blocks(encoding: Encoding, rows: Sequence[Rows]) -> list[CellBlock]:
    """Return the observed cells of each block of columns; those of features that a structure leaves out are not read.

    Parameters
    ----------
    encoding : Encoding
        Meaning of the columns.
    rows : sequence of Rows
        Rows of each block, encoded without parents.

    Raises
    ------
    NotImplementedError
        If counts of words are not whole numbers: such rows cannot be replicated.
    """
    pairs = zip(encoding.blocks, rows, strict=True)
    return [_read_block(columns.base, observed).select_features(columns.index) for columns, observed in pairs]


def _read_block(columns: Columns, rows: Any) -> CellBlock:
    """Return the observed cells of one block of columns without parents."""
    index = np.asarray(columns.index)
    ordered = columns.are_cells()
    feature, level = columns.axis()
    if level is None:
        values = np.asarray(rows.matrix.toarray() if hasattr(rows, "matrix") else rows.values, np.float64)
        if not columns.one_simplex:
            exposure = rows.exposure[:, 0] if columns.auxiliary else None
            return CellBlock(index, columns.names, None, values, ordered, exposure)
        total = values.sum(axis=1)
        if (fractional := values != np.round(values)).any():
            i, j = (int(at[0]) for at in np.nonzero(fractional))
            raise NotImplementedError(
                f"X: the count at row {i}, column {shown(columns.names[j])} is {values[i, j]}; word counts must be "
                "whole numbers. Pass raw counts, not tf-idf weights."
            )
        return CellBlock(index, columns.names, None, values, ordered, total.astype(np.int64))
    ends = np.searchsorted(feature, np.arange(len(index) + 1))
    levels = tuple(list(level[start:stop]) for start, stop in pairwise(ends))
    codes = (rows.matrix != 0).toarray() if hasattr(rows, "matrix") else rows.codes
    return CellBlock(index, columns.names, levels, np.asarray(codes).astype(np.int32), ordered)


def replicate_rows(
    fitted: Fitted, drawn: Mapping[str, np.ndarray], label: np.ndarray, blocks: Sequence[CellBlock], rng: Any
) -> Iterator[tuple[slice, list[np.ndarray]]]:
    """Yield replicated tables, for some of S draws of the parameters at a time: x ~ p(x | class of the row, θ).

    Parameters
    ----------
    fitted : Fitted
        State of the classifier whose parameters were drawn.
    drawn : dict {site: (S, ...) array}
        Draws of the parameters.
    label : (N,) or (S, N) int array
        Position of the class of each row, or of each row under each draw.
    blocks : sequence of CellBlock
        Observed cells: those that are missing are missing in each replicate, and a row keeps its number of words or its
        exposure.
    rng : numpy.random.Generator
        Source of randomness.

    Yields
    ------
    part : slice
        Draws of this part, s of them.
    values : list of (s, N, F) arrays
        For each block positions of levels (int32), or numbers (float64), coded as in `CellBlock.values`.
    """
    encoding, posterior = fitted.encoding, fitted.posterior
    n_draws, n_classes = drawn[CLASS_PROB].shape
    label = np.broadcast_to(label, (n_draws, label.shape[-1]))
    width = max(1, sum(int(columns.sizes().sum()) for columns in encoding.blocks))
    step = max(1, _MOST_CELLS // (width * max(1, label.shape[1])))
    missing = [block.missing for block in blocks]
    for start in range(0, n_draws, step):
        part = slice(start, min(start + step, n_draws))
        n = part.stop - part.start
        likelihoods = stacked_likelihood(encoding, posterior, drawn, part).likelihoods
        of_label = (np.arange(n)[:, None] * n_classes + label[part]).ravel()
        values = []
        each = zip(encoding.blocks, posterior.blocks, likelihoods, blocks, missing, strict=True)
        for columns, family, stacked, block, absent in each:
            likelihood = jax.tree.map(partial(np.take, indices=of_label, axis=0), stacked)
            total = 1 if block.total is None else np.tile(block.total, n)
            cells = columns.decode(columns.select_realized(family.simulate(likelihood, rng, total)))
            table = cells.reshape(n, label.shape[1], -1).astype(np.float64 if block.levels is None else np.int32)
            table[:, absent] = np.nan if block.levels is None else -1
            values.append(table)
        yield part, values
